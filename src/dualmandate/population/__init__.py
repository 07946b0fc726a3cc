"""Who is counted, what can be recorded, who is protected, and the exact account of privacy loss."""

from dualmandate.population.confidential import Confidential
from dualmandate.population.domain import Attribute, Domain, GridLevels, Grouping, Hierarchy, Histogram, StructuralZero
from dualmandate.population.loss import PrivacyLoss, PrivacyMeasure
from dualmandate.population.protection import Invariant, Neighbors, Protection
from dualmandate.population.records import Counts, Records
from dualmandate.population.units import Calibrated, Units, plural, singular
from dualmandate.population.wording import counted

__all__ = [
    "Attribute",
    "Calibrated",
    "Confidential",
    "Counts",
    "Domain",
    "GridLevels",
    "Grouping",
    "Hierarchy",
    "Histogram",
    "Invariant",
    "Neighbors",
    "PrivacyLoss",
    "PrivacyMeasure",
    "Protection",
    "Records",
    "StructuralZero",
    "Units",
    "counted",
    "plural",
    "singular",
]
