"""A plan is a promise: what no machine could publish of a program is refused when it is planned, where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate import load
from dualmandate.errors import Refusal

PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "replace-one"
dropping_is_public = true
population_size = { value = 900, unit = "person", source = "made up" }
source          = "residents.csv"
attributes.ward = ["north", "east", "south"]
attributes.sex  = ["f", "m"]

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[[workload]]
name = "sexes"
by   = ["sex"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[[invariants]]
name = "sex exactly"
by   = ["sex"]

[mechanism]
noise    = "geometric"
strategy = "workload"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""
DROPPED = ("dropping_is_public = true\n", "")
WORTH = 'value = 50, unit = "USD per person^2"'
UNITS = 'dropping_is_public = true\nidentifier = "id"\n'


def refused(folder: Path, *pieces: tuple[str, str]) -> Refusal:
    text = PROGRAM
    for old, new in pieces:
        assert old in text
        text = text.replace(old, new)
    file = folder / "program.toml"
    file.write_text(text, encoding="utf-8")
    program = load(file)  # a check of its records needs no plan
    with pytest.raises(Refusal) as found:
        program.plan()
    where = found.value.where
    assert where is not None
    assert where.line is not None
    assert where.key is not None
    assert where.key.split(".")[-1] in text.splitlines()[where.line - 1]
    return found.value


@pytest.mark.parametrize(
    ("pieces", "key", "words"),
    [
        ((DROPPED,), "population.neighbors", "records may be dropped under replace-one neighbors"),
        (
            (("dropping_is_public = true\n", UNITS),),
            "population.identifier",
            "beside totals that are published exactly",
        ),
        (
            (('name = "sex exactly"', 'name = "sexes"'),),
            "workload[1].name",
            "two tables of a release are called 'sexes'",
        ),
        ((('name = "sexes"', 'name = "number of records"'),), "workload[1].name", "'number of records'"),
        ((('"residents.csv"', '"resi\\u0064ents.csv"'),), "population.source", "the name of the confidential file"),
        ((("value = 2,", "value = 2e35,"), (WORTH, WORTH.replace("50", "1e-9"))), "mechanism", "a scale of about"),
    ],
    ids=["dropped records", "identified units", "an exact total", "the number of records", "the source", "broad noise"],
)
def test_what_could_not_be_published_is_not_planned(
    pieces: tuple[tuple[str, str], ...], key: str, words: str, tmp_path: Path
) -> None:
    found = refused(tmp_path, *pieces)
    assert words in found.what
    assert found.where is not None
    assert found.where.key == key


def test_groups_of_tables_with_one_name_hide_no_table(tmp_path: Path) -> None:
    """A group is named after its tables, and a table may be called like two others."""
    table = PROGRAM[PROGRAM.index("[[workload]]") : PROGRAM.index("[[workload]]", PROGRAM.index("[[workload]]") + 1)]
    both = table.replace('"wards"', '"wards + sexes"').replace('["ward"]', '["ward", "sex"]')
    apart = 'measured = [["wards", "sexes"], ["wards + sexes"]]'
    found = refused(tmp_path, ("[[invariants]]", f"{both}[[invariants]]"), ("[mechanism]", f"[mechanism]\n{apart}"))
    assert found.what == "two groups of tables are called 'wards + sexes'"


def test_a_study_is_compared_whatever_could_be_published(tmp_path: Path) -> None:
    """Its noise is never drawn, and nobody approves it."""
    text = PROGRAM.replace(*DROPPED).replace('"geometric"', '"laplace"')
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    assert load(tmp_path / "program.toml").plan().study
