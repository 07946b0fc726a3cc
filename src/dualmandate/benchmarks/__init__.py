"""Ours against peers, in one run, against targets stated beforehand."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.errors import UnknownName

# Records always are, in `redistricting` from published block counts where they are at hand.
INPUTS = "generated"
# Each benchmark and its module, loaded when it is run: names alone are asked for at every start of the command line.
_MODULES = {
    "sensitivity": "sensitivity",
    "plan": "planning",
    "strategies": "strategies",
    "accelerator": "accelerator",
    "noise": "noise",
    "tabulate": "tabulation",
    "redistricting": "redistricting",
    "preferences": "preferences",
    "audit": "auditing",
    "mixed": "mixed",
}

__all__ = ["INPUTS", "BenchmarkRow", "names", "run"]


def names() -> tuple[str, ...]:
    """The benchmarks, in the order they are run."""
    return tuple(_MODULES)


def run(name: str | None = None, *, progress: Callable[[str], None] = lambda _: None) -> list[BenchmarkRow]:
    """The rows of one benchmark, or of all of them."""
    if name is not None and name not in _MODULES:
        raise UnknownName(
            f"there is no benchmark '{name}'",
            why="a benchmark is one of a fixed list",
            instead=f"choose one of {', '.join(names())}",
        )
    chosen = [import_module(f"{__name__}.{_MODULES[each]}") for each in (_MODULES if name is None else (name,))]
    return [row for module in chosen for row in module.rows(progress)]
