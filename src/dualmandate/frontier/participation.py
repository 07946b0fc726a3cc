"""Response behavior: people answer less readily the more privacy they would lose, and that costs accuracy.

At a privacy loss ε the share r(ε) of people takes part. Where the others are missing at random, counts of those who
take part are weighted by 1/r: noise grows by 1/r², and a table that counts S records in all has the error of a random
sample besides,

    ESE_t(ε) = ESE_t^noise(ε)/r² + S_t·(1 − r)/r.

Accuracy then rises with ε only up to a peak: beyond it more noise is removed than respondents lost, no longer. Who may
spend more than the peak would not: the frontier ends there, and stays level beyond (free disposal), so that points
beyond the peak are never better than the peak. `peak_of` tells where that is; limits stop there, so no plan passes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidPreferences
from dualmandate.frontier.envelope import EnvelopeCurves
from dualmandate.frontier.frontier import Curves, Frontier, TableWeights, listed, named
from dualmandate.frontier.numerics import derivative, root
from dualmandate.mechanism import Measure
from dualmandate.population.arrays import Floats

_SEARCHED: list[float] = np.geomspace(1e-8, 1e6, 281).tolist()  # losses between which a peak is looked for
LARGEST_EXPONENT = 300.0  # e^600 is still a float, so that squares of e^300 are.
_FOLDED = 2 / math.pi  # This is (E|z|)² of a standard normal.


class ParticipationResponse(Protocol):
    """How many people take part at a privacy loss: weights 1/r ≥ 1, which grow with the loss."""

    def weight(self, loss: float) -> float:
        """1/r."""

    def slope(self, loss: float) -> float:
        """Derivative of the weight; ≥ 0."""

    def curvature(self, loss: float) -> float:
        """Second derivative of the weight."""


@dataclass(frozen=True)
class ExponentialResponse:
    """Each unit of loss drives away the same share of those who are left: r = r₀·e^(−γ·ε)."""

    rate_without_loss: float  # r₀ in (0, 1]
    decline: float  # γ ≥ 0, per unit of loss

    def __post_init__(self) -> None:
        if not (0 < self.rate_without_loss <= 1 and 0 <= self.decline < math.inf):
            raise InvalidPreferences(
                f"a participation rate of {self.rate_without_loss:g} that declines by {self.decline:g}",
                why="a rate is a share above 0, and nobody takes part because of a privacy loss",
                instead="state 0 < rate ≤ 1 and a finite decline of at least 0",
            )

    def rate(self, loss: float) -> float:
        """r, the share of people that takes part."""
        return self.rate_without_loss * math.exp(-self.decline * loss)

    def weight(self, loss: float) -> float:
        """1/r, as far as floats and their squares go."""
        return math.exp(min(self.decline * loss, LARGEST_EXPONENT)) / self.rate_without_loss

    def slope(self, loss: float) -> float:
        return self.decline * self.weight(loss)

    def curvature(self, loss: float) -> float:
        return self.decline**2 * self.weight(loss)


@dataclass(frozen=True)
class TableTotals:
    """How much a table adds up to, from public sources: what weighting by 1/r multiplies the error of."""

    total: float  # S ≥ 0: Σ of its counts; for sums, Σ of squared answers of the records
    largest: float | None = None  # of one cell; None: everything could be in one cell


@dataclass(frozen=True, eq=False)
class ParticipationCurves(Curves):
    """Curves of a frontier whose data come from those who still take part; level beyond the peak."""

    frontier: Frontier
    response: ParticipationResponse
    totals: tuple[TableTotals, ...]  # in the order of the tables
    weights: TableWeights

    def values(self, loss: float, measure: Measure) -> Floats:
        """Errors of each table: noise times 1/r or 1/r², and the error of sampling."""
        return self._unbounded(self._used(loss), measure)

    def slopes(self, loss: float, measure: Measure) -> Floats:
        if loss > self._end:
            return np.zeros(len(self.totals))
        return self._unbounded_slopes(loss, measure)

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        if loss > self._end:
            return np.zeros(len(self.totals))
        if measure == "absolute":
            return derivative(lambda at: self._unbounded_slopes(at, measure), loss)
        inner, falling = self._noise(loss, measure)
        weight, slope = self.response.weight(loss), self.response.slope(loss)
        bend = self.response.curvature(loss)
        noise = listed(self.frontier.table_curvatures(loss, measure)) * weight**2 + 4 * weight * slope * falling
        return noise + 2 * (slope**2 + weight * bend) * inner + self._counted(measure) * bend

    def inverse(self, expected_squared_error: float) -> float | None:
        """Refused where not even the peak is so accurate; otherwise no closed form."""
        if self.peak is not None:
            reached = math.fsum(self._unbounded(self.peak, "squared"))
            if expected_squared_error < reached:
                raise InvalidLoss(
                    f"an expected squared error of {expected_squared_error:.6g} is out of reach",
                    why=f"at {self.frontier.privacy_measure} = {self.peak:.6g} it is {reached:.6g}, and beyond it too "
                    "many people no longer take part",
                    instead="ask for less accuracy, or make it easier to take part",
                )
        return None

    def technology(self, loss: float) -> str:
        return self.frontier.technology(self._used(loss))

    def allocation(self, loss: float) -> dict[str, float]:
        return self.frontier.allocation(self._used(loss))

    @cached_property
    def peak(self) -> float | None:
        """The loss at which Σ b_t·loss_t is smallest; None where it falls as far as losses are looked at."""

        def fall(log_loss: float) -> float:
            return -self.weights.weighed(lambda measure: self._unbounded_slopes(math.exp(log_loss), measure))

        found = {loss: cost for loss in _SEARCHED if (cost := self._cost_or_none(loss)) is not None}
        losses = list(found)
        best = min(found, key=found.__getitem__)
        place = losses.index(best)
        if place == len(losses) - 1:
            return None
        low, high = math.log(losses[max(place - 1, 0)]), math.log(losses[place + 1])
        return math.exp(root(fall, low, high)) if fall(high) < 0 < fall(low) else best

    @property
    def _end(self) -> float:
        return math.inf if self.peak is None else self.peak

    def _used(self, loss: float) -> float:
        return min(loss, self._end)

    def _cost_or_none(self, loss: float) -> float | None:
        """Σ b_t·loss_t without the level stretch; None at losses that the frontier below cannot be read at."""
        try:
            return self.weights.weighed(lambda measure: self._unbounded(loss, measure))
        except InvalidLoss:
            return None

    def _unbounded(self, loss: float, measure: Measure) -> Floats:
        weight, noise = self.response.weight(loss), listed(self.frontier.table_errors(loss, measure))
        sampling = self._counted(measure) * (weight - 1)
        if measure == "absolute":
            # Exact for normal errors: two independent ones add up in squares.
            return np.hypot(noise * weight, np.sqrt(_FOLDED * self._counts * sampling))
        return noise * weight**2 + sampling

    def _unbounded_slopes(self, loss: float, measure: Measure) -> Floats:
        weight, slope = self.response.weight(loss), self.response.slope(loss)
        inner, falling = self._noise(loss, measure)
        counted = self._counted(measure)
        if measure == "absolute":
            noise = inner * weight
            rising = noise * (falling * weight + inner * slope) + _FOLDED * self._counts * counted * slope / 2
            return rising / self._unbounded(loss, measure)
        return falling * weight**2 + 2 * weight * slope * inner + counted * slope

    def _noise(self, loss: float, measure: Measure) -> tuple[Floats, Floats]:
        """Errors from noise alone, and their slopes."""
        return listed(self.frontier.table_errors(loss, measure)), listed(self.frontier.table_slopes(loss, measure))

    def _counted(self, measure: Measure) -> Floats:
        """S of each table; for the largest variance, the largest cell."""
        if named(measure) == "largest variance":
            return np.array([each.total if each.largest is None else each.largest for each in self.totals])
        return np.array([each.total for each in self.totals])

    @property
    def _counts(self) -> Floats:
        return np.array(list(self.frontier.query_counts.values()), dtype=np.float64)


def with_participation(
    frontier: Frontier,
    response: ParticipationResponse,
    totals: Mapping[str, TableTotals],
    *,
    values: Mapping[str, float] | None = None,
    measures: Mapping[str, Measure] | None = None,
) -> Frontier:
    """A frontier whose data come from those who still take part at each loss; it ends at its peak.

    `totals` are public numbers, by table. `values` (b_t, default 1) and `measures` (default squared) say what a peak is
    where tables peak at different losses: the least Σ b_t·loss_t.
    """
    missing = [table for table in frontier.tables if table not in totals]
    if missing or any(not 0 <= each.total < math.inf for each in totals.values()):
        raise InvalidPreferences(
            f"the total of table '{missing[0]}' is not stated" if missing else "a total is not finite or below 0",
            why="the error of those who do not take part grows with what a table counts",
            instead="state a finite, public total of at least 0 for every table",
        )
    weights = TableWeights.of(frontier.tables, values, measures)
    curves = ParticipationCurves(frontier, response, tuple(totals[table] for table in frontier.tables), weights)
    return Frontier(frontier.name, frontier.privacy_measure, frontier.query_counts, curves)


def peak_of(frontier: Frontier) -> float | None:
    """The loss beyond which a frontier buys nothing more, because people stop taking part; None where there is none."""
    curves = frontier.curves
    if isinstance(curves, ParticipationCurves):
        return curves.peak
    if isinstance(curves, EnvelopeCurves):
        peaks = {peak: member for member in curves.members if (peak := peak_of(member)) is not None}
        if len(peaks) == 0 or any(peak_of(member) is None for member in curves.members):
            return None
        return min(peaks, key=lambda peak: curves.weights.total(peaks[peak], peak))
    return None
