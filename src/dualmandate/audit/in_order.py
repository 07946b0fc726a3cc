"""The same work for many places on several threads: results in the order of the places, a few of them at a time.

The compiled loops and the solvers leave other threads alone. Whatever the number of threads, results are the same, and
no more places are held in memory than are worked on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
AHEAD = 2  # pieces of work a thread that wait for it


def in_order(work: Callable[[Given], Made], items: Iterable[Given], workers: int) -> Iterator[Made]:
    """What the work makes of each item, in their order; items are taken as they are needed."""
    if workers == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Made]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:  # after a refusal nobody asks for the rest
                each.cancel()
