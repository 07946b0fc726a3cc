"""What is asked: tables over a domain as one implicit query matrix, its answers and its sensitivity."""

from dualmandate.workload.factor import (
    AllRange,
    Dense,
    Factor,
    Groups,
    Identity,
    Prefix,
    Row,
    Total,
    column_norms,
    gram,
)
from dualmandate.workload.ratio import Ratio
from dualmandate.workload.sensitivity import Norm, Sensitivity
from dualmandate.workload.table import Sums, Table, Tabulation
from dualmandate.workload.workload import (
    Workload,
    all_range,
    explicit,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)

__all__ = [
    "AllRange",
    "Dense",
    "Factor",
    "Groups",
    "Identity",
    "Norm",
    "Prefix",
    "Ratio",
    "Row",
    "Sensitivity",
    "Sums",
    "Table",
    "Tabulation",
    "Total",
    "Workload",
    "all_range",
    "column_norms",
    "explicit",
    "gram",
    "groups",
    "identity",
    "kron",
    "marginals",
    "prefix",
    "stack",
    "total",
]
