"""Derive how much privacy loss a statistical agency should accept, and show why.

    plan = dualmandate.load("program.toml").plan()
    print(plan_words(plan))

The names here are the stable doors; each room (`dualmandate.workload`, `dualmandate.frontier`, …) has more. They open
when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualmandate.apps.publish import publish
    from dualmandate.choice import Choice, choose
    from dualmandate.errors import Refusal
    from dualmandate.frontier import frontier_of
    from dualmandate.planning.plan import Plan
    from dualmandate.planning.program import Program, load
    from dualmandate.planning.release_spec import load_release
    from dualmandate.population import Attribute, Domain, Histogram, PrivacyLoss, Protection
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
    "choose",
    "frontier_of",
    "load",
    "load_release",
    "publish",
]

_HOMES = {
    "Attribute": "population",
    "Choice": "choice",
    "Domain": "population",
    "Histogram": "population",
    "Plan": "planning.plan",
    "PrivacyLoss": "population",
    "Program": "planning.program",
    "Protection": "population",
    "Refusal": "errors",
    "Tabulation": "workload",
    "Workload": "workload",
    "choose": "choice",
    "frontier_of": "frontier",
    "load": "planning.program",
    "load_release": "planning.release_spec",
    "publish": "apps.publish",
}

__version__: str


def __getattr__(name: str) -> object:
    if name == "__version__":
        # read from the installed package, so that the version is written down once
        value: object = import_module("importlib.metadata").version("dualmandate")
    elif name in _HOMES:
        value = getattr(import_module(f"dualmandate.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'dualmandate' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
