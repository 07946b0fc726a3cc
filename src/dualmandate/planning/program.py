"""A program that can be planned: what its file says, and what society prefers; and how it is.

From a program to its plan: frontiers, the choice on them, and what the choice means, costs and rests on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

from dualmandate.choice import Choice, Limits, SocialWelfare, choose, regret_curve, tornado
from dualmandate.frontier import Measure
from dualmandate.planning.comparison import TechnologyComparison
from dualmandate.planning.extensions import ExtensionBuilder, participation_of
from dualmandate.planning.plan import Plan, TableConsequence, costliest, notes_on
from dualmandate.planning.technology import Technology, TechnologyBuilder, combine, offered, used_at
from dualmandate.planning.uncertainty import social_choice_of, uncertainty_of
from dualmandate.planning.welfare import float_or_none, limits_of, welfare_of
from dualmandate.population import PrivacyLoss
from dualmandate.program.program import ProgramFile, read_program
from dualmandate.semantics import guarantee

MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0)  # of the chosen loss, in the table of regrets
SPREAD = 0.1  # each input of the tornado moves by a tenth either way
COVERAGE = 0.95


@dataclass(frozen=True, eq=False)
class Program(ProgramFile):
    """What a program file says, as the rooms of the house understand it, preferences included. All of it is public."""

    welfare: SocialWelfare
    limits: Limits

    def plan(self, remaining: Fraction | float | None = None, *, progress: Callable[[str], None] | None = None) -> Plan:
        """The privacy loss to choose and why, from public numbers alone.

        `remaining` is what the population's account has left, in the currency of the program; None where no ledger is
        counted. `progress` is told what is being done.
        """
        return make_plan(self, remaining, progress or (lambda _: None))


def load(path: str | Path) -> Program:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place."""
    read = read_program(path)
    welfare = welfare_of(read)
    limits = limits_of(read.file, welfare.privacy_measure, read.document)
    known = {field.name: getattr(read, field.name) for field in fields(read)}
    return Program(**known, welfare=welfare, limits=limits)


def make_plan(program: Program, remaining: Fraction | float | None, progress: Callable[[str], None]) -> Plan:
    """Choose on the frontier that the program asks for, then say everything that follows."""
    document, mechanism, welfare = program.document, program.file.mechanism, program.welfare
    with document.at("population", "account"):
        limits = replace(program.limits, remaining=remaining)
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
        )
        offer = offered(workshop, limits)
        technologies = offer.technologies
        frontier = combine(mechanism.noise, technologies, welfare)
    progress("choosing the privacy loss")
    with document.at("limits" if program.document.value(("limits",)) else "preferences"):
        choice = choose(frontier, welfare, limits)
    technology = used_at(mechanism.noise, technologies, welfare, choice.epsilon)
    loss = technology.exact_loss(choice)
    progress("comparing with other technologies")
    bench = TechnologyComparison(workshop, offer, technology, choice=choice, limits=limits)
    comparisons = bench.comparisons()
    saving = bench.saving(comparisons)
    progress("asking how the choice moves with each number it rests on")
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
        ),
        tables=_table_consequences(workshop, technology, choice, loss),
        comparisons=comparisons,
        saving=saving,
        # The shares of groups of tables stay as planned: to first order the best shares move nothing.
        tornado=tornado(frontier, welfare, limits, spread=SPREAD, tables=costliest(choice)),
        regrets=regret_curve(frontier, welfare, MULTIPLES, best=choice),
        notes=(),
        extensions=ExtensionBuilder(program, workshop, frontier, technology, choice, limits).all(),
        uncertainty=uncertainty_of(program, frontier, limits),
        social_choice=social_choice_of(program, frontier, limits),
    )
    return replace(plan, notes=notes_on(plan))


def _table_consequences(
    workshop: TechnologyBuilder, technology: Technology, choice: Choice, loss: PrivacyLoss
) -> tuple[TableConsequence, ...]:
    """RMSE, 95 % half-width and consequences of every table at exactly the loss that a release spends.

    So what is promised here is what the release states. The choice itself is the optimum before its loss is rounded.
    """
    values = {value.table: value for value in workshop.welfare.table_values}
    shares, measurements = technology.shares(loss), technology.measurements

    def errors(measure: Measure) -> dict[str, float]:
        if workshop.participation is not None:  # noise is weighted up, and those who stay away are an error too
            return technology.frontier.table_errors(choice.epsilon, measure)
        found = [measurements[group].table_errors(float(share), measure) for group, share in shares.items()]
        return {table: error for each in found for table, error in each.items()}

    summed = {measure: errors(measure) for measure in {"squared", *(value.measure for value in values.values())}}
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
                    half_width=float(measurement.half_width(table.name, float(share), COVERAGE).max()) * value.grid,
                    root_mean_squared_consequence=None if consequence is None else math.sqrt(consequence),
                    data_loss=value.value_per_step * summed[value.measure][table.name] + value.least,
                )
            )
    order = [table.name for table in workshop.workload.tables]
    ranked = tuple(sorted(rows, key=lambda row: order.index(row.table)))
    if workshop.participation is None:
        return ranked
    grids = {name: value.grid for name, value in values.items()}
    return workshop.participation.widened(ranked, technology.frontier, choice.epsilon, grids)
