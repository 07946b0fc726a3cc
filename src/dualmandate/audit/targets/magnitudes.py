"""Tables of amounts that add up, from the files of a folder, in one period or more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.finding import Reference
from dualmandate.audit.suppression.cells import LinkedTables
from dualmandate.audit.suppression.series import Series
from dualmandate.audit.suppression.series_attack import HiddenSeries, SeriesPart
from dualmandate.audit.suppression.true_amounts import AmountColumns, read_true_amounts
from dualmandate.audit.targets.amount_cells import Laid, along, tree
from dualmandate.audit.targets.tables_folder import EVERYWHERE, Folder, Sheet, rows_of, suppressed_marks
from dualmandate.audit.targets.tables_schema import MagnitudesTable
from dualmandate.audit.targets.targets import SuppressedPart, SuppressedTables, Truths, truths_of_period
from dualmandate.errors import InvalidTables

SHARE = 0.2
ONE_PERIOD = ""  # the name of the only period of tables that name none
LARGEST_AMOUNT = 2**42  # of one cell: sums of many are still whole numbers that solvers can hold


def magnitude_targets(folder: Folder, files: Mapping[Reference, Path]) -> Iterator[SuppressedTables | HiddenSeries]:
    """Each table of amounts: its suppressed cells in every place and period, then over time where there are several.

    `files` are folders with the same tables, nothing suppressed in them.
    """
    for position, table in enumerate(folder.file.magnitudes):
        amounts = _read(folder, table, position, files)
        share = SHARE if table.share is None else float(table.share)
        parts = tuple(part for place in amounts for part in _periods(place))
        yield SuppressedTables(table.name, parts, "amounts as published", share)
        if len(amounts[0].periods) > 1:
            series = tuple(SeriesPart(place.series, place.relations, place.truths) for place in amounts)
            yield HiddenSeries(table.name, series, amounts[0].periods, table.size)


@dataclass(frozen=True, eq=False)
class _Place:
    """The amounts of one place; arrays have shape (cells, periods)."""

    place: str
    periods: tuple[str, ...]
    laid: Laid
    relations: Equations
    values: Integers = field(repr=False)
    hidden: NDArray[np.bool_] = field(repr=False)
    sizes: NDArray[np.float64] = field(repr=False)
    truths: Truths = field(repr=False)

    @property
    def series(self) -> Series:
        """The same over time."""
        return Series(self.laid.parents, self.values, self.hidden, self.sizes)


def _periods(place: _Place) -> Iterator[SuppressedPart]:
    for number, period in enumerate(place.periods):
        yield SuppressedPart(
            LinkedTables(place.relations, place.values[:, number], place.hidden[:, number]),
            place.laid.names,
            None,
            truths_of_period(place.truths, number),
            ", ".join(word for word in (place.place, period) if word),
        )


def _read(folder: Folder, table: MagnitudesTable, position: int, files: Mapping[Reference, Path]) -> tuple[_Place, ...]:
    sheet = folder.sheet("magnitudes", position)
    values, hidden = _numbers(folder, table, sheet)
    sizes = np.ones(len(values)) if table.size is None else _sizes(table.size, sheet)
    labels = (ONE_PERIOD,) * len(values) if table.period is None else sheet.column(table.period, "period")
    periods = tuple(dict.fromkeys(labels))
    cell = table.by or (str(table.cell),)
    columns = AmountColumns(cell, table.value, folder.file.tables.place, table.period)
    truths = {ref: read_true_amounts(path / Path(table.file).name, columns) for ref, path in files.items()}
    found = []
    for place, rows in rows_of(folder.places_of(sheet)).items():
        name = "" if place == EVERYWHERE else place
        by_period: dict[str, list[int]] = {period: [] for period in periods}
        for row in rows:
            by_period[labels[row]].append(row)
        laid, order = _laid(table, sheet, name, by_period)
        own, marks = values[order], hidden[order]
        judged: Truths = {ref: truth.of(name, periods, laid.names, own, marks) for ref, truth in truths.items()}
        found.append(_Place(name, periods, laid, laid.relations, own, marks, sizes[order], judged))
    return tuple(found)


def _laid(table: MagnitudesTable, sheet: Sheet, place: str, rows: Mapping[str, list[int]]) -> tuple[Laid, Integers]:
    """The cells of one place, and the row of each in each period; shape (cells, periods)."""
    lay = tree if table.cell is not None else along
    periods = list(rows)
    first = lay(table, sheet, rows[periods[0]]) if rows[periods[0]] else None
    columns = []
    for period in periods:
        own = lay(table, sheet, rows[period]) if rows[period] else None
        if first is None or own is None:
            raise _absent(table, sheet, "every cell", place, period if own is None else periods[0])
        positions = {name: number for number, name in enumerate(own.names)}
        missing = next((name for name in first.names if name not in positions), None)
        if missing is not None:
            raise _absent(table, sheet, f"the cell '{missing}'", place, period)
        if len(positions) > len(first.names):
            more = next(name for name in positions if name not in set(first.names))
            raise _absent(table, sheet, f"the cell '{more}'", place, periods[0])
        order = np.array([positions[name] for name in first.names])
        if not np.array_equal(_parents_by_name(own, order), _parents_by_name(first, np.arange(len(order)))):
            raise InvalidTables(
                f"a cell of '{table.name}' is a part of another total in {period} than in {periods[0]}",
                why="estimates over time compare the same parts of the same totals",
                instead="give the cells of each classification a table of their own",
                where=sheet.document.place((*sheet.key, "parent")),
            )
        columns.append(own.rows[order])
    assert first is not None
    return first, np.stack(columns, axis=1)


def _parents_by_name(laid: Laid, order: Integers) -> list[str]:
    return [laid.names[parent] if parent >= 0 else "" for parent in laid.parents[order].tolist()]


def _absent(table: MagnitudesTable, sheet: Sheet, what: str, place: str, period: str) -> InvalidTables:
    where = " of ".join(word for word in (period, place) if word)
    return InvalidTables(
        f"'{table.name}' lacks {what} in {where}",
        why="what is not there is not known to be 0, and estimates over time need every cell in every period",
        instead="write 0, or the mark of a suppressed number",
        where=sheet.document.place((*sheet.key, "file")),
    )


def _numbers(folder: Folder, table: MagnitudesTable, sheet: Sheet) -> tuple[Integers, NDArray[np.bool_]]:
    """The amounts of all rows, 0 where suppressed, and which are."""
    texts, marks = sheet.column(table.value, "value"), suppressed_marks(folder.file)
    values, hidden = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
    for row, text in enumerate(texts):
        if text.isascii() and text.isdigit() and len(text) <= 12:  # as almost all are, and quick to read
            values[row] = int(text)
            continue
        hidden[row] = text in marks
        if not hidden[row]:
            number = sheet.number(text, row)
            if number != int(number) or not 0 <= number <= LARGEST_AMOUNT:
                raise InvalidTables(
                    f"an amount of {number}",
                    why=f"amounts are whole numbers of their smallest unit, from 0 to {LARGEST_AMOUNT:,}",
                    instead="publish them in that unit, or in thousands where they are larger",
                    where=sheet.at(row),
                )
            values[row] = int(number)
    return values, hidden


def _sizes(column: str, sheet: Sheet) -> NDArray[np.float64]:
    sizes = np.zeros(len(sheet.codes.lines))
    for row, text in enumerate(sheet.column(column, "size")):
        sizes[row] = float(sheet.number(text, row))
        if sizes[row] < 0:
            raise InvalidTables(
                f"a size of {text}", why="a size is a number from 0 on", instead="check it", where=sheet.at(row)
            )
    return sizes
