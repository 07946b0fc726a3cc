"""Where the confidential records lie, and every source as a table of one SQL engine.

A source is a name and a form; nothing is opened by making one. Files that the engine reads by itself are left to it,
all others are a stream of Arrow batches: tables of SQL databases are streamed from the server and never written to;
files of SAS, Stata and SPSS are read some records at a time.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import UnreadableSource
from dualmandate.publication.wall import guarded

if TYPE_CHECKING:
    import duckdb
    import pyarrow
    import sqlalchemy

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

    Every value is read as the text that stands there (codes keep their leading zeros); an empty one is not there.
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


Source = ParquetFile | CsvFile | StatisticalFile | DatabaseTable | SparkTable
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
            instead="give it the ending of what is in it",
        )
    return make(Path(path))


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
    """Records as they come: the columns asked for, and batches of them, once. `rows` is how many, where it is known."""

    schema: pyarrow.Schema
    batches: Iterator[pyarrow.RecordBatch]
    rows: int | None = None


def no_column(name: str) -> UnreadableSource:
    """The refusal for a column that is not there."""
    return UnreadableSource(
        f"the source has no column '{name}'",
        why="every attribute and the identifier is a column, in the spelling of the program",
        instead="rename the column, or name the source that has it",
    )


def chosen(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """The wanted columns, each once; refused where one is not there."""
    absent = next((name for name in wanted if name not in there), None)
    if absent is not None:
        raise no_column(absent)
    return list(dict.fromkeys(wanted))


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


LONGEST_HEADER = 2**20  # The first line of a CSV file has at most so many characters.
STREAM = "streamed"
DATABASE_ROWS, FILE_ROWS = 20_000, 200_000  # So many are read at a time.
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
        # The names of folders are no columns: they would be read as text beside the file's own.
        parquet = f"read_parquet({_place(source)}, hive_partitioning = false)"
        table = parquet if isinstance(source, ParquetFile) else _csv(source)
        yield SourceColumns(table, _described(connection, table))
    elif isinstance(source, SparkTable):
        raise UnreadableSource(
            f"'{source.name}' is a table of Spark",
            why="it lies on a cluster, and records do not leave it",
            instead='state engine = "spark", which tabulates where the records are',
        )
    else:
        if isinstance(source, DatabaseTable):
            records: AbstractContextManager[Stream] = records_of_table(source, wanted, counted=counted)
        else:
            records = records_of_file(source, wanted)
        with records as stream:
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


def _described(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """The columns of a table and their types; what is in them is not read."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


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


@contextmanager
def records_of_table(source: DatabaseTable, wanted: Sequence[str], *, counted: bool) -> Iterator[Stream]:
    """The wanted columns of the table, with the types that the database declares, in one transaction that only reads.

    `counted` first asks the database how many rows there are, for progress.
    """
    import sqlalchemy as sql

    schema_name, name = _parts(source)
    with _connected(source) as connection:
        types = _columns(source, connection)
        names = chosen(wanted, list(types))
        table = sql.table(sql.quoted_name(name, quote=True), *(sql.column(each) for each in names), schema=schema_name)
        count = sql.select(sql.func.count()).select_from(table)
        rows = connection.execute(count).scalar_one() if counted else None
        records = sql.select(*(table.c[each].label(f"column_{n}") for n, each in enumerate(names)))
        read = connection.execution_options(yield_per=DATABASE_ROWS).execute(records)
        try:
            yield _stream({each: types[each] for each in names}, read, rows)
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
def _connected(source: DatabaseTable) -> Iterator[sqlalchemy.Connection]:
    engine = _engine(source)
    try:
        with engine.connect() as connection:
            reading = {"postgresql_readonly": True} if engine.dialect.name == "postgresql" else {}
            yield connection.execution_options(**reading)
    finally:
        engine.dispose()


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


def _parts(source: DatabaseTable) -> tuple[str | None, str]:
    """The schema, if one is named, and the table."""
    schema_name, _, name = source.table.rpartition(".")
    return schema_name or None, name


def _engine(source: DatabaseTable) -> sqlalchemy.Engine:
    """An engine that puts no value into a message; refused where the URL is none, or its driver is missing."""
    import sqlalchemy as sql

    address = source.address
    try:
        url = sql.make_url(address)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
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


def _stream(types: dict[str, Any], read: Any, rows: int | None) -> Stream:
    import pyarrow
    import sqlalchemy as sql

    schema = pyarrow.schema([(name, _arrow_type(kind)) for name, kind in types.items()])
    padded = [isinstance(kind, sql.CHAR) for kind in types.values()]  # filled up with blanks that mean nothing

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for part in read.partitions():
            columns = [
                _column([row[number] for row in part], field.type, padded=padded[number])
                for number, field in enumerate(schema)
            ]
            yield pyarrow.record_batch(columns, schema=schema)

    return Stream(schema, batches(), rows)


def _arrow_type(kind: Any) -> pyarrow.DataType:
    """The type of a declared column; one without values that levels could be compared with is no value at all."""
    import pyarrow
    import sqlalchemy as sql

    if isinstance(kind, sql.Boolean):
        return pyarrow.bool_()
    if isinstance(kind, sql.Integer):
        return pyarrow.int64()
    if isinstance(kind, sql.Float):
        return pyarrow.float64()
    if isinstance(kind, sql.Numeric):
        digits = kind.precision
        return pyarrow.decimal128(digits, kind.scale or 0) if digits and digits <= MOST_DIGITS else pyarrow.string()
    if isinstance(kind, sql.Date):
        return pyarrow.date32()
    return pyarrow.string() if isinstance(kind, sql.String | sql.Uuid) else pyarrow.binary()


def _column(values: list[Any], kind: pyarrow.DataType, *, padded: bool) -> pyarrow.Array:
    import pyarrow

    if pyarrow.types.is_decimal(kind):
        values = [None if _is_no_number(value) else value for value in values]
    elif pyarrow.types.is_string(kind):
        values = [_text(value, padded=padded) for value in values]
    elif pyarrow.types.is_binary(kind):
        values = [None] * len(values)
    return pyarrow.array(values, kind)


def _is_no_number(value: Any) -> bool:
    return isinstance(value, Decimal) and value.is_nan()


def _text(value: Any, *, padded: bool) -> str | None:
    if value is None or _is_no_number(value):
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value).rstrip(" ") if padded else str(value)


Read = Callable[..., tuple[dict[str, list[Any]], Any]]  # values by column, and what the file says of itself
NUMBERS = {"int8": "int8", "int16": "int16", "int32": "int32", "float": "float32", "double": "float64"}


@contextmanager
def records_of_file(source: StatisticalFile, wanted: Sequence[str]) -> Iterator[Stream]:
    """The wanted columns of the file, with the types that its own dictionary declares."""
    import pyarrow

    read = _reader(Path(source.path))
    _, facts = read(metadataonly=True)
    names = chosen(wanted, facts.column_names)
    kinds = [NUMBERS.get(facts.readstat_variable_types[name], "string") for name in names]
    schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
    rows = facts.number_rows if facts.number_rows and facts.number_rows > 0 else None
    yield Stream(schema, _batches(read, schema, source, rows), rows)


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
    read: Read, schema: pyarrow.Schema, source: StatisticalFile, rows: int | None
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    first = 0
    while rows is None or first < rows:
        values, _ = read(usecols=schema.names, row_offset=first, row_limit=FILE_ROWS)
        # An empty text is how these files write that nothing is there.
        present = [
            [each or None for each in values[field.name]] if field.type == "string" else values[field.name]
            for field in schema
        ]
        columns = [pyarrow.array(each, field.type) for each, field in zip(present, schema, strict=True)]
        found = len(columns[0])
        if found:
            yield pyarrow.record_batch(columns, schema=schema)
        first += found
        if found < FILE_ROWS:
            break
    if rows is not None and first != rows:
        raise UnreadableSource(
            f"'{source.name}' ends before its last record",
            why="its head promises more records than there are",
            instead="copy the file again and compare its size",
        )
