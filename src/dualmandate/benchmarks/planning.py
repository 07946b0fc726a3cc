"""From the embedded Title I program to its plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from dualmandate import gallery
from dualmandate.benchmarks.measured import check, measured_rows
from dualmandate.benchmarks.row import Row
from dualmandate.program import load

LARGEST_SECONDS = 10.0
LARGEST_MEGABYTES = 500.0


def title_i() -> None:
    """Write, read and plan the Title I program: 13,000 districts, ε* = 2.5276."""
    with TemporaryDirectory() as folder:
        gallery.write("title_i", folder)
        plan = load(Path(folder, "program.toml")).plan()
    check(round(plan.choice.epsilon, 6), 2.527644)


CASES: dict[str, Callable[[], None]] = {"Title I, 13,000 districts": title_i}


def rows(progress: Callable[[str], None]) -> list[Row]:
    """Seconds and peak memory of each case."""
    return measured_rows(__name__, progress, seconds=LARGEST_SECONDS, megabytes=LARGEST_MEGABYTES)
