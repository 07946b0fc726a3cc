"""Ours against peers, in one run, against targets stated beforehand."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.errors import UnknownName

# Records always are, in `redistricting` from published block counts where they are at hand.
INPUTS = "generated"
_NAMES = (
    *("sensitivity", "plan", "strategies", "accelerator", "noise", "tabulate", "redistricting", "preferences"),
    "audit",
)

__all__ = ["INPUTS", "BenchmarkRow", "names", "run"]


def names() -> tuple[str, ...]:
    """The benchmarks, in the order they are run."""
    return _NAMES


def run(name: str | None = None, *, progress: Callable[[str], None] = lambda _: None) -> list[BenchmarkRow]:
    """The rows of one benchmark, or of all of them."""
    if name is not None and name not in _NAMES:
        raise UnknownName(
            f"there is no benchmark '{name}'",
            why="a benchmark is one of a fixed list",
            instead=f"choose one of {', '.join(names())}",
        )
    chosen = names() if name is None else (name,)
    return [row for each in chosen for row in _module(each).rows(progress)]


def _module(name: str) -> ModuleType:
    """Only what is run is loaded."""
    match name:
        case "sensitivity":
            from dualmandate.benchmarks import sensitivity

            return sensitivity
        case "plan":
            from dualmandate.benchmarks import planning

            return planning
        case "strategies":
            from dualmandate.benchmarks import strategies

            return strategies
        case "accelerator":
            from dualmandate.benchmarks import accelerator

            return accelerator
        case "noise":
            from dualmandate.benchmarks import noise

            return noise
        case "tabulate":
            from dualmandate.benchmarks import tabulation

            return tabulation
        case "redistricting":
            from dualmandate.benchmarks import redistricting

            return redistricting
        case "preferences":
            from dualmandate.benchmarks import preferences

            return preferences
        case _:
            from dualmandate.benchmarks import auditing

            return auditing
