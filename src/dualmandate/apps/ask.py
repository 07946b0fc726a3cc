"""`dualmandate ask`: what a question costs and how wrong its answer will be; then the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dualmandate.apps import next_step
from dualmandate.apps.check import checked_program
from dualmandate.apps.ledgers import find_ledger, person, spender_of
from dualmandate.apps.options import AskFlags
from dualmandate.apps.output import Output
from dualmandate.apps.publish import RELEASES
from dualmandate.apps.terms import AskTerms
from dualmandate.errors import InvalidAccount, MissingKey
from dualmandate.population.rational import written
from dualmandate.population.wording import percent

if TYPE_CHECKING:
    from dualmandate.inquiry import Answer, AnswerRow, Asker, Price, Question
    from dualmandate.ledger import Ledger
    from dualmandate.population import PrivacyLoss, PrivacyMeasure
    from dualmandate.program import ProgramFile

ANSWERS = "answers"  # the folder beside the program where answers are kept unless another is named
MOST_SHOWN = 200  # rows of an answer on a terminal


@dataclass(frozen=True, eq=False)
class PriceNotice:
    """What a question costs, and how wrong its answer is expected to be; nothing was spent."""

    question: Question
    price: Price
    account: str
    remaining: Fraction | None  # None where no ledger was counted

    def words(self) -> str:
        """What it costs, what it gives, and what is left for it."""
        price = self.price
        bound = "" if price.is_exact else "at most, for so many records: "
        lines = [
            f"costs {_loss(price.charge)} of '{self.account}'; nothing is spent",
            f"{bound}standard error {_digits(price.standard_error)}, ± {_digits(price.half_width)} with "
            f"{percent(price.probability)} (in {price.unit})",
        ]
        if price.numbers > 1:
            lines.append(f"each of {price.numbers:,} numbers; ± {_digits(price.together)} for all of them at once")
        if self.remaining is not None:
            lines.append(f"'{self.account}' has {price.charge.privacy_measure} {written(self.remaining)} left for it")
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        """The price as the JSON document `price/1`."""
        from dualmandate.report.documents.inquiry import PriceDocument

        stated = {"question": self.question.canonical, "account": self.account, "remaining": self.remaining}
        return PriceDocument.made_of(self.price, self.question, **stated).as_json()


@dataclass(frozen=True, eq=False)
class AnswerNotice:
    """An answer, what it cost, and what is left."""

    answer: Answer
    privacy_measure: PrivacyMeasure  # of the account

    def words(self) -> str:
        """Every number with its interval, what was spent, and what remains."""
        answer = self.answer
        lines = [_row(answer.columns, row) for row in answer.rows[:MOST_SHOWN]]
        if len(answer.rows) > MOST_SHOWN:
            lines.append(f"… and {len(answer.rows) - MOST_SHOWN:,} more; --json prints all")
        lines.append(f"each interval holds with {percent(answer.probability)}")
        spent = "nothing: it was answered before" if answer.spent is None else _loss(answer.spent)
        lines += [
            f"spent: {spent} ({answer.release}, measured at {_loss(answer.loss)})",
            f"left for you in '{answer.account}': {self.privacy_measure} {written(answer.remaining)}",
        ]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        """The answer as the JSON document `answer/1`."""
        from dualmandate.report.documents.inquiry import AnswerDocument

        rows = [
            {
                "labels": row.labels,
                **{key: _finite(getattr(row, key)) for key in ("value", "standard_error", "lower", "upper")},
            }
            for row in self.answer.rows
        ]
        return AnswerDocument.made_of(self.answer, rows=rows).as_json()


def carry_out(typed: AskFlags, output: Output) -> None:
    """Price the question; unless it is a dry run, spend and answer."""
    with output.progress("reading the question") as progress:
        from dualmandate.inquiry import Asker, Inquirer

        program, _ = checked_program(typed.program, progress)
        folder = program.document.path.parent
        ledger = _ledger(program, typed)
        answers = typed.answers or folder / ANSWERS
        inquirer = Inquirer(program, ledger, program.source, answers, typed.snapshot)
        who = spender_of(typed.by or ())
        asker = Asker(
            person(who.by),
            who.group,
            who.purpose,
            typed.approved_by,
            typed.other_ledger,
            typed.sign,
            (folder / RELEASES,),
        )
        question = inquirer.question(typed.question)
        terms = AskTerms(typed.spend, typed.within, typed.of, typed.probability, typed.records, typed.together)
        loss, records = terms.loss(inquirer, program, question), terms.expected(program, question)
        notice: PriceNotice | AnswerNotice
        if typed.dry_run:
            price = inquirer.price(question.query, loss, probability=terms.nominal, records=records)
            left = None if ledger is None else _left(ledger, program.account, asker)
            notice = PriceNotice(question, price, program.account, left)
        else:
            _check_source(program)
            progress("asking")
            with _pasteable(program, typed, loss):
                _check_ledger(ledger, program)
                answer = inquirer.ask(question.query, loss, asker=asker, probability=terms.nominal)
            notice = AnswerNotice(answer, inquirer.privacy_measure)
    output.tell(notice)


def _ledger(program: ProgramFile, typed: AskFlags) -> Ledger | None:
    """The ledger of the program; None where there is none yet: a price can be told all the same."""
    start = program.document.path.parent
    if not next_step.ledger_stands(start, typed.ledger):
        return None
    return find_ledger(start, typed.ledger).open()


def _left(ledger: Ledger, account: str, asker: Asker) -> Fraction | None:
    """What an asker may still spend; None where nobody has opened the account."""
    known = {each.name for each in ledger.accounts()}
    return ledger.remaining(account, asker.parts) if account in known else None


def _check_ledger(ledger: Ledger | None, program: ProgramFile) -> None:
    if ledger is None:
        raise InvalidAccount(
            f"there is no ledger yet with the account '{program.account}'",
            why="what an answer loses is booked before the records are opened",
            instead="open its account; --dry-run needs none",
        )


def _check_source(program: ProgramFile) -> None:
    if program.source is None:
        raise MissingKey(
            "the program names no source",
            why="an answer is counted from records, and the program says where these lie",
            instead='write source = "people.parquet" under [population]; --dry-run needs none',
            where=program.document.place(("population", "source")),
        )


@contextmanager
def _pasteable(program: ProgramFile, typed: AskFlags, loss: PrivacyLoss) -> Iterator[None]:
    """A refusal that another command answers names it as it can be pasted here."""
    try:
        yield
    except InvalidAccount as refusal:
        start, charge = program.document.path.parent, loss.for_records(program.protection.records_together)
        about = program.account, program.protection.unit, typed.ledger
        opening = next_step.open_account(start, charge, account=about[0], unit=about[1], flag=about[2])
        raise refusal.advising(f"open its account, with a cap of your choice: {opening}") from None


def _row(columns: tuple[str, ...], row: AnswerRow) -> str:
    about = ", ".join(f"{name} {label}" for name, label in zip(columns, row.labels, strict=True))
    before = f"{about}: " if about else ""
    if isinstance(row.value, str):
        return f"{before}{row.value}, from {row.lower} to {row.upper}"
    error = row.standard_error or 0.0
    value, lower, upper = (_digits(float(each), error) for each in (row.value, row.lower, row.upper))
    span = "any number" if not math.isfinite(float(row.upper)) else f"{lower} to {upper}"
    return f"{before}{value}, standard error {_digits(error)}, {span}"


def _digits(value: float, error: float | None = None) -> str:
    """A number to two digits of its error."""
    size = abs(value) if error is None else error
    if not math.isfinite(value) or not 0 < size < math.inf:
        return f"{value:,.6g}"
    return f"{value:,.{max(0, 1 - math.floor(math.log10(size)))}f}"


def _loss(loss: PrivacyLoss) -> str:
    return f"{loss.privacy_measure} {written(loss.amount)}"


def _finite(value: float | str | None) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
