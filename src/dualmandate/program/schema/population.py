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
    "levels": (("levels",), ("ordered", "missing")),
    "codes": (("codes",), ("column", "ordered", "missing")),
    "numbers": (("lower", "upper", "grid"), ("missing",)),
    "bins": (("edges",), ("missing",)),
    "range": (("from", "to"), ("missing",)),
}
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
        stray = next((key for key in sorted(stated) if key not in needed + allowed), None)
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
    attributes: dict[str, Annotated[AttributeTable, BeforeValidator(_attribute), _OrListOfLevels()]]
    """Tables are made of attributes, and what can be recorded is stated here, never found in the data."""
    most_records_per_unit: Count = 1
    """The most records that one unit may contribute."""
    identifier: Text | None = None
    """The column that names the unit."""
    household_size: Count | None = None
    """The size of a household for which the guarantee is stated too."""
    records_changing_together: Count | None = None
    """How many records must change together where invariants cross."""
    source: Text | None = None
    """The confidential file; `plan` never opens it."""
    hierarchies: dict[str, HierarchyTable] = {}
    """How levels roll up."""
    structural_zeros: Several[dict[str, Levels]] = ()
    """Combinations of levels that cannot occur."""
