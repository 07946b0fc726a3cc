"""Every source as a table of one SQL engine: files that it reads by itself, all others as a stream of Arrow batches."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.errors import UnreadableSource
from dualmandate.publication.databases import check_table, records_of_table
from dualmandate.publication.sources import (
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Source,
    SourceColumns,
    SparkTable,
    StatisticalFile,
    Stream,
    not_installed,
    text,
)
from dualmandate.publication.spark.session import running_session
from dualmandate.publication.statistical_files import records_of_file
from dualmandate.publication.wall import guarded

if TYPE_CHECKING:
    import duckdb
    import pyarrow

LONGEST_HEADER = 2**20  # The first line of a CSV file has at most so many characters.
STREAM = "streamed"


def check_source(source: Source) -> None:
    """Refuse what cannot be read in any case, before a record is: no file, no reader, no database, no such table."""
    if isinstance(source, DatabaseTable):
        guarded(lambda: check_table(source), name=source.name)
        return
    if isinstance(source, SparkTable):
        guarded(running_session, name=source.name)
        return
    if isinstance(source, StatisticalFile) and find_spec("pyreadstat") is None:
        raise not_installed("pyreadstat", f"'{source.name}'", "sas-stata-spss")
    if not Path(source.path).is_file():
        raise UnreadableSource(
            f"the source '{source.name}' cannot be read",
            why="there is no such file",
            instead="name one file that can be read",
        )
    if isinstance(source, CsvFile) and (len(source.delimiter) != 1 or source.delimiter in '"\r\n'):
        raise UnreadableSource(
            "the delimiter is not one character",
            why="values are separated by one character that is no quote and no end of line",
            instead='state delimiter = "," or ";" or a tab',
        )


@contextmanager
def opened(
    source: Source, connection: duckdb.DuckDBPyConnection, wanted: Sequence[str], *, counted: bool
) -> Iterator[SourceColumns]:
    """The source as a table that can be read once, with the columns that are wanted.

    `counted` asks a source to find out how many records it has, for progress.
    """
    if isinstance(source, ParquetFile | CsvFile):
        table = _parquet(source) if isinstance(source, ParquetFile) else _csv(source)
        yield SourceColumns(table, _described(connection, table))
        return
    with _stream(source, wanted, counted=counted) as stream:
        yield offered(stream, connection)


def offered(stream: Stream, connection: duckdb.DuckDBPyConnection) -> SourceColumns:
    """A stream as a table of the engine."""
    import pyarrow

    read = 0

    def told() -> Iterator[pyarrow.RecordBatch]:
        nonlocal read
        for batch in stream.batches:
            read += batch.num_rows
            yield batch

    # Its types are read off an empty table: a stream can be asked only once.
    connection.register("no_records", stream.schema.empty_table())
    types = _described(connection, "no_records")
    connection.register(STREAM, pyarrow.RecordBatchReader.from_batches(stream.schema, told()))
    rows = stream.rows
    share: Callable[[], float] | None = None if not rows else lambda: min(read / rows, 1.0)
    return SourceColumns(STREAM, types, share)


def _stream(source: Source, wanted: Sequence[str], *, counted: bool) -> AbstractContextManager[Stream]:
    if isinstance(source, StatisticalFile):
        return records_of_file(source, wanted)
    if isinstance(source, DatabaseTable):
        return records_of_table(source, wanted, counted=counted)
    raise UnreadableSource(
        f"'{source.name}' is a table of Spark",
        why="it lies on a cluster, and records do not leave it",
        instead='state engine = "spark", which tabulates where the records are',
    )


def _described(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """The columns of a table and their types; what is in them is not read."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def _parquet(source: ParquetFile) -> str:
    # The names of folders are no columns: they would be read as text beside the file's own.
    return f"read_parquet({_place(source)}, hive_partitioning = false)"


def headings(source: CsvFile) -> list[str]:
    """The columns of a CSV file, by its first line."""
    with Path(source.path).open(encoding="utf-8-sig", newline="") as opened:
        names = next(csv.reader([opened.readline(LONGEST_HEADER)], delimiter=source.delimiter, strict=True), [])
    if len({name.casefold() for name in names}) != len(names) or not all(names):
        raise UnreadableSource(
            f"the columns of '{source.name}' have no names of their own",
            why="a column is found by its name, small and capital letters being the same",
            instead="name each column once, in the first line",
        )
    return names


def _csv(source: CsvFile) -> str:
    names = headings(source)
    types = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    # Nothing is guessed from the data: what a guess depends on would be a value.
    return (
        f"read_csv({_place(source)}, columns = {{{types}}}, auto_detect = false, header = true, "
        f"delim = {text(source.delimiter)}, quote = '\"', escape = '\"', nullstr = '', hive_partitioning = false)"
    )


def _place(source: ParquetFile | CsvFile) -> str:
    """The path, with the characters that would name several files taken as they are written."""
    path = str(Path(source.path).absolute())
    return text("".join(f"[{letter}]" if letter in "*?[" else letter for letter in path))
