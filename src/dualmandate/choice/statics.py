"""How the choice moves with what it rests on: elasticities in every input, and the tornado of stated ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from dualmandate.choice.optimum import Advantage, Choice, Limits, choose
from dualmandate.choice.welfare import PopulationGroup, PosteriorCost, SocialWelfare, TableValue
from dualmandate.errors import InvalidLoss, InvalidPreferences, InvalidValue, NoOptimum, Refusal
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import derivative
from dualmandate.mechanism.mechanism import positive_loss
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.shown import one_line
from dualmandate.population.units import plural
from dualmandate.population.wording import number

Problem = tuple[SocialWelfare, Limits]
Rebuild = Callable[[SocialWelfare], Frontier]
SAME_LOSS = 1e-6  # Two losses that differ by less than this share are one.
REACH, NEAREST = (
    0.01,
    1e-4,
)  # A derivative looks this far in a logarithm; nearer to a limit less, but no less than this part.


@dataclass(frozen=True)
class Input:
    """One number that the choice rests on, and how to put another in its place."""

    name: str  # key of a program file; with the group or the table where there are several
    value: float
    unit: str
    change: Callable[[float], Problem]  # the problem with this number at another value


@dataclass(frozen=True)
class Elasticity:
    """Percent by which the chosen loss moves when an input rises by one percent."""

    name: str
    value: float
    unit: str
    elasticity: float


@dataclass(frozen=True)
class TornadoEnd:
    """The choice at one end of an input's range; `epsilon` is None where there is none, and `refusal` says why."""

    value: float
    epsilon: float | None
    refusal: str | None = None


@dataclass(frozen=True)
class TornadoRow:
    """How far the choice moves over the range of one input."""

    name: str
    value: float
    unit: str
    epsilon: float
    low: TornadoEnd
    high: TornadoEnd

    __repr__ = one_line

    @property
    def swing(self) -> float:
        """Distance between the two choices; infinite where an end has none."""
        if self.low.epsilon is None or self.high.epsilon is None:
            return math.inf
        return abs(self.high.epsilon - self.low.epsilon)


def inputs(
    welfare: SocialWelfare, limits: Limits | None = None, *, tables: Collection[str] | None = None
) -> tuple[Input, ...]:
    """Every number that the choice rests on, by the name it has in a program file; of all tables, or of some."""
    limits = limits or Limits()
    return (
        *(row for group in welfare.groups for row in _group_inputs(welfare, limits, group)),
        *(_table_input(welfare, limits, v) for v in welfare.table_values if tables is None or v.table in tables),
        *_price_inputs(welfare, limits),
        *_limit_inputs(welfare, limits),
    )


def comparative_statics(
    frontier: Frontier,
    welfare: SocialWelfare,
    limits: Limits | None = None,
    *,
    rebuild: Rebuild | None = None,
    tables: Collection[str] | None = None,
    chosen: Choice | None = None,
) -> tuple[Elasticity, ...]:
    """Elasticity of the chosen loss in every input: d ln ε*/d ln input; of all tables, or of some.

    Inside the limits by the implicit function theorem on ln(gain) = ln(cost); at a limit it is that of the limit. For
    c/ε² and a linear cost every elasticity is ±1/3. `rebuild` makes the frontier anew for changed preferences, where
    the technology is chosen by them (`split`, `envelope`). `chosen` is the choice, where it is already known.
    """
    limits = limits or Limits()
    best = chosen or choose(frontier, welfare, limits)
    log_loss = math.log(best.epsilon)

    def imbalance(log_change: float, row: Input) -> float:
        changed, _ = row.change(row.value * math.exp(log_change))
        return Advantage(rebuild(changed) if rebuild else frontier, changed)(log_loss)

    def moved(log_change: float, row: Input) -> float:
        changed, within = row.change(row.value * math.exp(log_change))
        bounds = within.bounds(rebuild(changed) if rebuild else frontier, changed)
        end = bounds.lowest if best.bound_by == "fitness for use" else bounds.highest
        return math.log(end or best.epsilon) - log_loss

    known = [row for row in inputs(welfare, limits, tables=tables) if row.value > 0]  # nothing has no percentage
    gap, falling = moved, -1.0
    if best.bound_by == "preferences":
        bounds = limits.bounds(frontier, welfare)
        room = [abs(math.log(end) - log_loss) for end in (bounds.lowest, bounds.highest) if end is not None]
        within = min([1.0, *(max(each / REACH, NEAREST) for each in room)])  # beyond a peak nothing has a slope
        slope = _derivative(lambda change: Advantage(frontier, welfare)(log_loss + change), within)
        gap, falling = imbalance, slope or -math.inf
    rows = []
    for row in known:
        try:
            slope = -_derivative(partial(gap, row=row)) / falling
        except Refusal:  # it has no room to move, as a belief next to certainty
            continue
        rows.append(Elasticity(row.name, row.value, row.unit, slope))
    return tuple(rows)


def tornado(
    frontier: Frontier,
    welfare: SocialWelfare,
    limits: Limits | None = None,
    *,
    ranges: Mapping[str, tuple[float, float]],
    rebuild: Rebuild | None = None,
    chosen: Choice | None = None,
) -> tuple[TornadoRow, ...]:
    """The choice at both ends of the range of each input that has one, widest first.

    `ranges` gives (low, high) by input name, in the input's unit: nothing is moved of which nobody said how far.
    """
    limits = limits or Limits()
    known = inputs(welfare, limits)
    unknown = sorted(set(ranges) - {row.name for row in known})
    if unknown:
        raise InvalidValue(
            f"a range is stated for '{unknown[0]}', which is not an input",
            why=f"the inputs are {', '.join(row.name for row in known)}",
            instead="state ranges for these",
        )
    epsilon = (chosen or choose(frontier, welfare, limits)).epsilon

    def end(row: Input, value: float) -> TornadoEnd:
        try:
            changed, changed_limits = row.change(value)
            there = choose(rebuild(changed) if rebuild else frontier, changed, changed_limits)
        except Refusal as refusal:
            return TornadoEnd(value, None, refusal.what)
        return TornadoEnd(value, there.epsilon)

    rows = [
        TornadoRow(row.name, row.value, row.unit, epsilon, *(end(row, value) for value in ranges[row.name]))
        for row in known
        if row.name in ranges
    ]
    return tuple(sorted(rows, key=lambda row: -row.swing))


def _derivative(function: Callable[[float], float], within: float = 1.0) -> float:
    """Derivative at 0 of a function of a change in a logarithm, from changes that are a part of the usual ones."""
    return derivative(lambda factor: function(within * math.log(factor)), 1.0) / within


def _group_inputs(welfare: SocialWelfare, limits: Limits, group: PopulationGroup) -> tuple[Input, ...]:
    def put(changed: PopulationGroup) -> Problem:
        groups = tuple(changed if member is group else member for member in welfare.groups)
        return replace(welfare, groups=groups), limits

    of = "" if len(welfare.groups) == 1 else f" of {group.name}"
    utility, unit = group.information_utility, welfare.protected_unit
    rows = []
    if (cost := utility.parameter) > 0:
        words = f"mean_disclosure_cost{of}"
        rows.append(Input(words, cost, utility.unit(unit, welfare.currency), lambda v: put(group.scaled(v / cost))))
    if isinstance(utility, PosteriorCost):

        def believing(prior: float) -> Problem:
            return put(replace(group, information_utility=replace(utility, prior=prior)))

        rows.append(Input(f"prior_probability{of}", utility.prior, "", believing))
    size = f"size{of}" if of else "population_size"
    rows.append(Input(size, group.size, plural(unit), lambda v: put(replace(group, size=v))))
    weight = group.relative_privacy_weight
    rows.append(
        Input(f"relative_privacy_weight{of}", weight, "", lambda v: put(replace(group, relative_privacy_weight=v)))
    )
    return tuple(rows)


def _table_input(welfare: SocialWelfare, limits: Limits, value: TableValue) -> Input:
    def put(amount: float) -> Problem:
        changed = replace(value, value=amount)
        if value.consequence is not None:
            price = (1.0 if value.price is None else value.price) * value.present_value
            paid = value.value / value.consequence if value.consequence else price
            changed = replace(value, consequence=amount, value=amount * paid)
        values = tuple(changed if member is value else member for member in welfare.table_values)
        return replace(welfare, table_values=values), limits

    of, money = "" if len(welfare.table_values) == 1 else f" of {value.table}", welfare.currency
    power = "^2" if value.measure == "squared" else ""
    if value.consequence is not None:
        return Input(f"consequence{of}", value.consequence, f"{money}{power} per {value.unit}{power}", put)
    name = "value_of_accuracy"
    if value.price is not None:  # of what a decision misallocates
        name = "price_of_squared_misallocation" if value.value_unit(money).endswith("^2") else "price_of_misallocation"
    return Input(f"{name}{of}", value.value, value.value_unit(money), put)


def _price_inputs(welfare: SocialWelfare, limits: Limits) -> tuple[Input, ...]:
    """The prices of consequences, one for all tables that share it."""
    names = {
        "squared": ("price_of_squared_misallocation", f"{welfare.currency} per {welfare.currency}^2"),
        "absolute": ("price_of_misallocation", f"{welfare.currency} per {welfare.currency}"),
    }
    rows = []
    for measure, (name, unit) in names.items():
        prices = dict.fromkeys(v.price for v in welfare.table_values if v.measure == measure and v.price is not None)
        for price in prices:
            if price is None:
                continue

            def put(amount: float, price: float = price, measure: str = measure) -> Problem:
                values = tuple(
                    value.at_price(amount) if (value.measure, value.price) == (measure, price) else value
                    for value in welfare.table_values
                )
                return replace(welfare, table_values=values), limits

            rows.append(Input(name if len(prices) == 1 else f"{name} {price:g}", price, unit, put))
    return tuple(rows)


def _limit_inputs(welfare: SocialWelfare, limits: Limits) -> tuple[Input, ...]:
    def put(key: str, amount: float) -> Problem:
        return welfare, replace(limits, **{key: amount})  # type: ignore[arg-type]

    def put_floor(key: str, table: str, amount: float) -> Problem:
        return welfare, replace(limits, **{key: {**getattr(limits, key), table: amount}})  # type: ignore[arg-type]

    rows = []
    for key, unit in (
        ("largest_epsilon", "epsilon"),
        ("largest_rho", "rho"),
        ("remaining", str(welfare.privacy_measure)),
    ):
        stated = getattr(limits, key)
        if stated is not None:
            rows.append(Input(key, float(stated), unit, partial(put, key)))
    units = {value.table: plural(value.unit) for value in welfare.table_values}
    for key, name in (("floors", "error"), ("consequence_floors", "consequence")):
        for table, largest in getattr(limits, key).items():
            unit = units.get(table, "") if name == "error" else welfare.currency
            words = f"largest_root_mean_squared_{name} of {table}"
            rows.append(Input(words, largest, unit, partial(put_floor, key, table)))
    return tuple(rows)


@dataclass(frozen=True)
class Implied:
    """The preference under which a given loss balances gain and cost.

    `rationalizes` says whether that loss is then the optimum: where welfare is not concave, balance may also mean a
    trough, or a lower peak.
    """

    name: str  # key of a program file
    value: float
    unit: str
    factor: float  # `value` over what is stated now
    rationalizes: bool

    def __str__(self) -> str:
        verdict = "" if self.rationalizes else "; but even then another loss would be better"
        return f"{self.name} = {number(self.value, 7)} {self.unit}{verdict}".replace(" ;", ";").rstrip()


def implied_weight(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """η, one for everybody, under which `epsilon` is chosen: marginal data loss over marginal cost of privacy."""
    equal = _with_weight(welfare, 1.0)
    gain, cost = _margins(frontier, equal, epsilon)
    weight = gain / cost
    stated = {group.relative_privacy_weight for group in welfare.groups}
    factor = weight / stated.pop() if len(stated) == 1 and 0 not in stated else math.nan
    rationalizes = _is_optimal(frontier, _with_weight(welfare, weight), epsilon)
    return Implied("relative_privacy_weight", weight, "", factor, rationalizes)


def implied_cost(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """The mean disclosure cost under which `epsilon` is chosen, every group's cost scaled alike."""
    gain, cost = _margins(frontier, welfare, epsilon)
    forms = {group.information_utility.form for group in welfare.groups}
    if len(forms) > 1:
        raise InvalidPreferences(
            f"groups differ in form: {', '.join(sorted(forms))}",
            why="their costs are in different units and have no mean",
            instead="ask for the implied weight",
        )
    factor = gain / cost
    total = math.fsum(group.size * group.information_utility.parameter for group in welfare.groups)
    scaled = replace(welfare, groups=tuple(group.scaled(factor) for group in welfare.groups))
    mean, utility = total / welfare.population_size, welfare.groups[0].information_utility
    unit = utility.unit(welfare.protected_unit, welfare.currency)
    rationalizes = _is_optimal(frontier, scaled, epsilon)
    return Implied("mean_disclosure_cost", factor * mean, unit, factor, rationalizes)


def implied_price(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """The price of squared misallocation under which `epsilon` is chosen; tables without a price keep their value."""
    gain, cost = _margins(frontier, welfare, epsilon)
    slopes = welfare.table_marginal_losses(frontier, epsilon)
    priced = [value for value in welfare.table_values if value.price is not None and value.measure == "squared"]
    prices = {value.price for value in priced}
    priced_gain = -math.fsum(slopes[value.table] for value in priced)
    if len(prices) != 1 or priced_gain <= 0:
        raise InvalidPreferences(
            "no one price of squared misallocation is stated",
            why="only consequences in squared money that share a price imply one",
            instead="state consequence and price_of_squared_misallocation, or ask for the implied weight or cost",
        )
    needed = cost - (gain - priced_gain)
    if needed < 0:
        raise InvalidPreferences(
            f"no price makes {frontier.privacy_measure} = {epsilon:g} the right choice",
            why="tables that have no price are alone worth more loss than that",
            instead="ask for the implied weight or cost",
        )
    price = (prices.pop() or 0.0) * needed / priced_gain
    values = tuple(value.at_price(price) if value in priced else value for value in welfare.table_values)
    rationalizes = _is_optimal(frontier, replace(welfare, table_values=values), epsilon)
    unit = f"{welfare.currency} per {welfare.currency}^2"
    return Implied("price_of_squared_misallocation", price, unit, needed / priced_gain, rationalizes)


def implied_coefficient_ratio(first: PrivacyLoss, second: PrivacyLoss) -> Fraction:
    """How much more the tables behind the first loss must be worth than those behind the second.

    Two releases to the same people, at one linear cost of loss: with errors c/ρ each chooses c/ρ² = cost, so the
    value-weighted coefficients stand as (ρ₁/ρ₂)²; with errors c/ε² as (ε₁/ε₂)³. No frontier is needed for this ratio;
    a weight or a cost cannot be had without one.
    """
    if first.privacy_measure is not second.privacy_measure or first.failure_probability or second.failure_probability:
        raise InvalidLoss(
            f"{first} cannot be compared with {second}",
            why="the two losses must be in one currency, without δ",
            instead="state both in rho, or both in epsilon",
        )
    return (first.amount / second.amount) ** (2 if first.privacy_measure is PrivacyMeasure.ZCDP else 3)


def _with_weight(welfare: SocialWelfare, weight: float) -> SocialWelfare:
    groups = tuple(replace(group, relative_privacy_weight=weight) for group in welfare.groups)
    return replace(welfare, groups=groups)


def _margins(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> tuple[float, float]:
    """What one more unit of loss saves and costs, USD; both above 0."""
    positive_loss(epsilon)
    welfare.check(frontier)
    gain, cost = -welfare.marginal_data_loss(frontier, epsilon), welfare.marginal_privacy_cost(epsilon)
    if not (0 < gain < math.inf and 0 < cost < math.inf):
        raise InvalidPreferences(
            f"at {frontier.privacy_measure} = {epsilon:g} one more unit saves {gain:g} and costs {cost:g}",
            why="a choice implies a preference only where it weighs something against something",
            instead="state costs and values above 0",
        )
    return gain, cost


def _is_optimal(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> bool:
    try:
        best = choose(frontier, welfare)
    except NoOptimum:
        return False
    return math.isclose(best.epsilon, epsilon, rel_tol=SAME_LOSS)
