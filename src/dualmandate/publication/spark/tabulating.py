"""Tabulation where the records are: Spark selects, shuffles and adds up; each part is tabulated as a file would be.

The same code places every record and bounds every unit as on one machine, so the histogram is the same to the record.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.errors import UnreadableSource
from dualmandate.population.arrays import Integers
from dualmandate.publication.checking import Value, count_of_marks, count_values, marks
from dualmandate.publication.csv_lines import csv_layout
from dualmandate.publication.sources import (
    CsvFile,
    ParquetFile,
    Source,
    SourceColumns,
    SparkTable,
    Stream,
    chosen,
    offered,
)
from dualmandate.publication.spark.session import Batches, gathered, map_batches, partitions, quiet, running_session
from dualmandate.publication.states import WORDS, row_sums
from dualmandate.publication.tabulating import Counted, TabulationSpec, counted, records_sql
from dualmandate.publication.unreadable import UNREADABLE, cleaned, cleaned_schema
from dualmandate.publication.wall import connected

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

READ = -1  # Stands in place of a cell: how many records were read.
SEVERAL_FILES = frozenset("*?[]{},\\")  # With these characters a path would name several files to Spark.
Readable = SparkTable | ParquetFile | CsvFile


def as_readable(session: SparkSession, source: Source) -> Readable | str:
    """The source, if the workers of a cluster can read it themselves; otherwise why they cannot, in words."""
    if isinstance(source, SparkTable):
        return source
    if not isinstance(source, ParquetFile | CsvFile):
        return "Spark reads its own tables, Parquet and CSV"
    if SEVERAL_FILES & set(str(Path(source.path).absolute())):
        return "its path has characters that mean several files to Spark"
    return source if _seen(session, Path(source.path).absolute()) else "the workers do not see the file"


def _seen(session: SparkSession, path: Path) -> bool:
    """Whether workers find a file of the same size at the same place."""
    size = path.stat().st_size

    def kernel(batches: Batches) -> Batches:
        import pyarrow

        for batch in batches:
            found = path.is_file() and path.stat().st_size == size
            yield pyarrow.record_batch({"seen": pyarrow.array([found] * batch.num_rows)})

    asked = max(partitions(session), 2 * session.sparkContext.defaultParallelism)
    with quiet():
        workers = session.range(0, asked, numPartitions=asked)
    return all(gathered(map_batches(workers, kernel, "seen boolean", name=path.name)).column("seen").to_pylist())


def tabulate_table(source: Readable, spec: TabulationSpec, *, key: bytes) -> Counted:
    """Cells with records, how many are kept of each, and how many records were read."""
    session = running_session()
    frame = counted_cells(session, records(session, source, spec), spec, key=key)
    found = gathered(frame.orderBy("cell"))
    cells, counts = (found.column(name).to_numpy().astype(np.int64) for name in ("cell", "records"))
    there = cells != READ
    return cells[there], counts[there], int(counts[~there].sum())


def counted_cells(session: SparkSession, records: DataFrame, spec: TabulationSpec, *, key: bytes) -> DataFrame:
    """Records by cell (`cell`, `records`), with one row for the cell `READ`; still on the cluster.

    All records of a unit are brought together first. The key travels inside the function that is sent to the workers,
    apart from the domain, which may be large enough for Spark to put it into a file.
    """
    import pyspark.sql.functions as sql

    asked = session.sparkContext.broadcast(spec)

    def found(offer: SourceColumns, connection: DuckDBPyConnection) -> dict[str, Integers]:
        cells, counts, read_here = counted(offer, asked.value, connection, key=key)
        return {"cell": np.append(cells, READ), "records": np.append(counts, read_here)}

    def kernel(batches: Batches) -> Batches:
        return _of_part(batches, found)

    parts = map_batches(_together(session, records, spec), kernel, "cell long, records long", name="the records")
    return parts.groupBy("cell").agg(sql.sum("records").alias("records"))


def _of_part(batches: Batches, work: Callable[[SourceColumns, DuckDBPyConnection], dict[str, Any]]) -> Batches:
    """What is found in one part's records, which an engine of its own reads; nothing in a part without any."""
    import pyarrow

    first = next(batches, None)
    if first is None:
        return
    with connected(threads=1) as connection:  # Spark has one such worker a core
        clean = (cleaned(batch) for batch in chain([first], batches))
        found = work(offered(Stream(cleaned_schema(first.schema), clean), connection), connection)
    yield pyarrow.record_batch(found)


def check_table(source: SparkTable, spec: TabulationSpec, *, most: int) -> tuple[list[int], list[Value]]:
    """The sums of a check over all parts, and the most frequent values that are outside."""
    session = running_session()
    asked = session.sparkContext.broadcast(spec)

    def marked(offer: SourceColumns, connection: DuckDBPyConnection) -> dict[str, Integers]:
        numbers = np.array(marks(offer, asked.value, connection), dtype=np.int64)
        return {"place": np.arange(len(numbers)), "number": numbers}

    def kernel(batches: Batches) -> Batches:
        return _of_part(batches, marked)

    parts = _together(session, records(session, source, spec), spec, alike=True)
    found = gathered(map_batches(parts, kernel, "place long, number long", name=source.table))
    sums = np.zeros(count_of_marks(spec), dtype=np.int64)
    np.add.at(sums, found.column("place").to_numpy(), found.column("number").to_numpy())
    return [int(number) for number in sums], _values(session, source, spec, most)


def _values(session: SparkSession, source: SparkTable, spec: TabulationSpec, most: int) -> list[Value]:
    """The most frequent values that are outside: counted in each part, added up and ranked on the cluster."""
    import pyarrow
    import pyspark.sql.functions as sql
    from pyspark.sql import Window

    asked = session.sparkContext.broadcast(spec)

    def outside(offer: SourceColumns, connection: DuckDBPyConnection) -> dict[str, Any]:
        count_values(offer, asked.value, connection)
        names = ("place", "value", "records")
        rows = connection.execute(f"SELECT {', '.join(names)} FROM outside").fetchall()
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        kinds = {"place": pyarrow.int64(), "value": pyarrow.string(), "records": pyarrow.int64()}
        return {name: pyarrow.array(list(column), kinds[name]) for name, column in zip(names, columns, strict=True)}

    def kernel(batches: Batches) -> Batches:
        return _of_part(batches, outside)

    schema = "place long, value string, records long"
    parts = map_batches(records(session, source, spec), kernel, schema, name=source.table)
    values = parts.groupBy("place", "value").agg(sql.sum("records").alias("records"))
    of_place = Window.partitionBy("place")
    ranked = values.withColumn("distinct_values", sql.count("*").over(of_place)).withColumn(
        "rank", sql.row_number().over(of_place.orderBy(sql.desc("records"), "value"))
    )
    kept = gathered(ranked.where(sql.col("rank") <= most).orderBy("place", "rank"))
    columns = [kept.column(name).to_pylist() for name in ("place", "value", "records", "distinct_values")]
    return list(zip(*columns, strict=True))


def row_sums_of_table(source: SparkTable, spec: TabulationSpec, *, key: bytes) -> list[int]:
    """How many records a table has, and the sums of the words of their HMACs, added up over its parts."""
    session = running_session()

    def summed(offer: SourceColumns, connection: DuckDBPyConnection) -> dict[str, Integers]:
        numbers = np.array(row_sums(offer, spec_columns, connection, key=key), dtype=np.int64)
        return {"place": np.arange(len(numbers)), "number": numbers}

    def kernel(batches: Batches) -> Batches:
        return _of_part(batches, summed)

    spec_columns = spec.columns
    found = gathered(map_batches(records(session, source, spec), kernel, "place long, number long", name=source.table))
    sums = [0] * (1 + WORDS)
    for place, number in zip(found.column("place").to_pylist(), found.column("number").to_pylist(), strict=True):
        sums[place] += number
    return sums


def records(session: SparkSession, source: Readable, spec: TabulationSpec) -> DataFrame:
    """The wanted columns of the source; what its declared types cannot serve is refused before a record is read."""
    import pyspark.sql.functions as sql

    table = _csv(session, source, spec) if isinstance(source, CsvFile) else _table(session, source)
    names = chosen(spec.columns, table.columns)
    marks = [UNREADABLE] if UNREADABLE in table.columns else []
    frame = table.select(*(sql.col(_quoted(name)) for name in (*names, *marks)))
    empty = gathered(frame.limit(0))
    with connected() as connection:
        found: SourceColumns = offered(Stream(empty.schema, iter(())), connection)
        records_sql(found, spec, connection)
    return frame


def check_columns(source: SparkTable, spec: TabulationSpec) -> None:
    """Refuse a table that Spark does not know, or whose columns cannot serve; no record is read."""
    records(running_session(), source, spec)


def _table(session: SparkSession, source: SparkTable | ParquetFile) -> DataFrame:
    from pyspark.errors import AnalysisException

    if isinstance(source, ParquetFile):
        with quiet():
            return session.read.parquet(_place(source))
    try:
        with quiet():
            table = session.table(source.table)
    except AnalysisException:
        table = None
    if table is None:
        raise UnreadableSource(
            f"Spark knows no table '{source.table}'",
            why="a table is found in the catalog of the running session",
            instead="register it, or write parquet.`PATH` for a folder of Parquet files",
        )
    return table


def _csv(session: SparkSession, source: CsvFile, spec: TabulationSpec) -> DataFrame:
    """Lines as bytes, each read by a worker as on one machine; the first line of the file is none of them."""
    import pyspark.sql.functions as sql
    from pyspark.sql.types import BooleanType, StringType, StructField, StructType

    layout = csv_layout(Path(source.path), source.delimiter, lambda there: chosen(spec.columns, list(there)))
    fields = [*((name, StringType()) for name in layout.wanted), (UNREADABLE, BooleanType())]
    schema = StructType([StructField(name, kind) for name, kind in fields])

    def kernel(batches: Batches) -> Batches:
        begun = False
        for batch in batches:
            lines, parts = (batch.column(name).to_pylist() for name in ("line", "part"))
            if not begun and 0 in parts:
                begun = True
                del lines[parts.index(0)]
            yield layout.parsed(b"".join(line + b"\n" for line in lines))

    with quiet():
        lines = session.read.text(_place(source), lineSep="\n")
        part = sql.col("_metadata.file_block_start").alias("part")
        frame = lines.select(sql.col("value").cast("binary").alias("line"), part)
    return map_batches(frame, kernel, schema, name=source.name)


def _place(source: ParquetFile | CsvFile) -> str:
    return f"file://{Path(source.path).absolute()}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _together(session: SparkSession, records: DataFrame, spec: TabulationSpec, *, alike: bool = False) -> DataFrame:
    """All records of a unit in one part; with `alike`, where nobody is identified, all records that are equal."""
    import pyspark.sql.functions as sql

    identifier = spec.protection.identifier
    if identifier is None and not alike:
        return records
    names = records.columns if identifier is None else [identifier]
    # By a number of parts: a shuffle whose parts Spark itself may not split again.
    return records.repartition(partitions(session), *(sql.col(_quoted(name)) for name in names))
