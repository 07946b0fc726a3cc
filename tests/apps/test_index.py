"""`dualmandate index`: what is public of a project, on one page whose links resolve, and nothing internal."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from dualmandate.ledger import Approval
from dualmandate.population import PrivacyLoss

if TYPE_CHECKING:
    from tests.apps.conftest import Command

LOSS = {"exact": "1/2", "amount": 0.5, "currency": "epsilon"}
PLAN = {"schema": "plan/1", "study": False, "loss": LOSS}
STATED = {"key": None, "by": None}
RELEASE = {
    "schema": "release/1", "label": "public", "release": "r000003", "program": "town <b>", "account": "residents",
    "loss": LOSS, "plan_digest": "a" * 64, "signatures": {"approvals": [STATED], "publication": STATED},
}  # fmt: skip
AUDIT = {"schema": "audit/1", "label": "public", "target": "release r000003 of town <b>", "findings": [{}, {}]}


def put(path: str, document: dict[str, Any], page: str | None = None) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(document), encoding="utf-8")
    if page is not None:
        Path(path).with_name(page).write_text("<p>a page</p>", encoding="utf-8")


@pytest.fixture(autouse=True)
def project() -> None:
    Path("dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    put("a report/plan.json", PLAN | {"digest": "a" * 64, "program": {"name": "town"}}, "dossier.html")
    put("other/plan.json", PLAN | {"digest": "b" * 64, "program": {"name": "village"}})
    put("releases/r000003/release.json", RELEASE, "index.html")
    put("audit/audit.json", AUDIT, "audit.html")
    put("inside/audit.json", AUDIT | {"label": "internal", "target": "CANARY"}, "audit.html")
    put(".hidden/plan.json", PLAN | {"digest": "c" * 64, "program": {"name": "CANARY"}})
    put("broken/plan.json", {"schema": "something else", "program": {"name": "CANARY"}})
    Path("broken/release.json").write_text("{ CANARY", encoding="utf-8")


def test_all_that_is_public_is_linked_and_nothing_else(command: Command) -> None:
    opened = command("ledger", "open", "residents", "--unit", "person", "--cap", "2", "--by", "Ann")
    assert opened.status == 0, opened.err
    from dualmandate.apps.ledgers import find_ledger

    books = find_ledger(Path.cwd(), None).open()
    books.approve(Approval("residents", "a" * 64, PrivacyLoss.pure("1/2"), "person", by="Ben"))
    outcome = command("index", "releases", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.document == {
        "schema": "index/1", "page": str(Path.cwd() / "index.html"),
        "plans": 2, "releases": 1, "audits": 1, "accounts": 1,
    }  # fmt: skip
    page = Path("index.html").read_text(encoding="utf-8")
    links = [unquote(link) for link in re.findall(r'href="([^"#]+)"', page)]
    assert {"a report/dossier.html", "releases/r000003/index.html", "audit/audit.html"} <= set(links)
    assert all(Path(link).is_file() and not link.startswith(("/", "..")) for link in links)
    assert "CANARY" not in page
    assert "residents (person): epsilon 2 in all, 0 spent, 2 left" in page
    town, village = page.index("town</a>"), page.index("village")
    assert re.search(r"<dd>approved \d{4}-\d\d-\d\d, unsigned</dd>", page[town:village])
    anchors = set(re.findall(r' id="([^"]+)"', page))
    assert {"plan-1", "release-1"} <= set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert "<dd>not approved here</dd>" in page[village:]
    assert "town &lt;b&gt;" in page
    assert "Ben" not in page  # a typed name is no signature
    assert page.count('<span class="label">public</span>') == 2


def test_it_is_written_anew_and_over_no_other_page(command: Command) -> None:
    assert command("index").status == 0
    first = Path("index.html").read_bytes()
    assert command("index").status == 0
    assert Path("index.html").read_bytes() == first
    assert b"No ledger of this project" in first
    Path("index.html").write_text("mine", encoding="utf-8")
    refused = command("index", "--json")
    assert (refused.status, refused.document["schema"]) == (2, "refusal/1")
    assert Path("index.html").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "odd",
    [
        {"loss": [1]},
        {"loss": "1"},
        {"signatures": {}},
        {"signatures": []},
        {"signatures": {"approvals": "x", "publication": 1}},
        {"signatures": {"approvals": [{"key": 1}], "publication": STATED}},
        {"account": {"a": []}, "plan_digest": [], "release": None},
    ],
    ids=str,
)
def test_what_a_stranger_put_into_a_release_is_no_crash(odd: dict[str, Any], command: Command) -> None:
    put("sent/release.json", RELEASE | odd)
    outcome = command("index", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.document["releases"] == 2


def test_files_that_cannot_be_read_are_left(command: Command) -> None:
    """A pipe that nobody writes to would never end, and brackets without end fill the stack."""
    Path("sent").mkdir()
    os.mkfifo("sent/release.json")
    Path("sent/plan.json").write_text("[" * 100_000, encoding="utf-8")
    outcome = command("index", "--json")
    assert outcome.status == 0, outcome.err
    assert (outcome.document["releases"], outcome.document["plans"]) == (1, 2)


def test_outside_of_a_project_it_is_refused(command: Command) -> None:
    Path("dualmandate.toml").unlink()
    refused = command("index")
    assert refused.status == 2
    assert "lies in no project" in refused.err
    assert not Path("index.html").exists()
