"""Publishing, as a command and as a Python function: an approved plan is carried out exactly, or taken up again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.ledgers import find_ledger, person
from dualmandate.apps.output import Interruption, Output, Progress
from dualmandate.apps.plan import PROGRAM_FILE, program_file
from dualmandate.errors import InvalidFile, InvalidRequest, NotApproved, Place, Refusal
from dualmandate.ledger import Ledger, ReleaseEntry
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
                "",
                f"to open: {self.folder / 'index.html'}",
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
) -> Release:
    """Carry out a plan that the ledger knows as approved, on confidential records, at exactly its loss.

    `by` is who publishes, for the record; `resume` names a release to take up where it was left. The release is
    written to a folder of its own below `out`. `other_ledger` says why it may be where another ledger has spent from
    the same records; `sign` is the publisher's ssh key, where the publication is to be signed.
    """
    from dualmandate.planning.release_spec import load_release, release_spec_of_plan
    from dualmandate.publication.publish import PublicationRequest
    from dualmandate.report.release_page import release_page

    order, request = (
        release_spec_of_plan(plan, release_page),
        PublicationRequest(by, source.name, other_ledger=other_ledger, sign=sign),
    )
    return load_release(_made(order, source, ledger, request, out=Path(out), resume=resume))


def carry_out(asked: PublishOptions, output: Output) -> None:
    """`dualmandate publish`: publish, or resume, and say what happened."""
    with output.progress(f"reading {asked.plan.name}") as progress:
        program, order = _ordered(asked, progress)
        ledger = find_ledger(program.document.path.parent, asked.ledger).open()
        with _resumable(asked, ledger, order):
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
    request = PublicationRequest(person(asked.by), program.source.name, *spent, folders=(usual,))
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
        return act.resume(order, source, ledger, release=resume, out=out, by=request.by, progress=progress)
    return act.publish(order, source, ledger, out=out, request=request, progress=progress)


def _ordered(asked: PublishOptions, progress: Progress) -> tuple[ProgramFile, ReleaseSpec]:
    """The program and what its plan orders: a saved plan as it stands, or a program that is planned again."""
    from dualmandate.planning.release_spec import release_spec_of, release_spec_of_plan
    from dualmandate.planning.saved_plan import load_plan
    from dualmandate.report.release_page import release_page

    if asked.plan.is_dir() or asked.plan.suffix == ".toml":
        from dualmandate.planning.program import load  # here: a saved plan needs none of the economics

        plan_made = load(program_file(asked.plan)).plan(progress=progress)
        return plan_made.program, release_spec_of_plan(plan_made, release_page)
    plan = load_plan(asked.plan)
    plan.check_publishable(Place(file=str(asked.plan), key="mechanism.noise"))
    program = program_of_plan(asked.plan, plan)
    if program is None:
        raise InvalidFile(
            f"the program of '{asked.plan.name}' was not found",
            why=f"there is no {PROGRAM_FILE} in the plan's folder or above it",
            instead="publish the program file itself, or move the plan's folder into the program's",
            where=Place(file=str(asked.plan)),
        )
    return program, release_spec_of(plan, program, asked.plan.parent, release_page)


def program_of_plan(plan: Path, saved: SavedPlan) -> ProgramFile | None:
    """The program that a plan was made of: the nearest program.toml upward from the plan that says the same.

    None where there is none at all; refused where there are others only.
    """
    from dualmandate.planning.saved_plan import digest_of, exact_content
    from dualmandate.program.program import program_of, read_stated

    here, changed = plan.parent, None
    above = () if plan.is_absolute() else Path.cwd().parents
    for folder in (here, *here.parents, *above):
        file = folder / PROGRAM_FILE
        if not file.is_file():
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
