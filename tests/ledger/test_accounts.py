"""Accounts: one currency, exact sums, and the caps inside the cap."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.errors import InvalidAccount, InvalidLoss
from dualmandate.ledger import Account, AccountLimit, Earmark, Scope, UnitBound
from dualmandate.ledger.composition import cost, exact_amount, read_account
from dualmandate.population import PrivacyLoss

EPSILON, RHO = PrivacyLoss.pure, PrivacyLoss.concentrated


def test_a_pure_epsilon_costs_half_its_square_in_rho() -> None:
    account = Account("people", "person", RHO(10))
    assert cost(EPSILON("1/3"), "person", account) == Fraction(1, 18)
    assert cost(RHO("2.5562"), "person", account) == Fraction(12781, 5000)
    assert cost(EPSILON("1/3"), "person", Account("people", "person", EPSILON(10))) == Fraction(1, 3)


@pytest.mark.parametrize("loss", [RHO(1), PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 10**6))])
def test_an_account_in_epsilon_refuses_gaussian_and_approximate_losses(loss: PrivacyLoss) -> None:
    with pytest.raises(InvalidAccount, match="which counts in epsilon"):
        cost(loss, "person", Account("people", "person", EPSILON(10)))


def test_units_are_converted_by_the_declared_bound() -> None:
    bounds = (UnitBound("person", 6),)
    pure = Account("homes", "household", EPSILON(10), unit_bounds=bounds)
    concentrated = Account("homes", "household", RHO(10), unit_bounds=bounds)
    assert cost(EPSILON("1/3"), "person", pure) == 2
    assert cost(RHO("1/9"), "person", concentrated) == 4
    # A household of six loses 6ε, and so ρ = (6ε)²/2.
    assert cost(EPSILON("1/3"), "person", concentrated) == Fraction(2)
    with pytest.raises(InvalidAccount, match="protects one establishment"):
        cost(EPSILON("1/3"), "establishment", pure)


def test_what_is_recorded_is_read_back() -> None:
    account = Account(
        "people",
        "person",
        RHO("22/7"),
        limits=(AccountLimit(Scope.USER, Fraction(1, 3)), AccountLimit(Scope.GROUP, Fraction(1, 7), "labs")),
        earmarks=(Earmark("2030", Fraction(1)),),
        unit_bounds=(UnitBound("job", 4),),
        approver_differs=True,
    )
    assert read_account("people", account.cap.amount, account.document()) == account


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "without a usable name"),
        ({"name": " people"}, "without a usable name"),
        ({"name": "two\nlines"}, "without a usable name"),
        ({"unit": "x" * 201}, "without a usable name"),
        ({"cap": PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 10))}, "a cap of"),
        ({"limits": (AccountLimit(Scope.USER, Fraction(1)), AccountLimit(Scope.USER, Fraction(2)))}, "one limit"),
        ({"earmarks": (Earmark("a", Fraction(6)), Earmark("b", Fraction(6)))}, "earmarks of 12"),
        ({"unit_bounds": (UnitBound("person", 2),)}, "one unit"),
    ],
)
def test_accounts_that_cannot_be_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidAccount, match=words):
        Account(**{"name": "people", "unit": "person", "cap": EPSILON(10), **change})


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_bounds_are_whole_numbers(most: Any) -> None:
    with pytest.raises(InvalidAccount, match="in at most"):
        UnitBound("person", most)


def test_a_limit_has_a_known_scope() -> None:
    with pytest.raises(InvalidAccount, match="a limit for 'planet'"):
        AccountLimit("planet", Fraction(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", [0, -1, float("nan"), float("inf"), "x", None, Fraction(1, 2**256), 2**256])
def test_amounts_are_positive_and_writable(amount: Any) -> None:
    with pytest.raises(InvalidLoss, match="cannot be kept"):
        exact_amount(amount)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**9), st.integers(1, 9))
def test_conversion_of_units_and_currency_commute(epsilon: Fraction, most: int) -> None:
    account = Account("homes", "household", RHO(10), unit_bounds=(UnitBound("person", most),))
    assert cost(EPSILON(epsilon), "person", account) == (most * epsilon) ** 2 / 2
