"""The ledger: what has been spent, by whom, and what may still be spent. Every act is one durable, chained entry.

A loss is reserved before any data are opened, and from then on counts; nothing is refunded on an error. Sums of ε, and
of ρ, hold for releases chosen in sight of earlier ones, under a cap fixed beforehand [RRUV16] [FZ21].
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import RLock

import sqlalchemy as sql

from dualmandate.errors import (
    CannotWrite,
    InvalidAccount,
    LedgerRefusal,
    LedgerTampered,
    LedgerUnavailable,
    NotApproved,
    Place,
    ReleaseConflict,
    UnsafeKey,
)
from dualmandate.ledger.books import (
    STATE_OF,
    STEPS,
    Approval,
    Books,
    BudgetDecision,
    BudgetRequest,
    RecordState,
    ReleaseEntry,
    ReleaseState,
    Request,
    account_identifier,
    request_document,
    secret_of_check,
)
from dualmandate.ledger.chain import (
    Event,
    EventKind,
    Head,
    LedgerKey,
    SecretFolder,
    advance_anchor,
    chained_digest,
    check_anchors,
    first_digest,
    found_head,
    is_digest,
    read_anchor,
    write_anchor,
    written_details,
)
from dualmandate.ledger.composition import Account, Scope, checked_name, cost, reported
from dualmandate.ledger.durable import alone_in, make_folder
from dualmandate.ledger.places import HeadPlace, place_of
from dualmandate.ledger.signatures import ROLE_OF, Role, Signature, Signers, check_recorded, sign, statement
from dualmandate.ledger.storage import (
    Store,
    append_entry,
    bring_up_to_date,
    find_store,
    is_current,
    make_file,
    read_entries,
    read_head,
    require_file,
    start_head,
)
from dualmandate.population import Confidential, PrivacyLoss
from dualmandate.population.arguments import checked_class, expected
from dualmandate.population.rational import written
from dualmandate.population.shown import cut_line, page_of, sentences, table

NOBODY = Signers()  # is named: nothing need be signed
KIND_OF = {state: kind for kind, state in STATE_OF.items()}


@dataclass(frozen=True)
class SignatureCounts:
    """How many approvals and publications are signed and how many are not, by any key at all.

    `unknown` are entries whose signature is good, and whose signer the project does not name, or no longer.
    """

    signed: int = 0
    unsigned: int = 0
    unknown: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verification:
    """What a complete check of the ledger found in order: how far it goes, which anchors agree, and a wandering clock.

    `clock_set_back` lists entries whose clock showed an earlier time than the entry before: remarkable, not wrong.
    `places` are the second places of the head, each with the number of the last entry that it knows.
    """

    head: Head
    anchors: tuple[Path, ...]
    clock_set_back: tuple[int, ...]
    places: tuple[tuple[str, int], ...] = ()
    signatures: SignatureCounts = field(default_factory=SignatureCounts)


class _Page:
    """What one writer adds between taking the lock and the commit."""

    def __init__(self, connection: sql.Connection, key: LedgerKey, books: Books) -> None:
        self._connection, self._key, self.books = connection, key, books
        self.head = books.head

    def append(
        self,
        kind: EventKind,
        by: str,
        account: str | None,
        release: str | None = None,
        *,
        amount: Fraction | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        """Chain the entry to the last one and write it."""
        sequence, now = self.head.sequence + 1, _now().isoformat(timespec="microseconds")
        event = Event(sequence, kind, now, by, account, release, amount, written_details(details or {}))
        event = replace(event, digest=chained_digest(self._key, self.head.digest, event))
        append_entry(self._connection, event)
        self.head = Head(self.head.ledger, event.sequence, event.digest)


@checked_class
class Ledger:
    """The account of every privacy loss of an agency. Open it with `open_ledger`."""

    def __init__(
        self,
        store: Store,
        key: LedgerKey,
        *,
        anchors: Sequence[Path],
        secrets_in: Path,
        places: Sequence[HeadPlace] = (),
        signers: Signers = NOBODY,
    ) -> None:
        self._signers = signers
        self._store, self._key, self._lock = store, key, RLock()
        self._anchors, self._places = tuple(anchors), tuple(places)
        self._asked = False  # whether the second places were asked once
        ledger = read_anchor(self._anchors[0]).ledger
        self._books = Books(ledger, first_digest(key, ledger))
        self._secrets = SecretFolder(secrets_in, key, ledger)

    def __repr__(self) -> str:
        place = "a PostgreSQL database" if self._store.path is None else str(self._store.path)
        return cut_line(f"Ledger({self.identifier[:12]}… in {place})")

    def _repr_html_(self) -> str:
        """What a notebook shows: every account, with what is left of it."""
        rows = [
            (account.name, account.unit, f"{account.privacy_measure} {written(account.cap.amount)}", written(left))
            for account, left in ((each, self.remaining(each.name)) for each in self.accounts())
        ]
        head = self.head()
        said = sentences([f"{len(rows)} {'account' if len(rows) == 1 else 'accounts'}; entries: {head.sequence:,}"])
        return page_of(f"Ledger {head.ledger[:12]}…", said, table(["account", "unit", "cap", "left"], rows, words=2))

    @property
    def identifier(self) -> str:
        """The ledger's own name, as every head of it holds it."""
        return self._books.ledger

    def account_identifier(self, account: str) -> str:
        """What tells an account of this ledger from every other, as plans and releases hold it."""
        with self._reading() as books:
            return account_identifier(books.ledger, books.account(account).name)

    def open_account(self, account: Account, *, by: str) -> Account:
        """Open the account of a population: the only act that makes one."""
        expected(
            account, Account, what="an account", instead='write Account("residents", "person", PrivacyLoss.pure(5))'
        )
        with self._writing(by) as page:
            if account.name in page.books.accounts:
                raise InvalidAccount(
                    f"the account '{account.name}' is open already",
                    why="the same people keep one account, and its cap is not raised by opening it again",
                    instead="spend from it, or open an account for other people under another name",
                )
            details = account.document()
            page.append(EventKind.ACCOUNT_OPENED, by, account.name, amount=account.cap.amount, details=details)
        return account

    def approve(self, approval: Approval) -> None:
        """Record that a person approves a plan, known by its digest, at exactly its loss."""
        with self._writing(approval.by) as page:
            paid = cost(approval.loss, approval.unit, page.books.account(approval.account))
            details = approval.document()
            self._check_signed(Role.APPROVAL, approval.by, approval.account, details, approval.signature)
            details |= _signed(approval.signature)
            page.append(EventKind.APPROVED, approval.by, approval.account, amount=paid, details=details)

    def request_more(self, request: BudgetRequest) -> BudgetRequest:
        """Record that somebody asks for a limit to be raised; nothing is raised before it is decided."""
        with self._writing(request.by) as page:
            page.books.check_request(request)
            number, details = page.head.sequence + 1, request.document()
            page.append(EventKind.REQUESTED, request.by, request.account, amount=request.amount, details=details)
        return self.budget_request(number)

    def decide(self, decision: BudgetDecision) -> BudgetRequest:
        """Record another person's decision on a request; what is granted counts from this entry on."""
        with self._writing(decision.by) as page:
            asked, said = page.books.check_decision(decision), decision.document()
            self._check_signed(Role.APPROVAL, decision.by, asked.account, said, decision.signature)
            said |= _signed(decision.signature)
            page.append(EventKind.DECIDED, decision.by, asked.account, amount=decision.granted, details=said)
        return self.budget_request(decision.request)

    def sign_decision(self, decision: BudgetDecision, key: Path) -> BudgetDecision:
        """The decision, signed with the key in a file."""
        account, said = self.budget_request(decision.request).account, decision.document()
        return replace(decision, signature=sign(Role.APPROVAL, self.identifier, decision.by, account, said, key=key))

    def budget_requests(self, account: str | None = None) -> tuple[BudgetRequest, ...]:
        """Every request for more, or those of one account, in their order, each with its decision."""
        with self._reading() as books:
            return tuple(each for each in books.requests.values() if account in (None, each.account))

    def budget_request(self, number: int) -> BudgetRequest:
        """One request for more, by the number of its entry."""
        with self._reading() as books:
            if number not in books.requests:
                raise ReleaseConflict(
                    f"no request {number}",
                    why="the ledger has no request for more of this number",
                    instead="state the number of its entry",
                )
            return books.requests[number]

    def limits(self, account: str, parts: Mapping[Scope, str]) -> dict[str, Fraction]:
        """What each cap that applies to these parts leaves, by the cap in words."""
        with self._reading() as books:
            return books.room(account, parts)

    def reserve(self, request: Request) -> ReleaseEntry:
        """Set a loss aside for a release, with a fresh secret, before any data are opened; a refusal is recorded."""
        refused: LedgerRefusal | None = None
        with self._writing(request.user) as page:
            for place in self._places:
                self._try(place, page.head)
            said = request_document(request, None)
            try:
                self._check_signed(Role.PUBLICATION, request.user, request.account, said, request.signature)
                asked, superseded = page.books.admit(request, lambda approval: self._counts(approval, request))
            except LedgerRefusal as refusal:
                refused, details = refusal, {"code": refusal.code, **said}
                page.append(EventKind.REFUSED, request.user, request.account, details=details)
            else:
                name = page.books.next_name(request.account)
                # The secret is on the disk before the entry that relies on it; without the entry it is nobody's.
                self._secrets.make(name)
                details = request_document(request, superseded) | _signed(request.signature)
                page.append(EventKind.RESERVED, request.user, request.account, name, amount=asked, details=details)
        if refused is not None:
            raise refused
        return self.release(name)

    def record_check(self, state: RecordState, *, by: str, account: str | None, source: str) -> None:
        """Record that records in this state were held against a program; never what was found.

        What is recorded is an HMAC of the state under a secret of this check: destroyed with the next check of the
        kind, and once a release is made of it, it leaves nothing that a guess of the records could be tried on. Each
        check is an entry, also where nothing has changed: their number tells nothing of the records.
        """
        with self._writing(by) as page:
            known = account if account in page.books.accounts else None
            self._secrets.destroy(state.secret)
            self._secrets.make(state.secret)
            said = self._secrets.mac(state.secret, state.content)
            details = {"state": said, "against": state.against, "source": source}
            page.append(EventKind.CHECKED, by, known, details=details)

    def as_checked(self, state: RecordState) -> str:
        """The state as a check of these very records would have recorded it; of no check, if its secret is gone."""
        try:
            return self._secrets.mac(state.secret, state.content)
        except UnsafeKey:
            return secrets.token_hex(32)

    def check_state(self, state: RecordState) -> None:
        """Refuse records in a state that was not checked."""
        said = self.as_checked(state)
        with self._reading() as books:
            books.check_state(said)

    def state_key(self) -> Confidential[bytes]:
        """The key under which states of records are told apart, before the secret of a check."""
        return Confidential("key of states", self._key.subkey("state of records/1"))

    def sign_approval(self, approval: Approval, key: Path) -> Approval:
        """The approval, signed with the key in a file."""
        said = approval.document()
        signature = sign(Role.APPROVAL, self.identifier, approval.by, approval.account, said, key=key)
        return replace(approval, signature=signature)

    def sign_request(self, request: Request, key: Path) -> Request:
        """The request of a publisher, signed with the key in a file."""
        said = request_document(request, None)
        signature = sign(Role.PUBLICATION, self.identifier, request.user, request.account, said, key=key)
        return replace(request, signature=signature)

    def _check_signed(
        self, role: Role, by: str, account: str, said: Mapping[str, object], signature: Signature | None
    ) -> None:
        """Refuse an act that is not signed as the project asks, or with a signature that was used before."""
        if signature is not None and signature.nonce in self._books.nonces:
            raise NotApproved(
                f"the signature of the {role} was used before",
                why="one signature is one person's word for one act",
                instead="sign this act too",
            )
        signed = statement(role, self.identifier, by, account, said, "" if signature is None else signature.nonce)
        self._signers.check(role, signed, by, signature)

    def _check_reserved(self, page: _Page, entry: ReleaseEntry) -> None:
        """Refuse to open data on a reservation that is not signed, or not approved, as the project asks by now."""
        signature = entry.signature
        about = entry.user, entry.account, request_document(entry, None), "" if signature is None else signature.nonce
        signed = statement(Role.PUBLICATION, self.identifier, *about)
        self._signers.check(Role.PUBLICATION, signed, entry.user, signature)
        account = page.books.account(entry.account)
        page.books.check_approval(account, entry, lambda approval: self._counts(approval, entry))

    def _counts(self, approval: Approval, request: Request | ReleaseEntry) -> bool:
        """Whether an approval is one that the project asks for, for this publisher."""
        signers, signature = self._signers, approval.signature
        if signers.two_persons:
            own = None if request.signature is None else request.signature.key
            if signature is None or approval.by == request.user or signature.key == own:
                return False
        if signers.approvers is None:
            return True
        if signature is None:
            return False
        about = approval.by, approval.account, approval.document()
        signed = statement(Role.APPROVAL, self.identifier, *about, signature.nonce)
        return signers.knows(Role.APPROVAL, signed, approval.by, signature)

    def approvals(self, account: str, plan_digest: str) -> tuple[Approval, ...]:
        """Every approval of a plan or a question for an account, by its digest, in their order."""
        with self._reading() as books:
            return tuple(books.approvals.get((account, plan_digest), ()))

    def approvals_of(self, release: str) -> tuple[Approval, ...]:
        """The approvals that a release was reserved on, in their order."""
        with self._reading() as books:
            entry = books.release(release)
            return tuple(each for each in books.fitting(entry) if each.entry < entry.entry)

    def advance(self, release: str, state: ReleaseState, *, by: str, digest: str | None = None) -> ReleaseEntry:
        """Record that a release has taken its next step; to record the step it is at already changes nothing.

        `digest` is the SHA-256 of the release.json that was written: what was published can be told from a forgery.
        """
        with self._writing(by) as page:
            found = page.books.release(release)
            if found.state is state and state in KIND_OF:
                return found
            if not found.state.is_active or STEPS[STEPS.index(found.state) + 1] is not state:
                raise _no_step(found, f"become {state}", "resume it from the state it is in")
            if state is ReleaseState.OPENED:
                self._check_reserved(page, found)
            if state is ReleaseState.MEASURED and found.fingerprint is None:
                raise _no_step(found, "be measured before it is bound to its data", "bind it to what was tabulated")
            details = None if digest is None else {"release_digest": digest}
            page.append(KIND_OF[state], by, found.account, release, details=details)
        return self.release(release)

    def bind(self, release: str, fingerprint: str, *, by: str) -> ReleaseEntry:
        """Tie an opened release to its data before any noise is drawn, by the HMAC of the tabulation under its secret.

        A resumed release binds again: the same data change nothing, other data are refused, and the loss stays spent.
        """
        if not is_digest(fingerprint):
            raise ReleaseConflict(
                f"release {release} cannot be bound to this",
                why="what was tabulated is known by its HMAC-SHA-256, 64 lowercase hexadecimal digits",
                instead="bind the HMAC of the tabulation under the release's secret",
            )
        with self._writing(by) as page:
            found = page.books.release(release)
            if not found.state.is_active or found.state is ReleaseState.RESERVED:
                raise _no_step(found, "be bound to data", "bind a release after it is opened and before it settles")
            if found.fingerprint is not None:
                if not hmac.compare_digest(found.fingerprint, fingerprint):
                    raise ReleaseConflict(
                        f"release {release} was begun on other data, or by another version",
                        why="the same noise on other data would expose the difference exactly; its loss stays spent",
                        instead="restore what it was begun with, or publish again at a new loss",
                    )
                return found
            details = {"fingerprint": fingerprint}
            page.append(EventKind.TABULATED, by, found.account, release, details=details)
        return self.release(release)

    def cancel(self, release: str, *, by: str) -> ReleaseEntry:
        """Give a reservation back: only before it is opened. Its secret is destroyed."""
        with self._writing(by) as page:
            found = page.books.release(release)
            if found.state is not ReleaseState.RESERVED:
                raise _no_step(found, "be canceled", "finish it; its loss is spent")
            page.append(EventKind.CANCELED, by, found.account, release)
        return self.destroy_secret(release, by=by)

    def record_export(self, release: str, to: str, *, by: str) -> None:
        """Record that a finished release was handed out, and to whom or what."""
        checked_name(to, "a receiver")
        with self._writing(by) as page:
            found = page.books.release(release)
            if found.state is not ReleaseState.SETTLED:
                raise _no_step(found, "be exported", "finish it first")
            page.append(EventKind.EXPORTED, by, found.account, release, details={"to": to})

    def secret(self, release: str) -> Confidential[bytes]:
        """The secret of a release that is under way, in a box that only the wall opens."""
        found = self.release(release)
        if not found.state.is_active:
            raise _no_step(found, "be worked on", "publish again, with a new secret and a new loss")
        return self._secrets.open(release)

    def holds_secret(self, release: str) -> bool:
        """Whether the secret of a release lies on this machine; another may keep it."""
        return self._secrets.path(release).is_file()

    def destroy_secret(self, release: str, *, by: str) -> ReleaseEntry:
        """Overwrite and remove the secret of a release that is over, and record it."""
        checked_name(by, "a person")
        found = self.release(release)
        if found.state.is_active:
            raise _no_step(found, "lose its secret", "finish it first")
        self._secrets.destroy(release)
        with self._writing(by) as page:
            if found.state is ReleaseState.SETTLED:
                for against in (each for each, state in page.books.checks.items() if state == found.checked):
                    self._secrets.destroy(secret_of_check(against))
            if not page.books.release(release).secret_destroyed:
                page.append(EventKind.KEY_DESTROYED, by, found.account, release)
        return self.release(release)

    def keep_head(self, *, by: str, lost: str | None = None) -> tuple[str, ...]:
        """Keep the head in the second places from now on, in these and no others; the places are recorded, in words.

        A place that is left out is asked a last time. `lost` says what became of one that does not answer any more.
        """
        with self._writing(by, keeping=True) as page:
            silent = self._ask_dropped(page.books)
            if silent and lost is None:
                raise LedgerUnavailable(
                    f"{_listed(silent)} is left out, and does not say how far the ledger had come",
                    why="only a place outside knows that this is an older copy, and an older copy would leave it out",
                    instead="bring it back for a last question, or say what became of it: "
                    "dualmandate ledger anchor --lost REASON, which is recorded",
                )
            for place in self._places:
                place.begin(page.head)
            places = tuple(place.words for place in self._places)
            details: dict[str, object] = {"places": places, "kept": [place.document() for place in self._places]}
            if silent:
                details["lost"] = {
                    "places": silent,
                    "reason": checked_name(lost, "the reason to go on without a place"),
                }
            page.append(EventKind.ANCHORED, by, None, details=details)
        return places

    def _ask_dropped(self, books: Books) -> tuple[str, ...]:
        """Which of the places that are left out do not answer; refused where the ledger is behind one that does."""
        named, silent = {place.words for place in self._places}, list[str]()
        for words in (words for words in books.places if words not in named):
            try:
                heads = place_of(books.kept[words]).read(books.ledger)
            except LedgerRefusal:
                heads = ()
            check_anchors([(words, head) for head in heads], books.head, books.digests)
            if not heads:
                silent.append(words)
        return tuple(silent)

    def kept_at(self) -> tuple[str, ...]:
        """The second places of the head, in words, as the ledger last recorded them."""
        with self._viewing(keeping=True):
            return self._books.places

    def accounts(self) -> tuple[Account, ...]:
        """Every account, in the order of opening."""
        with self._reading() as books:
            return tuple(books.accounts.values())

    def releases(self, account: str | None = None) -> tuple[ReleaseEntry, ...]:
        """Every release, or those of one account, in the order of reservation."""
        with self._reading() as books:
            return tuple(found for found in books.releases.values() if account in (None, found.account))

    def release(self, name: str) -> ReleaseEntry:
        """One release as it stands."""
        with self._reading() as books:
            return books.release(name)

    def spent(self, account: str, scope: Scope | None = None, name: str | None = None) -> Fraction:
        """What is spent or set aside, exactly, in the account's currency; of one user, group or purpose if named."""
        with self._reading() as books:
            return books.spent(account, scope, name)

    def remaining(self, account: str, parts: Mapping[Scope, str] | None = None) -> Fraction:
        """The most that the next release may cost under every cap that applies to these users, groups and purposes."""
        with self._reading() as books:
            return min(books.room(account, parts or {}).values())

    def balances(self, account: str) -> frozenset[Fraction]:
        """All that `remaining` has ever told of an account: a plan that counted on it was made under one of them."""
        with self._viewing() as connection:
            books, found = Books(self._books.ledger, self._books.digests[0]), set()
            for event in self._whole(connection):
                books.read(event)
                if account in books.accounts:
                    found.add(min(books.room(account, {}).values()))
            return frozenset(found)

    def report(self, account: str, failure_probability: Fraction) -> PrivacyLoss | None:
        """What is spent, for the public: (ε, δ) by the tight conversion from ρ, or the pure ε; None for nothing."""
        with self._reading() as books:
            return reported(books.spent(account), books.account(account).privacy_measure, failure_probability)

    def head(self) -> Head:
        """How far the ledger has come; a release writes it down as a further anchor."""
        with self._reading() as books:
            return books.head

    def head_of(self, release: str) -> Head:
        """How far the ledger had come when a release was reserved: what the release itself writes down."""
        with self._reading() as books:
            entry = books.release(release).entry
            return Head(books.ledger, entry, books.digests[entry])

    def heed(self, files: Iterable[Path]) -> None:
        """Refuse to go on where this ledger is behind a file that holds a head of it, such as an earlier release.

        Files that hold no head, or that of another ledger, say nothing.
        """
        found = [(str(path), found_head(path)) for path in files]
        heads = [(path, head) for path, head in found if head is not None and head.ledger == self._books.ledger]
        with self._reading() as books:
            check_anchors(heads, books.head, books.digests)

    def events(self, account: str | None = None) -> tuple[Event, ...]:
        """The entries of the chain, each checked anew, or those about one account, in the order of their numbers."""
        with self._viewing() as connection:
            return tuple(event for event in self._whole(connection) if account in (None, event.account))

    def verify(self) -> Verification:
        """Read everything again from the first entry, and check the chain, the head and every anchor."""
        with self._lock:
            self._books, self._asked = Books(self._books.ledger, self._books.digests[0]), False
        with self._viewing() as connection:
            kept = [(place.words, place.read(self._books.ledger)) for place in self._places]
            last = tuple((words, max(head.sequence for head in heads)) for words, heads in kept if heads)
            whole = tuple(self._whole(connection))
            times = [event.recorded_at for event in whole]
            back = tuple(number for number in range(2, len(times) + 1) if times[number - 1] < times[number - 2])
            return Verification(self._books.head, self._anchors, back, last, self._signatures(whole))

    def _signatures(self, events: Sequence[Event]) -> SignatureCounts:
        """How many approvals and publications are signed; refused where a signature is not of what its entry says."""
        acts = [event for event in events if event.kind in ROLE_OF]
        found = [(event, check_recorded(self.identifier, event)) for event in acts]
        signed = [(event, *made) for event, made in found if made is not None]
        unknown = tuple(
            event.sequence
            for event, content, signature in signed
            if not self._signers.knows(ROLE_OF[event.kind], content, event.by, signature)
        )
        return SignatureCounts(len(signed), len(acts) - len(signed), unknown)

    @contextmanager
    def _reading(self) -> Iterator[Books]:
        with self._viewing():
            yield self._books

    @contextmanager
    def _viewing(self, *, keeping: bool = False) -> Iterator[sql.Connection]:
        """One consistent view, with the books brought up to it."""
        with self._lock:
            # Before the view is taken: a writer may commit and move the anchor right after.
            anchors = self._known(places=not self._asked)
            with self._store.reading() as connection:
                self._read_on(connection, read_head(connection), anchors)
                if not keeping:
                    self._check_places(left_out=True)
                self._asked = True
                yield connection

    def _known(self, *, places: bool) -> dict[str, tuple[Head, ...]]:
        """The heads that every anchor remembers now, and every second place where it is asked too."""
        found = {str(path): (read_anchor(path),) for path in self._anchors}
        return found | {place.words: place.read(self._books.ledger) for place in self._places if places}

    @contextmanager
    def _writing(self, by: str, *, keeping: bool = False) -> Iterator[_Page]:
        """One act of a person: lock, check, write, commit, and then the anchors, all before the caller goes on."""
        checked_name(by, "a person")
        with self._lock:
            with self._store.writing() as connection:
                head = read_head(connection, lock=True)
                known = self._known(places=True)
                self._read_on(connection, head, known)
                if not keeping:
                    self._check_places()
                    self._catch_up(known)
                page = _Page(connection, self._key, self._books)
                yield page
            if page.head.sequence > self._books.head.sequence:
                self._anchor(page.head)

    def _check_places(self, *, left_out: bool = False) -> None:
        """Refuse to write where the head would not be kept in exactly the places that were recorded.

        With `left_out`, refuse to read where one of them would not be asked.
        """
        recorded, named = self._books.places, tuple(place.words for place in self._places)
        if not set(recorded) <= set(named) if left_out else recorded != named:
            raise LedgerUnavailable(
                f"the ledger's head is kept in {_listed(recorded)}, and the project names {_listed(named)}",
                why="a second place that is left out, or was never begun, notices nothing",
                instead="name the same places in dualmandate.toml, or record the change: `dualmandate ledger anchor`",
            )

    def _catch_up(self, known: Mapping[str, tuple[Head, ...]]) -> None:
        """Tell the anchor and every place of the last entry, where a crash or a full disk kept it from them.

        Only then may a next act rely on that entry: what is published must be known elsewhere.
        """
        head = self._books.head
        behind = {at for at, heads in known.items() if all(each.sequence < head.sequence for each in heads)}
        if str(self._anchors[0]) in behind:
            advance_anchor(self._anchors[0], head)
        for place in (place for place in self._places if place.words in behind):
            try:
                place.advance(head)
                told = head in place.read(head.ledger)
            except (CannotWrite, LedgerUnavailable) as refusal:
                raise _untold(place, refusal.why) from None
            if not told:
                raise _untold(place, "it takes what it is handed, and does not keep it")

    @staticmethod
    def _try(place: HeadPlace, head: Head) -> None:
        """Refuse to set a loss aside that a second place could not be told of."""
        try:
            place.prove(head)
        except (CannotWrite, LedgerUnavailable) as refusal:
            raise _untold(place, refusal.why) from None

    def _anchor(self, head: Head) -> None:
        try:
            advance_anchor(self._anchors[0], head)
            for place in self._places:
                place.advance(head)
        except (CannotWrite, LedgerUnavailable) as refusal:
            raise LedgerUnavailable(
                f"entry {head.sequence} is in the ledger, and its anchor could not be written",
                why=refusal.why,
                instead="make room for the anchor; what was recorded stands, and can be taken up from there",
                where=refusal.where,
            ) from None

    def _read_on(self, connection: sql.Connection, head: Head | None, anchors: Mapping[str, tuple[Head, ...]]) -> None:
        """Take in what others have written since, checking every digest, the head and the anchors."""
        books = self._books
        known = books.head
        if head is None or head.ledger != known.ledger:
            raise _broken("the database holds another ledger", "it was replaced, or its head was changed")
        for event in self._chained(connection, known, head):
            books.read(event)
        check_anchors([(at, each) for at, heads in anchors.items() for each in heads], head, books.digests)
        for forgotten in (at for at, heads in anchors.items() if not heads and at in books.places):
            raise LedgerTampered(
                f"{forgotten} knows nothing of this ledger",
                why="its head was kept there: the place is not mounted, was emptied or replaced, or is another one",
                instead="mount it, or put back what it held; one that is lost is left out of dualmandate.toml and by "
                "`dualmandate ledger anchor --lost REASON`",
                where=Place(file=forgotten),
            )

    def _whole(self, connection: sql.Connection) -> Iterator[Event]:
        """Every entry from the first to the last one known, whatever this process has seen before."""
        books = self._books
        return self._chained(connection, Head(books.ledger, 0, books.digests[0]), books.head)

    def _chained(self, connection: sql.Connection, known: Head, head: Head) -> Iterator[Event]:
        """The entries after a known one and up to the head, each with its digest checked.

        The whole table is read: a row that is not in the chain is somebody's forgery, wherever it stands.
        """
        last, found, outside = known, known.sequence == 0, list[int]()
        for event in read_entries(connection, known.sequence):
            if not found and (event.sequence, event.digest) == (known.sequence, known.digest):
                found = True
            elif not found or event.sequence != last.sequence + 1:
                outside.append(event.sequence)
            elif event.digest != chained_digest(self._key, last.digest, event):
                why = "an entry was changed, dropped or moved after it was written, or this is not the ledger's key"
                raise _broken(f"the chain breaks at entry {event.sequence}", why)
            else:
                last = Head(known.ledger, event.sequence, event.digest)
                yield event
        if not found or last != head:
            why = "entries were removed or added behind its back, or an older copy was restored"
            raise _broken(f"the entries do not lead to the ledger's head, number {head.sequence}", why)
        if outside:
            also = f", and {len(outside) - 1} more" if len(outside) > 1 else ""
            why = "its number does not follow the last entry, and no digest ties it to one: the ledger never wrote it"
            raise _broken(f"row {outside[0]} in the table of entries is outside the chain{also}", why)


def _broken(what: str, why: str) -> LedgerTampered:
    return LedgerTampered(
        what, why=why, instead="restore the newest copy that its anchor knows; nothing can be spent before"
    )


def _untold(place: HeadPlace, why: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"{place.words} cannot be told how far the ledger has come",
        why=f"{why}; and what it does not know, it could not notice when it is gone",
        instead="make room there, or mend it, and try again; nothing can be spent before",
        where=Place(file=place.words),
    )


def _signed(signature: Signature | None) -> dict[str, object]:
    return {} if signature is None else {"signature": signature.document()}


def _listed(places: Sequence[str]) -> str:
    return " and ".join(places) if places else "no second place"


def _no_step(release: ReleaseEntry, step: str, instead: str) -> ReleaseConflict:
    return ReleaseConflict(
        f"release {release.name} is {release.state} and cannot {step}",
        why="a release is reserved, opened, measured, written and settled, in this order, and never goes back",
        instead=instead,
    )


def _now() -> datetime:
    return datetime.now(UTC)


def open_ledger(
    place: str | Path,
    key: LedgerKey,
    *,
    folder: Path | None = None,
    anchors: Sequence[Path] = (),
    places: Sequence[HeadPlace] = (),
    signers: Signers = NOBODY,
    create: bool = False,
) -> Ledger:
    """The ledger at a path (SQLite) or a URL (SQLite, PostgreSQL); made if it is not there and `create` says so.

    Its anchor and the sealed secrets lie in `folder`: the file's own for SQLite, to be named for PostgreSQL. `anchors`
    are further files with a `ledger_head`, such as the `release.json` of earlier releases: checked, never written.
    `places` keep the head elsewhere, once `keep_head` has begun them: checked, and written after every entry.
    `signers` are who may approve and publish, where the project asks for signatures.
    """
    store = find_store(place)
    home = folder or (store.path.parent if store.path is not None else None)
    if home is None:
        raise LedgerUnavailable(
            "a ledger in PostgreSQL without a folder of its own",
            why="its anchor and the sealed secrets lie outside the database",
            instead="name the folder in which they lie",
        )
    stem = "ledger" if store.path is None else store.path.name
    anchor = home / f"{stem}.anchor"
    if create:
        make_folder(home)
        make_file(store)
        with alone_in(home), store.writing() as connection:
            bring_up_to_date(store, connection, create=True)
            _begin(connection, key, anchor)
    else:
        require_file(store)
        with store.reading() as connection:
            current = is_current(store, connection)
        if not current:
            with store.writing() as connection:
                bring_up_to_date(store, connection, create=False)
    return Ledger(
        store, key, anchors=(anchor, *anchors), secrets_in=home / f"{stem}.secrets", places=places, signers=signers
    )


def _begin(connection: sql.Connection, key: LedgerKey, anchor: Path) -> None:
    """Name a new ledger, in its anchor first: a crash in between leaves an anchor that knows of no entry."""
    if read_head(connection) is not None:
        return
    if anchor.exists():
        head = read_anchor(anchor)
        if head.sequence > 0 or head.digest != first_digest(key, head.ledger):
            raise LedgerTampered(
                "the database is empty, and the anchor beside it is not",
                why="the ledger's entries were lost, or the anchor was made under another key",
                instead="restore the newest copy of the database, or name another folder",
            )
    else:
        ledger = secrets.token_hex(16)
        head = Head(ledger, 0, first_digest(key, ledger))
        write_anchor(anchor, head)
    start_head(connection, head)
