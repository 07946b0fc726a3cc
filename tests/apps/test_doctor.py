from __future__ import annotations

import base64
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
    lines = [line.rpartition(",")[0] for line in record.read_text(encoding="utf-8").splitlines()]
    theirs_alone = [line for line in lines if line.partition("=")[2] and not line.startswith("../")]
    added = ("/INSTALLER", "/REQUESTED", "/uv_cache.json", ".pyc")
    came = [line for line in theirs_alone if not line.partition(",")[0].endswith(added)]
    assert theirs == {
        "name": "numpy",
        "version": numpy["version"],
        "sha256": hashlib.sha256("\n".join(sorted(came)).encode()).hexdigest(),
        "changed": [],
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


def distribution(folder: Path, *, installer: str, code: str = "x = 1\n") -> Path:
    """A small distribution as an installer leaves it, and its only module."""
    info, module = folder / "small-1.0.dist-info", folder / "small.py"
    info.mkdir(parents=True)
    module.write_text(code, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1.0\n", encoding="utf-8")
    (info / "INSTALLER").write_text(installer, encoding="utf-8")
    script = folder.parent / "bin" / f"small-{installer}"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!{folder}/python\n", encoding="utf-8")
    rows = []
    for path, name in (
        *((path, path.relative_to(folder).as_posix()) for path in (module, *sorted(info.iterdir()))),
        (script, f"../bin/{script.name}"),
    ):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{path.stat().st_size}\n")
    (info / "RECORD").write_text("".join([*rows, "small-1.0.dist-info/RECORD,,\n"]), encoding="utf-8")
    return module


def small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> doctor.InstalledDistribution:
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "distributions", lambda: metadata.MetadataPathFinder.find_distributions(
            metadata.DistributionFinder.Context(path=[str(folder)])
        ))  # fmt: skip
        [found] = doctor.installed_distributions()
    return found


def test_a_hash_is_of_what_came_and_not_of_who_installed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, code in (("pip", "x = 1\n"), ("uv", "x = 1\n"), ("other", "x = 2\n")):
        distribution(tmp_path / name, installer=name, code=code)
    one, two, three = (small(tmp_path / name, monkeypatch) for name in ("pip", "uv", "other"))
    assert one == two
    assert one.changed == ()
    assert three.sha256 != one.sha256


def test_files_that_were_changed_after_they_were_installed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = distribution(tmp_path / "here", installer="pip")
    before = small(tmp_path / "here", monkeypatch)
    module.write_text("x = 'a spy'\n", encoding="utf-8")
    changed = small(tmp_path / "here", monkeypatch)
    assert changed.sha256 == before.sha256  # what was installed
    assert changed.changed == ("small.py",)
    module.unlink()
    assert small(tmp_path / "here", monkeypatch).changed == ("small.py",)
    monkeypatch.setattr(doctor, "installed_distributions", lambda: (changed,))
    assert "small: 1 files are not as installed" in doctor.examine(tmp_path, every_file=True).findings


def test_a_link_to_sources_is_hashed_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    if any(doctor._is_code(file.as_posix()) for file in metadata.files("dualmandate") or ()):
        return  # installed by itself: the list of its files is the one that counts
    lines = doctor._own_files("dualmandate")
    assert any(line.startswith("dualmandate/apps/doctor.py,sha256=") for line in lines)
    before = doctor._installed(metadata.distribution("dualmandate"), "dualmandate").sha256
    monkeypatch.setattr(doctor, "_own_files", lambda name: [*lines, "one more"])
    assert doctor._installed(metadata.distribution("dualmandate"), "dualmandate").sha256 != before
