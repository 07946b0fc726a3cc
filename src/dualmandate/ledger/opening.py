"""Opening a ledger: where its database, its anchor and its secrets lie, and the one act that makes a new one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sql

from dualmandate.errors import LedgerTampered, LedgerUnavailable
from dualmandate.ledger.anchors import read_anchor, write_anchor
from dualmandate.ledger.durable import alone_in, make_folder
from dualmandate.ledger.entries import Head, first_digest
from dualmandate.ledger.keys import LedgerKey
from dualmandate.ledger.ledger import Ledger
from dualmandate.ledger.storage import (
    bring_up_to_date,
    find_store,
    is_current,
    make_file,
    read_head,
    require_file,
    start_head,
)


def open_ledger(
    place: str | Path, key: LedgerKey, *, folder: Path | None = None, anchors: Sequence[Path] = (), create: bool = False
) -> Ledger:
    """The ledger at a path (SQLite) or a URL (SQLite, PostgreSQL); made if it is not there and `create` says so.

    Its anchor and the sealed secrets lie in `folder`: the file's own for SQLite, to be named for PostgreSQL. `anchors`
    are further files with a `ledger_head`, such as the `release.json` of earlier releases: checked, never written.
    """
    store = find_store(place)
    home = folder or (store.path.parent if store.path is not None else None)
    if home is None:
        raise LedgerUnavailable(
            "a ledger in PostgreSQL without a folder of its own",
            why="its anchor and the sealed secrets lie outside the database",
            instead="name the folder in which they lie",
        )
    stem = "ledger" if store.path is None else store.path.name
    anchor = home / f"{stem}.anchor"
    if create:
        make_folder(home)
        make_file(store)
        with alone_in(home), store.writing() as connection:
            bring_up_to_date(store, connection, create=True)
            _begin(connection, key, anchor)
    else:
        require_file(store)
        with store.reading() as connection:
            current = is_current(store, connection)
        if not current:
            with store.writing() as connection:
                bring_up_to_date(store, connection, create=False)
    return Ledger(store, key, anchors=(anchor, *anchors), secrets_in=home / f"{stem}.secrets")


def _begin(connection: sql.Connection, key: LedgerKey, anchor: Path) -> None:
    """Name a new ledger, in its anchor first: a crash in between leaves an anchor that knows of no entry."""
    if read_head(connection) is not None:
        return
    if anchor.exists():
        head = read_anchor(anchor)
        if head.sequence > 0 or head.digest != first_digest(key, head.ledger):
            raise LedgerTampered(
                "the database is empty, and the anchor beside it is not",
                why="the ledger's entries were lost, or the anchor was made under another key",
                instead="restore the newest copy of the database, or name another folder",
            )
    else:
        ledger = secrets.token_hex(16)
        head = Head(ledger, 0, first_digest(key, ledger))
        write_anchor(anchor, head)
    start_head(connection, head)
