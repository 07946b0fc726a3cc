"""A publication whose ledger is PostgreSQL: the same steps, the same loss, killed midway, or left by its server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.publication.crashes import town
from tests.publication.crashes.kills import AFTER
from tests.publication.crashes.test_kills import (
    FULL,
    KILLS,
    LEAST,
    PROCESSES,
    STATES,
    Tell,
    by_state,
    counted,
    kill_commands,
)

from dualmandate.ledger import Ledger, ReleaseState
from dualmandate.publication import publish as publishing
from dualmandate.publication.reserving import open_records

pytestmark = pytest.mark.postgres
COST = Fraction(town.EPSILON)


@pytest.fixture
def ledger(folder: Path, postgres_url: str) -> Ledger:
    """The town's account and approval in PostgreSQL instead of a file."""
    return moved(folder, postgres_url)


@pytest.fixture
def elsewhere(prepared: Path, postgres_url: str) -> Iterator[Path]:
    """The same in a folder to be copied, never published, beside the one whose ledger is a file."""
    copy = prepared.with_name(f"{prepared.name}-in-postgres")
    shutil.copytree(prepared, copy)
    moved(copy, postgres_url)
    yield copy
    shutil.rmtree(copy)


def moved(folder: Path, url: str) -> Ledger:
    shutil.rmtree(folder / town.STATE)
    town.move_ledger(folder, url)
    town.open_and_approve(folder)
    return town.the_ledger(folder)


@pytest.mark.slow
def test_a_kill_at_every_commit_or_operation_is_survived(root: Path, elsewhere: Path, tell: Tell) -> None:
    landed = counted(root, "every", elsewhere, 1) if FULL else counted(root, "commits", elsewhere)
    what = "durable operations" if FULL else "commits"
    tell(f"kills of a publication at its {what}, ledger in PostgreSQL: {by_state(landed)}")
    assert set(landed) == STATES
    assert landed.total() >= (200 if FULL else len(AFTER) - 1)


@pytest.mark.slow
def test_kills_by_the_clock_are_survived(root: Path, elsewhere: Path, tell: Tell) -> None:
    kills, least = (KILLS, LEAST) if FULL else (24, 2)
    landed = counted(root, "timed", elsewhere, kills, least)
    tell(f"kills of a publication by the clock, ledger in PostgreSQL: {by_state(landed)}")
    assert landed.total() >= kills
    assert all(landed[state] >= least for state in STATES)


@pytest.mark.slow
def test_killed_processes_are_resumed(elsewhere: Path, tell: Tell) -> None:
    landed = kill_commands(elsewhere, PROCESSES)
    tell(f"kills of `dualmandate publish`, ledger in PostgreSQL: {by_state(landed)}")
    assert landed.total() == PROCESSES


def renamed(postgres_server: Path, old: str, new: str) -> None:
    with psycopg.connect(host=str(postgres_server), user="postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{old}" RENAME TO "{new}"')


@pytest.mark.parametrize(
    "gone_at", [ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED]
)
def test_a_ledger_that_goes_away_is_taken_up_when_it_is_back(
    folder: Path, ledger: Ledger, postgres_server: Path, monkeypatch: pytest.MonkeyPatch, gone_at: ReleaseState
) -> None:
    database = ledger._store.engine.url.database
    assert database is not None
    reach = publishing._reach

    def opened(*about: Any, **by: Any) -> None:
        if gone_at is ReleaseState.OPENED:
            renamed(postgres_server, database, f"{database}_away")
        open_records(*about, **by)

    def reached(work: Any, release: str, state: ReleaseState, digest: str | None = None) -> None:
        if state is gone_at:
            renamed(postgres_server, database, f"{database}_away")
        reach(work, release, state, digest)

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_reach", reached)
        patch.setattr(publishing, "open_records", opened)
        status, said = town.typed(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve")
    renamed(postgres_server, f"{database}_away", database)
    town.assert_silent(said)
    assert (status, "Traceback" in said) == (2, False), said
    [begun] = ledger.releases()
    assert begun.state.is_active
    town.done(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", "--resume", begun.name)
    [release] = ledger.releases()
    assert (release.state, release.secret_destroyed) == (ReleaseState.SETTLED, True)
    assert ledger.spent(town.ACCOUNT) == COST
    assert [path.name for path in (folder / town.OUT).iterdir()] == [release.name]
    town.done(folder, "ledger", "verify", "--anchor", town.OUT)
    town.assert_silent_folder(folder)
