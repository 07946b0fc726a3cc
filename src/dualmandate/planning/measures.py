"""How the errors of a table count, from the program file: its loss, and the decision that reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from dualmandate.choice.wealth import TaylorDiagnostic, WealthGroup
from dualmandate.errors import InvalidFile, InvalidValue, Place
from dualmandate.frontier import (
    Decision,
    FormulaGrant,
    Measure,
    Misallocation,
    RelativeErrors,
    Simulation,
    TailMisses,
    WorstError,
    multiplicative_weights_exponential,
    private_multiplicative_weights,
)
from dualmandate.frontier.numerics import loss_where
from dualmandate.mechanism import Measurement
from dualmandate.planning.grants.files import title_i_grants
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats
from dualmandate.population.wording import number
from dualmandate.program.domain import check_not_data
from dualmandate.program.number import CalibratedNumber
from dualmandate.program.program import ProgramFile
from dualmandate.program.text_columns import TextColumns, read_text_columns

NUMBER = "number"  # the column of a file of public numbers that holds them
LOSSES = tuple(float(loss) for loss in np.geomspace(0.01, 100.0, 21))  # at which a decision is simulated
SAME = 1e-9  # Worst errors, and losses, that differ by less than this share are one.
FARTHEST = 1e3  # times the loss, to where the next fall of a worst error is looked for
SEED = 20190101  # of simulated decisions: a plan says the same each time


@dataclass(frozen=True)
class MeasuredLoss:
    """What the errors of one table amount to, where they are not simply squared or absolute."""

    table: str
    loss: str  # as in the program file, or "decision"
    amount: float  # Σ of squared shares; numbers off by too much; the worst error; USD or USD² misallocated
    unit: str  # of the amount; empty where it is a pure number
    table_unit: str
    query_count: int
    value: float  # what one unit of the amount costs, USD
    threshold: float | None = None  # of tail loss, in the table's unit
    miss_probability: float | None = None  # of worst-case loss
    promised: float | None = None  # α of the release itself, in the table's unit: whole where its noise is
    falls_at: float | None = None  # the next loss at which it falls; None where it moves with the loss
    falls_to: float | None = None  # and to what, in the table's unit
    multiplicative_weights: tuple[tuple[str, float], ...] = ()  # what other mechanisms promise, in the table's unit
    given_out: float | None = None  # by the decision with exact numbers, USD
    band: tuple[float, float] | None = None  # of simulation, around the amount
    simulated_to: float | None = None  # the largest loss that was simulated


def measure_of(program: ProgramFile, position: int) -> Measure:
    """The measure of a table's errors; numbers in its unit become steps of its answers."""
    asked, document = program.file.workload[position], program.document
    grid = float(program.workload.table(asked.name).grid)
    unit, key, money = asked.unit or program.units.singular, ("workload", position), program.units.currency

    def amount(number: CalibratedNumber | None, unit: str, *last: str) -> float:
        with document.at(*key, *last):
            assert number is not None
            return number.quantity().to(unit, program.units).value

    if asked.decision is not None:
        decision, numbers = asked.decision, _public_numbers(program, position)
        grant: Decision
        if decision.title_i is not None:
            grant = title_i_grants(program, position, numbers)
        else:
            appropriation = math.inf
            if decision.appropriation is not None:
                appropriation = amount(decision.appropriation, money, "decision", "appropriation")
            per_head = amount(decision.per_head, f"{money} per {unit}", "decision", "per_head")
            grant = FormulaGrant(
                np.full(numbers.size, per_head),
                threshold=float(decision.threshold or 0),
                appropriation=appropriation,
                name=f"grants by {asked.name}",
            )
        simulation = Simulation(LOSSES, decision.repetitions, SEED)
        counted: Literal["absolute", "squared"] = "absolute" if asked.loss == "absolute" else "squared"
        return Misallocation(asked.name, grant, numbers, counted, simulation, grid)
    if asked.loss == "tail":
        return TailMisses(asked.name, amount(asked.threshold, unit, "threshold") / grid)
    if asked.loss == "worst-case":
        assert asked.miss_probability is not None
        return WorstError(asked.name, float(asked.miss_probability))
    if asked.loss == "relative":
        stated = "public_numbers" if asked.expected_number is None else "expected_number"
        with document.at(*key, stated):
            if asked.expected_number is None:
                return RelativeErrors(asked.name, _public_numbers(program, position) / grid)
            return RelativeErrors(asked.name, amount(asked.expected_number, unit, "expected_number") / grid)
    return asked.loss


def wealth_of(program: ProgramFile, position: int) -> tuple[WealthGroup, ...]:
    """The people whose wealth hangs on a table."""
    asked, document = program.file.workload[position], program.document
    money, groups = program.units.currency, []
    per_unit = f"{money} per {asked.unit or program.units.singular}"
    for place, row in enumerate(asked.wealth):
        amounts = []
        for name, unit in (("exposure", per_unit), ("risk_aversion", f"1/{money}")):
            with document.at("workload", position, "wealth", place, name):
                amount = getattr(row, name).quantity().to(unit, program.units).value
                if amount <= 0:
                    raise InvalidValue(
                        f"{name} = {amount:g}",
                        why="who is not exposed, or does not mind risk, pays nothing for accuracy",
                        instead="state a number above 0, or leave the group out",
                    )
                amounts.append(amount)
        exposure, aversion = amounts
        groups.append(WealthGroup(row.name, float(row.people), exposure, aversion, to_all=row.exposed_to == "all"))
    return tuple(groups)


@dataclass(frozen=True)
class WealthWorth:
    """What the accuracy of a table is worth to people whose wealth hangs on it, and how far Taylor is off."""

    table: str
    group: WealthGroup
    value: float  # USD per squared unit of the table
    taylor: TaylorDiagnostic | None  # of one of them, USD; None where the noise has no closed form for it


def _public_numbers(program: ProgramFile, position: int) -> Floats:
    """A public number for each cell of a table, from a CSV file beside the program, in the order of its answers."""
    asked, document = program.file.workload[position], program.document
    assert asked.public_numbers is not None
    with document.at("workload", position, "public_numbers"):
        file = document.path.parent / asked.public_numbers
        check_not_data(file, program.file.population, document)
        read = read_text_columns(file, "file of public numbers")
        places = zip(*(read.column(name) for name in asked.names), strict=True) if asked.by else ((),) * len(read.lines)
        written = read.column(NUMBER)
        found: dict[tuple[str, ...], float] = {}
        for line, place, text in zip(read.lines, places, written, strict=True):
            if place in found:
                raise _unusable(read, f"'{', '.join(place)}' stands there twice", "state one number a cell", line)
            found[place] = _number(read, text, line)
        cells = list(program.workload.labels(asked.name))
        missing = next((cell for cell in cells if cell not in found), None)
        if missing is not None or len(found) > len(cells):
            named = missing or next(iter(set(found) - set(cells)))
            why = f"'{', '.join(named)}' is {'not there' if missing else 'no cell of the table'}"
            raise _unusable(read, why, f"state one number for each of the {len(cells):,} cells of '{asked.name}'")
        return np.array([found[cell] for cell in cells])


def _number(read: TextColumns, text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise _unusable(read, "a number is not finite, or below 0", "write numbers of at least 0", line)
    return value


def _unusable(read: TextColumns, why: str, instead: str, line: int | None = None) -> InvalidFile:
    where = None if line is None else Place(str(Path(read.file)), line)
    return InvalidFile(
        f"the file of public numbers '{read.file.name}' cannot be used", why=why, instead=instead, where=where
    )


def measured_loss(
    program: ProgramFile, measurement: Measurement, *, measure: Measure, value: float, loss: float
) -> MeasuredLoss | None:
    """What a table's errors amount to when a measurement spends exactly this loss; None for squared and absolute."""
    if isinstance(measure, str):
        return None
    asked = next(table for table in program.file.workload if table.name == measure.table)
    table, unit = program.workload.table(measure.table), asked.unit or program.units.singular
    grid = float(table.grid)
    amount = measure.curve(measurement)(loss) * grid**measure.power
    row = MeasuredLoss(
        measure.table,
        asked.loss,
        amount,
        measure.unit(unit, program.units.currency),
        unit,
        query_count=table.query_count,
        value=value,
    )
    if isinstance(measure, TailMisses):
        return replace(row, threshold=measure.threshold * grid)
    if isinstance(measure, WorstError):
        promised = _promised(measurement, measure, loss)
        beside = _multiplicative_weights(program, measurement, measure, loss) if asked.sum_of is None else ()
        at = _next_fall(measurement, measure, loss)
        return replace(
            row,
            miss_probability=measure.miss_probability,
            promised=promised * grid,
            falls_at=at,
            falls_to=None if at is None else _promised(measurement, measure, at) * grid,
            multiplicative_weights=beside,
        )
    if isinstance(measure, Misallocation):
        curve = measure.curve(measurement)
        return replace(
            row,
            loss="decision",
            given_out=float(np.sum(measure.due)),
            band=curve.band(loss),
            simulated_to=math.exp(curve.log_losses[-1]),
        )
    return row


def _promised(measurement: Measurement, measure: WorstError, loss: float) -> float:
    """α of a release at exactly this loss, in steps of its answers."""
    return float(measurement.simultaneous_half_width(measure.table, loss, 1 - measure.miss_probability).max())


def _next_fall(measurement: Measurement, measure: WorstError, loss: float) -> float | None:
    """The next loss at which α falls by a step; None where it is no whole number of steps, and moves with the loss.

    What is priced runs through the jumps: it comes down to what a release promises where the next one begins.
    """
    promised, priced = _promised(measurement, measure, loss), measure.curve(measurement)
    if not 0 < promised < priced(loss) * (1 - SAME):
        return None
    found = loss_where(priced, promised, within=(loss, loss * FARTHEST))
    after = found * (1 + SAME)
    return after if math.isfinite(found) and _promised(measurement, measure, after) < promised else None


def _multiplicative_weights(
    program: ProgramFile, measurement: Measurement, measure: WorstError, loss: float
) -> tuple[tuple[str, float], ...]:
    """What mechanisms that look at the data promise of any data, in records, for the same table and loss.

    Private multiplicative weights needs a δ: that of the program, else 1/N², N the population.
    """
    size = float(program.file.population.population_size.value)
    queries = program.workload.table(measure.table).query_count
    if measurement.privacy_measure is not PrivacyMeasure.PURE_DP or queries < 2 or size < 2:
        return ()
    stated = program.file.mechanism.failure_probability
    delta = size**-2 if stated is None else float(stated)
    private = private_multiplicative_weights(
        size,
        program.domain.size,
        queries,
        failure_probability=delta,
        miss_probability=measure.miss_probability,
    )
    exponential = multiplicative_weights_exponential(size, program.domain.size, queries)
    names = f"private multiplicative weights at δ = {number(delta, 2)}", "multiplicative weights with selection"
    return tuple((name, size * each.error(loss)) for name, each in zip(names, (private, exponential), strict=True))
