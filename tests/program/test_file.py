"""Files that are not program files are refused with their place, before anything large is read."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidFile, Place, Refusal, UnknownName
from dualmandate.program.file import LARGEST_PROGRAM, dotted, read_document


def refusal(path: Path | str) -> InvalidFile:
    with pytest.raises(InvalidFile) as caught:
        read_document(path)
    assert caught.value.where is not None
    assert caught.value.where.file == str(path)
    return caught.value


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "program.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_numbers_are_kept_as_typed(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "\ufeffa = 46e6\r\nb = 0.1\n"))
    assert document.content == {"a": Decimal("4.6E+7"), "b": Decimal("0.1")}
    assert document.lines == {("a",): 1, ("b",): 2}


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.toml").why


def test_folder(tmp_path: Path) -> None:
    assert "folder" in refusal(tmp_path).why


def test_file_name_with_a_null(tmp_path: Path) -> None:
    assert "file name" in refusal(f"{tmp_path}/a\0b").why


def test_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "regular file" in refusal(tmp_path / "pipe").why


def test_large_file_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(100 * 10**6)
    monkeypatch.setattr(Path, "open", lambda *_args, **_kwargs: pytest.fail("it was opened"))
    found = refusal(path)
    assert "100,000,000 bytes" in found.what
    assert f"{LARGEST_PROGRAM:,}" in found.why


def test_file_at_the_limit_is_read(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "a = 1\n#" + "x" * (LARGEST_PROGRAM - 7))).content == {"a": 1}


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    found = refusal(written(tmp_path, b"a = 1\nb = '\xff'\n"))
    assert found.where is not None
    assert found.where.line == 2
    assert "UTF-8" in found.why


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a = 1\nb = yes\n", 2, "line 2, at column 5: the value cannot be read"),
        ("[a]\nx = 1\n[a]\n", 3, "a table is written twice"),
        ("a = 1\na = 2\n", 2, "a key is written twice"),
        ("a = 1\nhello\n", 2, "expected '=' after a key"),
        ("a = 1\n= 2\n", 2, "neither a key, nor a [table]"),
        ("a = [1, 2", 1, "at the end of the file"),
        ('a = "x\n', 1, "ends on the line it began on"),
        ("a = { b = 1, b = 2 }", 1, "a key is written twice"),
        ("PK\x03\x04", 1, ""),
    ],
)
def test_not_toml_names_line_and_column(tmp_path: Path, text: str, line: int, why: str) -> None:
    found = refusal(written(tmp_path, text))
    assert found.where is not None
    assert found.where.line == line
    assert why in found.why


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = " + "9" * 5_000, "a = " + "{b=" * 20_000])
def test_texts_that_break_the_parser(tmp_path: Path, text: str) -> None:
    assert "is not a program file" in refusal(written(tmp_path, text)).what


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet="ab=\"'[]{}#.,\n 1\\-", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "program.toml"
    path.write_bytes(content)
    with suppress(InvalidFile):
        assert isinstance(read_document(path).content, dict)


def test_refusals_inside_a_key_get_its_place(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "[a]\nb = [\n 1,\n 2]\n"))
    with pytest.raises(UnknownName) as caught, document.at("a", "b", 1):
        raise UnknownName("x", why="y", instead="z")
    place = caught.value.where
    assert place is not None
    assert (place.file, place.line, place.key) == (str(tmp_path / "program.toml"), 4, "a.b[1]")
    with pytest.raises(Refusal) as missing, document.at("a", "c"):
        raise UnknownName("x", why="y", instead="z")
    assert missing.value.where is not None
    assert (missing.value.where.line, missing.value.where.key) == (1, "a.c")


def test_a_refusal_that_names_its_key_gets_the_line_of_that_key(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "[a]\nb = 1\n[c]\n"))
    with pytest.raises(UnknownName) as caught, document.at("c"):
        raise UnknownName("x", why="y", instead="z", where=Place(key="a.b"))
    assert caught.value.where == Place(str(tmp_path / "program.toml"), 2, "a.b")


def test_dotted_keys_quote_unusual_names() -> None:
    assert dotted(("workload", 0, "where", "age group")) == 'workload[0].where."age group"'


@pytest.mark.parametrize("name", ['quote"d', "back\\slash", "a.b", "größe", "a\tb", "two\nlines", "del\x7f", "", "'"])
def test_a_dotted_key_can_be_pasted_into_the_file(name: str) -> None:
    written = dotted(("attributes", name))
    assert tomllib.loads(f"{written} = 1") == {"attributes": {name: 1}}
