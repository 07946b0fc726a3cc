"""What is asked: tables over a domain as one implicit query matrix, its answers and its sensitivity."""

from dualmandate.workload.builders import all_range, explicit, groups, identity, kron, marginals, prefix, stack, total
from dualmandate.workload.columns import column_norms, gram, is_partition
from dualmandate.workload.factor import AllRange, Factor, Identity, Prefix, Total
from dualmandate.workload.listed import Dense, Groups, Row
from dualmandate.workload.sensitivity import Norm, Sensitivity
from dualmandate.workload.table import Table
from dualmandate.workload.tabulation import Tabulation
from dualmandate.workload.workload import Workload

__all__ = [
    "AllRange",
    "Dense",
    "Factor",
    "Groups",
    "Identity",
    "Norm",
    "Prefix",
    "Row",
    "Sensitivity",
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
    "is_partition",
    "kron",
    "marginals",
    "prefix",
    "stack",
    "total",
]
