"""Intervals for the number behind a count: what a like population would show on average.

The people counted are taken as one draw: each count N is Poisson with mean λ, and what is published is N + S, S the
noise. The interval holds every λ that the estimate y does not rule out: P(N + S ≥ y) and P(N + S ≤ y) are both more
than half of what may be missed. It inverts an exact test, so it holds λ at least as often as asked for, whatever λ and
the noise; without noise it is Garwood's interval [Gar36].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dualmandate.mechanism import Noise
from dualmandate.mechanism.combination import FINEST_TAIL, Combination
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.intervals import Interval, Probability, asked_for, error_of

COVERED = "the expected number"
COUNTED = "the ratio of the numbers counted, not of the expected ones"  # sampling error is not in it
NEAR = 1e-9  # relative, within which a distance is a value of the noise


def expected_number_interval(
    estimate: float, weights: Floats, kinds: Integers, noises: Sequence[Noise], *, probability: Probability = 0.95
) -> Interval:
    """The interval of λ about an unbiased estimate of a Poisson count, N + Σ w·X."""
    nominal = asked_for(probability)
    error, tail = error_of(weights, kinds, noises), float(1 - nominal) / 2
    farthest = math.ceil(error.reach(FINEST_TAIL)) if error.terms else 0
    counts = np.arange(max(math.floor(estimate) - farthest, 0), max(math.ceil(estimate) + farthest, 0) + 1)
    above = np.array([_at_least(error, estimate - count) for count in counts])
    below = np.array([_at_least(error, count - estimate) for count in counts])

    def too_high(mean: float) -> float:  # P(N + S ≤ y) beyond what may be missed: falls with the mean
        return float(_poisson(counts, mean) @ below + _below(counts[0] - 1, mean)) - tail

    def high_enough(mean: float) -> float:
        return tail - float(_poisson(counts, mean) @ above + 1 - _below(counts[-1], mean))

    most = float(counts[-1]) + 20 * math.sqrt(counts[-1] + 1.0) + 50.0
    lower, upper = _crossing(high_enough, most), _crossing(too_high, most)
    words = "noise and Poisson sampling together, by an exact test"
    return Interval(estimate, lower, upper, float(nominal), float(nominal), False, words, covers=COVERED)


def _at_least(error: Combination, value: float) -> float:
    """P(S ≥ value), S symmetric about 0."""
    if value <= NEAR:
        return 1 - (error.tail(max(-value, 0.0)) / 2 if error.terms else 0.0)
    return error.tail(value * (1 - NEAR)) / 2 if error.terms else 0.0


def _poisson(counts: Integers, mean: float) -> Floats:
    from scipy.special import gammaln, xlogy

    return np.asarray(np.exp(xlogy(counts, mean) - mean - gammaln(counts + 1.0)))


def _below(count: int, mean: float) -> float:
    """P(N ≤ count)."""
    from scipy.special import pdtr

    return float(pdtr(count, mean)) if count >= 0 else 0.0


def _crossing(falling: Callable[[float], float], most: float) -> float:
    """Where a falling function of the mean is 0; 0 where it is below it already."""
    from scipy.optimize import brentq

    return 0.0 if falling(0.0) <= 0 else float(brentq(falling, 0.0, most, xtol=1e-9, rtol=1e-12))
