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
from tests.random_programs import random_program

import dualmandate
from dualmandate.errors import Refusal
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words

PROGRAMS = int(os.environ.get("DUALMANDATE_PROGRAMS", "300"))
BATCHES = 20


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
        path.write_text(random_program(seed), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                planned += plan_or_refuse(path)
            except Exception as error:
                error.add_note(f"the program of seed {seed}")
                raise
    tell(f"random programs: {planned} of {len(seeds)} planned", tried=len(seeds))
    assert planned >= len(seeds) / 5


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
