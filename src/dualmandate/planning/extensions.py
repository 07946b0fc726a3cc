"""What a plan says beyond the paper's model, where the program asks for it.

Participation, tables that earn their place, releases to come, markets, and errors that were there before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from dualmandate.choice import (
    BudgetPath,
    Candidate,
    Choice,
    DisclosureHorizon,
    Limits,
    Renewal,
    SocialWelfare,
    TableSelection,
    TableValue,
    budget_path,
    choose,
    choose_tables,
    renewals,
)
from dualmandate.choice.collection import SampleChoice, amplified, best_share, of_those_asked
from dualmandate.choice.markets import Institution, LognormalAmounts, Market, UniformAmounts, compare_markets
from dualmandate.errors import InvalidMechanism, InvalidValue, MissingKey, Refusal
from dualmandate.frontier import (
    ExponentialResponse,
    Frontier,
    GroupSecret,
    TableTotals,
    by_secret,
    frontier_of,
    peak_of,
    with_participation,
)
from dualmandate.frontier.numerics import loss_where
from dualmandate.frontier.participation import EVERYBODY, ParticipationCurves
from dualmandate.mechanism import NOISE_LAWS, Measurement, RandomizedResponse, UnaryEncoding
from dualmandate.mechanism.local.unary_encoding import other_probability
from dualmandate.mechanism.technologies import TABLES
from dualmandate.planning.clipping import BoundCurve
from dualmandate.planning.measures import MeasuredLoss, WealthWorth, measured_loss, wealth_of
from dualmandate.planning.simulation import SimulationOutcome, check_simulation
from dualmandate.planning.technology import TOGETHER, Technology, TechnologyBuilder, measures_of, values_of
from dualmandate.planning.welfare import amount_in, float_or_none, in_currency
from dualmandate.population import PrivacyMeasure
from dualmandate.population.loss import SIGNIFICANT_DIGITS
from dualmandate.population.time_base import recurs
from dualmandate.population.wording import exact
from dualmandate.program.file import KeyPath
from dualmandate.program.number import CalibratedNumber
from dualmandate.program.program import ProgramFile, tabulation_of
from dualmandate.program.schema import (
    CollectionTable,
    MarketsTable,
    RandomizedResponseTable,
    ReleasesTable,
    SecretTable,
    WorkloadTable,
)
from dualmandate.semantics.guarantee import Secret, neighbor_steps
from dualmandate.workload import Workload

if TYPE_CHECKING:
    from dualmandate.planning.plan import TableConsequence
    from dualmandate.planning.program import Program

AS_STATED = "as stated"  # A table as it stands in the program has this detail.
SECRET_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of what the secret loses at the choice
TWO_SIDED_95 = 1.959964  # This many standard deviations on either side hold 95 in 100.


@dataclass(frozen=True, eq=False)
class ParticipationOutcome:
    """How participation moves the frontier, at the choice and at the peak."""

    rate: float  # share of people who take part at the choice
    rate_without_loss: float
    truthful: float  # of those, the share that reports the truth
    truthful_without_loss: float
    peak: float | None  # the loss beyond which accuracy falls; None where it never does
    assumed_totals: tuple[str, ...]  # tables whose total is not stated, so that everybody is taken to be counted
    source: str
    noise_cost: Callable[[float], float]  # USD: what errors would cost at a loss if everybody took part
    cost: Callable[[float], float]  # USD: what they cost with those who do, beyond the peak too


LocalMechanism: TypeAlias = RandomizedResponse | UnaryEncoding


@dataclass(frozen=True)
class LocalOutcome:
    """What the better local technology would choose and cost, beside the plan: the price of trusting nobody."""

    technology: str
    other: str | None  # that was compared and would leave society worse off; None where there is one technology
    epsilon: float | None  # None where nothing can be chosen
    truth_probability: float | None  # ρ at that ε, of randomized response
    other_bit_probability: float | None  # q at that ε, of unary encoding
    root_mean_squared_error: float | None  # in the tables' unit
    welfare: float | None  # USD
    forgone: float | None  # USD, welfare of the plan less this
    times: float | None  # what errors cost at the plan's own ε, relative to the plan
    why_not: str | None
    source: str


@dataclass(frozen=True)
class SecretPoint:
    """The frontier counted by what a secret loses: at one loss of it."""

    loss: float  # of the secret
    epsilon: float  # for one record
    accuracy: float  # I ≤ 0


@dataclass(frozen=True)
class SecretOutcome:
    """What the plan's loss means for a secret of a group, and what would be chosen if costs were of that."""

    group: str
    members: int
    loss: float  # L at the choice, for whatever the release is made of
    group_loss: float  # m times the loss of one record: what holds however records depend on each other
    wasserstein: int  # W: how far noise must hide what the group counts
    chosen: SecretPoint | None  # None where nothing can be chosen
    points: tuple[SecretPoint, ...]
    source: str


@dataclass(frozen=True)
class ExistingError:
    """The error that a table had before noise, and what noise makes of it; RMSE of one number, in the table's unit."""

    table: str
    unit: str
    before: float
    noise: float
    sampling: bool = False  # whether it is that of a draw from a superpopulation
    cost: float = 0.0  # USD: what it costs whatever the loss, all numbers together; 0 where it is not counted

    @property
    def together(self) -> float:
        """Independent errors add up in squares."""
        return math.hypot(self.before, self.noise)

    @property
    def added(self) -> float:
        """By which share noise widens the error that was there."""
        return self.together / self.before - 1


@dataclass(frozen=True, eq=False)
class Extensions:
    """The optional parts of a plan."""

    participation: ParticipationOutcome | None = None
    offering: TableSelection | None = None
    no_offering: str = ""  # why tables cannot be priced, where the program asks for it
    path: BudgetPath | None = None
    renewals: tuple[Renewal, ...] = ()
    sample: SampleChoice | None = None
    local: LocalOutcome | None = None
    simulation: SimulationOutcome | None = None
    secret: SecretOutcome | None = None
    markets: tuple[Institution, ...] = ()
    existing: tuple[ExistingError, ...] = ()
    clipping: tuple[BoundCurve, ...] = ()  # error against each bound that tables rest on
    losses: tuple[MeasuredLoss, ...] = ()  # of tables whose errors are neither squared nor absolute
    wealth: tuple[WealthWorth, ...] = ()  # of tables whose value of accuracy was derived from it


@dataclass(frozen=True, eq=False)
class ExtensionBuilder:
    """A chosen plan, and what is needed to go beyond it."""

    program: Program
    workshop: TechnologyBuilder
    frontier: Frontier
    technology: Technology
    choice: Choice
    limits: Limits
    simulation: SimulationOutcome | None

    def all(self) -> Extensions:
        """Every part that the program asks for."""
        offering, why_not = None, ""
        try:
            offering = self._offering()
        except Refusal as refusal:
            if refusal.where is not None and refusal.where.line is not None:
                raise  # a key of the file, not the economics, is to blame
            why_not = f"{refusal.what}: {refusal.why}"
        return Extensions(
            participation=self._responding(),
            offering=offering,
            no_offering=why_not,
            path=self._path(),
            renewals=self._renewals(),
            sample=self._sample(),
            local=self._local(),
            simulation=self.simulation,
            secret=self._secret(),
            markets=self._markets(),
            existing=tuple(self._existing()),
            clipping=self.program.clipping.curves(self.choice, self.program.welfare),
            losses=tuple(self._losses()),
            wealth=tuple(self._wealth()),
        )

    def _responding(self) -> ParticipationOutcome | None:
        response = self.workshop.participation
        if response is None:
            return None
        curves = self.technology.frontier.curves
        assert isinstance(curves, ParticipationCurves)
        return ParticipationOutcome(
            rate=response.response.rate(self.choice.epsilon),
            rate_without_loss=response.response.rate_without_loss,
            truthful=response.truthful.rate(self.choice.epsilon),
            truthful_without_loss=response.truthful.rate_without_loss,
            peak=peak_of(self.frontier),
            assumed_totals=response.assumed,
            source=response.source,
            noise_cost=partial(self.program.welfare.data_loss, curves.frontier),
            cost=partial(self._true_cost, curves),
        )

    def _true_cost(self, curves: ParticipationCurves, loss: float) -> float:
        """What errors cost at a loss, also beyond the peak, where a frontier only stays level."""
        weighed = curves.weights.weighed(lambda measure: curves.reached(loss, measure))
        return self.program.welfare.least_data_loss + weighed

    def _existing(self) -> Iterator[ExistingError]:
        """A constant under squared loss: reported beside the noise, never part of what is chosen by."""
        values = {value.table: value for value in self.program.welfare.table_values}
        for position, asked in enumerate(self.program.file.workload):
            outcome = next(outcome for outcome in self.choice.tables if outcome.table == asked.name)
            before = _existing_error(self.program, position)
            drawn = math.sqrt(values[asked.name].existing_squared_error / outcome.query_count)
            if before or drawn:
                noise = outcome.root_mean_squared_error
                cost = values[asked.name].value * values[asked.name].existing_squared_error
                yield ExistingError(outcome.table, outcome.unit, before or drawn, noise, sampling=not before, cost=cost)

    @property
    def _of_tables(self) -> list[TableValue]:
        """What errors of each table cost, without ratios: those are put together from tables."""
        return [value for value in self.program.welfare.table_values if not value.parts]

    def _losses(self) -> Iterator[MeasuredLoss]:
        for value in self._of_tables if self.technology.drawn is None else ():
            measurement, loss = self._measured_at[value.table]
            found = measured_loss(self.program, measurement, measure=value.measure, value=value.value, loss=loss)
            if found is not None:
                yield found if found.falls_at is None else replace(found, falls_at=self._of_all(found.falls_at / loss))

    def _of_all(self, times: float) -> float:
        """The program's loss at which every measurement has so many times what it has, to five digits, rounded up."""
        technology = self.technology
        needed = times * float(technology.exact_loss(self.choice))
        at = loss_where(lambda loss: 1 / technology.spent(loss), 1 / needed)
        step = Fraction(10) ** (math.floor(math.log10(at)) - SIGNIFICANT_DIGITS + 1)
        return float(-(-Fraction(at) // step) * step)

    def _wealth(self) -> Iterator[WealthWorth]:
        for position, value in enumerate(self._of_tables):
            measured = self._measured_at.get(value.table)  # none by a technology whose errors depend on the data
            count = self.program.workload.table(value.table).query_count
            for group in wealth_of(self.program, position):
                taylor = (
                    None
                    if measured is None
                    else group.diagnostic(measured[0], value.table, measured[1], grid=value.grid)
                )
                yield WealthWorth(value.table, group, group.value_of_accuracy(count), taylor)

    @cached_property
    def _measured_at(self) -> dict[str, tuple[Measurement, float]]:
        """How each table is measured, and at exactly which loss."""
        shares = self.technology.shares(self.technology.exact_loss(self.choice))
        groups = self.technology.measurements.items()
        return {table.name: (each, float(shares[group])) for group, each in groups for table in each.workload.tables}

    def _path(self) -> BudgetPath | None:
        table = self.program.file.horizon
        if table is None:
            return None
        with self.program.document.at("horizon"):
            return budget_path(
                self.frontier,
                self._for_all_years(table),
                years=sorted(float(year) for year in table.releases),
                horizon=_horizon(table),
                cap=None if table.largest_total is None else float(table.largest_total),
                limits=replace(self.limits, remaining=None),
            )

    def _renewals(self) -> tuple[Renewal, ...]:
        table = self.program.file.horizon
        if table is None or table.yearly_value is None:
            return ()
        worth = _yearly_value(self.program, table)
        assert worth is not None
        with self.program.document.at("horizon"):
            limits = replace(self.limits, remaining=None)
            welfare = self._for_all_years(table)
            return renewals(self.frontier, welfare, horizon=_horizon(table), worth=worth, limits=limits)

    def _for_all_years(self, table: ReleasesTable) -> SocialWelfare:
        """What a release today costs people in all: a yearly cost comes again until its records are opened.

        So it is where tables are used for years; else both are stated for a release, or for a year of each.
        """
        welfare = self.program.welfare
        if table.years_of_use is None or not recurs(self.program.timing.time_base):
            return welfare
        years = _horizon(table).years_of_harm(0.0)
        return replace(welfare, groups=tuple(group.scaled(years) for group in welfare.groups))

    def _sample(self) -> SampleChoice | None:
        """How many people to ask, at which loss, and for which tables where each says what it is worth."""
        table, program, welfare = self.program.file.collection, self.program, self.program.welfare
        if table is None:
            return None
        people, each = welfare.population_size, _cost_of_asking(program, table)
        known = self.workshop.participation or Participation(EVERYBODY, EVERYBODY, _totals(program), (), "")
        stated = all(asked.value_of_publishing is not None for asked in program.file.workload)
        convex = all(group.information_utility.convex for group in welfare.groups)
        candidates = list(self._all_candidates()) if stated and convex else []
        cap = self.limits.bounds(self.frontier, welfare).highest

        def chosen(share: float) -> tuple[float, float, tuple[str, ...]]:
            seen, asked = of_those_asked(welfare, share), known.sampled(share)
            if candidates:
                offered = [replace(one, frontier=asked.of(_unlimited(one.frontier), welfare)) for one in candidates]
                found = choose_tables(offered, seen, cap=cap)
                return found.net, found.epsilon, tuple(each.table for each in found.verdicts if each.published)
            frontier = asked.of(_unlimited(self.technology.frontier), welfare)
            choice = choose(frontier, seen, self.limits)
            return choice.welfare, choice.epsilon, frontier.tables

        with program.document.at("collection"):
            share, net = best_share(lambda at: chosen(at)[0], each * people, people)
            _, epsilon, tables = chosen(share)
            everybody = chosen(1.0)[0] - each * people
        pure = welfare.privacy_measure is PrivacyMeasure.PURE_DP
        return SampleChoice(
            share,
            share * people,
            epsilon=epsilon,
            tables=tables,
            collection_cost=each * share * people,
            net=net,
            everybody=everybody,
            amplified=amplified(epsilon, share) if pure and epsilon > 0 else None,
        )

    def _local(self) -> LocalOutcome | None:
        """Everybody reports by themselves, on the same tables: a study, because they do before there are records."""
        table, program = self.program.file.randomized_response, self.program
        if table is None:
            return None
        tried = [self._local_outcome(*each, table.source) for each in _local_frontiers(program, table)]
        best = max(tried, key=lambda each: -math.inf if each.welfare is None else each.welfare)
        other = next((each.technology for each in tried if each is not best), None)
        return replace(best, other=other)

    def _local_outcome(self, mechanism: LocalMechanism, frontier: Frontier, source: str) -> LocalOutcome:
        welfare, used, times = self.program.welfare, self.choice.data_loss, None
        try:
            if used > 0:
                times = welfare.data_loss(frontier, self.choice.epsilon) / used
            choice = choose(frontier, welfare, self.limits)
        except Refusal as refusal:
            why = f"{refusal.what}: {refusal.why}"
            return LocalOutcome(mechanism.name, None, None, None, None, None, None, None, times, why, source)
        epsilon, responds = choice.epsilon, isinstance(mechanism, RandomizedResponse)
        return LocalOutcome(
            mechanism.name,
            None,
            epsilon,
            mechanism.truth_probability(epsilon) if isinstance(mechanism, RandomizedResponse) else None,
            None if responds else other_probability(epsilon),
            choice.root_mean_squared_error,
            welfare=choice.welfare,
            forgone=self.choice.welfare - choice.welfare,
            times=times,
            why_not=None,
            source=source,
        )

    def _secret(self) -> SecretOutcome | None:
        """What a loss for one record means for one of a group, and the frontier counted by that."""
        table, program, epsilon = self.program.file.secret, self.program, self.choice.epsilon
        if table is None:
            return None
        secret, steps = _group_secret(program, table)
        if self.technology.failure_probability:
            raise _no_pure_loss(program)
        frontier = by_secret(self.technology.frontier, secret, steps)

        def point(loss: float) -> SecretPoint:
            return SecretPoint(loss, secret.record_loss(loss) / steps, frontier.accuracy(loss))

        here = secret.loss(steps * epsilon)
        try:
            free = replace(self.limits, largest_epsilon=None, remaining=None)
            chosen = point(choose(frontier, program.welfare, free).epsilon)
        except Refusal:
            chosen = None
        return SecretOutcome(
            table.group,
            secret.members,
            loss=here,
            group_loss=secret.members * steps * epsilon,
            wasserstein=secret.wasserstein,
            chosen=chosen,
            points=tuple(point(here * multiple) for multiple in SECRET_MULTIPLES),
            source=table.source,
        )

    def _markets(self) -> tuple[Institution, ...]:
        table = self.program.file.markets
        if table is None:
            return ()
        market = _market(self.program, table)
        with self.program.document.at("markets"):
            return compare_markets(self.frontier, self.program.welfare, market, self.limits)

    def _offering(self) -> TableSelection | None:
        candidates = list(self._all_candidates())
        if not candidates:
            return None
        bounds = self.limits.bounds(self.frontier, self.program.welfare)
        # A table is priced among those who take part at the choice.
        return choose_tables(candidates, self.program.welfare.as_at(self.choice.epsilon), cap=bounds.highest)

    def _all_candidates(self) -> Iterator[Candidate]:
        for position, asked in enumerate(self.program.file.workload):
            if asked.value_of_publishing is not None:
                yield from self._candidates(position, asked)

    def _candidates(self, position: int, asked: WorkloadTable) -> Iterator[Candidate]:
        """A table as it stands and at its other details, each measured by itself with the noise in use."""
        stated = next(value for value in self.program.welfare.table_values if value.table == asked.name)
        whole = _worth(self.program, asked.value_of_publishing, "workload", position)
        assert whole is not None
        alone = self.program.workload.only((asked.name,))
        label = AS_STATED if asked.details else ""
        yield Candidate(asked.name, whole, self._measured_alone(alone), stated, label)
        for name, place, worth, tabulated in _details(self.program, position):
            with self.program.document.at(*place):
                yield Candidate(asked.name, worth, self._measured_alone(tabulated), stated, name)

    def _measured_alone(self, workload: Workload) -> Frontier:
        kept = {table.name for table in workload.tables}
        values = tuple(value for value in self.program.welfare.table_values if value.table in kept)
        welfare = replace(self.program.welfare, table_values=values)
        shop = replace(self.workshop, workload=workload, welfare=welfare, table_shares={})
        return shop.technology(NOISE_LAWS[self.technology.noise], TABLES, TOGETHER).frontier


def check_extensions(program: Program) -> None:
    """Refuse what a file asks for beside the plan and cannot have: before a search, which may take minutes."""
    file = program.file
    if file.collection is not None:
        _cost_of_asking(program, file.collection)
        _totals(program)
    if file.randomized_response is not None:
        _local_frontiers(program, file.randomized_response)
    check_simulation(program)
    if file.secret is not None:
        _group_secret(program, file.secret)
    if file.markets is not None:
        _market(program, file.markets)
    if file.horizon is not None:
        _yearly_value(program, file.horizon)
        with program.document.at("horizon"):
            _horizon(file.horizon)
    for position, asked in enumerate(file.workload):
        _existing_error(program, position)
        _worth(program, asked.value_of_publishing, "workload", position)
        for _ in _details(program, position):
            pass


def _existing_error(program: Program, position: int) -> float | None:
    """RMSE of one number of a table before noise, in its unit."""
    asked, key = program.file.workload[position], ("workload", position, "existing_error")
    return amount_in(program, asked.unit or program.units.singular, asked.existing_error, *key)


def _worth(program: Program, number: CalibratedNumber | None, *key: str | int) -> float | None:
    """What publishing is worth to the users of a table, or of a detail of it."""
    return amount_in(program, program.units.currency, number, *key, "value_of_publishing")


def _details(program: Program, position: int) -> Iterator[tuple[str, KeyPath, float, Workload]]:
    """The other details of a table: name, place, what each is worth, and what it tabulates."""
    asked, truthful = program.file.workload[position], _truthful(program)
    for number, detail in enumerate(asked.details):
        place: KeyPath = ("workload", position, "details", number)
        with program.document.at(*place):
            if truthful != EVERYBODY:
                raise InvalidValue(
                    f"the detail '{detail.name}' where people report falsely",
                    why="how much its numbers differ from one another is not known",
                    instead="leave the detail out, or plan with everybody truthful",
                )
            worth = _worth(program, detail.value_of_publishing, *place)
            assert worth is not None
            tabulated = [tabulation_of(asked, detail.by, program.domain)]
            yield detail.name, place, worth, Workload.from_tabulations(program.domain, tabulated)


def _cost_of_asking(program: Program, table: CollectionTable) -> float:
    _check_measures(program, "collection")
    unit = f"{program.units.currency} per {program.units.singular}"
    each = amount_in(program, unit, table.cost_per_respondent, "collection", "cost_per_respondent")
    assert each is not None
    return each


def _local_frontiers(program: Program, table: RandomizedResponseTable) -> list[tuple[LocalMechanism, Frontier]]:
    """Every local technology that applies: bits where a record may lie in one of more than two cells."""
    with program.document.at("randomized_response"):
        response = _response(table, program)
        cells = len(response.innocuous_shares)
        found: list[LocalMechanism] = [response]
        if cells > 2:
            found.append(UnaryEncoding(response.population_size, cells))
        return [
            (each, frontier_of(each, program.workload, protection=program.protection).remembered()) for each in found
        ]


def _group_secret(program: Program, table: SecretTable) -> tuple[GroupSecret, int]:
    """The secret, and the steps between neighbors that one record of it takes."""
    with program.document.at("secret"):
        if program.welfare.privacy_measure is not PrivacyMeasure.PURE_DP:
            raise _no_pure_loss(program)
        steps = neighbor_steps(Secret.ATTRIBUTE, program.protection.neighbors)
        assert steps is not None  # a record may change under either relation
        return GroupSecret(tuple(map(float, table.shares_counted))), steps * program.protection.records_together


def _no_pure_loss(program: Program) -> InvalidMechanism:
    return InvalidMechanism(
        "a secret where the privacy loss holds only up to a failure probability",
        why="the odds of a secret are bounded by a pure epsilon alone",
        instead='state noise = "geometric" and the cost per epsilon, or leave [secret] out',
        where=program.document.place(("secret",)),
    )


def _market(program: Program, table: MarketsTable) -> Market:
    spread = table.spread_of_tastes
    tastes = UniformAmounts() if spread is None else LognormalAmounts(1.0, float(spread))
    currency = program.units.currency
    each = f"{currency} per {program.units.singular}"
    with program.document.at("markets"):
        return Market(
            float(table.largest_user_share),
            tastes,
            budget=_payable(program, table.budget, currency, "budget"),
            harm=_payable(program, table.harm, each, "harm"),
            target_error=None if table.target_error is None else float(table.target_error),
            failure_probability=float(table.failure_probability),
            stake=_payable(program, table.stake, each, "stake"),
            influence=amount_in(program, each, table.influence, "markets", "influence") or 0.0,
        )


def _payable(program: Program, number: CalibratedNumber | None, unit: str, key: str) -> float | None:
    amount = amount_in(program, unit, number, "markets", key)
    if amount == 0:
        raise InvalidValue(
            f"{key} = 0 cannot be used",
            why="nothing is bought, and nobody is kept from lying, with nothing",
            instead="state an amount above 0, or leave it out",
            where=program.document.place(("markets", key)),
        )
    return amount


def _yearly_value(program: Program, table: ReleasesTable) -> float | None:
    return amount_in(program, program.units.currency, table.yearly_value, "horizon", "yearly_value")


@dataclass(frozen=True)
class Participation:
    """How people respond to the privacy loss, and what each table counts; all public."""

    response: ExponentialResponse
    truthful: ExponentialResponse
    totals: Mapping[str, TableTotals]  # in steps of the published answers
    assumed: tuple[str, ...]  # tables whose total is not stated, so that everybody is taken to be counted
    source: str

    def of(self, frontier: Frontier, welfare: SocialWelfare) -> Frontier:
        """A frontier of some of the tables, with data of those who still take part."""
        values, measures = values_of(welfare), measures_of(welfare)
        kept = set(frontier.tables)
        limited = with_participation(
            frontier,
            self.response,
            self.totals,
            values={table: value for table, value in values.items() if table in kept},
            measures={table: measure for table, measure in measures.items() if table in kept},
            truthful=self.truthful,
        )
        return limited.remembered()

    def sampled(self, share: float) -> Participation:
        """The same people, of whom only a random share is asked."""
        return replace(self, response=replace(self.response, rate_without_loss=self.response.rate_without_loss * share))

    def widened(
        self, tables: tuple[TableConsequence, ...], frontier: Frontier, loss: float, grids: Mapping[str, float]
    ) -> tuple[TableConsequence, ...]:
        """Half-widths with noise weighted up and what response adds, as if normal and each number alike."""
        curves, weight = frontier.curves, self.response.weight(loss)
        assert isinstance(curves, ParticipationCurves)
        variance, bias = curves.of_response(loss, "squared")
        added = dict(zip(frontier.tables, (variance + bias).tolist(), strict=True))
        rows = []
        for table in tables:
            typical = math.sqrt(added[table.table] / table.query_count) * grids[table.table]
            rows.append(replace(table, half_width=math.hypot(table.half_width * weight, TWO_SIDED_95 * typical)))
        return tuple(rows)


def response_of(program: ProgramFile, privacy_measure: PrivacyMeasure) -> ExponentialResponse | None:
    """How many people take part at each loss, as the program says; None where it says nothing."""
    table, document = program.file.participation, program.document
    if table is None:
        return None
    decline = in_currency(table, ("participation", "decline_per"), "answers to", privacy_measure, document)
    assert decline is not None  # one of the two is stated
    with document.at("participation"):
        return ExponentialResponse(float(table.rate_without_loss), float(decline))


def participation_of(program: Program) -> Participation | None:
    """What the program says about response; None where it says nothing."""
    table, response = program.file.participation, response_of(program, program.welfare.privacy_measure)
    if table is None or response is None:
        return None
    _check_measures(program, "participation")
    truthful = _truthful(program)
    totals = _totals(program)
    if truthful != EVERYBODY:
        totals = {
            asked.name: _with_false_reports(program, position, totals[asked.name])
            for position, asked in enumerate(program.file.workload)
        }
    assumed = tuple(asked.name for asked in program.file.workload if asked.total is None)
    return Participation(response, truthful, totals, assumed, table.source)


def _truthful(program: Program) -> ExponentialResponse:
    """How many of those who take part tell the truth at each loss."""
    table, document, measure = program.file.participation, program.document, program.welfare.privacy_measure
    if table is None:
        return EVERYBODY
    false = in_currency(table, ("participation", "truthful_decline_per"), "answers to", measure, document)
    with document.at("participation"):
        return ExponentialResponse(float(table.truthful_without_loss), float(false or 0))


def _check_measures(program: Program, part: str) -> None:
    """Who is not in the data adds to errors that are squared or absolute; refused where others count."""
    for position, (asked, value) in enumerate(zip(program.file.workload, program.welfare.table_values, strict=False)):
        if not isinstance(value.measure, str):
            raise InvalidValue(
                f"the errors of table '{asked.name}' count in a way that [{part}] does not know",
                why="what those who are not in the data add to an error is known for squared and absolute errors",
                instead=f"use squared or absolute loss without a decision, or leave [{part}] out",
                where=program.document.place(("workload", position, "loss" if asked.decision is None else "decision")),
            )


def _with_false_reports(program: Program, position: int, totals: TableTotals) -> TableTotals:
    """Where false reports of people land in a table of counts; refused where that is not known."""
    asked, document = program.file.workload[position], program.document
    if asked.sum_of is not None or asked.weights:
        raise InvalidValue(
            f"false reports in table '{asked.name}', which {'adds up amounts' if asked.sum_of else 'weighs records'}",
            why="a false report is counted somewhere else; what amount it would state is not modeled",
            instead="leave the table out, or plan with everybody truthful",
            where=document.place(("workload", position)),
        )
    table = next(made for made in program.workload.tables if made.name == asked.name)
    key, counted = "standard_deviation", asked.falsely_counted
    spread = amount_in(program, program.table_units[asked.name], asked.standard_deviation, "workload", position, key)
    if counted is None and not asked.where:
        counted = Fraction(1)  # whatever is reported, it is counted somewhere
    if counted is None or (spread is None and table.query_count > 1):
        key = "falsely_counted" if counted is None else key
        raise MissingKey(
            f"{key} of table '{asked.name}' is not stated",
            why="false reports move numbers by as much as these differ from what false reports say",
            instead=f"state {key} of the table, from a public source",
            where=document.place(("workload", position)),
        )
    people = program.welfare.population_size * program.protection.most_records_per_unit
    if totals.total > people:
        raise InvalidValue(
            f"the table '{asked.name}' counts {exact(totals.total)}, and there are {exact(people)} records at most",
            why="a report is counted once in a table",
            instead="state a total of at most all records",
            where=document.place(("workload", position, "total")),
        )
    return replace(totals, people=people, falsely=float(counted), spread=spread or 0.0)


def _totals(program: Program) -> dict[str, TableTotals]:
    return {asked.name: _total(program, position) for position, asked in enumerate(program.file.workload)}


def _unlimited(frontier: Frontier) -> Frontier:
    """The frontier of everybody's data, below that of those who take part."""
    return frontier.curves.frontier if isinstance(frontier.curves, ParticipationCurves) else frontier


def _horizon(table: ReleasesTable) -> DisclosureHorizon:
    return DisclosureHorizon(
        float(table.disclosure_after_years or math.inf),
        float(table.discount_factor),
        years_of_use=float_or_none(table.years_of_use),
        depreciation=float(table.depreciation),
    )


def _response(table: RandomizedResponseTable, program: Program) -> RandomizedResponse:
    """Randomized response of whole records, as a program asks for it; refused where it cannot be compared."""
    cells, shares = program.domain.size, (table.innocuous_share, table.sensitive_share)
    why = None
    if cells != 2 and shares != (None, None):
        why = f"shares are those of the second of two cells, and a record may lie in one of {cells:,}"
    elif program.welfare.privacy_measure is not PrivacyMeasure.PURE_DP:
        why = "its loss is an epsilon, and the cost of disclosure is stated per rho"
    elif program.protection.most_records_per_unit > 1:
        why = "each sends one report"
    elif program.file.participation is not None:
        why = "it takes everybody to report: randomizing is to take away the reason not to"
    if why is not None:
        raise InvalidMechanism(
            f"{RandomizedResponse.name} cannot be compared here",
            why=why,
            instead="leave out what does not go together, in a copy of the program",
        )
    people = round(program.welfare.population_size)
    if cells != 2:
        return RandomizedResponse.categories(people, cells)
    innocuous, sensitive = (float_or_none(share) for share in shares)
    return RandomizedResponse.binary(people, innocuous_share=innocuous or 0.5, sensitive_share=sensitive)


def _total(program: Program, position: int) -> TableTotals:
    """S of a table in steps of its answers: what it counts, or for sums at most the total times the largest answer."""
    asked, document = program.file.workload[position], program.document
    table = next(made for made in program.workload.tables if made.name == asked.name)
    grid = float(table.grid)
    if asked.total is None and asked.sum_of is not None:
        raise MissingKey(
            f"the total of table '{asked.name}' is not stated",
            why="the error of those who stay away grows with what a table adds up to",
            instead='state total = { value = …, unit = "…", source = "…" }',
            where=document.place(("workload", position)),
        )
    total = amount_in(program, asked.unit or program.units.singular, asked.total, "workload", position, "total")
    if total is None:
        return TableTotals(program.welfare.population_size)
    if asked.sum_of is None:
        return TableTotals(total)
    largest = max(abs(float(value)) for value in program.domain.attribute(asked.sum_of).grid_values)
    return TableTotals(total / grid * largest)  # Σ of squares is at most Σ times the largest
