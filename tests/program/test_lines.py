"""The map from key to line: by hand, and against tomllib on generated documents."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.program.file import KeyPath, key_lines

DOCUMENT = '''\
# a remark with = and [brackets]
title = "a # b"
plain.dotted."quo.ted" = 1

[table]
text = """
[not.a.table]
fake = 1 \\"""
""""
literal = \'\'\'
other = 2\'\'\'\'
list = [
  1, # one
  [2, 3],
  { a = 1, b.c = "}" },
]

[[rows]]
name = "first"
[rows.inner]
x = 1
[[rows]]
name = "second"
  [[rows.deep]]
  y = 2
  [[rows.deep]]
  y = 3
['literal key'.b]
"caf\\u00e9" = 1979-05-27 07:32:00
'''


def test_hand_made_document() -> None:
    lines = key_lines(DOCUMENT)
    tomllib.loads(DOCUMENT)
    assert lines == {
        ("title",): 2,
        ("plain",): 3,
        ("plain", "dotted"): 3,
        ("plain", "dotted", "quo.ted"): 3,
        ("table",): 5,
        ("table", "text"): 6,
        ("table", "literal"): 10,
        ("table", "list"): 12,
        ("table", "list", 0): 13,
        ("table", "list", 1): 14,
        ("table", "list", 1, 0): 14,
        ("table", "list", 1, 1): 14,
        ("table", "list", 2): 15,
        ("table", "list", 2, "a"): 15,
        ("table", "list", 2, "b"): 15,
        ("table", "list", 2, "b", "c"): 15,
        ("rows",): 18,
        ("rows", 0): 18,
        ("rows", 0, "name"): 19,
        ("rows", 0, "inner"): 20,
        ("rows", 0, "inner", "x"): 21,
        ("rows", 1): 22,
        ("rows", 1, "name"): 23,
        ("rows", 1, "deep"): 24,
        ("rows", 1, "deep", 0): 24,
        ("rows", 1, "deep", 0, "y"): 25,
        ("rows", 1, "deep", 1): 26,
        ("rows", 1, "deep", 1, "y"): 27,
        ("literal key",): 28,
        ("literal key", "b"): 28,
        ("literal key", "b", "café"): 29,
    }


def test_empty_text_has_no_keys() -> None:
    assert key_lines("") == {}
    assert key_lines("# nothing\n\n") == {}


def test_super_table_after_its_child_keeps_the_first_line() -> None:
    assert key_lines("[a.b]\nx = 1\n[a]\ny = 2\n")[("a",)] == 1


def paths_of(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    """Every key path and array position of a parsed document."""
    found: set[KeyPath] = {path} if path else set()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found |= paths_of(item, (*path, key))
    return found


KEYS = st.one_of(
    st.sampled_from(["a", "b", "c-d", "1", "with space", "dot.ted", "é", "", 'quo"te', "#", "="]), st.text(max_size=4)
)
SCALARS = st.one_of(
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.datetimes(),
    st.dates(),
    st.text(max_size=12),
    st.sampled_from(["]", "}", ",", "#", "''", '""', "[[a]]", "x = 1\ny = 2", '"""', "'''", "\\"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def written(text: str) -> bool:
    """Whether tomllib reads the text: a few exotic characters are beyond the writer, not the scanner."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_scanner_finds_the_keys_that_tomllib_finds(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    if written(text):
        assert set(key_lines(text)) == paths_of(tomllib.loads(text))


BASIC = st.text(alphabet="ab\"'\\[]{}#=,. \n\té", max_size=10)


@st.composite
def lines_of_toml(draw: st.DrawFn) -> tuple[str, dict[KeyPath, int]]:
    """A text written token by token, and the line on which each of its keys was written."""
    text = ""
    expected: dict[KeyPath, int] = {}
    table: KeyPath = ()
    rows = 0
    for number in range(draw(st.integers(1, 8))):
        text += draw(st.sampled_from(["", "\n", "# [x]\n", " \t", "\r\n"]))
        kind = draw(st.sampled_from(["pair", "dotted", "table", "row", "multi-line", "array", "inline"]))
        line = text.count("\n") + 1
        key = f"k{number}"
        if kind == "table":
            table = (key,)
            text += f"[ {key} ] # {{\n"
            expected[table] = line
        elif kind == "row":
            table = ("rows", rows)
            expected.setdefault(("rows",), line)
            expected[table] = line
            rows += 1
            text += "[[rows]]\n"
        else:
            path = (*table, key)
            expected[path] = line
            value, inside = draw(values(kind, line))
            quoted = draw(st.sampled_from([key, f'"{key}"', f"'{key}'"]))
            if kind == "dotted":
                expected[(*path, "sub")] = line
                quoted += " . sub"
            expected |= {(*path, *inner): at for inner, at in inside.items()}
            text += f"{quoted} = {value}\n"
    return text, expected


@st.composite
def values(draw: st.DrawFn, kind: str, line: int) -> tuple[str, dict[KeyPath, int]]:
    content = draw(BASIC)
    escaped = content.replace("\\", "\\\\").replace('"', '\\"')
    one_line = '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
    if kind == "multi-line":
        return f'"""{escaped}"""', {}
    if kind == "array":
        return f"[ # ]\n\n{one_line},\n'x' ]", {(0,): line + 2, (1,): line + 3}
    if kind == "inline":
        return f"{{ x = {one_line}, y.z = [1] }}", {
            ("x",): line,
            ("y",): line,
            ("y", "z"): line,
            ("y", "z", 0): line,
        }
    return one_line, {}


@settings(max_examples=200, deadline=None)
@given(lines_of_toml())
def test_lines_are_those_on_which_keys_were_written(case: tuple[str, dict[KeyPath, int]]) -> None:
    text, expected = case
    tomllib.loads(text)
    assert key_lines(text.replace("\r\n", "\n")) == expected
