"""What shares a measurement: the default is never worse than any way that the file could state instead."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dualmandate.benchmarks.mixed import CASES, MixedProgram, MixedTable, compared
from dualmandate.mechanism.technologies import NOISE_LAWS
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.planning.technology import WORTHWHILE, TechnologyBuilder
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words


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
    assert "against Laplace noise on the tables, in even shares, what is done by hand." in words
    assert plan_document(plan)["technologies"][1]["measured"] == "apart"
    rows = compared("case", plan, plan)
    assert [row.met for row in rows] == [True, True, True, None]
    assert rows[-1].ours == pytest.approx(1.97, abs=0.01)  # the bound knows what a dollar is worth beside a person


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
    assert default.choice.welfare >= planned(tmp_path, program, "apart").choice.welfare - slack
    for row in default.comparisons:
        if row.choice is not None and (not row.study or row.measured == "evenly") and row.strategy != "identity":
            assert default.choice.welfare >= row.choice.welfare - slack, row.kind
    assert [group.name for group in release_spec_of_plan(default).groups] == list(default.allocation)
    ways = {row.measured for row in default.comparisons if row.noise == default.technology.noise}
    assert {"together", "apart"} <= ways
    least = default.saving.at_choice["least"]
    assert least is None or least <= default.choice.data_loss * (1 + 1e-9)


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
