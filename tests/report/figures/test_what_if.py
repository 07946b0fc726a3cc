"""The grid behind the sliders, where every cell is the choice under its weights, and the tornado of inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dualmandate.choice import BoundedCost, Choice, TornadoRow, choose, inputs
from dualmandate.choice import tornado as tornado_rows
from dualmandate.choice.statics import TornadoEnd
from dualmandate.errors import Refusal
from dualmandate.report.figures import WhatIf, tornado, what_if, what_if_choices
from dualmandate.report.theme import LIGHT


@pytest.fixture(scope="module")
def grid(title_i: Any) -> WhatIf:
    return what_if_choices(title_i.frontier, title_i.welfare, title_i.limits)


@pytest.mark.parametrize(("privacy", "accuracy"), [(20, 20), (0, 0), (40, 40), (0, 40), (40, 0), (31, 12), (7, 33)])
def test_a_cell_is_the_choice_under_its_weights(title_i: Any, grid: WhatIf, privacy: int, accuracy: int) -> None:
    weight, price = grid.multiples[privacy], grid.multiples[accuracy]
    (group,), (value,) = title_i.welfare.groups, title_i.welfare.table_values
    changed = replace(
        title_i.welfare,
        groups=(replace(group, relative_privacy_weight=weight),),
        table_values=(value.at_price(price),),
    )
    direct, cell = choose(title_i.frontier, changed, title_i.limits), grid.at(privacy, accuracy)
    assert isinstance(cell, Choice)
    assert cell.epsilon == pytest.approx(direct.epsilon, rel=1e-12)
    assert cell.epsilon == pytest.approx(2.5276435 * (price / weight) ** (1 / 3), rel=1e-6)
    assert grid.cost(privacy, accuracy) == pytest.approx(-direct.welfare, rel=1e-12)


def test_the_sliders_run_over_four_decades_around_what_was_stated(grid: WhatIf) -> None:
    assert (len(grid.multiples), len(grid.choices)) == (41, 81)
    assert (grid.multiples[0], grid.multiples[20], grid.multiples[40]) == pytest.approx((0.01, 1.0, 100.0))


def test_a_cell_without_an_optimum_holds_the_refusal(title_i: Any) -> None:
    (group,) = title_i.welfare.groups
    bounded = replace(title_i.welfare, groups=(replace(group, information_utility=BoundedCost(1400.0)),))
    grid = what_if_choices(title_i.frontier, bounded)
    assert isinstance(grid.at(20, 20), Refusal)
    assert grid.cost(20, 20) is None
    assert isinstance(grid.at(40, 0), Choice)
    twin = what_if(title_i.frontier, title_i.welfare, title_i.choice, grid=grid).table
    assert "no choice" in str(twin.rows[40]["bound_by"])


def test_the_picture_holds_a_place_for_every_choice_and_a_circle_to_move(
    title_i: Any, grid: WhatIf, units: Any
) -> None:
    twin = what_if(title_i.frontier, title_i.welfare, title_i.choice, grid=grid).table
    marks = {
        mark.get("name"): mark["data"]["values"]
        for mark in units(what_if(title_i.frontier, title_i.welfare, title_i.choice, grid=grid))
    }
    assert [row["loss"] for row in marks["places"]] == [row["loss"] for row in twin.rows]
    assert marks["here"][0]["loss"] == pytest.approx(title_i.choice.epsilon)
    assert marks["here"][0]["error"] == pytest.approx(0.559499, abs=1e-6)


def test_a_choice_that_errs_beyond_measure_stays_in_the_picture(title_i: Any, grid: WhatIf, units: Any) -> None:
    """Where one table has just been made fit for use, the others may get next to nothing of the loss."""
    first, *others = grid.choices
    assert isinstance(first, Choice)
    far = replace(grid, choices=(replace(first, root_mean_squared_error=1e9), *others))
    picture = what_if(title_i.frontier, title_i.welfare, title_i.choice, grid=far)
    (places,) = [mark for mark in units(picture) if mark.get("name") == "places"]
    low, high = places["encoding"]["y"]["scale"]["domain"]
    assert all(low <= row["error"] <= high for row in places["data"]["values"])
    assert picture.table.rows[0]["error"] == 1e9


def test_ten_percent_of_cost_moves_the_choice_as_the_reference_says(title_i: Any, units: Any) -> None:
    tenths = {row.name: (0.9 * row.value, 1.1 * row.value) for row in inputs(title_i.welfare, title_i.limits)}
    rows = tornado_rows(title_i.frontier, title_i.welfare, title_i.limits, ranges=tenths)
    twin = {str(row["input"]): row for row in tornado(rows, title_i.choice).table.rows}
    cost = twin["mean disclosure cost"]
    assert cost["low_loss"] == pytest.approx(2.617992, abs=1e-6)
    assert cost["high_loss"] == pytest.approx(2.448602, abs=1e-6)
    assert twin["consequence"]["high_loss"] == pytest.approx(2.609236, abs=1e-6)
    marks = units(tornado(rows, title_i.choice))
    high = next(mark for mark in marks if mark["mark"].get("color") == LIGHT.preference)["data"]["values"]
    assert {bar["input"]: bar["to"] for bar in high} == {name: row["high_loss"] for name, row in twin.items()}


def test_an_end_without_a_choice_is_named_in_the_table(title_i: Any) -> None:
    rows = (
        TornadoRow(
            "prior", 0.01, "", 2.5, TornadoEnd(0.009, 2.6), TornadoEnd(0.011, None, "welfare rises without limit")
        ),
        TornadoRow("largest_epsilon", 10.0, "epsilon", 2.5, TornadoEnd(9.0, 2.5), TornadoEnd(11.0, 2.5)),
    )
    twin = tornado(rows, title_i.choice).table
    assert twin.rows[0]["high_loss"] is None
    assert twin.rows[0]["note"] == "welfare rises without limit"
    assert "–" in twin.written()[0]
    tornado(rows, title_i.choice).specification()
