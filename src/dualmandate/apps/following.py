"""Whether a written plan says what follows from what is signed: it is planned again, and held against what it shows.

The digest that is approved covers exact things alone, so that the same program has the same digest on every machine.
What a board reads is the rest: words, errors, prices, pictures. All of it follows from the program, and is made again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import InvalidFile, Place

if TYPE_CHECKING:
    from dualmandate.planning.program import Program
    from dualmandate.planning.saved_plan import SavedPlan

SAME = 1e-6  # Floats differ by less between machines.
NONE = 1e-12  # What is nothing on one machine may be this much on another.


def check_follows(saved: SavedPlan, file: Path, progress: Callable[[str], None] = lambda _: None) -> None:
    """Refuse a plan, or the dossier beside it, that says anything else than its program gives when planned again."""
    from dualmandate.report.documents.plan import plan_document
    from dualmandate.report.dossier import PAGE, dossier_page

    counted = saved.document.get("remaining")
    plan = _program(saved, file).plan(None if counted is None else Fraction(counted), progress=progress)
    plan = replace(plan, account_identifier=saved.account_identifier)  # which account it is, its ledger says
    again = json.loads(json.dumps(plan_document(plan)))
    beside = {"shown": saved.document["shown"], "pages": saved.document.get("pages", {})}
    other = first_difference({"pages": {}, **saved.document}, {**again, **beside})
    if other is not None:
        raise _differs(file, f"`{other}` is not what the program gives when it is planned again")
    page = file.parent / PAGE
    if page.is_file():
        progress("making the dossier again")
        if page.read_text(encoding="utf-8") != dossier_page(plan):
            raise _differs(page, "it is not the page that the program gives when it is planned again")


def _program(saved: SavedPlan, file: Path) -> Program:
    """The program's own file, where the plan lies below it; else what the digest covers of it, beside the plan."""
    from dualmandate.apps.plan import PROGRAM_FILE
    from dualmandate.apps.publish import program_of_plan
    from dualmandate.planning.program import load, stated
    from dualmandate.planning.saved_plan import stated_content
    from dualmandate.program.file import Document
    from dualmandate.program.reading import read_keys

    found = program_of_plan(file, saved)
    if found is not None:
        return load(found.document.path)
    document = Document(file.parent / PROGRAM_FILE, stated_content(saved.document["exact"]["program"]), {})
    return stated(document, read_keys(document))


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


def _same(one: Any, other: Any) -> bool:
    if type(one) is float and type(other) is float:
        return math.isclose(one, other, rel_tol=SAME, abs_tol=NONE)
    return type(one) is type(other) and bool(one == other)


def _differs(file: Path, why: str) -> InvalidFile:
    return InvalidFile(
        f"'{file.name}' does not say what its digest stands for",
        why=why,
        instead="plan the program again, here and with this version: dualmandate plan PROGRAM.toml --out DIR",
        where=Place(str(file)),
    )
