"""Counts and amounts in one program: what society loses by default, beside one measurement for all tables, each table
apart, what is done by hand (an even share of the loss for each table, or shares by
value), and the bound that no strategy gets below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load

RIVALS = {
    "together": "one measurement for all tables",
    "apart": "each table apart",
    "evenly": "by hand, an even share",
    "by value": "by hand, shares by value",
}
BY_HAND = ("evenly", "by value")


@dataclass(frozen=True)
class MixedTable:
    """A table of a mixed program; `value` is of a squared person, or of a squared unit of the amount."""

    by: tuple[str, ...]
    value: float
    sum_of: str | None = None


@dataclass(frozen=True)
class MixedProgram:
    """Attributes in TOML, tables, and what a unit of epsilon costs one of 200,000 persons, in USD."""

    attributes: dict[str, str]
    tables: tuple[MixedTable, ...]
    cost: float = 2.5
    hierarchies: str = ""

    def text(self, measured: str = "") -> str:
        """The program file; where `measured` is empty, the default decides."""
        attributes = "\n".join(f"attributes.{name} = {value}" for name, value in self.attributes.items())
        return f"""\
[program]
schema = 1
name = "mixed"

[population]
account = "insured persons"
unit = "person"
neighbors = "add-or-remove"
population_size = {{ value = 200_000, unit = "person", source = "assumed" }}
source = "claims.csv"
{attributes}
{self.hierarchies}
{"".join(_table(number, table) for number, table in enumerate(self.tables))}
[mechanism]
noise = "best"
{f'measured = "{measured}"' if measured else ""}

[preferences]
information_utility = "linear"
mean_disclosure_cost = {{ value = {self.cost}, unit = "USD per person per epsilon", source = "assumed" }}
"""

    def plan(self, measured: str = "") -> Plan:
        """The plan of the program."""
        with TemporaryDirectory() as folder:
            file = Path(folder, "program.toml")
            file.write_text(self.text(measured), encoding="utf-8")
            return load(file).plan()


def _table(number: int, table: MixedTable) -> str:
    amount = f'sum_of = "{table.sum_of}"\nunit = "USD"\n' if table.sum_of else ""
    unit = "USD" if table.sum_of else "person"
    return f"""
[[workload]]
name = "table {number}"
by = [{", ".join(f'"{name}"' for name in table.by)}]
{amount}value_of_accuracy = {{ value = {table.value!r}, unit = "USD per {unit}^2", source = "assumed" }}
"""


def _names(name: str, levels: range) -> str:
    return "[" + ", ".join(f'"{name}{level:02d}"' for level in levels) + "]"


def _amount(upper: int, grid: int) -> str:
    return f"{{ lower = 0, upper = {upper}, grid = {grid} }}"


_STATES = ", ".join(f"s{state} = {_names('n', range(5 * state, 5 * state + 5))}" for state in range(6))
_PEOPLE = {"region": _names("r", range(40)), "age": _names("a", range(6)), "condition": _names("c", range(6))}
_MEAN, _COUNT = 2_000.0, 5_000.0  # of an amount, and of the persons behind it: a mean is off by (dS − mean·dN)/N
CASES = {
    "counts and one sum": MixedProgram(
        {**_PEOPLE, "sex": _names("s", range(2)), "cost": _amount(100_000, 100)},
        (MixedTable(("region", "age", "condition"), 3.0), MixedTable(("region",), 1e-6, "cost")),
    ),
    "counts and three sums of different bounds": MixedProgram(
        {**_PEOPLE, "drugs": _amount(5_000, 50), "hospital": _amount(100_000, 1_000), "dentist": _amount(800, 50)},
        (
            MixedTable(("region", "age", "condition"), 1.0),
            MixedTable(("region", "age"), 1e-4, "drugs"),
            MixedTable(("region",), 1e-6, "hospital"),
            MixedTable(("age", "condition"), 1e-3, "dentist"),
        ),
    ),
    "a hierarchy and sums": MixedProgram(
        {"county": _names("n", range(30)), "age": _names("a", range(6)), "cost": _amount(50_000, 1_000)},
        (
            MixedTable(("county", "age"), 2.0),
            MixedTable(("state", "age"), 20.0),
            MixedTable(("county",), 1e-6, "cost"),
            MixedTable(("state",), 2e-5, "cost"),
        ),
        hierarchies=f'hierarchies.state = {{ attribute = "county", groups = {{ {_STATES} }} }}',
    ),
    "means, as ratios of sums and counts": MixedProgram(
        {**_PEOPLE, "cost": _amount(20_000, 100)},
        (
            MixedTable(("region",), 1e4 / _COUNT**2, "cost"),
            MixedTable(("region",), 1e4 * _MEAN**2 / _COUNT**2),
            MixedTable(("age",), 1e4 / _COUNT**2, "cost"),
            MixedTable(("age",), 1e4 * _MEAN**2 / _COUNT**2),
        ),
    ),
    "many small tables and a large one": MixedProgram(
        {**_PEOPLE, "sex": _names("s", range(2)), "cost": _amount(10_000, 100)},
        (
            MixedTable(("region", "age", "condition", "sex"), 0.5),
            *(MixedTable((name,), 50.0) for name in ("region", "age", "condition", "sex")),
            *(MixedTable((name,), 1e-5, "cost") for name in ("region", "sex")),
            MixedTable((), 1e-6, "cost"),
        ),
    ),
}


def compared(case: str, plan: Plan, apart: Plan) -> list[BenchmarkRow]:
    """What society loses under the plan and under each rival, and how far that and its errors are over the bound."""
    lost: dict[str, float] = {}
    for row in plan.comparisons:
        if row.choice is not None and (not row.study or row.measured in BY_HAND):
            lost[row.measured] = min(lost.get(row.measured, math.inf), -row.choice.welfare)
    lost["apart"] = -apart.choice.welfare  # as the program states it, and not only as the default tried it
    rows = [
        BenchmarkRow(case, -plan.choice.welfare, "USD that society loses", lost[rival], words, lost[rival])
        for rival, words in RIVALS.items()
        if rival in lost
    ]
    used, least = (plan.saving.at_choice[name] for name in ("used", "least"))
    limit, lost_at_least = plan.saving.limit, plan.saving.least_lost
    bound = None if limit is None else f"the bound for {limit.bound.valid_for}"
    gaps = {
        "times the least that errors could cost": None if used is None or not least else used / least,
        "times the least that society could lose": -plan.choice.welfare / lost_at_least if lost_at_least else None,
    }
    return [*rows, *(BenchmarkRow(case, gap, words, peer=bound) for words, gap in gaps.items())]


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Five programs, each beside its rivals."""
    found = []
    for case, program in CASES.items():
        progress(case)
        found += compared(case, program.plan(), program.plan("apart"))
    return found
