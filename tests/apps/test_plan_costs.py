"""`dualmandate plan` says what publishing takes, saves none of it, and saves no plan that has no room."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.publication.test_costs import written

if TYPE_CHECKING:
    from tests.apps.conftest import Command


def test_what_it_takes_is_printed_and_not_saved(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    monkeypatch.chdir(written(tmp_path).parent)
    outcome = command("plan", "program.toml", "--out", "report", "--json")
    assert outcome.status == 0, outcome.err
    taken = outcome.document["publishing"]
    assert 0 < taken["seconds"] < 100
    assert 4e8 < taken["memory"] < 1e9
    assert 1e5 < taken["disk"] < 1e6
    saved = json.loads((tmp_path / "report" / "plan.json").read_text(encoding="utf-8"))
    assert "publishing" not in saved
    assert "publishing takes about" in command("plan", "program.toml").out
    # Who keeps what was printed has the same plan.
    (tmp_path / "report" / "plan.json").write_text(json.dumps(outcome.document), encoding="utf-8")
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    assert command("ledger", "open", "people", "--unit", "person", "--cap", "rho=9", "--by", "Ann").status == 0
    outcome = command("approve", "report/plan.json", "--by", "Ben", "--json")
    assert outcome.status == 0, outcome.err


def test_a_plan_whose_release_has_no_room_is_not_saved(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    monkeypatch.chdir(written(tmp_path).parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("usage", (), {"free": 10_000})())
    outcome = command("plan", "program.toml", "--out", "report", "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == "too large"
    assert not (tmp_path / "report" / "plan.json").exists()
