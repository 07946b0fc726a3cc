"""A survey file, read; and the answers it names, from CSV files: confidential, so that no refusal repeats a value.

A refusal names the column as the survey file does, and the line of the answers where one must be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import IncompatibleUnits, InvalidFile, InvalidSurvey, InvalidValue, MissingKey
from dualmandate.population import Units
from dualmandate.population.arguments import checked_call, checked_class, expected
from dualmandate.population.currency import checked_currency, currency_of
from dualmandate.population.shown import cut_line
from dualmandate.population.units import singular
from dualmandate.program.file import Document, KeyPath, read_document
from dualmandate.program.reading import check_unique, validated
from dualmandate.program.text_columns import read_text_columns
from dualmandate.survey.schema import SurveyFile

T = TypeVar("T")
CONFIDENCE = 0.95  # Intervals have this level where the file says nothing.
LARGEST_NUMBER = 1e12  # No price, error, loss or level is larger; squares of such numbers are finite.
_TRUTH = {"1": 1.0, "0": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "1.0": 1.0, "0.0": 0.0}


@checked_class
@dataclass(frozen=True, eq=False)
class Survey:
    """What a survey file says. The file is public; the answers it names are not, and are read when they are needed."""

    document: Document
    file: SurveyFile
    units: Units

    def __repr__(self) -> str:
        return cut_line(f"Survey('{self.name}': {self.file.survey.kind}, in {self.units.currency})")

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


@checked_call
def load_survey(path: str | Path) -> Survey:
    """Read a survey file; anything that cannot be meant is refused with its place. The answers are not opened."""
    place: str | Path = expected(
        path, (str, Path), what="a survey", instead='name its file: load_survey("survey.toml")'
    )
    document = read_document(place, "survey file")
    file = validated(document, SurveyFile, "survey")
    check_unique([source.name for source in file.source], "sources", document, ("source",))
    return Survey(document, file, _units(file, document))


def _units(file: SurveyFile, document: Document) -> Units:
    """The words that units of this survey are made of: its money, whose record is at stake, and people."""
    unit, currency = file.survey.unit, file.survey.currency
    with document.at("survey", "currency"):
        checked_currency(currency)
    with document.at("survey", "unit"):
        Units(unit, currency=currency)
    return Units(unit, () if singular(unit).casefold() == "person" else ("person",), currency)


def money(unit: str, exchange_rate: Fraction | None, units: Units, document: Document, *key: str) -> float:
    """What one unit of a price is in the survey's currency; refused where the two cannot be reconciled."""
    if exchange_rate is not None:
        if currency_of(unit) == units.currency:
            raise InvalidValue(
                f"{units.currency} has another price than {units.currency}",
                why=f"exchange_rate says what one unit of other money is in {units.currency}",
                instead="leave it out",
                where=document.place((*key, "exchange_rate")),
            )
        return float(exchange_rate)
    with document.at(*key, "unit"):
        try:
            return units.conversion(unit, units.currency)
        except IncompatibleUnits as refusal:
            raise refusal.advising(
                f'state the price in "{units.currency}", or what one unit of it is worth: exchange_rate = …'
            ) from None


class Line(NamedTuple):
    """Where a row stands: the name of its file and its line there, from 1."""

    file: str
    number: int


@dataclass(frozen=True, eq=False, repr=False)
class SurveyAnswers:
    """Columns of text by name. It has no repr: what people said is not printed."""

    columns: dict[str, tuple[str, ...]]
    lines: tuple[Line, ...]  # of each row
    document: Document

    def labels(self, key: KeyPath) -> NDArray[np.str_]:
        """The column that the survey file names at a key, as text; refused where a value is missing."""
        column = self._column(key)
        self._read(key, lambda text: text.strip() or None, "is empty", "a row without it belongs to nobody's answer")
        return np.array(column)

    def numbers(self, key: KeyPath) -> NDArray[np.float64]:
        """The column that the survey file names at a key, as finite numbers."""
        why = "a model reads numbers, and every gap is a guess"
        return np.array(self._read(key, _number, "is no number, or too large", why))

    def levels(self, key: KeyPath) -> NDArray[np.float64]:
        """The column that the survey file names at a key, as whole numbers: levels of agreement."""
        found = self.numbers(key)
        odd = np.flatnonzero(found != np.rint(found))
        if odd.size:
            raise self._odd(key, self.lines[int(odd[0])], "is no whole number", "agreement has levels: 1, 2, 3, …")
        return found

    def truths(self, key: KeyPath) -> NDArray[np.float64]:
        """The column that the survey file names at a key, as 1 or 0."""
        why = "somebody chose it or did not, agreed or did not"
        return np.array(self._read(key, lambda text: _TRUTH.get(text.strip().casefold()), "is neither 1 nor 0", why))

    def _read(self, key: KeyPath, reader: Callable[[str], T | None], what: str, why: str) -> list[T]:
        """Every value of a column as a reader reads it; refused at the first that reads as nothing."""
        found = []
        for line, text in zip(self.lines, self._column(key), strict=True):
            value = reader(text)
            if value is None:
                raise self._odd(key, line, what, why)
            found.append(value)
        return found

    def _column(self, key: KeyPath) -> tuple[str, ...]:
        name = self.document.value(key)
        assert isinstance(name, str)
        if name not in self.columns:
            # The header is not repeated: where there is none, the first row is somebody's answer.
            raise InvalidValue(
                f"the answers have no column '{name}'",
                why="their header does not name it",
                instead="name a column of the answers, spelled as in their first line",
                where=self.document.place(key),
            )
        return self.columns[name]

    def _odd(self, key: KeyPath, line: Line, what: str, why: str) -> InvalidSurvey:
        name = self.document.value(key)
        return InvalidSurvey(
            f"the column '{name}' of the answers {what} on line {line.number}",
            why=why,
            instead=f"mend line {line.number} of '{line.file}', or leave out the whole task of this respondent",
            where=self.document.place(key),
        )


def read_answers(document: Document, name: str) -> SurveyAnswers:
    """Read the answers that a survey file names: a CSV file, or a folder of them that have the same header."""
    path = document.path.parent / name
    with document.at("survey", "source"):
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not files:
            raise _unusable(path, "the folder holds no .csv file", "put the answers there, or name their file")
        read = [read_text_columns(file, "file of answers") for file in files]
        header = list(read[0].columns)
        other = next((each.file for each in read if list(each.columns) != header), None)
        if other is not None:
            raise _unusable(other, f"its header is not that of '{files[0].name}'", "give all files the same columns")
    columns = {name: tuple(value for each in read for value in each.columns[name]) for name in header}
    lines = tuple(Line(each.file.name, line) for each in read for line in each.lines)
    return SurveyAnswers(columns, lines, document)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST_NUMBER else None


def _unusable(file: Path, why: str, instead: str) -> InvalidFile:
    return InvalidFile(f"the file of answers '{file.name}' cannot be used", why=why, instead=instead)
