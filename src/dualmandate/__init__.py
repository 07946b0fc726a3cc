"""Derive how much privacy loss a statistical agency should accept, and show why.

    plan = dualmandate.load("program.toml").plan()
    plan.save("report")

The names here are the stable doors; each room (`dualmandate.workload`, `dualmandate.frontier`, …) has more. They open
when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualmandate.apps.notebook import NotebookPlan as Plan
    from dualmandate.apps.notebook import NotebookProgram as Program
    from dualmandate.apps.notebook import check, load, open_ledger, publish
    from dualmandate.choice import Choice, LinearCost, SocialWelfare, TableValue, choose
    from dualmandate.errors import Refusal
    from dualmandate.frontier import Frontier, frontier_of
    from dualmandate.ledger import Account, Ledger
    from dualmandate.mechanism import Strategy, mechanism_named, optimize_strategy
    from dualmandate.planning.release_spec import load_release
    from dualmandate.population import Attribute, Domain, Histogram, PrivacyLoss, Protection
    from dualmandate.publication import DatabaseTable
    from dualmandate.publication.intervals import Interval
    from dualmandate.publication.release import Release
    from dualmandate.report.figures import Figure
    from dualmandate.survey.survey_file import Survey, load_survey
    from dualmandate.workload import (
        Tabulation,
        Workload,
        all_range,
        groups,
        identity,
        kron,
        marginals,
        prefix,
        stack,
        total,
    )

__all__ = [
    "Account",
    "Attribute",
    "Choice",
    "DatabaseTable",
    "Domain",
    "Figure",
    "Frontier",
    "Histogram",
    "Interval",
    "Ledger",
    "LinearCost",
    "Plan",
    "PrivacyLoss",
    "Program",
    "Protection",
    "Refusal",
    "Release",
    "SocialWelfare",
    "Strategy",
    "Survey",
    "TableValue",
    "Tabulation",
    "Workload",
    "__version__",
    "all_range",
    "check",
    "choose",
    "frontier_of",
    "groups",
    "identity",
    "kron",
    "load",
    "load_release",
    "load_survey",
    "marginals",
    "mechanism_named",
    "open_ledger",
    "optimize_strategy",
    "prefix",
    "publish",
    "stack",
    "total",
]

_HOMES = {
    "Account": "ledger",
    "Attribute": "population",
    "Choice": "choice",
    "DatabaseTable": "publication",
    "Domain": "population",
    "Figure": "report.figures",
    "Frontier": "frontier",
    "Histogram": "population",
    "Interval": "publication.intervals",
    "Ledger": "ledger",
    "LinearCost": "choice",
    "Plan": "apps.notebook",
    "PrivacyLoss": "population",
    "Program": "apps.notebook",
    "Protection": "population",
    "Refusal": "errors",
    "Release": "publication.release",
    "SocialWelfare": "choice",
    "Strategy": "mechanism",
    "Survey": "survey.survey_file",
    "TableValue": "choice",
    "Tabulation": "workload",
    "Workload": "workload",
    "all_range": "workload",
    "check": "apps.notebook",
    "choose": "choice",
    "frontier_of": "frontier",
    "groups": "workload",
    "identity": "workload",
    "kron": "workload",
    "load": "apps.notebook",
    "load_release": "planning.release_spec",
    "load_survey": "survey.survey_file",
    "marginals": "workload",
    "mechanism_named": "mechanism",
    "open_ledger": "apps.notebook",
    "optimize_strategy": "mechanism",
    "prefix": "workload",
    "publish": "apps.notebook",
    "stack": "workload",
    "total": "workload",
}
_CALLED = {"Plan": "NotebookPlan", "Program": "NotebookProgram"}  # in their room: a class name is used once

__version__: str


def __getattr__(name: str) -> object:
    if name == "__version__":
        # read from the installed package, so that the version is written down once
        value: object = import_module("importlib.metadata").version("dualmandate")
    elif name in _HOMES:
        value = getattr(import_module(f"dualmandate.{_HOMES[name]}"), _CALLED.get(name, name))
    else:
        raise AttributeError(f"module 'dualmandate' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
