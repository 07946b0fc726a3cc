from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.population.rational import Written, rational, written, written_probability


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(7), Fraction(7)),
        (1e-7, Fraction(1, 10**7)),
        ("0.138", Fraction(138, 1000)),
        (" 2.5e-3 ", Fraction(1, 400)),
        ("-7/3", Fraction(-7, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (12, Fraction(12)),
    ],
)
def test_numbers_mean_what_is_written(number: Written, exact: Fraction) -> None:
    found = rational(number)
    assert found == exact
    assert isinstance(found.numerator, int)
    assert not isinstance(found.numerator, np.integer)


@pytest.mark.parametrize(
    "number",
    [
        float("nan"),
        float("inf"),
        Decimal("nan"),
        Decimal("1e5000"),
        "nan",
        "1e99999",
        "1/0",
        "a",
        "",
        "1_000",
        True,
        "१",
    ],
)
def test_what_is_no_finite_number_is_refused(number: Written) -> None:
    with pytest.raises(ValueError, match="not a"):
        rational(number)


@given(st.fractions(max_denominator=10**9))
def test_written_numbers_are_read_back(number: Fraction) -> None:
    assert rational(written(number)) == number


def test_decimals_are_written_where_they_end() -> None:
    assert written(Fraction(1, 8)) == "0.125"
    assert written(Fraction(-5, 2)) == "-2.5"
    assert written(Fraction(-1, 3)) == "-1/3"
    assert written(Fraction(12)) == "12"
    assert written(Fraction(1, 2**60)) == f"1/{2**60}"


def test_a_probability_is_what_was_written_strictly_between_0_and_1() -> None:
    assert written_probability(0.95) == Fraction(19, 20)
    assert written_probability("1e-10") == Fraction(1, 10**10)
    assert [written_probability(number) for number in (0, 1, -0.1, 1.5, float("nan"), "half")] == [None] * 6
