"""A survey file, read; and what its answers say about costs and values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from pydantic import ValidationError

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey
from dualmandate.population import Units
from dualmandate.population.units import is_money, singular
from dualmandate.program.file import Document, read_document
from dualmandate.program.reading import first_refusal
from dualmandate.survey.schema import SurveyFile

CONFIDENCE = 0.95  # Intervals have this level where the file says nothing.


@dataclass(frozen=True, eq=False)
class Survey:
    """What a survey file says. The file is public; the answers it names are not, and are read when they are needed."""

    document: Document
    file: SurveyFile
    units: Units

    @property
    def name(self) -> str:
        """What the survey is called in the source of its numbers."""
        return self.file.survey.name or self.document.path.stem

    @property
    def confidence(self) -> float:
        """How often its intervals hold what they should."""
        stated = self.file.model.confidence
        return CONFIDENCE if stated is None else float(stated)

    def asks(self) -> bool:
        """Whether the file says what to ask."""
        return self.file.questionnaire is not None

    def source(self) -> str:
        """The file of the answers; refused where none is named."""
        name = self.file.survey.source
        if name is None:
            asking = "; `--questionnaire` makes what to ask" if self.asks() else ""
            raise MissingKey(
                "'survey' does not state 'source'",
                why="estimates come from answers",
                instead=f'write source = "answers.csv"{asking}',
                where=self.document.place(("survey", "source")),
            )
        return name


def load_survey(path: str | Path) -> Survey:
    """Read a survey file; anything that cannot be meant is refused with its place. The answers are not opened."""
    document = read_document(path, "survey file")
    try:
        file = SurveyFile.model_validate(document.content)
    except ValidationError as error:
        raise first_refusal(error, document, SurveyFile, "survey") from None
    names = [source.name for source in file.source]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InvalidValue(
                f"two sources are called '{name}'",
                why="evidence is known by its name",
                instead="give each its own name",
                where=document.place(("source", position, "name")),
            )
    return Survey(document, file, _units(file, document))


def _units(file: SurveyFile, document: Document) -> Units:
    """The words that units of this survey are made of: dollars, whose record is at stake, and people."""
    unit = file.survey.unit
    with document.at("survey", "unit"):
        Units(unit)
    return Units(unit, () if singular(unit).casefold() == "person" else ("person",))


def money(unit: str, in_usd: Fraction | None, units: Units, document: Document, *key: str) -> float:
    """What one unit of a price is in USD; refused where the two cannot be reconciled."""
    if in_usd is not None:
        if is_money(unit):
            raise InvalidValue(
                "a dollar has another price than a dollar",
                why="in_usd says what one unit of other money is in USD",
                instead="leave it out",
                where=document.place((*key, "in_usd")),
            )
        return float(in_usd)
    with document.at(*key, "unit"):
        try:
            return units.conversion(unit, "USD")
        except IncompatibleUnits as refusal:
            raise refusal.advising('state the price in "USD", or what one unit of it is worth: in_usd = …') from None
