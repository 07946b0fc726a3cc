"""What the service says of itself: a line of JSON for each request, and numbers for Prometheus.

A line has these fields and no others: no query, no body, no header, no path but that of the route, so that nothing an
analyst writes and nothing the records say gets into a log.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TextIO

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

from dualmandate.apps.output import write
from dualmandate.ledger import Ledger

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where workers add up their numbers, as the library has it
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class LogLine:
    """One request, as the log has it."""

    request: str  # its identifier, which the reply names too
    method: str
    route: str
    status: int
    milliseconds: int
    user: str | None = None
    role: str | None = None
    key: str | None = None  # the identifier of the key
    refusal: str | None = None  # its code
    bug: str | None = None  # the kind of error, and the line of ours where it happened

    def write(self, stream: TextIO | None = None) -> None:
        """One line, with the time."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        write(json.dumps({"at": at, "label": "internal", **said}) + "\n", stream or sys.stderr)


class Metrics:
    """Counts and times of requests and answers, and what accounts have spent."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "dualmandate_requests", "Requests.", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram("dualmandate_request_seconds", "Their seconds.", ["route"], registry=self.registry)
        self.answers = Counter(
            "dualmandate_answers", "Questions: new, kept (free) or refused.", ["outcome"], registry=self.registry
        )

    def text(self, ledger: Ledger) -> bytes:
        """All of it, over all workers, with the accounts as the ledger has them now."""
        registry = self.registry
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + "".join(_account_lines(ledger)).encode()


def _account_lines(ledger: Ledger) -> list[str]:
    """Written here, not as gauges: what an account has spent is one number, whichever worker is asked."""
    lines = []
    told = {"cap": "The cap of an account.", "spent": "What is spent of it.", "remaining": "What is left of it."}
    accounts = ledger.accounts()
    for name, words in told.items():
        lines.append(f"# HELP dualmandate_account_{name} {words}\n# TYPE dualmandate_account_{name} gauge\n")
        for account in accounts:
            found = {"cap": account.cap.amount, "spent": ledger.spent(account.name)}
            amount = ledger.remaining(account.name) if name == "remaining" else found[name]
            labels = f'account="{_quoted(account.name)}",currency="{account.privacy_measure}"'
            lines.append(f"dualmandate_account_{name}{{{labels}}} {float(amount)!r}\n")
    return lines


def _quoted(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
