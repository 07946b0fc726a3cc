"""What levels are called for readers: "Region North" beside the code R31, in one or several languages.

A level is known by its code everywhere; a label is shown beside it. Labels come from the program, never from the data,
and they are public.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from dualmandate.errors import InvalidDomain, Place, did_you_mean
from dualmandate.population.rational import written
from dualmandate.population.shown import span_of

Labels = Mapping[str, Mapping[str, str]]  # by language, then by level; OWN is the language of the program
OWN = ""
NO_LABELS: Labels = {}
ENGLISH = "en"
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
LONGEST_LABEL = 100  # Tables and pages show them beside numbers.


def label_of(labels: Labels, level: str, language: str = OWN) -> str:
    """The label of a level; the level itself where it has none."""
    return labels.get(language, {}).get(level, level)


def check_labels(
    name: str,
    levels: Sequence[str],
    labels: Mapping[str, str],
    *,
    may_lack: frozenset[str] | None = frozenset(),
    where: Callable[[str], Place | None] = lambda _: None,
) -> None:
    """Refuse labels, in one language, that are not one for each level, short, and different from each other.

    `may_lack` are levels that need no label, None for all; `where` says where the label of a level stands.
    """
    for level, words in _wrong(name, levels, labels, may_lack):
        what, why, instead = words
        raise InvalidDomain(what, why=why, instead=instead, where=where(level))


def _wrong(
    name: str, levels: Sequence[str], labels: Mapping[str, str], may_lack: frozenset[str] | None
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Levels whose labels are wrong, and what is wrong, why, and what to do instead."""
    known, seen = frozenset(levels), dict[str, str]()
    for level, label in labels.items():
        if level not in known:
            what = f"'{level}' has a label, and is not a level of '{name}'"
            why = "a label is shown beside a level that the program declares"
            yield level, (what, why, did_you_mean(level, levels[:1000], span_of(levels)))
        if not label.strip() or len(label) > LONGEST_LABEL or not label.isprintable():
            odd = (
                "holds a letter that cannot be printed" if len(label) <= LONGEST_LABEL else f"has {len(label)} letters"
            )
            what = f"the label of '{level}' of '{name}' {odd if label.strip() else 'is empty'}"
            why = f"a label stands beside numbers, on one line, in 1 to {LONGEST_LABEL} letters"
            yield level, (what, why, "write a short text")
        if label in seen:
            what = f"'{seen[label]}' and '{level}' of '{name}' have the same label, '{label}'"
            yield level, (what, "readers could not tell them apart", "give each level a label of its own")
        seen[label] = level
    if may_lack is not None:
        lacking = next((each for each in levels if each not in labels and each not in may_lack), None)
        if lacking is not None:
            what = f"the level '{lacking}' of '{name}' has no label"
            yield lacking, (what, "readers would take its code for a label", "label every level, or none")


def bin_labels(levels: Sequence[str], edges: Sequence[Fraction]) -> dict[str, str]:
    """Bins in words that hold for every number, whole or not: "0 to under 18", the last one "65 to 120"."""
    words = [f"{int(edge):,}" if edge.denominator == 1 else written(edge) for edge in edges]
    spans = [f"{low} to under {high}" for low, high in pairwise(words)]
    spans[-1] = f"{words[-2]} to {words[-1]}"
    return dict(zip(levels, spans, strict=False))  # a missing level follows the bins
