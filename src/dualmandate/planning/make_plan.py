"""From a program to its plan: frontiers, the choice on them, and what the choice means, costs and rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dualmandate.choice import Choice, choose, regret_curve, tornado
from dualmandate.frontier import CurveFrontier
from dualmandate.planning.comparison import Bench
from dualmandate.planning.extending import Extending
from dualmandate.planning.notes import notes_on
from dualmandate.planning.participation import participation_of
from dualmandate.planning.plan import Plan, TableConsequence, costliest
from dualmandate.planning.program import Program
from dualmandate.planning.social_choice import social_choice_of
from dualmandate.planning.strategies import offered
from dualmandate.planning.technology import Technology, Workshop, combine, used_at
from dualmandate.planning.uncertainty import uncertainty_of
from dualmandate.semantics import guarantee

MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0)  # of the chosen loss, in the table of regrets
SPREAD = 0.1  # each input of the tornado moves by a tenth either way
COVERAGE = 0.95


def make_plan(program: Program, remaining: Fraction | float | None, progress: Callable[[str], None]) -> Plan:
    """Choose on the frontier that the program asks for, then say everything that follows."""
    document, mechanism, welfare = program.document, program.file.mechanism, program.welfare
    with document.at("population", "account"):
        limits = replace(program.limits, remaining=remaining)
    progress("working out what to measure, and what each kind of noise can produce")
    with document.at("mechanism"):
        workshop = Workshop(
            mechanism, program.workload, program.protection, welfare, program.file.shares, participation_of(program)
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
    bench = Bench(workshop, offer, technology, choice=choice, limits=limits)
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
            failure_probability=_float(mechanism.failure_probability),
        ),
        tables=_table_consequences(workshop, technology, choice, frontier),
        comparisons=comparisons,
        saving=saving,
        regrets=regret_curve(frontier, welfare, MULTIPLES, best=choice),
        # The shares of groups of tables stay as planned: to first order the best shares move nothing.
        tornado=tornado(frontier, welfare, limits, spread=SPREAD, tables=costliest(choice)),
        notes=(),
        extensions=Extending(program, workshop, frontier, technology, choice, limits).all(),
        uncertainty=uncertainty_of(program, frontier, limits),
        social_choice=social_choice_of(program, frontier, limits),
    )
    return replace(plan, notes=notes_on(plan))


def _table_consequences(
    workshop: Workshop, technology: Technology, choice: Choice, frontier: CurveFrontier
) -> tuple[TableConsequence, ...]:
    """RMSE, 95 % half-width and consequences of every table at the choice."""
    spent = technology.measured.allocation(technology.spent(choice.epsilon))
    costs = workshop.welfare.table_data_losses(frontier, choice.epsilon)
    values = {value.table: value for value in workshop.welfare.table_values}
    rows = []
    for group, loss in spent.items():
        measurement = technology.measurements[group]
        for table in measurement.workload.tables:
            outcome = next(outcome for outcome in choice.tables if outcome.table == table.name)
            width = float(measurement.half_width(table.name, loss, COVERAGE).max())
            rows.append(
                TableConsequence(
                    table=table.name,
                    unit=outcome.unit,
                    query_count=outcome.query_count,
                    measured_in=group,
                    root_mean_squared_error=outcome.root_mean_squared_error,
                    half_width=width * values[table.name].grid,
                    root_mean_squared_consequence=outcome.root_mean_squared_consequence,
                    data_loss=costs[table.name],
                )
            )
    order = [table.name for table in workshop.workload.tables]
    ranked = tuple(sorted(rows, key=lambda row: order.index(row.table)))
    if workshop.participation is None:
        return ranked
    return workshop.participation.widened(ranked, choice.epsilon, {name: value.grid for name, value in values.items()})


def _float(number: Fraction | None) -> float | None:
    return None if number is None else float(number)
