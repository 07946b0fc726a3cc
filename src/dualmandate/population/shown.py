"""How values show themselves where somebody looks at them: one line at a prompt, a small page in a notebook.

What is long (levels, cells, curves) is told by its size. Of what is confidential there is only a label.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from numbers import Number
from pathlib import PurePath

LONGEST_LINE, LONGEST_WORD, FEW = 160, 48, 4
MOST_LISTED = 8
EDGE = "1px solid rgba(128, 128, 128, 0.45)"  # seen on light paper and on dark


def one_line(thing: object) -> str:
    """A dataclass as `Name(field=…)` on one line; what does not fit is left out, and `…` says so."""
    shown = [each for each in fields(thing) if each.repr]  # type: ignore[arg-type]
    return told(type(thing).__name__, {each.name: getattr(thing, each.name) for each in shown})


def told(name: str, content: Mapping[str, object]) -> str:
    """What something is called and what it holds, on one line."""
    return f"{name}({_joined([f'{key}={in_short(value)}' for key, value in content.items()])})"


def span_of(levels: Sequence[str]) -> str:
    """Which levels there are: each of a few, or the first and the last."""
    if len(levels) <= MOST_LISTED:
        return f"its levels are {', '.join(repr(level) for level in levels)}"
    return f"its levels run from '{levels[0]}' to '{levels[-1]}'"


def in_short(value: object) -> str:
    """A value in a word: itself where it is short, otherwise what it is and how large."""
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, Fraction):
        return _cut(str(value))
    if isinstance(value, str | bytes | PurePath):
        return _cut(repr(str(value) if isinstance(value, PurePath) else value))
    if value is None or isinstance(value, Number):
        return _cut(repr(value))
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}(…)"
    if isinstance(value, Mapping | Sequence | AbstractSet):
        return _collection(value)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__}{shape}"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return f"{type(value).__name__}(…)"


def _collection(value: Mapping[object, object] | Sequence[object] | AbstractSet[object]) -> str:
    if len(value) == 0:
        return "none"
    if len(value) <= FEW:
        items = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
        parts = [in_short(each) if key is None else f"{in_short(key)}: {in_short(each)}" for key, each in items]
        if len(text := ", ".join(parts)) <= LONGEST_WORD:
            return f"{{{text}}}" if isinstance(value, Mapping) else f"[{text}]"
    return f"[{len(value):,} of them]"


def _joined(parts: Sequence[str]) -> str:
    kept, length = list[str](), 0
    for part in parts:
        length += len(part) + 2
        if length > LONGEST_LINE:
            return ", ".join([*kept, "…"])
        kept.append(part)
    return ", ".join(kept)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_WORD else f"{flat[: LONGEST_WORD - 1]}…"


def cut_line(words: str) -> str:
    """Words on one line, as much of them as fits."""
    flat = " ".join(words.split())
    return flat if len(flat) <= LONGEST_LINE else f"{flat[: LONGEST_LINE - 1]}…"


def page_of(title: str, *parts: str) -> str:
    """Parts under a heading, in the colors and the letters of whatever notebook shows them."""
    heading = f'<div style="font-weight: 600; margin: 0 0 0.3em">{html.escape(title)}</div>'
    return f'<div style="max-width: 46em; color: inherit">{heading}{"".join(parts)}</div>'


def sentences(lines: Iterable[str]) -> str:
    """Sentences, each a paragraph."""
    return "".join(
        f'<p style="margin: 0.3em 0; line-height: 1.45; overflow-wrap: anywhere">{html.escape(line)}</p>'
        for line in lines
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table; its first columns, so many, hold words, the others numbers. Wide ones are moved sideways."""
    cell = f"padding: 0.25em 0.7em; border-bottom: {EDGE}; background: transparent; color: inherit"
    ways = ["left" if place < words else "right" for place in range(len(headings))]
    head = "".join(
        f'<th scope="col" style="{cell}; text-align: {way}; font-weight: 600">{html.escape(heading)}</th>'
        for heading, way in zip(headings, ways, strict=True)
    )
    body = "".join(
        '<tr style="background: transparent">'
        + "".join(
            f'<td style="{cell}; text-align: {way}; font-variant-numeric: tabular-nums">{html.escape(str(each))}</td>'
            for each, way in zip(row, ways, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x: auto; margin: 0.5em 0"><table style="border-collapse: collapse; margin: 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
