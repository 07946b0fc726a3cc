"""A program given as a dictionary, with the keys of a program file: written as TOML, and read as every program is.

So its numbers mean what they would mean in a file, and a release carries the program along as it carries a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path, PurePath
from typing import cast

from dualmandate.errors import InvalidValue, Place
from dualmandate.program.file import Document, KeyPath, dotted, parsed, toml_key, toml_text

STANDS_IN = Path("program.toml")  # Code lists and sources are looked for from the current folder.
DEEPEST = 20


def document_of_mapping(content: Mapping[str, object]) -> Document:
    """The document that a file with these keys would be; refusals of it name a key, and no line."""
    text = toml(content)
    return replace(parsed(text, STANDS_IN, "program"), text=text.encode())


def toml(content: Mapping[str, object]) -> str:
    """A dictionary as a TOML text: a section for each table, other values on a line each."""
    lines, sections = [], []
    for key, value in _items(content, ()):
        heading = _key(key)
        if isinstance(value, Mapping):
            sections += ["", f"[{heading}]", *_lines(value, (key,))]
        elif _is_list(value) and value and all(isinstance(each, Mapping) for each in value):  # type: ignore[attr-defined]
            for place, each in enumerate(value):  # type: ignore[arg-type, var-annotated]
                sections += ["", f"[[{heading}]]", *_lines(each, (key, place))]
        else:
            lines.append(f"{heading} = {_value(value, (key,))}")
    return "\n".join([*lines, *sections]).lstrip("\n") + "\n"


def _lines(table: Mapping[str, object], path: KeyPath) -> list[str]:
    return [f"{_key(key)} = {_value(value, (*path, key))}" for key, value in _items(table, path)]


def _items(table: Mapping[str, object], path: KeyPath) -> list[tuple[str, object]]:
    odd = next((key for key in table if not isinstance(key, str)), None)
    if odd is not None:
        raise _refused(path, f"a key of the type {type(odd).__name__}", "keys are text, as in a program file")
    return list(table.items())


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _key(key: str) -> str:
    return toml_key(_encoded(key, (key,)))


def _value(value: object, path: KeyPath) -> str:
    if len(path) > DEEPEST:
        raise _refused(path[:2], "tables within tables without end", "no table of a program file is that deep")
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value, path))} }}"
    if _is_list(value):
        return f"[{', '.join(_value(each, (*path, n)) for n, each in enumerate(cast(Sequence[object], value)))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | PurePath):
        return toml_text(_encoded(str(value), path))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal) or (isinstance(value, Real) and not isinstance(value, Fraction)):
        return _decimal(value)
    words = "nothing" if value is None else f"a value of the type {type(value).__name__}"
    raise _refused(path, words, "a program file knows text, numbers, true and false, lists and tables")


def _decimal(value: Decimal | Real) -> str:
    """A number as it would be typed: the shortest that stands for a float, a decimal as it is."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if float(value) > 0 else "-inf"
    text = str(value) if isinstance(value, Decimal) else float.__repr__(float(value))
    return text if any(sign in text for sign in ".eE") else f"{text}.0"


def _encoded(words: str, path: KeyPath) -> str:
    try:
        words.encode()
    except UnicodeEncodeError:
        raise _refused(path, "a text that is no Unicode", "text is written to files as UTF-8") from None
    return words


def _refused(path: KeyPath, what: str, why: str) -> InvalidValue:
    return InvalidValue(
        f"'{dotted(path) or 'the program'}' holds {what}",
        why=why,
        instead="write what a program file would say there, or leave the key out",
        where=Place(key=dotted(path) or None),
    )
