"""The choice: the privacy loss at which welfare is highest, within the limits; and the price of any other.

Limits are what the law, the users and the ledger allow: a cap on privacy loss, a floor on accuracy, a budget already
spent. Welfare need not be concave (bounded and posterior costs, envelopes of technologies), so every point where W'
changes sign is found on a logarithmic grid, polished, and compared with the ends. What changes sign is the logarithm of
gain over cost, ln(−D') − ln P': free of the scale of dollars, and finite where P' itself is not. The grid of costs that
serves thousands of preferences (`cost_grid`) is read off cubics; one choice is polished on the frontier itself.

A choice says what was chosen, what it buys, what it costs, who bears it, and why. Regret is how much welfare is lost by
standing somewhere else than at the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from dualmandate.choice.welfare import SocialWelfare, TableValue
from dualmandate.errors import ConflictingLimits, InvalidLoss, InvalidPreferences, InvalidValue, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import loss_where
from dualmandate.frontier.participation import peak_of
from dualmandate.mechanism.mechanism import positive_loss
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arguments import checked_call, checked_class, expected
from dualmandate.population.loss import SIGNIFICANT_DIGITS
from dualmandate.population.shown import cut_line, one_line, page_of, sentences
from dualmandate.population.shown import table as page_table
from dualmandate.population.units import plural, singular
from dualmandate.population.wording import chosen_loss, counted, money, number, percent, quantity

LEAST_POINTS = 400  # The grid has at least this many points.
POINTS_PER_DECADE = 60
LOWEST_START, HIGHEST_START = 1e-4, 1e3
STEEPEST = 1e4  # Beyond this ln gain − ln cost is cut off, so that a root finder never meets an infinity.
UNDERFLOW = 1e-290  # A slope below this, USD per unit of loss, has lost its digits.
BENT = 1e-9  # A second difference on the grid above this is not just rounding.
NEXT = 1e-9  # So far above a loss at which errors jump, in its logarithm, they are those after the jump.
CLOSE = 1e-6  # An optimum this near to an end of the grid is not yet bracketed.
TIE = 1e-13  # A relative difference of welfare below this is no difference.
FLAT = 0.01  # A data loss whose elasticity is below this has reached its floor.
BoundBy = Literal[
    "preferences", "largest epsilon", "largest rho", "fitness for use", "ledger", "participation", "simulation"
]
NO_LOSS = 1e-12  # A loss below this is next to none, and so is a cost of privacy below this share of that of errors.
SMALLEST_LOSS, LARGEST_LOSS = 1e-30, 1e9  # No search goes beyond these.
SLACK = 1e-12  # A cap and a floor that differ by less than this share are meant to be equal.
MOST_NAMED = 8  # The words name at most this many tables, the costliest; the others stand in one sentence.


@dataclass(frozen=True)
class Bounds:
    """The losses that the limits leave, and what sets each end; None where an end is open."""

    lowest: float | None = None
    lowest_reason: str = ""
    lowest_by: BoundBy = "fitness for use"
    highest: float | None = None
    highest_exact: Fraction | None = None
    highest_by: BoundBy = "largest epsilon"


@dataclass(frozen=True)
class Limits:
    """Limits on the choice, each optional, each in the currency of the frontier.

    `floors` holds, by table, the largest root mean squared error that leaves the table fit for use, in the table's
    unit; `consequence_floors` the same in USD. `remaining` is what the ledger has left for this population.
    """

    largest_epsilon: float | Fraction | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    remaining: float | Fraction | None = None
    largest_rho: float | Fraction | None = None
    consequence_floors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors = [*self.floors.values(), *self.consequence_floors.values()]
        for limit in (self.largest_epsilon, self.largest_rho, *errors):
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise InvalidValue(
                    f"a limit of {number(float(limit), 6)}",
                    why="no release has a privacy loss or an error of 0 or less",
                    instead="state a finite limit above 0, or leave it out",
                )
        if self.remaining is not None and not (math.isfinite(self.remaining) and self.remaining > 0):
            raise ConflictingLimits(
                f"the ledger has {float(self.remaining):g} left",
                why="every release has a privacy loss above 0",
                instead="raise the cap of the account by decision, or publish nothing more",
            )

    def bounds(self, frontier: Frontier, welfare: SocialWelfare) -> Bounds:
        """The range of losses that satisfies every limit; refused where there is none."""
        lowest, reason = self.lowest(frontier, welfare)
        caps: list[tuple[Fraction, BoundBy]] = []
        legal = self._legal_cap(frontier.privacy_measure)
        if legal is not None:
            pure = frontier.privacy_measure is PrivacyMeasure.PURE_DP
            caps.append((exact(legal), "largest epsilon" if pure else "largest rho"))
        if self.remaining is not None:
            caps.append((exact(self.remaining), "ledger"))
        peak = peak_of(frontier)
        if peak is not None:  # beyond it a frontier is dominated: more loss for no more accuracy
            caps.append((PrivacyLoss.chosen(peak, frontier.privacy_measure).amount, "participation"))
        least, most = frontier.known_losses
        lowest_by: BoundBy = "fitness for use"
        if lowest is None and least > 0:
            lowest, lowest_by = least, "simulation"
        if math.isfinite(most):
            caps.append((exact(most), "simulation"))
        if not caps:
            return Bounds(lowest, reason, lowest_by)
        cap, cap_by = min(caps)
        highest = float(cap)
        if lowest is not None and lowest > highest:
            if lowest > highest * (1 + SLACK):
                raise _conflict(lowest, reason, highest, cap_by, frontier.privacy_measure)
            lowest = highest
        return Bounds(lowest, reason, lowest_by, highest, cap, cap_by)

    def _legal_cap(self, privacy_measure: PrivacyMeasure) -> float | Fraction | None:
        ours, other = self.largest_epsilon, self.largest_rho
        if privacy_measure is PrivacyMeasure.ZCDP:
            ours, other = other, ours
        if ours is None and other is not None:
            raise ConflictingLimits(
                f"the cap {float(other):g} does not count the loss in {privacy_measure}",
                why="epsilon and rho are different dimensions",
                instead=f"state largest_{privacy_measure}, or express the frontier in the currency of the cap",
            )
        return ours

    def lowest(self, frontier: Frontier, welfare: SocialWelfare) -> tuple[float | None, str]:
        """The smallest loss at which every table of a frontier is fit for use, and the words for what asks for it."""
        values = {value.table: value for value in welfare.table_values}
        lowest, reason = None, ""
        for floors, in_money in ((self.floors, False), (self.consequence_floors, True)):
            for table, largest in floors.items():
                value = values.get(table)
                consequence = None if value is None else value.squared_consequence(1.0)
                if value is None or (in_money and not consequence):
                    raise InvalidPreferences(
                        f"table '{table}' has a fitness for use, but no {'consequence' if value else 'value'}",
                        why="a limit on errors needs a table that is produced, and one in money needs its consequence",
                        instead="name a table of the program, and state its consequence",
                    )
                if table not in frontier.tables:
                    continue
                limit = largest / math.sqrt(consequence) if in_money and consequence else largest
                left = limit**2 - value.squared_bias / frontier.query_counts[table]
                if left <= 0:
                    off = quantity(limit, value.unit)
                    raise ConflictingLimits(
                        unfit_words(table),
                        why=f"what clipping leaves out of its numbers is typically more than {off} already",
                        instead="raise the bound of what it adds up, or allow larger errors in this table",
                    )
                needed = _smallest_loss(frontier, table, mean_squared_error=left / value.grid**2)
                size = f"{welfare.currency} {largest:,g}" if in_money else f"{largest:,g} {plural(value.unit)}"
                what = "consequence" if in_money else "error"
                words = f"a root mean squared {what} of at most {size} in '{table}'"
                if needed is not None and (lowest is None or needed > lowest):
                    lowest, reason = needed, words
        return lowest, reason


def exact(limit: float | Fraction) -> Fraction:
    """A stated limit as the decimal number that was written: 0.3 is 3/10, not the float beside it."""
    return limit if isinstance(limit, Fraction) else Fraction(repr(float(limit)))


def unfit_words(table: str) -> str:
    """What is refused where no loss is enough for a table."""
    return f"no privacy loss makes table '{table}' fit for use"


def _smallest_loss(frontier: Frontier, table: str, *, mean_squared_error: float) -> float | None:
    """The loss at which a table's mean squared error falls to a limit; None where every loss satisfies it."""
    count = frontier.query_counts[table]

    def mean(loss: float) -> float:
        return frontier.table_errors(loss)[table] / count

    least, most = frontier.known_losses
    needed = loss_where(mean, mean_squared_error, within=(max(least, SMALLEST_LOSS), min(most, LARGEST_LOSS)))
    if math.isinf(needed):
        raise ConflictingLimits(
            unfit_words(table),
            why=f"its root mean squared error stays above {math.sqrt(mean_squared_error):g}",
            instead="allow larger errors in this table, or choose another mechanism",
        )
    return needed or None


def _conflict(lowest: float, reason: str, highest: float, by: BoundBy, measure: PrivacyMeasure) -> ConflictingLimits:
    others = {
        "ledger": "the ledger has left",
        "participation": "accuracy peaks, because people stop taking part, at",
        "simulation": "releases were simulated up to",
    }
    limit = f"{others.get(by, f'largest_{measure} is')} {number(highest, 6)}"
    return ConflictingLimits(
        f"no {measure} satisfies all limits: fitness for use asks for at least {number(lowest, 6)}, {limit}",
        why=f"{reason} needs {measure} ≥ {number(lowest, 6)}",
        instead="allow larger errors, raise the cap by decision, publish fewer numbers, or choose a better mechanism",
    )


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
    bias: float = 0.0  # what clipping leaves out, as far as it is known, root mean squared, in `unit`
    existing: float = 0.0  # what sampling or the like had been off by and errors cost too, root mean squared, in `unit`

    __repr__ = one_line


@dataclass(frozen=True)
class GroupOutcome:
    """What the choice costs one group."""

    name: str
    size: float
    relative_privacy_weight: float
    cost_per_member: float  # κ, USD, of one who takes part, before the weight
    marginal_cost_per_member: float  # κ', USD per unit of loss, of one who takes part, before the weight
    privacy_cost: float  # USD, weighted, of all who take part
    taking_part: float = 1.0  # share of them who do

    __repr__ = one_line


@checked_class
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
    currency: str  # of everything that is money

    def __repr__(self) -> str:
        error = self.root_mean_squared_error
        typical = "" if error is None else f", typical error {quantity(error, self.tables[0].unit)}"
        return cut_line(
            f"Choice({self.privacy_measure} = {chosen_loss(float(self.loss.amount))} by {self.bound_by}, "
            f"{self.technology}{typical}, costs {money(-self.welfare, self.currency)})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the choice in sentences, and what it buys."""
        named, amount = self.tables[:MOST_NAMED], chosen_loss(float(self.loss.amount))
        rows = [(row.table, f"{row.query_count:,}", quantity(row.root_mean_squared_error, row.unit)) for row in named]
        shown = page_table(["table", "numbers", "typical error"], rows)
        return page_of(f"{self.privacy_measure} = {amount}", sentences(self.explain().splitlines()), shown)

    def explain(self) -> str:
        """The choice in sentences that a review board can read."""
        parts = [self._headline(), self._margin(), *self._bought(), self._paid(), *self._borne(), *self._alternatives()]
        return "\n".join(part for part in parts if part)

    def _headline(self) -> str:
        amount = f"{self.privacy_measure} = {number(float(self.loss.amount), 6)}"
        if self.bound_by == "preferences":
            return f"The choice is {amount}, where accuracy is worth exactly what it costs in privacy."
        if self.bound_by == "fitness for use":
            return f"The choice is {amount}, the least that leaves the tables fit for use: {self.bound_reason}."
        if self.bound_by == "participation":
            why = "beyond it too many people would no longer take part, or not truthfully"
            return f"The choice is {amount}, where accuracy peaks: {why}."
        if self.bound_by == "simulation":
            return f"The choice is {amount}, an end of what was simulated: what lies beyond is not known."
        limit = "all that the ledger has left" if self.bound_by == "ledger" else f"the {self.bound_by} allowed"
        return f"The choice is {amount}, {limit}."

    def _margin(self) -> str:
        cost, gain = self.marginal_privacy_cost, -self.marginal_data_loss
        text = (
            f"At the margin one more {self.privacy_measure} would cost {money(cost, self.currency)} of privacy and "
            f"save {money(gain, self.currency)}"
        )
        if self.bound_by == "preferences":
            # Squared people and squared money have no sum to speak of; in money the balance holds all the same.
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
            if table.root_mean_squared_error == 0:
                lines.append(f"It has '{table.table}' exactly: no noise reaches it.")
                continue
            error, alone = quantity(table.root_mean_squared_error, table.unit), table.query_count == 1
            numbers = "its one number" if alone else f"each of {table.query_count:,} numbers"
            line = f"It buys '{table.table}' with a typical error (root mean squared) of {error} in {numbers}"
            others = {"what clipping leaves out": table.bias, "errors that were there before": table.existing}
            if besides := [words for words, error in others.items() if error > 0]:
                both = quantity(math.hypot(table.root_mean_squared_error, *others.values()), table.unit)
                line += f" by noise, and of {both} with {' and '.join(besides)}"
            if table.root_mean_squared_consequence is not None:
                line += f", worth {money(table.root_mean_squared_consequence, self.currency)}" + (
                    "" if alone else " each"
                )
            if table.data_loss is not None:
                line += "; it costs " if alone else "; they cost "
                line += money(table.data_loss, self.currency) + ("" if alone else " in all")
            lines.append(line + ".")
        rest = ranked[len(named) :]
        if rest:
            cost = money(math.fsum(table.data_loss or 0.0 for table in rest), self.currency)
            numbers = f"{sum(table.query_count for table in rest):,} numbers"
            lines.append(f"It buys {len(rest):,} more tables, {numbers}, whose errors cost {cost} in all.")
        return lines

    def _paid(self) -> str:
        lost, errors, both = (
            money(amount, self.currency) for amount in (self.privacy_cost, self.data_loss, -self.welfare)
        )
        return f"Society loses {lost} of privacy and {errors} to errors, {both} together."

    def _borne(self) -> list[str]:
        lines = []
        for group in self.groups:
            name = "" if len(self.groups) == 1 else f" ({group.name})"
            staying = group.taking_part < 1
            size = round(group.size * group.taking_part) if staying else group.size
            members = f"{counted(size, self.protected_unit)}{name}{' who take part' if staying else ''}"
            weight = group.relative_privacy_weight
            weighed = "" if weight == 1 else f", counted {weight:g} times in the sum"
            lines.append(
                f"The privacy loss is borne by {members}: {money(group.cost_per_member, self.currency)} each, and "
                f"{money(group.marginal_cost_per_member, self.currency)} each for one more "
                f"{self.privacy_measure}{weighed}."
            )
        lines.append("The errors are borne by those whom the tables serve.")
        return lines

    def _alternatives(self) -> list[str]:
        peaks = [point for point in self.local_optima if point.kind != "minimum" and point.epsilon != self.epsilon]
        lines = []
        for point in peaks:
            what = "another peak of welfare" if point.kind == "maximum" else f"the limit set by {point.bound_by}"
            lines.append(
                f"Considered too: {self.privacy_measure} = {chosen_loss(point.epsilon)}, {what}, at "
                f"{money(point.welfare, self.currency)}."
            )
        return lines


def _table_outcomes(frontier: Frontier, welfare: SocialWelfare, loss: float) -> tuple[TableOutcome, ...]:
    squared = frontier.table_errors(loss)
    costs = welfare.table_data_losses(frontier, loss)
    values = {value.table: value for value in welfare.table_values}
    rows = []
    for table in frontier.tables:
        value = values.get(table, TableValue(table, 0.0, unit=welfare.protected_unit))
        count = frontier.query_counts[table]
        mean_square = squared[table] / count * value.grid**2
        square = value.squared_consequence(mean_square)
        consequence = None if square is None else math.sqrt(square)
        before = math.sqrt(value.squared_bias / count), math.sqrt(value.existing_squared_error / count)
        typical = math.sqrt(mean_square)
        rows.append(TableOutcome(table, count, value.unit, typical, consequence, costs.get(table), *before))
    return tuple(rows)


def _group_outcomes(welfare: SocialWelfare, loss: float) -> tuple[GroupOutcome, ...]:
    return tuple(
        GroupOutcome(
            name=group.name,
            size=group.size,
            relative_privacy_weight=group.relative_privacy_weight,
            cost_per_member=group.information_utility.cost(loss),
            marginal_cost_per_member=group.information_utility.marginal_cost(loss),
            privacy_cost=group.weighted_size * group.cost(loss) if group.weighted_size > 0 else 0.0,
            taking_part=group.taking_part(loss),
        )
        for group in welfare.groups
    )


def _pooled(sizes: Iterable[tuple[int, float | None]]) -> float | None:
    """The root mean square over all numbers of the tables that have one; None where none has."""
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


@checked_call
def choose(frontier: Frontier, welfare: SocialWelfare, limits: Limits | None = None) -> Choice:
    """The privacy loss that maximizes welfare on the frontier, within the limits (MRT = WTA where none binds).

    Source: Abowd and Schmutte 2019, equation (10) with its sign put right.
    """
    expected(frontier, Frontier, what="a frontier", instead="make one: frontier_of(mechanism, workload)")
    expected(welfare, SocialWelfare, what="what society prefers", instead="make it: SocialWelfare.uniform(…)")
    welfare.check(frontier)
    limits = limits or Limits()
    bounds = limits.bounds(frontier, welfare)
    best, candidates = best_within(frontier, welfare, bounds)
    loss = best.epsilon
    tables = _table_outcomes(frontier, welfare, loss)
    alike = len({singular(table.unit) for table in tables}) == 1
    return Choice(
        epsilon=loss,
        privacy_measure=frontier.privacy_measure,
        loss=_exact_loss(loss, bounds, privacy_measure=frontier.privacy_measure),
        accuracy=frontier.accuracy(loss),
        marginal_rate_of_transformation=frontier.marginal_rate_of_transformation(loss),
        technology=frontier.technology(loss),
        allocation=frontier.allocation(loss),
        root_mean_squared_error=_pooled((t.query_count, t.root_mean_squared_error) for t in tables if alike),
        root_mean_squared_consequence=_pooled((t.query_count, t.root_mean_squared_consequence) for t in tables),
        welfare=best.welfare,
        privacy_cost=welfare.privacy_cost(loss),
        data_loss=welfare.data_loss(frontier, loss),
        marginal_privacy_cost=welfare.marginal_privacy_cost(loss),
        marginal_data_loss=welfare.marginal_data_loss(frontier, loss),
        willingness_to_accept=welfare.willingness_to_accept(frontier, loss),
        local_optima=candidates,
        bound_by=best.bound_by,
        bound_reason=bounds.lowest_reason if best.bound_by == "fitness for use" else "",
        tables=tables,
        groups=_group_outcomes(welfare, loss),
        protected_unit=singular(welfare.protected_unit),
        currency=welfare.currency,
    )


def best_within(
    frontier: Frontier, welfare: SocialWelfare, bounds: Bounds
) -> tuple[LocalOptimum, tuple[LocalOptimum, ...]]:
    """The best of all local optima and ends between bounds, and all of them; refused where no loss is best."""
    candidates = local_optima(frontier, welfare, bounds)
    peaks = [candidate for candidate in candidates if candidate.kind != "minimum"]
    best = max(peaks, key=lambda candidate: candidate.welfare, default=None)
    _refuse_unbounded(frontier, welfare, bounds=bounds, best=best)
    assert best is not None
    if best.bound_by == "simulation":
        further = "smaller" if best.epsilon == bounds.lowest else "larger"
        raise NoOptimum(
            f"welfare still rises towards {further} losses at {frontier.privacy_measure} = {number(best.epsilon, 4)}",
            why="no release was simulated beyond it, and what its errors would be is not guessed",
            instead=f"simulate {further} losses too",
        )
    if best.welfare == -math.inf:
        asked = bounds.lowest_reason or "the limits"
        raise NoOptimum(
            f"at {frontier.privacy_measure} = {number(best.epsilon, 3)} people lose more than any number holds",
            why=f"{asked} asks for so much loss, and its cost grows exponentially",
            instead="allow larger errors in the tables, or state a cost of another form",
        )
    return best, candidates


def local_optima(frontier: Frontier, welfare: SocialWelfare, bounds: Bounds | None = None) -> tuple[LocalOptimum, ...]:
    """Every point where W' changes sign, and the ends that the limits set, by increasing loss."""
    from scipy.optimize import brentq

    bounds = bounds or Bounds()
    gain = Advantage(frontier, welfare)
    found: list[LocalOptimum] = []
    ends = gain.range(bounds)
    # Where errors and costs are convex the advantage falls throughout, so that its signs at the ends say everything.
    start = max(ends[0], math.log(frontier.convex_from) + NEXT) if frontier.convex_from > 0 else ends[0]
    convex = welfare.convex and start - ends[0] <= 2 * NEXT
    points = [(end, gain(end)) for end in (start, ends[1])] if convex else _grid(gain, *ends)
    for (low, before), (high, after) in pairwise(points):
        if (before > 0) != (after > 0):
            loss = math.exp(brentq(gain, low, high, xtol=1e-14, rtol=1e-14))
            found.append(LocalOptimum(loss, welfare.at(frontier, loss), "maximum" if before > 0 else "minimum"))
    if bounds.lowest is not None:
        found.insert(0, LocalOptimum(bounds.lowest, welfare.at(frontier, bounds.lowest), "end", bounds.lowest_by))
    if bounds.highest is not None and bounds.highest != bounds.lowest:
        found.append(LocalOptimum(bounds.highest, welfare.at(frontier, bounds.highest), "end", bounds.highest_by))
    return tuple(found)


@dataclass(frozen=True)
class Advantage:
    """ln(−D') − ln P', gain over cost of one more unit of loss, as a function of the logarithm of the loss.

    0 at an optimum, positive where more loss is worth its cost.
    """

    frontier: Frontier
    welfare: SocialWelfare

    def __call__(self, log_loss: float) -> float:
        loss = math.exp(log_loss)
        gain = -self.welfare.marginal_data_loss(self.frontier, loss)
        cost = self.welfare.log_marginal_privacy_cost(loss)
        if gain <= 0:
            return -STEEPEST if cost > -math.inf else 0.0
        if not math.isfinite(gain) or cost == -math.inf:
            return STEEPEST
        return min(max(math.log(gain) - cost, -STEEPEST), STEEPEST)

    def readable(self, log_loss: float) -> bool:
        """Whether the sign means something: not where both have left the range of floats, or the frontier ends."""
        loss = math.exp(log_loss)
        try:
            gain = -self.welfare.marginal_data_loss(self.frontier, loss)
        except InvalidLoss:
            return False
        return gain > UNDERFLOW or self.welfare.log_marginal_privacy_cost(loss) > math.log(UNDERFLOW)

    def range(self, bounds: Bounds) -> tuple[float, float]:
        """Logarithms of the losses to search between, widened until welfare rises at the low end and falls at the high.

        Widening stops at the limits, and where floats no longer tell gain from cost.
        """
        highest = math.log(bounds.highest or HIGHEST_START)
        lowest = math.log(bounds.lowest or min(LOWEST_START, math.exp(highest) * LOWEST_START))
        while highest > lowest and not self.readable(highest):
            highest -= math.log(2)
        while highest > lowest and not self.readable(lowest):
            lowest += math.log(2)
        if bounds.highest is None and math.isinf(self.welfare.most_privacy_cost):
            while highest < math.log(LARGEST_LOSS) and self(highest) > -CLOSE and self.readable(highest + math.log(10)):
                highest += math.log(10)
        if bounds.lowest is None:
            while lowest > math.log(SMALLEST_LOSS) and self(lowest) < CLOSE and self.readable(lowest - math.log(10)):
                lowest -= math.log(10)
        return lowest, highest


def _grid(gain: Callable[[float], float], lowest: float, highest: float) -> list[tuple[float, float]]:
    """Points, with the advantage there, between which it changes sign at most once.

    A logarithmic grid, refined where the curve nearly touches 0; exact zeros are left out, so that each lies between
    two points of opposite sign.
    """
    from scipy.optimize import minimize_scalar

    if lowest >= highest:
        return []
    count = max(LEAST_POINTS, math.ceil(POINTS_PER_DECADE * (highest - lowest) / math.log(10)))
    points = [(float(x), gain(float(x))) for x in np.linspace(lowest, highest, count + 1)]
    points = [(x, value) for x, value in points if value != 0]
    touching = []
    for (left, a), (_, b), (right, c) in zip(points, points[1:], points[2:], strict=False):
        side = math.copysign(1.0, b)
        if min(side * a, side * c) >= abs(b) and side * (a + c) - 2 * abs(b) > BENT:

            def distance(x: float, side: float = side) -> float:
                return side * gain(x)

            nearest = minimize_scalar(distance, bounds=(left, right), method="bounded", options={"xatol": 1e-10})
            if nearest.fun < 0:
                touching.append((float(nearest.x), side * float(nearest.fun)))
    return sorted([*points, *touching])


def _refuse_unbounded(frontier: Frontier, welfare: SocialWelfare, *, bounds: Bounds, best: LocalOptimum | None) -> None:
    """Refuse where some loss beyond every candidate is better: more and more loss, or none at all."""
    reached = -math.inf if best is None else best.welfare
    gain = Advantage(frontier, welfare)
    lowest, highest = gain.range(bounds)
    privacy_measure = frontier.privacy_measure

    def inside() -> str:
        if best is None:
            return ""
        gives = money(reached, welfare.currency)
        return f"; the best {privacy_measure} inside, {chosen_loss(best.epsilon)}, gives {gives}"

    if bounds.lowest is None:
        nothing = -math.inf if gain(lowest) > 0 else welfare.at(frontier, math.exp(lowest))
        if nothing > reached or (best is not None and _buys_nothing(frontier, welfare, best.epsilon)):
            raise NoOptimum(
                f"no {privacy_measure} is worth its cost: society is best off as it falls to 0{inside()}",
                why="every release costs more in privacy than the errors it removes",
                instead="publish nothing new, or state what errors in the tables cost",
            )
    if bounds.highest is not None:
        return
    if math.isfinite(welfare.most_privacy_cost):
        limit = -welfare.most_privacy_cost - _least_data_loss(frontier, welfare, math.exp(highest))
        if best is None or limit - reached > TIE * abs(limit):
            raise NoOptimum(
                f"welfare rises without limit of {privacy_measure}, to {money(limit, welfare.currency)} when "
                f"nothing is protected{inside()}",
                why="the cost of privacy loss is bounded, and exact tables are worth more than all of it",
                instead=f"state a legal cap (largest_{privacy_measure}), or a cost that grows with every unit of loss",
            )
    elif best is None:
        raise NoOptimum(
            f"welfare still rises at {privacy_measure} = {number(math.exp(highest), 3)}",
            why="privacy loss costs next to nothing beside the errors it removes",
            instead=f"state a legal cap (largest_{privacy_measure}), and check the units of the costs and values",
        )


def _buys_nothing(frontier: Frontier, welfare: SocialWelfare, loss: float) -> bool:
    """Whether a loss is next to none and errors are what they would be without any: floats alone have put it there.

    Where errors grow without bound as the loss falls, an optimum costs people about as much as its errors cost.
    """
    errors = welfare.data_loss(frontier, loss) - welfare.least_data_loss
    return loss < NO_LOSS and welfare.privacy_cost(loss) < NO_LOSS * errors


def _least_data_loss(frontier: Frontier, welfare: SocialWelfare, loss: float) -> float:
    """The data loss at unlimited privacy loss: existing errors alone, or what it has leveled off at."""
    data_loss, floor = welfare.data_loss(frontier, loss), welfare.least_data_loss
    falling = -welfare.marginal_data_loss(frontier, loss) * loss
    return floor if falling > FLAT * (data_loss - floor) else data_loss


@dataclass(frozen=True)
class Regret:
    """What society loses by one loss instead of the best one."""

    epsilon: float
    best_epsilon: float
    welfare: float  # USD
    best_welfare: float  # USD
    currency: str

    @property
    def multiple(self) -> float:
        """The loss as a multiple t of the best one."""
        return self.epsilon / self.best_epsilon

    @property
    def absolute(self) -> float:
        """Welfare lost, USD; ≥ 0 within the limits."""
        return self.best_welfare - self.welfare

    @property
    def relative(self) -> float:
        """Welfare lost as a share of what society loses at best."""
        return self.absolute / -self.best_welfare if self.best_welfare < 0 else math.inf

    def __str__(self) -> str:
        share = (
            f"{percent(round(self.relative, 4))} more"
            if self.relative < 1
            else f"{1 + self.relative:,.1f} times as much"
        )
        return (
            f"{number(self.epsilon, 6)} costs society {money(self.absolute, self.currency)} more than it must ({share})"
        )


def regret(
    frontier: Frontier,
    welfare: SocialWelfare,
    epsilon: float,
    *,
    limits: Limits | None = None,
    best: Choice | None = None,
) -> Regret:
    """What choosing `epsilon` loses against the optimum within the limits (`best`, where it is already known).

    With loss c/ε² and a linear cost, ε = t·ε* loses the share (2t + t⁻²)/3 − 1, whatever the parameters.
    """
    chosen = best or choose(frontier, welfare, limits)
    reached = welfare.at(frontier, epsilon)
    return Regret(positive_loss(epsilon), chosen.epsilon, reached, chosen.welfare, welfare.currency)


def regret_curve(
    frontier: Frontier,
    welfare: SocialWelfare,
    multiples: Iterable[float],
    *,
    limits: Limits | None = None,
    best: Choice | None = None,
) -> tuple[Regret, ...]:
    """Regret at multiples t of the optimum."""
    chosen = best or choose(frontier, welfare, limits)
    return tuple(regret(frontier, welfare, multiple * chosen.epsilon, best=chosen) for multiple in multiples)
