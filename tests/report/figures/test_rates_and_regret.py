"""MRT against WTA, the valley of regret, and welfare with all its peaks."""

from __future__ import annotations

from typing import Any

import pytest

from dualmandate.report.figures import (
    headline,
    rates,
    rates_twin,
    regret,
    regret_twin,
    welfare_curve,
    welfare_twin,
)
from dualmandate.report.figures.twin import amount


def test_the_rates_meet_at_the_choice_and_nowhere_else(title_i: Any, units: Any) -> None:
    twin = rates_twin(title_i.frontier, title_i.welfare, title_i.choice)
    for row in twin.rows:
        bought, asked = amount(row, "marginal_rate_of_transformation"), amount(row, "willingness_to_accept")
        assert bought == pytest.approx(4 * 13_000 / amount(row, "loss") ** 3)
        assert asked == pytest.approx(3220)
        assert (bought > asked) == (amount(row, "loss") < title_i.choice.epsilon) or row["marked"]
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
    twin = rates_twin(two_tables.frontier, two_tables.welfare, two_tables.choice)
    here = next(row for row in twin.rows if row["marked"])
    assert amount(here, "willingness_to_accept") == pytest.approx(46e6 * 1400)
    assert amount(here, "marginal_rate_of_transformation") == pytest.approx(46e6 * 1400)
    assert [column.kind for column in twin.columns] == ["loss", "money", "money"]


def test_rates_that_meet_twice_say_so(bounded: Any) -> None:
    finding, _ = headline(rates(bounded.frontier, bounded.welfare, bounded.choice))
    assert "meet 2 times" in finding


def test_regret_follows_the_formula_of_the_paper(title_i: Any) -> None:
    twin = regret_twin(title_i.frontier, title_i.welfare, title_i.choice)
    for row in twin.rows:
        t = amount(row, "multiple")
        assert amount(row, "relative_regret") == pytest.approx((2 * t + t**-2) / 3 - 1, abs=1e-12)
        assert amount(row, "regret") == pytest.approx(amount(row, "relative_regret") * 2.441704e11, rel=1e-6, abs=1)
    assert [amount(row, "multiple") for row in twin.rows if row["marked"]] == pytest.approx([0.5, 1.0, 2.0])


def test_the_valley_has_its_floor_and_its_signposts(title_i: Any, units: Any) -> None:
    picture = regret(title_i.frontier, title_i.welfare, title_i.choice)
    marks = {mark.get("name"): mark["data"]["values"] for mark in units(picture)}
    assert marks["optimum"][0]["relative_regret"] == 0
    assert [row["relative_regret"] for row in marks["signposts"]] == pytest.approx([2 / 3, 5 / 12])
    assert headline(picture)[0].replace("\u00a0", " ") == (
        "Half of this ε would cost society 66.7 % more; twice, 41.7 % more"
    )


def test_where_a_cap_binds_more_loss_would_cost_less(capped: Any) -> None:
    finding, _ = headline(regret(capped.frontier, capped.welfare, capped.choice))
    rows = regret_twin(capped.frontier, capped.welfare, capped.choice).rows
    assert min(amount(row, "relative_regret") for row in rows) < 0
    assert "more; twice" in finding


def test_every_candidate_is_drawn_on_the_welfare_curve(bounded: Any, units: Any) -> None:
    twin = welfare_twin(bounded.frontier, bounded.welfare, bounded.choice)
    kinds = {str(row["kind"]): amount(row, "loss") for row in twin.rows if row["marked"]}
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
    for row in welfare_twin(bounded.frontier, bounded.welfare, bounded.choice).rows:
        assert amount(row, "welfare") == pytest.approx(amount(row, "privacy") + amount(row, "errors"))
