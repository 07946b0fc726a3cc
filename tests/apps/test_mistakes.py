"""Natural mistakes, and what each is told: in programs, records, commands, ledgers and Python calls.

Each message was read as somebody reads it who uses Dualmandate for the first time. It says what is wrong and what to
write instead; the parts that make it useful are asserted here, so that they stay.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dualmandate
from dualmandate.errors import Refusal

if TYPE_CHECKING:
    from tests.apps.conftest import Command

PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 5000, unit = "person", source = "census 2021" }
identifier      = "id"
source          = "town.csv"

[population.attributes]
region = ["R01", "R02", "R03"]
age    = { edges = [0, 18, 65, 116] }
sex    = { levels = ["f", "m"], missing = "not stated" }
cost   = { lower = 0, upper = 1000, grid = 10 }

[[workload]]
name              = "residents by region"
by                = ["region"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "a survey" }

[[workload]]
name              = "residents by age and sex"
by                = ["age", "sex"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "a survey" }

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2.5, unit = "USD per person per epsilon", source = "a survey" }
relative_privacy_weight = 1

[limits]
largest_epsilon = 10
"""
REGION, BY, AGE = '["R01", "R02", "R03"]', 'by                = ["region"]', "{ edges = [0, 18, 65, 116] }"
NAME, SIZE = 'name   = "town"', 'population_size = { value = 5000, unit = "person", source = "census 2021" }'

# What was typed in place of what, and what the message has to hold.
IN_PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a key misspelled": (
        "neighbors ",
        "neighbours ",
        ("line 8", "the key 'neighbours' is unknown", "did you mean 'neighbors'?\n"),
    ),
    "a section misspelled": ("[preferences]", "[preference]", ("line 32", "did you mean 'preferences'?\n")),
    "an attribute misspelled": (BY, 'by = ["regoin"]', ("line 21", "did you mean 'region'?")),
    "an attribute in capitals": (BY, 'by = ["REGION"]', ("line 21", "did you mean 'region'?")),
    "a number without a unit": (
        ', unit = "USD per person^2"',
        "",
        ("line 22", "does not state 'unit'", 'write unit = "USD per person^2"'),
    ),
    "a price without a unit": (
        ', unit = "USD per person per epsilon"',
        "",
        ("line 34", 'write unit = "USD per person per epsilon"'),
    ),
    "a number without a source": (
        ', source = "census 2021"',
        "",
        ("line 9", "a publication, a survey, or who decided it"),
    ),
    "a number without anything": (
        SIZE,
        "population_size = 5000",
        ("line 9", 'write { value = …, unit = "…", source = "…" }'),
    ),
    "a negative price": ("value = 2.5", "value = -2.5", ("line 34", "is negative", "at least 0")),
    "another unit": ("USD per person per", "USD per household per", ("line 34", "'household', which is not declared")),
    "no square": ("person^2", "person", ("line 22", "state it in USD per person^2\n")),
    "another currency": ("USD per person per", "EUR per person per", ("line 34", 'state currency = "EUR" once')),
    "a currency in words": (NAME, f'{NAME}\ncurrency = "Euro"', ("line 4", 'write "EUR"')),
    "a number in quotes": ("value = 5000", 'value = "5,000"', ("line 9", "write a number without quotes")),
    "commas in thousands": ("value = 5000", "value = 5,000", ("line 9", "without separators, as 5000 or 2.5")),
    "a decimal comma": ("value = 2.5", "value = 2,5", ("line 34", "without separators, as 5000 or 2.5")),
    "per cent": ("largest_epsilon = 10", "largest_epsilon = 10%", ("line 38", "as 0.1 for 10 %")),
    "a quote that is not closed": (NAME, 'name = "town', ("line 3", "close the quote where the text ends")),
    "quotes of a word processor": (NAME, "name = “town”", ("line 3", 'straight quotes: "…"')),
    "a text without quotes": ('"geometric"', "geometric", ("line 30", 'in quotes, as name = "town"')),
    "a bracket that is not closed": (REGION, REGION[:-1], ("close the bracket that is opened before this line",)),
    "a backslash": ('"town.csv"', r'"C:\users\town.csv"', ("line 11", "write / in a path", "'single quotes'")),
    "true in capitals": (
        'unit            = "person"',
        'unit = "person"\ndropping_is_public = TRUE',
        ("line 8", "in small letters"),
    ),
    "a key twice": (NAME, f"{NAME}\n{NAME}", ("line 4", "a key is written twice", "keep one of the two")),
    "no name": (NAME, "", ("does not state 'name'", "filed under the program's name")),
    "a schema to come": ("schema = 1", "schema = 2", ("line 2", "write schema = 1")),
    "a level twice": (REGION, '["R01", "R02", "R02"]', ("line 14", "lists the level 'R02' twice")),
    "edges that go down": (AGE, "{ edges = [0, 65, 18] }", ("line 15", "the bin edges of 'age' do not increase")),
    "bounds in the wrong order": (
        "lower = 0, upper = 1000",
        "lower = 1000, upper = 0",
        ("line 17", "state lower < upper"),
    ),
    "a grid that misses the bounds": ("grid = 10", "grid = 7", ("line 17", "choose bounds that lie on the grid")),
    "two descriptions": (REGION, '{ levels = ["R01"], from = 0, to = 3 }', ("line 14", "in exactly one way")),
    "a code list that is not there": (
        REGION,
        '{ codes = "regions.csv" }',
        ("line 14", "'regions.csv'", "there is no such file"),
    ),
    "too few labels": (
        REGION,
        f'{{ levels = {REGION}, labels = ["North"] }}',
        ("1 label is listed for the 3 levels", '{ R01 = "label", … }'),
    ),
    "a label of no level": (
        REGION,
        f'{{ levels = {REGION}, labels = {{ R31 = "North" }} }}',
        ("'R31'", "did you mean 'R03'?"),
    ),
    "a language in words": (
        REGION,
        f'{{ levels = {REGION}, labels_in = {{ french = ["N", "S", "E"] }} }}',
        ("the key french cannot be used", '"fr"'),
    ),
    "a missing level that is not there": (
        AGE,
        '{ edges = [0, 18], outside = "missing" }',
        ('declare age = { …, missing = "unknown" }',),
    ),
    "a level that is not there": (
        BY,
        f'{BY}\nwhere = {{ sex = "female" }}',
        ("its levels are 'f', 'm', 'not stated'",),
    ),
    "labels of no grouping": (
        "[[workload]]",
        '[population.hierarchies.side]\nattribute = "region"\ngroups = { N = ["R01"], S = ["R02", "R03"] }\n'
        'labels = { N = "North", S = "South" }\n\n[[workload]]',
        ("line 22", "under the grouping that they are of", 'labels = { GROUPING = { group = "label", … } }'),
    ),
    "a table twice": ("residents by age and sex", "residents by region", ("line 25", "give each its own name")),
    "an attribute twice": (BY, 'by = ["region", "region"]', ("names 'region' twice",)),
    "a sum of words": (BY, f'{BY}\nsum_of = "sex"\nunit = "person"', ("'sex' has no numbers to sum",)),
    "a sum without its unit": (BY, f'{BY}\nsum_of = "cost"', ('state unit = "…" of the sum',)),
    "noise misspelled": ('"geometric"', '"geometirc"', ("line 30", 'did you mean "geometric"?')),
    "neighbors in words": ("add-or-remove", "add or remove", ("line 8", 'did you mean "add-or-remove"?')),
    "records of nobody": (
        'identifier      = "id"',
        "most_records_per_unit = 3",
        ("line 10", "the column that names the unit"),
    ),
    "a cap of nothing": ("largest_epsilon = 10", "largest_epsilon = 0", ("line 38", "or leave the cap out")),
    "an epsilon": (
        "largest_epsilon = 10",
        "epsilon = 1",
        ("line 38", "nobody types a privacy loss", "largest_epsilon or largest_rho"),
    ),
    "a spreadsheet": ('"town.csv"', '"town.xlsx"', ("line 11", 'as "CSV UTF-8"')),
    "three mistakes": (
        SIZE,
        'population_siz = 5000\nunitt = "person"\nsources = "town.csv"',
        ("did you mean 'population_size'?", "Then mend", "line 10, population.unitt: the key 'unitt' is unknown"),
    ),
}


@pytest.mark.parametrize("mistake", IN_PROGRAMS)
def test_in_a_program(tmp_path: Path, mistake: str) -> None:
    old, new, parts = IN_PROGRAMS[mistake]
    assert old in PROGRAM
    (tmp_path / "program.toml").write_text(PROGRAM.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Refusal) as refused:
        dualmandate.load(tmp_path / "program.toml")
    message = f"{refused.value}\n"
    for part in ("program.toml", "why: ", "instead: ", *parts):
        assert part in message, message


def test_the_program_without_mistakes(tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    assert dualmandate.load(tmp_path).name == "town"


def records(*, head: str = "id,region,age,sex,cost", region: str = "R0", count: int = 400) -> str:
    lines = [f"p{n},{region}{n % 3 + 1},{n % 90},{'fm'[n % 2]},{n % 300}" for n in range(count)]
    return "\n".join([head, *lines]) + "\n"


# What was typed, and what the message has to hold.
IN_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a command misspelled": (("pln", "town"), ("Did you mean 'plan'?",)),
    "no program": (("plan",), ("missing argument 'PROGRAM.toml'", "dualmandate plan --help")),
    "a program that is not there": (("plan", "nowhere.toml"), ("there is no such file",)),
    "an option misspelled": (("plan", "town", "--ou", "report"), ("no such option: --ou", "--out")),
    "an epsilon": (("plan", "town", "--epsilon", "1"), ("the plan derives it", "largest_epsilon or largest_rho")),
    "records for a program": (
        ("plan", "town/town.csv"),
        ("is data, and no program", "dualmandate init town --from town/town.csv"),
    ),
    "a program for a plan": (
        ("approve", "town"),
        ("plan it first: dualmandate plan town/program.toml --out town/report",),
    ),
    "an account before all": (
        ("publish", "town"),
        ("dualmandate ledger open residents --unit person --cap 1 --ledger town/",),
    ),
    "a file for a folder": (("plan", "town", "--out", "town/program.toml"), ("cannot be a folder", "name a folder")),
    "a schema misspelled": (("schema", "porgram"), ("did you mean 'program'?",)),
    "a worked program misspelled": (("init", "blnk"), ("blank, block, national_accounts", "title_i")),
    "a draft without a name": (("init", "--from", "town/town.csv"), ("dualmandate init NAME --from FILE",)),
    "a folder for records": (("init", "x", "--from", "town"), ("it is a folder: name a file in it",)),
    "a compressed file": (("init", "x", "--from", "town.csv.gz"), ("gunzip --keep town.csv.gz",)),
    "a spreadsheet": (("init", "x", "--from", "town.xlsx"), ('as "CSV UTF-8"',)),
    "a spreadsheet in disguise": (("init", "x", "--from", "sheet.csv"), ("a spreadsheet under another name",)),
    "other letters": (("init", "x", "--from", "latin.csv"), ("iconv -f windows-1252 -t utf-8 latin.csv",)),
    "letters of two bytes": (("init", "x", "--from", "wide.csv"), ("iconv -f utf-16 -t utf-8 wide.csv",)),
    "lines of old": (("init", "x", "--from", "old.csv"), (r"tr '\r' '\n' < old.csv",)),
    "a header alone": (("init", "x", "--from", "header.csv"), ("there are no records",)),
    "no header": (("init", "x", "--from", "headless.csv"), ("looks like a record",)),
    "a database that is not there": (
        ("init", "x", "--from", "sqlite:///no.sqlite", "--table", "t"),
        ("there is no such file",),
    ),
    "a table of a file": (
        ("init", "x", "--from", "town/town.csv", "--table", "t"),
        ("leave --table out", "sqlite:///"),
    ),
    "a table by an identifier": (
        ("init", "x", "--from", "town/town.csv", "--by", "id"),
        ("likely to name units", "as --by region"),
    ),
    "a table by two words": (
        ("init", "x", "--from", "town/town.csv", "--by", "sex", "age"),
        ("with commas: --by …,age",),
    ),
    "an identifier in capitals": (
        ("init", "x", "--from", "town/town.csv", "--identifier", "ID"),
        ("did you mean 'id'?",),
    ),
    "a ledger from elsewhere": (("ledger", "show"), ("name the ledger with --ledger",)),
    "a cap of nothing": (("ledger", "open", "a", "--unit", "person", "--cap", "0"), ("state a positive epsilon",)),
    "a cap in words": (
        ("ledger", "open", "a", "--unit", "person", "--cap", "epsilon 3"),
        ("it is not a number", "10, 2.56"),
    ),
    "a cap with a comma": (
        ("ledger", "open", "a", "--unit", "person", "--cap", "0,5"),
        ("it is not a number", "10, 2.56"),
    ),
    "an audit of nothing": (("audit", "nowhere"), ("there is no such file",)),
    "an audit of a folder": (("audit", "empty"), ("empty",)),
}


def lay_out(folder: Path) -> None:
    (folder / "town").mkdir()
    (folder / "empty").mkdir()
    (folder / "town" / "program.toml").write_text(PROGRAM, encoding="utf-8")
    (folder / "town" / "town.csv").write_text(records(), encoding="utf-8")
    (folder / "town.csv.gz").write_bytes(gzip.compress(records().encode()))
    (folder / "sheet.csv").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    (folder / "latin.csv").write_bytes("größe,ort\n1,Köln\n".encode("latin-1"))
    (folder / "wide.csv").write_bytes(records().encode("utf-16"))
    (folder / "old.csv").write_bytes(records().replace("\n", "\r").encode())
    (folder / "header.csv").write_text(records(count=0), encoding="utf-8")
    (folder / "headless.csv").write_text(records().partition("\n")[2], encoding="utf-8")


@pytest.mark.parametrize("mistake", IN_COMMANDS)
def test_in_a_command(command: Command, tmp_path: Path, mistake: str) -> None:
    lay_out(tmp_path)
    before = {path.name for path in tmp_path.rglob("*")}
    words, parts = IN_COMMANDS[mistake]
    outcome = command(*words, *(["--yes"] if "--from" in words else []))
    assert outcome.status == 2, outcome
    for part in ("why: ", "instead: ", *parts):
        assert part in outcome.err, outcome.err
    assert "Traceback" not in outcome.err
    assert {path.name for path in tmp_path.rglob("*")} == before


def test_on_the_way_to_a_release(command: Command, tmp_path: Path) -> None:
    """Each mistake stands where it is made, from the first account to the release."""
    lay_out(tmp_path)
    town, ledger = tmp_path / "town", "town/.dualmandate/ledger.sqlite"

    def told(*words: str, parts: tuple[str, ...]) -> None:
        outcome = command(*words)
        assert outcome.status == 2, outcome
        for part in ("why: ", "instead: ", *parts):
            assert part in outcome.err, outcome.err

    plan, opening = "town/report/plan.json", ["ledger", "open", "residents", "--cap", "2", "--ledger", ledger]
    assert command("plan", "town", "--out", "town/report").status == 0
    told("approve", "town", parts=(f"approve its plan: dualmandate approve {plan}",))
    told("approve", plan, parts=("there is no project here", "dualmandate ledger open residents --unit person --cap 1"))
    assert command(*opening, "--unit", "person").status == 0
    for step in ("approve", "publish"):  # and never: open another account of the same people
        told(step, plan, parts=("no ledger was named", f"add to the command: --ledger {ledger}"))
    told(*opening, "--unit", "person", parts=("is open already", "spend from it"))
    (town / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    told("publish", plan, parts=("is not approved", f"dualmandate approve {plan}"))
    assert command("approve", plan).status == 0
    told("approve", plan, parts=("approved this plan already", "another person may approve it too"))
    told("publish", plan, parts=("were never checked", f"dualmandate check {plan}"))

    (town / "town.csv").write_text(records(head="id,region,age_years,sex,cost"), encoding="utf-8")
    told("check", plan, parts=("has no column 'age'", "rename the column"))
    (town / "town.csv").write_text(records(region="r0"), encoding="utf-8")
    assert command("check", "town").status == 0
    report = next((town / ".dualmandate" / "checks").rglob("check.json")).read_text(encoding="utf-8")
    assert '"r01"' in report
    assert "R01" in report  # what it was meant for
    (town / "town.csv").write_text(records(), encoding="utf-8")
    told("publish", plan, parts=("as they are now, were never checked",))
    assert command("check", "town").status == 0

    saved = (tmp_path / plan).read_text(encoding="utf-8")
    document = json.loads(saved)
    document["choice"]["epsilon"] /= 2
    (tmp_path / plan).write_text(json.dumps(document), encoding="utf-8")
    told(
        "publish", plan, parts=("was changed after it was made", "dualmandate plan town/program.toml --out town/report")
    )
    (tmp_path / plan).write_text(saved, encoding="utf-8")

    key = town / ".dualmandate" / "key"
    key.chmod(0o644)
    told("publish", plan, parts=("open to others (mode 0644)", "chmod 600"))
    key.chmod(0o600)
    key.rename(tmp_path / "key")
    told("publish", plan, parts=("the ledger key cannot be read", "DUALMANDATE_KEY_FILE"))
    (tmp_path / "key").rename(key)

    assert command("publish", plan).status == 0
    told("publish", plan, parts=("exists already", "--again makes another one"))
    told("publish", plan, "--resume", "7", parts=("no release '7'",))
    in_python(town / "releases" / "residents-1")


def in_python(folder: Path) -> None:
    release = dualmandate.load_release(folder)
    age_and_sex = "residents by age and sex"
    mistakes: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
        "a number for a program": (lambda: dualmandate.load(5), ('load("program.toml")',)),  # type: ignore[arg-type]
        "an empty program": (lambda: dualmandate.load({}), ("write a table [program]", "Then mend population")),
        "another folder": (
            lambda: dualmandate.load_release(folder.parent),
            ("a folder with a release.json", "name it: "),
        ),
        "a table misspelled": (lambda: release["residents by regoin"], ("did you mean 'residents by region'?",)),
        "a level in small letters": (
            lambda: release.interval("residents by region", region="r01"),
            ("did you mean 'R01'?",),
        ),
        "a column in capitals": (
            lambda: release.interval("residents by region", Region="R01"),
            ("did you mean 'region'?",),
        ),
        "an age of nobody": (lambda: release.interval(age_and_sex, age=200, sex="f"), ("[65, 116]",)),
        "per cent": (lambda: release.interval(age_and_sex, sex="f", probability=95), ("strictly between 0 and 1",)),
        "a file for a plan": (lambda: dualmandate.publish("plan.json", "town.csv", "x"), ("instead",)),  # type: ignore[arg-type]
    }
    for mistake, (call, parts) in mistakes.items():
        with pytest.raises(Refusal) as refused:
            call()
        for part in parts:
            assert part in str(refused.value), mistake
