"""Consequences per table, the tornado of inputs, and the envelope of technologies."""

from __future__ import annotations

from typing import Any

import pytest

from dualmandate.choice import TornadoRow
from dualmandate.choice import tornado as tornado_rows
from dualmandate.choice.statics import TornadoEnd
from dualmandate.report.figures import (
    consequences,
    consequences_twin,
    headline,
    technologies,
    technologies_twin,
    tornado,
    tornado_twin,
)
from dualmandate.report.figures.theme import LIGHT
from dualmandate.report.figures.twin import amount


def test_consequences_are_told_in_the_unit_and_in_dollars(title_i: Any, units: Any) -> None:
    (row,) = consequences_twin(title_i.choice, {"eligible children by district": 1.1852}).rows
    assert row["root_mean_squared_error"] == pytest.approx(0.559499, abs=1e-6)
    assert row["root_mean_squared_consequence"] == pytest.approx(2502.15, abs=0.01)
    assert (row["unit"], row["half_width"], row["exact"]) == ("children", 1.1852, True)
    picture = consequences(title_i.choice, {"eligible children by district": 1.1852})
    assert headline(picture)[0] == "A published number is typically off by 0.559 children, worth $2,502"
    dots = next(mark for mark in units(picture) if mark.get("name") == "errors")["data"]["values"]
    assert dots[0]["root_mean_squared_error"] == row["root_mean_squared_error"]
    bar = next(mark for mark in units(picture) if "to" in mark["data"]["values"][0] and mark["mark"]["type"] == "rule")
    assert (bar["data"]["values"][0]["from"], bar["data"]["values"][0]["to"]) == (0, 1.1852)


def test_without_an_exact_law_the_noise_is_taken_as_normal_and_said_so(title_i: Any) -> None:
    (row,) = consequences_twin(title_i.choice).rows
    assert row["half_width"] == pytest.approx(1.959964 * 0.559499, rel=1e-6)
    assert "taken as normal" in headline(consequences(title_i.choice))[1]


def test_tables_in_different_units_stand_in_panels_of_their_own(two_tables: Any) -> None:
    document = consequences(two_tables.choice).to_dict()
    assert len(document["vconcat"]) == 2


def test_ten_percent_of_cost_moves_the_choice_as_the_reference_says(title_i: Any, units: Any) -> None:
    rows = tornado_rows(title_i.frontier, title_i.welfare, title_i.limits)
    twin = {str(row["input"]): row for row in tornado_twin(rows, title_i.choice).rows}
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
    twin = tornado_twin(rows, title_i.choice)
    assert twin.rows[0]["high_loss"] is None
    assert twin.rows[0]["note"] == "welfare rises without limit"
    assert "–" in twin.written()[0]
    tornado(rows, title_i.choice).to_dict()


def test_the_envelope_names_the_best_technology_and_the_price_of_the_other(
    title_i: Any, laplace: Any, geometric: Any, units: Any
) -> None:
    twin = technologies_twin([laplace, geometric], title_i.welfare, title_i.choice)
    assert {row["best"] for row in twin.rows} == {"geometric"}
    here = next(row for row in twin.rows if row["marked"])
    assert amount(here, "times_0") == pytest.approx(8.139012e10 / amount(here, "cost_1"), rel=1e-6)
    assert amount(here, "times_0") == pytest.approx(1 / 0.6025, rel=1e-3)
    picture = technologies([laplace, geometric], title_i.welfare, title_i.choice)
    assert "errors cost least with geometric" in headline(picture)[0]
    drawn = [mark["data"]["values"] for mark in units(picture) if mark["mark"]["type"] == "line"]
    assert [{"loss": row["loss"], "times_0": row["times_0"]} for row in twin.rows] in drawn


def test_technologies_that_err_alike_are_said_to(title_i: Any, laplace: Any) -> None:
    twin = type(laplace)("laplace", laplace.query_counts)
    assert "err alike" in headline(technologies([laplace, twin], title_i.welfare, title_i.choice))[0]
