"""What shares a measurement: the default is never worse than any way that the file could state instead."""

from __future__ import annotations

import math
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.random_programs import random_program, to_toml

from dualmandate.benchmarks.mixed import BY_HAND, CASES, MixedProgram, MixedTable, compared
from dualmandate.errors import Refusal
from dualmandate.mechanism.technologies import NOISE_LAWS
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
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
        if row.choice is not None and (not row.study or row.measured in BY_HAND) and row.strategy != "identity":
            assert default.choice.welfare >= row.choice.welfare - slack, row.kind
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
        plans = []
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
    assert groups == {"counts": ["table 0", "table 1"], "sums of cost": ["table 2"]}
    [geometric] = {name for name, law in plan.technologies.items() if law is plan.technology}
    split = builder.technology(NOISE_LAWS[geometric], "workload", "by unit")
    shares = split.shares(plan.loss)
    assert set(shares) == set(groups)
    assert 0 < sum(shares.values()) <= plan.loss.amount
