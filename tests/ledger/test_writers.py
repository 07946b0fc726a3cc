"""Eight writers at a cap spend exactly the cap: SQLite here, PostgreSQL on a real server."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection

from dualmandate.errors import LedgerTampered, LedgerUnavailable
from dualmandate.ledger import (
    Account,
    Approval,
    EventKind,
    Head,
    Ledger,
    LedgerKey,
    ReleaseState,
    Request,
    open_ledger,
    storage,
)
from dualmandate.ledger import ledger as module
from dualmandate.population import PrivacyLoss

PLAN = "a1" * 32
THIRD = PrivacyLoss.pure("1/3")
WRITERS = Path(__file__).with_name("writers.py")


def begin(place: str | Path, key: LedgerKey, folder: Path) -> Ledger:
    """An account of 5 ε: fifteen thirds."""
    ledger = open_ledger(place, key, folder=folder, create=True)
    ledger.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    ledger.approve(Approval("school children", PLAN, THIRD, "child", by="Ann"))
    return ledger


def check_that_exactly_the_cap_is_spent(place: str | Path, key: LedgerKey, folder: Path) -> None:
    ledger = begin(place, key, folder)
    command = [sys.executable, str(WRITERS), str(place), str(folder / "key"), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    outcomes = [line.split("\t")[1] for line in result.stdout.splitlines()]
    assert len(outcomes) == 8 * 5
    releases = [outcome for outcome in outcomes if outcome.startswith("school-children-")]
    assert len(set(releases)) == len(releases) == 15
    refused = Counter(outcome for outcome in outcomes if outcome not in releases)
    assert refused == {"release conflict": 7, "budget exceeded": 18}
    assert ledger.spent("school children") == 5
    assert ledger.remaining("school children") == 0
    assert ledger.verify().head.sequence == 2 + len(outcomes)
    assert [found.name for found in ledger.releases()] == [f"school-children-{n + 1}" for n in range(15)]
    assert len({ledger.secret(name).open_for("a test") for name in releases}) == 15


def test_eight_writers_on_sqlite(place: Path, key: LedgerKey, tell: Callable[[str], None]) -> None:
    check_that_exactly_the_cap_is_spent(place, key, place.parent)
    tell("eight writers at a cap, SQLite: exactly the cap")


@pytest.mark.postgres
def test_eight_writers_on_postgres(postgres_url: str, key: LedgerKey, place: Path, tell: Callable[[str], None]) -> None:
    check_that_exactly_the_cap_is_spent(postgres_url, key, place.parent)
    tell("eight writers at a cap, PostgreSQL: exactly the cap")


@pytest.mark.postgres
def test_a_ledger_in_postgres_from_beginning_to_end(postgres_url: str, key: LedgerKey, place: Path) -> None:
    folder = place.parent
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        open_ledger(postgres_url, key, folder=folder)
    ledger = begin(postgres_url, key, folder)
    release = ledger.reserve(Request("school children", PLAN, "2026", THIRD, "child", user="Eve"))
    ledger.advance(release.name, ReleaseState.OPENED, by="Eve")
    ledger.bind(release.name, "c3" * 32, by="Eve")
    for state in (ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED):
        ledger.advance(release.name, state, by="Eve")
    ledger.destroy_secret(release.name, by="Eve")
    again = open_ledger(postgres_url, key, folder=folder)
    assert again.spent("school children") == Fraction(1, 3)
    assert again.events() == ledger.events()
    assert again.events()[-1].kind is EventKind.KEY_DESTROYED
    assert again.verify().anchors == (folder / "ledger.anchor",)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE ledger_entry SET numerator = '500' WHERE sequence = 1", "breaks at entry 1"),
        ("DELETE FROM ledger_entry WHERE sequence = 2", "do not lead to the ledger's head"),
        (
            "DELETE FROM ledger_entry WHERE sequence = 2; "
            "UPDATE ledger_head SET sequence = 1, digest = (SELECT digest FROM ledger_entry WHERE sequence = 1)",
            "has 1 entries, and its anchor knows 2",
        ),
    ],
)
def test_a_changed_ledger_in_postgres_is_noticed(
    postgres_url: str, key: LedgerKey, place: Path, statement: str, words: str
) -> None:
    begin(postgres_url, key, place.parent)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(statement)
    ledger = open_ledger(postgres_url, key, folder=place.parent)
    with pytest.raises(LedgerTampered, match=words):
        ledger.verify()
    with pytest.raises(LedgerTampered, match=words):
        ledger.reserve(Request("school children", PLAN, "2026", THIRD, "child", user="Eve"))


@pytest.mark.postgres
def test_what_postgres_says_is_not_repeated(postgres_url: str, key: LedgerKey, place: Path) -> None:
    ledger = begin(postgres_url, key, place.parent)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("ALTER TABLE ledger_entry ADD CHECK (details NOT LIKE '%canary%')")
    with pytest.raises(LedgerUnavailable) as refusal:
        ledger.reserve(Request("school children", PLAN, "canary", THIRD, "child", user="Eve"))
    assert "canary" not in str(refusal.value)
    assert refusal.value.__suppress_context__
    assert ledger.spent("school children") == 0


@pytest.mark.postgres
def test_a_reader_is_not_alarmed_by_a_writer(
    postgres_url: str, key: LedgerKey, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit after a reader's view was taken moves the anchor past that view: no sign of a lost entry."""
    reader = begin(postgres_url, key, place.parent)
    writer = open_ledger(postgres_url, key, folder=place.parent)
    real = storage.read_head

    def read_while_another_writes(connection: Connection, *, lock: bool = False) -> Head | None:
        head = real(connection, lock=lock)
        monkeypatch.setattr(module, "read_head", real)
        writer.reserve(Request("school children", PLAN, "2026", THIRD, "child", user="Eve"))
        return head

    monkeypatch.setattr(module, "read_head", read_while_another_writes)
    assert reader.spent("school children") == 0
    assert reader.spent("school children") == Fraction(1, 3)
