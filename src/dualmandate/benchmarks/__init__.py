"""Ours against peers, in one run, against targets stated beforehand."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.errors import UnknownName

# Records always are, in `redistricting` from published block counts where they are at hand.
INPUTS = "generated"
NAMES = (
    *("sensitivity", "plan", "strategies", "accelerator", "noise", "tabulate", "redistricting", "preferences"),
    *("audit", "mixed", "scale", "cluster", "partitions", "squares", "synthesis"),
)

__all__ = ["INPUTS", "NAMES", "BenchmarkRow", "run"]


def run(name: str | None = None, *, progress: Callable[[str], None] = lambda _: None) -> list[BenchmarkRow]:
    """The rows of one benchmark, or of all of them."""
    if name is not None and name not in NAMES:
        raise UnknownName(
            f"there is no benchmark '{name}'",
            why="a benchmark is one of a fixed list",
            instead=f"choose one of {', '.join(NAMES)}",
        )
    # Here: NAMES alone are asked for at every start of the command line.
    from dualmandate.benchmarks import (
        accelerator,
        auditing,
        cluster,
        mixed,
        noise,
        partitions,
        planning,
        preferences,
        redistricting,
        scale,
        sensitivity,
        squares,
        strategies,
        synthesis,
        tabulation,
    )

    modules = (sensitivity, planning, strategies, accelerator, noise, tabulation, redistricting, preferences, auditing)
    listed = dict(zip(NAMES, (*modules, mixed, scale, cluster, partitions, squares, synthesis), strict=True))
    return [row for each in (NAMES if name is None else (name,)) for row in listed[each].rows(progress)]
