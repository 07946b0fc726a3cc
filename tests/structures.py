"""Files that are well-formed and say something else: seeded changes of what JSON, TOML, CSV and Parquet files hold.

A flipped byte seldom passes the first reader. Here a key is gone, stands twice or is misspelled, a value has another
kind, is huge, no number or nested too deep, and the file is written anew, so that what comes after the reader is met.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

DEEP = 3000
TEXTS = (
    *(
        "",
        " ",
        "x",
        "7",
        "-1",
        "1/3",
        "nan",
        "true",
        "é\u202e☃",
        "n\u0303ame",
        "\u0000",
        "a\nb",
        "'; DROP TABLE entry; --",
    ),
    *(
        "../../../etc/passwd",
        "/dev/null",
        ".",
        "file:///etc/passwd",
        "%s{0}$(id)",
        "=1+1",
        "x" * 5000,
        "<script>alert(1)</script>",
    ),
)
NUMBERS = (0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e300, 2**31, 2**63, -(2**63), 10**40, 10**4000)


@dataclass(frozen=True)
class Verbatim:
    """A value as it is written, where no value of Python is written so."""

    json: str
    toml: str


@dataclass(frozen=True)
class Twice:
    """Two values under one key."""

    one: Any
    other: Any


def _alike(text: str) -> Verbatim:
    return Verbatim(text, text)


ODD = (
    *(Verbatim("NaN", "nan"), Verbatim("Infinity", "inf"), Verbatim("-Infinity", "-inf"), _alike("1e999")),
    *(_alike("1E-99999"), _alike('"\\ud800"'), _alike("-0"), Verbatim("null", "1979-05-27"), _alike("9" * 5000)),
    *(Verbatim("1_0", "1979-05-27T07:32:00Z"), Verbatim("'x'", "07:32:00"), Verbatim("0x10", "0x10")),
    *(_alike("[" * DEEP + "]" * DEEP), Verbatim('{"a":' * DEEP + "1" + "}" * DEEP, "{a=" * DEEP + "1" + "}" * DEEP)),
)
SHAPES: tuple[Callable[[], Any], ...] = (list, dict, lambda: [[]], lambda: {"": 0}, lambda: [0] * 20_000, lambda: [""])


def restructured(content: bytes, seed: int, form: str) -> bytes:
    """A JSON or TOML document with one to three of its values, keys or places changed; the same for the same seed."""
    import tomllib

    draws = random.Random(seed)
    tree = json.loads(content) if form == "json" else tomllib.loads(content.decode())
    for _ in range(draws.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if places:
            holder, key = draws.choice(places)
            draws.choice(ACTS)(holder, key, draws, places)
    text = _json(tree) if form == "json" else _toml(tree)
    return text.encode("utf-8", "surrogatepass")


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a document, as what holds it and under which key; long lists by their ends."""
    if isinstance(tree, dict):
        found: list[Any] = list(tree)
    else:
        found = list(range(len(tree))) if len(tree) < 8 else [0, 1, len(tree) // 2, len(tree) - 1]
    for key in found:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


Act = Callable[[Any, Any, random.Random, list[tuple[Any, Any]]], None]


def _gone(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    del holder[key]


def _twice(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    if isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif not isinstance(holder[key], Twice):
        holder[key] = Twice(copy.deepcopy(holder[key]), draws.choice((copy.deepcopy(holder[key]), 0, "x")))


def _renamed(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    if isinstance(holder, list):
        holder.reverse()
    else:
        others = [str(other) for _, other in places]
        name = draws.choice(
            [key + "s", key[:-1], key.upper(), key.replace("e", "е"), draws.choice(others), "", "__class__"]
        )
        holder[name] = holder.pop(key)


def _another(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    kinds = (
        lambda: draws.choice(TEXTS),
        lambda: draws.choice(NUMBERS),
        lambda: draws.choice(ODD),
        lambda: draws.choice(SHAPES)(),
        lambda: draws.choice((True, False)),
    )
    holder[key] = draws.choice(kinds)()


def _nudged(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    """A little else: a number is another one, a text begins or ends otherwise."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = draws.choice(
            (value + 1, value - 1, -value, value * 2, value * 1000, value / 3, value * 1e12, str(value))
        )
    elif isinstance(value, str):
        holder[key] = draws.choice(
            (f"{value} ", value[:-1], value.upper(), value + "\u0301", value[::-1], value * 2, [value])
        )
    elif isinstance(value, list) and value:
        holder[key] = draws.choice((value[:1], value[::-1], value * 2, {"value": value}, value[0]))
    else:
        holder[key] = [value]


def _from_elsewhere(holder: Any, key: Any, draws: random.Random, places: list[tuple[Any, Any]]) -> None:
    other, there = draws.choice(places)
    if isinstance(there, int) and there >= len(other):
        return
    if there in other or isinstance(other, list):
        holder[key] = copy.deepcopy(other[there])


ACTS: tuple[Act, ...] = (
    _gone,
    _gone,
    _twice,
    _renamed,
    _another,
    _another,
    _another,
    _nudged,
    _nudged,
    _nudged,
    _from_elsewhere,
)


def _json(value: Any) -> str:
    if isinstance(value, Verbatim):
        return value.json
    if isinstance(value, dict):
        entries = [(key, each) for key, held in value.items() for each in _each(held)]
        return "{" + ",".join(f"{json.dumps(key)}: {_json(each)}" for key, each in entries) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def _each(value: Any) -> tuple[Any, ...]:
    return (value.one, value.other) if isinstance(value, Twice) else (value,)


def _toml(tree: dict[str, Any]) -> str:
    """Tables and lists of tables at the top under headings of their own, all below them inline."""
    plain, headed = [], []
    for key, held in tree.items():
        for value in _each(held):
            tables = value if isinstance(value, list) and value and all(isinstance(e, dict) for e in value) else None
            if isinstance(value, dict):
                headed.append((f"[{json.dumps(key)}]", value))
            elif tables is not None:
                headed += [(f"[[{json.dumps(key)}]]", each) for each in tables]
            else:
                plain.append(_line(key, value))
    for heading, table in headed:
        plain += ["", heading, *(_line(key, each) for key, held in table.items() for each in _each(held))]
    return "\n".join(plain) + "\n"


def _line(key: str, value: Any) -> str:
    return f"{json.dumps(key)} = {_inline(value)}"


def _inline(value: Any) -> str:
    if isinstance(value, Verbatim):
        return value.toml
    if isinstance(value, dict):
        entries = [(key, each) for key, held in value.items() for each in _each(held)]
        return "{" + ", ".join(_line(key, each) for key, each in entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str | bool | int | float) or value is None:
        return json.dumps(value) if value is not None else "[]"
    return str(value)  # dates


def reshaped(content: bytes, seed: int) -> bytes:
    """A CSV file whose columns, fields, header or way of writing are others."""
    draws = random.Random(seed)
    rows = list(csv.reader(io.StringIO(content.decode())))
    dialect: dict[str, Any] = {"lineterminator": "\n"}
    encoding = "utf-8"
    for _ in range(draws.choice((1, 1, 2, 3))):
        width, act = len(rows[0]) if rows else 0, draws.randrange(10)
        row, column = draws.randrange(max(1, len(rows))), draws.randrange(max(1, width))
        if act == 0:
            rows = [line[:column] + line[column + 1 :] for line in rows]
        elif act == 1:
            rows = [line[: column + 1] + line[column:] for line in rows]  # a column twice, name and all
        elif act == 2 and rows:
            rows[0] = [draws.choice(TEXTS) if place == column else name for place, name in enumerate(rows[0])]
        elif act == 3:
            rows = rows[: draws.choice((0, 1, 2))]
        elif act == 4 and rows:
            rows[row] = rows[row][: draws.randrange(len(rows[row]) + 1)] * draws.choice((1, 2))
        elif act == 5 and len(rows) > 1:
            rows[1:] = [
                [draws.choice(TEXTS) if n == column else field for n, field in enumerate(line)] for line in rows[1:]
            ]
        elif act == 6:
            dialect |= draws.choice(
                ({"delimiter": ";"}, {"quoting": csv.QUOTE_ALL}, {"lineterminator": "\r\n"}, {"delimiter": "\t"})
            )
        elif act == 7:
            encoding = draws.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7"))
        elif act == 8:
            rows = [
                [str(draws.choice(NUMBERS[:-1])) if n == column and m else f for n, f in enumerate(line)]
                for m, line in enumerate(rows)
            ]
        else:
            draws.shuffle(rows)
    written = io.StringIO()
    csv.writer(written, **dialect).writerows(rows)
    return written.getvalue().encode(encoding)


def retyped(table: pa.Table, seed: int) -> pa.Table:
    """A table whose columns have other types, names or places, or whose records are none or odd."""
    draws = random.Random(seed)
    for _ in range(draws.choice((1, 1, 2))):
        place = draws.randrange(max(1, table.num_columns))
        if table.num_columns == 0:
            return table
        name, length = table.column_names[place], table.num_rows
        act = draws.randrange(8)
        if act == 0:
            table = table.remove_column(place)
        elif act == 1:
            table = table.append_column(draws.choice(table.column_names), table.column(place))  # a name twice
        elif act == 2:
            names = [draws.choice((each.upper(), *TEXTS)) if each == name else each for each in table.column_names]
            table = table.rename_columns(names)
        elif act == 3:
            table = table.slice(0, draws.choice((0, 1)))
        elif act == 4:
            table = table.append_column("more", pa.array([None] * length, pa.null()))
        else:
            table = table.set_column(place, name, draws.choice(COLUMNS)(table.column(place), length, draws))
    return table


Column = Callable[[pa.ChunkedArray, int, random.Random], pa.Array]
ODD_BYTES = (b"\xff\xfe", b"north", b"", b"\x00", b"\xed\xa0\x80")
COLUMNS: tuple[Column, ...] = (
    lambda column, length, draws: pa.array([None] * length, pa.null()),
    lambda column, length, draws: pa.array(range(length), pa.int64()),
    lambda column, length, draws: pa.array(np.full(length, np.nan)),
    lambda column, length, draws: pa.array([draws.choice(ODD_BYTES) for _ in range(length)], pa.binary()),
    lambda column, length, draws: pa.array([[1]] * length),
    lambda column, length, draws: pa.array([{"a": 1}] * length),
    lambda column, length, draws: pa.array([True] * length),
    lambda column, length, draws: pa.array(range(length), pa.timestamp("ns", "UTC")),
    lambda column, length, draws: pa.array(range(length), pa.duration("s")),
    lambda column, length, draws: pa.array(range(length), pa.time64("us")),
    lambda column, length, draws: pa.array([10**20] * length, pa.decimal128(38, 3)),
    lambda column, length, draws: pa.array([draws.choice(TEXTS) for _ in range(length)], pa.large_string()),
    lambda column, length, draws: pa.array([None if n % 3 else str(each) for n, each in enumerate(column.to_pylist())]),
    lambda column, length, draws: column.cast(pa.large_string()).combine_chunks(),
    lambda column, length, draws: column.dictionary_encode().combine_chunks(),
)
