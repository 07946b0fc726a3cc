"""What every benchmark uses: the row it prints, progress, and one piece of work in a process of its own.

In a process of its own nothing else is counted: seconds are of the work alone, memory is that of the whole process.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

# Threads that wait for each other would be counted as work.
ONE_THREAD = {
    **dict.fromkeys(("MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "VECLIB_MAXIMUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
STEP = 100  # one in so many is told


@dataclass(frozen=True)
class BenchmarkRow:
    """One measured case; smaller is better, except where the target is a floor."""

    case: str
    ours: float | None  # in `unit`; None: refused, which meets no target
    unit: str
    target: float | None = None  # in `unit`; None: nothing was promised
    peer: str | None = None  # name and version of what it is compared with; None: there is no peer, or it is not there
    peer_value: float | None = None  # in `unit`, measured in the same run
    is_floor: bool = False  # more is better, and the target is the least that is promised

    @property
    def ratio(self) -> float | None:
        """The peer's value over ours, or ours over the peer's where more is better: above 1, ours is better."""
        if self.peer_value is None or self.ours is None:
            return None
        above, below = (self.ours, self.peer_value) if self.is_floor else (self.peer_value, self.ours)
        return above / below if below else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met."""
        if self.target is None:
            return None
        if self.ours is None:
            return False
        return self.ours >= self.target if self.is_floor else self.ours <= self.target


@dataclass(frozen=True)
class ResourceUse:
    """What one piece of work took."""

    seconds: float  # wall clock of the work alone: Python and the packages are loaded before
    processor_seconds: float  # of the same work; far below `seconds` where the machine was busy with something else
    megabytes: float  # peak resident memory of the whole process, packages included; 10⁶ bytes


def measured_rows(
    cases: Mapping[str, Callable[[], None]],
    progress: Callable[[str], None],
    *,
    seconds: float,
    megabytes: Mapping[str, float],
) -> list[BenchmarkRow]:
    """Three rows for each case, against the most megabytes and processor seconds, of one thread, that it may take."""
    rows: list[BenchmarkRow] = []
    for case, work in cases.items():
        progress(case)
        took = measure(work)
        rows.append(BenchmarkRow(case, took.seconds, "seconds"))  # says as much of what else the machine is doing
        rows.append(BenchmarkRow(case, took.processor_seconds, "processor seconds", target=seconds))
        rows.append(BenchmarkRow(case, took.megabytes, "megabytes", target=megabytes[case]))
    return rows


def measure(work: Callable[[], None]) -> ResourceUse:
    """What a function of some module takes in a fresh process; a failure there is a failure here."""
    return ResourceUse(**_called(work, "answer(lambda: resource_use(work))", (), ONE_THREAD))


def resource_use(work: Callable[[], object]) -> ResourceUse:
    """What some work takes here."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return ResourceUse(time.perf_counter() - started, time.process_time() - used, peak_megabytes())


def apart(work: Callable[..., object], *given: object, environment: Mapping[str, str] = ONE_THREAD) -> Any:
    """What a function of some module answers in a fresh process; what it is given and answers is written as JSON."""
    return _called(work, "answer(work)", given, environment)


def _called(work: Callable[..., object], call: str, given: Sequence[object], environment: Mapping[str, str]) -> Any:
    module, name = work.__module__, work.__name__
    code = f"from {__name__} import answer, resource_use; from {module} import {name} as work; {call}"
    return run_apart([sys.executable, "-c", code, json.dumps(given)], case=name, environment=environment)


def answer(work: Callable[..., object]) -> None:
    """Call a function here with what was given on the command line, and print its answer."""
    print(json.dumps(work(*json.loads(sys.argv[1])), default=asdict))


def run_apart(words: Sequence[str], *, case: str, environment: Mapping[str, str] | None = None) -> Any:
    """What a fresh process says, in JSON on its standard output; `environment` is added to ours."""
    added = os.environ | (environment or {})
    ran = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False, env=added)
    if ran.returncode:
        raise RuntimeError(f"the benchmark '{case}' failed:\n{ran.stderr}")
    return json.loads(ran.stdout)


def installed(package: str) -> str | None:
    """A package of others with its version; None where it is not installed."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None


@runtime_checkable
class ProgressCounter(Protocol):
    """Somebody who is told how much is done."""

    def count(self, words: str, done: int, of: int, /) -> None:
        """So many of so many."""
        ...


def counter(progress: Callable[[str], None], words: str, of: int) -> Callable[[int], None]:
    """Begin a stage, and tell how much of it is done whenever that is called; nobody may be listening."""
    progress(words)
    listener = progress if isinstance(progress, ProgressCounter) else None

    def tell(done: int) -> None:
        if listener is not None and (done % STEP == 0 or done == of):
            listener.count(words, done, of)

    return tell


def check(found: object, expected: object) -> None:
    """Refuse to measure work that came to a wrong answer."""
    if found != expected:
        raise ValueError(f"found {found}, where {expected} is right")


def peak_megabytes() -> float:
    """Peak resident memory of this process, 10⁶ bytes."""
    status = Path("/proc/self/status")
    # getrusage carries over the peak of the process that started this one; the kernel's own mark does not
    high_water = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8")) if status.exists() else None
    if high_water:
        return int(high_water.group(1)) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
