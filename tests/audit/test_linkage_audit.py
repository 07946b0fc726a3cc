"""Names for the records behind a folder of tables, a release and a program; and what is refused."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.planning.test_released import PROGRAM, released

from dualmandate.audit import audit as run_audit
from dualmandate.audit.finding import Finding, Rate
from dualmandate.audit.linkage import probabilistic
from dualmandate.audit.run import Audit
from dualmandate.errors import InvalidDomain, InvalidRequest, InvalidTables, Refusal, TooLarge, UnreadableSource

BLOCKS, CANARY = 12, "canary-4711"
RACES, AGES = ("w", "b", "a"), tuple(str(age) for age in range(20))
LEVELS = {"sex": ("f", "m"), "age": AGES, "race": RACES}
TABLES = (("sex", "age"), ("sex", "race"), ("age", "race"))
SCHEMA = """\
[tables]
schema = 1
name   = "blocks"
place  = "block"

[population]
attributes.sex  = ["f", "m"]
attributes.age  = { from = 0, to = 19 }
attributes.race = ["w", "b", "a"]
"""
Person = dict[str, str]


def people(seed: int = 5) -> list[Person]:
    """Blocks of nine or so people, most of one race in each."""
    draws = np.random.default_rng(seed)
    found: list[Person] = []
    for block in range(BLOCKS):
        main = draws.integers(3)
        for _ in range(int(draws.integers(6, 13))):
            race = main if draws.random() < 0.7 else draws.integers(3)
            found.append(
                {
                    "person": f"p{len(found):03}",
                    "block": f"block {block}",
                    "sex": "fm"[draws.integers(2)],
                    "age": str(draws.integers(20)),
                    "race": RACES[race],
                }
            )
    order = draws.permutation(len(found))
    return [found[row] for row in order]


def written(path: Path, rows: list[Person], columns: tuple[str, ...]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder `blocks` of exact tables, the true records, and a file of names without the race."""
    folder = tmp_path / "blocks"
    folder.mkdir()
    rows, schema = people(), SCHEMA
    for by in TABLES:
        name = " by ".join(by)
        schema += f'\n[[counts]]\nname = "{name}"\nfile = "{name}.csv"\nby   = ["{by[0]}", "{by[1]}"]\n'
        counts = Counter((row["block"], *(row[each] for each in by)) for row in rows)
        cells = product([f"block {block}" for block in range(BLOCKS)], *(LEVELS[each] for each in by))
        lines = [",".join(("block", *by, "count")), *(",".join((*cell, str(counts[cell]))) for cell in cells)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "tables.toml").write_text(schema)
    written(tmp_path / "truth.csv", rows, ("person", "block", "sex", "age", "race"))
    written(tmp_path / "people.csv", rows[: len(rows) - 5], ("person", "block", "sex", "age"))
    return tmp_path


def linked(audit: Audit) -> dict[str, Finding]:
    """The findings of the linkage by their claims, with the reference where there are several."""
    found = [each for each in audit.findings if each.attack == "re-identification"]
    return {f"{each.reference}: {each.claim}": each for each in found}


def only(found: dict[str, Finding], *words: str) -> Finding:
    (one,) = [each for claim, each in found.items() if all(word in claim for word in words)]
    return one


def rate(finding: Finding) -> Rate:
    assert isinstance(finding.success, Rate)
    return finding.success


def test_names_for_the_records_of_a_folder(files: Path) -> None:
    audit = run_audit(files / "blocks", outside=files / "people.csv", confidential=files / "truth.csv")
    found = linked(audit)
    rows = people()
    links = only(found, "outside: putative")
    assert links.label == "public"
    assert rate(links) == Rate(len(rows) - 5, len(rows) - 5)  # tables by sex and age: every key is there
    uniques = only(found, "precision: links of nonmodal uniques (")
    assert uniques.label == "internal"
    assert (
        "block and sex × age, then sex × age in bins of 5 of the people in people.csv; linked by equal keys"
        in uniques.attacker_knows
    )
    assert "age (20 levels)" in uniques.coarsening
    modal, proportional = (each.success for each in uniques.baselines)
    assert isinstance(modal, Rate)
    assert isinstance(proportional, Rate)
    assert modal.successes == 0
    assert rate(uniques).value > proportional.value + 0.3
    for group in ("confirmed rate: names", "precision: links of names", "putative rate: nonmodal", "is proved to"):
        assert any(group in claim for claim in found)
    assert {each.label for claim, each in found.items() if claim.startswith("confidential")} == {"internal"}
    assert audit == run_audit(files / "blocks", outside=files / "people.csv", confidential=files / "truth.csv")


def test_nonmodal_uniques_are_those_of_a_plain_count(files: Path) -> None:
    audit = run_audit(files / "blocks", outside=files / "people.csv", confidential=files / "truth.csv")
    rows, expected = people(), 0
    for row in rows[: len(rows) - 5]:
        own = [each for each in rows if each["block"] == row["block"]]
        races = Counter(each["race"] for each in own)
        key = (row["sex"], int(row["age"]) // 5)
        alone = sum((each["sex"], int(each["age"]) // 5) == key for each in own) == 1
        expected += alone and races[row["race"]] < max(races.values())
    assert rate(only(linked(audit), "confirmed rate: nonmodal uniques (")).trials == expected
    assert expected > 5


def test_both_files_judge_and_links_alone_are_public(files: Path) -> None:
    swapped = people()
    swapped[0]["race"], swapped[1]["race"] = swapped[1]["race"], swapped[0]["race"]
    written(files / "tabulated.csv", swapped, ("person", "block", "sex", "age", "race"))
    audit = run_audit(
        files / "blocks",
        outside=files / "people.csv",
        confidential=files / "truth.csv",
        tabulated=files / "tabulated.csv",
        secret="race",
    )
    found = linked(audit)
    assert only(found, "tabulated: confirmed rate: names")
    assert only(found, "confidential: confirmed rate: names")
    alone = run_audit(files / "blocks", outside=files / "people.csv")
    (links,) = linked(alone).values()
    assert links.label == "public"
    assert links.reference == "outside"
    chance, guessers = links.baselines
    assert "chance" in chance.who
    assert isinstance(chance.success, Rate)
    assert 0 < chance.success.successes < rate(links).successes
    assert guessers.success == Rate(rate(links).trials, rate(links).trials)


def test_a_file_as_good_as_the_agencys_own(files: Path) -> None:
    audit = run_audit(files / "blocks", secret="race", confidential=files / "truth.csv")
    found = linked(audit)
    assert {each.label for each in found.values()} == {"internal"}
    links = only(found, "putative rate: names")
    assert rate(links).trials == len(people())
    assert "as good as the agency's own" in links.attacker_knows
    with pytest.raises(InvalidRequest, match="no file of names is given"):
        run_audit(files / "blocks", secret="race")


def suppress(file: Path, start: str) -> None:
    """Hide the numbers of all lines that begin so."""
    lines = file.read_text().splitlines()
    hidden = [line.rpartition(",")[0] + ",(D)" if line.startswith(start) else line for line in lines]
    file.write_text("\n".join(hidden) + "\n")


def test_suppressed_numbers_leave_what_is_shown(files: Path) -> None:
    suppress(files / "blocks" / "sex by race.csv", "block 0,f")
    found = linked(run_audit(files / "blocks", outside=files / "people.csv"))
    everybody = len(people()) - 5
    assert rate(only(found, "putative")) == Rate(everybody, everybody)
    for name in ("sex by age", "age by race"):
        suppress(files / "blocks" / f"{name}.csv", "block 0,")
    (links,) = linked(run_audit(files / "blocks", outside=files / "people.csv")).values()
    assert rate(links).successes < everybody
    assert links.partial is not None
    assert "in 1 places some cells are counted by no number that is shown: nobody was linked there" in links.partial


def test_rows_that_cannot_be_used_are_counted(files: Path) -> None:
    rows = people()
    rows[0]["age"], rows[1]["sex"], rows[2]["person"], rows[3]["block"] = "99", CANARY, "", "elsewhere"
    rows[4]["person"] = ""  # two without a name are not one person twice
    written(files / "people.csv", rows, ("person", "block", "sex", "age"))
    (links,) = linked(run_audit(files / "blocks", outside=files / "people.csv")).values()
    assert rate(links).trials == len(rows) - 5
    assert links.partial == (
        f"5 of {len(rows)} rows of people.csv are left out: values that are not declared "
        "(sex: 1, age: 1, block: 1, person: 2)"
    )


def test_parquet_and_another_column_of_persons(files: Path) -> None:
    for name in ("people", "truth"):
        here, there = files / f"{name}.csv", files / f"{name}.parquet"
        duckdb.sql(
            f"COPY (SELECT * EXCLUDE (person, age), age::INTEGER AS age, substr(person, 2)::INTEGER AS number "
            f"FROM read_csv('{here}', all_varchar = true)) TO '{there}' (FORMAT parquet)"
        )
    by_text = run_audit(files / "blocks", outside=files / "people.csv", confidential=files / "truth.csv")
    by_number = run_audit(
        files / "blocks", outside=files / "people.parquet", confidential=files / "truth.parquet", person="number"
    )
    one, other = (rate(only(linked(each), "confirmed rate: names")) for each in (by_text, by_number))
    assert one.trials == other.trials
    assert abs(one.successes - other.successes) <= 5  # equal keys are given out by the digest of the name


def test_a_release_and_its_names(tmp_path: Path) -> None:
    folder = released(tmp_path)
    rows = [{"person": str(row), "ward": ward, "age": str(row % 8)} for ward in ("north", "east") for row in range(160)]
    for row, each in enumerate(rows):
        each["person"] = str(row)
    names = written(tmp_path / "names.csv", rows, ("person", "ward"))
    truth = written(tmp_path / "residents.csv", rows, ("person", "ward", "age"))
    audit = run_audit(folder, outside=names, confidential=truth)
    found = linked(audit)
    assert only(found, "outside: putative").label == "public"
    right = only(found, "links of names to", "that tell age rightly")
    assert rate(right).trials == rate(only(found, "outside: putative")).successes
    assert "errors of" in right.claim
    public = run_audit(folder, outside=names)
    assert {each.label for each in linked(public).values()} == {"public"}


def test_a_program_is_linked_to_people_who_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together"))
    audit = run_audit(tmp_path / "program.toml", secret=["age"])
    found = linked(audit)
    assert {each.label for each in found.values()} == {"public"}
    assert {each.reference for each in found.values()} == {"synthetic"}
    exact = only(found, "links of names to records of the tables of town that")
    weakest = only(found, "links of names to", "ε = 0.25 ")
    assert rate(exact).trials >= rate(weakest).trials
    with pytest.raises(InvalidRequest, match="people who do not exist"):
        run_audit(tmp_path / "program.toml", outside=tmp_path / "names.csv")


def test_a_program_is_linked_with_the_curators_records(tmp_path: Path) -> None:
    (tmp_path / "program.toml").write_text(PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together"))
    rows = [{"person": str(row), "ward": ("north", "east")[row % 2], "age": str(row % 8)} for row in range(40)]
    names = written(tmp_path / "names.csv", rows, ("person", "age"))
    truth = written(tmp_path / "truth.csv", rows, ("person", "ward", "age"))
    found = linked(run_audit(tmp_path / "program.toml", outside=names, confidential=truth))
    assert {each.label for each in found.values()} == {"internal"}  # also links alone: the tables are not published
    exact = only(found, "links of names to records of the tables of town that tell ward rightly")
    assert rate(exact) == Rate(40, 40)  # of one age all are of one ward


def test_splink_finds_names_behind_errors(files: Path) -> None:
    draws, rows = np.random.default_rng(2), people()
    for row in rows:
        if draws.random() < 0.3:
            row["age"] = str(int(np.clip(int(row["age"]) + draws.choice([-1, 1]), 0, 19)))
        if draws.random() < 0.1:
            row["sex"] = ""
    written(files / "people.csv", rows, ("person", "block", "sex", "age"))
    asked = {"outside": files / "people.csv", "confidential": files / "truth.csv"}
    exact, likely = (linked(run_audit(files / "blocks", link=link, **asked)) for link in ("exact", "splink"))
    one, other = (rate(only(each, "confidential: confirmed rate: names")) for each in (exact, likely))
    assert other.successes > one.successes
    assert other.trials == len(rows) > one.trials  # who has no sex is left out, or linked by the age alone
    assert "estimated by splink" in only(likely, "confirmed rate: names").attacker_knows


def test_splink_must_be_there_and_places_small(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilistic, "find_spec", lambda _: None)
    with pytest.raises(InvalidRequest, match="splink") as refused:
        run_audit(files / "blocks", outside=files / "people.csv", link="splink")
    assert "dualmandate[linkage]" in refused.value.instead
    monkeypatch.undo()
    monkeypatch.setattr(probabilistic, "MOST_PAIRS", 10)
    with pytest.raises(TooLarge, match="pairs of a name and a record"):
        run_audit(files / "blocks", outside=files / "people.csv", link="splink")


REFUSED: list[tuple[str, type[Refusal], str, int | None, str | None]] = [
    ("person,sex,age\na,f,1\n", InvalidTables, "no column 'block'", 1, "block"),
    ("block,sex,age\nblock 1,f,1\n", InvalidTables, "no column 'person'", 1, "person"),
    ("person,block\na,block 1\n", InvalidTables, "none of the attributes", 1, None),
    ("person,block,sex,age\n", InvalidTables, "names nobody", None, None),
    (
        f"person,block,sex\na,block 1,f\n{CANARY},block 1,f\nb,block 1,m\n{CANARY},block 2,m\n",
        InvalidTables,
        "1 of the people",
        5,
        "person",
    ),
    (f"person,block,sex\na,{CANARY},f\nb,{CANARY},f\n", InvalidTables, "no row", 2, "block"),
    (f"person,block,sex\na,block 1,f,{CANARY}\n", InvalidTables, "no row", 2, "sex"),  # a line that cannot be read
    ("person,block,sex,age,race\na,block 1,f,1,w\n", InvalidRequest, "says everything", None, None),
]


@pytest.mark.parametrize(("text", "kind", "what", "line", "key"), REFUSED)
def test_outside_files_that_are_refused(
    files: Path, text: str, kind: type[Refusal], what: str, line: int | None, key: str | None
) -> None:
    (files / "people.csv").write_text(text)
    with pytest.raises(kind, match=what) as refused:
        run_audit(files / "blocks", outside=files / "people.csv")
    where = refused.value.where
    assert where is not None
    assert where.file == str(files / "people.csv")
    assert (where.line, where.key) == (line, key)
    assert CANARY not in str(refused.value)


def test_the_second_line_of_a_person_is_named_with_the_first(files: Path) -> None:
    (files / "people.csv").write_text('person,block,sex\na,"block\n1",f\nb,block 1,f\nb,block 1,m\n')
    with pytest.raises(InvalidTables) as refused:
        run_audit(files / "blocks", outside=files / "people.csv")
    assert refused.value.where is not None
    assert refused.value.where.line == 5
    assert "line 4 too" in refused.value.why


def test_requests_that_are_refused(files: Path) -> None:
    target, names = files / "blocks", files / "people.csv"
    with pytest.raises(InvalidRequest, match="is the confidential one"):
        run_audit(target, outside=files / "truth.csv", confidential=files / "truth.csv")
    with pytest.raises(InvalidRequest, match="linked by 'guess'"):
        run_audit(target, outside=names, link="guess")
    with pytest.raises(InvalidRequest, match="--person is given"):
        run_audit(target, person="id")
    with pytest.raises(InvalidRequest, match="--link is given"):
        run_audit(target, link="splink")
    with pytest.raises(InvalidDomain, match="'rase' is not an attribute"):
        run_audit(target, outside=names, secret="rase")
    with pytest.raises(InvalidRequest, match="knows nothing"):
        run_audit(target, secret=["sex", "age", "race"], confidential=files / "truth.csv")
    (files / "people.dta").write_text("x")
    with pytest.raises(UnreadableSource, match="neither CSV nor Parquet"):
        run_audit(target, outside=files / "people.dta")
    with pytest.raises(UnreadableSource, match="cannot be read"):
        run_audit(target, outside=files / "nobody.csv")
    nameless = written(files / "nameless.csv", people(), ("block", "sex", "age", "race"))
    with pytest.raises(UnreadableSource, match="no column 'person'") as refused:
        run_audit(target, outside=names, confidential=nameless)
    assert refused.value.where is not None
    assert refused.value.where.file == str(nameless)
    with pytest.raises(TypeError, match="colour"):
        run_audit(target, colour="red")


def test_tables_without_counts_have_no_records_to_link(tmp_path: Path) -> None:
    folder = tmp_path / "pay"
    folder.mkdir()
    (folder / "tables.toml").write_text(
        '[tables]\nschema = 1\nname = "pay"\n[[magnitudes]]\nname = "pay"\nfile = "pay.csv"\nby = ["county"]\n'
    )
    (folder / "pay.csv").write_text("county,value\na,1\nb,(D)\ntotal,3\n")
    names = tmp_path / "names.csv"
    names.write_text("person,county\nann,a\n")
    with pytest.raises(InvalidRequest, match="there are none"):
        run_audit(folder, outside=names)
