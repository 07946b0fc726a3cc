"""Columns of text: what is read, and what is refused with its line; the same for every file that is read so."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dualmandate.errors import InvalidFile, InvalidValue
from dualmandate.program.text_columns import LARGEST_FILE, TextColumns, read_text_columns

CANARY = "canary-4711"


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "codes.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_codes(path: Path) -> TextColumns:
    return read_text_columns(path, "code list")


def test_columns_and_digest(tmp_path: Path) -> None:
    path = written(tmp_path, '\ufeffcode,state\r\n010,"New\nland"\r\n\r\n020,\r\n')
    codes = read_codes(path)
    assert codes.codes(None) == ("010", "020")
    assert codes.column("state") == ("New\nland", "")
    assert codes.lines == (3, 5)
    assert "Newland" not in repr(codes).replace("\\n", "")
    assert codes.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        ("", None, "holds no rows"),
        ("code\n", None, "holds no rows"),
        ("code,code\na,b\n", 1, "names of their own"),
        ("code,\na,b\n", 1, "names of their own"),
        ("code,state\na\n", 2, "line 2 has not as many values"),
        (f"code,state\na,b\n\n{CANARY},b,c\n", 4, "line 4 has not as many values"),
        (f"{CANARY},{CANARY}\na,b\n", 1, "names of their own"),
        (b"code\nok\n\xff\n", 3, "not UTF-8"),
        ('code\n"open\n', None, "not comma-separated"),
        (f'code\n"{CANARY}"x\n', None, "not comma-separated"),
        (f"code\n{CANARY}".encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_files_that_hold_no_columns(tmp_path: Path, content: str | bytes, line: int | None, why: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_codes(written(tmp_path, content))
    assert why in caught.value.why
    assert "'codes.csv' cannot be used" in caught.value.what
    assert CANARY not in str(caught.value)
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
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(InvalidFile, match="too large"):
        read_codes(path)
