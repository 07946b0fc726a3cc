"""One way to print a number, an amount as stated, money, a share and a loss."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.population import PrivacyLoss
from dualmandate.population.wording import (
    counted,
    exact,
    money,
    number,
    percent,
    quantity,
    stated_loss,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"), (0.5594987, "0.5595"), (2.5276, "2.528"), (64.4, "64.4"), (3220.0, "3,220"), (-4069.5, "−4,070"),
        (6.2e-5, "6.2 × 10⁻⁵"), (-2e16, "−2 × 10¹⁶"), (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "not a number"),
        (999.96, "1,000"), (9.99996, "10"), (12_345_678.9, "12,345,679"), (9.99999e-5, "0.0001"),
    ],
)  # fmt: skip
def test_numbers_keep_four_digits_and_separate_thousands(value: float, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "USD 0"), (0.91, "USD 0.91"), (0.00012, "USD 0.00012"), (7.0, "USD 7"), (99.999, "USD 100"),
        (2502.15, "USD 2,502"), (999_999, "USD 999,999"), (999_999.9999, "USD 1 million"), (3.2e6, "USD 3.2 million"),
        (999_999_999.0, "USD 1 billion"), (-6.44e10, "−USD 64.4 billion"), (8.139012e10, "USD 81.39 billion"),
        (2.3e12, "USD 2.3 trillion"), (2.19e15, "USD 2,190 trillion"), (1e19, "USD 1 × 10¹⁹"), (math.inf, "USD ∞"),
    ],
)  # fmt: skip
def test_money_is_told_in_millions_and_billions(value: float, words: str) -> None:
    assert money(value, "USD") == words
    assert money(value, "CHF") == words.replace("USD", "CHF")
    assert money(value, "USD", short=True) == words.replace("USD ", "$")
    assert money(value, "JPY", short=True) == words.replace("USD ", "¥")
    assert money(value, "CHF", short=True) == words.replace("USD", "CHF")


@given(st.floats(1e-3, 1e14), st.integers(3, 9))
def test_what_is_printed_is_the_number_to_its_digits(value: float, digits: int) -> None:
    assert float(number(value, digits).replace(",", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))
    assert number(-value, digits) == f"−{number(value, digits)}"


def test_percentages_stated_numbers_and_units() -> None:
    assert percent(2 / 3) == "66.7 %"
    assert [percent(share) for share in (0, 0.0005, 1, 1.5)] == ["0 %", "0.05 %", "100 %", "150 %"]
    assert [percent(share) for share in (0.9994, 0.9999, 1 - 1e-6)] == ["99.9 %", "99.99 %", "99.9999 %"]
    assert percent(0.97321, 4) == "97.32 %"
    assert exact(41_400_000.0) == "41,400,000"
    assert exact(1400 * 1.1) == "1,540"
    assert (exact(-3.1623), exact(1e12), exact(0)) == ("−3.1623", "1,000,000,000,000", "0")
    assert (quantity(0.5594987, "child"), quantity(5.536e6, "USD")) == ("0.5595 children", "USD 5.536 million")
    assert (quantity(1, "child"), quantity(1.00001, "person"), quantity(-1, "child")) == (
        "1 child",
        "1 person",
        "−1 children",
    )
    assert (counted(1, "child"), counted(46e6, "child")) == ("1 child", "46,000,000 children")


@given(st.floats(1e-6, 1e6))
def test_a_chosen_loss_is_never_printed_larger_than_it_is(amount: float) -> None:
    loss = PrivacyLoss.chosen(amount)
    printed = Fraction(stated_loss(loss).removeprefix("ε = ").replace(",", ""))
    assert printed == loss.amount
    assert printed <= Fraction(amount)
