"""Redistricting as a program file: what an agency would type to publish the tables of every area, at stated shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from dualmandate.benchmarks.rhode_island import DIGITS, LEVELS, QUARTERS, RACES, Blocks
from dualmandate.publication.consistency.gls_weights import BudgetAllocation

BY = ((), ("voting_age", "hispanic"), ("race",), ("quarters",))  # what each table of the chain adds to the one before
CHAIN = ("total", "voting age × Hispanic", "× race", "× quarters")
BLOCK_LIST = "blocks.csv"
Terms = tuple[Fraction, Sequence[float]]  # the loss, and what a squared error in each table of the chain costs

_HEADER = """\
[program]
schema      = 1
name        = "redistricting"
description = "Generated persons of Rhode Island in 2010, for a benchmark"

[population]
account            = "persons"
unit               = "person"
neighbors          = "replace-one"
population_size    = {{ value = {persons}, unit = "person", source = "2010 Census" }}
source             = "{source}"
dropping_is_public = true

[population.attributes]
block      = {{ codes = "{block_list}" }}
voting_age = ["no", "yes"]
hispanic   = ["no", "yes"]
race       = {{ from = 0, to = {last_race} }}
quarters   = {{ from = 0, to = {last_quarters} }}

[population.hierarchies.areas]
attribute = "block"
prefixes  = {{ {prefixes} }}

[mechanism]
noise    = "gaussian"
strategy = "workload"
measured = "apart"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 0.000001, unit = "USD per person per rho", source = "so low that the limit decides" }}

[limits]
largest_rho = {rho}

[publication]
formats = []
"""
_TABLE = """
[[workload]]
name  = "{name}"
by    = [{by}]
share = "{share}"
value_of_accuracy = {{ value = {value}, unit = "USD per person^2", source = "assumed" }}
"""


def write_program(blocks: Blocks, sharing: BudgetAllocation, folder: Path, *, persons: Path, terms: Terms) -> Path:
    """The program file and its list of blocks, in an existing folder; where the program lies."""
    rho, values = terms
    text = _HEADER.format(
        persons=int(blocks.persons.sum()),
        source=persons.absolute(),
        block_list=BLOCK_LIST,
        last_race=RACES - 1,
        last_quarters=QUARTERS - 1,
        prefixes=", ".join(f'"{level}" = {digits}' for level, digits in zip(LEVELS[1:-1], DIGITS, strict=True)),
        rho=float(rho),
    )
    (folder / BLOCK_LIST).write_text("".join(f"{line}\n" for line in ("block", *blocks.codes)), encoding="utf-8")
    program = folder / "program.toml"
    program.write_text(text + "".join(_tables(sharing, values)), encoding="utf-8")
    return program


def _tables(sharing: BudgetAllocation, values: Sequence[float]) -> Iterator[str]:
    for level, k in sharing.shares():
        yield _TABLE.format(
            name=table_name(level, k),
            by=", ".join(f'"{name}"' for name in columns(level, k)),
            share=" * ".join(f"{part.numerator}/{part.denominator}" for part in sharing.parts(level, k)),
            value=values[k],
        )


def columns(level: int, k: int) -> tuple[str, ...]:
    """What the table of a level and a grouping is by; the state is everybody."""
    return (*LEVELS[level : level + 1 if level else 0], *(name for names in BY[: k + 1] for name in names))


def table_name(level: int, k: int) -> str:
    """What the table of a level and a grouping is called."""
    return f"{LEVELS[level]}, {CHAIN[k]}"
