"""The ledger key, and the secrets of releases sealed under it, each in a file for its owner alone.

A subkey for a purpose is HMAC-SHA-256(key, purpose). A secret of 32 bytes is sealed as nonce ‖ (secret ⊕ pad) ‖ tag,
pad = HMAC(sealing subkey, nonce ‖ context), tag = HMAC(checking subkey, nonce ‖ sealed ‖ context): one block of a
pseudorandom function, then a tag over everything. The nonce is 32 fresh random bytes.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from dualmandate.errors import CannotWrite, Place, UnsafeKey
from dualmandate.ledger.durable import discard_drafts, erase, make_folder, write_durably
from dualmandate.population import Confidential

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
    text = _read_private(path, "ledger key")
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
    """The sealed secrets of one ledger's releases, a file each; never in the database, never in a log."""

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
        sealed = _read_private(self.path(release), f"secret of release {release}")
        nonce, body, tag = sealed[:32], sealed[32:64], sealed[64:]
        if len(sealed) != 96 or not hmac.compare_digest(tag, self._tag(release, nonce, body)):
            raise UnsafeKey(
                f"the secret of release {release} is damaged",
                why="it was changed, belongs to another release, or was sealed under another key",
                instead="restore its file; without it this release cannot be resumed, and its loss stays spent",
                where=Place(file=str(self.path(release))),
            )
        return Confidential(f"secret of release {release}", _xor(body, self._pad(release, nonce)))

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


def _read_private(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(4096)
    except OSError:
        raise UnsafeKey(
            f"the {name} cannot be read",
            why=f"'{path}' is not there, or not yours to read",
            instead="name the file that was made with the ledger, as its owner",
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
