"""Tabulation: seconds of one processor for 10 million records, ours and DuckDB's own GROUP BY, in one run.

Both read the same generated Parquet file in fresh processes, five each in turn, and each process once to warm up
before it is timed; the median counts. Memory is the peak of such a process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.harness import BenchmarkRow, ResourceUse, apart, installed, resource_use
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.publication import ParquetFile, Rules, Tabulated, tabulate

SHAPE = (51, 100, 2, 6)  # 61,200 cells
NAMES = ("state", "age", "sex", "schooling")
ROWS = 10**7
GROWN = 10  # times as many rows, for memory
MOST_TIMES_RAW = 2.0
MOST_GROWTH = 1.2  # of peak memory from ROWS to GROWN × ROWS: allocators are not exact
REPEATS = 5
CHUNK = 10**6


def domain() -> Domain:
    """Codes for three attributes and whole numbers for age."""
    codes = [Attribute.categories(name, map(str, range(size))) for name, size in zip(NAMES, SHAPE, strict=True)]
    return Domain((codes[0], Attribute.numbers("age", 0, SHAPE[1] - 1), *codes[2:]))


def generate(path: Path, rows: int) -> None:
    """Uniform records under a fixed seed, written a million at a time."""
    import pyarrow
    from pyarrow import parquet

    generator = np.random.default_rng(4)
    schema = pyarrow.schema([(name, pyarrow.int16()) for name in NAMES])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            columns = [generator.integers(0, levels, size).astype(np.int16) for levels in SHAPE]
            writer.write_table(pyarrow.table(dict(zip(NAMES, columns, strict=True))))


def rows(progress: Callable[[str], None], *, records: int = ROWS) -> list[BenchmarkRow]:
    """Seconds of both sides and how many times as long ours takes; peak memory of both sizes and its growth."""
    peer = installed("duckdb")
    case = f"{records:,} records into 61,200 cells"
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.parquet"), Path(folder, "large.parquet")
        progress(case)
        generate(small, records)
        sides: dict[str, list[ResourceUse]] = {"ours": [], "raw": []}
        for _ in range(REPEATS):
            for side, found in sides.items():
                found.append(ResourceUse(**apart(timed, side, str(small))))
        ours, raw = (median(one.processor_seconds for one in found) for found in sides.values())
        progress(f"{GROWN * records:,} records")
        generate(large, GROWN * records)
        before = median(one.megabytes for one in sides["ours"])
        after = apart(timed, "ours", str(large))["megabytes"]
    return [
        BenchmarkRow(case, ours, "processor seconds", target=MOST_TIMES_RAW * raw, peer=peer, peer_value=raw),
        BenchmarkRow(case, ours / raw, "times as long as the peer", target=MOST_TIMES_RAW),
        BenchmarkRow(case, before, "megabytes"),
        BenchmarkRow(f"{GROWN * records:,} records", after, "megabytes", target=MOST_GROWTH * before),
    ]


def tabulate_ours(path: Path) -> Confidential[Tabulated]:
    """By ours; the box stays shut here, a test opens it."""
    return tabulate(ParquetFile(path), domain(), protection=Protection(), rules=Rules(), key=bytes(32))


def tabulate_raw(path: Path) -> NDArray[np.int64]:
    """By one GROUP BY: the counts of the groups, in no order."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar_print = false")
        names = ", ".join(NAMES)
        statement = f"SELECT {names}, count(*) AS records FROM read_parquet(?) GROUP BY {names}"
        return np.asarray(connection.execute(statement, [str(path)]).fetchnumpy()["records"], dtype=np.int64)


SIDES: dict[str, Callable[[Path], object]] = {"ours": tabulate_ours, "raw": tabulate_raw}


def timed(side: str, path: str) -> ResourceUse:
    """Tabulate once here after once to warm up."""
    SIDES[side](Path(path))
    return resource_use(lambda: SIDES[side](Path(path)))
