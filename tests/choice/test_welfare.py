"""Welfare: dollars on both sides, groups that differ, tables that differ, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    Group,
    LinearCost,
    PosteriorCost,
    RootMeanSquaredLoss,
    SocialWelfare,
    TableValue,
    groups_by_share,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences
from dualmandate.population import Currency

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI


def test_a_hand_sized_case(power_frontier: type[PowerFrontier]) -> None:
    # Two tables at ε = 2: errors 8/4 = 2 and 4/4 = 1; 3 people pay 5·2 each, 1 pays (e² − 1) at weight 2.
    frontier = power_frontier({"a": 8.0, "b": 4.0})
    groups = (Group("x", 3, LinearCost(5)), Group("y", 1, ExponentialCost(1), 2.0))
    welfare = SocialWelfare(groups, (TableValue("a", 10.0), TableValue("b", 7.0)))
    assert welfare.population_size == 4
    assert welfare.privacy_cost(2.0) == pytest.approx(30 + 2 * (math.e**2 - 1))
    assert welfare.marginal_privacy_cost(2.0) == pytest.approx(15 + 2 * math.e**2)
    assert welfare.mean_disclosure_cost(2.0) == pytest.approx((15 + math.e**2) / 4)
    assert welfare.table_data_losses(frontier, 2.0) == pytest.approx({"a": 20.0, "b": 7.0})
    assert welfare.data_loss(frontier, 2.0) == pytest.approx(27)
    assert welfare.marginal_data_loss(frontier, 2.0) == pytest.approx(-27)  # −2·loss/ε
    assert welfare.value_of_accuracy(frontier, 2.0) == pytest.approx(27 / 3)
    assert welfare.willingness_to_accept(frontier, 2.0) == pytest.approx((15 + 2 * math.e**2) / 9)
    assert welfare.at(frontier, 2.0) == pytest.approx(-30 - 2 * (math.e**2 - 1) - 27)


def test_the_paper_has_one_value_of_accuracy(title_i: TitleI) -> None:
    welfare = title_i.welfare(weight=0.15)
    for loss in (0.1, 2.5, 30.0):
        assert welfare.value_of_accuracy(title_i.laplace(), loss) == pytest.approx(2e7, rel=1e-14)
        assert welfare.willingness_to_accept(title_i.laplace(), loss) == pytest.approx(0.15 * 3220, rel=1e-14)


@settings(deadline=None, max_examples=40)
@given(loss=st.floats(0.01, 40), weight=st.floats(0, 10), value=st.floats(0.1, 1e6))
def test_slopes_are_derivatives(loss: float, weight: float, value: float, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 8.0, "b": 4.0, "c": 2.0})
    groups = (
        Group("w", 3, LinearCost(5), weight),
        Group("x", 1, BoundedCost(9), weight),
        Group("y", 2, PosteriorCost(9, 0.1)),
    )
    values = (TableValue("a", value), TableValue("b", value, measure="absolute", grid=3.0))
    welfare = SocialWelfare(groups, values, other_losses=(RootMeanSquaredLoss("c", 2.0, 1.0),))
    step = 1e-5 * loss
    numeric = (welfare.at(frontier, loss + step) - welfare.at(frontier, loss - step)) / (2 * step)
    scale = welfare.marginal_privacy_cost(loss) - welfare.marginal_data_loss(frontier, loss)
    assert welfare.slope(frontier, loss) == pytest.approx(numeric, abs=1e-6 * scale)
    logarithm = welfare.log_marginal_privacy_cost(loss)
    assert logarithm == pytest.approx(math.log(welfare.marginal_privacy_cost(loss)), rel=1e-12, abs=1e-12)


def test_costs_beyond_floats(title_i: TitleI) -> None:
    welfare = title_i.welfare(ExponentialCost(1400))
    assert welfare.privacy_cost(1e3) == math.inf
    assert welfare.at(title_i.laplace(), 1e3) == -math.inf
    assert welfare.log_marginal_privacy_cost(1e3) == pytest.approx(1000 + math.log(6.44e10))
    unweighted = title_i.welfare(ExponentialCost(1400), weight=0.0)
    assert unweighted.privacy_cost(1e3) == unweighted.most_privacy_cost == 0
    assert unweighted.log_marginal_privacy_cost(1.0) == -math.inf


def test_sums_on_a_grid(power_frontier: type[PowerFrontier]) -> None:
    # Answers in steps of 1,000 USD: an error of one step is 1,000 USD.
    frontier = power_frontier({"payroll": 2.0})
    value = TableValue("payroll", 1e-6, unit="USD", grid=1000.0)
    assert value.value_per_step == pytest.approx(1.0)
    welfare = SocialWelfare.uniform(1, LinearCost(1), table_values=(value,))
    assert welfare.data_loss(frontier, 1.0) == pytest.approx(2.0)
    absolute = TableValue("payroll", 0.5, measure="absolute", unit="USD", grid=1000.0)
    assert absolute.value_per_step == 500
    assert replace(welfare, table_values=(absolute,)).data_loss(frontier, 1.0) == pytest.approx(500)


def test_consequences_and_prices() -> None:
    value = TableValue("t", 1e7, consequence=2e7, price=0.5)
    assert value.at_price(2.0).value == 4e7
    assert value.scaled(3.0) == TableValue("t", 3e7, consequence=6e7, price=0.5)
    assert value.squared_consequence(0.25) == 5e6
    assert TableValue("t", 3.0, measure="absolute", consequence=3.0).squared_consequence(4.0) == 36
    assert TableValue("t", 1.0).squared_consequence(1.0) is None
    with pytest.raises(InvalidPreferences, match="not a consequence"):
        TableValue("t", 1.0).at_price(2.0)


def test_what_is_left_when_tables_are_exact() -> None:
    welfare = SocialWelfare(
        (Group("g", 2, BoundedCost(10), 0.5), Group("h", 4, PosteriorCost(10, 0.2))),
        (TableValue("a", 3.0, existing_squared_error=2.0),),
        other_losses=(RootMeanSquaredLoss("b", 5.0, 9.0),),
    )
    assert welfare.least_data_loss == 6 + 15
    assert welfare.most_privacy_cost == pytest.approx(10 + 32)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_numbers_that_cannot_be(bad: float) -> None:
    makers: list[Callable[[], object]] = [
        lambda: TableValue("t", bad),
        lambda: TableValue("t", 1.0, consequence=bad),
        lambda: TableValue("t", 1.0, price=bad),
        lambda: TableValue("t", 1.0, existing_squared_error=bad),
    ]
    for make in makers:
        with pytest.raises(InvalidPreferences, match="value"):
            make()
    with pytest.raises(InvalidPreferences, match="grid"):
        TableValue("t", 1.0, grid=bad)
    with pytest.raises(InvalidPreferences, match="members"):
        Group("g", bad, LinearCost(1))
    with pytest.raises(InvalidPreferences, match="relative_privacy_weight"):
        Group("g", 1, LinearCost(1), bad)
    with pytest.raises(InvalidPreferences, match="typical errors"):
        RootMeanSquaredLoss("t", bad)


def test_existing_absolute_errors_are_refused() -> None:
    with pytest.raises(InvalidPreferences, match="absolute"):
        TableValue("t", 1.0, measure="absolute", existing_squared_error=1.0)


def test_what_is_stated_twice_or_not_at_all() -> None:
    group, table = Group("g", 1, LinearCost(1)), TableValue("t", 1.0)
    with pytest.raises(InvalidPreferences, match="group 'g' is stated twice"):
        SocialWelfare((group, group), (table,))
    with pytest.raises(InvalidPreferences, match="table 't' is stated twice"):
        SocialWelfare((group,), (table, table))
    for groups, tables in (((), (table,)), ((group,), ())):
        with pytest.raises(InvalidPreferences, match="missing"):
            SocialWelfare(groups, tables)


def test_shares_add_up() -> None:
    costs = {"a": (0.3, LinearCost(1), 1.0), "b": (0.7, LinearCost(2), 0.5)}
    assert [group.size for group in groups_by_share(1000, costs)] == pytest.approx([300, 700])
    with pytest.raises(InvalidPreferences, match=r"add up to 0\.9"):
        groups_by_share(1000, {"a": (0.3, LinearCost(1), 1.0), "b": (0.6, LinearCost(2), 1.0)})


def test_one_currency() -> None:
    groups = (Group("a", 1, LinearCost(1)), Group("b", 1, LinearCost(1, Currency.RHO)))
    with pytest.raises(IncompatibleUnits, match="some in rho"):
        SocialWelfare(groups, (TableValue("t", 1.0),))
