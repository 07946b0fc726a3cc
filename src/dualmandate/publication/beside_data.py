"""Anchors beside the data: which ledgers have spent from a source, and how far each of them had come.

A ledger that was restored from a backup and publishes to another folder meets them, wherever its releases lie; and so
does a second ledger for the same people. They are kept beside files; nothing is written to databases of records.
"""

from __future__ import annotations

from pathlib import Path

from dualmandate.errors import CannotWrite
from dualmandate.ledger import Ledger
from dualmandate.ledger.chain import advance_anchor, read_anchor
from dualmandate.publication.sources import DatabaseTable, Source, SparkTable

ENDING = ".anchor"
SHOWN = 16  # digits of a ledger's identifier in the name of an anchor
PUBLIC_MODE = 0o644  # a release says the same to everybody


def anchor_beside(source: Source, ledger: str) -> Path | None:
    """Where the anchor of a ledger lies beside a source; None where records are not in a file."""
    if isinstance(source, DatabaseTable | SparkTable):
        return None
    file = Path(source.path).resolve()  # a link stands for the file
    return file.with_name(f"{file.name}.{ledger[:SHOWN]}{ENDING}")


def anchors_beside(source: Source) -> list[Path]:
    """The anchors beside a source, of whichever ledgers."""
    pattern = anchor_beside(source, "")
    if pattern is None:
        return []
    begins = pattern.name.removesuffix(ENDING)
    try:
        beside = [path for path in pattern.parent.iterdir() if path.name.startswith(begins)]
    except OSError:
        return []
    return sorted(path for path in beside if path.suffix == ENDING and len(path.name) == len(pattern.name) + SHOWN)


def heed_beside(ledger: Ledger, source: Source) -> None:
    """Refuse to go on where this ledger is behind its anchor beside the source, or where that is damaged."""
    own = anchor_beside(source, ledger.identifier)
    if own is not None and own.exists():
        read_anchor(own)
        ledger.heed([own])


def keep_beside(ledger: Ledger, source: Source, release: str) -> None:
    """Let the anchor beside the source know of a release, before the source is opened.

    A folder that cannot be written to keeps none: data are often, and rightly, out of reach of a publisher's hand.
    """
    path = anchor_beside(source, ledger.identifier)
    if path is None:
        return
    try:
        advance_anchor(path, ledger.head_of(release), mode=PUBLIC_MODE)
    except CannotWrite:
        return
