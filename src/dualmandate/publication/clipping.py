"""Clipping what a unit contributes: at most so many of its records, which ones by a keyed hash within the unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

ROWS_AT_A_TIME = 500_000  # About so many records of units with too many are put in order at once.
BLOCK_BYTES = 64  # HMAC pads its key to a block of SHA-256.
LARGEST_LEAST = 10**6  # The engine keeps fewer least values than this by itself; beyond, it sorts.


def keep_within_bound(connection: duckdb.DuckDBPyConnection, most: int, *, key: bytes) -> None:
    """The table `kept` (cell, records) from `held` (unit, cell), a row a record: at most `most` records of a unit.

    Only units that have more are put in order, some of them at a time so that memory does not grow. They are found by
    a hash of theirs: two units that share one are merely looked at without need.
    """
    _set_key(connection, key)
    held = "held WHERE unit IS NOT NULL AND cell IS NOT NULL"
    counted = f"SELECT hash(unit) AS mark FROM {held} GROUP BY mark HAVING count(*) > {most}"
    connection.execute(f"CREATE TEMP TABLE crowded AS {counted}")
    few = f"SELECT cell, count(*) AS records FROM {held} AND hash(unit) NOT IN (FROM crowded) GROUP BY cell"
    connection.execute(f"CREATE TEMP TABLE kept AS {few}")
    many = f"SELECT unit, cell FROM {held} AND hash(unit) IN (FROM crowded)"
    connection.execute(f"CREATE TEMP TABLE many AS {many}")
    row = connection.execute("SELECT count(*) FROM many").fetchone()
    assert row is not None
    parts = 1 + int(row[0]) // ROWS_AT_A_TIME if row[0] else 0
    for part in range(parts):
        connection.execute(f"INSERT INTO kept {_least(most, f'hash(unit) % {parts} = {part}')}")


def _set_key(connection: duckdb.DuckDBPyConnection, key: bytes) -> None:
    """As variables: the key stands in no statement."""
    block = key.ljust(BLOCK_BYTES, b"\0")
    connection.execute("SET VARIABLE inner_pad = ?", [bytes(byte ^ 0x36 for byte in block)])
    connection.execute("SET VARIABLE outer_pad = ?", [bytes(byte ^ 0x5C for byte in block)])


def _least(most: int, part: str) -> str:
    """Of each unit the records that are first by HMAC-SHA-256 of "cell,number,unit", counted by cell.

    `number` counts the unit's records of that cell from 1. They are interchangeable, so what is kept is a uniform
    choice among the unit's records that depends on nothing but the key and those records.
    """
    by_cell = f"SELECT unit, cell, count(*) AS records FROM many WHERE {part} GROUP BY unit, cell"
    single = f"SELECT unit, cell, unnest(generate_series(1, records)) AS number FROM ({by_cell})"
    message = "encode(cell::VARCHAR || ',' || number::VARCHAR || ',' || unit::VARCHAR)"
    mac = f"sha256(getvariable('outer_pad') || unhex(sha256(getvariable('inner_pad') || {message})))"
    least = f"arg_min(cell, {mac}, {most})"
    if most >= LARGEST_LEAST:
        least = f"list_slice(list(cell ORDER BY {mac}), 1, {most})"
    cells = f"SELECT unnest({least}) AS cell FROM ({single}) GROUP BY unit"
    return f"SELECT cell, count(*) AS records FROM ({cells}) GROUP BY cell"
