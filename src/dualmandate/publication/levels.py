"""What a person types, and the level that is meant by it: a code, a number, a label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Number
from typing import Any

from dualmandate.errors import InvalidRequest, UnknownName, did_you_mean
from dualmandate.population.rational import rational

Level = str | int | float | Fraction
Levels = Level | Iterable[Level]
_BIN = re.compile(r"\[(?P<low>[^,\[\]]+), (?P<high>[^,\[\]]+)(?P<end>[)\]])")


def levels_meant(
    column: str, levels: Sequence[str], typed: Levels, *, labels: Mapping[str, Sequence[str]] | None = None
) -> list[int]:
    """The places of the levels that are meant, each once: one, or those of a list.

    A level is meant by its code, by one of its labels (`labels` has those of each level, the program's own first), by a
    number that is its own, or by one that falls into its bin. Capital letters count: `F` is not `f`, and the refusal
    says which one is there.
    """
    several = isinstance(typed, Iterable) and not isinstance(typed, str | bytes | Mapping)
    asked = list(typed) if several else [typed]  # type: ignore[arg-type]
    found = [_place(column, levels, each, labels or {}) for each in asked]
    if not found or len(set(found)) < len(found):
        raise InvalidRequest(
            f"levels of '{column}' that are none, or named twice",
            why="each level that is named is counted once",
            instead="name each level once, or leave the column out for all of them",
        )
    return found


def _place(column: str, levels: Sequence[str], typed: object, labels: Mapping[str, Sequence[str]]) -> int:
    words = typed if isinstance(typed, str) else str(typed)
    if isinstance(typed, str | Number) and not isinstance(typed, bool):
        if words in levels:
            return levels.index(words)
        called = {level: names for level, names in labels.items() if words in names and level in levels}
        first = [levels.index(level) for level, names in called.items() if names[0] == words]
        places = first or [levels.index(level) for level in called] or _by_number(levels, typed)
        if len(places) == 1:
            return places[0]
    there = f"its levels are {', '.join(levels[:12])}{', …' if len(levels) > 12 else ''}"
    known = [*levels[:1000], *(name for names in list(labels.values())[:1000] for name in names)]
    alike = [name for name in known if name.casefold() == words.strip().casefold()]
    raise UnknownName(
        f"'{column}' has no level '{words}'" if isinstance(typed, str | Number) else f"'{column}' has no such level",
        why=f"capital letters and spaces count; {there}" if alike else there,
        instead=f"did you mean '{alike[0]}'?"
        if len(alike) == 1
        else did_you_mean(words, known, "name one, or several"),
    )


def _by_number(levels: Sequence[str], typed: Any) -> list[int]:
    """The places of levels that are this number, or else of bins that hold it."""
    try:
        number = rational(typed.item() if hasattr(typed, "item") else typed)
    except (ValueError, TypeError, ZeroDivisionError):
        return []
    same = [place for place, level in enumerate(levels) if _number(level) == number]
    return same or [place for place, level in enumerate(levels) if _holds(level, number)]


def _number(level: str) -> Fraction | None:
    try:
        return rational(level)
    except (ValueError, ZeroDivisionError):
        return None


def _holds(level: str, number: Fraction) -> bool:
    """Whether a level is a bin, [0, 18) or [65, 120], with this number in it."""
    if (found := _BIN.fullmatch(level)) is None:
        return False
    low, high = _number(found["low"]), _number(found["high"])
    if low is None or high is None:
        return False
    return low <= number < high or (number == high and found["end"] == "]")
