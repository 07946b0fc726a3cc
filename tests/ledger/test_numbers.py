"""Releases are named by their account and counted within it; entries from before keep their names, and count."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from dualmandate.errors import NotChecked
from dualmandate.ledger import Account, Approval, EventKind, Ledger, LedgerKey, ReleaseState, Request, open_ledger
from dualmandate.ledger.books import Books, RecordState
from dualmandate.population import PrivacyLoss

PLAN, STATE = "a1" * 32, RecordState("3c" * 32, "5e" * 32)
LOSS = PrivacyLoss.pure("1/3")
REQUEST = Request("school children", PLAN, "2026", LOSS, "child", user="Eve")


def account(ledger: Ledger, name: str) -> Request:
    """An account with the plan approved, and what asks to spend from it."""
    ledger.open_account(Account(name, "child", PrivacyLoss.pure(5)), by="Ann")
    ledger.approve(Approval(name, PLAN, LOSS, "child", by="Ann"))
    return replace(REQUEST, account=name)


def test_each_account_counts_from_1(ledger: Ledger) -> None:
    other = account(ledger, "Bewohner Österreichs (2025)")
    names = [
        ledger.reserve(replace(each, snapshot=f"{n} of {each.account}")).name
        for n in range(2)
        for each in (REQUEST, other)
    ]
    assert names == [
        "school-children-1",
        "bewohner-osterreichs-2025-1",
        "school-children-2",
        "bewohner-osterreichs-2025-2",
    ]
    assert [ledger.release(name).number for name in names] == [1, 1, 2, 2]


def test_what_is_canceled_keeps_its_number(ledger: Ledger) -> None:
    ledger.cancel(ledger.reserve(REQUEST).name, by="Eve")
    assert ledger.reserve(REQUEST).name == "school-children-2"


@pytest.mark.parametrize("name", ["School: children", "school_children", "school children 2025, " * 8 + "all", "学生"])
def test_names_of_releases_are_unique_and_names_of_folders(ledger: Ledger, name: str) -> None:
    first = ledger.reserve(REQUEST).name
    names = [ledger.reserve(replace(account(ledger, name), snapshot=str(n))).name for n in range(1)]
    assert len({first, *names}) == 2
    for each in names:
        assert len(each) < 60
        assert Path(each).name == each
        assert set(each) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_entries_of_before_keep_their_names_and_count(
    ledger: Ledger, place: Path, key: LedgerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(Books, "next_name", lambda books, _: f"r{books.head.sequence + 1:06d}")
        assert ledger.reserve(REQUEST).name == "r000003"
    with sqlite3.connect(place) as database:
        database.execute("UPDATE ledger_version SET version_num = '2'")
    database.close()
    newer = open_ledger(place, key)
    assert (newer.release("r000003").number, newer.release("r000003").unchecked) == (1, False)
    newer.advance("r000003", ReleaseState.OPENED, by="Eve")
    assert newer.reserve(replace(REQUEST, snapshot="2027")).name == "school-children-2"
    newer.verify()


def test_a_state_is_reserved_once_it_was_checked(ledger: Ledger, place: Path, key: LedgerKey) -> None:
    with pytest.raises(NotChecked, match="never checked"):
        ledger.reserve(replace(REQUEST, checked=ledger.as_checked(STATE)))
    assert ledger.spent("school children") == 0
    assert ledger.events()[-1].kind is EventKind.REFUSED
    ledger.record_check(STATE, by="Cat", account="school children", source="people.csv")
    ledger.record_check(STATE, by="Cat", account="nobody", source="people.csv")
    first, second = (event.document()["state"] for event in ledger.events()[-2:])
    assert [event.account for event in ledger.events()[-2:]] == ["school children", None]
    assert second == ledger.as_checked(STATE) != first  # each check has a secret of its own
    with pytest.raises(NotChecked):
        open_ledger(place, key).check_state(replace(STATE, content="6e" * 32))
    with pytest.raises(NotChecked):
        ledger.reserve(replace(REQUEST, checked=first))
    assert open_ledger(place, key).reserve(replace(REQUEST, checked=second)).checked == second


def test_of_what_is_settled_no_state_can_be_tried_out(ledger: Ledger, place: Path) -> None:
    """Whoever has the key, and a guess of the records, finds no secret of their check; others keep theirs."""
    other = replace(STATE, against="7d" * 32)
    for checked in (STATE, other):
        ledger.record_check(checked, by="Cat", account=None, source="people.csv")
    held = {path.name for path in place.parent.rglob("*.sealed")}
    assert held == {f"check.{checked.against}.sealed" for checked in (STATE, other)}
    release = ledger.reserve(replace(REQUEST, checked=ledger.as_checked(STATE))).name
    for state in (ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED):
        if state is ReleaseState.MEASURED:
            ledger.bind(release, "ab" * 32, by="Eve")
        ledger.check_state(STATE)
        ledger.advance(release, state, by="Eve")
    ledger.destroy_secret(release, by="Eve")
    assert {path.name for path in place.parent.rglob("*.sealed")} == {f"check.{other.against}.sealed"}
    with pytest.raises(NotChecked):
        ledger.check_state(STATE)
    ledger.check_state(other)


def test_without_a_check_the_entry_says_so(ledger: Ledger) -> None:
    entry = ledger.reserve(replace(REQUEST, unchecked=True))
    assert (entry.unchecked, entry.checked) == (True, None)
    assert ledger.events()[-1].document()["unchecked"] is True
    assert "unchecked" not in ledger.events()[-2].document()
