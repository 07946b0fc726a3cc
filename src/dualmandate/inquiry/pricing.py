"""What a question costs and how wrong its answer is, before it is asked: from the declared domain alone, and free.

What is priced is what is measured: each table of a question with exact noise, by the law that `publication` draws from.
A count and a sum are measured themselves. A mean is a sum over a count, each measured at half of the loss: its interval
is Fieller's (`publication.ratios`), and beforehand its error is √(V_S + r²V_N)/N for N records and the mean r, at most
the largest number that is declared. A quantile is read from the counts of all levels. With p/d its level, C_k the
records up to level k and N all of them, the quantile is the first level with T_k = d·C_k − p·N ≥ 0. T̂_k has an exact
law; with t_k its (1 − α/2) quantile, P(T̂_k < −t_k) ≤ α/2 at the true level and P(T̂ ≥ t) ≤ α/2 at the one below it, so
that the levels with T̂_k ≥ −t_k and T̂_{k−1} < t_{k−1} hold the quantile with probability 1 − α (a test turned around).
Its error is told beforehand in records: how many the rank may be off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidQuery, InvalidRequest
from dualmandate.inquiry.query import Question, StatisticKind
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Measurement
from dualmandate.mechanism.rows import TableRows
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Integers
from dualmandate.publication.intervals import Draws, Probability, asked_for, outward, spread_of
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.release_spec import Group
from dualmandate.workload import Workload

DIGITS = 3  # significant ones of a loss that is solved for; rounded up, so that what was asked for is met
SMALLEST, LARGEST = 1e-9, 128.0  # losses that are tried


@dataclass(frozen=True)
class Price:
    """What a question costs, and how wrong each number of its answer is expected to be.

    `half_width` is how far the truth may be from a number, with the probability; `together` the same for all numbers at
    once. They are in `unit`; where `is_exact` says no they are bounds for so many records as were assumed.
    """

    loss: PrivacyLoss
    charge: PrivacyLoss  # of the account: for as many records as change together
    numbers: int
    standard_error: float
    half_width: float
    together: float
    probability: float
    unit: str
    is_exact: bool


@dataclass(frozen=True, eq=False)
class MeasuredQuestion:
    """A question with the noise that it is answered with, at one loss."""

    question: Question
    protection: Protection
    loss: PrivacyLoss
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        tables = self.question.tables
        law = GAUSSIAN if self.loss.privacy_measure is PrivacyMeasure.ZCDP else GEOMETRIC
        share = self.loss.amount / len(tables)
        groups = []
        for table in tables:
            workload = Workload(self.question.domain, (table,))
            if not _can_change(workload, self.protection):
                raise _known(self.question, self.protection)
            groups.append(Group(table.name, Measurement(TableRows(workload), law, self.protection), share))
        object.__setattr__(self, "groups", tuple(groups))

    @cached_property
    def errors(self) -> tuple[NumberErrors, ...]:
        """The law of the error of each table's numbers."""
        return tuple(NumberErrors(group.tables[0], group.rows, group.noises) for group in self.groups)

    def rank_draws(self, place: int) -> tuple[Draws, ...]:
        """The law of the error of T_k/d, in records, at one level."""
        assert self.question.query.level is not None
        size, level = self.groups[0].tables[0].query_count, float(self.question.query.level)
        noise, above = self.groups[0].table_noises[0], size - place - 1
        weighed = [(1 - level, place + 1.0), (level, float(above))]
        kept = [each for each in weighed if each[1]]
        if len(kept) == 2 and kept[0][0] == kept[1][0]:
            kept = [(level, float(size))]
        return ((noise, tuple(weight for weight, _ in kept), tuple(count for _, count in kept)),)

    def price(self, probability: Probability, records: float | None) -> Price:
        """What an answer is expected to be off by; `records` are those that a mean is expected to be of."""
        nominal = asked_for(probability)
        numbers = self.groups[0].tables[0].query_count
        found, exact, unit = self._errors_of(records), True, "records"
        tails = [1 - float(nominal), -math.expm1(math.log(nominal) / max(numbers, 1))]
        if self.question.statistic is StatisticKind.QUANTILE:
            numbers, unit = 1, "records of rank"
            tails = [tails[0]] * 2
            # The variance is linear in the level's place, and so largest at an end.
            found = max((self.rank_draws(0), self.rank_draws(self.groups[0].tables[0].query_count - 1)), key=spread_of)
        elif self.question.statistic is not StatisticKind.COUNT:
            unit = f"units of '{self.question.query.of}'"
            exact = self.question.statistic is StatisticKind.SUM
        half, together = outward(found, tails)
        charge = self.loss.for_records(self.protection.records_together)
        spread = spread_of(found)
        return Price(self.loss, charge, numbers, spread, half, together, float(nominal), unit, exact)

    def _errors_of(self, records: float | None) -> tuple[Draws, ...]:
        if self.question.statistic is not StatisticKind.MEAN:
            return self.errors[0].draws([0])
        if records is None or not records > 0:
            raise InvalidRequest(
                "the accuracy of a mean of an unknown number of records",
                why="it is a sum over a count, and the same noise matters less where there are more",
                instead="state a public number of records to expect in each group: --records N",
            )
        added, counted = (errors.draws([0])[0] for errors in self.errors)
        largest = float(np.abs(self.question.domain.attribute(str(self.question.query.of)).grid_values).max())
        largest *= float(self.groups[0].tables[0].grid)
        return (
            (added[0], (added[1][0] / records,), (1.0,)),
            (counted[0], (counted[1][0] * largest / records,), (1.0,)),
        )


def _can_change(workload: Workload, protection: Protection) -> bool:
    return workload.sensitivity(protection, "l1").power > 0


def _known(question: Question, protection: Protection) -> InvalidQuery:
    public = "the number of records" if not protection.invariants else "what follows from the exact totals"
    instead = f"read it where it is published; ask for the SUM of '{question.query.of}', and divide by it"
    return InvalidQuery(
        f"a question about {public}, which is public",
        why=f"the promise takes it as known ({Neighbors.REPLACE_ONE}): no noise protects it, and none is spent",
        instead=instead if question.statistic is StatisticKind.MEAN else "read it where it is published",
    )


def least_loss(
    priced: Callable[[PrivacyLoss], Price], within: float, privacy_measure: PrivacyMeasure, *, together: bool = False
) -> PrivacyLoss:
    """The least loss, of three digits, at which an answer is off by no more; the half-width falls as the loss grows."""
    if not within > 0 or not math.isfinite(within):
        raise InvalidRequest(
            f"an answer within ±{within}",
            why="noise leaves no number exactly as it was",
            instead="state a positive half-width",
        )

    def meets(amount: Fraction) -> bool:
        found = priced(PrivacyLoss(amount, privacy_measure))
        return (found.together if together else found.half_width) <= within

    low, high = SMALLEST, 1.0
    while not meets(Fraction(high)):
        low, high = high, 2 * high
        if high > LARGEST:
            raise InvalidRequest(
                f"an answer within ±{within:g}",
                why=f"no loss up to {LARGEST:g} is enough",
                instead="ask for less accuracy, or of more records",
            )
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(Fraction(middle)) else (middle, high)
    step = Fraction(10) ** (math.floor(math.log10(high)) - DIGITS + 1)
    amount = -(-Fraction(high) // step) * step
    while not meets(amount):  # the search is in floats, and the answer is not
        amount += step
    return PrivacyLoss(amount, privacy_measure)


def quantile_levels(asked: MeasuredQuestion, counts: Integers, probability: Fraction) -> tuple[int, int, int]:
    """The level that is the quantile by these noisy counts, and the first and the last that it may be."""
    level, below = asked.question.query.level or Fraction(0), np.cumsum(counts).tolist()
    exact = [count - level * below[-1] for count in below]  # T_k/d; in floats 0.1 · 30 is more than 3
    ranks = np.array([float(rank) for rank in exact])
    tail = 1 - float(probability)
    reach = np.array([outward(asked.rank_draws(place), [tail])[0] for place in range(len(counts))])
    found = next((place for place, rank in enumerate(exact) if rank >= 0), len(exact) - 1)
    may_reach = ranks >= -reach
    may_fall_short = np.concatenate([[True], (ranks < reach)[:-1]])
    inside = np.flatnonzero(may_reach & may_fall_short)
    ends = [found, *inside.tolist()]
    return found, min(ends), max(ends)
