"""From a program file to its plan: the embedded Title I program, and the person tables of Summary File 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from dualmandate import gallery
from dualmandate.benchmarks.census import sf1_program
from dualmandate.benchmarks.harness import BenchmarkRow, check, measured_rows
from dualmandate.planning.program import load

LARGEST_SECONDS = 10.0
TITLE_I, SF1 = "Title I, 13,000 districts", "SF1 persons, 500,480 cells"
LARGEST_MEGABYTES = {TITLE_I: 500.0, SF1: 2_000.0}


def title_i() -> None:
    """Write, read and plan the Title I program: 13,000 districts, ε* = 2.4442."""
    with TemporaryDirectory() as folder:
        gallery.write("title_i", folder)
        plan = load(Path(folder, "program.toml")).plan()
    check(round(plan.choice.epsilon, 6), 2.444299)


def sf1_persons() -> None:
    """Write, read and plan the person tables: 4,151 numbers, at less than a hundredth of what plain noise costs."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "program.toml")
        file.write_text(sf1_program(), encoding="utf-8")
        plan = load(file).plan()
    check(sum(table.query_count for table in plan.tables), 4_151)
    check(plan.technology.strategy, "optimized")
    naive, used = plan.saving.at_choice["naive"], plan.saving.at_choice["used"]
    check(naive is not None and used is not None and used < naive / 80, True)


CASES: dict[str, Callable[[], None]] = {TITLE_I: title_i, SF1: sf1_persons}


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Seconds and peak memory of each case."""
    return measured_rows(CASES, progress, seconds=LARGEST_SECONDS, megabytes=LARGEST_MEGABYTES)
