"""`dualmandate publish`, in process: exactly the approved plan, once, and refusals that cost nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from tests.publication.reading_back import read_csv

from dualmandate.apps.publish import UNANCHORED
from dualmandate.errors import CannotWrite
from dualmandate.ledger import EventKind, Ledger, ReleaseState, open_ledger, read_key
from dualmandate.planning.saved_plan import with_pages
from dualmandate.publication import publish as publishing
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command

CANARY = "zanzibar-canary"
PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 90_000, unit = "person", source = "made up" }
source          = "residents.csv"
attributes.ward = { codes = "wards.csv" }
attributes.age  = { from = 0, to = 15 }

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50_000, unit = "USD per person^2", source = "made up" }

[[workload]]
name = "ages by ward"
by   = ["ward", "age"]
value_of_accuracy = { value = 50_000, unit = "USD per person^2", source = "made up" }

[mechanism]
noise    = "geometric"
strategy = "optimized"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "wards.csv").write_text("ward\nnorth\neast\nsouth\n", encoding="utf-8")
    rows = [f"{ward},{age}" for ward in ("north", "east", CANARY) for age in range(17) for _ in range(age + 1)]
    (tmp_path / "residents.csv").write_text("ward,age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    return tmp_path


def the_ledger(project: Path) -> Ledger:
    state = project / ".dualmandate"
    return open_ledger(state / "ledger.sqlite", read_key(state / "key"))


def approved(command: Command, *, cap: str = "10") -> dict[str, Any]:
    """A project whose plan is approved by Ben."""
    for words in (
        ["ledger", "open", "residents", "--unit", "person", "--cap", cap, "--by", "Ann"],
        ["plan", "program.toml", "--out", "report"],
    ):
        outcome = command(*words)
        assert outcome.status == 0, outcome.err
    outcome = command("approve", "report/plan.json", "--by", "Ben", "--json")
    assert outcome.status == 0, outcome.err
    return outcome.document


def refused(command: Command, *words: object, code: str) -> dict[str, Any]:
    outcome = command(*words, "--json")
    assert outcome.status == 2, outcome.err
    jsonschema.validate(outcome.document, schema("refusal"))
    assert outcome.document["code"] == code, outcome.err
    assert "Traceback" not in outcome.err
    assert CANARY not in outcome.err + outcome.out
    return outcome.document


def test_a_strategy_that_was_changed_after_the_approval_is_refused(command: Command, project: Path) -> None:
    """Its rows by their digest, and the values of the tables, which a release repeats, by the program."""
    approved(command)
    file = project / "report" / "strategies" / "all.json"
    whole = file.read_text(encoding="utf-8")
    document = json.loads(whole)
    document["values"]["wards"] = "1/7"
    file.write_text(json.dumps(document), encoding="utf-8")
    refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="invalid mechanism")
    assert the_ledger(project).spent("residents") == 0
    file.write_text(whole, encoding="utf-8")
    published = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json").document
    carried = project / "releases" / published["release"] / "strategies" / "all.json"
    assert json.loads(carried.read_text(encoding="utf-8")) == json.loads(whole)


def test_a_plan_that_states_another_guarantee_than_is_kept_is_not_published(command: Command, project: Path) -> None:
    """Also where the digest of what it shows is written anew."""
    approved(command)
    file = project / "report" / "plan.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["guarantee"]["protected"] = "Everybody, whatever they do."
    file.write_text(json.dumps(with_pages(document, {})), encoding="utf-8")
    refusal = refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="not approved")
    assert "another guarantee" in refusal["what"]
    assert the_ledger(project).spent("residents") == 0


def test_what_a_release_alone_has_cost_is_reported_beside_the_account(command: Command, project: Path) -> None:
    approved(command)
    release = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json").document["release"]
    words = ["ledger", "report", "residents", "--failure-probability", "0.001"]
    plain = command(*words, "--json").document
    assert plain["releases"] == []
    reported = command(*words, "--release", "releases", "--json").document
    jsonschema.validate(reported, schema("ledger-report"))
    [alone] = reported["releases"]
    assert {**reported, "releases": []} == plain  # the account is counted as before
    assert alone["release"] == release
    assert 0 < alone["by_distribution"]["amount"] < alone["by_conversion"]["amount"] == plain["epsilon"]["amount"]
    said = command(*words, "--release", f"releases/{release}").out.splitlines()
    assert said[1].startswith(f"release {release} alone: at most epsilon = ")
    assert said[1].endswith(" by its exact noise")
    opening = ["ledger", "open", "visitors", "--unit", "person", "--cap", "1", "--by", "Ann"]
    assert command(*opening).status == 0
    other = refused(
        command, "ledger", "report", "visitors", *words[3:], "--release", "releases", code="invalid request"
    )
    assert other["what"] == f"release {release} is not paid from 'visitors'"
    (project / "releases" / release / "tables" / "wards.csv").write_text("", encoding="utf-8")
    refused(command, *words, "--release", "releases", code="invalid release")


def test_an_approved_plan_is_published_once(command: Command, project: Path) -> None:
    approval = approved(command, cap="20")
    outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json")
    assert outcome.status == 0, outcome.err
    document = outcome.document
    jsonschema.validate(document, schema("publication"))
    assert document["plan_digest"] == approval["plan_digest"]
    assert document["loss"]["exact"] == approval["loss"]["exact"]
    folder = Path(document["directory"])
    assert folder.resolve() == project / "releases" / document["release"]
    facts = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    jsonschema.validate(facts, schema("release"))
    assert facts["loss"]["exact"] == approval["loss"]["exact"]
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        "release.json",
        "index.html",
        "measurements/all.parquet",
        "README.md",
        "data_dictionary.csv",
        "data_dictionary.json",
        "tables/wards.parquet",
        "tables/wards.csv",
        "tables/wards.xlsx",
        "tables/ages-by-ward.parquet",
        "tables/ages-by-ward.csv",
        "tables/ages-by-ward.xlsx",
        "strategies/all.json",
        "program/program.toml",
        "program/wards.csv",
    }
    wards = read_csv(folder / "tables" / "wards.csv").numbers["value"]
    ages = read_csv(folder / "tables" / "ages-by-ward.csv").numbers["value"]
    assert np.array_equal(ages.reshape(3, 16).sum(axis=1), wards)
    for path in folder.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes()
        assert path.is_dir() or b"residents.csv" not in path.read_bytes()  # the name of the confidential file
    refusal = refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="release conflict")
    assert document["release"] in refusal["what"]
    again = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--again", "--json")
    assert again.status == 0, again.err
    spent = the_ledger(project).spent("residents")
    assert spent == 2 * the_ledger(project).release(document["release"]).cost
    shown = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--again")
    assert "published: release" in shown.out
    assert "to open:" in shown.out


def test_a_program_is_planned_again_and_must_be_approved(command: Command, project: Path) -> None:
    refused(command, "publish", "program.toml", "--unchecked", code="ledger unavailable")
    approval = approved(command)
    outcome = command("publish", "program.toml", "--unchecked", "--by", "Eve", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.document["plan_digest"] == approval["plan_digest"]
    text = PROGRAM.replace("value = 2,", "value = 3,")
    (project / "program.toml").write_text(text, encoding="utf-8")
    assert "not approved" in refused(command, "publish", ".", "--unchecked", "--by", "Eve", code="not approved")["what"]


def test_what_was_changed_after_it_was_signed_is_refused(command: Command, project: Path) -> None:
    approved(command)
    spent = the_ledger(project).spent("residents")
    plan = project / "report" / "plan.json"
    signed = plan.read_text(encoding="utf-8")
    for file, old, new in (
        (plan, '"noise": "geometric"', '"noise": "laplace"'),
        (project / "program.toml", "90_000", "90_001"),
        (project / "wards.csv", "south", "west"),
        (project / "report" / "strategies" / "all.json", '"weights"', '"weight"'),
    ):
        before = file.read_text(encoding="utf-8")
        assert old in before
        file.write_text(before.replace(old, new), encoding="utf-8")
        outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json")
        assert outcome.status == 2, file
        assert outcome.document["code"] in ("invalid file", "not approved", "invalid mechanism"), outcome.err
        file.write_text(before, encoding="utf-8")
    assert plan.read_text(encoding="utf-8") == signed
    assert the_ledger(project).spent("residents") == spent == 0
    assert command("publish", "report/plan.json", "--unchecked", "--by", "Eve").status == 0


def test_a_plan_far_from_its_program_says_so(command: Command, project: Path, tmp_path_factory: Any) -> None:
    approved(command)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "plan.json").write_bytes((project / "report" / "plan.json").read_bytes())
    refusal = refused(command, "publish", elsewhere / "plan.json", code="invalid file")
    assert "program file itself" in refusal["instead"]


def test_without_a_source_or_an_exact_sampler_nothing_is_published(command: Command, project: Path) -> None:
    (project / "program.toml").write_text(PROGRAM.replace('source          = "residents.csv"\n', ""), encoding="utf-8")
    approved(command)
    assert (
        refused(command, "publish", "report/plan.json", "--unchecked", code="invalid request")["where"]["key"]
        == "population.source"
    )
    text = PROGRAM.replace('"geometric"', '"staircase"').replace('strategy = "optimized"', 'strategy = "workload"')
    (project / "program.toml").write_text(text, encoding="utf-8")
    assert command("plan", "program.toml", "--out", "report").status == 0
    assert (
        "staircase" in refused(command, "publish", "report/plan.json", "--unchecked", code="invalid mechanism")["what"]
    )
    assert the_ledger(project).releases() == ()


def test_an_interrupted_publication_names_the_command_that_resumes(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved(command)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "measure", interrupted)
        outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve")
    assert outcome.status == 130
    [entry] = the_ledger(project).releases()
    assert f"dualmandate publish report/plan.json --resume {entry.name}" in outcome.err
    resumed = command("publish", "report/plan.json", "--unchecked", "--resume", entry.name, "--by", "Eve")
    assert resumed.status == 0, resumed.err
    assert the_ledger(project).release(entry.name).state is ReleaseState.SETTLED
    assert refused(
        command, "publish", "report/plan.json", "--unchecked", "--resume", "residents-99", code="release conflict"
    )


def test_a_source_without_a_column_is_refused_before_anything_is_spent(command: Command, project: Path) -> None:
    approved(command)
    records = project / "residents.csv"
    whole = records.read_text(encoding="utf-8")
    records.write_text(whole.replace("ward,age", f"ward,{CANARY}"), encoding="utf-8")
    refusal = refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="unreadable source")
    assert "rename the column" in refusal["instead"]
    assert the_ledger(project).releases() == ()  # the header is no secret, and is read before a loss is set aside
    records.write_text(whole, encoding="utf-8")
    assert command("publish", "report/plan.json", "--unchecked", "--by", "Eve").status == 0


def copied(project: Path, name: str) -> Path:
    """A backup of the ledger's whole folder."""
    shutil.copytree(project / ".dualmandate", project / name)
    return project / name


def restore(project: Path, backup: Path) -> None:
    shutil.rmtree(project / ".dualmandate")
    shutil.copytree(backup, project / ".dualmandate")


@pytest.mark.parametrize("elsewhere", ["beside the data", "renamed data", "beside the releases", "second place"])
def test_a_restored_ledger_publishes_nowhere(command: Command, project: Path, elsewhere: str) -> None:
    """Whichever of its anchors is left: beside the data, in the usual folder of releases, in the second place."""
    if elsewhere == "second place":
        (project / "other").mkdir()
        (project / "dualmandate.toml").write_text('anchor_file = "other/head"\n', encoding="utf-8")
    approved(command, cap="20")
    backup = copied(project, "backup")
    assert command("publish", "report/plan.json", "--unchecked", "--by", "Eve").status == 0
    [account] = command("ledger", "accounts", "--json").document["accounts"]
    [beside] = project.glob("residents.csv.*.anchor")
    if elsewhere == "renamed data":  # the link is what the program names, and stands for another file than before
        (project / "residents.csv").rename(project / "people.csv")
        (project / "residents.csv").symlink_to("people.csv")
    elif elsewhere != "beside the data":
        beside.unlink()
    if elsewhere != "beside the releases":
        shutil.move(project / "releases", project / "away")
    restore(project, backup)
    words = ["publish", "report/plan.json", "--unchecked", "--by", "Eve", "--out", "out2"]
    refusal = refused(command, *words, code="ledger tampered")
    assert "and its anchor knows" in refusal["what"]
    assert account["spent"] != "0"
    with sqlite3.connect(project / ".dualmandate" / "ledger.sqlite") as rows:
        assert rows.execute("SELECT count(*) FROM ledger_entry WHERE kind = 'reserved'").fetchone() == (0,)
    assert not list(project.glob("out2/*"))


def test_two_cloned_folders_spend_one_cap(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project.parent / f"{project.name} elsewhere"
    place.mkdir()
    text = f'anchor_append = "{place / "heads"}"\n'
    (project / "dualmandate.toml").write_text(text, encoding="utf-8")
    approved(command, cap="10")
    clone = project.parent / f"{project.name} clone"
    shutil.copytree(project, clone)
    assert command("publish", "report/plan.json", "--unchecked", "--by", "Eve").status == 0
    monkeypatch.chdir(clone)
    refusal = refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="ledger tampered")
    assert "its anchor knows" in refusal["what"]
    assert not list(clone.glob("releases/*"))


def test_a_folder_of_data_that_keeps_no_anchor_is_told(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved(command, cap="20")

    def not_writable(*words: object, **more: object) -> None:
        raise CannotWrite("it", why="read-only", instead="no")

    monkeypatch.setattr("dualmandate.publication.beside_data.advance_anchor", not_writable)
    outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve")
    assert outcome.status == 0, outcome.err
    assert "no anchor could be kept beside the data, and no second place is named" in outcome.out
    assert not list(project.glob("residents.csv.*.anchor"))
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert UNANCHORED not in command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--again").out
    monkeypatch.setattr("dualmandate.publication.beside_data.advance_anchor", not_writable)
    later = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--again")
    assert UNANCHORED in later.out, later.err  # the anchor that stands there knows nothing of this release


def test_a_damaged_anchor_beside_the_data_is_refused(command: Command, project: Path) -> None:
    approved(command, cap="20")
    published = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json").document
    assert published["anchored"] is True
    [beside] = project.glob("residents.csv.*.anchor")
    assert beside.stat().st_mode & 0o777 == 0o644
    head = json.loads((Path(published["directory"]) / "release.json").read_text(encoding="utf-8"))["ledger_head"]
    assert json.loads(beside.read_text(encoding="utf-8"))["ledger_head"] == head
    beside.write_text("{", encoding="utf-8")
    words = ["publish", "report/plan.json", "--unchecked", "--by", "Eve", "--again"]
    assert "anchor of the ledger cannot be read" in refused(command, *words, code="ledger tampered")["what"]


def second_ledger(command: Command, project: Path) -> None:
    """Another ledger with a full cap for the same people, as anybody may open one."""
    shutil.rmtree(project / ".dualmandate")
    approved(command, cap="10")


REASON = "agreed with the board on 3 May"


@pytest.mark.parametrize("known_by", ["the data", "the usual folder", "--out"])
def test_a_second_ledger_for_the_same_people_is_seen(command: Command, project: Path, known_by: str) -> None:
    approved(command)
    first = the_ledger(project).identifier
    assert command("publish", "report/plan.json", "--unchecked", "--by", "Eve").status == 0
    [beside] = project.glob("residents.csv.*.anchor")
    if known_by != "the data":
        beside.unlink()
    if known_by != "the usual folder":
        shutil.move(project / "releases", project / "out2")
    second_ledger(command, project)
    out = "out3" if known_by == "the data" else "out2"
    words = ["publish", "report/plan.json", "--unchecked", "--by", "Eve", "--out", out]
    refusal = refused(command, *words, code="release conflict")
    assert refusal["what"] == f"another ledger has spent from 'residents.csv': {first}"
    assert "--other-ledger REASON" in refusal["instead"]
    assert the_ledger(project).spent("residents") == 0
    made = command(*words, "--other-ledger", REASON, "--json")
    if known_by == "--out":  # a release of the same name is there: nothing of others is overwritten
        assert made.status == 2
        made = command(*words[:-1], "out4", "--other-ledger", REASON, "--resume", "residents-1", "--json")
    assert made.status == 0, made.err
    facts = json.loads((Path(made.document["directory"]) / "release.json").read_text(encoding="utf-8"))
    jsonschema.validate(facts, schema("release"))
    assert facts["other_ledgers"] == {"ledgers": [first], "reason": REASON}
    page = (Path(made.document["directory"]) / "index.html").read_text(encoding="utf-8")
    assert REASON in page
    assert "loses the sum of what both have spent" in page
    [reserved] = [each for each in the_ledger(project).events() if each.kind is EventKind.RESERVED]
    assert reserved.document()["beside"] == {"ledgers": [first], "reason": REASON}
    for shown in (["ledger", "events"], ["ledger", "show"]):
        assert f"beside another ledger ({first[:12]}…): '{REASON}'" in command(*shown).out
    document = command("ledger", "show", "--json").document
    jsonschema.validate(document, schema("ledger"))
    assert document["accounts"][0]["releases"][0]["beside"]["reason"] == REASON


def test_a_damaged_anchor_of_another_ledger_is_another_ledger(command: Command, project: Path) -> None:
    approved(command)
    (project / f"residents.csv.{'0a' * 8}.anchor").write_text("{", encoding="utf-8")
    (project / "residents.csv.notes.anchor").write_text("{", encoding="utf-8")  # nobody's
    refusal = refused(command, "publish", "report/plan.json", "--unchecked", "--by", "Eve", code="release conflict")
    assert refusal["what"].endswith(f": {'0a' * 8}")


def test_an_account_has_an_identifier_in_plans_releases_and_statements(command: Command, project: Path) -> None:
    """Three ways to the same digits: the ledger's, the documents', and SHA-256 over what a release holds."""
    assert command("plan", "program.toml", "--json").document["program"]["account_identifier"] is None
    approved(command)
    planned = json.loads((project / "report" / "plan.json").read_text(encoding="utf-8"))
    release = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json").document
    facts = json.loads((Path(release["directory"]) / "release.json").read_text(encoding="utf-8"))
    parts = [each.encode() for each in ("account/1", facts["ledger_head"]["ledger"], facts["account"])]
    content = b"".join(len(each).to_bytes(8, "big") + each for each in parts)
    own = hashlib.sha256(content).hexdigest()[:24]
    assert the_ledger(project).account_identifier("residents") == own
    assert planned["program"]["account_identifier"] == facts["account_identifier"] == own
    assert "other_ledgers" not in facts
    assert own in (Path(release["directory"]) / "index.html").read_text(encoding="utf-8")
    [account] = command("ledger", "accounts", "--json").document["accounts"]
    assert account["identifier"] == own
    assert f"account {own}" in command("ledger", "show").out
    assert f"spent from the account 'residents' ({own})" in command("plan", "program.toml", "--full").out
    without = command("plan", "program.toml", "--ledger", "nowhere.sqlite", "--json")
    assert without.status == 2


def test_a_plan_for_the_account_of_another_ledger_is_neither_approved_nor_published(
    command: Command, project: Path
) -> None:
    approved(command)
    plan = (project / "report" / "plan.json").read_text(encoding="utf-8")
    second_ledger(command, project)
    (project / "report" / "plan.json").write_text(plan, encoding="utf-8")
    for words in (
        ["approve", "report/plan.json", "--by", "Zoe"],
        ["publish", "report/plan.json", "--unchecked", "--by", "Eve"],
    ):
        refusal = refused(command, *words, code="not approved")
        assert refusal["what"] == "the plan was made for the account 'residents' of another ledger"
    assert the_ledger(project).spent("residents") == 0
