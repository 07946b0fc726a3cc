"""What was chosen, what it buys, what it costs, who bears it, and why: in numbers and in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dualmandate.choice.limits import BoundBy, Bounds
from dualmandate.choice.welfare import SocialWelfare, TableValue
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.loss import SIGNIFICANT_DIGITS
from dualmandate.population.units import singular
from dualmandate.population.wording import counted, money, number, quantity

MOST_NAMED = 8  # The words name at most this many tables, the costliest; the others stand in one sentence.


@dataclass(frozen=True)
class LocalOptimum:
    """A privacy loss at which welfare turns, or at which a limit stops it."""

    epsilon: float
    welfare: float  # USD
    kind: Literal["maximum", "minimum", "end"]
    bound_by: BoundBy = "preferences"


@dataclass(frozen=True)
class TableOutcome:
    """What the choice buys in one table."""

    table: str
    query_count: int
    unit: str
    root_mean_squared_error: float  # in `unit`
    root_mean_squared_consequence: float | None  # USD; None where no consequence was stated
    data_loss: float | None  # USD; None where the table is not valued by itself


@dataclass(frozen=True)
class GroupOutcome:
    """What the choice costs one group."""

    name: str
    size: float
    relative_privacy_weight: float
    cost_per_member: float  # κ, USD, before the weight
    marginal_cost_per_member: float  # κ', USD per unit of loss, before the weight
    privacy_cost: float  # USD, weighted


@dataclass(frozen=True)
class Choice:
    """The chosen privacy loss with its reasons.

    `epsilon` is the amount in `currency`; `loss` is the same as an exact number, rounded down to five digits (up where
    rounding down would leave a table unfit for use; exactly the limit where a cap binds).
    """

    epsilon: float
    privacy_measure: PrivacyMeasure
    loss: PrivacyLoss
    accuracy: float  # I ≤ 0
    root_mean_squared_error: float | None  # in the tables' unit; None where tables differ in unit
    root_mean_squared_consequence: float | None  # USD; None where no table states a consequence
    welfare: float  # USD
    privacy_cost: float  # USD, ≥ 0
    data_loss: float  # USD, ≥ 0
    marginal_privacy_cost: float  # USD per unit of loss
    marginal_data_loss: float  # USD per unit of loss, ≤ 0
    marginal_rate_of_transformation: float  # accuracy per unit of loss
    willingness_to_accept: float  # accuracy per unit of loss
    local_optima: tuple[LocalOptimum, ...]
    bound_by: BoundBy
    bound_reason: str
    tables: tuple[TableOutcome, ...]
    groups: tuple[GroupOutcome, ...]
    technology: str
    allocation: Mapping[str, float]
    protected_unit: str

    def explain(self) -> str:
        """The choice in sentences that a review board can read."""
        parts = [self._headline(), self._margin(), *self._bought(), self._paid(), *self._borne(), *self._alternatives()]
        return "\n".join(part for part in parts if part)

    def _headline(self) -> str:
        amount = f"{self.privacy_measure} = {number(float(self.loss), 6)}"
        if self.bound_by == "preferences":
            return f"The choice is {amount}, where accuracy is worth exactly what it costs in privacy."
        if self.bound_by == "fitness for use":
            return f"The choice is {amount}, the least that leaves the tables fit for use: {self.bound_reason}."
        if self.bound_by == "participation":
            return f"The choice is {amount}, where accuracy peaks: beyond it too many people would no longer take part."
        limit = "all that the ledger has left" if self.bound_by == "ledger" else f"the {self.bound_by} allowed"
        return f"The choice is {amount}, {limit}."

    def _margin(self) -> str:
        cost, gain = self.marginal_privacy_cost, -self.marginal_data_loss
        text = (
            f"At the margin one more {self.privacy_measure} would cost {money(cost)} of privacy and save {money(gain)}"
        )
        if self.bound_by == "preferences":
            # Squared people and squared dollars have no sum to speak of; in dollars the balance holds all the same.
            rate = f"{number(self.marginal_rate_of_transformation, 6)} squared units per {self.privacy_measure}"
            rates = "" if self.root_mean_squared_error is None else f" (MRT = WTA = {rate})"
            return f"{text} of errors: the two are in balance{rates}."
        if gain >= cost:
            return f"{text} of errors: society would gain by more loss, and the limit forbids it."
        return f"{text} of errors: society would gain by less loss, and fitness for use forbids it."

    def _bought(self) -> list[str]:
        ranked = sorted(self.tables, key=lambda table: -(table.data_loss or 0.0))
        named = self.tables if len(ranked) <= MOST_NAMED else ranked[:MOST_NAMED]
        lines = []
        for table in named:
            error, alone = quantity(table.root_mean_squared_error, table.unit), table.query_count == 1
            numbers = "its one number" if alone else f"each of {table.query_count:,} numbers"
            line = f"It buys '{table.table}' with a typical error (root mean squared) of {error} in {numbers}"
            if table.root_mean_squared_consequence is not None:
                line += f", worth {money(table.root_mean_squared_consequence)}" + ("" if alone else " each")
            if table.data_loss is not None:
                line += "; it costs " if alone else "; they cost "
                line += money(table.data_loss) + ("" if alone else " in all")
            lines.append(line + ".")
        rest = ranked[len(named) :]
        if rest:
            cost = money(math.fsum(table.data_loss or 0.0 for table in rest))
            numbers = f"{sum(table.query_count for table in rest):,} numbers"
            lines.append(f"It buys {len(rest):,} more tables, {numbers}, whose errors cost {cost} in all.")
        return lines

    def _paid(self) -> str:
        return (
            f"Society loses {money(self.privacy_cost)} of privacy and {money(self.data_loss)} to errors, "
            f"{money(-self.welfare)} together."
        )

    def _borne(self) -> list[str]:
        lines = []
        for group in self.groups:
            name = "" if len(self.groups) == 1 else f" ({group.name})"
            members = f"{counted(group.size, self.protected_unit)}{name}"
            weight = group.relative_privacy_weight
            weighed = "" if weight == 1 else f", counted {weight:g} times in the sum"
            lines.append(
                f"The privacy loss is borne by {members}: {money(group.cost_per_member)} each, and "
                f"{money(group.marginal_cost_per_member)} each for one more {self.privacy_measure}{weighed}."
            )
        lines.append("The errors are borne by those whom the tables serve.")
        return lines

    def _alternatives(self) -> list[str]:
        peaks = [point for point in self.local_optima if point.kind != "minimum" and point.epsilon != self.epsilon]
        lines = []
        for point in peaks:
            what = "another peak of welfare" if point.kind == "maximum" else f"the limit set by {point.bound_by}"
            lines.append(
                f"Considered too: {self.privacy_measure} = {number(point.epsilon, 6)}, {what}, at "
                f"{money(point.welfare)}."
            )
        return lines


def outcome(
    frontier: Frontier,
    welfare: SocialWelfare,
    *,
    bounds: Bounds,
    best: LocalOptimum,
    candidates: tuple[LocalOptimum, ...],
) -> Choice:
    """Everything that follows from standing at one loss."""
    loss = best.epsilon
    tables = _table_outcomes(frontier, welfare, loss)
    return Choice(
        epsilon=loss,
        privacy_measure=frontier.privacy_measure,
        loss=_exact_loss(loss, bounds, privacy_measure=frontier.privacy_measure),
        accuracy=frontier.accuracy(loss),
        root_mean_squared_error=_pooled_error(tables),
        root_mean_squared_consequence=_pooled_consequence(tables),
        welfare=best.welfare,
        privacy_cost=welfare.privacy_cost(loss),
        data_loss=welfare.data_loss(frontier, loss),
        marginal_privacy_cost=welfare.marginal_privacy_cost(loss),
        marginal_data_loss=welfare.marginal_data_loss(frontier, loss),
        marginal_rate_of_transformation=frontier.marginal_rate_of_transformation(loss),
        willingness_to_accept=welfare.willingness_to_accept(frontier, loss),
        local_optima=candidates,
        bound_by=best.bound_by,
        bound_reason=bounds.lowest_reason if best.bound_by == "fitness for use" else "",
        tables=tables,
        groups=_group_outcomes(welfare, loss),
        technology=frontier.technology(loss),
        allocation=frontier.allocation(loss),
        protected_unit=singular(welfare.protected_unit),
    )


def _table_outcomes(frontier: Frontier, welfare: SocialWelfare, loss: float) -> tuple[TableOutcome, ...]:
    squared = frontier.table_errors(loss)
    costs = welfare.table_data_losses(frontier, loss)
    values = {value.table: value for value in welfare.table_values}
    rows = []
    for table in frontier.tables:
        value = values.get(table, TableValue(table, 0.0, unit=welfare.protected_unit))
        count = frontier.query_counts[table]
        mean_squared_error = squared[table] / count * value.grid**2
        consequence = value.squared_consequence(mean_squared_error)
        rows.append(
            TableOutcome(
                table=table,
                query_count=count,
                unit=value.unit,
                root_mean_squared_error=math.sqrt(mean_squared_error),
                root_mean_squared_consequence=None if consequence is None else math.sqrt(consequence),
                data_loss=costs.get(table),
            )
        )
    return tuple(rows)


def _group_outcomes(welfare: SocialWelfare, loss: float) -> tuple[GroupOutcome, ...]:
    rows = []
    for group in welfare.groups:
        cost = group.information_utility.cost(loss)
        rows.append(
            GroupOutcome(
                name=group.name,
                size=group.size,
                relative_privacy_weight=group.relative_privacy_weight,
                cost_per_member=cost,
                marginal_cost_per_member=group.information_utility.marginal_cost(loss),
                privacy_cost=group.weighted_size * cost if group.weighted_size > 0 else 0.0,
            )
        )
    return tuple(rows)


def _pooled_error(tables: tuple[TableOutcome, ...]) -> float | None:
    if len({singular(table.unit) for table in tables}) > 1:
        return None
    queries = sum(table.query_count for table in tables)
    return math.sqrt(math.fsum(t.query_count * t.root_mean_squared_error**2 for t in tables) / queries)


def _pooled_consequence(tables: tuple[TableOutcome, ...]) -> float | None:
    sizes = [(t.query_count, t.root_mean_squared_consequence) for t in tables]
    stated = [(count, size) for count, size in sizes if size is not None]
    if not stated:
        return None
    return math.sqrt(math.fsum(count * size**2 for count, size in stated) / sum(count for count, _ in stated))


def _exact_loss(loss: float, bounds: Bounds, *, privacy_measure: PrivacyMeasure) -> PrivacyLoss:
    """The loss as an exact number within the limits."""
    if bounds.highest_exact is not None and loss >= float(bounds.highest_exact):
        return PrivacyLoss(bounds.highest_exact, privacy_measure)
    rounded = PrivacyLoss.chosen(loss, privacy_measure)
    if bounds.lowest is None or float(rounded) >= bounds.lowest:
        return rounded
    # Rounding down would leave a table unfit for use.
    step = Fraction(10) ** (math.floor(math.log10(loss)) - SIGNIFICANT_DIGITS + 1)
    up = -(-Fraction(bounds.lowest) // step) * step
    if bounds.highest_exact is not None and up > bounds.highest_exact:
        up = bounds.highest_exact
    return PrivacyLoss(up, privacy_measure)
