"""`[population]`: who is counted, what can be recorded about them, who is protected."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.number import (
    CLOSED,
    LEVEL_SCHEMA,
    Count,
    Level,
    Levels,
    Number,
    Positive,
    Several,
    Text,
    WholeNumber,
    lacking,
    refused,
)

# The keys that make each form of an attribute, and the keys that it may carry besides.
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "levels": (("levels",), ("ordered",)),
    "codes": (("codes",), ("column", "ordered")),
    "numbers": (("lower", "upper", "grid"), ()),
    "bins": (("edges",), ()),
    "range": (("from", "to"), ()),
}
OF_ANY_FORM = ("missing", "outside", "null")
_WRITE_ONE = (
    'write a list of levels, or { codes = "file.csv" }, { levels = […], ordered = true }, '
    "{ lower = …, upper = …, grid = … }, { edges = […] } or { from = …, to = … }"
)


class AttributeTable(BaseModel):
    """What one attribute may record: listed levels, a code list, numbers on a grid, bins, or a range of integers."""

    model_config = CLOSED

    levels: Several[Level] | None = None
    """The values that can be recorded."""
    codes: Text | None = None
    """A CSV file beside the program, one row a code."""
    column: Text | None = None
    """The column of the CSV file that holds the codes; the first one where it is not stated."""
    ordered: bool = False
    """Whether neighbors in the list are neighbors in meaning."""
    missing: Level | None = None
    """The level that records a missing answer."""
    lower: Number | None = None
    """The lower bound of a number: smaller ones count as this one."""
    upper: Number | None = None
    """The upper bound of a number: larger ones count as this one."""
    grid: Positive | None = None
    """What a number is rounded to: sums are whole numbers of it."""
    edges: Several[Number] | None = None
    """The edges of bins, increasing."""
    from_: Annotated[WholeNumber | None, Field(alias="from")] = None
    """The first integer of a range."""
    to: WholeNumber | None = None
    """The last integer of a range."""
    outside: Literal["drop", "clamp", "missing"] | None = None
    """What becomes of a record with a value outside the levels: it is left out ("drop"), takes the nearest number
    ("clamp") or the missing level ("missing"). Where not stated, numbers are clamped and other values dropped."""
    null: Literal["drop", "missing"] | None = None
    """What becomes of a record without a value: it is left out ("drop") or takes the missing level ("missing"), which
    it does where a missing level is declared and nothing is stated."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        stated = {"from" if name == "from_" else name for name in self.model_fields_set}
        forms = [form for form, (needed, _) in FORMS.items() if stated & set(needed)]
        if len(forms) != 1:
            raise refused("an attribute is described in exactly one way", _WRITE_ONE)
        needed, allowed = FORMS[forms[0]]
        absent = next((key for key in needed if key not in stated), None)
        if absent is not None:
            raise lacking(absent, f"with {needed[0]} goes {absent}", _WRITE_ONE)
        stray = next((key for key in sorted(stated) if key not in needed + allowed + OF_ANY_FORM), None)
        if stray is not None:
            raise refused(f"{stray} says nothing about an attribute given by {needed[0]}", _WRITE_ONE, key=stray)
        return self


def _attribute(value: object) -> object:
    if isinstance(value, list):
        return {"levels": value}
    if not isinstance(value, dict):
        raise refused("an attribute says which values can be recorded", _WRITE_ONE)
    return value


class _OrListOfLevels:
    """Says in the JSON Schema that a bare list of levels will do."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "array", "items": LEVEL_SCHEMA, "minItems": 1}, handler(core)]}


AttributeForm = Annotated[AttributeTable, BeforeValidator(_attribute), _OrListOfLevels()]


class HierarchyTable(BaseModel):
    """How the levels of one attribute roll up, coarsest first."""

    model_config = CLOSED

    attribute: Text
    """A hierarchy groups the levels of one attribute."""
    prefixes: dict[str, Count] | None = None
    """The length of the code of each grouping: { state = 2, county = 5 }."""
    columns: Several[Text] | None = None
    """Columns of the attribute's code list, coarsest first."""
    groups: dict[str, Levels] | None = None
    """The levels of each group, where the hierarchy has one grouping of the hierarchy's own name."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in (self.prefixes, self.columns, self.groups) if form is not None]
        if len(given) != 1 or not given[0]:
            raise refused(
                "a hierarchy is read off code prefixes, off columns of the code list, or off listed groups",
                'write prefixes = { state = 2 }, or columns = ["state"], or groups = { young = ["0-17"] }',
            )
        return self


class InvariantTable(BaseModel):
    """An exact total, published without noise: one for each group of `by`, of the records under `where`."""

    model_config = CLOSED

    name: Text
    """The guarantee names what is not protected."""
    by: Several[Text] = ()
    """Attributes or groupings; none for the grand total."""
    where: dict[str, Levels] = {}
    """Levels that records must have to be counted."""


_WRITE_SOURCE = (
    'write "file.parquet" (or .csv, .sas7bdat, .dta, .sav), { path = "file.csv", delimiter = ";" }, '
    '{ url = "sqlite:///…", table = "…" }, { url_variable = "…", table = "…" } or { spark = "…" }'
)


class SourceTable(BaseModel):
    """Where the confidential records lie: a file, a table of a database, or a table of Spark."""

    model_config = CLOSED

    path: Text | None = None
    """A file, found from where the program file stands; its ending says its kind: .parquet, .csv, .sas7bdat, .dta or
    .sav. A text in place of the table is a path."""
    delimiter: Text | None = None
    """What separates the values of a CSV file; a comma where it is not stated."""
    url: Text | None = None
    """The SQLAlchemy URL of a database, without password, user or host: this file is public, and releases carry it."""
    url_variable: Text | None = None
    """The environment variable that holds the URL, which may then have all of them."""
    table: Text | None = None
    """The table or view of the database: `name` or `schema.name`."""
    spark: Text | None = None
    """A table or view that the Spark session knows."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        stated = self.model_fields_set
        if len(stated & {"path", "url", "url_variable", "spark"}) != 1:
            raise refused("records lie in exactly one place", _WRITE_SOURCE)
        in_database = bool(stated & {"url", "url_variable"})
        if in_database and self.table is None:
            raise lacking("table", "a database has many tables", _WRITE_SOURCE)
        for key, fits in (("table", in_database), ("delimiter", self.path is not None)):
            if key in stated and not fits:
                raise refused(f"{key} says nothing about a source of this kind", _WRITE_SOURCE, key=key)
        return self


def _source(value: object) -> object:
    if isinstance(value, str):
        return {"path": value}
    if not isinstance(value, dict):
        raise refused("a source is a file or a table", _WRITE_SOURCE)
    return value


class _OrPath:
    """Says in the JSON Schema that a bare path will do."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(core)]}


class PopulationTable(BaseModel):
    """Who is counted and protected."""

    model_config = CLOSED

    account: Text
    """The ledger's account says whose privacy is spent."""
    unit: Text
    """A guarantee protects somebody: a person, a household, an establishment."""
    neighbors: Literal["add-or-remove", "replace-one"]
    """A guarantee says which two files cannot be told apart: "add-or-remove" or "replace-one"."""
    population_size: Calibrated
    """The planner adds up everybody's privacy cost; it never opens the data, so it cannot count them."""
    attributes: dict[str, AttributeForm]
    """Tables are made of attributes, and what can be recorded is stated here, never found in the data."""
    most_records_per_unit: Count = 1
    """The most records that one unit may contribute."""
    identifier: Text | None = None
    """The column that names the unit."""
    household_size: Count | None = None
    """The size of a household for which the guarantee is stated too."""
    records_changing_together: Count | None = None
    """How many records must change together where invariants cross."""
    source: Annotated[SourceTable, BeforeValidator(_source), _OrPath()] | None = None
    """The confidential file or table; `plan` never opens it."""
    unknown_where_impossible: Text | None = None
    """The attribute that takes its missing level in a record that lies in a structural zero; where it is not stated,
    such a record is left out."""
    dropping_is_public: bool = False
    """Whether it is accepted, under replace-one neighbors, that leaving out a record with odd values is not
    protected."""
    hierarchies: dict[str, HierarchyTable] = {}
    """How levels roll up."""
    structural_zeros: Several[dict[str, Levels]] = ()
    """Combinations of levels that cannot occur."""
