"""The solvers of the extra `audit`: CP-SAT of OR-Tools, and HiGHS. Planning and publishing need neither."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from dualmandate.errors import InvalidRequest

PACKAGES = ("ortools", "highspy")
INSTALL = "pip install 'dualmandate[audit]'"


def check_solvers() -> None:
    """Refuse where the extra `audit` is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise _not_installed(*missing)


def cp_sat() -> Any:
    """OR-Tools' module of the constraint solver CP-SAT."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise _not_installed("ortools") from None
    return cp_model


def highs() -> Any:
    """The module of HiGHS, a solver of linear and integer programs."""
    try:
        import highspy
    except ImportError:
        raise _not_installed("highspy") from None
    return highspy


def _not_installed(*packages: str) -> InvalidRequest:
    return InvalidRequest(
        "the solvers that an audit needs are not installed",
        why=f"{' and '.join(packages)} {'is' if len(packages) == 1 else 'are'} not here; the base package plans and "
        "publishes without",
        instead=f"run {INSTALL}",
    )
