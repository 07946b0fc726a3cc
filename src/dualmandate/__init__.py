"""Derive how much privacy loss a statistical agency should accept, and show why.

    plan = dualmandate.load("program.toml").plan()
    print(plan.words())

The names here are the stable doors; each room (`dualmandate.workload`, `dualmandate.frontier`, …) has more. They open
when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualmandate.choice import Choice, choose
    from dualmandate.errors import Refusal
    from dualmandate.frontier import frontier_of
    from dualmandate.population import Attribute, Domain, Histogram, PrivacyLoss, Protection
    from dualmandate.program import Plan, Program, audit, load, load_release, publish
    from dualmandate.workload import Tabulation, Workload

__all__ = [
    "Attribute",
    "Choice",
    "Domain",
    "Histogram",
    "Plan",
    "PrivacyLoss",
    "Program",
    "Protection",
    "Refusal",
    "Tabulation",
    "Workload",
    "__version__",
    "audit",
    "choose",
    "frontier_of",
    "load",
    "load_release",
    "publish",
]

_ROOMS = {
    "Attribute": "population",
    "Choice": "choice",
    "Domain": "population",
    "Histogram": "population",
    "Plan": "program",
    "PrivacyLoss": "population",
    "Program": "program",
    "Protection": "population",
    "Refusal": "errors",
    "Tabulation": "workload",
    "Workload": "workload",
    "audit": "program",
    "choose": "choice",
    "frontier_of": "frontier",
    "load": "program",
    "load_release": "program",
    "publish": "program",
}

__version__: str


def __getattr__(name: str) -> object:
    if name == "__version__":
        # read from the installed package, so that the version is written down once
        value: object = import_module("importlib.metadata").version("dualmandate")
    elif name in _ROOMS:
        value = getattr(import_module(f"dualmandate.{_ROOMS[name]}"), name)
    else:
        raise AttributeError(f"module 'dualmandate' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
