"""Programs drafted from files that nobody prepared: they can be planned, and what was seen is marked."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet
from tests.publication.written_files import write_statistical_file

import dualmandate
from dualmandate import load
from dualmandate.apps.drafting import INTERNAL, NOTES
from dualmandate.program import read_program

if TYPE_CHECKING:
    from tests.apps.conftest import Command

CANARY = "canary-7Q3"
AMOUNT = 987_654.25  # stands in records, and nowhere without its mark
MARKED_HEADER = "are seen in the data: replace by a public source before you approve"


def rows(count: int = 400, seed: int = 1) -> list[dict[str, str]]:
    """Records with whatever goes wrong in files that people keep."""
    draw = np.random.default_rng(seed)
    regions = ["North", "north ", "South", f"{CANARY} East", "NA", "", "n/a"]
    return [
        {
            "Person ID": f"{CANARY}{number:06d}",
            "Région": str(draw.choice(regions)),
            "age (years)": str(draw.integers(0, 99)) if draw.random() < 0.95 else "",
            "born": f"{draw.integers(1990, 2001)}-{draw.integers(1, 13):02d}-{draw.integers(1, 29):02d}",
            "income": f"{draw.lognormal(9, 1):.2f}" if number else str(AMOUNT),
            "sex": str(draw.choice(["1", "2", "9"])),
            "paid": f"{draw.integers(1, 900)},{draw.integers(10, 99)}",
            "seen on": f"{draw.integers(1, 28)}.{draw.integers(1, 12)}.2024",
            "remark": f"{CANARY} said {draw.random():.9f} words and more of them",
        }
        for number in range(count)
    ]


def write_csv(
    path: Path, records: Sequence[Mapping[str, str]], *, delimiter: str = ",", encoding: str = "utf-8"
) -> Path:
    def quoted(value: str) -> str:
        return f'"{value}"' if delimiter in value else value

    lines = [delimiter.join(map(quoted, records[0])), *(delimiter.join(map(quoted, each.values())) for each in records)]
    path.write_bytes(("\n".join(lines) + "\n").encode())
    return path


def unmarked(folder: Path) -> str:
    """All that a drafted folder says, but what is marked and what is internal."""
    text = (folder / "program.toml").read_text(encoding="utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    population = content["population"]
    marks = population["seen_in_the_data"]
    hidden = set()
    for mark in marks:
        kept = population
        table, _, name = mark.partition(".")
        name = json.loads(name) if name.startswith('"') else name
        if name:
            described = kept[table].pop(name)
            hidden |= {described["codes"]} if "codes" in described else set()
        else:
            kept.pop(table)
    comments = [line for line in text.splitlines() if line.lstrip().startswith("#")]
    others = [
        path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if path.name not in {"program.toml", "program.schema.json", NOTES, *hidden}
    ]
    return json.dumps(content, ensure_ascii=False, default=str) + "\n".join([*comments, *others])


def test_a_file_that_nobody_prepared(command: Command, tmp_path: Path) -> None:
    write_csv(tmp_path / "people.csv", rows(), delimiter=";")
    outcome = command("init", "mine", "--from", "people.csv", "--yes")
    assert outcome.status == 0, outcome.err
    assert outcome.out.startswith(INTERNAL)
    assert "dualmandate plan mine/program.toml" in outcome.out
    text = (tmp_path / "mine" / "program.toml").read_text(encoding="utf-8")
    assert MARKED_HEADER in text
    program = read_program(tmp_path / "mine" / "program.toml")
    population = program.file.population
    assert program.source is not None
    assert population.identifier == "Person ID"
    assert set(program.domain.names) >= {"Région", "age (years)", "born", "sex"}
    region = population.attributes["Région"]
    assert set(region.levels or ()) == {"North", "north ", "South", f"{CANARY} East"}
    assert (region.missing, region.outside) in {("NA", "missing"), ("n/a", "missing")}
    assert population.hierarchies["Région, spelled once"].groups is not None
    assert list(population.attributes["age (years)"].edges or ()) == list(range(0, 101, 10))
    assert (population.attributes["born"].codes or "").endswith("-born.csv")
    assert {"paid", "seen on", "remark"} & set(program.domain.names) == set()
    for name, why in {"paid": "decimal comma", "seen on": "2024-12-31", "remark": "free text"}.items():
        assert [line for line in text.splitlines() if line.startswith(f"# {name}: ") and why in line], name
    assert CANARY not in unmarked(tmp_path / "mine")
    notes = tmp_path / "mine" / NOTES
    assert "likely the same: " in notes.read_text(encoding="utf-8")
    assert NOTES in (tmp_path / "mine" / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert (notes.stat().st_mode | notes.parent.stat().st_mode) & 0o077 == 0


def test_what_is_not_marked_is_refused_by_the_reader_of_marks(tmp_path: Path, command: Command) -> None:
    """The search above is able to find something."""
    write_csv(tmp_path / "people.csv", rows())
    command("init", "mine", "--from", "people.csv", "--yes")
    file = tmp_path / "mine" / "program.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('  "attributes.\\"Région\\"",\n', ""), encoding="utf-8")
    assert CANARY in unmarked(tmp_path / "mine")


def test_an_amount_and_the_records_of_one_unit(command: Command, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    records = [
        {"claim": str(draw.choice(["paid", "open", "denied"])), "person_id": f"p{number // 5}", "cost": f"{cost:.2f}"}
        for number, cost in enumerate(draw.lognormal(6, 1, 1000))
    ]
    write_csv(tmp_path / "claims.csv", records)
    assert command("init", "claims", "--from", "claims.csv", "--yes", "--account", "insured").status == 0
    population = read_program(tmp_path / "claims" / "program.toml").file.population
    cost = population.attributes["cost"]
    assert cost.lower == 0
    assert cost.upper in (5_000, 10_000)
    assert population.account == "insured"
    assert population.identifier == "person_id"
    assert population.most_records_per_unit >= 5
    assert {"attributes.cost", "most_records_per_unit"} <= set(population.seen_in_the_data)
    text = (tmp_path / "claims" / "program.toml").read_text(encoding="utf-8")
    commented = text[text.index("# [[workload]]") : text.index("[mechanism]")]
    added = "\n".join(line.removeprefix("# ") for line in commented.splitlines())
    (tmp_path / "claims" / "program.toml").write_text(text.replace(commented, f"{added}\n"), encoding="utf-8")
    program = dualmandate.load(tmp_path / "claims")
    assert program.file.workload[-1].sum_of == "cost"
    assert program.plan().choice.epsilon > 0


def test_parquet_a_database_and_statistical_files(command: Command, tmp_path: Path) -> None:
    records: list[dict[str, str | float | None]] = [
        {"region": "ab"[n % 2], "age": n % 90, "rate": n / 7} for n in range(300)
    ]
    columns = {name: [each[name] for each in records] for name in records[0]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "people.parquet")
    with sqlite3.connect(tmp_path / "people.sqlite") as database:
        database.execute("CREATE TABLE people (region TEXT, age INTEGER, rate REAL)")
        database.executemany("INSERT INTO people VALUES (:region, :age, :rate)", records)
    database.close()
    for ending in ("dta", "sav"):
        write_statistical_file(
            tmp_path / f"people.{ending}", {"region": "text", "age": "double", "rate": "double"}, records
        )
    sources = {name: ["people." + name] for name in ("parquet", "dta", "sav")}
    sources["sqlite"] = ["sqlite:///people.sqlite", "--table", "people"]
    for name, source in sources.items():
        outcome = command("init", name, "--from", *source, "--yes")
        assert outcome.status == 0, (name, outcome.err)
        attributes = read_program(tmp_path / name / "program.toml").file.population.attributes
        assert attributes["region"].levels == ("a", "b"), name
        assert list(attributes["age"].edges or ()) == list(range(0, 91, 10)), name
        assert attributes["rate"].upper == 50, name


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_of_values_are_drafted(ending: str, command: Command, tmp_path: Path) -> None:
    """A label stands beside its code; one that another level has, with its code; without one, the code stands alone."""
    import pyreadstat

    sexes, jobs = {1: "men", 2: "women"}, {code: f"job {code // 2}" for code in range(1, 41)}
    draw = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {
            "sex": draw.integers(1, 3, 900),
            "job": draw.integers(1, 41, 900),  # as many as are numbers where nothing names them
            "age": np.where(draw.integers(0, 9, 900) > 0, draw.integers(0, 90, 900), 999),
            "area": draw.integers(1, 4, 900),
        }
    ).astype(float)
    write = pyreadstat.write_sav if ending == "sav" else pyreadstat.write_dta
    labels: dict[str, Any] = {"sex": sexes, "job": jobs, "age": {999: "refused"}, "area": {1: "2", 2: "north"}}
    write(frame, str(tmp_path / f"people.{ending}"), variable_value_labels=labels)
    outcome = command("init", "drafted", "--from", f"people.{ending}", "--yes", "--by", "sex", "--by", "job")
    assert outcome.status == 0, outcome.err
    program = read_program(tmp_path / "drafted" / "program.toml")
    shown = {each.name: dict(each.level_labels.get("", {})) for each in program.domain.attributes}
    assert shown["sex"] == {"1": "men", "2": "women"}
    assert shown["job"]["1"] == "job 0"
    assert shown["job"]["7"] == "job 3 (7)"
    assert len(shown["job"]) == 40
    assert shown["area"] == {"1": "2 (1)", "2": "north", "3": "3"}
    assert program.file.population.attributes["age"].edges is not None
    assert "attributes.sex" in program.file.population.seen_in_the_data


def test_codes_with_zeros_before_them_and_codes_among_numbers(command: Command, tmp_path: Path) -> None:
    """01012 is a code of many; 999 among ages says that there is none; 20240131 is a day; few ages are numbers."""
    draw = np.random.default_rng(8)
    records = [
        {
            "county": f"01{2 * draw.integers(0, 40) + 1:03d}",
            "age": str(draw.choice([999, *range(90)], p=[0.1, *[0.01] * 90])),
            "visits": str(draw.integers(-5, 60)),
            "day": f"2024{draw.integers(1, 13):02d}{draw.integers(1, 29):02d}",
            "industry": str(draw.choice([*range(21, 50), "31-33"])),
            "Konto": f"{CANARY}{draw.integers(0, 300)}",
        }
        for _ in range(1200)
    ]
    write_csv(tmp_path / "codes.csv", records)
    outcome = command("init", "codes", "--from", "codes.csv", "--yes")
    assert outcome.status == 0, outcome.err
    attributes = read_program(tmp_path / "codes" / "program.toml").file.population.attributes
    assert list(attributes["county"].levels or ()) == [f"01{code:03d}" for code in range(1, 80, 2)]
    assert list(attributes["age"].edges or ()) == list(range(0, 91, 10))
    assert (attributes["age"].missing, attributes["age"].outside) == ("not stated", "missing")
    assert "31-33" in (attributes["industry"].levels or ())
    assert (attributes["visits"].missing, attributes["visits"].outside) == (None, "clamp")
    text = (tmp_path / "codes" / "program.toml").read_text(encoding="utf-8")
    assert "# day: left out: days or times that are written otherwise" in text
    assert "# Konto: left out: many codes with few records each" in text
    assert "--identifier Konto" in text
    assert "999" not in text
    assert CANARY not in unmarked(tmp_path / "codes")
    assert "999, in " in (tmp_path / "codes" / NOTES).read_text(encoding="utf-8")

    assert command("init", "asked", "--from", "codes.csv", "--yes", "--by", "Konto").status == 0
    assert "Konto" in read_program(tmp_path / "asked" / "program.toml").file.population.attributes


def test_names_of_columns_with_blanks_and_commas(command: Command, tmp_path: Path) -> None:
    lines = [f"{'fm'[n % 2]};{'FM'[n % 2]};{n % 3};x" for n in range(200)]
    (tmp_path / "odd.csv").write_text("\n".join(["Sex ;Kind, at birth;Age ;Note", *lines]) + "\n", encoding="utf-8")
    named = ["--by", "Sex ", "--by", "Sex,Age ", "--by", "Kind, at birth"]
    outcome = command("init", "mine", "--from", "odd.csv", "--yes", *named)
    assert outcome.status == 0, outcome.err
    tables = read_program(tmp_path / "mine" / "program.toml").file.workload
    assert [(each.name, each.by) for each in tables] == [
        ("people by Sex", ("Sex ",)),
        ("people by Sex and Age", ("Sex ", "Age ")),
        ("people by Kind, at birth", ("Kind, at birth",)),
    ]
    text = (tmp_path / "mine" / "program.toml").read_text(encoding="utf-8")
    assert all(f"\n# {key:<7} = " in text for key in ("title", "agency", "author", "version", "date"))


def test_seven_records(command: Command, tmp_path: Path) -> None:
    ages = (30, 31, 40, 50, 60, 70, 20)
    write_csv(tmp_path / "seven.csv", [{"region": "ab"[age % 2], "age": str(age)} for age in ages])
    assert command("init", "seven", "--from", "seven.csv", "--yes").status == 0
    assert "age" in read_program(tmp_path / "seven" / "program.toml").file.population.attributes


def test_many_columns_without_room_are_told_as_one(command: Command, tmp_path: Path) -> None:
    draw = np.random.default_rng(9)
    records = [{f"Q{number}": str(draw.integers(1, 6)) for number in range(30)} for _ in range(100)]
    write_csv(tmp_path / "survey.csv", records)
    outcome = command("init", "survey-2024", "--from", "survey.csv", "--yes")
    assert outcome.status == 0
    told = outcome.out.splitlines()
    assert "  and 19 more columns, left out for want of room as Q10 is" in told
    assert len(told) < 30
    text = (tmp_path / "survey-2024" / "program.toml").read_text(encoding="utf-8")
    assert "# Q29: left out: no room beside the others; to have it, name a table by it: --by Q29" in text


@pytest.mark.parametrize("seed", range(4))
def test_any_file_can_be_planned(command: Command, tmp_path: Path, seed: int) -> None:
    drafted_and_planned(command, tmp_path, seed)


@pytest.mark.slow
def test_any_of_many_files_can_be_planned(command: Command, tmp_path: Path) -> None:
    for seed in range(4, 34):
        drafted_and_planned(command, tmp_path, seed)


def drafted_and_planned(command: Command, folder: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    name = f"draft{seed}"
    records = odd_records(draw)
    file = folder / f"{name}.csv"
    write_csv(file, records, delimiter=str(draw.choice([",", ";", "\t", "|"])))
    if draw.random() < 0.5:
        with file.open("ab") as opened:
            opened.write(draw.bytes(200) + b'\n"open quote\n,,,,,,,,,,,\nM\xfcller\n')
    outcome = command("init", name, "--from", file, "--yes")
    assert outcome.status == 0, (seed, outcome.err)
    text = unmarked(folder / name)
    assert CANARY not in text, seed
    assert str(AMOUNT) not in text, seed
    program = dualmandate.load(folder / name / "program.toml")
    plan = program.plan()
    assert plan.choice.epsilon > 0, seed
    assert any("took from the confidential records" in line for line in plan.guarantee.not_protected), seed


def odd_records(draw: np.random.Generator) -> list[dict[str, str]]:
    """Some columns of every kind, under odd names, with values missing in some of them."""
    kinds: dict[str, Callable[[int], str]] = {
        "Gruppe Ä": lambda n: str(draw.choice(["a", "A", "b ", "b", f"{CANARY}"])),
        "code.1": lambda n: f"{draw.integers(1, 7):02d}",
        "is it?": lambda n: str(draw.choice(["yes", "Yes", "no"])),
        'quote"d': lambda n: f"{CANARY}{draw.integers(0, 300)}",
        "größe": lambda n: str(draw.integers(-50, 2000)),
        "year": lambda n: str(draw.integers(1950, 2020)),
        "amount": lambda n: f"{draw.normal(0, 1000):.2f}" if n % 50 else str(AMOUNT),
        "tiny": lambda n: f"{draw.random() / 1000:.9f}",
        "day": lambda n: f"{draw.integers(2015, 2019)}-{draw.integers(1, 13):02d}-{draw.integers(1, 29):02d}",
        "odd day": lambda n: f"{draw.integers(1, 13)}/{draw.integers(1, 29)}/2019",
        "text": lambda n: f"{CANARY} {draw.random()} is what they said",
        "one": lambda n: CANARY,
        "nothing": lambda n: "",
        "id": lambda n: f"{n}",
        "=1+1": lambda n: str(draw.choice(["x", "y", "\t", "z"])),
    }
    names = list(draw.permutation(list(kinds)))[: draw.integers(3, len(kinds))]
    names = list(dict.fromkeys([*names, str(draw.choice(["Gruppe Ä", "code.1", "year", "day"]))]))
    gaps = {name: draw.choice([0, 0.1, 0.6]) for name in names}
    marks = ["", "NA", "n/a", "."]
    count = int(draw.choice([60, 300, 1500]))
    return [
        {name: str(draw.choice(marks)) if draw.random() < gaps[name] else kinds[name](n) for name in names}
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("naïve;größe\n1;2\n".encode("latin-1"), "not UTF-8"),
        (b"a,b,A\n1,2,3\n", "columns 1 and 3"),
        (b"a,,c\n1,2,3\n", "column 2"),
        (b"a,b\r1,2\r3,4\r", "carriage returns alone"),
        (b"17,2024-01-01,x\n18,2024-01-02,y\n", "looks like a record"),
        (b"north,yes\nsouth,no\nnorth,yes\n", "looks like a record"),
        (b"", "no name"),
        (b"id,name\n" + b"".join(b"%d,%s-%d\n" % (n, CANARY.encode(), n) for n in range(300)), "can be an attribute"),
        (b"a,b\n", "no records"),
    ],
)
def test_a_file_that_is_refused(command: Command, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "odd.csv").write_bytes(content)
    outcome = command("init", "mine", "--from", "odd.csv", "--yes")
    assert outcome.status == 2
    assert why in outcome.err
    assert "Traceback" not in outcome.err
    assert CANARY not in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.csv"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["init", "--from", "people.csv"], "has no name"),
        (["init", "mine", "--from", "nowhere.csv"], "no such file"),
        (["init", "mine", "--from", "people.xls"], "ends in"),
        (["init", "mine", "--from", "people.csv", "--by", "regio"], "did you mean 'region'"),
        (["init", "mine", "--from", "people.csv", "--identifier", "nobody"], "no column 'nobody'"),
        (["init", "mine", "--from", "people.csv", "--unit", "USD"], "unit"),
        (["init", "mine", "--from", "sqlite:///people.sqlite"], "--table"),
        (["init", "mine", "--from", "postgresql://me:pw@host/db", "--table", "t"], "environment variable"),
        (["init", "blank", "--unit", "person"], "without --from"),
    ],
)
def test_what_is_typed_wrong(command: Command, tmp_path: Path, words: list[str], why: str) -> None:
    write_csv(tmp_path / "people.csv", [{"region": "ab"[n % 2]} for n in range(200)])
    outcome = command(*words)
    assert outcome.status == 2
    assert why in outcome.err
    assert not (tmp_path / "mine").exists()


def test_nothing_is_overwritten(command: Command, tmp_path: Path) -> None:
    write_csv(tmp_path / "people.csv", rows(50))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "program.toml").write_text("mine", encoding="utf-8")
    outcome = command("init", "mine", "--from", "people.csv", "--yes")
    assert outcome.status == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["program.toml"]


@pytest.mark.parametrize("identifier", ["none", "key"])
def test_what_is_asked_at_a_terminal(
    identifier: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [{"region": "ab"[n % 2], "age": str(n % 90), "key": f"p{n}"} for n in range(300)]
    write_csv(tmp_path / "people.csv", people)
    answers = ["household", "residents", identifier, "nonsense", "replace-one", "many", "2,000,000", "census 2021"]
    answers += ["nobody", "region, age; age", "40", "survey 2020", ""]

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(answers) + "\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert command("init", "mine", "--from", "people.csv").status == 0
    file = read_program(tmp_path / "mine" / "program.toml").file
    assert (file.population.unit, file.population.account) == ("household", "residents")
    assert file.population.neighbors == "replace-one"
    assert file.population.attributes["region"].missing == "not stated"
    assert file.population.population_size.source == "census 2021"
    assert [table.by for table in file.workload] == [("region", "age"), ("age",)]
    cost = file.preferences.mean_disclosure_cost
    assert cost is not None
    assert cost.source == "survey 2020"
    assert file.population.dropping_is_public == (identifier == "key")  # a record may come without an identifier
    load(tmp_path / "mine").plan()  # what no machine could publish would be refused


def test_who_ends_the_input_ends_the_questions(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "people.csv", [{"region": "ab"[n % 2], "Person No.": f"p{n}"} for n in range(300)])

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("household\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    outcome = command("init", "mine", "--from", "people.csv")
    assert outcome.status == 130
    assert "nothing is left half-written" in outcome.err
    assert not (tmp_path / "mine").exists()
    assert outcome.err.count("Whose privacy is spent") == 1  # and nothing was asked after it


def test_a_program_with_marks_is_not_approved_in_silence(command: Command, tmp_path: Path) -> None:
    write_csv(tmp_path / "people.csv", [{"region": "ab"[n % 2]} for n in range(300)])
    assert command("init", "mine", "--from", "people.csv", "--yes").status == 0
    assert command("plan", "mine", "--out", "mine/report").status == 0
    ledger = ["--ledger", "mine/.dualmandate/ledger.sqlite"]
    assert command("ledger", "open", "people", "--unit", "person", "--cap", "10", *ledger).status == 0
    plan = json.loads((tmp_path / "mine" / "report" / "plan.json").read_text(encoding="utf-8"))
    assert plan["program"]["seen_in_the_data"] == ["attributes.region"]
    planned = command("plan", "mine", "--out", "mine/report")
    assert planned.out.endswith("next:\n  dualmandate approve mine/report/plan.json\n")  # which lists them
    refused = command("approve", "mine/report/plan.json", "--json")
    assert (refused.status, refused.document["code"]) == (2, "not approved")
    assert "attributes.region" in refused.document["what"]
    assert "--seen" in refused.document["instead"]
    assert not command("ledger", "show", "--json", *ledger).document["accounts"][0]["approvals"]
    approved = command("approve", "mine/report/plan.json", "--seen", "--json")
    assert approved.status == 0, approved.err
    assert approved.document["seen_in_the_data"] == ["attributes.region"]
    [shown] = command("ledger", "show", "--json", *ledger).document["accounts"][0]["approvals"]
    assert shown["seen_in_the_data"] == ["attributes.region"]
    assert command("check", "mine/report/plan.json").status == 0
    published = command("publish", "mine/report/plan.json", "--json")
    assert published.status == 0, published.err
    release = json.loads((Path(published.document["directory"]) / "release.json").read_text(encoding="utf-8"))
    assert release["seen_in_the_data"] == ["attributes.region"]
    assert "attributes.region" in release["guarantee"]["not_protected"][0]


def test_a_word_that_accepts_nothing_is_refused(command: Command, tmp_path: Path) -> None:
    command("init", "blank")
    assert command("plan", "blank", "--out", "blank/report").status == 0
    outcome = command("approve", "blank/report/plan.json", "--seen")
    assert outcome.status == 2
    assert "nothing in the program was seen in the data" in outcome.err


def test_marks_name_what_is_stated(tmp_path: Path) -> None:
    from dualmandate import gallery
    from dualmandate.errors import InvalidValue

    text = gallery.files("blank")["program.toml"]
    file = tmp_path / "program.toml"
    for marks, bad in (
        ('["attributes.region", "unit"]', False),
        ('["attributes.regio"]', True),
        ('["unit", "unit"]', True),
    ):
        file.write_text(text.replace("[population]\n", f"[population]\nseen_in_the_data = {marks}\n"), encoding="utf-8")
        if bad:
            with pytest.raises(InvalidValue, match="seen_in_the_data"):
                read_program(file)
        else:
            assert read_program(file).file.population.seen_in_the_data == ("attributes.region", "unit")


def test_the_programs_to_start_from_are_listed(command: Command) -> None:
    from dualmandate import gallery

    outcome = command("init")
    assert outcome.status == 0
    for name in gallery.names():
        assert any(line.split()[:1] == [name] and gallery.about(name) in line for line in outcome.out.splitlines())
        assert name in command("init", "--help").out
    assert command("init", "--json").status == 2


def test_editors_find_the_schema_beside_each_file(command: Command, tmp_path: Path) -> None:
    from dualmandate import gallery

    for name in gallery.names():
        assert command("init", name).status == 0
        for file in (tmp_path / name).glob("*.toml"):
            first = file.read_text(encoding="utf-8").splitlines()[0]
            if file.name not in {"dualmandate.toml", "preferences.toml"}:
                schema = json.loads((file.parent / first.removeprefix("#:schema ")).read_text(encoding="utf-8"))
                assert set(tomllib.loads(file.read_text(encoding="utf-8"))) <= set(schema["properties"]), file
