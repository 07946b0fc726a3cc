"""How the choice moves with its inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    Limits,
    LinearCost,
    PopulationGroup,
    PosteriorCost,
    SocialWelfare,
    TableValue,
    choose,
    comparative_statics,
    inputs,
    tornado,
)
from dualmandate.errors import InvalidValue
from dualmandate.frontier.frontier import Frontier

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI


def elasticities(frontier: Frontier, welfare: SocialWelfare, limits: Limits | None = None) -> dict[str, float]:
    return {row.name: row.elasticity for row in comparative_statics(frontier, welfare, limits)}


def tenths(welfare: SocialWelfare, limits: Limits | None = None) -> dict[str, tuple[float, float]]:
    """Every input a tenth either way."""
    return {row.name: (0.9 * row.value, 1.1 * row.value) for row in inputs(welfare, limits)}


def test_the_inputs_of_the_paper(title_i: TitleI) -> None:
    rows = inputs(title_i.welfare(), Limits(largest_epsilon=10))
    assert {row.name: (row.value, row.unit) for row in rows} == {
        "mean_disclosure_cost": (1400, "USD per child per epsilon"),
        "population_size": (46e6, "children"),
        "relative_privacy_weight": (1, ""),
        "consequence": (2e7, "USD^2 per child^2"),
        "price_of_squared_misallocation": (1, "USD per USD^2"),
        "largest_epsilon": (10, "epsilon"),
    }


def test_elasticities_of_the_paper_are_thirds(title_i: TitleI) -> None:
    rows = elasticities(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=10))
    assert rows == pytest.approx(
        {
            "mean_disclosure_cost": -1 / 3,
            "population_size": -1 / 3,
            "relative_privacy_weight": -1 / 3,
            "consequence": 1 / 3,
            "price_of_squared_misallocation": 1 / 3,
            "largest_epsilon": 0,
        },
        abs=1e-10,
    )


def test_exponential_costs_move_less(title_i: TitleI) -> None:
    # ε³·e^ε = 2c/K, so the elasticity is −1/(3 + ε).
    welfare = title_i.welfare(ExponentialCost(1400))
    epsilon = choose(title_i.laplace(), welfare).epsilon
    assert elasticities(title_i.laplace(), welfare)["mean_disclosure_cost"] == pytest.approx(
        -1 / (3 + epsilon), abs=1e-10
    )


def test_by_moving_each_input(title_i: TitleI, power_frontier: type[PowerFrontier]) -> None:
    # A second way: solve again at inputs moved by a hundredth of a percent.
    frontier = power_frontier({"a": 3.0, "b": 5.0, "c": 7.0})
    groups = (PopulationGroup("x", 2.0, PosteriorCost(3.0, 0.1)), PopulationGroup("y", 1.0, ExponentialCost(0.2), 0.5))
    values = (
        TableValue("a", 2.0, consequence=4.0, price=0.5),
        TableValue("b", 0.5),
        TableValue("c", 0.1, measure="absolute"),
    )
    welfare = SocialWelfare(groups, values)
    rows = comparative_statics(frontier, welfare)
    by_name = {row.name: row for row in inputs(welfare)}
    assert {"prior_probability of x", "mean_disclosure_cost of y", "value_of_accuracy of c", "consequence of a"} <= set(
        by_name
    )
    for row in rows:
        up, down = (
            choose(frontier, *by_name[row.name].change(row.value * factor)).epsilon for factor in (1.0001, 0.9999)
        )
        numeric = (math.log(up) - math.log(down)) / (math.log(1.0001) - math.log(0.9999))
        assert row.elasticity == pytest.approx(numeric, abs=1e-6), row.name


@pytest.mark.parametrize(
    ("limits", "moved"),
    [
        (Limits(largest_epsilon=2), "largest_epsilon"),
        (Limits(remaining=2), "remaining"),
    ],
)
def test_at_a_cap_only_the_cap_matters(title_i: TitleI, limits: Limits, moved: str) -> None:
    rows = elasticities(title_i.laplace(), title_i.welfare(), limits)
    assert rows.pop(moved) == pytest.approx(1, abs=1e-10)
    assert rows == pytest.approx(dict.fromkeys(rows, 0.0), abs=1e-10)


def test_at_a_floor_the_floor_matters(title_i: TitleI) -> None:
    name = f"largest_root_mean_squared_error of {title_i.table}"
    rows = elasticities(title_i.laplace(), title_i.welfare(), Limits(floors={title_i.table: 0.2}))
    assert rows[name] == pytest.approx(-1, abs=1e-9)
    in_dollars = elasticities(title_i.laplace(), title_i.welfare(), Limits(consequence_floors={title_i.table: 1000}))
    assert in_dollars[f"largest_root_mean_squared_consequence of {title_i.table}"] == pytest.approx(-1, abs=1e-9)
    assert in_dollars["consequence"] == pytest.approx(0.5, abs=1e-9)


def test_the_tornado_of_the_paper(title_i: TitleI) -> None:
    rows = {row.name: row for row in tornado(title_i.laplace(), title_i.welfare(), ranges=tenths(title_i.welfare()))}
    cost, consequence = rows["mean_disclosure_cost"], rows["consequence"]
    assert (cost.low.value, cost.high.value) == pytest.approx((1260, 1540))
    assert (cost.low.epsilon, cost.high.epsilon) == pytest.approx((2.617992, 2.448602), abs=5e-7)
    assert consequence.high.epsilon == pytest.approx(2.609236, abs=5e-7)
    assert cost.swing == pytest.approx(2.617992 - 2.448602, abs=1e-6)
    assert cost.epsilon == pytest.approx(2.527644, abs=5e-7)


def test_stated_ranges_and_order(title_i: TitleI) -> None:
    ranges = {"consequence": (1.9e7, 2.1e7), "mean_disclosure_cost": (61.0, 1400.0)}
    rows = tornado(title_i.laplace(), title_i.welfare(), ranges=ranges)
    assert [row.name for row in rows] == ["mean_disclosure_cost", "consequence"]  # nothing else moves
    assert rows[0].low.epsilon == pytest.approx(7.183155, abs=5e-7)
    assert [row.swing for row in rows] == sorted((row.swing for row in rows), reverse=True)
    with pytest.raises(InvalidValue, match="'cost', which is not an input"):
        tornado(title_i.laplace(), title_i.welfare(), ranges={"cost": (1, 2)})


def test_an_end_without_a_choice(title_i: TitleI) -> None:
    rows = tornado(
        title_i.laplace(), title_i.welfare(BoundedCost(50_000)), ranges={"mean_disclosure_cost": (20_000, 60_000)}
    )
    assert rows[0].name == "mean_disclosure_cost"
    assert rows[0].low.epsilon is None
    assert "rises without limit" in (rows[0].low.refusal or "")
    assert rows[0].swing == math.inf


def test_limits_that_come_into_conflict(title_i: TitleI) -> None:
    limits = Limits(largest_epsilon=3.3, consequence_floors={title_i.table: 2000})
    ranges = tenths(title_i.welfare(), limits)
    rows = {row.name: row for row in tornado(title_i.laplace(), title_i.welfare(), limits, ranges=ranges)}
    assert rows["largest_epsilon"].low.epsilon is None
    assert "no epsilon satisfies all limits" in (rows["largest_epsilon"].low.refusal or "")


def test_two_prices(power_frontier: type[PowerFrontier]) -> None:
    values = (TableValue("a", 2.0, consequence=4.0, price=0.5), TableValue("b", 2.0, consequence=2.0, price=1.0))
    welfare = SocialWelfare.uniform(1.0, LinearCost(1.0), table_values=values)
    rows = elasticities(power_frontier({"a": 1.0, "b": 3.0}), welfare)
    # Shares of the marginal gain: a quarter and three quarters.
    assert rows["price_of_squared_misallocation 0.5"] == pytest.approx(1 / 12, abs=1e-10)
    assert rows["price_of_squared_misallocation 1"] == pytest.approx(3 / 12, abs=1e-10)
    assert rows["consequence of a"] == pytest.approx(1 / 12, abs=1e-10)


def test_a_frontier_that_follows_preferences(power_frontier: type[PowerFrontier]) -> None:
    # Two tables measured apart share ε where it buys most: the combined loss is (Σ (b·c)^⅓)³/ε² in one table.
    def rebuild(welfare: SocialWelfare) -> PowerFrontier:
        value = welfare.table_values[0].value
        return power_frontier({"t": (value ** (1 / 3) + 2) ** 3 / value})

    welfare = SocialWelfare.uniform(1.0, LinearCost(2.0), table_values=(TableValue("t", 8.0),))
    frontier = rebuild(welfare)
    rows = {row.name: row.elasticity for row in comparative_statics(frontier, welfare, rebuild=rebuild)}
    # ε* = (b^⅓ + 2)·(2/K)^⅓: elasticity in b is b^⅓/(b^⅓ + 2)/3 = 1/6 at b = 8.
    assert rows["value_of_accuracy"] == pytest.approx(1 / 6, abs=1e-10)
    (row,) = tornado(frontier, welfare, ranges={"value_of_accuracy": (7.2, 8.8)}, rebuild=rebuild)
    assert row.high.epsilon == pytest.approx(8.8 ** (1 / 3) + 2, rel=1e-12)


def test_absolute_losses(title_i: TitleI) -> None:
    # ε* = √(b·L/K): every elasticity is a half.
    for price in (2.0, None):
        value = TableValue(
            title_i.table, 8.0, measure="absolute", unit="child", consequence=8.0 / (price or 1.0), price=price
        )
        rows = elasticities(title_i.laplace(), title_i.welfare(value=value))
        assert rows["consequence"] == pytest.approx(0.5, abs=1e-10)
        assert rows.get("price_of_misallocation") == (pytest.approx(0.5, abs=1e-10) if price else None)


def test_nothing_has_no_percentage(title_i: TitleI) -> None:
    group = replace(title_i.welfare().groups[0], name="unweighted", relative_privacy_weight=0.0)
    welfare = replace(title_i.welfare(), groups=(*title_i.welfare().groups, group))
    assert "relative_privacy_weight of unweighted" not in elasticities(title_i.laplace(), welfare)
