"""A program that can be planned: what its file says, and what society prefers; and how it is.

From a program to its plan: frontiers, the choice on them, and what the choice means, costs and rests on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import count
from pathlib import Path

from dualmandate.choice import Choice, Limits, SocialWelfare, choose, regret_curve
from dualmandate.choice.estimates import JointEstimates
from dualmandate.choice.optimum import unfit_words
from dualmandate.errors import ConflictingLimits, Place
from dualmandate.frontier import Frontier, Measure, priced
from dualmandate.mechanism import Measurement
from dualmandate.mechanism.rows import DecidedAnswers
from dualmandate.mechanism.technologies import TABLES
from dualmandate.planning.clipping import Clipping, clipping_of, starting_bounds
from dualmandate.planning.comparison import TechnologyComparison
from dualmandate.planning.extensions import (
    TWO_SIDED_95,
    ExtensionBuilder,
    check_extensions,
    participation_of,
    response_of,
)
from dualmandate.planning.plan import Plan, TableConsequence, costliest, notes_on
from dualmandate.planning.published_errors import CombinedTables, combined_tables
from dualmandate.planning.ratios import COVERAGE, ratio_consequences, with_ratios
from dualmandate.planning.release_spec import check_noise, check_program
from dualmandate.planning.robustness import check_robustness, public_total_of, robustness_of
from dualmandate.planning.simulation import TechnologySimulation
from dualmandate.planning.stated_technology import StatedTechnologyBuilder, check_stated
from dualmandate.planning.study import is_study
from dualmandate.planning.technology import Offered, Technology, TechnologyBuilder, combine, offered, used_at
from dualmandate.planning.timing import Timing, timing_of
from dualmandate.planning.uncertainty import check_uncertainty, estimates_of, social_choice_of, uncertainty_of
from dualmandate.planning.welfare import float_or_none, limits_of, welfare_of
from dualmandate.population import PrivacyLoss
from dualmandate.population.arguments import checked_class
from dualmandate.population.machine import one_thread
from dualmandate.program.file import Document, program_meant
from dualmandate.program.program import ProgramFile, program_of, read_stated, with_bounds
from dualmandate.program.schema import MechanismTable, ProgramKeys
from dualmandate.publication.sources import SparkTable
from dualmandate.semantics import guarantee

MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0)  # of the chosen loss, in the table of regrets
MOST_TURNS = 8  # in which bounds and loss are chosen by turns: they hardly ever take more than four


@checked_class
@dataclass(frozen=True, eq=False)
class Program(ProgramFile):
    """What a program file says, as the rooms of the house understand it, preferences included. All of it is public."""

    timing: Timing
    estimates: JointEstimates | None  # what a survey estimated, where the program says so
    welfare: SocialWelfare
    limits: Limits
    clipping: Clipping

    __repr__ = ProgramFile.__repr__

    def with_best_bounds(self) -> Program:
        """The program with the bounds that its plan chooses, where it leaves some to it."""
        return self.plan().program if self.bounds else self

    def plan(self, remaining: Fraction | float | None = None, *, progress: Callable[[str], None] | None = None) -> Plan:
        """The privacy loss to choose and why, from public numbers alone.

        `remaining` is what the population's account has left, in the currency of the program; None where no ledger is
        counted. `progress` is told what is being done.
        """
        with one_thread():
            return make_plan(self, remaining, progress or (lambda _: None))


def load(path: str | Path | Mapping[str, object]) -> Program:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place.

    A folder with one program in it stands for that program. A dictionary with the same keys is read as the file would
    be; its files are looked for in the current folder.
    """
    return stated(*read_stated(path if isinstance(path, Mapping) else program_meant(path)))


def stated(document: Document, file: ProgramKeys) -> Program:
    """The program that a document states with its keys."""
    return _preferring(program_of(document, file, starting_bounds(file, document)))


def _preferring(read: ProgramFile) -> Program:
    """What a file says together with what society prefers; what clipping leaves out is an error like others."""
    clipping, timing = clipping_of(read), timing_of(read.file, read.document)
    welfare = clipping.counted(with_ratios(welfare_of(read, timing), read, timing))
    response = response_of(read, welfare.privacy_measure)
    welfare = replace(welfare, groups=tuple(replace(group, response=response) for group in welfare.groups))
    return Program(
        **{field.name: getattr(read, field.name) for field in fields(ProgramFile)},
        timing=timing,
        estimates=estimates_of(read.file, read.document),
        welfare=welfare,
        limits=limits_of(read.file, welfare.privacy_measure, read.document),
        clipping=clipping,
    )


@dataclass(frozen=True, eq=False)
class _Searched:
    """The ways to produce the tables of a program, and the choice among them."""

    workshop: TechnologyBuilder
    offer: Offered
    frontier: Frontier
    choice: Choice


def _searched(
    program: Program, mechanism: MechanismTable, limits: Limits, progress: Callable[[str], None]
) -> _Searched:
    document, welfare = program.document, program.welfare
    progress("working out what to measure, and what each kind of noise can produce")
    with document.at("mechanism"):
        workshop = TechnologyBuilder(
            mechanism,
            program.workload,
            program.protection,
            welfare,
            program.file.shares,
            participation_of(program),
            limits,
            program.expected_records,
            program.file.publication.engine == "spark" or isinstance(program.source, SparkTable),
        )
        offer = offered(workshop, limits)
        frontier = combine(mechanism.noise, offer.technologies, welfare)
    progress("choosing the privacy loss")
    with document.at("limits" if document.value(("limits",)) else "preferences"):
        try:
            return _Searched(workshop, offer, frontier, choose(frontier, welfare, limits))
        except ConflictingLimits as refusal:
            unfit = [n for n, asked in enumerate(program.file.workload) if unfit_words(asked.name) == refusal.what]
            place = document.place(("workload", unfit[0], "fitness_for_use")) if unfit else Place()
            raise refusal.at(place) from None


def _with_best_bounds(program: Program, limits: Limits, progress: Callable[[str], None]) -> tuple[Program, _Searched]:
    """Bounds and loss at which neither moves any more, and what was found there.

    Where bounds are left to the plan, they are first found with noise on the tables themselves, which takes no search.
    """
    stated = program.file.mechanism
    plain = stated.model_copy(update={"strategy": TABLES})
    for mechanism in (plain, stated) if program.bounds and stated.strategy != TABLES else (stated,):
        for turn in count(1):
            found = _searched(program, mechanism, limits, progress)
            bounds = program.clipping.best_bounds(found.choice, program.welfare) if program.bounds else {}
            if bounds == program.bounds or turn == MOST_TURNS:
                break
            program = _preferring(with_bounds(program, bounds))
    return program, found


def make_plan(program: Program, remaining: Fraction | float | None, progress: Callable[[str], None]) -> Plan:
    """Choose on the frontier that the program asks for, then say everything that follows."""
    with program.document.at("population", "account"):
        limits = replace(program.limits, remaining=remaining)
    check_uncertainty(program)
    check_robustness(program)
    check_extensions(program)
    program.clipping.check(program.welfare)
    check_stated(program)
    study = is_study(program.file.mechanism.noise)
    if not study:
        check_program(program)
    program, found = _with_best_bounds(program, limits, progress)
    mechanism, welfare, workshop = program.file.mechanism, program.welfare, found.workshop
    technologies, frontier, choice = found.offer.technologies, found.frontier, found.choice
    technology = used_at(mechanism.noise, technologies, welfare, choice.epsilon)
    loss = technology.exact_loss(choice)
    simulation = TechnologySimulation(program, technology, choice, limits, progress).outcome()
    beside = None
    if mechanism.technology is None:
        tables = _table_consequences(workshop, technology, choice, loss, bias=program.clipping.bias)
    else:
        assert simulation is not None
        made = StatedTechnologyBuilder(program, technology, choice, limits, simulation, progress).made()
        technology, choice, tables, beside = made.technology, made.choice, made.tables, made.beside
        frontier, loss = technology.frontier, technology.exact_loss(choice)
    if not study:
        check_noise(program, technology.measurements, technology.shares(loss))
    choice = _as_promised(choice, tables)
    progress("comparing with other technologies")
    bench = TechnologyComparison(workshop, found.offer, technology, choice=choice, limits=limits)
    comparisons = bench.comparisons()
    saving = bench.saving(comparisons)
    progress("asking how the choice moves with each number it rests on")
    uncertainty = uncertainty_of(program, frontier, limits)
    plan = Plan(
        program=program,
        limits=limits,
        frontier=frontier,
        technologies=technologies,
        technology=technology,
        choice=choice,
        loss=loss,
        allocation=technology.shares(loss),
        guarantee=guarantee(
            program.protection,
            loss,
            program.file.population.household_size,
            failure_probability=float_or_none(mechanism.failure_probability),
            seen_in_the_data=program.file.population.seen_in_the_data,
        ),
        tables=tables,
        ratios=()  # refused beside a technology
        if technology.drawn is not None
        else ratio_consequences(program, welfare, measurements=technology.measurements, shares=technology.shares(loss)),
        comparisons=comparisons,
        saving=saving,
        # The shares of groups of tables stay as planned: to first order the best shares move nothing.
        robustness=robustness_of(
            program, frontier, limits, choice=choice, uncertainty=uncertainty, tables=costliest(choice, welfare)
        ),
        regrets=regret_curve(frontier, welfare, _known_multiples(frontier, choice), best=choice),
        notes=(),
        extensions=ExtensionBuilder(program, workshop, frontier, technology, choice, limits, simulation).all(),
        uncertainty=uncertainty,
        public_total=public_total_of(program, choice),
        social_choice=social_choice_of(program, frontier, limits),
        beside=beside,
    )
    return replace(plan, notes=notes_on(plan))


def _known_multiples(frontier: Frontier, choice: Choice) -> list[float]:
    """Those of the choice at which errors are known: a simulated frontier ends where simulation does."""
    least, most = frontier.known_losses
    return [each for each in MULTIPLES if each == 1.0 or least <= each * choice.epsilon <= most]


def _as_promised(choice: Choice, tables: tuple[TableConsequence, ...]) -> Choice:
    """The choice with the errors that are promised: rounding the loss down moves them in the fifth digit."""
    promised = {table.table: table for table in tables}
    return replace(
        choice,
        tables=tuple(
            replace(
                row,
                root_mean_squared_error=promised[row.table].root_mean_squared_error,
                root_mean_squared_consequence=promised[row.table].root_mean_squared_consequence,
            )
            for row in choice.tables
        ),
    )


def _table_consequences(
    workshop: TechnologyBuilder,
    technology: Technology,
    choice: Choice,
    loss: PrivacyLoss,
    *,
    bias: Callable[[str], float | None],
) -> tuple[TableConsequence, ...]:
    """RMSE, 95 % half-width and consequences of every table at exactly the loss that a release spends.

    So what is promised here is what the release states. What the choice costs is that of the optimum, before its loss
    is rounded.
    """
    values = {value.table: value for value in workshop.welfare.table_values}
    shares, measurements = technology.shares(loss), technology.measurements
    combined = None if is_study(technology.noise) else combined_tables(measurements, shares, workshop.protection)
    together = combined if isinstance(combined, CombinedTables) else None

    def half_width(measurement: Measurement, table: str, share: Fraction) -> float:
        if together is not None and workshop.participation is None:
            return together.half_width(table, 1 - COVERAGE)
        return float(measurement.half_width(table, float(share), COVERAGE).max())

    def errors(measure: Measure) -> dict[str, float]:
        if workshop.participation is not None:  # noise is weighted up, and those who stay away are an error too
            return technology.frontier.table_errors(choice.epsilon, measure)
        found = [priced(measurements[group]).table_errors(float(share), measure) for group, share in shares.items()]
        own = {table: error for each in found for table, error in each.items()}
        return own if together is None or measure != "squared" else together.table_errors(own)

    measures: set[Measure] = {"squared", *(value.measure for value in values.values())}
    summed = {measure: errors(measure) for measure in measures}
    rows = []
    for group, share in shares.items():
        measurement = measurements[group]
        for table in measurement.workload.tables:
            value = values[table.name]
            mean_squared_error = summed["squared"][table.name] / table.query_count * value.grid**2
            consequence = value.squared_consequence(mean_squared_error)
            rows.append(
                TableConsequence(
                    table=table.name,
                    unit=value.unit,
                    query_count=table.query_count,
                    measured_in=group,
                    root_mean_squared_error=math.sqrt(mean_squared_error),
                    bias=bias(table.name),
                    half_width=math.hypot(
                        half_width(measurement, table.name, share) * value.grid,
                        TWO_SIDED_95 * math.sqrt(value.existing_squared_error / table.query_count),
                    ),
                    root_mean_squared_consequence=None if consequence is None else math.sqrt(consequence),
                    data_loss=value.value_per_step * summed[value.measure][table.name] + value.least,
                    exact=isinstance(measurement.answered[table.name], DecidedAnswers)
                    or (together is not None and mean_squared_error == 0.0),
                )
            )
    order = [table.name for table in workshop.workload.tables]
    ranked = tuple(sorted(rows, key=lambda row: order.index(row.table)))
    if workshop.participation is None:
        return ranked
    grids = {name: value.grid for name, value in values.items()}
    return workshop.participation.widened(ranked, technology.frontier, choice.epsilon, grids)
