"""`dualmandate tabulate --check`: counts for the curator, on a terminal or as a document, and not one value."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command

CANARY = "canary7Qx"
PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 90_000, unit = "person", source = "made up" }
identifier      = "id"
most_records_per_unit = 2
source          = "people.csv"
unknown_where_impossible = "age"
structural_zeros = [{ ward = "north", age = 0 }]
attributes.ward = { levels = ["north", "south"] }
attributes.age  = { from = 0, to = 9, missing = "?" }

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50_000, unit = "USD per person^2", source = "made up" }

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""
# One outside, one impossible, one without a ward, one that is no number, three of one person, one of nobody.
RECORDS = [
    *(f"east,3,{CANARY}1", "north,0,b", ",4,c", f"south,{CANARY},d"),
    *("south,1,e", "south,2,e", "north,99,e", "south,5,"),
]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(["ward,age,id", *RECORDS, ""]), encoding="utf-8")
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def test_the_document_holds_counts_and_says_that_it_is_confidential(program: Path, command: Command) -> None:
    before = {path: path.read_bytes() for path in program.iterdir()}
    outcome = command("tabulate", program, "--check", "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schema("tabulate-check"))
    assert document["label"] == "confidential"
    assert document["records_read"] == len(RECORDS)
    assert document["attributes"] == {
        "ward": {"outside": 1, "outside_rule": "drop", "null": 1, "null_rule": "drop"},
        "age": {"outside": 2, "outside_rule": "clamp", "null": 0, "null_rule": "missing"},
    }
    assert (document["impossible"], document["unidentified"], document["excess"]) == (1, 1, 1)
    assert (document["repeated"], document["refused"]) == (0, [])
    assert "CONFIDENTIAL" in outcome.err
    assert not any(letter.isdigit() for letter in outcome.err)  # standard error is often a log: no count there
    assert CANARY not in outcome.out + outcome.err
    assert {path: path.read_bytes() for path in program.iterdir()} == before


def test_duplicates_are_counted_where_nobody_is_identified(program: Path, command: Command) -> None:
    """Three records are like an earlier one in ward and age, the columns that the program reads; `id` is not."""
    rows = ["south,1,e", "south,1,f", "south,1,e", "north,2,a", "north,2,a", "east,,a"]
    (program / "people.csv").write_text("\n".join(["ward,age,id", *rows, ""]), encoding="utf-8")
    text = PROGRAM.replace('identifier      = "id"\n', "").replace("most_records_per_unit = 2\n", "")
    assert text != PROGRAM
    (program / "program.toml").write_text(text, encoding="utf-8")
    document = command("tabulate", program, "--check", "--json").document
    jsonschema.validate(document, schema("tabulate-check"))
    assert (document["identifier"], document["repeated"], document["records_read"]) == (None, 3, len(rows))


def test_what_is_refused_is_said_and_the_status_stays_0(program: Path, command: Command) -> None:
    outcome = command("tabulate", program / "program.toml", "--check", "--refuse", "ward", "--refuse", "age", "--json")
    assert outcome.status == 0
    assert outcome.document["refused"] == ["ward", "age"]
    jsonschema.validate(outcome.document, schema("tabulate-check"))
    assert command("tabulate", program, "--check", "--refuse", "job", "--json").document["code"] == "invalid domain"


def test_words_only_on_a_terminal(program: Path) -> None:
    words = [str(Path(sys.executable).parent / "dualmandate"), "tabulate", "program.toml", "--check"]
    piped = subprocess.run(words, cwd=program, capture_output=True, text=True, check=False)
    assert (piped.returncode, piped.stdout) == (2, "")
    assert "terminal only" in piped.stderr
    ours, theirs = pty.openpty()
    shown = subprocess.run(words, cwd=program, stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    text = os.read(ours, 2**16).decode()
    os.close(ours)
    assert shown.returncode == 0, shown.stderr
    lines = text.replace("\r", "").splitlines()
    assert lines[0].startswith("CONFIDENTIAL")
    assert lines[-1] == lines[0]
    assert [line.split() for line in lines if line.startswith(("ward", "age"))] == [
        ["ward", "1", "drop", "1", "drop"],
        ["age", "2", "clamp", "0", "missing"],
    ]
    assert "in structural zeros: 1 ('age' becomes unknown where that is possible)" in lines
    assert "beyond 2 of one person: 1 (left out)" in lines
    assert CANARY not in text + shown.stderr.decode()


@pytest.mark.parametrize(
    ("pieces", "words", "code"),
    [
        (("", ""), ["--json"], "invalid request"),
        (('source          = "people.csv"\n', ""), ["--check", "--json"], "missing key"),
        (('"people.csv"', '"elsewhere.csv"'), ["--check", "--json"], "unreadable source"),
        (("attributes.age ", "attributes.job "), ["--check", "--json"], "invalid domain"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    program: Path, command: Command, pieces: tuple[str, str], words: list[str], code: str
) -> None:
    (program / "program.toml").write_text(PROGRAM.replace(*pieces), encoding="utf-8")
    outcome = command("tabulate", program, *words)
    assert outcome.status == 2
    assert outcome.document["code"] == code
    assert CANARY not in outcome.out + outcome.err


def test_a_damaged_file_does_not_sing(program: Path, command: Command) -> None:
    (program / "people.csv").write_text(f'ward,age,id\n"north{CANARY},1,a\n', encoding="utf-8")
    outcome = command("tabulate", program, "--check", "--json")
    assert outcome.status == 0
    assert outcome.document["unreadable"] == outcome.document["records_read"] == 1
    assert CANARY not in outcome.out + outcome.err
