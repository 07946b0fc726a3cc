"""Who is counted, what can be recorded, who is protected, and the exact account of privacy loss."""

from dualmandate.population.attribute import Attribute, GridLevels
from dualmandate.population.confidential import Confidential
from dualmandate.population.domain import Domain, StructuralZero
from dualmandate.population.hierarchy import Grouping, Hierarchy
from dualmandate.population.histogram import Histogram
from dualmandate.population.loss import Currency, PrivacyLoss
from dualmandate.population.protection import Invariant, Neighbors, Protection

__all__ = [
    "Attribute",
    "Confidential",
    "Currency",
    "Domain",
    "GridLevels",
    "Grouping",
    "Hierarchy",
    "Histogram",
    "Invariant",
    "Neighbors",
    "PrivacyLoss",
    "Protection",
    "StructuralZero",
]
