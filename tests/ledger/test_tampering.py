"""Whoever changes, drops, moves or restores entries is noticed, and nothing can be spent before it is put right."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from dualmandate.errors import LedgerTampered, LedgerUnavailable
from dualmandate.ledger import Ledger, LedgerKey, Request, chain, make_key, open_ledger, storage
from dualmandate.ledger import ledger as module
from dualmandate.population import PrivacyLoss

PLAN = "a1" * 32
REQUEST = Request("school children", PLAN, "2026", PrivacyLoss.pure("1/3"), "child", user="Eve")


@pytest.fixture
def spent(ledger: Ledger) -> Ledger:
    """Five entries: the account, the approval, and three reservations."""
    for snapshot in ("2026", "2027", "2028"):
        ledger.reserve(replace(REQUEST, snapshot=snapshot))
    return ledger


def change(place: Path, *statements: str) -> None:
    connection = sqlite3.connect(place)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def refused_everywhere(place: Path, key: LedgerKey, words: str, also: tuple[Path, ...] = ()) -> None:
    """A new process can neither verify, nor spend, nor read a balance; and nothing was written."""
    before = place.read_bytes()
    acts: tuple[Callable[[Ledger], object], ...] = (
        lambda ledger: ledger.verify(),
        lambda ledger: ledger.reserve(replace(REQUEST, snapshot="2030")),
        lambda ledger: ledger.remaining("school children"),
        lambda ledger: ledger.events(),
    )
    for act in acts:
        with pytest.raises(LedgerTampered, match=words):
            act(open_ledger(place, key, anchors=also))
    assert place.read_bytes() == before


MOVED = "UPDATE ledger_entry SET sequence = CASE sequence {} END WHERE sequence IN (3, 4, -3, -4)"


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE ledger_entry SET numerator = '500' WHERE sequence = 1"], "breaks at entry 1"),
        (["UPDATE ledger_entry SET denominator = '4' WHERE sequence = 4"], "breaks at entry 4"),
        (["UPDATE ledger_entry SET recorded_by = 'Bob' WHERE sequence = 2"], "breaks at entry 2"),
        (["UPDATE ledger_entry SET recorded_at = 'x' WHERE sequence = 5"], "breaks at entry 5"),
        (["UPDATE ledger_entry SET kind = 'canceled' WHERE sequence = 5"], "breaks at entry 5"),
        (["UPDATE ledger_entry SET kind = 'forgiven' WHERE sequence = 5"], "entry 5 of the ledger is not an entry"),
        (["UPDATE ledger_entry SET numerator = 'x' WHERE sequence = 5"], "entry 5 of the ledger is not an entry"),
        (["UPDATE ledger_entry SET denominator = '0' WHERE sequence = 5"], "entry 5 of the ledger is not an entry"),
        (["UPDATE ledger_entry SET details = x'00ff' WHERE sequence = 5"], "entry 5 of the ledger is not an entry"),
        (["UPDATE ledger_entry SET account = NULL WHERE sequence = 3"], "breaks at entry 3"),
        (["UPDATE ledger_entry SET digest = replace(digest, 'a', 'b')"], "breaks at entry 1"),
        (["DELETE FROM ledger_entry WHERE sequence = 1"], "do not lead to the ledger's head"),
        (["DELETE FROM ledger_entry WHERE sequence = 4"], "do not lead to the ledger's head"),
        (["DELETE FROM ledger_entry WHERE sequence = 5"], "do not lead to the ledger's head"),
        (["DELETE FROM ledger_entry"], "do not lead to the ledger's head"),
        (["DELETE FROM ledger_head"], "holds another ledger"),
        (["UPDATE ledger_head SET ledger = 'mine'"], "holds another ledger"),
        (["INSERT INTO ledger_head VALUES ('mine', 0, '')"], "heads of two ledgers"),
        (["UPDATE ledger_head SET sequence = 4"], "do not lead to the ledger's head"),
        (
            [MOVED.format("WHEN 3 THEN -4 WHEN 4 THEN -3"), MOVED.format("WHEN -3 THEN 3 WHEN -4 THEN 4")],
            "breaks at entry 3",
        ),
        (["UPDATE ledger_entry SET sequence = 6 WHERE sequence = 5"], "do not lead to the ledger's head"),
        (
            [
                "INSERT INTO ledger_entry SELECT 6, kind, recorded_at, recorded_by, account, release, numerator, "
                "denominator, details, digest FROM ledger_entry WHERE sequence = 5",
            ],
            "breaks at entry 6",
        ),
    ],
)
def test_a_changed_database_is_noticed(
    spent: Ledger, place: Path, key: LedgerKey, statements: list[str], words: str
) -> None:
    change(place, *statements)
    refused_everywhere(place, key, words)


def shorten(place: Path, to: int) -> None:
    """Truncate the chain as carefully as one can without the key: the head follows."""
    change(
        place,
        f"DELETE FROM ledger_entry WHERE sequence > {to}",
        f"UPDATE ledger_head SET sequence = {to}, digest = (SELECT digest FROM ledger_entry WHERE sequence = {to})",
    )


def test_a_shortened_ledger_is_behind_its_anchor(spent: Ledger, place: Path, key: LedgerKey) -> None:
    shorten(place, 4)
    refused_everywhere(place, key, "has 4 entries, and its anchor knows 5")
    with pytest.raises(LedgerTampered, match="do not lead to the ledger's head, number 4"):
        spent.remaining("school children")  # the process that saw more remembers


def test_an_older_copy_is_behind_the_anchor(ledger: Ledger, place: Path, key: LedgerKey, tmp_path: Path) -> None:
    shutil.copy(place, tmp_path / "backup")
    ledger.reserve(REQUEST)
    shutil.copy(tmp_path / "backup", place)
    refused_everywhere(place, key, "has 2 entries, and its anchor knows 3")


def test_an_older_copy_of_everything_is_behind_a_release(
    ledger: Ledger, place: Path, key: LedgerKey, tmp_path: Path
) -> None:
    shutil.copytree(place.parent, tmp_path / "backup")
    ledger.reserve(REQUEST)
    release = tmp_path / "release.json"
    release.write_text(json.dumps({"schema": "release/1", "ledger_head": ledger.head().document()}))
    shutil.rmtree(place.parent)
    shutil.copytree(tmp_path / "backup", place.parent)
    refused_everywhere(place, key, "has 2 entries, and its anchor knows 3", (release,))
    # Continued from the older copy, it passes the release's number but not its digest.
    open_ledger(place, key).reserve(REQUEST)
    refused_everywhere(place, key, "entry 3 of the ledger is not the one its anchor knows", (release,))


def test_releases_met_on_the_way_are_heeded(ledger: Ledger, place: Path, key: LedgerKey, tmp_path: Path) -> None:
    """A ledger goes on past files of others, and stops at one that knows more of it than it does."""
    shutil.copytree(place.parent, tmp_path / "backup")
    other = open_ledger(tmp_path / "other" / "ledger.sqlite", key, create=True)
    heads = {"other": other.head(), "ours": ledger.head_of(ledger.reserve(REQUEST).name)}
    for name, head in heads.items():
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "release.json").write_text(json.dumps({"ledger_head": head.document()}))
    (tmp_path / "damaged.json").write_text("{")
    os.mkfifo(tmp_path / "pipe.json")  # nobody writes to it: who reads it would wait for ever
    met = [*tmp_path.glob("*/release.json"), *(tmp_path / f"{name}.json" for name in ("damaged", "pipe", "nowhere"))]
    ledger.heed(met)
    shutil.rmtree(place.parent)
    shutil.copytree(tmp_path / "backup", place.parent)
    restored = open_ledger(place, key)
    with pytest.raises(LedgerTampered, match="has 2 entries, and its anchor knows 3"):
        restored.heed(met)


@pytest.mark.parametrize(
    "text",
    [None, "", "{}", "[]", '{"ledger_head": {"ledger": "x", "sequence": -1, "digest": ""}}', "\udcff", "[" * 100_000],
)
def test_a_missing_or_damaged_anchor_is_refused(spent: Ledger, place: Path, key: LedgerKey, text: str | None) -> None:
    anchor = place.with_name("ledger.sqlite.anchor")
    anchor.unlink()
    if text is not None:
        anchor.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused_everywhere(place, key, "anchor of the ledger cannot be read")
    with pytest.raises(LedgerTampered, match="anchor of the ledger cannot be read"):
        open_ledger(place, key, create=True)


def test_an_anchor_of_another_ledger_is_refused(spent: Ledger, place: Path, key: LedgerKey, tmp_path: Path) -> None:
    other = tmp_path / "other" / "ledger.sqlite"
    open_ledger(other, key, create=True)
    foreign = other.with_name("ledger.sqlite.anchor")
    refused_everywhere(place, key, "belongs to another ledger", (foreign,))


def test_a_lost_database_is_not_begun_anew(spent: Ledger, place: Path, key: LedgerKey) -> None:
    place.unlink()
    with pytest.raises(LedgerTampered, match="the database is empty, and the anchor beside it is not"):
        open_ledger(place, key, create=True)


def test_another_key_does_not_fit(spent: Ledger, place: Path, tmp_path: Path) -> None:
    refused_everywhere(place, make_key(tmp_path / "another key"), "breaks at entry 1")


def test_who_has_the_key_and_rewrites_history_meets_the_anchor(spent: Ledger, place: Path, key: LedgerKey) -> None:
    """With the key a whole chain can be forged; only the anchor, elsewhere, remembers another digest."""
    head = spent.head()
    before, forged = chain.first_digest(key, head.ledger), []
    for event in spent.events():
        event = replace(event, amount=Fraction(500)) if event.sequence == 1 else event
        before = chain.chained_digest(key, before, event)
        forged.append((event.sequence, before))
    change(
        place,
        "UPDATE ledger_entry SET numerator = '500' WHERE sequence = 1",
        *(f"UPDATE ledger_entry SET digest = '{digest}' WHERE sequence = {number}" for number, digest in forged),
        f"UPDATE ledger_head SET digest = '{before}'",
    )
    refused_everywhere(place, key, "entry 5 of the ledger is not the one its anchor knows")


def test_a_crash_before_the_anchor_is_recovered(spent: Ledger, place: Path, key: LedgerKey) -> None:
    anchor = place.with_name("ledger.sqlite.anchor")
    older = anchor.read_bytes()
    spent.reserve(replace(REQUEST, snapshot="2029"))
    anchor.write_bytes(older)
    ledger = open_ledger(place, key)
    assert ledger.verify().head.sequence == 6
    ledger.reserve(replace(REQUEST, snapshot="2030"))
    assert json.loads(anchor.read_text())["ledger_head"]["sequence"] == 7


def test_a_crash_while_a_ledger_is_made_is_recovered(
    place: Path, key: LedgerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*words: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dualmandate.ledger.ledger.start_head", crash)
        with pytest.raises(KeyboardInterrupt):
            open_ledger(place, key, create=True)
    assert open_ledger(place, key, create=True).verify().head.sequence == 0
    assert open_ledger(place, key).head().sequence == 0


def test_a_newer_version_is_left_alone(spent: Ledger, place: Path, key: LedgerKey) -> None:
    change(place, "UPDATE ledger_version SET version_num = '7'")
    before = place.read_bytes()
    for create in (False, True):
        with pytest.raises(LedgerUnavailable, match="is of version 7, and version 4 is the newest known here"):
            open_ledger(place, key, create=create)
    assert place.read_bytes() == before


def test_an_older_version_is_brought_up_to_date(
    spent: Ledger, place: Path, key: LedgerKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The day a fifth version exists: a ledger of the fourth is brought to it when it is next opened."""
    versions = tmp_path / "migrations"
    versions.mkdir(parents=True)
    for known in ("version_1.py", "version_2.py", "version_3.py", "version_4.py"):
        shutil.copy(Path(storage.__file__).with_name("migrations") / known, versions)
    (versions / "version_5.py").write_text(
        "from alembic import op\nimport sqlalchemy\nrevision, down_revision = '5', '4'\n"
        "def upgrade():\n    op.create_table('later', sqlalchemy.Column('x', sqlalchemy.Text()))\n"
    )
    before = spent.head()
    with monkeypatch.context() as patch:
        patch.setattr(storage, "_scripts", lambda: ScriptDirectory(versions, version_locations=[versions]))
        ledger = open_ledger(place, key)
        assert ledger.verify().head == before
        ledger.reserve(replace(REQUEST, snapshot="2029"))
        assert open_ledger(place, key).spent("school children") == Fraction(4, 3)
    change(place, "INSERT INTO later VALUES ('it is there')")
    with pytest.raises(LedgerUnavailable, match="is of version 5"):
        open_ledger(place, key)


def test_a_ledger_of_the_first_version_goes_on(spent: Ledger, place: Path, key: LedgerKey) -> None:
    """And an older dualmandate says that a newer one wrote it, not that somebody forged the entries it cannot read."""
    change(place, "UPDATE ledger_version SET version_num = '1'")
    before = spent.head()
    ledger = open_ledger(place, key)
    assert ledger.verify().head == before
    with sqlite3.connect(place) as connection:
        assert connection.execute("SELECT version_num FROM ledger_version").fetchall() == [("4",)]
    ledger.reserve(replace(REQUEST, snapshot="2029"))


def test_a_clock_set_back_changes_nothing_but_the_record(
    spent: Ledger, place: Path, key: LedgerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spent.verify().clock_set_back == ()
    monkeypatch.setattr(module, "_now", lambda: datetime.now(UTC) - timedelta(days=400))
    release = spent.reserve(replace(REQUEST, snapshot="2029"))
    ledger = open_ledger(place, key)
    assert ledger.verify().clock_set_back == (6,)
    assert [event.sequence for event in ledger.events()] == [1, 2, 3, 4, 5, 6]
    assert ledger.releases()[-1] == release
    assert ledger.spent("school children") == Fraction(4, 3)


def test_an_anchor_never_goes_back(spent: Ledger, place: Path) -> None:
    anchor, head = place.with_name("ledger.sqlite.anchor"), spent.head()
    chain.advance_anchor(anchor, replace(head, sequence=head.sequence - 1))
    assert chain.read_anchor(anchor) == head
    chain.advance_anchor(anchor, replace(head, sequence=head.sequence + 1))
    assert chain.read_anchor(anchor).sequence == head.sequence + 1
