"""`dualmandate check`: what in the records does not fit the program, for the curator inside the wall.

It leaves with status 0 whatever it finds: a scheduler writes exit statuses down where others read them. Only what is
true of every record alike (no file, a damaged file, a rule that cannot be followed) is refused. What was found lies in
a folder for its owner alone; the ledger learns that the records, as they are, were checked, and nothing of what they
hold: `publish` asks it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps import next_step
from dualmandate.apps.folder import check_private, check_writable, json_text, write_files, written_whole
from dualmandate.apps.output import Output, Progress
from dualmandate.apps.settings import STATE_FOLDER
from dualmandate.errors import MissingKey

if TYPE_CHECKING:
    from dualmandate.ledger import Ledger
    from dualmandate.ledger.books import RecordState
    from dualmandate.planning.plan import Plan
    from dualmandate.program import ProgramFile
    from dualmandate.publication import Source
    from dualmandate.publication.checking import CheckReport

CHECK_FILE = "check.json"
CHECKS = "checks"  # in the folder of what a project knows and nobody else, a folder for each program
NOT_RECORDED = "not recorded: there is no ledger yet, so publishing will ask for another check"


@dataclass(frozen=True)
class CheckOptions:
    """What was typed."""

    program: Path
    internal: Path | None = None
    refuse: Sequence[str] = ()
    by: str | None = None
    ledger: str | None = None


def check(plan: Plan, source: Source, ledger: Ledger, *, by: str) -> CheckReport:
    """Hold confidential records against the program of a plan, and record in the ledger that they were checked.

    The report is for the curator: its `words()` are as confidential as the records. `publish` refuses records that were
    never checked in the state that they are in, whatever was found in them.
    """
    program = plan.program
    state = _state(program, source, ledger)  # before they are read: what changes meanwhile was not checked
    report = _report(program, source, ())
    ledger.record_check(state, by=by, account=program.file.population.account, source=source.name)
    return report


def carry_out(asked: CheckOptions, output: Output) -> None:
    """Check the program's source, keep what was found inside, and say it on a terminal or as a document."""
    with output.progress(f"reading {asked.program.name}") as progress:
        program, file = checked_program(asked.program, progress)
        folder = asked.internal or program.document.path.parent / STATE_FOLDER / CHECKS / program.document.path.stem
        check_writable(folder)
        check_private(folder)
        source = _source(program)
        ledger = _ledger(program, asked.ledger)
        state = None if ledger is None else _state(program, source, ledger, progress)  # before they are read
        report = _report(program, source, asked.refuse, progress)
        if ledger is not None and state is not None:
            from dualmandate.apps.ledgers import person

            account = program.file.population.account
            ledger.record_check(state, by=person(asked.by), account=account, source=source.name)
        from dualmandate.publication.checking import WARNING
        from dualmandate.report.documents.ledger import check_document

        document = check_document(report, program.name, recorded=ledger is not None)
        _write(folder, document, within_project=asked.internal is None)
    inside = not output.json and sys.stdout.isatty()
    output.say(report.words() if inside else WARNING)  # standard error is often a log, and a pipe leads anywhere
    output.say(f"\nwritten, for its owner alone: {next_step.nearest(folder / CHECK_FILE)}")
    output.say(NOT_RECORDED if ledger is None else "recorded: the records were checked as they are now")
    output.say(f"\n{next_step.advice(_next(file, program, asked.ledger, recorded=ledger is not None))}")
    output.document(lambda: document)


def checked_program(given: Path, progress: Progress) -> tuple[ProgramFile, Path]:
    """The program that records are held against, and what publishes it: a plan as it stands, or a program file."""
    from dualmandate.apps.plan import program_file
    from dualmandate.apps.publish import planned_program
    from dualmandate.planning.saved_plan import load_plan

    if given.suffix == ".json":
        return planned_program(given, load_plan(given)), given
    from dualmandate.program.program import program_of, read_stated
    from dualmandate.program.schema import BEST

    file = program_file(given)
    document, keys = read_stated(file)
    if all(getattr(each, "upper", None) != BEST for each in keys.population.attributes.values()):
        return program_of(document, keys), file
    from dualmandate.planning.program import load

    progress("planning: the program leaves bounds to its plan")
    return load(file).with_best_bounds(), file


def _source(program: ProgramFile) -> Source:
    if program.source is None:
        raise MissingKey(
            "the program names no source",
            why="a check reads the confidential records",
            instead='write source = "people.parquet" under [population]',
            where=program.document.place(("population", "source")),
        )
    return program.source


def _ledger(program: ProgramFile, flag: str | None) -> Ledger | None:
    """The ledger of the program; None where there is none yet."""
    if not next_step.ledger_stands(program.document.path.parent, flag):
        return None
    from dualmandate.apps.ledgers import find_ledger

    return find_ledger(program.document.path.parent, flag).open()


def _report(
    program: ProgramFile, source: Source, refuse: Sequence[str], progress: Progress | None = None
) -> CheckReport:
    from dualmandate.publication.checking import check as checked
    from dualmandate.publication.checking import refusing, report_for_curator

    def read(share: float) -> None:
        if progress is not None:
            progress.count("percent of the records read", round(100 * share), 100)

    domain, protection = program.domain, program.protection
    rules = refusing(program.rules, refuse, domain)
    box = checked(source, domain, protection=protection, rules=rules, progress=None if progress is None else read)
    return report_for_curator(box, source.name, rules=rules, domain=domain, protection=protection)


def _state(program: ProgramFile, source: Source, ledger: Ledger, progress: Progress | None = None) -> RecordState:
    from dualmandate.publication.states import state_of
    from dualmandate.publication.tabulating import TabulationSpec

    spec = TabulationSpec(program.domain, program.protection, program.rules)
    return state_of(source, spec, ledger, progress=progress)


def _write(folder: Path, document: dict[str, object], *, within_project: bool) -> None:
    """The document, for its owner alone; git is told to leave it."""
    from dualmandate.ledger.durable import make_folder

    for above in (folder.parent.parent, folder.parent) if within_project else ():
        make_folder(above)
    with written_whole(folder, private=True) as draft:
        write_files({CHECK_FILE: json_text(document), ".gitignore": "*\n"}, draft)


def _next(given: Path, program: ProgramFile, ledger: str | None, *, recorded: bool) -> str:
    """Publish; before, write a plan and open an account for it."""
    plan = given if given.suffix == ".json" else next_step.saved_plan_of(given)
    if plan is None:
        return next_step.plan_program(given)
    if recorded:
        return next_step.publish_plan(plan, ledger)
    from dualmandate.planning.saved_plan import load_plan

    population = program.file.population
    loss = load_plan(plan).charge
    start = program.document.path.parent
    return next_step.open_account(start, loss, account=population.account, unit=population.unit, flag=ledger)
