"""`dualmandate check`: what does not fit, for the curator alone, and the ledger that knows of it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate import load
from dualmandate.apps.check import CHECK_FILE, NOT_RECORDED, check
from dualmandate.apps.publish import publish
from dualmandate.errors import NotChecked
from dualmandate.ledger import EventKind, Ledger, open_ledger, read_key
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


INSIDE = Path(".dualmandate", "checks", "program")
OPEN = ("ledger", "open", "residents", "--unit", "person", "--cap", "10", "--by", "Ann")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def the_ledger(folder: Path) -> Ledger:
    state = folder / ".dualmandate"
    return open_ledger(state / "ledger.sqlite", read_key(state / "key"))


def test_the_document_holds_what_does_not_fit_and_says_that_it_is_confidential(program: Path, command: Command) -> None:
    before = {path: path.read_bytes() for path in program.iterdir()}
    outcome = command("check", program, "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schema("check"))
    assert document["label"] == "confidential"
    assert document["records_read"] == len(RECORDS)
    ward, age = (document["attributes"][name] for name in ("ward", "age"))
    assert [ward[key] for key in ("outside", "outside_rule", "null", "null_rule")] == [1, "drop", 1, "drop"]
    assert [age[key] for key in ("outside", "outside_rule", "null", "null_rule")] == [2, "clamp", 0, "missing"]
    assert (age["below"], age["above"], age["distinct"]) == (0, 1, 2)
    assert ward["values"] == [{"value": "east", "records": 1, "note": None}]
    notes = {each["value"]: each["note"] for each in age["values"]}
    assert notes == {CANARY: "no number", "99": "above 9"}
    assert (document["impossible"], document["unidentified"], document["excess"]) == (1, 1, 1)
    assert (document["units"], document["several"], document["dropped"]) == (5, 1, 4)
    assert (document["repeated"], document["refused"], document["recorded"]) == (0, [], False)
    assert "CONFIDENTIAL" in outcome.err
    assert NOT_RECORDED in outcome.err
    # Standard error is often a log: no count and no value there.
    assert not any(letter.isdigit() for letter in outcome.err)
    assert CANARY not in outcome.err
    assert {path: path.read_bytes() for path in program.iterdir() if path.is_file()} == before
    assert json.loads((program / INSIDE / CHECK_FILE).read_text(encoding="utf-8")) == document
    assert [mode(path) for path in (program / INSIDE / CHECK_FILE, program / INSIDE)] == [0o600, 0o700]
    assert mode(program / ".dualmandate") == 0o700
    assert (program / INSIDE / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_spelling_is_told_from_another_value(program: Path, command: Command) -> None:
    """Case, blanks and near words; the most frequent values first, and only some of many."""
    rows = [*["North,1,a"] * 3, *["south ,2,b"] * 2, "noth,3,c", *(f"w{n},1,{n}" for n in range(40))]
    (program / "people.csv").write_text("\n".join(["ward,age,id", *rows, ""]), encoding="utf-8")
    ward = command("check", program, "--json").document["attributes"]["ward"]
    assert (ward["outside"], ward["distinct"], len(ward["values"])) == (46, 43, 20)
    assert ward["values"][:2] == [
        {"value": "North", "records": 3, "note": "differs only in case from north"},
        {"value": "south ", "records": 2, "note": "differs only in blanks around it from south"},
    ]
    assert {"value": "noth", "records": 1, "note": "did you mean 'north'?"} in ward["values"]


def test_duplicates_are_counted_where_nobody_is_identified(program: Path, command: Command) -> None:
    """Three records are like an earlier one in ward and age, the columns that the program reads; `id` is not."""
    rows = ["south,1,e", "south,1,f", "south,1,e", "north,2,a", "north,2,a", "east,,a"]
    (program / "people.csv").write_text("\n".join(["ward,age,id", *rows, ""]), encoding="utf-8")
    text = PROGRAM.replace('identifier      = "id"\n', "").replace("most_records_per_unit = 2\n", "")
    assert text != PROGRAM
    (program / "program.toml").write_text(text, encoding="utf-8")
    document = command("check", program, "--json").document
    jsonschema.validate(document, schema("check"))
    assert (document["identifier"], document["repeated"], document["records_read"]) == (None, 3, len(rows))
    assert (document["units"], document["several"], document["dropped"]) == (0, 0, 1)


def test_what_is_refused_is_said_and_the_status_stays_0(program: Path, command: Command) -> None:
    outcome = command("check", program / "program.toml", "--refuse", "ward", "--refuse", "age", "--json")
    assert outcome.status == 0
    assert outcome.document["refused"] == ["ward", "age"]
    jsonschema.validate(outcome.document, schema("check"))
    assert command("check", program, "--refuse", "job", "--json").document["code"] == "invalid domain"


def test_words_only_on_a_terminal(program: Path) -> None:
    words = [str(Path(sys.executable).parent / "dualmandate"), "check", "program.toml"]
    piped = subprocess.run(words, cwd=program, capture_output=True, text=True, check=False)
    assert piped.returncode == 0
    assert not any(letter.isdigit() for letter in piped.stdout)
    assert CANARY not in piped.stdout + piped.stderr
    (program / INSIDE / CHECK_FILE).unlink()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1"}
    shown = subprocess.run(words, cwd=program, stdout=theirs, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(theirs)
    text = os.read(ours, 2**16).decode()
    os.close(ours)
    assert shown.returncode == 0, shown.stderr
    assert CANARY not in shown.stderr.decode()
    lines = text.replace("\r", "").splitlines()
    assert lines[0].startswith("CONFIDENTIAL")
    assert [line.split() for line in lines if line.startswith(("ward ", "age "))] == [
        ["ward", "1", "drop", "1", "drop"],
        ["age", "2", "clamp", "0", "missing"],
    ]
    assert "  clipped: 1 at the upper bound" in lines
    assert f"  '{CANARY}'  1  no number" in lines
    assert "in structural zeros: 1 ('age' becomes unknown where that is possible)" in lines
    assert "beyond 2 of one person: 1 (left out)" in lines
    assert f"in no table: 4 of {len(RECORDS)} records" in lines
    assert (program / INSIDE / CHECK_FILE).is_file()


def test_what_a_value_says_to_a_terminal_is_not_obeyed(program: Path) -> None:
    from dualmandate.publication.checking import LONGEST_TOLD, shown

    assert shown("a\x1b[2Jb\n") == "'a\\x1b[2Jb\\n'"
    assert len(shown("x" * 500)) < LONGEST_TOLD + 5


def test_a_folder_that_others_may_enter_is_refused(program: Path, command: Command) -> None:
    (program / "open").mkdir(mode=0o755)
    outcome = command("check", program, "--internal", program / "open", "--json")
    assert (outcome.status, outcome.document["code"]) == (2, "cannot write")
    kept = command("check", program, "--internal", program / "kept", "--json")
    assert kept.status == 0
    assert mode(program / "kept" / CHECK_FILE) == 0o600


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        (('source          = "people.csv"\n', ""), "missing key"),
        (('"people.csv"', '"elsewhere.csv"'), "unreadable source"),
        (("attributes.age ", "attributes.job "), "invalid domain"),
    ],
)
def test_what_cannot_be_checked_is_refused(program: Path, command: Command, pieces: tuple[str, str], code: str) -> None:
    (program / "program.toml").write_text(PROGRAM.replace(*pieces), encoding="utf-8")
    outcome = command("check", program, "--json")
    assert outcome.status == 2
    assert outcome.document["code"] == code
    assert CANARY not in outcome.out + outcome.err
    assert not (program / ".dualmandate").exists()


def test_a_damaged_file_is_checked_to_its_end(program: Path, command: Command) -> None:
    (program / "people.csv").write_text(f'ward,age,id\n"north{CANARY},1,a\n', encoding="utf-8")
    outcome = command("check", program, "--json")
    assert outcome.status == 0
    assert outcome.document["unreadable"] == outcome.document["records_read"] == 1
    assert CANARY not in outcome.out + outcome.err


def test_only_a_checked_state_of_the_records_is_published(program: Path, command: Command) -> None:
    """By the commands that each one names: another record, or another rule, is another state."""
    (program / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    for words in (OPEN, ("plan", "program.toml", "--out", "report"), ("approve", "report/plan.json", "--by", "Ben")):
        outcome = command(*words)
        assert outcome.status == 0, outcome.err
    assert "  dualmandate check report/plan.json\n" in outcome.out
    refused = command("publish", "report/plan.json", "--by", "Eve", "--json")
    assert (refused.status, refused.document["code"]) == (2, "not checked")
    assert refused.document["instead"].endswith(": dualmandate check report/plan.json")
    assert CANARY not in refused.out + refused.err
    assert the_ledger(program).spent("residents") == 0
    assert the_ledger(program).events()[-1].kind is EventKind.REFUSED

    checked = command("check", "report/plan.json", "--by", "Cat")
    assert checked.status == 0
    assert checked.out.rstrip().endswith("next:\n  dualmandate publish report/plan.json")
    entry = the_ledger(program).events()[-1]
    assert (entry.kind, entry.by, entry.account) == (EventKind.CHECKED, "Cat", "residents")
    assert set(entry.document()) == {"state", "against", "source"}
    line = "ward,age,id\nsouth,1,e\n"
    records = (program / "people.csv").read_text(encoding="utf-8")
    (program / "people.csv").write_text(line, encoding="utf-8")
    again = command("publish", "report/plan.json", "--by", "Eve", "--json")
    assert {key: again.document[key] for key in ("code", "what", "why")} == {
        key: refused.document[key] for key in ("code", "what", "why")
    }
    (program / "people.csv").write_text(records, encoding="utf-8")
    published = command("publish", "report/plan.json", "--by", "Eve")
    assert published.status == 0, published.err
    release = program / "releases" / "residents-1"
    facts = json.loads((release / "release.json").read_text(encoding="utf-8"))
    assert "unchecked" not in facts
    assert the_ledger(program).release("residents-1").checked == entry.document()["state"]
    assert published.out.rstrip().endswith("next:\n  dualmandate audit releases/residents-1 --out audit/residents-1")


def test_a_plan_says_where_its_account_has_less_left(
    program: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being asked to count it; a ledger that cannot be opened hinders no plan."""
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    (program / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    assert command(*("0.01" if word == "10" else word for word in OPEN)).status == 0
    planned = command("plan", "program.toml", "--out", "report")
    assert planned.status == 0, planned.err
    assert "and 'residents' has 0.01 left; so it would not be published" in planned.out
    typed = planned.out.splitlines()[-1].split()
    assert typed == ["dualmandate", "plan", "program.toml", "--out", "report", "--ledger", ".dualmandate/ledger.sqlite"]
    within = command(*typed[1:])
    assert within.status == 0, within.err
    assert "counted: the account 'residents' has epsilon 0.01 left" in within.out
    assert within.out.splitlines()[-1] == "  dualmandate approve report/plan.json"
    (program / ".dualmandate" / "ledger.sqlite").write_bytes(b"damaged")
    alone = command("plan", "program.toml", "--out", "report")
    assert alone.status == 0, alone.err
    assert "would not be published" not in alone.out


def test_other_rules_are_another_check(program: Path, command: Command) -> None:
    assert command(*OPEN, "--ledger", program / ".dualmandate" / "ledger.sqlite").status == 0
    words = ["check", "program.toml", "--ledger", ".dualmandate/ledger.sqlite"]
    said = []
    for text in (
        PROGRAM,
        PROGRAM,
        PROGRAM.replace("to = 9", "to = 8"),
        PROGRAM.replace('name   = "town"', 'name = "t"'),
    ):
        (program / "program.toml").write_text(text, encoding="utf-8")
        assert command(*words).status == 0
        said.append(the_ledger(program).events()[-1].document())
    against = [each["against"] for each in said]
    assert against[0] == against[1] == against[3] != against[2]
    assert len(the_ledger(program).events()) == 1 + len(said)  # as many entries whatever was there


def test_unchecked_is_a_word_that_is_recorded_and_published(program: Path, command: Command) -> None:
    (program / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    for words in (OPEN, ("plan", "program.toml", "--out", "report"), ("approve", "report/plan.json", "--by", "Ben")):
        assert command(*words).status == 0
    published = command("publish", "report/plan.json", "--by", "Eve", "--unchecked")
    assert published.status == 0, published.err
    assert "were not checked" in published.out
    release = program / "releases" / "residents-1"
    facts = json.loads((release / "release.json").read_text(encoding="utf-8"))
    jsonschema.validate(facts, schema("release"))
    assert facts["unchecked"] is True
    assert "Nobody had checked the records" in (release / "index.html").read_text(encoding="utf-8")
    entry = the_ledger(program).release("residents-1")
    assert (entry.unchecked, entry.checked, entry.number) == (True, None, 1)
    assert "unchecked" in command("ledger", "show").out
    assert command("publish", "report/plan.json", "--by", "Eve", "--unchecked", "--resume", "1").status == 0


def test_in_python_the_same_holds(program: Path, command: Command) -> None:
    (program / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    for words in (OPEN, ("plan", "program.toml", "--out", "report"), ("approve", "report/plan.json", "--by", "Ben")):
        assert command(*words).status == 0
    plan, ledger = load(program).plan(), the_ledger(program)
    source = plan.program.source
    assert source is not None
    with pytest.raises(NotChecked, match="never checked"):
        publish(plan, source, ledger, out=program / "out", by="Eve")
    assert ledger.spent("residents") == 0
    report = check(plan, source, ledger, by="Cat")
    assert report.findings.dropped == 4
    assert CANARY not in repr(report) + repr(report.findings)
    assert publish(plan, source, ledger, out=program / "out", by="Eve").folder == program / "out" / "residents-1"


def test_each_command_names_the_next_from_wherever_it_is_run(program: Path, command: Command) -> None:
    """From a folder above, with blanks in names, without a project: every printed line is pasted as it stands."""
    folder = program / "my town"
    folder.mkdir()
    (folder / "people.csv").write_text("ward,age,id\nnorth,1,a\n", encoding="utf-8")
    (folder / "wards 2025.toml").write_text(PROGRAM.replace('"residents"', '"all residents"'), encoding="utf-8")
    typed, steps = "dualmandate plan 'my town'", list[str]()
    while steps[-1:] != ["audit"]:
        words = shlex.split(typed)[1:]
        steps.append(words[0] if words[0] != "ledger" else " ".join(words[:2]))
        if steps[-1] == "audit":
            break
        outcome = command(*words)
        assert outcome.status == 0, (typed, outcome.err)
        lines = outcome.out.splitlines()
        assert "next:" in lines, outcome.out
        typed = lines[lines.index("next:") + 1].strip()
    assert steps == ["plan", "plan", "ledger open", "approve", "check", "publish", "audit"]
    assert (folder / "releases" / "all-residents-1" / "release.json").is_file()
