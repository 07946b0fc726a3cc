"""A publication whose ledger is PostgreSQL: the same steps, the same loss, and a server that goes away midway."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.publication.crashes import town

from dualmandate.ledger import Ledger, State, open_ledger, read_key
from dualmandate.publication import act

pytestmark = pytest.mark.postgres
COST = Fraction(town.EPSILON)


@pytest.fixture
def ledger(folder: Path, postgres_url: str) -> Ledger:
    """The town's account and approval in PostgreSQL instead of a file."""
    state = folder / town.STATE
    shutil.rmtree(state)
    (folder / "dualmandate.toml").write_text(f'schema = 1\nledger = "{postgres_url}"\n', encoding="utf-8")
    town.open_and_approve(folder)
    return open_ledger(postgres_url, read_key(state / "key"), folder=state)


def renamed(postgres_server: Path, old: str, new: str) -> None:
    with psycopg.connect(host=str(postgres_server), user="postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{old}" RENAME TO "{new}"')


@pytest.mark.parametrize("gone_at", [State.OPENED, State.MEASURED, State.WRITTEN, State.SETTLED])
def test_a_ledger_that_goes_away_is_taken_up_when_it_is_back(
    folder: Path, ledger: Ledger, postgres_server: Path, monkeypatch: pytest.MonkeyPatch, gone_at: State
) -> None:
    database = ledger._store.engine.url.database
    assert database is not None
    reach = act._reach

    def reached(work: Any, release: str, state: State, digest: str | None = None) -> None:
        if state is gone_at:
            renamed(postgres_server, database, f"{database}_away")
        reach(work, release, state, digest)

    with monkeypatch.context() as patch:
        patch.setattr(act, "_reach", reached)
        status, said = town.typed(folder, "publish", town.PLAN, "--by", "Eve")
    renamed(postgres_server, f"{database}_away", database)
    town.assert_silent(said)
    assert (status, "Traceback" in said) == (2, False), said
    [begun] = ledger.releases()
    assert begun.state.is_active
    town.done(folder, "publish", town.PLAN, "--by", "Eve", "--resume", begun.name)
    [release] = ledger.releases()
    assert (release.state, release.secret_destroyed) == (State.SETTLED, True)
    assert ledger.spent(town.ACCOUNT) == COST
    assert [path.name for path in (folder / town.OUT).iterdir()] == [release.name]
    town.done(folder, "ledger", "verify", "--anchor", town.OUT)
    town.assert_silent_folder(folder)
