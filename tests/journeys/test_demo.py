"""`dualmandate demo`: what the Makefile runs on a clean clone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.journeys.conftest import Typed


def test_the_demo_writes_a_report_and_says_what_it_did_not_do(typed: Typed, tmp_path: Path) -> None:
    ran = typed("demo")
    assert ran.returncode == 0, ran.stderr
    assert "publication is not part of this version" in ran.stdout
    report = tmp_path / "demo" / "report"
    document = json.loads((report / "plan.json").read_text(encoding="utf-8"))
    assert document["choice"]["epsilon"] == pytest.approx(2.527644, abs=1e-6)
    opened = next(line.strip() for line in ran.stdout.splitlines() if line.strip().endswith(".html"))
    assert (tmp_path / opened).is_file()
    assert any(report.rglob("*.png"))


def test_the_demo_runs_again_and_loses_nothing(typed: Typed, tmp_path: Path) -> None:
    first = typed("demo", "--out", "shown", "--json")
    program = tmp_path / "shown" / "program.toml"
    original = program.read_text(encoding="utf-8")
    program.write_text(original + "# my remark\n", encoding="utf-8")
    second = typed("demo", "--out", "shown", "--json")
    assert second.returncode == 0, second.stderr
    assert program.read_text(encoding="utf-8") == original
    (kept,) = json.loads(second.stdout)["kept"]
    assert (tmp_path / kept).read_text(encoding="utf-8") == original + "# my remark\n"
    assert json.loads(first.stdout)["choice"] == json.loads(second.stdout)["choice"]
    assert json.loads(first.stdout)["kept"] == []
