"""The keys of a program file, table by table: what may be written, and what each value must be."""

from dualmandate.program.schema.calibrated import CalibratedNumber
from dualmandate.program.schema.extensions import DetailTable, MarketsTable, ParticipationTable, ReleasesTable
from dualmandate.program.schema.mechanism import LimitsTable, MechanismTable
from dualmandate.program.schema.population import (
    AttributeTable,
    HierarchyTable,
    InvariantTable,
    PopulationTable,
    SourceTable,
)
from dualmandate.program.schema.preferences import GroupTable, PreferencesTable
from dualmandate.program.schema.program import ProgramKeys, ProgramTable
from dualmandate.program.schema.publication import PublicationTable
from dualmandate.program.schema.society import SocialChoiceTable, UncertaintyTable
from dualmandate.program.schema.workload import FitnessForUse, WorkloadTable

__all__ = [
    "AttributeTable",
    "CalibratedNumber",
    "DetailTable",
    "FitnessForUse",
    "GroupTable",
    "HierarchyTable",
    "InvariantTable",
    "LimitsTable",
    "MarketsTable",
    "MechanismTable",
    "ParticipationTable",
    "PopulationTable",
    "PreferencesTable",
    "ProgramKeys",
    "ProgramTable",
    "PublicationTable",
    "ReleasesTable",
    "SocialChoiceTable",
    "SourceTable",
    "UncertaintyTable",
    "WorkloadTable",
]
