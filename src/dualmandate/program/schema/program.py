"""The whole program file."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from dualmandate.program.schema.extensions import MarketsTable, ParticipationTable, ReleasesTable
from dualmandate.program.schema.mechanism import LimitsTable, MechanismTable
from dualmandate.program.schema.number import CLOSED, Several, Text, refused, whole_number
from dualmandate.program.schema.population import InvariantTable, PopulationTable
from dualmandate.program.schema.preferences import PreferencesTable
from dualmandate.program.schema.publication import PublicationTable
from dualmandate.program.schema.society import SocialChoiceTable, UncertaintyTable
from dualmandate.program.schema.workload import WorkloadTable

SCHEMA_VERSION = 1


def _version(value: object) -> int:
    if whole_number(value) != SCHEMA_VERSION:
        raise refused(
            f"this version reads program files of schema {SCHEMA_VERSION}",
            f"write schema = {SCHEMA_VERSION}, or use the version of dualmandate that the file was written for",
        )
    return SCHEMA_VERSION


Version = Annotated[int, BeforeValidator(_version), WithJsonSchema({"const": SCHEMA_VERSION})]


class ProgramTable(BaseModel):
    """The name of the program."""

    model_config = CLOSED

    name: Text
    """A plan and its dossier are filed under the program's name."""
    schema_: Annotated[Version, Field(alias="schema")]
    """The version of the keys: a later one may mean something else by them."""
    description: Text | None = None
    """What the program publishes, for readers."""


class ProgramKeys(BaseModel):
    """A program: who is counted, what is asked, how it is produced and what society prefers."""

    model_config = CLOSED

    program: ProgramTable
    """A program has a name and a schema version."""
    population: PopulationTable
    """Who is counted and who is protected must be stated."""
    workload: Several[WorkloadTable]
    """A program that asks nothing publishes nothing."""
    mechanism: MechanismTable
    """How answers are produced decides how much accuracy a privacy loss buys."""
    preferences: PreferencesTable
    """The optimum balances technology against preferences: without them no privacy loss is better than another."""
    limits: LimitsTable = LimitsTable()
    """Caps set from outside."""
    invariants: Several[InvariantTable] = ()
    """Totals that are published without noise."""
    publication: PublicationTable = PublicationTable()
    """In which forms a release is written."""
    participation: ParticipationTable | None = None
    """How participation falls with the privacy loss; everybody takes part where it is not stated."""
    horizon: ReleasesTable | None = None
    """Releases to come, and when records are opened."""
    markets: MarketsTable | None = None
    """What is needed to compare the program with markets."""
    uncertainty: UncertaintyTable | None = None
    """What a further survey of preferences would measure."""
    social_choice: SocialChoiceTable | None = None
    """Other ways to add people up, beside the sum."""

    @property
    def shares(self) -> dict[str, Fraction]:
        """The stated share of each table in the loss; nothing where none is stated."""
        return {table.name: table.share for table in self.workload if table.share is not None}
