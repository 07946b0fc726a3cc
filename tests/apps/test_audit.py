"""`dualmandate audit`: words, JSON, pages, two folders, and what is refused."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pyarrow.parquet as pq
import pytest

from dualmandate.report.documents import schemas

if TYPE_CHECKING:
    from tests.apps.conftest import Command

CANARY = "canary-4711"
FOLDER = {
    "tables.toml": """\
[tables]
schema = 1
name   = "a block"

[population]
attributes.sex = ["F", "M"]
attributes.age = ["child", "adult"]

[[counts]]
name = "sex by age"
file = "counts.csv"
by   = ["sex", "age"]
""",
    "counts.csv": "sex,age,count\nF,child,1\nF,adult,2\nM,child,0\nM,adult,1\n",
}
RECORDS = f"sex,age,name\nF,child,a\nF,adult,b\nF,adult,c\nM,adult,{CANARY}\n{CANARY},adult,e\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "block"
    place.mkdir()
    for name, text in FOLDER.items():
        (place / name).write_text(text)
    (tmp_path / "records.csv").write_text(RECORDS)
    return place


def test_words_and_document(command: Command, folder: Path) -> None:
    spoken = command("audit", folder)
    assert spoken.status == 0
    assert "places whose every record follows from a block: 1 of 1 (all of them counted)" in spoken.out
    assert "lower bound on risk" in spoken.out
    assert "safe" not in spoken.out
    document = command("audit", folder, "--json").document
    jsonschema.validate(document, schemas.schema("audit"))
    assert document["label"] == "public"
    assert document["kind"] == "tables"
    assert all("details" not in finding for finding in document["findings"])


def test_results_are_files_and_those_of_records_are_inside(command: Command, tmp_path: Path) -> None:
    """Two blocks of which one follows and one contradicts itself: a row a place, sizes, and inside the records."""
    place = tmp_path / "blocks"
    place.mkdir()
    (place / "tables.toml").write_text(
        '[tables]\nschema = 1\nname = "blocks"\nplace = "block"\n[population]\n'
        'attributes.sex = ["F", "M"]\nattributes.age = ["young", "old"]\n'
        '[[counts]]\nname = "cells"\nfile = "cells.csv"\nby = ["sex", "age"]\n'
        '[[counts]]\nname = "sexes"\nfile = "sexes.csv"\nby = ["sex"]\n'
    )
    cells = [f"{each},{sex},{age}" for each in "12" for sex in "FM" for age in ("young", "old")]
    counted = zip(cells, (2, 0, 0, 12, 1, 0, 0, 0), strict=True)
    (place / "cells.csv").write_text(
        "\n".join(("block,sex,age,count", *(f"{cell},{count}" for cell, count in counted)))
    )
    (place / "sexes.csv").write_text("block,sex,count\n1,F,2\n1,M,12\n2,F,1\n2,M,1\n")
    out, inside = tmp_path / "out", tmp_path / "inside"
    assert command("audit", place, "--out", out, "--internal", inside).status == 0
    assert {path.stem for path in out.glob("*.csv")} == {"places", "place-sizes"}
    for folder in (out, inside):
        places = pq.read_table(folder / "places.parquet").to_pylist()
        assert [(row["place"], row["people"], row["solutions"], row["unique"]) for row in places] == [
            ("1", 14, 1, True),
            ("2", None, None, None),
        ]
        assert "sexes: " in places[1]["contradiction"]
        sizes = {row["people_in_a_place"]: row for row in pq.read_table(folder / "place-sizes.parquet").to_pylist()}
        assert (sizes["10 to 49"]["places"], sizes["10 to 49"]["people_in_unique_places"]) == (1, 14)
    assert (inside / "records.csv").read_text().splitlines() == [
        '"place","sex","age","records","at_least","at_most"',
        '"1","F","young",2,2,2',
        '"1","M","old",12,12,12',
    ]


def test_what_records_judge_goes_inside_alone(command: Command, folder: Path, tmp_path: Path) -> None:
    out, inside = tmp_path / "out", tmp_path / "inside"
    typed = ("audit", folder, "--confidential", tmp_path / "records.csv", "--out", out, "--internal", inside, "--json")
    outcome = command(*typed)
    assert outcome.status == 0
    public = [outcome.out, outcome.err, *((out / name).read_text() for name in ("audit.json", "audit.html"))]
    for text in public:
        assert "the confidential file" not in text
        assert '"confidential"' not in text
        assert "× sex F" not in text  # single records are named inside alone
    page = (inside / "audit.html").read_text()
    assert 'content="internal"' in page
    assert "the confidential file" in page
    assert "× sex F" in page
    assert not any(CANARY in text for text in (*public, page, (inside / "audit.json").read_text()))
    assert {stat.S_IMODE(path.stat().st_mode) for path in inside.iterdir()} == {0o600}
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700
    assert command(*typed).status == 0  # again, into the folder that is there
    assert {stat.S_IMODE(path.stat().st_mode) for path in (inside, *inside.iterdir())} == {0o600, 0o700}
    inside.chmod(0o750)
    before = (inside / "audit.json").stat().st_mtime_ns
    refused = command(*typed)
    assert (refused.status, "chmod 700" in refused.err) == (2, True)
    assert (inside / "audit.json").stat().st_mtime_ns == before


def test_folders_where_findings_must_not_stand(command: Command, folder: Path, tmp_path: Path) -> None:
    records = ("--confidential", tmp_path / "records.csv")
    assert "--internal" in command("audit", folder, *records).err
    nested = command("audit", folder, *records, "--out", tmp_path / "o", "--internal", tmp_path / "o" / "i")
    assert nested.status == 2
    assert not (tmp_path / "o").exists()
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "release.json").write_text("{}")
    inside = command("audit", folder, "--out", tmp_path / "release" / "audit", "--json")
    assert inside.status == 2
    assert inside.document["code"] == "invalid request"


def test_refusals(command: Command, folder: Path, tmp_path: Path) -> None:
    (folder / "counts.csv").write_text("sex,age,count\nF,child,1\n")
    refused = command("audit", folder, "--json")
    assert refused.status == 2
    assert refused.document["code"] == "invalid tables"
    assert refused.document["where"]["line"] == 11
    assert command("audit", tmp_path / "nowhere", "--json").document["code"] == "invalid file"
    (folder / "counts.csv").write_text(FOLDER["counts.csv"])
    assert command("audit", folder, "--seconds", "0", "--json").document["code"] == "invalid request"
    assert command("audit", folder, "--place", "sex", "--json").document["code"] == "invalid request"
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(f"sex,{CANARY}\nF,1\n")
    unread = command("audit", folder, "--confidential", wrong, "--internal", tmp_path / "i", "--json")
    assert unread.status == 2
    assert not (tmp_path / "i").exists()


def test_both_files_of_records_judge(command: Command, folder: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.csv"
    inside = ("--internal", tmp_path / "i")
    both = ("--confidential", records, "--confidential", f"tabulated:{records}")
    assert command("audit", folder, *both, *inside).status == 0
    found = json.loads((tmp_path / "i" / "audit.json").read_text())
    jsonschema.validate(found, schemas.schema("audit"))
    assert {each["reference"] for each in found["findings"]} == {"published", "tabulated", "confidential"}
    assert command("audit", folder, "--confidential", records, "--confidential", records, *inside).status == 2


def test_names_are_put_to_records_and_told_nowhere(command: Command, folder: Path, tmp_path: Path) -> None:
    names, out, inside = tmp_path / "names.csv", tmp_path / "out", tmp_path / "inside"
    names.write_text(f"name,sex\na,F\nb,F\n{CANARY},M\n")
    link = ("audit", folder, "--outside", names, "--secret", "age", "--person", "name")
    outcome = command(*link, "--confidential", tmp_path / "records.csv", "--internal", inside, "--out", out)
    assert outcome.status == 0
    assert "putative rate: names that are linked to a record of a block: 3 of 3" in outcome.out
    assert "confirmed rate" not in outcome.out + (out / "audit.json").read_text() + (out / "audit.html").read_text()
    found = json.loads((inside / "audit.json").read_text())
    jsonschema.validate(found, schemas.schema("audit"))
    confirmed = next(each for each in found["findings"] if each["claim"].startswith("confirmed rate: names"))
    assert [each["who"].split(",")[0] for each in confirmed["baselines"]] == ["modal guesser", "proportional guesser"]
    pages = [folder / name for folder in (out, inside) for name in ("audit.json", "audit.html")]
    assert not any(CANARY in text for text in (outcome.out, outcome.err, *(page.read_text() for page in pages)))
    alone = command(*link, "--json").document
    assert {each["reference"] for each in alone["findings"]} == {"published", "outside"}
    jsonschema.validate(alone, schemas.schema("audit"))


def test_names_that_are_refused(command: Command, folder: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text(f"person,sex\n{CANARY},F\nb,F\n{CANARY},M\n")
    refused = command("audit", folder, "--outside", names, "--out", tmp_path / "o", "--json")
    assert refused.status == 2
    assert refused.document["code"] == "invalid tables"
    assert refused.document["where"] == {"file": str(names), "line": 4, "key": "person"}
    assert CANARY not in refused.out + refused.err
    assert not (tmp_path / "o").exists()
    for typed in (("--secret", "--json"), ("--link", "magic", "--secret", "age"), ("--person", "name")):
        assert command("audit", folder, *typed).status == 2


@pytest.mark.parametrize(
    "words", [("audit", "block", "--out", "found"), ("demo", "--out", "found")], ids=["audit", "demo"]
)
def test_without_the_solvers_nothing_is_begun(
    words: tuple[str, ...], folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    outcome = command(*words)
    assert outcome.status == 2
    assert "pip install 'dualmandate[audit]'" in outcome.err
    assert not Path("found").exists()
    assert folder.is_dir()
