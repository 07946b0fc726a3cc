"""How many records the attack on a release gets right, published like any other number: with noise, and booked first.

What is reconstructed from a release is public, f. Against the confidential counts x of the same cells, Σ min(f, x)
changes by at most 1 when one record is added, removed or replaced by another: a cell of x gains one, or loses one, or
both happen, and min moves by 0 or 1 in the same direction as x. A unit with m records changes it by m at most. So it is
published with exact noise for a stated loss, half of it for the attack and half for the guesser beside it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from dualmandate.audit.finding import Baseline, Finding, Range
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.reconstruction.noisy import most_likely, whole_records
from dualmandate.audit.tables import OnePlace, dense_counts
from dualmandate.audit.targets.of_release import noisy_tables
from dualmandate.errors import InvalidRelease, InvalidRequest, NotApproved, Place, Refusal, ReleaseConflict
from dualmandate.ledger import Approval, EventKind, Ledger, ReleaseEntry, ReleaseState, Request
from dualmandate.ledger.books import STEPS
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.ledger.signatures import standing_words
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Noise
from dualmandate.mechanism.noise import subkey
from dualmandate.planning.release_spec import carried_program
from dualmandate.population import Confidential, Domain, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.wording import percent
from dualmandate.publication import Rules, Source, source_file
from dualmandate.publication.beside_data import other_ledgers
from dualmandate.publication.measuring import tabulation_key
from dualmandate.publication.release import Release
from dualmandate.publication.release_folder import Standing, is_complete
from dualmandate.publication.reserving import heed_all, open_records, reserve
from dualmandate.publication.rules import check_rules
from dualmandate.publication.sources import check_source
from dualmandate.publication.tabulating import tabulate

QUERIES = ("the attack", "the proportional guesser")
LEVEL = 0.975  # Each interval holds at this level, so that both hold with 95 %.
VERSION = "records right/1"


def publish_rate(
    release: Release,
    options: AuditOptions,
    ledger: Ledger,
    *,
    loss: PrivacyLoss,
    publisher: RatePublisher,
    write: Callable[[Finding], None],
) -> None:
    """Publish how many records the attack on a release gets right, and a guesser beside it, with noise for a loss.

    `options.confidential` is the file that they are judged by. The loss is booked in the account of the release before
    anything is opened; `write` is handed the finding when it may be written down.
    """
    if options.confidential is None:
        raise InvalidRequest(
            "a rate is to be published, and no records to judge by",
            why="the rate of an attack is counted against the true records",
            instead="name them with --confidential FILE",
        )
    _check_known(release, ledger)
    query = rate_query(release, options, loss)
    publisher = replace(publisher, folders=(release.folder.parent, *publisher.folders))
    book(query, source_file(options.confidential), ledger, publisher=publisher, write=write)


def approve_rate(
    release: Release, options: AuditOptions, ledger: Ledger, *, loss: PrivacyLoss, by: str, sign: Path | None = None
) -> Approval:
    """Record one person's word that the rate of a release may be published at a loss; no record is needed for it."""
    _check_known(release, ledger)
    query = rate_query(release, options, loss)
    approval = Approval(query.account, query.digest, query.charge, query.protection.unit, by=by)
    if sign is not None:
        approval = ledger.sign_approval(approval, sign)
    ledger.approve(approval)
    return approval


def rate_query(release: Release, options: AuditOptions, loss: PrivacyLoss) -> RateQuery:
    """What is asked of the records; everything in it comes from the public files of the release."""
    program = carried_program(release.folder, release.facts)
    target, _, place = noisy_tables(release, program, replace(options, confidential=None, tabulated=None), {})
    found = most_likely(target.equations, target.published, scales=target.scales, expected=target.expected)
    guess = _whole(target.expected)
    return RateQuery(
        release=target.name,
        release_digest=hashlib.sha256((release.folder / RELEASE_FILE).read_bytes()).hexdigest(),
        account=release.facts["account"],
        loss=loss,
        domain=program.domain,
        protection=program.protection,
        rules=program.rules,
        place=place,
        found=_whole(found),
        guess=guess,
        records=max(int(guess.sum()), 1),
        coarsening=target.coarsening,
        attacker_knows=f"the tables, how their errors were made, and {target.prior}",
    )


def _whole(counts: Floats) -> Integers:
    return np.array([whole_records(own) for own in counts])


def _check_known(release: Release, ledger: Ledger) -> None:
    """Refuse a release that this ledger did not settle: its reconstruction is public because it was published."""
    ledger.heed(sorted(release.folder.parent.glob(f"*/{RELEASE_FILE}")))
    entry = ledger.release(release.facts["release"])
    if entry.state is not ReleaseState.SETTLED or not is_complete(release.folder, entry.written_digest):
        raise InvalidRelease(
            f"'{release.folder}' is not the release {entry.name} that the ledger knows",
            why="only what follows from a published release is public, and this one was not published as it stands",
            instead="name the release as it was published, or the ledger that it is booked in",
            where=Place(file=str(release.folder / RELEASE_FILE)),
        )


def check_publishable(target: Path) -> None:
    """Refuse to publish a rate of anything but a release: exact tables, and what is drawn, lead to no public rate."""
    if not (target / RELEASE_FILE).is_file():
        raise InvalidRequest(
            "a rate is to be published of something that is no release",
            why="what exact tables give away follows the records themselves, and noise on the rate would not cover it",
            instead="audit the folder of a release, or leave --publish-rates out",
            where=Place(file=str(target)),
        )


@dataclass(frozen=True, eq=False)
class RateQuery:
    """What is asked of the confidential records, all of it public: whole counts by place and cell, and the loss.

    `found` and `guess` have shape (places, cells of one place). `records` is how many there are by the release itself.
    """

    release: str
    release_digest: str  # SHA-256 of its release.json
    account: str
    loss: PrivacyLoss
    domain: Domain
    protection: Protection
    rules: Rules
    place: OnePlace = field(repr=False)
    found: Integers = field(repr=False)
    guess: Integers = field(repr=False)
    records: int
    coarsening: str
    attacker_knows: str

    @property
    def charge(self) -> PrivacyLoss:
        """What the account is charged: the loss for as many records as exact totals let change together."""
        return self.loss.for_records(self.protection.records_together)

    @property
    def noise(self) -> Noise:
        """The exact noise of each of the two numbers: sensitivity m, half of the loss."""
        most, half = self.protection.most_records_per_unit, self.loss.amount / len(QUERIES)
        if self.loss.privacy_measure is PrivacyMeasure.PURE_DP:
            return Noise(GEOMETRIC, Fraction(most) / half)
        return Noise(GAUSSIAN, Fraction(most) ** 2 / (2 * half))

    @property
    def digest(self) -> str:
        """SHA-256 of the query: whoever approves it approves exactly this."""
        counts = [hashlib.sha256(each.astype("<i8").tobytes()).hexdigest() for each in (self.found, self.guess)]
        content = {
            "version": VERSION,
            "release": self.release_digest,
            "account": self.account,
            "loss": [self.loss.exact(), str(self.loss.privacy_measure)],
            "counts": counts,
            "places": list(self.found.shape),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


@dataclass(frozen=True)
class RatePublisher:
    """Who publishes a rate, who approved that, and for which group and purpose."""

    by: str
    approved_by: str | None = None  # the publisher where nobody else is named, and nobody has approved it before
    group: str | None = None
    purpose: str | None = None
    other_ledger: str | None = None  # why it may be, where another ledger has spent from the same records
    sign: Path | None = None  # the publisher's ssh key, where it is to be signed
    folders: tuple[Path, ...] = ()  # with releases


@dataclass(frozen=True)
class BookedRates:
    """Two published numbers, with noise, and where they are booked."""

    right: tuple[int, int]  # of the attack and of the guesser
    half_width: float
    entry: int  # of the ledger, that reserved the loss
    name: str  # of the release that they are in the ledger
    standing: str | None = None  # who approved and published it, as far as it is signed

    def finding(self, query: RateQuery) -> Finding:
        """The numbers as a finding that may be shown to anybody."""
        attack, guess = (self._share(number, query.records) for number in self.right)
        value = min(max(self.right[0] / query.records, 0.0), 1.0)
        return Finding(
            attack="reconstruction from noisy tables",
            claim=f"records right in the most likely file behind {query.release}, published with noise: about "
            f"{percent(value)} of {query.records:,}",
            success=attack,
            baselines=(Baseline("proportional guesser, published with noise", guess),),
            attacker_knows=query.attacker_knows,
            coarsening=query.coarsening,
            reference="booked",
            booked=f"loss {query.charge} of each {query.protection.unit} from the account '{query.account}', "
            f"entry {self.entry} of its ledger ({self.name})" + (f", {self.standing}" if self.standing else ""),
        )

    def _share(self, number: int, records: int) -> Range:
        """The interval as it is: cut off at 0 and 1, it would seem surer than it is where noise goes beyond them."""
        low, high = ((number + side * self.half_width) / records for side in (-1, 1))
        return Range(low, high, "of the records, with 95 %")


def book(
    query: RateQuery, source: Source, ledger: Ledger, *, publisher: RatePublisher, write: Callable[[Finding], None]
) -> BookedRates:
    """Spend the loss, open the records, count, add noise, have it written, settle: in this order, each step durable.

    `write` puts what is public on the disk. A publication that is cut short is taken up by asking
    again: the same query on the same records gives the same numbers, and its loss counts once.
    """
    query.noise.sampler()  # refused before anything is spent
    check_rules(query.rules, query.domain, query.protection, checking=False)
    check_source(source)
    entry = _reserved(query, source, ledger, publisher)
    try:
        open_records(ledger, source, entry.name, by=publisher.by)
        booked = _measured(query, source, ledger, entry, by=publisher.by)
        _reach(ledger, entry.name, ReleaseState.MEASURED, by=publisher.by)
        finding = booked.finding(query)
        write(finding)
        # SHA-256 of what was published: the ledger can tell it from a forgery
        digest = hashlib.sha256(json.dumps(finding.document(), sort_keys=True).encode("ascii")).hexdigest()
        _reach(ledger, entry.name, ReleaseState.WRITTEN, by=publisher.by, digest=digest)
        _reach(ledger, entry.name, ReleaseState.SETTLED, by=publisher.by)
        ledger.destroy_secret(entry.name, by=publisher.by)
    except Refusal as refusal:
        if not ledger.release(entry.name).state.is_active:
            raise
        raise refusal.advising(f"{refusal.instead}; then ask for the same rate again: its loss is spent") from None
    return booked


def _reserved(query: RateQuery, source: Source, ledger: Ledger, publisher: RatePublisher) -> ReleaseEntry:
    """The reservation of this query on this file: one that was left under way, or a new one."""
    snapshot, unit = f"{source.name}: records right behind {query.release}", query.protection.unit
    begun = [
        each for each in ledger.releases(query.account) if (each.plan_digest, each.snapshot) == (query.digest, snapshot)
    ]
    for each in begun:
        if each.state.is_active:
            return each
        if each.state is ReleaseState.SETTLED:
            raise ReleaseConflict(
                f"this rate was published already, and is booked in entry {each.entry}",
                why="one question to one file is one number, one secret and one loss",
                instead="read the audit that was written then; at another loss it is another question",
            )
    spent = query.account, query.digest, snapshot, query.charge, unit
    request = Request(*spent, publisher.by, publisher.group, publisher.purpose)
    heed_all(ledger, source, publisher.folders)
    other_ledgers(ledger, source, publisher.folders, reason=publisher.other_ledger)  # before anything is written
    approvals = [event for event in ledger.events(query.account) if event.kind is EventKind.APPROVED]
    approved = {event.by for event in approvals if event.document()["plan_digest"] == query.digest}
    approver = publisher.approved_by or (publisher.by if not approved else None)
    if approver is not None and approver not in approved:
        _approve_by_name(query, ledger, approver)
    other, sign = publisher.other_ledger, publisher.sign
    return reserve(ledger, source, request, folders=publisher.folders, other_ledger=other, sign=sign)


def _approve_by_name(query: RateQuery, ledger: Ledger, approver: str) -> None:
    """Record the name of an approver that the publisher typed; refused where the project asks for a signature."""
    try:
        ledger.approve(Approval(query.account, query.digest, query.charge, query.protection.unit, by=approver))
    except NotApproved as refusal:
        raise refusal.advising(
            "have the rate approved first, by its approver: dualmandate audit RELEASE --approve-rates LOSS --by NAME "
            "--sign KEY, with the other words of this command but for the records"
        ) from None


def _measured(query: RateQuery, source: Source, ledger: Ledger, entry: ReleaseEntry, *, by: str) -> BookedRates:
    secret = ledger.secret(entry.name)
    tabulated = tabulate(
        source, query.domain, protection=query.protection, rules=query.rules, key=tabulation_key(secret)
    )
    dense = dense_counts(tabulated, "counting what an attack got right")
    truth = Confidential("counts that a rate is published of", np.ascontiguousarray(query.place.counts(dense)))
    mac = _fingerprint(query, truth, secret)
    ledger.bind(entry.name, mac, by=by)
    noise, sampler = query.noise, query.noise.sampler()
    counts = truth.open_for("counting what an attack got right")
    numbers = []
    for name, guessed in zip(QUERIES, (query.found, query.guess), strict=True):
        opened = secret.open_for("drawing noise")
        key = subkey(opened, query.digest, histogram_mac=bytes.fromhex(mac), measurement=f"{VERSION} / {name}")
        numbers.append(int(sampler.draw(key, range(1))[0]) + int(np.minimum(guessed, counts).sum()))
    width = noise.distribution().reach(1 - LEVEL)
    stands = Standing(ledger.head_of(entry.name), ledger.approvals_of(entry.name))
    standing = standing_words({"signatures": stands.signatures(entry)})
    if entry.beside is not None:
        standing = f"{standing} Another ledger had spent from the same records; the publisher: '{entry.beside.reason}'"
    return BookedRates((numbers[0], numbers[1]), float(width), entry.entry, entry.name, standing)


def _fingerprint(query: RateQuery, truth: Confidential[Integers], secret: Confidential[bytes]) -> str:
    """HMAC-SHA-256 of the query and of the exact counts under the secret: the same noise never meets other data."""
    content = hmac.new(secret.open_for("binding a rate to its data"), digestmod=hashlib.sha256)
    content.update(query.digest.encode())
    content.update(truth.open_for("binding a rate to its data").astype("<i8").tobytes())
    return content.hexdigest()


def _reach(ledger: Ledger, release: str, state: ReleaseState, *, by: str, digest: str | None = None) -> None:
    if STEPS.index(ledger.release(release).state) < STEPS.index(state):
        ledger.advance(release, state, by=by, digest=digest)
