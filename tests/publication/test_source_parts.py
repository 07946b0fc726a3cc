"""A source in parts: every record in one of them, read as the whole is read, whatever is wrong with it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from dualmandate.publication import CsvFile, DatabaseTable, ParquetFile
from dualmandate.publication.sources import PartedSource, part_opened, parts_of

LINES = [
    b"a,f,1",
    b"b,m,2",
    b'"a,b",f,3',
    b'"say ""a""",m,4',
    b"\xc3\xa9,f,5",
    b"",
    b"pl\xe9in,f,6",
    b"a,f",
    b"a,f,7,8",
    b'"a,f,9',
    b"07,f,10\r",
    b"a,,12\x00",
    b"z,m,13",
]
COLUMNS = ["word", "sex", "id"]


def odd_csv(path: Path, seed: int) -> CsvFile:
    """Lines as people write them, in any order, and some bytes of them harmed."""
    chance = random.Random(seed)
    content = bytearray(b"\n".join([b"word,sex,id", *(chance.choice(LINES) for _ in range(400))]))
    for _ in range(20):
        content[chance.randrange(12, len(content))] = chance.choice(b'\n\r",a\xff')
    path.write_bytes(content)
    return CsvFile(path)


def odd_parquet(path: Path) -> ParquetFile:
    """Some row groups, of texts that are partly none."""
    chance = random.Random(5)
    words = pa.array([chance.choice([b"a", b"b", b"\xff", b"07", None]) for _ in range(900)], pa.binary())
    table = pa.table(
        {
            "word": pa.StringArray.from_buffers(900, *words.buffers()[1:], words.buffers()[0]),
            "sex": pa.array([chance.choice("fmx") for _ in range(900)]).dictionary_encode(),
            "id": pa.array([chance.choice([*range(300), None]) for _ in range(900)], pa.uint64()),
        }
    )
    pq.write_table(table, path, row_group_size=130)
    return ParquetFile(path)


def in_parts(source: PartedSource, most: int) -> tuple[int, Counter[Any]]:
    """How many parts there are, and the records of all of them."""
    found: Counter[Any] = Counter()
    with parts_of(source, most) as (there, parts):
        for part in parts:
            with part_opened(there, part, COLUMNS) as stream:
                found.update(tuple(row.values()) for batch in stream.batches for row in batch.to_pylist())
    return len(parts), found


@given(seed=st.integers(0, 10**6), most=st.integers(2, 40))
def test_lines_are_in_the_part_that_they_begin_in(
    tmp_path_factory: pytest.TempPathFactory, seed: int, most: int
) -> None:
    source = odd_csv(tmp_path_factory.mktemp("csv") / "odd.csv", seed)
    parts, found = in_parts(source, most)
    assert (parts, found) == (most, in_parts(source, 1)[1])


def test_row_groups_are_in_one_part_each(tmp_path: Path) -> None:
    source = odd_parquet(tmp_path / "odd.parquet")
    whole = in_parts(source, 1)
    assert whole[1].total() == 900
    assert [in_parts(source, most) for most in (3, 50)] == [(3, whole[1]), (7, whole[1])]


@pytest.mark.postgres
def test_a_table_is_read_in_one_state_whatever_is_written_meanwhile(postgres_url: str) -> None:
    engine = create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as database:
        database.execute(text('CREATE TABLE "Odd" (word text, sex text, id bigint)'))
        database.execute(text("INSERT INTO \"Odd\" SELECT 'a', 'f', n FROM generate_series(1, 3000) AS n"))
        database.execute(text('CREATE VIEW seen AS SELECT * FROM "Odd"'))
    with parts_of(DatabaseTable("Odd", postgres_url), 4) as (there, parts):
        with engine.begin() as database:  # rows move to other pages, and others come
            database.execute(text("UPDATE \"Odd\" SET word = 'b' WHERE id % 2 = 0"))
            database.execute(text("INSERT INTO \"Odd\" SELECT 'c', 'm', n FROM generate_series(1, 900) AS n"))
        found: list[Any] = []
        for part in parts:
            with part_opened(there, part, COLUMNS) as stream:
                found += [tuple(row.values()) for batch in stream.batches for row in batch.to_pylist()]
    assert len(parts) == 4
    assert sorted(found, key=lambda row: row[2]) == [("a", "f", n, False) for n in range(1, 3001)]
    assert in_parts(DatabaseTable("seen", postgres_url), 4)[0] == 1
    assert in_parts(DatabaseTable("seen", postgres_url), 4)[1].total() == 3900
    engine.dispose()
