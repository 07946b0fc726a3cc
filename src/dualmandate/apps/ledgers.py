"""Where the ledger of a command lies, and the three acts that need it: open an account, approve a plan, count room.

An account is typed as its unit and its cap, and the caps, reserves and bounds inside it.
"""

from __future__ import annotations

import getpass
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps import next_step
from dualmandate.apps.settings import LEDGER_FILE, PROJECT_FILE, STATE_FOLDER, Setting, project_folder, settings
from dualmandate.errors import (
    BudgetExceeded,
    InvalidAccount,
    InvalidFile,
    InvalidLoss,
    InvalidRelease,
    InvalidRequest,
    InvalidValue,
    LedgerUnavailable,
    NotApproved,
    Place,
    Refusal,
    ReleaseConflict,
)
from dualmandate.ledger import (
    Account,
    AccountLimit,
    AppendOnlyFile,
    Approval,
    BudgetDecision,
    BudgetRequest,
    CommandPlace,
    DatabasePlace,
    Earmark,
    EventKind,
    FilePlace,
    Head,
    HeadPlace,
    Ledger,
    Scope,
    Signers,
    UnitBound,
    account_identifier,
    make_key,
    open_ledger,
    read_key,
)
from dualmandate.ledger.chain import RELEASE_FILE, found_head
from dualmandate.ledger.composition import LossKind, affordable, checked_name, cost
from dualmandate.ledger.durable import alone_in, make_folder
from dualmandate.ledger.signatures import signed_words
from dualmandate.ledger.storage import find_store
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import rational, written
from dualmandate.population.shown import one_line

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.program import Program

KEY_FILE = "key"
RESERVE = "reserve"
SIGNING = ("approvers", "publishers", "two_persons")
KEEPING = ("anchor_file", "anchor_append", "anchor_database", "anchor_command")
UNSIGNED = "unsigned: the name is what was typed, or the login's; to sign, see `approvers` in dualmandate.toml"
_CAPS = (
    "state --cap epsilon=10, or --cap rho=2.56; inside it --limit user=2, group:NAME=1, purpose:NAME=1/2 or "
    "reserve:PURPOSE=3"
)


@dataclass(frozen=True)
class LedgerFiles:
    """Where a ledger, its key and the folder of its anchor and secrets lie; nothing is opened yet."""

    place: str
    file: Path | None  # None for a database elsewhere
    folder: Path
    key: Path
    places: tuple[HeadPlace, ...] = ()  # second ones, of its head
    signers: Signers = field(default_factory=Signers)
    opening: str | None = None  # the command that opens the account that is asked for

    @property
    def words(self) -> str:
        return "a PostgreSQL database" if self.file is None else str(self.file)

    def open(self, *, anchors: tuple[Path, ...] = ()) -> Ledger:
        """The ledger that is there; refused where there is none."""
        if self.file is not None and not self.file.is_file():
            raise LedgerUnavailable(
                "there is no ledger",
                why="only opening an account creates a ledger",
                instead=f"open its account, with a cap of your choice: {self.opening}"
                if self.opening
                else "name the ledger's place, or open an account: `dualmandate plan` says how, for its program",
                where=Place(file=str(self.file)),
            )
        return open_ledger(
            self.place,
            read_key(self.key),
            folder=self.folder,
            anchors=anchors,
            places=self.places,
            signers=self.signers,
        )

    def same_disk(self) -> tuple[str, ...]:
        """Second places that lie on the disk of the ledger: who restores the disk restores both."""
        files = [place for place in self.places if isinstance(place, FilePlace | AppendOnlyFile)]
        own = _disk(self.folder)
        return tuple(each.words for each in files if _disk(each.path.parent) == own)

    def create(self) -> Ledger:
        """The ledger that is there, or a new one with a key of its own; a ledger that stands gets no new key."""
        make_folder(self.folder)
        with alone_in(self.folder):
            stands = self.key.exists() or (self.file is not None and self.file.is_file() and self.file.stat().st_size)
            key = read_key(self.key) if stands else make_key(self.key)
        try:
            return open_ledger(
                self.place, key, folder=self.folder, places=self.places, signers=self.signers, create=True
            )
        except Refusal:
            if not stands and not any(self.folder.glob("*.anchor")):
                self.key.unlink(missing_ok=True)
            raise


def _disk(folder: Path) -> int | None:
    """The disk of a folder; None for one that is not there."""
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def find_ledger(start: Path, flag: str | None, *, opening: str | None = None) -> LedgerFiles:
    """The ledger that a command run for `start` means: flag, variable, project file, or the project's own.

    `opening` is the command that opens the account that is asked for, to be named where there is no ledger.
    """
    found = settings(start, {"ledger": flag})
    place, project = found["ledger"].value, project_folder(start)
    if place is None:
        stands = _ledger_near(start)
        if stands is not None:  # never advise to open a second account of the same people
            raise LedgerUnavailable(
                "no ledger was named, and there is no project here",
                why=f"outside of a project a command names its ledger; one lies at '{next_step.nearest(stands)}'",
                instead=f"add to the command: --ledger {shlex.quote(str(next_step.nearest(stands)))}",
            )
        raise LedgerUnavailable(
            "there is no project here, and no ledger was named",
            why="a project is the nearest folder upward with dualmandate.toml, and its ledger lies there",
            instead=f"open its account, with a cap of your choice, and name the same ledger here: {opening}"
            if opening
            else "begin a project here with `dualmandate init blank .`, or name the ledger with --ledger",
        )
    store = find_store(place)
    if store.path is None and project is None:
        raise LedgerUnavailable(
            "a ledger in PostgreSQL outside of a project",
            why="its anchor and the sealed secrets lie in the project's folder, not in the database",
            instead="run this in a folder with dualmandate.toml in it or above it",
        )
    if store.path is not None:
        folder = store.path.parent
    else:
        assert project is not None
        folder = project / STATE_FOLDER
    key = found["key_file"].path or folder / KEY_FILE
    home = folder.resolve()
    # A ledger that lies in a project keeps that project's rules, from wherever and through whatever link it is named.
    own = found if store.path is None else settings(home, {})
    signing, keeping = (own if _names(own, group) else found for group in (SIGNING, KEEPING))
    kept = project_folder(home) if keeping is own and store.path is not None else project
    return LedgerFiles(place, store.path, folder, key, _places(keeping, kept), _signers(signing), opening)


def _ledger_near(folder: Path) -> Path | None:
    """A ledger in the folder of a program or of its plan, or in the one above, where the advised commands make it."""
    places = [each / STATE_FOLDER / LEDGER_FILE for each in (folder, folder.parent)]
    return next((each for each in places if each.is_file()), None)


def _names(found: Mapping[str, Setting], group: Sequence[str]) -> bool:
    """Whether a project says anything about these."""
    return any(found[name].value is not None for name in group)


def _signers(found: Mapping[str, Setting]) -> Signers:
    """Who may sign, as the project says; a file that is not there is refused, or its removal would free everybody."""
    files = {name: found[name] for name in ("approvers", "publishers")}
    for setting in files.values():
        if setting.path is not None and not setting.path.is_file():
            raise InvalidValue(
                f"there is no file '{setting.path}' of allowed signers",
                why="without it nobody can tell who may sign",
                instead="put it there, a line a person: NAME ssh-ed25519 AAAA…, as in the .pub file of their key",
                where=_place(setting),
            )
    two = found["two_persons"].value == "true"
    if two and any(setting.path is None for setting in files.values()):
        raise InvalidValue(
            "two persons are asked for, and not who they are",
            why="names that are typed say nothing about persons: approvers and publishers have to sign",
            instead='name both files: approvers = "FILE", publishers = "FILE"',
            where=_place(found["two_persons"]),
        )
    return Signers(files["approvers"].path, files["publishers"].path, two)


def _places(found: Mapping[str, Setting], project: Path | None) -> tuple[HeadPlace, ...]:
    """The second places of the ledger's head that the project names."""
    places: list[HeadPlace] = []
    if (file := found["anchor_file"].path) is not None:
        places.append(FilePlace(file.resolve()))  # by one name, wherever the project lies
    if (appended := found["anchor_append"].path) is not None:
        places.append(AppendOnlyFile(appended.resolve()))
    if (url := found["anchor_database"].value) is not None:
        if find_store(url).path is not None or url == found["ledger"].value:
            raise InvalidValue(
                "a second place for the ledger's head that is no other PostgreSQL database",
                why="what restores the ledger would restore its second place with it",
                instead='write anchor_database = "postgresql://USER@HOST/DATABASE", or name a file with anchor_file',
                where=_place(found["anchor_database"]),
            )
        places.append(DatabasePlace(url))
    if (command := found["anchor_command"].value) is not None:
        assert project is not None
        try:
            places.append(CommandPlace(tuple(shlex.split(command)), project))
        except ValueError:
            raise InvalidValue(
                "the setting 'anchor_command' is not a command",
                why="a quote in it is not closed",
                instead='write anchor_command = "/usr/local/bin/keep-head", with its arguments',
                where=_place(found["anchor_command"]),
            ) from None
    return tuple(places)


def _place(setting: Setting) -> Place:
    """Where a setting of the project file stands."""
    file, _, line = setting.origin.rpartition(", line ")
    return Place(file=file, line=int(line), key=setting.name)


def known_account(start: Path, flag: str | None, account: str) -> str | None:
    """The identifier of an account in the ledger that a command run for `start` means, from its anchor alone.

    None where there is no ledger: a plan can be made without one, and needs neither its key nor its database.
    """
    place = settings(start, {"ledger": flag})["ledger"].value
    if place is None:
        return None
    try:
        files = find_ledger(start, flag)
    except LedgerUnavailable:
        return None
    stem = "ledger" if files.file is None else files.file.name
    head = found_head(files.folder / f"{stem}.anchor")
    return None if head is None else account_identifier(head.ledger, account)


def anchor_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Files with a head of the ledger: each path itself, the release.json of a release, or those of its releases."""
    found: list[Path] = []
    for path in paths:
        inside = [path] if not path.is_dir() else [path / RELEASE_FILE]
        if path.is_dir() and not inside[0].is_file():
            inside = sorted(path.glob(f"*/{RELEASE_FILE}"))
        if not inside:
            raise InvalidRequest(
                f"the folder '{path}' holds no release",
                why=f"a folder stands for the {RELEASE_FILE} in it, or for those of the releases in it",
                instead="name an anchor, a release, or a folder of releases",
                where=Place(file=str(path)),
            )
        found += inside
    return tuple(found)


def check_releases(ledger: Ledger, files: Sequence[Path]) -> tuple[str, ...]:
    """Which of these files are releases of the ledger, each whole and as it was written; refused where one is not."""
    from dualmandate.publication.release_folder import is_complete

    known = {release.name: release for release in ledger.releases()}
    found: list[str] = []
    for file in files:
        name = _release_named(file)
        if file.name != RELEASE_FILE or name is None:
            continue
        if name not in known or not is_complete(file.parent, known[name].written_digest):
            raise InvalidRelease(
                f"'{file.parent}' is not the release {name} that the ledger knows",
                why="the ledger recorded the digest of what was written, and these files have another, or are missing",
                instead="put the release back as it was published",
                where=Place(file=str(file)),
            )
        found.append(name)
    return tuple(found)


def _release_named(file: Path) -> str | None:
    """Which release a file with a head of the ledger is of; None of an anchor."""
    try:
        document = json.loads(file.read_bytes())
        name = document.get("release")
    except (OSError, ValueError, AttributeError, RecursionError):
        document, name = None, None
    if document is None or not (name is None or isinstance(name, str)):
        raise InvalidRelease(
            f"'{file}' cannot be read",
            why="it is not there, or is neither an anchor nor what a release says of itself",
            instead="name an anchor, a release, or a folder of releases",
            where=Place(file=str(file)),
        )
    return name


def person(by: str | None) -> str:
    """Who acts: the name that was stated, or the one of the login."""
    if by is None:
        try:
            by = getpass.getuser()
        except (OSError, KeyError, ImportError):
            raise InvalidRequest(
                "nobody's name is known here",
                why="the ledger records who acted, and this login has no name",
                instead="state it: --by NAME",
            ) from None
    return checked_name(by, "a person")


def probability(text: str) -> Fraction:
    """A failure probability as it is typed."""
    stated = number(text, "a failure probability")
    if not 0 < stated < 1:
        raise InvalidLoss(
            f"a failure probability of {text}",
            why="δ is a probability above 0 and below 1",
            instead="state a small one, such as 1e-10",
        )
    return stated


@dataclass(frozen=True)
class OpenedAccount:
    """An account that was just opened."""

    account: Account
    by: str
    files: LedgerFiles
    identifier: str  # of the account
    plan: Path | None = None  # near, that would spend from it

    def words(self) -> str:
        account, most = self.account, f"{_loss(self.account.cap)}, over all releases ever"
        lines = [
            f"opened the account '{account.name}': each {account.unit} may lose {most}",
            *(f"  {line}" for line in term_lines(account)),
            f"account {self.identifier}, as its plans and releases will name it",
            f"ledger: {self.files.words}",
            f"key:    {self.files.key} (for its owner alone; whoever loses it loses the ledger)",
        ]
        if self.plan is not None:
            place = None if self.files.file is None else str(next_step.nearest(self.files.file))
            lines += ["", next_step.advice(next_step.approve_plan(self.plan, place))]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerAccountDocument, account_keys

        files = {"ledger": self.files.words, "key_file": str(self.files.key)}
        return LedgerAccountDocument.made_of(self, self.account, **account_keys(self.account), **files).as_json()


def open_account(account: Account, files: LedgerFiles, *, by: str) -> OpenedAccount:
    """`dualmandate ledger open`: the only act that creates an account, a ledger or a key."""
    ledger = files.create()
    if files.places and not ledger.head().sequence:
        ledger.keep_head(by=by)
    ledger.open_account(account, by=by)
    plan = next_step.plan_for(account.name, Path.cwd())
    return OpenedAccount(account, by, files, ledger.account_identifier(account.name), plan)


@dataclass(frozen=True)
class AnchorNotice:
    """The second places in which the ledger's head is kept from now on."""

    places: tuple[str, ...]
    before: tuple[str, ...]
    head: Head
    by: str

    def words(self) -> str:
        lines = [f"from now on the ledger's head is kept in {place}" for place in self.places]
        lines += [f"it is kept no longer in {place}" for place in self.before if place not in self.places]
        return "\n".join([*lines, f"recorded in entry {self.head.sequence}, by {self.by}"])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerAnchoringDocument

        return LedgerAnchoringDocument.made_of(self, ledger_head=self.head).as_json()


def keep_head(files: LedgerFiles, *, by: str, lost: str | None = None) -> AnchorNotice:
    """`dualmandate ledger anchor`: keep the head in the places that the project names, in these and no others."""
    ledger = files.open()
    before = ledger.kept_at()
    if not files.places and not before:
        raise InvalidRequest(
            "the project names no second place for the ledger's head",
            why=f"it is named in {PROJECT_FILE}, outside of what is backed up and restored with the ledger",
            instead='write anchor_file = "/other/disk/head", anchor_append, anchor_database or anchor_command there',
        )
    return AnchorNotice(ledger.keep_head(by=by, lost=lost), before, ledger.head(), by)


@dataclass(frozen=True)
class ApprovalNotice:
    """An approval that was just recorded."""

    approval: Approval
    program: str
    privacy_measure: PrivacyMeasure  # of the account
    cost: Fraction
    remaining: Fraction
    subject: str = "plan"  # or the rate of an audit
    next: str | None = None  # the command to type next

    __repr__ = one_line

    @property
    def signed_with(self) -> str | None:
        """The key of the approver."""
        return None if self.approval.signature is None else self.approval.signature.key

    def __str__(self) -> str:
        return self.words()

    def words(self) -> str:
        approval = self.approval
        lines = [
            f"approved by {approval.by}: the {self.subject} of '{self.program}', digest {approval.plan_digest}",
            UNSIGNED if self.signed_with is None else signed_words(self.signed_with),
            f"it may spend {_loss(approval.loss)} of each {approval.unit} from the account '{approval.account}', "
            f"which has {self.privacy_measure} {written(self.remaining)} left",
        ]
        if approval.seen_in_the_data:
            seen = ", ".join(approval.seen_in_the_data)
            lines.append(f"recorded with it, as seen in the data and not protected: {seen}")
        if self.cost > self.remaining:
            lines.append(f"that is not enough: publishing it costs {self.privacy_measure} {written(self.cost)}")
        return "\n".join([*lines, *([] if self.next is None else ["", next_step.advice(self.next)])])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import ApprovalDocument

        return ApprovalDocument.made_of(
            self, self.approval, seen_in_the_data=self.approval.seen_in_the_data or None
        ).as_json()


def _no_plan_but_a_program(given: Path, ledger: str | None) -> InvalidFile:
    from dualmandate.program.file import program_meant

    program = program_meant(given)
    saved = next_step.saved_plan_of(program)
    command = next_step.plan_program(program) if saved is None else next_step.approve_plan(saved, ledger)
    return InvalidFile(
        f"'{given}' is a program, and no plan",
        why="what is approved is a plan: one program, at one privacy loss",
        instead=f"{'plan it first' if saved is None else 'approve its plan'}: {command}",
        where=Place(str(given)),
    )


def approve(
    plan_file: Path,
    ledger: str | None,
    *,
    by: str,
    sign: Path | None = None,
    seen: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ApprovalNotice:
    """`dualmandate approve`: record one person's word for a plan, by its digest, at exactly its loss.

    The plan is made again first: what the approver read must follow from what the digest stands for.
    """
    from dualmandate.apps.following import check_follows
    from dualmandate.planning.saved_plan import load_plan

    if plan_file.is_dir() or plan_file.suffix.lower() == ".toml":
        raise _no_plan_but_a_program(plan_file, ledger)
    plan = load_plan(plan_file)
    plan.check_publishable(Place(file=str(plan_file), key="mechanism.noise"))
    marks = Place(file=str(plan_file), key="population.seen_in_the_data")
    plan.check_seen(accepted=seen, where=marks, accepting=f"{next_step.approve_plan(plan_file, ledger)} --seen")
    unit = plan.document["exact"]["program"]["population"].get("unit")
    accepted = plan.seen_in_the_data
    approval = Approval(plan.account, plan.digest, plan.charge, unit, by, seen_in_the_data=accepted, shown=plan.shown)
    # The project of the plan, where it lies in one, or its own ledger: it need not be approved from there.
    own = project_folder(plan_file.parent) or _ledger_near(plan_file.parent)
    start = plan_file.parent if own else Path.cwd()
    opening = next_step.open_account(start, plan.charge, account=plan.account, unit=unit, flag=ledger)
    books = find_ledger(start, ledger, opening=opening).open()
    return record_approval(
        books,
        approval,
        program=plan.program,
        account_identifier=plan.account_identifier,
        sign=sign,
        file=str(plan_file),
        follow=lambda: check_follows(plan, plan_file, books, progress),
        opening=opening,
        then=next_step.check_records(plan_file, ledger),
    )


def record_approval(
    books: Ledger,
    approval: Approval,
    *,
    program: str,
    account_identifier: str | None,
    sign: Path | None = None,
    file: str | None = None,
    follow: Callable[[], None] = lambda: None,
    opening: str | None = None,
    then: str | None = None,
) -> ApprovalNotice:
    """Record an approval in its account, signed where a key is named; refused where it cannot be meant.

    `file` is where the plan stands, if in one; `follow` refuses a plan that does not follow from its program. `opening`
    is the command that opens the account, and `then` the one to type after the approval, where there is one.
    """
    account = named_account(books, approval.account, opening=opening)
    if account_identifier not in (None, own := books.account_identifier(account.name)):
        raise NotApproved(
            f"the plan was made for the account '{account.name}' of another ledger",
            why=f"it names the account {account_identifier}, and the one of this ledger is {own}",
            instead="approve it in the ledger that it was planned for, or plan it again",
            where=Place(file=file, key="program.account_identifier"),
        )
    asked, by = cost(approval.loss, approval.unit, account), approval.by
    for event in books.events(account.name):
        said = event.document()
        signed = sign is None or "signature" in said  # a name that anybody typed hinders nobody from signing
        if (
            event.kind is EventKind.APPROVED
            and signed
            and (event.by, said["plan_digest"]) == (by, approval.plan_digest)
        ):
            raise ReleaseConflict(
                f"{by} approved this plan already, in entry {event.sequence}",
                why="one person's word counts once, and it stands",
                instead="nothing is left to do; another person may approve it too",
                where=None if file is None else Place(file=file),
            )
    follow()
    if sign is not None:
        approval = books.sign_approval(approval, sign)
    books.approve(approval)
    left = books.remaining(account.name)
    return ApprovalNotice(approval, program, account.privacy_measure, asked, left, next=then)


def named_account(ledger: Ledger, name: str, *, opening: str | None = None) -> Account:
    """An account of the ledger; refused, with the names there are, where there is none of this name.

    `opening` is the command that opens it, where its unit is known.
    """
    accounts = {account.name: account for account in ledger.accounts()}
    if name not in accounts:
        raise InvalidAccount(
            f"no account '{name}'",
            why=f"the ledger's accounts are {', '.join(repr(known) for known in accounts)}"
            if accounts
            else "the ledger has no account yet",
            instead=f"open it, with a cap of your choice: {opening}"
            if opening
            else "state one of these"
            if accounts
            else "open it first, with its unit and its cap",
        )
    return accounts[name]


@dataclass(frozen=True)
class DecisionNotice:
    """A decision on a request for more that was just recorded."""

    request: BudgetRequest
    privacy_measure: PrivacyMeasure
    remaining: Fraction

    def words(self) -> str:
        request, decision = self.request, self.request.decision
        assert decision is not None
        who, in_ = f"the {request.scope} '{request.name}'", f"in '{request.account}'"
        if decision.granted is None:
            return f"refused: request {request.number} for {who} {in_}, by {decision.by}"
        return (
            f"granted by {decision.by}: {self.privacy_measure} {written(decision.granted)} more for {who} {in_}, which "
            f"has {written(self.remaining)} left now"
        )

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.service import BudgetRequestDocument

        return BudgetRequestDocument.made_of(self.request).as_json()


def decide(
    books: Ledger, request: int, grant: str | None, *, reason: str, by: str, sign: Path | None = None
) -> DecisionNotice:
    """`dualmandate ledger decide`: grant a request for more, or a part of it, or refuse it."""
    granted = None if grant is None else number(grant, "an amount")
    decision = BudgetDecision(request, granted, reason, by=by)
    decided = books.decide(decision if sign is None else books.sign_decision(decision, sign))
    left = min(books.limits(decided.account, {decided.scope: decided.name}).values())
    return DecisionNotice(decided, named_account(books, decided.account).privacy_measure, left)


@dataclass(frozen=True)
class AccountRoom:
    """What the account of a program has left: in the account's currency, and as the program counts its loss."""

    account: Account
    unit: str
    left: Fraction
    remaining: Fraction

    def words(self) -> str:
        return (
            f"counted: the account '{self.account.name}' has {self.account.privacy_measure} {written(self.left)} left"
        )

    def check(self, plan: Plan) -> None:
        """Refuse a plan that would cost more than is left: floats chose it, exact numbers decide."""
        asked = cost(plan.charge, self.unit, self.account)
        if asked > self.left:
            raise BudgetExceeded(
                f"the plan costs {self.account.privacy_measure} {written(asked)}, and '{self.account.name}' has "
                f"{written(self.left)} left",
                why="caps belong to the people in the data, and what was spent stays spent",
                instead="state a smaller largest_epsilon, or a noise that counts in the account's currency",
            )


def room_for(program: Program, ledger: Ledger) -> AccountRoom:
    """What a release of the program may spend, by its account: in the program's currency, rounded down."""
    account = named_account(ledger, program.file.population.account)
    left = ledger.remaining(account.name)
    return AccountRoom(account, program.file.population.unit, left, _affordable(program, account, left))


def was_remaining(counted: Fraction, program: Program, ledger: Ledger) -> bool:
    """Whether the program's account had this much left at some time, in the program's currency."""
    account = named_account(ledger, program.file.population.account)
    return any(counted == _affordable(program, account, left) for left in ledger.balances(account.name))


def _affordable(program: Program, account: Account, left: Fraction) -> Fraction:
    mechanism = program.file.mechanism
    kind = LossKind(
        program.welfare.privacy_measure,
        records=program.protection.records_together,
        gaussian=mechanism.noise == "gaussian",
        failure_probability=mechanism.failure_probability,
    )
    return affordable(left, program.file.population.unit, account, kind)


def _loss(loss: PrivacyLoss) -> str:
    return f"{loss.privacy_measure} {written(loss.amount)}"


def account_of(name: str, units: Sequence[str], caps: Sequence[str], *, approver_differs: bool = False) -> Account:
    """An account as typed: `units` are its own and `other=N`, `caps` its own and those inside it."""
    unit, bounds = _own(units, "unit", inside=lambda text: "=" in text)
    cap, inside = _own(
        caps, "cap", inside=lambda text: _split(text)[1] is not None or _split(text)[0] in {*Scope, RESERVE}
    )
    return Account(
        name,
        unit,
        loss_of(cap, "a cap", InvalidAccount, _CAPS),
        limits=tuple(_limit(text) for text in inside if _split(text)[0] != RESERVE),
        earmarks=tuple(_earmark(text) for text in inside if _split(text)[0] == RESERVE),
        unit_bounds=tuple(_bound(text, unit) for text in bounds),
        approver_differs=approver_differs,
    )


def _own(texts: Sequence[str], what: str, *, inside: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The account's own unit or cap, and what was stated inside it."""
    own = [text for text in texts if not inside(text)]
    if len(own) != 1:
        raise InvalidAccount(
            f"an account with {len(own) or 'no'} {what}{'s' if own else ''} of its own",
            why="an account is kept for one unit, and has one cap over all releases ever",
            instead="state --unit household, and --unit-bound person=6 for what a household holds"
            if what == "unit"
            else "state --cap 10 or --cap rho=2.56, and --limit user=2 and the like for what is inside it",
        )
    return own[0], [text for text in texts if inside(text)]


def _split(text: str) -> tuple[str, str | None, str]:
    """The scope, the name if there is one, and the amount in `scope:name=amount`."""
    left, _, amount = text.rpartition("=")
    scope, colon, name = left.partition(":")
    return scope.strip(), name.strip() if colon else None, amount


def loss_of(
    text: str,
    what: str,
    refusal: type[Refusal] = InvalidLoss,
    instead: str = "state 0.1, epsilon=1/10 or rho=0.01",
) -> PrivacyLoss:
    """A loss as typed: 0.1, epsilon=1/10 or rho=0.01."""
    measure, _, amount = _split(text)
    if measure and measure not in set(PrivacyMeasure):
        raise refusal(f"{what} in '{measure}'", why="a loss is in epsilon or in rho", instead=instead)
    return PrivacyLoss(number(amount, what), PrivacyMeasure(measure) if measure else PrivacyMeasure.PURE_DP)


def _limit(text: str) -> AccountLimit:
    scope, name, amount = _split(text)
    if scope not in set(Scope):
        raise InvalidAccount(
            f"a limit for '{scope}'",
            why="inside an account there are limits for users, groups and purposes, and reserves for purposes",
            instead="state user=2 for each user, user:NAME=2 for one, group:NAME=1, purpose:NAME=1/2, "
            "or reserve:PURPOSE=3",
        )
    return AccountLimit(Scope(scope), number(amount, f"a limit for a {scope}"), name)


def _earmark(text: str) -> Earmark:
    _, purpose, amount = _split(text)
    if purpose is None:
        raise InvalidAccount(
            "a reserve for no purpose",
            why="a part of an account is kept for a purpose that has a name",
            instead="state reserve:PURPOSE=3",
        )
    return Earmark(purpose, number(amount, "a reserve"))


def _bound(text: str, own: str) -> UnitBound:
    unit, _, most = text.rpartition("=")
    try:
        whole = int(most)
    except ValueError:
        raise InvalidAccount(
            f"one {own} is in at most '{most.strip()}' of the unit '{unit.strip()}'",
            why="losses are converted between units by a whole number of at least 1",
            instead=f"state a whole number: --unit-bound '{unit.strip()}=6'",
        ) from None
    return UnitBound(unit.strip(), whole)


@dataclass(frozen=True)
class SpenderOptions:
    """Who spends, in which group and for which purpose, where these are stated."""

    by: str | None = None
    group: str | None = None
    purpose: str | None = None


def spender_of(texts: Sequence[str]) -> SpenderOptions:
    """A spender as typed: a name, `group:NAME`, `purpose:NAME`, each at most once."""
    found: dict[str, str] = {}
    for text in texts:
        scope, colon, name = text.partition(":")
        known = colon and scope in (Scope.GROUP, Scope.PURPOSE)
        key, value = (scope, name.strip()) if known else ("by", text)
        if key in found:
            raise InvalidRequest(
                f"two names for {'the publisher' if key == 'by' else f'the {key}'}",
                why="a release counts against the limits of one person, one group and one purpose",
                instead="state each once: --by NAME --for group:NAME --for purpose:NAME",
            )
        found[key] = value
    return SpenderOptions(**found)


def number(text: str, what: str) -> Fraction:
    """A number as it is typed, exactly."""
    try:
        return rational(text)
    except ValueError as error:
        raise InvalidLoss(
            f"{what} of '{text}'", why=f"it is {error}", instead="state a number: 10, 2.56, 1e-10 or 6319/2500"
        ) from None


def term_lines(account: Account) -> list[str]:
    """What stands inside an account's cap, a line each."""
    privacy_measure = account.privacy_measure
    lines = [
        f"{f'each {limit.scope}' if limit.name is None else f'the {limit.scope} {limit.name!r}'} may spend "
        f"{privacy_measure} {written(limit.amount)}"
        for limit in account.limits
    ]
    lines += [
        f"{privacy_measure} {written(kept.amount)} is kept for the purpose '{kept.purpose}'"
        for kept in account.earmarks
    ]
    lines += [
        f"one {account.unit} is in at most {bound.most} of the unit '{bound.unit}'" for bound in account.unit_bounds
    ]
    if account.approver_differs:
        lines.append("nobody publishes on their own approval alone")
    return lines
