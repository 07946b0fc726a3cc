"""From a folder of published tables to what attacks are made on: counts, statistics of groups, and amounts that add up,
along columns with totals or in a tree, in one period or more.

The true amounts behind suppressed cells come from a file of the curator's like the published one, nothing suppressed in
it. They are handed on in a box alone, and no message repeats one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from dualmandate.audit.finding import Reference
from dualmandate.audit.linkage.attack import Homes, linkage_targets
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.reconstruction.noisy import tables_with_noise
from dualmandate.audit.reconstruction.persons import GroupStatistics, Implication, Statistic, Variables
from dualmandate.audit.suppression.cells import (
    LinkedTables,
    SuppressedPart,
    SuppressedTables,
    additive_relations,
    hidden_numbers,
    tree_relations,
)
from dualmandate.audit.suppression.series import HiddenSeries, Series, SeriesPart
from dualmandate.audit.tables import (
    Equations,
    ExactTables,
    NoisyTables,
    Targets,
    Truths,
    boxed,
    check_place,
    count_records,
    levels_in_words,
    truths_of_period,
)
from dualmandate.audit.targets.tables_folder import (
    EVERYWHERE,
    Folder,
    MagnitudesTable,
    PublishedCounts,
    StatisticsTable,
    TableFile,
    places_of,
    read_sheet,
    rows_of,
    suppressed_marks,
)
from dualmandate.errors import InvalidFile, InvalidTables, Place, UnreadableSource
from dualmandate.population import Attribute, Confidential, Domain, StructuralZero
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.program.text_columns import read_text_columns

Files = Mapping[Reference, Path]
SHARE = 0.2
ONE_PERIOD = ""  # The name of the only period of tables that name none.
LARGEST_AMOUNT = 2**42  # At most this much in one cell: sums of many are still whole numbers that solvers can hold.
MOST_DIGITS = 12


def targets_of(folder: Folder, options: AuditOptions) -> Targets:
    """Every target of a folder. Attacks on counts are judged by files of records, those on amounts by folders."""
    files, left_out = options.files, list[str]()
    attacked: list[object] = []
    records = {reference: path for reference, path in files.items() if not path.is_dir()}
    amounts = {reference: path for reference, path in files.items() if path.is_dir()}
    if records and folder.counts is None:
        left_out.append("to judge by records, which only tables of counts can be: amounts need a folder of true tables")
    if amounts and not folder.file.magnitudes:
        left_out.append("to judge by a folder of true tables, which only amounts can be: counts need a file of records")
    if folder.counts is not None:
        attacked += _count_targets(folder, folder.counts, records, left_out)
    for position, table in enumerate(folder.file.statistics):
        attacked.append(_statistics(folder, table, position))
    attacked += magnitude_targets(folder, amounts)
    homes = None if folder.counts is None else Homes(folder.counts.domain, folder.place)
    attacked += linkage_targets(attacked, homes, options)
    return Targets(tuple(attacked), tuple(left_out))


def _count_targets(folder: Folder, counts: PublishedCounts, files: Files, left_out: list[str]) -> Iterator[object]:
    with folder.document.at("population", "attributes"):
        check_place(counts.domain, instead="declare coarser attributes, or those alone that the tables are by")
    equations = Equations.of_workload(counts.workload)
    hidden = np.isnan(counts.published)
    truths: Truths = {
        reference: count_records(path, counts.domain, place=folder.place) for reference, path in files.items()
    }
    if counts.scales.any():
        yield _noisy(folder, counts, equations, truths, left_out)
        return
    coarsening, impossible = levels_in_words(counts.domain), ~counts.domain.possible_cells()
    known, marks = np.where(hidden, 0, counts.published).astype(np.int64), hidden if hidden.any() else None
    said = (folder.name, equations, known, counts.places, coarsening, impossible)
    whole = ExactTables(*said, truths, counts.domain, marks)
    yield whole
    suppressed = hidden_numbers(whole)
    if suppressed is not None:
        yield suppressed


def _noisy(
    folder: Folder, counts: PublishedCounts, equations: Equations, truths: Truths, left_out: list[str]
) -> NoisyTables:
    """Tables with errors: what is expected of a place is what all places together are like, in its size."""
    hidden = np.isnan(counts.published).any(axis=0)
    if hidden.any():
        left_out.append(f"{int(hidden.sum()):,} numbers that are suppressed in some place, beside others with noise")
    kept = equations.only(np.flatnonzero(~hidden))
    published, scales = counts.published[:, ~hidden], counts.scales[~hidden]
    errors = sorted({float(scale) for scale in scales if scale > 0})
    words = f"errors of {errors[0]:g} on average" if len(errors) == 1 else f"errors of {errors[0]:g} to {errors[-1]:g}"
    prior = "what all places together are like, by the same tables"
    return tables_with_noise(
        folder.name, kept, published, scales, counts.domain, protection=words, prior=prior, truths=truths
    )


def _statistics(folder: Folder, table: StatisticsTable, position: int) -> GroupStatistics:
    assert folder.domain is not None
    key = ("statistics", position)
    with folder.document.at(*key, "of"):
        number = folder.domain.attribute(table.of)
        values = number.grid_values
    if number.grid != 1:
        raise InvalidTables(
            f"'{table.of}' is not in whole numbers",
            why="persons are found by a whole number each",
            instead="declare it as { from = …, to = … }",
            where=folder.document.place((*key, "of")),
        )
    categories = {}
    for place, name in enumerate(table.by):
        with folder.document.at(*key, "by", place):
            categories[name] = tuple(folder.domain.attribute(name).levels)
    lowest = int(values.min())
    with folder.document.at("population", "structural_zeros"):
        rules = tuple(_rule(zero, folder.domain, number) for zero in folder.domain.structural_zeros)
    variables = Variables(table.of, lowest, int(values.max()), categories, rules)
    sheet = read_sheet(folder.document, key)
    by_place = {
        place: tuple(_statistic(table, sheet, row, suppressed_marks(folder.file)) for row in rows)
        for place, rows in rows_of(places_of(folder.file, sheet)).items()
    }
    named = {table.name if place == EVERYWHERE else place: found for place, found in by_place.items()}
    return GroupStatistics(table.name, variables, named, f"{table.of} in whole numbers, {lowest} to {values.max()}")


def _statistic(table: StatisticsTable, sheet: TableFile, row: int, marks: frozenset[str]) -> Statistic:
    group = {name: sheet.column(name, "by")[row] for name in table.by if sheet.column(name, "by")[row]}
    found = {}
    for what in ("count", "median", "mean"):
        text = sheet.text.columns[what][row] if what in sheet.text.columns else ""
        found[what] = None if text in marks else sheet.number(text, row)
    count = found["count"]
    if count is not None and (count < 0 or count != int(count)):
        raise InvalidTables(
            f"a count of {count}", why="counts are whole numbers from 0 on", instead="check it", where=sheet.at(row)
        )
    name = f"line {sheet.text.lines[row]}" if table.label is None else sheet.column(table.label, "label")[row]
    return Statistic(name, group, None if count is None else int(count), found["median"], found["mean"])


def _rule(zero: StructuralZero, domain: Domain, number: Attribute) -> Implication:
    """A structural zero that says from which number on somebody can be of a kind: married from 15 on."""
    levels = dict(zero.levels)
    inside = domain.mask(number.name, levels.pop(number.name)) if number.name in levels else None
    single = all(len(each) == 1 for each in levels.values()) and bool(levels)
    if inside is None or not single or not inside[: int(inside.sum())].all():
        raise InvalidTables(
            "a structural zero that is no lower bound",
            why=f"persons are found under rules of one level each and the lowest numbers of '{number.name}'",
            instead=f'state it as {{ married = "yes", {number.name} = [the numbers that cannot be] }}',
        )
    return Implication({name: each[0] for name, each in levels.items()}, int(number.grid_values[0]) + int(inside.sum()))


def magnitude_targets(folder: Folder, files: Files) -> Iterator[SuppressedTables | HiddenSeries]:
    """Each table of amounts: its suppressed cells in every place and period, then over time where there are several.

    `files` are folders with the same tables, nothing suppressed in them.
    """
    for position, table in enumerate(folder.file.magnitudes):
        sheet = read_sheet(folder.document, ("magnitudes", position))
        labels = sheet.column(table.period, "period") if table.period else (ONE_PERIOD,) * len(sheet.text.lines)
        periods = tuple(dict.fromkeys(labels))
        parts, series = list[SuppressedPart](), list[SeriesPart]()
        for place, names, part in _amounts(folder, table, sheet, labels, files):
            for number, period in enumerate(periods):
                values, hidden = part.series.values[:, number], part.series.suppressed[:, number]
                truths, where = truths_of_period(part.truths, number), ", ".join(filter(None, (place, period)))
                tables = LinkedTables(part.relations, values, hidden)
                parts.append(SuppressedPart(tables, names, None, truths, where))
            series.append(part)
        share = SHARE if table.share is None else float(table.share)
        yield SuppressedTables(table.name, parts, "amounts as published", share)
        if len(periods) > 1:
            yield HiddenSeries(table.name, series, periods, table.size)


def _amounts(
    folder: Folder, table: MagnitudesTable, sheet: TableFile, labels: Sequence[str], files: Files
) -> Iterator[tuple[str, Sequence[str], SeriesPart]]:
    """Each place by its name, the names of its cells, and its amounts over time; `labels` are the periods of rows."""
    values, hidden = _numbers(folder, table, sheet)
    sizes = np.ones(len(values)) if table.size is None else _sizes(table.size, sheet)
    periods = tuple(dict.fromkeys(labels))
    truths = {
        ref: read_true_amounts(path / Path(table.file).name, table, folder.file.tables.place)
        for ref, path in files.items()
    }
    for place, rows in rows_of(places_of(folder.file, sheet)).items():
        name = "" if place == EVERYWHERE else place
        by_period: dict[str, list[int]] = {period: [] for period in periods}
        for row in rows:
            by_period[labels[row]].append(row)
        laid, order = _laid(table, sheet, name, by_period)
        own, marks = values[order], hidden[order]
        judged: Truths = {ref: truth.of(name, periods, laid.names, own, marks) for ref, truth in truths.items()}
        yield name, laid.names, SeriesPart(Series(laid.parents, own, marks, sizes[order]), laid.relations, judged)


def _laid(
    table: MagnitudesTable, sheet: TableFile, place: str, rows: Mapping[str, list[int]]
) -> tuple[CellLayout, Integers]:
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


def _parents_by_name(laid: CellLayout, order: Integers) -> list[str]:
    return [laid.names[parent] if parent >= 0 else "" for parent in laid.parents[order].tolist()]


def _absent(table: MagnitudesTable, sheet: TableFile, what: str, place: str, period: str) -> InvalidTables:
    where = " of ".join(word for word in (period, place) if word)
    return InvalidTables(
        f"'{table.name}' lacks {what} in {where}",
        why="what is not there is not known to be 0, and estimates over time need every cell in every period",
        instead="write 0, or the mark of a suppressed number",
        where=sheet.document.place((*sheet.key, "file")),
    )


def _numbers(folder: Folder, table: MagnitudesTable, sheet: TableFile) -> tuple[Integers, Booleans]:
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


def _sizes(column: str, sheet: TableFile) -> Floats:
    sizes = np.zeros(len(sheet.text.lines))
    for row, text in enumerate(sheet.column(column, "size")):
        sizes[row] = float(sheet.number(text, row))
        if sizes[row] < 0:
            raise InvalidTables(
                f"a size of {text}", why="a size is a number from 0 on", instead="check it", where=sheet.at(row)
            )
    return sizes


@dataclass(frozen=True, eq=False)
class CellLayout:
    """The cells of one place in one period.

    `parents` say which total each cell is a part of, −1 at the top; of several, the one along the last column. `rows`
    are the rows of the file.
    """

    names: tuple[str, ...] = field(repr=False)
    relations: Equations
    parents: Integers = field(repr=False)
    rows: Integers = field(repr=False)


def tree(table: MagnitudesTable, sheet: TableFile, rows: list[int]) -> CellLayout:
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
    return CellLayout(names, _named(tree_relations(above), names), above, np.array(rows))


def _check_tops(above: Integers, sheet: TableFile, rows: list[int], cells: tuple[str, ...]) -> None:
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


def along(table: MagnitudesTable, sheet: TableFile, rows: list[int]) -> CellLayout:
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
    return CellLayout(names, relations, _last_totals(shape), rows_of_cells)


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


def _twice(table: MagnitudesTable, sheet: TableFile, cell: str, first: int, row: int) -> InvalidTables:
    return InvalidTables(
        f"the cell '{cell}' stands twice in '{table.name}'",
        why=f"it stands on line {sheet.text.lines[first]} too, and cells are known by their names",
        instead="give each cell once; where places or periods tell them apart, name `place` and `period`",
        where=sheet.at(row),
    )


@dataclass(frozen=True, eq=False)
class TrueAmounts:
    """Amounts by place, period and cell."""

    file: Path
    amounts: dict[tuple[str, str, str], str] = field(repr=False)

    def of(
        self, place: str, periods: Sequence[str], cells: Sequence[str], published: Integers, hidden: Booleans
    ) -> Confidential[Integers]:
        """The amounts of all cells of a place: what was published, and what this file says of the rest.

        Shapes (cells, periods).
        """
        found = published.copy()
        for cell, period in np.argwhere(hidden).tolist():
            found[cell, period] = self._amount(place, periods[period], cells[cell])
        return boxed(found)

    def _amount(self, place: str, period: str, cell: str) -> int:
        text = self.amounts.get((place, period, cell))
        if text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS:
            return int(text)
        where = ", ".join(word for word in (place, period, cell) if word)
        said = "does not say what is in" if text is None else "has no amount for"
        raise UnreadableSource(
            f"'{self.file.name}' {said} the suppressed cell ({where})",
            why="attacks on suppressed cells are judged by all of their true amounts",
            instead="give the same cells as the published file, each with a whole number from 0 on",
            where=Place(file=str(self.file)),
        )


def read_true_amounts(file: Path, table: MagnitudesTable, place: str | None) -> TrueAmounts:
    """Read a confidential file; refused, without repeating a value of it, where it is not like the published one.

    `place` is the column that names places, where there are any.
    """
    try:
        text = read_text_columns(file, "confidential table")
    except InvalidFile as refusal:
        where = refusal.where or Place(file=str(file))
        raise UnreadableSource(refusal.what, why=refusal.why, instead=refusal.instead, where=where) from None
    by = table.by or (str(table.cell),)
    wanted = (*by, table.value, place, table.period)
    missing = next((name for name in wanted if name is not None and name not in text.columns), None)
    if missing is not None:
        raise UnreadableSource(
            f"the confidential table '{file.name}' has no column '{missing}'",
            why="it is read as the published table of the same name is",
            instead="give it the same columns",
            where=Place(file=str(file)),
        )
    nothing = ("",) * len(text.lines)
    places, periods = (nothing if name is None else text.columns[name] for name in (place, table.period))
    cells = map(", ".join, zip(*(text.columns[name] for name in by), strict=True))
    keys = zip(places, periods, cells, strict=True)
    return TrueAmounts(file, dict(zip(keys, text.columns[table.value], strict=True)))
