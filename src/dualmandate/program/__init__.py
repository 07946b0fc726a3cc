"""The composer: a program file becomes a plan, and a plan a dossier."""

from __future__ import annotations

from pathlib import Path

from dualmandate.program.plan import Plan, TableConsequence
from dualmandate.program.program import Program, load
from dualmandate.program.saved import SavedPlan, load_plan
from dualmandate.program.saving import Comparison

__all__ = ["Comparison", "Plan", "Program", "SavedPlan", "TableConsequence", "load", "load_plan", "write_dossier"]


def write_dossier(plan: Plan, directory: Path | str) -> tuple[Path, ...]:
    """Write the page that a review board reads, and its pictures; gives back what was written."""
    from dualmandate.program import dossier  # here, because drawing costs more to import than planning

    return dossier.write_dossier(plan, directory)
