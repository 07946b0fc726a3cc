"""Anchors: heads of the ledger kept outside its database, so that a shortened or restored one is noticed.

An anchor is a JSON file with a key `ledger_head`; a `release.json` that holds one is an anchor too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualmandate.errors import LedgerTampered, Place
from dualmandate.ledger.durable import alone_in, discard_drafts, write_durably
from dualmandate.ledger.entries import Head

SCHEMA = "ledger-anchor/1"
RELEASE_FILE = "release.json"  # of a release, and an anchor too
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST = 64 * 1024 * 1024


def read_anchor(path: Path) -> Head:
    """The head that an anchor remembers; a missing or damaged anchor is refused, or removing it would hide a loss."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("too large")
        head = json.loads(path.read_text("utf-8"))["ledger_head"]
        ledger, sequence, digest = head["ledger"], head["sequence"], head["digest"]
        if type(sequence) is not int or sequence < 0 or type(ledger) is not str or not _DIGEST.fullmatch(digest):
            raise ValueError("not a head")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise LedgerTampered(
            "an anchor of the ledger cannot be read",
            why="it is missing or damaged, and without it nobody can tell whether the ledger is complete",
            instead="put the anchor file back as it was",
            where=Place(file=str(path)),
        ) from None
    return Head(ledger, sequence, digest)


def found_head(path: Path) -> Head | None:
    """The head that a file holds, if it holds one."""
    try:
        return read_anchor(path)
    except LedgerTampered:
        return None


def advance_anchor(path: Path, head: Head) -> None:
    """Write a head into the anchor, unless another process has written a later one meanwhile."""
    with alone_in(path.parent):
        if path.exists() and read_anchor(path).sequence >= head.sequence:
            return
        discard_drafts(path)
        write_anchor(path, head)


def write_anchor(path: Path, head: Head) -> None:
    """Write a head into the anchor, whatever it held."""
    document = {"schema": SCHEMA, "label": "internal", "ledger_head": head.document()}
    write_durably(path, (json.dumps(document, indent=2) + "\n").encode())


def read_anchors(paths: Sequence[Path]) -> dict[Path, Head]:
    """What every anchor remembers now. A reader asks before it looks at the database: anchors follow commits."""
    return {path: read_anchor(path) for path in paths}


def check_anchors(anchors: Mapping[Path, Head], head: Head, digests: Sequence[str]) -> None:
    """Refuse a ledger that is behind an anchor or differs from it; `digests[n]` is the digest of entry n."""
    for path, known in anchors.items():
        place = Place(file=str(path))
        if known.ledger != head.ledger:
            raise LedgerTampered(
                "an anchor belongs to another ledger",
                why="the database was replaced, or the anchor was",
                instead="name the ledger and the anchors that belong together",
                where=place,
            )
        if known.sequence > head.sequence:
            raise LedgerTampered(
                f"the ledger has {head.sequence} entries, and its anchor knows {known.sequence}",
                why="entries were removed, or an older copy was restored: losses already spent are missing from it",
                instead="restore the newest copy; nothing can be spent before",
                where=place,
            )
        if digests[known.sequence] != known.digest:
            raise LedgerTampered(
                f"entry {known.sequence} of the ledger is not the one its anchor knows",
                why="the ledger was written anew from an older copy",
                instead="restore the copy that the anchor knows; nothing can be spent before",
                where=place,
            )
