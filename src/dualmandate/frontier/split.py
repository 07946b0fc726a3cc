"""One privacy loss, split over groups of tables that are measured apart: in the best way, or in stated shares.

Losses of independently measured groups add up (ε + ε, or ρ + ρ). The best split spends the last unit of loss where it
buys most: −b_g·loss_g′(l_g) is the same λ for every group, and Σ l_g is the loss. Where errors fall like c_g/l^p this
is l_g ∝ c_g^{1/(p+1)}: cube roots for Laplace (p = 2), square roots for zCDP (p = 1). Otherwise marginal values are
equalized numerically: around any split each curve is treated as a power law with its own exponent, for which the best
split is known, and the step is repeated; for power laws the first step is exact, near the optimum it is Newton's.
Where a curve bends the other way, as what a decision misallocates may, steps are
shortened until errors cost less: the split is then better than all near it, and need not be the best.
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
from dualmandate.population.arrays import Floats

_MOST_STEPS = 80
_LONGEST_STEP = 2.0  # A step of ln l_g is at most this long.
_FLATTEST = 0.5  # A curve that bends less, or the other way, is followed as if it had minus this elasticity.
_SAME = 1e-12  # A step that changes what errors cost by a smaller share of it changes nothing.
_CRUMB = 1e-5  # A group starts with at least this part of an equal share.
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
    def convex(self) -> bool:
        return not self.floors.any() and all(group.frontier.convex for group in self.groups)

    def best(self, loss: float) -> Allocation:
        if loss not in self._solved:
            self._solved.clear()
            enough = math.fsum(self.floors) < loss
            self._solved[loss] = _lifted_split(self.groups, loss, self.floors if enough else 0.0 * self.floors)
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


def _lifted_split(groups: tuple[_Group, ...], loss: float, floors: Floats) -> Allocation:
    """The best split in which every group gets its floor: those that would get less are lifted, and stay so."""
    spent, growth = floors.copy(), np.zeros(len(groups))
    free = np.arange(len(groups))
    while True:
        rest = loss - math.fsum(np.delete(floors, free))
        best = _best_split(tuple(groups[i] for i in free), rest)
        short = best.losses < floors[free]
        if not short.any():
            spent[free], growth[free] = best.losses, best.growth
            return Allocation(spent, growth, best.price)
        free = free[~short]


def _best_split(groups: tuple[_Group, ...], loss: float) -> Allocation:
    """Equalize marginal values; refused only where no split equalizes them: a group is best left without any loss."""
    share = loss / len(groups)
    power = 1.0 if groups[0].frontier.privacy_measure is PrivacyMeasure.ZCDP else 2.0
    start = [min(max(group.cost(share), _TINY), _HUGE) for group in groups]
    # Errors that have vanished at an equal split say nothing about shares: no group starts with less than a crumb.
    logs = np.log(np.maximum(power_split(start, loss, power), _CRUMB * share))
    before, bends = math.inf, False
    for taken in range(_MOST_STEPS):
        marginals, elasticities = np.transpose(
            [group.marginal(math.exp(log)) for group, log in zip(groups, logs.tolist(), strict=True)]
        )
        bends = bends or not np.all(elasticities < 0.0)
        if bends:
            elasticities = np.minimum(elasticities, -_FLATTEST)
        target = _common_marginal(logs, marginals, elasticities, math.log(loss))
        step = np.clip((target - marginals) / elasticities, -_LONGEST_STEP, _LONGEST_STEP)
        moved = _stepped(groups, logs, step, loss) if bends else _spending(logs + step, loss)
        size = 0.0 if moved is None else float(np.max(np.abs(step)))
        logs = logs if moved is None else moved
        # Near the optimum steps shrink quadratically, until only rounding of the marginal values is left.
        if size <= 1e-14 or (size >= before and size <= (1e-9 if taken < _MOST_STEPS // 2 else 1e-5)):
            spent = np.exp(logs)
            ease = spent / -elasticities
            return Allocation(spent, ease / ease.sum(), math.exp(target))
        before = size
    raise InvalidLoss(
        f"no split of {loss:.6g} over {', '.join(group.name for group in groups)} equalizes marginal values",
        why="some group is best left without any loss, or its errors do not fall ever more slowly (are not convex)",
        instead="measure the tables together, state their shares, or leave out one whose errors cost little",
    )


def _spending(logs: Floats, loss: float) -> Floats:
    """The same proportions, spending exactly the loss."""
    return logs + (math.log(loss) - math.log(math.fsum(np.exp(logs))))


def _stepped(groups: tuple[_Group, ...], logs: Floats, step: Floats, loss: float) -> Floats | None:
    """The step, or as much of it as makes errors cost less; None where no part of it does."""

    def cost(at: Floats) -> float:
        return math.fsum(group.cost(math.exp(log)) for group, log in zip(groups, at.tolist(), strict=True))

    here = cost(logs)
    while float(np.max(np.abs(step))) > 1e-9:
        moved = _spending(logs + step, loss)
        if cost(moved) < here * (1 - _SAME):
            return moved
        step = step / 2
    return None


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
    def convex(self) -> bool:
        return all(group.convex for group in self.groups.values())

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
