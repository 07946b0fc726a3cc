"""How wrong a published number may be: intervals for measurements and unbiased estimates, from the exact noise.

An estimate is the truth plus S = Σ w·X. Its interval is estimate ± t with P(|S| ≤ t) at least what was asked for, t as
small as that allows; `error_laws` says how t is found. Where even its sums would have no end, t is an order statistic,
on the safe side, of draws from a public key. There is no normal approximation: at ε = 1 it would hold a single count in
92.7 % of cases where 95 % were asked for. Tables that were made consistent have no such interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import Noise
from dualmandate.population.rational import written_probability
from dualmandate.publication.error_laws import Floats, Reach, reach_of_rows
from dualmandate.publication.public_draws import DRAWS, order_statistic, public_errors, too_close_to_one

ROUNDING = 1e-4  # of a lattice step, by which bounds are moved outward: no truth is lost to a rounding error

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
    kinds: NDArray[np.int64],
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
    estimate: float, weights: Floats, kinds: NDArray[np.int64], noises: Sequence[Noise], *, nominal: Fraction
) -> Interval:
    """By draws from a public key; the order statistic is chosen so that the probability is hardly ever below."""
    place, used = order_statistic(nominal), np.flatnonzero(weights)
    if place is None:
        raise too_close_to_one(nominal)
    errors = np.concatenate(list(public_errors(weights[used][None, :], kinds[used], noises)))
    sizes = np.sort(np.abs(errors[:, 0]))
    half = float(sizes[place - 1]) * (1 + 1e-9)
    share = float(np.mean(sizes <= half))
    words, spread = f"{DRAWS:,} draws from a public key", math.sqrt(share * (1 - share) / DRAWS)
    return Interval(estimate, estimate - half, estimate + half, float(nominal), share, False, words, spread)
