"""In which state records are, told apart by a key: so that what is published is what somebody has checked.

A file is known by all of its bytes; a table of a database or of a cluster, which has none, by its rows: how many there
are, and the sum of an HMAC of each, whatever their order. With them goes what they are held against: the levels, bounds
and rules of the program. The ledger records an HMAC of it, under a secret that goes with the release made of them: with
the key alone nobody can try out what the records said.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.ledger import Ledger
from dualmandate.ledger.books import RecordState
from dualmandate.population import Attribute, GridLevels
from dualmandate.publication.sources import (
    CsvFile,
    ParquetFile,
    Source,
    SourceColumns,
    SparkTable,
    StatisticalFile,
    check_source,
    opened,
    quoted,
)
from dualmandate.publication.tabulating import TabulationSpec, mac_of, set_pads
from dualmandate.publication.unreadable import UNREADABLE
from dualmandate.publication.wall import connected, guarded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BLOCK = 2**24  # Bytes that are read at a time.
TOLD_EVERY = 2**28  # Bytes after which it is told how far it is.
WORDS = 8  # of 32 bits in an HMAC: sums of each stay within 64 bits for any part of a table.

Told = Callable[[str], None] | None


def state_of(source: Source, spec: TabulationSpec, ledger: Ledger, *, progress: Told = None) -> RecordState:
    """The state of records and of what they are held against, by HMAC-SHA-256 under a key of the ledger."""
    check_source(source)
    against = json.dumps([type(source).__name__, source.name, _against(source, spec)])
    key = ledger.state_key().open_for("telling states of records apart")

    def work() -> str:
        content = hmac.new(key, digestmod=hashlib.sha256)
        for piece in (b"records/1", against.encode()):
            content.update(len(piece).to_bytes(8, "big") + piece)
        if isinstance(source, CsvFile | ParquetFile | StatisticalFile):
            _add_bytes(Path(source.path), content, progress)
        else:
            content.update(json.dumps(_row_sums(source, spec, hmac.digest(key, b"rows", "sha256"))).encode())
        return content.hexdigest()

    return RecordState(hashlib.sha256(against.encode()).hexdigest(), guarded(work, name=source.name))


def _against(source: Source, spec: TabulationSpec) -> str:
    """What records are held against, as one text: columns, levels, bounds, and what becomes of what does not fit."""
    return json.dumps(
        {
            "attributes": [[each.name, _levels(each)] for each in spec.domain.attributes],
            "zeros": [zero.levels for zero in spec.domain.structural_zeros],
            "rules": {each.name: list(_rules(spec, each)) for each in spec.domain.attributes},
            "unknown_where_impossible": spec.rules.unknown_where_impossible,
            "identifier": spec.protection.identifier,
            "most_records_per_unit": spec.protection.most_records_per_unit,
            "delimiter": source.delimiter if isinstance(source, CsvFile) else None,
        },
        sort_keys=True,
    )


def _levels(attribute: Attribute) -> list[str | None]:
    levels = attribute.levels
    if isinstance(levels, GridLevels):
        return ["grid", str(levels.lower), str(levels.grid), str(levels.size), levels.missing]
    edges = [str(edge) for edge in attribute.edges or ()]
    return ["edges" if edges else "levels", attribute.missing, *(edges or levels)]


def _rules(spec: TabulationSpec, attribute: Attribute) -> tuple[str, str]:
    rule = spec.rules.of(attribute)
    return str(rule.outside), str(rule.null)


def _add_bytes(path: Path, content: hmac.HMAC, progress: Told) -> None:
    size, done, told = max(path.stat().st_size, 1), 0, 0
    with path.open("rb") as opened_file:
        while block := opened_file.read(BLOCK):
            content.update(block)
            done += len(block)
            if progress is not None and done - told >= TOLD_EVERY:
                told = done
                progress(f"seeing whether these records were checked: {min(100 * done // size, 100)} % read")


def _row_sums(source: Source, spec: TabulationSpec, key: bytes) -> list[int]:
    """How many records there are, and the sums of the words of their HMACs."""
    if isinstance(source, SparkTable):
        from dualmandate.publication.spark.tabulating import row_sums_of_table

        return row_sums_of_table(source, spec, key=key)
    with connected() as connection, opened(source, connection, spec.columns, counted=False) as found:
        return row_sums(found, spec.columns, connection, key=key)


def row_sums(found: SourceColumns, columns: Sequence[str], connection: DuckDBPyConnection, *, key: bytes) -> list[int]:
    """The same of records that an engine reads; the sums of parts add up to those of the whole."""
    set_pads(connection, key)
    marks = [UNREADABLE] if UNREADABLE in found.types else []
    texts = [f"source.{quoted(name)}::VARCHAR" for name in (*columns, *marks)]
    # With its length before it, or one value could be taken for two.
    said = " || ".join(f"coalesce(length({text})::VARCHAR || ':' || {text}, '-')" for text in texts)
    words = [f"sum(('0x' || substr(mac, {8 * n + 1}, 8))::UBIGINT)" for n in range(WORDS)]
    macs = f"SELECT {mac_of(f'encode({said})')} AS mac FROM {found.table} AS source"
    row = connection.execute(f"SELECT count(*), {', '.join(words)} FROM ({macs})").fetchone()
    assert row is not None
    return [int(number or 0) for number in row]
