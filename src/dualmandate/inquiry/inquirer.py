"""Asking: an answer is a release with one question. Its loss is spent first, then the records are opened.

The same reservation, secret, binding, measurement and settlement as those of a release, under the same caps: of the
account, and within it of a user, a group and a purpose. What was measured is kept durably beside it, so that the same
question of the same records is answered again from the record: the same numbers, free. One that was cut short is taken
up by asking again: its noise is a function of its secret and of the records, and its loss counts once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dualmandate.errors import CannotWrite, InvalidRequest, NotApproved, Refusal, ReleaseConflict, UnknownName
from dualmandate.inquiry.answer import Answer, rows_of
from dualmandate.inquiry.pricing import MeasuredQuestion, Price, least_loss
from dualmandate.inquiry.query import Query, Question, question_again, question_of
from dualmandate.ledger import Approval, Ledger, ReleaseEntry, ReleaseState, Request, Scope
from dualmandate.ledger.books import STEPS
from dualmandate.ledger.chain import found_head
from dualmandate.ledger.durable import alone_in, make_folders, write_durably
from dualmandate.population import Domain, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Integers
from dualmandate.publication import Rules, Source
from dualmandate.publication.beside_data import other_ledgers
from dualmandate.publication.intervals import Probability
from dualmandate.publication.measuring import fingerprint, measure, tabulation_key
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.reserving import heed_all, open_records, reserve
from dualmandate.publication.tabulating import check_readable, tabulate
from dualmandate.publication.writing import PUBLIC_MODE

VERSION = "asked/1"
KEPT = "kept-answer/1"
MOST_BYTES = 2**28  # of an answer that is read back
Asked = Query | str | Mapping[str, Any]


class Declared(Protocol):
    """What a program declares of its records; all of it public."""

    @property
    def name(self) -> str:
        """What the program is called."""

    @property
    def account(self) -> str:
        """Whose privacy is spent: an account of the ledger."""

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""

    @property
    def protection(self) -> Protection:
        """Who is protected, and how."""

    @property
    def rules(self) -> Rules:
        """What becomes of a record that does not fit."""

    @property
    def seen_in_the_data(self) -> tuple[str, ...]:
        """What it took from the records."""


@dataclass(frozen=True)
class Asker:
    """Who asks, for which group and purpose, whose limits then count; who approved it, where that is somebody else."""

    by: str
    group: str | None = None
    purpose: str | None = None
    approved_by: str | None = None
    other_ledger: str | None = None  # why it may be, where another ledger has spent from the same records
    sign: Path | None = None  # the asker's ssh key, where a publication is to be signed
    folders: tuple[Path, ...] = ()  # with releases, whose ledger heads are heeded

    @property
    def parts(self) -> dict[Scope, str]:
        """The user, group and purpose whose limits it counts against."""
        named = {Scope.USER: self.by, Scope.GROUP: self.group, Scope.PURPOSE: self.purpose}
        return {scope: name for scope, name in named.items() if name is not None}


@dataclass(frozen=True, eq=False)
class Inquirer:
    """Questions to the records of a program, within the account that a ledger keeps of them.

    Without a ledger and a source questions are priced, and not asked. `answers` is the folder in which answers are
    kept; `snapshot` names the state that the records are in: new records get a new name, and new answers.
    """

    program: Declared
    ledger: Ledger | None = None
    source: Source | None = None
    answers: Path | str | None = None
    snapshot: str | None = None

    def question(self, asked: Asked) -> Question:
        """What is asked, as SQL, as JSON, or as a `Query`: over the declared domain."""
        return question_of(_read(asked), self.program.domain)

    def price(
        self, asked: Asked, loss: PrivacyLoss, *, probability: Probability = 0.95, records: float | None = None
    ) -> Price:
        """What a question costs at a loss, and how wrong its answer is expected to be; free.

        `records` is a public number of records: what the accuracy of a mean is worked out for.
        """
        return self._measured(self.question(asked), loss).price(probability, records)

    def loss_for(
        self,
        asked: Asked,
        within: float,
        *,
        probability: Probability = 0.95,
        of: float = 1.0,
        records: float | None = None,
        together: bool = False,
        privacy_measure: PrivacyMeasure | None = None,
    ) -> PrivacyLoss:
        """The least loss at which each number is within ± `within` times `of` with a probability; free.

        `of` is a public size: ±2 % of 46 million is within=0.02, of=46e6. `together` asks it of all numbers at once.
        """
        question = self.question(asked)
        measure = privacy_measure or self.privacy_measure

        def priced(loss: PrivacyLoss) -> Price:
            return self._measured(question, loss).price(probability, records)

        return least_loss(priced, within * of, measure, together=together)

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What the account counts in; ε where there is no ledger."""
        if self.ledger is None:
            return PrivacyMeasure.PURE_DP
        known = {account.name: account.privacy_measure for account in self.ledger.accounts()}
        return known.get(self.program.account, PrivacyMeasure.PURE_DP)

    def ask(self, asked: Asked, loss: PrivacyLoss, *, asker: Asker, probability: Probability = 0.95) -> Answer:
        """Spend the loss, and answer; free where the same was answered before, at this loss or a larger one."""
        work = _QuestionUnderWay.of(self, self._measured(self.question(asked), loss), asker)
        found = work.known()
        spent = None
        if found is None:
            work.check()
            make_folders(work.answers)
            with alone_in(work.answers):
                found = work.known()
                if found is None:
                    spent = work.order.charge
                    found = work.answered()
        return work.told(found, spent, probability)

    def recall(
        self, asked: Asked, loss: PrivacyLoss, *, asker: Asker, probability: Probability = 0.95
    ) -> Answer | None:
        """The answer that was given to the same question at this loss or a larger one; None where there is none."""
        work = _QuestionUnderWay.of(self, self._measured(self.question(asked), loss), asker)
        found = work.known()
        return None if found is None else work.told(found, None, probability)

    def reread(self, release: str, *, asker: Asker, probability: Probability = 0.95) -> Answer:
        """An answer by its name in the ledger: free, whoever had asked."""
        question = self.asked(release)
        if question is None or self.ledger is None:
            raise UnknownName(
                f"there is no answer '{release}' of the program '{self.program.name}'",
                why="an answer is known by what it is in the ledger, and kept beside its program",
                instead="state one that the history names",
            )
        entry = self.ledger.release(release)
        work = _QuestionUnderWay.of(
            self, replace_loss(self._measured(question, entry.loss), entry, self.program.protection), asker
        )
        return work.told((entry, work.kept(entry)), None, probability)

    def asked(self, release: str) -> Question | None:
        """The question of a kept answer; None where none is kept here, or of a program that has changed since."""
        path = Path(self.answers or ".") / f"{release}.json"
        if self.ledger is None:
            return None
        try:
            if release != path.stem or path.stat().st_size > MOST_BYTES:
                return None
            question = question_again(json.loads(path.read_bytes())["question"], self.program.domain)
            entry = self.ledger.release(release)
        except (OSError, ValueError, LookupError, TypeError, Refusal):
            return None
        digest = asked_digest(question, self.program.account, declared_digest(self.program), entry.loss)
        return question if digest == entry.plan_digest else None  # else it is one of another program

    def approve(self, asked: Asked, loss: PrivacyLoss, *, by: str, sign: Path | None = None) -> Approval:
        """Record one person's word that a question may be asked at a loss; no record is needed for it."""
        work = _QuestionUnderWay.of(
            self, self._measured(self.question(asked), loss), Asker(by, sign=sign), opening=False
        )
        return work.approve(by)

    def _measured(self, question: Question, loss: PrivacyLoss) -> MeasuredQuestion:
        return MeasuredQuestion(question, self.program.protection, loss)


def replace_loss(asked: MeasuredQuestion, entry: ReleaseEntry, protection: Protection) -> MeasuredQuestion:
    """The question as it was measured: at the loss that its entry was charged for."""
    records, power = protection.records_together, 2 if entry.loss.privacy_measure is PrivacyMeasure.ZCDP else 1
    amount = entry.loss.amount / records**power
    return replace(asked, loss=PrivacyLoss(amount, entry.loss.privacy_measure))


def _read(asked: Asked) -> Query:
    if isinstance(asked, Query):
        return asked
    if isinstance(asked, str) and not asked.lstrip().startswith("{"):
        from dualmandate.inquiry.sql import parse_sql  # here: whoever asks in JSON needs no parser

        return parse_sql(asked)
    from dualmandate.inquiry.schema import query_of

    return query_of(asked)


@dataclass(frozen=True, eq=False)
class _QuestionUnderWay:
    """One question under way."""

    program: Declared
    asked: MeasuredQuestion
    ledger: Ledger
    source: Source
    answers: Path
    snapshot: str
    asker: Asker

    @classmethod
    def of(
        cls, inquirer: Inquirer, asked: MeasuredQuestion, asker: Asker, *, opening: bool = True
    ) -> _QuestionUnderWay:
        program, ledger, source = inquirer.program, inquirer.ledger, inquirer.source
        if ledger is None or source is None or (inquirer.answers is None and opening):
            raise InvalidRequest(
                "a question without a ledger, records, or a folder for answers",
                why="its loss is booked before records are opened, and its answer is kept for whoever asks the same",
                instead="name all three: Inquirer(program, ledger, source, answers=folder); prices need none of them",
            )
        if program.seen_in_the_data:
            raise InvalidRequest(
                f"questions to a program that took {', '.join(program.seen_in_the_data[:4])} from the records",
                why="the levels and bounds of an answer come from what is public, never from the data",
                instead="state them from code lists and manuals, and take their marks out of the program",
            )
        snapshot = inquirer.snapshot or source.name
        return cls(program, asked, ledger, source, Path(inquirer.answers or "."), snapshot, asker)

    @cached_property
    def order(self) -> ReleaseSpec:
        """The question as a release: measured, bound and counted by the same code."""
        program, asked = self.program, self.asked
        return ReleaseSpec(
            plan_digest=self.digest_at(self.charge),
            program=program.name,
            account=program.account,
            loss=asked.loss,
            domain=program.domain,
            protection=program.protection,
            rules=program.rules,
            groups=asked.groups,
            units={group.name: program.protection.unit for group in asked.groups},
        )

    @property
    def charge(self) -> PrivacyLoss:
        """What the account pays: the loss for as many records as change together."""
        return self.asked.loss.for_records(self.program.protection.records_together)

    def digest_at(self, charge: PrivacyLoss) -> str:
        """SHA-256 of the question, of what it is asked of, and of what it costs: whoever approves it approves this."""
        return asked_digest(self.asked.question, self.program.account, self.declared, charge)

    @cached_property
    def declared(self) -> str:
        """What the question is asked of."""
        return declared_digest(self.program)

    def known(self) -> tuple[ReleaseEntry, dict[str, Integers]] | None:
        """What was measured for the same question of the same records, at this loss or at the largest above it."""
        charge = self.charge
        settled = [
            each
            for each in self.ledger.releases(self.program.account)
            if each.state is ReleaseState.SETTLED
            and each.snapshot == self.snapshot
            and each.loss.privacy_measure is charge.privacy_measure
            and each.loss.amount >= charge.amount
        ]
        digests = {loss: self.digest_at(loss) for loss in {each.loss for each in settled}}  # few losses, many answers
        settled = [each for each in settled if each.plan_digest == digests[each.loss]]
        if not settled:
            return None
        best = max(settled, key=lambda each: each.loss.amount)
        return best, self.kept(best)

    def told(
        self, found: tuple[ReleaseEntry, dict[str, Integers]], spent: PrivacyLoss | None, probability: Probability
    ) -> Answer:
        """What was measured, as it is told: with errors and intervals, and what is left for who asks."""
        entry, measured = found
        made = replace_loss(self.asked, entry, self.program.protection)
        query, rows = made.question.query, rows_of(made, measured, probability)
        left = self.ledger.remaining(entry.account, self.asker.parts)
        about = (float(probability), made.loss, entry.account, entry.name, spent, left)
        return Answer(query.statistic, query.of, made.question.by, rows, *about)

    def path(self, entry: ReleaseEntry) -> Path:
        return self.answers / f"{entry.name}.json"

    def kept(self, entry: ReleaseEntry) -> dict[str, Integers]:
        """What was measured, as it was written down; refused where it is not there as the ledger knows it."""
        path, content = self.path(entry), b""
        try:
            if path.stat().st_size <= MOST_BYTES:
                content = path.read_bytes()
        except OSError:
            pass
        if hashlib.sha256(content).hexdigest() != entry.written_digest:
            raise ReleaseConflict(
                f"the answer {entry.name} is not in '{self.answers}' as it was given",
                why="the same question has one answer, which was spent for; its file is gone, damaged or another one",
                instead="put its file back, or name the folder that it was written to; a larger loss asks anew",
            )
        numbers = json.loads(content)["measured"]
        return {name: np.array(values, dtype=np.int64) for name, values in numbers.items()}

    def check(self) -> None:
        """Refuse what could not be answered, before anything is spent."""
        self.order.check()
        check_readable(self.source, self.program.domain, protection=self.program.protection, rules=self.program.rules)

    def answered(self) -> tuple[ReleaseEntry, dict[str, Integers]]:
        """Spend, open, bind, measure, keep, settle: each step durable, each taken up where it was left."""
        ledger, by = self.ledger, self.asker.by
        entry = self.reserved()
        try:
            self.check_own(entry)
            open_records(ledger, self.source, entry.name, by=by)
            measured = self.measured(entry)
            self.reach(entry, ReleaseState.MEASURED)
            content = self.content(entry, measured)
            write_durably(self.path(entry), content, mode=PUBLIC_MODE)
            self.reach(entry, ReleaseState.WRITTEN, digest=hashlib.sha256(content).hexdigest())
            self.reach(entry, ReleaseState.SETTLED)
            ledger.destroy_secret(entry.name, by=by)
        except Refusal as refusal:
            if not ledger.release(entry.name).state.is_active:
                raise
            raise refusal.advising(f"{refusal.instead}; then ask the same again: its loss is spent once") from None
        return ledger.release(entry.name), measured

    def check_own(self, entry: ReleaseEntry) -> None:
        """Refuse to write over another answer: that of another ledger, or of this one before it was set back."""
        path = self.path(entry)
        if path.exists() and found_head(path) != self.ledger.head_of(entry.name):
            raise CannotWrite(
                f"'{path}' is there already, and is not this answer",
                why="another ledger's answer may have its name, or this ledger was restored from before that answer",
                instead="name another folder for answers, or restore the newest copy of the ledger",
            )

    def reserved(self) -> ReleaseEntry:
        """The reservation of this question: one that was left under way, or a new one, within every cap."""
        order = self.order
        for each in self.ledger.releases(order.account):
            if each.state.is_active and (each.plan_digest, each.snapshot) == (order.plan_digest, self.snapshot):
                return each
        asker, spent = self.asker, (order.account, order.plan_digest, self.snapshot, order.charge)
        request = Request(*spent, order.protection.unit, asker.by, asker.group, asker.purpose)
        heed_all(self.ledger, self.source, asker.folders)
        other_ledgers(self.ledger, self.source, asker.folders, reason=asker.other_ledger)  # before anything is written
        approved = {each.by for each in self.ledger.approvals(order.account, order.plan_digest)}
        approver = asker.approved_by or (None if approved else asker.by)
        if approver is not None and approver not in approved:
            self.approve(approver)
        return reserve(
            self.ledger, self.source, request, folders=asker.folders, other_ledger=asker.other_ledger, sign=asker.sign
        )

    def approve(self, by: str) -> Approval:
        """Record who approves exactly this question at exactly this loss."""
        order, unit = self.order, self.program.protection.unit
        approval = Approval(order.account, order.plan_digest, order.charge, unit, by=by)
        if self.asker.sign is not None and by == self.asker.by:
            approval = self.ledger.sign_approval(approval, self.asker.sign)
        try:
            self.ledger.approve(approval)
        except NotApproved as refusal:
            raise refusal.advising("have the question approved first: Inquirer.approve, by its approver") from None
        return approval

    def measured(self, entry: ReleaseEntry) -> dict[str, Integers]:
        """The counts of the records, bound to this question, with its noise."""
        order, secret = self.order, self.ledger.secret(entry.name)
        tabulated = tabulate(
            self.source,
            order.domain,
            protection=order.protection,
            rules=order.rules,
            key=tabulation_key(secret),
            sparse=order.sparse,
            marginals=order.marginals,
        )
        mac = fingerprint(order, tabulated, secret)
        self.ledger.bind(entry.name, mac, by=self.asker.by)
        return {rows.group: rows.values for rows in measure(order, tabulated, secret, mac=mac)}

    def content(self, entry: ReleaseEntry, measured: Mapping[str, Integers]) -> bytes:
        """What is kept of an answer: public, as everything is that has its noise."""
        document = {
            "schema": KEPT,
            "release": entry.name,
            "account": entry.account,
            "ledger_head": self.ledger.head_of(entry.name).document(),
            "question": self.asked.question.canonical,
            "loss": {"exact": self.asked.loss.exact(), "currency": str(self.asked.loss.privacy_measure)},
            "measured": {name: values.tolist() for name, values in measured.items()},
        }
        return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()

    def reach(self, entry: ReleaseEntry, state: ReleaseState, *, digest: str | None = None) -> None:
        if STEPS.index(self.ledger.release(entry.name).state) < STEPS.index(state):
            self.ledger.advance(entry.name, state, by=self.asker.by, digest=digest)


def asked_digest(question: Question, account: str, declared: str, charge: PrivacyLoss) -> str:
    """SHA-256 of a question, of what it is asked of, and of what it costs."""
    content = {
        "version": VERSION,
        "question": question.digest,
        "declared": declared,
        "account": account,
        "loss": [charge.exact(), str(charge.privacy_measure)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def declared_digest(program: Declared) -> str:
    """SHA-256 of what a program declares: the levels of the records, who is protected, and what becomes of misfits."""
    domain, protection, rules = program.domain, program.protection, program.rules
    content = hashlib.sha256()
    for attribute in domain.attributes:
        rule = rules.of(attribute)
        said = [
            attribute.name,
            attribute.size,
            attribute.missing,
            str(attribute.edges),
            str(rule.outside),
            str(rule.null),
        ]
        grid = None if attribute.grid is None else [str(attribute.lower), str(attribute.grid)]
        levels = grid if grid is not None else list(attribute.levels)
        content.update(json.dumps([*said, levels]).encode("ascii") + b"\n")
    whole = [
        [[list(each) for each in zero.levels] for zero in domain.structural_zeros],
        [[each.name, each.by, each.where] for each in protection.invariants],
        [protection.unit, str(protection.neighbors), protection.most_records_per_unit, protection.identifier],
        [protection.records_together, rules.unknown_where_impossible, rules.dropping_is_public],
    ]
    content.update(json.dumps(whole).encode("ascii"))
    return content.hexdigest()
