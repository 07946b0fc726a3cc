"""Response behavior: people answer less readily the more privacy they would lose, and that costs accuracy.

At a privacy loss ε the share r(ε) of people takes part. Where the others are missing at random, counts of those who
take part are weighted by w = 1/r: noise grows by w², and a table that counts S records in all has the error of a random
sample besides,

    ESE_t(ε) = ESE_t^noise(ε)·w² + S_t·(w − 1).

Of those who take part the share m(ε) reports falsely. A false report of one of N people is counted in each of the L
numbers of a table with the same probability h, whatever is true of her. With a = 1 − m·(1 − h) and c = m·h, who belongs
to a number is counted there with probability r·a, who does not with r·c: the error of sampling becomes

    S·a·(w − a) + (N·L − S)·c·(w − c),    and a squared bias m²·Σ_j (N·h − x_j)² = m²·(L·σ² + L·(N·h − S/L)²)

comes besides, σ the standard deviation of the numbers x_j of the table. Who knew m and h could take the bias out, as in
randomized response; here nobody does.

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


EVERYBODY = ExponentialResponse(1.0, 0.0)  # Everybody takes part, or tells the truth, at any loss.


@dataclass(frozen=True)
class TableTotals:
    """How much a table adds up to, from public sources: what weighting by 1/r multiplies the error of."""

    total: float  # S ≥ 0: Σ of its counts; for sums, Σ of squared answers of the records
    largest: float | None = None  # of one cell; None: everything could be in one cell
    people: float = 0.0  # N, who may report falsely
    falsely: float = 0.0  # L·h: how likely a false report is to be counted in the table, evenly over its numbers
    spread: float = 0.0  # σ ≥ 0, the standard deviation of its numbers


@dataclass(frozen=True, eq=False)
class ParticipationCurves(Curves):
    """Curves of a frontier whose data come from those who still take part; level beyond the peak."""

    frontier: Frontier
    response: ParticipationResponse
    totals: tuple[TableTotals, ...]  # in the order of the tables
    weights: TableWeights
    truthful: ExponentialResponse = EVERYBODY  # share of those who take part that reports the truth: 1 − m

    def values(self, loss: float, measure: Measure) -> Floats:
        """Errors of each table: noise times 1/r or 1/r², and what response adds."""
        return self.reached(self._used(loss), measure)

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return np.zeros(len(self.totals)) if loss > self._end else self._slopes_reached(loss, measure)

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        if loss > self._end:
            return np.zeros(len(self.totals))
        if measure == "absolute":
            return derivative(lambda at: self._slopes_reached(at, measure), loss)
        inner, falling = self._noise(loss, measure)
        weight, slope = self.response.weight(loss), self.response.slope(loss)
        bend = self.response.curvature(loss)
        noise = listed(self.frontier.table_curvatures(loss, measure)) * weight**2 + 4 * weight * slope * falling
        variance, bias = self.of_response(loss, measure, order=2)
        return noise + 2 * (slope**2 + weight * bend) * inner + variance + bias

    def inverse(self, expected_squared_error: float) -> float | None:
        """Refused where not even the peak is so accurate; otherwise no closed form."""
        if self.peak is not None:
            reached = math.fsum(self.reached(self.peak, "squared"))
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
            return -self.weights.weighed(lambda measure: self._slopes_reached(math.exp(log_loss), measure))

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
            return self.weights.weighed(lambda measure: self.reached(loss, measure))
        except InvalidLoss:
            return None

    def reached(self, loss: float, measure: Measure) -> Floats:
        """Errors as they really are at a loss, beyond the peak too."""
        weight, noise = self.response.weight(loss), listed(self.frontier.table_errors(loss, measure))
        variance, bias = self.of_response(loss, measure)
        if measure == "absolute":
            # Exact for normal errors without bias: independent ones add up in squares. With bias it is a bound.
            return np.sqrt((noise * weight) ** 2 + self._counts * (_FOLDED * variance + bias))
        return np.asarray(noise * weight**2 + variance + bias)

    def _slopes_reached(self, loss: float, measure: Measure) -> Floats:
        weight, slope = self.response.weight(loss), self.response.slope(loss)
        inner, falling = self._noise(loss, measure)
        variance, bias = self.of_response(loss, measure, order=1)
        if measure == "absolute":
            noise = inner * weight
            rising = noise * (falling * weight + inner * slope) + self._counts * (_FOLDED * variance + bias) / 2
            reached = self.reached(loss, measure)  # 0 where whole-number noise has vanished and everybody takes part
            return np.divide(rising, reached, out=np.zeros_like(reached), where=reached > 0)
        return np.asarray(falling * weight**2 + 2 * weight * slope * inner + variance + bias)

    def of_response(self, loss: float, measure: Measure, *, order: int = 0) -> tuple[Floats, Floats]:
        """What response adds to each table: the error of sampling and the squared bias, or a derivative of them."""
        weights = self.response.weight(loss), self.response.slope(loss), self.response.curvature(loss)
        rate, decline = self.truthful.rate(loss), self.truthful.decline
        false = 1 - rate, decline * rate, -(decline**2) * rate  # m, m′, m″
        one = named(measure) == "largest variance"
        counted = np.array([each.total if each.largest is None or not one else each.largest for each in self.totals])
        people = np.array([each.people for each in self.totals])
        share = np.array([each.falsely for each in self.totals]) / self._counts
        others, landing = people * (1 if one else self._counts) - counted, people * share
        spread = np.array([each.spread for each in self.totals])
        misplaced = self._counts * (spread**2 + (landing - counted / self._counts) ** 2)
        if one:  # the largest number, or an empty one
            misplaced = np.minimum(misplaced, np.maximum(landing, np.abs(landing - counted)) ** 2)
        true = 1 - false[0] * (1 - share), *(-each * (1 - share) for each in false[1:])
        stray = tuple(each * share for each in false)
        variance = counted * _product(true, weights, order) + others * _product(stray, weights, order)
        squared = false[0] ** 2, 2 * false[0] * false[1], 2 * (false[1] ** 2 + false[0] * false[2])
        return variance, misplaced * squared[order]

    def _noise(self, loss: float, measure: Measure) -> tuple[Floats, Floats]:
        """Errors from noise alone, and their slopes."""
        return listed(self.frontier.table_errors(loss, measure)), listed(self.frontier.table_slopes(loss, measure))

    @property
    def _counts(self) -> Floats:
        return np.array(list(self.frontier.query_counts.values()), dtype=np.float64)


def _product(chance: tuple[Floats, ...], weight: tuple[float, ...], order: int) -> Floats:
    """p·(w − p), or a derivative of it, from p, p′, p″ and w, w′, w″."""
    p, rise, bend = chance
    if order == 0:
        return p * (weight[0] - p)
    if order == 1:
        return rise * (weight[0] - 2 * p) + p * weight[1]
    return bend * (weight[0] - 2 * p) + 2 * rise * (weight[1] - rise) + p * weight[2]


def with_participation(
    frontier: Frontier,
    response: ParticipationResponse,
    totals: Mapping[str, TableTotals],
    *,
    values: Mapping[str, float] | None = None,
    measures: Mapping[str, Measure] | None = None,
    truthful: ExponentialResponse = EVERYBODY,
) -> Frontier:
    """A frontier whose data come from those who still take part at each loss, and tell the truth; it ends at its peak.

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
    ordered = tuple(totals[table] for table in frontier.tables)
    curves = ParticipationCurves(frontier, response, ordered, weights, truthful)
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
