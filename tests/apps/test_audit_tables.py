"""`dualmandate audit` on folders of tables: limits of time in words and JSON, threads, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest

from dualmandate.audit.options import AuditOptions
from dualmandate.population import machine
from dualmandate.report.documents import schemas

if TYPE_CHECKING:
    from tests.apps.conftest import Command

HEAD = '[tables]\nschema = 1\nname = "tables"\n'
PEOPLE = '\n[population]\nattributes.sex = ["F", "M"]\nattributes.age = ["child", "adult"]\n'
COUNTS = '\n[[counts]]\nname = "by sex"\nfile = "sex.csv"\nby = ["sex"]\n'
TOTAL = '\n[[counts]]\nname = "everybody"\nfile = "all.csv"\n'
PLACE = 'place = "block"\n'
COUNTED = HEAD + PEOPLE + COUNTS
BOTH = COUNTED + TOTAL
PLACES = HEAD + PLACE + PEOPLE + COUNTS + TOTAL
SEX = "sex,count\nF,3\nM,2\n"
AMOUNTS = '\n[[magnitudes]]\nname = "pay"\nfile = "pay.csv"\nby = ["county", "sector"]\n'
PAY = "county,sector,value\na,x,1\na,total,1\ntotal,x,1\ntotal,total,1\n"

CONTRADICTING = """\
county,sector,value
a,x,(D)
a,y,(D)
a,total,3
b,x,(D)
b,y,(D)
b,total,3
total,x,3
total,y,4
total,total,(D)
"""


def written(place: Path, schema: str | None, files: dict[str, str]) -> Path:
    place.mkdir(exist_ok=True)
    if schema is not None:
        (place / "tables.toml").write_text(schema)
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def square(side: int, *, seed: int = 1) -> str:
    """A table of amounts with totals, all of whose other cells are suppressed."""
    inner = np.random.default_rng(seed).integers(0, 40, (side, side))
    lines = ["county,sector,value"]
    lines += [f"{i},{j},(D)" for i in range(side) for j in range(side)]
    lines += [f"{i},total,{inner[i].sum()}" for i in range(side)] + [
        f"total,{j},{inner[:, j].sum()}" for j in range(side)
    ]
    return "\n".join([*lines, f"total,total,{inner.sum()}"]) + "\n"


def cube(side: int) -> tuple[str, str]:
    """Counts of three attributes by each two of them, exactly: what is in the cells is hard to tell."""
    people = np.random.default_rng(2).integers(0, 4, (side, side, side))
    schema, files = HEAD + "\n[population]\n", {}
    levels = json.dumps([f"v{i}" for i in range(side)])
    schema += "".join(f"attributes.{name} = {levels}\n" for name in "abc")
    for one, other, axis in (("a", "b", 2), ("a", "c", 1), ("b", "c", 0)):
        schema += f'\n[[counts]]\nname = "{one} by {other}"\nfile = "{one}{other}.csv"\nby = ["{one}", "{other}"]\n'
        table = people.sum(axis=axis)
        rows = [f"v{i},v{j},{table[i, j]}" for i in range(side) for j in range(side)]
        files[f"{one}{other}.csv"] = "\n".join([f"{one},{other},count", *rows]) + "\n"
    return schema, json.dumps(files)


HARD: dict[str, tuple[str, dict[str, str], str]] = {
    "suppressed cells": (HEAD + AMOUNTS, {"pay.csv": square(9)}, "of 81 cells wider than they may be"),
    "exact counts": (cube(7)[0], json.loads(cube(7)[1]), "left 1 of 1 places open"),
    "persons": (
        HEAD
        + '\n[population]\nattributes.age = { from = 0, to = 99 }\nattributes.sex = ["F", "M"]\n'
        + '\n[[statistics]]\nname = "means"\nfile = "means.csv"\nof = "age"\nby = ["sex"]\n',
        {"means.csv": "sex,count,median,mean\n,28,40,41.3\nF,13,35,36.2\n"},
        "ended the search in 1 of 1 places",
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_a_limit_of_time_is_said_and_nothing_wrong_is_claimed(command: Command, tmp_path: Path, name: str) -> None:
    schema, files, words = HARD[name]
    place = written(tmp_path / "hard", schema, files)
    spoken = command("audit", place, "--seconds", "0.001")
    assert spoken.status == 0
    assert words in spoken.out
    assert "not done" in spoken.out
    document = command("audit", place, "--seconds", "0.001", "--json").document
    jsonschema.validate(document, schemas.schema("audit"))
    assert document["findings"]
    for finding in document["findings"]:
        assert words in finding["partial"]
        assert finding["success"].get("successes", 0) == 0  # nothing follows there, and nothing is said to


def test_findings_do_not_depend_on_processors(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        f"{block},{sex},{'(D)' if (block + i) % 3 == 0 else (block * 7 + i) % 4}"
        for block in range(90)
        for i, sex in enumerate("FM")
    ]
    everybody = [f"{block},{(block * 7) % 4 + (block * 7 + 1) % 4}" for block in range(90)]
    files = {
        "sex.csv": "\n".join(["block,sex,count", *lines]) + "\n",
        "all.csv": "\n".join(["block,count", *everybody]) + "\n",
    }
    place = written(tmp_path / "blocks", PLACES, files)
    found = []
    for processors in (1, 4):
        monkeypatch.setattr(machine, "processors", lambda processors=processors: processors)
        assert AuditOptions().effort.workers == processors
        found.append(command("audit", place, "--json").document)
    assert found[0] == found[1]


def blocks(everybody: str) -> dict[str, str]:
    return {"sex.csv": "block,sex,count\n1,F,3\n1,M,2\n2,F,0\n2,M,0\n", "all.csv": f"block,count\n{everybody}"}


def test_a_block_of_nobody(command: Command, tmp_path: Path) -> None:
    place = written(tmp_path / "blocks", PLACES, blocks("1,5\n2,0\n"))
    document = command("audit", place, "--json").document
    first = document["findings"][0]
    assert (first["success"]["successes"], first["success"]["trials"]) == (1, 2)
    nobody = {
        name: "\n".join(row for row in text.splitlines() if row[0] != "1") for name, text in blocks("2,0\n").items()
    }
    place = written(tmp_path / "nobody", PLACES, nobody)
    (only,) = command("audit", place, "--json").document["findings"]
    assert only["success"]["value"] == 1.0


WRONG: dict[str, tuple[str | None, dict[str, str], str, str, tuple[str, int | None]]] = {
    # schema, files, code, words, the file and line that are named
    "no schema": (None, {"sex.csv": SEX}, "invalid file", "holds nothing to audit", ("folder", None)),
    "not toml": ("[tables\n", {}, "invalid file", "", ("tables.toml", 1)),
    "no file": (COUNTED, {}, "invalid file", "cannot be read", ("tables.toml", 11)),
    "no column": (COUNTED, {"sex.csv": "gender,count\nF,1\n"}, "invalid value", "'sex'", ("tables.toml", 12)),
    "no value": (
        COUNTED,
        {"sex.csv": "sex,n\nF,1\nM,1\n"},
        "invalid value",
        "no column 'count'",
        ("tables.toml", None),
    ),
    "no place": (
        HEAD + PLACE + PEOPLE + COUNTS,
        {"sex.csv": SEX},
        "invalid value",
        "no column 'block'",
        ("tables.toml", 4),
    ),
    "no level": (COUNTED, {"sex.csv": "sex,count\nX,1\nM,1\n"}, "invalid tables", "'X' is not a level", ("sex.csv", 2)),
    "a total among levels": (
        COUNTED,
        {"sex.csv": SEX + "total,5\n"},
        "invalid tables",
        "'total' is not a level",
        ("sex.csv", 4),
    ),
    "twice": (COUNTED, {"sex.csv": SEX + "F,3\n"}, "invalid tables", "stands twice", ("sex.csv", 4)),
    "negative": (COUNTED, {"sex.csv": "sex,count\nF,-3\nM,2\n"}, "invalid tables", "-3 is no count", ("sex.csv", 2)),
    "a half": (COUNTED, {"sex.csv": "sex,count\nF,3\nM,2.5\n"}, "invalid tables", "2.5 is no count", ("sex.csv", 3)),
    "no number": (
        COUNTED,
        {"sex.csv": "sex,count\nF,x\nM,2\n"},
        "invalid tables",
        "'x' is not a number",
        ("sex.csv", 2),
    ),
    "a short row": (COUNTED, {"sex.csv": "sex,count\nF\nM,2\n"}, "invalid file", "cannot be used", ("sex.csv", 2)),
    "an empty file": (COUNTED, {"sex.csv": ""}, "invalid file", "cannot be used", ("tables.toml", 11)),
    "contradiction": (
        BOTH,
        {"sex.csv": SEX, "all.csv": "count\n6\n"},
        "invalid tables",
        "by sex: F = 3; by sex: M = 2; everybody = 6",
        ("tables.toml", None),
    ),
    "contradiction in every place": (
        PLACES,
        blocks("1,4\n2,1\n"),
        "invalid tables",
        "in 1, the tables contradict each other",
        ("tables.toml", None),
    ),
    "contradiction of suppressed counts": (
        BOTH,
        {"sex.csv": "sex,count\nF,(D)\nM,9\n", "all.csv": "count\n6\n"},
        "invalid tables",
        "by sex: M = 9; everybody = 6",
        ("tables.toml", None),
    ),
    "amounts that do not add up": (
        HEAD + AMOUNTS,
        {"pay.csv": PAY.replace("a,x,1", "a,x,2")},
        "invalid tables",
        "'the parts of total, x by county' does not add up",
        ("tables.toml", None),
    ),
    "amounts that contradict": (
        HEAD + AMOUNTS,
        {"pay.csv": CONTRADICTING},
        "invalid tables",
        "contradict each other: the parts of total, total by county; the parts of total, total by sector",
        ("tables.toml", None),
    ),
    "amounts without totals": (
        HEAD + AMOUNTS,
        {"pay.csv": "county,sector,value\na,x,1\na,y,2\n"},
        "invalid tables",
        "lacks the cell",
        ("tables.toml", 7),
    ),
    "an amount twice": (HEAD + AMOUNTS, {"pay.csv": PAY + "a,x,1\n"}, "invalid tables", "stands twice", ("pay.csv", 6)),
    "a negative amount": (
        HEAD + AMOUNTS,
        {"pay.csv": PAY.replace("a,x,1", "a,x,-1")},
        "invalid tables",
        "an amount of -1",
        ("pay.csv", 2),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_refused_where_it_stands(command: Command, tmp_path: Path, name: str) -> None:
    schema, files, code, words, (file, line) = WRONG[name]
    place = written(tmp_path / "folder", schema, files)
    outcome = command("audit", place, "--out", tmp_path / "out", "--json")
    document: dict[str, Any] = outcome.document
    assert outcome.status == 2
    assert document["code"] == code
    assert words in document["what"]
    assert document["why"]
    assert document["instead"]
    assert str(document["where"]["file"]).endswith(file)
    if line is not None:
        assert document["where"]["line"] == line
    assert not (tmp_path / "out").exists()


def test_true_tables_judge_inside_alone(command: Command, tmp_path: Path) -> None:
    pay = "county,sector,value\na,x,(D)\na,y,(D)\na,total,102\nb,x,(D)\nb,y,(D)\nb,total,53\n"
    pay += "total,x,5\ntotal,y,150\ntotal,total,155\n"
    true = pay
    for cell, amount in (("a,x", 2), ("a,y", 100), ("b,x", 3), ("b,y", 50)):
        true = true.replace(f"{cell},(D)", f"{cell},{amount}")
    place = written(tmp_path / "pay", HEAD + AMOUNTS, {"pay.csv": pay})
    inside = written(tmp_path / "true", None, {"pay.csv": true})
    assert command("audit", place, "--confidential", inside).status == 2  # and no folder for what they show
    typed = ("audit", place, "--confidential", inside, "--internal", tmp_path / "i", "--out", tmp_path / "o", "--json")
    outcome = command(*typed)
    assert outcome.status == 0
    assert "confidential" not in (tmp_path / "o" / "audit.json").read_text() + outcome.out
    found = json.loads((tmp_path / "i" / "audit.json").read_text())
    jsonschema.validate(found, schemas.schema("audit"))
    (judged,) = (each for each in found["findings"] if each["reference"] == "confidential")
    assert "fail a protection interval of ±20 %" in judged["claim"]
    assert (judged["success"]["successes"], judged["success"]["trials"]) == (2, 4)
