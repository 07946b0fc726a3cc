"""Accounts with caps, reserves and bounds inside them, as they are typed, refused, shown and written as JSON."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate.apps.ledgers import account_of
from dualmandate.errors import BudgetExceeded, InvalidAccount, InvalidLoss
from dualmandate.ledger import (
    AccountLimit,
    Approval,
    Earmark,
    Ledger,
    ReleaseState,
    Request,
    Scope,
    UnitBound,
    open_ledger,
    read_key,
)
from dualmandate.population import PrivacyLoss
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command, Outcome

DIGEST, LOSS = "a1" * 32, PrivacyLoss.pure("1/3")
REQUEST = Request("homes", DIGEST, "2026", LOSS, "household", user="Eve")
INSIDE = (
    *("--unit", "household", "--unit-bound", "person=6", "--cap", "10", "--limit", "user=2"),
    *("--limit", "group:economists=1", "--limit", "purpose:redistricting=1/2", "--limit", "reserve:2030 tables=3"),
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    return tmp_path


def done(command: Command, *words: object) -> Outcome:
    """A command that succeeds, and whose document keeps to the schema it names."""
    outcome = command(*words, "--json")
    assert outcome.status == 0, outcome.err
    name = outcome.document["schema"].removesuffix("/1")
    jsonschema.validate(outcome.document, schema(name))
    assert command(*words[:2], "--help").status == 0
    return outcome


def opened(command: Command, project: Path) -> Ledger:
    """The account of INSIDE, with a plan of ε = 1/3 approved."""
    done(command, "ledger", "open", "homes", *INSIDE, "--by", "Ann")
    ledger = open_ledger(project / ".dualmandate" / "ledger.sqlite", read_key(project / ".dualmandate" / "key"))
    ledger.approve(Approval("homes", DIGEST, LOSS, "household", by="Ann"))
    return ledger


def settled(ledger: Ledger, request: Request = REQUEST) -> str:
    release = ledger.reserve(request).name
    for state in (ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED):
        if state is ReleaseState.MEASURED:
            ledger.bind(release, "c3" * 32, by="Eve")
        ledger.advance(release, state, by="Eve")
    return release


def test_what_is_typed_is_the_account() -> None:
    caps = ["rho=5/2", "user=2", "user:Eve=1", "group:a=b=1/3", "purpose: x =1e-3", "reserve:2030 tables=1"]
    account = account_of("homes", ["household", "person=6", "job=2"], caps, approver_differs=True)
    assert account.cap == PrivacyLoss.concentrated("5/2")
    assert account.limits == (
        AccountLimit(Scope.USER, Fraction(2)),
        AccountLimit(Scope.USER, Fraction(1), "Eve"),
        AccountLimit(Scope.GROUP, Fraction(1, 3), "a=b"),
        AccountLimit(Scope.PURPOSE, Fraction(1, 1000), "x"),
    )
    assert account.earmarks == (Earmark("2030 tables", Fraction(1)),)
    assert account.unit_bounds == (UnitBound("person", 6), UnitBound("job", 2))
    assert account.approver_differs


@pytest.mark.parametrize(
    ("units", "caps", "words", "instead"),
    [
        (["person"], ["usd=10"], "a cap in 'usd'", "--limit user=2"),
        (["person"], ["10", "usr=2"], "an account with 2 caps", "--limit user=2"),
        (["person"], ["user=2"], "an account with no cap", "--cap 10"),
        (["person"], ["10", "epsilon=9"], "an account with 2 caps", "--cap 10"),
        (["person"], ["10", "planet:mars=2"], "a limit for 'planet'", "group:NAME=1"),
        (["person"], ["10", "epsilon:x=2"], "a limit for 'epsilon'", "user:NAME=2"),
        (["person"], ["10", "group:=2"], "a group without a usable name", "state such a name"),
        (["person"], ["10", "reserve=2"], "a reserve for no purpose", "reserve:PURPOSE=3"),
        (["person"], ["10", "reserve:a=6", "reserve:b=6"], "earmarks of 12", "lower the earmarks"),
        (["person"], ["10", "user=1", "user=2"], "two entries for one limit", "state each limit once"),
        (["person", "firm"], ["10"], "an account with 2 units", "--unit-bound person=6"),
        (["person=6"], ["10"], "an account with no unit", "--unit household"),
        (["person", "firm=many"], ["10"], "one person is in at most 'many' of the unit 'firm'", "a whole number"),
        (["person", "firm=0"], ["10"], "is in at most 0 of the unit 'firm'", "a whole number"),
        (["person", "person=2"], ["10"], "two entries for one unit", "state each unit once"),
    ],
)
def test_what_cannot_be_meant_says_what_to_type(units: list[str], caps: list[str], words: str, instead: str) -> None:
    with pytest.raises(InvalidAccount, match=words) as caught:
        account_of("people", units, caps)
    assert instead in caught.value.instead


@pytest.mark.parametrize("caps", [["10", "user=some"], ["10", "user=0"], ["10", "reserve:x=-1"], ["10", "user="]])
def test_amounts_are_positive_numbers(caps: list[str]) -> None:
    with pytest.raises(InvalidLoss):
        account_of("people", ["person"], caps)


def test_what_is_inside_an_account_is_shown_and_holds(command: Command, project: Path) -> None:
    ledger = opened(command, project)
    [account] = done(command, "ledger", "show").document["accounts"]
    assert [(limit["scope"], limit["name"], limit["limit"]["exact"]) for limit in account["limits"]] == [
        ("user", None, "2"),
        ("group", "economists", "1"),
        ("purpose", "redistricting", "1/2"),
    ]
    assert account["reserves"] == [{"purpose": "2030 tables", "kept": {"exact": "3", "amount": 3.0}}]
    assert account["unit_bounds"] == [{"unit": "person", "most": 6}]
    assert account["remaining"]["exact"] == "7"
    lines = command("ledger", "show").out.splitlines()
    assert lines[0] == "homes (household): epsilon 10 in all, 0 spent, 7 left"
    assert lines[1:6] == [
        "  each user may spend epsilon 2",
        "  the group 'economists' may spend epsilon 1",
        "  the purpose 'redistricting' may spend epsilon 0.5",
        "  epsilon 3 is kept for the purpose '2030 tables'",
        "  one household is in at most 6 of the unit 'person'",
    ]
    ledger.reserve(replace(REQUEST, purpose="redistricting"))
    with pytest.raises(BudgetExceeded, match="the purpose 'redistricting'"):
        ledger.reserve(replace(REQUEST, purpose="redistricting", snapshot="2027"))
    # A household of six loses six times what each of its persons does.
    ledger.approve(Approval("homes", "b2" * 32, LOSS, "person", by="Ann"))
    assert ledger.reserve(replace(REQUEST, plan_digest="b2" * 32, unit="person", user="Bob")).cost == 2


def test_an_account_that_cannot_be_meant_leaves_no_ledger(command: Command, project: Path) -> None:
    words = ["ledger", "open", "homes", "--unit", "household", "--cap", "10", "--limit", "users=2", "--json"]
    outcome = command(*words)
    assert (outcome.status, outcome.document["code"]) == (2, "invalid account")
    assert not (project / ".dualmandate").exists()


def test_a_reservation_is_canceled_and_an_opened_release_is_not(command: Command, project: Path) -> None:
    ledger = opened(command, project)
    release = ledger.reserve(REQUEST).name
    canceled = done(command, "ledger", "cancel", release, "--by", "Eve").document
    assert (canceled["release"]["state"], canceled["release"]["secret_destroyed"]) == ("canceled", True)
    assert canceled["remaining"]["exact"] == "7"
    assert ledger.spent("homes") == 0
    again = command("ledger", "cancel", release, "--json")
    assert (again.status, again.document["code"]) == (2, "release conflict")
    second = ledger.reserve(REQUEST).name
    ledger.advance(second, ReleaseState.OPENED, by="Eve")
    outcome = command("ledger", "cancel", second, "--json")
    assert "is opened and cannot be canceled" in outcome.document["what"]
    assert ledger.spent("homes") == Fraction(1, 3)
    assert command("ledger", "cancel", "r999999", "--json").document["code"] == "release conflict"


def test_what_is_handed_out_is_recorded(command: Command, project: Path) -> None:
    ledger = opened(command, project)
    release = settled(ledger)
    exported = done(command, "ledger", "export", release, "--to", "the data portal", "--by", "Eve")
    assert exported.document["to"] == "the data portal"
    assert "was handed to 'the data portal' by Eve" in exported.err
    [event] = [event for event in ledger.events() if event.kind == "exported"]
    assert (event.release, event.document()) == (release, {"to": "the data portal"})
    unfinished = ledger.reserve(replace(REQUEST, snapshot="2027")).name
    refused = command("ledger", "export", unfinished, "--to", "the data portal", "--json")
    assert "is reserved and cannot be exported" in refused.document["what"]


def test_every_document_keeps_to_its_schema(command: Command, project: Path) -> None:
    ledger = opened(command, project)
    settled(ledger)
    ledger.reserve(replace(REQUEST, snapshot="2027", purpose="redistricting", group="economists", again=True))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(replace(REQUEST, snapshot="2028", purpose="redistricting"))
    kinds = {event["kind"] for event in done(command, "ledger", "events").document["events"]}
    assert kinds >= {"account opened", "approved", "reserved", "tabulated", "published", "refused"}
    for words in (["show"], ["accounts"], ["verify"], ["report", "homes", "--failure-probability", "1e-6"]):
        done(command, "ledger", *words)
    anchor = project / ".dualmandate" / "ledger.sqlite.anchor"
    jsonschema.validate(json.loads(anchor.read_text("utf-8")), schema("ledger-anchor"))


def test_verify_takes_releases_and_folders_of_them(command: Command, project: Path) -> None:
    ledger = opened(command, project)
    shutil.copytree(project / ".dualmandate", project / "backup")
    for name, request in (("one", REQUEST), ("two", replace(REQUEST, snapshot="2027"))):
        head = ledger.head_of(ledger.reserve(request).name)
        folder = project / "releases" / name
        folder.mkdir(parents=True)
        (folder / "release.json").write_text(json.dumps({"ledger_head": head.document()}), encoding="utf-8")
    asked = ["releases", "releases/one", "releases/two/release.json"]
    document = done(command, "ledger", "verify", *(word for path in asked for word in ("--anchor", path))).document
    assert len(document["anchors"]) == 1 + 2 + 1 + 1
    (project / "empty").mkdir()
    assert command("ledger", "verify", "--anchor", "empty", "--json").document["code"] == "invalid request"
    # The whole state folder is restored: only the releases remember.
    shutil.rmtree(project / ".dualmandate")
    shutil.copytree(project / "backup", project / ".dualmandate")
    assert command("ledger", "verify").status == 0
    for path in asked:
        refused = command("ledger", "verify", "--anchor", path, "--json")
        assert (refused.status, refused.document["code"]) == (2, "ledger tampered")
