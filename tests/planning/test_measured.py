"""What shares a measurement: the default is never worse than any way that the file could state instead."""

from __future__ import annotations

import math
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_programs import random_program, to_toml

from dualmandate.benchmarks.mixed import BY_HAND, CASES, MixedProgram, MixedTable, compared
from dualmandate.errors import Refusal, TooLarge
from dualmandate.mechanism import Strategy, optimize_strategy
from dualmandate.mechanism.technologies import NOISE_LAWS
from dualmandate.planning import technology
from dualmandate.planning.plan import NO_GAIN, Plan
from dualmandate.planning.program import load
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.planning.technology import WORTHWHILE, TechnologyBuilder
from dualmandate.population.wording import money, percent
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words
from dualmandate.workload import Workload


def planned(folder: Path, program: MixedProgram, measured: str = "") -> Plan:
    file = folder / "program.toml"
    file.write_text(program.text(measured), encoding="utf-8")
    return load(file).plan()


@pytest.mark.slow
def test_counts_and_one_sum_are_not_measured_with_one_scale() -> None:
    """The program of a first hour: one strategy for both would choose ε = 7.3651 and lose USD 4.93 million."""
    plan = CASES["counts and one sum"].plan()
    # By hand: scaled noise loses 2·c/ε_g², c = value·queries·sensitivity², so ε_g³ = 4·c/(people·cost).
    people = 200_000 * 2.5
    shares = [math.cbrt(4 * 3.0 * 1440 / people), math.cbrt(4 * 1e-6 * 40 * 100_000**2 / people)]
    assert plan.choice.epsilon == pytest.approx(sum(shares), rel=2e-3)
    assert -plan.choice.welfare == pytest.approx(1.5 * people * sum(shares), rel=2e-3)
    assert -plan.choice.welfare <= 1.35e6
    assert plan.technology.kind == ("geometric", "workload", "apart")
    lost = {row.kind: -row.choice.welfare for row in plan.comparisons if row.choice is not None}
    assert lost["geometric", "optimized", "together"] > 4.9e6
    even = lost["laplace", "workload", "evenly"]
    assert even == pytest.approx(1.5 * people * math.cbrt(4 * 4 * sum(share**3 for share in shares) / 4), rel=1e-3)
    words = " ".join(plan_words(plan).split())
    assert "Measured: the tables themselves, each apart" in words
    # One error of each table on the whole page: that of the loss that is spent, which was rounded down.
    assert words.count("USD 95,971") == 3
    assert "USD 95,969" not in words
    assert "against Laplace noise on the tables, in even shares, what is done by hand." in words
    assert plan_document(plan)["technologies"][1]["measured"] == "apart"
    by_value = lost["laplace", "workload", "by value"]
    assert by_value == pytest.approx(1.5 * people * sum(shares), rel=1e-6)  # the closed form, with noise as in it
    assert "In shares by value, by hand too, it would choose epsilon = 1.799" in words
    saving = plan_document(plan)["saving"]
    assert saving["by_value"]["welfare"] == -by_value
    assert saving["welfare_gained_by_value"] == pytest.approx(by_value + plan.choice.welfare)
    rows = compared("case", plan, plan)
    assert [row.met for row in rows] == [True, True, True, True, None, None]
    assert rows[-2].ours == pytest.approx(1.80, abs=0.01)  # the bound knows what a dollar is worth beside a person
    assert rows[-1].peer == rows[-2].peer == "the bound for " + saving["least_valid_for"]
    # Were errors as small as the bound, another loss would be chosen: society could lose that much less, and no more.
    limit, possible = plan.saving.limit, plan.saving.least_lost
    assert limit is not None
    assert possible is not None
    least = min(people * loss + limit.at(loss) for loss in np.geomspace(0.2, 10, 2_000).tolist())
    assert 0.995 * least <= possible <= least
    assert saving["least_lost"] == possible
    assert rows[-1].ours == pytest.approx(1.22, abs=0.005)
    above = percent(-plan.choice.welfare / possible - 1)
    said = f"society at most {above} more than the least possible, {money(possible, 'USD')}, whatever is measured"
    assert said in words
    assert saving["least_valid_for"].endswith("on rows that count people and add up their amounts")


def random_mixed(draws: np.random.Generator) -> MixedProgram:
    attributes = {
        "ward": '["w1", "w2", "w3", "w4"]',
        "sex": '["f", "m"]',
        "cost": f"{{ lower = 0, upper = {int(draws.choice([20, 100]))}, grid = 10 }}",
    }
    names = [("ward",), ("sex",), ("ward", "sex"), ()]
    tables = [MixedTable(names[int(draws.integers(4))], float(10 ** draws.uniform(-2, 3)))]
    for _ in range(int(draws.integers(1, 4))):
        amount = "cost" if draws.random() < 0.6 else None
        value = float(10 ** draws.uniform(-2, 3)) * (1e-4 if amount else 1.0)
        tables.append(MixedTable(names[int(draws.integers(4))], value, amount))
    return MixedProgram(attributes, tuple(tables), cost=float(10 ** draws.uniform(-4, 0)))


@pytest.mark.parametrize("seed", range(8))
def test_the_default_is_never_worse_than_what_the_file_could_state(seed: int, tmp_path: Path) -> None:
    program = random_mixed(np.random.default_rng(seed))
    default = planned(tmp_path, program)
    slack = 1.01 * WORTHWHILE * default.choice.data_loss  # what saves less is not worth its trouble
    apart = planned(tmp_path, program, "apart")
    assert default.choice.welfare >= apart.choice.welfare - slack
    # Where the file states what shares a measurement, the plan says what that costs beside what is left out.
    compared = [row.choice.welfare for row in apart.comparisons if row.choice is not None and not row.study]
    assert max(compared) >= default.choice.welfare - slack
    told = [note for note in apart.notes if note.endswith(": leave measured out of [mechanism].")]
    assert bool(told) == (max(compared) > apart.choice.welfare * (1 - NO_GAIN))
    for row in default.comparisons:
        if row.choice is not None and (not row.study or row.measured in BY_HAND):
            assert default.choice.welfare >= row.choice.welfare - slack, row.kind
    assert [group.name for group in release_spec_of_plan(default).groups] == list(default.allocation)
    ways = {row.measured for row in default.comparisons if row.noise == default.technology.noise}
    assert {"together", "apart"} <= ways
    least = default.saving.at_choice["least"]
    assert least is None or least <= default.choice.data_loss * (1 + 1e-9)


def stated(text: str, **mechanism: str) -> str:
    """A random program that states how its tables share the loss, with neither shares nor a strategy of its own."""
    document = tomllib.loads(text)
    kept = {key: value for key, value in document["mechanism"].items() if key in ("noise", "failure_probability")}
    document["mechanism"] = {**kept, **mechanism}
    for table in document["workload"]:
        table.pop("share", None)
    return to_toml(document)


def test_together_is_never_worse_than_apart_nor_that_than_a_split_by_tables(tmp_path: Path) -> None:
    """Over random programs with counts and sums; what saves less than WORTHWHILE is not worth its trouble."""
    file, compared = tmp_path / "program.toml", 0
    for seed in range(80):
        text = random_program(seed)
        sums = ["sum_of" in table for table in tomllib.loads(text)["workload"]]
        if all(sums) or not any(sums) or 'loss = "absolute"' in text:
            continue
        ways = ({"measured": "together"}, {"measured": "apart"}, {"measured": "apart", "strategy": "workload"})
        plans = list[Plan | None]()
        for way in ways:
            file.write_text(stated(text, **way), encoding="utf-8")
            try:
                plans.append(load(file).plan())
            except Refusal:
                plans.append(None)
        for better, worse in pairwise(plans):
            if better is not None and worse is not None:
                compared += 1
                slack = 1.01 * WORTHWHILE * better.choice.data_loss
                assert better.choice.welfare >= worse.choice.welfare - slack, seed
            assert better is not None or worse is None, seed
    assert compared >= 10


def test_counts_and_amounts_share_a_measurement_only_with_their_own(tmp_path: Path) -> None:
    tables = (MixedTable(("ward",), 10.0), MixedTable((), 10.0), MixedTable(("ward",), 1e-4, "cost"))
    attributes = {"ward": '["w1", "w2"]', "cost": "{ lower = 0, upper = 50, grid = 10 }"}
    plan = planned(tmp_path, MixedProgram(attributes, tables))
    tried = {row.measured for row in plan.comparisons if row.noise == plan.technology.noise}
    assert {"together", "by unit", "apart"} <= tried
    program = plan.program
    builder = TechnologyBuilder(program.file.mechanism, program.workload, program.protection, program.welfare)
    groups = {name: [table.name for table in group.tables] for name, group in builder.groups("by unit").items()}
    assert groups == {"table 0 + table 1": ["table 0", "table 1"], "table 2": ["table 2"]}
    [geometric] = {name for name, law in plan.technologies.items() if law is plan.technology}
    split = builder.technology(NOISE_LAWS[geometric], "workload", "by unit")
    shares = split.shares(plan.loss)
    assert set(shares) == set(groups)
    assert 0 < sum(shares.values()) <= plan.loss.amount


def test_an_amount_and_its_people_are_found_for_the_price_of_one(tmp_path: Path) -> None:
    """Totals and counts by ward and by sex: each pair shares a measurement, and the pairs split the loss."""
    attributes = {"ward": _levels("w", 8), "sex": _levels("s", 2), "cost": "{ lower = 0, upper = 1000, grid = 10 }"}
    tables = tuple(MixedTable((name,), 4.0, None) for name in ("ward", "sex"))
    tables += tuple(MixedTable((name,), value, "cost") for name, value in (("ward", 1e-4), ("sex", 3e-4)))
    plan = planned(tmp_path, MixedProgram(attributes, tables, cost=1e-3))
    assert plan.technology.kind == ("geometric", "optimized", "by cells")
    assert set(plan.allocation) == {"table 0 + table 2", "table 1 + table 3"}
    lost = {row.kind: -row.choice.welfare for row in plan.comparisons if row.choice is not None}
    # Above and below each amount, both at the sensitivity U: U²·value of amounts + 2·value of counts, cell by cell.
    together = [cells * (1000**2 * amount + 2 * 4.0) for cells, amount in ((8, 1e-4), (2, 3e-4))]
    expected = 1.5 * 200 * sum(math.cbrt(4 * c / 200) for c in together)
    assert lost["laplace", "optimized", "by cells"] == pytest.approx(expected, rel=2e-3)
    assert -plan.choice.welfare < 0.85 * lost["geometric", "workload", "apart"]
    assert "tables of the same cells together" in plan_words(plan)
    spec = release_spec_of_plan(plan)
    assert {group.name for group in spec.groups} == set(plan.allocation)
    assert {group.loss for group in spec.groups} == set(plan.allocation.values())


@pytest.mark.parametrize("measured", ["", "apart"])
def test_a_table_that_is_public_takes_no_way_of_measuring_from_the_others(tmp_path: Path, measured: str) -> None:
    """Under replace-one neighbors the number of records is public: a table of it needs no measurement of its own."""
    attributes = {"ward": _levels("w", 4), "sex": _levels("s", 2), "cost": "{ lower = 0, upper = 1000, grid = 100 }"}
    noisy = (MixedTable(("ward", "sex"), 4.0), MixedTable(("ward",), 1e-4, "cost"))
    plans = []
    for tables in ((MixedTable((), 2.0), *noisy), noisy):
        file = tmp_path / "program.toml"
        text = MixedProgram(attributes, tables, cost=1e-3).text(measured)
        text = text.replace('"add-or-remove"', '"replace-one"\ndropping_is_public = true')
        file.write_text(text.replace('"best"', '"geometric"\nstrategy = "optimized"'), encoding="utf-8")
        plans.append(load(file).plan())
    plan, without = plans
    assert plan.technology.kind == without.technology.kind
    assert plan.technology.measured == "apart"
    assert plan.choice.welfare == pytest.approx(without.choice.welfare, rel=1e-9)
    assert next(row for row in plan.tables if row.table == "table 0").root_mean_squared_error == 0.0
    assert [group.name for group in release_spec_of_plan(plan).groups] == ["table 1 + table 0", "table 2"]
    by_hand = {row.measured: row.choice for row in plan.comparisons if row.measured in BY_HAND}
    assert by_hand.keys() == set(BY_HAND)
    assert all(choice is not None for choice in by_hand.values())


def test_a_strategy_that_serves_some_tables_is_not_called_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One strategy for all tables cannot be looked for; one for an amount and its people is found, and used."""

    def for_few(workload: Workload, *arguments: Any, **more: Any) -> Strategy:
        if len(workload.tables) == 3:
            raise TooLarge("a strategy for so many cells", why="there are too many", instead="group levels")
        return optimize_strategy(workload, *arguments, **more)

    monkeypatch.setattr(technology, "optimize_strategy", for_few)
    attributes = {"ward": _levels("w", 4), "sex": _levels("s", 2), "cost": "{ lower = 0, upper = 100, grid = 10 }"}
    tables = (MixedTable(("ward",), 4.0), MixedTable(("ward",), 1e-2, "cost"), MixedTable(("sex",), 1e-3))
    plan = planned(tmp_path, MixedProgram(attributes, tables, cost=1e-3))
    assert plan.technology.kind == ("geometric", "optimized", "by cells")
    assert "a strategy for so many cells: there are too many" in plan_words(plan)  # beside the row that it refuses
    assert not any("no better strategy could be looked for" in note for note in plan.notes)


def test_every_cell_is_considered_too(tmp_path: Path) -> None:
    """Of little noise on whole numbers most is 0: its variance is 2·e^(−ρ), and not 1/(2ρ), and sums of cells gain."""
    attributes = {"ward": _levels("w", 4), "cost": "{ lower = 0, upper = 400, grid = 10 }"}
    program = MixedProgram(attributes, (MixedTable(("ward",), 10.0), MixedTable(("ward",), 0.3, "cost")), cost=0.01)
    file = tmp_path / "program.toml"
    text = program.text().replace('"best"', '"gaussian"').replace("person per epsilon", "person per rho")
    file.write_text(text, encoding="utf-8")
    plan = load(file).plan()
    assert plan.technology.kind == ("gaussian", "identity", "together")
    # The errors of 4·41 cells, each counted once and added up once in steps of USD 10, cost 2,000 USD a rho less.
    costs = 4 * (41 * 10.0 + 0.3 * 100 * sum(step**2 for step in range(41)))
    q = math.exp(-plan.choice.epsilon)
    assert 2 * q * costs / (1 + 2 * q) ** 2 == pytest.approx(2_000, rel=1e-2)
    lost = {row.kind: -row.choice.welfare for row in plan.comparisons if row.choice is not None}
    assert lost["gaussian", "optimized", "together"] > 1.3 * lost[plan.technology.kind]
    words = " ".join(plan_words(plan).split())
    assert "Measured: every cell, because so little noise on whole numbers is mostly 0" in words
    assert "would leave society" not in words


def _levels(letter: str, count: int) -> str:
    return "[" + ", ".join(f'"{letter}{level}"' for level in range(count)) + "]"


def test_the_refusal_of_the_noise_that_could_serve_is_shown_first(tmp_path: Path) -> None:
    """At a cost per rho geometric noise never serves; why gaussian noise does not is what the author needs to know."""
    attributes = {"ward": '["w1", "w2"]', "sex": '["f", "m"]'}
    program = MixedProgram(attributes, (MixedTable(("ward",), 1.0), MixedTable(("sex",), 0.0)))
    text = program.text("apart").replace("per person per epsilon", "per person per rho")
    file = tmp_path / "program.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        load(file).plan()
    assert "table 1" in caught.value.what
    assert "geometric" not in str(caught.value)


@pytest.mark.parametrize("measured", ["by unit", "as stated"])
def test_a_group_has_one_name_in_a_plan_and_in_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: str
) -> None:
    """Strategies are found again by the name of their group, whatever made the group."""
    attributes = {"ward": _levels("w", 4), "sex": _levels("s", 2), "cost": "{ lower = 0, upper = 50, grid = 10 }"}
    tables = (MixedTable(("ward", "sex"), 1.0), MixedTable((), 100.0), MixedTable(("ward",), 1e-2, "cost"))
    text = MixedProgram(attributes, tables).text().replace('noise = "best"', 'noise = "best"\nstrategy = "optimized"')
    if measured == "as stated":
        text = text.replace("[preferences]", 'measured = [["table 0", "table 1", "table 2"]]\n[preferences]')
    monkeypatch.setattr(TechnologyBuilder, "groupings", (measured,))
    file = tmp_path / "program.toml"
    file.write_text(text, encoding="utf-8")
    plan = load(file).plan()
    assert plan.technology.measured == measured
    assert [group.name for group in release_spec_of_plan(plan).groups] == list(plan.allocation)
