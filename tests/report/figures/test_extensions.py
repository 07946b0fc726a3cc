"""Pictures of the optional parts of a plan: what they say is what the numbers say, on a desk and on a phone."""

from __future__ import annotations

from typing import Any

import pytest

from dualmandate.choice import (
    Candidate,
    DisclosureHorizon,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    budget_path,
    choose,
    choose_tables,
)
from dualmandate.choice.markets import Market, compare_markets
from dualmandate.frontier import ExponentialResponse, TableTotals, frontier_of, peak_of, with_participation
from dualmandate.mechanism import laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.report.figures import Figure, institutions, offering, participation, path
from dualmandate.report.theme import NARROW, WIDE
from dualmandate.workload import identity

DISTRICTS = frontier_of(laplace(), identity(13_000))
TABLE = DISTRICTS.tables[0]
PAPER = SocialWelfare(
    (PopulationGroup("everybody", 46e6, LinearCost(1_400)),), (TableValue(TABLE, 2.0e7, unit="child"),)
)


def drawn(figure: Figure) -> str:
    """What it says; it can be drawn at both widths."""
    for width in (WIDE, NARROW):
        assert figure.svg(width).startswith("<svg")
    return figure.title


def test_institutions() -> None:
    rows = compare_markets(DISTRICTS, PAPER, Market(0.125, budget=1e9, harm=1_400, target_error=0.01))
    finding = drawn(institutions(rows, PrivacyMeasure.PURE_DP, currency="USD"))
    assert finding == ("A private provider would choose 50 % of the planner's ε, and society would lose 66.7 % more")
    twin = institutions(rows, PrivacyMeasure.PURE_DP, currency="USD").table
    assert [row["institution"] for row in twin.rows if row["marked"]] == ["planner"]
    assert [row["institution"] for row in twin.rows if row["one_count"]] == ["MinCostAuction", "FairQuery"]
    alone = [row for row in rows if row.name == "planner"]
    assert institutions(alone, PrivacyMeasure.PURE_DP, currency="USD").title == "The planner chooses ε = 2.528"
    alike = compare_markets(DISTRICTS, PAPER, Market(1.0))
    assert institutions(alike, PrivacyMeasure.PURE_DP, currency="USD").title.startswith(
        "A private provider would choose what the planner"
    )


def test_paths() -> None:
    cell = frontier_of(laplace(), identity(1))
    welfare = SocialWelfare((PopulationGroup("e", 1.0, LinearCost(1.0)),), (TableValue(cell.tables[0], 0.5),))
    capped, free = (
        budget_path(cell, welfare, years=range(0, 70, 10), horizon=DisclosureHorizon(72, 0.97), cap=cap)
        for cap in (6, None)
    )
    finding = drawn(path(capped, PrivacyMeasure.PURE_DP, currency="USD"))
    assert finding == "7 releases would spend ε = 9.951; the cap leaves 6"
    assert path(free, PrivacyMeasure.PURE_DP, currency="USD").title == (
        "The best ε goes from 1.26 now to 1.797 in year 60; 9.951 in all"
    )
    never_opened = budget_path(cell, welfare, years=(0, 5), horizon=DisclosureHorizon(discount_factor=0.97))
    same = path(never_opened, PrivacyMeasure.PURE_DP, currency="USD")
    assert (same.title, same.subtitle) == (
        "The best ε of each release is 1.26; 2.52 in all",
        "Privacy loss ε of each release",
    )
    rows = path(capped, PrivacyMeasure.PURE_DP, currency="USD").table.rows
    assert [row["year"] for row in rows] == list(range(0, 70, 10))


def test_participation(units: Any) -> None:
    response = ExponentialResponse(0.95, 0.02)
    frontier = with_participation(DISTRICTS, response, {TABLE: TableTotals(8e6)})
    peak = peak_of(frontier)
    assert peak is not None
    choice = choose(frontier, PAPER)

    def noise(loss: float) -> float:
        return PAPER.data_loss(DISTRICTS, loss)

    def responding(loss: float) -> float:
        weight = response.weight(loss)
        return 2.0e7 * (DISTRICTS.expected_squared_error(loss) * weight**2 + 8e6 * (weight - 1))

    finding = drawn(participation(noise, responding, choice, peak=peak))
    assert finding == "Beyond ε = 0.6994 losing respondents costs more accuracy than less noise brings"
    rows = participation(noise, responding, choice, peak=peak).table.rows
    least = min(rows, key=lambda row: float(str(row["cost"])))
    assert least["loss"] == pytest.approx(peak)
    shaded = [m for m in units(participation(noise, responding, choice, peak=peak)) if m["mark"]["type"] == "rect"]
    assert shaded[0]["data"]["values"][0]["left"] == peak


def test_offers() -> None:
    cell = frontier_of(laplace(), identity(1))
    welfare = SocialWelfare((PopulationGroup("e", 1.0, LinearCost(2.0)),), (TableValue(cell.tables[0], 1.0),))
    tables = [
        Candidate(f"table {i}", value, cell, TableValue(cell.tables[0], coefficient / 2))
        for i, (value, coefficient) in enumerate(((4, 1), (5, 8), (10, 27)))
    ]
    offered = choose_tables(tables, welfare)
    finding = drawn(offering(offered, "USD"))
    assert finding == "2 of 3 tables are worth their price; ε = 4 in all"
    assert [row["marked"] for row in offering(offered, "USD").table.rows] == [True, False, True]
