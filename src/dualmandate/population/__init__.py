"""Who is counted, what can be recorded, who is protected, and the exact account of privacy loss."""

from dualmandate.population.attribute import Attribute, GridLevels
from dualmandate.population.calibrated import Calibrated, common_time_base
from dualmandate.population.confidential import Confidential
from dualmandate.population.domain import Domain, StructuralZero
from dualmandate.population.hierarchy import Grouping, Hierarchy
from dualmandate.population.histogram import Histogram
from dualmandate.population.loss import PrivacyLoss, PrivacyMeasure
from dualmandate.population.protection import Invariant, Neighbors, Protection
from dualmandate.population.units import Units, plural, singular, with_article
from dualmandate.population.wording import counted

__all__ = [
    "Attribute",
    "Calibrated",
    "Confidential",
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
    "StructuralZero",
    "Units",
    "common_time_base",
    "counted",
    "plural",
    "singular",
    "with_article",
]
