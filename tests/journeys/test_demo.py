"""`dualmandate demo`: what the Makefile runs on a clean clone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.journeys.conftest import Typed


@pytest.mark.slow
def test_the_demo_writes_a_report_and_runs_again_without_losing_anything(typed: Typed, tmp_path: Path) -> None:
    first = typed("demo")
    assert first.returncode == 0, first.stderr
    assert "published: release school-children-1, at a loss of epsilon 2.4442 of each child" in first.stdout
    assert "approved, here by the demo itself" in first.stdout
    report = tmp_path / "demo" / "report"
    choice = json.loads((report / "plan.json").read_text(encoding="utf-8"))["choice"]
    assert choice["epsilon"] == pytest.approx(2.444299, abs=1e-6)
    opened = next(line.strip() for line in first.stdout.splitlines() if line.strip().endswith("dossier.html"))
    page = next(line.split()[-1] for line in first.stdout.splitlines() if line.startswith("to open:"))
    assert (tmp_path / page).is_file()
    block, release = first.stdout.split("Last, it was attacked.")[1].split("the loss was computed again")
    assert "seven people: 1 a place" in block
    assert "not above the claimed epsilon = 2.4442: 2.4442 epsilon" in " ".join(release.split())
    assert "rebuilt no records better than a guess" in " ".join(release.split())
    assert "The claim, epsilon = 2.4442, was not contradicted" in " ".join(release.split())
    assert "100 %" not in release
    attacked = next(line.strip() for line in first.stdout.splitlines() if line.strip().endswith("audit.html"))
    assert "lower bound on risk" in (tmp_path / attacked).read_text(encoding="utf-8")
    pictured = next(line.strip() for line in first.stdout.splitlines() if line.strip().endswith(".png"))
    assert (tmp_path / opened).is_file()
    assert (tmp_path / pictured).read_bytes().startswith(b"\x89PNG")

    program = tmp_path / "demo" / "program.toml"
    original = program.read_text(encoding="utf-8")
    program.write_text(original + "# my remark\n", encoding="utf-8")
    second = typed("demo", "--json")
    assert second.returncode == 0, second.stderr
    document = json.loads(second.stdout)
    assert (document["schema"], document["open"], document["choice"]) == ("demo/1", page, choice)
    assert (document["report"], document["audit"]) == (opened, attacked)
    assert document["publication"]["remaining"]["exact"] == "37779/5000"  # the same release, spent once
    assert program.read_text(encoding="utf-8") == original
    (kept,) = document["kept"]
    assert (tmp_path / kept).read_text(encoding="utf-8") == original + "# my remark\n"
    [anchor] = (tmp_path / "demo").glob("children.parquet.*.anchor")
    assert sorted(path.name for path in (tmp_path / "demo").iterdir() if path != anchor) == [
        ".dualmandate",
        ".gitignore",
        "audit",
        "block",
        "children.parquet",
        "counts.csv",
        "districts.csv",
        "dualmandate.toml",
        "law.toml",
        "paid_before.csv",
        "program.changed-1.toml",
        "program.schema.json",
        "program.toml",
        "releases",
        "report",
        "school_districts.csv",
        "states.csv",
    ]
