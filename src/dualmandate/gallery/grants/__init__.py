"""Title I grants to school districts as the law divides them: the decision that errors in counts of children distort.

Four formulas (basic, concentration, targeted, and education finance incentive grants) with their thresholds, weights,
state minima and hold-harmless floors, each reduced to what was appropriated.
"""

from __future__ import annotations

from dualmandate.gallery.grants.displacement import (
    Displacement,
    displacement,
    estimation_errors,
    noise_errors,
)
from dualmandate.gallery.grants.invented import invented_districts
from dualmandate.planning.grants import FORMULAS, FiscalYear, Grants, SchoolDistricts, Statute, TitleI, read_statute

__all__ = [
    "FORMULAS",
    "Displacement",
    "FiscalYear",
    "Grants",
    "SchoolDistricts",
    "Statute",
    "TitleI",
    "displacement",
    "estimation_errors",
    "invented_districts",
    "noise_errors",
    "read_statute",
]
