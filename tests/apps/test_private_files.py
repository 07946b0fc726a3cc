"""What is internal or confidential is for its owner alone under any umask; what a killed process left is removed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.apps.test_audit import FOLDER, RECORDS
from tests.publication.crashes import town

from dualmandate.apps.folder import DRAFT, written_whole
from dualmandate.publication import publish as publishing

if TYPE_CHECKING:
    from tests.apps.conftest import Command

DYING = """\
import os, sys
from pathlib import Path
from dualmandate.apps.folder import written_whole
os.umask(0)
with written_whole(Path(sys.argv[1]), private=True) as draft:
    (draft / "findings").write_text("canary-4711")
    print("ready", flush=True)
    sys.stdin.read()
"""
CORE = """\
import resource, sys
from dualmandate.apps import cli
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
sys.argv = ["dualmandate", "--version"]
try:
    cli.main()
finally:
    print("core", *resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, set[int]]:
    """The modes of the files and of the folders, the folder itself among them."""
    found = [folder, *folder.rglob("*")]
    return {
        "files": {stat.S_IMODE(path.stat().st_mode) for path in found if not path.is_dir()},
        "folders": {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()},
    }


def test_internal_findings_are_for_their_owner(mask: int, command: Command, tmp_path: Path) -> None:
    block, inside, out = tmp_path / "block", tmp_path / "inside", tmp_path / "out"
    block.mkdir()
    for name, text in FOLDER.items():
        (block / name).write_text(text, encoding="utf-8")
    (tmp_path / "records.csv").write_text(RECORDS, encoding="utf-8")
    typed = ("audit", block, "--confidential", tmp_path / "records.csv", "--internal", inside, "--out", out, "--json")
    for _ in range(2):  # into a new folder, and into the one that is there
        assert command(*typed).status == 0
        assert modes(inside) == {"files": {0o600}, "folders": {0o700}}
        assert modes(out) == {"files": {0o666 & ~mask}, "folders": {0o777 & ~mask}}


def test_a_folder_within_a_private_one_is_private(mask: int, tmp_path: Path) -> None:
    for _ in range(2):
        with written_whole(tmp_path / "inside", private=True) as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == 0o700
            (draft / "one" / "two").mkdir(parents=True)
            (draft / "one" / "two" / "file").write_text("x", encoding="utf-8")
        assert modes(tmp_path / "inside") == {"files": {0o600}, "folders": {0o700}}
        if (tmp_path / "inside" / "one" / "two" / "file").exists():
            (tmp_path / "inside" / "one" / "two" / "file").unlink()
            (tmp_path / "inside" / "one" / "two").rmdir()
            (tmp_path / "inside" / "one").rmdir()


def test_state_and_drafts_of_a_publication_are_for_their_owner(
    mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "town"
    town.prepare(folder)
    seen = []

    def stopped(draft: Path, *words: object, **named: object) -> str:
        seen.append(stat.S_IMODE(draft.stat().st_mode))
        raise OSError("the disk is gone")

    monkeypatch.setattr(publishing, "write_release", stopped)
    assert town.typed(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve")[0] != 0
    assert seen == [0o700]
    assert any((folder / town.STATE).rglob("*residents-1*"))  # its secret is there
    assert modes(folder / town.STATE) == {"files": {0o600}, "folders": {0o700}}


def test_what_a_killed_audit_left_is_removed_by_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DYING, str(tmp_path / "inside")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    [left] = tmp_path.glob(f"{DRAFT}*")
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    with written_whole(tmp_path / "other"):
        assert left.exists()  # somebody uses it
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert left.exists()
    with written_whole(tmp_path / "other"):
        assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_command_that_dies_leaves_no_copy_of_its_memory() -> None:
    done = subprocess.run([sys.executable, "-c", CORE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "core 0 0"
