"""The service in one process: who may call what, what is spent, what is refused and how, and what is written down."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.routing import APIRoute
from tests.apps.http.conftest import CANARY, COUNT, NAMES, WARDS, Served, serving

from dualmandate.apps.http.calls import Allowed
from dualmandate.apps.http.keys import AccessRole
from dualmandate.apps.http.limits import RateLimit
from dualmandate.errors import Refusal, TooManyRequests
from dualmandate.ledger import EventKind, Scope
from dualmandate.report.documents.schemas import schema

OPEN = {"/health", "/ready"}  # for whoever watches the machine
SHELLS = {"/", "/ask", "/ledger", "/static/service.css", "/static/service.js"}  # pages without a number in them
BODIES: dict[str, Any] = {
    "/v1/programs/{program}/prices": {"query": COUNT, "spend": "0.1"},
    "/v1/programs/{program}/answers": {"query": COUNT, "spend": "0.1"},
    "/v1/programs/{program}/approvals": {"query": COUNT, "spend": "0.1"},
    "/v1/requests": {"account": "residents", "amount": "1/4", "reason": "a chapter"},
    "/v1/requests/{number}/decision": {"grant": None, "reason": "no"},
    "/v1/keys": {"name": "Zoe", "role": "analyst"},
}


def routes(served: Served) -> list[APIRoute]:
    found: list[APIRoute] = []
    for route in served.app.routes:
        inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        found += [each for each in (inner or [route]) if isinstance(each, APIRoute)]
    return found


def allowed(route: APIRoute) -> frozenset[AccessRole]:
    [gate] = [each.call for each in route.dependant.dependencies if isinstance(each.call, Allowed)]
    return gate.roles


def test_every_request_is_denied_to_roles_that_lack_it_and_without_a_key(served: Served) -> None:
    """The matrix comes from the routes themselves: a new one without a gate, or with a wider one, is seen here."""
    gated = [route for route in routes(served) if route.path not in OPEN | SHELLS]
    assert len(gated) >= 20
    names = {
        "{program}": "town",
        "{release}": "residents-1",
        "{account}": "residents",
        "{number}": "9",
        "{path:path}": "x",
    }
    for route in gated:
        path = route.path
        for part, name in names.items():
            path = path.replace(part, name)
        method = min(route.methods or ())
        body = BODIES.get(route.path)
        roles = allowed(route)
        assert roles
        assert served.call(None, method, path, json=body).status_code == 401, path
        wrong = {"Authorization": f"Bearer dm_{'0' * 12}_{'A' * 43}"}
        assert served.call(None, method, path, json=body, headers=wrong).status_code == 401, path
        for role in AccessRole:
            reply = served.call(role.value, method, path, json=body)
            denied = reply.status_code == 403 and reply.json()["code"] == "not allowed"
            assert denied == (role not in roles), (path, role, reply.text)


EVERYBODY, READERS = {"administrator", "analyst", "auditor", "curator"}, {"analyst", "auditor", "curator"}
MATRIX = {  # as the docs tell it; the routes are held against it
    "GET /v1/me": EVERYBODY,
    "GET /v1/programs": EVERYBODY,
    "GET /v1/programs/{program}": EVERYBODY,
    "GET /v1/project": EVERYBODY,
    "GET /v1/files/{path:path}": EVERYBODY,
    "POST /v1/session": EVERYBODY,
    "DELETE /v1/session": EVERYBODY,
    "POST /v1/programs/{program}/prices": {"analyst", "curator"},
    "POST /v1/programs/{program}/answers": {"analyst"},
    "GET /v1/programs/{program}/answers/{release}": READERS,
    "POST /v1/programs/{program}/approvals": {"curator"},
    "GET /v1/history": READERS,
    "GET /v1/budget/{account}": READERS,
    "GET /v1/requests": READERS,
    "POST /v1/requests": {"analyst"},
    "POST /v1/requests/{number}/decision": {"curator"},
    "GET /v1/accounts": {"auditor", "curator"},
    "GET /v1/accounts/{account}/forecast": {"auditor", "curator"},
    "GET /v1/ledger/events": {"auditor", "curator"},
    "GET /v1/keys": {"administrator"},
    "POST /v1/keys": {"administrator"},
    "DELETE /v1/keys/{identifier}": {"administrator"},
    "GET /v1/metrics": {"administrator", "auditor"},
}


def test_the_roles_are_as_they_are_told(served: Served) -> None:
    """Nobody has all: who hands out keys asks nothing, and who decides on budgets spends none."""
    gated = [route for route in routes(served) if route.path not in OPEN | SHELLS]
    assert {f"{min(each.methods or ())} {each.path}": set(map(str, allowed(each))) for each in gated} == MATRIX


def test_a_price_is_free_and_an_answer_is_booked_once(served: Served) -> None:
    path, body = "/v1/programs/town/prices", {"query": COUNT, "within": "2%"}
    price = served.call("analyst", "POST", path, json=body).json()
    jsonschema.validate(price, schema("price"))
    assert price["half_width"] <= 20  # 2 % of 1,000
    ledger = served.service.ledger
    assert ledger.spent("residents") == 0
    first = served.ask(COUNT)
    assert first.status_code == 200
    jsonschema.validate(first.json(), schema("answer"))
    again = served.ask("select count(*) from records where not age <= 4", "other").json()
    assert (again["rows"], again["release"], "spent" in again) == (first.json()["rows"], first.json()["release"], False)
    assert ledger.spent("residents") == ledger.spent("residents", Scope.USER, "Ann") == Fraction(1, 10)
    assert first.json()["spent"]["exact"] == "1/10"
    [row] = first.json()["rows"]
    assert abs(row["value"] - 500) < 200  # 1 in 10^8 is further off at ε = 0.1


def test_beyond_a_cap_nothing_is_spent_and_the_refusal_is_recorded(served: Served) -> None:
    refused = served.ask(COUNT, spend="0.6")
    assert refused.status_code == 409
    jsonschema.validate(refused.json(), schema("refusal"))
    assert refused.json()["code"] == "budget exceeded"
    ledger = served.service.ledger
    assert ledger.spent("residents") == 0
    assert ledger.events()[-1].kind is EventKind.REFUSED
    assert served.ask(COUNT, spend="0.5").status_code == 200


def test_nobody_spends_in_another_name_or_for_a_purpose_that_is_not_theirs(served: Served) -> None:
    assert served.ask(COUNT, user="Bea").status_code == 422  # there is no such key in a question
    refused = served.ask(COUNT, "other", purpose="thesis")
    assert (refused.status_code, refused.json()["code"]) == (403, "not allowed")
    assert served.ask(COUNT, purpose="thesis").status_code == 200
    assert served.service.ledger.spent("residents", Scope.PURPOSE, "thesis") == served.service.ledger.spent("residents")


def test_more_is_asked_for_and_granted_by_a_curator(served: Served) -> None:
    assert served.ask(COUNT, spend="0.5").status_code == 200
    assert served.ask(WARDS).status_code == 409
    asked = {"account": "residents", "amount": "1/4", "reason": "a chapter"}
    kept = {"Idempotency-Key": "one"}
    made = served.call("analyst", "POST", "/v1/requests", json=asked, headers=kept)
    assert made.status_code == 201
    assert served.call("analyst", "POST", "/v1/requests", json=asked, headers=kept).json() == made.json()
    number = made.json()["number"]
    listed = served.call("curator", "GET", "/v1/requests").json()["requests"]
    assert [each["number"] for each in listed] == [number]
    assert served.call("other", "GET", "/v1/requests").json()["requests"] == []
    path = f"/v1/requests/{number}/decision"
    assert served.call("curator", "POST", path, json={"grant": "1", "reason": "gladly"}).status_code == 422
    decided = served.call("curator", "POST", path, json={"grant": "0.1", "reason": "one more question"})
    assert (decided.json()["state"], decided.json()["decision"]["by"]) == ("granted", "Cem")
    assert served.call("curator", "POST", path, json={"grant": None, "reason": "no"}).status_code == 409
    assert served.ask(WARDS).status_code == 200
    assert served.ask("SELECT COUNT(*) FROM records WHERE age > 2").status_code == 409
    served.service.ledger.verify()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"scope": "group", "name": "A"}, 403),
        ({"scope": "user", "name": "Bea"}, 403),
        ({"scope": "purpose", "name": "thesis"}, 422),  # it has no limit
        ({"account": "animals"}, 422),
        ({"amount": "many"}, 422),
        ({"amount": "-1"}, 422),
    ],
)
def test_requests_that_cannot_be_meant(served: Served, asked: dict[str, str], status: int) -> None:
    before = served.service.ledger.head()
    body = {"account": "residents", "amount": "1/4", "reason": "a chapter", **asked}
    reply = served.call("analyst", "POST", "/v1/requests", json=body)
    assert reply.status_code == status, reply.text
    assert served.service.ledger.head() == before


def test_one_idempotency_key_is_one_request_and_one_reply(served: Served) -> None:
    kept = {"Idempotency-Key": "5f0c"}
    first = served.ask(COUNT, headers=kept)
    assert first.json()["spent"]["exact"] == "1/10"
    assert served.ask(COUNT, headers=kept).content == first.content  # also what it had cost
    assert "spent" not in served.ask(COUNT).json()
    assert served.ask(WARDS, headers=kept).status_code == 409
    assert (
        served.ask(COUNT, "other", headers=kept).json()["release"] == first.json()["release"]
    )  # another's key is theirs
    assert served.ask(COUNT, headers={"Idempotency-Key": "x" * 201}).status_code == 422
    [*files] = (served.folder / ".dualmandate" / "replies").glob("*/*.json")
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    served.worker.replies.forget(now=2e10)
    assert not [*(served.folder / ".dualmandate" / "replies").glob("*/*.json")]


def test_rows_for_r_and_spreadsheets(served: Served) -> None:
    reply = served.ask(WARDS, headers={"Accept": "text/csv"})
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    head, north, south = reply.text.splitlines()
    assert head == "ward,value,standard_error,lower,upper"
    assert (north.split(",")[0], south.split(",")[0]) == ("north", "south")
    assert float(north.split(",")[3]) < float(north.split(",")[1]) < float(north.split(",")[4])
    history = served.call("analyst", "GET", "/v1/history", headers={"Accept": "text/csv"}).text.splitlines()
    assert history[1].startswith("residents-1,residents,Ann,,,1/10,settled,")


def test_history_is_ones_own_or_everybodys(served: Served) -> None:
    served.ask(COUNT)
    served.ask(WARDS, "other")
    mine = served.call("analyst", "GET", "/v1/history?user=Bea").json()
    jsonschema.validate(mine, schema("history"))
    assert [(each["user"], each["program"]) for each in mine["asked"]] == [("Ann", "town")]
    assert mine["asked"][0]["question"]["where"] == {"age": [[5, 9]]}
    for role in ("curator", "auditor"):
        assert [each["user"] for each in served.call(role, "GET", "/v1/history").json()["asked"]] == ["Bea", "Ann"]
    assert [e["user"] for e in served.call("auditor", "GET", "/v1/history?user=Bea").json()["asked"]] == ["Bea"]


def test_an_answer_is_shared_and_counted_once(served: Served) -> None:
    first = served.ask(WARDS).json()
    path = f"/v1/programs/town/answers/{first['release']}"
    again = served.call("other", "GET", path).json()
    assert (again["rows"], "spent" in again) == (first["rows"], False)
    wider = served.call("auditor", "GET", f"{path}?probability=0.99").json()
    assert wider["rows"][0]["lower"] < first["rows"][0]["lower"]
    assert served.call("other", "GET", "/v1/programs/town/answers/residents-9").status_code == 404
    assert served.call("other", "GET", "/v1/programs/town/answers/..%2F..%2Fkey").status_code == 404
    assert served.service.ledger.spent("residents") == served.service.ledger.spent("residents", Scope.USER, "Ann")


def test_what_is_left_and_when_it_ends(served: Served) -> None:
    served.ask(COUNT)
    mine = served.call("analyst", "GET", "/v1/budget/residents").json()
    jsonschema.validate(mine, schema("budget"))
    assert (mine["remaining"]["exact"], mine["spent_by_user"]["exact"], mine["user"]) == ("2/5", "1/10", "Ann")
    assert len(mine["parts"]) == 2
    assert served.call("other", "GET", "/v1/budget/residents").json()["remaining"]["exact"] == "1/2"
    assert served.call("analyst", "GET", "/v1/budget/residents?user=Bea").status_code == 403
    assert served.call("curator", "GET", "/v1/budget/residents?user=Ann").json()["remaining"]["exact"] == "2/5"
    assert served.call("analyst", "GET", "/v1/budget/animals").status_code == 422
    told = served.call("auditor", "GET", "/v1/accounts/residents/forecast?days=10").json()
    jsonschema.validate(told, schema("forecast"))
    assert (told["spent"]["exact"], told["per_day"]) == ("1/10", 0.01)
    assert told["words"].startswith("at this pace")
    entries = served.call("auditor", "GET", "/v1/ledger/events?after=1&most=2").json()["events"]
    assert [each["kind"] for each in entries] == ["approved", "reserved"]
    assert served.call("curator", "GET", "/v1/accounts").json()["accounts"][0]["spent"]["exact"] == "1/10"


def test_what_a_program_declares(served: Served) -> None:
    Path("broken.toml").write_text("[program]\nschema = 9\n", encoding="utf-8")
    with serving(served.folder) as again:
        listed = again.call("auditor", "GET", "/v1/programs").json()
        jsonschema.validate(listed, schema("programs"))
        assert [(each["name"], each["asked"]) for each in listed["programs"]] == [("town", True)]
        assert [each["file"] for each in listed["refused"]] == ["broken.toml"]
        assert str(served.folder) not in json.dumps(listed)
        declared = again.call("analyst", "GET", "/v1/programs/town").json()
        jsonschema.validate(declared, schema("program-declared"))
        kinds = {each["name"]: (each["kind"], each["size"]) for each in declared["attributes"]}
        assert (
            kinds == {"ward": ("levels", 2), "age": ("numbers", 10), "income": ("numbers", 101)}
            or kinds["age"][1] == 10
        )
        assert CANARY not in json.dumps(declared)
        assert again.call("analyst", "GET", "/v1/programs/village").json()["code"] == "unknown name"


def test_keys_are_shown_once_kept_as_hashes_and_revoked_at_once(served: Served) -> None:
    made = served.call("administrator", "POST", "/v1/keys", json={"name": "Zoe", "role": "auditor"})
    assert made.status_code == 201
    secret, identifier = made.json()["secret"], made.json()["identifier"]
    headers = {"Authorization": f"Bearer {secret}"}
    assert served.call(None, "GET", "/v1/me", headers=headers).json()["name"] == "Zoe"
    listed = served.call("administrator", "GET", "/v1/keys")
    jsonschema.validate(listed.json(), schema("api-keys"))
    kept = served.service.keys.path
    assert secret.rpartition("_")[2] not in listed.text + kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "argon2id" in kept.read_text()
    assert served.call("administrator", "DELETE", f"/v1/keys/{identifier}").json()["revoked_at"] is not None
    assert served.call(None, "GET", "/v1/me", headers=headers).status_code == 401
    own = served.call("administrator", "GET", "/v1/me").json()["identifier"]
    assert served.call("administrator", "DELETE", f"/v1/keys/{own}").status_code == 422
    almost = served.secrets["analyst"][:-1] + ("A" if served.secrets["analyst"][-1] != "A" else "B")
    assert served.call(None, "GET", "/v1/me", headers={"Authorization": f"Bearer {almost}"}).status_code == 401
    kept.chmod(0o644)
    served.service.keys._read = None
    assert served.call("analyst", "GET", "/v1/me").status_code == 503  # open to others: nobody comes in


def test_what_is_too_large_too_often_or_for_another_host(served: Served) -> None:
    huge = served.ask("SELECT " + "x" * 70_000)
    assert (huge.status_code, huge.json()["code"]) == (413, "invalid request")
    assert served.ask("x" * 11_000).status_code == 422
    other = served.call("analyst", "GET", "/v1/me", headers={"Host": "evil.example"})
    assert other.status_code == 421
    with serving(served.folder, requests_a_minute=3) as few:
        statuses = [few.call("analyst", "GET", "/v1/me").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert few.call("curator", "GET", "/v1/me").status_code == 200


def test_a_bucket_fills_evenly() -> None:
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    for _ in range(60):
        limit.take("Ann")
    with pytest.raises(TooManyRequests):
        limit.take("Ann")
    limit.take("Bea")
    now[0] = 2.0
    limit.take("Ann")
    limit.take("Ann")
    with pytest.raises(TooManyRequests):
        limit.take("Ann")


def test_a_question_that_takes_too_long_is_answered_all_the_same(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = served.service
    monkeypatch.setattr(service, "settings", replace(service.settings, seconds=0.0))
    late = served.ask(COUNT)
    assert (late.status_code, late.json()["code"]) == (503, "still working")
    served.worker.asking.submit(lambda: None).result()
    monkeypatch.setattr(service, "settings", replace(service.settings, seconds=600.0))
    again = served.ask(COUNT).json()
    assert again["release"] == "residents-1"
    assert service.ledger.spent("residents") == service.ledger.release("residents-1").cost


def test_logs_and_refusals_hold_nothing_confidential(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    query = f"SELECT COUNT(*) FROM records WHERE ward = '{CANARY}-asked'"
    replies = [served.ask(query), served.ask(COUNT), served.ask({"statistic": CANARY}), served.ask(COUNT, spend=CANARY)]
    (served.folder / f"people-{CANARY}.csv").write_text(f"ward,age\n{CANARY},{CANARY}\n", encoding="utf-8")
    replies.append(served.ask(WARDS))
    assert [reply.status_code for reply in replies] == [422, 200, 422, 422, 503]
    for reply in replies[1:]:
        assert str(served.folder) not in reply.text
    served.stop()
    log = capsys.readouterr().err
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    asked = [line for line in lines if line["route"] == "/v1/programs/{program}/answers"]
    assert [line["status"] for line in asked] == [422, 200, 422, 422, 503]
    assert {line["user"] for line in asked} == {"Ann"}
    assert CANARY not in log
    assert all(secret not in log for secret in served.secrets.values())
    assert CANARY not in replies[1].text + replies[2].text


def test_our_bugs_say_nothing_but_where(served: Served, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(type(served.service), "budget", broken)
    reply = served.call("analyst", "GET", "/v1/budget/residents")
    assert (reply.status_code, reply.json()["code"]) == (500, "bug")
    served.stop()
    log = capsys.readouterr().err
    assert CANARY not in reply.text + log
    assert "RuntimeError in " in log


def test_health_metrics_and_headers(served: Served) -> None:
    served.ask(COUNT)
    served.ask(COUNT)
    served.ask(WARDS, spend="0.9")
    for path, status in (("/health", "alive"), ("/ready", "ready")):
        assert served.call(None, "GET", path).json()["status"] == status
    text = served.call("auditor", "GET", "/v1/metrics").text
    assert 'dualmandate_answers_total{outcome="new"} 1.0' in text
    assert 'dualmandate_answers_total{outcome="kept"} 1.0' in text
    assert 'dualmandate_answers_total{outcome="refused"} 1.0' in text
    assert 'dualmandate_account_spent{account="residents",currency="epsilon"} 0.1' in text
    assert re.search(r'route="/v1/programs/\{program\}/answers",status="409"\} 1\.0', text)
    headers = served.call("analyst", "GET", "/v1/me").headers
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    (served.folder / ".dualmandate" / "ledger.sqlite").write_bytes(b"gone")
    assert served.call(None, "GET", "/ready").status_code == 503
    assert served.call(None, "GET", "/health").status_code == 200


def test_unknown_requests_are_refusals_too(served: Served) -> None:
    for method, path, status in (("GET", "/v2", 404), ("DELETE", "/v1/me", 405), ("GET", "/docs", 404)):
        reply = served.call("analyst", method, path)
        assert reply.status_code == status
        jsonschema.validate(reply.json(), schema("refusal"))
    assert NAMES["analyst"] == served.call("analyst", "GET", "/v1/me").json()["name"]


def test_every_refusal_has_a_status_below_500_but_those_of_the_machine(served: Served) -> None:
    from dualmandate.apps.http.app import status_of
    from dualmandate.errors import BudgetExceeded, InvalidQuery, LedgerUnavailable

    def made(kind: type[Refusal]) -> Refusal:
        return kind("what", why="why", instead="instead")

    assert [status_of(made(kind)) for kind in (BudgetExceeded, InvalidQuery, LedgerUnavailable)] == [409, 422, 503]
