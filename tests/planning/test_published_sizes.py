"""What is too large to be published is not planned: another way is taken where there is one."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from dualmandate import load
from dualmandate.errors import TooLarge
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population.domain import LARGEST_DENSE_HISTOGRAM

ATTRIBUTES = [f"a{number}" for number in range(10)]
LEVELS = ", ".join(f'"v{level}"' for level in range(8))
HEAD = """
[program]
schema = 1
name = "large"

[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 1e6, unit = "person", source = "drawn" }
"""
TAIL = """
[mechanism]
noise = "best"
STRATEGY

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 1, unit = "USD per person per epsilon", source = "drawn" }
"""
TABLE = """
[[workload]]
name = "{name}"
by = [{by}]
value_of_accuracy = {{ value = 1, unit = "USD per person^2", source = "drawn" }}
"""


TOGETHER = 'strategy = "optimized"\nmeasured = [["a0 a1", "a1 a2", "selected"]]'
SELECTED = """
[[workload]]
name = "selected"
by = ["a1"]
where = { a0 = ["v1"] }
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "drawn" }
"""


def planned(folder: Path, tables: list[tuple[str, ...]], strategy: str = "", besides: str = "") -> Plan:
    attributes = "\n".join(f"attributes.{name} = [{LEVELS}]" for name in ATTRIBUTES)
    asked = (
        "".join(TABLE.format(name=" ".join(by), by=", ".join(f'"{name}"' for name in by)) for by in tables) + besides
    )
    (folder / "program.toml").write_text(HEAD + attributes + asked + TAIL.replace("STRATEGY", strategy))
    return load(folder).plan()


def test_tables_are_measured_where_a_strategy_could_not_be_published(tmp_path: Path) -> None:
    plan = planned(tmp_path, [*combinations(ATTRIBUTES[:4], 2)], besides=SELECTED)
    assert plan.program.domain.size == 8**10 > LARGEST_DENSE_HISTOGRAM
    assert plan.technology.strategy == "workload"
    release_spec_of_plan(plan).check()
    assert plan.notes[0].startswith(
        "The tables themselves are measured, because an optimized strategy cannot serve: a strategy over the "
    )


def test_a_stated_strategy_that_cannot_be_published_is_refused_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match=r"a strategy over the 1\.07e\+09 cells") as caught:
        planned(tmp_path, [("a0", "a1"), ("a1", "a2")], TOGETHER, SELECTED)
    assert caught.value.where is not None
    assert caught.value.where.key == "mechanism.strategy"
    assert 'strategy = "workload"' in str(caught.value.instead)


def test_marginals_are_published_by_their_strategy(tmp_path: Path) -> None:
    plan = planned(tmp_path, [*combinations(ATTRIBUTES[:4], 2)], 'strategy = "optimized"')
    assert plan.program.domain.size > LARGEST_DENSE_HISTOGRAM
    order = release_spec_of_plan(plan)
    order.check()
    assert order.marginals is not None


def test_a_study_of_any_size_is_compared(tmp_path: Path) -> None:
    """It is never published."""
    path = tmp_path / "program.toml"
    planned(tmp_path, [("a0", "a1"), ("a1", "a2")])
    path.write_text(path.read_text().replace('noise = "best"', 'noise = "laplace"\nstrategy = "optimized"'))
    plan = load(path).plan()
    assert plan.study
    assert plan.technology.strategy == "optimized"
