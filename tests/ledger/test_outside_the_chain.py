"""A row that the ledger never wrote is found and named, wherever it stands: behind a gap, before the first, twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sql

from dualmandate.errors import LedgerTampered
from dualmandate.ledger import Account, Approval, Ledger, LedgerKey, Request, open_ledger
from dualmandate.ledger.storage import find_store
from dualmandate.population import PrivacyLoss

PLAN = "a1" * 32
LOSS = PrivacyLoss.pure("1/3")
REQUEST = Request("school children", PLAN, "2026", LOSS, "child", user="Eve")
COLUMNS = "sequence, kind, recorded_at, recorded_by, account, release, numerator, denominator, details, digest"
FORGED = (
    f"INSERT INTO ledger_entry ({COLUMNS}) VALUES ({{}}, 'approved', '2026-11-16T00:00:00.000000+00:00', "
    "'THE REVIEW BOARD', 'school children', NULL, '9', '1', "
    f'\'{{{{"plan_digest":"{"ab" * 32}","loss":"9","currency":"epsilon","unit":"child"}}}}\', \'{"0" * 64}\')'
)
# what a table becomes in the hands of one who may do anything with the database but has no key
FREE = ["CREATE TABLE copied AS SELECT * FROM ledger_entry", "DROP TABLE ledger_entry"]
FREE += ["ALTER TABLE copied RENAME TO ledger_entry"]


@dataclass(frozen=True)
class Books:
    """A ledger of two entries, in a database that others can write to."""

    place: str
    key: LedgerKey
    folder: Path

    def open(self) -> Ledger:
        return open_ledger(self.place, self.key, folder=self.folder)

    def change(self, *statements: str) -> None:
        engine = find_store(self.place).engine
        with engine.connect() as connection, connection.begin():
            for statement in statements:
                connection.execute(sql.text(statement.replace(":", "\\:")))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def books(request: pytest.FixtureRequest, key: LedgerKey, tmp_path: Path) -> Books:
    place = "postgres_url" if request.param == "postgresql" else "place"
    made = Books(str(request.getfixturevalue(place)), key, tmp_path / "state")
    ledger = open_ledger(made.place, key, folder=made.folder, create=True)
    ledger.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    ledger.approve(Approval("school children", PLAN, LOSS, "child", by="Ann"))
    return made


ACTS: tuple[Callable[[Ledger], object], ...] = (
    lambda ledger: ledger.verify(),
    lambda ledger: ledger.events(),
    lambda ledger: ledger.reserve(REQUEST),
    lambda ledger: ledger.remaining("school children"),
)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ([FORGED.format(7)], r"row 7 in the table of entries is outside the chain\n"),
        ([FORGED.format(4)], r"row 4 in"),
        ([FORGED.format(0)], r"row 0 in"),
        ([FORGED.format(-3)], r"row -3 in"),
        ([FORGED.format(2**62)], rf"row {2**62} in"),
        ([FORGED.format(9), FORGED.format(7), FORGED.format(-1)], r"row -1 in .* outside the chain, and 2 more\n"),
        ([*FREE, FORGED.format(2)], r"row 2 in|breaks at entry 2"),
        ([*FREE, FORGED.format(1)], r"row 1 in|breaks at entry 1"),
        ([*FREE, FORGED.format("NULL")], r"entry None of the ledger is not an entry"),
    ],
)
def test_a_row_outside_the_chain_is_found_and_named(books: Books, statements: list[str], words: str) -> None:
    seen = books.open()
    assert len(seen.events()) == 2
    books.change(*statements)
    for act in ACTS:
        with pytest.raises(LedgerTampered, match=words):
            act(books.open())
    if "row 1 " not in words:  # a process that read entry 1 before reads it again where it shows or verifies it
        with pytest.raises(LedgerTampered, match=words):
            seen.remaining("school children")
    for act in ACTS[:2]:
        with pytest.raises(LedgerTampered, match=words):
            act(seen)


def test_events_are_checked_again_when_they_are_shown(books: Books) -> None:
    """A process that has read an entry does not show what somebody wrote over it since."""
    seen = books.open()
    assert [event.by for event in seen.events()] == ["Ann", "Ann"]
    books.change("UPDATE ledger_entry SET recorded_by = 'THE REVIEW BOARD' WHERE sequence = 1")
    with pytest.raises(LedgerTampered, match="breaks at entry 1"):
        seen.events()
