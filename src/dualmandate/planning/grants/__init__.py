"""Title I grants to school districts as the law divides them: the decision that errors in counts of children distort.

Four formulas (basic, concentration, targeted, and education finance incentive grants) with their thresholds, weights,
state minima and hold-harmless floors, each reduced to what was appropriated.
"""

from __future__ import annotations

from dualmandate.planning.grants.districts import SchoolDistricts
from dualmandate.planning.grants.formulas import FORMULAS, Grants, TitleI
from dualmandate.planning.grants.statute import FiscalYear, Statute, read_statute

__all__ = ["FORMULAS", "FiscalYear", "Grants", "SchoolDistricts", "Statute", "TitleI", "read_statute"]
