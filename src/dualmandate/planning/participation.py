"""From `[participation]` to frontiers whose data come from those who still take part, and what that does to a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dualmandate.choice import SocialWelfare
from dualmandate.errors import InvalidValue, MissingKey
from dualmandate.frontier import ExponentialResponse, Frontier, TableTotals, with_participation
from dualmandate.planning.technology import measures_of, values_of
from dualmandate.planning.welfare import calibrated, units_of
from dualmandate.population import PrivacyMeasure

if TYPE_CHECKING:
    from dualmandate.planning.plan import TableConsequence
    from dualmandate.planning.program import Program

TWO_SIDED_95 = 1.959964  # This many standard deviations on either side hold 95 in 100.


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


def participation_of(program: Program) -> Participation | None:
    """What the program says about response; None where it says nothing."""
    table, document, privacy_measure = program.file.participation, program.document, program.welfare.privacy_measure
    if table is None:
        return None
    decline = table.decline_per_epsilon if privacy_measure is PrivacyMeasure.PURE_DP else table.decline_per_rho
    if decline is None:
        wrong = "decline_per_rho" if privacy_measure is PrivacyMeasure.PURE_DP else "decline_per_epsilon"
        raise InvalidValue(
            f"{wrong} answers to a privacy loss that this program does not choose",
            why=f"its cost of disclosure is stated so that the loss is counted in {privacy_measure}",
            instead=f"state decline_per_{privacy_measure}",
            where=document.place(("participation", wrong)),
        )
    with document.at("participation"):
        response = ExponentialResponse(float(table.rate_without_loss), float(decline))
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
    if asked.total is None:
        return TableTotals(program.welfare.population_size)
    units = units_of(program.file, document)
    with document.at("workload", position, "total"):
        total = calibrated(asked.total).to(asked.unit or units.singular, units).value
    if asked.sum_of is None:
        return TableTotals(total)
    largest = max(abs(float(value)) for value in program.domain.attribute(asked.sum_of).grid_values)
    return TableTotals(total / grid * largest)  # Σ of squares is at most Σ times the largest
