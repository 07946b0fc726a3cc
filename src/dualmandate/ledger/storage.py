"""The ledger's database: SQLite in a file, or PostgreSQL by its URL. One writer at a time, every commit durable.

Whatever the database or its driver says is replaced by our own words: their messages can hold values and passwords.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sql
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from dualmandate.errors import CannotWrite, LedgerTampered, LedgerUnavailable, Place
from dualmandate.ledger.chain import Event, EventKind, Head

BUSY_SECONDS = 60  # how long a writer waits for the others
_LOCK_OF_CREATION = 0x6475616C  # a number of our own among PostgreSQL's advisory locks

_ENTRY = sql.table(
    "ledger_entry",
    *(sql.column(name, sql.Text()) for name in ("kind", "recorded_at", "recorded_by", "account", "release")),
    *(sql.column(name, sql.Text()) for name in ("numerator", "denominator", "details", "digest")),
    sql.column("sequence", sql.BigInteger()),
)
_HEAD = sql.table(
    "ledger_head",
    sql.column("ledger", sql.Text()),
    sql.column("sequence", sql.BigInteger()),
    sql.column("digest", sql.Text()),
)


@dataclass(frozen=True)
class Store:
    """A database that holds one ledger. `path` is the file of SQLite, None for PostgreSQL."""

    engine: sql.Engine
    path: Path | None

    @property
    def place(self) -> Place | None:
        """Where the ledger lies, without the password a URL may hold."""
        return None if self.path is None else Place(file=str(self.path))

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """The only writer, from here to a durable commit: BEGIN IMMEDIATE, or a lock on the row of the head."""
        # PostgreSQL: what the lock waited for must be seen.
        with self._begun({} if self.path else {"isolation_level": "READ COMMITTED"}) as connection:
            if self.path is None:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """One consistent view; it keeps no writer waiting."""
        with self._begun({"reading": True} if self.path else {"isolation_level": "REPEATABLE READ"}) as connection:
            yield connection

    @contextmanager
    def _begun(self, options: dict[str, Any]) -> Iterator[sql.Connection]:
        try:
            with self.engine.connect() as connection, connection.execution_options(**options).begin():
                yield connection
        except (SQLAlchemyError, CommandError, sqlite3.Error):
            raise LedgerUnavailable(
                "the ledger's database did not do what was asked",
                why="it is busy, gone, full, damaged, or not a ledger; what was not committed did not happen",
                instead="see that the database runs and has room, then try again: the ledger says how far it came",
                where=self.place,
            ) from None


def find_store(place: str | Path) -> Store:
    """The database at a path or a URL; nothing is created and nothing is asked of it yet."""
    text = str(place)
    if isinstance(place, Path) or "://" not in text:
        return _sqlite(Path(text))
    try:
        url = sql.make_url(text)
    except ArgumentError:
        url = None
    if url is not None and url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        return _sqlite(Path(str(url.database)))
    if url is None or url.get_backend_name() != "postgresql":
        raise LedgerUnavailable(
            "a ledger in a database of this kind",
            why="a ledger lies in a SQLite file or in PostgreSQL, where one writer at a time is certain",
            instead="name a path, sqlite:///PATH, or postgresql://USER@HOST/DATABASE",
        )
    if find_spec("psycopg") is None:
        raise LedgerUnavailable(
            "a ledger in PostgreSQL", why="the driver psycopg is not installed", instead="install dualmandate[postgres]"
        )
    url = url.set(drivername="postgresql+psycopg")
    return Store(sql.create_engine(url, hide_parameters=True, poolclass=sql.NullPool), None)


def _sqlite(path: Path) -> Store:
    path = path.absolute()
    address = f"file:{quote(str(path))}?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")  # the folder too reaches the disk at every commit
        return connection

    engine = sql.create_engine("sqlite://", creator=connect, hide_parameters=True, poolclass=sql.NullPool)

    def begin(connection: sql.Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    sql.event.listen(engine, "begin", begin)
    return Store(engine, path)


def make_file(store: Store) -> None:
    """An empty file for a ledger in SQLite, for its owner alone; a file that is there stays."""
    if store.path is None:
        return
    try:
        os.close(os.open(store.path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise CannotWrite.because(error, store.path) from None


def require_file(store: Store) -> None:
    """Refuse where no file is: only an act of its own creates a ledger."""
    if store.path is not None and not store.path.is_file():
        raise _no_ledger(store)


def bring_up_to_date(store: Store, connection: sql.Connection, *, create: bool) -> None:
    """Bring the database to the newest version known here; an empty one only on request, a newer one never."""
    if store.path is None:
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK_OF_CREATION)))
    if is_current(store, connection, create=create):
        return
    scripts = _scripts()
    context = _migrations(connection)
    with Operations.context(context):
        for script in reversed(list(scripts.iterate_revisions("head", context.get_current_revision()))):
            script.module.upgrade()
    context.stamp(scripts, "head")


def is_current(store: Store, connection: sql.Connection, *, create: bool = False) -> bool:
    """Whether the database is of the newest version known here; a newer one, or an empty one, is refused."""
    scripts = _scripts()
    current, newest = _migrations(connection).get_current_revision(), scripts.get_current_head()
    if current is None and not create:
        raise _no_ledger(store)
    if current is not None and current not in {script.revision for script in scripts.walk_revisions()}:
        raise LedgerUnavailable(
            f"the ledger is of version {current}, and version {newest} is the newest known here",
            why="a newer dualmandate wrote it, and older words cannot account for newer ones",
            instead="install the newer dualmandate",
            where=store.place,
        )
    return current == newest


def _migrations(connection: sql.Connection) -> MigrationContext:
    # A name of our own: the database may hold other programs' tables.
    return MigrationContext.configure(connection, opts={"version_table": "ledger_version"})


def _scripts() -> ScriptDirectory:
    folder = Path(__file__).with_name("migrations")
    return ScriptDirectory(folder, version_locations=[folder])


def _no_ledger(store: Store) -> LedgerUnavailable:
    return LedgerUnavailable(
        "there is no ledger",
        why="only opening an account creates a ledger; publishing never does",
        instead="open an account first, or name the ledger's place",
        where=store.place,
    )


def read_head(connection: sql.Connection, *, lock: bool = False) -> Head | None:
    """The row of the head, locked for a writer; None in a database without a ledger."""
    query = sql.select(_HEAD.c.ledger, _HEAD.c.sequence, _HEAD.c.digest)
    rows = connection.execute(query.with_for_update() if lock else query).all()
    if len(rows) > 1:
        raise LedgerTampered(
            "the database holds the heads of two ledgers",
            why="a database holds one ledger",
            instead="restore the copy that the anchor knows",
        )
    return Head(rows[0].ledger, rows[0].sequence, rows[0].digest) if rows else None


def start_head(connection: sql.Connection, head: Head) -> None:
    """The head of a ledger without entries."""
    connection.execute(_HEAD.insert().values(ledger=head.ledger, sequence=head.sequence, digest=head.digest))


def read_entries(connection: sql.Connection, first: int) -> Iterator[Event]:
    """Every row of the table but those with the numbers from 1 to `first`, less one, in the order of their numbers.

    A row without a number, or with one below 1, is read too: nobody's row may hide from the chain.
    """
    number = _ENTRY.c.sequence
    query = sql.select(_ENTRY).where(sql.or_(number.is_(None), sql.not_(number.between(1, first - 1))))
    for row in connection.execute(query.order_by(number)):
        try:
            texts = (text for name, text in row._mapping.items() if name != "sequence")
            if type(row.sequence) is not int or not all(isinstance(text, str | None) for text in texts):
                raise TypeError("not text")
            amount = None if row.numerator is None else Fraction(int(row.numerator), int(row.denominator))
            about = row.recorded_by, row.account, row.release, amount
            yield Event(row.sequence, EventKind(row.kind), row.recorded_at, *about, row.details, row.digest)
        except (ValueError, TypeError, ZeroDivisionError):
            raise LedgerTampered(
                f"entry {row.sequence} of the ledger is not an entry",
                why="it was changed after it was written",
                instead="restore the copy that the anchor knows; nothing can be spent before",
            ) from None


def append_entry(connection: sql.Connection, event: Event) -> None:
    """Write an entry and move the head to it; the head's row is locked by now."""
    amount = event.amount
    connection.execute(
        _ENTRY.insert().values(
            sequence=event.sequence,
            kind=event.kind.value,
            recorded_at=event.recorded_at,
            recorded_by=event.by,
            account=event.account,
            release=event.release,
            numerator=None if amount is None else str(amount.numerator),
            denominator=None if amount is None else str(amount.denominator),
            details=event.details,
            digest=event.digest,
        )
    )
    connection.execute(_HEAD.update().values(sequence=event.sequence, digest=event.digest))
