"""Whether a written plan says what follows from what is signed: it is planned again, and held against what it shows.

The digest that is approved covers exact things alone, so that the same program has the same digest on every machine.
What a board reads is the rest: words, errors, prices, pictures. All of it follows from the program, and is made again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import InvalidFile, Place

if TYPE_CHECKING:
    from dualmandate.ledger import Ledger
    from dualmandate.planning.program import Program
    from dualmandate.planning.saved_plan import SavedPlan

SAME = 1e-6  # Floats differ by less between machines.
NONE = 1e-12  # What is nothing on one machine may be this much on another.
DRAWN = 0.002  # of a pixel: points of a drawing are written to a thousandth, and rounded on each machine
AROUND = 40  # characters of a page that a refusal repeats

# Where a drawing has its points, and no words; a label of it is an attribute of its own, and is read like text.
_POINTS = r'(?<=[\s"])((?:d|points|transform|viewBox|width|height|[cd]?[xy][12]?|r)="[^"<>]*")'
# Digits within a word, such as those of a digest, are letters.
_NUMBER = r"(?<![\w#.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])"
_PART = re.compile(f"{_POINTS}|({_NUMBER})", re.ASCII)
_POINT = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def check_follows(
    saved: SavedPlan, file: Path, ledger: Ledger, progress: Callable[[str], None] = lambda _: None
) -> None:
    """Refuse a plan, or the dossier beside it, that says anything else than its program gives when planned again.

    What the account had left when it was planned does not follow from the program: the ledger says whether it ever did.
    """
    from dualmandate.apps.ledgers import was_remaining
    from dualmandate.report.documents.plan import plan_document
    from dualmandate.report.dossier import FIGURES, PAGE, dossier_texts

    program, counted = _program(saved, file), saved.remaining
    if counted is not None and not was_remaining(counted, program, ledger):
        raise _differs(file, "the account never had what `remaining` states", file, saved)
    plan = program.plan(counted, progress=progress)
    plan = replace(plan, account_identifier=saved.account_identifier)  # which account it is, its ledger says
    again = json.loads(json.dumps(plan_document(plan)))
    if "file" in saved.document["program"]:
        again["program"]["file"] = saved.document["program"]["file"]
    beside = {"shown": saved.document["shown"], "pages": saved.document.get("pages", {})}
    other = first_difference({"pages": {}, **saved.document}, {**again, **beside})
    if other is not None:
        raise _differs(file, f"`{other}` is not what the program gives when it is planned again", file, saved)
    if (file.parent / PAGE).is_file() or (file.parent / FIGURES).is_dir():
        progress("making the dossier again")
        for name, text in dossier_texts(plan).items():
            page = file.parent / name
            if page.is_file() and (words := first_other_words(page.read_text(encoding="utf-8"), text)) is not None:
                raise _differs(page, f"{words}, when it is planned again", file, saved)


def _program(saved: SavedPlan, file: Path) -> Program:
    """The program's own file, where the plan lies below it; else what the digest covers of it, beside the plan."""
    from dualmandate.apps.publish import program_of_plan
    from dualmandate.planning.program import load, stated
    from dualmandate.planning.saved_plan import stated_content
    from dualmandate.program.file import PROGRAM_FILE, Document
    from dualmandate.program.reading import read_keys

    found = program_of_plan(file, saved)
    if found is not None:
        return load(found.document.path)
    document = Document(file.parent / PROGRAM_FILE, stated_content(saved.document["exact"]["program"]), {})
    return stated(*read_keys(document))


def first_difference(one: object, other: object, key: str = "") -> str | None:
    """The key at which two JSON documents first differ; floats of one number differ by little between machines."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            within = f"{key}.{name}".lstrip(".")
            if name not in one or name not in other:
                return within
            if (found := first_difference(one[name], other[name], within)) is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return key
        found_in = (first_difference(a, b, f"{key}[{n}]") for n, (a, b) in enumerate(zip(one, other, strict=True)))
        return next((found for found in found_in if found is not None), None)
    return None if _same(one, other) else key


def first_other_words(page: str, again: str) -> str | None:
    """Where a page first says something else than the same page made again, in words.

    It is split into words and numbers: words, and whole numbers, are the same; other numbers differ by as little as in
    the JSON document; points of a drawing by less than anybody sees.
    """
    one, other = _PART.split(page), _PART.split(again)  # text, points or None, number or None, text, …
    for n, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine == its or (mine is not None and its is not None and n % 3 and _SAME[n % 3](mine, its)):
            continue
        if n % 3 == 2 and mine is not None and its is not None:
            return f"it says {mine} where the program gives {its}"
        return f"its words are other ones than the program gives: '{_shortened(one, other, n)}'"
    return None if len(one) == len(other) else "it is longer or shorter than the page that the program gives"


def _shortened(one: list[str], other: list[str], n: int) -> str:
    """What a page says around the place where it differs."""
    mine, its = "".join(each or "" for each in one[n:]), "".join(each or "" for each in other[n:])
    first = next((i for i, (a, b) in enumerate(zip(mine, its, strict=False)) if a != b), 0)
    return " ".join(mine[first : first + AROUND].split())


def _same_number(one: str, other: str) -> bool:
    if one.replace(",", "").isdigit() and other.replace(",", "").isdigit():
        return False  # whole numbers are the same text, or not the same
    return _close(float(one.replace(",", "")), float(other.replace(",", "")))


def _same_points(one: str, other: str) -> bool:
    mine, its = _POINT.findall(one), _POINT.findall(other)
    if _POINT.split(one) != _POINT.split(other):
        return False
    pairs = ((float(a), float(b)) for a, b in zip(mine, its, strict=True))
    return all(math.isclose(a, b, rel_tol=SAME, abs_tol=DRAWN) for a, b in pairs)


_SAME: dict[int, Callable[[str, str], bool]] = {1: _same_points, 2: _same_number}


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME, abs_tol=NONE)


def _same(one: Any, other: Any) -> bool:
    if type(one) is float and type(other) is float:
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def _differs(file: Path, why: str, plan: Path, saved: SavedPlan) -> InvalidFile:
    from dualmandate.planning.saved_plan import planned_again

    return InvalidFile(
        f"'{file.name}' does not say what its digest stands for",
        why=why,
        instead=f"here and with this version, {planned_again(plan, saved.document)}",
        where=Place(str(file)),
    )
