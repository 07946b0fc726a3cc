"""Entries of the ledger, each chained to the one before it by HMAC-SHA-256 under the ledger key.

digest_0 = HMAC(chain subkey, "ledger/1" ‖ ledger), digest_n = HMAC(chain subkey, digest_{n−1} ‖ fields of entry n), and
every field is preceded by its length. Without the key nobody can write, change, drop or move an entry unnoticed. An
older copy has a good chain: therefore the head also lies in anchors elsewhere. Order is by number, never by the clock.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dualmandate.ledger.keys import LedgerKey


class EventKind(StrEnum):
    """What an entry records."""

    ACCOUNT_OPENED = "account opened"
    APPROVED = "approved"
    RESERVED = "reserved"
    CANCELED = "canceled"
    OPENED = "opened"
    TABULATED = "tabulated"
    MEASURED = "measured"
    WRITTEN = "written"
    PUBLISHED = "published"
    EXPORTED = "exported"
    KEY_DESTROYED = "key destroyed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Head:
    """How far a ledger has come: its name, the number of its last entry (0 for none) and that entry's digest."""

    ledger: str
    sequence: int
    digest: str

    def document(self) -> dict[str, object]:
        """The head as it is written under `ledger_head` into releases and anchors."""
        return {"ledger": self.ledger, "sequence": self.sequence, "digest": self.digest}


@dataclass(frozen=True)
class Event:
    """One entry: what was done, by whom, to which account and release, and the exact amount it is about.

    `amount` is in the account's currency; `details` is a JSON object; `recorded_at` is what the clock said, in UTC.
    """

    sequence: int
    kind: EventKind
    recorded_at: str
    by: str
    account: str | None = None
    release: str | None = None
    amount: Fraction | None = None
    details: str = "{}"
    digest: str = ""

    def document(self) -> dict[str, object]:
        """What the details say."""
        found = json.loads(self.details)
        assert isinstance(found, dict)
        return found


def written_details(details: Mapping[str, object]) -> str:
    """Details as one line of JSON that is always the same for the same content."""
    return json.dumps(details, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def first_digest(key: LedgerKey, ledger: str) -> str:
    """The digest before the first entry: it binds the chain to the key and to the ledger's name."""
    return _mac(key, "ledger/1", ledger)


def chained_digest(key: LedgerKey, before: str, event: Event) -> str:
    """The digest of an entry that follows the entry with digest `before`."""
    amount = event.amount
    fraction = (None, None) if amount is None else (str(amount.numerator), str(amount.denominator))
    fields = (event.kind.value, event.recorded_at, event.by, event.account, event.release, *fraction, event.details)
    return _mac(key, before, str(event.sequence), *fields)


def _mac(key: LedgerKey, *fields: str | None) -> str:
    message = bytearray()
    for text in fields:
        # A missing field is not an empty one.
        content = b"" if text is None else b"=" + text.encode("utf-8")
        message += len(content).to_bytes(8, "big") + content
    return hmac.digest(key.subkey("chain entries/1"), bytes(message), "sha256").hex()
