"""Whatever a program asks for in keys that are accepted, it plans or is refused: nothing divides by zero.

`DUALMANDATE_PROGRAMS=5000` plans so many, as `make bench` does.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path

import pytest
from tests.conftest import Tell
from tests.random_programs import fuller_program, random_program

import dualmandate
from dualmandate.errors import Refusal
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.dossier import PAGE, dossier_texts
from dualmandate.report.plan_words import plan_words

PROGRAMS = int(os.environ.get("DUALMANDATE_PROGRAMS", "300"))
BATCHES = 20
FULLER = 11  # One program in so many has more around its choice.


def plan_or_refuse(path: Path) -> bool:
    """Whether the program plans; its document and its words are made too."""
    try:
        plan = dualmandate.load(path).plan()
    except Refusal:
        return False
    json.dumps(plan_document(plan), allow_nan=False)
    assert plan_words(plan)
    assert 0 < plan.choice.epsilon < math.inf
    for table in plan.tables:
        assert 0 <= table.root_mean_squared_error < math.inf
    return True


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_program_plans_or_is_refused(batch: int, tmp_path: Path, tell: Tell) -> None:
    path, planned = tmp_path / "program.toml", 0
    seeds = range(batch, PROGRAMS, BATCHES)
    for seed in seeds:
        path.write_text((fuller_program if seed % FULLER == 0 else random_program)(seed), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                planned += plan_or_refuse(path)
            except Exception as error:
                error.add_note(f"the program of seed {seed}")
                raise
    tell(f"random programs: {planned} of {len(seeds)} planned", tried=len(seeds))
    assert planned >= len(seeds) / 5


def test_errors_that_cost_nothing_by_hand_have_no_share(tmp_path: Path) -> None:
    """At a large loss noise that is drawn by hand errs so rarely that its cost is 0 in floats."""
    path = tmp_path / "program.toml"
    path.write_text(random_program(725), encoding="utf-8")
    assert plan_or_refuse(path)
    assert PAGE in dossier_texts(dualmandate.load(path).plan())


ALWAYS_ZERO = """
[program]
schema = 1
name = "zero"

[population]
account = "people"
unit = "person"
neighbors = "replace-one"
population_size = { value = 1000, unit = "person", source = "drawn" }
source = "data.csv"
dropping_is_public = true
attributes.a = ["yes", "no"]
attributes.b = { from = 0, to = 1, missing = "?" }
structural_zeros = [{ b = [1] }]

[[workload]]
name = "people"
by = ["a"]
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "drawn" }

[[workload]]
name = "nothing"
by = ["a"]
sum_of = "b"
unit = "USD"
value_of_accuracy = { value = 1, unit = "USD per USD^2", source = "drawn" }

[mechanism]
noise = "best"
strategy = "optimized"
measured = MEASURED

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 1, unit = "USD per person per epsilon", source = "drawn" }
"""


@pytest.mark.parametrize("measured", ['[["people"], ["nothing"]]', '"together"'])
def test_a_sum_that_structural_zeros_make_0_is_refused_or_exact(measured: str, tmp_path: Path) -> None:
    """Beside a public number of records every cell is looked at, also where nothing is asked."""
    path = tmp_path / "program.toml"
    path.write_text(ALWAYS_ZERO.replace("MEASURED", measured), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan_or_refuse(path) == (measured == '"together"')


NOTHING_MEASURED = """
[program]
schema = 1
name = "decided"

[population]
account = "people"
unit = "person"
neighbors = "replace-one"
population_size = { value = 10, unit = "person", source = "drawn" }
source = "data.csv"
dropping_is_public = true
attributes.a = { from = 0, to = 4 }
attributes.b = { edges = [0, 1, 5], missing = "?" }
attributes.c = { lower = 5, upper = 10, grid = 5 }
structural_zeros = [{ a = [0, 1, 2, 3] }]

[[invariants]]
name = "exact"
by = ["a", "b"]

[[workload]]
name = "amounts"
by = ["a", "b", "c"]
value_of_accuracy = { value = 3, unit = "USD per person^2", source = "drawn" }

[[workload]]
name = "some amounts"
by = ["c"]
where = { b = ["?"] }
value_of_accuracy = { value = 4, unit = "USD per person^2", source = "drawn" }

[mechanism]
noise = "best"
strategy = "optimized"
failure_probability = 1e-6

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.1, unit = "USD per person per epsilon", source = "drawn" }
"""


def test_levels_that_no_record_has_leave_nothing_to_measure(tmp_path: Path) -> None:
    path = tmp_path / "program.toml"
    path.write_text(NOTHING_MEASURED, encoding="utf-8")
    assert plan_or_refuse(path)


def beside_totals(noise: str, attributes: str, totals: list[tuple[list[str], str]], tables: str) -> str:
    """A program with exact totals that cross, and an optimized strategy."""
    exact = "".join(
        f'[[invariants]]\nname = "exact {number}"\nby = {json.dumps(by)}\nwhere = {where}\n'
        for number, (by, where) in enumerate(totals)
    )
    measure = "epsilon" if noise == "geometric" else "rho"
    return f"""
[program]
schema = 1
name = "crossing"
[population]
account = "people"
unit = "person"
neighbors = "replace-one"
population_size = {{ value = 1, unit = "person", source = "drawn" }}
source = "data.csv"
dropping_is_public = true
records_changing_together = 2
{attributes}
{exact}{tables}
[mechanism]
noise = "{noise}"
strategy = "optimized"
measured = "together"
[preferences]
information_utility = "linear"
mean_disclosure_cost = {{ value = 1, unit = "USD per person per {measure}", source = "drawn" }}
[limits]
largest_{measure} = 3
"""


def table(name: str, by: list[str], value: float, more: str = "") -> str:
    worth = f'{{ value = {value}, unit = "USD per person^2", source = "drawn" }}'
    return f'[[workload]]\nname = "{name}"\nby = {json.dumps(by)}\nvalue_of_accuracy = {worth}\n{more}\n'


GRID = "{ lower = -5, upper = 5, grid = 5 }"
CROSSING = {
    "no record can change alone": beside_totals(  # so rows of whole numbers had no error to be compared with
        "gaussian",
        f"attributes.a = {GRID}\nattributes.b = {GRID}",
        [(["a"], "{}"), (["b"], "{}")],
        table("all", [], 0.4729)
        + table("cells", ["a", "b"], 157.2)
        + table("rows", ["a"], 0.002087)
        + table("columns", ["b"], 0.1239),
    ),
    "weights die out": beside_totals(
        "geometric",
        f'attributes.a = ["a0", "a1"]\nattributes.b = ["b0", "b1"]\nattributes.c = {GRID}',
        [(["a", "c", "b"], '{ b = ["b1"] }'), (["b", "c"], '{ a = ["a0"] }')],
        table("table 0", ["a", "b"], 35060)
        + table("table 1", ["a"], 0.1488, 'sum_of = "c"\nunit = "person"')
        + table("table 2", [], 14360)
        + table("table 3", [], 19.13, 'where = { b = ["b0", "b1"] }'),
    ),
}


@pytest.mark.parametrize("text", CROSSING.values(), ids=CROSSING)
def test_a_strategy_beside_totals_that_cross_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    assert plan_or_refuse(tmp_path / "program.toml")


def small(noise: str, neighbors: str, cost: str, worth: str) -> str:
    return f"""
[program]
schema = 1
name = "small"
[population]
account = "people"
unit = "person"
neighbors = "{neighbors}"
population_size = {{ value = 1000, unit = "person", source = "drawn" }}
source = "data.csv"
dropping_is_public = true
attributes.a = ["yes", "no"]
[[workload]]
name = "people"
by = ["a"]
{worth}
[mechanism]
noise = "{noise}"
strategy = "workload"
[preferences]
{cost}
"""


EDGES = {
    "costs that leave the numbers above a floor": small(
        "laplace",
        "add-or-remove",
        'information_utility = "exponential"\n'
        'mean_disclosure_cost = { value = 2, unit = "USD per person", source = "drawn" }',
        'value_of_accuracy = { value = 1, unit = "USD per person^2", source = "drawn", standard_error = 0.2 }\n'
        "fitness_for_use = { largest_root_mean_squared_error = 0.003 }",
    ),
    "errors that cost nothing any more": small(
        "gaussian",
        "replace-one",
        'information_utility = "linear"\n'
        'mean_disclosure_cost = { value = 2, unit = "USD per person per rho", source = "drawn" }',
        'loss = "tail"\nthreshold = { value = 300, unit = "person", source = "drawn" }\n'
        'value_of_accuracy = { value = 161400, unit = "USD", source = "drawn" }\n'
        "fitness_for_use = { largest_root_mean_squared_error = 0.1 }",
    ),
}


@pytest.mark.parametrize("text", EDGES.values(), ids=EDGES)
def test_a_floor_far_beyond_what_anybody_would_choose(text: str, tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan_or_refuse(tmp_path / "program.toml")
