"""Tables of SQL databases, streamed from the server and never written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dualmandate.errors import UnreadableSource
from dualmandate.publication.sources import URL_STARTS, DatabaseTable, Stream, chosen

if TYPE_CHECKING:
    import pyarrow
    import sqlalchemy

ROWS_AT_A_TIME = 20_000
MOST_DIGITS = 38  # A decimal number with a declared precision has at most so many.


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
        read = connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(records)
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
    """The declared types of the table's columns."""
    import sqlalchemy as sql

    schema_name, name = _parts(source)
    try:
        described = sql.inspect(connection).get_columns(name, schema=schema_name)
    except sql.exc.NoSuchTableError:
        raise _no_table(source) from None
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


def _no_table(source: DatabaseTable) -> UnreadableSource:
    return UnreadableSource(
        f"the database has no table or view '{source.table}'",
        why="a table is found by its name, capital letters counting",
        instead="state name or schema.name, in the spelling of the database",
    )


def _stream(types: dict[str, Any], read: Any, rows: int | None) -> Stream:
    import pyarrow

    schema = pyarrow.schema([(name, _arrow_type(kind)) for name, kind in types.items()])
    padded = [_is_padded(kind) for kind in types.values()]

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


def _is_padded(kind: Any) -> bool:
    """Whether a text is filled up with blanks that mean nothing."""
    import sqlalchemy as sql

    return isinstance(kind, sql.CHAR)


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
