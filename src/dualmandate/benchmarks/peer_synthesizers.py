"""Makers of synthetic records of others, on the same records: a script that needs nothing of ours.

    python peer_synthesizers.py NAME FILE EPSILON FAILURE SEED

FILE is an .npz archive of `levels` (records × attributes, from 0) and `sizes`; FAILURE is δ. Prints the package's name
with its version, the processor seconds of one release, and the mean total variation distance of all tables of two and
of three attributes, counted from as many synthetic records as there are real ones; null where it is not installed.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.int64]
MODEL_MEGABYTES = 80  # what AIM's authors compare it at


def of_dpmm(maker: Any, levels: Levels, sizes: Levels, epsilon: float, failure: float, seed: int) -> Levels:
    """As many synthetic records as there are real ones, by the package's defaults."""
    names = [f"a{place}" for place in range(len(sizes))]
    domain = dict(zip(names, sizes.tolist(), strict=True))
    made = maker(epsilon=epsilon, delta=failure, domain=domain, max_model_size=MODEL_MEGABYTES, n_jobs=1)
    made.set_domain(domain)
    made.set_random_state(np.random.RandomState(seed))
    made.fit(import_module("pandas").DataFrame(levels, columns=names))
    return np.asarray(made.generate(n_records=len(levels))[names].to_numpy(), dtype=np.int64)


def aim(*given: Any) -> Levels:
    """McKenna, Mullins, Sheldon and Miklau's mechanism."""
    return of_dpmm(import_module("dpmm.models.aim").AIMGM, *given)


def mst(*given: Any) -> Levels:
    """McKenna, Miklau and Sheldon's mechanism."""
    return of_dpmm(import_module("dpmm.models.mst").MSTGM, *given)


PEERS: dict[str, tuple[str, Callable[..., Levels]]] = {"AIM of dpmm": ("dpmm", aim), "MST of dpmm": ("dpmm", mst)}


def mean_distance(one: Levels, other: Levels, sizes: Sequence[int], order: int) -> float:
    """The mean over all tables of so many attributes of half the sum of how far their shares are apart."""
    found = []
    for places in itertools.combinations(range(len(sizes)), order):
        shape = [int(sizes[place]) for place in places]
        each = [
            np.bincount(np.ravel_multi_index(tuple(levels[:, list(places)].T), shape), minlength=math.prod(shape))
            for levels in (one, other)
        ]
        found.append(float(np.abs(each[0] / len(one) - each[1] / len(other)).sum()) / 2)
    return math.fsum(found) / len(found)


def found(name: str, levels: Levels, sizes: Levels, epsilon: float, failure: float, seed: int) -> dict[str, Any] | None:
    """How one package fares on these records; None where it is not installed."""
    package, make = PEERS[name]
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
    started = time.process_time()
    records = make(levels, sizes, epsilon, failure, seed)
    seconds = time.process_time() - started
    distances = [mean_distance(levels, records, sizes.tolist(), order) for order in (2, 3)]
    return {"peer": f"{name} {version}", "seconds": seconds, "distances": distances}


def main(name: str, file: str, epsilon: str, failure: str, seed: str) -> None:
    """Run one package here, and print what it found as JSON."""
    with np.load(file) as archive:
        levels, sizes = archive["levels"].astype(np.int64), archive["sizes"].astype(np.int64)
    print(json.dumps(found(name, levels, sizes, float(epsilon), float(failure), int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])
