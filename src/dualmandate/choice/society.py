"""Who wants what: groups of people with their own costs of privacy loss and their own share of what accuracy is worth.

A member of group g is worth v_g(ε) = a_g − η_g·κ_g(ε) − Σ_t s_gt·b_t·loss_t(ε)/N_g, USD: s_gt is the group's share of
the value of accuracy of table t, and adding N_g·v_g over all groups gives social welfare W.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dualmandate.choice.cost_grid import CostGrid, cost_grid_of, costs_of
from dualmandate.choice.optimum import LARGEST_LOSS, Bounds, Limits, LocalOptimum, best_within, local_optima
from dualmandate.choice.welfare import PRIVACY_SHARES, DataLoss, PopulationGroup, SocialWelfare, TableValue
from dualmandate.errors import InvalidLoss, InvalidPreferences, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.mechanism.mechanism import positive_loss
from dualmandate.population.arrays import Booleans, Floats
from dualmandate.population.currency import DEFAULT
from dualmandate.population.wording import number

HALF_DECADES = 6  # What is looked at reaches this many half decades beyond the outermost peaks.
NEXT_TO_NOTHING = 1e-9  # This loss stands for none at all.
ROUNDING = 1e-12  # A relative difference below this in what a loss is worth is none.


@dataclass(frozen=True)
class Citizens:
    """One group of like-minded people: their cost of privacy loss, and what errors cost all of them together."""

    group: PopulationGroup
    table_values: tuple[TableValue, ...]  # b_gt = s_gt·b_t, for the group as a whole
    other_losses: tuple[DataLoss, ...] = ()
    weight: float = 1.0  # of all they lose, in a weighted sum
    protected_unit: str = "person"
    currency: str = DEFAULT

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def size(self) -> float:
        return self.group.size

    @property
    def welfare(self) -> SocialWelfare:
        """The welfare of the group alone: what a society of them would choose by."""
        return SocialWelfare((self.group,), self.table_values, self.other_losses, self.protected_unit, self.currency)

    def member(self, frontier: Frontier, loss: float) -> float:
        """What one member is worth at a loss, USD; ≤ 0."""
        return self.welfare.at(frontier, loss) / self.size


@dataclass(frozen=True)
class Society:
    """All groups whose members have a say."""

    citizens: tuple[Citizens, ...]
    like: SocialWelfare  # the social welfare that they make up

    def __post_init__(self) -> None:
        for citizens in self.citizens:
            if not (math.isfinite(citizens.weight) and citizens.weight >= 0):
                raise InvalidPreferences(
                    f"group '{citizens.name}' has the weight {citizens.weight:g}",
                    why="nobody counts for less than nothing",
                    instead="state a finite weight of at least 0",
                )
            if citizens.welfare.empty:
                raise InvalidPreferences(
                    f"group '{citizens.name}' loses nothing at any privacy loss",
                    why="whoever has neither a cost of privacy loss nor a share in accuracy has no say",
                    instead="state a cost or a share above 0, or leave the group out",
                )

    @classmethod
    def of(
        cls,
        welfare: SocialWelfare,
        shares: Mapping[str, float] | Mapping[str, Mapping[str, float]] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Society:
        """Groups with their shares of the value of accuracy: by head, unless shares are stated.

        `shares` are by group, or by table and group; they add up to 1. `weights` multiply all that a group loses.
        """
        heads = {group.name: group.size / welfare.population_size for group in welfare.groups}
        by_table = {value.table: _shares_of(shares, value.table, heads) for value in welfare.table_values}
        overall = _shares_of(shares, None, heads)
        unknown = sorted(set(weights or {}) - set(heads))
        if unknown:
            raise InvalidPreferences(
                f"'{unknown[0]}' has a weight, but is no group",
                why=f"the groups are {', '.join(heads)}",
                instead="name one of these",
            )
        citizens = []
        for group in welfare.groups:
            share, weight = overall[group.name], (weights or {}).get(group.name, 1.0)
            values = tuple(value.scaled(by_table[value.table][group.name]) for value in welfare.table_values)
            others = tuple(other.scaled(share) for other in welfare.other_losses if share > 0)
            citizens.append(Citizens(group, values, others, weight, welfare.protected_unit, welfare.currency))
        return cls(tuple(citizens), welfare)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(citizens.name for citizens in self.citizens)

    @property
    def sizes(self) -> Floats:
        """N_g; shape (groups,)."""
        return np.array([citizens.size for citizens in self.citizens])

    def weighted(self) -> SocialWelfare:
        """Social welfare with each group's losses multiplied by its weight."""
        return self._summed([(citizens, citizens.weight) for citizens in self.citizens])

    def without(self, name: str) -> SocialWelfare | None:
        """Social welfare of all other groups; None where there are none."""
        rest = [(citizens, 1.0) for citizens in self.citizens if citizens.name != name]
        return self._summed(rest) if rest else None

    def _summed(self, counted: Sequence[tuple[Citizens, float]]) -> SocialWelfare:
        """What some groups lose together, each counted with a weight."""
        groups = tuple(
            replace(c.group, relative_privacy_weight=weight * c.group.relative_privacy_weight) for c, weight in counted
        )
        values = []
        for i, value in enumerate(self.like.table_values):
            total = math.fsum(weight * c.table_values[i].value for c, weight in counted)
            values.append(value.scaled(total / value.value if value.value > 0 else 1.0))
        others = tuple(other.scaled(weight) for c, weight in counted if weight > 0 for other in c.other_losses)
        return replace(self.like, groups=groups, table_values=tuple(values), other_losses=others)


def _shares_of(
    shares: Mapping[str, float] | Mapping[str, Mapping[str, float]] | None,
    table: str | None,
    heads: Mapping[str, float],
) -> Mapping[str, float]:
    """Each group's share of the value of accuracy of a table, or of losses that belong to no table."""
    if shares is None:
        return heads
    stated = {key: value for key, value in shares.items() if isinstance(value, Mapping)}
    chosen: Mapping[str, float] = (
        stated.get(table or "", heads) if stated else {key: float(value) for key, value in shares.items()}  # type: ignore[arg-type]
    )
    unknown = sorted(set(chosen) - set(heads))
    total = math.fsum(chosen.values())
    if unknown or abs(total - 1) > PRIVACY_SHARES or any(share < 0 for share in chosen.values()):
        what = f"'{unknown[0]}' is no group" if unknown else f"the shares of the groups add up to {number(total, 6)}"
        raise InvalidPreferences(
            f"{what}, in the shares of the value of accuracy",
            why="what accuracy is worth belongs to somebody, and to nobody twice",
            instead=f"state shares of at least 0 for {', '.join(heads)} that add up to 1",
        )
    return {name: chosen.get(name, 0.0) for name in heads}


@dataclass(frozen=True)
class Peak:
    """The loss that a group likes best; 0 or infinite where it wants none, or ever more."""

    name: str
    size: float
    epsilon: float
    single_peaked: bool  # whether its members are worse off the further a loss is from the peak, on either side
    optima: tuple[LocalOptimum, ...]  # every place where their welfare turns, and the limits


@dataclass(frozen=True, eq=False)
class Profile:
    """Every group's peak, and what a member is worth at each loss."""

    society: Society
    frontier: Frontier
    limits: Limits
    bounds: Bounds
    peaks: tuple[Peak, ...]

    @property
    def single_peaked(self) -> bool:
        """Whether every group is single-peaked: medians are then strategy-proof and majorities have no cycles."""
        return all(peak.single_peaked for peak in self.peaks)

    def value(self, loss: float) -> Floats:
        """What a member of each group is worth at a loss, USD, before any baseline; shape (groups,)."""
        at = positive_loss(loss)
        return np.array([citizens.member(self.frontier, at) for citizens in self.society.citizens])

    def gains(self, loss: float, against: float) -> dict[str, float]:
        """What a member of each group gains by one loss instead of another, USD; 0 where only rounding differs."""
        before, after = self.value(against), self.value(loss)
        gained = np.where(np.abs(after - before) > ROUNDING * np.abs(before), after - before, 0.0)
        return dict(zip(self.society.names, gained.tolist(), strict=True))

    @property
    def span(self) -> tuple[float, float]:
        """The losses that are looked at: within the limits, and far beyond every peak where there are none."""
        inner = [peak.epsilon for peak in self.peaks if 0 < peak.epsilon < math.inf]
        turns = [point.epsilon for peak in self.peaks for point in peak.optima]
        places = [*inner, *turns] or [1.0]
        reach = 10.0 ** (HALF_DECADES / 2)
        low = self.bounds.lowest or min(min(places) / reach, (self.bounds.highest or math.inf) / reach)
        return low, self.bounds.highest or max(places) * reach

    @cached_property
    def land(self) -> CostGrid:
        """What a member of each group loses at every loss; its parts are the groups."""
        low, high = self.span
        bounds = replace(self.bounds, lowest=low, highest=high)
        society = self.society
        parts = [citizens.welfare for citizens in society.citizens]
        sizes = society.sizes
        whole = costs_of(parts, self.frontier)

        def members(loss: float) -> tuple[Floats, Floats]:
            costs, slopes = whole(loss)
            return costs / sizes, slopes / sizes

        endless = np.array([part.endless for part in parts]) / sizes
        return cost_grid_of(members, np.eye(len(parts)), start=math.sqrt(low * high), bounds=bounds, endless=endless)

    @cached_property
    def pareto_set(self) -> tuple[tuple[float, float], ...]:
        """Intervals of losses from which nobody can gain without somebody else losing.

        From the lowest to the highest peak where everybody is single-peaked; otherwise compared loss by loss on the
        grid, to its spacing.
        """
        peaks = [peak.epsilon for peak in self.peaks]
        if self.single_peaked:
            return ((min(peaks), max(peaks)),)
        values = -np.exp(self.land.grid.logs)
        losses = np.exp(self.land.grid.points)
        efficient = np.array([not np.any(_dominates(values, row)) for row in values])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], efficient, [False]]).astype(int)))
        return tuple((float(losses[a]), float(losses[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True))

    def explain(self) -> str:
        """The peaks in sentences."""
        lines = [f"{peak.name}: best off at {_loss(peak.epsilon)}" for peak in self.peaks]
        crooked = [peak.name for peak in self.peaks if not peak.single_peaked]
        if crooked:
            lines.append(f"Not single-peaked: {', '.join(crooked)}. Medians can be manipulated, majorities may cycle.")
        intervals = " and ".join(f"from {_loss(low)} to {_loss(high)}" for low, high in self.pareto_set)
        lines.append(f"Efficient are losses {intervals}: elsewhere everybody could be made better off.")
        return "\n".join(lines)

    __str__ = explain


def profile(frontier: Frontier, society: Society, limits: Limits | None = None) -> Profile:
    """Every group's own best loss within the limits, and whether its members are single-peaked."""
    limits = limits or Limits()
    society.like.check(frontier)
    bounds = limits.bounds(frontier, society.like)
    peaks = tuple(_peak(frontier, citizens, bounds) for citizens in society.citizens)
    return Profile(society, frontier, limits, bounds, peaks)


def _peak(frontier: Frontier, citizens: Citizens, bounds: Bounds) -> Peak:
    welfare = citizens.welfare
    try:
        best, optima = best_within(frontier, welfare, bounds)
        at = best.epsilon
    except NoOptimum:
        at, optima = endless_peak(frontier, welfare), local_optima(frontier, welfare, bounds)
    single = all(point.kind != "minimum" for point in optima)
    return Peak(citizens.name, citizens.size, at, single, optima)


def endless_peak(frontier: Frontier, welfare: SocialWelfare) -> float:
    """0 where less is always better, infinite where more is."""
    nothing = welfare.at(frontier, NEXT_TO_NOTHING)
    for much in (LARGEST_LOSS, 1e3, 50.0):
        try:
            everything = welfare.at(frontier, much)
        except (InvalidLoss, OverflowError):
            continue
        if math.isfinite(everything):
            return math.inf if everything > nothing else 0.0
    return 0.0


def _dominates(values: Floats, row: Floats) -> Booleans:
    """Which rows are nowhere worse than one and somewhere better, beyond rounding."""
    slack = ROUNDING * np.abs(row)
    better: Booleans = np.all(values >= row - slack, axis=1) & np.any(values > row + slack, axis=1)
    return better


def _loss(loss: float) -> str:
    return "ever more" if math.isinf(loss) else "none at all" if loss == 0 else f"{number(loss)}"
