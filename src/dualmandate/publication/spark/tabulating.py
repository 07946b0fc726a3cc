"""Tabulation where the records are: workers read and place them, Spark brings units together and adds up.

The same code reads every record, places it and bounds every unit as on one machine, so the histogram is the same to the
record. Files and databases are read by the workers themselves, each some parts; records of a table of Spark are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.errors import Refusal, UnreadableSource
from dualmandate.publication.checking import Value, count_of_marks, count_values, marks
from dualmandate.publication.marginal_counts import Axes, MarginalCounts, count_marginals, words_of
from dualmandate.publication.sources import (
    DatabaseTable,
    Frame,
    Part,
    PartedSource,
    Source,
    SourceColumns,
    SparkTable,
    Stream,
    check_source,
    chosen,
    offered,
    part_opened,
    parts_of,
)
from dualmandate.publication.spark.session import (
    Batches,
    gathered,
    kept,
    map_batches,
    partitions,
    quiet,
    running_session,
    streamed,
)
from dualmandate.publication.states import WORDS, row_sums
from dualmandate.publication.tabulating import (
    Counted,
    Tabulated,
    TabulationSpec,
    bounded_records,
    cell_of_words,
    has_words,
    kept_records,
    records_sql,
    summed_cells,
)
from dualmandate.publication.unreadable import UNREADABLE, cleaned, cleaned_schema
from dualmandate.publication.wall import connected

if TYPE_CHECKING:
    import pyarrow
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

READ = -1  # Stands in place of a cell: how many records were read.
PARTS_OF_A_CORE = 4  # So many parts of a source for each core: nobody waits long for the last one.
ROWS_AT_A_TIME = 2**17  # so many records leave the engine at once
NUMBERS_AT_ONCE = 2**20  # so many counts of marginals travel together
Work = Callable[[SourceColumns, "DuckDBPyConnection"], Batches]
Found = Callable[["DuckDBPyConnection", str, int], Batches]  # of a table of cells and records, and how many were read


@dataclass(frozen=True, eq=False)
class PartedRecords:
    """Records as the workers have them: the rows of a table of Spark, or parts of a source that each opens by itself.

    A function opens what one task has of the frame.
    """

    frame: DataFrame
    name: str
    opened: Callable[[Batches], Iterator[AbstractContextManager[Stream]]]

    @property
    def session(self) -> SparkSession:
        return self.frame.sparkSession

    def each(self, work: Work, schema: str) -> DataFrame:
        """What is found in the records of each task, which an engine of its own reads."""
        opened = self.opened

        def kernel(batches: Batches) -> Batches:
            for one in opened(batches):
                with connected(threads=1) as connection, one as stream:  # Spark has one such worker a core
                    yield from work(offered(stream, connection), connection)

        return map_batches(self.frame, kernel, schema, name=self.name)


@contextmanager
def parted_records(session: SparkSession, source: Source, spec: TabulationSpec) -> Iterator[PartedRecords | str]:
    """The records as the workers read them, in one state of a database; otherwise why they cannot, in words."""
    if isinstance(source, SparkTable):
        yield PartedRecords(records(session, source, spec), source.name, _rows)
    elif isinstance(source, Frame):
        yield "they are in its memory"
    else:
        most = PARTS_OF_A_CORE * session.sparkContext.defaultParallelism
        with parts_of(source, most) as (there, parts):
            reached = _reached(session, there)
            yield _in_parts(session, there, parts, spec.columns) if reached else f"the workers do not {_reach(source)}"


def read_through(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
    """Read records to their end, and tell nothing of them."""
    connection.execute(f"SELECT count(*) FROM {offer.table}").fetchall()
    yield from ()


def _rows(batches: Batches) -> Iterator[AbstractContextManager[Stream]]:
    """Rows of a table of Spark; nothing for a task without any."""
    first = next(batches, None)
    if first is not None:
        clean = (cleaned(batch) for batch in chain([first], batches))
        yield nullcontext(Stream(cleaned_schema(first.schema), clean))


def _in_parts(session: SparkSession, source: PartedSource, parts: list[Part], wanted: list[str]) -> PartedRecords:
    """A source whose parts the workers open: where it is, with a password it may need, is in the function they get."""

    def opened(batches: Batches) -> Iterator[AbstractContextManager[Stream]]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield part_opened(source, parts[number], wanted)

    with quiet():
        numbers = session.range(len(parts), numPartitions=max(len(parts), 1))
    return PartedRecords(numbers, source.name, opened)


def _reach(source: PartedSource) -> str:
    return "reach the database" if isinstance(source, DatabaseTable) else "see the file"


def _reached(session: SparkSession, source: PartedSource) -> bool:
    """Whether workers find a file of the same size at the same place, or the table in the database."""
    size = None if isinstance(source, DatabaseTable) else Path(source.path).stat().st_size

    def is_there() -> bool:
        try:
            check_source(source)
        except Refusal:
            return False
        return isinstance(source, DatabaseTable) or Path(source.path).stat().st_size == size

    def kernel(batches: Batches) -> Batches:
        import pyarrow

        for batch in batches:
            yield pyarrow.record_batch({"there": pyarrow.array([is_there()] * batch.num_rows)})

    asked = 2 * session.sparkContext.defaultParallelism
    with quiet():
        workers = session.range(0, asked, numPartitions=asked)
    return all(gathered(map_batches(workers, kernel, "there boolean", name=source.name)).column("there").to_pylist())


def tabulate_table(source: SparkTable, spec: TabulationSpec, *, key: bytes) -> Counted:
    """Cells with records, how many are kept of each, and how many records were read."""
    return gathered_cells(counted_cells(table_records(source, spec), spec, key=key))


def table_records(source: SparkTable, spec: TabulationSpec) -> PartedRecords:
    """The rows of a table of Spark, as they are tabulated."""
    return PartedRecords(records(running_session(), source, spec), source.name, _rows)


def gathered_cells(counted: DataFrame) -> Counted:
    """The same of counts by cell that are still on the cluster."""
    found = gathered(counted.orderBy("cell"))
    cells, counts = (found.column(name).to_numpy().astype(np.int64) for name in ("cell", "records"))
    there = cells != READ
    return cells[there], counts[there], int(counts[~there].sum())


def counted_cells(records: PartedRecords, spec: TabulationSpec, *, key: bytes) -> DataFrame:
    """Records by cell (`cell`, `records`), with one row for the cell `READ`; still on the cluster."""
    import pyspark.sql.functions as sql

    def found(connection: DuckDBPyConnection, table: str, read: int) -> Batches:
        import pyarrow

        cells, counts = summed_cells(connection, table)
        yield pyarrow.record_batch({"cell": np.append(cells, READ), "records": np.append(counts, read)})

    parts = _counted(records, spec, found, "cell long, records long", key=key)
    return parts.groupBy("cell").agg(sql.sum("records").alias("records"))


def counted_marginals(records: PartedRecords, spec: TabulationSpec, sets: tuple[Axes, ...], *, key: bytes) -> Tabulated:
    """Counts of marginals: every part is counted by itself, and what was found is added up here."""
    asked = records.session.sparkContext.broadcast((spec.domain, sets))

    def found(connection: DuckDBPyConnection, table: str, read: int) -> Batches:
        import pyarrow

        domain, wanted = asked.value
        here = count_marginals(connection, table, domain, wanted, wide=has_words(domain))
        numbers = np.append(here.counts, [here.total, read])
        for first in range(0, len(numbers), NUMBERS_AT_ONCE):
            piece = numbers[first : first + NUMBERS_AT_ONCE].astype("<i8", copy=False).tobytes()
            yield pyarrow.record_batch({"first": np.array([first]), "values": pyarrow.array([piece], pyarrow.binary())})

    sums = np.zeros(MarginalCounts.size(spec.domain, sets) + 2, dtype=np.int64)
    pieces = kept(_counted(records, spec, found, "first long, values binary", key=key))
    try:
        for row in streamed(pieces):
            numbers = np.frombuffer(row["values"], dtype="<i8")
            sums[row["first"] : row["first"] + len(numbers)] += numbers
    finally:
        pieces.unpersist()
    return Tabulated(MarginalCounts(spec.domain, sets, sums[:-2], int(sums[-2])), int(sums[-1]))


def marginals_of(source: SparkTable, spec: TabulationSpec, sets: tuple[Axes, ...], *, key: bytes) -> Tabulated:
    """Counts of marginals of a table of Spark."""
    return counted_marginals(table_records(source, spec), spec, sets, key=key)


def _counted(records: PartedRecords, spec: TabulationSpec, found: Found, schema: str, *, key: bytes) -> DataFrame:
    """What is found of the cells of each task's records, within the bounds of units if these are identified.

    All records of a unit are brought together first: their units and cells, and nothing else of them. The key travels
    inside the function that is sent to the workers, apart from the domain, which may be large enough for Spark to put
    it into a file.
    """
    import pyspark.sql.functions as sql

    session = records.session
    asked = session.sparkContext.broadcast(spec)
    if not spec.identified:

        def counted(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
            yield from found(connection, *kept_records(offer, asked.value, connection, key=key))

        return records.each(counted, schema)

    wide = has_words(spec.domain)
    words = [f"word_{number}" for number in range(len(words_of(spec.domain.shape)) if wide else 1)]

    def placed(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
        reading = records_sql(offer, asked.value, connection)
        numbers = ", ".join(f"{f'cell.{word}' if wide else 'cell'} AS {word}" for word in words)
        placing = connection.sql(f"SELECT unit::VARCHAR AS unit, {numbers} FROM ({reading})")
        yield from placing.to_arrow_reader(ROWS_AT_A_TIME)

    def bounded(batches: Batches) -> Batches:
        import pyarrow

        first = next(batches, None)
        if first is None:
            return
        cell = cell_of_words(words, f"{words[0]} IS NOT NULL") if wide else words[0]
        with connected(threads=1) as connection:
            connection.register("placed", pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], batches)))
            connection.execute(f"CREATE TEMP TABLE held AS SELECT unit, {cell} AS cell FROM placed")
            yield from found(connection, *bounded_records(asked.value, connection, key=key))

    units = records.each(placed, ", ".join(["unit string", *(f"{word} long" for word in words)]))
    # By a number of parts: a shuffle whose parts Spark itself may not split again.
    together = units.repartition(partitions(session), sql.col("unit"))
    return map_batches(together, bounded, schema, name=records.name)


def check_table(source: SparkTable, spec: TabulationSpec, *, most: int) -> tuple[list[int], list[Value]]:
    """The sums of a check over all parts, and the most frequent values that are outside."""
    session = running_session()
    asked = session.sparkContext.broadcast(spec)

    def marked(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
        yield _numbered(marks(offer, asked.value, connection))

    together = _together(session, records(session, source, spec), spec)
    found = gathered(PartedRecords(together, source.table, _rows).each(marked, "place long, number long"))
    sums = np.zeros(count_of_marks(spec), dtype=np.int64)
    np.add.at(sums, found.column("place").to_numpy(), found.column("number").to_numpy())
    return [int(number) for number in sums], _values(session, source, spec, most)


def _values(session: SparkSession, source: SparkTable, spec: TabulationSpec, most: int) -> list[Value]:
    """The most frequent values that are outside: counted in each part, added up and ranked on the cluster."""
    import pyspark.sql.functions as sql
    from pyspark.sql import Window

    asked = session.sparkContext.broadcast(spec)

    def outside(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
        import pyarrow

        count_values(offer, asked.value, connection)
        names = ("place", "value", "records")
        rows = connection.execute(f"SELECT {', '.join(names)} FROM outside").fetchall()
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        kinds = {"place": pyarrow.int64(), "value": pyarrow.string(), "records": pyarrow.int64()}
        pairs = zip(names, columns, strict=True)
        yield pyarrow.record_batch({name: pyarrow.array(list(column), kinds[name]) for name, column in pairs})

    parts = table_records(source, spec).each(outside, "place long, value string, records long")
    values = parts.groupBy("place", "value").agg(sql.sum("records").alias("records"))
    of_place = Window.partitionBy("place")
    ranked = values.withColumn("distinct_values", sql.count("*").over(of_place)).withColumn(
        "rank", sql.row_number().over(of_place.orderBy(sql.desc("records"), "value"))
    )
    first = gathered(ranked.where(sql.col("rank") <= most).orderBy("place", "rank"))
    columns = [first.column(name).to_pylist() for name in ("place", "value", "records", "distinct_values")]
    return list(zip(*columns, strict=True))


def row_sums_of_table(source: SparkTable, spec: TabulationSpec, *, key: bytes) -> list[int]:
    """How many records a table has, and the sums of the words of their HMACs, added up over its parts."""

    def summed(offer: SourceColumns, connection: DuckDBPyConnection) -> Batches:
        yield _numbered(row_sums(offer, spec_columns, connection, key=key))

    spec_columns = spec.columns
    found = gathered(table_records(source, spec).each(summed, "place long, number long"))
    sums = [0] * (1 + WORDS)
    for place, number in zip(found.column("place").to_pylist(), found.column("number").to_pylist(), strict=True):
        sums[place] += number
    return sums


def _numbered(numbers: Sequence[int]) -> pyarrow.RecordBatch:
    """Numbers of one part with their places."""
    import pyarrow

    return pyarrow.record_batch({"place": np.arange(len(numbers)), "number": np.array(numbers, dtype=np.int64)})


def records(session: SparkSession, source: SparkTable, spec: TabulationSpec) -> DataFrame:
    """The wanted columns of the table; what its declared types cannot serve is refused before a record is read."""
    import pyspark.sql.functions as sql

    table = _table(session, source)
    names = chosen(spec.columns, table.columns)
    marked = [UNREADABLE] if UNREADABLE in table.columns else []
    frame = table.select(*(sql.col(_quoted(name)) for name in (*names, *marked)))
    empty = gathered(frame.limit(0))
    with connected() as connection:
        found: SourceColumns = offered(Stream(empty.schema, iter(())), connection)
        records_sql(found, spec, connection)
    return frame


def check_columns(source: SparkTable, spec: TabulationSpec) -> None:
    """Refuse a table that Spark does not know, or whose columns cannot serve; no record is read."""
    records(running_session(), source, spec)


def _table(session: SparkSession, source: SparkTable) -> DataFrame:
    from pyspark.errors import AnalysisException

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


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _together(session: SparkSession, records: DataFrame, spec: TabulationSpec) -> DataFrame:
    """All records of a unit in one part; where nobody is identified, all records that are equal."""
    import pyspark.sql.functions as sql

    identifier = spec.protection.identifier
    names = records.columns if identifier is None else [identifier]
    # By a number of parts: a shuffle whose parts Spark itself may not split again.
    return records.repartition(partitions(session), *(sql.col(_quoted(name)) for name in names))
