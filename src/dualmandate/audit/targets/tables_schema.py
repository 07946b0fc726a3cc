"""The keys of `tables.toml`: what was published, in which files, and what can be recorded at all."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from dualmandate.program.number import KeyTable, Levels, Positive, Probability, Several, Text, lacking, refused
from dualmandate.program.schema import AttributeForm, HierarchyTable, Version


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
    attributes: dict[str, AttributeForm] = {}
    """Records are reconstructed in terms of attributes: each says which values can be recorded."""
    hierarchies: dict[str, HierarchyTable] = {}
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
    where: dict[str, Levels] = {}
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
