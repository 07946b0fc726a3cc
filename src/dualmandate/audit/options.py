"""What may be asked of an audit: declared once, for Python, the command and the targets."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualmandate.audit.effort import SECONDS, Effort
from dualmandate.audit.finding import Reference

AUDIT_KEY = b"an audit of dualmandate"  # The key of the draws of audits alone; a release has a secret of its own.


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class AuditOptions:
    """How an audit is done: what it is judged by, how long a question may take, and the key of its own draws.

    `confidential` is a file of the true records, `tabulated` one of the records that were tabulated (after swapping,
    say): whatever is judged by them is internal.
    """

    confidential: Path | None = None
    tabulated: Path | None = None
    place: str | None = None  # the attribute that tells places apart, in a program or a release
    seconds: float = SECONDS  # that a solver may take for one question
    beside: tuple[Path, ...] = ()  # other releases, whose noise is compared
    outside: Path | None = None  # a file of named people, which records are linked to
    secret: tuple[str, ...] = ()  # what an attacker is after; else what the outside file does not say
    person: str | None = None  # the column that names people
    link: str = "exact"  # how they are linked: "exact" or "splink"
    key: bytes = field(default=AUDIT_KEY, repr=False)
    progress: Callable[[str], None] | None = field(default=None, compare=False)  # is told what is being done
    counted: Callable[[str, int, int], None] | None = field(default=None, compare=False)  # what, done, of how many
    workers: int = field(default_factory=processors)

    @classmethod
    def of(cls, **stated: Any) -> AuditOptions:
        """From keywords as people write them: files by their names, one secret as a word, None for what is not said."""
        given = {name: value for name, value in stated.items() if value is not None}
        for name in given.keys() & {"confidential", "tabulated", "outside"}:
            given[name] = Path(given[name])
        given["beside"] = tuple(Path(each) for each in given.get("beside", ()))
        secret = given.get("secret", ())
        given["secret"] = (secret,) if isinstance(secret, str) else tuple(secret)
        return cls(**given)

    @property
    def effort(self) -> Effort:
        return Effort(self.seconds, self.workers, self.progress, self.counted)

    @property
    def files(self) -> dict[Reference, Path]:
        given: dict[Reference, Path | None] = {"tabulated": self.tabulated, "confidential": self.confidential}
        return {reference: path for reference, path in given.items() if path is not None}
