"""The one way from a request to opened records, for releases and for the rates of audits alike.

Before a loss is set aside: the ledger is behind none of its anchors, no other ledger has spent from the records, or the
reason is stated, and the request is signed where that is asked. Before records are opened: an anchor beside them knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dualmandate.ledger import Ledger, ReleaseEntry, ReleaseState, Request
from dualmandate.ledger.books import STEPS
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.publication.beside_data import heed_beside, keep_beside, other_ledgers
from dualmandate.publication.sources import Source


def heed_all(ledger: Ledger, source: Source, folders: Sequence[Path]) -> None:
    """Refuse to go on where this ledger is behind its anchor beside the source, or behind a release in the folders.

    A ledger restored from a backup does not know what was published since, and would publish it again.
    """
    ledger.heed(path for folder in folders for path in sorted(folder.glob(f"*/{RELEASE_FILE}")))
    heed_beside(ledger, source)


def reserve(
    ledger: Ledger,
    source: Source,
    request: Request,
    *,
    folders: Sequence[Path],
    other_ledger: str | None,
    sign: Path | None,
) -> ReleaseEntry:
    """Set the loss of a request aside, with the publisher's signature where a key is named.

    `folders` hold releases; `other_ledger` says why it may be, where another ledger has spent from the same source.
    """
    heed_all(ledger, source, folders)
    asked = replace(request, beside=other_ledgers(ledger, source, folders, reason=other_ledger))
    return ledger.reserve(asked if sign is None else ledger.sign_request(asked, sign))


def open_records(ledger: Ledger, source: Source, release: str, *, by: str) -> None:
    """Spend what was set aside: from here on the records may be opened; nothing where that was done before."""
    keep_beside(ledger, source, release)
    if STEPS.index(ledger.release(release).state) < STEPS.index(ReleaseState.OPENED):
        ledger.advance(release, ReleaseState.OPENED, by=by)
