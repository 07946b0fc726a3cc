"""Questions one by one: the exact distribution of short transcripts, what is free, what is refused, what is resumed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dualmandate.errors import BudgetExceeded, InvalidLoss, InvalidMechanism, InvalidRequest, UnsupportedWorkload
from dualmandate.mechanism import (
    InteractiveAnswers,
    InteractiveState,
    InteractiveTerms,
    simulation_keys,
    threshold_for,
)
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler
from dualmandate.population import (
    Attribute,
    Domain,
    Histogram,
    Invariant,
    Neighbors,
    PrivacyMeasure,
    Protection,
)
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Tabulation

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
TWO_RECORDS = Protection(most_records_per_unit=2, identifier="id")
MEASURES = [PrivacyMeasure.PURE_DP, PrivacyMeasure.ZCDP]
KEYS = simulation_keys(9, 0)
SMALL = Domain((Attribute.categories("a", ["x", "y"]), Attribute.categories("b", ["0", "1"])))
QUESTIONS = [
    Tabulation.of("x", where={"a": "x"}),
    Tabulation.of("1", where={"b": "1"}),
    Tabulation.of("y and 0", where={"a": "y", "b": "0"}),
]
PEOPLE = Domain(
    (
        Attribute.ordered_levels("age", [str(year) for year in range(50)]),
        Attribute.categories("sex", ["f", "m"]),
        Attribute.categories("area", [str(place) for place in range(20)]),
    )
)


def small(counts: Sequence[int]) -> Histogram:
    return Histogram(SMALL, np.array(counts).reshape(2, 2))


class Forced(InteractiveAnswers):
    """Answers whose course is prescribed: which tests say "off", and what is then measured."""

    course: Sequence[int | None] = ()
    looked: list[tuple[int, int | None, int]]  # the number that a test compares, what was measured, and the exact one

    def _draw(self, noise: LaplaceSampler | GaussianSampler, name: str) -> int:
        number = self.state.tests
        measured = self.course[number]
        if name.startswith("threshold"):
            return -self.terms.threshold
        exact = int(self.exact(number))
        if name.startswith("test"):
            off = abs(exact - round(self.estimate(QUESTIONS[number])))
            self.looked.append((off, measured, exact))
            return -off - 1 if measured is None else -off
        assert measured is not None
        return measured - exact

    def exact(self, number: int) -> int:
        table = QUESTIONS[number].table(SMALL)
        counts = np.asarray(self.counts.project(SMALL.names).counts)
        for axis, factor in enumerate(table.factors):
            counts = factor.apply(counts, axis)
        return int(counts.sum())


def likelihood(counts: Sequence[int], terms: InteractiveTerms, course: Sequence[int | None]) -> tuple[float, float]:
    """P(course) from below and from above, what lies between being the tails of the threshold's noise; in ε."""
    fixed = InteractiveState(InteractiveAnswers.open(small([1, 1, 1, 1]), terms, KEYS).state.terms, 8.0)
    served = Forced.resume(small(counts), terms, KEYS, fixed)
    assert isinstance(served, Forced)
    served.course, served.looked = course, []
    for question in QUESTIONS:
        served.answer(question)
    tests, answers = float(terms.test_noise.scale), terms.answer_noise
    assert isinstance(answers, LaplaceSampler)
    scale = float(terms.threshold_noise.scale)
    far = 50 * math.ceil(scale)
    drawn = np.arange(-far, far + 1)
    chance = pmf(drawn, scale)
    for off, measured, exact in served.looked:
        above = at_least(terms.threshold + drawn - off, tests)
        chance = chance * (
            1 - above if measured is None else above * pmf(np.array(measured - exact), float(answers.scale))
        )
    sure = float(chance.sum())
    return sure, sure + 2 * float(at_least(np.array(far + 1), scale))


def pmf(value: Integers, scale: float) -> Floats:
    decay = math.exp(-1 / scale)
    return np.asarray((1 - decay) / (1 + decay) * decay ** np.abs(value))


def at_least(value: Integers, scale: float) -> Floats:
    decay = math.exp(-1 / scale)
    return np.asarray(
        np.where(value > 0, decay ** np.abs(value), (1 + decay) - decay ** (1 + np.abs(value))) / (1 + decay)
    )


@pytest.mark.parametrize("protection", [Protection(), REPLACE_ONE, TWO_RECORDS])
@pytest.mark.parametrize("updates", [1, 2])
def test_no_transcript_tells_neighbors_apart_by_more_than_its_loss(protection: Protection, updates: int) -> None:
    """Every course of three questions, with what may be measured; noise enumerated, its tails bounded exactly."""
    terms = InteractiveTerms(Fraction(2), updates, 2, protection=protection)
    allowed = float(terms.for_tests + terms.for_answers)
    before = (3, 1, 0, 4)
    widest = 0.0
    for course in product([None, 0, 4], repeat=3):
        if sum(each is not None for each in course) > updates or course.count(None) < 3 - updates:
            continue
        if sum(each is not None for each in course[:2]) == updates:
            continue  # the third question would be refused
        low, high = likelihood(before, terms, course)
        for after in neighbors(before, protection):
            other_low, other_high = likelihood(after, terms, course)
            widest = max(widest, math.log(high / other_low), math.log(other_high / low))
    assert widest <= allowed + 1e-9
    assert widest > 0.3 * allowed  # Half of a test's loss is for answers that move the other way.


def neighbors(counts: tuple[int, ...], protection: Protection) -> list[tuple[int, ...]]:
    found = []
    for cell in range(4):
        for records in range(1, protection.most_records_per_unit + 1):
            if protection.neighbors is Neighbors.ADD_OR_REMOVE:
                found += [moved(counts, {cell: records}), moved(counts, {cell: -records})]
            else:
                found += [moved(counts, {cell: -1, other: 1}) for other in range(4) if other != cell]
    return [each for each in found if min(each) >= 0]


def moved(counts: tuple[int, ...], by: dict[int, int]) -> tuple[int, ...]:
    return tuple(count + by.get(cell, 0) for cell, count in enumerate(counts))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("protection", [Protection(), REPLACE_ONE, TWO_RECORDS])
@pytest.mark.parametrize("updates", [1, 7])
def test_the_parts_add_up_to_what_was_agreed(measure: PrivacyMeasure, protection: Protection, updates: int) -> None:
    terms = InteractiveTerms(Fraction(3, 7), updates, 5, measure, protection)
    moves, runs, off = protection.most_records_per_unit, terms.runs, updates // terms.runs
    assert terms.for_total + terms.for_tests + terms.for_answers == terms.loss
    # Back from the noise that is used, by the formulas of the sources.
    epsilon = moves / terms.threshold_noise.scale + off * 2 * moves / terms.test_noise.scale
    if measure is PrivacyMeasure.PURE_DP:
        assert isinstance(terms.answer_noise, LaplaceSampler)
        assert epsilon == terms.for_tests
        assert updates * moves / terms.answer_noise.scale == terms.for_answers
    else:
        assert isinstance(terms.answer_noise, GaussianSampler)
        assert terms.for_tests * (1 - Fraction(1, 10**12)) < runs * epsilon**2 / 2 <= terms.for_tests
        assert updates * moves**2 / (2 * terms.answer_noise.variance) == terms.for_answers


def people(records: int) -> Histogram:
    generator = np.random.default_rng(1)
    return Histogram(PEOPLE, generator.multinomial(records, generator.dirichlet(np.full(2000, 0.2))).reshape(50, 2, 20))


def questions(count: int) -> list[Tabulation]:
    generator = np.random.default_rng(2)
    found = []
    for number in range(count):
        first, last = sorted(generator.integers(0, 50, 2))
        areas = [str(each) for each in sorted(generator.choice(20, 6, replace=False))]
        ages = [str(each) for each in range(first, last + 1)]
        found.append(Tabulation.of(f"question {number}", where={"age": ages, "area": areas}))
    return found


def truth(histogram: Histogram, question: Tabulation) -> int:
    counts = histogram.counts
    for axis, factor in enumerate(question.table(PEOPLE).factors):
        counts = factor.apply(counts, axis)
    return int(counts.sum())


@pytest.mark.parametrize("measure", MEASURES)
def test_answers_are_within_what_they_say_and_learn_as_they_go(measure: PrivacyMeasure) -> None:
    histogram, asked = people(15_000), questions(60)
    loss = Fraction(2) if measure is PrivacyMeasure.PURE_DP else Fraction(1, 8)
    terms = threshold_for(InteractiveTerms(loss, 20, 1, measure), len(asked))
    served = InteractiveAnswers.open(histogram, terms, KEYS, probability=0.8)
    held, spent = 0, [served.spent]
    for question in asked:
        found = served.answer(question)
        held += abs(found.value - truth(histogram, question)) <= found.half_width
        spent.append(served.spent)
    assert held >= 0.75 * len(asked)
    assert 0 < len(served.state.measured) < 20
    assert spent == sorted(spent)
    assert spent[0] == terms.for_total
    assert spent[-1] < terms.loss
    unlearned = InteractiveAnswers.open(histogram, terms, KEYS)
    before = [unlearned.estimate(question) - truth(histogram, question) for question in asked]
    after = [served.estimate(question) - truth(histogram, question) for question in asked]
    assert np.square(after).mean() < 0.5 * np.square(before).mean()


def test_the_same_question_again_is_free_however_it_is_put() -> None:
    served = InteractiveAnswers.open(small([900, 0, 0, 0]), InteractiveTerms(Fraction(9), 1, 20), KEYS)
    first = served.answer(QUESTIONS[0])
    assert first.measured
    assert served.updates_left == 0
    state = served.state
    assert served.answer(Tabulation.of("the same", where={"b": ["1", "0"], "a": ["x"]})) == first
    assert served.state == state
    assert served.spent == served.terms.loss
    with pytest.raises(BudgetExceeded):
        served.answer(QUESTIONS[1])
    assert served.state == state
    assert served.estimate(QUESTIONS[0]) == pytest.approx(first.value, rel=0.01)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_saved_state_goes_on_as_if_it_had_not_stopped(measure: PrivacyMeasure) -> None:
    histogram, asked = people(50_000), questions(12)
    terms = InteractiveTerms(Fraction(4), 9, 400, measure)
    through = InteractiveAnswers.open(histogram, terms, KEYS)
    expected = [through.answer(question) for question in asked]
    stopped = InteractiveAnswers.open(histogram, terms, KEYS)
    found = [stopped.answer(question) for question in asked[:5]]
    state = InteractiveState.from_json(stopped.state.to_json())
    assert state == stopped.state
    assert any(answer.measured for answer in found)
    resumed = InteractiveAnswers.resume(histogram, terms, KEYS, state)
    assert [*found, *(resumed.answer(question) for question in asked[5:])] == expected
    assert resumed.state == through.state


def test_no_noise_is_met_twice_by_different_questions() -> None:
    """Not even where an older state is taken up again: names of draws hold what they are used for."""
    names: list[str] = []

    def keys(name: str) -> object:
        names.append(name)
        return KEYS(name)

    histogram, asked = people(50_000), questions(2)
    served = InteractiveAnswers.open(histogram, InteractiveTerms(Fraction(4), 9, 10**9), keys)  # type: ignore[arg-type]
    older = served.state
    served.answer(asked[0])
    served.state = older
    served.answer(asked[1])
    tests = [name for name in names if name.startswith("test 0 ")]
    assert len(set(tests)) == 2


def test_a_state_under_other_terms_or_of_another_kind_is_refused() -> None:
    histogram, terms = small([3, 1, 0, 4]), InteractiveTerms(Fraction(1), 2, 5)
    state = InteractiveAnswers.open(histogram, terms, KEYS).state
    for other in (replace(terms, updates=3), replace(terms, loss=Fraction(2)), replace(terms, protection=REPLACE_ONE)):
        with pytest.raises(InvalidRequest):
            InteractiveAnswers.resume(histogram, other, KEYS, state)
    for text in ("", "[]", state.to_json().replace("interactive/1", "interactive/9"), '{"schema": "interactive/1"}'):
        with pytest.raises(InvalidRequest):
            InteractiveState.from_json(text)


def test_empty_data_are_answered() -> None:
    served = InteractiveAnswers.open(small([0, 0, 0, 0]), InteractiveTerms(Fraction(1), 2, 60), KEYS)
    found = served.answer(QUESTIONS[0])
    assert abs(found.value) <= found.half_width


def test_what_cannot_be_served_is_refused() -> None:
    with pytest.raises(InvalidLoss):
        InteractiveTerms(Fraction(0), 1, 1)
    with pytest.raises(InvalidLoss):
        InteractiveTerms(0.5, 1, 1)  # type: ignore[arg-type]
    for updates, threshold in ((0, 5), (3, 0), (True, 5)):
        with pytest.raises(InvalidMechanism):
            InteractiveTerms(Fraction(1), updates, threshold)
    exact = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("total"),))
    with pytest.raises(InvalidMechanism):
        InteractiveTerms(Fraction(1), 1, 1, protection=exact)
    served = InteractiveAnswers.open(small([3, 1, 0, 4]), InteractiveTerms(Fraction(1), 2, 60), KEYS)
    weighed = Tabulation.of("weighed", weights={"a": {"x": "1", "y": "-1"}})
    for question in (weighed, Tabulation.of("two numbers", ("a",))):
        with pytest.raises(UnsupportedWorkload):
            served.answer(question)
    assert served.state.tests == 0


def test_nothing_confidential_is_printed() -> None:
    served = InteractiveAnswers.open(small([31_415, 1, 0, 4]), InteractiveTerms(Fraction(1), 2, 60), KEYS)
    assert "31415" not in repr(served)
