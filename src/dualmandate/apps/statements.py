"""What the ledger says, for people and as JSON: balances, approvals, releases, entries, reports. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.apps.ledgers import named_account, term_lines
from dualmandate.errors import InvalidRequest
from dualmandate.ledger import Account, Event, EventKind, Head, Ledger, ReleaseEntry, Verification
from dualmandate.ledger.ledger import SignatureCounts
from dualmandate.ledger.signatures import read_signature, signed_words
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import written

if TYPE_CHECKING:
    from dualmandate.publication.release import ReleasePrivacy
    from dualmandate.report.documents.ledger import ApprovalPart

SIGNED = (EventKind.APPROVED, EventKind.RESERVED, EventKind.REFUSED)  # what a line labels as signed or unsigned
SHORT = 12  # digits of a digest that a line shows


@dataclass(frozen=True)
class Balance:
    """One account: what may be lost, what is, and what is left for a release without a purpose of its own."""

    account: Account
    spent: Fraction
    remaining: Fraction
    identifier: str  # of the account

    def line(self) -> str:
        """The balance in one line."""
        account = self.account
        return (
            f"{account.name} ({account.unit}): {account.privacy_measure} {written(account.cap.amount)} in all, "
            f"{written(self.spent)} spent, {written(self.remaining)} left"
        )


def balances(ledger: Ledger) -> tuple[Balance, ...]:
    """The balance of every account, in the order of opening."""
    return tuple(balance(ledger, account) for account in ledger.accounts())


def balance(ledger: Ledger, account: Account) -> Balance:
    """The balance of one account."""
    spent, remaining = ledger.spent(account.name), ledger.remaining(account.name)
    return Balance(account, spent, remaining, ledger.account_identifier(account.name))


@dataclass(frozen=True)
class Statement:
    """Accounts, the plans approved for them and the releases that spend from them."""

    head: Head
    balances: tuple[Balance, ...]
    approvals: tuple[Event, ...]
    releases: tuple[ReleaseEntry, ...]

    def words(self) -> str:
        lines: list[str] = []
        for each in self.balances:
            lines.append(each.line())
            lines += [f"  {line}" for line in (*term_lines(each.account), f"account {each.identifier}")]
            lines += [f"  {_approval_line(event)}" for event in self.approvals if event.account == each.account.name]
            lines += [f"  {_release_line(found)}" for found in self.releases if found.account == each.account.name]
        return "\n".join([*lines, f"{_entries(self.head)}, head {self.head.digest[:SHORT]}…"])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerDocument, StatementPart, account_keys

        accounts = [
            StatementPart.made_of(
                each,
                each.account,
                **account_keys(each.account),
                approvals=[_approval(event) for event in self.approvals if event.account == each.account.name],
                releases=[found for found in self.releases if found.account == each.account.name],
            )
            for each in self.balances
        ]
        return LedgerDocument.made_of(ledger_head=self.head, accounts=accounts).as_json()


def accounts_document(found: Sequence[Balance]) -> dict[str, object]:
    """Balances as the JSON document `ledger-accounts/1`."""
    from dualmandate.report.documents.ledger import BalancePart, LedgerAccountsDocument, account_keys

    balances = [BalancePart.made_of(each, each.account, **account_keys(each.account)) for each in found]
    return LedgerAccountsDocument.made_of(accounts=balances).as_json()


def statement(ledger: Ledger, account: str | None) -> Statement:
    """The statement of one account, or of all."""
    shown = balances(ledger) if account is None else (balance(ledger, named_account(ledger, account)),)
    approvals = tuple(event for event in ledger.events(account) if event.kind is EventKind.APPROVED)
    return Statement(ledger.head(), shown, approvals, ledger.releases(account))


def _entries(head: Head) -> str:
    return f"{head.sequence} {'entry' if head.sequence == 1 else 'entries'}"


def _approval_line(event: Event) -> str:
    said = event.document()
    loss = written(Fraction(str(said["loss"])))
    line = f"plan {str(said['plan_digest'])[:SHORT]}… approved by {event.by}: {said['currency']} {loss}"
    seen = ", ".join(map(str, said.get("seen_in_the_data", ())))
    return f"{line}, {signed_words(_key(said))}{f', with what was seen in the data: {seen}' if seen else ''}"


def _key(said: Mapping[str, Any]) -> str | None:
    """The key that an entry is signed with, from its details."""
    signature = read_signature(said)
    return None if signature is None else signature.key


def _approval(event: Event) -> ApprovalPart:
    from dualmandate.report.documents.ledger import ApprovalPart

    said = event.document()
    loss = PrivacyLoss(Fraction(str(said["loss"])), PrivacyMeasure(str(said["currency"])))
    return ApprovalPart.made_of(
        event,
        plan_digest=said["plan_digest"],
        loss=loss,
        unit=said["unit"],
        seen_in_the_data=said.get("seen_in_the_data"),
        signed_with=_key(said),
    )


def _release_line(release: ReleaseEntry) -> str:
    beside = "" if release.beside is None else f", {beside_words(release.beside.document())}"
    beside += ", unchecked" if release.unchecked else ""
    return (
        f"release {release.name} of plan {release.plan_digest[:SHORT]}… on '{release.snapshot}' by {release.user}: "
        f"{release.state}, {written(release.cost)}, {signed_words(release.signed_with)}{beside}"
    )


def beside_words(document: Mapping[str, Any]) -> str:
    """Other ledgers that had spent from the same data, and why that was no hindrance."""
    ledgers = ", ".join(f"{each[:SHORT]}…" for each in document["ledgers"])
    return f"beside another ledger ({ledgers}): '{document['reason']}'"


def events(ledger: Ledger, account: str | None) -> tuple[Event, ...]:
    """Every entry, or those about one account."""
    return ledger.events(None if account is None else named_account(ledger, account).name)


def event_lines(ledger: Ledger, found: Sequence[Event]) -> Iterator[str]:
    """Each entry in one line, its amount in what its account counts in."""
    reserved = {release.name: release for release in ledger.releases()}
    counted_in = {account.name: account.privacy_measure for account in ledger.accounts()}
    for event in found:
        parts = [f"{event.sequence:>6}  {event.recorded_at[:19]}Z  {event.kind} by {event.by}"]
        if event.account is not None:
            parts.append(f"'{event.account}'")
        if event.release is not None:
            parts.append(f"release {event.release}")
        if event.account is not None and event.amount is not None:
            parts.append(f"{counted_in[event.account]} {written(event.amount)}")
        if event.kind in SIGNED:
            parts.append(signed_words(_key(event.document())))
        if event.kind is EventKind.PUBLISHED and event.release is not None:
            # Whoever resumes it finishes what another may have signed: a signature is of the reservation alone.
            found_in = reserved[event.release]
            parts.append(f"as reserved by {found_in.user}, {signed_words(found_in.signed_with)}")
        if event.document().get("unchecked"):
            parts.append("unchecked")
        if "beside" in (said := event.document()):
            parts.append(beside_words(said["beside"]))
        if event.kind is EventKind.ANCHORED:
            parts += [f"the head is kept in {words}" for words in said["places"]] or ["the head is kept nowhere else"]
        if "lost" in said:
            parts.append(f"without {' and '.join(said['lost']['places'])}: '{said['lost']['reason']}'")
        yield ", ".join(parts)


def events_document(found: Sequence[Event]) -> dict[str, object]:
    """Entries as the JSON document `ledger-events/1`."""
    from dualmandate.report.documents.ledger import EventPart, LedgerEventsDocument

    entries = [EventPart.made_of(event, details=event.document()) for event in found]
    return LedgerEventsDocument.made_of(events=entries).as_json()


@dataclass(frozen=True)
class CancellationNotice:
    """A reservation that was given back."""

    release: ReleaseEntry
    balance: Balance

    def words(self) -> str:
        return f"canceled: release {self.release.name}, before any data were opened\n{self.balance.line()}"

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerCancellationDocument

        return LedgerCancellationDocument.made_of(self, self.release, self.balance).as_json()


def canceled(ledger: Ledger, release: ReleaseEntry) -> CancellationNotice:
    """A release that was just canceled, with the balance of its account."""
    return CancellationNotice(release, balance(ledger, named_account(ledger, release.account)))


@dataclass(frozen=True)
class ExportNotice:
    """A release that was handed out."""

    release: ReleaseEntry
    to: str
    by: str

    def words(self) -> str:
        return f"recorded: release {self.release.name} was handed to '{self.to}' by {self.by}"

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerExportDocument

        return LedgerExportDocument.made_of(self, self.release, release=self.release.name).as_json()


@dataclass(frozen=True)
class LedgerCheck:
    """What was checked: the ledger, and releases that are as they were written."""

    verification: Verification
    releases: Sequence[str]
    same_disk: Sequence[str] = ()  # second places of the head that are no second place

    @property
    def unseen(self) -> str:
        """What no check of this ledger can see."""
        if not self.verification.places:
            return (
                "not seen from here: whether this whole folder is an older copy, or one of two that both spend. No "
                "second place keeps the ledger's head; name one in dualmandate.toml (anchor_file, anchor_append, "
                "anchor_database or anchor_command), and run `dualmandate ledger anchor`"
            )
        return (
            "not seen from here: a copy whose keeper restored every second place too, data that were copied to "
            "another ledger, and what was never entered"
        )

    def words(self) -> str:
        """Also of a clock that went back, and of what is not seen."""
        head, count = self.verification.head, len(self.verification.anchors)
        lines = [
            f"whole: {_entries(head)}, each chained to the one before it",
            f"head {head.digest}, known to {count} anchor{'' if count == 1 else 's'}",
        ]
        lines += [f"kept in {place}, up to entry {last}" for place, last in self.verification.places]
        lines += [f"{place} is on the disk of the ledger: who restores that restores both" for place in self.same_disk]
        lines.append(_signature_words(self.verification.signatures))
        lines += [f"release {name} is whole, as it was written" for name in self.releases]
        if self.verification.clock_set_back:
            numbers = ", ".join(map(str, self.verification.clock_set_back))
            lines.append(f"a clock was set back before entry {numbers}: remarkable, and no harm to the order")
        return "\n".join([*lines, self.unseen])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import LedgerVerificationDocument

        anchors = [str(path) for path in self.verification.anchors]
        places = [{"place": words, "sequence": last} for words, last in self.verification.places]
        found = {"ledger_head": self.verification.head, "anchors": anchors, "releases": self.releases}
        found["signatures"] = self.verification.signatures
        found |= {"places": places, "same_disk": self.same_disk, "unseen": self.unseen}
        return LedgerVerificationDocument.made_of(self.verification, **found).as_json()


def _signature_words(found: SignatureCounts) -> str:
    words = f"approvals and publications: {found.signed} signed, {found.unsigned} unsigned"
    if not found.unknown:
        return words
    numbers = ", ".join(map(str, found.unknown))
    return f"{words}; the project does not name, or no longer, who signed entry {numbers}"


@dataclass(frozen=True)
class OneRelease:
    """What one release alone has cost, which is no balance: two of them do not add up."""

    name: str
    privacy: ReleasePrivacy

    def line(self) -> str:
        """By its exact noise, or why that is not known."""
        stated = f"release {self.name} alone: at most {self.privacy.by_conversion} by its loss"
        exact = self.privacy.by_distribution
        return f"{stated}; {self.privacy.words}" if exact is None else f"{stated}, {exact} by its exact noise"


@dataclass(frozen=True)
class Report:
    """What an account has spent, as it is told to the public, and what some of its releases alone have cost."""

    balance: Balance
    failure_probability: Fraction
    loss: PrivacyLoss | None  # None where nothing is spent
    releases: tuple[OneRelease, ...] = ()

    def words(self) -> str:
        account = self.balance.account
        if self.loss is None:
            return f"each {account.unit} of '{account.name}' has lost nothing so far"
        exact = f"{account.privacy_measure} {written(self.balance.spent)}"
        all_of_it = f"each {account.unit} of '{account.name}' has lost at most {self.loss} (exactly {exact})"
        return "\n".join([all_of_it, *(release.line() for release in self.releases)])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.ledger import AlonePart, LedgerReportDocument

        account, loss, nothing = self.balance.account, self.loss, Fraction(0)
        return LedgerReportDocument.made_of(
            self.balance,
            account,
            account=account.name,
            epsilon=nothing if loss is None else loss.amount,
            failure_probability=nothing if loss is None else loss.failure_probability,
            releases=[
                AlonePart.made_of(
                    each.privacy,
                    release=each.name,
                    by_conversion=each.privacy.by_conversion.amount,
                    by_distribution=None if (exact := each.privacy.by_distribution) is None else exact.amount,
                )
                for each in self.releases
            ],
        ).as_json()


def report(ledger: Ledger, account: str, failure_probability: Fraction, releases: Sequence[Path] = ()) -> Report:
    """What one account has spent, as (ε, δ), and what releases in some folders have cost by themselves."""
    found = balance(ledger, named_account(ledger, account))
    alone = tuple(_alone(ledger, account, folder, failure_probability) for folder in releases)
    return Report(found, failure_probability, ledger.report(account, failure_probability), alone)


def _alone(ledger: Ledger, account: str, folder: Path, failure_probability: Fraction) -> OneRelease:
    """Of a release that was checked to be one of the ledger's."""
    from dualmandate.planning.release_spec import load_release

    release = load_release(folder)
    name = release.facts["release"]
    if ledger.release(name).account != account:
        raise InvalidRequest(
            f"release {name} is not paid from '{account}'",
            why="a report is about one account",
            instead="name a release of this account",
        )
    return OneRelease(name, release.privacy(failure_probability))
