"""Seconds and peak memory of one piece of work, in a process of its own so that nothing else is counted."""

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
from importlib import import_module
from pathlib import Path
from typing import Any

from dualmandate.benchmarks.row import Row

ONE_THREAD = {  # threads that wait for each other would be counted as work
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Measured:
    """What one piece of work took."""

    seconds: float  # wall clock of the work alone: Python and the packages are loaded before
    processor_seconds: float  # of the same work; far below `seconds` where the machine was busy with something else
    megabytes: float  # peak resident memory of the whole process, packages included; 10⁶ bytes


def measured_rows(module: str, progress: Callable[[str], None], *, seconds: float, megabytes: float) -> list[Row]:
    """Three rows for each of a module's `CASES`, against the most seconds and megabytes it may take."""
    rows: list[Row] = []
    for case in import_module(module).CASES:
        progress(case)
        took = measure(module, case)
        rows.append(Row(case, took.seconds, "seconds", target=seconds))
        rows.append(Row(case, took.processor_seconds, "processor seconds"))
        rows.append(Row(case, took.megabytes, "megabytes", target=megabytes))
    return rows


def measure(module: str, case: str) -> Measured:
    """Run `module.CASES[case]` in a fresh process; a failure there is a failure here."""
    return Measured(**told([sys.executable, "-m", "dualmandate.benchmarks.measured", module, case], case=case))


def told(words: Sequence[str], *, case: str, environment: Mapping[str, str] | None = None) -> Any:
    """What a fresh process says, in JSON on its standard output; `environment` is added to ours."""
    added = os.environ | (environment or {})
    ran = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False, env=added)
    if ran.returncode:
        raise RuntimeError(f"the benchmark '{case}' failed:\n{ran.stderr}")
    return json.loads(ran.stdout)


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


def main(module: str, case: str) -> None:
    """Do the work of one case here, and print what it took as JSON."""
    work = import_module(module).CASES[case]
    started, used = time.perf_counter(), time.process_time()
    work()
    took = Measured(time.perf_counter() - started, time.process_time() - used, peak_megabytes())
    print(json.dumps(asdict(took)))


if __name__ == "__main__":
    main(*sys.argv[1:])
