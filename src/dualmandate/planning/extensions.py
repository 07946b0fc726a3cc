"""What a plan says beyond the paper's model, where the program asks for it.

Participation, tables that earn their place, releases to come, markets, and errors that were there before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dualmandate.choice import (
    BudgetPath,
    Candidate,
    Choice,
    DisclosureHorizon,
    Limits,
    SocialWelfare,
    TableSelection,
    budget_path,
    choose_tables,
)
from dualmandate.choice.markets import Institution, LognormalAmounts, Market, UniformAmounts, compare_markets
from dualmandate.errors import InvalidValue, MissingKey, Refusal
from dualmandate.frontier import ExponentialResponse, Frontier, TableTotals, peak_of, with_participation
from dualmandate.mechanism import NOISE_LAWS, Measurement
from dualmandate.mechanism.technologies import TABLES
from dualmandate.planning.clipping import BoundCurve
from dualmandate.planning.measures import MeasuredLoss, WealthWorth, measured_loss, wealth_of
from dualmandate.planning.technology import TOGETHER, Technology, TechnologyBuilder, measures_of, values_of
from dualmandate.planning.welfare import amount_in, in_currency
from dualmandate.population import PrivacyMeasure
from dualmandate.program.number import CalibratedNumber
from dualmandate.program.program import ProgramFile, tabulation_of
from dualmandate.program.schema import WorkloadTable
from dualmandate.workload import Workload

if TYPE_CHECKING:
    from dualmandate.planning.plan import TableConsequence
    from dualmandate.planning.program import Program

AS_STATED = "as stated"  # A table as it stands in the program has this detail.
TWO_SIDED_95 = 1.959964  # This many standard deviations on either side hold 95 in 100.


@dataclass(frozen=True, eq=False)
class ParticipationOutcome:
    """How participation moves the frontier, at the choice and at the peak."""

    rate: float  # share of people who take part at the choice
    rate_without_loss: float
    peak: float | None  # the loss beyond which accuracy falls; None where it never does
    assumed_totals: tuple[str, ...]  # tables whose total is not stated, so that everybody is taken to be counted
    source: str
    noise_cost: Callable[[float], float]  # USD: what errors would cost at a loss if everybody took part
    cost: Callable[[float], float]  # USD: what they cost with those who do, beyond the peak too


@dataclass(frozen=True)
class ExistingError:
    """The error that a table had before noise, and what noise makes of it; RMSE of one number, in the table's unit."""

    table: str
    unit: str
    before: float
    noise: float
    sampling: bool = False  # whether it is that of a draw from a superpopulation

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
        plain = replace(self.workshop, participation=None)  # remembers the strategies that were found
        inner = plain.technology(NOISE_LAWS[self.technology.noise], *self.technology.kind[1:]).frontier
        return ParticipationOutcome(
            rate=response.response.rate(self.choice.epsilon),
            rate_without_loss=response.response.rate_without_loss,
            peak=peak_of(self.frontier),
            assumed_totals=response.assumed,
            source=response.source,
            noise_cost=partial(self.program.welfare.data_loss, inner),
            cost=partial(self._true_cost, response, inner),
        )

    def _true_cost(self, response: Participation, inner: Frontier, loss: float) -> float:
        """What errors cost at a loss, also beyond the peak, where a frontier only stays level."""
        weight = response.response.weight(loss)
        total = self.program.welfare.least_data_loss
        for value in self.program.welfare.table_values:
            noise = inner.table_errors(loss, value.measure)[value.table]
            sampling = response.totals[value.table].total * (weight - 1)
            if value.measure == "squared":
                error = noise * weight**2 + sampling
            else:
                error = math.hypot(noise * weight, math.sqrt(2 / math.pi * inner.query_counts[value.table] * sampling))
            total += value.value_per_step * error
        return total

    def _existing(self) -> Iterator[ExistingError]:
        """A constant under squared loss: reported beside the noise, never part of what is chosen by."""
        values = {value.table: value for value in self.program.welfare.table_values}
        for position, asked in enumerate(self.program.file.workload):
            outcome = next(outcome for outcome in self.choice.tables if outcome.table == asked.name)
            before = self._amount(asked.existing_error, outcome.unit, "workload", position, "existing_error")
            drawn = math.sqrt(values[asked.name].existing_squared_error / outcome.query_count)
            if before or drawn:
                noise = outcome.root_mean_squared_error
                yield ExistingError(outcome.table, outcome.unit, before or drawn, noise, sampling=not before)

    def _losses(self) -> Iterator[MeasuredLoss]:
        for value in self.program.welfare.table_values:
            measurement, loss = self._measured_at[value.table]
            found = measured_loss(self.program, measurement, measure=value.measure, value=value.value, loss=loss)
            if found is not None:
                yield found

    def _wealth(self) -> Iterator[WealthWorth]:
        for position, value in enumerate(self.program.welfare.table_values):
            measurement, loss = self._measured_at[value.table]
            count = measurement.workload.table(value.table).query_count
            for group in wealth_of(self.program, position):
                taylor = group.diagnostic(measurement, value.table, loss, grid=value.grid)
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
            horizon = DisclosureHorizon(float(table.disclosure_after_years or math.inf), float(table.discount_factor))
            return budget_path(
                self.frontier,
                self.program.welfare,
                years=sorted(float(year) for year in table.releases),
                horizon=horizon,
                cap=None if table.largest_total is None else float(table.largest_total),
                limits=replace(self.limits, remaining=None),
            )

    def _markets(self) -> tuple[Institution, ...]:
        table = self.program.file.markets
        if table is None:
            return ()
        spread = table.spread_of_tastes
        tastes = UniformAmounts() if spread is None else LognormalAmounts(1.0, float(spread))
        units = self.program.units
        with self.program.document.at("markets"):
            market = Market(
                float(table.largest_user_share),
                tastes,
                budget=self._payable(table.budget, units.currency, "budget"),
                harm=self._payable(table.harm, f"{units.currency} per {units.singular}", "harm"),
                target_error=None if table.target_error is None else float(table.target_error),
                failure_probability=float(table.failure_probability),
            )
            return compare_markets(self.frontier, self.program.welfare, market, self.limits)

    def _payable(self, number: CalibratedNumber | None, unit: str, key: str) -> float | None:
        amount = self._amount(number, unit, "markets", key)
        if amount == 0:
            raise InvalidValue(
                f"{key} = 0 cannot be used",
                why="who pays nothing, or nothing for harm, buys no records",
                instead="state an amount above 0, or leave it out",
                where=self.program.document.place(("markets", key)),
            )
        return amount

    def _offering(self) -> TableSelection | None:
        candidates = [
            candidate
            for position, asked in enumerate(self.program.file.workload)
            if asked.value_of_publishing is not None
            for candidate in self._candidates(position, asked)
        ]
        if not candidates:
            return None
        bounds = self.limits.bounds(self.frontier, self.program.welfare)
        # A table is priced among those who take part at the choice.
        return choose_tables(candidates, self.program.welfare.as_at(self.choice.epsilon), cap=bounds.highest)

    def _candidates(self, position: int, asked: WorkloadTable) -> Iterator[Candidate]:
        """A table as it stands and at its other details, each measured by itself with the noise in use."""
        stated = next(value for value in self.program.welfare.table_values if value.table == asked.name)
        key = ("workload", position, "value_of_publishing")
        whole = self._amount(asked.value_of_publishing, self.program.units.currency, *key)
        assert whole is not None
        alone = self.program.workload.only((asked.name,))
        label = AS_STATED if asked.details else ""
        yield Candidate(asked.name, whole, self._measured_alone(alone), stated, label)
        for number, detail in enumerate(asked.details):
            place = ("workload", position, "details", number)
            with self.program.document.at(*place):
                money = self.program.units.currency
                worth = self._amount(detail.value_of_publishing, money, *place, "value_of_publishing")
                assert worth is not None
                domain = self.program.domain
                tabulated = Workload.from_tabulations(domain, [tabulation_of(asked, detail.by, domain)])
                yield Candidate(asked.name, worth, self._measured_alone(tabulated), stated, detail.name)

    def _measured_alone(self, workload: Workload) -> Frontier:
        kept = {table.name for table in workload.tables}
        values = tuple(value for value in self.program.welfare.table_values if value.table in kept)
        welfare = replace(self.program.welfare, table_values=values)
        shop = replace(self.workshop, workload=workload, welfare=welfare, table_shares={})
        return shop.technology(NOISE_LAWS[self.technology.noise], TABLES, TOGETHER).frontier

    def _amount(self, number: CalibratedNumber | None, unit: str, *key: str | int) -> float | None:
        return amount_in(self.program, unit, number, *key)


@dataclass(frozen=True)
class Participation:
    """How people respond to the privacy loss, and what each table counts; all public."""

    response: ExponentialResponse
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
        )
        return limited.remembered()

    def widened(
        self, tables: tuple[TableConsequence, ...], loss: float, grids: Mapping[str, float]
    ) -> tuple[TableConsequence, ...]:
        """Half-widths with noise weighted up and the error of those who stay away, each cell counted alike."""
        weight = self.response.weight(loss)
        rows = []
        for table in tables:
            sampling = self.totals[table.table].total / table.query_count * (weight - 1) * grids[table.table] ** 2
            width = math.hypot(table.half_width * weight, TWO_SIDED_95 * math.sqrt(sampling))
            rows.append(replace(table, half_width=width))
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
    for position, (asked, value) in enumerate(zip(program.file.workload, program.welfare.table_values, strict=True)):
        if not isinstance(value.measure, str):
            raise InvalidValue(
                f"the errors of table '{asked.name}' count in a way that participation does not know",
                why="what those who stay away add to an error is known for squared and absolute errors",
                instead="use squared or absolute loss without a decision, or leave [participation] out",
                where=document.place(("workload", position, "loss" if asked.decision is None else "decision")),
            )
    totals = {asked.name: _total(program, position) for position, asked in enumerate(program.file.workload)}
    assumed = tuple(asked.name for asked in program.file.workload if asked.total is None)
    return Participation(response, totals, assumed, table.source)


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
