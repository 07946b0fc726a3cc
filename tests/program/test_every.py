"""One entry of a program file that stands for many tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate import load
from dualmandate.errors import InvalidValue, Refusal, TooLarge
from dualmandate.program.every import MOST_TABLES

ENTRY = """\
[[workload]]
name = "people"
value_of_accuracy = { value = 3, unit = "USD per person^2", source = "made up", time_base = "once" }

[[workload]]
name = "pairs"
ENTRY
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "made up", time_base = "once" }
"""
PROGRAM = """\
[program]
schema = 1
name = "many"

[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
one_record_per_unit = { source = "made up" }
population_size = { value = 60, unit = "person", source = "made up" }

[population.attributes]
sex = ["f", "m"]
age = { from = 0, to = 9 }
region = ["n", "s", "e"]
work = ["no", "yes"]

[population.hierarchies.coast]
attribute = "region"
groups = { coastal = ["n", "s"], inland = ["e"] }

WORKLOAD

[mechanism]
noise = "geometric"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2.5, unit = "USD per person per epsilon", source = "made up", time_base = "once" }
relative_privacy_weight = 1
"""


def program(folder: Path, entry: str) -> Path:
    path = folder / "program.toml"
    path.write_text(PROGRAM.replace("WORKLOAD", ENTRY.replace("ENTRY", entry)), encoding="utf-8")
    return path


def test_every_two_of_all_attributes(tmp_path: Path) -> None:
    found = load(program(tmp_path, "every = 2"))
    names = ["sex × age", "sex × region", "sex × work", "age × region", "age × work", "region × work"]
    assert [table.name for table in found.workload.tables] == ["people", *(f"pairs: {each}" for each in names)]
    assert found.workload.table("pairs: age × region").query_count == 30
    assert all(table.value_of_accuracy.value == 1 for table in found.file.workload[1:])  # type: ignore[union-attr]


def test_every_two_of_some_names_in_the_order_of_by(tmp_path: Path) -> None:
    found = load(program(tmp_path, 'every = 2\nby = ["coast", "age", "sex"]\nwhere = { work = "yes" }'))
    assert [table.by for table in found.file.workload[1:]] == [("coast", "age"), ("coast", "sex"), ("age", "sex")]
    assert found.workload.table("pairs: coast × sex").query_count == 4


def test_it_is_signed_as_it_was_typed_and_planned_table_by_table(tmp_path: Path) -> None:
    found = load(program(tmp_path, "every = 3"))
    signed = found.document.content["workload"]
    assert isinstance(signed, list)
    assert signed[1]["every"] == 3
    assert "by" not in signed[1]
    assert len(found.plan().frontier.tables) == 1 + 4


@pytest.mark.parametrize(
    ("entry", "kind", "key"),
    [
        ("every = 5", InvalidValue, "every"),
        ('every = 2\nby = ["sex"]', InvalidValue, "every"),
        ("every = 2\ntotal = { value = 60, unit = 'person', source = 'made up' }", InvalidValue, "total"),
        ("every = 2\nwhere = { sex = 'x' }", Refusal, "where.sex"),
    ],
)
def test_a_refusal_names_the_entry(entry: str, kind: type[Refusal], key: str, tmp_path: Path) -> None:
    with pytest.raises(kind) as refused:
        load(program(tmp_path, entry))
    where = refused.value.where
    assert where is not None
    assert where.key is not None
    assert where.key.startswith("workload[1]")
    assert where.key.endswith(key.split(".")[-1])
    assert where.line is not None
    assert where.line >= 28


def test_so_many_tables_are_refused(tmp_path: Path) -> None:
    attributes = "\n".join(f'x{n} = ["a", "b"]' for n in range(60))
    text = program(tmp_path, "every = 4").read_text().replace('work = ["no", "yes"]', attributes)
    (tmp_path / "large.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TooLarge, match="tables by every 4 of 63 attributes") as refused:
        load(tmp_path / "large.toml")
    assert f"{MOST_TABLES:,}" in refused.value.why
