"""Replies that were given, by the `Idempotency-Key` of their requests: whoever sends one again gets the same again.

A question needs none: asked again it is free. A key makes the reply the same too, with what it had cost; and a request
for more that is sent twice is one request. Replies are kept beside the ledger, for its owner alone, for some days.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dualmandate.errors import InvalidRequest, ReleaseConflict
from dualmandate.ledger.durable import alone_in, make_folder, write_durably

FOLDER = "replies"  # beside the ledger
DAYS = 7
LONGEST_KEY = 200


@dataclass(frozen=True)
class KeptReply:
    """What was replied: a status, a kind of content, and the content."""

    status: int
    media_type: str
    body: bytes


@dataclass(frozen=True)
class ReplyFolder:
    """The replies of all workers."""

    folder: Path

    def once(self, caller: str, key: str, asked: bytes, reply: Callable[[], KeptReply]) -> KeptReply:
        """The reply to this request: the one that was given, or a new one. Refusals are not kept."""
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise InvalidRequest(
                "an Idempotency-Key that cannot be one",
                why=f"it is a word of 1 to {LONGEST_KEY} printable characters",
                instead="make a new UUID for each request, and send it again with each retry",
            )
        name = hashlib.sha256(json.dumps([caller, key]).encode()).hexdigest()
        digest = hashlib.sha256(asked).hexdigest()
        shard = self.folder / name[:2]
        make_folder(self.folder)
        make_folder(shard)
        with alone_in(shard):
            path = shard / f"{name}.json"
            kept = _read(path)
            if kept is None:
                made = reply()
                content = {"asked": digest, "status": made.status, "media_type": made.media_type}
                write_durably(path, json.dumps({**content, "body": made.body.decode()}).encode())
                return made
        if kept["asked"] != digest:
            raise ReleaseConflict(
                "an Idempotency-Key that stood for another request",
                why="one key is one request, so that a retry is told from a new one",
                instead="make a new key for a new request",
            )
        return KeptReply(int(str(kept["status"])), str(kept["media_type"]), str(kept["body"]).encode())

    def forget(self, *, now: float | None = None) -> None:
        """Remove replies that are older than some days; nobody retries for so long."""
        before = (time.time() if now is None else now) - DAYS * 86_400
        for path in self.folder.glob("*/*.json"):
            try:
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)
            except OSError:
                continue


def _read(path: Path) -> dict[str, object] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return (
        document if isinstance(document, dict) and {"asked", "status", "media_type", "body"} <= set(document) else None
    )
