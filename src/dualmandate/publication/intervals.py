"""How wrong a published number may be: intervals for measurements and unbiased estimates, from the exact noise.

An estimate is the truth plus S = Σ w·X. Its interval is estimate ± t with P(|S| ≤ t) at least what was asked for, t as
small as that allows; `error_distribution` says how t is found. Where even its sums would have no end, t is an order
statistic, on the safe side, of draws from a public key. There is no normal approximation: at ε = 1 it would hold a
single count in 92.7 % of cases where 95 % were asked for. Tables that were made consistent have no such interval.

Intervals for all numbers of a table at once hold together with the probability that was asked for. Numbers that share
no measurement are independent: each takes its own interval at the m-th root of the probability, and the product is
exact. Others are estimate ± c·(standard error), c the quantile of the largest |error|/(standard error) over the table,
from draws of a public key. Where that would take too long, the chances to miss are added up instead.

The draws are those of the exact samplers, from keys that no release can have: a release's own are made from its secret.
Anyone who repeats this gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256

import numpy as np

from dualmandate.errors import InvalidRequest, TooLarge
from dualmandate.mechanism import Noise
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.rational import written_probability
from dualmandate.publication.error_distribution import NOTHING, Reach, reach_of_rows

ROUNDING = 1e-4  # Bounds are moved outward by so much of a lattice step: no truth is lost to a rounding error.
DRAWS = 2**17  # Simulations draw so often.
TOGETHER = 2**22  # At most so many drawn numbers are held at once.
MOST_WORK = 2**36  # A simulation takes at most so many multiplications.
TOO_LOW = 1e-4  # With this chance, over public keys, an order statistic lies below the quantile that it stands for.

Probability = Fraction | float | str


@dataclass(frozen=True)
class Interval:
    """An estimate and where the truth lies: lower ≤ truth ≤ upper with `probability`, over the noise.

    `probability` is that of this interval, not below the `nominal` one that was asked for: exact where `is_exact`, else
    at least so much; where it was simulated, `standard_error` is that of the simulation, and the interval is chosen so
    that it holds all the same.
    """

    estimate: float
    lower: float
    upper: float
    nominal: float
    probability: float
    is_exact: bool
    method: str
    standard_error: float = 0.0

    @property
    def half_width(self) -> float:
        """From the estimate to either end."""
        return (self.upper - self.lower) / 2

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        share = "exactly" if self.is_exact else "about" if self.standard_error else "at least"
        return (
            f"{self.lower:,.6g} to {self.upper:,.6g} with probability {share} {self.probability:.2%} "
            f"({self.nominal:.6g} was asked for; {self.method})"
        )


def asked_for(probability: Probability) -> Fraction:
    """A probability as it was written: 0.95 means 19/20; refused unless strictly between 0 and 1."""
    found = written_probability(probability)
    if found is None:
        raise InvalidRequest(
            f"an interval that holds with probability {probability}",
            why="unbounded noise leaves every finite interval with some probability",
            instead="state a probability strictly between 0 and 1, for example 0.95",
        )
    return found


def interval_of(
    estimate: float,
    weights: Floats,
    kinds: Integers,
    noises: Sequence[Noise],
    *,
    probability: Probability = 0.95,
) -> Interval:
    """The shortest symmetric interval about an unbiased estimate, truth + Σ w·X, with at least this probability."""
    nominal = asked_for(probability)
    reach = reach_of_rows(weights, kinds, noises, float(1 - nominal))
    if reach is not None:
        return around(estimate, reach, float(nominal))
    return _simulated(estimate, weights, kinds, noises, nominal=nominal)


def around(estimate: float, reach: Reach, nominal: float) -> Interval:
    """An interval about an estimate; whole numbers stay whole, other bounds are rounded outward."""
    half = reach.distance
    if reach.step is not None:
        if reach.step == round(reach.step) and abs(estimate - round(estimate)) < ROUNDING:
            estimate, half = float(round(estimate)), float(round(half))
        else:
            half += ROUNDING * reach.step
    found = (nominal, reach.probability, reach.is_exact, reach.words)
    return Interval(estimate, estimate - half, estimate + half, *found)


def _simulated(
    estimate: float, weights: Floats, kinds: Integers, noises: Sequence[Noise], *, nominal: Fraction
) -> Interval:
    """By draws from a public key; the order statistic is chosen so that the probability is hardly ever below."""
    place, used = order_statistic(nominal), np.flatnonzero(weights)
    if place is None:
        raise InvalidRequest(
            f"a simulated interval that holds with probability {float(nominal):.10g}",
            why=f"{DRAWS:,} draws cannot tell it from 1",
            instead="ask for a probability of at most 0.9999",
        )
    errors = np.concatenate(list(public_errors(weights[used][None, :], kinds[used], noises)))
    sizes = np.sort(np.abs(errors[:, 0]))
    half = float(sizes[place - 1]) * (1 + 1e-9)
    share = float(np.mean(sizes <= half))
    words, spread = f"{DRAWS:,} draws from a public key", math.sqrt(share * (1 - share) / DRAWS)
    return Interval(estimate, estimate - half, estimate + half, float(nominal), share, False, words, spread)


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
    kinds: Integers,
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
    return _simulated_together(estimates, weights, kinds, noises, (nominal, place))


def simultaneous_of_cells(
    estimates: Floats,
    kinds: Integers,
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


def _used(weights: Floats) -> Booleans:
    sizes = np.abs(weights)
    return np.asarray(sizes > NOTHING * sizes.max(axis=1, keepdims=True, initial=0.0))


def _reaches(weights: Floats, kinds: Integers, noises: Sequence[Noise], tail: float) -> list[Reach]:
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


def _simulated_together(
    estimates: Floats,
    weights: Floats,
    kinds: Integers,
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


def _public_key(kind: int) -> NoiseKey:
    """The key of one kind of noise; public, and documented in docs/explanation/intervals.md."""
    return NoiseKey(sha256(f"dualmandate, public draws for intervals, version 1, kind {kind}".encode("ascii")).digest())


def public_errors(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> Iterator[Floats]:
    """DRAWS errors Σ w·X of some numbers, all from the same draws, weights of shape (numbers, rows).

    Some draws at a time; shape (draws of the block, numbers).
    """
    count, width = weights.shape[1], max(1, TOGETHER // max(1, *weights.shape))
    places = {int(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
    samplers = {kind: (noises[kind].sampler(), _public_key(kind)) for kind in places}
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
