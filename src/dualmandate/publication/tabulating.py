"""Microdata into a histogram over the declared domain, on disk rather than in memory, and behind the wall.

In SQL, a value finds the position of its level by itself, with the program's levels only; a record its cell; then, if
units are identified, records beyond a unit's bound are clipped: which ones, by a keyed hash within the unit. Neither
the order of the rows nor another unit matters.

What is found is counts by cell, dense or sparse, and for the curator what did not fit. Where a histogram is sparse,
tables of it visit only cells that hold a record, whatever the size of the domain. Where marginals alone are measured,
there is no histogram: records are added to these as they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge, UnreadableSource, UnsafeKey
from dualmandate.population import Attribute, Confidential, Domain, GridLevels, Histogram, Protection
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.domain import dense_shape
from dualmandate.publication.marginal_counts import Axes, MarginalCounts, count_marginals, words_of
from dualmandate.publication.rules import AttributeRule, Rules, ValueRule, check_rules
from dualmandate.publication.sources import (
    Source,
    SourceColumns,
    SparkTable,
    check_source,
    opened,
    outlined,
    quoted,
    text,
)
from dualmandate.publication.unreadable import UNREADABLE
from dualmandate.publication.wall import connected, executed, guarded
from dualmandate.workload import Factor, Identity, Table, Total
from dualmandate.workload.factor import Groups, Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def tabulate(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    key: bytes,
    progress: Progress = None,
    sparse: bool = False,
    marginals: tuple[Axes, ...] | None = None,
) -> Confidential[Tabulated]:
    """Count the records of each cell, every record by its own rules and every unit within its bound.

    `key` (32 secret bytes, the same for a retry) decides which records of a unit with too many are kept. `sparse`
    holds only the cells with records, and `marginals` no cells but those of these sets of attributes, for domains that
    are too large to write out.
    """
    spec = checked_spec(domain, protection, rules, key, checking=False)
    check_source(source)
    if marginals is None:
        check_numbered(domain)
        if not sparse:
            dense_shape(domain)

    def work() -> Tabulated:
        if marginals is not None and isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import marginals_of

            return marginals_of(source, spec, marginals, key=key)
        if marginals is not None:
            with connected() as connection, opened(source, connection, spec.columns, counted=bool(progress)) as found:
                table, records = kept_records(found, spec, connection, key=key, progress=progress)
                return Tabulated(count_marginals(connection, table, domain, marginals, wide=has_words(domain)), records)
        if isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import tabulate_table

            cells, counts, records = tabulate_table(source, spec, key=key)
        else:
            with connected() as connection, opened(source, connection, spec.columns, counted=bool(progress)) as found:
                cells, counts, records = counted(found, spec, connection, key=key, progress=progress)
        histogram = SparseHistogram(domain, cells, counts)
        return Tabulated(histogram if sparse else histogram.dense(), records)

    return Confidential("tabulated records", guarded(work, name=source.name))


def check_readable(source: Source, domain: Domain, *, protection: Protection, rules: Rules, pages: bool = True) -> None:
    """Refuse what only a whole source can be, before anything is spent: no such column, another kind, damaged.

    Nothing that depends on the value of a record is found here, and nothing that is found later does. Without `pages`
    a file is not read to its end.
    """
    spec = checked_spec(domain, protection, rules, bytes(KEY_BYTES), checking=False)
    check_source(source)

    def work() -> None:
        if isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import check_columns

            check_columns(source, spec)
            return
        with connected() as connection, outlined(source, connection, spec.columns, pages=pages) as found:
            records_sql(found, spec, connection)

    guarded(work, name=source.name)


# SQL types of the engine, by what a value of them can be compared with.
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
FLOATS = {"FLOAT", "DOUBLE"}
TEXTS = {"VARCHAR"}
OTHER_CODES = {"BOOLEAN", "DATE"}
NUMBER = r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?"
LARGEST_EXACT = 2**61  # Numbers of fewer grid units stay within 64 bits in sums of a few of them.
Progress = Callable[[float], None] | None
Counted = tuple[Integers, Integers, int]  # Cells, records kept of each, records read.
KEY_BYTES = 32
SIDES = ("below", "above")  # of the declared numbers
NUMBERED = 2**63  # A cell of a domain of fewer cells than this has a number; else it has several, one a run.


@dataclass(frozen=True)
class TabulationSpec:
    """What is tabulated and by which rules: all of it from the program, none of it from the data."""

    domain: Domain
    protection: Protection
    rules: Rules

    @property
    def columns(self) -> list[str]:
        """What a source must have: a column for each attribute, and the one that names the unit."""
        identifier = self.protection.identifier
        return [*self.domain.names, *([] if identifier is None else [identifier])]

    @property
    def identified(self) -> bool:
        """Whether the records of one unit can be found."""
        return self.protection.identifier is not None


def checked_spec(domain: Domain, protection: Protection, rules: Rules, key: bytes, *, checking: bool) -> TabulationSpec:
    """Everything that can be refused before data are opened."""
    if len(key) != KEY_BYTES:
        raise UnsafeKey(
            f"the key of a tabulation has {len(key)} bytes",
            why=f"which records of a unit are kept is decided by a secret of {KEY_BYTES} bytes",
            instead="derive it from the secret of the release",
        )
    check_rules(rules, domain, protection, checking=checking)
    return TabulationSpec(domain, protection, rules)


def has_words(domain: Domain) -> bool:
    """Whether a cell has several numbers: there are too many cells for one."""
    return domain.size >= NUMBERED


def check_numbered(domain: Domain) -> None:
    """Refuse a domain with more cells than have a number."""
    if has_words(domain):
        raise TooLarge(
            f"a domain of {domain.size:.3g} cells cannot be numbered",
            why="a cell is a 64-bit whole number",
            instead="tabulate fewer attributes at once",
        )


def counted(
    found: SourceColumns, spec: TabulationSpec, connection: DuckDBPyConnection, *, key: bytes, progress: Progress = None
) -> Counted:
    """Cells with records, how many are kept of each, and how many records were read."""
    table, records = kept_records(found, spec, connection, key=key, progress=progress)
    return *summed_cells(connection, table), records


def summed_cells(connection: DuckDBPyConnection, table: str) -> tuple[Integers, Integers]:
    """The cells of such a table, increasing, and how many records are kept of each."""
    summed = f"SELECT cell, sum(records)::BIGINT AS records FROM {table} GROUP BY cell ORDER BY cell"
    kept = connection.execute(summed).fetchnumpy()
    cells, counts = (np.ascontiguousarray(kept[name], dtype=np.int64) for name in ("cell", "records"))
    return cells, counts


def kept_records(
    found: SourceColumns, spec: TabulationSpec, connection: DuckDBPyConnection, *, key: bytes, progress: Progress = None
) -> tuple[str, int]:
    """A table, in SQL, of cells and of how many records are kept of each, and how many records were read."""
    statement = f"CREATE TEMP TABLE held AS {_placed(records_sql(found, spec, connection), spec)}"
    executed(connection, statement, progress=progress, share=found.share)
    return bounded_records(spec, connection, key=key)


def bounded_records(spec: TabulationSpec, connection: DuckDBPyConnection, *, key: bytes) -> tuple[str, int]:
    """The same of the table `held`: records with units and cells, or counted by cell where nobody is named."""
    if spec.identified:
        records = _whole(connection, "SELECT count(*) FROM held")
        keep_within_bound(connection, spec.protection.most_records_per_unit, key=key)
        return "kept", records
    return "held WHERE cell IS NOT NULL", _whole(connection, "SELECT sum(records) FROM held")


def _placed(reading: str, spec: TabulationSpec) -> str:
    """Records with their cells (NULL: left out): a row a record with its unit, or counted where nobody is named."""
    if spec.identified:
        return f"SELECT unit, cell FROM ({reading})"
    return f"SELECT cell, sum(records)::BIGINT AS records FROM ({reading}) GROUP BY cell"


def records_sql(
    found: SourceColumns, spec: TabulationSpec, connection: DuckDBPyConnection, *, values: bool = False
) -> str:
    """The records of a source in SQL: `unit`, `cell` (NULL: left out), `impossible`, marks, and `records`.

    With `values` also what stands there where it is outside: `value_0`, …, NULL elsewhere.
    """
    import pyarrow

    attributes, joins = spec.domain.attributes, []
    unreadable = f"source.{quoted(UNREADABLE)}" if UNREADABLE in found.types else "false"
    codes = [f"{_unit(found, spec.protection)} AS unit", f"{unreadable} AS unreadable"]
    wanted = ["unit", "records", "unreadable"]
    for number, attribute in enumerate(attributes):
        place = placement(attribute, found.type_of(attribute.name), number)
        codes.append(f"{place.code} AS code_{number}")
        outside = f"NOT ({place.null}) AND ({place.found}) IS NULL"
        wanted.append(f"{target(place, spec.rules.of(attribute), attribute)} AS level_{number}")
        wanted.append(f"{place.null} AS null_{number}")
        wanted.append(f"{outside} AS outside_{number}")
        wanted += [f"{place.beyond(side)} AS {side}_{number}" for side in SIDES]
        if values:
            stated = f"code_{number}" if place.codes is not None else f"raw_{number}"
            wanted.append(f"CASE WHEN {outside} THEN {stated}::VARCHAR END AS value_{number}")
            if place.codes is None:
                raw = f"source.{quoted(attribute.name)}"
                codes.append(f"CASE WHEN ({place.code}) < -1 THEN {raw}::VARCHAR END AS raw_{number}")
        if place.codes is not None:
            connection.register(f"codes_{number}", pyarrow.table(dict(place.codes)))
            joins.append(f" LEFT JOIN codes_{number} ON codes_{number}.value = {place.value}")
    # Grouped before levels are looked up: a million equal records are looked up once. With units few are equal.
    counted, grouping = ("1::BIGINT", "") if spec.identified else ("count(*)::BIGINT", " GROUP BY ALL")
    groups = f"SELECT {', '.join(codes)}, {counted} AS records FROM {found.table} AS source{grouping}"
    placed_groups = f"SELECT {', '.join(wanted)} FROM ({groups}) AS grouped{''.join(joins)}"
    names = [f"level_{number}" for number in range(len(attributes))]
    kept = " AND ".join(f"{name} IS NOT NULL" for name in names)
    impossible = f"{kept} AND ({_impossible(spec.domain, names)})"
    return f"SELECT *, {_last_cell(spec, names)} AS cell, {impossible} AS impossible FROM ({placed_groups})"


def _unit(found: SourceColumns, protection: Protection) -> str:
    """The unit as a whole number or as text: two that are written alike are one."""
    name = protection.identifier
    if name is None:
        return "NULL::VARCHAR"
    column, kind = f"source.{quoted(name)}", found.type_of(name)
    return f"{column}::BIGINT" if kind in INTEGERS else as_text(name, column, kind)


def _last_cell(spec: TabulationSpec, names: list[str]) -> str:
    """The cell of a record after the rule for structural zeros."""
    domain, moved = spec.domain, "NULL"
    if not domain.structural_zeros:
        return _cell(domain, names)
    if spec.rules.unknown_where_impossible is not None:
        axis = domain.axis(spec.rules.unknown_where_impossible)
        unknown = [*names[:axis], str(domain.shape[axis] - 1), *names[axis + 1 :]]
        moved = f"CASE WHEN NOT ({_impossible(domain, unknown)}) THEN {_cell(domain, unknown)} END"
    return f"CASE WHEN {_impossible(domain, names)} THEN {moved} ELSE {_cell(domain, names)} END"


def _cell(domain: Domain, names: Sequence[str]) -> str:
    """The number of a cell, or its numbers where the domain has too many cells for one; NULL where a level is."""
    if not has_words(domain):
        return _number_of(names, domain.shape)
    runs = [slice(run.start, run.stop) for run in words_of(domain.shape)]
    words = [_number_of(names[run], domain.shape[run]) for run in runs]
    return cell_of_words(words, " AND ".join(f"{name} IS NOT NULL" for name in names))


def cell_of_words(words: Sequence[str], there: str) -> str:
    """A cell of several numbers in SQL, NULL where it is not `there`."""
    return f"CASE WHEN {there} THEN {{{', '.join(f'word_{n}: {word}' for n, word in enumerate(words))}}} END"


def _number_of(names: Sequence[str], shape: Sequence[int]) -> str:
    strides = np.cumprod([1, *shape[:0:-1]], dtype=object)[::-1]
    terms = (f"{name}::BIGINT * {stride}" for name, stride in zip(names, strides, strict=True))
    return f"({' + '.join(terms)})"


def _impossible(domain: Domain, names: list[str]) -> str:
    zeros = (
        "(" + " AND ".join(_within(names[axis], mask) for axis, mask in masks.items()) + ")"
        for masks in domain.all_zero_masks
    )
    return " OR ".join(zeros) or "false"


def _within(name: str, mask: Booleans) -> str:
    """Whether a position is among those of a mask, written as its runs."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    runs = zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True)
    return "(" + (" OR ".join(f"{name} BETWEEN {first} AND {after - 1}" for first, after in runs) or "false") + ")"


def _whole(connection: DuckDBPyConnection, statement: str) -> int:
    """One whole number; an empty sum is 0."""
    row = connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0] or 0)


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
    sides: tuple[str, str] = ("false", "false")  # whether a number is below the lowest level, above the highest

    def beyond(self, side: str) -> str:
        """Whether a number is `below` all levels, or `above` them."""
        return self.sides[SIDES.index(side)]


def placement(attribute: Attribute, kind: str, number: int) -> Placement:
    """How the values of the attribute's column, of SQL type `kind`, find their levels; `number` is its axis."""
    column, code = f"source.{quoted(attribute.name)}", f"code_{number}"
    if isinstance(attribute.levels, GridLevels) or attribute.edges is not None:
        numbered = _numbered(attribute, column, kind)
        found = f"CASE WHEN {code} >= 0 THEN {code} END"
        highest = attribute.size - (attribute.missing is not None) - 1
        sides = f"{code} = -3", f"{code} = {-3 - highest}" if highest else "false"
        return Placement(numbered, f"{code} = -1", found, f"CASE WHEN {code} < -2 THEN -3 - {code} END", sides=sides)
    whole = kind in INTEGERS
    written = column if whole else as_text(attribute.name, column, kind)
    value = f"{code}::BIGINT" if whole else code
    return Placement(
        written, f"{code} IS NULL", f"codes_{number}.position", codes=_codes(attribute, whole=whole), value=value
    )


def _numbered(attribute: Attribute, column: str, kind: str) -> str:
    value = _number(attribute.name, column, kind)
    low, high = _bounds(attribute)
    inside = f"{value} BETWEEN {_real(low)} AND {_real(high)}"
    if attribute.edges is not None:
        nearest = _bin(attribute, value)
    elif kind in INTEGERS and _fits(attribute):
        nearest, inside, value = _whole_point(attribute, column), f"{column} BETWEEN {low} AND {high}", column
    else:
        nearest = _grid_point(attribute, value)
    # a number that is not a number says as little as one that is not there
    cases = [f"WHEN {column} IS NULL{f' OR isnan({column})' if kind in FLOATS else ''} THEN -1"]
    if attribute.missing is not None and kind in TEXTS:
        cases.append(f"WHEN {column} = {text(attribute.missing)} THEN {attribute.size - 1}")
    cases += [f"WHEN {inside} THEN {nearest}", f"WHEN {value} IS NULL THEN -2", f"ELSE -3 - {nearest}"]
    return f"CASE {' '.join(cases)} END"


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
    null = last if rule.null is ValueRule.MISSING else "NULL"
    outside = last if rule.outside is ValueRule.MISSING else "NULL"
    if rule.outside is ValueRule.CLAMP:
        outside = f"coalesce({placed.clamped}, {null})"
    if null == outside:
        return placed.found if null == "NULL" else f"coalesce({placed.found}, {last})"
    return f"CASE WHEN {placed.null} THEN {null} ELSE coalesce({placed.found}, {outside}) END"


def _bounds(attribute: Attribute) -> tuple[Fraction, Fraction]:
    if attribute.edges is not None:
        return attribute.edges[0], attribute.edges[-1]
    assert attribute.lower is not None
    assert attribute.upper is not None
    return attribute.lower, attribute.upper


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


ROWS_AT_A_TIME = 500_000  # About so many records of units with too many are put in order at once.
BLOCK_BYTES = 64  # HMAC pads its key to a block of SHA-256.
LARGEST_LEAST = 10**6  # The engine keeps fewer least values than this by itself; beyond, it sorts.


def keep_within_bound(connection: DuckDBPyConnection, most: int, *, key: bytes) -> None:
    """The table `kept` (cell, records) from `held` (unit, cell), a row a record: at most `most` records of a unit.

    Only units that have more are put in order, some of them at a time so that memory does not grow. They are found by
    a hash of theirs: two units that share one are merely looked at without need.
    """
    set_pads(connection, key)
    held = "held WHERE unit IS NOT NULL AND cell IS NOT NULL"
    counted = f"SELECT hash(unit) AS mark FROM {held} GROUP BY mark HAVING count(*) > {most}"
    connection.execute(f"CREATE TEMP TABLE crowded AS {counted}")
    few = f"SELECT cell, count(*) AS records FROM {held} AND hash(unit) NOT IN (FROM crowded) GROUP BY cell"
    connection.execute(f"CREATE TEMP TABLE kept AS {few}")
    many = f"SELECT unit, cell FROM {held} AND hash(unit) IN (FROM crowded)"
    connection.execute(f"CREATE TEMP TABLE many AS {many}")
    crowd = _whole(connection, "SELECT count(*) FROM many")
    parts = 1 + crowd // ROWS_AT_A_TIME if crowd else 0
    for part in range(parts):
        connection.execute(f"INSERT INTO kept {_least(most, f'hash(unit) % {parts} = {part}')}")


def set_pads(connection: DuckDBPyConnection, key: bytes) -> None:
    """Hand the engine a key for `mac_of`, as variables: it stands in no statement."""
    block = key.ljust(BLOCK_BYTES, b"\0")
    for name, mask in (("inner_pad", 0x36), ("outer_pad", 0x5C)):
        connection.execute(f"SET VARIABLE {name} = ?", [bytes(byte ^ mask for byte in block)])


def mac_of(message: str) -> str:
    """HMAC-SHA-256 of a blob in SQL, in hexadecimal digits, under the key of `set_pads`."""
    return f"sha256(getvariable('outer_pad') || unhex(sha256(getvariable('inner_pad') || {message})))"


def _least(most: int, part: str) -> str:
    """Of each unit the records that are first by HMAC-SHA-256 of "cell,number,unit", counted by cell.

    `number` counts the unit's records of that cell from 1. They are interchangeable, so what is kept is a uniform
    choice among the unit's records that depends on nothing but the key and those records.
    """
    by_cell = f"SELECT unit, cell, count(*) AS records FROM many WHERE {part} GROUP BY unit, cell"
    single = f"SELECT unit, cell, unnest(generate_series(1, records)) AS number FROM ({by_cell})"
    mac = mac_of("encode(cell::VARCHAR || ',' || number::VARCHAR || ',' || unit::VARCHAR)")
    least = f"arg_min(cell, {mac}, {most})"
    if most >= LARGEST_LEAST:
        least = f"list_slice(list(cell ORDER BY {mac}), 1, {most})"
    cells = f"SELECT unnest({least}) AS cell FROM ({single}) GROUP BY unit"
    return f"SELECT cell, count(*) AS records FROM ({cells}) GROUP BY cell"


@dataclass(frozen=True, eq=False)
class SparseHistogram:
    """Counts of the cells that hold a record; every other cell counts 0 and is noised all the same.

    A cell is its row-major position in the declared domain, as in a dense histogram.
    """

    domain: Domain
    cells: Integers = field(repr=False)  # shape (occupied,), increasing; never printed
    counts: Integers = field(repr=False)  # shape (occupied,), ≥ 1; never printed

    @property
    def total(self) -> int:
        """Number of records, N."""
        return int(self.counts.sum())

    def dense(self) -> Histogram:
        """The same counts with every cell written out, refused where they would not fit."""
        counts = np.zeros(dense_shape(self.domain), dtype=np.int64)
        counts.reshape(-1)[self.cells] = self.counts
        return Histogram(self.domain, counts)


@dataclass(frozen=True, eq=False)
class Tabulated:
    """The counts of a source and how many records were read, those left out included: both confidential."""

    histogram: Histogram | SparseHistogram | MarginalCounts = field(repr=False)
    records_read: int = field(repr=False)


NOWHERE = -1  # This is the row of a level that is not counted.


def single_rows(factor: Factor) -> tuple[Integers, Integers | None] | None:
    """The one row that each level is counted in (or nowhere), and its weight, None for 1 each.

    None where levels may be counted in several rows.
    """
    if isinstance(factor, Identity):
        return np.arange(factor.size, dtype=np.int64), None
    if isinstance(factor, Total):
        return np.zeros(factor.size, dtype=np.int64), None
    if isinstance(factor, Row):
        return np.where(factor.values != 0, 0, NOWHERE), factor.values
    if not isinstance(factor, Groups) or int(factor.counts.max()) > 1:
        return None
    rows = np.full(factor.size, NOWHERE, dtype=np.int64)
    rows[factor.cells] = np.repeat(np.arange(factor.rows), np.diff(np.append(factor.starts, len(factor.cells))))
    return rows, factor.weights


def countable(tables: Sequence[Table]) -> bool:
    """Whether every record is counted in at most one row of each table."""
    factors = {factor.key: factor for table in tables for factor in table.factors}
    return all(single_rows(factor) is not None for factor in factors.values())


def add_counts(tables: Sequence[Table], histogram: SparseHistogram, into: Integers) -> None:
    """Add what `countable` tables count, before their weights and table after table; modulo 2⁶⁴, as everywhere."""
    levels, start = np.unravel_index(histogram.cells, histogram.domain.shape), 0
    for table in tables:
        rows, counts = np.zeros(len(histogram.cells), dtype=np.int64), histogram.counts
        kept = np.ones(len(rows), dtype=np.bool_)
        for factor, level in zip(table.factors, levels, strict=True):
            found = single_rows(factor)
            assert found is not None
            row = found[0][level]
            kept &= row != NOWHERE
            rows = rows * factor.rows + row
            counts = counts if found[1] is None else counts * found[1][level]
        np.add.at(into[start : start + table.query_count], rows[kept], counts[kept])
        start += table.query_count
