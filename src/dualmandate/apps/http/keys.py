"""Keys to the service: who may come in, in which role, and for which group and purposes they spend.

A key is shown once, when it is made. What is kept is its Argon2 hash, beside the ledger, in a file for its owner alone.
A key is `dm_IDENTIFIER_SECRET`; its secret has 256 random bits, so that the hash need not be slow to be safe: it only
keeps who reads a backup from coming in. A person acts under the name of the key and no other.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from dualmandate.errors import InvalidRequest, Place, UnknownName, UnsafeKey
from dualmandate.ledger.chain import read_private
from dualmandate.ledger.composition import checked_name
from dualmandate.ledger.durable import alone_in, make_folder, write_durably

KEYS_FILE = "api-keys.json"  # beside the ledger
SCHEMA = "api-keys-kept/1"
MOST_BYTES = 2**24
_KEY = re.compile(r"dm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_HASHER = PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1)  # of 256 random bits: see above


class AccessRole(StrEnum):
    """What a key opens. Nobody has all of it: who hands out keys asks nothing, who decides on budgets spends none."""

    ANALYST = "analyst"
    CURATOR = "curator"
    AUDITOR = "auditor"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True)
class ApiKey:
    """A key without its secret: whose it is, and what it opens."""

    identifier: str
    name: str  # the user of the ledger
    role: AccessRole
    group: str | None
    purposes: tuple[str, ...]
    made_at: str
    made_by: str
    kept: str = field(repr=False)  # the hash
    revoked_at: str | None = None

    def document(self) -> dict[str, object]:
        """As the file keeps it."""
        return {**vars(self), "role": str(self.role), "purposes": list(self.purposes)}


class KeyRing:
    """The keys of a service, in a file that every worker reads anew when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock, self._keys = Lock(), dict[str, ApiKey]()
        self._read: tuple[int, ...] | None = None  # the state of the file that was read
        self._seen: dict[bytes, str] = {}  # an HMAC of a good key → its identifier: hashing is done once a process
        self._salt = secrets.token_bytes(32)

    def all(self) -> tuple[ApiKey, ...]:
        """Every key, also revoked ones, in the order of making."""
        return tuple(self._current().values())

    def make(
        self, name: str, role: AccessRole | str, *, by: str, group: str | None = None, purposes: tuple[str, ...] = ()
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which nobody can read again."""
        checked_name(name, "the holder of a key")
        checked_name(by, "who makes a key")
        for each in (*(() if group is None else (group,)), *purposes):
            checked_name(each, "a group or purpose")
        identifier, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        about = name, AccessRole(role), group, tuple(purposes), _now(), by
        made = ApiKey(identifier, *about, kept=_HASHER.hash(secret))
        make_folder(self.path.parent)
        with alone_in(self.path.parent):
            self._write({**self._load(), identifier: made})
        return made, f"dm_{identifier}_{secret}"

    def revoke(self, identifier: str) -> ApiKey:
        """Let a key open nothing from now on; its entry stays, with the time."""
        if not self.path.exists():
            raise _unknown(identifier)
        with alone_in(self.path.parent):
            found = self._load()
            if identifier not in found:
                raise _unknown(identifier)
            if found[identifier].revoked_at is None:
                self._write({**found, identifier: replace(found[identifier], revoked_at=_now())})
        return self._current()[identifier]

    def holder(self, key: str) -> ApiKey | None:
        """Whose key this is; None where it opens nothing."""
        matched = _KEY.fullmatch(key)
        found = None if matched is None else self._current().get(matched[1])
        if matched is None or found is None or found.revoked_at is not None:
            return None
        mark = hmac.digest(self._salt, key.encode(), "sha256")
        if self._seen.get(mark) != found.kept:
            try:
                _HASHER.verify(found.kept, matched[2])
            except (Argon2Error, InvalidHashError):
                return None
            self._seen[mark] = found.kept
        return found

    def _current(self) -> Mapping[str, ApiKey]:
        """The keys as the file has them now; read again only where it changed."""
        with self._lock:
            try:
                found = self.path.stat()
            except FileNotFoundError:
                self._keys, self._read = {}, None
                return self._keys
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
            if state != self._read:
                self._keys, self._read = self._load(), state
            return self._keys

    def _load(self) -> dict[str, ApiKey]:
        if not self.path.exists():
            return {}
        content = read_private(self.path, "file of API keys", most=MOST_BYTES)
        try:
            document = json.loads(content)
            if document["schema"] != SCHEMA:
                raise ValueError("another schema")
            return {each["identifier"]: _read(each) for each in document["keys"]}
        except (ValueError, KeyError, TypeError):
            raise UnsafeKey(
                "the file of API keys cannot be read",
                why="it is damaged, or of another version; until it is whole, nobody comes in",
                instead="restore it, or remove it and make new keys",
                where=Place(file=str(self.path)),
            ) from None

    def _write(self, keys: Mapping[str, ApiKey]) -> None:
        document = {"schema": SCHEMA, "label": "confidential", "keys": [each.document() for each in keys.values()]}
        write_durably(self.path, (json.dumps(document, indent=1) + "\n").encode())


def role_named(text: str) -> AccessRole:
    """A role as it is typed."""
    if text not in set(AccessRole):
        raise InvalidRequest(
            f"a key for the role '{text}'",
            why="a role says which requests a key opens",
            instead=f"state one of {', '.join(AccessRole)}",
        )
    return AccessRole(text)


def _read(document: Mapping[str, Any]) -> ApiKey:
    return ApiKey(**{**document, "role": AccessRole(document["role"]), "purposes": tuple(document["purposes"])})


def _unknown(identifier: str) -> UnknownName:
    return UnknownName(
        f"there is no key '{identifier}'",
        why="a key is known by the digits between dm_ and the second _",
        instead="see which there are: dualmandate keys list",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
