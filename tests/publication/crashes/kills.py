"""Publications killed and resumed, over and over: each happened once, or not at all.

    python -m tests.publication.crashes.kills every FOLDER THIN
        one kill at every fsync, rename and commit, and at each THIN-th other durable operation
    python -m tests.publication.crashes.kills commits FOLDER
        one kill at every commit
    python -m tests.publication.crashes.kills timed FOLDER KILLS LEAST
        kills by the clock, at least LEAST in every durable state
    python -m tests.publication.crashes.kills full FOLDER THIN
        a disk that is full from each THIN-th operation on that needs room, and files that cannot grow

FOLDER is a prepared program folder; its ledger may be in PostgreSQL. Each trial copies it, forks from this warmed
process, kills the child with SIGKILL or takes its disk away, looks at what it left behind, and resumes. Secrets and
times are fixed in here: what is resumed must have the bytes of what nobody interrupted. Prints one line a trial: the
state that the ledger knew.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import secrets
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from tests.publication.crashes import operations, town

from dualmandate.ledger import Head, Ledger, ReleaseState
from dualmandate.ledger import ledger as ledger_module

NOTHING, REFUSED, UNENDED = "nothing", 2, 120
COST = Fraction(town.EPSILON)
# The state after each commit of a publication; a tabulation is bound in between, and a secret destroyed at the end.
AFTER = (NOTHING, "reserved", "opened", "opened", "measured", "written", "settled", "settled")
_drawn = itertools.count()


def fix() -> None:
    """The same secrets, and the same time, for every publication from here on."""
    global _drawn
    _drawn = itertools.count()
    setattr(secrets, "token_bytes", lambda size: sha256(str(next(_drawn)).encode()).digest()[:size])  # noqa: B010
    ledger_module._now = lambda: datetime(2026, 1, 2, tzinfo=UTC)


def publish(folder: Path) -> None:
    """Publish, or take up what was left; whatever is said is silent about the records."""
    fix()
    known = town.the_ledger(folder).releases()
    resumed = ["--resume", known[-1].name] if known else []
    town.done(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve", *resumed)


def forked(work: Callable[[], None]) -> int:
    """The process id of a child that works, says nothing, and ends."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(UNENDED)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def state_left(folder: Path) -> str:
    """The durable state that a child left; the account counts its loss once, or there is nothing to count."""
    ledger = town.the_ledger(folder)
    ledger.verify()
    known = ledger.releases()
    assert len(known) <= 1
    assert ledger.spent(town.ACCOUNT) == COST * len(known)
    if known and known[0].state.is_active:
        assert len(ledger.secret(known[0].name).open_for("a test")) == 32
    return known[0].state.value if known else NOTHING


def check_resumed(folder: Path, whole: dict[str, bytes]) -> None:
    """One release at one loss, byte for byte the one that nobody interrupted, and nothing left lying about."""
    publish(folder)
    ledger = town.the_ledger(folder)
    ledger.verify()
    [release] = ledger.releases()
    assert (release.state, release.secret_destroyed) == (ReleaseState.SETTLED, True)
    assert ledger.spent(town.ACCOUNT) == COST
    out = folder / town.OUT
    assert [path.name for path in out.iterdir()] == [release.name]
    assert town.contents(out) == whole
    assert not list((folder / town.STATE).glob("*.secrets/*"))
    ledger.record_export(release.name, "the reader", by="Eve")
    assert not list((folder / town.STATE).glob(".*"))  # drafts of the anchor go with its next entry
    town.assert_silent_folder(folder / town.STATE)


def reference(folder: Path) -> dict[str, bytes]:
    """The release that nobody interrupts; making it warms this process."""
    with town.copied(folder, "whole") as copy:
        publish(copy)
        town.done(copy, "ledger", "verify", "--anchor", town.OUT)
        town.assert_silent_folder(copy)
        return town.contents(copy / town.OUT)


def every(folder: Path, thin: int) -> None:
    """One kill at each durable operation, or at some of the frequent ones."""
    _each(folder, lambda number: operations.die_at(number, thin))


def commits(folder: Path) -> None:
    """One kill at each commit of the ledger."""
    _each(folder, operations.die_at_commit)


def _each(folder: Path, dying: Callable[[int], operations.Met]) -> None:
    whole = reference(folder)
    for number in itertools.count(1):
        with town.copied(folder, str(number)) as copy:

            def work(number: int = number, copy: Path = copy) -> None:
                operations.watch(dying(number))
                publish(copy)

            status = os.waitpid(forked(work), 0)[1]
            assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
            left = state_left(copy)
            check_resumed(copy, whole)
        if status == 0:
            return
        print(left, flush=True)


def reporting(folder: Path, pipe: int) -> None:
    """Publish, and say so at every commit of the ledger, with the state that it left."""
    commit = Ledger._anchor

    def said(ledger: Ledger, head: Head) -> None:
        os.write(pipe, b".")
        commit(ledger, head)

    setattr(Ledger, "_anchor", said)  # noqa: B010 - a method of the child alone
    publish(folder)


@contextmanager
def running(folder: Path) -> Iterator[tuple[int, int]]:
    """A publication under way in a child: its process id, and what it reports through."""
    reading, writing = os.pipe()
    child = forked(lambda: reporting(folder, writing))
    os.close(writing)
    try:
        yield child, reading
    finally:
        os.close(reading)


def calibrated(folder: Path) -> list[float]:
    """The seconds from the fork to the first commit, between one and the next, and from the last to the end."""
    with town.copied(folder, "calibration") as copy, running(copy) as (child, reports):
        times = [time.monotonic()]
        while os.read(reports, 1):
            times.append(time.monotonic())
        assert os.waitpid(child, 0)[1] == 0
        times.append(time.monotonic())
    return [later - earlier for earlier, later in pairwise(times)]


def killed(folder: Path, delay: float, commits: int) -> bool:
    """Publish, and kill a while after some commit; whether it was still running then."""
    with running(folder) as (child, reports):
        for _ in range(commits):
            os.read(reports, 1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        return status != 0


def timed(folder: Path, kills: int, least: int) -> None:
    """Kills by the clock, each a while after a commit, in turn; every fifth publication is killed twice."""
    whole = reference(folder)
    chance, landed = random.Random(4), Counter[str]()
    spans = calibrated(folder)
    for number in itertools.count():
        wanting = [place for place, state in enumerate(AFTER) if landed[state] < least]
        if landed.total() >= kills and not wanting:
            return
        assert number < 10 * kills, f"kills do not land: {landed}"
        # Once enough have landed anywhere, only states that were hard to meet are aimed at.
        aims = wanting if landed.total() >= kills else range(len(AFTER))
        commits = aims[number % len(aims)]
        with town.copied(folder, str(number)) as copy:
            if not killed(copy, chance.uniform(0, spans[commits]), commits):
                continue
            left = state_left(copy)
            if number % 5 == 0 and left not in (NOTHING, ReleaseState.SETTLED):
                killed(copy, chance.uniform(0, sum(spans)), 0)
                state_left(copy)
            check_resumed(copy, whole)
        landed[left] += 1
        print(left, flush=True)


def refused(folder: Path) -> None:
    """Publish where there is no room: refused, with how to go on where something is under way."""
    fix()
    status, said = town.typed(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve")
    town.assert_silent(said)
    if status == 0:
        return
    assert status == 2, said
    assert "Traceback" not in said
    [release] = town.the_ledger(folder).releases() or [None]
    if release is not None and release.state.is_active:
        # Where the reservation itself stands and could not say so, whoever tries again is told.
        assert f"resume release {release.name}" in said or "what was recorded stands" in said, said
    os._exit(REFUSED)


def full(folder: Path, thin: int) -> None:
    """No room, from some moment on: what was begun is resumed once there is room again."""
    whole = reference(folder)
    for limit in range(0, 48 * 1024, 4096):
        trial(folder, whole, lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))  # type: ignore[misc]
    for number in itertools.count(1, thin):
        if not trial(folder, whole, lambda number=number: operations.watch(operations.full_at(number))):  # type: ignore[misc]
            return


def trial(folder: Path, whole: dict[str, bytes], harm: Callable[[], None]) -> bool:
    """Whether a publication under this harm was refused; it is resumed without."""
    with town.copied(folder, "harmed") as copy:

        def work() -> None:
            harm()
            refused(copy)

        status = os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])
        assert status in (0, REFUSED)
        left = state_left(copy)
        check_resumed(copy, whole)
    if status == REFUSED:
        print(left, flush=True)
    return status == REFUSED


if __name__ == "__main__":
    began = time.monotonic()
    act, place, *numbers = sys.argv[1:]
    acts: dict[str, Callable[..., None]] = {"every": every, "commits": commits, "timed": timed, "full": full}
    acts[act](Path(place), *map(int, numbers))
    print(f"{time.monotonic() - began:.1f} s", file=sys.stderr)
