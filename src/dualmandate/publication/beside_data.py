"""Anchors beside the data: which ledgers have spent from a source, and how far each of them had come.

A ledger that was restored from a backup and publishes to another folder meets them, wherever its releases lie; and so
does a second ledger for the same people. They are kept beside files; nothing is written to databases of records.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dualmandate.errors import CannotWrite, ReleaseConflict
from dualmandate.ledger import Ledger, OtherLedgers
from dualmandate.ledger.chain import RELEASE_FILE, advance_anchor, found_head, read_anchor
from dualmandate.publication.sources import DatabaseTable, Source, SparkTable
from dualmandate.publication.writing import PUBLIC_MODE

ENDING = ".anchor"
SHOWN = 16  # digits of a ledger's identifier in the name of an anchor


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
        # A release says the same to everybody. Of two copies of a ledger that come here at once, the second is refused.
        advance_anchor(path, ledger.head_of(release), mode=PUBLIC_MODE, heed=lambda: heed_beside(ledger, source))
    except CannotWrite:
        return


def other_ledgers(
    ledger: Ledger, source: Source, folders: Sequence[Path], *, reason: str | None
) -> OtherLedgers | None:
    """The other ledgers that anchors beside a source, or releases in some folders, name for it.

    Refused without a `reason`: the people in the source have then lost more than this ledger knows. The ledger records
    the reason, and the release repeats it.
    """
    found = {_ledger_of(path) for path in anchors_beside(source)}
    found |= {name for folder in folders for path in folder.glob(f"*/{RELEASE_FILE}") if (name := _named(path, source))}
    others = sorted(name for name in found if not ledger.identifier.startswith(name))
    if not others:
        return None
    if reason is None:
        raise ReleaseConflict(
            f"another ledger has spent from '{source.name}': {', '.join(others)}",
            why="a second ledger for the same people has a cap of its own, and they lose the sum of both",
            instead="publish from that ledger, or say why both may spend: --other-ledger REASON, which is recorded "
            "and published",
        )
    return OtherLedgers(tuple(others), reason)


def _ledger_of(anchor: Path) -> str:
    """The ledger of an anchor beside data; of one that cannot be read, what its name says."""
    head = found_head(anchor)
    return anchor.name.removesuffix(ENDING)[-SHOWN:] if head is None else head.ledger


def _named(release: Path, source: Source) -> str | None:
    """The ledger of a release that was made from a source of this name."""
    head = found_head(release)
    try:
        snapshot = None if head is None else json.loads(release.read_text("utf-8")).get("snapshot")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return head.ledger if head is not None and snapshot == source.name else None
