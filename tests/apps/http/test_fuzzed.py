"""Whatever is sent, nothing breaks and nothing is told: requests made from the OpenAPI, and mutilated SQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.apps.http.conftest import CANARY, Served, put_project, serving
from tests.conftest import Tell

EXAMPLES = int(os.environ.get("DUALMANDATE_MUTATIONS", "0")) // 10 or 12  # of each request; in full 200
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
LOOSE = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One town for all of them; its keys may not run out of requests."""
    folder = tmp_path_factory.mktemp("town")
    put_project(folder)
    with serving(folder, requests_a_minute=10**9) as found:
        yield found


def test_no_request_breaks_the_service(town: Served, tell: Tell) -> None:
    """With the key of every role, and without one; what comes back is what the description says."""
    described = schemathesis.openapi.from_dict(town.app.openapi())
    base, tried = str(town.client.base_url), 0

    def check(case: Any) -> None:
        nonlocal tried
        tried += 1
        before = town.service.ledger.spent("residents")
        anonymous = case.call(base_url=base, headers={"Authorization": ""})
        gated = case.path not in ("/health", "/ready")
        assert anonymous.status_code < 500
        assert not gated or anonymous.status_code not in (200, 201)
        assert town.service.ledger.spent("residents") == before
        for role in ("analyst", "curator", "auditor", "administrator"):
            if (role, case.method, case.path) == ("administrator", "DELETE", "/v1/keys/{identifier}"):
                continue  # it might guess a key that the next role needs
            reply = case.call(base_url=base, headers={"Authorization": f"Bearer {town.secrets[role]}"})
            assert reply.status_code < 500, reply.content
            case.validate_response(reply, checks=CHECKS)
            assert str(town.folder).encode() not in reply.content

    found = list(described.get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found)
    assert len(operations) >= 22
    for operation in operations:
        LOOSE(given(case=operation.as_strategy())(check))()
    tell(f"{len(operations)} kinds of requests from their description, with every role and none", tried)


WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "AND", "OR", "NOT", "IN", "BETWEEN", "IS NULL", "UNION", "JOIN"),
    *(
        "COUNT(*)",
        "SUM(income)",
        "AVG(income)",
        "MEDIAN(age)",
        "QUANTILE(age, 0.5)",
        "COUNT(DISTINCT ward)",
        "MAX(age)",
    ),
    *("records", "ward", "age", "income", "'north'", "'x''", "--", "/*", ";", "(", ")", ",", "*", "=", "<", ">=", "5"),
    *(
        "1e999",
        "-1",
        "0x1",
        "$1",
        "?",
        '"ward"',
        "`ward`",
        "E'\\0'",
        "read_csv('/etc/passwd')",
        "pg_sleep(9)",
        "ATTACH",
    ),
    *("(SELECT 1)", "CASE WHEN age > 1 THEN 1 END", "LIMIT 1", "ORDER BY 1", "\x00", "\N{ZERO WIDTH SPACE}", "λ"),
)
BASES = (
    "SELECT COUNT(*) FROM records WHERE age > 4",
    "SELECT ward, AVG(income) FROM records WHERE income BETWEEN 3 AND 9 GROUP BY ward",
    "SELECT QUANTILE(age, 0.9) FROM records WHERE ward IN ('north', 'south') AND NOT age < 3",
)


@st.composite
def mutilated(draw: st.DrawFn) -> str:
    """A question with words put in, taken out and exchanged; or words alone."""
    words = draw(st.sampled_from(BASES)).split(" ") if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(words)))
        match draw(st.sampled_from(("in", "out", "twice"))):
            case "in":
                words.insert(place, draw(st.sampled_from(WORDS) | st.text(max_size=12)))
            case "out":
                del words[place : place + 1]
            case _:
                words[place:place] = words[max(0, place - 2) : place]
    return " ".join(words)


@settings(LOOSE, max_examples=EXAMPLES * 10)
@given(query=mutilated())
def test_mutilated_sql_is_priced_or_refused_and_tells_nothing(query: str, town: Served) -> None:
    before = town.service.ledger.head()
    body = {"query": query, "spend": "0.001", "records": "100"}
    reply = town.call("analyst", "POST", "/v1/programs/town/prices", json=body)
    assert reply.status_code in (200, 422), reply.text
    assert reply.json()["schema"] == ("price/1" if reply.status_code == 200 else "refusal/1")
    assert CANARY not in reply.text
    assert str(town.folder) not in reply.text
    assert "root:" not in reply.text
    assert town.service.ledger.head() == before
