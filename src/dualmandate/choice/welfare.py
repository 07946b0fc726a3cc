"""Social welfare in dollars: what privacy loss costs people, and what errors in the tables cost society.

W(ε) = − Σ_g η_g·N_g·κ_g(ε) − Σ_t b_t·loss_t(ε), the paper's social welfare function divided by (1 − φ), so that it is
counted in dollars of data loss. Source: Abowd and Schmutte 2019, sections IV and V.

What privacy loss costs one protected unit, κ(ε) in USD, has four forms, each with a parameter in its own unit. Linear
is the paper's reading of Ghosh and Roth; exponential is the worst case when utility is a cost; bounded is the worst
case when it is a loss of something one has; posterior prices what a stranger may come to believe. The logarithm of κ'
is kept apart, because e^ε and e^−ε leave the range of floats long before the search for the optimum ends.

Calibrated numbers become parts of welfare in the unit that their place asks for, or are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, Protocol, Self

from dualmandate.errors import IncompatibleUnits, InvalidPreferences, MissingKey
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.participation import ParticipationResponse
from dualmandate.mechanism import Measure
from dualmandate.mechanism.mechanism import power_of
from dualmandate.population import Calibrated, PrivacyMeasure, Units
from dualmandate.population.arguments import checked_class, expected, named_twice
from dualmandate.population.currency import DEFAULT
from dualmandate.population.shown import one_line
from dualmandate.population.wording import number

PRIVACY_SHARES = 1e-9  # Shares of groups add up to 1 within this.
FORMS = ("linear", "exponential", "bounded", "posterior")
LARGEST_EXPONENT = 709.0  # e^709 is still a float.


class InformationUtility(Protocol):
    """Cost of privacy loss to one protected unit (minus the paper's v^Info); increasing, 0 at no loss."""

    @property
    def form(self) -> str:
        """The word for it in a program file."""

    @property
    def parameter(self) -> float:
        """The mean disclosure cost, ≥ 0, in the unit of the form."""

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What the loss is counted in."""

    @property
    def convex(self) -> bool:
        """Whether each further unit of loss costs more than the last: one optimum then, on a concave frontier."""

    @property
    def most(self) -> float:
        """The cost when nothing is protected, USD; infinite where it has no bound."""

    def cost(self, loss: float) -> float:
        """κ, USD; infinite where it exceeds the range of floats."""

    def marginal_cost(self, loss: float) -> float:
        """κ', USD per unit of loss."""

    def log_marginal_cost(self, loss: float) -> float:
        """ln κ'; −∞ where the parameter is 0."""

    def scaled(self, factor: float) -> InformationUtility:
        """The same form with its parameter multiplied."""

    def unit(self, protected_unit: str, currency: str) -> str:
        """The unit of the parameter, in words."""


@dataclass(frozen=True)
class _Cost:
    """What the forms of cost share: one parameter, and a slope that is read off its logarithm."""

    parameter: float

    def __post_init__(self) -> None:
        expected(self.parameter, Real, what="a cost", instead="state it as a number, as LinearCost(1_400)")
        if not math.isfinite(self.parameter) or self.parameter < 0:
            raise InvalidPreferences(
                f"a disclosure cost of {self.parameter}",
                why="privacy loss is a bad: it costs a finite amount, and not less than nothing",
                instead="state a finite cost of at least 0",
            )

    @property
    def most(self) -> float:
        return math.inf if self.parameter > 0 else 0.0

    def marginal_cost(self, loss: float) -> float:
        exponent = self.log_marginal_cost(loss)
        return math.exp(exponent) if exponent <= LARGEST_EXPONENT else math.inf

    def log_marginal_cost(self, loss: float) -> float:
        raise NotImplementedError

    def scaled(self, factor: float) -> Self:
        return replace(self, parameter=self.parameter * factor)

    def unit(self, protected_unit: str, currency: str) -> str:
        return f"{currency} per {protected_unit}"


@checked_class
@dataclass(frozen=True)
class LinearCost(_Cost):
    """Each unit of loss costs the same, k USD: κ = k·ε. Source: Abowd and Schmutte 2019, section IV."""

    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
    form = "linear"
    convex = True

    def cost(self, loss: float) -> float:
        return self.parameter * loss

    def marginal_cost(self, loss: float) -> float:  # noqa: ARG002 - the same at every loss
        return self.parameter

    def log_marginal_cost(self, loss: float) -> float:  # noqa: ARG002 - the same at every loss
        return _log(self.parameter)

    def unit(self, protected_unit: str, currency: str) -> str:
        return f"{currency} per {protected_unit} per {self.privacy_measure}"


@dataclass(frozen=True)
class ExponentialCost(_Cost):
    """Odds of harm may rise by the factor e^ε: κ = k·(e^ε − 1), k USD the expected harm when absent from the data."""

    form = "exponential"
    convex = True
    privacy_measure = PrivacyMeasure.PURE_DP

    def cost(self, loss: float) -> float:
        if self.parameter == 0:
            return 0.0  # 0 × ∞ is not a number
        return self.parameter * math.expm1(loss) if loss <= LARGEST_EXPONENT else math.inf

    def log_marginal_cost(self, loss: float) -> float:
        return _log(self.parameter) + loss


@dataclass(frozen=True)
class BoundedCost(_Cost):
    """At most everything can be lost: κ = k·(1 − e^−ε), k USD all that can be lost. Welfare is then not concave."""

    form = "bounded"
    convex = False
    privacy_measure = PrivacyMeasure.PURE_DP

    @property
    def most(self) -> float:
        return self.parameter

    def cost(self, loss: float) -> float:
        return -self.parameter * math.expm1(-loss)

    def log_marginal_cost(self, loss: float) -> float:
        return _log(self.parameter) - loss


@dataclass(frozen=True)
class PosteriorCost(_Cost):
    """What a stranger may come to believe is priced: κ = h·(q(ε) − p), q = p/(p + (1 − p)·e^−ε), κ' = h·q·(1 − q).

    h is in USD per certain disclosure, p what was believed before, strictly between 0 and 1. Welfare is then not
    concave. p → 0 with h·p fixed is the exponential form; p = ½ is (h/2)·tanh(ε/2).
    """

    prior: float
    form = "posterior"
    convex = False
    privacy_measure = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.prior < 1:
            raise InvalidPreferences(
                f"a prior of {self.prior}",
                why="who is already certain learns nothing",
                instead="state a prior strictly between 0 and 1",
            )

    @property
    def most(self) -> float:
        return self.parameter * (1 - self.prior)

    def belief(self, loss: float) -> float:
        """q, the most that someone with the prior may come to believe; a probability."""
        return self.prior / (self.prior + (1 - self.prior) * math.exp(-loss))

    def cost(self, loss: float) -> float:
        # q − p = p·(1 − p)·(1 − e^−ε)/(p + (1 − p)·e^−ε): no cancellation at small losses.
        odds = self.prior + (1 - self.prior) * math.exp(-loss)
        return self.parameter * self.prior * (1 - self.prior) * -math.expm1(-loss) / odds

    def log_marginal_cost(self, loss: float) -> float:
        logit = math.log(self.prior) - math.log1p(-self.prior) + loss
        return _log(self.parameter) - abs(logit) - 2 * math.log1p(math.exp(-abs(logit)))

    def unit(self, protected_unit: str, currency: str) -> str:
        return f"{currency} per {protected_unit} per disclosure"


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


class DataLoss(Protocol):
    """A loss from errors that is not a multiple of a table's expected error; USD, decreasing in privacy loss."""

    def at(self, frontier: Frontier, loss: float, /) -> float:
        """The loss, USD; infinite where it has no bound."""

    def slope(self, frontier: Frontier, loss: float, /) -> float:
        """Its derivative, USD per unit of privacy loss; ≤ 0."""

    @property
    def least(self) -> float:
        """What is left of it when tables are exact, USD."""

    def scaled(self, factor: float) -> DataLoss:
        """A multiple (> 0) of it: what one group bears, or what one of several scenarios adds to the mean."""

    @property
    def table(self) -> str | None:
        """The table it rests on, if it is one table."""

    @property
    def privacy_measure(self) -> PrivacyMeasure | None:
        """What privacy loss must be counted in; None where either will do."""


@checked_class
@dataclass(frozen=True)
class TableValue:
    """What errors in one table cost society: `value` (b_t) times the expected error of the table.

    Squared loss: b_t in USD per squared `unit`, on Σ E[error²]. Absolute loss: b_t in USD per `unit`, on Σ E|error|.
    Any other measure of the table's errors (`frontier.measures`): b_t in USD per `unit` to the power that it counts in.
    `grid` is the size in `unit` of one step of the published answers (1 for counts; sums are in grid units).
    """

    table: str
    value: float  # b_t, ≥ 0
    measure: Measure = "squared"
    unit: str = "person"
    consequence: float | None = None  # USD² per unit² (squared) or USD per unit (absolute): b_t before its price
    price: float | None = None  # USD per USD² (squared) or a pure number (absolute)
    present_value: float = 1.0  # of 1 that comes as often as errors do: b_t = consequence × price × this
    grid: float = 1.0
    existing_squared_error: float = 0.0  # Σ of squared sampling and other errors already there, unit²; moves nothing
    parts: tuple[tuple[str, float], ...] = ()  # of a ratio: tables whose errors, each times a factor, make up its own
    squared_bias: float = 0.0  # Σ of the expected squares of what clipping leaves out, unit²; moves nothing
    query_count: int = 1  # how many numbers it has; asked where absolute errors have a bias
    relative_bias: float = 0.0  # the same, of each number as a share of what is expected; counts where errors do so

    __repr__ = one_line

    def __post_init__(self) -> None:
        existing = self.existing_squared_error, self.squared_bias, self.relative_bias
        numbers = (self.value, self.consequence or 0.0, self.price or 0.0, *existing)
        if any(not math.isfinite(number) or number < 0 for number in numbers):
            raise InvalidPreferences(
                f"the value {self.value} of accuracy in table '{self.table}'",
                why="errors cost a finite amount, and not less than nothing",
                instead="state finite numbers of at least 0",
            )
        if not (math.isfinite(self.grid) and self.grid > 0):
            raise InvalidPreferences(
                f"a grid of {self.grid} in table '{self.table}'",
                why="one step of an answer has a size",
                instead="state a grid above 0",
            )
        if self.existing_squared_error and self.measure != "squared":
            raise InvalidPreferences(
                f"existing errors in table '{self.table}' with a loss that is not squared",
                why="independent errors add up squared, not in absolute value or in any other way",
                instead="use squared loss, or RootMeanSquaredLoss",
            )

    @property
    def value_per_step(self) -> float:
        """b_t for errors counted in steps of the grid, as a frontier counts them: what `split` and `envelope` need."""
        return self.value * self.grid ** power_of(self.measure)

    @property
    def least(self) -> float:
        """What the errors cost that noise does not make, USD; a bias under absolute loss at most in full: E|Z + B|
        ≤ E|Z| + E|B|, and Σ E|B| is at most √(numbers·Σ E[B²]). Of other measures only shares of what is expected add
        up with a bias: tails, worst errors and decisions are of noise alone."""
        if self.measure == "absolute":
            return self.value * math.sqrt(self.query_count * self.squared_bias)
        if self.measure == "squared":
            return self.value * (self.existing_squared_error + self.squared_bias)
        return self.value * self.relative_bias

    def error(self, errors: Mapping[str, float]) -> float:
        """Its expected error (or the slope of it) from those of the tables that a frontier produces."""
        return math.fsum(factor * errors[part] for part, factor in self.parts) if self.parts else errors[self.table]

    def value_unit(self, currency: str) -> str:
        """The unit of `value`."""
        if isinstance(self.measure, str):
            return f"{currency} per {self.unit}" + ("^2" if self.measure == "squared" else "")
        counted = self.measure.unit(self.unit, currency)
        return f"{currency} per {counted}" if counted else currency

    def scaled(self, factor: float) -> TableValue:
        """The same table with its value multiplied, and its consequence with it."""
        size = None if self.consequence is None else self.consequence * factor
        return replace(self, value=self.value * factor, consequence=size)

    def at_price(self, price: float) -> TableValue:
        """The same consequence at another price; refused where no consequence was stated."""
        if self.consequence is None:
            raise InvalidPreferences(
                f"table '{self.table}' has a value of accuracy, not a consequence with a price",
                why="only a consequence can be priced",
                instead="state the consequence of errors in this table",
            )
        return replace(self, value=self.consequence * price * self.present_value, price=price)

    def squared_consequence(self, mean_squared_error: float) -> float | None:
        """Mean squared consequence of a mean squared error in `unit`², USD²; None where no consequence was stated."""
        if self.consequence is None:
            return None
        return (self.consequence if self.measure == "squared" else self.consequence**2) * mean_squared_error


@dataclass(frozen=True)
class RootMeanSquaredLoss:
    """Society pays by the size of typical errors: price·√(σ² + Σ E[error²]); existing errors σ² then matter."""

    table: str
    price: float  # USD per unit of root summed squared error, ≥ 0
    existing_squared_error: float = 0.0  # σ², unit², ≥ 0
    privacy_measure = None

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) and number >= 0 for number in (self.price, self.existing_squared_error)):
            raise InvalidPreferences(
                f"a price of {self.price} for typical errors in table '{self.table}'",
                why="errors cost a finite amount, and not less than nothing",
                instead="state finite numbers of at least 0",
            )

    def at(self, frontier: Frontier, loss: float, /) -> float:
        return self.price * math.sqrt(self.existing_squared_error + frontier.table_errors(loss)[self.table])

    def slope(self, frontier: Frontier, loss: float, /) -> float:
        level = math.sqrt(self.existing_squared_error + frontier.table_errors(loss)[self.table])
        return self.price * frontier.table_slopes(loss)[self.table] / (2 * level) if level > 0 else 0.0

    @property
    def least(self) -> float:
        return self.price * math.sqrt(self.existing_squared_error)

    def scaled(self, factor: float) -> RootMeanSquaredLoss:
        return replace(self, price=self.price * factor)


@dataclass(frozen=True)
class PopulationGroup:
    """People with the same preferences: how many they are, what loss costs each, and their weight in society.

    Only those who take part lose privacy: the share r(ε) of them where a `response` is stated. One of the group then
    bears r·κ in expectation, and (r·κ)′ = r·κ′ + r′·κ of one more unit of loss.
    """

    name: str
    size: float  # N_g protected units, > 0
    information_utility: InformationUtility
    relative_privacy_weight: float = 1.0  # η_g, pure number, ≥ 0
    response: ParticipationResponse | None = None  # how many of them take part; all where there is none

    def __post_init__(self) -> None:
        if not (math.isfinite(self.size) and self.size > 0):
            raise InvalidPreferences(
                f"group '{self.name}' has {self.size:g} members",
                why="a group that is empty bears nothing",
                instead="state a size above 0, or leave the group out",
            )
        _weight(self.relative_privacy_weight, f" of group '{self.name}'")

    @property
    def weighted_size(self) -> float:
        """η_g·N_g."""
        return self.relative_privacy_weight * self.size

    def taking_part(self, loss: float) -> float:
        """r, the share of them who take part."""
        return 1.0 if self.response is None else 1 / self.response.weight(loss)

    def cost(self, loss: float) -> float:
        """r·κ, USD: what a loss costs one of them in expectation."""
        return self.taking_part(loss) * self.information_utility.cost(loss)

    def marginal_cost(self, loss: float) -> float:
        """(r·κ)′, USD per unit of loss; below 0 where so many leave that fewer lose privacy in all."""
        return self.information_utility.marginal_cost(loss) * self.borne(loss)

    def borne(self, loss: float) -> float:
        """(r·κ)′/κ′ = r·(1 − |r′|/r·κ/κ′): what part of κ′ one of them bears, less what those who leave are spared."""
        if self.response is None:
            return 1.0
        marginal = self.information_utility.marginal_cost(loss)
        worth = self.information_utility.cost(loss) / marginal if 0 < marginal < math.inf else 1.0
        return self.taking_part(loss) * (1 - worth * self.response.slope(loss) / self.response.weight(loss))

    def scaled(self, factor: float) -> PopulationGroup:
        """The same people, to whom a loss costs a multiple."""
        return replace(self, information_utility=self.information_utility.scaled(factor))


def groups_by_share(
    population_size: float, shares: Mapping[str, tuple[float, InformationUtility, float]]
) -> tuple[PopulationGroup, ...]:
    """Groups by name from (share of the population, information utility, relative privacy weight)."""
    total = math.fsum(share for share, _, _ in shares.values())
    if abs(total - 1) > PRIVACY_SHARES:
        raise InvalidPreferences(
            f"the shares of the groups add up to {number(total, 6)}",
            why="everybody belongs to one group",
            instead="state shares that add up to 1",
        )
    return tuple(
        PopulationGroup(name, share * population_size, cost, weight) for name, (share, cost, weight) in shares.items()
    )


@dataclass(frozen=True)
class CostPart:
    """What privacy loss costs some groups, and errors in some tables cost society: a part of social welfare.

    Parts are told apart where they rise and fall by themselves as preferences change.
    """

    groups: tuple[PopulationGroup, ...] = ()
    table_values: tuple[TableValue, ...] = ()
    other_losses: tuple[DataLoss, ...] = ()

    @property
    def most_privacy_cost(self) -> float:
        """What society loses when nothing is protected, USD; infinite where it has no bound."""
        return math.fsum(group.weighted_size * group.information_utility.most for group in self._weighed)

    @property
    def least_data_loss(self) -> float:
        """What society loses when the tables are exact: what existing errors cost, USD."""
        tables = [value.least for value in self.table_values]
        return math.fsum([*tables, *(other.least for other in self.other_losses)])

    def privacy_cost(self, loss: float) -> float:
        """Σ η_g·N_g·r_g·κ_g, USD; ≥ 0."""
        return math.fsum(group.weighted_size * group.cost(loss) for group in self._weighed)

    def marginal_privacy_cost(self, loss: float) -> float:
        """Σ η_g·N_g·(r_g·κ_g)′, USD per unit of loss; ≥ 0 where everybody takes part."""
        return math.fsum(group.weighted_size * group.marginal_cost(loss) for group in self._weighed)

    def log_marginal_privacy_cost(self, loss: float) -> float:
        """Logarithm of `marginal_privacy_cost`, also where that leaves the range of floats; −∞ at 0 and below."""
        logs = [(math.log(g.weighted_size) + g.information_utility.log_marginal_cost(loss), g) for g in self._weighed]
        largest = max((value for value, _ in logs), default=-math.inf)
        if largest == -math.inf:
            return largest
        total = math.fsum(math.exp(value - largest) * group.borne(loss) for value, group in logs)
        return largest + math.log(total) if total > 0 else -math.inf

    @property
    def endless(self) -> float:
        """What it costs as the loss grows without limit, USD; infinite where that has no bound."""
        return self.most_privacy_cost + self.least_data_loss

    @property
    def empty(self) -> bool:
        """Whether it costs nothing at any loss."""
        free = all(g.weighted_size * g.information_utility.parameter == 0 for g in self.groups)
        return free and all(value.value == 0 for value in self.table_values) and not self.other_losses

    def scaled(self, multiple: float) -> CostPart:
        """The same part with all its costs and values multiplied."""
        if multiple == 1:
            return self
        return CostPart(
            tuple(group.scaled(multiple) for group in self.groups),
            tuple(value.scaled(multiple) for value in self.table_values),
            tuple(other.scaled(multiple) for other in self.other_losses if multiple > 0),
        )

    def table_data_losses(self, frontier: Frontier, loss: float) -> dict[str, float]:
        """What errors in each table cost, existing ones included, USD."""
        errors = {measure: frontier.table_errors(loss, measure) for measure in self._measures}
        return {t.table: t.value_per_step * t.error(errors[t.measure]) + t.least for t in self.table_values}

    def data_loss(self, frontier: Frontier, loss: float) -> float:
        """Σ b_t·loss_t and the other losses, USD; ≥ 0."""
        others = [other.at(frontier, loss) for other in self.other_losses]
        return math.fsum([*self.table_data_losses(frontier, loss).values(), *others])

    def table_marginal_losses(self, frontier: Frontier, loss: float) -> dict[str, float]:
        """Derivative of the cost of errors in each table, USD per unit of loss; ≤ 0."""
        slopes = {measure: frontier.table_slopes(loss, measure) for measure in self._measures}
        return {t.table: t.value_per_step * t.error(slopes[t.measure]) for t in self.table_values}

    def marginal_data_loss(self, frontier: Frontier, loss: float) -> float:
        """Derivative of `data_loss`, USD per unit of privacy loss; ≤ 0."""
        others = [other.slope(frontier, loss) for other in self.other_losses]
        return math.fsum([*self.table_marginal_losses(frontier, loss).values(), *others])

    def at(self, frontier: Frontier, loss: float) -> float:
        """Welfare W, USD; ≤ 0, higher is better."""
        return -self.privacy_cost(loss) - self.data_loss(frontier, loss)

    def slope(self, frontier: Frontier, loss: float) -> float:
        """W', USD per unit of loss."""
        return -self.marginal_privacy_cost(loss) - self.marginal_data_loss(frontier, loss)

    @property
    def convex(self) -> bool:
        """Whether more loss costs ever more at the margin, and errors in proportion to each table's expected error."""
        costs = (group.information_utility for group in self._weighed)
        errors = all(isinstance(measure, str) or measure.convex for measure in self._measures)
        return (
            errors and not self.other_losses and all(isinstance(cost, LinearCost | ExponentialCost) for cost in costs)
        )

    @property
    def _weighed(self) -> tuple[PopulationGroup, ...]:
        return tuple(group for group in self.groups if group.weighted_size > 0)  # 0 × ∞ is not a number

    @property
    def _measures(self) -> tuple[Measure, ...]:
        return tuple(dict.fromkeys(value.measure for value in self.table_values))


@checked_class
@dataclass(frozen=True)
class SocialWelfare(CostPart):
    """What society loses at each privacy loss; welfare is minus that, in USD.

    One group and one table give the paper's case. `other_losses` are losses from errors that are not proportional to
    a table's expected error.
    """

    protected_unit: str = "person"
    currency: str = DEFAULT  # of all costs and values

    __repr__ = one_line

    def __post_init__(self) -> None:
        if not self.groups or not (self.table_values or self.other_losses):
            raise InvalidPreferences(
                "preferences over privacy or over accuracy are missing",
                why="a choice weighs one against the other",
                instead="state at least one group and the value of at least one table",
            )
        for words, names in (("group", [g.name for g in self.groups]), ("table", [t.table for t in self.table_values])):
            twice = named_twice(names)
            if twice is not None:
                raise InvalidPreferences(
                    f"the {words} '{twice}' is stated twice", why="it would count double", instead="state it once"
                )
        if len({group.information_utility.privacy_measure for group in self.groups}) > 1:
            raise IncompatibleUnits(
                "some groups count privacy loss in epsilon and some in rho",
                why="one release has one privacy loss",
                instead="state every cost in one of the two",
            )

    @classmethod
    def uniform(
        cls,
        population_size: float,
        information_utility: InformationUtility,
        *,
        table_values: tuple[TableValue, ...],
        relative_privacy_weight: float = 1.0,
        protected_unit: str = "person",
    ) -> SocialWelfare:
        """Everybody alike: N people with the mean disclosure cost."""
        everybody = PopulationGroup("everybody", population_size, information_utility, relative_privacy_weight)
        return cls((everybody,), table_values, protected_unit=protected_unit)

    @property
    def population_size(self) -> float:
        """N, all groups together."""
        return math.fsum(group.size for group in self.groups)

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What privacy loss is counted in."""
        return self.groups[0].information_utility.privacy_measure

    def mean_disclosure_cost(self, loss: float) -> float:
        """k̄: population-weighted mean of κ', without the weights η; USD per protected unit per unit of loss."""
        total = math.fsum(group.size * group.marginal_cost(loss) for group in self.groups)
        return total / self.population_size

    def value_of_accuracy(self, frontier: Frontier, loss: float) -> float:
        """b̄, USD per unit of accuracy at the margin: marginal data loss over the frontier's own slope.

        With one table of squared loss it is b_t; with several, the mean of b_t weighted by how fast each improves.
        """
        gained = frontier.marginal_rate_of_transformation(loss)
        return -self.marginal_data_loss(frontier, loss) / gained if gained > 0 else 0.0

    def as_at(self, loss: float) -> SocialWelfare:
        """The same society if those who take part at a loss did so at every loss."""
        groups = (replace(group, size=group.size * group.taking_part(loss), response=None) for group in self.groups)
        return replace(self, groups=tuple(groups))

    def willingness_to_accept(self, frontier: Frontier, loss: float) -> float:
        """WTA = Σ η_g·N_g·κ'_g / b̄, accuracy per unit of loss: equals MRT exactly where W' = 0."""
        value = self.value_of_accuracy(frontier, loss)
        return self.marginal_privacy_cost(loss) / value if value > 0 else math.inf

    def check(self, frontier: Frontier) -> None:
        """Refuse preferences that do not fit what the frontier produces."""
        for privacy_measure in (self.privacy_measure, *(other.privacy_measure for other in self.other_losses)):
            if privacy_measure not in (None, frontier.privacy_measure):
                raise IncompatibleUnits(
                    f"losses are stated per {privacy_measure}, the frontier is in {frontier.privacy_measure}",
                    why="epsilon and rho are different dimensions",
                    instead=f"state them per {frontier.privacy_measure}, or express the frontier in {privacy_measure}",
                )
        stated = {value.table for value in self.table_values if not value.parts}
        parts = (part for value in self.table_values for part, _ in value.parts)
        named = [*stated, *parts, *(other.table for other in self.other_losses if other.table is not None)]
        unknown = sorted(set(named) - set(frontier.tables))
        unvalued = [] if self.other_losses else [table for table in frontier.tables if table not in stated]
        if unknown or unvalued:
            raise InvalidPreferences(
                f"table '{(unknown or unvalued)[0]}' is {'valued but not produced' if unknown else 'not valued'}",
                why=f"the frontier produces {', '.join(frontier.tables)}",
                instead="state the value of accuracy of every table; 0 where its errors cost nothing",
            )


def population_size(quantity: Calibrated, units: Units) -> float:
    """Number of protected units, N; a public constant."""
    size = quantity.to(units.singular, units).value
    if size < 1:
        raise InvalidPreferences(
            f"a population of {size:g} {units.plural}",
            why=f"there is no less than one {units.singular}, and nobody's privacy would be weighed",
            instead="state how many there are: in units, not in thousands or as a share",
        )
    return size


def information_utility(
    form: str,
    mean_disclosure_cost: Calibrated,
    *,
    units: Units,
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
    prior: float | None = None,
) -> InformationUtility:
    """What privacy loss costs one protected unit, by the form's name; the cost must be in the unit of that form."""
    if form not in FORMS:
        raise InvalidPreferences(
            f"the information utility '{form}' is not known",
            why=f"the forms are {', '.join(FORMS)}",
            instead="choose one of them",
        )
    if form != "linear" and privacy_measure is not PrivacyMeasure.PURE_DP:
        raise InvalidPreferences(
            f"the {form} form counts a loss in {privacy_measure}",
            why="it is a statement about odds, and odds are bounded by epsilon",
            instead='use "linear" with a cost per rho, or express the frontier in epsilon at a failure_probability',
        )
    if (form == "posterior") != (prior is not None):
        raise InvalidPreferences(
            f"the {form} form is stated {'without' if prior is None else 'with'} a prior",
            why="the posterior form, and only it, starts from what was believed before",
            instead="state prior_probability, between 0 and 1" if prior is None else "leave prior_probability out",
        )
    expected = f"{units.currency} per {units.singular}" + (f" per {privacy_measure}" if form == "linear" else "")
    if not units.agree(mean_disclosure_cost.unit, expected):
        raise IncompatibleUnits(
            f"the {form} form has a cost in '{mean_disclosure_cost.unit}'",
            why=f"its parameter is in {expected}; the unit differs with the form",
            instead=f"state mean_disclosure_cost in '{expected}', or choose the form that its unit belongs to",
        )
    cost = mean_disclosure_cost.to(expected, units).value
    if prior is not None:
        return PosteriorCost(cost, prior)
    if form == "linear":
        return LinearCost(cost, privacy_measure)
    return ExponentialCost(cost) if form == "exponential" else BoundedCost(cost)


def table_value(
    table: str,
    *,
    units: Units,
    unit: str | None = None,
    loss: Literal["squared", "absolute"] = "squared",
    value_of_accuracy: Calibrated | None = None,
    consequence: Calibrated | None = None,
    price: Calibrated | None = None,
    present_value: float = 1.0,
) -> TableValue:
    """What errors in one table cost society, b_t: stated directly, or as a consequence times its price.

    `unit` is what the table counts (the protected unit unless stated). Squared loss: `value_of_accuracy` in USD per
    unit², or `consequence` in USD² per unit² × `price` in USD per USD². Absolute loss: USD per unit, and a price, if
    any, is a pure number; a price of squared dollars does not concern it. Either is multiplied by `present_value`: what
    1 is worth that comes as often.
    """
    counted, money = unit or units.singular, units.currency
    if (value_of_accuracy is None) == (consequence is None):
        raise MissingKey(
            f"table '{table}' has {'no value' if consequence is None else 'two values'}",
            why="what its errors cost decides how much privacy loss it is worth",
            instead="state exactly one of value_of_accuracy and consequence",
        )
    one_word = counted.isidentifier()
    per_unit = (f"{counted}^2" if one_word else f"({counted})^2") if loss == "squared" else counted
    if value_of_accuracy is not None:
        stated = value_of_accuracy.to(f"{money} per {per_unit}", units).value
        return TableValue(table, stated * present_value, measure=loss, unit=counted, present_value=present_value)
    assert consequence is not None
    if loss == "absolute":
        size = consequence.to(f"{money} per {per_unit}", units).value
        pure = price is not None and units.agree(price.unit, f"{money} per {money}")
        harm = price.to(f"{money} per {money}", units).value if price is not None and pure else None
        worth = size * (1.0 if harm is None else harm) * present_value
        return TableValue(table, worth, loss, counted, size, harm, present_value)
    if units.agree(consequence.unit, f"{money} per {per_unit}"):
        raise IncompatibleUnits(
            f"the consequence of table '{table}' is in '{consequence.unit}'",
            why=f"a consequence is in squared {money}, and its price turns it into {money}",
            instead=f"call it value_of_accuracy: it is in {money} already",
        )
    squared = consequence.to(f"{money}^2 per {per_unit}", units).value
    if price is None:
        raise IncompatibleUnits(
            f"the consequence of table '{table}' is in '{consequence.unit}'",
            why=f"squared {money} cannot be added to {money}; state price_of_squared_misallocation",
            instead=f'state price_of_squared_misallocation in "{money} per {money}^2": half the absolute risk aversion '
            f"per {money}",
        )
    per_squared = price.to(f"{money} per {money}^2", units).value
    worth = squared * per_squared * present_value
    return TableValue(table, worth, loss, counted, squared, per_squared, present_value)


def relative_weight(relative_privacy_weight: float | None = None, privacy_weight: float | None = None) -> float:
    """The weight η of privacy against accuracy, from η itself or from φ = η/(1 + η); 1 where neither is stated."""
    if relative_privacy_weight is not None and privacy_weight is not None:
        raise InvalidPreferences(
            f"relative_privacy_weight {relative_privacy_weight:g} and privacy_weight {privacy_weight:g} both stated",
            why="they are two ways to say one thing: η = φ/(1 − φ)",
            instead="state one of them",
        )
    if privacy_weight is not None:
        if not 0 <= privacy_weight < 1:
            raise InvalidPreferences(
                f"a privacy_weight of {privacy_weight:g}",
                why="φ is a share: at 1 accuracy would count for nothing",
                instead="state 0 ≤ privacy_weight < 1",
            )
        return privacy_weight / (1 - privacy_weight)
    return 1.0 if relative_privacy_weight is None else _weight(relative_privacy_weight)


def _weight(weight: float, whose: str = "") -> float:
    if not math.isfinite(weight) or weight < 0:
        raise InvalidPreferences(
            f"the relative_privacy_weight{whose} is {weight:g}",
            why="privacy cannot count for less than nothing, nor for all",
            instead="state a finite number of at least 0",
        )
    return weight
