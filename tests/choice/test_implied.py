"""What a privacy loss that someone chose says about preferences."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    choose,
    implied_coefficient_ratio,
    implied_cost,
    implied_price,
    implied_weight,
)
from dualmandate.errors import InvalidLoss, InvalidPreferences
from dualmandate.population import PrivacyLoss

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI


def test_the_weight_behind_a_tenth(title_i: TitleI) -> None:
    implied = implied_weight(title_i.laplace(), title_i.welfare(), 0.1)
    assert f"{implied.value:,.2f}" == "16,149.07"
    assert implied.value == pytest.approx(title_i.coefficient / 0.1**3, rel=1e-13)
    assert implied.rationalizes
    assert str(implied) == "relative_privacy_weight = 16,149.07"
    # Whatever weight was stated, the implied one is the same.
    assert implied_weight(title_i.laplace(), title_i.welfare(weight=0.15), 0.1).value == pytest.approx(implied.value)


def test_the_cost_behind_a_tenth(title_i: TitleI) -> None:
    implied = implied_cost(title_i.laplace(), title_i.welfare(), 0.1)
    assert implied.value == pytest.approx(1400 * 16_149.068, rel=1e-7)
    assert implied.unit == "USD per child per epsilon"
    assert implied.rationalizes


def test_the_price_behind_a_tenth(title_i: TitleI) -> None:
    implied = implied_price(title_i.laplace(), title_i.welfare(value=title_i.value(price=0.5)), 0.1)
    assert implied.value == pytest.approx(1 / 16_149.068, rel=1e-7)
    assert implied.factor == pytest.approx(2 / 16_149.068, rel=1e-7)
    assert implied.unit == "USD per USD^2"
    assert implied.rationalizes


@settings(deadline=None, max_examples=30)
@given(epsilon=st.floats(0.05, 20), exponential=st.booleans())
def test_the_inverse_of_the_choice(epsilon: float, exponential: bool, title_i: TitleI) -> None:
    frontier = title_i.geometric()
    welfare = title_i.welfare(ExponentialCost(1400) if exponential else LinearCost(1400))
    weight = implied_weight(frontier, welfare, epsilon)
    assert weight.rationalizes
    group = replace(welfare.groups[0], relative_privacy_weight=weight.value)
    assert choose(frontier, replace(welfare, groups=(group,))).epsilon == pytest.approx(epsilon, rel=1e-9)
    cost = implied_cost(frontier, welfare, epsilon)
    dearer = replace(welfare.groups[0], information_utility=welfare.groups[0].information_utility.scaled(cost.factor))
    assert choose(frontier, replace(welfare, groups=(dearer,))).epsilon == pytest.approx(epsilon, rel=1e-9)
    price = implied_price(frontier, welfare, epsilon)
    cheaper = replace(welfare, table_values=(welfare.table_values[0].at_price(price.value),))
    assert choose(frontier, cheaper).epsilon == pytest.approx(epsilon, rel=1e-9)


def test_a_balance_that_is_no_optimum(title_i: TitleI) -> None:
    # Bounded cost beyond ε = 3: gain equals cost at a trough.
    implied = implied_weight(title_i.laplace(), title_i.welfare(BoundedCost(1400)), 4.0)
    assert not implied.rationalizes
    assert "another loss would be better" in str(implied)


def test_budgets_of_the_2020_census() -> None:
    persons = PrivacyLoss.concentrated(Fraction(542, 339) ** 2)
    units = PrivacyLoss.concentrated(Fraction(3379, 12343) ** 2)
    ratio = implied_coefficient_ratio(persons, units)
    assert f"{float(ratio):,.4f}" == "1,163.3985"
    assert ratio == (persons.amount / units.amount) ** 2


def test_budgets_in_epsilon(power_frontier: type[PowerFrontier]) -> None:
    # Two releases at one cost of ε, errors c/ε²: the ratio gives back the coefficients.
    cost = LinearCost(3.0)
    chosen = [
        choose(power_frontier({"t": c}), SocialWelfare.uniform(1.0, cost, table_values=(TableValue("t", 1.0),))).epsilon
        for c in (40.0, 5.0)
    ]
    losses = [PrivacyLoss(Fraction(epsilon)) for epsilon in chosen]
    assert float(implied_coefficient_ratio(*losses)) == pytest.approx(8, rel=1e-12)


def test_budgets_that_cannot_be_compared() -> None:
    pure, zero = PrivacyLoss.pure(1), PrivacyLoss.concentrated(1)
    for pair in ((pure, zero), (pure, PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 10)))):
        with pytest.raises(InvalidLoss, match="cannot be compared"):
            implied_coefficient_ratio(*pair)


def test_groups_that_differ(title_i: TitleI) -> None:
    groups = (PopulationGroup("a", 1e6, LinearCost(1000), 2.0), PopulationGroup("b", 3e6, LinearCost(2000)))
    welfare = SocialWelfare(groups, (title_i.value(),), protected_unit="child")
    weight = implied_weight(title_i.laplace(), welfare, 1.0)
    # One weight for everybody, on 7e9 USD per epsilon.
    assert weight.value == pytest.approx(4 * 13_000 * 2e7 / 7e9)
    assert math.isnan(weight.factor)
    cost = implied_cost(title_i.laplace(), welfare, 1.0)
    assert cost.factor == pytest.approx(4 * 13_000 * 2e7 / 8e9)
    assert cost.value == pytest.approx(cost.factor * 1750)
    mixed = replace(welfare, groups=(groups[0], PopulationGroup("c", 1e6, BoundedCost(1))))
    with pytest.raises(InvalidPreferences, match="differ in form"):
        implied_cost(title_i.laplace(), mixed, 1.0)


def test_prices_of_some_tables_only(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 1.0, "b": 1.0})
    values = (TableValue("a", 1.0, consequence=2.0, price=0.5), TableValue("b", 3.0))
    welfare = SocialWelfare.uniform(1.0, LinearCost(10.0), table_values=values)
    implied = implied_price(frontier, welfare, 1.0)
    # K = 10 = 2·(2·price + 3).
    assert implied.value == pytest.approx(1.0)
    assert implied.rationalizes
    with pytest.raises(InvalidPreferences, match=r"no price makes epsilon = 0\.1"):
        implied_price(frontier, welfare, 0.1)
    unpriced = replace(welfare, table_values=(TableValue("a", 1.0), TableValue("b", 3.0)))
    with pytest.raises(InvalidPreferences, match="no one price"):
        implied_price(frontier, unpriced, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_losses_that_cannot_be(title_i: TitleI, epsilon: float) -> None:
    for inverse in (implied_weight, implied_cost, implied_price):
        with pytest.raises(InvalidLoss):
            inverse(title_i.laplace(), title_i.welfare(), epsilon)


def test_nothing_against_something(title_i: TitleI) -> None:
    with pytest.raises(InvalidPreferences, match="weighs something"):
        implied_weight(title_i.laplace(), title_i.welfare(LinearCost(0)), 1.0)
