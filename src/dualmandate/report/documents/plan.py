"""A plan as the JSON document `plan/1`: its keys, and how they are filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dualmandate.report.documents.document import (
    AnyLoss,
    Cost,
    Count,
    CurrencyName,
    Digest,
    DocumentModel,
    Dollars,
    Epsilon,
    Exact,
    IfAny,
    LossPart,
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
    from dualmandate.planning.extensions import Extensions
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.uncertainty import Uncertainty

POINTS = 60  # At most this many points of the frontier, in equal steps of the logarithm, besides the choice itself.
REACH = 10.0  # The frontier is shown from a tenth of the chosen loss to ten times it.

StrategyName = Literal["optimized", "workload", "identity"]
BoundBy = Literal["preferences", "largest epsilon", "largest rho", "fitness for use", "ledger", "participation"]


class ProgramPart(DocumentModel):
    """The program that was planned."""

    name: Text = Field(description="As in the program file.")
    description: Text | None = Field(description="As in the program file.")
    account: Text = Field(description="Whose privacy is spent: an account of the ledger.")
    unit: Text = Field(description="Who is protected.")
    population_size: Positive = Field(description="In units.")
    digest: Digest = Field(description="SHA-256 over what the program file says.")


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
    root_mean_squared_consequence: Dollars | None = Field(description="USD; null where no table states one.")
    welfare: Welfare
    privacy_cost: Cost
    data_loss: Cost = Field(description="USD, at least 0: what errors cost.")
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
    willingness_to_accept: NotNegative = Field(description="Accuracy per unit of loss.")
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
    where: dict[str, tuple[Text, ...]] = Field(description="The levels that are counted, by attribute.")
    unit: Text = Field(description="Of its numbers.")
    query_count: Count = Field(description="How many numbers it has.")
    measured_in: Text = Field(description="The group of tables that it is measured with.")
    loss_measure: Literal["squared", "absolute"] = Field(description="How its errors count.")
    root_mean_squared_error: NotNegative = Field(description="Of one number, in its unit.")
    half_width: NotNegative = Field(description="What 95 in 100 numbers are off by at most, in its unit.")
    root_mean_squared_consequence: Dollars | None = Field(description="Of one number, USD.")
    data_loss: Cost


class GroupPart(DocumentModel):
    """People who bear the same cost of privacy loss."""

    name: Text = Field(description="As in the program file.")
    size: Positive = Field(description="In units.")
    relative_privacy_weight: NotNegative = Field(description="Of their privacy against accuracy.")
    cost_per_member: Cost
    privacy_cost: Cost = Field(description="USD, at least 0: of all of them.")


class TechnologyPart(DocumentModel):
    """A technology, and what would be chosen with it alone."""

    noise: Text = Field(description="The law of its noise.")
    strategy: StrategyName = Field(description="What is measured.")
    measured: Text = Field("together", description="What shares a measurement; with `evenly`, an even share each.")
    study: Whether = Field(False, description="Whether its noise is not drawn exactly: compared, never published.")
    chosen: Whether = Field(description="Whether it is the one in use.")
    why_not: Text | None = Field(description="Why it cannot serve the program.")
    epsilon: AnyLoss | None
    welfare: Dollars | None = Field(description="USD: what society then loses, at most 0.")
    root_mean_squared_error: Number | None = Field(description="In the tables' unit.")
    root_mean_squared_consequence: Dollars | None
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
    measured: Text = Field("together", description="What shares a measurement; with `evenly`, an even share each.")
    study: Whether = Field(False, description="Whether its noise is not drawn exactly: compared, never published.")
    why_not: Text | None = Field(description="Why it cannot serve the program.")
    epsilon: AnyLoss | None
    welfare: Dollars | None = Field(description="USD: what society then loses, at most 0.")
    root_mean_squared_error: Number | None = Field(None, description="In the tables' unit.")
    root_mean_squared_consequence: Dollars | None = Field(None, description="USD.")


class CostsPart(DocumentModel):
    """What errors cost under each technology; null where that is not known."""

    naive: Dollars | None = Field(description="USD: plain noise on the tables.")
    used: Cost = Field(description="USD: the technology in use.")
    optimized: Dollars | None = Field(description="USD: the optimized strategy with the noise in use.")
    least: Dollars | None = Field(description="USD: no technology of the kind costs less.")


class CostsPointPart(DocumentModel):
    """The same at one loss."""

    loss: Positive = Field(description="In the program's currency.")
    naive: Dollars | None
    used: Cost
    optimized: Dollars | None
    least: Dollars | None


class SavingPart(DocumentModel):
    """What the technology in use saves."""

    naive: NaivePart
    welfare_gained: Dollars | None = Field(None, description="USD: what the technology in use is worth to society.")
    dollars: Dollars | None = Field(description="USD, at the choice, against plain noise on the tables.")
    at_choice: CostsPart
    least_valid_for: Text | None = Field(description="Which technologies the lower bound holds for.")
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
    absolute: Dollars
    relative: Number = Field(description="The same as a share of what is lost at best.")


class TornadoEndPart(DocumentModel):
    """One end of an input's range, and what would be chosen there."""

    value: Number = Field(description="Of the input.")
    epsilon: AnyLoss | None
    refusal: Text | None = Field(description="Why nothing can be chosen there.")


class TornadoPart(DocumentModel):
    """How far the choice rests on one input."""

    input: Text = Field(description="Its name.")
    value: Number = Field(description="As stated, in its unit.")
    unit: Text = Field(description="Of the input.")
    epsilon: Epsilon
    low: TornadoEndPart
    high: TornadoEndPart


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
    value: Cost = Field(description="USD: what publishing it is worth.")
    price: Cost = Field(description="USD: what publishing it costs, at the price of the last unit of loss.")
    published: Whether = Field(description="Whether it earns its place.")
    epsilon: AnyLoss | None = Field(description="What it spends.")
    errors: Dollars | None = Field(description="USD: what its errors then cost.")


class OfferingPart(DocumentModel):
    """Which tables earn their place: advice, the plan is for all tables as stated."""

    epsilon: NotNegative = Field(description="What those that do spend together.")
    net: Cost = Field(description="USD: what society gains by them.")
    bound: Cost = Field(description="USD: no set of tables is worth more.")
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
    price: Cost = Field(description="USD per unit of loss: what a wider cap would be worth.")
    welfare: Welfare
    releases: Several[PathReleasePart]


class InstitutionPart(DocumentModel):
    """What one institution would choose, pay and cost."""

    institution: Text = Field(description="Its name; the planner is the first.")
    epsilon: Number | None = Field(description="The privacy loss that it chooses.")
    accuracy: Number | None = Field(description="At most 0, on the program's frontier.")
    payment: Dollars | None = Field(description="USD to one person; the mean where they differ.")
    total: Dollars | None = Field(description="USD to all.")
    welfare: Dollars | None = Field(description="USD: society's.")
    forgone: Dollars | None = Field(description="USD: the planner's welfare less this; null for the planner.")
    one_count: Whether = Field(description="Whether it buys one count of everybody, not the program's tables.")
    why: Text = Field(description="What it is, or why it chooses nothing.")


class RenewalPart(DocumentModel):
    """A new release every so many years."""

    years: Count = Field(description="Between two releases.")
    epsilon: Epsilon
    service: Positive = Field(description="Years' worth of use of each release, discounted and depreciated.")
    worth: Dollars = Field(description="USD of today: what all releases are worth; a year where nothing is discounted.")


class SamplePart(DocumentModel):
    """How many people it pays to ask: advice, the plan is for everybody's records."""

    share: Positive = Field(description="Of the people.")
    respondents: Positive = Field(description="How many that are.")
    epsilon: NotNegative = Field(description="The loss of each who is asked.")
    tables: tuple[Text, ...] = Field(description="That are worth collecting for; all where not each states its worth.")
    collection_cost: Cost = Field(description="USD: of asking them.")
    net: Dollars = Field(description="USD: welfare, with what tables are worth where stated, less the cost of asking.")
    everybody: Dollars = Field(description="USD: the same when everybody is asked.")
    gained: Dollars = Field(description="USD: the difference.")
    amplified: Number | None = Field(description="ε of everybody if nobody knew who was asked; not counted on.")


class LocalPart(DocumentModel):
    """Randomized response on the same tables: a study, not drawn here."""

    epsilon: AnyLoss | None = Field(description="What it would choose; null where it cannot.")
    truth_probability: Number | None = Field(description="How often the true answer is then reported for sure.")
    root_mean_squared_error: Number | None = Field(description="In the tables' unit; null where they differ in it.")
    welfare: Dollars | None
    forgone: Dollars | None = Field(description="USD: the plan's welfare less this.")
    times: Number | None = Field(description="What errors cost at the plan's own loss, relative to the plan.")
    why_not: Text | None = Field(description="Why it cannot choose.")
    source: Text = Field(description="As in the program file.")


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
    epsilon: Epsilon


class DistributionPart(DocumentModel):
    """The best loss as a distribution."""

    epsilon: Epsilon = Field(description="What is best now, at the expected costs.")
    level: Share = Field(description="Of the interval.")
    interval: Pair[Positive] = Field(description="Where the best loss lies with that probability.")
    median: Positive = Field(description="Of the best loss.")
    mean: Positive = Field(description="Of the best loss.")
    at_lowest: Share = Field(description="Probability that the best loss is the lowest allowed.")
    at_highest: Share = Field(description="Probability that the best loss is the highest allowed.")
    quantiles: tuple[QuantilePart, ...]


class RegretQuantilePart(DocumentModel):
    """A quantile of the regret."""

    probability: Share = Field(description="That regret is at most this.")
    regret: Cost


class ExpectedRegretPart(DocumentModel):
    """What not knowing costs."""

    value_of_perfect_information: Cost = Field(description="USD: what it would be worth to know exactly.")
    expected_cost: Cost = Field(description="USD: what society loses in expectation.")
    quantiles: tuple[RegretQuantilePart, ...]


class SurveyValuePart(DocumentModel):
    """What another survey is worth."""

    respondents: Count = Field(description="How many are asked.")
    spread_of_answers: Positive = Field(description="Standard deviation of the logarithm of one answer.")
    parameter: Text = Field(description="The number that is asked for.")
    value: Cost = Field(description="USD: expected.")
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
    regret: Number = Field(description="The worst: USD, or a share of what is lost at best.")
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
    welfare: Dollars | None
    gains: dict[str, Number] = Field(description="USD: what one member of each group gains.")
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
    charge: Dollars = Field(description="USD per unit of loss, of one member.")
    payment: Dollars = Field(description="USD, of one member.")
    demand: Positive = Field(description="The loss that it then wants.")


class LindahlPart(DocumentModel):
    """Prices at which everybody wants the same loss."""

    epsilon: Epsilon
    surplus: Dollars = Field(description="USD per unit of loss that the prices leave over.")
    supported: Whether = Field(description="Whether these prices support that loss.")
    prices: tuple[PricePart, ...]


class ClarkePart(DocumentModel):
    """The tax at which a group has no reason to misstate what it wants."""

    group: Text = Field(description="Its name.")
    epsilon_without: AnyLoss | None = Field(description="What the others would choose.")
    tax: Dollars | None


class GainsPart(DocumentModel):
    """Who gains and who loses at one loss."""

    epsilon: Epsilon
    gains: dict[str, Number] = Field(description="USD: what one member of each group gains.")


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
    groups: tuple[GroupPart, ...]
    technologies: tuple[TechnologyPart, ...]
    strategies: tuple[StrategyPart, ...]
    saving: SavingPart
    guarantee: GuaranteePart
    regret: tuple[RegretPart, ...]
    tornado: tuple[TornadoPart, ...]
    notes: tuple[Text, ...] = Field(description="What a reader should know besides.")
    participation: IfAny[ParticipationPart] = None
    offering: IfAny[OfferingPart | NoOfferingPart] = None
    path: IfAny[PathPart] = None
    renewals: IfAny[Several[RenewalPart]] = None
    sample: IfAny[SamplePart] = None
    randomized_response: IfAny[LocalPart] = None
    secret: IfAny[SecretPart] = None
    markets: IfAny[Several[InstitutionPart]] = None
    existing_errors: IfAny[Several[ExistingErrorPart]] = None
    uncertainty: IfAny[UncertaintyPart] = None
    social_choice: IfAny[SocialChoicePart] = None
    versions: PlanVersionsPart
    exact: dict[str, Any] = Field(description="What the digest covers: exact things alone.")


CHOSEN = ("epsilon", "welfare", "root_mean_squared_error", "root_mean_squared_consequence")


def plan_document(plan: Plan) -> dict[str, Any]:
    """Everything that a plan says, in finite numbers; losses also as exact strings."""
    from importlib.metadata import version

    from dualmandate.planning.saved_plan import PLAN_VERSION, digest_of
    from dualmandate.planning.study import study_words
    from dualmandate.program.schema import SCHEMA_VERSION

    program, known = plan.program, plan.extensions
    return PlanDocument.made_of(
        plan,
        program=ProgramPart.made_of(
            name=program.name,
            description=program.file.program.description,
            account=program.file.population.account,
            unit=program.protection.unit,
            population_size=program.welfare.population_size,
            digest=digest_of(plan.exact["program"]),
        ),
        why_study=study_words(plan.technology.noise) if plan.study else None,
        loss=_loss(plan),
        choice=_choice(plan),
        mechanism=_mechanism(plan),
        frontier=FrontierPart.made_of(plan.frontier, points=_points(plan)),
        tables=list(_tables(plan)),
        groups=plan.choice.groups,
        technologies=list(_technologies(plan)),
        strategies=list(_strategies(plan)),
        saving=_saving(plan),
        guarantee=plan.guarantee.document(),
        regret=[row for row in plan.regrets if math.isfinite(row.welfare) and math.isfinite(row.relative)],
        tornado=[TornadoPart.made_of(row, input=row.name) for row in plan.tornado],
        participation=known.participation,
        offering=_offering(known),
        path=known.path,
        renewals=known.renewals or None,
        sample=known.sample,
        randomized_response=known.local,
        secret=known.secret,
        markets=[InstitutionPart.made_of(row, institution=row.name) for row in known.markets] or None,
        existing_errors=known.existing or None,
        uncertainty=None if plan.uncertainty is None else _uncertainty(plan.uncertainty),
        social_choice=None if plan.social_choice is None else _social_choice(plan.social_choice),
        versions=PlanVersionsPart(program=SCHEMA_VERSION, plan=PLAN_VERSION, dualmandate=version("dualmandate")),
    ).as_json()


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
        if all(number is None or math.isfinite(number) for number in numbers.values()):
            yield {"loss": loss, **numbers}


def _points(plan: Plan) -> list[dict[str, Any]]:
    """The frontier and welfare at each loss."""
    frontier, welfare = plan.frontier, plan.welfare

    def numbers(loss: float) -> dict[str, float | None]:
        return {
            "accuracy": frontier.accuracy(loss),
            "marginal_rate_of_transformation": frontier.marginal_rate_of_transformation(loss),
            "willingness_to_accept": welfare.willingness_to_accept(frontier, loss),
            "privacy_cost": welfare.privacy_cost(loss),
            "data_loss": welfare.data_loss(frontier, loss),
            "welfare": welfare.at(frontier, loss),
        }

    return [point | {"technology": frontier.technology(point["loss"])} for point in _at_each_loss(plan, numbers)]


def _tables(plan: Plan) -> Iterator[PlannedTablePart]:
    asked = {table.name: table for table in plan.program.file.workload}
    for table in plan.tables:
        stated = asked[table.table]
        yield PlannedTablePart.made_of(table, stated, loss_measure=stated.loss)


def _technologies(plan: Plan) -> Iterator[TechnologyPart]:
    for row in plan.comparisons:
        chosen = {name: getattr(row.choice, name, None) for name in (*CHOSEN, "bound_by")}
        yield TechnologyPart.made_of(row, chosen=plan.uses(row), why_not=row.why or None, **chosen)


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
        )


def _saving(plan: Plan) -> SavingPart:
    saving = plan.saving
    naive, limit = saving.naive, saving.limit
    return SavingPart.made_of(
        saving,
        naive=NaivePart.made_of(
            naive, why_not=naive.why or None, **{name: getattr(naive.choice, name, None) for name in CHOSEN}
        ),
        least_valid_for=None if limit is None else limit.bound.valid_for,
        points=list(_at_each_loss(plan, saving.at)),
    )


def _offering(known: Extensions) -> OfferingPart | NoOfferingPart | None:
    if known.offering is None:
        return NoOfferingPart(why_not=known.no_offering) if known.no_offering else None
    verdicts = [VerdictPart.made_of(each, detail=each.detail or None) for each in known.offering.verdicts]
    return OfferingPart.made_of(known.offering, tables=verdicts)


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
        interval=known.interval(LEVEL),
        at_lowest=min(below, 1.0),
        at_highest=min(above, 1.0),
        quantiles=[QuantilePart(probability=p, epsilon=known.quantile(p)) for p in QUANTILES],
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
