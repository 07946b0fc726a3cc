"""Microdata into a histogram over the declared domain, on disk rather than in memory, and behind the wall.

Each record finds its cell by itself; then, if units are identified, what a unit contributes beyond its bound is
removed in the order of a keyed hash within that unit. Neither the order of the rows nor another unit matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge, UnsafeKey
from dualmandate.population import Confidential, Domain, Protection
from dualmandate.population.histogram import dense_shape
from dualmandate.publication.levels import as_text, placement, target
from dualmandate.publication.rules import Rule, Rules, check_rules
from dualmandate.publication.sources import Columns, Source, check_source, columns, quoted
from dualmandate.publication.tabulated import Findings, SparseHistogram, Tabulated
from dualmandate.publication.wall import connected, executed, guarded

if TYPE_CHECKING:
    import duckdb

Progress = Callable[[float], None]
KEY_BYTES = 32
ROWS_AT_A_TIME = 500_000  # of `held`, while bounds are enforced
BLOCK_BYTES = 64  # of SHA-256, to which HMAC pads its key


@dataclass(frozen=True)
class Question:
    """What is tabulated and by which rules: all of it from the program, none of it from the data."""

    domain: Domain
    protection: Protection
    rules: Rules


def tabulate(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    key: bytes,
    progress: Progress | None = None,
    sparse: bool = False,
) -> Confidential[Tabulated]:
    """Count the records of each cell, every record by its own rules and every unit within its bound.

    `key` (32 secret bytes, the same for a retry) decides which records of a unit with too many are kept. `sparse`
    holds only the cells with records, for domains that are too large to write out.
    """
    question = _question(domain, protection, rules, key, checking=False)
    check_source(source)
    if not sparse:
        dense_shape(domain)

    def work() -> Tabulated:
        with connected() as connection:
            reading = _read(columns(source, connection), question, connection)
            _count(connection, reading, question, key=key, progress=progress)
            records = _whole(connection, "SELECT sum(records) FROM held")
            _keep(connection, protection)
            summed = "SELECT cell, sum(records)::BIGINT AS records FROM kept GROUP BY cell ORDER BY cell"
            found = connection.execute(summed).fetchnumpy()
            counted = SparseHistogram(domain, _whole_numbers(found["cell"]), _whole_numbers(found["records"]))
            return Tabulated(counted if sparse else counted.dense(), records)

    return Confidential("tabulated records", guarded(work, name=Path(source.path).name))


def check(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    key: bytes,
    progress: Progress | None = None,
) -> Confidential[Findings]:
    """Count what does not fit the domain, for the curator: nothing is published, nothing is spent.

    Only here may a rule be `refuse`. The findings stay boxed: they are as confidential as the records.
    """
    question = _question(domain, protection, rules, key, checking=True)
    check_source(source)

    def work() -> Findings:
        with connected() as connection:
            reading = _read(columns(source, connection), question, connection)
            return _findings(connection, reading, question, progress=progress)

    return Confidential("findings of a check", guarded(work, name=Path(source.path).name))


def _question(domain: Domain, protection: Protection, rules: Rules, key: bytes, *, checking: bool) -> Question:
    """Everything that can be refused before data are opened."""
    if len(key) != KEY_BYTES:
        raise UnsafeKey(
            f"the key of a tabulation has {len(key)} bytes",
            why=f"which records of a unit are kept is decided by a secret of {KEY_BYTES} bytes",
            instead="derive it from the secret of the release",
        )
    if domain.size >= 2**63:
        raise TooLarge(
            f"a domain of {domain.size:.3g} cells cannot be numbered",
            why="a cell is a 64-bit whole number",
            instead="tabulate fewer attributes at once",
        )
    check_rules(rules, domain, protection, checking=checking)
    return Question(domain, protection, rules)


def _read(found: Columns, question: Question, connection: duckdb.DuckDBPyConnection) -> str:
    """The records of a source in SQL, grouped: `unit`, `cell` (NULL: left out), `impossible`, marks, and `records`."""
    import pyarrow

    attributes, joins = question.domain.attributes, []
    grouped, wanted = [f"{_unit(found, question.protection)} AS unit"], ["unit", "records"]
    for number, attribute in enumerate(attributes):
        placed = placement(attribute, found.type_of(attribute.name), number)
        grouped.append(f"{placed.code} AS code_{number}")
        wanted.append(f"{target(placed, question.rules.of(attribute), attribute)} AS level_{number}")
        wanted.append(f"{placed.null} AS null_{number}")
        wanted.append(f"NOT ({placed.null}) AND ({placed.found}) IS NULL AS outside_{number}")
        if placed.codes is not None:
            connection.register(f"codes_{number}", pyarrow.table(dict(placed.codes)))
            joins.append(f" LEFT JOIN codes_{number} ON codes_{number}.value = {placed.value}")
    # Grouped before levels are looked up: a million equal records are looked up once.
    groups = f"SELECT {', '.join(grouped)}, count(*)::BIGINT AS records FROM {found.table} AS source GROUP BY ALL"
    placed_groups = f"SELECT {', '.join(wanted)} FROM ({groups}) AS grouped{''.join(joins)}"
    names = [f"level_{number}" for number in range(len(attributes))]
    kept = " AND ".join(f"{name} IS NOT NULL" for name in names)
    impossible = f"{kept} AND ({_impossible(question.domain, names)})"
    return f"SELECT *, {_last_cell(question, names)} AS cell, {impossible} AS impossible FROM ({placed_groups})"


def _unit(found: Columns, protection: Protection) -> str:
    name = protection.identifier
    return "NULL::VARCHAR" if name is None else as_text(name, f"source.{quoted(name)}", found.type_of(name))


def _last_cell(question: Question, names: list[str]) -> str:
    """The cell of a record after the rule for structural zeros."""
    domain, moved = question.domain, "NULL"
    if not domain.structural_zeros:
        return _cell(domain, names)
    if question.rules.unknown_where_impossible is not None:
        axis = domain.axis(question.rules.unknown_where_impossible)
        unknown = [*names[:axis], str(domain.shape[axis] - 1), *names[axis + 1 :]]
        moved = f"CASE WHEN NOT ({_impossible(domain, unknown)}) THEN {_cell(domain, unknown)} END"
    return f"CASE WHEN {_impossible(domain, names)} THEN {moved} ELSE {_cell(domain, names)} END"


def _cell(domain: Domain, names: Iterable[str]) -> str:
    """The row-major position of a record's cell."""
    strides = np.cumprod([1, *domain.shape[:0:-1]], dtype=object)[::-1]
    terms = (f"{name}::BIGINT * {stride}" for name, stride in zip(names, strides, strict=True))
    return f"({' + '.join(terms)})"


def _impossible(domain: Domain, names: list[str]) -> str:
    """Whether a record lies in a structural zero."""
    zeros = (
        "(" + " AND ".join(_within(names[axis], mask) for axis, mask in masks.items()) + ")"
        for masks in domain.all_zero_masks
    )
    return " OR ".join(zeros) or "false"


def _within(name: str, mask: NDArray[np.bool_]) -> str:
    """Whether a position is among those of a mask, written as its runs."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    runs = zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True)
    return "(" + (" OR ".join(f"{name} BETWEEN {first} AND {after - 1}" for first, after in runs) or "false") + ")"


def _count(
    connection: duckdb.DuckDBPyConnection,
    reading: str,
    question: Question,
    *,
    key: bytes = bytes(KEY_BYTES),
    progress: Progress | None,
) -> None:
    """The table `held`: records by unit (where units are identified) and cell, those left out with no cell."""
    by = "unit, cell" if question.protection.identifier is not None else "cell"
    records = f"SELECT {by}, sum(records)::BIGINT AS records FROM ({reading}) GROUP BY {by}"
    executed(connection, f"CREATE TEMP TABLE held AS {records}", progress=progress)
    block = key.ljust(BLOCK_BYTES, b"\0")
    # As variables: the key stands in no statement.
    connection.execute("SET VARIABLE inner_pad = ?", [bytes(byte ^ 0x36 for byte in block)])
    connection.execute("SET VARIABLE outer_pad = ?", [bytes(byte ^ 0x5C for byte in block)])


def _keep(connection: duckdb.DuckDBPyConnection, protection: Protection) -> None:
    """The table `kept`: records by cell after the bound, some units at a time so that memory does not grow."""
    connection.execute("CREATE TEMP TABLE kept (cell BIGINT, records BIGINT)")
    if protection.identifier is None:
        connection.execute("INSERT INTO kept SELECT cell, records FROM held WHERE cell IS NOT NULL")
        return
    parts = 1 + _whole(connection, "SELECT count(*) FROM held") // ROWS_AT_A_TIME
    for part in range(parts):
        connection.execute(f"INSERT INTO kept {_kept(protection, f'hash(unit) % {parts} = {part}')}")


def _kept(protection: Protection, part: str) -> str:
    """Records by cell, with at most the bound of each unit: the first ones by HMAC-SHA-256 of "cell,number,unit".

    `number` counts the unit's records of that cell from 1. They are interchangeable, so what is kept is a uniform
    choice among the unit's records that depends on nothing but the key and those records.
    """
    most = protection.most_records_per_unit
    whole = f"SELECT unit, cell, records FROM held WHERE unit IS NOT NULL AND cell IS NOT NULL AND {part}"
    excess = f"SELECT unit FROM ({whole}) GROUP BY unit HAVING sum(records) > {most}"
    message = "encode(cell::VARCHAR || ',' || number::VARCHAR || ',' || unit)"
    mac = f"sha256(getvariable('outer_pad') || unhex(sha256(getvariable('inner_pad') || {message})))"
    too_many = f"({whole}) SEMI JOIN ({excess}) USING (unit)"
    single = f"SELECT unit, cell, unnest(generate_series(1, records)) AS number FROM {too_many}"
    ranked = f"SELECT cell, row_number() OVER (PARTITION BY unit ORDER BY {mac}) AS place FROM ({single})"
    together = (
        f"SELECT cell, records FROM ({whole}) ANTI JOIN ({excess}) USING (unit) "
        f"UNION ALL SELECT cell, 1 AS records FROM ({ranked}) WHERE place <= {most}"
    )
    return f"SELECT cell, sum(records)::BIGINT AS records FROM ({together}) GROUP BY cell"


def _findings(
    connection: duckdb.DuckDBPyConnection, reading: str, question: Question, *, progress: Progress | None
) -> Findings:
    attributes = question.domain.attributes
    marks = [f"{mark}_{number}" for mark in ("outside", "null") for number in range(len(attributes))]
    counts = ", ".join(f"sum(records) FILTER (WHERE {mark})" for mark in [*marks, "impossible"])
    executed(
        connection,
        f"CREATE TEMP TABLE marks AS SELECT [sum(records), {counts}] AS counts FROM ({reading})",
        progress=progress,
    )
    row = connection.execute("SELECT counts FROM marks").fetchone()
    assert row is not None
    records, *found = (int(count or 0) for count in row[0])
    names = question.domain.names
    outside = dict(zip(names, found, strict=False))
    null = dict(zip(names, found[len(names) :], strict=False))
    unidentified = excess = 0
    if question.protection.identifier is not None:
        _count(connection, reading, question, progress=None)
        most = question.protection.most_records_per_unit
        of_unit = "SELECT unit, sum(records) AS records FROM held WHERE cell IS NOT NULL GROUP BY unit"
        unidentified = _whole(connection, f"SELECT sum(records) FROM ({of_unit}) WHERE unit IS NULL")
        excess = _whole(
            connection, f"SELECT sum(greatest(records - {most}, 0)) FROM ({of_unit}) WHERE unit IS NOT NULL"
        )
    rules = {attribute.name: question.rules.of(attribute) for attribute in attributes}
    refused = any(
        (rules[name].outside is Rule.REFUSE and outside[name] > 0)
        or (rules[name].null is Rule.REFUSE and null[name] > 0)
        for name in names
    )
    return Findings(records, outside, null, found[-1], unidentified, excess, refused)


def _whole(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    """One whole number; an empty sum is 0."""
    row = connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0] or 0)


def _whole_numbers(column: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.ascontiguousarray(column, dtype=np.int64)
