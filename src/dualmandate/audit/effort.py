"""How an attack works: solvers (the extra `audit`: CP-SAT of OR-Tools, and HiGHS), their time, threads, and draws."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from dualmandate.errors import InvalidRequest

Given = TypeVar("Given")
Made = TypeVar("Made")
SECONDS = 10.0  # A solver may think so long about one question.
AHEAD = 2  # So many pieces of work wait for each thread.
PACKAGES = ("ortools", "highspy")
INSTALL = "pip install 'dualmandate[audit]'"


def parallel_map(work: Callable[[Given], Made], items: Iterable[Given], workers: int) -> Iterator[Made]:
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


@dataclass(frozen=True)
class Effort:
    """How long a solver may think about one question, on how many threads, and whom to tell how far it is."""

    seconds: float = SECONDS
    workers: int = 1
    progress: Callable[[str], None] | None = field(default=None, compare=False)
    counted: Callable[[str, int, int], None] | None = field(default=None, compare=False)  # what, done, of how many

    def __post_init__(self) -> None:
        if not 0 < self.seconds < 10**6 or self.workers < 1:
            raise InvalidRequest(
                f"a limit of {self.seconds:g} seconds on {self.workers} threads",
                why="a search needs some time and at least one thread",
                instead="state more than 0 seconds",
            )

    def say(self, words: str) -> None:
        if self.progress is not None:
            self.progress(words)

    def count(self, words: str, done: int, of: int) -> None:
        if self.counted is not None:
            self.counted(words, done, of)


def generator(key: bytes, purpose: str) -> np.random.Generator:
    """Draws for one purpose of an audit; equal for an equal key."""
    words = hashlib.blake2b(purpose.encode(), key=key[:64], digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(words, "little")))


def check_solvers() -> None:
    """Refuse where the extra `audit` is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise _not_installed(*missing)


def cp_sat() -> Any:
    """OR-Tools' module of the constraint solver CP-SAT."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise _not_installed("ortools") from None
    return cp_model


def cp_solver(seconds: float) -> Any:
    """A solver of CP-SAT, on one thread, with a fixed seed: equal questions have equal answers, unless time ends."""
    solver = cp_sat().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 2019
    solver.parameters.max_time_in_seconds = seconds
    return solver


def highs() -> Any:
    """The module of HiGHS, a solver of linear and integer programs."""
    try:
        import highspy
    except ImportError:
        raise _not_installed("highspy") from None
    return highspy


def _not_installed(*packages: str) -> InvalidRequest:
    return InvalidRequest(
        "the solvers that an audit needs are not installed",
        why=f"{' and '.join(packages)} {'is' if len(packages) == 1 else 'are'} not here; the base package plans and "
        "publishes without",
        instead=f"run {INSTALL}",
    )
