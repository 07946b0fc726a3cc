"""Publishing, as a command and as a Python function: an approved plan is carried out exactly, or taken up again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps import next_step
from dualmandate.apps.ledgers import find_ledger, person
from dualmandate.apps.output import Interruption, Output, Progress
from dualmandate.apps.plan import PROGRAM_FILE, program_file
from dualmandate.apps.settings import project_folder
from dualmandate.errors import (
    InvalidAccount,
    InvalidFile,
    InvalidRequest,
    NotApproved,
    NotChecked,
    Place,
    Refusal,
)
from dualmandate.ledger import EventKind, Ledger, ReleaseEntry
from dualmandate.ledger.chain import found_head
from dualmandate.ledger.signatures import signed_words
from dualmandate.population import PrivacyMeasure
from dualmandate.population.rational import written

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.saved_plan import SavedPlan
    from dualmandate.program import ProgramFile
    from dualmandate.publication import Source
    from dualmandate.publication.publish import PublicationRequest
    from dualmandate.publication.release import Release
    from dualmandate.publication.release_spec import ReleaseSpec

UNANCHORED = (
    "no anchor could be kept beside the data, and no second place is named: a ledger restored from a backup would not "
    "be noticed when it publishes to another folder"
)
UNCHECKED = "the records were not checked before, and the release says so"
RELEASES = "releases"  # the folder beside the program where releases are written unless another is named


@dataclass(frozen=True)
class PublishOptions:
    """What was typed."""

    plan: Path
    out: Path | None = None
    ledger: str | None = None
    by: str | None = None
    resume: str | None = None
    again: bool = False
    group: str | None = None
    purpose: str | None = None
    other_ledger: str | None = None
    sign: Path | None = None
    unchecked: bool = False


@dataclass(frozen=True)
class PublicationNotice:
    """A release that was just written and settled."""

    entry: ReleaseEntry
    folder: Path
    privacy_measure: PrivacyMeasure  # of the account
    remaining: Fraction
    approved: str = "approved, unsigned"  # how, in words
    anchored: bool = True  # whether an anchor outside of the ledger's folder and of the releases knows of it

    @property
    def signed_with(self) -> str | None:
        """The key of the publisher."""
        return self.entry.signed_with

    def words(self) -> str:
        """Where the release lies, what it cost, what the account has left, and whether anything else knows of it."""
        entry = self.entry
        return "\n".join(
            [
                f"published: release {entry.name}, at a loss of {entry.loss.privacy_measure} "
                f"{written(entry.loss.amount)} of each {entry.unit}",
                f"the account '{entry.account}' has {self.privacy_measure} {written(self.remaining)} left",
                "the secret of its noise is destroyed; nobody can make or unmake it again",
                f"{self.approved}; published, {signed_words(self.signed_with)}",
                *([] if self.anchored else [UNANCHORED]),
                *([UNCHECKED] if entry.unchecked else []),
                "",
                f"to open: {self.folder / 'index.html'}",
                f'to read: dualmandate.load_release("{next_step.nearest(self.folder)}"), in Python',
                "",
                next_step.advice(next_step.audit_release(self.folder)),
            ]
        )

    def document(self) -> dict[str, object]:
        """The publication as the JSON document `publication/1`."""
        from dualmandate.report.documents.ledger import PublicationDocument

        stated = {"release": self.entry.name, "directory": str(self.folder)}
        return PublicationDocument.made_of(self, self.entry, **stated).as_json()


def publish(
    plan: Plan,
    source: Source,
    ledger: Ledger,
    *,
    out: Path | str,
    by: str,
    resume: str | None = None,
    other_ledger: str | None = None,
    sign: Path | None = None,
    unchecked: bool = False,
) -> Release:
    """Carry out a plan that the ledger knows as approved, on confidential records, at exactly its loss.

    `by` is who publishes, for the record; `resume` names a release to take up where it was left. The release is
    written to a folder of its own below `out`. `other_ledger` says why it may be where another ledger has spent from
    the same records; `sign` is the publisher's ssh key, where the publication is to be signed. Records that were never
    checked in the state that they are in (`check`) are refused, unless `unchecked` says that this may be; the ledger
    and the release repeat it.
    """
    from dualmandate.planning.release_spec import load_release, release_spec_of_plan
    from dualmandate.publication.publish import PublicationRequest
    from dualmandate.report.release_page import release_page

    order, request = (
        release_spec_of_plan(plan, release_page),
        PublicationRequest(by, source.name, other_ledger=other_ledger, sign=sign, unchecked=unchecked),
    )
    return load_release(_made(order, source, ledger, request, out=Path(out), resume=resume))


def carry_out(asked: PublishOptions, output: Output) -> None:
    """`dualmandate publish`: publish, or resume, and say what happened."""
    with output.progress(f"reading {asked.plan.name}") as progress:
        program, order, saved = _ordered(asked, progress)
        opening = _opening(asked, program, order)
        ledger = find_ledger(program.document.path.parent, asked.ledger, opening=opening).open()
        if saved is not None:
            _check_shown(saved, asked.plan, ledger, progress)
        with _resumable(asked, ledger, order), _pasteable(asked, program, order):
            notice = published(asked, program, order, ledger=ledger, progress=progress)
    output.tell(notice)


def published(
    asked: PublishOptions, program: ProgramFile, order: ReleaseSpec, *, ledger: Ledger, progress: Progress
) -> PublicationNotice:
    """Carry the order out, or the rest of it, and count what is left."""
    from dualmandate.publication.beside_data import anchor_beside
    from dualmandate.publication.publish import PublicationRequest

    if program.source is None:
        raise InvalidRequest(
            "the program names no source",
            why="tables are made of records, and the program says where these lie",
            instead='state source = "…" under [population], plan again, and have that plan approved',
            where=Place(file=str(program.document.path), key="population.source"),
        )
    # Releases usually lie there: they are heeded wherever this one is to go.
    usual = program.document.path.parent / RELEASES
    out, spent = asked.out or usual, (asked.group, asked.purpose, asked.again, asked.other_ledger, asked.sign)
    stated = person(asked.by), program.source.name, *spent
    request = PublicationRequest(*stated, folders=(usual,), unchecked=asked.unchecked)
    made = _made(order, program.source, ledger, request, out=out, resume=asked.resume, progress=progress)
    entry, beside = ledger.release(made.name), anchor_beside(program.source, ledger.identifier)
    account = next(account for account in ledger.accounts() if account.name == entry.account)
    known = None if beside is None else found_head(beside)
    anchored = bool(ledger.kept_at()) or (known is not None and known.sequence >= entry.entry)
    keys = [each.signature.key for each in ledger.approvals_of(entry.name) if each.signature is not None]
    approved = f"approved, {signed_words(keys[0] if keys else None)}"
    left = ledger.remaining(account.name)
    return PublicationNotice(entry, made, account.privacy_measure, left, approved, anchored)


def _made(
    order: ReleaseSpec,
    source: Source,
    ledger: Ledger,
    request: PublicationRequest,
    *,
    out: Path,
    resume: str | None,
    progress: Progress | None = None,
) -> Path:
    """The folder of the release."""
    from dualmandate.publication import publish as act

    if resume is not None:
        release = released(ledger, order.account, resume)
        by, unchecked = request.by, request.unchecked
        return act.resume(
            order, source, ledger, release=release, out=out, by=by, unchecked=unchecked, progress=progress
        )
    return act.publish(order, source, ledger, out=out, request=request, progress=progress)


def _check_shown(saved: SavedPlan, file: Path, ledger: Ledger, progress: Progress) -> None:
    """Refuse a saved plan that says anything else than what was approved, unless it follows from its program too.

    Its digest is of exact things; whoever opens the plan that was published reads all the rest.
    """
    from dualmandate.apps.following import check_follows

    said = [event.document() for event in ledger.events(saved.account) if event.kind is EventKind.APPROVED]
    read = [each.get("shown") for each in said if each["plan_digest"] == saved.digest]
    if read and saved.shown not in read:  # what nobody approved is refused soon enough
        check_follows(saved, file, ledger, progress)


def _ordered(asked: PublishOptions, progress: Progress) -> tuple[ProgramFile, ReleaseSpec, SavedPlan | None]:
    """The program and what its plan orders: a saved plan as it stands, or a program that is planned again."""
    from dualmandate.planning.release_spec import release_spec_of, release_spec_of_plan
    from dualmandate.planning.saved_plan import load_plan
    from dualmandate.report.release_page import release_page

    if asked.plan.is_dir() or asked.plan.suffix == ".toml":
        from dualmandate.planning.program import load  # here: a saved plan needs none of the economics

        plan_made = load(program_file(asked.plan)).plan(progress=progress)
        return plan_made.program, release_spec_of_plan(plan_made, release_page), None
    plan = load_plan(asked.plan)
    plan.check_publishable(Place(file=str(asked.plan), key="mechanism.noise"))
    program = planned_program(asked.plan, plan)
    return program, release_spec_of(plan, program, asked.plan.parent, release_page), plan


def released(ledger: Ledger, account: str, typed: str) -> str:
    """A release as it was typed: by its name, or by its number within the account."""
    if not typed.isdecimal():
        return typed
    named = (entry.name for entry in ledger.releases(account) if entry.number == int(typed))
    return next(named, typed)


def planned_program(file: Path, plan: SavedPlan) -> ProgramFile:
    """The program that a saved plan was made of; refused where it is not found."""
    program = program_of_plan(file, plan)
    if program is not None:
        return program
    known = plan.program_file
    raise InvalidFile(
        f"the program of '{file.name}' was not found",
        why=f"the plan was made of '{known}', seen from its folder, and nothing that says the same lies there or above"
        if known is not None
        else f"there is no {PROGRAM_FILE} in the plan's folder or above it",
        instead="put the plan's folder back where it was written, or name the program file itself",
        where=Place(file=str(file)),
    )


def program_of_plan(plan: Path, saved: SavedPlan) -> ProgramFile | None:
    """The program that a plan was made of: where the plan remembers it, or the nearest upward that says the same.

    It is looked for by its name, and as program.toml. None where there is none at all; refused where there are others
    only.
    """
    from dualmandate.planning.saved_plan import digest_of, exact_content, is_there
    from dualmandate.program.program import program_of, read_stated

    here, changed = plan.parent, None
    above = () if plan.is_absolute() else Path.cwd().parents
    known = saved.program_file
    names = dict.fromkeys([*([] if known is None else [Path(known).name]), PROGRAM_FILE])
    places = [folder / name for folder in (here, *here.parents, *above) for name in names]
    for file in (*_remembered(here, known), *places):
        if not is_there(file):
            continue
        document, keys = read_stated(file)
        if digest_of(exact_content(document.content)) == saved.program_digest:
            return program_of(document, keys, saved.bounds)
        changed = changed or file
    if changed is not None:
        raise NotApproved(
            "the program was changed after the plan was made",
            why="exactly the approved plan is published, and it was made of another program",
            instead="restore the program, or plan it again and have that plan approved",
            where=Place(file=str(changed)),
        )
    return None


def _remembered(here: Path, stated: str | None) -> list[Path]:
    """Where the plan in a folder remembers its program; a plan that lies in a project leads nowhere out of it.

    No digest covers that path: whoever can write a plan could lead to the settings of another folder, its ledger, its
    records, and the command that these name.
    """
    from dualmandate.planning.saved_plan import is_there

    if stated is None or not is_there(file := Path(os.path.normpath(here / stated))):
        return []
    own = project_folder(here.resolve())
    return [file] if own is None or project_folder(file.parent.resolve()) == own else []


def _opening(asked: PublishOptions, program: ProgramFile, order: ReleaseSpec) -> str:
    """The command that opens the account of an order, in the ledger that publishing it looks for."""
    start, unit = program.document.path.parent, order.protection.unit
    return next_step.open_account(start, order.charge, account=order.account, unit=unit, flag=asked.ledger)


@contextmanager
def _pasteable(asked: PublishOptions, program: ProgramFile, order: ReleaseSpec) -> Iterator[None]:
    """A refusal that another command answers names it as it can be pasted here."""
    ledger = asked.ledger
    try:
        yield
    except InvalidAccount as refusal:
        opening = _opening(asked, program, order)
        raise refusal.advising(f"open its account, with a cap of your choice: {opening}") from None
    except NotChecked as refusal:
        command = next_step.check_records(asked.plan, ledger)
        raise refusal.advising(
            f"check them, whatever is found (--unchecked instead is recorded and published): {command}"
        ) from None
    except NotApproved as refusal:
        if order.plan_digest[:12] not in refusal.what:
            raise
        plan = asked.plan
        if plan.suffix != ".json":
            plan = next_step.saved_plan_of(program.document.path) or plan
        command = (
            next_step.approve_plan(plan, ledger)
            if plan.suffix == ".json"
            else next_step.plan_program(program.document.path)
        )
        raise refusal.advising(f"{refusal.instead}: {command}") from None


@contextmanager
def _resumable(asked: PublishOptions, ledger: Ledger, order: ReleaseSpec) -> Iterator[None]:
    """An interruption, and a refusal after something was spent, say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if (command := _resuming(asked, ledger, order)) is None:
            raise
        raise Interruption(command) from None
    except Refusal as refusal:
        if (command := _resuming(asked, ledger, order)) is None:
            raise
        raise refusal.advising(f"{refusal.instead}: {command}") from None


def _resuming(asked: PublishOptions, ledger: Ledger, order: ReleaseSpec) -> str | None:
    """The command that takes up the release of this plan which is under way; None where there is none."""
    try:
        begun = [entry for entry in ledger.releases(order.account) if entry.plan_digest == order.plan_digest]
    except Refusal:
        return None
    waiting = [entry.name for entry in begun if entry.state.is_active]
    if not waiting:
        return None
    words = ["dualmandate", "publish", str(asked.plan), "--resume", asked.resume or waiting[-1]]
    for flag, value in (("--out", asked.out), ("--ledger", asked.ledger)):
        words += [] if value is None else [flag, str(value)]
    return shlex.join(words)
