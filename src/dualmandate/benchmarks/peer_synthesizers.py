"""Makers of synthetic records of others, on the same records: a script that needs nothing of ours.

    python peer_synthesizers.py NAME FILE EPSILON DELTA SEED

FILE is an .npz archive of `levels` (records × attributes, from 0) and `sizes`. Prints the package's name with its
version, the processor seconds of one release, and the mean total variation distance of all tables of two and of three
attributes, counted from as many synthetic records as there are real ones; null where the package is not installed.
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


def dpmm(model: str, levels: Levels, sizes: Levels, epsilon: float, delta: float, seed: int) -> Levels:
    """As many synthetic records as there are real ones, by the package's defaults."""
    pandas, models = import_module("pandas"), import_module(f"dpmm.models.{model.lower()}")
    names = [f"a{place}" for place in range(len(sizes))]
    made = getattr(models, f"{model}GM")(
        epsilon=epsilon,
        delta=delta,
        domain=dict(zip(names, sizes.tolist(), strict=True)),
        max_model_size=MODEL_MEGABYTES,
        n_jobs=1,
    )
    made.set_domain(dict(zip(names, sizes.tolist(), strict=True)))
    made.set_random_state(np.random.RandomState(seed))
    made.fit(pandas.DataFrame(levels, columns=names))
    found = made.generate(n_records=len(levels))
    return np.asarray(found[names].to_numpy(), dtype=np.int64)


PEERS: dict[str, tuple[str, Callable[[Levels, Levels, float, float, int], Levels]]] = {
    "AIM of dpmm": ("dpmm", lambda *given: dpmm("AIM", *given)),
    "MST of dpmm": ("dpmm", lambda *given: dpmm("MST", *given)),
}


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


def found(name: str, levels: Levels, sizes: Levels, epsilon: float, delta: float, seed: int) -> dict[str, Any] | None:
    """How one package fares on these records; None where it is not installed."""
    package, make = PEERS[name]
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
    started = time.process_time()
    records = make(levels, sizes, epsilon, delta, seed)
    seconds = time.process_time() - started
    distances = [mean_distance(levels, records, sizes.tolist(), order) for order in (2, 3)]
    return {"peer": f"{name} {version}", "seconds": seconds, "distances": distances}


def main(name: str, file: str, epsilon: str, delta: str, seed: str) -> None:
    """Run one package here, and print what it found as JSON."""
    with np.load(file) as archive:
        levels, sizes = archive["levels"].astype(np.int64), archive["sizes"].astype(np.int64)
    print(json.dumps(found(name, levels, sizes, float(epsilon), float(delta), int(seed))))


if __name__ == "__main__":
    main(*sys.argv[1:])
