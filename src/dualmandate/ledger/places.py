"""Where else the head of a ledger is kept: places that who restores or copies the ledger's folder does not reach.

A copy of the whole folder has a good chain and a good anchor beside it. Only a place outside knows that the ledger had
come further, or that another copy of it went on. An agency names such places in its project file; which ones it named
is an entry of the chain, so that nobody drops one unnoticed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sql

from dualmandate.errors import CannotWrite, LedgerTampered, LedgerUnavailable, Place
from dualmandate.ledger.chain import Head, anchor_document, head_of, read_anchor, write_anchor
from dualmandate.ledger.durable import OWNER_ONLY, alone_in, discard_drafts, sync_folder
from dualmandate.ledger.storage import Store, find_store, read_head

PATIENCE = 60.0  # seconds for a command to answer
_LARGEST = 64 * 1024 * 1024


class HeadPlace(Protocol):
    """A second place for heads."""

    @property
    def words(self) -> str:
        """What people call it, without a password; the ledger records these words."""
        ...

    def read(self, ledger: str) -> tuple[Head, ...]:
        """The heads of a ledger that it knows, at least the last one; none where it knows none."""
        ...

    def begin(self, head: Head) -> None:
        """Make the place, where it is not there yet, and let it know a first head."""
        ...

    def advance(self, head: Head) -> None:
        """Let it know a head, unless it knows a later one; refused where it knows another one of this number."""
        ...

    def prove(self, head: Head) -> None:
        """Refuse where it could not be told of a next head, as far as that can be tried: it knows this one already."""
        ...

    def document(self) -> dict[str, object]:
        """How to find it again, without a password; the ledger records it beside its words."""
        ...


@dataclass(frozen=True)
class FilePlace:
    """A file with the last head of one ledger, on another disk."""

    path: Path

    @property
    def words(self) -> str:
        return f"the file '{self.path}'"

    def read(self, ledger: str) -> tuple[Head, ...]:
        """The head that it holds, of whichever ledger: it is kept for one."""
        del ledger
        try:
            return (read_anchor(self.path),) if self.path.exists() else ()
        except OSError:  # not a folder to look into
            raise _unavailable(self.words) from None

    def begin(self, head: Head) -> None:
        self.advance(head)

    def advance(self, head: Head) -> None:
        with alone_in(self.path.parent):
            if is_later(head, self.read(head.ledger), self.words):
                discard_drafts(self.path)
                write_anchor(self.path, head)

    def prove(self, head: Head) -> None:
        """The same head once more: a full disk, or one for reading only, is found."""
        with alone_in(self.path.parent):
            if self.read(head.ledger) == (head,):
                discard_drafts(self.path)
                write_anchor(self.path, head)

    def document(self) -> dict[str, object]:
        return {"kind": "file", "path": str(self.path)}


@dataclass(frozen=True)
class AppendOnlyFile:
    """A file to which a line is added for every head, and nothing else is done: it may allow no more (chattr +a)."""

    path: Path

    @property
    def words(self) -> str:
        return f"the append-only file '{self.path}'"

    def read(self, ledger: str) -> tuple[Head, ...]:
        """Every head of the ledger: two copies that went on from one entry have two heads of one number."""
        try:
            if not self.path.exists():
                return ()
            if self.path.stat().st_size > _LARGEST:
                raise OSError("too large")
            lines = self.path.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            raise _unavailable(self.words) from None
        found = (_head_in(line) for line in lines)  # a line that a crash cut off is none
        return tuple(head for head in found if head is not None and head.ledger == ledger)

    def begin(self, head: Head) -> None:
        with self._opened(os.O_CREAT):
            sync_folder(self.path.parent)
        self.advance(head)

    def advance(self, head: Head) -> None:
        with self._opened() as handle:
            if is_later(head, self.read(head.ledger), self.words):
                self._add(handle, head)

    def prove(self, head: Head) -> None:
        """The same line once more: a full disk, or one for reading only, is found."""
        with self._opened() as handle:
            self._add(handle, head)

    def document(self) -> dict[str, object]:
        return {"kind": "append", "path": str(self.path)}

    @staticmethod
    def _add(handle: int, head: Head) -> None:
        # A line break first: what a crash cut off must not swallow this one.
        line = f"\n{json.dumps(head.document(), sort_keys=True)}\n".encode()
        if os.write(handle, line) != len(line):  # a disk takes what still fits, and says so in no other way
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)

    @contextmanager
    def _opened(self, flags: int = 0) -> Iterator[int]:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | flags, OWNER_ONLY)
        except OSError as error:
            raise CannotWrite.because(error, self.path) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        except OSError as error:
            raise CannotWrite.because(error, self.path) from None
        finally:
            os.close(handle)


_PASSWORDS = ("password", "sslpassword")  # that the part of a URL behind ? may hold
_ANCHOR = sql.table(
    "ledger_anchor",
    sql.column("ledger", sql.Text()),
    sql.column("sequence", sql.BigInteger()),
    sql.column("digest", sql.Text()),
)
_MAKE = (
    "CREATE TABLE IF NOT EXISTS ledger_anchor "
    "(ledger text NOT NULL, sequence bigint NOT NULL, digest text NOT NULL, PRIMARY KEY (ledger, sequence))"
)


@dataclass(frozen=True)
class DatabasePlace:
    """A table `ledger_anchor` in a PostgreSQL database, to which rows are added: the right to read and add will do."""

    url: str = field(repr=False)

    @property
    def words(self) -> str:
        address = sql.make_url(self.url)
        host = address.host or address.query.get("host") or "this machine"
        return f"the PostgreSQL database '{address.database}' at {host}"

    def read(self, ledger: str) -> tuple[Head, ...]:
        try:
            with self._store.reading() as connection:
                return self._last(connection, ledger)
        except LedgerUnavailable:
            raise _unavailable(self.words) from None

    def begin(self, head: Head) -> None:
        with self._writing() as connection:
            if _holds_ledger(connection, head.ledger):
                raise LedgerUnavailable(
                    f"{self.words} holds the ledger itself",
                    why="what restores the ledger would restore its second place with it",
                    instead="name another database, on another server, or a file with anchor_file",
                )
            if not sql.inspect(connection).has_table(_ANCHOR.name):
                connection.exec_driver_sql(_MAKE)
        self.advance(head)

    def advance(self, head: Head) -> None:
        with self._writing() as connection:
            if is_later(head, self._last(connection, head.ledger), self.words):
                connection.execute(_ANCHOR.insert().values(**head.document()))

    def prove(self, head: Head) -> None:
        """A row with a number that no entry has, taken back at once: a missing right, or a full disk, is found."""
        with self._writing() as connection, connection.begin_nested() as trial:
            connection.execute(_ANCHOR.insert().values(**replace(head, sequence=-1).document()))
            trial.rollback()

    def document(self) -> dict[str, object]:
        url = sql.make_url(self.url).difference_update_query(_PASSWORDS)
        where: dict[str, Any] = {"host": url.host, "port": url.port, "database": url.database, "query": url.query}
        bare = sql.URL.create(url.drivername, url.username, **where)  # `set` would keep the password
        return {"kind": "database", "url": bare.render_as_string(hide_password=False)}

    def _last(self, connection: sql.Connection, ledger: str) -> tuple[Head, ...]:
        if not sql.inspect(connection).has_table(_ANCHOR.name):
            return ()
        query = sql.select(_ANCHOR).where(_ANCHOR.c.ledger == ledger).order_by(_ANCHOR.c.sequence.desc()).limit(1)
        return tuple(Head(row.ledger, row.sequence, row.digest) for row in connection.execute(query))

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        try:
            with self._store.writing() as connection:
                yield connection
        except LedgerUnavailable as refusal:
            raise (refusal if self.words in refusal.what else _unavailable(self.words)) from None

    @property
    def _store(self) -> Store:
        store = find_store(self.url)
        if store.path is not None:
            raise LedgerUnavailable(
                "a second place for the ledger's head in a database of this kind",
                why="it is a PostgreSQL database, so that it is not on the ledger's own disk",
                instead="name postgresql://USER@HOST/DATABASE, or a file with anchor_file",
            )
        return store


@dataclass(frozen=True)
class CommandPlace:
    """A command of the agency's own: `COMMAND read LEDGER` prints the last head, `COMMAND write LEDGER` takes one."""

    command: tuple[str, ...]
    folder: Path  # where it is run

    @property
    def words(self) -> str:
        return f"the command '{' '.join(self.command)}'"

    def read(self, ledger: str) -> tuple[Head, ...]:
        printed = self._run("read", ledger, "")
        if not printed.strip():
            return ()
        head = _head_in(printed)
        if head is None:
            raise LedgerTampered(
                f"{self.words} printed no head of a ledger",
                why="it prints the last document that it was handed, or nothing where it was handed none",
                instead="mend the command; nothing can be spent before",
            )
        return (head,)

    def begin(self, head: Head) -> None:
        self.advance(head)
        if head not in self.read(head.ledger):
            raise LedgerUnavailable(
                f"{self.words} does not keep what it is handed",
                why="it was handed a head, and does not print it when it is asked",
                instead="mend the command: `write` stores what comes on standard input, `read` prints the last of it",
            )

    def advance(self, head: Head) -> None:
        if is_later(head, self.read(head.ledger), self.words):
            self._run("write", head.ledger, json.dumps(anchor_document(head)) + "\n")

    def prove(self, head: Head) -> None:
        """It was asked just now: to hand it the same head again could take a later one of a copy away."""

    def document(self) -> dict[str, object]:
        return {"kind": "command", "command": list(self.command), "folder": str(self.folder)}

    def _run(self, act: str, ledger: str, content: str) -> str:
        try:
            ran = subprocess.run(
                [*self.command, act, ledger],
                input=content,
                cwd=self.folder,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            raise _unavailable(self.words) from None
        return ran.stdout


def place_of(document: Mapping[str, Any]) -> HeadPlace:
    """The second place that the ledger recorded, to ask it a last time."""
    match document["kind"]:
        case "file":
            return FilePlace(Path(document["path"]))
        case "append":
            return AppendOnlyFile(Path(document["path"]))
        case "database":
            return DatabasePlace(str(document["url"]))
        case _:
            return CommandPlace(tuple(map(str, document["command"])), Path(document["folder"]))


def _holds_ledger(connection: sql.Connection, ledger: str) -> bool:
    """Whether a database is the ledger's own, by whatever address."""
    if not sql.inspect(connection).has_table("ledger_head"):
        return False
    head = read_head(connection)
    return head is not None and head.ledger == ledger


def is_later(head: Head, known: tuple[Head, ...], words: str) -> bool:
    """Whether a head is news to a place; refused where the place knows another ledger, or another such entry."""
    for each in known:
        if each.ledger != head.ledger:
            raise LedgerTampered(
                f"{words} keeps the head of another ledger",
                why="the ledger was replaced by another one, or two ledgers share the place",
                instead="restore the ledger that it knows, or name another place for this one",
            )
        if each.sequence == head.sequence and each.digest != head.digest:
            raise LedgerTampered(
                f"{words} knows another entry {head.sequence}",
                why="a copy of the ledger went on from an earlier entry: two of them spend from one account",
                instead="go on with the copy that the place knows, and spend nothing from the other",
            )
    return all(each.sequence < head.sequence for each in known)


def _head_in(text: str) -> Head | None:
    try:
        document = json.loads(text)
        return head_of(document.get("ledger_head", document))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _unavailable(words: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"{words}, where the ledger's head is kept, does not answer",
        why="without it nobody can tell whether this ledger is complete",
        instead="mount, start or mend it, and try again; nothing can be spent before",
        where=Place(file=words),
    )
