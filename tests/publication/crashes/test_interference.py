"""Two publications at once, plans and data that change, ledgers from the past: nothing is spent twice."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.publication.crashes import town

from dualmandate.errors import CannotWrite
from dualmandate.ledger import ReleaseState
from dualmandate.ledger import ledger as ledger_module
from dualmandate.mechanism.strategy import strategy_file
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.planning.program import Program, load
from dualmandate.population import Confidential, Histogram
from dualmandate.publication import Tabulated, wall
from dualmandate.publication import publish as publishing
from dualmandate.publication.release_folder import write_release
from dualmandate.publication.tabulating import KEY_BYTES

COST = Fraction(town.EPSILON)
HELD = (Confidential, Tabulated, Histogram)
RESUMING = """
import os, sys
from dualmandate.apps.cli import app
from dualmandate.apps.output import run
os.chdir({folder!r})
sys.exit(run(app, ["publish", "report/plan.json", "--unchecked", "--resume", {release!r}, "--by", "Bob"]))
"""


@pytest.fixture(autouse=True)
def _nothing_sings(folder: Path) -> Iterator[None]:
    """Whatever a test did, no file of the project repeats a record."""
    yield
    town.assert_silent_folder(folder, leave_out=(town.DATA, "other.parquet"))


def refused(folder: Path, *words: object, code: str) -> dict[str, str]:
    """A command that is refused, silently about the records, and without a traceback."""
    status, said = town.typed(folder, *words, "--json")
    assert status == 2, said
    town.assert_silent(said)
    assert "Traceback" not in said
    found: dict[str, str] = json.loads(said[said.index("{") :])
    assert found["code"] == code, said
    return found


def published(folder: Path, *words: object) -> str:
    """The name of the release that publishing made."""
    town.done(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", *words)
    return town.the_ledger(folder).releases()[-1].name


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> str:
    """A publication that loses its disk at some function of the act; the name of its release."""

    def lost(*words: object, **named: object) -> None:
        raise CannotWrite.because(OSError(28, "x"), folder)

    with monkeypatch.context() as patch:
        patch.setattr(publishing, at, lost)
        refusal = refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="cannot write")
    [release] = town.the_ledger(folder).releases()
    assert f"resume release {release.name}" in refusal["instead"]
    return release.name


def test_everything_is_on_the_disk_before_the_ledger_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When `written` is recorded every file was synced, and every folder after the last name that came into it."""
    synced, unsynced, fsync, reach = set[int](), set[int](), os.fsync, publishing._reach
    checked: list[int] = []

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)
        unsynced.discard(os.fstat(descriptor).st_ino)

    def watched(name: str) -> None:
        plain = getattr(os, name)

        def named(path: Any, *words: Any, **named: Any) -> None:
            plain(path, *words, **named)
            unsynced.add(Path(words[0] if name in ("rename", "replace") else path).parent.stat().st_ino)

        monkeypatch.setattr(os, name, named)

    def reached(work: Any, release: str, state: ReleaseState, digest: str | None = None) -> None:
        if state is ReleaseState.WRITTEN:
            final = folder / town.OUT / release
            everything = {path.stat().st_ino for path in (final, *final.rglob("*"))}
            assert everything <= synced
            assert not unsynced & {*everything, final.parent.stat().st_ino}
            checked.append(len(everything))
        reach(work, release, state, digest)

    monkeypatch.setattr(os, "fsync", noted)
    for name in ("rename", "replace", "mkdir"):
        watched(name)
    monkeypatch.setattr(publishing, "_reach", reached)
    published(folder)
    assert checked[0] > 15


@pytest.mark.slow
def test_two_publications_at_once_are_one(folder: Path) -> None:
    command: list[str | Path] = [
        Path(sys.executable).with_name("dualmandate"),
        "publish",
        town.PLAN,
        "--unchecked",
        "--by",
        "Eve",
    ]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    said = ["".join(process.communicate()) for process in both]
    town.assert_silent(*said)
    assert sorted(process.returncode for process in both) == [0, 2], said
    loser = next(words for words, process in zip(said, both, strict=True) if process.returncode)
    assert "of this plan and snapshot exists already" in loser
    [release] = town.the_ledger(folder).releases()
    assert (release.state, town.the_ledger(folder).spent(town.ACCOUNT)) == (ReleaseState.SETTLED, COST)
    town.done(folder, "ledger", "verify", "--anchor", town.OUT)


def test_a_release_is_made_by_one_process_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = interrupted(folder, monkeypatch, "write_release")
    draft = folder / town.OUT / f".{release}.draft"
    draft.mkdir(exist_ok=True)
    handle = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        busy = refused(
            folder, "publish", town.PLAN, "--unchecked", "--resume", release, "--by", "Eve", code="release conflict"
        )
        assert "another process" in busy["what"]
    finally:
        os.close(handle)
    assert published(folder, "--resume", release) == release
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


def test_publishing_twice_is_refused_and_again_is_a_new_loss(folder: Path) -> None:
    first = published(folder)
    once = refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="release conflict")
    assert first in once["what"]
    second = published(folder, "--again")
    assert second != first
    assert town.the_ledger(folder).spent(town.ACCOUNT) == 2 * COST
    measured = [(folder / town.OUT / name / "measurements" / "all.parquet").read_bytes() for name in (first, second)]
    assert measured[0] != measured[1]
    town.done(folder, "ledger", "verify", "--anchor", town.OUT)


def test_a_release_given_up_for_another_leaves_neither_secret_nor_draft(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = interrupted(folder, monkeypatch, "write_release")
    draft = folder / town.OUT / f".{first}.draft"
    assert list(draft.rglob("*.parquet"))
    second = published(folder, "--again")
    ledger = town.the_ledger(folder)
    assert [(entry.state, entry.secret_destroyed) for entry in ledger.releases()] == [
        (ReleaseState.ABANDONED, True),
        (ReleaseState.SETTLED, True),
    ]
    assert ledger.spent(town.ACCOUNT) == 2 * COST
    assert [path.name for path in (folder / town.OUT).iterdir()] == [second]
    assert not list((folder / town.STATE).glob("*.secrets/*"))
    over = refused(
        folder, "publish", town.PLAN, "--unchecked", "--resume", first, "--by", "Eve", code="release conflict"
    )
    assert "is abandoned" in over["what"]


def test_a_settled_release_is_left_as_it_is(folder: Path) -> None:
    release = published(folder)
    before = town.contents(folder / town.OUT)
    assert published(folder, "--resume", release) == release
    assert town.contents(folder / town.OUT) == before
    (folder / town.OUT / release / "release.json").write_text("{}", encoding="utf-8")
    gone = refused(
        folder, "publish", town.PLAN, "--unchecked", "--resume", release, "--by", "Eve", code="release conflict"
    )
    assert "does not hold it" in gone["what"]


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("loss", "invalid file"),
        ("digest", "invalid file"),
        ("strategy", "invalid mechanism"),
        ("other strategy", "not approved"),
        ("program", "not approved"),
    ],
)
def test_a_plan_edited_after_approval_is_not_published(folder: Path, part: str, code: str) -> None:
    plan, [strategy] = folder / town.PLAN, (folder / "report" / "strategies").iterdir()
    document = json.loads(plan.read_text("utf-8"))
    if part == "loss":
        document["exact"]["loss"]["amount"] = "5"
    elif part == "digest":
        document["digest"] = "0" * 64
    elif part == "program":
        program = folder / "program.toml"
        program.write_text(program.read_text("utf-8").replace("90_000", "90_001"), encoding="utf-8")
    else:
        rows = json.loads(strategy.read_text("utf-8"))
        rows["parts"][0]["tables"][0]["weights"]["list"][0] += 1
        if part == "other strategy":  # under its own digest
            rows["digest"] = _own_digest(rows, load(folder / "program.toml"))
        strategy.write_text(json.dumps(rows), encoding="utf-8")
    plan.write_text(json.dumps(document), encoding="utf-8")
    refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code=code)
    assert town.the_ledger(folder).releases() == ()


def _own_digest(rows: dict[str, Any], program: Program) -> str:
    """The digest that a changed strategy has: what a careful forger would write."""
    return strategy_digest(strategy_file._strategy(rows, program.workload, program.protection))


def test_a_plan_nobody_approved_is_not_published(folder: Path) -> None:
    shutil.rmtree(folder / town.STATE)
    town.done(folder, "ledger", "open", town.ACCOUNT, "--unit", "person", "--cap", "1", "--by", "Ann")
    refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="not approved")
    assert town.the_ledger(folder).spent(town.ACCOUNT) == 0


def test_data_changed_between_crash_and_resume_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = interrupted(folder, monkeypatch, "measure")
    whole = pq.read_table(folder / town.DATA)
    # All of them: one record alone may be in excess of its unit's bound, and count for nothing.
    ages = pa.array([town.AGES[0]] * len(whole))
    changed = whole.set_column(whole.column_names.index("age"), "age", ages)
    pq.write_table(changed, folder / town.DATA)
    other = refused(
        folder, "publish", town.PLAN, "--unchecked", "--resume", release, "--by", "Eve", code="release conflict"
    )
    assert "begun on other data" in other["what"]
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST
    # The same records in another order are the same data.
    pq.write_table(whole.take(list(reversed(range(len(whole))))), folder / town.DATA)
    assert published(folder, "--resume", release) == release
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


@pytest.mark.parametrize("harm", [None, "harmed", "forged"])
def test_what_is_measured_is_not_measured_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, harm: str | None
) -> None:
    """The records may be others by then; not where what was measured is no longer what was sealed."""
    release = interrupted(folder, monkeypatch, "write_release")
    [measured] = (folder / town.OUT).glob(".*.draft/measurements/*")
    content = measured.read_bytes()
    whole = pq.read_table(folder / town.DATA)
    ages = pa.array([town.AGES[0]] * len(whole))
    pq.write_table(whole.set_column(whole.column_names.index("age"), "age", ages), folder / town.DATA)
    again = ["--resume", release]
    if harm is not None:
        if harm == "harmed":
            measured.write_bytes(content[:100] + bytes(1) + content[101:])
        else:  # other numbers, and their digests beside them, by one who has not the release's secret
            other = pq.read_table(measured)
            numbers = pc.add(other["value"], 1)
            pq.write_table(other.set_column(other.column_names.index("value"), "value", numbers), measured)
            seal = measured.parent.parent / ".seal.json"
            told = json.loads(seal.read_bytes())
            told["files"][f"measurements/{measured.name}"] = hashlib.sha256(measured.read_bytes()).hexdigest()
            seal.write_text(json.dumps(told), encoding="utf-8")
        refused(folder, "publish", town.PLAN, "--unchecked", *again, "--by", "Eve", code="release conflict")
        pq.write_table(whole, folder / town.DATA)
    assert published(folder, *again) == release
    assert (folder / town.OUT / release / "measurements" / measured.name).read_bytes() == content
    assert not list((folder / town.OUT / release).glob(".*"))  # the seal went with the draft
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


@pytest.mark.parametrize("step", ["tabulate", "measure", "write_measurements", "write_release", "_put_in_place"])
def test_whatever_fails_is_resumed_at_one_loss(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    release = interrupted(folder, monkeypatch, step)
    assert published(folder, "--resume", release) == release
    ledger = town.the_ledger(folder)
    assert (ledger.spent(town.ACCOUNT), ledger.release(release).secret_destroyed) == (COST, True)
    assert [path.name for path in (folder / town.OUT).iterdir()] == [release]


def test_a_source_that_is_gone_is_resumed_when_it_is_back(folder: Path) -> None:
    away = (folder / town.DATA).rename(folder / "other.parquet")
    refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="unreadable source")
    assert town.the_ledger(folder).releases() == ()
    (folder / town.DATA).write_bytes(away.read_bytes()[:-300])
    refusal = refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="unreadable source")
    known = town.the_ledger(folder).releases()
    away.replace(folder / town.DATA)
    if known:  # its loss is spent: whether a file is whole is not known before it is read
        assert f"resume release {known[0].name}" in refusal["instead"]
    published(folder, *(["--resume", known[0].name] if known else []))
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


def test_a_ledger_restored_from_a_backup_cannot_spend(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / town.STATE, tmp_path / "backup")
    published(folder)
    # The database alone: its anchor knows more.
    shutil.copy(tmp_path / "backup" / "ledger.sqlite", folder / town.STATE)
    refused(folder, "publish", town.PLAN, "--unchecked", "--again", "--by", "Eve", code="ledger tampered")
    # Database, anchor and all: the release that was published since knows more.
    shutil.rmtree(folder / town.STATE)
    shutil.copytree(tmp_path / "backup", folder / town.STATE)
    refused(folder, "ledger", "verify", "--anchor", town.OUT, code="ledger tampered")
    refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="ledger tampered")
    assert town.the_ledger(folder).releases() == ()


@pytest.mark.parametrize("stands", ["a release of another ledger", "a folder of somebody", "a file"])
def test_what_is_not_this_release_is_not_overwritten(folder: Path, stands: str) -> None:
    final = folder / town.OUT / "residents-1"
    if stands == "a release of another ledger":
        published(folder)
        shutil.rmtree(folder / town.STATE)
        town.open_and_approve(folder)
    elif stands == "a folder of somebody":
        final.mkdir(parents=True)
        (final / "notes.txt").write_text("mine", encoding="utf-8")
    else:
        final.parent.mkdir()
        final.write_text("mine", encoding="utf-8")
    before = town.contents(folder / town.OUT)
    said = ["--other-ledger", "a test"] if stands == "a release of another ledger" else []
    refusal = refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", *said, code="cannot write")
    assert "is not this release" in refusal["what"]
    assert "whose loss is set aside" in refusal["instead"]
    assert town.contents(folder / town.OUT) == before
    town.done(
        folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", "--resume", "residents-1", "--out", "elsewhere"
    )
    assert town.contents(folder / town.OUT) == before
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


@pytest.mark.slow
def test_a_release_in_place_is_held_until_the_ledger_knows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that resumes just then must not take the folder away from under the first."""
    seen: list[str] = []

    def met(work: Any, release: str, state: ReleaseState, digest: str | None = None) -> None:
        if state is ReleaseState.WRITTEN:
            command = [sys.executable, "-c", RESUMING.format(folder=str(folder), release=release)]
            seen.append(subprocess.run(command, capture_output=True, text=True, check=False).stderr)
        reach(work, release, state, digest)

    reach = publishing._reach
    monkeypatch.setattr(publishing, "_reach", met)
    published(folder)
    assert ["is being made by another process" in words for words in seen] == [True], seen
    assert [path.name for path in (folder / town.OUT).iterdir()] == ["residents-1"]


@pytest.mark.parametrize("harm", ["a table", "release.json", "a file more", "a file less"])
def test_a_release_that_was_touched_is_found_out(folder: Path, harm: str) -> None:
    release = folder / town.OUT / published(folder)
    assert f"release {release.name} is whole" in town.done(folder, "ledger", "verify", "--anchor", town.OUT)
    if harm == "a table":
        (release / "tables" / "sexes.csv").write_text("sex,value\nf,1\nm,2\n", encoding="utf-8")
    elif harm == "release.json":
        text = (release / "release.json").read_text("utf-8")
        (release / "release.json").write_text(text.replace("town", "city"), encoding="utf-8")
    elif harm == "a file more":
        (release / "tables" / "more.csv").write_text("x\n", encoding="utf-8")
    else:
        (release / "index.html").unlink()
    refused(folder, "ledger", "verify", "--anchor", release, code="invalid release")


def test_what_killed_processes_spilled_is_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, held = (tmp_path / f"{wall.SPILL}{name}" for name in ("dead", "held"))
    old, young = (tmp_path / f"{wall.BEGUN}{name}" for name in ("old", "young"))
    for left in (dead, held, old, young):
        left.mkdir()
        if left not in (old, young):
            (left / "spilled").write_text(town.CANARY, encoding="utf-8")
    os.utime(old, (0, 0))
    handle = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        published(folder)
    finally:
        os.close(handle)
    assert {path for path in tmp_path.iterdir() if path != folder} == {held, young}
    with wall.spill_folder() as mine:
        assert stat.S_IMODE(mine.stat().st_mode) == 0o700
        assert not held.exists()  # nobody holds it any more
        with wall.spill_folder() as other:
            assert mine.exists()
            assert other != mine
    assert {path for path in tmp_path.iterdir() if path != folder} == {young}


def test_secrets_and_counts_are_in_memory_no_longer_than_needed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While tables are made, nothing holds the records' counts, the release's secret, or a key made of it."""
    seen = list[object]()
    earlier = {id(each) for each in gc.get_objects() if isinstance(each, HELD)}

    def watched(*words: Any, **named: Any) -> str:
        gc.collect()
        seen.extend(each for each in gc.get_objects() if isinstance(each, HELD) and id(each) not in earlier)
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            keys = [each for each in frame.f_locals.values() if isinstance(each, bytes) and len(each) == KEY_BYTES]
            seen.extend(keys if "dualmandate" in frame.f_code.co_filename else [])
            frame = frame.f_back
        return write_release(*words, **named)

    monkeypatch.setattr(publishing, "write_release", watched)
    published(folder)
    assert seen == []


def test_a_newer_ledger_is_left_alone(folder: Path) -> None:
    place = folder / town.STATE / "ledger.sqlite"
    connection = sqlite3.connect(place)
    connection.execute("UPDATE ledger_version SET version_num = '7'")
    connection.commit()
    connection.close()
    before = place.read_bytes()
    newer = refused(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", code="ledger unavailable")
    assert "version 7" in newer["what"]
    assert place.read_bytes() == before
    assert not (folder / town.OUT).exists() or not list((folder / town.OUT).iterdir())


def test_a_clock_set_back_is_remarked_and_no_harm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = interrupted(folder, monkeypatch, "write_release")
    monkeypatch.setattr(ledger_module, "_now", lambda: datetime.now(UTC) - timedelta(days=400))
    assert published(folder, "--resume", release) == release
    assert "a clock was set back" in town.done(folder, "ledger", "verify", "--anchor", town.OUT)
    assert town.the_ledger(folder).spent(town.ACCOUNT) == COST


def test_groups_and_purposes_have_their_limits_and_reserves(folder: Path) -> None:
    shutil.rmtree(folder / town.STATE)
    limits = ["--limit", "group:labs=1/2", "--limit", "purpose:maps=1/2", "--limit", "reserve:2030=1/2"]
    town.done(folder, "ledger", "open", town.ACCOUNT, "--unit", "person", "--cap", "3/2", *limits, "--by", "Ann")
    town.done(folder, "approve", town.PLAN, "--by", "Ben")
    published(folder, "--for", "group:labs", "--for", "purpose:maps")
    again = ("publish", town.PLAN, "--unchecked", "--again", "--by", "Eve")
    assert "the group 'labs'" in refused(folder, *again, "--for", "group:labs", code="budget exceeded")["what"]
    assert "the purpose 'maps'" in refused(folder, *again, "--for", "purpose:maps", code="budget exceeded")["what"]
    published(folder, "--again")
    kept = refused(folder, *again, code="budget exceeded")
    assert "less what is kept for other purposes" in kept["what"]
    published(folder, "--again", "--for", "purpose:2030")
    assert [release.purpose for release in town.the_ledger(folder).releases()] == ["maps", None, "2030"]
    refused(folder, *again, "--by", "Bob", code="invalid request")


def test_a_cap_that_is_used_up_stops_the_next(folder: Path) -> None:
    for _ in range(2 * town.CAP):
        last = published(folder, "--again")
    full = refused(folder, "publish", town.PLAN, "--unchecked", "--again", "--by", "Eve", code="budget exceeded")
    assert "the cap of 'residents'" in full["what"]
    assert town.the_ledger(folder).spent(town.ACCOUNT) == town.CAP
    assert (folder / town.OUT / last).is_dir()
