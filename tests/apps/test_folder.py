from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from dualmandate.apps.folder import check_writable, written_whole
from dualmandate.errors import CannotWrite


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_folder_appears_whole_with_ordinary_rights(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with written_whole(target) as draft:
        (draft / "inner").mkdir()
        (draft / "inner" / "file").write_text("x", encoding="utf-8")
        assert not target.exists()
    assert listing(target) == ["inner", "inner/file"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~mask
    assert listing(tmp_path) == ["a", "a/b", "a/b/inner", "a/b/inner/file"]


def test_an_existing_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old", encoding="utf-8")
    (tmp_path / "same").write_text("before", encoding="utf-8")
    with written_whole(tmp_path) as draft:
        (draft / "same").write_text("after", encoding="utf-8")
        assert (tmp_path / "same").read_text(encoding="utf-8") == "before"
    assert listing(tmp_path) == ["old", "same"]
    assert (tmp_path / "same").read_text(encoding="utf-8") == "after"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_of_work_that_did_not_end(tmp_path: Path, raised: type[BaseException]) -> None:
    def interrupted() -> None:
        with written_whole(tmp_path / "out") as draft:
            (draft / "half").write_text("x", encoding="utf-8")
            raise raised

    with pytest.raises(raised):
        interrupted()
    assert listing(tmp_path) == []


def test_a_full_disk_is_a_refusal_and_a_missing_template_is_our_bug(tmp_path: Path) -> None:
    def fail(error: OSError) -> None:
        with written_whole(tmp_path / "out"):
            raise error

    with pytest.raises(CannotWrite, match="cannot be written") as caught:
        fail(OSError(errno.ENOSPC, "raw words of the system"))
    assert caught.value.why == os.strerror(errno.ENOSPC).lower()
    with pytest.raises(FileNotFoundError):
        fail(FileNotFoundError(errno.ENOENT, "template"))
    assert listing(tmp_path) == []


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CannotWrite, match="cannot be a folder") as caught:
            check_writable(target)
        assert caught.value.where is not None
        assert caught.value.where.file == str(tmp_path / "file")


def test_where_the_system_never_lets_anyone_write() -> None:
    with pytest.raises(CannotWrite), written_whole(Path("/proc/dualmandate")):
        pass
