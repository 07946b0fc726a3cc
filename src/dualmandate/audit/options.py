"""What may be asked of an audit, and how an attack works: solvers (the extra `audit`: CP-SAT of OR-Tools, and HiGHS),
their time, threads, and draws.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dualmandate.audit.finding import Reference
from dualmandate.errors import InvalidRequest
from dualmandate.population import machine

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


AUDIT_KEY = b"an audit of dualmandate"  # The key of the draws of audits alone; a release has a secret of its own.


@dataclass(frozen=True)
class AuditOptions:
    """How an audit is done: what it is judged by, how long a question may take, and the key of its own draws.

    `confidential` is a file of the true records, `tabulated` one of the records that were tabulated (after swapping,
    say): whatever is judged by them is internal.
    """

    confidential: Path | None = None
    tabulated: Path | None = None
    place: str | None = None  # the attribute that tells places apart, in a program or a release
    seconds: float = SECONDS  # that a solver may take for one question
    beside: tuple[Path, ...] = ()  # other releases, whose noise is compared
    outside: Path | None = None  # a file of named people, which records are linked to
    secret: tuple[str, ...] = ()  # what an attacker is after; else what the outside file does not say
    person: str | None = None  # the column that names people
    link: str = "exact"  # how they are linked: "exact" or "splink"
    key: bytes = field(default=AUDIT_KEY, repr=False)
    progress: Callable[[str], None] | None = field(default=None, compare=False)  # is told what is being done
    counted: Callable[[str, int, int], None] | None = field(default=None, compare=False)  # what, done, of how many
    workers: int = field(default_factory=lambda: machine.processors())

    @classmethod
    def of(cls, **stated: Any) -> AuditOptions:
        """From keywords as people write them: files by their names, one secret as a word, None for what is not said."""
        given = {name: value for name, value in stated.items() if value is not None}
        for name in given.keys() & {"confidential", "tabulated", "outside"}:
            given[name] = Path(given[name])
        given["beside"] = tuple(Path(each) for each in given.get("beside", ()))
        secret = given.get("secret", ())
        given["secret"] = (secret,) if isinstance(secret, str) else tuple(secret)
        return cls(**given)

    @property
    def effort(self) -> Effort:
        return Effort(self.seconds, self.workers, self.progress, self.counted)

    @property
    def files(self) -> dict[Reference, Path]:
        given: dict[Reference, Path | None] = {"tabulated": self.tabulated, "confidential": self.confidential}
        return {reference: path for reference, path in given.items() if path is not None}
