"""Microdata into a histogram over the declared domain, on disk rather than in memory, and behind the wall.

Each record finds its cell by itself; then, if units are identified, what a unit contributes beyond its bound is
removed in the order of a keyed hash within that unit. Neither the order of the rows nor another unit matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge, UnsafeKey
from dualmandate.population import Confidential, Domain, Protection
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.histogram import dense_shape
from dualmandate.publication.bounding import keep_within_bound
from dualmandate.publication.levels import INTEGERS, as_text, placement, target
from dualmandate.publication.records import opened
from dualmandate.publication.rules import Rule, Rules, check_rules
from dualmandate.publication.sources import Columns, Source, SparkTable, check_source, quoted
from dualmandate.publication.tabulated import Findings, SparseHistogram, Tabulated
from dualmandate.publication.wall import connected, executed, guarded

if TYPE_CHECKING:
    import duckdb

Progress = Callable[[float], None]
Counted = tuple[Integers, Integers, int]  # cells, records kept of each, records read
KEY_BYTES = 32


@dataclass(frozen=True)
class Question:
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
    question = question_of(domain, protection, rules, key, checking=False)
    check_source(source)
    if not sparse:
        dense_shape(domain)

    def work() -> Tabulated:
        if isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import tabulate_table

            cells, counts, records = tabulate_table(source, question, key=key)
        else:
            with (
                connected() as connection,
                opened(source, connection, question.columns, counted=bool(progress)) as found,
            ):
                cells, counts, records = counted(found, question, connection, key=key, progress=progress)
        histogram = SparseHistogram(domain, cells, counts)
        return Tabulated(histogram if sparse else histogram.dense(), records)

    return Confidential("tabulated records", guarded(work, name=source.name))


def check(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    progress: Progress | None = None,
) -> Confidential[Findings]:
    """Count what does not fit the domain, for the curator: nothing is published, nothing is spent.

    Only here may a rule be `refuse`. The findings stay boxed: they are as confidential as the records.
    """
    question = question_of(domain, protection, rules, bytes(KEY_BYTES), checking=True)
    check_source(source)

    def work() -> Findings:
        if isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import check_table

            return findings_of(question, check_table(source, question))
        with connected() as connection, opened(source, connection, question.columns, counted=bool(progress)) as found:
            return findings_of(question, marks(found, question, connection, progress=progress))

    return Confidential("findings of a check", guarded(work, name=source.name))


def counted(
    found: Columns,
    question: Question,
    connection: duckdb.DuckDBPyConnection,
    *,
    key: bytes,
    progress: Progress | None = None,
) -> Counted:
    """Cells with records, how many are kept of each, and how many records were read."""
    statement = f"CREATE TEMP TABLE held AS {_placed(read(found, question, connection), question)}"
    executed(connection, statement, progress=progress, share=found.share)
    if question.identified:
        records = _whole(connection, "SELECT count(*) FROM held")
        keep_within_bound(connection, question.protection.most_records_per_unit, key=key)
        table = "kept"
    else:
        records = _whole(connection, "SELECT sum(records) FROM held")
        table = "held WHERE cell IS NOT NULL"
    summed = f"SELECT cell, sum(records)::BIGINT AS records FROM {table} GROUP BY cell ORDER BY cell"
    kept = connection.execute(summed).fetchnumpy()
    return _whole_numbers(kept["cell"]), _whole_numbers(kept["records"]), records


def _placed(reading: str, question: Question) -> str:
    """Records with their cells (NULL: left out): a row a record with its unit, or counted where nobody is named."""
    if question.identified:
        return f"SELECT unit, cell FROM ({reading})"
    return f"SELECT cell, sum(records)::BIGINT AS records FROM ({reading}) GROUP BY cell"


def question_of(domain: Domain, protection: Protection, rules: Rules, key: bytes, *, checking: bool) -> Question:
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


def read(found: Columns, question: Question, connection: duckdb.DuckDBPyConnection) -> str:
    """The records of a source in SQL: `unit`, `cell` (NULL: left out), `impossible`, marks, and `records`."""
    import pyarrow

    attributes, joins = question.domain.attributes, []
    codes, wanted = [f"{_unit(found, question.protection)} AS unit"], ["unit", "records"]
    for number, attribute in enumerate(attributes):
        place = placement(attribute, found.type_of(attribute.name), number)
        codes.append(f"{place.code} AS code_{number}")
        wanted.append(f"{target(place, question.rules.of(attribute), attribute)} AS level_{number}")
        wanted.append(f"{place.null} AS null_{number}")
        wanted.append(f"NOT ({place.null}) AND ({place.found}) IS NULL AS outside_{number}")
        if place.codes is not None:
            connection.register(f"codes_{number}", pyarrow.table(dict(place.codes)))
            joins.append(f" LEFT JOIN codes_{number} ON codes_{number}.value = {place.value}")
    # Grouped before levels are looked up: a million equal records are looked up once. With units few are equal.
    counted, grouping = ("1::BIGINT", "") if question.identified else ("count(*)::BIGINT", " GROUP BY ALL")
    groups = f"SELECT {', '.join(codes)}, {counted} AS records FROM {found.table} AS source{grouping}"
    placed_groups = f"SELECT {', '.join(wanted)} FROM ({groups}) AS grouped{''.join(joins)}"
    names = [f"level_{number}" for number in range(len(attributes))]
    kept = " AND ".join(f"{name} IS NOT NULL" for name in names)
    impossible = f"{kept} AND ({_impossible(question.domain, names)})"
    return f"SELECT *, {_last_cell(question, names)} AS cell, {impossible} AS impossible FROM ({placed_groups})"


def _unit(found: Columns, protection: Protection) -> str:
    """The unit as a whole number or as text: two that are written alike are one."""
    name = protection.identifier
    if name is None:
        return "NULL::VARCHAR"
    column, kind = f"source.{quoted(name)}", found.type_of(name)
    return f"{column}::BIGINT" if kind in INTEGERS else as_text(name, column, kind)


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


def _within(name: str, mask: Booleans) -> str:
    """Whether a position is among those of a mask, written as its runs."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    runs = zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True)
    return "(" + (" OR ".join(f"{name} BETWEEN {first} AND {after - 1}" for first, after in runs) or "false") + ")"


def marks(
    found: Columns, question: Question, connection: duckdb.DuckDBPyConnection, *, progress: Progress | None = None
) -> list[int]:
    """The whole numbers of a check: see `findings_of`."""
    statement = f"CREATE TEMP TABLE marks AS {_marked(read(found, question, connection), question)}"
    executed(connection, statement, progress=progress, share=found.share)
    return [int(number) for number in connection.execute("SELECT counts FROM marks").fetchall()[0][0]]


def _marked(reading: str, question: Question) -> str:
    """One list of sums over units."""
    numbers = range(len(question.domain.attributes))
    marks = [*(f"outside_{n}" for n in numbers), *(f"null_{n}" for n in numbers), "impossible"]
    of_unit = [f"sum(records) FILTER (WHERE {mark}) AS {mark}" for mark in marks]
    of_unit.append("sum(records) FILTER (WHERE cell IS NOT NULL) AS kept")
    units = f"SELECT unit, sum(records) AS records, {', '.join(of_unit)} FROM ({reading}) GROUP BY unit"
    most = question.protection.most_records_per_unit
    sums = [
        *(f"sum({name})" for name in ["records", *marks]),
        "sum(kept) FILTER (WHERE unit IS NULL)",
        f"sum(greatest(kept - {most}, 0)) FILTER (WHERE unit IS NOT NULL)",
    ]
    return f"SELECT [{', '.join(f'coalesce({one}, 0)::BIGINT' for one in sums)}] AS counts FROM ({units})"


def findings_of(question: Question, counts: Iterable[int]) -> Findings:
    """What the sums of a check say: records, outside and null by attribute, impossible, unidentified, excess."""
    names = question.domain.names
    records, *rest = (int(count) for count in counts)
    outside = dict(zip(names, rest, strict=False))
    null = dict(zip(names, rest[len(names) :], strict=False))
    impossible, unidentified, excess = rest[-3:]
    rules = {attribute.name: question.rules.of(attribute) for attribute in question.domain.attributes}
    refused = tuple(
        name
        for name in names
        if (rules[name].outside is Rule.REFUSE and outside[name] > 0)
        or (rules[name].null is Rule.REFUSE and null[name] > 0)
    )
    if not question.identified:
        unidentified = excess = 0
    return Findings(records, outside, null, impossible, unidentified, excess, refused)


def _whole(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    """One whole number; an empty sum is 0."""
    row = connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0] or 0)


def _whole_numbers(column: NDArray[np.generic]) -> Integers:
    """A column of the engine as 64-bit whole numbers."""
    return np.ascontiguousarray(column, dtype=np.int64)
