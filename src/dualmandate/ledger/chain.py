"""Entries of the ledger, each chained to the one before it by HMAC-SHA-256 under the ledger key.

digest_0 = HMAC(chain subkey, "ledger/1" ‖ ledger), digest_n = HMAC(chain subkey, digest_{n−1} ‖ fields of entry n), and
every field is preceded by its length. Without the key nobody can write, change, drop or move an entry unnoticed. An
older copy has a good chain: therefore the head also lies in anchors elsewhere, so that a shortened or restored ledger
is noticed. An anchor is a JSON file with a key `ledger_head`; a `release.json` that holds one is an anchor too. Order
is by number, never by the clock.

The key, and the secrets of releases sealed under it, lie each in a file for its owner alone. A subkey for a purpose is
HMAC-SHA-256(key, purpose). A secret of 32 bytes is sealed as nonce ‖ (secret ⊕ pad) ‖ tag, pad = HMAC(sealing subkey,
nonce ‖ context), tag = HMAC(checking subkey, nonce ‖ sealed ‖ context): one block of a pseudorandom function, then a
tag over everything. The nonce is 32 fresh random bytes.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from dualmandate.errors import CannotWrite, LedgerTampered, Place, UnsafeKey
from dualmandate.ledger.durable import OWNER_ONLY, alone_in, discard_drafts, erase, make_folder, write_durably
from dualmandate.population import Confidential
from dualmandate.population.shown import one_line


class EventKind(StrEnum):
    """What an entry records."""

    ACCOUNT_OPENED = "account opened"
    APPROVED = "approved"
    CHECKED = "checked"
    RESERVED = "reserved"
    CANCELED = "canceled"
    OPENED = "opened"
    TABULATED = "tabulated"
    MEASURED = "measured"
    WRITTEN = "written"
    PUBLISHED = "published"
    EXPORTED = "exported"
    KEY_DESTROYED = "key destroyed"
    ANCHORED = "anchored"
    REFUSED = "refused"
    REQUESTED = "more requested"
    DECIDED = "decided"


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

    __repr__ = one_line

    def document(self) -> dict[str, Any]:
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


SCHEMA = "ledger-anchor/1"
RELEASE_FILE = "release.json"  # of a release, and an anchor too
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST = 64 * 1024 * 1024


def is_digest(text: object) -> bool:
    """Whether this is a SHA-256 digest, as 64 lowercase hexadecimal digits."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def read_anchor(path: Path) -> Head:
    """The head that an anchor remembers; a missing or damaged anchor is refused, or removing it would hide a loss."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ValueError("no file (from a pipe nobody may ever read a line), or too large")
        return head_of(json.loads(path.read_text("utf-8"))["ledger_head"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise LedgerTampered(
            "an anchor of the ledger cannot be read",
            why="it is missing or damaged, and without it nobody can tell whether the ledger is complete",
            instead="put the anchor file back as it was",
            where=Place(file=str(path)),
        ) from None


def head_of(document: Mapping[str, Any]) -> Head:
    """The head that a document says; an error where it says none."""
    ledger, sequence, digest = document["ledger"], document["sequence"], document["digest"]
    if type(sequence) is not int or sequence < 0 or type(ledger) is not str or not is_digest(digest):
        raise ValueError("not a head")
    return Head(ledger, sequence, digest)


def found_head(path: Path) -> Head | None:
    """The head that a file holds, if it holds one."""
    try:
        return read_anchor(path)
    except LedgerTampered:
        return None


def advance_anchor(path: Path, head: Head, *, mode: int = OWNER_ONLY, heed: Callable[[], None] = lambda: None) -> None:
    """Write a head into the anchor, unless another process has written a later one meanwhile.

    `heed` looks at what is there, and may refuse it, while nobody else writes.
    """
    with alone_in(path.parent):
        heed()
        if path.exists() and read_anchor(path).sequence >= head.sequence:
            return
        discard_drafts(path)
        write_anchor(path, head, mode=mode)


def write_anchor(path: Path, head: Head, *, mode: int = OWNER_ONLY) -> None:
    """Write a head into the anchor, whatever it held."""
    write_durably(path, (json.dumps(anchor_document(head), indent=2) + "\n").encode(), mode=mode)


def anchor_document(head: Head) -> dict[str, object]:
    """A head as an anchor holds it."""
    return {"schema": SCHEMA, "label": "internal", "ledger_head": head.document()}


def check_anchors(anchors: Iterable[tuple[str, Head]], head: Head, digests: Sequence[str]) -> None:
    """Refuse a ledger that is behind an anchor or differs from it; `digests[n]` is the digest of entry n.

    An anchor is known by where it is kept.
    """
    for kept_at, known in anchors:
        place = Place(file=kept_at)
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


SECRET_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class LedgerKey:
    """The key under which entries are chained and secrets sealed. It prints as nothing."""

    content: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.content, bytes) or len(self.content) != SECRET_BYTES:
            raise UnsafeKey(
                "a ledger key of another length",
                why=f"a ledger key is {SECRET_BYTES} random bytes",
                instead="read the key that was made with the ledger",
            )

    def subkey(self, purpose: str) -> bytes:
        """A key of its own for each purpose, 32 bytes."""
        return hmac.digest(self.content, purpose.encode(), "sha256")


def make_key(path: Path) -> LedgerKey:
    """A fresh ledger key in a file of its own, readable by its owner alone; an existing file is never overwritten."""
    if path.exists():
        raise CannotWrite(
            f"the ledger key '{path}' exists already",
            why="whoever overwrites a ledger's key loses the ledger",
            instead="read it, or name another file",
            where=Place(file=str(path)),
        )
    make_folder(path.parent)
    content = secrets.token_bytes(SECRET_BYTES)
    write_durably(path, content.hex().encode() + b"\n")
    return LedgerKey(content)


def read_key(path: Path) -> LedgerKey:
    """The ledger key in a file; refused where anybody but its owner may read or change it."""
    text = read_private(path, "ledger key")
    try:
        return LedgerKey(bytes.fromhex(text.decode("ascii").strip()))
    except ValueError:
        raise UnsafeKey(
            f"'{path}' holds no ledger key",
            why=f"a ledger key is written as {2 * SECRET_BYTES} hexadecimal digits",
            instead="name the file that was made with the ledger",
            where=Place(file=str(path)),
        ) from None


@dataclass(frozen=True)
class SecretFolder:
    """The sealed secrets of one ledger's releases and checks, a file each; never in the database, never in a log."""

    folder: Path
    key: LedgerKey = field(repr=False)
    ledger: str

    def path(self, release: str) -> Path:
        """Where the sealed secret of a release lies."""
        return self.folder / f"{release}.sealed"

    def make(self, release: str) -> None:
        """A fresh secret for a release, on the disk when this returns; one process at a time, as its ledger sees to."""
        make_folder(self.folder)
        discard_drafts(self.path(release))
        write_durably(self.path(release), self._seal(release, secrets.token_bytes(SECRET_BYTES)))

    def open(self, release: str) -> Confidential[bytes]:
        """The secret of a release, 32 bytes, in a box."""
        return Confidential(f"secret of release {release}", self._opened(release))

    def mac(self, name: str, content: str) -> str:
        """HMAC-SHA-256 of a text under a secret, 64 hexadecimal digits."""
        return hmac.digest(self._opened(name), content.encode(), "sha256").hex()

    def _opened(self, release: str) -> bytes:
        sealed = read_private(self.path(release), f"secret of release {release}")
        nonce, body, tag = sealed[:32], sealed[32:64], sealed[64:]
        if len(sealed) != 96 or not hmac.compare_digest(tag, self._tag(release, nonce, body)):
            raise UnsafeKey(
                f"the secret of release {release} is damaged",
                why="it was changed, belongs to another release, or was sealed under another key",
                instead="restore its file; without it this release cannot be resumed, and its loss stays spent",
                where=Place(file=str(self.path(release))),
            )
        return _xor(body, self._pad(release, nonce))

    def destroy(self, release: str) -> None:
        """Overwrite and remove the secret; copies of the file elsewhere are beyond reach."""
        erase(self.path(release))

    def _seal(self, release: str, secret: bytes) -> bytes:
        nonce = secrets.token_bytes(32)
        body = _xor(secret, self._pad(release, nonce))
        return nonce + body + self._tag(release, nonce, body)

    def _pad(self, release: str, nonce: bytes) -> bytes:
        return hmac.digest(self.key.subkey("seal a secret/1"), nonce + self._context(release), "sha256")

    def _tag(self, release: str, nonce: bytes, body: bytes) -> bytes:
        return hmac.digest(self.key.subkey("check a secret/1"), nonce + body + self._context(release), "sha256")

    def _context(self, release: str) -> bytes:
        return f"{self.ledger}/{release}".encode()


def read_private(path: Path, name: str, *, most: int = 4096) -> bytes:
    """What a file for its owner alone holds; refused where anybody else may read it."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(most)
    except OSError:
        raise UnsafeKey(
            f"the {name} cannot be read",
            why=f"'{path}' is not there, or not yours to read",
            instead="put back the file that was made with the ledger, or name it in DUALMANDATE_KEY_FILE, as its owner",
            where=Place(file=str(path)),
        ) from None
    if mode & _OTHERS:
        raise UnsafeKey(
            f"the {name} is open to others (mode {mode:04o})",
            why="whoever reads it can undo the noise or rewrite the ledger",
            instead=f"chmod 600 '{path}', and ask who may have read it",
            where=Place(file=str(path)),
        )
    return content


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
