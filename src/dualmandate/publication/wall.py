"""Inside the wall: what other packages say about confidential data never leaves it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dualmandate.errors import Refusal, UnreadableSource

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
LARGEST_MEMORY = "500MB"  # Sorting and grouping take no more; beyond it, a private folder on disk.
SPILL = "dualmandate-spill-"
BEGUN = "dualmandate-begun-"  # so it is called until it is held: nothing is in it
SECONDS_TO_BEGIN = 60  # A folder is made and held within this time: younger ones may be about to be used.
SECONDS_BETWEEN = 0.1  # A progress callback is called no more often.


def guarded(work: Callable[[], T], *, name: str) -> T:
    """Do the work; an exception of another package becomes a refusal that knows nothing of it.

    It is raised after the exception is forgotten: `from None` alone would still carry it along, and our own refusals
    would carry the frames they were raised in.
    """
    try:
        return work()
    except Refusal as known:
        refusal = copy(known)
    except Exception:
        refusal = UnreadableSource(
            f"the source '{name}' cannot be read to its end",
            why="it is damaged, gone away or not of the kind that was named, or there was no room on disk to group it",
            instead="see that it is there and whole, then try again; what was found in it is not told here",
        )
    raise refusal


@contextmanager
def connected(*, threads: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine that fetches nothing from outside, and spills into a folder only its owner can enter.

    It uses every core, or so many `threads`.
    """
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "disabled_optimizers": "statistics_propagation",  # a file may lie about them, and NaN is not in them
        "memory_limit": LARGEST_MEMORY,
        "preserve_insertion_order": False,
    }
    if threads is not None:
        settings["threads"] = threads
    with spill_folder() as folder:
        connection = duckdb.connect(":memory:", config=settings | {"temp_directory": str(folder)})
        try:
            # A notebook, or `python -c`, would be told on standard output.
            connection.execute("SET enable_progress_bar_print = false")
            yield connection
        finally:
            connection.close()


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder for what memory does not hold; what killed processes spilled is removed first."""
    with private_folder(Path(tempfile.gettempdir()), SPILL, BEGUN) as folder:
        yield folder


@contextmanager
def private_folder(parent: Path, named: str, begun_as: str) -> Iterator[Path]:
    """A folder only its owner can enter, held while it is used; those that killed processes left are removed first."""
    remove_left_behind(parent, named, begun_as)
    begun = Path(tempfile.mkdtemp(prefix=begun_as, dir=parent))
    folder = begun.with_name(begun.name.replace(begun_as, named))
    try:
        with _held(begun):
            begun.rename(folder)  # whoever finds it under this name finds it held
            yield folder
    finally:
        shutil.rmtree(begun, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind(parent: Path, named: str, begun_as: str) -> None:
    """Remove private folders that nobody holds any more."""
    for left in (*parent.glob(f"{named}*"), *parent.glob(f"{begun_as}*")):
        with suppress(OSError), _held(left) as state:
            old = time.time() - state.st_mtime > SECONDS_TO_BEGIN
            if state.st_uid == os.geteuid() and (old or left.name.startswith(named)):
                shutil.rmtree(left)


@contextmanager
def _held(folder: Path) -> Iterator[os.stat_result]:
    """Hold a folder, by a lock that ends with the process; an OSError where another process does."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield os.fstat(handle)
    finally:
        os.close(handle)


def executed(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    *,
    progress: Callable[[float], None] | None = None,
    share: Callable[[], float] | None = None,
) -> None:
    """Carry out one statement, telling from time to time which share of its source is read (0 to 1).

    A source that knows its `share` is believed; otherwise the engine is asked.
    """
    ask = share or (lambda: connection.query_progress() / 100)
    if progress is None:
        connection.execute(statement)
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(connection.execute, statement)
        try:
            while not wait([running], timeout=SECONDS_BETWEEN).done:
                progress(min(max(ask(), 0.0), 1.0))
        except BaseException:
            connection.interrupt()
            raise
        running.result()
    progress(1.0)
