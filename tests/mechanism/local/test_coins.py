"""Coins that people flip: exact probabilities, exact picks, odds that never exceed the loss that was chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.errors import InvalidLoss
from dualmandate.mechanism.local.coins import (
    LEAST_EPSILON,
    WordSource,
    device_words,
    flipped,
    loss_of,
    odds_within,
    picked,
    simulated_words,
    told,
)


def scripted(*numbers: int) -> WordSource:
    """Words that were written beforehand."""
    left: Iterator[int] = iter(numbers)
    return lambda count: np.array([next(left) for _ in range(count)], dtype=np.uint64)


def test_a_coin_compares_all_digits_of_its_probability() -> None:
    third = Fraction(1, 3)  # its digits are 0101…, so that ties go on for ever
    digits = 2**64 // 3
    assert flipped(third, 2, scripted(digits - 1, digits + 1)).tolist() == [True, False]
    assert flipped(third, 2, scripted(digits, digits, digits - 1, digits + 1)).tolist() == [True, False]
    half = Fraction(1, 2)
    assert flipped(half, 3, scripted(2**63 - 1, 2**63, 2**63 + 1, 0)).tolist() == [True, False, False]
    assert flipped(Fraction(0), 2, scripted()).tolist() == [False, False]
    assert flipped(Fraction(1), 2, scripted()).tolist() == [True, True]


def test_a_pick_draws_words_again_that_would_favor_small_numbers() -> None:
    last = 2**64 // 3 * 3
    assert picked(3, 2, scripted(4, last, 5)).tolist() == [1, 2]
    assert picked(4, 2, scripted(2**64 - 1, 7)).tolist() == [3, 3]
    assert picked(1, 2, scripted(5, 2**64 - 1)).tolist() == [0, 0]


def test_coins_fall_as_often_as_they_should() -> None:
    words, size = simulated_words(np.random.default_rng(1)), 40_000
    ones = told(
        np.arange(size).reshape(2, -1) % 2 == 0, if_one=Fraction(3, 4), if_zero=Fraction(1, 10), words=words
    ).reshape(-1)
    assert abs(ones[::2].mean() - 0.75) < 5 * math.sqrt(0.1875 / size * 2)
    assert abs(ones[1::2].mean() - 0.1) < 5 * math.sqrt(0.09 / size * 2)
    assert np.abs(np.bincount(picked(7, size, words)) - size / 7).max() < 5 * math.sqrt(size / 7)
    assert len(set(device_words(64).tolist())) == 64


@given(epsilon=st.fractions(LEAST_EPSILON, 10))
def test_odds_never_exceed_the_loss_and_hardly_fall_short(epsilon: Fraction) -> None:
    odds = odds_within(epsilon)
    assert odds > 1
    assert loss_of(odds).amount <= loss_of(odds + Fraction(1, 2**32)).amount
    assert math.log(odds) <= float(epsilon) * (1 + 1e-15)
    assert float(odds) == pytest.approx(math.exp(epsilon), rel=1e-9)


def test_losses_are_rounded_up() -> None:
    assert loss_of(Fraction(2)).exact() == str(Fraction("0.693148"))  # ln 2 = 0.69314718…
    for epsilon in (0, -1, Fraction(1, 2**21), 65, "much", float("nan")):
        with pytest.raises(InvalidLoss, match="epsilon of"):
            odds_within(epsilon)
