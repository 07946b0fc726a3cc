"""Releases as the ledger knows them, and its books: what entries add up to, and whether a request fits what is left."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dualmandate.errors import InvalidAccount, InvalidRequest, NotApproved, NotChecked, ReleaseConflict
from dualmandate.ledger.chain import Event, EventKind, Head, is_digest
from dualmandate.ledger.composition import Account, Accountant, Scope, checked_name, cost, exact_amount, read_account
from dualmandate.ledger.signatures import ROLE_OF, Signature, read_signature
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.shown import one_line

IDENTIFIER_DIGITS = 24
LONGEST_WORD = 40  # letters of an account's name in the names of its releases


def account_identifier(ledger: str, account: str) -> str:
    """What tells an account from every other, also from one of the same name in another ledger.

    The first digits of SHA-256 over the ledger's own name and the account's, each preceded by its length: whoever has a
    release, which holds both, can compute it again.
    """
    content = b"".join(len(each).to_bytes(8, "big") + each for each in map(str.encode, ("account/1", ledger, account)))
    return hashlib.sha256(content).hexdigest()[:IDENTIFIER_DIGITS]


@dataclass(frozen=True)
class RecordState:
    """In which state records are, and what they are held against: what is compared before they are published.

    `against` is a digest of what is public: the rules of a program, and what its source is called. `content` is an HMAC
    of the records; it is written nowhere.
    """

    against: str
    content: str = field(repr=False)

    @property
    def secret(self) -> str:
        """The name of the secret under which its content is recorded; no release has such a name."""
        return secret_of_check(self.against)


def secret_of_check(against: str) -> str:
    """The name of the secret of the checks `against` a release's tables: beside, never among, the releases' own."""
    return f"check.{against}"


@dataclass(frozen=True)
class OtherLedgers:
    """Other ledgers that have spent from the same source, and why a release is made beside them all the same."""

    ledgers: tuple[str, ...]
    reason: str

    def document(self) -> dict[str, object]:
        """As entries and releases hold it."""
        return {"ledgers": list(self.ledgers), "reason": self.reason}


class ReleaseState(StrEnum):
    """How far a release has come, durably. From `opened` on its loss is spent, whatever happens."""

    RESERVED = "reserved"
    OPENED = "opened"
    MEASURED = "measured"
    WRITTEN = "written"
    SETTLED = "settled"
    CANCELED = "canceled"
    ABANDONED = "abandoned"

    @property
    def is_active(self) -> bool:
        """Whether the release may still take a step."""
        return self in STEPS[:-1]


STEPS = (ReleaseState.RESERVED, ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED)


@dataclass(frozen=True)
class Approval:
    """One person's word that a plan may be published: its digest, the account that pays, and exactly which loss."""

    account: str
    plan_digest: str
    loss: PrivacyLoss
    unit: str
    by: str
    signature: Signature | None = None
    entry: int = 0  # its number, once it is recorded
    seen_in_the_data: tuple[str, ...] = ()  # accepted with it: what the program took from the records
    shown: str | None = None  # the digest of all that the approver was shown, where a saved plan was read

    def __post_init__(self) -> None:
        checked_name(self.account, "an account")
        checked_name(self.unit, "a unit")
        checked_name(self.by, "an approver")
        _check_digest(self.plan_digest)

    def document(self) -> dict[str, object]:
        """What its entry records beside its account, the approver and the signature."""
        seen = {"seen_in_the_data": list(self.seen_in_the_data)} if self.seen_in_the_data else {}
        shown = {} if self.shown is None else {"shown": self.shown}
        return {"plan_digest": self.plan_digest, **loss_document(self.loss, self.unit), **seen, **shown}


@dataclass(frozen=True)
class Request:
    """What a publisher asks to spend: an approved plan on one snapshot of the data, for one user, group and purpose.

    `loss` is the loss of one `unit`; `again` publishes the same pair anew, with a new secret and a new loss. `checked`
    is the state of the records that has to be a checked one; `unchecked` says that it need not be, for the record.
    """

    account: str
    plan_digest: str
    snapshot: str
    loss: PrivacyLoss
    unit: str
    user: str
    group: str | None = None
    purpose: str | None = None
    again: bool = False
    beside: OtherLedgers | None = None
    signature: Signature | None = None
    checked: str | None = None
    unchecked: bool = False

    def __post_init__(self) -> None:
        for name in ("account", "snapshot", "unit", "user"):
            checked_name(getattr(self, name), f"the {name} of a request")
        for name in ("group", "purpose"):
            if getattr(self, name) is not None:
                checked_name(getattr(self, name), f"the {name} of a request")
        if self.beside is not None:
            checked_name(self.beside.reason, "the reason to spend beside another ledger")
        _check_digest(self.plan_digest)

    @property
    def parts(self) -> dict[Scope, str]:
        """The user, group and purpose whose limits it counts against."""
        return _parts(self.user, self.group, self.purpose)


@dataclass(frozen=True)
class ReleaseEntry:
    """A release in the ledger. `cost` is in the account's currency; `fingerprint` is the HMAC of what was tabulated."""

    name: str
    entry: int  # number of the entry that reserved it
    account: str
    plan_digest: str
    snapshot: str
    loss: PrivacyLoss
    unit: str
    cost: Fraction
    user: str
    group: str | None
    purpose: str | None
    reserved_at: str
    state: ReleaseState = ReleaseState.RESERVED
    fingerprint: str | None = None
    written_digest: str | None = None  # SHA-256 of its release.json
    secret_destroyed: bool = False
    beside: OtherLedgers | None = None  # that have spent from the same source
    signature: Signature | None = None  # of who publishes
    number: int = 0  # within its account, from 1
    checked: str | None = None  # the state of the records that was checked before
    unchecked: bool = False  # published without a check, as the publisher said

    __repr__ = one_line

    @property
    def signed_with(self) -> str | None:
        """The key of who publishes; None where it is unsigned."""
        return None if self.signature is None else self.signature.key

    @property
    def parts(self) -> dict[Scope, str]:
        return _parts(self.user, self.group, self.purpose)


@dataclass(frozen=True)
class BudgetDecision:
    """One person's word on a request for more: what was granted of it, None for nothing, and why."""

    request: int  # the number of its entry
    granted: Fraction | None
    reason: str
    by: str
    signature: Signature | None = None
    entry: int = 0  # its number, once it is recorded
    decided_at: str = ""

    def __post_init__(self) -> None:
        checked_name(self.reason, "the reason of a decision")
        checked_name(self.by, "who decides")
        if self.granted is not None:
            object.__setattr__(self, "granted", exact_amount(self.granted))

    def document(self) -> dict[str, object]:
        """What its entry records beside its account, who decides and the signature."""
        granted = None if self.granted is None else str(self.granted)
        return {"request": self.request, "granted": granted, "reason": self.reason}


@dataclass(frozen=True)
class BudgetRequest:
    """A person's request that the limit of a user, a group or a purpose be raised by an amount of the account."""

    account: str
    scope: Scope
    name: str
    amount: Fraction
    reason: str
    by: str
    number: int = 0  # of its entry, by which it is decided
    requested_at: str = ""
    decision: BudgetDecision | None = None

    def __post_init__(self) -> None:
        checked_name(self.name, f"a {self.scope}")
        checked_name(self.reason, "the reason of a request")
        checked_name(self.by, "who requests")
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "amount", exact_amount(self.amount))

    @property
    def state(self) -> str:
        """Where it stands."""
        if self.decision is None:
            return "open"
        return "refused" if self.decision.granted is None else "granted"

    def document(self) -> dict[str, object]:
        """What its entry records beside its account, its amount and who asks."""
        return {"scope": self.scope.value, "name": self.name, "reason": self.reason}


def _parts(user: str, group: str | None, purpose: str | None) -> dict[Scope, str]:
    named = {Scope.USER: user, Scope.GROUP: group, Scope.PURPOSE: purpose}
    return {scope: name for scope, name in named.items() if name is not None}


def request_document(request: Request | ReleaseEntry, supersedes: str | None) -> dict[str, object]:
    """What the entry of a reservation records beside its account, its user and its cost."""
    return {
        "plan_digest": request.plan_digest,
        "snapshot": request.snapshot,
        **loss_document(request.loss, request.unit),
        "group": request.group,
        "purpose": request.purpose,
        "supersedes": supersedes,
        **({} if request.beside is None else {"beside": request.beside.document()}),
        **({} if request.checked is None else {"checked": request.checked}),
        **({"unchecked": True} if request.unchecked else {}),
    }


def loss_document(loss: PrivacyLoss, unit: str) -> dict[str, object]:
    """A loss as entries record it: exact, with its currency and the unit it protects."""
    return {"loss": loss.exact(), "currency": loss.privacy_measure.value, "unit": unit}


def read_loss(document: Mapping[str, Any]) -> PrivacyLoss:
    """The loss that an entry recorded."""
    return PrivacyLoss(Fraction(document["loss"]), PrivacyMeasure(document["currency"]))


def _check_digest(plan_digest: object) -> None:
    if not is_digest(plan_digest):
        raise NotApproved(
            "a plan without a digest",
            why="a plan is approved and published by its SHA-256 digest, 64 lowercase hexadecimal digits",
            instead="state the digest that the plan holds",
        )


STATE_OF = {
    EventKind.OPENED: ReleaseState.OPENED,
    EventKind.MEASURED: ReleaseState.MEASURED,
    EventKind.WRITTEN: ReleaseState.WRITTEN,
    EventKind.PUBLISHED: ReleaseState.SETTLED,
}


class Books:
    """The state of a ledger after its entries so far; it changes only by reading the next entry."""

    def __init__(self, ledger: str, first_digest: str) -> None:
        self.ledger = ledger
        self.digests = [first_digest]  # of entry n at place n
        self.accounts: dict[str, Account] = {}
        self.approvals: dict[tuple[str, str], list[Approval]] = {}
        self.releases: dict[str, ReleaseEntry] = {}
        self._newest: dict[tuple[str, str], str] = {}  # release of a plan and snapshot
        self._numbers: dict[str, int] = {}  # of each account's newest release
        self.accountant = Accountant()
        self.places: tuple[str, ...] = ()  # where else its head is kept, in words
        self.kept: dict[str, Mapping[str, Any]] = {}  # how to find each of them
        self.nonces: set[str] = set()  # of signatures
        self.requests: dict[int, BudgetRequest] = {}  # for more, by the numbers of their entries
        self.checks: dict[str, str] = {}  # the newest of each kind: what records were held against, and their state

    @property
    def head(self) -> Head:
        return Head(self.ledger, len(self.digests) - 1, self.digests[-1])

    def read(self, event: Event) -> None:
        """Take in the next entry, whose digest has been checked."""
        assert event.sequence == len(self.digests)
        if event.kind in ROLE_OF and (signature := read_signature(event.document())) is not None:
            self.nonces.add(signature.nonce)
        if event.kind is EventKind.ACCOUNT_OPENED:
            assert event.account is not None
            assert event.amount is not None
            self.accounts[event.account] = read_account(event.account, event.amount, event.document())
        elif event.kind is EventKind.APPROVED:
            approval = _read_approval(event)
            self.approvals.setdefault((approval.account, approval.plan_digest), []).append(approval)
        elif event.kind is EventKind.RESERVED:
            self._reserve(event)
        elif event.kind is EventKind.ANCHORED:
            self.places, self.kept = _read_places(event)
        elif event.kind is EventKind.CHECKED:
            document = event.document()
            self.checks[str(document.get("against"))] = str(document["state"])
        elif event.kind is EventKind.REQUESTED:
            self.requests[event.sequence] = _read_budget_request(event)
        elif event.kind is EventKind.DECIDED:
            self._decide(_read_decision(event))
        elif event.kind is not EventKind.REFUSED:
            assert event.release is not None
            self._change(event.release, event)
        self.digests.append(event.digest)

    def _reserve(self, event: Event) -> None:
        release = replace(_read_release(event), number=self.next_number(str(event.account)))
        superseded = event.document()["supersedes"]
        if superseded is not None:
            old = self.releases[str(superseded)]
            # What was never opened costs nothing; what was opened stays spent.
            self._close(old, ReleaseState.CANCELED if old.state is ReleaseState.RESERVED else ReleaseState.ABANDONED)
        self.releases[release.name] = release
        self._numbers[release.account] = release.number
        self._newest[release.plan_digest, release.snapshot] = release.name
        self.accountant.compose(release.account, release.parts, release.cost)

    def _decide(self, decision: BudgetDecision) -> None:
        asked = self.requests[decision.request]
        self.requests[decision.request] = replace(asked, decision=decision)
        if decision.granted is not None:
            self.accountant.grant(asked.account, asked.scope, asked.name, decision.granted)

    def next_number(self, account: str) -> int:
        """The number of the account's next release; one that was given up keeps its own."""
        return self._numbers.get(account, 0) + 1

    def next_name(self, account: str) -> str:
        """What the account's next release is called: letters of the account's name, and its number."""
        plain = unicodedata.normalize("NFKD", account).encode("ascii", "ignore").decode().casefold()
        word = "-".join(re.findall("[a-z0-9]+", plain))[:LONGEST_WORD].strip("-") or "account"
        name = f"{word}-{self.next_number(account)}"
        # Two accounts may be written with the same letters.
        return name if name not in self.releases else f"{name}-{self.head.sequence + 1}"

    def _change(self, name: str, event: Event) -> None:
        release = self.releases[name]
        if event.kind is EventKind.CANCELED:
            self._close(release, ReleaseState.CANCELED)
        elif event.kind is EventKind.TABULATED:
            self.releases[name] = replace(release, fingerprint=str(event.document()["fingerprint"]))
        elif event.kind is EventKind.KEY_DESTROYED:
            self.releases[name] = replace(release, secret_destroyed=True)
        elif event.kind in STATE_OF:
            written = event.document().get("release_digest", release.written_digest)
            digest = None if written is None else str(written)
            self.releases[name] = replace(release, state=STATE_OF[event.kind], written_digest=digest)

    def _close(self, release: ReleaseEntry, state: ReleaseState) -> None:
        self.releases[release.name] = replace(release, state=state)
        if state is ReleaseState.CANCELED:
            self.accountant.compose(release.account, release.parts, -release.cost)

    def account(self, name: str) -> Account:
        if name not in self.accounts:
            raise InvalidAccount(
                f"no account '{name}'",
                why="only an act of its own opens an account; publishing never does",
                instead="open it with its cap first, or state the account as it is written in the ledger",
            )
        return self.accounts[name]

    def release(self, name: str) -> ReleaseEntry:
        if name not in self.releases:
            raise ReleaseConflict(
                f"no release '{name}'",
                why="the ledger has never reserved it",
                instead="state the release as the reservation named it",
            )
        return self.releases[name]

    def spent(self, account: str, scope: Scope | None = None, name: str | None = None) -> Fraction:
        """What was reserved or spent and not canceled, in the account's currency: in all, or of one part."""
        return self.accountant.spent(self.account(account).name, scope, name)

    def room(self, name: str, parts: Mapping[Scope, str]) -> dict[str, Fraction]:
        """What each cap that applies to these parts leaves, by the cap in words."""
        return self.accountant.room(self.account(name), parts)

    def check_request(self, request: BudgetRequest) -> None:
        """Refuse to ask for more where no limit stands in the way."""
        account = self.account(request.account)
        if not any(limit.scope is request.scope and limit.name in (None, request.name) for limit in account.limits):
            raise InvalidRequest(
                f"more for the {request.scope} '{request.name}', which has no limit in '{account.name}'",
                why="only the limits of users, groups and purposes are raised, never the cap of the people in the data",
                instead="ask within the cap, or state a user, group or purpose that has a limit",
            )

    def check_decision(self, decision: BudgetDecision) -> BudgetRequest:
        """The request that a decision is about; refused where there is none, or it is decided, or one's own."""
        asked = self.requests.get(decision.request)
        if asked is None or asked.decision is not None:
            raise ReleaseConflict(
                f"no open request {decision.request}",
                why="the ledger has no request of this number"
                if asked is None
                else f"it was {asked.state} by {asked.decision.by if asked.decision else ''}, and that stands",
                instead="state the number of a request that is open",
            )
        if asked.by == decision.by or (asked.scope is Scope.USER and asked.name == decision.by):
            raise NotApproved(
                f"request {decision.request} is one of '{decision.by}', or for '{decision.by}'",
                why="nobody grants more to themselves",
                instead="have another person decide",
            )
        if decision.granted is not None and decision.granted > asked.amount:
            raise InvalidRequest(
                f"{decision.granted} granted where {asked.amount} was asked for",
                why="what nobody asked for has no reason",
                instead=f"grant {asked.amount} or less",
            )
        return asked

    def admit(self, request: Request, counts: Callable[[Approval], bool] | None = None) -> tuple[Fraction, str | None]:
        """The cost of a request and the release it supersedes, or a refusal: approved, new, and within every cap.

        `counts` says which approvals count, by who signed them; all of them where nobody need sign.
        """
        account = self.account(request.account)
        asked = cost(request.loss, request.unit, account)
        self.check_approval(account, request, counts)
        superseded = self._check_new(request)
        if request.checked is not None:
            self.check_state(request.checked)
        # A reservation that is replaced before it was opened still counts: cancel it first to use its room.
        freed = self.releases[superseded] if superseded else None
        self.accountant.require(account, request.parts, asked, instead=_advice(freed))
        return asked, superseded

    def check_state(self, state: str) -> None:
        """Refuse records in a state that was not held against the program, whatever that would have found."""
        if state not in self.checks.values():
            raise NotChecked(
                "the records, as they are now, were never checked against the program, or not since a release was "
                "made of them",
                why="what does not fit is left out of every table without a word: r31 where R31 is meant gives zeros",
                instead="check them with `dualmandate check`, whatever it finds; or publish with --unchecked, which is "
                "recorded and published",
            )

    def fitting(self, request: Request | ReleaseEntry) -> list[Approval]:
        """The approvals of exactly this plan, for this account, at this loss, whoever gave them."""
        approvals = self.approvals.get((request.account, request.plan_digest), [])
        return [each for each in approvals if (each.loss, each.unit) == (request.loss, request.unit)]

    def check_approval(
        self, account: Account, request: Request | ReleaseEntry, counts: Callable[[Approval], bool] | None
    ) -> None:
        """Refuse what is not approved, or by nobody who counts."""
        fitting = self.fitting(request)
        if not fitting:
            raise NotApproved(
                f"plan {request.plan_digest[:12]}… is not approved for '{account.name}' with this loss",
                why="exactly the approved plan is published, at exactly its loss",
                instead="have the plan approved first",
            )
        if account.approver_differs and all(approval.by == request.user for approval in fitting):
            raise NotApproved(
                f"plan {request.plan_digest[:12]}… is approved only by its publisher",
                why=f"'{account.name}' asks that another person approves",
                instead="have somebody else approve it",
            )
        if counts is not None and not any(counts(approval) for approval in fitting):
            raise NotApproved(
                f"plan {request.plan_digest[:12]}… has no approval that counts here",
                why="the project asks for one that is signed by an approver it names, and, where it asks for two "
                "persons, by another name and another key than the publisher's",
                instead="have the plan approved by one of them, with --by and --sign",
            )

    def _check_new(self, request: Request) -> str | None:
        name = self._newest.get((request.plan_digest, request.snapshot))
        if name is None or self.releases[name].state is ReleaseState.CANCELED:
            return None
        state = self.releases[name].state
        if not request.again:
            raise ReleaseConflict(
                f"release {name} of this plan and snapshot exists already, {state}",
                why="one plan on one snapshot is one release, one secret and one loss",
                instead=f"resume release {name}"
                if state.is_active
                else f"read release {name}; --again makes another one, with a new secret and a new loss",
            )
        return name if state.is_active else None


def _advice(freed: ReleaseEntry | None) -> str:
    if freed is not None and freed.state is ReleaseState.RESERVED:
        return f"cancel release {freed.name} first, plan a smaller loss, or ask less"
    return "plan a smaller loss, or ask less"


def _read_places(event: Event) -> tuple[tuple[str, ...], dict[str, Mapping[str, Any]]]:
    document = event.document()
    places = tuple(str(words) for words in document["places"])
    return places, dict(zip(places, document["kept"], strict=True))


def _read_budget_request(event: Event) -> BudgetRequest:
    said = event.document()
    assert event.account is not None
    assert event.amount is not None
    about = Scope(said["scope"]), str(said["name"]), event.amount, str(said["reason"])
    return BudgetRequest(event.account, *about, event.by, event.sequence, event.recorded_at)


def _read_decision(event: Event) -> BudgetDecision:
    said = event.document()
    granted, signature = said["granted"], read_signature(said)
    about = int(said["request"]), None if granted is None else Fraction(granted), str(said["reason"])
    return BudgetDecision(*about, event.by, signature, event.sequence, event.recorded_at)


def _read_approval(event: Event) -> Approval:
    document = event.document()
    assert event.account is not None
    digest, unit = str(document["plan_digest"]), str(document["unit"])
    loss, signature, shown = read_loss(document), read_signature(document), document.get("shown")
    seen = tuple(map(str, document.get("seen_in_the_data", ())))
    return Approval(event.account, digest, loss, unit, event.by, signature, event.sequence, seen, shown)


def _read_release(event: Event) -> ReleaseEntry:
    document = event.document()
    assert event.account is not None
    assert event.release is not None
    assert event.amount is not None
    group, purpose = document["group"], document["purpose"]
    return ReleaseEntry(
        name=event.release,
        entry=event.sequence,
        account=event.account,
        plan_digest=str(document["plan_digest"]),
        snapshot=str(document["snapshot"]),
        loss=read_loss(document),
        unit=str(document["unit"]),
        cost=event.amount,
        user=event.by,
        group=None if group is None else str(group),
        purpose=None if purpose is None else str(purpose),
        reserved_at=event.recorded_at,
        beside=_read_beside(document.get("beside")),
        signature=read_signature(document),
        checked=None if (checked := document.get("checked")) is None else str(checked),
        unchecked=bool(document.get("unchecked", False)),
    )


def _read_beside(document: Any) -> OtherLedgers | None:
    if document is None:
        return None
    return OtherLedgers(tuple(map(str, document["ledgers"])), str(document["reason"]))
