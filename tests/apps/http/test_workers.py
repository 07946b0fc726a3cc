"""Several workers on one account: nothing is overspent, and a worker that is killed leaves nothing unaccounted."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from tests.apps.http.conftest import put_project
from tests.conftest import Tell
from tests.ledger.conftest import postgres_server, postgres_url

from dualmandate.apps.http.keys import KEYS_FILE, KeyRing
from dualmandate.client import Client
from dualmandate.errors import BudgetExceeded
from dualmandate.ledger import Ledger, ReleaseState, Scope

__all__ = ["postgres_server", "postgres_url"]  # fixtures
FULL = os.environ.get("DUALMANDATE_KILLS") == "full"
CLIENTS, WORKERS = (64, 3) if FULL else (8, 3)
ASKED, ADMITTED = (10_000, 6_000) if FULL else (20, 12)
KILLS = 100 if FULL else 3


@contextmanager
def listening(folder: Path, workers: int) -> Iterator[tuple[str, int]]:
    """`dualmandate serve` in a process of its own; its address and its number."""
    command = [str(Path(sys.executable).with_name("dualmandate")), "serve", "--port", "0", "--workers", str(workers)]
    more = ["--json", "--requests-a-minute", "1000000", "--seconds", "600"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([*command, *more], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            text = ""
            for line in process.stdout:
                text += line
                if line == "}\n":
                    break
            yield json.loads(text)["address"], process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(600) == 0  # it was asked to stop, and finished what had begun


def questions(count: int) -> list[dict[str, object]]:
    """As many questions, no two the same."""
    found: list[dict[str, object]] = []
    for ward in ("north", "south"):
        for low in range(100):
            for high in range(low + 1, 101):
                found.append({"statistic": "count", "where": {"ward": [ward], "income": {"from": low, "to": high}}})
                if len(found) == count:
                    return found
    raise AssertionError("more questions than there are")


def keys_of(folder: Path, count: int) -> list[str]:
    ring = KeyRing(folder / ".dualmandate" / KEYS_FILE)
    return [ring.make(f"user {number}", "analyst", by="Ben")[1] for number in range(count)]


def check_accounted(folder: Path, ledger: Ledger, *, loss: Fraction, answered: set[str]) -> None:
    """Every answer is a settled release with its file, and nothing else was spent."""
    ledger.verify()
    settled = {each.name for each in ledger.releases() if each.state is ReleaseState.SETTLED}
    assert answered <= settled
    left = [each for each in ledger.releases() if each.name not in settled]
    assert ledger.spent("residents") == loss * len(ledger.releases())
    for entry in ledger.releases():
        if entry.name in settled:
            kept = (folder / "answers" / f"{entry.name}.json").read_bytes()
            assert hashlib.sha256(kept).hexdigest() == entry.written_digest
    assert not left, "whoever asks again takes up what was left"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.postgres)], ids=["sqlite", "postgresql"]
)
def test_many_clients_and_workers_spend_exactly_the_cap(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, tell: Tell
) -> None:
    place = request.getfixturevalue("postgres_url") if kind == "PostgreSQL" else None
    loss = Fraction(1, 1000)
    ledger = put_project(tmp_path, place, cap=str(ADMITTED * loss), user=None)
    keys, asked = keys_of(tmp_path, CLIENTS), questions(ASKED)
    outcomes: Counter[str] = Counter()
    answered: set[str] = set()
    with listening(tmp_path, WORKERS) as (address, _), ThreadPoolExecutor(CLIENTS) as pool:

        def ask(number: int) -> str:
            with Client(address, keys[number % CLIENTS], patience=3600) as client:
                try:
                    answered.add(client.ask("town", asked[number], spend=str(loss)).release)
                except BudgetExceeded:
                    return "refused"
                return "answered"

        outcomes.update(pool.map(ask, range(ASKED)))
    assert outcomes == {"answered": ADMITTED, "refused": ASKED - ADMITTED}
    assert len(answered) == ADMITTED
    assert ledger.spent("residents") == ADMITTED * loss
    assert ledger.remaining("residents") == 0
    check_accounted(tmp_path, ledger, loss=loss, answered=answered)
    users = [ledger.spent("residents", Scope.USER, f"user {number}") for number in range(CLIENTS)]
    assert sum(users) == ADMITTED * loss
    tell(f"{CLIENTS} clients, {WORKERS} workers, {kind}: {ASKED:,} questions, exactly {ADMITTED:,} answered", ASKED)


@pytest.mark.slow
def test_one_question_of_many_at_once_is_paid_once(tmp_path: Path) -> None:
    ledger = put_project(tmp_path, cap="1", user=None)
    keys = keys_of(tmp_path, 8)
    [question] = questions(1)
    with listening(tmp_path, 2) as (address, _), ThreadPoolExecutor(8) as pool:

        def ask(key: str) -> tuple[str, str | None]:
            with Client(address, key) as client:
                answer = client.ask("town", question, spend="1/10")
                return answer.release, answer.spent

        found = list(pool.map(ask, keys))
    assert Counter(found) == {("residents-1", None): 7, ("residents-1", "1/10"): 1}
    assert ledger.spent("residents") == Fraction(1, 10)


def children(parent: int) -> list[int]:
    """The worker processes of a service: those that python spawned for it, without the tracker of their resources."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


@pytest.mark.slow
def test_a_killed_worker_leaves_nothing_unaccounted(tmp_path: Path, tell: Tell) -> None:
    """Workers are killed while they answer; clients ask again, as clients do, and each question is paid once."""
    loss = Fraction(1, 1000)
    ledger = put_project(tmp_path, cap="100", user=None)
    keys, asked = keys_of(tmp_path, 4), questions(KILLS * 5)
    answered: set[str] = set()
    left, killed = iter(range(len(asked))), 0
    with listening(tmp_path, 2) as (address, parent):

        def go_on(key: str) -> None:
            with Client(address, key, patience=3600) as client:
                for number in left:
                    answered.add(client.ask("town", asked[number], spend=str(loss)).release)

        threads = [threading.Thread(target=go_on, args=(key,)) for key in keys]
        for thread in threads:
            thread.start()
        while killed < KILLS and any(thread.is_alive() for thread in threads):
            entries = ledger.head().sequence
            while ledger.head().sequence < entries + 11 and any(thread.is_alive() for thread in threads):
                threads[0].join(0.02)  # until an answer and a half have been entered since the last kill
            workers = children(parent)
            if workers:
                os.kill(workers[killed % len(workers)], signal.SIGKILL)
                killed += 1
        for thread in threads:
            thread.join()
    assert killed == KILLS
    assert len(answered) == len(asked)
    check_accounted(tmp_path, ledger, loss=loss, answered=answered)
    tell(f"{killed} landed kills of workers: {len(answered)} questions, each paid once")
