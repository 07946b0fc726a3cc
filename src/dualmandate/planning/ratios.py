"""What a plan says of ratios before anything is measured: how wrong each will be, and what that costs.

The error of a ratio is linearized, e ≈ (e_N − r·e_D)/D, at levels that are public: D from what the denominator adds up
to, r the typical value. Squared and added up over the numbers of the ratio it is a sum of the squared errors of both
tables, each times a factor, and, where one strategy serves both, of their covariance. The expected error and the
half-width count that covariance; the price that a choice is made by leaves it out, as if both tables were measured
apart. A release needs none of this: its intervals are those of the exact noise (`publication.ratios`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dualmandate.choice import SocialWelfare, TableValue
from dualmandate.choice.welfare import table_value
from dualmandate.errors import InvalidValue, MissingKey
from dualmandate.mechanism import Distribution, Measurement
from dualmandate.mechanism.mechanism import on_lattice
from dualmandate.mechanism.rows import DecidedAnswers, error_of_shares
from dualmandate.planning.clipping import expected_shares
from dualmandate.planning.timing import Timing
from dualmandate.planning.welfare import price_of, stated_in
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.program.file import KeyPath
from dualmandate.program.program import SHARE, ProgramFile
from dualmandate.program.schema import InvariantTable, RatioTable, WorkloadTable
from dualmandate.workload import Ratio, Table

MOST_FOLLOWED = 64  # numbers of a ratio, evenly chosen, whose errors are worked out one by one
COVERAGE = 0.95
SUM_OF_SHARES = 1e-9  # stated shares add up to 1 within this


@dataclass(frozen=True, eq=False)
class RatioLevels:
    """A ratio, and the public levels at which its error is linearized."""

    ratio: Ratio
    unit: str
    denominators: Floats  # D of each number of the denominator, in its unit; > 0
    typical_values: Floats  # r over each of them, in `unit`; same shape
    noisy: tuple[str, ...]  # those of its two tables that are not published exactly

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """What the summed squared error of each table, in steps, adds to that of the ratio, in `unit`².

        The numbers of one table are taken to be equally wrong.
        """
        once = _numerators(self.ratio) / np.square(self.denominators)
        factors = float(once.sum()) / self.ratio.query_count, float(np.mean(once * np.square(self.typical_values)))
        tables = self.ratio.numerator, self.ratio.denominator
        found = ((table.name, factor * float(table.grid) ** 2) for table, factor in zip(tables, factors, strict=True))
        return tuple((name, factor) for name, factor in found if name in self.noisy and factor > 0)

    def takes(self, number: int) -> Iterator[tuple[str, int, float]]:
        """The numbers of both tables that the error of one ratio rests on, and what it takes of each, a step."""
        table, place = self.ratio.numerator, int(self.ratio.denominators[number])
        if table.name in self.noisy:
            yield table.name, number, float(table.grid) / float(self.denominators[place])
        for name, at, share in self.takes_below(number):
            yield name, at, -share * float(self.typical_values[place])

    def takes_below(self, number: int) -> Iterator[tuple[str, int, float]]:
        """The same of the error of its denominator, as a share of it."""
        table, place = self.ratio.denominator, int(self.ratio.denominators[number])
        if table.name in self.noisy:
            yield table.name, place, float(table.grid) / float(self.denominators[place])


@dataclass(frozen=True)
class RatioConsequence:
    """What the choice means for one ratio, linearized at public levels."""

    ratio: str
    numerator: str
    denominator: str
    unit: str
    query_count: int
    typical_value: float  # the mean, in `unit`
    typical_denominator: float  # the mean, in the denominator's unit
    denominator_error: float  # of the noisiest denominator, as a share of it: linearized numbers need it to be small
    root_mean_squared_error: float  # in `unit`
    half_width: float  # 95 in 100 published ratios are off by at most this, in `unit`; the widest
    root_mean_squared_consequence: float | None  # USD; None where no consequence was stated
    data_loss: float  # USD, all numbers of the ratio; 0 where its accuracy has no worth of its own


def with_ratios(welfare: SocialWelfare, program: ProgramFile, timing: Timing) -> SocialWelfare:
    """What society prefers, with the worth of accuracy of each ratio that states one."""
    if program.ratios and program.file.participation is not None:
        raise InvalidValue(
            "ratios and [participation] in one program",
            why="how far those who stay away are missing in both tables of a ratio is not stated",
            instead="leave one of the two out",
            where=program.document.place(("ratios", 0)),
        )
    stated = zip(program.file.ratios, levels_of(program), strict=True)
    values = [_value(program, timing, position, *each) for position, each in enumerate(stated)]
    return replace(welfare, table_values=(*welfare.table_values, *(value for value in values if value is not None)))


def _value(
    program: ProgramFile, timing: Timing, position: int, stated: RatioTable, levels: RatioLevels
) -> TableValue | None:
    """What errors of a ratio cost: its worth, on the squared errors of its two tables."""
    key = "consequence" if stated.value_of_accuracy is None else "value_of_accuracy"
    number = getattr(stated, key)
    if number is None:
        return None
    absolute = next((t.name for t in program.file.workload if t.name in levels.noisy and t.loss == "absolute"), None)
    if absolute is not None:
        raise InvalidValue(
            f"the ratio '{stated.name}' is valued, and '{absolute}' has absolute loss",
            why="the error of a ratio is priced by the squared errors of its two tables",
            instead=f"state loss = \"squared\" for '{absolute}', or leave the {key} of the ratio out",
            where=program.document.place(("ratios", position, key)),
        )
    price = price_of("squared", program.file.preferences, program.units, program.document)
    paid = (number, price) if key == "consequence" else (number,)
    with program.document.at("ratios", position, key):
        value = table_value(
            stated.name,
            units=program.units,
            unit=_unit(program, levels.ratio),
            price=price,
            present_value=timing.factor(*(each.time_base for each in paid if each is not None)),
            **{key: number.quantity()},
        )
    words = levels.unit if levels.unit == SHARE else f"({levels.unit})"
    return replace(value, unit=words, parts=levels.parts) if levels.parts else None


def levels_of(program: ProgramFile) -> tuple[RatioLevels, ...]:
    """Where each ratio is linearized; refused where a number that this takes is not stated."""
    return tuple(_levels(program, *each) for each in enumerate(program.file.ratios))


def _levels(program: ProgramFile, position: int, stated: RatioTable) -> RatioLevels:
    ratio = program.ratios[position]
    total, below = _total(program, ratio.denominator.name), stated.denominator
    if total is None:
        raise _not_stated(program, position, f"what '{below}' adds up to", f"total of '{below}'")
    if total == 0:
        raise InvalidValue(
            f"the denominator '{below}' adds up to 0",
            why="nothing can be divided by it",
            instead="state what it adds up to",
            where=program.document.place(("ratios", position, "denominator")),
        )
    unit, place = _unit(program, ratio), ("ratios", position, "typical_value")
    typical = stated_in(program, unit, stated.typical_value, *place)
    values = np.full(ratio.denominator.query_count, typical or 0.0)
    if typical is None:
        of_numerator = _total(program, ratio.numerator.name)
        if of_numerator is None:
            raise _not_stated(program, position, f"what '{stated.name}' typically is", f'typical_value, in "{unit}"')
        values = of_numerator / total / np.maximum(_numerators(ratio), 1)  # numerators of one denominator are alike
    noisy = {table.name for table in program.workload.tables}
    return RatioLevels(
        ratio,
        program.ratio_units[ratio.name],
        denominators=total * _shares(program, position, ratio.denominator),
        typical_values=values,
        noisy=tuple(name for name in (ratio.numerator.name, ratio.denominator.name) if name in noisy),
    )


def _numerators(ratio: Ratio) -> Integers:
    """How many numbers are divided by each number of the denominator."""
    return np.bincount(ratio.denominators, minlength=ratio.denominator.query_count)


def _unit(program: ProgramFile, ratio: Ratio) -> str:
    """The unit as numbers are stated in it; that of a share is a pure number."""
    units = program.table_units
    parts = (units.get(table.name, program.units.singular) for table in (ratio.numerator, ratio.denominator))
    return " per ".join(parts)


def _not_stated(program: ProgramFile, position: int, what: str, key: str) -> MissingKey:
    return MissingKey(
        f"{what} is not stated",
        why="the error of a ratio is worked out before anything is measured, at a level that must be public",
        instead=f"state the {key}, with its source",
        where=program.document.place(("ratios", position)),
    )


def _total(program: ProgramFile, name: str) -> float | None:
    """What a table or an exact total adds up to: as stated, or the population where everybody is counted once."""
    population = program.file.population
    size: KeyPath = ("population", "population_size")
    everybody = stated_in(program, program.units.singular, population.population_size, *size)
    once = everybody if population.most_records_per_unit == 1 else None
    listed: tuple[tuple[str, tuple[WorkloadTable | InvariantTable, ...]], ...] = (
        ("workload", program.file.workload),
        ("invariants", program.file.invariants),
    )
    for key, tables in listed:
        for position, table in enumerate(tables):
            if table.name == name:
                unit, place = program.table_units.get(name, program.units.singular), (key, position, "total")
                stated = stated_in(program, unit, table.total, *place)
                plain = not (table.where or (isinstance(table, WorkloadTable) and (table.weights or table.sum_of)))
                return stated if stated is not None else once if plain else None
    return once  # the number of records


def _shares(program: ProgramFile, position: int, table: Table) -> Floats:
    """The share of each number in a denominator, row-major: as stated, as its attributes spread, or even."""
    stated, expected = dict(program.file.ratios[position].denominator_shares), expected_shares(program)
    by = {} if table.tabulation is None else {program.domain.resolve(name)[0]: name for name in table.tabulation.by}
    found = np.ones(1)
    for axis, rows in enumerate(table.shape):
        shares = stated.pop(by.get(axis, ""), None)
        here = np.full(rows, 1 / rows)
        if shares is None and rows > 1 and program.domain.names[axis] in expected:
            here = np.asarray(table.factors[axis].apply(expected[program.domain.names[axis]], 0))
            if not np.all(here > 0):
                what, key = f"the share of every level of '{by[axis]}'", f"denominator_shares of '{by[axis]}'"
                raise _not_stated(program, position, f"{what} in '{table.name}'", key)
            here = here / here.sum()
        if shares is not None:
            labels = table.axis_labels(axis, program.domain.attributes[axis].levels)
            if set(shares) != set(labels) or abs(float(sum(shares.values())) - 1) > SUM_OF_SHARES:
                raise _unfit(program, position, by[axis], "they name each of its levels once, and add up to 1")
            here = np.array([float(shares[label]) for label in labels])
        found = np.multiply.outer(found, here).reshape(-1)
    if stated:
        columns = ", ".join(by.values()) or "nothing"
        raise _unfit(program, position, next(iter(stated)), f"'{table.name}' is by {columns}")
    return found


def _unfit(program: ProgramFile, position: int, column: str, why: str) -> InvalidValue:
    return InvalidValue(
        f"the denominator_shares of '{column}' cannot be meant",
        why=why,
        instead="state the share of every level of a column of the denominator, or leave them out",
        where=program.document.place(("ratios", position, "denominator_shares", column)),
    )


def ratio_consequences(
    program: ProgramFile,
    welfare: SocialWelfare,
    *,
    measurements: Mapping[str, Measurement],
    shares: Mapping[str, Fraction],
) -> tuple[RatioConsequence, ...]:
    """Error, 95 % half-width and cost of every ratio, where each group of tables spends its share of the loss."""
    values = {value.table: value for value in welfare.table_values}
    at, errors = dict[str, tuple[Measurement, float]](), dict[str, float]()
    for group, share in shares.items():
        errors |= measurements[group].table_errors(float(share)) if program.ratios else {}
        at |= {table.name: (measurements[group], float(share)) for table in measurements[group].workload.tables}
    found = []
    for levels in levels_of(program):
        ratio = levels.ratio
        followed = np.unique(np.linspace(0, ratio.query_count - 1, MOST_FOLLOWED).astype(np.intp))
        laws = [_LinearError.of([*levels.takes(int(number))], at) for number in followed]
        below = [_LinearError.of([*levels.takes_below(int(number))], at) for number in followed]
        mean_squared_error = math.fsum(law.variance for law in laws) / len(laws)
        value = values.get(ratio.name)
        consequence = None if value is None else value.squared_consequence(mean_squared_error)
        found.append(
            RatioConsequence(
                ratio.name,
                ratio.numerator.name,
                ratio.denominator.name,
                levels.unit,
                ratio.query_count,
                typical_value=float(levels.typical_values[ratio.denominators].mean()),
                typical_denominator=float(levels.denominators.mean()),
                denominator_error=math.sqrt(max(law.variance for law in below)),
                root_mean_squared_error=math.sqrt(mean_squared_error),
                half_width=max(laws, key=lambda law: law.variance).reach(1 - COVERAGE),
                root_mean_squared_consequence=None if consequence is None else math.sqrt(consequence),
                data_loss=0.0 if value is None else value.value_per_step * value.error(errors),
            )
        )
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _LinearError:
    """A combination of numbers of tables, down to the noise of the rows that were measured."""

    shares: Floats  # of each row, in the unit of a weighted row
    kinds: Indices
    noises: list[Distribution]  # of each kind

    @classmethod
    def of(cls, takes: list[tuple[str, int, float]], at: Mapping[str, tuple[Measurement, float]]) -> _LinearError:
        """Σ factor·(number of a table); tables of one measurement share its rows, others are independent."""
        shares, kinds, noises = [np.zeros(0)], [np.zeros(0, dtype=np.intp)], list[Distribution]()
        for measurement, loss in dict.fromkeys(at[table] for table, _, _ in takes):
            rows, unit = measurement.rows, measurement.unit_loss(loss)
            here = [take for take in takes if at[take[0]][0] is measurement]
            here = [take for take in here if not isinstance(measurement.answered[take[0]], DecidedAnswers)]
            if rows.direct:  # each number is one row
                steps = (rows.workload.table(table).weight for table, _, _ in here)
                own = np.array([rows.steps.index(step) for step in steps], dtype=np.intp)
                shares.append(np.array([factor for _, _, factor in here]))
            else:
                own = rows.kinds()
                weights = np.zeros(rows.size)
                for table, place, factor in here:
                    weights += factor * rows.weights(table, [place])
                shares.append(weights / np.array([float(step) for step in rows.steps])[own])
            kinds.append(own + len(noises))
            noises += [on_lattice(measurement.law, step).at(unit) for step in rows.steps]
        return cls(np.abs(np.concatenate(shares)), np.concatenate(kinds), noises)

    @property
    def variance(self) -> float:
        """Σ share²·V."""
        return float(np.square(self.shares) @ np.array([noise.variance for noise in self.noises])[self.kinds])

    def reach(self, tail: float) -> float:
        """The t that the error exceeds with this probability."""
        largest = float(self.shares.max(initial=0.0)) or 1.0  # shares are told apart by their first digits
        return largest * error_of_shares(self.shares / largest, self.kinds, self.noises).reach(tail)
