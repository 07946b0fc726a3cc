"""Programs that stretch a plan: many tables, one whose fitness for use decides, errors that take long to work out."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dualmandate.benchmarks.mixed import MixedProgram, MixedTable
from dualmandate.choice import Choice, Limits
from dualmandate.mechanism import LAPLACE
from dualmandate.planning.plan import MANY_TABLES, MOST_MOVED
from dualmandate.planning.program import load
from dualmandate.planning.technology import TechnologyBuilder, _best_of, choice_with
from dualmandate.report.documents.plan import plan_document

FIT = "fitness_for_use = { largest_root_mean_squared_error = 0.1 }\n"
TABLE = """
[[workload]]
name = "table {number}"
by = ["sex"]
where = {{ age = {age} }}
value_of_accuracy = {{ value = {value}, unit = "USD per person^2", source = "assumed" }}
"""


@pytest.fixture
def many(survey: Any) -> Path:
    path: Path = survey()
    tables = "".join(TABLE.format(number=i, age=i % 10, value=1000 + i) for i in range(MANY_TABLES))
    path.write_text(path.read_text(encoding="utf-8") + tables, encoding="utf-8")
    return path


def test_of_many_tables_the_costliest_are_named_and_moved(many: Path) -> None:
    plan = load(many).plan()
    moved = {
        row.name for row in plan.robustness.elasticities if row.name.startswith(("value_of_accuracy", "consequence"))
    }
    assert len(moved) == MOST_MOVED
    assert f"value_of_accuracy of table {MANY_TABLES - 1}" in moved
    assert any(f"for the {MOST_MOVED} tables whose errors cost most, not for the other 23." in n for n in plan.notes)
    lines = [line for line in plan.choice.explain().splitlines() if line.startswith("It buys ")]
    assert len(lines) == 9
    assert lines[-1].startswith("It buys 35 more tables, ")
    costs = [table.data_loss for table in plan.tables]
    assert sum(costs) == pytest.approx(plan.welfare.data_loss(plan.frontier, float(plan.loss)))


def test_fitness_for_use_of_one_table_measured_apart_lifts_its_share_alone(survey: Any) -> None:
    """ε_g = max(floor_g, share): the others choose as if that table were not there."""
    fit = ('by = ["age"]\n', 'by = ["age"]\nfitness_for_use = { largest_root_mean_squared_error = 0.1 }\n')
    apart = ('noise = "laplace"', 'noise = "laplace"\nmeasured = "apart"')
    free, plan = load(survey(apart)).plan(), load(survey(fit, apart)).plan()
    lifted = {table.table: table for table in plan.tables}["ages in state A"]
    assert lifted.root_mean_squared_error == pytest.approx(0.1, rel=2e-4)
    assert lifted.root_mean_squared_error <= 0.1
    assert free.allocation["ages in state A"] < plan.allocation["ages in state A"]
    for table in ("people by county and sex", "income by state"):
        # To what rounding the whole loss down takes from them.
        assert float(plan.allocation[table]) == pytest.approx(float(free.allocation[table]), rel=1e-2)
    assert plan.choice.bound_by == "preferences"
    assert plan.choice.marginal_privacy_cost == pytest.approx(-plan.choice.marginal_data_loss, rel=1e-5)
    assert any("gets at least the share of the privacy loss that this takes" in note for note in plan.notes)
    assert not any("at least the share" in note for note in free.notes)
    # Together, the whole loss is lifted; left to itself, the plan does not do that.
    shared = 'measured = [["ages in state A", "people by county and sex", "income by state"]]'
    together = load(survey(fit, ('noise = "laplace"', f'noise = "laplace"\n{shared}'))).plan()
    assert together.choice.bound_by == "fitness for use"
    assert load(survey(fit)).plan().choice.welfare >= max(plan.choice.welfare, together.choice.welfare) * (1 + 1e-3)


def test_where_errors_take_long_the_others_are_compared_at_the_choice(survey: Any) -> None:
    absolute = ('unit = "USD per person^2"', 'unit = "USD per person"')
    path = survey(
        ('by = ["county", "sex"]\n', 'by = ["county", "sex"]\nloss = "absolute"\n'),
        absolute,
        ('noise = "laplace"\nstrategy = "workload"', 'noise = "best"\nstrategy = "identity"'),
        ("income = { lower = 0, upper = 200, grid = 10 }", "income = { lower = 0, upper = 20, grid = 10 }"),
    )
    plan = load(path).plan()
    rows = {row.noise: row for row in plan.comparisons if row.strategy == "identity"}
    assert [noise for noise, row in rows.items() if row.choice is not None] == [plan.technology.noise]
    beaten = next(row for noise, row in rows.items() if noise in ("laplace", "staircase") and row.choice is None)
    assert beaten.why.startswith("at the same epsilon its errors cost USD ")
    assert {row["noise"] for row in plan_document(plan)["technologies"]} == set(rows)


def test_what_takes_long_is_used_only_where_it_is_fit_for_use(tmp_path: Path) -> None:
    """In shares by value errors cost less than in even ones, but a table of little worth is not fit for use."""
    tables = (MixedTable(("sex",), 1.0), MixedTable(("ward",), 1e4))
    text = MixedProgram({"sex": '["f", "m"]', "ward": '["n", "e", "s"]'}, tables, cost=0.011).text()
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    program = load(tmp_path / "program.toml")
    limits = Limits(floors={"table 0": 1.0})
    for found, expected in ((limits, "evenly"), (Limits(), "by value")):
        builder = TechnologyBuilder(
            program.file.mechanism, program.workload, program.protection, program.welfare, limits=found
        )
        able = {
            (LAPLACE.name, "workload", shares): builder.technology(LAPLACE, "workload", shares)
            for shares in ("evenly", "by value")
        }
        first = next(iter(able))
        choice = choice_with(able[first], program.welfare, limits)
        assert isinstance(choice, Choice)
        assert choice.bound_by == "preferences"
        assert _best_of([*able], able, {first: choice}, builder)[2] == expected


def test_two_hundred_tables_apart_plan_in_seconds_and_one_floor_lifts_one_share(tmp_path: Path) -> None:
    """By hand: Laplace noise costs 2·c/ε_g², c = value·numbers, so ε_g³ = 4·c/(people·cost), or √2/error where fit."""
    levels = {name: 2 + number for number, name in enumerate("abcde")}
    columns = [*combinations(levels, 1), *combinations(levels, 2), *combinations(levels, 3)]
    tables = tuple(MixedTable(columns[number % 25], 10.0 + number) for number in range(200))
    attributes = {name: str([f"{name}{level}" for level in range(size)]) for name, size in levels.items()}
    text = MixedProgram(attributes, tables).text("apart").replace('noise = "best"', 'noise = "laplace"')
    lifted = '[[workload]]\nname = "table 7"\n'
    file = tmp_path / "program.toml"
    file.write_text(text.replace(lifted, lifted + FIT), encoding="utf-8")
    plan = load(file).plan()
    assert plan.technology.measured == "apart"
    people = 200_000 * 2.5
    shares = {
        f"table {number}": math.cbrt(4 * table.value * math.prod(levels[name] for name in table.by) / people)
        for number, table in enumerate(tables)
    }
    assert shares["table 7"] < math.sqrt(2) / 0.1
    shares["table 7"] = math.sqrt(2) / 0.1
    assert plan.choice.epsilon == pytest.approx(sum(shares.values()), rel=1e-4)
    assert {name: float(share) for name, share in plan.allocation.items()} == pytest.approx(shares, rel=1e-3)
    assert plan.choice.bound_by == "preferences"
