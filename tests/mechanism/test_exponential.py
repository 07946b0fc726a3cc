"""Selection by the exponential mechanism: exact probabilities, its loss, and two ways to draw that agree."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism import rate_of, select, simulation_keys
from dualmandate.mechanism.exponential import Selection, _by_floats, _slowly
from dualmandate.mechanism.noise.words import words_of_cell
from dualmandate.population import Neighbors, PrivacyMeasure, Protection

KEY = simulation_keys(3, 0)("selection")
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
SCORES = [7, 3, 9, 9, 0, -4]


def probabilities(scores: list[int], rate: Fraction) -> np.ndarray:
    """By the formula, from the exact law's thresholds."""
    law = Selection(tuple(max(scores) - score for score in scores), rate)
    ends = [lower for lower, _ in law.floors(range(len(scores)), 80)]
    return np.diff(np.array([0, *ends], dtype=object)).astype(np.float64) / 2**80


def test_thresholds_are_those_of_the_formula() -> None:
    rate = Fraction(2, 7)
    weights = np.exp(2 / 7 * np.array(SCORES))
    assert probabilities(SCORES, rate) == pytest.approx(weights / weights.sum(), rel=1e-14)


def test_draws_have_these_probabilities() -> None:
    rate, count = Fraction(1, 4), 20_000
    drawn = np.bincount([select(SCORES, rate=rate, key=KEY, draw=draw) for draw in range(count)], minlength=6)
    expected = count * probabilities(SCORES, rate)
    assert float(np.sum((drawn - expected) ** 2 / expected)) < 25.0  # χ² of 5 degrees: 1 in 7,000


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(40)])
def test_both_ways_to_draw_agree(rate: Fraction) -> None:
    scores = np.arange(400, dtype=np.int64) * 37 % 101
    behind = scores.max() - scores
    for draw in range(300):
        words = words_of_cell(KEY, draw, level=0)
        first = next(words)
        quick = _by_floats(behind, float(rate), first)
        assert quick is None or quick == _slowly(behind, rate, first, words)


def test_what_floats_leave_open_is_decided_all_the_same() -> None:
    """A word at the very threshold between two equal candidates."""
    behind = np.zeros(2, dtype=np.int64)
    assert _by_floats(behind, 1.0, 2**63) is None
    assert _slowly(behind, Fraction(1), 2**63, words_of_cell(KEY, 0, level=0)) == 1
    assert _slowly(behind, Fraction(1), 2**63 - 1, words_of_cell(KEY, 0, level=0)) == 0


@pytest.mark.parametrize("measure", [PrivacyMeasure.PURE_DP, PrivacyMeasure.ZCDP])
@pytest.mark.parametrize("protection", [Protection(), REPLACE_ONE])
@pytest.mark.parametrize("one_way", [True, False])
def test_the_loss_is_kept_by_every_pair_of_neighbors(
    measure: PrivacyMeasure, protection: Protection, one_way: bool
) -> None:
    loss = Fraction(1, 2)
    rate = rate_of(loss, measure, protection, sensitivity=1, one_way=one_way)
    moves = (0, 1) if one_way and protection.neighbors is Neighbors.ADD_OR_REMOVE else (-1, 0, 1)
    worst = 0.0
    before = probabilities([4, 2, 3], rate)
    for move in product(moves, repeat=3):
        after = probabilities([score + step for score, step in zip([4, 2, 3], move, strict=True)], rate)
        for one, other in ((before, after), (after, before)):
            worst = max(worst, _divergence(one, other, measure))
    assert worst <= float(loss)
    assert worst > 0.3 * float(loss)


def _divergence(one: np.ndarray, other: np.ndarray, measure: PrivacyMeasure) -> float:
    if measure is PrivacyMeasure.PURE_DP:
        return float(np.abs(np.log(one / other)).max())
    orders = (1.01, 2.0, 8.0, 64.0)
    return max(math.log(float(np.sum(one**a * other ** (1 - a)))) / (a - 1) / a for a in orders)


def test_one_candidate_is_taken_and_a_far_better_one_too() -> None:
    assert select([5], rate=Fraction(1), key=KEY) == 0
    assert {select([0, 10**6, 0], rate=Fraction(1), key=KEY, draw=draw) for draw in range(50)} == {1}


@pytest.mark.parametrize("scores", [[], [0.5, 1.0], [[1, 2]], [2**62 + 1, 0]])
def test_scores_that_cannot_be_chosen_among_are_refused(scores: list[int]) -> None:
    with pytest.raises(InvalidMechanism):
        select(scores, rate=Fraction(1), key=KEY)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), 0.5])
def test_rates_that_are_not_positive_fractions_are_refused(rate: Fraction) -> None:
    with pytest.raises(InvalidLoss):
        select([1, 2], rate=rate, key=KEY)


def test_a_rate_for_no_loss_is_refused() -> None:
    with pytest.raises(InvalidLoss):
        rate_of(Fraction(0), PrivacyMeasure.PURE_DP, Protection(), sensitivity=1)
