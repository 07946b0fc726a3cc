"""A plan as the JSON document `plan/1`: its keys, and how they are filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dualmandate.errors import InvalidLoss
from dualmandate.report.documents.document import (
    AnyLoss,
    Cost,
    Count,
    CurrencyName,
    Digest,
    DocumentModel,
    Epsilon,
    Exact,
    IfAny,
    LossPart,
    Money,
    NotNegative,
    NotPositive,
    Number,
    Pair,
    Positive,
    Schema,
    Several,
    Share,
    Text,
    Welfare,
    Whether,
    Words,
)

if TYPE_CHECKING:
    from dualmandate.choice import SocialChoices, SurveyValue, UncertainChoice
    from dualmandate.planning.clipping import BoundCurve
    from dualmandate.planning.comparison import Comparison
    from dualmandate.planning.extensions import Extensions
    from dualmandate.planning.measures import MeasuredLoss, WealthWorth
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.uncertainty import Uncertainty

POINTS = 60  # At most this many points of the frontier, in equal steps of the logarithm, besides the choice itself.
REACH = 10.0  # The frontier is shown from a tenth of the chosen loss to ten times it.

LossMeasure = Literal["squared", "absolute", "relative", "tail", "worst-case"]
StrategyName = Literal["optimized", "workload", "identity", "partition", "multiplicative weights", "adaptive marginals"]
BoundBy = Literal[
    "preferences", "largest epsilon", "largest rho", "fitness for use", "ledger", "participation", "simulation"
]


class HorizonPart(DocumentModel):
    """How amounts that come every year add up to one amount today."""

    years: Positive = Field(description="For how long they come.")
    discount_rate: NotNegative = Field(description="By how much a year makes money worth less.")
    source: Text = Field(description="As in the program file.")
    present_value: Positive = Field(description="What 1 a year is worth today.")


class ProgramPart(DocumentModel):
    """The program that was planned."""

    name: Text = Field(description="As in the program file.")
    description: Text | None = Field(description="As in the program file.")
    account: Text = Field(description="Whose privacy is spent: an account of the ledger.")
    account_identifier: Text | None = Field(
        None, description="Which account of that name: of the project's ledger; null where there was none."
    )
    unit: Text = Field(description="Who is protected.")
    population_size: Positive = Field(description="In units.")
    currency: Text = Field("USD", description="Of all money in this document: a code of ISO 4217.")
    time_base: Text | None = Field(None, description="Over what time all money runs; null where no amount says.")
    horizon: HorizonPart | None = Field(None, description="Where yearly amounts count as what they are worth today.")
    seen_in_the_data: tuple[Text, ...] = Field(
        (), description="What the program file took from the records, by its key; the guarantee does not cover it."
    )
    digest: Digest = Field(description="SHA-256 over what the program file says.")
    file: IfAny[Text] = Field(None, description="Where the program file lies, from the folder of the plan.")


class ChosenPart(DocumentModel):
    """The loss that was chosen, in the program's currency."""

    exact: Exact
    currency: CurrencyName


class PlannedLossPart(LossPart):
    """What a release spends."""

    amount: Positive = Field(description="The number nearest to it.")
    failure_probability: Number | None = Field(description="δ of the mechanism; null where it has none.")
    chosen: ChosenPart
    allocation: dict[str, Exact] = Field(description="The loss of each group of tables that is measured together.")


class LocalOptimumPart(DocumentModel):
    """A loss at which welfare turns, or at which a limit stops it."""

    epsilon: Epsilon
    welfare: Welfare
    kind: Text = Field(description="A maximum, a minimum or an end.")
    bound_by: BoundBy | None = Field(None, description="What stops it there.")


class ChoicePart(DocumentModel):
    """The privacy loss to choose, what it buys and what it costs."""

    epsilon: Epsilon
    currency: CurrencyName
    loss: Exact = Field(description="The same as an exact number, rounded so that no promise is broken.")
    accuracy: NotPositive = Field(description="Minus the expected squared error of all tables, weighted.")
    root_mean_squared_error: Number | None = Field(description="In the tables' unit; null where they differ in it.")
    root_mean_squared_consequence: Money | None = Field(description="Money; null where no table states one.")
    welfare: Welfare
    privacy_cost: Cost
    data_loss: Cost = Field(description="Money, at least 0: what errors cost.")
    marginal_rate_of_transformation: Number = Field(
        description="MRT, accuracy per unit of loss; below 0 where people stay away and tables peak apart."
    )
    willingness_to_accept: Number | None = Field(description="WTA, accuracy per unit of loss.")
    local_optima: tuple[LocalOptimumPart, ...]
    bound_by: BoundBy = Field(description="What decides: preferences, or the limit that was met first.")
    explanation: Words


class SensitivityPart(DocumentModel):
    """By how much one unit can move what is measured."""

    norm: Text = Field(description="In which distance.")
    power: Exact = Field(description="The sensitivity in L1, its square in L2.")
    exact: Whether = Field(description="Whether some pair of neighbors is that far apart.")
    words: Words


class MechanismPart(DocumentModel):
    """How the tables will be produced."""

    asked: Text = Field(description="The noise that the program names.")
    noise: Text = Field(description="The noise in use.")
    strategy: StrategyName = Field(description="What is measured.")
    measured: Text | tuple[tuple[Text, ...], ...] = Field(description="As in the program file.")
    sensitivity: dict[str, SensitivityPart] = Field(description="By group of tables.")


class FrontierPointPart(DocumentModel):
    """The frontier and welfare at one loss."""

    loss: Positive = Field(description="In the frontier's currency.")
    accuracy: NotPositive = Field(description="Minus the expected squared error.")
    marginal_rate_of_transformation: Number = Field(description="Accuracy per unit of loss.")
    willingness_to_accept: Number | None = Field(
        description="Accuracy per unit of loss; null where errors cost nothing any more."
    )
    privacy_cost: Cost
    data_loss: Cost
    welfare: Welfare
    technology: Text = Field(description="The technology that is best there.")


class FrontierPart(DocumentModel):
    """How much accuracy each loss buys."""

    name: Text = Field(description="Of the frontier.")
    currency: CurrencyName
    points: Several[FrontierPointPart]


class PlannedTablePart(DocumentModel):
    """A table, and how wrong its numbers will be."""

    name: Text = Field(description="As in the program file.")
    by: tuple[Text, ...] = Field(description="The attributes that it is broken down by.")
    sums: dict[str, Literal["prefix", "ranges"] | tuple[tuple[Text, ...], ...]] = Field(
        description="How levels are added up in their order, by attribute: up to each level, or over ranges of levels."
    )
    where: dict[str, tuple[Text, ...]] = Field(description="The levels that are counted, by attribute.")
    unit: Text = Field(description="Of its numbers.")
    clipped: Text | None = Field(None, description="What its numbers are where amounts or records are clipped.")
    query_count: Count = Field(description="How many numbers it has.")
    measured_in: Text = Field(description="The group of tables that it is measured with.")
    loss_measure: Literal["squared", "absolute", "relative", "tail", "worst-case"] = Field(
        description="How its errors count."
    )
    root_mean_squared_error: NotNegative = Field(description="Of one number, in its unit: of noise.")
    bias: NotNegative | None = Field(None, description="What clipping leaves out of one number, root mean squared.")
    root_mean_squared_error_with_bias: NotNegative | None = Field(None, description="Noise and bias of one number.")
    half_width: NotNegative = Field(description="What 95 in 100 numbers are off by at most, in its unit.")
    exact: Whether = Field(False, description="Whether public totals decide it, so that no noise reaches it.")
    band: IfAny[Pair[NotNegative]] = Field(
        None, description="Of a simulated error, 95 %: as far as simulation may be off."
    )
    stated_half_width: NotNegative | None = Field(
        None, description="What the 95 % intervals of a simulated release state, in the median, in its unit."
    )
    root_mean_squared_consequence: Money | None = Field(description="Of one number, in money.")
    data_loss: Cost


class PlannedRatioPart(DocumentModel):
    """A ratio of two tables, and how wrong it will be: linearized at levels that are public."""

    name: Text = Field(description="As in the program file.")
    numerator: Text = Field(description="The table whose numbers are divided.")
    denominator: Text = Field(description="The table that they are divided by.")
    unit: Text = Field(description="Of its numbers.")
    query_count: Count = Field(description="How many numbers it has.")
    method: Literal["linearized"] = Field(description="How its errors were worked out.")
    typical_value: NotNegative = Field(description="At which it is linearized, in its unit.")
    typical_denominator: Positive = Field(description="The same of its denominator: the mean, in that table's unit.")
    denominator_error: NotNegative = Field(
        description="Of the noisiest denominator, as a share of it: from a tenth on, errors are larger than linearized."
    )
    root_mean_squared_error: NotNegative = Field(description="Of one number, in its unit, linearized.")
    half_width: NotNegative = Field(description="What 95 in 100 numbers are off by at most, in its unit, linearized.")
    root_mean_squared_consequence: Money | None = Field(description="Of one number, in money, linearized.")
    data_loss: Cost = Field(description="Money: what its errors cost, as if both tables were measured apart.")


class GroupPart(DocumentModel):
    """People who bear the same cost of privacy loss."""

    name: Text = Field(description="As in the program file.")
    size: Positive = Field(description="In units.")
    relative_privacy_weight: NotNegative = Field(description="Of their privacy against accuracy.")
    cost_per_member: Cost
    privacy_cost: Cost = Field(description="Money, at least 0: of all of them.")
    taking_part: Share = Field(1.0, description="Share of them who take part, and bear that cost.")


class TechnologyPart(DocumentModel):
    """A technology, and what would be chosen with it alone."""

    noise: Text = Field(description="The law of its noise.")
    strategy: StrategyName = Field(description="What is measured.")
    measured: Text = Field(
        "together",
        description="What shares a measurement; with `evenly` or `by value`, each table has a share set by hand.",
    )
    study: Whether = Field(False, description="Whether its noise is not drawn exactly: compared, never published.")
    chosen: Whether = Field(description="Whether it is the one in use.")
    why_not: Text | None = Field(description="Why it cannot serve the program.")
    epsilon: AnyLoss | None
    welfare: Money | None = Field(description="Money: what society then loses, at most 0.")
    root_mean_squared_error: Number | None = Field(description="In the tables' unit.")
    root_mean_squared_consequence: Money | None
    bound_by: BoundBy | None = Field(description="What decides.")


class StrategyPart(DocumentModel):
    """What is measured for a group of tables, where it is neither the tables nor the cells."""

    group: Text = Field(description="Its tables.")
    words: Words
    rows: Count = Field(description="How many numbers are measured.")
    weights: Several[Exact] = Field(description="Of its kinds of rows.")
    digest: Digest
    error_coefficient: Positive = Field(description="Expected squared error over the variance of the noise.")
    lower_bound: NotNegative = Field(description="No strategy has a smaller coefficient.")
    bound: Text = Field(description="Which bound that is.")
    gap: Text = Field(description="How far from it the strategy is, in words.")


class NaivePart(DocumentModel):
    """Plain noise on the tables, and what would be chosen with it alone."""

    noise: Text = Field(description="The law of its noise.")
    strategy: StrategyName = Field(description="What is measured.")
    measured: Text = Field(
        "together",
        description="What shares a measurement; with `evenly` or `by value`, each table has a share set by hand.",
    )
    study: Whether = Field(False, description="Whether its noise is not drawn exactly: compared, never published.")
    why_not: Text | None = Field(description="Why it cannot serve the program.")
    epsilon: AnyLoss | None
    welfare: Money | None = Field(description="Money: what society then loses, at most 0.")
    root_mean_squared_error: Number | None = Field(None, description="In the tables' unit.")
    root_mean_squared_consequence: Money | None = Field(None, description="Money.")


class CostsPart(DocumentModel):
    """What errors cost under each technology; null where that is not known."""

    naive: Money | None = Field(description="Money: plain noise on the tables.")
    used: Cost = Field(description="Money: the technology in use.")
    optimized: Money | None = Field(description="Money: the optimized strategy with the noise in use.")
    least: Money | None = Field(description="Money: none of the technologies in `least_valid_for` costs less.")


class CostsPointPart(DocumentModel):
    """The same at one loss."""

    loss: Positive = Field(description="In the program's currency.")
    naive: Money | None
    used: Cost
    optimized: Money | None
    least: Money | None


class SavingPart(DocumentModel):
    """What the technology in use saves."""

    naive: NaivePart
    by_value: NaivePart | None = Field(None, description="The same in shares by value; null for one table.")
    welfare_gained: Money | None = Field(None, description="Money: what the technology in use is worth to society.")
    welfare_gained_by_value: Money | None = Field(None, description="Money: the same against shares by value.")
    saved: Money | None = Field(description="Money, at the choice, against plain noise on the tables.")
    at_choice: CostsPart
    least_valid_for: Text | None = Field(description="Which technologies the lower bound holds for.")
    least_lost: Money | None = Field(
        None, description="Money: what privacy and errors cost society at least, at any privacy loss."
    )
    points: tuple[CostsPointPart, ...]


class GroupLossPart(DocumentModel):
    """The loss of some units whose records change together."""

    label: Text = Field(description="Whose.")
    units: Count = Field(description="How many change together.")
    exact: Exact | None = Field(description="Null where nothing is guaranteed any more.")
    currency: CurrencyName | None
    words: Words


class GuaranteePart(DocumentModel):
    """The guarantee as it is printed."""

    protected: Text = Field(description="Who is protected.")
    indistinguishable: Text = Field(description="Which files cannot be told apart.")
    not_protected: tuple[Text, ...] = Field(description="What is not protected at all.")
    losses: tuple[GroupLossPart, ...]
    beliefs: tuple[Text, ...] = Field(description="What the loss means to a person.")
    assumption: Text = Field(description="What all of it assumes.")


class RegretPart(DocumentModel):
    """What choosing another loss would cost."""

    multiple: Positive = Field(description="Of the chosen loss.")
    epsilon: Epsilon
    welfare: Welfare
    absolute: Money
    relative: Number = Field(description="The same as a share of what is lost at best.")


class TornadoEndPart(DocumentModel):
    """One end of what is stated of an input, and what would be chosen there."""

    value: Number = Field(description="Of the input.")
    epsilon: AnyLoss | None
    refusal: Text | None = Field(description="Why nothing can be chosen there.")


class TornadoPart(DocumentModel):
    """How far the choice moves over what is stated of one input."""

    input: Text = Field(description="Its name.")
    value: Number = Field(description="As stated, in its unit.")
    unit: Text = Field(description="Of the input.")
    epsilon: Epsilon
    low: TornadoEndPart
    high: TornadoEndPart


class ElasticityPart(DocumentModel):
    """By how many percent the choice moves when one input rises by one percent."""

    input: Text = Field(description="Its name.")
    value: Number = Field(description="As stated, in its unit.")
    unit: Text = Field(description="Of the input.")
    elasticity: Number = Field(description="Percent per percent.")


class ReadingPart(DocumentModel):
    """Another way to read the program, and what would then be chosen on the same frontier."""

    reading: Text = Field(description="What is read otherwise, in words.")
    parameter: Text = Field(description="The key that is read otherwise.")
    value: Number | None = Field(description="What it then is; null where a form is read otherwise, not a number.")
    unit: Text | None = Field(description="Of the value.")
    source: Text | None = Field(description="As in the program file; null where the plan itself asks.")
    epsilon: AnyLoss | None
    loss: Exact | None = Field(description="The same as an exact number, as it would be spent.")
    bound_by: BoundBy | None = Field(description="What decides.")
    why_not: Text | None = Field(description="Why nothing can be chosen.")


class RobustnessPart(DocumentModel):
    """How sure the choice is, as far as the program says how sure its numbers are."""

    judged: Whether = Field(description="Whether an error, a range or another reading of some number is stated.")
    interval: Pair[Positive | None] | None = Field(
        description="Where the best loss lies with probability 95 %, an end without a bound as null; null where no "
        "number states an error."
    )
    exact: tuple[Text, ...] = Field(description="Numbers taken as exact: nothing is stated of their errors.")
    words: tuple[Text, ...] = Field(description="The same for people.")


class PublicTotalPart(DocumentModel):
    """A public total, and what the choice costs in all beside it."""

    amount: Positive = Field(description="In money.")
    time_base: Text | None = Field(description="The time it covers.")
    source: Text = Field(description="As in the program file.")
    privacy_cost_times: NotNegative = Field(description="What privacy loss costs, over the total.")
    data_loss_times: NotNegative = Field(description="What errors cost, over the total.")
    words: tuple[Text, ...] = Field(description="The same for people.")


class ParticipationPart(DocumentModel):
    """How many still take part."""

    rate: Positive = Field(description="Share of people who take part at the choice.")
    rate_without_loss: Positive = Field(description="Share who would if nothing could be learned about them.")
    truthful: Positive = Field(1.0, description="Of those, the share that reports the truth at the choice.")
    truthful_without_loss: Positive = Field(1.0, description="The share that would if nothing could be learned.")
    peak: Number | None = Field(description="The loss beyond which accuracy falls; null where it never does.")
    assumed_totals: tuple[Text, ...] = Field(description="Tables whose total is not stated: everybody is counted.")
    source: Text = Field(description="As in the program file.")


class VerdictPart(DocumentModel):
    """Whether a table, or a detail of it, earns its place."""

    name: Text = Field(description="Of the candidate.")
    table: Text = Field(description="Of which table.")
    detail: Text | None = Field(description="Which detail of it; null for the table as stated.")
    value: Cost = Field(description="Money: what publishing it is worth.")
    price: Cost = Field(description="Money: what publishing it costs, at the price of the last unit of loss.")
    published: Whether = Field(description="Whether it earns its place.")
    epsilon: AnyLoss | None = Field(description="What it spends.")
    errors: Money | None = Field(description="Money: what its errors then cost.")


class OfferingPart(DocumentModel):
    """Which tables earn their place: advice, the plan is for all tables as stated."""

    epsilon: NotNegative = Field(description="What those that do spend together.")
    net: Cost = Field(description="Money: what society gains by them.")
    bound: Cost = Field(description="Money: no set of tables is worth more.")
    exact: Whether = Field(description="Whether every set was looked at or ruled out.")
    tables: Several[VerdictPart]


class NoOfferingPart(DocumentModel):
    """Tables cannot be priced."""

    why_not: Text = Field(description="The reason.")


class PathReleasePart(DocumentModel):
    """One of the releases to come."""

    year: NotNegative = Field(description="From now.")
    epsilon: Epsilon
    alone: Positive = Field(description="The loss that would be chosen if it were the only one.")
    privacy_cost: Cost
    data_loss: Cost


class PathPart(DocumentModel):
    """Releases to come that share one account."""

    total: Positive = Field(description="The loss of all of them.")
    cap: Number | None = Field(description="On that total; null where there is none.")
    price: Cost = Field(description="Money per unit of loss: what a wider cap would be worth.")
    welfare: Welfare
    releases: Several[PathReleasePart]


class InstitutionPart(DocumentModel):
    """What one institution would choose, pay and cost."""

    institution: Text = Field(description="Its name; the planner is the first.")
    epsilon: Number | None = Field(description="The privacy loss that it chooses.")
    accuracy: Number | None = Field(description="At most 0, on the program's frontier.")
    payment: Money | None = Field(description="Money to one person; the mean where they differ.")
    total: Money | None = Field(description="Money to all.")
    welfare: Money | None = Field(description="Money: society's.")
    forgone: Money | None = Field(description="Money: the planner's welfare less this; null for the planner.")
    one_count: Whether = Field(description="Whether it buys one count of everybody, not the program's tables.")
    why: Text = Field(description="What it is, or why it chooses nothing.")


class RenewalPart(DocumentModel):
    """A new release every so many years."""

    years: Count = Field(description="Between two releases.")
    epsilon: Epsilon
    service: Positive = Field(description="Years' worth of use of each release, discounted and depreciated.")
    worth: Money = Field(description="Money of today: what all releases are worth; a year where nothing is discounted.")


class SamplePart(DocumentModel):
    """How many people it pays to ask: advice, the plan is for everybody's records."""

    share: Positive = Field(description="Of the people.")
    respondents: Positive = Field(description="How many that are.")
    epsilon: NotNegative = Field(description="The loss of each who is asked.")
    tables: tuple[Text, ...] = Field(description="That are worth collecting for; all where not each states its worth.")
    collection_cost: Cost = Field(description="Money: of asking them.")
    net: Money = Field(description="Money: welfare, with what tables are worth where stated, less the cost of asking.")
    everybody: Money = Field(description="Money: the same when everybody is asked.")
    gained: Money = Field(description="Money: the difference.")
    amplified: Number | None = Field(description="ε of everybody if nobody knew who was asked; not counted on.")


class LocalPart(DocumentModel):
    """The better local technology on the same tables: a study, not drawn here."""

    technology: Text = Field(description="Randomized response, or unary encoding where it would do better.")
    other: Text | None = Field(description="Which of the two would do worse; null for two cells.")
    epsilon: AnyLoss | None = Field(description="What it would choose; null where it cannot.")
    truth_probability: Number | None = Field(
        description="Of randomized response: how often the true answer is then reported for sure."
    )
    other_bit_probability: Number | None = Field(
        description="Of unary encoding: how often the bit of a level that is not one's own is then reported as 1."
    )
    root_mean_squared_error: Number | None = Field(description="In the tables' unit; null where they differ in it.")
    welfare: Money | None
    forgone: Money | None = Field(description="Money: the plan's welfare less this.")
    times: Number | None = Field(description="What errors cost at the plan's own loss, relative to the plan.")
    why_not: Text | None = Field(description="Why it cannot choose.")
    source: Text = Field(description="As in the program file.")


class SimulationErrorPart(DocumentModel):
    """A number that rests on simulated releases."""

    value: Number
    standard_error: NotNegative
    lower: Number = Field(description="Of its interval of 95 %, as far as simulation goes.")
    upper: Number


class SimulatedTechnologyPart(DocumentModel):
    """A technology on public records."""

    technology: Text = Field(description="As in the program file.")
    why_not: Text | None = Field(description="Why it does not apply.")
    errors: tuple[SimulationErrorPart, ...] = Field(
        description="At each simulated loss: what its errors cost, relative to those of the plan's noise there."
    )
    epsilon: SimulationErrorPart | None = Field(description="What it would choose alone; null where it cannot.")
    gained: SimulationErrorPart | None = Field(description="Money: welfare at that, less the plan's.")
    bias: Number | None = Field(
        description="Share of its squared error at the choice that is bias: the same in every release."
    )
    at_end: Whether = Field(description="Whether it would choose beyond what was simulated.")


class SimulationPart(DocumentModel):
    """Technologies whose errors depend on the data, simulated on records that anybody may see."""

    records: Count = Field(description="Of the public file, those that fit.")
    population: Count = Field(description="Records that they were scaled to.")
    source: Text = Field(description="As in the program file.")
    repetitions: Count = Field(description="Releases of each technology at each loss.")
    losses: tuple[Positive, ...] = Field(description="In the program's currency.")
    measures: tuple[Text, ...] = Field(description="By which errors count; no ranking holds without them.")
    technologies: tuple[SimulatedTechnologyPart, ...]
    used: Text | None = Field(None, description="The technology that the program states, and the plan uses.")


class SecretPointPart(DocumentModel):
    """The frontier counted by what a secret loses."""

    loss: Positive = Field(description="Of the secret.")
    epsilon: Positive = Field(description="For one record.")
    accuracy: NotPositive = Field(description="Minus the expected squared error.")


class SecretPart(DocumentModel):
    """What the privacy loss means for a secret of a group."""

    group: Text = Field(description="As in the program file.")
    members: Count = Field(description="Of a group.")
    loss: Positive = Field(description="By e to this the odds of the secret can move at the choice.")
    group_loss: Positive = Field(description="The same however records depend on each other.")
    wasserstein: Count = Field(description="How far noise must hide what the group counts, in records.")
    chosen: SecretPointPart | None = Field(description="What would be chosen if costs were of this loss.")
    points: Several[SecretPointPart]
    source: Text = Field(description="As in the program file.")


class ExistingErrorPart(DocumentModel):
    """An error that was there before noise."""

    table: Text = Field(description="Whose numbers have it.")
    unit: Text = Field(description="Of these numbers.")
    before: Positive = Field(description="Root mean squared error of one number without noise, in the unit.")
    noise: NotNegative = Field(description="What noise adds alone, in the unit.")
    added: Number = Field(description="By which share noise widens the error that was there.")
    sampling: Whether = Field(False, description="Whether it is that of a draw from a superpopulation.")


class PromisePart(DocumentModel):
    """What another mechanism promises of any data."""

    mechanism: Text = Field(description="Its name.")
    worst_error: NotNegative = Field(description="In the table's unit.")


class MeasuredLossPart(DocumentModel):
    """What the errors of a table amount to, where they are neither squared nor absolute, or a decision reads it."""

    table: Text = Field(description="Its name.")
    loss: Literal["relative", "tail", "worst-case", "decision"] = Field(description="How its errors count.")
    amount: NotNegative = Field(
        description="Squared errors as shares of what is expected, summed; how many numbers are expected to be off by "
        "more than the threshold; the worst error; or what a decision misallocates."
    )
    unit: str = Field(strict=True, description="Of the amount; empty where it is a pure number.")
    value: NotNegative = Field(description="Money: what one unit of the amount costs.")
    threshold: IfAny[NotNegative] = Field(None, description="Of tail loss, in the table's unit.")
    miss_probability: IfAny[Positive] = Field(None, description="Of worst-case loss.")
    promised: IfAny[NotNegative] = Field(None, description="The worst error that a release promises.")
    falls_at: IfAny[Positive] = Field(None, description="The next loss of the program at which that falls.")
    falls_to: IfAny[NotNegative] = Field(None, description="And to what.")
    multiplicative_weights: IfAny[tuple[PromisePart, ...]] = Field(None, description="At the same loss.")
    given_out: IfAny[NotNegative] = Field(None, description="Money, by the decision with exact numbers.")
    band: IfAny[Pair[Number]] = Field(None, description="Of simulation, 95 %, around the amount.")
    simulated_to: IfAny[Positive] = Field(None, description="The largest privacy loss that was simulated.")


class TaylorPart(DocumentModel):
    """How far the value of accuracy, which holds for small risks, is off at the choice; for one person."""

    largest_s: NotNegative = Field(description="Risk in units of what ruins: at 1 the exact cost is infinite.")
    exact: Number | None = Field(description="Money: the exact cost of noise; null where it is infinite.")
    taylor: NotNegative = Field(description="Money: the cost by the value of accuracy.")
    trustworthy: Whether = Field(description="Whether the two are within five percent.")
    words: Words


class WealthPart(DocumentModel):
    """People whose wealth hangs on a table, and what its accuracy is worth to them."""

    table: Text = Field(description="Its name.")
    name: Text = Field(description="Of the group.")
    people: Positive = Field(description="How many they are.")
    exposure: Positive = Field(description="Money per unit of a number.")
    exposed_to: Literal["one", "all"] = Field(description="One number each, or every one.")
    risk_aversion: Positive = Field(description="Absolute, per unit of money.")
    value_of_accuracy: Positive = Field(description="Money per squared unit of the table, of all of them.")
    taylor: TaylorPart | None = Field(description="Null where the noise has no closed form for it.")


class BoundRowPart(DocumentModel):
    """What one bound would do at the loss of the plan."""

    bound: Number = Field(description="In its unit.")
    noise: NotNegative = Field(description="Root mean squared error of one number of the table, of noise.")
    bias: NotNegative | None = Field(description="The same of what is left out; null where that is not known.")
    both: NotNegative | None = Field(description="The same of both.")
    cost: Cost = Field(description="Money: what errors cost in all tables that rest on the bound.")


class BoundPart(DocumentModel):
    """Error against a bound: the upper one of an amount, or the most records of a unit."""

    name: Text = Field(description="The attribute, or `records`.")
    unit: Text = Field(description="Of the bound.")
    bound: Number = Field(description="In use.")
    chosen: Whether = Field(description="Whether the plan chose it.")
    recommended: Number | None = Field(description="The bound at which errors cost least; null where not known.")
    table: Text = Field(description="Whose errors are shown.")
    table_unit: Text = Field(description="Of these errors.")
    source: Text | None = Field(description="Of the distribution; null where none is stated.")
    assumed: tuple[Text, ...] = Field(description="Attributes over which records are taken to spread evenly.")
    rows: Several[BoundRowPart]


class UncertainNumberPart(DocumentModel):
    """A number of the program that is not known exactly."""

    name: Text = Field(description="As in the tornado.")
    unit: Text = Field(description="That welfare counts it in.")
    value: Positive = Field(description="The mean of what is believed of it.")
    standard_error: Number | None = Field(description="In its unit; null where a range is stated.")
    least: Number | None = Field(description="The lower end of its range.")
    largest: Number | None = Field(description="The upper end of its range.")


class QuantilePart(DocumentModel):
    """A quantile of the best loss."""

    probability: Share = Field(description="That the best loss is at most this.")
    epsilon: AnyLoss | None = Field(description="Null where none is too large.")


class DistributionPart(DocumentModel):
    """The best loss as a distribution."""

    epsilon: Epsilon = Field(description="What is best now, at the expected costs.")
    level: Share = Field(description="Of the interval.")
    interval: Pair[Number | None] = Field(
        description="Where the best loss lies with that probability; null for an end that has no bound."
    )
    median: Number | None = Field(description="Of the best loss; null where no loss would be too large.")
    mean: Number | None = Field(description="Of the best loss; null where no loss may be too large.")
    at_lowest: Share = Field(description="Probability that the best loss is the lowest allowed.")
    at_highest: Share = Field(
        description="Probability that the best loss is the highest allowed; without a limit, that none is too large."
    )
    quantiles: tuple[QuantilePart, ...]


class RegretQuantilePart(DocumentModel):
    """A quantile of the regret."""

    probability: Share = Field(description="That regret is at most this.")
    regret: Cost


class ExpectedRegretPart(DocumentModel):
    """What not knowing costs."""

    value_of_perfect_information: Cost = Field(description="Money: what it would be worth to know exactly.")
    expected_cost: Cost = Field(description="Money: what society loses in expectation.")
    quantiles: tuple[RegretQuantilePart, ...]


class SurveyValuePart(DocumentModel):
    """What another survey is worth."""

    respondents: Count = Field(description="How many are asked.")
    spread_of_answers: Positive = Field(description="Standard deviation of the logarithm of one answer.")
    parameter: Text = Field(description="The number that is asked for.")
    value: Cost = Field(description="Money: expected.")
    share_of_perfect: NotNegative = Field(description="The same as a share of knowing exactly.")


class CornerPart(DocumentModel):
    """One extreme state of preferences."""

    values: dict[str, Number] = Field(description="Of the numbers that are not agreed on.")
    epsilon: Epsilon
    regret: Number = Field(description="Of the robust choice there.")
    binding: Whether = Field(description="Whether it is the worst, or as bad as the worst.")


class RobustPart(DocumentModel):
    """The loss whose worst regret is least."""

    epsilon: Epsilon
    regret: Number = Field(description="The worst: money, or a share of what is lost at best.")
    corners: Several[CornerPart]


class UncertaintyPart(DocumentModel):
    """What follows from numbers that are not known exactly."""

    numbers: Several[UncertainNumberPart]
    words: tuple[Text, ...] = Field(description="The same for people.")
    distribution: IfAny[DistributionPart] = None
    regret: IfAny[ExpectedRegretPart] = None
    survey: IfAny[SurveyValuePart] = None
    best_survey: IfAny[SurveyValuePart] = None
    minimax_regret: IfAny[RobustPart] = None
    minimax_relative_regret: IfAny[RobustPart] = None
    why_not: IfAny[Text] = Field(None, description="Why that cannot be worked out.")


class PeakPart(DocumentModel):
    """What a group wants."""

    group: Text = Field(description="Its name.")
    size: Positive = Field(description="In units.")
    epsilon: AnyLoss | None = Field(description="The loss it wants most; null where that has no place.")
    wants: Literal["this", "more", "none"] = Field(description="That loss, ever more, or none at all.")
    single_peaked: Whether = Field(description="Whether it likes a loss the less the farther it is from there.")


class RulePart(DocumentModel):
    """What one rule of social choice chooses."""

    rule: Text = Field(description="Its name.")
    epsilon: AnyLoss | None
    welfare: Money | None
    gains: dict[str, Number] = Field(description="Money: what one member of each group gains.")
    words: Words


class MajorityPart(DocumentModel):
    """Votes between losses, two at a time."""

    options: tuple[Positive, ...] = Field(description="The losses that are voted on.")
    votes: tuple[tuple[NotNegative, ...], ...] = Field(description="How many prefer one (row) to another (column).")
    winner: AnyLoss | None = Field(description="The loss that beats every other.")
    cycle: tuple[Positive, ...] | None = Field(description="Losses that beat each other in a circle.")


class PricePart(DocumentModel):
    """What a group pays in Lindahl's equilibrium."""

    group: Text = Field(description="Its name.")
    charge: Money = Field(description="Money per unit of loss, of one member.")
    payment: Money = Field(description="Money, of one member.")
    demand: Positive = Field(description="The loss that it then wants.")


class LindahlPart(DocumentModel):
    """Prices at which everybody wants the same loss."""

    epsilon: Epsilon
    surplus: Money = Field(description="Money per unit of loss that the prices leave over.")
    supported: Whether = Field(description="Whether these prices support that loss.")
    prices: tuple[PricePart, ...]


class ClarkePart(DocumentModel):
    """The tax at which a group has no reason to misstate what it wants."""

    group: Text = Field(description="Its name.")
    epsilon_without: AnyLoss | None = Field(description="What the others would choose.")
    tax: Money | None


class GainsPart(DocumentModel):
    """Who gains and who loses at one loss."""

    epsilon: Epsilon
    gains: dict[str, Number] = Field(description="Money: what one member of each group gains.")


class SocialChoicePart(DocumentModel):
    """Other ways to add people up."""

    peaks: Several[PeakPart]
    efficient: tuple[Pair[Number | None], ...] = Field(
        description="Ranges of loss from which nobody can gain without another's loss."
    )
    against: Positive = Field(description="The loss that gains are counted from.")
    rules: Several[RulePart]
    majority: MajorityPart
    lindahl: LindahlPart
    clarke_taxes: tuple[ClarkePart, ...]
    gains_at_each_loss: tuple[GainsPart, ...]


class PublishingPart(DocumentModel):
    """What publishing takes on the machine that planned, estimated; printed by `plan --json`, never saved."""

    seconds: Positive = Field(description="Of a processor.")
    memory: Positive = Field(description="Bytes, the most that is held at once.")
    disk: Positive = Field(description="Bytes of the release.")


class PlanVersionsPart(DocumentModel):
    """What wrote the plan."""

    program: int = Field(strict=True, description="The version of the program file's keys.")
    plan: int = Field(strict=True, description="The version of this document.")
    dualmandate: Text = Field(description="The version of the software.")


class PlanDocument(DocumentModel):
    """A plan: the privacy loss to choose, what it buys and costs, and why."""

    schema_: Schema[Literal["plan/1"]]
    digest: Digest = Field(description="SHA-256 over `exact`: what an approver signs.")
    program: ProgramPart
    study: Whether = Field(False, description="Whether it is a study: planned and compared, never published.")
    why_study: Text | None = Field(None, description="Why, and what to use instead.")
    loss: PlannedLossPart
    choice: ChoicePart
    mechanism: MechanismPart
    frontier: FrontierPart
    tables: tuple[PlannedTablePart, ...]
    ratios: IfAny[Several[PlannedRatioPart]] = None
    groups: tuple[GroupPart, ...]
    technologies: tuple[TechnologyPart, ...]
    strategies: tuple[StrategyPart, ...]
    saving: SavingPart
    guarantee: GuaranteePart
    regret: tuple[RegretPart, ...]
    tornado: tuple[TornadoPart, ...]
    elasticities: tuple[ElasticityPart, ...] = ()
    readings: tuple[ReadingPart, ...] = ()
    robustness: IfAny[RobustnessPart] = None
    public_total: IfAny[PublicTotalPart] = None
    notes: tuple[Text, ...] = Field(description="What a reader should know besides.")
    participation: IfAny[ParticipationPart] = None
    offering: IfAny[OfferingPart | NoOfferingPart] = None
    path: IfAny[PathPart] = None
    renewals: IfAny[Several[RenewalPart]] = None
    sample: IfAny[SamplePart] = None
    randomized_response: IfAny[LocalPart] = None
    simulation: IfAny[SimulationPart] = None
    secret: IfAny[SecretPart] = None
    markets: IfAny[Several[InstitutionPart]] = None
    existing_errors: IfAny[Several[ExistingErrorPart]] = None
    clipping: IfAny[Several[BoundPart]] = None
    losses: IfAny[Several[MeasuredLossPart]] = None
    wealth: IfAny[Several[WealthPart]] = None
    uncertainty: IfAny[UncertaintyPart] = None
    social_choice: IfAny[SocialChoicePart] = None
    versions: PlanVersionsPart
    remaining: IfAny[Exact] = Field(
        None, description="What the account had left, in the program's currency, if counted."
    )
    publishing: IfAny[PublishingPart] = None
    pages: IfAny[dict[str, Digest]] = Field(None, description="SHA-256 of each file of the dossier beside it.")
    exact: dict[str, Any] = Field(description="What the digest covers: exact things alone.")
    shown: IfAny[Digest] = Field(None, description="SHA-256 over all the rest: a plan that was changed is refused.")


CHOSEN = ("epsilon", "welfare", "root_mean_squared_error", "root_mean_squared_consequence")


def plan_document(plan: Plan) -> dict[str, Any]:
    """Everything that a plan says, in finite numbers; losses also as exact strings."""
    from importlib.metadata import version

    from dualmandate.planning.saved_plan import PLAN_VERSION, digest_of, with_pages
    from dualmandate.planning.study import study_words
    from dualmandate.program.schema import SCHEMA_VERSION

    program, known, sure, total = plan.program, plan.extensions, plan.robustness, plan.public_total
    remaining = plan.limits.remaining
    document = PlanDocument.made_of(
        plan,
        remaining=None if remaining is None else Fraction(remaining),
        program=ProgramPart.made_of(
            name=program.name,
            description=program.file.program.description,
            account=program.file.population.account,
            account_identifier=plan.account_identifier,
            unit=program.protection.unit,
            population_size=program.welfare.population_size,
            currency=program.units.currency,
            time_base=program.timing.time_base,
            horizon=program.timing.horizon,
            seen_in_the_data=program.file.population.seen_in_the_data,
            digest=digest_of(plan.exact["program"]),
        ),
        why_study=study_words(plan.technology.noise) if plan.study else None,
        loss=_loss(plan),
        choice=_choice(plan),
        mechanism=_mechanism(plan),
        frontier=FrontierPart.made_of(plan.frontier, points=_points(plan)),
        tables=list(_tables(plan)),
        ratios=[PlannedRatioPart.made_of(row, name=row.ratio) for row in plan.ratios] or None,
        groups=plan.choice.groups,
        technologies=list(_technologies(plan)),
        strategies=list(_strategies(plan)),
        saving=_saving(plan),
        guarantee=plan.guarantee.document(),
        regret=[RegretPart.made_of(row) for row in plan.regrets if math.isfinite(row.welfare + row.relative)],
        tornado=[TornadoPart.made_of(row, input=row.name) for row in sure.tornado],
        elasticities=[ElasticityPart.made_of(row, input=row.name) for row in sure.elasticities],
        readings=list(_readings(plan)),
        robustness=RobustnessPart.made_of(
            sure,
            words=list(sure.sentences()),
            interval=None if sure.interval is None else [_finite(end) or None for end in sure.interval],
        ),
        public_total=None if total is None else PublicTotalPart.made_of(total, words=list(total.sentences())),
        participation=known.participation,
        offering=_offering(known),
        path=known.path,
        renewals=known.renewals or None,
        sample=known.sample,
        randomized_response=known.local,
        simulation=known.simulation,
        secret=known.secret,
        markets=[InstitutionPart.made_of(row, institution=row.name) for row in known.markets] or None,
        existing_errors=known.existing or None,
        clipping=[_bound(curve) for curve in known.clipping] or None,
        losses=[_measured(row) for row in known.losses] or None,
        wealth=[_wealth(row) for row in known.wealth] or None,
        uncertainty=None if plan.uncertainty is None else _uncertainty(plan.uncertainty),
        social_choice=None if plan.social_choice is None else _social_choice(plan.social_choice),
        publishing=None,  # another machine has other rates: the command adds what this one would take
        versions=PlanVersionsPart(program=SCHEMA_VERSION, plan=PLAN_VERSION, dualmandate=version("dualmandate")),
    )
    return with_pages(document.as_json(), {})


def _loss(plan: Plan) -> PlannedLossPart:
    return PlannedLossPart.made_of(
        exact=plan.loss,
        amount=float(plan.loss.amount),
        currency=plan.loss.privacy_measure,
        failure_probability=plan.technology.failure_probability,
        chosen=ChosenPart.made_of(exact=plan.choice.loss, currency=plan.choice.privacy_measure),
        allocation=plan.allocation,
    )


def _choice(plan: Plan) -> ChoicePart:
    """The choice without what left the range of floats: a limit at which welfare is beyond any number."""
    choice = plan.choice
    return ChoicePart.made_of(
        choice,
        root_mean_squared_error=_finite(choice.root_mean_squared_error),
        root_mean_squared_consequence=_finite(choice.root_mean_squared_consequence),
        willingness_to_accept=_finite(choice.willingness_to_accept),
        local_optima=[point for point in choice.local_optima if math.isfinite(point.welfare)],
        explanation=choice.explain(),
    )


def _mechanism(plan: Plan) -> MechanismPart:
    table = plan.program.file.mechanism
    sensitivities = {group: each.sensitivity for group, each in plan.technology.measurements.items()}
    return MechanismPart.made_of(
        plan.technology,
        asked=table.noise,
        measured=table.measured,
        sensitivity={name: SensitivityPart.made_of(each, words=str(each)) for name, each in sensitivities.items()},
    )


def _at_each_loss(plan: Plan, said: Callable[[float], Mapping[str, float | None]]) -> Iterator[dict[str, Any]]:
    """What is said of each loss; one at which a number leaves the range of floats is left out."""
    best, step = plan.choice.epsilon, 2 * math.log(REACH) / POINTS
    for loss in sorted({best * math.exp(i * step) for i in range(-POINTS // 2, POINTS // 2 + 1) if i} | {best}):
        try:
            numbers = said(loss)
        except (ZeroDivisionError, OverflowError):
            continue
        except InvalidLoss:  # nothing was simulated there
            continue
        if all(number is None or math.isfinite(number) for number in numbers.values()):
            yield {"loss": loss, **numbers}


def _points(plan: Plan) -> list[dict[str, Any]]:
    """The frontier and welfare at each loss."""
    frontier, welfare = plan.frontier, plan.welfare

    def numbers(loss: float) -> dict[str, float | None]:
        return {
            "accuracy": frontier.accuracy(loss),
            "marginal_rate_of_transformation": frontier.marginal_rate_of_transformation(loss),
            "willingness_to_accept": _finite(welfare.willingness_to_accept(frontier, loss)),
            "privacy_cost": welfare.privacy_cost(loss),
            "data_loss": welfare.data_loss(frontier, loss),
            "welfare": welfare.at(frontier, loss),
        }

    return [point | {"technology": frontier.technology(point["loss"])} for point in _at_each_loss(plan, numbers)]


def _tables(plan: Plan) -> Iterator[PlannedTablePart]:
    asked = {table.name: table for table in plan.program.file.workload}
    clipped = plan.program.clipped
    for table in plan.tables:
        stated = asked[table.table]
        own = {"loss_measure": stated.loss, "clipped": clipped.get(table.table), "by": stated.names}
        yield PlannedTablePart.made_of(table, stated, **own)


def _technologies(plan: Plan) -> Iterator[TechnologyPart]:
    for row in plan.comparisons:
        chosen = {name: getattr(row.choice, name, None) for name in (*CHOSEN, "bound_by")}
        yield TechnologyPart.made_of(row, chosen=plan.uses(row), why_not=row.why or None, **chosen)


def _readings(plan: Plan) -> Iterator[ReadingPart]:
    for row in plan.robustness.readings:
        chosen = {name: getattr(row.choice, name, None) for name in ("epsilon", "loss", "bound_by")}
        yield ReadingPart.made_of(row, **chosen)


def _strategies(plan: Plan) -> Iterator[StrategyPart]:
    """What is measured for each group of tables, where it is neither the tables nor the cells."""
    from dualmandate.mechanism.strategy.strategy_file import strategy_digest

    for group, found in plan.technology.found.items():
        yield StrategyPart.made_of(
            found,
            group=group,
            words=found.description,
            rows=found.exact.rows,
            weights=found.exact.steps,
            digest=strategy_digest(found.exact),
            # Of the whole-number rows: publishing checks the written strategy by it.
            error_coefficient=found.exact.error_coefficient(found.protection),
        )


def _saving(plan: Plan) -> SavingPart:
    saving = plan.saving
    limit = saving.limit

    def rival(row: Comparison) -> NaivePart:
        chosen = {name: getattr(row.choice, name, None) for name in CHOSEN}
        return NaivePart.made_of(row, why_not=row.why or None, **chosen)

    return SavingPart.made_of(
        saving,
        naive=rival(saving.naive),
        by_value=None if saving.by_value is None else rival(saving.by_value),
        least_valid_for=None if limit is None else limit.bound.valid_for,
        points=list(_at_each_loss(plan, saving.at)),
    )


def _measured(row: MeasuredLoss) -> MeasuredLossPart:
    beside = [PromisePart(mechanism=name, worst_error=amount) for name, amount in row.multiplicative_weights]
    return MeasuredLossPart.made_of(row, multiplicative_weights=beside or None)


def _wealth(row: WealthWorth) -> WealthPart:
    taylor = row.taylor
    return WealthPart.made_of(
        row.group,
        table=row.table,
        exposed_to="all" if row.group.to_all else "one",
        value_of_accuracy=row.value,
        taylor=None if taylor is None else TaylorPart.made_of(taylor, exact=_finite(taylor.exact), words=str(taylor)),
    )


def _offering(known: Extensions) -> OfferingPart | NoOfferingPart | None:
    if known.offering is None:
        return NoOfferingPart(why_not=known.no_offering) if known.no_offering else None
    verdicts = [VerdictPart.made_of(each, detail=each.detail or None) for each in known.offering.verdicts]
    return OfferingPart.made_of(known.offering, tables=verdicts)


def _bound(curve: BoundCurve) -> BoundPart:
    best = curve.recommended
    return BoundPart.made_of(
        curve,
        bound=float(curve.bound),
        recommended=None if best is None else float(best.bound),
        rows=[BoundRowPart.made_of(row, bound=float(row.bound)) for row in curve.rows],
    )


def _uncertainty(part: Uncertainty) -> UncertaintyPart:
    def survey(worth: SurveyValue | None) -> SurveyValuePart | None:
        if worth is None:
            return None
        return SurveyValuePart.made_of(worth, spread_of_answers=worth.spread, share_of_perfect=worth.share)

    return UncertaintyPart.made_of(
        part,
        words=list(part.sentences()),
        **({} if part.known is None else _known(part.known)),
        survey=survey(part.survey),
        best_survey=survey(part.worthwhile),
        minimax_regret=part.robust,
        minimax_relative_regret=part.relative,
    )


def _known(known: UncertainChoice) -> dict[str, DistributionPart | ExpectedRegretPart]:
    """The best loss and its regret as distributions."""
    from dualmandate.planning.uncertainty import LEVEL, QUANTILES

    below, above = known.at_limits
    distribution = DistributionPart.made_of(
        known,
        epsilon=known.choice.epsilon,
        level=LEVEL,
        interval=[_finite(end) for end in known.interval(LEVEL)],
        median=_finite(known.median),
        mean=_finite(known.mean),
        at_lowest=min(below, 1.0),
        at_highest=min(above, 1.0),
        quantiles=[QuantilePart(probability=p, epsilon=_finite(known.quantile(p))) for p in QUANTILES],
    )
    quantiles = [RegretQuantilePart(probability=p, regret=known.regret_quantile(p)) for p in QUANTILES]
    return {"distribution": distribution, "regret": ExpectedRegretPart.made_of(known, quantiles=quantiles)}


def _social_choice(choices: SocialChoices) -> SocialChoicePart:
    """Losses without a place (0, or ever more) are null."""
    from dualmandate.planning.uncertainty import gains_at_each_loss

    profile, majority, lindahl = choices.profile, choices.majority, choices.lindahl
    return SocialChoicePart.made_of(
        choices,
        peaks=[
            PeakPart.made_of(
                peak,
                group=peak.name,
                epsilon=_placed(peak.epsilon),
                wants="more" if math.isinf(peak.epsilon) else "none" if peak.epsilon == 0 else "this",
            )
            for peak in profile.peaks
        ],
        efficient=[(_placed(low), _placed(high)) for low, high in profile.pareto_set],
        rules=[RulePart.made_of(row, epsilon=_placed(row.epsilon)) for row in choices.rows],
        majority=MajorityPart.made_of(majority, votes=majority.votes.tolist()),
        lindahl=LindahlPart.made_of(
            lindahl, prices=[PricePart.made_of(price, group=price.name) for price in lindahl.prices]
        ),
        clarke_taxes=[
            ClarkePart(group=tax.name, epsilon_without=_placed(tax.epsilon_without), tax=_finite(tax.tax))
            for tax in choices.clarke
        ],
        gains_at_each_loss=[
            GainsPart(epsilon=loss, gains=gains) for loss, gains in gains_at_each_loss(choices).items()
        ],
    )


def _placed(loss: float | None) -> float | None:
    return loss if loss is not None and 0 < loss < math.inf else None


def _finite(amount: float | None) -> float | None:
    return amount if amount is not None and math.isfinite(amount) else None
