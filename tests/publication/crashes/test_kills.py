"""A publication killed at any instant never happened, or is resumed to the same release, its loss counted once.

`DUALMANDATE_KILLS=full` runs the full numbers: 300 timed kills, at least 20 in every durable state, 20 processes, and
one kill at every single operation. Without it fewer of each, so that all tests stay a matter of minutes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.publication.crashes import town
from tests.publication.crashes.kills import AFTER, COST, NOTHING

from dualmandate.ledger import ReleaseState

FULL = os.environ.get("DUALMANDATE_KILLS") == "full"
THIN, FULL_DISK_THIN = (1, 1) if FULL else (16, 16)
KILLS, LEAST = (300, 20) if FULL else (60, 4)
PROCESSES = 20 if FULL else 3
STATES = set(AFTER)
AIMS, RELEASE = ("opened", "measured", "written", "reserved", "settled", NOTHING), "residents-1"

pytestmark = pytest.mark.slow
Tell = Callable[[str], None]


def counted(root: Path, act: str, folder: Path, *numbers: int) -> Counter[str]:
    """What kills.py printed: how many trials left the ledger in which state."""
    command = [sys.executable, "-m", "tests.publication.crashes.kills", act, str(folder), *map(str, numbers)]
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP")}
    settings = os.environ | one_thread | spilling_to(folder.parent)
    result = subprocess.run(command, cwd=root, env=settings, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    town.assert_silent(result.stdout, result.stderr)
    return Counter(result.stdout.split())


def spilling_to(folder: Path) -> dict[str, str]:
    """Where killed processes leave what only a later one removes: in a folder that goes with the test."""
    return {"TMPDIR": str(folder)}


def by_state(landed: Counter[str]) -> str:
    return f"{landed.total()} landed (" + ", ".join(f"{landed[state]} {state}" for state in dict.fromkeys(AFTER)) + ")"


def test_a_kill_at_every_durable_operation_is_survived(root: Path, prepared: Path, tell: Tell) -> None:
    landed = counted(root, "every", prepared, THIN)
    tell(f"kills of a publication at its durable operations: {by_state(landed)}")
    assert set(landed) == STATES
    assert landed.total() >= (200 if FULL else 75)


def test_a_kill_at_every_commit_of_a_technology_is_survived(root: Path, prepared_technology: Path, tell: Tell) -> None:
    """What it drew is sealed like measurements; before that, it draws the same again."""
    act = ("every", prepared_technology, 1) if FULL else ("commits", prepared_technology)
    landed = counted(root, *act)
    tell(f"kills of a publication by a technology: {by_state(landed)}")
    assert set(landed) == STATES


def test_kills_by_the_clock_are_survived(root: Path, prepared: Path, tell: Tell) -> None:
    landed = counted(root, "timed", prepared, KILLS, LEAST)
    tell(f"kills of a publication by the clock: {by_state(landed)}")
    assert landed.total() >= KILLS
    assert all(landed[state] >= LEAST for state in STATES)


def test_a_full_disk_is_survived(root: Path, prepared: Path, tell: Tell) -> None:
    landed = counted(root, "full", prepared, FULL_DISK_THIN)
    tell(f"publications without room on disk: {by_state(landed)}")
    assert set(landed) >= ({NOTHING, "opened", "measured"} if FULL else {NOTHING, "measured"})
    assert landed.total() >= 12


def test_killed_processes_are_resumed(prepared: Path, tell: Tell) -> None:
    landed = kill_commands(prepared, PROCESSES)
    tell(f"kills of `dualmandate publish`: {by_state(landed)}")
    assert landed.total() == PROCESSES


def kill_commands(prepared: Path, wanted: int) -> Counter[str]:
    """The command itself, with its own secrets and clock, killed a while after some state was seen in its ledger.

    Each is resumed, and then has happened once; how many were killed in which state.
    """
    chance, landed = random.Random(11), Counter[str]()
    for number in range(3 * wanted):
        aim = AIMS[number % len(AIMS)]
        with town.copied(prepared, f"process-{number}") as folder:
            process = started(folder)
            while process.poll() is None and state_of(folder) != aim:
                time.sleep(0.01)
            # Before anything is recorded there is longest to hit.
            time.sleep(chance.uniform(0, 3.0 if aim == NOTHING else 0.1))
            process.kill()
            said, _ = process.communicate()
            if process.returncode == -signal.SIGKILL:
                left = state_of(folder)
                landed[left] += 1
                charged = town.the_ledger(folder).spent(town.ACCOUNT)
                assert charged == (0 if left == NOTHING else COST)
                resumed = started(folder, *([] if left == NOTHING else ["--resume", RELEASE]))
                said += resumed.communicate()[0]
                assert resumed.returncode == 0, said
                check_published(folder)
            town.assert_silent(said)
        if landed.total() == wanted:
            break
    return landed


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    """`dualmandate publish` as it is installed, in a process of its own."""
    command = [
        str(Path(sys.executable).with_name("dualmandate")),
        "publish",
        town.PLAN,
        "--unchecked",
        "--by",
        "Eve",
        *words,
    ]
    settings = os.environ | spilling_to(folder.parent)
    return subprocess.Popen(
        command, cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def state_of(folder: Path) -> str:
    known = town.the_ledger(folder).releases()
    return known[0].state.value if known else NOTHING


def check_published(folder: Path) -> None:
    ledger = town.the_ledger(folder)
    [release] = ledger.releases()
    assert (release.state, release.secret_destroyed) == (ReleaseState.SETTLED, True)
    assert ledger.spent(town.ACCOUNT) == COST
    assert [path.name for path in (folder / town.OUT).iterdir()] == [release.name]
    town.done(folder, "ledger", "verify", "--anchor", town.OUT)
    town.assert_silent_folder(folder)
