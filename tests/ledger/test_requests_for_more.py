"""More is asked for, and granted by another person: in the chain, within the cap, for one part of an account."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from tests.ledger.conftest import PLAN

from dualmandate.errors import BudgetExceeded, InvalidAccount, InvalidRequest, NotApproved, ReleaseConflict
from dualmandate.ledger import (
    Account,
    AccountLimit,
    Approval,
    BudgetDecision,
    BudgetRequest,
    Event,
    EventKind,
    Ledger,
    Request,
    Scope,
)
from dualmandate.ledger.forecast import forecast
from dualmandate.population import PrivacyLoss

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
ASKED = BudgetRequest("people", Scope.USER, "Ann", HALF, reason="a second chapter", by="Ann")


@pytest.fixture
def limited(empty: Ledger) -> Ledger:
    """One ε for everybody, a half for each user, and a plan of a quarter."""
    limits = (AccountLimit(Scope.USER, HALF), AccountLimit(Scope.GROUP, Fraction(3, 4), "A"))
    empty.open_account(Account("people", "person", PrivacyLoss.pure(1), limits), by="Ben")
    empty.approve(Approval("people", PLAN, PrivacyLoss.pure(QUARTER), "person", by="Ben"))
    return empty


def spend(ledger: Ledger, snapshot: str, user: str = "Ann", group: str | None = None) -> None:
    ledger.reserve(Request("people", PLAN, snapshot, PrivacyLoss.pure(QUARTER), "person", user, group))


def test_what_is_granted_may_be_spent_and_no_more(limited: Ledger) -> None:
    spend(limited, "1")
    spend(limited, "2")
    with pytest.raises(BudgetExceeded):
        spend(limited, "3")
    asked = limited.request_more(ASKED)
    assert (asked.state, limited.remaining("people", {Scope.USER: "Ann"})) == (
        "open",
        Fraction(0),
    )  # asking raises nothing
    granted = limited.decide(BudgetDecision(asked.number, QUARTER, reason="for the chapter", by="Ben"))
    assert granted.state == "granted"
    assert limited.remaining("people", {Scope.USER: "Ann"}) == QUARTER
    assert limited.remaining("people", {Scope.USER: "Cem"}) == HALF
    spend(limited, "3")
    with pytest.raises(BudgetExceeded):
        spend(limited, "4")
    limited.verify()


def test_the_cap_and_the_other_limits_stand_whatever_is_granted(limited: Ledger) -> None:
    asked = limited.request_more(replace(ASKED, amount=Fraction(9)))
    limited.decide(BudgetDecision(asked.number, Fraction(9), reason="yes", by="Ben"))
    assert limited.remaining("people", {Scope.USER: "Ann"}) == 1
    assert limited.remaining("people", {Scope.USER: "Ann", Scope.GROUP: "A"}) == Fraction(3, 4)
    group = limited.request_more(BudgetRequest("people", Scope.GROUP, "A", QUARTER, reason="more", by="Ann"))
    limited.decide(BudgetDecision(group.number, QUARTER, reason="yes", by="Ben"))
    assert limited.remaining("people", {Scope.USER: "Ann", Scope.GROUP: "A"}) == 1
    assert limited.remaining("people", {Scope.USER: "Cem", Scope.GROUP: "A"}) == HALF


def test_a_refusal_raises_nothing_and_stands(limited: Ledger) -> None:
    asked = limited.request_more(ASKED)
    refused = limited.decide(BudgetDecision(asked.number, None, reason="not this year", by="Ben"))
    assert (refused.state, limited.remaining("people", {Scope.USER: "Ann"})) == ("refused", HALF)
    with pytest.raises(ReleaseConflict):
        limited.decide(BudgetDecision(asked.number, HALF, reason="after all", by="Cem"))
    assert [each.state for each in limited.budget_requests("people")] == ["refused"]


@pytest.mark.parametrize(
    ("decision", "refusal"),
    [
        (BudgetDecision(3, HALF, reason="why not", by="Ann"), NotApproved),
        (BudgetDecision(3, Fraction(51, 100), reason="gladly", by="Ben"), InvalidRequest),
        (BudgetDecision(2, HALF, reason="an approval", by="Ben"), ReleaseConflict),
        (BudgetDecision(4, HALF, reason="not there", by="Ben"), ReleaseConflict),
    ],
    ids=["one's own", "more than asked", "no request", "no entry"],
)
def test_decisions_that_cannot_be_meant(limited: Ledger, decision: BudgetDecision, refusal: type[Exception]) -> None:
    assert limited.request_more(ASKED).number == 3
    before = limited.head()
    with pytest.raises(refusal):
        limited.decide(decision)
    assert limited.head() == before


def test_nobody_grants_to_themselves_through_another_who_asks(limited: Ledger) -> None:
    asked = limited.request_more(replace(ASKED, by="Cem"))
    with pytest.raises(NotApproved):
        limited.decide(BudgetDecision(asked.number, HALF, reason="thanks", by="Ann"))


def test_only_limits_are_raised(limited: Ledger) -> None:
    with pytest.raises(InvalidRequest):
        limited.request_more(BudgetRequest("people", Scope.PURPOSE, "thesis", HALF, reason="more", by="Ann"))
    with pytest.raises(InvalidRequest):
        limited.request_more(BudgetRequest("people", Scope.GROUP, "B", HALF, reason="more", by="Ann"))
    with pytest.raises(InvalidAccount):
        limited.request_more(replace(ASKED, account="animals"))


def test_at_this_pace() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)

    def entry(number: int, days_ago: int, amount: str, kind: EventKind = EventKind.RESERVED) -> Event:
        at = (now - timedelta(days=days_ago)).isoformat()
        return Event(number, kind, at, "Ann", "people", f"people-{number}", Fraction(amount))

    entries = [entry(1, 40, "7"), entry(2, 9, "1/2"), entry(3, 5, "9"), entry(4, 1, "1/2")]
    entries.append(replace(entry(5, 4, "9", EventKind.CANCELED), release="people-3"))
    found = forecast(entries, "people", Fraction(2), days=10, now=now)
    assert (found.spent, found.per_day) == (Fraction(1), 0.1)
    assert found.ends_at == now + timedelta(days=20)
    assert "2026-03-21" in found.words("epsilon")
    assert forecast(entries, "animals", Fraction(2), days=10, now=now).ends_at is None
