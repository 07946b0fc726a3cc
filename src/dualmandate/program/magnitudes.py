"""Tables of amounts that add up, from the files of a folder: along their columns, or in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.suppression import LinkedTables, additive_relations, tree_relations
from dualmandate.audit.targets import SuppressedPart, SuppressedTables
from dualmandate.errors import InvalidTables
from dualmandate.program.tables_folder import EVERYWHERE, Folder, Sheet, rows_of, suppressed_marks
from dualmandate.program.tables_schema import MagnitudesTable

SHARE = 0.2


def magnitude_targets(folder: Folder) -> Iterator[SuppressedTables]:
    """Each table of amounts, place after place."""
    for position, table in enumerate(folder.file.magnitudes):
        sheet = folder.sheet("magnitudes", position)
        places = rows_of(folder.places_of(sheet))
        parts = tuple(_part(folder, table, sheet, "" if place == EVERYWHERE else place, rows) for place, rows in places)
        share = SHARE if table.share is None else float(table.share)
        yield SuppressedTables(table.name, parts, "amounts as published", share)


def _part(folder: Folder, table: MagnitudesTable, sheet: Sheet, place: str, rows: list[int]) -> SuppressedPart:
    values, hidden = _numbers(folder, table, sheet, rows)
    cells, relations, order = (_tree if table.cell is not None else _along)(table, sheet, rows)
    names = tuple(f"{place}: {cell}" if place else cell for cell in cells)
    named = Equations(
        relations.starts, relations.cells, relations.coefficients, relations.size, _totals(relations, names)
    )
    return SuppressedPart(LinkedTables(named, values[order], hidden[order]), names)


def _numbers(
    folder: Folder, table: MagnitudesTable, sheet: Sheet, rows: list[int]
) -> tuple[Integers, NDArray[np.bool_]]:
    values, marks = np.zeros(len(rows), dtype=np.int64), suppressed_marks(folder.file)
    hidden = np.zeros(len(rows), dtype=np.bool_)
    for place, row in enumerate(rows):
        text = sheet.column(table.value, "value")[row]
        hidden[place] = text in marks
        if not hidden[place]:
            number = sheet.number(text, row)
            if number != int(number) or number < 0:
                raise InvalidTables(
                    f"an amount of {number}",
                    why="amounts are whole numbers of their smallest unit, from 0 on",
                    instead="publish them in that unit",
                    where=sheet.at(row),
                )
            values[place] = int(number)
    return values, hidden


def _tree(table: MagnitudesTable, sheet: Sheet, rows: list[int]) -> tuple[tuple[str, ...], Equations, Integers]:
    assert table.cell is not None
    assert table.parent is not None
    cells, parents = sheet.column(table.cell, "cell"), sheet.column(table.parent, "parent")
    position: dict[str, int] = {}
    for place, row in enumerate(rows):
        if cells[row] in position:
            raise InvalidTables(
                f"the cell '{cells[row]}' stands twice", why="cells are known by their names", instead="give it once",
                where=sheet.at(row),
            )  # fmt: skip
        position[cells[row]] = place
    above = np.full(len(rows), -1, dtype=np.int64)
    for place, row in enumerate(rows):
        if parents[row]:
            if parents[row] not in position or parents[row] == cells[row]:
                raise InvalidTables(
                    f"'{cells[row]}' is a part of '{parents[row]}', which is no other cell of the table",
                    why="a cell is a part of a cell that is published too",
                    instead="leave the parent empty at the top",
                    where=sheet.at(row),
                )
            above[place] = position[parents[row]]
    return tuple(position), tree_relations(above), np.arange(len(rows))


def _along(table: MagnitudesTable, sheet: Sheet, rows: list[int]) -> tuple[tuple[str, ...], Equations, Integers]:
    """A table whose columns each have a total; its cells row-major, the total last on every axis."""
    columns = [sheet.column(name, "by") for name in table.by]
    labels = [
        (*(word for word in dict.fromkeys(column[row] for row in rows) if word != table.total), table.total)
        for column in columns
    ]
    position = {tuple(column[row] for column in columns): place for place, row in enumerate(rows)}
    cells = list(product(*labels))
    missing = next((cell for cell in cells if cell not in position), None)
    if missing is not None or len(position) < len(rows):
        said = f"lacks the cell ({', '.join(missing)})" if missing is not None else "holds a cell twice"
        raise InvalidTables(
            f"'{table.name}' {said}",
            why=f"every combination of labels stands there once, with '{table.total}' for the sum over a column",
            instead="write each cell, suppressed ones with their mark; or name `cell` and `parent` instead",
            where=sheet.document.place((*sheet.key, "file")),
        )
    names = tuple(", ".join(cell) for cell in cells)
    return names, additive_relations(tuple(len(each) for each in labels)), np.array([position[cell] for cell in cells])


def _totals(relations: Equations, names: tuple[str, ...]) -> tuple[str, ...]:
    """Each sum by the name of its total, which is the last of its cells."""
    return tuple(f"the parts of {names[int(relations.cells[end - 1])]}" for end in relations.starts[1:])
