"""A program with a geography, a chain of groupings, exact county totals and stated shares; and its records."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RHO = Fraction(64, 25)
SHARES = {
    "people by sex": Fraction(1, 10),
    "counties by sex": Fraction(3, 20),
    "counties by sex and age": Fraction(1, 20),
    "people by sex and age": Fraction(1, 10),
    "tracts by sex": Fraction(1, 10),
    "tracts by sex and age": Fraction(1, 10),
    "blocks by sex": Fraction(1, 5),
    "blocks by sex and age": Fraction(1, 5),
}
BY = {
    "people by sex": ("sex",),
    "people by sex and age": ("sex", "age"),
    "counties by sex": ("county", "sex"),
    "counties by sex and age": ("county", "sex", "age"),
    "tracts by sex": ("tract", "sex"),
    "tracts by sex and age": ("tract", "sex", "age"),
    "blocks by sex": ("block", "sex"),
    "blocks by sex and age": ("block", "sex", "age"),
}
COUNTIES, TRACTS, BLOCKS = "123456", "abc", "wxyz"
CODES = [f"{county}{tract}{block}" for county in COUNTIES for tract in TRACTS for block in BLOCKS]
HEADER = """\
[program]
schema = 1
name   = "towns"

[population]
account            = "residents"
unit               = "person"
neighbors          = "replace-one"
population_size    = { value = 1_000, unit = "person", source = "made up" }
source             = "people.parquet"
dropping_is_public = true
attributes.block   = { codes = "blocks.csv" }
attributes.age     = { from = 0, to = 3 }
attributes.sex     = ["f", "m"]

[population.hierarchies.areas]
attribute = "block"
prefixes  = { county = 1, tract = 2 }

[[invariants]]
name = "people by county"
by   = ["county"]

[mechanism]
noise    = "gaussian"
strategy = "workload"
measured = "apart"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 0.0001, unit = "USD per person per rho", source = "made up" }

[limits]
largest_rho = 2.56

[publication]
engine = "ENGINE"
synthetic_records = true
"""
TABLE = """
[[workload]]
name  = "{name}"
by    = [{by}]
share = "{share}"
value_of_accuracy = {{ value = 50, unit = "USD per person^2", source = "made up" }}
"""


def write_towns(folder: Path, engine: str = "local") -> Path:
    """The program, its code list and its records; where the program lies."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "blocks.csv").write_text("".join(f"{line}\n" for line in ("block", *CODES)), encoding="utf-8")
    generator, number = np.random.default_rng(3), 1_000
    columns = {
        "block": generator.choice(CODES, number),
        "age": generator.integers(0, 4, number),
        "sex": generator.choice(["f", "m"], number),
    }
    pq.write_table(pa.table(columns), folder / "people.parquet")
    tables = [
        TABLE.format(name=name, by=", ".join(f'"{each}"' for each in BY[name]), share=f"{share} * 1/1")
        for name, share in SHARES.items()
    ]
    program = folder / "program.toml"
    program.write_text(HEADER.replace("ENGINE", engine) + "".join(tables), encoding="utf-8")
    return program
