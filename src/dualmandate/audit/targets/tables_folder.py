"""A folder of published tables: the keys of its `tables.toml`, and the CSV files that it names, read into numbers;
whatever is odd is refused with its file, line and key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from dualmandate.errors import InvalidTables, InvalidValue, MissingKey, Place, did_you_mean
from dualmandate.population import Attribute, Domain
from dualmandate.population.arrays import Floats
from dualmandate.program.domain import code_lists, domain_of
from dualmandate.program.file import Document, read_document
from dualmandate.program.number import KeyTable, Levels, Positive, Probability, Several, Text, lacking, refused
from dualmandate.program.reading import validated
from dualmandate.program.schema import AttributeForm, HierarchyTable, Version
from dualmandate.program.text_columns import TextColumns, read_text_columns
from dualmandate.workload import Tabulation, Workload

TABLES_FILE = "tables.toml"
EVERYWHERE = "all places"  # The name of the one place of tables that name none.


@dataclass(frozen=True, eq=False)
class TableFile:
    """A CSV file of the folder: its columns, its lines, and where tables.toml names it."""

    text: TextColumns
    document: Document
    key: tuple[str | int, ...]

    def column(self, name: str, key: str) -> tuple[str, ...]:
        """A column by its name, refused at the key of tables.toml that asks for it."""
        with self.document.at(*self.key, key):
            return self.text.column(name)

    def at(self, row: int) -> Place:
        """The line of a row, in the CSV file."""
        return Place(str(self.text.file), self.text.lines[row], ".".join(str(part) for part in self.key))

    def number(self, text: str, row: int) -> Decimal:
        """A number as it was printed; thousands may be parted by commas."""
        try:
            found = Decimal(text.replace(",", "").strip())
        except InvalidOperation:
            found = Decimal("NaN")
        if not found.is_finite() or abs(found) > 10**15:
            raise InvalidTables(
                f"'{text}' is not a number",
                why="a published table holds numbers, or the mark of a suppressed one",
                instead="write the number, or add this mark to `suppressed`",
                where=self.at(row),
            )
        return found


@dataclass(frozen=True, eq=False)
class PublishedCounts:
    """All tables of counts of a folder, for every place; NaN where a number is suppressed."""

    domain: Domain
    workload: Workload
    places: tuple[str, ...]
    published: Floats = field(repr=False)  # (places, rows), tables in the order of the workload
    scales: Floats = field(repr=False)  # (rows,)


@dataclass(frozen=True, eq=False)
class Folder:
    """What a folder says was published."""

    document: Document
    file: TablesFile
    domain: Domain | None
    counts: PublishedCounts | None

    @property
    def name(self) -> str:
        return self.file.tables.name

    @property
    def place(self) -> Attribute | None:
        """The places of its counts as levels, for a file of records that names them; None where none is named."""
        if self.file.tables.place is None or self.counts is None:
            return None
        return Attribute.categories(self.file.tables.place, self.counts.places)


def load_folder(path: Path | str) -> Folder:
    """Read a folder of published tables."""
    document = read_document(Path(path) / TABLES_FILE, "file of published tables")
    file = validated(document, TablesFile, "tables")
    if not (file.counts or file.statistics or file.magnitudes):
        raise MissingKey(
            f"{TABLES_FILE} names no table",
            why="there is nothing to attack",
            instead="write at least one [[counts]], [[statistics]] or [[magnitudes]]",
            where=document.place(("counts",)),
        )
    tables: list[CountsTable | StatisticsTable | MagnitudesTable] = [*file.counts, *file.statistics, *file.magnitudes]
    names = [each.name for each in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValue(
            f"two tables are called '{twice}'",
            why="tables are known by their names",
            instead="give each its own name",
            where=document.place(()),
        )
    domain = None
    if file.population.attributes:
        domain = domain_of(file.population, code_lists(file.population, document), document)
    elif file.counts or file.statistics:
        raise MissingKey(
            "the attributes are not stated",
            why="records are reconstructed in terms of what can be recorded",
            instead='write [population] with attributes.NAME = ["…", "…"] for each column of the tables',
            where=document.place(("population", "attributes")),
        )
    counts = _counts(file, domain, document) if file.counts and domain is not None else None
    return Folder(document, file, domain, counts)


def read_sheet(document: Document, key: tuple[str | int, ...]) -> TableFile:
    """The CSV file that a table of tables.toml names."""
    name = document.value((*key, "file"))
    with document.at(*key, "file"):
        return TableFile(read_text_columns(document.path.parent / str(name), "published table"), document, key)


def places_of(file: TablesFile, sheet: TableFile) -> tuple[str, ...]:
    """The place of each row of a file; one name for all where tables are of one place."""
    if file.tables.place is None:
        return (EVERYWHERE,) * len(sheet.text.lines)
    with sheet.document.at("tables", "place"):
        return sheet.text.column(file.tables.place)


def _counts(file: TablesFile, domain: Domain, document: Document) -> PublishedCounts:
    tabulations = []
    for position, table in enumerate(file.counts):
        for number, name in enumerate(table.by):
            with document.at("counts", position, "by", number):
                domain.resolve(name)
        with document.at("counts", position):
            tabulations.append(Tabulation(table.name, table.by, tuple(table.where.items())))
            tabulations[-1].table(domain)
    with document.at("counts"):
        workload = Workload.from_tabulations(domain, tabulations)
    sheets = [read_sheet(document, ("counts", position)) for position in range(len(file.counts))]
    places = tuple(dict.fromkeys(place for sheet in sheets for place in places_of(file, sheet)))
    parts, scales = [], list[float]()
    for table, sheet in zip(file.counts, sheets, strict=True):
        parts.append(_cells(file, table, workload, sheet, places))
        scales += [_scale(table)] * parts[-1].shape[1]
    return PublishedCounts(domain, workload, places, np.concatenate(parts, axis=1), np.array(scales))


def _scale(table: CountsTable) -> float:
    """The mean absolute error of a table's numbers; a third of the base where they are rounded up or down by chance."""
    if table.mean_absolute_error is not None:
        return float(table.mean_absolute_error)
    return 0.0 if table.rounded_to is None else float(table.rounded_to) / 3


def _cells(file: TablesFile, table: CountsTable, workload: Workload, sheet: TableFile, places: Sequence[str]) -> Floats:
    """The numbers of one table, NaN where suppressed; shape (places, cells). Every cell is there, once."""
    cells = {label: cell for cell, label in enumerate(workload.labels(table.name))}
    found = np.full((len(places), len(cells)), np.nan)
    lines = np.full(found.shape, -1, dtype=np.int64)
    position = {place: number for number, place in enumerate(places)}
    columns = [sheet.column(name, "by") for name in table.by]
    values, owners = sheet.column(table.value, "value"), places_of(file, sheet)
    for row, text in enumerate(values):
        label = tuple(column[row] for column in columns)
        if label not in cells:
            raise _unknown_cell(table, label, cells, sheet.at(row))
        at = position[owners[row]], cells[label]
        if lines[at] >= 0:
            raise InvalidTables(
                f"the cell {_said(label)} of {owners[row]} stands twice in '{table.name}'",
                why=f"it stands on line {lines[at]} too",
                instead="give each cell once",
                where=sheet.at(row),
            )
        lines[at] = sheet.text.lines[row]
        if text not in file.tables.suppressed:
            found[at] = _count(sheet.number(text, row), row, sheet, exact=not _scale(table))
    missing = np.argwhere(lines < 0)
    if missing.size:
        place, cell = (int(each) for each in missing[0])
        raise InvalidTables(
            f"'{table.name}' lacks the cell {_said(list(cells)[cell])} of {places[place]}",
            why=f"{len(missing):,} of {lines.size:,} cells are not there, and what is not there is not known to be 0",
            instead="write 0, or the mark of a suppressed number, for each",
            where=sheet.document.place((*sheet.key, "file")),
        )
    return found


def _count(number: Decimal, row: int, sheet: TableFile, *, exact: bool) -> float:
    if exact and (number < 0 or number != int(number)):
        raise InvalidTables(
            f"{number} is no count",
            why="exact counts are whole numbers from 0 on",
            instead="state mean_absolute_error or rounded_to where numbers have noise or are rounded",
            where=sheet.at(row),
        )
    return float(number)


def _unknown_cell(
    table: CountsTable, label: tuple[str, ...], cells: Mapping[tuple[str, ...], int], where: Place
) -> InvalidTables:
    for axis, (name, word) in enumerate(zip(table.by, label, strict=True)):
        known = list(dict.fromkeys(each[axis] for each in cells))
        if word not in known:
            return InvalidTables(
                f"'{word}' is not a level of '{name}' that '{table.name}' counts",
                why=f"it counts {', '.join(known[:12])}{', …' if len(known) > 12 else ''}",
                instead=did_you_mean(word, known, "write one of them"),
                where=where,
            )
    return InvalidTables(
        f"'{table.name}' has no cell {_said(label)}", why="no such cell is declared", instead="check it", where=where
    )


def _said(label: tuple[str, ...]) -> str:
    return f"({', '.join(label)})" if label else "of everybody"


def suppressed_marks(file: TablesFile) -> frozenset[str]:
    """What stands for a suppressed number; in statistics and amounts an empty place does too."""
    return frozenset({*file.tables.suppressed, ""})


def rows_of(places: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each place, places in the order in which they are named."""
    found: dict[str, list[int]] = {}
    for row, place in enumerate(places):
        found.setdefault(place, []).append(row)
    return found


class HeadTable(KeyTable):
    """What the folder holds."""

    schema_: Annotated[Version, Field(alias="schema")]
    """The version of the keys: a later one may mean something else by them."""
    name: Text
    """Findings are told by the name of what was attacked."""
    place: Text | None = None
    """The column of the files that names the place (a block, a tract), where tables are published for many."""
    suppressed: Several[Text] = ("(D)",)
    """What stands in a file in place of a suppressed number; in statistics and amounts an empty place does too."""


class RecordedTable(KeyTable):
    """What can be recorded about those who are counted; the place is not one of its attributes.

    Attributes, hierarchies and structural zeros are written as in a [program file](program-file.md).
    """

    unit: Text = "person"
    """Who is counted."""
    attributes: dict[str, AttributeForm] = Field(default_factory=dict)
    """Records are reconstructed in terms of attributes: each says which values can be recorded."""
    hierarchies: dict[str, HierarchyTable] = Field(default_factory=dict)
    """How levels roll up."""
    structural_zeros: Several[dict[str, Levels]] = ()
    """Combinations of levels that cannot occur."""

    @property
    def source(self) -> None:
        """No records are named here."""
        return


class CountsTable(KeyTable):
    """A table of counts: one row of its file for each cell of each place, zeros too.

    All tables of counts are attacked together.
    """

    name: Text
    """Contradictions name the tables they come from."""
    file: Text
    """A CSV file beside tables.toml, with a header."""
    by: Several[Text] = ()
    """Attributes or groupings, each a column of the file; none for a total."""
    where: dict[str, Levels] = Field(default_factory=dict)
    """Levels that records must have to be counted."""
    value: Text = "count"
    """The column that holds the numbers."""
    mean_absolute_error: Positive | None = None
    """The stated scale of noise in the numbers: the mean of its size. Without it, numbers are exact."""
    rounded_to: Positive | None = None
    """The base to which numbers are rounded."""

    @model_validator(mode="after")
    def _one_error(self) -> Self:
        if self.mean_absolute_error is not None and self.rounded_to is not None:
            raise refused("errors are stated twice", "keep the larger one of the two", key="rounded_to")
        return self


class StatisticsTable(KeyTable):
    """Counts, means and medians of groups of at most 30 people: one row a group; an empty label means everybody.

    A mean stands for whatever rounds to it. Structural zeros of one level each and the lowest numbers are rules
    ("married from 15 on").
    """

    name: Text
    """Findings are told by the name of what was attacked."""
    file: Text
    """A CSV file beside tables.toml, with those of the columns `count`, `median` and `mean` that were published."""
    of: Text
    """The numeric attribute whose means and medians these are."""
    by: Several[Text]
    """Attributes that groups are made of, each a column of the file."""
    label: Text | None = None
    """The column that names each statistic; without it, a statistic is called by its line."""


class MagnitudesTable(KeyTable):
    """Amounts that add up, with suppressed cells: along columns, each with a label for its total, or in a tree.

    Every cell of every place and period stands in the file once, suppressed ones with their mark. Over several periods,
    suppressed cells are bounded in each, and then estimated from what the others show.
    """

    name: Text
    """Findings are told by the name of what was attacked."""
    file: Text
    """A CSV file beside tables.toml, with a header."""
    value: Text = "value"
    """The column that holds the numbers, whole numbers of their smallest unit."""
    by: Several[Text] = ()
    """Columns whose labels make a cell, each with a label that stands for the total of the others."""
    total: Text = "total"
    """The label of totals in each column of `by`."""
    cell: Text | None = None
    """The column that names a cell, where cells form a tree."""
    parent: Text | None = None
    """The column that names the cell which a cell is a part of; empty at the top."""
    period: Text | None = None
    """The column that names the period (a quarter, a year), where the same cells are published in several. Every cell
    stands there in every period; periods follow each other as the file first names them."""
    size: Text | None = None
    """The column of a public size of each cell (establishments), by which somebody divides what no period shows."""
    share: Probability | None = None
    """Of a value, within which nobody should be able to tell it: the protection interval; 0.2 where not stated."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.size is not None and self.period is None:
            raise lacking("period", "sizes are for estimates over time", 'write period = "…", or leave size out')
        if (self.cell is None) != (self.parent is None):
            key = "cell" if self.cell is None else "parent"
            raise lacking(key, "a tree names its cells and what each is a part of", f'write {key} = "…"')
        if bool(self.by) == (self.cell is not None):
            raise refused(
                "cells add up along the columns of `by`, or in a tree of `cell` and `parent`", "state one of the two"
            )
        return self


class TablesFile(KeyTable):
    """A folder of published tables."""

    tables: HeadTable
    """A folder of tables has a name and a schema version."""
    population: RecordedTable = RecordedTable()
    """What can be recorded."""
    counts: Several[CountsTable] = ()
    """Tables of counts."""
    statistics: Several[StatisticsTable] = ()
    """Counts, means and medians of groups."""
    magnitudes: Several[MagnitudesTable] = ()
    """Amounts that add up."""
