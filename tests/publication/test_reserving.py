"""The way from a request to opened records: of two copies of a ledger one goes on, whoever of them comes first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dualmandate.errors import LedgerTampered
from dualmandate.ledger import Account, Approval, Ledger, ReleaseState, Request, make_key, open_ledger, read_key
from dualmandate.ledger.chain import read_anchor
from dualmandate.population import PrivacyLoss
from dualmandate.publication import source_file
from dualmandate.publication.beside_data import anchor_beside
from dualmandate.publication.reserving import open_records, reserve

PLAN, LOSS = "a1" * 32, PrivacyLoss.pure("1/3")
REQUEST = Request("residents", PLAN, "residents.csv", LOSS, "person", user="Eve")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    (tmp_path / "residents.csv").write_text("ward\nnorth\n", encoding="utf-8")
    state = tmp_path / "state"
    made = open_ledger(state / "ledger.sqlite", make_key(state / "key"), create=True)
    made.open_account(Account("residents", "person", PrivacyLoss.pure(5)), by="Ann")
    made.approve(Approval("residents", PLAN, LOSS, "person", by="Ann"))
    return made


def reserved(ledger: Ledger, folder: Path) -> str:
    source = source_file(folder / "residents.csv")
    return reserve(ledger, source, REQUEST, folders=(), other_ledger=None, sign=None).name


@pytest.mark.parametrize("further", [0, 1])
def test_of_two_copies_that_reserve_at_once_one_opens_the_records(ledger: Ledger, tmp_path: Path, further: int) -> None:
    """Without a second place: both set the loss aside, and meet at the anchor beside the data before it is opened.

    Also where the second copy has come further, and its number is the later one.
    """
    shutil.copytree(tmp_path / "state", tmp_path / "clone")
    clone = open_ledger(tmp_path / "clone" / "ledger.sqlite", read_key(tmp_path / "clone" / "key"))
    for number in range(further):
        clone.open_account(Account(f"others {number}", "person", PrivacyLoss.pure(1)), by="Ann")
    source = source_file(tmp_path / "residents.csv")
    names = reserved(ledger, tmp_path), reserved(clone, tmp_path)
    open_records(ledger, source, names[0], by="Eve")
    with pytest.raises(LedgerTampered, match="is not the one its anchor knows"):
        open_records(clone, source, names[1], by="Eve")
    assert ledger.release(names[0]).state is ReleaseState.OPENED
    assert clone.release(names[1]).state is ReleaseState.RESERVED
    beside = anchor_beside(source, ledger.identifier)
    assert beside is not None
    assert read_anchor(beside) == ledger.head_of(names[0])
