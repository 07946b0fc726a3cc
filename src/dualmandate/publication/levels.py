"""From a value to the position of its level, in SQL: by looking at that value alone, with the program's levels only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import UnreadableSource
from dualmandate.population import Attribute, GridLevels
from dualmandate.publication.rules import AttributeRule, Rule
from dualmandate.publication.sources import quoted, text

INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
FLOATS = {"FLOAT", "DOUBLE"}
TEXTS = {"VARCHAR"}
OTHER_CODES = {"BOOLEAN", "DATE"}
NUMBER = r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?"
LARGEST_EXACT = 2**61  # grid units: sums of a few of them stay within 64 bits


@dataclass(frozen=True)
class Placement:
    """One attribute in SQL. Records are grouped by `code`; the rest is said of the group, whose code is `code_0`, ….

    A code is the value itself where levels are listed. For numbers it is the position of the level; −1 for a value
    that is not there, −2 for a text that is no number, −3 − position for a number outside whose nearest level this is.
    """

    code: str
    null: str
    found: str  # position, NULL outside
    clamped: str | None = None  # nearest position, NULL where there is none
    codes: Mapping[str, NDArray[Any]] | None = None  # columns `value` and `position` to join
    value: str = ""  # what is looked up in `codes`


def placement(attribute: Attribute, kind: str, number: int) -> Placement:
    """How the values of the attribute's column, of SQL type `kind`, find their levels; `number` is its axis."""
    column, code = f"source.{quoted(attribute.name)}", f"code_{number}"
    if isinstance(attribute.levels, GridLevels) or attribute.edges is not None:
        numbered = _numbered(attribute, column, kind)
        found = f"CASE WHEN {code} >= 0 THEN {code} END"
        return Placement(numbered, f"{code} = -1", found, f"CASE WHEN {code} < -2 THEN -3 - {code} END")
    whole = kind in INTEGERS
    written = column if whole else as_text(attribute.name, column, kind)
    value = f"{code}::BIGINT" if whole else code
    return Placement(
        written, f"{code} IS NULL", f"codes_{number}.position", codes=_codes(attribute, whole=whole), value=value
    )


def _numbered(attribute: Attribute, column: str, kind: str) -> str:
    """The code of a number."""
    value = _number(attribute.name, column, kind)
    low, high = _bounds(attribute)
    inside = f"{value} BETWEEN {_real(low)} AND {_real(high)}"
    if attribute.edges is not None:
        nearest = _bin(attribute, value)
    elif kind in INTEGERS and _fits(attribute):
        nearest, inside, value = _whole_point(attribute, column), f"{column} BETWEEN {low} AND {high}", column
    else:
        nearest = _grid_point(attribute, value)
    cases = [f"WHEN {is_null(column, kind)} THEN -1"]
    if attribute.missing is not None and kind in TEXTS:
        cases.append(f"WHEN {column} = {text(attribute.missing)} THEN {attribute.size - 1}")
    cases += [f"WHEN {inside} THEN {nearest}", f"WHEN {value} IS NULL THEN -2", f"ELSE -3 - {nearest}"]
    return f"CASE {' '.join(cases)} END"


def is_null(column: str, kind: str) -> str:
    """Whether a value is not there; a number that is not a number says as little."""
    return f"({column} IS NULL OR isnan({column}))" if kind in FLOATS else f"{column} IS NULL"


def as_text(name: str, column: str, kind: str) -> str:
    """A value as its code is written; whole numbers kept as floats lose their point."""
    if kind in FLOATS:
        whole = f"{column} = trunc({column}) AND abs({column}) < 9007199254740992"
        other = f"CASE WHEN isnan({column}) THEN NULL ELSE {column}::VARCHAR END"
        return f"CASE WHEN {whole} THEN {column}::BIGINT::VARCHAR ELSE {other} END"
    if kind in TEXTS:
        return column
    if kind in INTEGERS | WIDE_INTEGERS | OTHER_CODES or kind.startswith(("DECIMAL", "ENUM")):
        return f"{column}::VARCHAR"
    raise _wrong_kind(name, "codes")


def target(placed: Placement, rule: AttributeRule, attribute: Attribute) -> str:
    """The position that the rules give to a record, NULL where it is left out."""
    last = str(attribute.size - 1)
    null = last if rule.null is Rule.MISSING else "NULL"
    outside = last if rule.outside is Rule.MISSING else "NULL"
    if rule.outside is Rule.CLAMP:
        outside = f"coalesce({placed.clamped}, {null})"
    if null == outside:
        return placed.found if null == "NULL" else f"coalesce({placed.found}, {last})"
    return f"CASE WHEN {placed.null} THEN {null} ELSE coalesce({placed.found}, {outside}) END"


def _bounds(attribute: Attribute) -> tuple[Fraction, Fraction]:
    if attribute.edges is not None:
        return attribute.edges[0], attribute.edges[-1]
    assert isinstance(attribute.levels, GridLevels)
    return attribute.levels.lower, attribute.levels.lower + attribute.levels.grid * (attribute.levels.points - 1)


def _fits(attribute: Attribute) -> bool:
    """Whether whole numbers find their grid point in 64-bit whole numbers."""
    if attribute.edges is not None or attribute.grid is None:
        return False
    low, high = _bounds(attribute)
    return low.denominator == attribute.grid.denominator == 1 and max(-low, high, attribute.grid) < LARGEST_EXACT // 4


def _number(name: str, column: str, kind: str) -> str:
    if kind in FLOATS:
        return f"(CASE WHEN NOT isnan({column}) THEN {column}::DOUBLE END)"
    if kind in INTEGERS | WIDE_INTEGERS or kind.startswith("DECIMAL"):
        return f"({column}::DOUBLE)"
    if kind in TEXTS:
        return f"(CASE WHEN regexp_full_match({column}, {text(NUMBER)}) THEN TRY_CAST({column} AS DOUBLE) END)"
    raise _wrong_kind(name, "numbers")


def _whole_point(attribute: Attribute, column: str) -> str:
    """The nearest grid point of a whole number, halves upward, in whole numbers."""
    low, high = _bounds(attribute)
    steps = f"(greatest(least({column}::BIGINT, {high}), {low}) - {low})"
    return steps if attribute.grid == 1 else f"((2 * {steps} + {attribute.grid}) // (2 * {attribute.grid}))"


def _grid_point(attribute: Attribute, value: str) -> str:
    """The nearest grid point, halves upward: ⌊(x − lower)/grid + ½⌋ of the clamped number, in 64-bit floats."""
    assert isinstance(attribute.levels, GridLevels)
    low, high = _bounds(attribute)
    grid = attribute.levels.grid
    steps = f"(greatest(least({value}, {_real(high)}), {_real(low)}) - {_real(low)}) / {_real(grid)}"
    return f"least(floor({steps} + 0.5::DOUBLE)::BIGINT, {attribute.levels.points - 1})"


def _bin(attribute: Attribute, value: str) -> str:
    """How many lower edges are not above the number, less one; below the first bin the first."""
    assert attribute.edges is not None
    return "(" + " + ".join(["0", *(f"({value} >= {_real(edge)})::BIGINT" for edge in attribute.edges[1:-1])]) + ")"


def _codes(attribute: Attribute, *, whole: bool) -> dict[str, NDArray[Any]]:
    """Levels and their positions, as whole numbers where the column holds such."""
    if not whole:
        return {"value": np.array(list(attribute.levels), dtype=object), "position": np.arange(attribute.size)}
    pairs = [(int(level), position) for position, level in enumerate(attribute.levels) if _is_whole(level)]
    return {"value": np.array([v for v, _ in pairs], np.int64), "position": np.array([p for _, p in pairs], np.int64)}


def _is_whole(level: str) -> bool:
    """Whether a level is a 64-bit whole number as SQL would write it: `7`, not `07`."""
    return (
        level.removeprefix("-").isdecimal() and len(level) < 20 and str(int(level)) == level and abs(int(level)) < 2**63
    )


def _real(number: Fraction) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def _wrong_kind(name: str, wanted: str) -> UnreadableSource:
    return UnreadableSource(
        f"the column '{name}' does not hold {wanted}",
        why="a column of this type has no values that the program's levels could be compared with",
        instead=f"write it as text or as numbers, or declare '{name}' as it is",
    )
