"""Ours against peers, in one run, against targets stated beforehand."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dualmandate.benchmarks.row import Row
from dualmandate.errors import UnknownName

INPUTS = "generated"  # records always are, in `redistricting` from published block counts where they are at hand
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
}

__all__ = ["INPUTS", "Row", "names", "run"]


def names() -> tuple[str, ...]:
    """The benchmarks, in the order they are run."""
    return tuple(_MODULES)


def run(name: str | None = None, *, progress: Callable[[str], None] = lambda _: None) -> list[Row]:
    """The rows of one benchmark, or of all of them."""
    if name is not None and name not in _MODULES:
        raise UnknownName(
            f"there is no benchmark '{name}'",
            why="a benchmark is one of a fixed list",
            instead=f"choose one of {', '.join(names())}",
        )
    rows: list[Row] = []
    for chosen in names() if name is None else (name,):
        rows += import_module(f"dualmandate.benchmarks.{_MODULES[chosen]}").rows(progress)
    return rows
