from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dualmandate import gallery

if TYPE_CHECKING:
    from tests.apps.conftest import Command


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", gallery.names())
def test_a_program_folder_with_its_project(command: Command, tmp_path: Path, name: str) -> None:
    outcome = command("init", name, "--json")
    assert outcome.status == 0
    document = outcome.document
    assert document["schema"] == "init/1"
    assert document["files"] == sorted(listing(tmp_path / name))
    after = {"survey": "preferences survey/survey.toml", "block": "audit block/tables.toml"}
    assert document["next"] == f"dualmandate {after.get(name, f'plan {name}/program.toml --out {name}/report')}"
    assert document["next"] in outcome.err
    own = "tables.toml" if name == "block" else "program.toml"
    assert {own, "dualmandate.toml", ".gitignore"} <= set(document["files"])
    ignored = (tmp_path / name / ".gitignore").read_text(encoding="utf-8")
    records = {
        "national_accounts": "establishments.parquet",
        "redistricting": "persons.parquet",
        "survey": "answers.csv",
        "title_i": "children.parquet",
    }.get(name)
    assert ignored == ".dualmandate/\n" + (f"{records}\n" if records else "")
    assert records is None or (tmp_path / name / records).exists()


def test_its_help_lists_the_worked_programs_with_a_line_each(command: Command) -> None:
    lines = command("init", "--help").out.splitlines()
    listed = [
        line.split()[0]
        for line in lines
        if line.startswith("  ") and line.split()[:1] and line.split()[0] in gallery.names()
    ]
    assert listed == sorted(gallery.names())


def test_the_project_file_it_writes_can_be_read(command: Command, tmp_path: Path) -> None:
    command("init", "blank")
    assert command("doctor", "--json").document["project"] is None
    from dualmandate.apps.settings import settings

    written = tmp_path / "blank" / "dualmandate.toml"
    assert settings(written.parent, {})["out"].source == "default"
    written.write_text(written.read_text(encoding="utf-8").replace("# out", "out"), encoding="utf-8")
    assert settings(written.parent, {})["out"].path == written.parent / "report"


def test_nothing_is_overwritten(command: Command, tmp_path: Path) -> None:
    assert command("init", "blank", "mine").status == 0
    before = listing(tmp_path)
    outcome = command("init", "blank", "mine", "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == "cannot write"
    assert "exists already" in outcome.document["what"]
    assert listing(tmp_path) == before


def test_one_file_in_the_way_is_enough(command: Command, tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text("mine", encoding="utf-8")
    assert command("init", "blank", ".").status == 2
    assert listing(tmp_path) == {"program.toml": b"mine"}


def test_a_folder_with_other_files_keeps_them(command: Command, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc", encoding="utf-8")
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    assert command("init", "blank", ".").status == 0
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "*.pyc\n.dualmandate/\n"
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "mine"


def test_a_program_within_a_project_joins_it(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    outcome = command("init", "blank", "--json")
    assert outcome.document["project"] == str(tmp_path)
    assert "dualmandate.toml" not in outcome.document["files"]
    assert f"belongs to the project in {tmp_path}" in outcome.err


def test_an_unknown_program_is_refused_with_the_list(command: Command, tmp_path: Path) -> None:
    outcome = command("init", "titel_i", "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == "unknown name"
    assert "title_i" in outcome.document["instead"]
    assert all(name in outcome.document["why"] for name in gallery.names())
    assert listing(tmp_path) == {}


def test_a_file_in_place_of_the_folder_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert command("init", "blank", "file").status == 2
    assert listing(tmp_path) == {"file": b"mine"}


def test_a_folder_name_with_spaces_is_quoted_in_the_next_command(command: Command) -> None:
    assert "dualmandate plan 'my program/program.toml'" in command("init", "blank", "my program").out
