"""`dualmandate ledger …`, `approve` and `plan --ledger`, in process: what they record, print and refuse."""

from __future__ import annotations

import getpass
import json
import shutil
import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from dualmandate import load
from dualmandate.apps import ledgers
from dualmandate.errors import BudgetExceeded
from dualmandate.ledger import Account, Approval, Ledger, ReleaseState, Request, open_ledger, read_key
from dualmandate.planning.saved_plan import with_pages
from dualmandate.population import PrivacyLoss
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command, Outcome

PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 90_000, unit = "person", source = "made up" }
attributes.ward = ["north", "east", "south", "west"]

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
GAUSSIAN = {
    'noise = "geometric"': 'noise = "gaussian"',
    "USD per person per epsilon": "USD per person per rho",
}
AT_DELTA = {'noise = "geometric"': 'noise = "gaussian"\nfailure_probability = 1e-6'}
BEST_AT_DELTA = {'noise = "geometric"': 'noise = "best"\nfailure_probability = 1e-6'}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of a small program, here; the dossier is drawn in tests/journeys."""
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    change({})
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    return tmp_path


def change(changes: dict[str, str]) -> None:
    """Write the program, with parts of it replaced."""
    text = PROGRAM
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    Path("program.toml").write_text(text, encoding="utf-8")


def opened(command: Command, *words: str, cap: str = "10", unit: str = "person") -> Outcome:
    outcome = command("ledger", "open", "residents", "--unit", unit, "--cap", cap, "--by", "Ann", *words)
    assert outcome.status == 0, outcome.err
    return outcome


def planned(command: Command, *words: str) -> dict[str, Any]:
    """The plan as it was saved: what publishing it would take is printed alone."""
    outcome = command("plan", "program.toml", "--out", "report", "--json", *words)
    assert outcome.status == 0, outcome.err
    return {key: value for key, value in outcome.document.items() if key != "publishing"}


def the_ledger(project: Path) -> Ledger:
    state = project / ".dualmandate"
    return open_ledger(state / "ledger.sqlite", read_key(state / "key"))


def spend(project: Path, digest: str, loss: PrivacyLoss) -> None:
    """What `publish` will do first: reserve and open a release of the approved plan."""
    ledger = the_ledger(project)
    release = ledger.reserve(Request("residents", digest, "2026", loss, "person", user="Eve"))
    ledger.advance(release.name, ReleaseState.OPENED, by="Eve")


def refused(command: Command, *words: object, code: str) -> dict[str, Any]:
    """Exit 2, four parts, no traceback, and nothing written or recorded."""
    folder = Path.cwd()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    outcome = command(*words, "--json")
    assert outcome.status == 2, outcome.err
    jsonschema.validate(outcome.document, schema("refusal"))
    assert outcome.document["code"] == code, outcome.err
    assert "Traceback" not in outcome.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return outcome.document


def test_from_a_new_program_to_an_approved_plan(command: Command, tmp_path: Path) -> None:
    (tmp_path / "dualmandate.toml").unlink()
    (tmp_path / "program.toml").unlink()
    assert command("init", "blank", ".").status == 0
    change({})
    opened(command)
    plan = planned(command)
    approved = command("approve", "report/plan.json", "--by", "Ben", "--json")
    assert approved.status == 0, approved.err
    assert approved.document["schema"] == "approval/1"
    assert approved.document["plan_digest"] == plan["digest"]
    assert approved.document["loss"] == {
        "exact": plan["loss"]["exact"],
        "amount": plan["loss"]["amount"],
        "currency": "epsilon",
    }
    shown = command("ledger", "show", "--json")
    assert shown.document["schema"] == "ledger/1"
    assert shown.document["ledger_head"]["sequence"] == 2
    [account] = shown.document["accounts"]
    assert (account["name"], account["unit"], account["currency"]) == ("residents", "person", "epsilon")
    assert account["cap"] == account["remaining"] == {"exact": "10", "amount": 10.0}
    assert account["spent"]["exact"] == "0"
    [approval] = account["approvals"]
    assert (approval["plan_digest"], approval["by"]) == (plan["digest"], "Ben")
    assert f"plan {plan['digest'][:12]}… approved by Ben" in command("ledger", "show").out
    assert ".dualmandate/" in (tmp_path / ".gitignore").read_text(encoding="utf-8")


def test_open_makes_ledger_key_and_anchor_for_their_owner_alone(command: Command, project: Path) -> None:
    outcome = opened(command, "--json")
    assert outcome.document["schema"] == "ledger-account/1"
    assert outcome.document["key_file"] == str(project / ".dualmandate" / "key")
    files = sorted((project / ".dualmandate").iterdir())
    assert [file.name for file in files] == ["key", "ledger.sqlite", "ledger.sqlite.anchor"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    key = files[0].read_text(encoding="utf-8").strip()
    assert key not in outcome.out + outcome.err


def test_a_second_account_keeps_the_key_and_the_first(command: Command, project: Path) -> None:
    opened(command)
    key = (project / ".dualmandate" / "key").read_bytes()
    assert command("ledger", "open", "firms", "--unit", "firm", "--cap", "rho=1/3", "--approver-differs").status == 0
    assert (project / ".dualmandate" / "key").read_bytes() == key
    listed = command("ledger", "accounts", "--json").document
    assert listed["schema"] == "ledger-accounts/1"
    assert [(a["name"], a["currency"], a["cap"]["exact"]) for a in listed["accounts"]] == [
        ("residents", "epsilon", "10"),
        ("firms", "rho", "1/3"),
    ]
    assert listed["accounts"][1]["approver_differs"] is True
    assert command("ledger", "accounts").out.splitlines()[1] == "firms (firm): rho 1/3 in all, 0 spent, 1/3 left"
    assert the_ledger(project).events()[1].by == getpass.getuser()


def test_an_account_is_not_opened_twice_nor_its_cap_raised(command: Command) -> None:
    opened(command)
    document = refused(
        command, "ledger", "open", "residents", "--unit", "person", "--cap", "20", code="invalid account"
    )
    assert "open already" in document["what"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["residents", "--unit", "person", "--cap", "0"], "invalid loss"),
        (["residents", "--unit", "person", "--cap", "-1"], "invalid loss"),
        (["residents", "--unit", "person", "--cap", "much"], "invalid loss"),
        (["residents", "--unit", "person", "--cap", "inf"], "invalid loss"),
        (["residents", "--unit", "person", "--cap", "sigma=1"], "invalid account"),
        (["residents", "--unit", " ", "--cap", "1"], "invalid account"),
        (["", "--unit", "person", "--cap", "1"], "invalid account"),
        (["residents", "--unit", "person", "--cap", "1", "--by", "A\nB"], "invalid account"),
        (["residents", "--unit", "person", "--cap", "1", "--ledger", "mysql://host/x"], "ledger unavailable"),
        (["residents", "--unit", "person"], "invalid request"),
        (["residents", "--unit", "person", "--cap", "1", "--ledger"], "invalid request"),
    ],
)
def test_an_account_that_cannot_be_meant_leaves_no_ledger(command: Command, words: list[str], code: str) -> None:
    refused(command, "ledger", "open", *words, code=code)
    assert not Path(".dualmandate").exists()


def test_a_ledger_that_cannot_be_made_leaves_no_key(command: Command) -> None:
    Path("folder").mkdir()
    words = ["ledger", "open", "residents", "--unit", "person", "--cap", "1", "--ledger", "folder"]
    refused(command, *words, code="cannot write")
    assert not Path("key").exists()


def test_a_ledger_without_its_key_is_not_given_another(command: Command, project: Path) -> None:
    opened(command)
    (project / ".dualmandate" / "key").unlink()
    refused(command, "ledger", "open", "firms", "--unit", "firm", "--cap", "1", code="unsafe key")
    refused(command, "ledger", "show", code="unsafe key")


def test_nothing_to_show_without_a_ledger_or_a_project(command: Command, project: Path) -> None:
    for words in (["show"], ["accounts"], ["events"], ["verify"], ["report", "x", "--failure-probability", "1e-6"]):
        assert refused(command, "ledger", *words, code="ledger unavailable")["what"] == "there is no ledger"
    planned(command)
    refused(command, "approve", "report/plan.json", code="ledger unavailable")
    (project / "dualmandate.toml").unlink()
    assert "no project here" in refused(command, "ledger", "show", code="ledger unavailable")["what"]
    place = "postgresql://me:pa55@/x?host=nowhere"
    outside = refused(command, "ledger", "show", "--ledger", place, code="ledger unavailable")
    assert "pa55" not in json.dumps(outside)


def test_a_key_that_others_may_read_is_refused(command: Command, project: Path) -> None:
    opened(command)
    planned(command)
    (project / ".dualmandate" / "key").chmod(0o640)
    for words in (["ledger", "show"], ["ledger", "verify"], ["approve", "report/plan.json"]):
        assert "0640" in refused(command, *words, code="unsafe key")["what"]


def test_the_key_may_lie_elsewhere(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALMANDATE_KEY_FILE", str(project / "safe" / "ledger key"))
    opened(command)
    assert (project / "safe" / "ledger key").is_file()
    assert not (project / ".dualmandate" / "key").exists()
    assert command("ledger", "verify").status == 0


def test_the_ledger_is_found_by_flag_variable_project_file_and_default(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    for place in ("default", "file", "variable", "flag"):
        if place == "file":
            (project / "dualmandate.toml").write_text('ledger = "from-file/ledger.sqlite"\n', encoding="utf-8")
        if place == "variable":
            monkeypatch.setenv("DUALMANDATE_LEDGER", "from-variable/ledger.sqlite")
        flag = ["--ledger", "sqlite:///from-flag/ledger.sqlite"] if place == "flag" else []
        words = ["ledger", "open", place, "--unit", "person", "--cap", "1", *flag]
        assert command(*words).status == 0
        assert command("ledger", "accounts", *flag).out.startswith(f"{place} (person)")
    for folder in (".dualmandate", "from-file", "below/from-variable", "below/from-flag"):
        assert (project / folder / "ledger.sqlite").is_file()
        assert (project / folder / "key").is_file()


def test_doctor_shows_no_password(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALMANDATE_LEDGER", "postgresql://me:s3@/cret@host/x?password=s3cret&sslmode=require")
    outcome = command("doctor", "--json")
    assert outcome.status == 0
    assert "s3" not in outcome.out + outcome.err
    assert "cret" not in outcome.out + outcome.err
    assert "sslmode=require" in outcome.out


def test_approving_twice_is_refused_and_a_second_person_may(command: Command) -> None:
    opened(command)
    planned(command)
    assert command("approve", "report/plan.json", "--by", "Ben").status == 0
    twice = refused(command, "approve", "report/plan.json", "--by", "Ben", code="release conflict")
    assert twice["what"] == "Ben approved this plan already, in entry 2"
    assert command("approve", "report/plan.json", "--by", "Eve").status == 0
    [account] = command("ledger", "show", "--json").document["accounts"]
    assert [approval["by"] for approval in account["approvals"]] == ["Ben", "Eve"]


@pytest.mark.parametrize(
    ("key", "value"), [("loss", {"amount": "1", "currency": "epsilon"}), ("plan", "2"), ("code_lists", {"x": "y"})]
)
def test_a_plan_edited_after_it_was_saved_is_not_approved(command: Command, key: str, value: object) -> None:
    opened(command)
    document = planned(command)
    document["exact"][key] = value
    Path("report/plan.json").write_text(json.dumps(document), encoding="utf-8")
    refusal = refused(command, "approve", "report/plan.json", code="invalid file")
    assert "changed after it was made" in refusal["what"]


def test_a_plan_that_shows_other_words_or_numbers_than_it_signs_is_not_approved(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that a board holds says 6.3651 while 7.3651 is approved: also where every digest is written anew."""
    opened(command)
    document = planned(command)
    changes: dict[str, Any] = {
        "choice.epsilon": lambda plan: plan["choice"].update(epsilon=plan["choice"]["epsilon"] - 1e-3),
        "choice.explanation": lambda plan: plan["choice"].update(explanation="Nobody loses anything."),
        "tables[0].half_width": lambda plan: plan["tables"][0].update(half_width=0.0),
        "guarantee.beliefs[0]": lambda plan: plan["guarantee"]["beliefs"].__setitem__(0, "Nothing is learned."),
        "notes": lambda plan: plan["notes"].append("The board need not read on."),
    }
    for key, change_plan in changes.items():
        forged = json.loads(json.dumps(document))
        change_plan(forged)
        Path("report/plan.json").write_text(json.dumps(with_pages(forged, {})), encoding="utf-8")
        refusal = refused(command, "approve", "report/plan.json", code="invalid file")
        assert refusal["what"] == "'plan.json' does not say what its digest stands for"
        assert f"`{key}`" in refusal["why"]
        Path("report/plan.json").write_text(json.dumps(forged), encoding="utf-8")  # with the digest that it had
        for words in (["approve", "report/plan.json"], ["publish", "report/plan.json", "--unchecked"]):
            assert "was changed after it was made" in refused(command, *words, code="invalid file")["what"]
    monkeypatch.setattr("dualmandate.report.dossier.dossier_texts", lambda plan: {"dossier.html": "epsilon = 7.3651"})
    page = Path("report/dossier.html")
    page.write_text("epsilon = 6.3651", encoding="utf-8")
    kept = with_pages(document, {"dossier.html": b"epsilon = 7.3651"})
    Path("report/plan.json").write_text(json.dumps(kept), encoding="utf-8")
    for words in (["approve", "report/plan.json"], ["publish", "report/plan.json", "--unchecked"]):
        assert "'dossier.html' was changed" in refused(command, *words, code="invalid file")["what"]
    forged = with_pages(document, {"dossier.html": page.read_bytes()})
    Path("report/plan.json").write_text(json.dumps(forged), encoding="utf-8")
    assert "'dossier.html' does not say" in refused(command, "approve", "report/plan.json", code="invalid file")["what"]
    page.unlink()  # a drawing alone is looked at too
    drawing = Path("report/figures/regret.svg")
    drawing.parent.mkdir()
    drawing.write_text("<svg>6.3651</svg>", encoding="utf-8")
    monkeypatch.setattr(
        "dualmandate.report.dossier.dossier_texts",
        lambda plan: {"dossier.html": "epsilon = 7.3651", "figures/regret.svg": "<svg>7.3651</svg>"},
    )
    forged = with_pages(document, {"figures/regret.svg": drawing.read_bytes()})
    Path("report/plan.json").write_text(json.dumps(forged), encoding="utf-8")
    assert "'regret.svg' does not say" in refused(command, "approve", "report/plan.json", code="invalid file")["what"]
    drawing.unlink()
    page.write_text("epsilon = 7.3651", encoding="utf-8")
    Path("report/plan.json").write_text(json.dumps(kept), encoding="utf-8")
    assert command("approve", "report/plan.json", "--by", "Ben").status == 0
    for key, change_plan in changes.items():  # and what says something else once it is approved is not published
        forged = json.loads(json.dumps(kept))
        change_plan(forged)
        Path("report/plan.json").write_text(json.dumps(with_pages(forged, {})), encoding="utf-8")
        if key != "guarantee.beliefs[0]":  # which is refused for itself
            assert f"`{key}`" in refused(command, "publish", "report/plan.json", code="invalid file")["why"]


def test_a_plan_apart_from_its_program_is_approved_by_what_it_carries_along(command: Command, tmp_path: Path) -> None:
    """A board holds the plan's folder alone: what the digest covers is planned again, without the program's file."""
    opened(command)
    document = planned(command)
    Path("program.toml").rename(tmp_path / "kept-elsewhere.toml")
    forged = {**document, "choice": {**document["choice"], "epsilon": document["choice"]["epsilon"] - 1e-3}}
    Path("report/plan.json").write_text(json.dumps(with_pages(forged, {})), encoding="utf-8")
    assert "`choice.epsilon`" in refused(command, "approve", "report/plan.json", code="invalid file")["why"]
    Path("report/plan.json").write_text(json.dumps(document), encoding="utf-8")
    assert command("approve", "report/plan.json", "--by", "Ben").status == 0
    assert (
        "was not found" in refused(command, "publish", "report/plan.json", "--unchecked", code="invalid file")["what"]
    )


def test_a_plan_that_counted_the_ledger_is_followed_with_what_was_left_then(command: Command) -> None:
    opened(command, cap="1/3")
    assert command("plan", "program.toml", "--out", "report", "--ledger", ".dualmandate/ledger.sqlite").status == 0
    plan = json.loads(Path("report/plan.json").read_text(encoding="utf-8"))
    assert (plan["choice"]["bound_by"], plan["remaining"]) == ("ledger", "1/3")
    assert command("approve", "report/plan.json", "--by", "Ben").status == 0
    spend(Path(), plan["digest"], PrivacyLoss(Fraction(plan["loss"]["exact"])))
    assert command("approve", "report/plan.json", "--by", "Cleo").status == 0


def test_a_plan_that_counted_what_the_account_never_had_is_not_approved(command: Command) -> None:
    """All else in it follows from the number that it states: it was planned with another ledger, and names this one."""
    opened(command)
    own = planned(command)["program"]["account_identifier"]
    rich = ["--ledger", "other/ledger.sqlite"]
    Path("other").mkdir()
    opened(command, *rich, cap="1000000")
    document = planned(command, *rich)
    document["program"]["account_identifier"] = own
    Path("report/plan.json").write_text(json.dumps(with_pages(document, {})), encoding="utf-8")
    assert "`remaining`" in refused(command, "approve", "report/plan.json", code="invalid file")["why"]


def test_a_file_that_is_no_plan_is_not_approved(command: Command) -> None:
    opened(command)
    refused(command, "approve", "program.toml", code="invalid file")
    refused(command, "approve", "nowhere.json", code="invalid file")


def test_an_account_nobody_opened_is_refused_with_those_there_are(command: Command) -> None:
    opened(command)
    change({'"residents"': '"visitors"'})
    planned(command)
    asked = (
        ["approve", "report/plan.json"],
        ["plan", "program.toml", "--ledger", ".dualmandate/ledger.sqlite"],
        ["ledger", "show", "visitors"],
        ["ledger", "events", "visitors"],
        ["ledger", "report", "visitors", "--failure-probability", "1e-6"],
    )
    for words in asked:
        assert "'residents'" in refused(command, *words, code="invalid account")["why"]


def test_a_plan_in_rho_or_for_another_unit_is_not_paid_from_an_account_in_epsilon(command: Command) -> None:
    opened(command)
    counted = ["plan", "program.toml", "--ledger", ".dualmandate/ledger.sqlite"]
    change(GAUSSIAN)
    assert planned(command)["loss"]["currency"] == "rho"
    assert "counts in epsilon" in refused(command, "approve", "report/plan.json", code="invalid account")["what"]
    refused(command, *counted, code="invalid account")
    change(AT_DELTA)
    refused(command, *counted, code="invalid account")
    text = PROGRAM.replace("person", "household")
    Path("program.toml").write_text(text, encoding="utf-8")
    planned(command)
    assert "household" in refused(command, "approve", "report/plan.json", code="invalid account")["what"]
    refused(command, *counted, code="invalid account")


def test_what_is_spent_is_shown_and_reported(command: Command, project: Path) -> None:
    opened(command)
    document = planned(command)
    command("approve", "report/plan.json", "--by", "Ben")
    loss = PrivacyLoss.pure(document["loss"]["exact"])
    spend(project, document["digest"], loss)
    [account] = command("ledger", "show", "residents", "--json").document["accounts"]
    assert account["spent"]["exact"] == loss.exact()
    assert Fraction(account["remaining"]["exact"]) == 10 - loss.amount
    [release] = account["releases"]
    assert (release["state"], release["user"], release["cost"]["exact"]) == ("opened", "Eve", loss.exact())
    assert "release residents-1 of plan" in command("ledger", "show").out
    reported = command("ledger", "report", "residents", "--failure-probability", "1e-10", "--json").document
    assert (reported["epsilon"]["exact"], reported["failure_probability"]["exact"]) == (loss.exact(), "0")
    kinds = [event["kind"] for event in command("ledger", "events", "--json").document["events"]]
    assert kinds == ["account opened", "approved", "reserved", "opened"]
    lines = command("ledger", "events", "residents").out.splitlines()
    assert lines[0].endswith("account opened by Ann, 'residents', epsilon 10")
    assert lines[3].endswith("opened by Eve, 'residents', release residents-1")


def test_an_account_in_rho_is_reported_by_the_tight_conversion(command: Command, project: Path) -> None:
    opened(command, cap="rho=3")
    nothing = command("ledger", "report", "residents", "--failure-probability", "1e-10")
    assert nothing.out == "each person of 'residents' has lost nothing so far\n"
    digest, loss = "a1" * 32, PrivacyLoss.concentrated("2.5562")
    the_ledger(project).approve(Approval("residents", digest, loss, "person", by="Ben"))
    spend(project, digest, loss)
    words = ["ledger", "report", "residents", "--failure-probability", "1e-10"]
    reported = command(*words, "--json").document
    assert reported["label"] == "public"
    assert round(reported["epsilon"]["amount"], 2) == 17.14  # the 2020 Census, for its persons
    assert reported["failure_probability"]["amount"] == 1e-10
    assert "(exactly rho 2.5562)" in command(*words).out


@pytest.mark.parametrize("probability", ["0", "1", "-1e-6", "small", "nan"])
def test_a_failure_probability_that_is_none_is_refused(command: Command, probability: str) -> None:
    opened(command)
    words = ["ledger", "report", "residents", f"--failure-probability={probability}"]
    refused(command, *words, code="invalid loss")


def test_verify_says_what_it_checked(command: Command, project: Path) -> None:
    opened(command)
    document = command("ledger", "verify", "--json").document
    assert document["schema"] == "ledger-verification/1"
    assert document["ledger_head"]["sequence"] == 1
    assert document["anchors"] == [str(project / ".dualmandate" / "ledger.sqlite.anchor")]
    assert document["clock_set_back"] == []
    assert command("ledger", "verify").out.startswith("whole: 1 entry, each chained")
    copy = shutil.copy(project / ".dualmandate" / "ledger.sqlite.anchor", project / "copy.json")
    assert "known to 2 anchors" in command("ledger", "verify", "--anchor", copy).out


def test_verify_says_what_it_cannot_see(command: Command, project: Path) -> None:
    opened(command)
    said = command("ledger", "verify").out
    assert "No second place keeps the ledger's head; name one in dualmandate.toml" in said
    document = command("ledger", "verify", "--json").document
    jsonschema.validate(document, schema("ledger-verification"))
    assert (document["places"], document["same_disk"]) == ([], [])
    assert "an older copy" in document["unseen"]


def test_a_second_place_is_begun_by_an_act_that_is_recorded(command: Command, project: Path) -> None:
    opened(command)
    refused(command, "ledger", "anchor", "--by", "Ann", code="invalid request")
    (project / "dualmandate.toml").write_text('anchor_file = "other/head"\n', encoding="utf-8")
    planned(command)
    approving = ["approve", "report/plan.json", "--by", "Ben"]
    unbegun = refused(command, *approving, code="ledger unavailable")
    assert "kept in no second place, and the project names the file" in unbegun["what"]
    refused(command, "ledger", "anchor", "--by", "Ann", code="cannot write")
    (project / "other").mkdir()
    begun = command("ledger", "anchor", "--by", "Ann", "--json")
    assert begun.status == 0, begun.err
    jsonschema.validate(begun.document, schema("ledger-anchoring"))
    words = f"the file '{project / 'other' / 'head'}'"
    assert (begun.document["places"], begun.document["before"]) == ([words], [])
    assert command(*approving).status == 0
    said = command("ledger", "verify").out
    assert f"kept in {words}, up to entry 3" in said
    assert f"{words} is on the disk of the ledger" in said
    assert "No second place" not in said
    assert "anchored by Ann" in command("ledger", "events").out
    (project / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    dropped = refused(command, "approve", "report/plan.json", "--by", "Eve", code="ledger unavailable")
    assert "the project names no second place" in dropped["what"]
    assert f"it is kept no longer in {words}" in command("ledger", "anchor", "--by", "Ann").out
    assert command("approve", "report/plan.json", "--by", "Eve").status == 0


def test_a_new_ledger_is_kept_elsewhere_from_its_first_entry(command: Command, project: Path) -> None:
    (project / "other").mkdir()
    (project / "dualmandate.toml").write_text('anchor_append = "other/heads"\n', encoding="utf-8")
    opened(command)
    kinds = [event["kind"] for event in command("ledger", "events", "--json").document["events"]]
    assert kinds == ["anchored", "account opened"]
    lines = (project / "other" / "heads").read_text(encoding="utf-8").split()
    assert len(lines) % 3 == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('anchor_database = "head.sqlite"', "no other PostgreSQL database"),
        ('anchor_database = "sqlite:///head.sqlite"', "no other PostgreSQL database"),
        ('anchor_command = "\'notary"', "is not a command"),
        ("anchor_command = 3", "is not a text"),
        ("anchor_file = 3", "is not a path"),
    ],
)
def test_a_second_place_nobody_can_mean_is_refused(command: Command, project: Path, text: str, what: str) -> None:
    opened(command)
    (project / "dualmandate.toml").write_text(f"schema = 1\n{text}\n", encoding="utf-8")
    refusal = refused(command, "ledger", "show", code="invalid value")
    assert what in refusal["what"]
    assert refusal["where"]["line"] == 2


@pytest.mark.parametrize("harm", ["edit", "shorten", "restore", "anchor", "copy"])
def test_a_ledger_that_somebody_touched_is_refused(command: Command, project: Path, harm: str) -> None:
    opened(command)
    state = project / ".dualmandate"
    older = shutil.copy(state / "ledger.sqlite", project / "older")
    older_anchor = shutil.copy(state / "ledger.sqlite.anchor", project / "older anchor")
    planned(command)
    command("approve", "report/plan.json", "--by", "Ben")
    newer_anchor = shutil.copy(state / "ledger.sqlite.anchor", project / "newer anchor")
    words: list[object] = []
    if harm in ("edit", "shorten"):
        connection = sqlite3.connect(state / "ledger.sqlite")
        if harm == "edit":
            connection.execute("UPDATE ledger_entry SET numerator = '1000' WHERE sequence = 1")
        else:
            connection.execute("DELETE FROM ledger_entry WHERE sequence = 2")
        connection.commit()
        connection.close()
    elif harm == "restore":
        shutil.copy(older, state / "ledger.sqlite")
    elif harm == "anchor":
        (state / "ledger.sqlite.anchor").unlink()
    else:  # the whole folder is restored, and only a copy of the anchor elsewhere knows
        shutil.copy(older, state / "ledger.sqlite")
        shutil.copy(older_anchor, state / "ledger.sqlite.anchor")
        assert command("ledger", "verify").status == 0
        words = ["--anchor", newer_anchor]
    refused(command, "ledger", "verify", *words, code="ledger tampered")
    if not words:
        for other in (["ledger", "show"], ["approve", "report/plan.json", "--by", "Eve"]):
            refused(command, *other, code="ledger tampered")
        refused(command, "plan", "program.toml", "--ledger", str(state / "ledger.sqlite"), code="ledger tampered")


def test_what_is_left_limits_the_choice(command: Command) -> None:
    free = planned(command)
    opened(command, cap="1/3")
    counted = ["--ledger", ".dualmandate/ledger.sqlite"]
    bound = planned(command, *counted)
    assert free["choice"]["bound_by"] == "preferences"
    assert free["choice"]["epsilon"] > 1 / 3
    assert bound["choice"]["bound_by"] == "ledger"
    assert bound["loss"]["exact"] == "1/3"
    assert "the account 'residents' has epsilon 1/3 left" in command("plan", "program.toml", *counted).out
    command("approve", "report/plan.json", "--by", "Ben")
    spend(Path.cwd(), bound["digest"], PrivacyLoss.pure("1/3"))
    nothing = refused(command, "plan", "program.toml", *counted, code="conflicting limits")
    assert "the ledger has 0 left" in nothing["what"]


def test_an_account_with_plenty_leaves_the_plan_as_it_was(command: Command) -> None:
    opened(command, cap="1000")
    counted = planned(command, "--ledger", ".dualmandate/ledger.sqlite")
    assert counted["choice"]["bound_by"] == "preferences"
    assert counted["digest"] == planned(command)["digest"]


@pytest.mark.parametrize("changes", [{}, GAUSSIAN, AT_DELTA, BEST_AT_DELTA], ids=["pure", "rho", "at δ", "best at δ"])
def test_an_account_in_rho_bounds_every_way_to_count(command: Command, changes: dict[str, str]) -> None:
    """A pure ε costs ε²/2, a Gaussian its ρ: never more than is left, and nearly all of it where it is known."""
    change(changes)
    opened(command, cap="rho=1/50")
    document = planned(command, "--ledger", ".dualmandate/ledger.sqlite")
    assert document["choice"]["bound_by"] == "ledger"
    loss = PrivacyLoss(Fraction(document["loss"]["exact"]), document["loss"]["currency"])
    cost = loss.in_rho().amount
    assert Fraction(1, 50) * Fraction(999, 1000) < cost <= Fraction(1, 50) or changes is BEST_AT_DELTA
    assert cost <= Fraction(1, 50)
    approved = command("approve", "report/plan.json", "--json").document
    assert approved["cost"]["exact"] == str(cost)


def test_exact_numbers_decide_whether_a_plan_can_be_paid() -> None:
    plan = load("program.toml").plan()
    account = Account("residents", "person", PrivacyLoss.pure(1))
    ledgers.AccountRoom(account, "person", left=plan.loss.amount, remaining=Fraction(9)).check(plan)
    short = plan.loss.amount - Fraction(1, 10**30)
    with pytest.raises(BudgetExceeded, match="the plan costs epsilon"):
        ledgers.AccountRoom(account, "person", left=short, remaining=Fraction(9)).check(plan)


def test_an_approval_says_when_the_account_cannot_pay_it(command: Command) -> None:
    opened(command, cap="0.01")
    planned(command)
    approved = command("approve", "report/plan.json", "--by", "Ben")
    assert approved.status == 0
    assert "that is not enough" in approved.out


def test_an_approver_without_a_name_is_asked_for_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(command)
    planned(command)

    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert "--by NAME" in refused(command, "approve", "report/plan.json", code="invalid request")["instead"]


@pytest.mark.parametrize(
    "words", [["ledger"], ["ledger", "--help"], ["ledger", "open", "--help"], ["approve", "--help"]]
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    heavy = ("sqlalchemy", "alembic", "numpy", "pydantic", "scipy")
    run = "from dualmandate.apps.cli import app; from dualmandate.apps.output import run"
    check = f"import sys; {run}; assert run(app, {words!r}) == 0; print([n for n in {heavy} if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    "content", [None, b"{", b"[]", b'{"release": ["residents-1"]}', b"\xff", b"[" * 100_000], ids=lambda c: str(c)[:24]
)
def test_a_release_that_cannot_be_read_is_not_reported(command: Command, project: Path, content: bytes | None) -> None:
    opened(command)
    folder = project / "release"
    if content is not None:
        folder.mkdir()
        (folder / "release.json").write_bytes(content)
    words = ("ledger", "report", "residents", "--failure-probability", "1e-10", "--release", folder)
    refused(command, *words, code="invalid release")
