"""Second places of the ledger's head: a restored or copied ledger meets them, and none is dropped unnoticed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dualmandate.errors import CannotWrite, InvalidAccount, LedgerTampered, LedgerUnavailable
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
    ReleaseState,
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
    assert first.reserve(replace(REQUEST, snapshot="2027")).name == "school-children-2"


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


def _failing(kept: Kept, monkeypatch: pytest.MonkeyPatch, *, also_trials: bool) -> None:
    """The place answers, and can be told nothing: its disk is full, or for reading only."""

    def full(self: object, *about: object) -> None:
        raise CannotWrite.because(OSError(errno.ENOSPC, ""), "the second place")

    names = ["advance", *(["prove"] if also_trials else [])]
    for name in names:
        monkeypatch.setattr(type(kept.place), name, full)


def test_a_place_that_cannot_be_told_anything_stops_a_loss_before_it_is_set_aside(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    _failing(kept, monkeypatch, also_trials=True)
    ledger, before = kept.open(), kept.open().head()
    with pytest.raises(LedgerUnavailable, match="cannot be told how far the ledger has come") as refusal:
        ledger.reserve(REQUEST)
    assert "no space left" in refusal.value.why
    assert kept.open().head() == before
    assert kept.open().spent("school children") == 0


def test_nothing_goes_on_that_a_place_does_not_know(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full after the trial: what was set aside is not opened by trying again, and again, until it is published."""
    ledger = kept.open()
    with monkeypatch.context() as patch:
        _failing(kept, patch, also_trials=False)
        with pytest.raises(LedgerUnavailable, match="entry 4 is in the ledger, and its anchor could not be written"):
            ledger.reserve(REQUEST)
        for _ in range(3):
            with pytest.raises(LedgerUnavailable, match="cannot be told how far the ledger has come"):
                kept.open().advance("school-children-1", ReleaseState.OPENED, by="Eve")
        assert kept.open().release("school-children-1").state is ReleaseState.RESERVED
    kept.open().advance("school-children-1", ReleaseState.OPENED, by="Eve")
    assert kept.place.read(ledger.identifier)[-1] == kept.open().head()


def test_the_anchor_of_the_ledger_itself_is_made_good_too(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("dualmandate.ledger.ledger.advance_anchor", _full)
        with pytest.raises(LedgerUnavailable, match="its anchor could not be written"):
            kept.open().reserve(REQUEST)
        with pytest.raises(CannotWrite):
            kept.open().advance("school-children-1", ReleaseState.OPENED, by="Eve")
    assert kept.open().release("school-children-1").state is ReleaseState.RESERVED


def _full(*about: object) -> None:
    raise CannotWrite.because(OSError(errno.ENOSPC, ""), "the anchor")


def test_a_trial_leaves_the_place_as_it_was(kept: Kept) -> None:
    ledger = kept.open()
    before = set(kept.place.read(ledger.identifier))
    kept.place.prove(ledger.head())
    assert set(kept.place.read(ledger.identifier)) == before
    kept.open().reserve(REQUEST)


def test_a_disk_that_takes_half_a_line_is_full(key: LedgerKey, place: Path, tmp_path: Path) -> None:
    second = AppendOnlyFile(tmp_path / "heads")
    ledger = open_ledger(place, key, places=[second], create=True)
    ledger.keep_head(by="Ann")
    with pytest.MonkeyPatch.context() as patch:
        write = os.write
        patch.setattr("dualmandate.ledger.places.os.write", lambda handle, line: write(handle, line[:20]))
        with pytest.raises(LedgerUnavailable, match="its anchor could not be written"):
            ledger.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    ledger.approve(Approval("school children", PLAN, LOSS, "child", by="Ann"))
    assert [head.sequence for head in second.read(ledger.identifier)] == [0, 1, 2, 3]


def test_an_older_copy_cannot_leave_out_the_place_that_knows_it(kept: Kept) -> None:
    """By editing a line of the project file and recording that: the place is asked a last time."""
    older = copied(kept, "older")
    kept.open().reserve(REQUEST)
    with pytest.raises(LedgerTampered, match="the ledger has 3 entries, and its anchor knows 4"):
        open_ledger(older, kept.key).keep_head(by="Mallory", lost="nobody will ask")
    open_ledger(kept.file, kept.key).keep_head(by="Ann")  # the copy that it knows may go elsewhere
    assert open_ledger(kept.file, kept.key).kept_at() == ()


def test_a_place_that_is_lost_is_left_out_with_a_reason_that_is_recorded(key: LedgerKey, place: Path) -> None:
    second = FilePlace(place.parent.parent / "disk" / "head")
    second.path.parent.mkdir()
    open_ledger(place, key, places=[second], create=True).keep_head(by="Ann")
    shutil.rmtree(second.path.parent)
    bare = open_ledger(place, key)
    with pytest.raises(LedgerUnavailable, match="is left out, and does not say how far"):
        bare.keep_head(by="Ann")
    with pytest.raises(InvalidAccount):
        bare.keep_head(by="Ann", lost=" ")
    assert bare.kept_at() == (second.words,)
    bare.keep_head(by="Ann", lost="the disk died on 3 May")
    [*_, event] = bare.events()
    assert event.document()["lost"] == {"places": [second.words], "reason": "the disk died on 3 May"}


def test_no_balance_is_told_and_nothing_verified_without_the_place(kept: Kept) -> None:
    bare = open_ledger(kept.file, kept.key)
    for asked in (bare.verify, bare.accounts, bare.events, lambda: bare.remaining("school children")):
        with pytest.raises(LedgerUnavailable, match="the project names no second place"):
            asked()


@pytest.mark.postgres
def test_the_ledgers_own_database_is_no_second_place(postgres_url: str, key: LedgerKey, tmp_path: Path) -> None:
    same = DatabasePlace(f"{postgres_url}&application_name=other")  # another address of the same
    ledger = open_ledger(postgres_url, key, folder=tmp_path / "state", places=[same], create=True)
    with pytest.raises(LedgerUnavailable, match="holds the ledger itself"):
        ledger.keep_head(by="Ann")
    assert ledger.head().sequence == 0


def test_how_to_find_a_place_again_holds_no_password() -> None:
    place = DatabasePlace("postgresql://me:s3cret@host/x?password=s3cret&port=5433")
    assert place.document() == {"kind": "database", "url": "postgresql://me@host/x?port=5433"}


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
