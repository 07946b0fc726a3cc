"""Pictures of markets and extensions: what they say is what the numbers say, on a desk and on a phone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
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
from dualmandate.choice.markets import (
    CompensatedStudy,
    Market,
    Monopoly,
    Provision,
    UniformAmounts,
    compare_markets,
    fair_query,
)
from dualmandate.frontier import (
    ExponentialResponse,
    FormulaGrant,
    Simulation,
    TableTotals,
    decision_frontier,
    frontier_of,
    noisy_answers,
    peak_of,
    with_participation,
)
from dualmandate.mechanism import geometric, laplace
from dualmandate.population import Currency, Histogram
from dualmandate.report.figures import (
    NARROW,
    WIDE,
    auction_picture,
    auction_twin,
    decisions_picture,
    decisions_twin,
    existing_picture,
    existing_twin,
    headline,
    institutions,
    institutions_twin,
    monopoly_picture,
    monopoly_twin,
    offering_picture,
    offering_twin,
    participation_picture,
    participation_twin,
    path_picture,
    path_twin,
    provision_picture,
    provision_twin,
    study_picture,
    study_twin,
    svg,
)
from dualmandate.report.figures.saving import Picture
from dualmandate.workload import identity

DISTRICTS = frontier_of(laplace(), identity(13_000))
TABLE = DISTRICTS.tables[0]
PAPER = SocialWelfare(
    (PopulationGroup("everybody", 46e6, LinearCost(1_400)),), (TableValue(TABLE, 2.0e7, unit="child"),)
)
COSTS = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0]


def said(picture: Picture) -> str:
    return headline(picture)[0].replace("\N{NO-BREAK SPACE}", " ")


def drawn(draw: Callable[[int], Picture]) -> str:
    """The finding, the same at both widths; both can be drawn."""
    findings = set()
    for width in (WIDE, NARROW):
        picture = draw(width)
        assert svg(picture).startswith("<svg")
        findings.add(said(picture))
    [finding] = findings
    return finding


def test_institutions() -> None:
    rows = compare_markets(DISTRICTS, PAPER, Market(0.125, budget=1e9, harm=1_400, target_error=0.01))
    finding = drawn(lambda width: institutions(rows, Currency.EPSILON, width=width))
    assert finding == ("A private provider would choose 50.0 % of the planner's ε, and society would lose 66.7 % more")
    twin = institutions_twin(rows, Currency.EPSILON)
    assert [row["institution"] for row in twin.rows if row["marked"]] == ["planner"]
    assert [row["institution"] for row in twin.rows if row["one_count"]] == ["MinCostAuction", "FairQuery"]
    alone = [row for row in rows if row.name == "planner"]
    assert said(institutions(alone, Currency.EPSILON)) == "The planner chooses ε = 2.53"
    alike = compare_markets(DISTRICTS, PAPER, Market(1.0))
    assert said(institutions(alike, Currency.EPSILON)).startswith("A private provider would choose what the planner")


def test_provision(units: Any) -> None:
    provision = Provision(1_000, UniformAmounts(0, 1), 10, 2)
    finding = drawn(lambda width: provision_picture(provision, width=width))
    assert finding == "A private provider stops at accuracy 0.220; the planner goes on to 0.722"
    assert [row["accuracy"] for row in provision_twin(provision).rows][2] == pytest.approx(0.612121, abs=1e-6)
    points = [
        mark["data"]["values"][0]
        for mark in units(provision_picture(provision))
        if str(mark.get("name", "")).startswith("provided")
    ]
    assert sorted(point["y"] for point in points) == [2, 2, 10, 10, 10]


def test_studies() -> None:
    study = CompensatedStudy(1_000, 0.05, 0.05, recruiting=2)
    finding = drawn(lambda width: study_picture(study, 300_000, 250_000, width=width))
    feasible = study.feasible(250_000, 300_000)
    assert feasible is not None
    low, high = (f"{design.participants:,}" for design in feasible)
    assert finding == f"$250,000 pays for {low} to {high} participants"
    [cheapest] = [row for row in study_twin(study, 300_000, 250_000).rows if row["marked"]]
    assert cheapest["cost"] == study.cheapest(300_000).cost
    assert said(study_picture(study, 300_000, 100.0)) == "$100 pays for no study that is accurate enough"


def test_auctions() -> None:
    sale = fair_query(COSTS, 3.0)
    finding = drawn(lambda width: auction_picture(sale, COSTS, name="FairQuery", width=width))
    assert finding == "FairQuery buys 3 of 6 people at ε = 0.333, for $3.00"
    rows = auction_twin(sale, COSTS).rows
    assert [row["sells"] for row in rows] == [True] * 3 + [False] * 3
    assert rows[2]["lost"] == pytest.approx(1.0)
    many = np.linspace(1, 5, 200).tolist()
    assert svg(auction_picture(fair_query(many, 50.0), many, name="FairQuery")).startswith("<svg")


def test_a_monopolist() -> None:
    finding = drawn(lambda width: monopoly_picture(Monopoly(), width=width))
    assert finding == "A monopolist serves 50.0 % of users and counts 50.0 % of what accuracy is worth"
    assert max(float(str(row["revenue"])) for row in monopoly_twin(Monopoly()).rows) == pytest.approx(0.5)


def test_paths() -> None:
    cell = frontier_of(laplace(), identity(1))
    welfare = SocialWelfare((PopulationGroup("e", 1.0, LinearCost(1.0)),), (TableValue(cell.tables[0], 0.5),))
    capped, free = (
        budget_path(cell, welfare, years=range(0, 70, 10), horizon=DisclosureHorizon(72, 0.97), cap=cap)
        for cap in (6, None)
    )
    finding = drawn(lambda width: path_picture(capped, Currency.EPSILON, width=width))
    assert finding == "7 releases would spend ε = 9.95; the cap leaves 6.00"
    assert said(path_picture(free, Currency.EPSILON)) == (
        "The best ε goes from 1.26 now to 1.80 in year 60; 9.95 in all"
    )
    assert [row["year"] for row in path_twin(capped, Currency.EPSILON).rows] == list(range(0, 70, 10))


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

    finding = drawn(lambda width: participation_picture(noise, responding, choice, peak=peak, width=width))
    assert finding == "Beyond ε = 0.699 losing respondents costs more accuracy than less noise brings"
    rows = participation_twin(noise, responding, choice, peak=peak).rows
    least = min(rows, key=lambda row: float(str(row["cost"])))
    assert least["loss"] == pytest.approx(peak)
    shaded = [
        m for m in units(participation_picture(noise, responding, choice, peak=peak)) if m["mark"]["type"] == "rect"
    ]
    assert shaded[0]["data"]["values"][0]["left"] == peak


def test_offers() -> None:
    cell = frontier_of(laplace(), identity(1))
    welfare = SocialWelfare((PopulationGroup("e", 1.0, LinearCost(2.0)),), (TableValue(cell.tables[0], 1.0),))
    tables = [
        Candidate(f"table {i}", value, cell, TableValue(cell.tables[0], coefficient / 2))
        for i, (value, coefficient) in enumerate(((4, 1), (5, 8), (10, 27)))
    ]
    offering = choose_tables(tables, welfare)
    finding = drawn(lambda width: offering_picture(offering, width=width))
    assert finding == "2 of 3 tables are worth their price; ε = 4.00 in all"
    assert [row["marked"] for row in offering_twin(offering).rows] == [True, False, True]


@dataclass(frozen=True)
class Before:
    table: str
    before: float
    noise: float
    unit: str = "child"

    @property
    def added(self) -> float:
        return math.hypot(self.before, self.noise) / self.before - 1


def test_errors_that_were_there_before() -> None:
    rows = [Before("districts", 120.0, 0.6), Before("schools", 3.0, 4.0), Before("states", 900.0, 0.5)]
    finding = drawn(lambda width: existing_picture(rows, width=width))
    assert finding == "Noise widens the errors that were there by at most 66.7 %"
    assert [row["table"] for row in existing_twin(rows).rows] == ["districts", "schools", "states"]


def test_decisions() -> None:
    places, counts = 30, np.full(30, 10, dtype=np.int64)
    workload = identity(places)
    histogram = Histogram(workload.domain, counts)
    plan = Simulation((0.3, 1.0, 4.0), 60, seed=2)

    def decided(threshold: float, whole: bool) -> Any:
        production = (geometric() if whole else laplace()).production(workload)
        grant = FormulaGrant(np.full(places, 100.0), threshold=threshold)
        return decision_frontier(grant, noisy_answers(production), workload, histogram=histogram, simulation=plan)

    frontiers = {"linear": decided(0, False), "threshold": decided(10, False)}
    finding = drawn(lambda width: decisions_picture(frontiers, 0.3, 4.0, width=width))
    assert finding.startswith("At ε = 4.00 a typical recipient is off by $3")
    last = decisions_twin(frontiers, 0.3, 4.0).rows[-1]
    assert last["error_0"] == pytest.approx(math.sqrt(2) / 4 * 100, rel=0.1)
    assert float(str(last["error_1"])) > 10 * float(str(last["error_0"]))
