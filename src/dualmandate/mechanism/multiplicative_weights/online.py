"""Questions one by one, in any order and number: private multiplicative weights online.

A distribution stands in for the data. Each question is answered from it, unless a noisy test says that it is off by
more than a threshold: then the answer is measured, and the distribution learns from it. Only what is measured is paid
for by the piece; questions that the distribution answers well cost nothing more, however many. Source: [HR10]; the
test, with one draw of the threshold for all answers of a run [LSL17].

A test compares |exact − ⌊fitted⌉| + ν ≥ threshold + τ in whole numbers, with exact discrete Laplace noise. With up to k
answers "off" a run, one unit moving a query by at most Δ, τ of scale Δ/ε₁ and ν of scale 2kΔ/ε₂ lose ε₁ + ε₂. In ε
one run serves all updates (k = c); in ρ each update ends a run (k = 1), whose ε is worth ρ = ε²/2 [BS16]. What is
measured loses its share in c equal parts, by discrete Laplace noise in ε and discrete Gaussian noise in ρ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from dualmandate.errors import (
    BudgetExceeded,
    InvalidLoss,
    InvalidMechanism,
    InvalidRequest,
    TooLarge,
    UnsupportedWorkload,
)
from dualmandate.mechanism.data_dependent import Keys
from dualmandate.mechanism.exponential import root_below
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.multiplicative_weights.fit import AskedTable, FittedDistribution, NoisyReading
from dualmandate.mechanism.multiplicative_weights.selected import MOST_RECORDS, noise_variance, tail
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler
from dualmandate.population import Domain, Neighbors, PrivacyMeasure, Protection
from dualmandate.population.records import Counts
from dualmandate.workload import Row, Table, Tabulation, Total

TOTAL_SHARE = Fraction(1, 20)  # of the loss, for the number of records where it is a secret
TEST_SHARE = Fraction(1, 2)  # of the rest; what is left measures
ROUNDING = 0.5  # of what the distribution says, before a test
STEPS = 100  # of the fit after each update
STATE_VERSION = 1

CountingQuery = tuple[tuple[str, tuple[int, ...]], ...]
"""Records with a level among some on each of some attributes: the canonical form of a question."""


@dataclass(frozen=True)
class InteractiveTerms:
    """What is settled before the first question: the loss of all answers together, and when a measurement is due."""

    loss: Fraction
    updates: int  # measurements, at most
    threshold: int  # records that an answer may be off before it is measured, noise aside
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
    protection: Protection = EVERY_PERSON

    def __post_init__(self) -> None:
        if not (isinstance(self.loss, Fraction | int) and not isinstance(self.loss, bool) and self.loss > 0):
            raise InvalidLoss(
                f"answers to questions for a loss of {self.loss!s:.40}",
                why="the loss of all of them together is exact and positive",
                instead="state a positive Fraction",
            )
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in (self.updates, self.threshold)):
            raise InvalidMechanism(
                f"answers with {self.updates} updates at a threshold of {self.threshold} records",
                why="without updates nothing is learned from the data, and tests compare whole numbers",
                instead="state whole numbers of at least 1; threshold_for(…) gives a threshold for some questions",
            )
        if self.protection.invariants:
            raise InvalidMechanism(
                "answers to questions beside exact totals",
                why="a distribution that is fitted to noisy answers does not keep them",
                instead="leave exact totals out, or publish tables that keep them",
            )

    @property
    def for_total(self) -> Fraction:
        """Of the loss, for the number of records; nothing where every neighbor has as many."""
        secret = self.protection.neighbors is Neighbors.ADD_OR_REMOVE
        return Fraction(self.loss) * TOTAL_SHARE if secret else Fraction(0)

    @property
    def for_tests(self) -> Fraction:
        return (self.loss - self.for_total) * TEST_SHARE

    @property
    def for_answers(self) -> Fraction:
        return self.loss - self.for_total - self.for_tests

    @property
    def runs(self) -> int:
        """How often the threshold is drawn, at most."""
        return 1 if self.privacy_measure is PrivacyMeasure.PURE_DP else self.updates

    @property
    def run_epsilons(self) -> tuple[Fraction, Fraction]:
        """What a run of tests loses by its threshold, and by the answers "off" that it may give: ε₁ and ε₂."""
        each = self.for_tests / self.runs
        epsilon = each if self.privacy_measure is PrivacyMeasure.PURE_DP else root_below(2 * each)
        ratio = max(1, round((2 * self.updates / self.runs) ** (2 / 3)))  # the least variance of ν − τ [LSL17]
        return epsilon / (1 + ratio), epsilon * ratio / (1 + ratio)

    @property
    def threshold_noise(self) -> LaplaceSampler:
        return LaplaceSampler(self.protection.most_records_per_unit / self.run_epsilons[0])

    @property
    def test_noise(self) -> LaplaceSampler:
        off = self.updates // self.runs
        return LaplaceSampler(2 * off * self.protection.most_records_per_unit / self.run_epsilons[1])

    @property
    def answer_noise(self) -> LaplaceSampler | GaussianSampler:
        return self._noise(self.for_answers / self.updates)

    @property
    def total_noise(self) -> LaplaceSampler | GaussianSampler:
        return self._noise(self.for_total)

    def half_width(self, probability: float, *, measured: bool) -> float:
        """What an answer is off by at most: an answer of whichever kind misses with no more than what is left of 1."""
        miss = (1 - probability) / 4  # two tails each of two kinds
        if measured:
            return tail(self.answer_noise, miss)
        return self.threshold + tail(self.threshold_noise, miss) + tail(self.test_noise, miss) + ROUNDING

    def written(self) -> dict[str, Any]:
        """For a state: what another state must not be resumed under."""
        return {
            "loss": str(Fraction(self.loss)),
            "privacy_measure": self.privacy_measure.value,
            "updates": self.updates,
            "threshold": self.threshold,
            "neighbors": self.protection.neighbors.value,
            "most_records_per_unit": self.protection.most_records_per_unit,
        }

    def _noise(self, loss: Fraction) -> LaplaceSampler | GaussianSampler:
        moves = Fraction(self.protection.most_records_per_unit)
        if self.privacy_measure is PrivacyMeasure.PURE_DP:
            return LaplaceSampler(moves / loss)
        return GaussianSampler(moves**2 / (2 * loss))


def threshold_for(terms: InteractiveTerms, questions: int, probability: float = 0.9) -> InteractiveTerms:
    """The same terms, with the least threshold at which noise alone asks for no update in so many questions."""
    miss = (1 - probability) / 2
    beyond = tail(terms.test_noise, miss / questions) + tail(terms.threshold_noise, miss) + 1
    return replace(terms, threshold=int(beyond))


@dataclass(frozen=True)
class InteractiveAnswer:
    """What was answered: about how many records, within how many, and whether it was measured for this question."""

    value: float
    half_width: float  # for the probability of `InteractiveAnswers`, each answer by itself
    measured: bool


@dataclass(frozen=True)
class InteractiveState:
    """Everything that was answered; as public as the answers are. With the terms, the data and the keys it goes on."""

    terms: str  # as JSON
    total: float
    tests: int = 0
    answered: tuple[tuple[CountingQuery, InteractiveAnswer], ...] = ()

    @property
    def measured(self) -> tuple[tuple[CountingQuery, InteractiveAnswer], ...]:
        return tuple(each for each in self.answered if each[1].measured)

    def to_json(self) -> str:
        rows = [
            {
                "query": [[name, list(levels)] for name, levels in query],
                "value": a.value,
                "half_width": a.half_width,
                "measured": a.measured,
            }
            for query, a in self.answered
        ]
        document = {"schema": f"interactive/{STATE_VERSION}", "terms": json.loads(self.terms), "total": self.total}
        return json.dumps(document | {"tests": self.tests, "answered": rows}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> InteractiveState:
        try:
            document = json.loads(text)
            if document["schema"] != f"interactive/{STATE_VERSION}":
                raise ValueError
            answered = tuple(
                (
                    tuple((str(name), tuple(map(int, levels))) for name, levels in row["query"]),
                    InteractiveAnswer(float(row["value"]), float(row["half_width"]), bool(row["measured"])),
                )
                for row in document["answered"]
            )
            return cls(_sorted(document["terms"]), float(document["total"]), int(document["tests"]), answered)
        except (KeyError, TypeError, ValueError):
            raise InvalidRequest(
                "a state of answers that cannot be read",
                why=f"it is not what version {STATE_VERSION} writes",
                instead="give the text that to_json() gave, unchanged",
            ) from None


@dataclass(repr=False)
class InteractiveAnswers:
    """Answers to counting questions for one loss that is settled before the first.

    Whoever serves it reserves `terms.loss` first, and keeps `state` durably before an answer leaves: an older state
    that is taken up again with other questions would spend the same loss twice. The same question again is answered
    from the state, free. A question is a tabulation (or a table) of one number, of records by the levels they have.
    """

    counts: Counts
    terms: InteractiveTerms
    keys: Keys
    state: InteractiveState
    fitted: FittedDistribution
    probability: float = 0.9

    @classmethod
    def open(
        cls, counts: Counts, terms: InteractiveTerms, keys: Keys, *, probability: float = 0.9
    ) -> InteractiveAnswers:
        """Before the first question; counts all records, with noise where their number is a secret."""
        total = counts.total
        if terms.for_total:
            total += int(terms.total_noise.draw(keys("total"), range(1))[0])
        state = InteractiveState(_sorted(terms.written()), float(min(max(0, total), MOST_RECORDS)))
        return cls(counts, terms, keys, state, FittedDistribution(counts.domain, state.total), probability)

    @classmethod
    def resume(
        cls, counts: Counts, terms: InteractiveTerms, keys: Keys, state: InteractiveState, *, probability: float = 0.9
    ) -> InteractiveAnswers:
        """Where a state stopped. The distribution is fitted anew from what was measured."""
        if state.terms != _sorted(terms.written()):
            raise InvalidRequest(
                "a state of answers that was kept under other terms",
                why="its loss, updates, threshold or neighbors are not those that were given",
                instead="resume it under the terms that it was opened with",
            )
        found = cls(counts, terms, keys, state, FittedDistribution(counts.domain, state.total), probability)
        for query, answer in state.measured:
            found._learn(asked_of(counts.domain, query), answer.value)
        return found

    @property
    def updates_left(self) -> int:
        return self.terms.updates - len(self.state.measured)

    @property
    def spent(self) -> Fraction:
        """What the answers so far have lost at most; a run of tests counts whole from its first question on."""
        made, terms = len(self.state.measured), self.terms
        begun = 0 if not self.state.tests else min(terms.runs, made + (not self._ended_a_run))
        return terms.for_total + terms.for_tests * begun / terms.runs + terms.for_answers * made / terms.updates

    def estimate(self, query: Tabulation | Table) -> float:
        """What the distribution says, untested: free, and nothing is said of how far off it is."""
        return self._fitted(asked_of(self.counts.domain, canonical(self.counts.domain, query)))

    def answer(self, query: Tabulation | Table) -> InteractiveAnswer:
        """The number of records a question asks about, within `half_width` with the stated probability."""
        asked_for = canonical(self.counts.domain, query)
        known = dict(self.state.answered).get(asked_for)
        if known is not None:
            return known
        asked = asked_of(self.counts.domain, asked_for)
        self._refuse_unless_possible(asked)
        names = self.counts.domain.names
        exact = int(asked.workload.answers(self.counts.project(names[axis] for axis in asked.axes).counts)[0])
        fitted, number = self._fitted(asked), self.state.tests
        # Its own words for each question: an older state that is resumed must never meet the same noise.
        place = f"{number} {sha256(json.dumps([asked_for, round(fitted)]).encode()).hexdigest()}"
        run = len(self.state.measured) if self.terms.runs > 1 else 0
        barrier = self.terms.threshold + self._draw(self.terms.threshold_noise, f"threshold {run}")
        if abs(exact - round(fitted)) + self._draw(self.terms.test_noise, f"test {place}") >= barrier:
            value = float(exact + self._draw(self.terms.answer_noise, f"answer {place}"))
            self._learn(asked, value)
            found = InteractiveAnswer(value, self.terms.half_width(self.probability, measured=True), True)
        else:
            found = InteractiveAnswer(fitted, self.terms.half_width(self.probability, measured=False), False)
        answered = (*self.state.answered, (asked_for, found))
        self.state = replace(self.state, tests=number + 1, answered=answered)
        return found

    def _draw(self, noise: LaplaceSampler | GaussianSampler, name: str) -> int:
        return int(noise.draw(self.keys(name), range(1))[0])

    def _fitted(self, asked: AskedTable) -> float:
        return float(self.fitted.answers(asked)[0])

    def _learn(self, asked: AskedTable, value: float) -> None:
        values = np.array([int(value)], dtype=np.int64)
        self.fitted.read(NoisyReading(asked, values, noise_variance(self.terms.answer_noise)))
        self.fitted.replay(STEPS)

    @property
    def _ended_a_run(self) -> bool:
        """Whether the last question ended a run of tests, and no other has begun."""
        return self.terms.runs > 1 and bool(self.state.answered) and self.state.answered[-1][1].measured

    def _refuse_unless_possible(self, asked: AskedTable) -> None:
        if self.updates_left <= 0:
            raise BudgetExceeded(
                f"another question after {self.terms.updates} updates",
                why="each update was paid for by its part of the loss, and none is left: a further test could not be",
                instead="read estimate(query), which is free and untested, or agree on another loss",
            )
        if not self.fitted.has_room(asked.axes):
            raise TooLarge(
                "a question about attributes that cannot be joined with those of the answers so far",
                why="the distribution would be fitted over too many cells at once",
                instead="ask about fewer attributes at once, or read estimate(query)",
            )


def canonical(domain: Domain, query: Tabulation | Table) -> CountingQuery:
    """The one form of all ways to ask for the same number."""
    table = query.table(domain) if isinstance(query, Tabulation) else query
    if table.query_count != 1 or table.weight != 1:
        raise UnsupportedWorkload(
            f"the table '{table.name}' of {table.query_count:,} numbers, each counted {table.weight} times",
            why="a question asks for one number of records",
            instead="ask for one number at a time, and weigh answers afterwards",
        )
    asked: dict[str, tuple[int, ...]] = {}
    for name, size, factor in zip(domain.names, domain.shape, table.factors, strict=True):
        counted = np.asarray(factor.apply_transpose(np.ones(1, dtype=np.int64), 0))
        if not np.all((counted == 0) | (counted == 1)):
            raise UnsupportedWorkload(
                f"a question that weighs levels of '{name}'",
                why="the test is set for questions that one record moves by one",
                instead="count records by their levels, and add the answers up with their weights",
            )
        if np.count_nonzero(counted) < size:
            asked[name] = tuple(int(level) for level in np.flatnonzero(counted))
    return tuple(asked.items())


def asked_of(domain: Domain, query: CountingQuery) -> AskedTable:
    """The query as the fit applies it."""
    levels: Mapping[str, tuple[int, ...]] = dict(query)
    factors = []
    for name, size in zip(domain.names, domain.shape, strict=True):
        counted = np.zeros(size, dtype=np.int64)
        counted[list(levels.get(name, ()))] = 1
        factors.append(Row(counted) if name in levels else Total(size))
    return AskedTable.of(domain, Table("question", tuple(factors)))


def _sorted(terms: Mapping[str, Any]) -> str:
    return json.dumps(terms, sort_keys=True)
