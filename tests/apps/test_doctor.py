from __future__ import annotations

import hashlib
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dualmandate.apps import doctor

if TYPE_CHECKING:
    from tests.apps.conftest import Command


def fake_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_everything_is_reported_in_one_document(command: Command) -> None:
    outcome = command("doctor", "--json")
    assert outcome.status == 0
    document = outcome.document
    assert document["schema"] == "doctor/1"
    assert set(document) == {
        "schema", "version", "python", "system", "packages", "installed", "programs", "project", "settings", "findings",
    }  # fmt: skip
    numpy = next(package for package in document["packages"] if package["name"] == "numpy")
    assert numpy["version"]
    here = document["installed"]
    assert len({each["name"].lower() for each in here}) == len(here) > len(document["packages"]) // 2
    [theirs] = [each for each in here if each["name"] == "numpy"]
    record = next(Path(str(each.locate())) for each in metadata.files("numpy") or () if each.name == "RECORD")
    assert theirs == {
        "name": "numpy",
        "version": numpy["version"],
        "sha256": hashlib.sha256(record.read_bytes()).hexdigest(),
    }
    assert [program["name"] for program in document["programs"]] == ["Java", "PostgreSQL", "OpenSSH", "Chromium"]
    assert {setting["name"]: setting["source"] for setting in document["settings"]} == {
        "out": "default",
        "data": "default",
        "ledger": "default",
        "key_file": "default",
        **dict.fromkeys(("anchor_file", "anchor_append", "anchor_database", "anchor_command"), "default"),
        **dict.fromkeys(("approvers", "publishers", "two_persons"), "default"),
        "peers": "default",
        "debug": "default",
    }


def test_words_name_the_source_of_each_setting(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dualmandate.toml").write_text('data = "real"\n', encoding="utf-8")
    monkeypatch.setenv("DUALMANDATE_OUT", "report")
    outcome = command("doctor")
    assert outcome.status == 0
    assert "variable: DUALMANDATE_OUT" in outcome.out
    assert f"project file: {tmp_path / 'dualmandate.toml'}, line 1" in outcome.out
    assert f"settings (project: {tmp_path})" in outcome.out


def test_programs_are_found_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(tmp_path / "bin", "java", "echo 'openjdk version \"11.0.2\" 2019' >&2")
    fake_program(tmp_path / "bin", "chromium", "echo Chromium 1.2.3 for tests")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/nowhere")
    found = {program.name: program for program in doctor.examine(tmp_path).programs}
    assert found["Java"].version == "11.0.2"
    assert found["Chromium"].version == "1.2.3"
    assert "Java 11.0.2 is older than 17" in doctor.examine(tmp_path).findings


def test_a_program_that_hangs_or_fails_is_reported_not_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_program(tmp_path / "bin", "java", "exec /bin/sleep 60")
    fake_program(tmp_path / "bin", "chromium", "exit 3")
    monkeypatch.setattr(doctor, "PATIENCE", 0.2)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = {program.name: program for program in doctor.examine(tmp_path).programs}
    assert (found["Java"].path, found["Java"].version) == (str(tmp_path / "bin" / "java"), None)
    assert found["Chromium"].version is None


def test_a_misspelled_variable_is_a_finding(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALMANDATE_UOT", "x")
    outcome = command("doctor", "--json")
    assert outcome.status == 0
    assert any("DUALMANDATE_UOT" in finding for finding in outcome.document["findings"])


def test_a_broken_project_file_is_refused_with_its_place(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dualmandate.toml").write_text("out = 1\n", encoding="utf-8")
    outcome = command("doctor", "--json")
    assert outcome.status == 2
    assert outcome.document["where"]["line"] == 1
