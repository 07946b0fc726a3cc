"""The client against a service that listens: the same numbers, the same refusals, and what is tried again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.apps.http.conftest import COUNT, WARDS, Served, put_project, serving

from dualmandate.client import Client
from dualmandate.errors import (
    BudgetExceeded,
    InvalidQuery,
    InvalidRequest,
    LedgerUnavailable,
    NotAllowed,
    NotAuthenticated,
    Refusal,
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    put_project(tmp_path)
    with serving(tmp_path) as found:
        yield found


def holder(served: Served, role: str = "analyst") -> Client:
    return Client(str(served.client.base_url), served.secrets[role])


def test_a_question_from_price_to_table(served: Served) -> None:
    with holder(served) as ann:
        assert ann.me()["name"] == "Ann"
        assert [each["name"] for each in ann.programs()] == ["town"]
        assert ann.program("town")["attributes"][0]["levels"] == ["north", "south"]
        price = ann.price("town", WARDS, within="2%")
        answer = ann.ask("town", WARDS, spend=0.1)
        assert (answer.spent, answer.remaining) == ("1/10", "2/5")
        assert price["numbers"] == len(answer.rows) == 2
        table = answer.arrow()
        assert table.column_names == ["ward", "value", "standard_error", "lower", "upper"]
        assert table["ward"].to_pylist() == ["north", "south"]
        frame = answer.pandas()
        assert frame["value"].tolist() == [row["value"] for row in answer.rows]
        assert ann.ask("town", WARDS, spend="0.1").spent is None
        assert ann.answer("town", answer.release).rows == answer.rows
        assert [each["release"] for each in ann.history()] == [answer.release]
        number = ann.request_more("residents", "0.2", reason="a chapter")
        with holder(served, "curator") as cem:
            assert cem.decide(number, grant="0.1", reason="a part of it")["state"] == "granted"
        assert ann.budget("residents")["remaining"]["exact"] == "1/2"
        assert [each["state"] for each in ann.requests()] == ["granted"]
    assert served.secrets["analyst"] not in repr(ann)


def test_refusals_are_the_same_here_and_there(served: Served) -> None:
    with holder(served) as ann:
        for kind, query, spend in (
            (BudgetExceeded, COUNT, "0.9"),
            (InvalidQuery, "SELECT MAX(age) FROM records", "0.1"),
        ):
            with pytest.raises(kind) as caught:
                ann.ask("town", query, spend=spend)
            assert caught.value.instead
        with pytest.raises(NotAllowed):
            ann.decide(1, grant=None, reason="no")
    with Client(str(served.client.base_url), "dm_no_key") as nobody, pytest.raises(NotAuthenticated):
        nobody.me()
    with pytest.raises(InvalidRequest):
        Client("http://dp.agency.example", "dm_x")


def test_what_was_lost_on_the_way_is_asked_again_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str] = []

    def flaky(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadError("lost")
        if len(keys) == 2:
            return httpx.Response(503, json=LedgerUnavailable("busy", why="so", instead="wait").document())
        return httpx.Response(200, json={"rows": [], "release": "r-1"})

    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    found = Client("http://localhost:1", "dm_x", transport=httpx.MockTransport(flaky)).ask("town", COUNT, spend="0.1")
    assert (found.release, len(keys), len(set(keys))) == ("r-1", 3, 1)
    assert waited == [0.2, 0.4]


def test_patience_ends_and_decisions_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def gone(request: httpx.Request) -> httpx.Response:
        tried.append(request.method)
        raise httpx.ConnectError("nobody")

    monkeypatch.setattr(time, "sleep", lambda _: None)
    with Client("http://localhost:1", "dm_x", patience=5, transport=httpx.MockTransport(gone)) as nobody:
        with pytest.raises(LedgerUnavailable):
            nobody.me()
        assert 4 < len(tried) < 10
        tried.clear()
        with pytest.raises(LedgerUnavailable):
            nobody.decide(1, grant=None, reason="no")
        assert len(tried) == 1


def test_somebody_else_answers() -> None:
    page = httpx.MockTransport(lambda _: httpx.Response(502, text="<h1>Bad Gateway</h1>"))
    with Client("http://localhost:1", "dm_x", patience=0, transport=page) as proxy, pytest.raises(Refusal):
        proxy.me()
