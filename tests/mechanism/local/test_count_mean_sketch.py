"""Words hashed and flipped: the estimate by hand, its law over hash functions and coins, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.local import CountMeanSketch, simulated_words
from dualmandate.population.arrays import Integers

PEOPLE = {"a": 500, "b": 300, "c": 200, "d": 0}


def others(word: str) -> Integers:
    return np.array([number for other, number in PEOPLE.items() if other != word])


def test_no_report_tells_two_words_apart_by_more_than_the_loss() -> None:
    survey = CountMeanSketch(2, 1, 4)
    truth, largest = survey.odds / (1 + survey.odds), Fraction(1)
    for report in product((False, True), repeat=4):
        chances = [
            math.prod(
                (truth if bit == (place == own) else 1 - truth for place, bit in enumerate(report)), start=Fraction(1)
            )
            for own in range(4)
        ]
        largest = max(largest, max(chances) / min(chances))
    assert largest == survey.odds**2
    assert survey.loss.amount <= 2


def test_the_published_estimate() -> None:
    """[App17] keeps k·(c/2·ṽ + ½) of each report, bits ±1 and c = (e^{ε/2} + 1)/(e^{ε/2} − 1), row by function."""
    survey, words = CountMeanSketch(3, 8, 16), simulated_words(np.random.default_rng(1))
    used, bits = survey.reports(["a", "b", "a", "c"] * 25, words)
    c = (math.exp(1.5) + 1) / math.expm1(1.5)
    matrix = np.zeros((8, 16))
    for function, row in zip(used, bits, strict=True):
        matrix[function] += 8 * (c / 2 * np.where(row, 1, -1) + 0.5)
    for word in ("a", "b", "z"):
        picked = matrix[np.arange(8), survey.places(word)].sum() / 8
        published = 16 / 15 * (picked - 100 / 16)
        assert survey.count(survey.sketch(used, bits), word) == pytest.approx(published, rel=1e-7)


def test_estimates_are_unbiased_with_the_stated_variance() -> None:
    """Over the hash functions as well as over the coins: another family each time."""
    generator, found = np.random.default_rng(2), []
    for family in range(3_000):
        survey = CountMeanSketch(2, 8, 16, str(family))
        sketch = survey.simulated(PEOPLE, generator=generator)
        found.append([survey.count(sketch, word) for word in PEOPLE])
    variances = np.array([survey.variance(number, others(word)) for word, number in PEOPLE.items()])
    assert np.all(np.abs(np.mean(found, axis=0) - list(PEOPLE.values())) < 5 * np.sqrt(variances / 3_000))
    assert np.var(found, axis=0) == pytest.approx(variances, rel=0.13)


def test_clients_have_the_simulated_law() -> None:
    survey, words = CountMeanSketch(4, 4, 8), simulated_words(np.random.default_rng(3))
    told = [word for word, number in PEOPLE.items() for _ in range(number)]
    by_client: list[float] = []
    drawn: list[float] = []
    for _ in range(150):
        sketch = survey.sketch(*survey.reports(told, words))
        assert sketch.people.sum() == 1_000
        by_client.append(survey.count(sketch, "a"))
        drawn.append(survey.count(survey.simulated(PEOPLE, generator=np.random.default_rng(len(drawn))), "a"))
    spread = math.hypot(np.std(by_client), np.std(drawn)) / math.sqrt(150)
    assert abs(np.mean(by_client) - np.mean(drawn)) < 5 * spread
    assert np.std(by_client) == pytest.approx(np.std(drawn), rel=0.3)


def test_parts_add_up_and_intervals_hold() -> None:
    generator, held = np.random.default_rng(4), []
    for family in range(400):
        survey = CountMeanSketch(1, 64, 64, str(family))
        half = survey.simulated({word: number // 2 for word, number in PEOPLE.items()}, generator=generator)
        low, high = survey.interval(half + half, "b")
        assert 0 <= low <= high <= 1_000
        low, high = survey.interval(survey.simulated(PEOPLE, generator=generator), "b")
        held.append(low <= 300 <= high)
    assert np.mean(held) > 0.93
    silent = CountMeanSketch(Fraction(1, 10**4), 64, 64)
    assert silent.interval(silent.simulated(PEOPLE, generator=generator), "b") == (0.0, 1000.0)


def test_what_is_refused() -> None:
    for functions, width in ((0, 8), (4, 1), (2**20, 2**20)):
        with pytest.raises(InvalidMechanism, match="a sketch of"):
            CountMeanSketch(1, functions, width)
    for epsilon in (0, float("inf")):
        with pytest.raises(InvalidLoss):
            CountMeanSketch(epsilon, 4, 8)
