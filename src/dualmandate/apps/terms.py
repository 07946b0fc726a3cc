"""On what terms a question is asked: what it may cost, or how right it must be; the same typed and sent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dualmandate.apps.ledgers import loss_of, number
from dualmandate.errors import InvalidRequest

if TYPE_CHECKING:
    from dualmandate.inquiry import Inquirer, Question
    from dualmandate.population import PrivacyLoss
    from dualmandate.program import ProgramFile


@dataclass(frozen=True)
class AskTerms:
    """What was stated: one of `spend` and `within`, and what the second is of; numbers as they were written."""

    spend: str | None = None
    within: str | None = None
    of: str | None = None
    probability: str = "0.95"
    records: str | None = None
    together: bool = False

    @property
    def nominal(self) -> Fraction:
        """The probability with which each interval holds."""
        return number(self.probability, "a probability")

    def loss(self, inquirer: Inquirer, program: ProgramFile, question: Question) -> PrivacyLoss:
        """What is to be spent: as it was stated, or as much as the accuracy that was stated takes."""
        if (self.spend is None) == (self.within is None):
            raise InvalidRequest(
                "a question at no price, or at two",
                why="a loss decides the accuracy, and an accuracy the loss",
                instead="state one of them: spend 0.1, or within 2%",
            )
        if self.spend is not None:
            return loss_of(self.spend, "a loss for a question")
        stated, of = str(self.within).strip(), 1.0
        if stated.endswith("%"):
            of = self._size(program, question) / 100
        return inquirer.loss_for(
            question.query,
            float(number(stated.removesuffix("%"), "a half-width")),
            probability=self.nominal,
            of=of,
            records=self.expected(program, question),
            together=self.together,
        )

    def expected(self, program: ProgramFile, question: Question) -> float | None:
        """The public number of records that a mean is priced for: the program's, where all of them are averaged."""
        if self.records is not None:
            return float(number(self.records, "a number of records"))
        return None if question.by or question.query.where else program.expected_records

    def _size(self, program: ProgramFile, question: Question) -> float:
        """The public size that a percentage is of: what was stated, or for counts and ranks the population."""
        if self.of is not None:
            return abs(float(number(self.of, "a public size")))
        if str(question.statistic) in ("count", "quantile"):
            return program.expected_records
        raise InvalidRequest(
            f"± {self.within} of nothing that is known beforehand",
            why=f"the {question.statistic} itself is confidential, and a share of it cannot be promised",
            instead="state a public size of it, of 40000; or a half-width in its own unit, within 500",
        )
