"""Figure 1, MRT against WTA, welfare with all its peaks and the valley of regret: drawn is what the tables say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.report.figures.conftest import lies_on

from dualmandate.choice import Limits, choose
from dualmandate.report.figures import rates, regret, tangency, welfare_curve
from dualmandate.report.theme import LIGHT


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
    twin = tangency(title_i.frontier, title_i.welfare, title_i.choice).table
    for row in twin.rows:
        gap = row["indifference"] - row["frontier"]
        assert gap == pytest.approx(0, abs=1e-6) if row["marked"] else gap > 0
    assert sum(bool(row["marked"]) for row in twin.rows) == 1


def test_the_slope_of_the_tangent_is_the_marginal_rate_of_transformation(title_i: Any) -> None:
    rows = tangency(title_i.frontier, title_i.welfare, title_i.choice).table.rows
    for left, right in pairwise(rows):
        rise = right["tangent"] - left["tangent"]
        assert rise / (right["loss"] - left["loss"]) == pytest.approx(3220, rel=1e-6)


def test_the_twin_is_what_is_drawn(title_i: Any, units: Any) -> None:
    twin = tangency(title_i.frontier, title_i.welfare, title_i.choice).table
    marks = units(tangency(title_i.frontier, title_i.welfare, title_i.choice))
    for key, color in (("frontier", LIGHT.production), ("indifference", LIGHT.preference)):
        drawn = lines(marks, color)
        assert len(drawn) > len(twin.rows) / 2
        assert lies_on(drawn, [{"loss": row["loss"], key: row[key]} for row in twin.rows])


def test_at_a_cap_the_curves_cross_and_the_cap_is_drawn(capped: Any, units: Any) -> None:
    rows = tangency(capped.frontier, capped.welfare, capped.choice).table.rows
    beyond = [row for row in rows if 2.0 < row["loss"] < 2.5]
    assert all(row["frontier"] > row["indifference"] for row in beyond)
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
    twin = tangency(two_tables.frontier, two_tables.welfare, two_tables.choice).table
    here = next(row for row in twin.rows if row["marked"])
    assert here["frontier"] == pytest.approx(-two_tables.choice.data_loss)
    assert {column.kind for column in twin.columns} == {"loss", "USD"}
    for row in twin.rows:
        assert row["indifference"] >= row["frontier"] - 1e-6 * abs(row["frontier"])


def test_a_steep_indifference_curve_keeps_its_words_inside(title_i: Any, units: Any) -> None:
    """A floor far beyond the optimum: society asks so much that the curve is nearly upright."""
    limits = Limits(floors={title_i.frontier.tables[0]: 0.01})
    choice = choose(title_i.frontier, title_i.welfare, limits)
    marks = units(tangency(title_i.frontier, title_i.welfare, choice, limits=limits))
    words = [row for mark in marks if mark["mark"]["type"] == "text" for row in mark["data"]["values"]]
    wanted = next(row for row in words if row["text"].startswith("equally good"))
    assert 1.5 * choice.accuracy < wanted["y"] < 0


def test_the_rates_meet_at_the_choice_and_nowhere_else(title_i: Any, units: Any) -> None:
    twin = rates(title_i.frontier, title_i.welfare, title_i.choice).table
    for row in twin.rows:
        bought, asked = row["marginal_rate_of_transformation"], row["willingness_to_accept"]
        assert bought == pytest.approx(4 * 13_000 / row["loss"] ** 3)
        assert asked == pytest.approx(3220)
        assert (bought > asked) == (row["loss"] < title_i.choice.epsilon) or row["marked"]
    (circle,) = [
        mark
        for mark in units(rates(title_i.frontier, title_i.welfare, title_i.choice))
        if mark.get("name") == "optimum"
    ]
    assert circle["data"]["values"][0]["marginal_rate_of_transformation"] == pytest.approx(3220)


def test_both_axes_of_the_rates_are_logarithmic(title_i: Any, units: Any) -> None:
    marks = units(rates(title_i.frontier, title_i.welfare, title_i.choice))
    assert {mark["encoding"][axis]["scale"]["type"] for mark in marks for axis in ("x", "y")} == {"log"}


def test_at_a_cap_both_rates_are_marked(capped: Any, units: Any) -> None:
    marks = {mark.get("name"): mark for mark in units(rates(capped.frontier, capped.welfare, capped.choice))}
    assert marks["optimum"]["data"]["values"][0]["marginal_rate_of_transformation"] == pytest.approx(6500)
    assert marks["asked"]["data"]["values"][0]["willingness_to_accept"] == pytest.approx(3220)


def test_tables_in_different_units_are_weighed_in_dollars(two_tables: Any) -> None:
    """Squared children and squared hours have no sum: both curves are then dollars per unit of loss."""
    twin = rates(two_tables.frontier, two_tables.welfare, two_tables.choice).table
    here = next(row for row in twin.rows if row["marked"])
    assert here["willingness_to_accept"] == pytest.approx(46e6 * 1400)
    assert here["marginal_rate_of_transformation"] == pytest.approx(46e6 * 1400)
    assert [column.kind for column in twin.columns] == ["loss", "USD", "USD"]


def test_rates_that_meet_twice_say_so(bounded: Any) -> None:
    finding = rates(bounded.frontier, bounded.welfare, bounded.choice).title
    assert "meet 2 times" in finding


def test_regret_follows_the_formula_of_the_paper(title_i: Any) -> None:
    twin = regret(title_i.frontier, title_i.welfare, title_i.choice).table
    for row in twin.rows:
        t = row["multiple"]
        assert row["relative_regret"] == pytest.approx((2 * t + t**-2) / 3 - 1, abs=1e-12)
        assert row["regret"] == pytest.approx(row["relative_regret"] * 2.441704e11, rel=1e-6, abs=1)
    assert [row["multiple"] for row in twin.rows if row["marked"]] == pytest.approx([0.5, 1.0, 2.0])


def test_the_valley_has_its_floor_and_its_signposts(title_i: Any, units: Any) -> None:
    picture = regret(title_i.frontier, title_i.welfare, title_i.choice)
    marks = {mark.get("name"): mark["data"]["values"] for mark in units(picture)}
    assert marks["optimum"][0]["relative_regret"] == 0
    assert [row["relative_regret"] for row in marks["signposts"]] == pytest.approx([2 / 3, 5 / 12])
    assert picture.title == ("Half of this ε would cost society 66.7 % more; twice, 41.7 % more")


def test_where_a_cap_binds_more_loss_would_cost_less(capped: Any) -> None:
    finding = regret(capped.frontier, capped.welfare, capped.choice).title
    rows = regret(capped.frontier, capped.welfare, capped.choice).table.rows
    assert min(row["relative_regret"] for row in rows) < 0
    assert "more; twice" in finding


def test_every_candidate_is_drawn_on_the_welfare_curve(bounded: Any, units: Any) -> None:
    twin = welfare_curve(bounded.frontier, bounded.welfare, bounded.choice).table
    kinds = {str(row["kind"]): row["loss"] for row in twin.rows if row["marked"]}
    assert kinds == {
        "chosen": pytest.approx(2.092555, abs=1e-6),
        "minimum": pytest.approx(4.138129, abs=1e-6),
        "end": 9.0,
    }
    marks = {
        mark.get("name"): mark["data"]["values"]
        for mark in units(welfare_curve(bounded.frontier, bounded.welfare, bounded.choice))
    }
    assert [row["loss"] for row in marks["considered"]] == pytest.approx([4.138129, 9.0], abs=1e-6)
    assert marks["optimum"][0]["welfare"] == pytest.approx(-9.252526e11, rel=1e-6)


def test_welfare_is_the_sum_of_its_parts(bounded: Any) -> None:
    for row in welfare_curve(bounded.frontier, bounded.welfare, bounded.choice).table.rows:
        assert row["welfare"] == pytest.approx(row["privacy"] + row["errors"])
