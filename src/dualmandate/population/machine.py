"""What the machine that all this runs on can give: its memory, less what its owner allows, and its processors."""

from __future__ import annotations

import mmap
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from dualmandate.population.arrays import Floats

UNKNOWN = 8 * 2**30  # bytes, where the system does not say what it has
GROUPS = Path("/sys/fs/cgroup")  # where Linux says what a group of processes may take
WORTH_SHARING = 1.0  # seconds of work from which other processors are asked to help
MOST_SHARED = 2**28  # numbers that processes hand over at most
OF_GROUP = ("memory.max", "memory/memory.limit_in_bytes")  # in its second and in its first form


def machine_memory() -> int:
    """Bytes of memory that a process may have here: all of the machine's, or what a container or a user may take."""
    limits = [_installed(), *_of_groups()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return min([*limits, *([] if soft == resource.RLIM_INFINITY else [soft])])


def _installed() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _of_groups() -> list[int]:
    """The limits of the groups that this process is in, the outer ones too."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    own = next((Path(line.removeprefix("0::/")) for line in lines if line.startswith("0::/")), Path())
    found = []
    for file in [*(GROUPS / folder / OF_GROUP[0] for folder in (own, *own.parents)), GROUPS / OF_GROUP[1]]:
        try:
            stated = file.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            continue
        found += [int(stated)] if stated.isdecimal() else []
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra by one thread, meanwhile: threads of small products wait for each other, on a busy machine long.

    A notebook has loaded its libraries before it is known what they are for; afterwards they are as they were.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def on_all_processors(
    work: Callable[[int], Floats], count: int, *, told: Callable[[int], None] = lambda _: None
) -> Iterator[Floats]:
    """work(0), …, work(count − 1), in this order: by all processors where that takes a while, the same in any case.

    Each is an array of one shape; `told` hears how many are done, now and then. Helpers are copies of this process as
    it stands (fork), so that any function will do; they compute and do nothing else. What a helper cannot do is done
    here, where it fails as it would alone.
    """
    start = time.perf_counter()
    first = work(0)
    yield first
    left = (time.perf_counter() - start) * (count - 1)
    helpers = min(processors(), count - 1) if hasattr(os, "fork") and left > WORTH_SHARING else 1
    if helpers < 2 or count * first.size > MOST_SHARED:
        for number in range(1, count):
            told(number)
            yield work(number)
        return
    shared = np.frombuffer(mmap.mmap(-1, 8 * count * max(first.size, 1)), dtype=np.float64)
    found = shared[: count * first.size].reshape(count, *first.shape)
    here = os.getpid()
    done = np.frombuffer(mmap.mmap(-1, count), dtype=np.uint8)

    def fill(numbers: range) -> None:
        for number in numbers:
            found[number] = work(number)
            done[number] = 1
            if os.getpid() == here:
                told(int(done.sum()) + 1)

    children = [_forked(partial(fill, range(first, count, helpers))) for first in range(2, helpers + 1)]
    try:
        fill(range(1, count, helpers))
        for child in children:
            os.waitpid(child, 0)
        children = []
        fill_again = [number for number in range(1, count) if not done[number]]
        for number in fill_again:
            found[number] = work(number)
        yield from found[1:]
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _forked(work: Callable[[], None]) -> int:
    """The number of a process that does the work, writes to what it shares, and ends without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the copy has this one alone, and uses no lock
        child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        work()
    finally:
        os._exit(0)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def size_words(count: float) -> str:
    """Bytes for people: 1.5 GB, 20 MB."""
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:,.{2 if count < 10 * size else 3}g} {unit}"
    return f"{max(count, 0.0) / 1e3:,.0f} kB"
