"""Social welfare in parts that scale as one: what turns a thousand preferences into a thousand rows of multiples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dualmandate.choice.landscape import Costs, Floats
from dualmandate.choice.welfare import DataLoss, Group, SocialWelfare, TableValue
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import Currency


@dataclass(frozen=True)
class SharedLoss:
    """A part of a loss from errors: what one group bears of it, or what one of several scenarios adds to the mean."""

    whole: DataLoss
    share: float  # ≥ 0

    def at(self, frontier: Frontier, loss: float, /) -> float:
        """The share of the loss, USD."""
        return self.share * self.whole.at(frontier, loss) if self.share > 0 else 0.0

    def slope(self, frontier: Frontier, loss: float, /) -> float:
        """Its derivative, USD per unit of privacy loss; ≤ 0."""
        return self.share * self.whole.slope(frontier, loss) if self.share > 0 else 0.0

    @property
    def least(self) -> float:
        """What is left of it when tables are exact, USD."""
        return self.share * self.whole.least

    @property
    def table(self) -> str | None:
        """The table it rests on, if it is one table."""
        return self.whole.table

    @property
    def currency(self) -> Currency | None:
        """What privacy loss must be counted in."""
        return self.whole.currency


@dataclass(frozen=True)
class Part:
    """Costs of some groups and of errors in some tables, which rise and fall together as preferences change."""

    groups: tuple[Group, ...] = ()
    table_values: tuple[TableValue, ...] = ()
    other_losses: tuple[DataLoss, ...] = ()

    @classmethod
    def of(cls, welfare: SocialWelfare) -> Part:
        """All of what society loses, as one part."""
        return cls(welfare.groups, welfare.table_values, welfare.other_losses)

    @property
    def endless(self) -> float:
        """What it costs as the loss grows without limit, USD; infinite where that has no bound."""
        privacy = [g.weighted_size * g.information_utility.most for g in self.groups if g.weighted_size > 0]
        errors = [*(value.least for value in self.table_values), *(other.least for other in self.other_losses)]
        return math.fsum([*privacy, *errors])

    @property
    def empty(self) -> bool:
        """Whether it costs nothing at any loss."""
        free = all(g.weighted_size * g.information_utility.parameter == 0 for g in self.groups)
        exact = all(value.value == 0 for value in self.table_values)
        return free and exact and not self.other_losses

    def scaled(self, multiple: float) -> Part:
        """The same part with all its costs and values multiplied."""
        if multiple == 1:
            return self
        return Part(
            tuple(replace(g, information_utility=g.information_utility.scaled(multiple)) for g in self.groups),
            tuple(value.scaled(multiple) for value in self.table_values),
            tuple(SharedLoss(other, multiple) for other in self.other_losses),
        )


def costs_of(parts: Sequence[Part], frontier: Frontier) -> Costs:
    """What each part costs at a loss, and its slope; the frontier is asked once a loss for all of them."""
    measures: tuple[Literal["squared", "absolute"], ...] = tuple(
        dict.fromkeys(value.measure for part in parts for value in part.table_values)
    )

    def costs(loss: float) -> tuple[Floats, Floats]:
        errors = {measure: frontier.table_losses(loss, measure) for measure in measures}
        slopes = {measure: frontier.table_slopes(loss, measure) for measure in measures}
        found, rates = np.empty(len(parts)), np.empty(len(parts))
        for i, part in enumerate(parts):
            weighed = [g for g in part.groups if g.weighted_size > 0]  # 0 × ∞ is not a number
            found[i] = math.fsum(
                [
                    *(g.weighted_size * g.information_utility.cost(loss) for g in weighed),
                    *(v.value_per_step * errors[v.measure][v.table] + v.least for v in part.table_values),
                    *(other.at(frontier, loss) for other in part.other_losses),
                ]
            )
            rates[i] = math.fsum(
                [
                    *(g.weighted_size * g.information_utility.marginal_cost(loss) for g in weighed),
                    *(v.value_per_step * slopes[v.measure][v.table] for v in part.table_values),
                    *(other.slope(frontier, loss) for other in part.other_losses),
                ]
            )
        return found, rates

    return costs


def joined(parts: Sequence[Part], like: SocialWelfare) -> SocialWelfare:
    """One social welfare from parts, its groups and tables in the order of another."""
    groups = {group.name: group for part in parts for group in part.groups}
    values = {value.table: value for part in parts for value in part.table_values}
    return replace(
        like,
        groups=tuple(groups[group.name] for group in like.groups if group.name in groups),
        table_values=tuple(values[value.table] for value in like.table_values if value.table in values),
        other_losses=tuple(other for part in parts for other in part.other_losses),
    )
