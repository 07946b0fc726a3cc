"""What to type next: commands with their paths and words, as they can be pasted from the current folder.

Each step of a release names the one after it: plan, open an account, approve, check, publish, audit, and the page of
all. Nothing here opens a ledger or records; a step that is not due is refused by its command, which names the one that
is.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from dualmandate.apps.settings import LEDGER_FILE, STATE_FOLDER, project_folder, settings
from dualmandate.errors import Refusal
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import written

PLAN_FILE = "plan.json"
REPORT = "report"  # where a plan is written unless another folder is named
CENT = Fraction(1, 100)
_PASSWORD = re.compile("://[^/@]*:[^/@]*@")  # in a URL, which is then not repeated


def typed(*words: object) -> str:
    """A command as a shell reads it."""
    return shlex.join(["dualmandate", *map(str, words)])


def advice(command: str) -> str:
    """The lines at the end of a command's words."""
    return f"next:\n  {command}"


def nearest(path: Path) -> Path:
    """A path as it is typed here: from the current folder where it lies in it or near it, else whole."""
    if not path.is_absolute():
        return path
    relative = Path(os.path.relpath(path))
    return relative if relative.parts[:2] != ("..", "..") else path


def plan_program(program: Path, out: Path | None = None, *, ledger: Path | None = None) -> str:
    """Plan a program, and write what is approved; with a ledger, within what its account has left."""
    file = nearest(program)
    return typed("plan", file, "--out", out or file.parent / REPORT, *(() if ledger is None else ("--ledger", ledger)))


def after_plan(
    program: Path, folder: Path | None, loss: PrivacyLoss, *, account: str, unit: str, ledger: str | None = None
) -> str:
    """After a plan: write it; then open its account, where there is no ledger yet, or have it approved."""
    if folder is None:
        return plan_program(program)
    if ledger_stands(program.parent, ledger):
        return approve_plan(folder / PLAN_FILE, ledger)
    return open_account(program.parent, loss, account=account, unit=unit, flag=ledger)


def ledger_stands(start: Path, flag: str | None = None) -> bool:
    """Whether a ledger is there, or is somewhere where only its database can tell."""
    place = settings(start, {"ledger": flag})["ledger"].value
    return place is not None and ("://" in place or Path(place).exists())


def open_account(start: Path, loss: PrivacyLoss, *, account: str, unit: str, flag: str | None = None) -> str:
    """Open the account of a program that lies in `start`, in the ledger that its other commands will find.

    The cap is a proposal: a whole number of epsilon, or hundredths of rho, that holds this loss.
    """
    place = settings(start, {"ledger": flag})["ledger"].value
    step = Fraction(1) if loss.privacy_measure is PrivacyMeasure.PURE_DP else CENT
    cap = written(math.ceil(loss.amount / step) * step)
    stated = cap if loss.privacy_measure is PrivacyMeasure.PURE_DP else f"{loss.privacy_measure}={cap}"
    words = ["ledger", "open", account, "--unit", unit, "--cap", stated]
    if place is not None and place == settings(Path.cwd(), {})["ledger"].value:
        return typed(*words)
    if place is not None and "://" in place:  # not repeated: it may hold a password
        project = project_folder(start)
        assert project is not None
        return f"cd {shlex.quote(str(nearest(project)))} && {typed(*words)}"
    file = Path(place) if place is not None else start / STATE_FOLDER / LEDGER_FILE
    return typed(*words, "--ledger", nearest(file))


def _ledger_words(start: Path, flag: str | None) -> Iterable[object]:
    """The ledger, where it was named and would not be found without."""
    found = settings(start, {})["ledger"].value
    if flag is None or found == flag or _PASSWORD.search(flag):
        return ()
    same = found is not None and "://" not in found + flag and Path(found).resolve() == Path(flag).resolve()
    return () if same else ("--ledger", flag)


def approve_plan(plan: Path, ledger: str | None = None) -> str:
    """Have a plan approved. What its program saw in the data is listed then, and accepted by a word of its own."""
    return typed("approve", nearest(plan), *_ledger_words(plan.parent, ledger))


def check_records(program_or_plan: Path, ledger: str | None = None) -> str:
    """Check the records of a program, as they are now."""
    return typed("check", nearest(program_or_plan), *_ledger_words(_folder(program_or_plan), ledger))


def publish_plan(plan: Path, ledger: str | None = None) -> str:
    """Publish a plan."""
    return typed("publish", nearest(plan), *_ledger_words(_folder(plan), ledger))


def audit_release(folder: Path) -> str:
    """Attack a release, and write what is found beside the folder of releases."""
    return typed("audit", nearest(folder), "--out", nearest(folder.parent.parent / "audit" / folder.name))


def index_project(folder: Path) -> str | None:
    """Link what was found with the rest of its project on one page; None where it lies in none."""
    project = project_folder(folder)
    return None if project is None else typed("index", nearest(project))


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def saved_plan_of(program: Path) -> Path | None:
    """The plan of a program that was written where plans are written: named in the project, or beside the program."""
    try:
        named = settings(program.parent, {})["out"].path
    except Refusal:
        return None
    folders = [*([] if named is None else [named]), program.parent / REPORT, program.parent]
    return next((folder / PLAN_FILE for folder in folders if (folder / PLAN_FILE).is_file()), None)


def plan_for(account: str, start: Path) -> Path | None:
    """The newest plan near a folder that would spend from an account."""
    from dualmandate.planning.saved_plan import load_plan

    found = [path for depth in ("", "*/", "*/*/") for path in start.glob(f"{depth}{PLAN_FILE}")]
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            if load_plan(path).account == account:
                return path
        except Refusal:
            continue
    return None
