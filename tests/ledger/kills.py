"""A release killed at every write that reaches the disk, and resumed: it happened once, or not at all.

    python kills.py FOLDER

FOLDER holds a ledger with an approved plan. Each trial copies it, forks, and kills the child with SIGKILL just before
its n-th fsync, rename or commit, for n = 1, 2, … until a child comes through. Prints one line a kill: what the ledger
knew of the release at that moment.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy

from dualmandate.errors import ReleaseConflict
from dualmandate.ledger import Approval, Ledger, ReleaseState, Request, open_ledger, read_key
from dualmandate.population import PrivacyLoss

ACCOUNT, STEPS = (
    "school children",
    (ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED),
)
FILES = {"key", "ledger.sqlite", "ledger.sqlite.anchor", "ledger.sqlite.secrets"}  # and no draft of any
REQUEST = Request(ACCOUNT, "a1" * 32, "2026", PrivacyLoss.pure("1/3"), "child", user="Eve")


def publish(ledger: Ledger) -> None:
    """Reserve, or take up what is reserved, and go on to the end."""
    try:
        release = ledger.reserve(REQUEST)
    except ReleaseConflict:
        release = ledger.releases()[-1]
    for state in STEPS:
        reached = ledger.release(release.name).state
        if reached in STEPS and STEPS.index(reached) >= STEPS.index(state):
            continue
        if state is ReleaseState.MEASURED:
            ledger.bind(release.name, "c3" * 32, by="Eve")
        ledger.advance(release.name, state, by="Eve")
    ledger.destroy_secret(release.name, by="Eve")


def kill_at(number: int) -> None:
    """Count what reaches the disk in this process, and end it just before the n-th."""
    counted = itertools.count(1)

    def count(*_: Any) -> None:
        if next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    fsync, replace = os.fsync, Path.replace

    def counted_fsync(descriptor: Any) -> None:
        count()
        fsync(descriptor)

    def counted_replace(path: Path, target: Any) -> Path:
        count()
        return replace(path, target)

    os.fsync = counted_fsync  # type: ignore[assignment]
    Path.replace = counted_replace  # type: ignore[method-assign, assignment]
    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", count)


def opened(folder: Path) -> Ledger:
    return open_ledger(folder / "ledger.sqlite", read_key(folder / "key"))


def trial(number: int, folder: Path) -> bool:
    """Whether the kill landed; what it left behind is resumed, and must be one release at one loss."""
    child = os.fork()
    if child == 0:
        kill_at(number)
        publish(opened(folder))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    landed = os.WIFSIGNALED(status)
    assert landed or status == 0
    ledger = opened(folder)
    ledger.verify()
    known = ledger.releases()
    assert len(known) <= 1
    assert ledger.spent(ACCOUNT) == Fraction(len(known), 3)
    if known and known[0].state.is_active:
        assert len(ledger.secret(known[0].name).open_for("a test")) == 32
    if landed:
        print(known[0].state.value if known else "nothing", flush=True)
    publish(ledger)
    [release] = ledger.releases()
    assert (release.state, release.secret_destroyed) == (ReleaseState.SETTLED, True)
    assert ledger.spent(ACCOUNT) == Fraction(1, 3)
    assert not list(folder.glob("*.secrets/*"))
    ledger.approve(Approval(ACCOUNT, "b2" * 32, PrivacyLoss.pure(1), "child", by="Ann"))
    assert {path.name for path in folder.iterdir()} == FILES
    return landed


def main(folder: Path) -> None:
    for number in itertools.count(1):
        copy = folder.with_name(f"{folder.name}-{number}")
        shutil.copytree(folder, copy)
        landed = trial(number, copy)
        shutil.rmtree(copy)
        if not landed:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
