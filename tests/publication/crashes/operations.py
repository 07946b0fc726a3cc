"""Every operation of this process by which something durable comes to be, counted: the n-th can be its last.

Writes through Python's files, creations, renames and removals, fsyncs, and commits of the ledger. A killed write leaves
half of what it was to write; everything else is killed just before it happens.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Self

import sqlalchemy

Met = Callable[[str], None]
_AUDITED = {
    "os.rename": "rename",
    "os.remove": "remove",
    "os.rmdir": "remove",
    "os.mkdir": "make",
    "os.chmod": "change",
}
SETTLING = {"fsync", "rename", "commit"}  # what makes something durable; the other kinds are more frequent
_met: Met | None = None


def watch(met: Met) -> None:
    """Call `met` with the kind of every durable operation of this process from now on."""
    global _met
    if _met is None:
        sys.addaudithook(_audited)
        _patch()
    _met = met


def die_at(number: int, thin: int = 1) -> Met:
    """End this process with SIGKILL at its n-th durable operation, counting of the frequent kinds each `thin`-th."""
    counted, frequent = itertools.count(1), itertools.count(1)

    def met(kind: str) -> None:
        if (kind in SETTLING or next(frequent) % thin == 0) and next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return met


def die_at_commit(number: int) -> Met:
    """End this process with SIGKILL just before its n-th commit."""
    counted = itertools.count(1)

    def met(kind: str) -> None:
        if kind == "commit" and next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return met


def full_at(number: int) -> Met:
    """A disk that is full from the n-th operation that needs room on."""
    counted = itertools.count(1)

    def met(kind: str) -> None:
        if kind in {"make", "write", "fsync"} and next(counted) >= number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return met


def _tell(kind: str) -> None:
    if _met is not None:
        _met(kind)


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _AUDITED:
        _tell(_AUDITED[event])
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT:
        _tell("make")


class _Written:
    """A file whose writes are met when half of them is on the disk."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, content: Any) -> int:
        half = (
            memoryview(content)[: len(content) // 2] if not isinstance(content, str) else content[: len(content) // 2]
        )
        self._file.write(half)
        self._file.flush()
        _tell("write")
        self._file.write(content[len(half) :] if isinstance(content, str) else memoryview(content)[len(half) :])
        return len(content)

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(self, *caught: object) -> Any:
        return self._file.__exit__(*caught)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _patch() -> None:
    plain_open, fsync = io.open, os.fsync

    def opened(file: Any, mode: str = "r", *words: Any, **named: Any) -> Any:
        found = plain_open(file, mode, *words, **named)
        return _Written(found) if set(mode) & set("wax+") else found

    def synced(descriptor: Any) -> None:
        _tell("fsync")
        fsync(descriptor)

    def committed(connection: sqlalchemy.Connection) -> None:
        options = connection.get_execution_options()
        reading = options.get("reading", False) or options.get("isolation_level") == "REPEATABLE READ"
        if not reading:
            _tell("commit")

    io.open = opened
    os.fsync = synced  # type: ignore[assignment]
    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", committed)
