"""From a program file to a plan on the screen and, where asked, on disk."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.apps import next_step
from dualmandate.apps.folder import check_writable, json_text, write_files, written_whole
from dualmandate.apps.next_step import PLAN_FILE
from dualmandate.apps.output import Output, Progress
from dualmandate.apps.settings import settings
from dualmandate.errors import BudgetExceeded, Refusal

if TYPE_CHECKING:
    from dualmandate.apps.ledgers import AccountRoom
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.program import Program


PROGRAM_FILE = "program.toml"
STYLES = {"plain": "", "heading": "bold", "choice": "bold green", "warning": "yellow"}


def carry_out(
    program: Path, out: Path | None, output: Output, *, ledger: str | None = None, full: bool = False
) -> None:
    """`dualmandate plan`: plan, write where asked, then speak: on one screen, or in `full`.

    Nothing is written before the plan stands. With a `ledger`, what the program's account has left limits the choice.
    """
    file = program_file(program)
    folder = settings(file.parent, {"out": None if out is None else str(out)})["out"].path
    if folder is not None:
        check_writable(folder)
    with output.progress(f"planning {file.name}") as progress:
        from dualmandate.planning.program import load
        from dualmandate.report.documents.plan import plan_document

        loaded = load(file)
        room = None if ledger is None else _room(loaded, file, ledger)
        plan = loaded.plan(None if room is None else room.remaining, progress=progress)
        plan = replace(plan, account_identifier=_account(file, ledger, loaded))
        if room is not None:
            room.check(plan)
        document = plan_document(plan)
        if folder is not None:
            document = write(plan, document, folder, progress)
    after = [] if room is None else [room.words()]
    if short := None if ledger is not None else _shortage(loaded, file, plan):
        after.append(f"note: {short}; so it would not be published")
    if (source := missing_source(plan)) is not None:
        after.append(f"note: the source '{next_step.nearest(source)}' is not there yet")
    if (cost := plan.publishing) is not None:
        after.insert(0, cost.words())
    if folder is not None:
        after += [f"written: {folder / PLAN_FILE}", f"to open: {folder / page_name()}"]
    within = next_step.plan_program(file, folder, ledger=_ledger_file(file)) if short else None
    following = next_step.advice(within or next_after(plan, file, folder, ledger))
    _say(plan, (*after, *following.split("\n")), output, full=full)
    output.document(lambda: document if cost is None else {**document, "publishing": cost.document()})


def _say(plan: Plan, after: tuple[str, ...], output: Output, *, full: bool) -> None:
    if full:
        from dualmandate.report.plan_words import plan_words

        output.say("\n".join((plan_words(plan), "", *after)))
        return
    from dualmandate.report.plan_summary import plan_summary

    output.say_styled((line.text, STYLES[line.kind]) for line in plan_summary(plan, after))


def next_after(plan: Plan, file: Path, folder: Path | None, ledger: str | None = None) -> str:
    """The command to type after a plan, by where it was written."""
    if plan.study:
        return next_step.plan_program(file, folder)  # once its noise is one that is drawn
    account, unit = plan.program.file.population.account, plan.program.file.population.unit
    return next_step.after_plan(file, folder, plan.charge, account=account, unit=unit, ledger=ledger)


def missing_source(plan: Plan) -> Path | None:
    """The program's file of records where there is none; whether there is one says nothing of what is in it."""
    path = getattr(plan.program.source, "path", None)
    return None if path is None or Path(path).exists() else Path(path)


def _shortage(program: Program, file: Path, plan: Plan) -> str | None:
    """That the account has less left than the plan costs, where the project's ledger is a file that can be opened.

    None otherwise: a plan needs no ledger, and what else is wrong with one is said by the command that needs it.
    """
    if plan.study or _ledger_file(file) is None:
        return None
    try:
        _room(program, file, None).check(plan)
    except BudgetExceeded as refusal:
        return refusal.what
    except Refusal:
        pass
    return None


def _ledger_file(file: Path) -> Path | None:
    """The ledger that other commands find for a program without being told, where it is a file here."""
    place = settings(file.parent, {})["ledger"].value
    return None if place is None or "://" in place or not Path(place).is_file() else next_step.nearest(Path(place))


def _room(program: Program, file: Path, ledger: str | None) -> AccountRoom:
    from dualmandate.apps.ledgers import find_ledger, room_for

    return room_for(program, find_ledger(file.parent, ledger).open())


def _account(file: Path, ledger: str | None, program: Program) -> str | None:
    """Which account the plan is made for, where the project has a ledger."""
    place = settings(file.parent, {"ledger": ledger})["ledger"].value
    if place is None or not ("://" in place or Path(place).exists()):
        return None  # before the ledger's database library is loaded
    from dualmandate.apps.ledgers import known_account

    return known_account(file.parent, ledger, program.file.population.account)


def program_file(program: Path) -> Path:
    """The program file meant by a file, whatever its name, or by the folder that holds it."""
    from dualmandate.program.file import program_meant

    return program_meant(program)


def page_name() -> str:
    """The page of the dossier, within the folder it was written to."""
    from dualmandate.report.dossier import PAGE

    return PAGE


def write(plan: Plan, document: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """Write plan.json, what it measures and the dossier, all or nothing; the document with the digests of its pages.

    Refused where a release of it, or the plan itself, is too large for this machine: what is approved is published.
    """
    from dualmandate.planning.release_spec import check_saved, strategy_files
    from dualmandate.planning.saved_plan import with_pages
    from dualmandate.publication.costs import check_disk
    from dualmandate.report.dossier import write_dossier

    if plan.publishing is not None:
        check_disk(plan.publishing.disk, plan.program.document.path.parent)
    with written_whole(folder) as draft:
        progress("drawing the figures and writing the dossier")
        pages = {path.relative_to(draft).as_posix(): path.read_bytes() for path in write_dossier(plan, draft)}
        program = Path(os.path.relpath(plan.program.document.path.absolute(), folder.absolute())).as_posix()
        document = {**document, "program": {**document["program"], "file": program}}
        sealed = with_pages(document, pages)
        files = {PLAN_FILE: json_text(sealed), **strategy_files(plan)}
        check_saved(files)
        write_files(files, draft)
    return sealed
