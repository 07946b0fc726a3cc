"""What the machine that all this runs on can give: its memory, less what its owner allows."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNKNOWN = 8 * 2**30  # bytes, where the system does not say what it has
GROUPS = Path("/sys/fs/cgroup")  # where Linux says what a group of processes may take
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


def size_words(count: float) -> str:
    """Bytes for people: 1.5 GB, 20 MB."""
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:,.{2 if count < 10 * size else 3}g} {unit}"
    return f"{max(count, 0.0) / 1e3:,.0f} kB"
