"""Errors of the published numbers, table by table, and beside those that were there before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dualmandate.planning.extensions import ExistingError
from dualmandate.report.figures import Figure, consequences, existing
from dualmandate.report.theme import NARROW, WIDE


def drawn(figure: Figure) -> str:
    """What it says; it can be drawn at both widths."""
    for width in (WIDE, NARROW):
        assert figure.svg(width).startswith("<svg")
    return figure.title


def test_consequences_are_told_in_the_unit_and_in_dollars(title_i: Any, units: Any) -> None:
    (row,) = consequences(title_i.choice, {"eligible children by district": 1.1852}).table.rows
    assert row["root_mean_squared_error"] == pytest.approx(0.559499, abs=1e-6)
    assert row["root_mean_squared_consequence"] == pytest.approx(2502.15, abs=0.01)
    assert (row["unit"], row["half_width"], row["exact"]) == ("children", 1.1852, True)
    picture = consequences(title_i.choice, {"eligible children by district": 1.1852})
    assert picture.title == "A published number is typically off by 0.5595 children, worth USD 2,502"
    dots = next(mark for mark in units(picture) if mark.get("name") == "errors")["data"]["values"]
    assert dots[0]["root_mean_squared_error"] == row["root_mean_squared_error"]
    bar = next(mark for mark in units(picture) if "to" in mark["data"]["values"][0] and mark["mark"]["type"] == "rule")
    assert (bar["data"]["values"][0]["from"], bar["data"]["values"][0]["to"]) == (0, 1.1852)


def test_a_heading_counts_what_clipping_leaves_out(title_i: Any) -> None:
    """Noise alone would say how far off a number is from what is counted, not from what is."""
    (table,) = title_i.choice.tables
    clipped = replace(title_i.choice, tables=(replace(table, bias=12.0),))
    title = "A published number is typically off by 12.01 children with what clipping leaves out; by noise alone, by"
    assert consequences(clipped).title == f"{title} 0.5595 children, worth USD 2,502"
    assert [row["left_out"] for row in consequences(clipped).table.rows] == [12.0]
    assert "by noise alone; what clipping leaves out comes on top" in consequences(clipped).subtitle


def test_without_an_exact_law_the_noise_is_taken_as_normal_and_said_so(title_i: Any) -> None:
    (row,) = consequences(title_i.choice).table.rows
    assert row["half_width"] == pytest.approx(1.959964 * 0.559499, rel=1e-6)
    assert "taken as normal" in consequences(title_i.choice).subtitle


def test_tables_in_different_units_stand_in_panels_of_their_own(two_tables: Any) -> None:
    document = consequences(two_tables.choice).specification()
    assert len(document["vconcat"]) == 2


def test_errors_that_were_there_before() -> None:
    sizes = {"districts": (120.0, 0.6), "schools": (3.0, 4.0), "states": (900.0, 0.5)}
    rows = [ExistingError(table, "child", *errors) for table, errors in sizes.items()]
    finding = drawn(existing(rows))
    assert finding == "Noise widens the errors that were there by at most 66.7 %"
    assert [row["table"] for row in existing(rows).table.rows] == ["districts", "schools", "states"]


def test_every_panel_has_dots_of_its_own(two_tables: Any, units: Any) -> None:
    """Two marks of one name are drawn with the data of one."""
    figure = consequences(two_tables.choice)
    marks = [mark for mark in units(figure) if str(mark.get("name", "")).startswith("errors")]
    assert len({mark["name"] for mark in marks}) == len(marks) == 2
    drawn = [row["root_mean_squared_error"] for mark in marks for row in mark["data"]["values"]]
    assert sorted(drawn) == sorted(row["root_mean_squared_error"] for row in figure.table.rows)
