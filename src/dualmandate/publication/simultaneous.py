"""Intervals for all numbers of a table at once: all of them hold together with the probability that was asked for.

Numbers that share no measurement are independent: each takes its own interval at the m-th root of the probability, and
the product is exact. Others are estimate ± c·(standard error), c the quantile of the largest |error|/(standard error)
over the table, from draws of a public key. Where that would take too long, the chances to miss are added up instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge
from dualmandate.mechanism import Noise
from dualmandate.publication.error_laws import NOTHING, Floats, Reach, reach_of_rows
from dualmandate.publication.intervals import Interval, Probability, around, asked_for
from dualmandate.publication.public_draws import DRAWS, order_statistic, public_errors

MOST_WORK = 2**36  # multiplications of a simulation


@dataclass(frozen=True, eq=False)
class SimultaneousIntervals:
    """Intervals for the numbers of a table, row-major; the probability is that of all of them holding together."""

    estimates: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    nominal: float
    probability: float
    is_exact: bool
    method: str
    standard_error: float = 0.0


def simultaneous_of(
    estimates: Floats,
    weights: Floats,
    kinds: NDArray[np.int64],
    noises: Sequence[Noise],
    *,
    probability: Probability = 0.95,
) -> SimultaneousIntervals:
    """Intervals for estimates truth + W·X that all hold together; weights W of shape (numbers, rows)."""
    nominal = asked_for(probability)
    if np.count_nonzero(_used(weights), axis=0).max(initial=0) <= 1:
        return _independent(estimates, _reaches(weights, kinds, noises, _each_of(nominal, len(estimates))), nominal)
    place = order_statistic(nominal)
    if place is None or DRAWS * weights.size > MOST_WORK:
        tail = float(1 - nominal) / len(estimates)
        return _added_up(estimates, _reaches(weights, kinds, noises, tail), nominal)
    return _simulated(estimates, weights, kinds, noises, (nominal, place))


def simultaneous_of_cells(
    estimates: Floats,
    kinds: NDArray[np.int64],
    noises: Sequence[Noise],
    *,
    factor: float = 1.0,
    probability: Probability = 0.95,
) -> SimultaneousIntervals:
    """The same for numbers that were measured one by one, each `factor` times a whole number of its kind."""
    nominal = asked_for(probability)
    tail = _each_of(nominal, len(estimates))
    by_kind = {
        int(kind): _known(reach_of_rows(np.full(1, factor), np.array([kind]), noises, tail))
        for kind in np.unique(kinds)
    }
    return _independent(estimates, [by_kind[int(kind)] for kind in kinds], nominal)


def _each_of(nominal: Fraction, count: int) -> float:
    """What each of some independent intervals may miss: 1 − p^(1/m)."""
    return -math.expm1(math.log(nominal) / max(count, 1))


def _used(weights: Floats) -> NDArray[np.bool_]:
    sizes = np.abs(weights)
    return np.asarray(sizes > NOTHING * sizes.max(axis=1, keepdims=True, initial=0.0))


def _reaches(weights: Floats, kinds: NDArray[np.int64], noises: Sequence[Noise], tail: float) -> list[Reach]:
    """How far each number's error goes."""
    return [_known(reach_of_rows(row, kinds, noises, tail)) for row in weights]


def _independent(estimates: Floats, reaches: Sequence[Reach], nominal: Fraction) -> SimultaneousIntervals:
    chance = math.exp(math.fsum(math.log(each.probability) for each in reaches))
    exact = all(each.is_exact for each in reaches)
    words = "each number by itself, at a root of the probability"
    return _together(estimates, reaches, (float(nominal), max(chance, float(nominal)), exact, words))


def _added_up(estimates: Floats, reaches: Sequence[Reach], nominal: Fraction) -> SimultaneousIntervals:
    missed = math.fsum(1 - each.probability for each in reaches)
    words = "each number by itself, the chances to miss added up"
    return _together(estimates, reaches, (float(nominal), max(1 - missed, float(nominal)), False, words))


def _together(
    estimates: Floats, reaches: Sequence[Reach], found: tuple[float, float, bool, str]
) -> SimultaneousIntervals:
    each: list[Interval] = [
        around(float(estimate), reach, found[0]) for estimate, reach in zip(estimates, reaches, strict=True)
    ]
    lower, upper = (np.array(side) for side in ([one.lower for one in each], [one.upper for one in each]))
    return SimultaneousIntervals(estimates, lower, upper, *found)


def _simulated(
    estimates: Floats,
    weights: Floats,
    kinds: NDArray[np.int64],
    noises: Sequence[Noise],
    asked: tuple[Fraction, int],
) -> SimultaneousIntervals:
    nominal, place = asked
    variances = np.array([noise.distribution().variance for noise in noises])[kinds]
    spreads = np.sqrt(np.square(weights) @ variances)
    uncertain = np.flatnonzero(spreads > 0)
    rows = weights[uncertain] / spreads[uncertain, None]
    largest = np.sort(np.concatenate([np.abs(block).max(axis=1) for block in public_errors(rows, kinds, noises)]))
    times = float(largest[place - 1]) * (1 + 1e-9)
    share = float(np.mean(largest <= times))
    words = f"{times:.4g} standard errors, from {DRAWS:,} draws of a public key"
    found = (float(nominal), share, False, words, math.sqrt(share * (1 - share) / DRAWS))
    return SimultaneousIntervals(estimates, estimates - times * spreads, estimates + times * spreads, *found)


def _known(reach: Reach | None) -> Reach:
    if reach is None:
        raise TooLarge(
            "simultaneous intervals for numbers that weigh rare noise a thousandfold",
            why="neither a Fourier sum nor as many draws as that takes are affordable",
            instead="ask for the intervals of some numbers by themselves",
        )
    return reach
