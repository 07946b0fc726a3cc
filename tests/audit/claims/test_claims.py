"""Checks of a claim find planted faults: probabilities, last bits, missing cells, exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.audit.claims.attack import ClaimedNoise
from dualmandate.audit.claims.checks import (
    DRAWS,
    LEVEL,
    exact_totals,
    finest_digit,
    last_bits,
    least_loss,
    missing_keys,
    pmf_ratio,
)
from dualmandate.mechanism import GEOMETRIC
from dualmandate.mechanism.technologies import noise_named


def test_the_ratio_of_probabilities() -> None:
    law = GEOMETRIC.at(0.7)
    assert not pmf_ratio(law.log_likelihood, shift=1, epsilon=0.7, reach=50).broken
    assert pmf_ratio(law.log_likelihood, shift=1, epsilon=0.69, reach=50).broken
    assert pmf_ratio(law.log_likelihood, shift=2, epsilon=0.7, reach=50).broken

    def cut(k: int) -> float:
        return law.log_likelihood(k) if abs(k) <= 5 else -math.inf

    found = pmf_ratio(cut, shift=1, epsilon=5.0, reach=10)
    assert found.broken
    assert "cannot produce" in found.words


@pytest.mark.parametrize("scale", [1, 620, 2_000, 1_000_000])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_wide_noise_is_not_accused_of_the_rounding_of_logarithms(law: str, scale: int) -> None:
    """Sums of amounts have noise of thousands of steps; a parameter that is wrong by 1 in 1,000 is still found."""
    parameter = Fraction(scale if law == "laplace" else scale**2)

    def claimed(times: Fraction) -> ClaimedNoise:
        drawn = noise_named(law, parameter)
        return ClaimedNoise("", law, parameter * times, lambda k: drawn.distribution().log_likelihood(float(k)), drawn)

    assert not claimed(Fraction(1)).check().broken
    if law == "laplace" or scale < 5_000:  # a Gaussian's are added up within 20,000 steps alone
        assert claimed(Fraction(1_001, 1_000)).check().broken


def test_a_loss_from_draws_alone() -> None:
    generator = np.random.default_rng(5)
    one, other = generator.laplace(0, 1, 100_000), generator.laplace(1, 1, 100_000)
    for found in (least_loss(one, other), least_loss(other, one), least_loss(-one, -other)):
        assert 0.9 < found <= 1.0  # the mechanism's loss is 1
    assert least_loss(one, other, failure_probability=0.3) < 0.5
    assert least_loss(one[:50_000], one[50_000:]) == 0.0  # nothing to tell apart


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_a_loss_from_draws_is_seldom_above_the_true_one(epsilon: float) -> None:
    above = 0
    for seed in range(60):
        generator, law = np.random.default_rng(seed), GEOMETRIC.at(epsilon)
        one, other = (law.draw(generator, 1000).astype(float) for _ in range(2))
        above += least_loss(one, other + 1, level=0.9) > epsilon
    assert above <= 12  # of 60 at a level of 90 %: 6 expected at most


def test_a_scale_that_depends_on_the_count_is_caught_at_the_level_of_the_audit() -> None:
    """Thresholds chosen at another level than they are judged at catch this in 6 of 20 runs."""
    caught = 0
    for seed in range(20):
        generator = np.random.default_rng(seed)
        one, other = np.rint(generator.laplace(0, 1, DRAWS)), 1 + np.rint(generator.laplace(0, 1.5, DRAWS))
        caught += least_loss(one, other, level=LEVEL) > 1
    assert caught == 20


def test_which_bits_of_a_number_are_used() -> None:
    numbers = np.array([0.0, 3.0, 0.5, 1 / 1024, 1 + 2.0**-52, 1 / 3, 0.1 + 0.2, -1 / 7, np.inf])
    assert last_bits(numbers).tolist() == [False, False, False, False, True, True, True, True, False]
    assert not last_bits(np.array([0.1, -17.35, 1e-9, 12_345_678.91])).any()  # on a decimal grid
    assert last_bits(np.array([1 + 2.0**-49, 1 + 2.0**-50])).tolist() == [False, True]  # 50 bits, and 51
    assert not last_bits(np.array([2**62 + 1, 3])).any()  # whole numbers have no last bits
    assert finest_digit(np.array([0.0, 3.0, 0.5, 0.75, 5 / 1024, 2.0**-60])).tolist() == [0, 0, 1, 2, 10, 60]


def test_floats_give_answers_away() -> None:
    naive = np.random.default_rng(6).laplace(0, 1, 200)
    assert last_bits(naive).any()
    grid = np.rint(naive * 1024) / 1024
    assert not last_bits(np.concatenate([grid, 1 + grid])).any()
    assert finest_digit(grid).max() == finest_digit(1 + grid).max() == 10
    assert finest_digit(grid + 2.0**-12).max() == 12  # another grid tells the answer too


def test_missing_and_exact_numbers() -> None:
    assert missing_keys([["a"]], [["a", "b"]]).broken
    assert missing_keys([["a", "c"]], [["a"]]).broken
    assert not missing_keys([["b", "a"]], [["a", "b"]]).broken
    words = missing_keys([["a"], [1, 2, 9]], [["a", "b"], [1, 2, 3]]).words
    assert words.startswith("4 of 6 declared cells are not published, 1 published ones were not declared")
    total = exact_totals({"total": True}, add_or_remove=True)
    assert total.broken
    assert "blatantly non-private" in total.words
    assert "under bounded (replace-one) neighbors remain protected: what a record says beyond" in total.words
    assert "not protected: that it is there, and whatever 'total' tell" in total.words
    kept = exact_totals({"total": True}, add_or_remove=False)
    assert not kept.broken
    assert "not protected: that it is there" in kept.words
    women = exact_totals({"total": True, "women": False}, add_or_remove=False)
    assert women.broken
    assert "changes 'women'" in women.words
    assert "remain protected" not in exact_totals({"women": False}, add_or_remove=True).words
    assert not exact_totals({}, add_or_remove=True).broken
