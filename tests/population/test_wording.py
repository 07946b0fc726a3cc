from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.population import PrivacyLoss
from dualmandate.population.wording import money, number, percent, plain_number, plain_unit, stated_loss


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"), (0.5594987, "0.559"), (2.5276, "2.53"), (64.4, "64.4"), (3220.0, "3,220"), (-4069.5, "−4,070"),
        (6.2e-5, "6.20 × 10⁻⁵"), (2e16, "2.00 × 10¹⁶"), (float("inf"), "∞"), (float("-inf"), "−∞"),
        (999.6, "1,000"), (9.996, "10.0"),
    ],
)  # fmt: skip
def test_numbers_keep_three_digits_and_separate_thousands(value: float, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.71, "$0.71"), (2502.15, "$2,502"), (8.139012e10, "$81.4 billion"), (-2.441704e11, "−$244 billion"),
        (1.9e6, "$1.90 million"), (1.5e12, "$1.50 trillion"), (999_999.9, "$1.00 million"), (0.003, "$0.00300"),
        (float("inf"), "$∞"),
    ],
)  # fmt: skip
def test_dollars_are_told_in_millions_and_billions(value: float, words: str) -> None:
    assert money(value) == words


def test_percentages_stated_numbers_and_units() -> None:
    assert percent(2 / 3) == "66.7 %"
    assert plain_number(41_400_000.0) == "41,400,000"
    assert plain_number(1400 * 1.1) == "1,540"
    assert plain_unit("USD^2 per child^2") == "USD² per child²"
    assert plain_unit("") == "pure number"


@given(st.floats(1e-6, 1e6))
def test_a_chosen_loss_is_never_printed_larger_than_it_is(amount: float) -> None:
    loss = PrivacyLoss.chosen(amount)
    printed = Fraction(stated_loss(loss).removeprefix("ε = ").replace(",", ""))
    assert printed == loss.amount
    assert printed <= Fraction(amount)
