"""How the cells of a table of amounts add up: along columns that each have a total, or in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.suppression.cells import additive_relations, tree_relations
from dualmandate.audit.targets.tables_folder import Sheet
from dualmandate.audit.targets.tables_schema import MagnitudesTable
from dualmandate.errors import InvalidTables


@dataclass(frozen=True, eq=False)
class Laid:
    """The cells of one place in one period.

    `parents` say which total each cell is a part of, −1 at the top; of several, the one along the last column. `rows`
    are the rows of the file.
    """

    names: tuple[str, ...] = field(repr=False)
    relations: Equations
    parents: Integers = field(repr=False)
    rows: Integers = field(repr=False)


def tree(table: MagnitudesTable, sheet: Sheet, rows: list[int]) -> Laid:
    """Cells of which each names the one that it is a part of."""
    assert table.cell is not None
    assert table.parent is not None
    cells, parents = sheet.column(table.cell, "cell"), sheet.column(table.parent, "parent")
    position: dict[str, int] = {}
    for place, row in enumerate(rows):
        if cells[row] in position:
            raise _twice(table, sheet, cells[row], rows[position[cells[row]]], row)
        position[cells[row]] = place
    above = np.full(len(rows), -1, dtype=np.int64)
    for place, row in enumerate(rows):
        if parents[row]:
            if parents[row] not in position or parents[row] == cells[row]:
                raise InvalidTables(
                    f"'{cells[row]}' is a part of '{parents[row]}', which is no other cell there",
                    why="a cell is a part of a cell that is published too, of the same place and period",
                    instead="leave the parent empty at the top",
                    where=sheet.at(row),
                )
            above[place] = position[parents[row]]
    _check_tops(above, sheet, rows, cells)
    names = tuple(position)
    return Laid(names, _named(tree_relations(above), names), above, np.array(rows))


def _check_tops(above: Integers, sheet: Sheet, rows: list[int], cells: tuple[str, ...]) -> None:
    """Refuse cells that are parts of themselves, over others."""
    reached = above.copy()
    for _ in range(len(above).bit_length() + 1):  # every step looks twice as far up
        reached = np.where(reached >= 0, reached[np.maximum(reached, 0)], -1)
    round_about = np.flatnonzero(reached >= 0)
    if len(round_about):
        row = rows[int(reached[round_about[0]])]
        raise InvalidTables(
            f"'{cells[row]}' is a part of itself, over its own parts",
            why="totals and parts form a tree with a top",
            instead="leave the parent empty at the top",
            where=sheet.at(row),
        )


def along(table: MagnitudesTable, sheet: Sheet, rows: list[int]) -> Laid:
    """Cells of a table whose columns each have a total; row-major, the total last on every axis."""
    columns = [sheet.column(name, "by") for name in table.by]
    labels = [
        (*(word for word in dict.fromkeys(column[row] for row in rows) if word != table.total), table.total)
        for column in columns
    ]
    position: dict[tuple[str, ...], int] = {}
    for row in rows:
        label = tuple(column[row] for column in columns)
        if label in position:
            raise _twice(table, sheet, ", ".join(label), position[label], row)
        position[label] = row
    cells = list(product(*labels))
    missing = next((cell for cell in cells if cell not in position), None)
    if missing is not None:
        raise InvalidTables(
            f"'{table.name}' lacks the cell ({', '.join(missing)})",
            why=f"every combination of labels stands there once, with '{table.total}' for the sum over a column",
            instead="write each cell, suppressed ones with their mark; or name `cell` and `parent` instead",
            where=sheet.document.place((*sheet.key, "file")),
        )
    shape = tuple(len(each) for each in labels)
    names = tuple(", ".join(cell) for cell in cells)
    rows_of_cells = np.array([position[cell] for cell in cells])
    # lines that add up come column by column
    by = [f" by {name}" for name, size in zip(table.by, shape, strict=True) for _ in range(len(cells) // size)]
    relations = _named(additive_relations(shape), names, by)
    return Laid(names, relations, _last_totals(shape), rows_of_cells)


def _last_totals(shape: tuple[int, ...]) -> Integers:
    """For each cell the total along the last axis on which it is no total itself; −1 for the total of all."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    found = np.full(shape, -1, dtype=np.int64)
    for axis in range(len(shape)):  # later axes overwrite
        parts, totals = ([slice(None)] * len(shape) for _ in range(2))
        parts[axis], totals[axis] = slice(0, -1), slice(-1, None)
        found[tuple(parts)] = numbers[tuple(totals)]
    return found.reshape(-1)


def _named(relations: Equations, names: tuple[str, ...], by: Sequence[str] | None = None) -> Equations:
    """Each sum by the name of its total, which is the last of its cells, and the column along which it adds up."""
    totals = (names[int(relations.cells[end - 1])] for end in relations.starts[1:])
    words = [""] * relations.rows if by is None else by
    said = tuple(f"the parts of {total}{word}" for total, word in zip(totals, words, strict=True))
    return Equations(relations.starts, relations.cells, relations.coefficients, relations.size, said)


def _twice(table: MagnitudesTable, sheet: Sheet, cell: str, first: int, row: int) -> InvalidTables:
    return InvalidTables(
        f"the cell '{cell}' stands twice in '{table.name}'",
        why=f"it stands on line {sheet.codes.lines[first]} too, and cells are known by their names",
        instead="give each cell once; where places or periods tell them apart, name `place` and `period`",
        where=sheet.at(row),
    )
