"""`dualmandate audit`: attack what was published, and say what an attacker learns.

What is judged by confidential records goes to a folder of its own, never to the screen and never beside a release.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.folder import check_writable, written_whole
from dualmandate.apps.voice import Voice
from dualmandate.errors import InvalidRequest, Place
from dualmandate.ledger.anchors import RELEASE_FILE

if TYPE_CHECKING:
    from dualmandate.audit.auditing import Audit
    from dualmandate.audit.finding import Label

TABULATED = "tabulated:"
AUDIT_FILE, AUDIT_PAGE = "audit.json", "audit.html"


@dataclass(frozen=True)
class Auditing:
    """What was typed."""

    target: Path
    out: Path | None = None
    internal: Path | None = None
    confidential: Path | None = None
    tabulated: Path | None = None
    place: str | None = None
    seconds: float | None = None


def records_of(typed: Sequence[str]) -> tuple[Path | None, Path | None]:
    """The true records, and with the word `tabulated:` those that were tabulated; each once."""
    tabulated = [Path(each.removeprefix(TABULATED)) for each in typed if each.startswith(TABULATED)]
    true = [Path(each) for each in typed if not each.startswith(TABULATED)]
    if len(tabulated) > 1 or len(true) > 1:
        raise InvalidRequest(
            "more than one file of the same records",
            why="an attack is judged by the true records, and by those that were tabulated",
            instead=f"name FILE once and {TABULATED}FILE once",
        )
    return next(iter(true), None), next(iter(tabulated), None)


def carry_out(typed: Auditing, voice: Voice) -> None:
    """Audit, write where asked, then speak; exit 0 whatever was found."""
    _check_folders(typed)
    with voice.progress(f"auditing {typed.target.name}") as progress:
        from dualmandate.audit.finding import SECONDS
        from dualmandate.program.auditing import Asked, audited

        seconds = SECONDS if typed.seconds is None else typed.seconds
        asked = Asked(typed.confidential, typed.tabulated, typed.place, seconds, progress=progress)
        found = audited(typed.target, asked)
        if typed.out is not None:
            write(found, typed.out, "public")
        if typed.internal is not None:
            write(found, typed.internal, "internal")
    voice.say(found.words())
    inside = len(found.labeled("internal"))
    if typed.internal is not None:
        voice.say(f"\n{inside} internal findings, and single cells that follow: {typed.internal / AUDIT_PAGE}")
    if typed.out is not None:
        voice.say(f"\nwritten: {typed.out / AUDIT_FILE}\nto open: {typed.out / AUDIT_PAGE}")
    voice.document(found.document())


def write(found: Audit, folder: Path, label: Label) -> None:
    """Write the page and the document of one label, all or nothing."""
    from dualmandate.program.audit_page import audit_page

    with written_whole(folder) as draft:
        text = json.dumps(found.document(label), indent=2, ensure_ascii=False, allow_nan=False)
        (draft / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
        (draft / AUDIT_PAGE).write_text(audit_page(found, label), encoding="utf-8")


def _check_folders(typed: Auditing) -> None:
    """Refuse, before any work is done, folders where findings must not stand."""
    if (typed.confidential or typed.tabulated) and typed.internal is None:
        raise InvalidRequest(
            "records are named, and no folder for what they show",
            why="what is judged by them is internal, and is neither printed nor written beside public findings",
            instead="name a folder inside the wall with --internal DIR",
        )
    if typed.out is not None and typed.internal is not None and _within(typed.internal, typed.out):
        raise InvalidRequest(
            "the internal folder lies in the public one",
            why="whoever is handed the public folder would get it too",
            instead="name two folders apart from each other",
            where=Place(file=str(typed.internal)),
        )
    for folder in (typed.out, typed.internal):
        if folder is not None:
            _check_no_release(folder)
            check_writable(folder)


def _check_no_release(folder: Path) -> None:
    here = folder.absolute()
    released = next((each for each in (here, *here.parents) if (each / RELEASE_FILE).is_file()), None)
    if released is not None:
        raise InvalidRequest(
            "findings are to be written into a release",
            why="a release is what was published, and nothing else",
            instead="name a folder outside of it",
            where=Place(file=str(folder)),
        )


def _within(inner: Path, outer: Path) -> bool:
    one, other = inner.resolve(), outer.resolve()
    return one == other or other in one.parents
