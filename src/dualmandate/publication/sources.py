"""Where the confidential records lie, and every source as a table of one SQL engine.

A source is a name and a form; nothing is opened by making one. Each is a stream of Arrow batches of the columns that
are wanted and of no others: tables of SQL databases are streamed from the server and never written to; files are read
some records at a time. What one record can do wrong stays with that record: see `unreadable`.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import UnreadableSource
from dualmandate.population.arguments import checked_class
from dualmandate.population.confidential import Confidential
from dualmandate.publication.unreadable import UNREADABLE, cleaned, cleaned_schema, column_of
from dualmandate.publication.wall import guarded

if TYPE_CHECKING:
    import duckdb
    import pyarrow
    import sqlalchemy
    from pyarrow import parquet

URL_STARTS = "postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True)
class _File:
    path: Path | str

    @property
    def name(self) -> str:
        """What a refusal calls it."""
        return Path(self.path).name


class ParquetFile(_File):
    """A Parquet file, one row a record."""


@dataclass(frozen=True)
class CsvFile(_File):
    """A CSV file: UTF-8 text, a header, one line a record, double quotes around values that need them.

    Every value is read as the text that stands there (codes keep their leading zeros); an empty one is not there. A
    record ends with its line, also within quotes: otherwise one quote too many would swallow the records after it.
    """

    delimiter: str = ","


class StatisticalFile(_File):
    """A file of SAS (.sas7bdat), Stata (.dta) or SPSS (.sav), by its ending.

    An empty text is not there, and neither is what the file itself declares as missing. A date is the number that the
    file keeps for it.
    """


@dataclass(frozen=True)
class _Table:
    table: str

    @property
    def name(self) -> str:
        return self.table


@checked_class
@dataclass(frozen=True)
class DatabaseTable(_Table):
    """A table or view of a SQL database, `name` or `schema.name`, by the SQLAlchemy URL of the database.

    The URL may hold a password: it is never printed. Instead of it, `url_variable` names the environment variable
    that holds the URL, read when the table is.
    """

    url: str | None = field(default=None, repr=False)
    url_variable: str | None = None

    @property
    def address(self) -> str:
        address = self.url or (os.environ.get(self.url_variable) if self.url_variable else None)
        if not address:
            raise UnreadableSource(
                f"the database of '{self.table}' has no URL",
                why=f"the environment variable {self.url_variable} is not set"
                if self.url_variable
                else "a table is found through the URL of its database",
                instead=f"set it to {URL_STARTS}",
            )
        return address


class SparkTable(_Table):
    """A table or view that the running Spark session knows."""


@dataclass(frozen=True)
class Frame:
    """A table in memory, or a query of DuckDB that is carried out whenever records are read: boxed from the start.

    The same rules hold as for files: a record that does not fit is dropped and counted. `name` is public: it says which
    state of the data this is, for people and for the ledger, which refuses to publish a plan twice on one.
    """

    name: str
    content: Confidential[Any]

    @classmethod
    def of(cls, data: object, name: str) -> Frame:
        """A frame of pandas or polars, an Arrow table or a DuckDB relation; refused where it is none of them."""
        if (kind := _kind_of_frame(data)) is None:
            lazy = type(data).__name__ == "LazyFrame"
            raise UnreadableSource(
                f"records cannot be read from a value of the type {type(data).__name__}",
                why="records are a frame of pandas or polars, an Arrow table, a DuckDB relation, or a file",
                instead="collect() it first" if lazy else "hand over one of these, or the path of a file",
            )
        return cls(name, Confidential(f"records in {kind}", data))


FRAMES = {  # what records in memory may be: the package of their type, its name, and words for it
    ("pandas", "DataFrame"): "a pandas frame",
    ("polars", "DataFrame"): "a polars frame",
    ("pyarrow", "Table"): "an Arrow table",
    ("duckdb", "DuckDBPyRelation"): "a DuckDB relation",
    ("_duckdb", "DuckDBPyRelation"): "a DuckDB relation",
}


def _kind_of_frame(data: object) -> str | None:
    """What kind of frame it is; nobody has to import a package to say so."""
    types = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__)
    return next((FRAMES[each] for each in types if each in FRAMES), None)


Source = ParquetFile | CsvFile | StatisticalFile | DatabaseTable | SparkTable | Frame
PartedSource = ParquetFile | CsvFile | StatisticalFile | DatabaseTable  # can be read in parts, elsewhere too


@dataclass(frozen=True)
class Part:
    """Some of a source's records, those of a run of its row groups, bytes, records or pages; None: all of them."""

    within: range | None = None
    snapshot: str | None = None  # of PostgreSQL: the state in which all parts are read


WHOLE = Part()
SUFFIXES: Mapping[str, Callable[[Path], ParquetFile | CsvFile | StatisticalFile]] = {
    ".parquet": ParquetFile,
    ".csv": CsvFile,
    ".sas7bdat": StatisticalFile,
    ".dta": StatisticalFile,
    ".sav": StatisticalFile,
}


def source_file(path: Path | str) -> ParquetFile | CsvFile | StatisticalFile:
    """The file at a path, of the kind that its ending says."""
    make = SUFFIXES.get(Path(path).suffix.lower())
    if make is None:
        raise UnreadableSource(
            f"nobody knows how to read '{Path(path).name}'",
            why=f"a file of records ends in {', '.join(SUFFIXES)}",
            instead=_made_readable(Path(path)),
        )
    return make(Path(path))


def _made_readable(path: Path) -> str:
    """What to do with a file of another ending."""
    if path.is_dir():
        return "it is a folder: name a file in it"
    ending, here = path.suffix.lower(), shlex.quote(str(path))
    if ending in (".gz", ".zip", ".bz2", ".xz", ".zst"):
        unpacked = {".gz": "gunzip --keep", ".bz2": "bunzip2 --keep", ".xz": "unxz --keep", ".zst": "unzstd"}
        return f"unpack it first: {unpacked.get(ending, 'unzip')} {here}"
    if ending in (".xlsx", ".xls", ".ods", ".numbers"):
        return 'save the sheet from the spreadsheet, as "CSV UTF-8"'
    if ending in (".tsv", ".tab", ".txt", ".dat", ""):
        return (
            f"if it is a table of text, copy it to such a name and name that: cp {here} {shlex.quote(f'{path}.csv')} "
            '(where a tab separates the values, a program states source = { path = "…", delimiter = "\\t" })'
        )
    return "write it as one of these, with the ending of what is in it"


@dataclass(frozen=True)
class SourceColumns:
    """What a source offers to SQL: the text after FROM, and the SQL type of each column by its exact name."""

    table: str
    types: Mapping[str, str]
    share: Callable[[], float] | None = None  # read so far, where the source itself knows

    def type_of(self, name: str) -> str:
        """The SQL type of a column; a refusal names what is missing, never what is there."""
        if name not in self.types:
            raise no_column(name)
        return self.types[name]


@dataclass(frozen=True)
class Stream:
    """Records as they come: the columns asked for, and batches of them, once. `rows` is how many, where it is known.

    `share` is how much of the source was read (0 to 1), where it knows that better.
    """

    schema: pyarrow.Schema
    batches: Iterator[pyarrow.RecordBatch]
    rows: int | None = None
    share: Callable[[], float] | None = None


def no_column(name: str) -> UnreadableSource:
    """The refusal for a column that is not there."""
    return UnreadableSource(
        f"the source has no column '{name}'",
        why="every attribute and the identifier is a column, in the spelling of the program",
        instead="rename the column, or name the source that has it",
    )


def chosen(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """The wanted columns, each once, or all where none is named; refused where one is not there, or there twice."""
    for name in wanted:
        if (found := there.count(name)) != 1:
            raise no_column(name) if not found else _several_columns(name)
    return list(dict.fromkeys(wanted or there))


def _several_columns(name: str) -> UnreadableSource:
    return UnreadableSource(
        f"the source has several columns '{name}'",
        why="nobody can tell which of them is meant",
        instead="name each column once",
    )


def not_installed(package: str, what: str, extra: str) -> UnreadableSource:
    """The refusal for a source whose reader is an extra."""
    return UnreadableSource(
        f"{what} cannot be read here",
        why=f"the package {package} is not installed",
        instead=f"install dualmandate[{extra}]",
    )


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(words: str) -> str:
    """A text as SQL writes it."""
    return "'" + words.replace("'", "''") + "'"


STREAM = "streamed"
DATABASE_ROWS, FILE_ROWS, PARQUET_ROWS = 20_000, 200_000, 2**17  # So many are read at a time.
PARQUET_BUFFER = 2**20  # Bytes of a column that are read at a time.
MOST_DIGITS = 38  # A decimal number with a declared precision has at most so many.


def check_source(source: Source) -> None:
    """Refuse what cannot be read in any case, before a record is: no file, no reader, no database, no such table."""
    if isinstance(source, DatabaseTable):
        guarded(lambda: check_table(source), name=source.name)
        return
    if isinstance(source, SparkTable):
        from dualmandate.publication.spark.session import running_session

        guarded(running_session, name=source.name)
        return
    if isinstance(source, Frame):
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
    """The source as a table that can be read once, with the columns that are wanted (all, where none is named).

    `counted` asks a source to find out how many records it has, for progress.
    """
    with _records(source, wanted, counted=counted) as stream:
        yield offered(stream, connection)


@contextmanager
def parts_of(source: PartedSource, most: int) -> Iterator[tuple[PartedSource, list[Part]]]:
    """The source as others can read it, and at most so many parts that are all of its records, each once.

    Parts are runs of row groups of Parquet, of bytes of CSV (a line is in the part that it begins in), of records of
    statistical packages, and of pages of a table of PostgreSQL, which others read in one state while this is entered.
    A table or view of another kind is one part.
    """
    if isinstance(source, DatabaseTable):
        with _table_in_one_state(source) as (size, snapshot):
            runs = _runs(range(size), most)
            runs[-1:] = [range(each.start, LAST_PAGE) for each in runs[-1:]]  # whatever lies behind is read too
            parts = [Part(within, snapshot) for within in runs] or [WHOLE]
            yield replace(source, url=source.address, url_variable=None), parts
        return
    path = Path(source.path).absolute()
    units = _units_of_file(replace(source, path=path))
    yield replace(source, path=path), [WHOLE] if units is None else [Part(within) for within in _runs(units, most)]


def _units_of_file(source: ParquetFile | CsvFile | StatisticalFile) -> range | None:
    """Row groups, bytes or records of a file; None where it does not say how many there are."""
    if isinstance(source, ParquetFile):
        from pyarrow import parquet

        return range(parquet.read_metadata(source.path).num_row_groups)
    if isinstance(source, CsvFile):
        from dualmandate.publication.csv_lines import csv_layout

        path = Path(source.path)
        return range(csv_layout(path, source.delimiter, lambda _: ()).first, path.stat().st_size)
    return _rows_of_file(_reader(Path(source.path))(metadataonly=True)[1])


def _runs(units: range, most: int) -> list[range]:
    """The same, in at most so many runs of about one length."""
    count = min(most, len(units))
    edges = [units.start + len(units) * number // count for number in range(count + 1)] if count else []
    return [range(*pair) for pair in pairwise(edges)]


@contextmanager
def part_opened(source: PartedSource, part: Part, wanted: Sequence[str]) -> Iterator[Stream]:
    """One part's records, by the rules that hold for all."""
    with _records(source, wanted, counted=False, part=part) as stream:
        yield stream


def has_pages(source: Source) -> bool:
    """Whether a source can be damaged so that some of its records are found, and others are not."""
    return not isinstance(source, CsvFile | DatabaseTable | SparkTable)


@contextmanager
def outlined(
    source: Source, connection: duckdb.DuckDBPyConnection, wanted: Sequence[str], *, pages: bool = True
) -> Iterator[SourceColumns]:
    """The columns that are wanted, without a record; what only a whole source can be is refused here.

    The `pages` of a file are read to their end, so that a damaged one is found; what is in them is not looked at. A CSV
    file has none that could be damaged, and a database answers for its own.
    """
    if isinstance(source, DatabaseTable):
        with _connected(source) as database:
            schema = _schema_of_table(_wanted_types(source, database, wanted), database.dialect.name)
    else:
        with _records(source, wanted, counted=False) as stream:
            schema = stream.schema
            if pages and has_pages(source):
                for _ in stream.batches:
                    pass
    yield offered(Stream(schema, iter(())), connection)


def _records(
    source: Source, wanted: Sequence[str], *, counted: bool, part: Part = WHOLE
) -> AbstractContextManager[Stream]:
    if isinstance(source, DatabaseTable):
        return records_of_table(source, wanted, counted=counted, part=part)
    if isinstance(source, ParquetFile):
        return _records_of_parquet(source, wanted, part.within)
    if isinstance(source, CsvFile):
        return _records_of_csv(source, wanted, part.within)
    if isinstance(source, StatisticalFile):
        return records_of_file(source, wanted, part.within)
    if isinstance(source, Frame):
        return records_of_frame(source, wanted)
    raise UnreadableSource(
        f"'{source.name}' is a table of Spark",
        why="it lies on a cluster, and records do not leave it",
        instead='state engine = "spark", which tabulates where the records are',
    )


@contextmanager
def _records_of_csv(source: CsvFile, wanted: Sequence[str], within: range | None) -> Iterator[Stream]:
    from dualmandate.publication.csv_lines import csv_batches, csv_layout  # compiled: only readers of CSV load it

    path, read = Path(source.path), 0
    layout = csv_layout(path, source.delimiter, lambda there: chosen(wanted, list(there)))
    size = max(path.stat().st_size, 1)

    def told(done: int) -> None:
        nonlocal read
        read = done

    yield Stream(layout.schema, csv_batches(path, layout, told, within), share=lambda: min(read / size, 1.0))


@contextmanager
def _records_of_parquet(source: ParquetFile, wanted: Sequence[str], groups: range | None) -> Iterator[Stream]:
    """Pages of the wanted columns, each read when its turn comes; texts are not believed to be such."""
    import pyarrow
    from pyarrow import parquet

    path = Path(source.path)
    declared = parquet.read_schema(path)
    names = chosen(wanted, declared.names)
    with parquet.ParquetFile(
        path, metadata=_plain_metadata(path), pre_buffer=False, buffer_size=PARQUET_BUFFER
    ) as file:
        kinds = [_kind_read(declared.field(name).type, file.schema_arrow.field(name).type) for name in names]
        schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
        # A dot in a name would mean a column within another: what comes too much is left.
        some = None if groups is None else list(groups)
        read = file.iter_batches(PARQUET_ROWS, row_groups=some, columns=names, use_threads=False)
        batches = (cleaned(batch.select(names).cast(schema)) for batch in read)
        yield Stream(cleaned_schema(schema), batches, file.metadata.num_rows)


ARROW_KEY = b"\x18\x0cARROW:schema"  # a text of 12 letters, as the head of a Parquet file writes it


def _plain_metadata(path: Path) -> parquet.FileMetaData | None:
    """The head of a Parquet file without what its writer kept of types in memory; None where it is no such head.

    Categories of pandas and the like are put together anew by such a note, and a text that is none stops that for all.
    """
    import pyarrow
    from pyarrow import parquet

    with path.open("rb") as opened:
        opened.seek(max(path.stat().st_size - 8, 0))
        ending = opened.read(8)
        size = int.from_bytes(ending[:4], "little")
        if ending[4:] != b"PAR1" or size > path.stat().st_size - 12:
            return None
        opened.seek(-8 - size, os.SEEK_END)
        head = opened.read(size)
    plain = head.replace(ARROW_KEY, ARROW_KEY.replace(b":", b"-"))
    return parquet.read_metadata(pyarrow.BufferReader(b"PAR1" + plain + ending))


def _kind_read(declared: pyarrow.DataType, kept: pyarrow.DataType) -> pyarrow.DataType:
    """The type of a column: what the file keeps where that is a text or was packed, otherwise what it declares."""
    import pyarrow

    packed = pyarrow.types.is_dictionary(declared) or pyarrow.types.is_string(kept)
    return kept if packed else declared


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
    share = stream.share or (lambda: min(read / rows, 1.0) if rows else 1.0)
    return SourceColumns(STREAM, types, share)


def _described(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """The columns of a table and their types; what is in them is not read."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


@contextmanager
def records_of_table(
    source: DatabaseTable, wanted: Sequence[str], *, counted: bool, part: Part = WHOLE
) -> Iterator[Stream]:
    """The wanted columns of the table, with the types that the database declares, in one transaction that only reads.

    `counted` first asks the database how many rows there are, for progress.
    """
    import sqlalchemy as sql

    schema_name, name = _parts(source)
    with _connected(source, part.snapshot) as connection:
        types = _wanted_types(source, connection, wanted)
        names = list(types)
        table = sql.table(sql.quoted_name(name, quote=True), *(sql.column(each) for each in names), schema=schema_name)
        _keep_to_one_value(connection)
        count = sql.select(sql.func.count()).select_from(table)
        rows = connection.execute(count).scalar_one() if counted else None
        records = sql.select(*(table.c[each].label(f"column_{n}") for n, each in enumerate(names)))
        if part.within is not None:
            records = records.where(sql.text(_pages(part.within)))
        read = connection.execution_options(yield_per=DATABASE_ROWS).execute(records)
        try:
            yield _stream(types, read, rows, connection.dialect.name)
        finally:
            with suppress(sql.exc.SQLAlchemyError):  # gone away already
                read.close()


def check_table(source: DatabaseTable) -> None:
    """Refuse a database that cannot be reached, and a table that it does not have; no record is read."""
    import sqlalchemy as sql

    try:
        with _connected(source) as connection:
            _columns(source, connection)
            return
    except sql.exc.SQLAlchemyError:
        pass
    # Raised here, where the error is forgotten: it repeats where the database is and who asked.
    raise UnreadableSource(
        f"the database of '{source.table}' cannot be reached",
        why="it does not run, is somewhere else, or does not let you in",
        instead="see that you can reach it by its URL, then try again",
    )


@contextmanager
def _connected(source: DatabaseTable, snapshot: str | None = None) -> Iterator[sqlalchemy.Connection]:
    """A connection that only reads: in the state of a snapshot of PostgreSQL, where one is named."""
    import sqlalchemy as sql

    engine = _engine(source)
    try:
        with engine.connect() as connection:
            reading: dict[str, Any] = {"postgresql_readonly": True} if engine.dialect.name == "postgresql" else {}
            if snapshot is not None:
                connection.execution_options(**reading, isolation_level="REPEATABLE READ")
                connection.execute(sql.text(f"SET TRANSACTION SNAPSHOT {text(snapshot)}"))
            yield connection.execution_options(**reading) if snapshot is None else connection
    finally:
        engine.dispose()


@contextmanager
def _table_in_one_state(source: DatabaseTable) -> Iterator[tuple[int, str | None]]:
    """How many pages a table of PostgreSQL has, and a snapshot in which others can read it meanwhile; none of others.

    The table is locked against being written anew, as it is for whoever reads it: rows stay in their pages.
    """
    import sqlalchemy as sql

    schema_name, name = _parts(source)
    named = ".".join(quoted(each) for each in (schema_name, name) if each)
    with _connected(source) as connection:
        if connection.dialect.name != "postgresql":
            yield 0, None
            return
        connection.rollback()
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection.execute(sql.text(f"SELECT 1 FROM {named} LIMIT 0"))
        snapshot = connection.execute(sql.text("SELECT pg_export_snapshot()")).scalar_one()
        pages = connection.execute(sql.text(PAGES), {"name": named}).scalar_one_or_none()
        yield int(pages or 0), str(snapshot)


LAST_PAGE = 2**32 - 1
PAGES = """\
SELECT pg_relation_size(oid) / current_setting('block_size')::bigint FROM pg_class
WHERE oid = to_regclass(:name) AND relkind IN ('r', 'm')"""


def _pages(within: range) -> str:
    """The rows of a run of pages."""
    return f"ctid >= '({within.start},0)'::tid AND ctid < '({within.stop},0)'::tid"


def _columns(source: DatabaseTable, connection: sqlalchemy.Connection) -> dict[str, Any]:
    import sqlalchemy as sql

    schema_name, name = _parts(source)
    try:
        described = sql.inspect(connection).get_columns(name, schema=schema_name)
    except sql.exc.NoSuchTableError:
        raise UnreadableSource(
            f"the database has no table or view '{source.table}'",
            why="a table is found by its name, capital letters counting",
            instead="state name or schema.name, in the spelling of the database",
        ) from None
    return {str(one["name"]): one["type"] for one in described}


def _wanted_types(source: DatabaseTable, connection: sqlalchemy.Connection, wanted: Sequence[str]) -> dict[str, Any]:
    types = _columns(source, connection)
    return {name: types[name] for name in chosen(wanted, list(types))}


def _keep_to_one_value(connection: sqlalchemy.Connection) -> None:
    """From here on the driver does not give up on a value: texts come as bytes, odd dates as nothing."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        driver.text_factory = bytes
    elif connection.dialect.driver == "psycopg":
        from psycopg import DataError
        from psycopg.types.datetime import DateLoader

        class PlainDate(DateLoader):
            """Python knows no date before the year 1, after 9999, or at infinity."""

            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return OTHER_DATE

        driver.adapters.register_loader("date", PlainDate)


OTHER_DATE = "a date of another kind"  # Stands for one that cannot be written as a date.


def _parts(source: DatabaseTable) -> tuple[str | None, str]:
    """The schema, if one is named, and the table."""
    schema_name, _, name = source.table.rpartition(".")
    return schema_name or None, name


def _check_there(url: sqlalchemy.URL) -> None:
    """Refuse a file of SQLite that is not there: reading it would make an empty one."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith((":memory:", "file:")):
        return
    if not Path(url.database).is_file():
        raise UnreadableSource(
            "the database of the source is not there",
            why="there is no such file",
            instead="check the name and the folder: sqlite:///people.sqlite lies in the current folder, and "
            "sqlite:////srv/people.sqlite where its path says",
        )


def _engine(source: DatabaseTable) -> sqlalchemy.Engine:
    """An engine that puts no value into a message; refused where the URL is none, or its driver is missing."""
    import sqlalchemy as sql

    address = source.address
    try:
        url = sql.make_url(address)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        _check_there(url)
        return sql.create_engine(url, hide_parameters=True, poolclass=sql.NullPool)
    except (sql.exc.ArgumentError, ModuleNotFoundError) as error:
        missing = isinstance(error, ModuleNotFoundError | sql.exc.NoSuchModuleError)
        why = "the driver that it names is not installed" if missing else "it is not the URL of a database"
    # Raised here, where the error is forgotten: it repeats the URL.
    raise UnreadableSource(
        f"the URL for '{source.table}' cannot be used",
        why=why,
        instead=f"write one such as {URL_STARTS}, and install its driver (dualmandate[postgres] for PostgreSQL)",
    )


def _schema_of_table(types: Mapping[str, Any], dialect: str) -> pyarrow.Schema:
    import pyarrow

    fields = [(name, _arrow_type(kind, dialect)) for name, kind in types.items()]
    return pyarrow.schema([*fields, (UNREADABLE, pyarrow.bool_())])


def _stream(types: Mapping[str, Any], read: Any, rows: int | None, dialect: str) -> Stream:
    import sqlalchemy as sql

    schema = _schema_of_table(types, dialect)
    padded = [isinstance(kind, sql.CHAR) for kind in types.values()]  # filled up with blanks that mean nothing

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for part in read.partitions():
            yield _batch(
                [_unpadded(each, blanks) for each, blanks in zip(zip(*part, strict=True), padded, strict=True)], schema
            )

    return Stream(schema, batches(), rows)


def _unpadded(values: Sequence[Any], padded: bool) -> Sequence[Any]:
    return [value.rstrip(" ") if isinstance(value, str) else value for value in values] if padded else values


def _batch(values: Sequence[Sequence[Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Columns of Python values, and the marks of records with one that is none of its column's."""
    import pyarrow

    columns, marks = [], [False] * len(values[0])
    for each, field_of in zip(values, schema, strict=False):
        column, bad = column_of(each, field_of.type)
        columns.append(column)
        for place in bad:
            marks[place] = True
    return pyarrow.record_batch([*columns, pyarrow.array(marks, pyarrow.bool_())], schema=schema)


def _arrow_type(kind: Any, dialect: str) -> pyarrow.DataType:
    """The type of a declared column; one without values that levels could be compared with is no value at all."""
    import pyarrow
    import sqlalchemy as sql

    loose = dialect == "sqlite"  # it keeps dates as text, and decimal numbers as floats
    if isinstance(kind, sql.Boolean):
        return pyarrow.bool_()
    if isinstance(kind, sql.Integer):
        return pyarrow.int64()
    if isinstance(kind, sql.Float) or (loose and isinstance(kind, sql.Numeric)):
        return pyarrow.float64()
    if isinstance(kind, sql.Numeric):
        digits = kind.precision
        return pyarrow.decimal128(digits, kind.scale or 0) if digits and digits <= MOST_DIGITS else pyarrow.string()
    if isinstance(kind, sql.Date):
        return pyarrow.string() if loose else pyarrow.date32()
    return pyarrow.string() if isinstance(kind, sql.String | sql.Uuid) else pyarrow.binary()


Read = Callable[..., tuple[dict[str, list[Any]], Any]]  # values by column, and what the file says of itself
BAD_BYTES = b"\xff"  # Stands for a text that is none.
NUMBERS = {"int8": "int8", "int16": "int16", "int32": "int32", "float": "float32", "double": "float64"}


@contextmanager
def records_of_file(source: StatisticalFile, wanted: Sequence[str], within: range | None = None) -> Iterator[Stream]:
    """The wanted columns of the file, with the types that its own dictionary declares."""
    import pyarrow

    read = _reader(Path(source.path))
    _, facts = read(metadataonly=True)
    names = chosen(wanted, facts.column_names)
    kinds = [NUMBERS.get(facts.readstat_variable_types[name], "string") for name in names]
    schema = pyarrow.schema([*zip(names, kinds, strict=True), (UNREADABLE, pyarrow.bool_())])
    rows = _rows_of_file(facts) if within is None else within
    encoding = codecs.lookup(facts.file_encoding or "utf-8").name
    batches = _batches(partial(read, encoding=EVERY_BYTE), schema, source, rows, encoding)
    yield Stream(schema, batches, None if rows is None else len(rows))


def _rows_of_file(facts: Any) -> range | None:
    """The records of a file, by their numbers; None where it does not say how many there are."""
    return range(facts.number_rows) if facts.number_rows and facts.number_rows > 0 else None


# How statistical packages show a number that is a day or a time: SPSS and SAS by name, Stata as %td, %tc and the like.
SHOWN_AS_DAYS = re.compile(
    r"(?:%-?[td]|[AESJ]?DATE|E?TIME|MMDDYY|DDMMYY|YYMM|YYQ|MONYY|MOYR|QYR|YMDHMS|[EB]8601|NLDAT).*", re.IGNORECASE
)


def days_of_file(source: StatisticalFile) -> set[str]:
    """The columns that a file shows as days or times, and keeps as numbers."""
    _, facts = _reader(Path(source.path))(metadataonly=True)
    return {name for name, form in facts.original_variable_types.items() if SHOWN_AS_DAYS.fullmatch(str(form))}


def labels_of_file(source: StatisticalFile) -> dict[str, dict[str, str]]:
    """What a Stata or SPSS file calls the codes of its columns, by column, then by the code as it is written."""
    _, facts = _reader(Path(source.path))(metadataonly=True)
    return {
        name: {_code(value): str(label).strip() for value, label in labels.items()}
        for name, labels in facts.variable_value_labels.items()
    }


def _code(value: object) -> str:
    """A value that a label belongs to, as its code is written: whole numbers without a point."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value).rstrip()


def _reader(path: Path) -> Read:
    """pyreadstat's function for the ending, told to convert nothing."""
    import pyreadstat

    functions: dict[str, Read] = {
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".dta": pyreadstat.read_dta,
        ".sav": pyreadstat.read_sav,
    }
    return partial(functions[path.suffix.lower()], str(path), output_format="dict", disable_datetime_conversion=True)


def _batches(
    read: Read, schema: pyarrow.Schema, source: StatisticalFile, rows: range | None, encoding: str
) -> Iterator[pyarrow.RecordBatch]:
    names, first = [_as_bytes(name, encoding) for name in schema.names[:-1]], 0 if rows is None else rows.start
    while rows is None or first < rows.stop:
        limit = FILE_ROWS if rows is None else min(FILE_ROWS, rows.stop - first)
        values, _ = read(usecols=names, row_offset=first, row_limit=limit)
        present = [
            [_decoded(each, encoding) for each in values[name]] if field.type == "string" else values[name]
            for name, field in zip(names, schema, strict=False)
        ]
        found = len(present[0])
        if found:
            yield _batch(present, schema)
        first += found
        if found < limit:
            break
    if rows is not None and first != rows.stop:
        raise UnreadableSource(
            f"'{source.name}' ends before its last record",
            why="its head promises more records than there are",
            instead="copy the file again and compare its size",
        )


# The reader gives up on a file with a byte that its encoding does not have; in this one every byte is a letter.
EVERY_BYTE = "LATIN1"


def _as_bytes(words: str, encoding: str) -> str:
    """A text as it looks where every byte is taken for a letter."""
    return words.encode(encoding).decode(EVERY_BYTE)


def _decoded(value: Any, encoding: str) -> Any:
    """The text that was meant, or its bytes where they are none; an empty one is how these files write that none is."""
    if not isinstance(value, str) or value == "":
        return value or None
    written = value.encode(EVERY_BYTE)
    try:
        return written.decode(encoding)
    except UnicodeDecodeError:
        return BAD_BYTES


@contextmanager
def records_of_frame(source: Frame, wanted: Sequence[str]) -> Iterator[Stream]:
    """The wanted columns of a frame, with the types that it declares; columns of Python objects are read as text.

    So what one record holds never decides how the others are read.
    """
    import pyarrow

    data = source.content.open_for("reading its records")
    names = chosen(
        wanted, [str(name) for name in (data.column_names if hasattr(data, "column_names") else data.columns)]
    )
    if hasattr(data, "fetch_arrow_reader"):
        asked, rows = data.project(", ".join(map(quoted, names))), None
        read = (asked.to_arrow_reader if hasattr(asked, "to_arrow_reader") else asked.fetch_arrow_reader)(FILE_ROWS)
        declared, batches = read.schema, iter(read)
    else:
        table = _arrow_table(data, names)
        declared, batches, rows = table.schema, iter(table.to_batches(FILE_ROWS)), table.num_rows
    schema = pyarrow.schema([(each.name, _unpacked_kind(each.type)) for each in declared])
    yield Stream(cleaned_schema(schema), (cleaned(batch.cast(schema)) for batch in batches), rows)


def _arrow_table(data: Any, names: Sequence[str]) -> pyarrow.Table:
    """Columns of a frame in memory, and the marks of records with a value that cannot be read."""
    import pyarrow

    if not hasattr(data, "iloc"):
        return data.select(names) if isinstance(data, pyarrow.Table) else data.select(names).to_arrow()
    columns, marks, there = [], [False] * len(data), [str(name) for name in data.columns]
    for name in names:
        column = data.iloc[:, there.index(name)]
        if object not in (column.dtype, getattr(getattr(column.dtype, "categories", None), "dtype", None)):
            columns.append(pyarrow.array(column, from_pandas=True))
            continue
        values = [None if absent else value for value, absent in zip(column.tolist(), column.isna(), strict=True)]
        texts, bad = column_of(values, pyarrow.large_string())
        columns.append(texts)
        for place in bad:
            marks[place] = True
    return pyarrow.table([*columns, pyarrow.array(marks, pyarrow.bool_())], [*names, UNREADABLE])


def _unpacked_kind(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type of a column's values, whatever they are packed in."""
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        return _unpacked_kind(kind.value_type)
    return pyarrow.large_string() if pyarrow.types.is_string_view(kind) else kind
