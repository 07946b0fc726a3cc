"""Code lists: what is read, and what is refused with its line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dualmandate.errors import InvalidFile, InvalidValue
from dualmandate.program.codes import LARGEST_CODE_LIST, read_codes


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "codes.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_and_digest(tmp_path: Path) -> None:
    path = written(tmp_path, '\ufeffcode,state\r\n010,"New\nland"\r\n\r\n020,\r\n')
    codes = read_codes(path)
    assert codes.codes(None) == ("010", "020")
    assert codes.column("state") == ("New\nland", "")
    assert codes.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        ("", None, "holds no codes"),
        ("code\n", None, "holds no codes"),
        ("code,code\na,b\n", 1, "names of their own"),
        ("code,\na,b\n", 1, "names of their own"),
        ("code,state\na\n", 2, "line 2 has not as many values"),
        (b"code\nok\n\xff\n", 3, "not UTF-8"),
        ('code\n"open\n', None, "not comma-separated"),
    ],
)
def test_files_that_are_no_code_lists(tmp_path: Path, content: str | bytes, line: int | None, why: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_codes(written(tmp_path, content))
    assert why in caught.value.why
    assert (None if caught.value.where is None else caught.value.where.line) == line


def test_empty_and_repeated_codes_name_their_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="empty code") as empty:
        read_codes(written(tmp_path, "code,x\na,1\n,2\n")).codes(None)
    with pytest.raises(InvalidFile, match="holds 'a' twice") as twice:
        read_codes(written(tmp_path, "code\na\n\nb\na\n")).codes("code")
    assert empty.value.where is not None
    assert twice.value.where is not None
    assert (empty.value.where.line, twice.value.where.line) == (3, 5)
    assert "line 2 too" in twice.value.why


def test_missing_column_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no column 'sate'") as caught:
        read_codes(written(tmp_path, "code,state\na,1\n")).column("sate")
    assert "'state'" in caught.value.instead


def test_large_code_list_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(LARGEST_CODE_LIST + 1)
    with pytest.raises(InvalidFile, match="too large"):
        read_codes(path)
