"""Check numbers of a workload."""

from __future__ import annotations

import math
from fractions import Fraction

from dualmandate.workload import Workload, column_norms


def squared_norm(workload: Workload) -> Fraction:
    """Σ of all squared entries of Q: ‖Q‖²_F."""
    norms = (
        table.weight**2 * math.prod(int(column_norms(factor, 2).sum()) for factor in table.factors)
        for table in workload.tables
    )
    return sum(norms, Fraction(0))
