"""`dualmandate serve`, `keys` and `ledger decide` as they are typed, and what is refused before anybody listens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from tests.apps.http.conftest import put_project

from dualmandate.apps.http.keys import KeyRing
from dualmandate.ledger import BudgetRequest, Scope
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command

KEYS = Path(".dualmandate/api-keys.json")


def test_keys_are_made_listed_and_revoked(command: Command) -> None:
    put_project(Path.cwd())
    made = command("keys", "make", "Ann", "--role", "analyst", "--purpose", "thesis", "--by", "Ben", "--json")
    assert made.status == 0, made.err
    jsonschema.validate(made.document, schema("api-key"))
    secret, identifier = made.document["secret"], made.document["identifier"]
    holder = KeyRing(KEYS).holder(secret)
    assert holder is not None
    assert (holder.name, holder.purposes, holder.made_by) == ("Ann", ("thesis",), "Ben")
    listed = command("keys", "list")
    assert f"{identifier}  analyst  Ann  for thesis" in listed.out
    assert secret not in listed.out
    assert command("keys", "revoke", identifier, "--json").document["revoked_at"] is not None
    assert KeyRing(KEYS).holder(secret) is None
    assert "revoked" in command("keys", "list").out
    for typed in (("revoke", "0" * 12), ("make", "Ann", "--role", "king"), ("make", " ", "--role", "analyst")):
        refused = command("keys", *typed)
        assert refused.status == 2, typed
        assert "instead:" in refused.err
    KEYS.chmod(0o640)
    assert "open to others" in command("keys", "list").err


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("--host", "0.0.0.0"), "without TLS"),
        (("--host", "::"), "without TLS"),
        (("--host", "dp.example"), "without TLS"),
        (("--certificate", "people.pem"), "half of what TLS needs"),
        (("--certificate", "people.pem", "--private-key", "key.pem"), "there is no file"),
        (("--workers", "0"), "no worker"),
        (("--seconds", "many"), "many"),
        ((), "nobody has a key to"),
    ],
)
def test_what_is_refused_before_anybody_listens(command: Command, typed: tuple[str, ...], words: str) -> None:
    put_project(Path.cwd())
    refused = command("serve", "--port", "0", *typed, "--json")
    assert refused.status == 2
    assert words in refused.err
    jsonschema.validate(refused.document, schema("refusal"))
    assert not KEYS.exists()  # a key is never written into a log


def test_a_project_and_its_ledger_are_asked_for(command: Command, tmp_path: Path) -> None:
    assert "lies in no project" in command("serve").err
    Path("dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    assert "there is no ledger" in command("serve").err
    assert not (tmp_path / ".dualmandate").exists()


def test_a_decision_is_typed(command: Command) -> None:
    ledger = put_project(Path.cwd())
    asked = ledger.request_more(BudgetRequest("residents", Scope.USER, "Ann", "1/4", reason="a chapter", by="Ann"))  # type: ignore[arg-type]
    words = ("ledger", "decide", asked.number, "--reason", "one more question")
    assert "grants more to themselves" in command(*words, "--grant", "0.1", "--by", "Ann").err
    granted = command(*words, "--grant", "0.1", "--by", "Cem")
    assert granted.out.startswith(
        "granted by Cem: epsilon 0.1 more for the user 'Ann' in 'residents', which has 0.6 left"
    )
    assert command(*words, "--by", "Cem").status == 2
    second = ledger.request_more(BudgetRequest("residents", Scope.USER, "Ann", "1/4", reason="more", by="Ann"))  # type: ignore[arg-type]
    refused = command("ledger", "decide", second.number, "--reason", "no", "--by", "Cem", "--json")
    jsonschema.validate(refused.document, schema("budget-request"))
    assert refused.document["state"] == "refused"
    events = command("ledger", "events")
    assert "more requested by Ann" in events.out
    assert "decided by Cem" in events.out
    assert command("ledger", "verify").status == 0
