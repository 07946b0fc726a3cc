from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.errors import InvalidLoss
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.loss import epsilon_at

amounts = st.floats(1e-9, 1e9)


def test_exact_amounts() -> None:
    assert PrivacyLoss.pure("0.1").amount == Fraction(1, 10)
    assert PrivacyLoss.pure(0.1).amount == Fraction(1, 10)
    assert PrivacyLoss(0.1).amount == Fraction(1, 10)  # type: ignore[arg-type]
    assert PrivacyLoss(2).amount == 2  # type: ignore[arg-type]
    assert PrivacyLoss.pure(Fraction(6319, 2500)).exact() == "6319/2500"
    assert float(PrivacyLoss.concentrated("1/4")) == 0.25
    assert PrivacyLoss(Fraction(1), "rho").privacy_measure is PrivacyMeasure.ZCDP  # type: ignore[arg-type]


def test_groups_of_records() -> None:
    assert PrivacyLoss.pure(2).for_records(3).amount == 6
    assert PrivacyLoss.concentrated(2).for_records(3).amount == 18
    assert PrivacyLoss.pure(2).in_rho() == PrivacyLoss.concentrated(2)
    assert PrivacyLoss.concentrated(2).in_rho().amount == 2


def test_the_chosen_loss_of_the_paper() -> None:
    assert PrivacyLoss.chosen(2.527644).exact() == "6319/2500"


@given(amounts)
def test_a_chosen_loss_is_rounded_down_by_less_than_a_part_in_ten_thousand(amount: float) -> None:
    chosen = PrivacyLoss.chosen(amount).amount
    assert chosen <= Fraction(amount)
    assert chosen >= Fraction(amount) * Fraction(9999, 10_000)
    digits = str(chosen.numerator * 10**20 // chosen.denominator).rstrip("0")
    assert len(digits) <= 5


@given(amounts)
def test_a_reported_loss_is_rounded_up(amount: float) -> None:
    reported = PrivacyLoss.reported(amount, "1e-10")
    assert Fraction(amount) <= reported.amount <= Fraction(amount) * Fraction(100_001, 100_000)
    assert reported.failure_probability == Fraction(1, 10**10)
    assert Fraction(str(PrivacyLoss(Fraction(amount))).removeprefix("epsilon = ")) >= Fraction(amount)


def test_losses_in_words_are_never_too_small() -> None:
    assert str(PrivacyLoss.pure("1.00000001")) == "epsilon = 1.00001"
    assert str(PrivacyLoss.pure("2.5276")) == "epsilon = 2.5276"
    assert str(PrivacyLoss.pure(10)) == "epsilon = 10"
    assert str(PrivacyLoss.concentrated("1/3")) == "rho = 0.333334"
    assert str(PrivacyLoss.reported(1.5, "1e-10")) == "epsilon = 1.5, δ = 1e-10"


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyLoss.pure(0),
        lambda: PrivacyLoss.pure(-1),
        lambda: PrivacyLoss.pure("nan"),
        lambda: PrivacyLoss.pure(float("inf")),
        lambda: PrivacyLoss.pure("1/0"),
        lambda: PrivacyLoss.chosen(0.0),
        lambda: PrivacyLoss.chosen(math.nan),
        lambda: PrivacyLoss.chosen(math.inf),
        lambda: PrivacyLoss.reported(math.inf),
        lambda: PrivacyLoss(Fraction(1), PrivacyMeasure.ZCDP, Fraction(1, 10)),
        lambda: PrivacyLoss(Fraction(1), failure_probability=Fraction(1)),
        lambda: PrivacyLoss(Fraction(1), failure_probability=Fraction(-1)),
        lambda: PrivacyLoss.pure(1).for_records(0),
        lambda: PrivacyLoss.reported(1.0, "1e-6").for_records(2),
        lambda: PrivacyLoss.reported(1.0, "1e-6").in_rho(),
        lambda: epsilon_at(0.0, 1e-6),
        lambda: epsilon_at(math.inf, 1e-6),
        lambda: epsilon_at(1.0, 0.0),
        lambda: epsilon_at(1.0, 1.0),
    ],
)
def test_what_is_no_loss_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidLoss):
        make()


def test_the_census_of_2020_in_epsilon() -> None:
    """ρ = (542/339)² = 2.5562 for persons at δ = 1e-10 was published as ε = 17.14."""
    assert epsilon_at((542 / 339) ** 2, 1e-10) == pytest.approx(17.14, abs=0.005)


@given(rho=st.floats(1e-6, 1e4), failure=st.floats(1e-15, 0.5))
def test_the_epsilon_of_a_concentrated_loss(rho: float, failure: float) -> None:
    found = epsilon_at(rho, failure)
    # Bun and Steinke's simpler conversion is never better, and a million other orders are no better either.
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / failure)) + 1e-9
    assert epsilon_at(2 * rho, failure) >= found
    assert epsilon_at(rho, failure / 2) >= found
    for order in (1.01, 1.5, 2.0, 5.0, 20.0, 1000.0):
        log_order = math.log1p(-1 / order) * (order - 1) - math.log(order)
        other = order * rho + (math.log(1 / failure) + log_order) / (order - 1)
        assert found <= max(other, 0.0) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1e-300, 1e30, 5e-324, 1e300])
def test_extreme_concentrated_losses_stay_finite(rho: float) -> None:
    assert math.isfinite(epsilon_at(rho, 1e-10))
