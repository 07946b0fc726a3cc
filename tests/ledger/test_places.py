"""Second places of the ledger's head: a restored or copied ledger meets them, and none is dropped unnoticed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dualmandate.errors import LedgerTampered, LedgerUnavailable
from dualmandate.ledger import (
    Account,
    AppendOnlyFile,
    Approval,
    CommandPlace,
    DatabasePlace,
    EventKind,
    FilePlace,
    HeadPlace,
    Ledger,
    LedgerKey,
    Request,
    open_ledger,
)
from dualmandate.population import PrivacyLoss

PLAN = "a1" * 32
LOSS = PrivacyLoss.pure("1/3")
REQUEST = Request("school children", PLAN, "2026", LOSS, "child", user="Eve")
NOTARY = """\
import pathlib, sys
file = pathlib.Path(__file__).with_name(sys.argv[2])
if sys.argv[1] == "write":
    file.write_text(sys.stdin.read())
elif file.exists():
    print(file.read_text())
"""


@dataclass(frozen=True)
class Kept:
    """A ledger of three entries whose head is kept elsewhere too."""

    file: Path
    key: LedgerKey
    place: HeadPlace

    def open(self, file: Path | None = None) -> Ledger:
        return open_ledger(file or self.file, self.key, places=[self.place])


def made_place(kind: str, request: pytest.FixtureRequest, folder: Path) -> HeadPlace:
    folder.mkdir()
    if kind == "file":
        return FilePlace(folder / "head")
    if kind == "append":
        return AppendOnlyFile(folder / "heads")
    if kind == "database":
        return DatabasePlace(request.getfixturevalue("postgres_url"))
    (folder / "notary.py").write_text(NOTARY, encoding="utf-8")
    return CommandPlace((sys.executable, str(folder / "notary.py")), folder)


@pytest.fixture(params=["file", "append", pytest.param("database", marks=pytest.mark.postgres), "command"])
def kept(request: pytest.FixtureRequest, place: Path, key: LedgerKey, tmp_path: Path) -> Kept:
    made = Kept(place, key, made_place(request.param, request, tmp_path / "other disk"))
    ledger = open_ledger(place, key, places=[made.place], create=True)
    ledger.keep_head(by="Ann")
    ledger.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    ledger.approve(Approval("school children", PLAN, LOSS, "child", by="Ann"))
    return made


def copied(kept: Kept, name: str) -> Path:
    """The whole folder of the ledger, key, anchor and secrets, as a backup or a clone has it."""
    folder = kept.file.parent.with_name(name)
    shutil.copytree(kept.file.parent, folder)
    return folder / kept.file.name


def test_every_entry_is_known_elsewhere(kept: Kept) -> None:
    ledger = kept.open()
    head = ledger.head_of(ledger.reserve(REQUEST).name)
    assert kept.place.read(head.ledger)[-1] == head
    assert ledger.kept_at() == (kept.place.words,)
    assert ledger.verify().places == ((kept.place.words, 4),)
    assert ledger.events()[0].kind is EventKind.ANCHORED


def test_a_restored_ledger_is_behind_its_second_place(kept: Kept) -> None:
    backup = copied(kept, "backup")
    kept.open().reserve(REQUEST)
    acts: tuple[Callable[[Ledger], object], ...] = (
        lambda ledger: ledger.verify(),
        lambda ledger: ledger.remaining("school children"),
        lambda ledger: ledger.reserve(REQUEST),
        lambda ledger: ledger.keep_head(by="Eve"),
    )
    for act in acts:
        before = backup.read_bytes()
        with pytest.raises(LedgerTampered, match="the ledger has 3 entries, and its anchor knows 4"):
            act(kept.open(backup))
        assert backup.read_bytes() == before
    assert kept.open().spent("school children") == LOSS.amount


def test_of_two_clones_one_goes_on(kept: Kept) -> None:
    """Both were opened before either spent: the second is refused at its next act, before any data are opened."""
    clone, first = kept.open(copied(kept, "clone")), kept.open()
    assert clone.spent("school children") == first.spent("school children") == 0
    first.reserve(REQUEST)
    with pytest.raises(LedgerTampered, match="its anchor knows 4"):
        clone.reserve(replace(REQUEST, snapshot="2027"))
    assert first.reserve(replace(REQUEST, snapshot="2027")).name == "r000005"


def test_two_clones_that_spend_at_the_same_instant_are_told_apart(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, first = kept.open(copied(kept, "clone")), kept.open()
    read = type(kept.place).read
    before = kept.place.read(clone.identifier)
    first.reserve(REQUEST)
    asked: list[str] = []

    def late(self: HeadPlace, ledger: str) -> tuple[object, ...]:
        asked.append(ledger)
        return before if len(asked) == 1 else read(self, ledger)

    monkeypatch.setattr(type(kept.place), "read", late)
    with pytest.raises(LedgerTampered, match="knows another entry 4"):
        clone.reserve(replace(REQUEST, snapshot="2027"))
    with pytest.raises(LedgerTampered, match="entry 4 of the ledger is not the one its anchor knows"):
        clone.verify()


def test_a_place_that_was_emptied_is_refused(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(kept.place), "read", lambda self, ledger: ())
    with pytest.raises(LedgerTampered, match="knows nothing of this ledger"):
        kept.open().reserve(REQUEST)


def test_a_place_that_does_not_answer_stops_the_ledger(kept: Kept, tmp_path: Path) -> None:
    gone: dict[type[HeadPlace], HeadPlace] = {
        FilePlace: FilePlace(tmp_path / "not mounted" / "head"),
        AppendOnlyFile: AppendOnlyFile(tmp_path / "not mounted" / "heads"),
        DatabasePlace: DatabasePlace("postgresql://nobody@/nothing?host=/nowhere"),
        CommandPlace: CommandPlace(("/nowhere/notary",), tmp_path),
    }
    ledger = open_ledger(kept.file, kept.key, places=[gone[type(kept.place)]])
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(REQUEST)


def test_a_place_is_not_left_out_and_not_begun_in_silence(kept: Kept, tmp_path: Path) -> None:
    bare = open_ledger(kept.file, kept.key)
    with pytest.raises(LedgerUnavailable, match="the project names no second place"):
        bare.reserve(REQUEST)
    other = FilePlace(tmp_path / "another")
    with pytest.raises(LedgerUnavailable, match=r"and the project names .* and the file"):
        open_ledger(kept.file, kept.key, places=[kept.place, other]).reserve(REQUEST)
    both = open_ledger(kept.file, kept.key, places=[kept.place, other])
    both.keep_head(by="Ann")
    both.reserve(REQUEST)
    assert other.read("")[0].sequence == kept.place.read(both.identifier)[-1].sequence == 5


def test_a_file_keeps_the_head_of_one_ledger(key: LedgerKey, place: Path, tmp_path: Path) -> None:
    """Whoever loses a ledger and begins another for the same people meets the head of the first."""
    second = FilePlace(tmp_path / "head")
    open_ledger(place, key, places=[second], create=True).keep_head(by="Ann")
    shutil.rmtree(place.parent)
    with pytest.raises(LedgerTampered, match="belongs to another ledger"):
        open_ledger(place, key, places=[second], create=True).keep_head(by="Ann")


def test_lines_that_a_crash_cut_off_are_passed_over(key: LedgerKey, place: Path, tmp_path: Path) -> None:
    second = AppendOnlyFile(tmp_path / "heads")
    ledger = open_ledger(place, key, places=[second], create=True)
    ledger.keep_head(by="Ann")
    with second.path.open("a") as file:
        file.write('{"ledger": "')
    ledger.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    assert [head.sequence for head in second.read(ledger.identifier)] == [0, 1, 2]
    assert json.loads(second.path.read_text().splitlines()[-1])["sequence"] == 2


def test_a_command_that_keeps_nothing_is_refused(key: LedgerKey, place: Path, tmp_path: Path) -> None:
    ledger = open_ledger(place, key, places=[CommandPlace(("true",), tmp_path)], create=True)
    with pytest.raises(LedgerUnavailable, match="does not keep what it is handed"):
        ledger.keep_head(by="Ann")
    assert ledger.head().sequence == 0
    talking = open_ledger(place, key, places=[CommandPlace(("echo",), tmp_path)])
    with pytest.raises(LedgerTampered, match="printed no head of a ledger"):
        talking.keep_head(by="Ann")


def test_a_password_is_in_no_words() -> None:
    place = DatabasePlace("postgresql://me:s3cret@host/x?password=s3cret")
    assert "s3cret" not in place.words + repr(place)
