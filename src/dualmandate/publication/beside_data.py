"""Anchors beside the data: which ledgers have spent from a source, and how far each of them had come.

A ledger that was restored from a backup and publishes to another folder meets them, wherever its releases lie; and so
does a second ledger for the same people. They are kept beside files; nothing is written to databases of records.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from dualmandate.errors import CannotWrite, ReleaseConflict
from dualmandate.ledger import Ledger, OtherLedgers
from dualmandate.ledger.chain import RELEASE_FILE, advance_anchor, found_head, read_anchor
from dualmandate.publication.sources import DatabaseTable, Frame, Source, SparkTable
from dualmandate.publication.writing import PUBLIC_MODE

ENDING = ".anchor"
SHOWN = 16  # digits of a ledger's identifier in the name of an anchor


def anchor_beside(source: Source, ledger: str) -> Path | None:
    """Where the anchor of a ledger lies beside a source; None where records are not in a file."""
    if isinstance(source, DatabaseTable | SparkTable | Frame):
        return None
    file = Path(source.path).resolve()  # a link stands for the file
    return file.with_name(f"{file.name}.{ledger[:SHOWN]}{ENDING}")


def anchors_beside(source: Source) -> list[Path]:
    """The anchors beside a source, of whichever ledgers."""
    pattern = anchor_beside(source, "")
    if pattern is None:
        return []
    begins, length = pattern.name.removesuffix(ENDING), len(pattern.name) + SHOWN
    return [path for path in _anchors_in(pattern.parent) if path.name.startswith(begins) and len(path.name) == length]


def _anchors_in(folder: Path) -> list[Path]:
    """The anchors of a folder, as far as it may be looked into."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ENDING)
    except OSError:
        return []


def heed_beside(ledger: Ledger, source: Source) -> None:
    """Refuse to go on where this ledger is behind an anchor of its own in the source's folder, or that is damaged.

    Whichever file it was kept for: the source may have been renamed since.
    """
    own = anchor_beside(source, ledger.identifier)
    if own is None:
        return
    ending = f".{ledger.identifier[:SHOWN]}{ENDING}"
    for path in dict.fromkeys([own, *(each for each in _anchors_in(own.parent) if each.name.endswith(ending))]):
        if path.exists():
            read_anchor(path)
            ledger.heed([path])


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
        facts = {} if head is None else json.loads(release.read_text("utf-8"))
        known = facts.get("snapshot") in (source.name, snapshot_mark(source.name, str(facts.get("reserved_at"))))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return head.ledger if head is not None and known else None


def snapshot_mark(name: str, reserved_at: str) -> str:
    """What a release says of the name of its data: enough to recognize it, and not the name."""
    return sha256(f"dualmandate, snapshot, {reserved_at}, {name}".encode()).hexdigest()
