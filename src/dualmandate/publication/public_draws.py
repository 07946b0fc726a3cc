"""Noise drawn from a key that everybody knows, to see how errors of a release are distributed.

The draws are those of the exact samplers, from keys that no release can have: a release's own are made from its secret.
Anyone who repeats this gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import Noise
from dualmandate.mechanism.noise import NoiseKey

DRAWS = 2**17
TOGETHER = 2**22  # numbers that are held at once
TOO_LOW = 1e-4  # chance, over public keys, that an order statistic lies below the quantile that it stands for

Floats = NDArray[np.float64]


def public_key(kind: int) -> NoiseKey:
    """The key of one kind of noise; public, and documented in docs/explanation/intervals.md."""
    return NoiseKey(sha256(f"dualmandate, public draws for intervals, version 1, kind {kind}".encode("ascii")).digest())


def public_errors(weights: Floats, kinds: NDArray[np.int64], noises: Sequence[Noise]) -> Iterator[Floats]:
    """DRAWS errors Σ w·X of some numbers, all from the same draws, weights of shape (numbers, rows).

    Some draws at a time; shape (draws of the block, numbers).
    """
    count, width = weights.shape[1], max(1, TOGETHER // max(1, *weights.shape))
    places = {int(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
    samplers = {kind: (noises[kind].sampler(), public_key(kind)) for kind in places}
    for start in range(0, DRAWS, width):
        here = min(width, DRAWS - start)
        drawn = np.empty((here, count))
        for kind, rows in places.items():
            sampler, key = samplers[kind]
            cells = range(start * len(rows), (start + here) * len(rows))
            drawn[:, rows] = sampler.draw(key, cells).reshape(here, len(rows))
        yield drawn @ weights.T


def order_statistic(nominal: Fraction) -> int | None:
    """Which of the sorted sizes, counted from 1, is hardly ever below the quantile; None where the draws are too few.

    As many sizes below the quantile are seen with a probability of at most TOO_LOW, by the binomial law.
    """
    from scipy.stats import binom

    place = int(binom.isf(TOO_LOW, DRAWS, float(nominal))) + 1
    return place if place <= DRAWS else None


def too_close_to_one(nominal: Fraction) -> InvalidRequest:
    """The refusal of a probability that the draws cannot tell from 1."""
    return InvalidRequest(
        f"a simulated interval that holds with probability {float(nominal):.10g}",
        why=f"{DRAWS:,} draws cannot tell it from 1",
        instead="ask for a probability of at most 0.9999",
    )
