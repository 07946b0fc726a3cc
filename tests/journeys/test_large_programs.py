"""Whatever can be planned can be published: random programs over up to 10¹² cells plan, or are refused.

`DUALMANDATE_PUBLISHED=200` tries so many, as `make bench` does.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Tell
from tests.large_programs import LargeProgram

import dualmandate
from dualmandate.errors import Refusal
from dualmandate.ledger import Account, Approval, Ledger, make_key, open_ledger
from dualmandate.planning.plan import Plan
from dualmandate.population import PrivacyLoss

PROGRAMS = int(os.environ.get("DUALMANDATE_PUBLISHED", "20"))
BATCHES = 4
CLOSE = 1e-9  # relative


@pytest.fixture(autouse=True)
def nothing_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits end soon, and what they do to errors is not simulated: most of the time, and not asked here."""
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_SIMULATED", 0)
    monkeypatch.setattr("dualmandate.publication.consistency.histogram_fit.MOST_STEPS", 50)


def ledger_of(folder: Path, plan: Plan) -> Ledger:
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    cap = PrivacyLoss(Fraction(10**9), plan.charge.privacy_measure)
    ledger.open_account(Account("people", "person", cap), by="Ann")
    ledger.approve(Approval("people", plan.digest, plan.charge, "person", by="Ben"))
    return ledger


def check_kept(folder: Path, plan: Plan) -> None:
    """It is published, no estimate is less precise than was planned, and the files are not much larger than was said.

    They may be far smaller: where nearly all numbers of a large table are 0, they take next to no room.
    """
    source, ledger = plan.program.source, ledger_of(folder, plan)
    assert source is not None
    release = dualmandate.publish(plan, source, ledger, out=folder / "out", by="Eve", unchecked=True)
    together = release.facts["estimated_together"]
    for table in plan.tables:
        stated = float(np.sqrt(np.mean(release.published(table.table).standard_errors ** 2)))
        promised = table.root_mean_squared_error
        assert stated <= promised * (1 + CLOSE), table.table
        assert together or stated == pytest.approx(promised, rel=CLOSE), table.table
    cost = plan.publishing
    assert cost is not None
    on_disk = sum(file.stat().st_size for file in release.folder.rglob("*") if file.is_file())
    assert on_disk < 4 * cost.disk


@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_plans_is_published(batch: int, tmp_path: Path, tell: Tell) -> None:
    kept, seeds = 0, range(batch, PROGRAMS, BATCHES)
    for seed in seeds:
        folder, program = tmp_path / str(seed), LargeProgram(np.random.default_rng(seed))
        folder.mkdir()
        (folder / "program.toml").write_text(program.text(), encoding="utf-8")
        (folder / "data.csv").write_text(program.records(), encoding="utf-8")
        try:
            plan = dualmandate.load(folder / "program.toml").plan()
        except Refusal:
            continue
        try:
            check_kept(folder, plan)
        except Exception as error:
            error.add_note(f"the program of seed {seed}")
            raise
        kept += 1
    tell(f"random programs over up to 10¹² cells: {kept} of {len(seeds)} planned, and published", tried=len(seeds))
    assert kept >= len(seeds) / 2
