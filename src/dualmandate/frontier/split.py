"""One privacy loss, split over groups of tables that are measured apart: in the best way, or in stated shares.

Losses of independently measured groups add up (ε + ε, or ρ + ρ). The best split spends the last unit of loss where it
buys most: −b_g·loss_g′(l_g) is the same λ for every group, and Σ l_g is the loss. Where errors fall like c_g/l^p this
is l_g ∝ c_g^{1/(p+1)}: cube roots for Laplace (p = 2), square roots for zCDP (p = 1). Otherwise marginal values are
equalized numerically: around any split each curve is treated as a power law with its own exponent, for which the best
split is known, and the step is repeated; for power laws the first step is exact, near the optimum it is Newton's.
By the envelope theorem the combined loss falls by λ for one more unit of loss. A group that must be fit for use gets at
least what that takes, l_g = max(floor_g, share), and the others share the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidWorkload
from dualmandate.frontier.frontier import ClosedFormCurves, Curves, Frontier, TableWeights, listed
from dualmandate.mechanism import Measure, Measurement, NoiseLaw
from dualmandate.mechanism.mechanism import on_lattice
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Booleans, Floats

_MOST_STEPS = 80
_LONGEST_STEP = 2.0  # A step of ln l_g is at most this long.
_CRUMB = 1e-5  # A group starts with at least this part of an equal share.
_LEAST_SHARE = 1e-9  # of the loss, that a group keeps whose errors are worth less than all others' at any loss of it
_FLAT = 1e-7  # An elasticity above minus this is rounding, or the errors are not convex there.
_KINK = 1e-3  # A group whose ln marginal value stays this far from all others' stands where its errors have a kink.
_TINY, _HUGE = 1e-300, 1e300  # Values beyond these leave the range of floats.
_TableCurve = Callable[[Frontier, float], dict[str, float]]  # of a group, at its share


def power_split(coefficients: Sequence[float], loss: float, power: float) -> Floats:
    """The best split where group g loses c_g/l^power: l_g = loss·c_g^{1/(1+power)}/S, S = Σ c_g^{1/(1+power)}.

    The combined loss is then S^{1+power}/loss^power.
    """
    roots = np.power(np.asarray(coefficients, dtype=np.float64), 1.0 / (1.0 + power))
    return np.asarray(loss * roots / roots.sum(), dtype=np.float64)


@dataclass(frozen=True)
class _Group:
    """One group of tables: its frontier, and what its errors cost."""

    name: str
    frontier: Frontier
    weights: TableWeights

    @cached_property
    def scaled(self) -> tuple[NoiseLaw, float, float] | None:
        """Where one law serves all rows and errors are squared: the law, its loss for a loss of 1, and what V costs."""
        curves = self.frontier.curves
        found = curves.production if isinstance(curves, ClosedFormCurves) else None
        if not isinstance(found, Measurement) or len(found.rows.steps) > 1 or {*self.weights.measures} != {"squared"}:
            return None
        sums = [float(found.answered[table.name].sums[0]) for table in found.workload.tables]
        cost = math.fsum(value * each for value, each in zip(self.weights.values, sums, strict=True))
        return on_lattice(found.law, found.rows.steps[0]), found.unit_loss(1.0), cost

    @cached_property
    def is_smooth(self) -> bool:
        """Whether no error of it is counted in a way that may have kinks."""
        return all(isinstance(measure, str) or measure.convex for measure in self.weights.measures)

    def cost(self, loss: float) -> float:
        """What errors cost at a loss."""
        if self.scaled is None:
            return self.weights.total(self.frontier, loss)
        law, unit, cost = self.scaled
        return cost * law.variance(unit * loss)

    def _derivatives(self, loss: float) -> tuple[float, float]:
        """First and second derivative of that."""
        if self.scaled is not None:
            law, unit, cost = self.scaled
            return cost * unit * law.variance_slope(unit * loss), cost * unit**2 * law.variance_curvature(unit * loss)
        curvature = self.weights.weighed(lambda measure: listed(self.frontier.table_curvatures(loss, measure)))
        return self.weights.slope(self.frontier, loss), curvature

    def marginal(self, loss: float) -> tuple[float, float]:
        """ln of the value of one more unit of loss, and the elasticity of that value in the loss (< 0)."""
        falling, curvature = self._derivatives(loss)
        slope = -falling
        if not slope > _TINY:
            # Discrete noise has vanished from floats: it goes on falling exponentially.
            return math.log(_TINY) - loss, -loss
        return math.log(slope), -loss * curvature / slope


@dataclass(frozen=True)
class Allocation:
    """The best split of one loss: what each group gets, and how that grows with the loss."""

    losses: Floats  # l_g > 0, sums to the loss; shape (groups,)
    growth: Floats  # dl_g/dloss, sums to 1
    price: float  # λ: what the combined loss falls by for one more unit


@dataclass(frozen=True, eq=False)
class SplitCurves(Curves):
    """Curves of tables whose groups share one loss in the best way."""

    groups: tuple[_Group, ...]
    weights: TableWeights
    floors: Floats  # what each group gets at least, where the loss is enough for all of them; shape (groups,)

    @property
    def convex_from(self) -> float:
        """From where on every floor is given: below, no group gets one."""
        return self._enough if all(group.frontier.convex_from == 0.0 for group in self.groups) else math.inf

    @cached_property
    def _enough(self) -> float:
        return math.fsum(self.floors) / (1.0 - len(self.groups) * _LEAST_SHARE)

    def best(self, loss: float) -> Allocation:
        if loss not in self._solved:
            self._solved.clear()
            floors = self.floors if loss > self._enough else np.zeros(len(self.groups))
            self._solved[loss] = _best_split(self.groups, loss, floors)
        return self._solved[loss]

    def values(self, loss: float, measure: Measure) -> Floats:
        spent = self.best(loss).losses.tolist()
        parts = [group.frontier.table_errors(l_g, measure) for group, l_g in zip(self.groups, spent, strict=True)]
        return np.array([value for part in parts for value in part.values()])

    def slopes(self, loss: float, measure: Measure) -> Floats:
        """Slopes of each table in its group's loss, times the group's share of one more unit."""
        best = self.best(loss)
        numbers = []
        for group, spent, growth in zip(self.groups, best.losses.tolist(), best.growth.tolist(), strict=True):
            numbers += [slope * growth for slope in group.frontier.table_slopes(spent, measure).values()]
        return np.array(numbers)

    def technology(self, loss: float) -> str:
        spent = self.best(loss).losses.tolist()
        used = [group.frontier.technology(l_g) for group, l_g in zip(self.groups, spent, strict=True)]
        return used[0] if len(set(used)) == 1 else ", ".join(dict.fromkeys(used))

    def allocation(self, loss: float) -> dict[str, float]:
        return dict(zip((group.name for group in self.groups), self.best(loss).losses.tolist(), strict=True))

    @cached_property
    def _solved(self) -> dict[float, Allocation]:
        return {}  # the last solution: values and slopes are asked for at the same loss


def split(
    frontiers: Sequence[Frontier] | Mapping[str, Frontier],
    *,
    values: Mapping[str, float] | None = None,
    measures: Mapping[str, Measure] | None = None,
    floors: Mapping[str, float] | None = None,
) -> Frontier:
    """The frontier of groups of tables that are measured apart and share one loss where it buys most.

    `values` are the b_t of tables (default 1), `measures` how their errors are counted (default squared), `floors` what
    a group gets at least where the loss is more than all floors. Groups given as a mapping keep their names; others are
    named after their tables. Each group's errors must be convex in its loss.
    """
    named = frontiers if isinstance(frontiers, Mapping) else {" + ".join(f.tables): f for f in frontiers}
    privacy_measure = common_privacy_measure(tuple(named.values()))
    query_counts = counts_of_groups(named, len(frontiers))
    weights = TableWeights.of(tuple(query_counts), values, measures)
    groups = tuple(_Group(name, frontier, weights.only(frontier.tables)) for name, frontier in named.items())
    worthless = next((group.name for group in groups if not any(group.weights.values)), None)
    if worthless is not None:
        raise InvalidLoss(
            f"the group '{worthless}' would get no privacy loss",
            why="errors in its tables are said to cost nothing, so the best split leaves it out",
            instead="state a value above 0 for one of its tables, or do not measure it",
        )
    name = f"split over {', '.join(named)}" if len(named) <= 4 else f"split over {len(named)} groups"
    least = np.array([(floors or {}).get(group.name, 0.0) for group in groups])
    return Frontier(name, privacy_measure, query_counts, SplitCurves(groups, weights, least))


def counts_of_groups(named: Mapping[str, Frontier], given: int | None = None) -> dict[str, int]:
    """The queries of every table, each of which is in one group; `given` groups there were before they had names."""
    query_counts = {table: count for f in named.values() for table, count in f.query_counts.items()}
    if len(query_counts) != sum(len(f.tables) for f in named.values()) or len(named) != (given or len(named)):
        raise InvalidWorkload(
            "a table is measured in two groups",
            why="its value would be counted twice",
            instead="put each table into one group",
        )
    return query_counts


def common_privacy_measure(frontiers: tuple[Frontier, ...]) -> PrivacyMeasure:
    """The one currency that all of them count their loss in."""
    privacy_measures = {frontier.privacy_measure for frontier in frontiers}
    if len(privacy_measures) != 1:
        raise InvalidLoss(
            "groups count their loss in different currencies"
            if privacy_measures
            else "no group of tables to split over",
            why="one loss can be split only over groups that count it alike",
            instead="use technologies of one currency, or express rho in epsilon at a stated δ",
        )
    return privacy_measures.pop()


def _best_split(groups: tuple[_Group, ...], loss: float, floors: Floats) -> Allocation:
    """Equalize marginal values; a group whose last unit is worth less at its floor keeps that.

    Where errors do not fall ever more slowly the best split found has several rivals, and at a kink marginal values are
    equal only within what the kink spans: each group moves toward the common value, by half as much whenever it turns.
    """
    share = loss / len(groups)
    power = 1.0 if groups[0].frontier.privacy_measure is PrivacyMeasure.ZCDP else 2.0
    start = [min(max(group.cost(share), _TINY), _HUGE) for group in groups]
    least = np.maximum(floors, _LEAST_SHARE * loss)
    # Errors that have vanished at an equal split say nothing about shares: no group starts with less than a crumb.
    logs = _filled(np.maximum(power_split(start, loss, power), _CRUMB * share), least, loss)
    longest, turned = np.full(len(groups), _LONGEST_STEP), np.zeros(len(groups))
    before, smallest = math.inf, 1e-14 if all(group.is_smooth for group in groups) else 1e-6
    for taken in range(_MOST_STEPS):
        marginals, elasticities = np.transpose(
            [group.marginal(math.exp(log)) for group, log in zip(groups, logs.tolist(), strict=True)]
        )
        elasticities = np.where(elasticities < -_FLAT, elasticities, -1.0)
        target, held = _common_marginal_above(np.log(least), logs, marginals, elasticities, loss)
        step = np.clip((target - marginals) / elasticities, -longest, longest)
        longest = np.where(step * turned < 0.0, longest / 2.0, longest)
        logs, turned = _filled(np.exp(logs + step), least, loss), step
        size = float(np.max(np.abs(step[~held])))
        # Near the optimum steps shrink quadratically, until only rounding of the marginal values is left.
        if size <= smallest or (size >= before and size <= (1e-9 if taken < _MOST_STEPS // 2 else 1e-5)):
            break
        before = size
    spent = np.exp(logs)
    # Groups at a floor or in a kink stay there when the loss grows by little.
    ease = np.where(held | (np.abs(target - marginals) > _KINK), 0.0, spent / -elasticities)
    if not ease.any():
        ease = np.where(held, 0.0, spent)
    return Allocation(spent, ease / ease.sum(), math.exp(target))


def _filled(spent: Floats, least: Floats, loss: float) -> Floats:
    """ln of what groups spend, at least their floors, and scaled above them to spend all of the loss."""
    held = spent <= least
    while True:
        rest = loss - math.fsum(least[held])
        scaled = np.where(held, least, spent * (rest / math.fsum(spent[~held])))
        short = scaled < least
        if not short.any():
            return np.log(scaled)
        held |= short


def _common_marginal_above(
    least: Floats, logs: Floats, marginals: Floats, elasticities: Floats, loss: float
) -> tuple[float, Booleans]:
    """ln λ at which power laws spend the loss, none less than its floor, and which of them are held there."""
    held = np.zeros(len(logs), dtype=np.bool_)
    while True:
        free = ~held
        rest = math.log(loss - math.fsum(np.exp(least[held])))
        target = _common_marginal(logs[free], marginals[free], elasticities[free], rest)
        short = free & (logs + (target - marginals) / elasticities < least)
        if not short.any():
            return target, held
        held |= short


def _common_marginal(logs: Floats, marginals: Floats, elasticities: Floats, log_loss: float) -> float:
    """ln λ at which power laws through (l_g, marginal_g) spend exactly the loss: Newton on a convex function."""
    target = float(np.max(marginals))
    for _ in range(_MOST_STEPS):
        terms = logs + (target - marginals) / elasticities
        largest = float(np.max(terms))
        weights = np.exp(terms - largest)
        total = float(weights.sum())
        gap = largest + math.log(total) - log_loss
        step = gap * total / float((weights / elasticities).sum())
        target -= step
        if abs(step) <= 1e-15 * max(1.0, abs(target)):
            break
    return target


@dataclass(frozen=True, eq=False)
class StatedCurves(Curves):
    """Curves of tables whose groups get the same shares s_g of every loss: error(s_g·loss), whatever errors cost."""

    groups: Mapping[str, Frontier]
    shares: tuple[float, ...]  # s_g > 0, in the order of the groups; sum to 1

    @property
    def convex_from(self) -> float:
        pairs = zip(self.groups.values(), self.shares, strict=True)
        return max(group.convex_from / share for group, share in pairs)

    def values(self, loss: float, measure: Measure) -> Floats:
        return self._listed(lambda group, share: group.table_errors(share * loss, measure), power=0)

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return self._listed(lambda group, share: group.table_slopes(share * loss, measure), power=1)

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        return self._listed(lambda group, share: group.table_curvatures(share * loss, measure), power=2)

    def technology(self, loss: float) -> str:
        used = [group.technology(share * loss) for group, share in zip(self.groups.values(), self.shares, strict=True)]
        return ", ".join(dict.fromkeys(used))

    def allocation(self, loss: float) -> dict[str, float]:
        return {name: share * loss for name, share in zip(self.groups, self.shares, strict=True)}

    def _listed(self, asked: _TableCurve, *, power: int) -> Floats:
        pairs = zip(self.groups.values(), self.shares, strict=True)
        return np.array([share**power * each for group, share in pairs for each in asked(group, share).values()])


def stated_split(frontiers: Mapping[str, Frontier], shares: Mapping[str, Fraction]) -> Frontier:
    """The frontier of groups of tables that are measured apart, each at its stated share of one loss."""
    if set(shares) != set(frontiers) or min(shares.values(), default=0) <= 0 or sum(shares.values()) != 1:
        raise InvalidLoss(
            f"shares that add up to {sum(shares.values())} over {len(shares)} of {len(frontiers)} groups",
            why="every group of tables has a share above 0, and together they are the whole loss",
            instead="state one share for each group, so that they add up to exactly 1",
        )
    counts = counts_of_groups(frontiers)
    privacy_measure = common_privacy_measure(tuple(frontiers.values()))
    name = f"stated shares of {', '.join(frontiers) if len(frontiers) <= 4 else f'{len(frontiers)} groups'}"
    floats = tuple(float(shares[group]) for group in frontiers)
    return Frontier(name, privacy_measure, counts, StatedCurves(dict(frontiers), floats))
