"""Figure 1: the curves touch at the choice, cross at a limit, and the twin is what is drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dualmandate.choice import Limits, choose
from dualmandate.report.figures import tangency, tangency_twin
from dualmandate.report.figures.theme import LIGHT
from dualmandate.report.figures.twin import amount


def named(marks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(mark for mark in marks if mark.get("name") == name)


def lines(marks: list[dict[str, Any]], color: str) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = next(
        mark["data"]["values"] for mark in marks if mark["mark"]["type"] == "line" and mark["mark"]["color"] == color
    )
    return rows


def test_the_open_circle_stands_at_the_optimum_of_the_paper(title_i: Any, units: Any) -> None:
    marks = units(tangency(title_i.frontier, title_i.welfare, title_i.choice))
    circle = named(marks, "optimum")
    assert circle["mark"]["fill"] == LIGHT.paper
    assert not circle["mark"]["filled"]
    (point,) = circle["data"]["values"]
    assert point["loss"] == pytest.approx(2.5276435)
    assert point["frontier"] == pytest.approx(-4069.506, rel=1e-6)


def test_the_indifference_curve_touches_the_frontier_from_above(title_i: Any) -> None:
    twin = tangency_twin(title_i.frontier, title_i.welfare, title_i.choice)
    for row in twin.rows:
        gap = amount(row, "indifference") - amount(row, "frontier")
        assert gap == pytest.approx(0, abs=1e-6) if row["marked"] else gap > 0
    assert sum(bool(row["marked"]) for row in twin.rows) == 1


def test_the_slope_of_the_tangent_is_the_marginal_rate_of_transformation(title_i: Any) -> None:
    rows = tangency_twin(title_i.frontier, title_i.welfare, title_i.choice).rows
    for left, right in pairwise(rows):
        rise = amount(right, "tangent") - amount(left, "tangent")
        assert rise / (amount(right, "loss") - amount(left, "loss")) == pytest.approx(3220, rel=1e-6)


def test_the_twin_is_what_is_drawn(title_i: Any, units: Any) -> None:
    twin = tangency_twin(title_i.frontier, title_i.welfare, title_i.choice)
    marks = units(tangency(title_i.frontier, title_i.welfare, title_i.choice))
    for key, color in (("frontier", LIGHT.production), ("indifference", LIGHT.preference)):
        assert lines(marks, color) == [{"loss": row["loss"], key: row[key]} for row in twin.rows]


def test_at_a_cap_the_curves_cross_and_the_cap_is_drawn(capped: Any, units: Any) -> None:
    rows = tangency_twin(capped.frontier, capped.welfare, capped.choice).rows
    beyond = [row for row in rows if 2.0 < amount(row, "loss") < 2.5]
    assert all(amount(row, "frontier") > amount(row, "indifference") for row in beyond)
    marks = units(tangency(capped.frontier, capped.welfare, capped.choice, limits=capped.limits))
    limit = next(mark for mark in marks if mark["mark"]["type"] == "rule" and mark["mark"]["color"] == LIGHT.limit)
    assert limit["data"]["values"][0]["x"] == 2.0
    region = next(mark for mark in marks if mark["mark"]["type"] == "rect")["data"]["values"][0]
    assert region["left"] == 2.0


def test_a_floor_closes_the_side_of_larger_errors(fit_for_use: Any, units: Any) -> None:
    picture = tangency(fit_for_use.frontier, fit_for_use.welfare, fit_for_use.choice, limits=fit_for_use.limits)
    region = next(mark for mark in units(picture) if mark["mark"]["type"] == "rect")["data"]["values"][0]
    assert region["right"] == pytest.approx(3.162278, rel=1e-6)


def test_several_tables_are_drawn_in_dollars(two_tables: Any) -> None:
    twin = tangency_twin(two_tables.frontier, two_tables.welfare, two_tables.choice)
    here = next(row for row in twin.rows if row["marked"])
    assert here["frontier"] == pytest.approx(-two_tables.choice.data_loss)
    assert {column.kind for column in twin.columns} == {"loss", "money"}
    for row in twin.rows:
        assert amount(row, "indifference") >= amount(row, "frontier") - 1e-6 * abs(amount(row, "frontier"))


def test_a_steep_indifference_curve_keeps_its_words_inside(title_i: Any, units: Any) -> None:
    """A floor far beyond the optimum: society asks so much that the curve is nearly upright."""
    limits = Limits(floors={title_i.frontier.tables[0]: 0.01})
    choice = choose(title_i.frontier, title_i.welfare, limits)
    marks = units(tangency(title_i.frontier, title_i.welfare, choice, limits=limits))
    words = [row for mark in marks if mark["mark"]["type"] == "text" for row in mark["data"]["values"]]
    wanted = next(row for row in words if row["text"].startswith("equally good"))
    assert 1.5 * choice.accuracy < wanted["y"] < 0
