"""The redistricting program: its plan, what its policy leaves unprotected, its districts, and its bad input."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.gallery.redistricting_figures import BLOCKS, BUDGETS

from dualmandate import gallery
from dualmandate.choice import choose, implied_cost
from dualmandate.errors import InvalidFile, InvalidValue
from dualmandate.gallery.redistricting import (
    Districts,
    InventedState,
    district_errors,
    invented_state,
    read_districts,
)
from dualmandate.gallery.redistricting.districts import minority_share
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.report.plan_words import plan_words


@cache
def state() -> InventedState:
    return invented_state()


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    folder = tmp_path_factory.mktemp("redistricting")
    gallery.write("redistricting", folder)
    return {name: load(folder / f"{name}.toml").plan() for name in ("program", "exact_blocks")}


def test_the_choice_and_the_price_of_exact_blocks(plans: dict[str, Plan]) -> None:
    noisy, exact = plans["program"], plans["exact_blocks"]
    assert noisy.choice.epsilon == pytest.approx(1.203154, abs=5e-6)
    assert exact.choice.epsilon == pytest.approx(1.030879, abs=5e-6)
    assert {noisy.choice.bound_by, exact.choice.bound_by} == {"preferences"}
    assert noisy.choice.privacy_cost == pytest.approx(noisy.choice.data_loss, rel=1e-3)  # a/ρ against b·ρ
    assert float(noisy.program.file.population.population_size.value) == state().today.sum()
    assert not noisy.study
    told = ["Not protected: 'residents of each block'" in plan_words(each) for each in (noisy, exact)]
    assert told == [False, True]


@pytest.mark.parametrize(("budget", "cost"), [("April 2021 demonstration", 13.2012), ("production, 2020", 2.21816)])
def test_what_the_2020_budgets_imply(plans: dict[str, Plan], budget: str, cost: float) -> None:
    """Errors fall as 1/ρ, so that the implied cost is the stated one times (ρ* over ρ)²; and it chooses that ρ."""
    plan, rho = plans["program"], float(BUDGETS[budget])
    found = implied_cost(plan.technology.frontier, plan.welfare, rho)
    assert found.value == pytest.approx(cost, rel=1e-4)
    assert found.value == pytest.approx(10 * (plan.choice.epsilon / rho) ** 2, rel=0.03)
    people = tuple(group.scaled(found.factor) for group in plan.welfare.groups)
    assert choose(plan.technology.frontier, replace(plan.welfare, groups=people)).epsilon == pytest.approx(
        rho, rel=1e-4
    )


def test_budgets_are_those_of_the_production_files() -> None:
    assert {name: round(float(rho), 4) for name, rho in BUDGETS.items()} == {
        "April 2021 demonstration": 1.0472,
        "production, 2020": 2.5562,
    }
    assert BUDGETS["production, 2020"] == 1 / Fraction(339, 542) ** 2


def test_districts_of_blocks_that_lie_together_are_nearer_to_the_truth(plans: dict[str, Plan]) -> None:
    """Measured, four releases at ρ = 1.2: populations are off by .044 % along the geography, by .201 % scattered."""
    people, plan = state().today, plans["program"]
    along = Districts.of(state().districts)
    across = Districts.of([str(place % 8) for place in range(len(state().codes))])
    (near,), (far,) = (
        district_errors(plan, people, each, [1.2], table=BLOCKS, repetitions=1) for each in (along, across)
    )
    assert 0.0001 < near.deviation < 0.0012
    assert 0.0002 < near.composition < 0.003
    assert far.deviation > 3 * near.deviation
    assert near.largest_deviation >= near.deviation
    (exact,) = district_errors(plans["exact_blocks"], people, across, [1.2], table=BLOCKS, repetitions=1)
    assert exact.deviation == exact.largest_deviation == 0
    assert exact.composition > 0.0002


def test_minority_shares_by_hand() -> None:
    persons = np.zeros((1, 2, 2, 63))
    persons[0, 0] = 50  # minors do not count
    persons[0, 1, 0, 0], persons[0, 1, 1, 0], persons[0, 1, 0, 5] = 6, 3, 1
    assert minority_share(persons).tolist() == [0.4]


def test_the_last_census_drew_districts_of_equal_population() -> None:
    sums = Districts.of(state().districts).sums(state().before.sum(axis=(1, 2, 3)))
    assert np.abs(sums / sums.mean() - 1).max() < 0.02
    assert len(state().codes) == len(set(state().codes)) == 3_000
    assert list(state().codes) == sorted(state().codes)
    parts = {len({code[:digits] for code in state().codes}) for digits in (2, 5, 11, 12)}
    assert parts == {1, 4, 32, 120}


def test_a_list_of_districts_is_read_and_odd_ones_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "districts.txt"
    file.write_text("BLOCKID|DISTRICT\nb|02\na|01\nc|02\n", encoding="utf-8")
    found = read_districts(file, ["a", "b", "c"])
    assert (found.names, found.of_block.tolist()) == (("01", "02"), [0, 1, 1])
    assert found.sums(np.array([1, 2, 4])).tolist() == [1, 6]
    for text, line, words in [
        ("BLOCKID|DISTRICT\na|01\nb|02\n", None, "1 blocks have no district, the first of them 'c'"),
        ("a|01\nb|02\nc|02\na|02\n", 4, "stands on line 1 too"),
        ("a|01\nd|02\n", 2, "is not in the state's geographic header"),
        ("a|01\nb\n", 2, "not a block and its district"),
        ("a|01\nb|\n", 2, "not a block and its district"),
    ]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidFile) as caught:
            read_districts(file, ["a", "b", "c"])
        where = caught.value.where
        assert where is not None
        assert where.line == line
        assert words in caught.value.why


def test_a_table_that_the_plan_does_not_have_is_refused(plans: dict[str, Plan]) -> None:
    with pytest.raises(InvalidValue, match="no table"):
        district_errors(plans["program"], state().today, Districts.of(state().districts), [1.0], table="blocks")


def test_a_malformed_header_is_refused_where_the_program_names_it(tmp_path: Path) -> None:
    gallery.write("redistricting", tmp_path)
    header = tmp_path / "zzgeo2020.pl"
    lines = header.read_text(encoding="utf-8").splitlines()
    lines[7] = lines[7].replace("|750|", "|75|")
    header.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match="SUMLEV") as caught:
        load(tmp_path / "program.toml")
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line) == (str(header), 8)
