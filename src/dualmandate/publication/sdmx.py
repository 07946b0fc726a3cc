"""Sheets as SDMX 3.0, for agencies' registries: a data message and the structure that it follows.

Label columns become dimensions with code lists, the whole numbers (or the estimates, where there are none) the measure
OBS_VALUE, other numbers attributes of an observation, the unit an attribute of the data set. SDMX codes are letters,
digits, `_`, `@`, `$` and `-`; where a level is written otherwise, the levels of its attribute get numbered codes, and
keep their words as names. Nothing about the moment of writing enters: a message is prepared at the time that is stated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dualmandate.errors import InvalidRequest
from dualmandate.ledger.durable import write_durably
from dualmandate.publication.writing import NUMBERS, PUBLIC, PUBLIC_MODE, ReleaseSheet

if TYPE_CHECKING:
    from pysdmx.model import Codelist, Component, DataStructureDefinition

AGENCY = "DUALMANDATE"
VERSION = "1.0"
STRUCTURE = ".structure.xml"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROW, MEASURE, UNIT = "ROW", "OBS_VALUE", "UNIT_MEASURE"
CODE = re.compile(r"[A-Za-z0-9_@$-]+", re.ASCII)
NOTHING = {"", "na", "nan", "nat", "none", "null"}  # Readers of CSV take these codes for none.
LONGEST = 90  # An identifier has at most so many letters, more than a file's name.
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML cannot hold these letters.


@dataclass(frozen=True)
class _Sdmx:
    agency: str = AGENCY
    prepared: datetime = EPOCH  # of the release, never of the moment
    form: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        """The structure, then the data."""
        require_sdmx()
        import pandas as pd
        from pysdmx.io.format import Format
        from pysdmx.io.pd import PandasDataset
        from pysdmx.io.writer import write_sdmx
        from pysdmx.model import Organisation
        from pysdmx.model.message import Header

        name, agency = identifier(stem.name), identifier(self.agency)
        structures, definition = _structures(sheet, name, agency)

        def header() -> Header:  # the writers of messages fill it in
            return Header(id=name, prepared=self.prepared, sender=Organisation(id=agency))

        written = write_sdmx(structures, Format.STRUCTURE_SDMX_ML_3_0, header=header())
        attributes = {UNIT: _words(sheet.unit)} if sheet.unit else {}
        data = PandasDataset(
            structure=definition.to_schema(), attributes=attributes, data=pd.DataFrame(_observations(sheet))
        )
        settings: dict[str, Any] = {"header": header()} if self.form.startswith("DATA_SDMX_ML") else {}
        message = write_sdmx([data], Format[self.form], **settings)
        paths = tuple(stem.with_name(stem.name + suffix) for suffix in self.suffixes)
        for path, text in zip(paths[::-1], (written, message), strict=True):
            assert text is not None
            write_durably(path, text.encode("utf-8"), mode=PUBLIC_MODE)
        return paths


class SdmxCsv(_Sdmx):
    """SDMX-CSV 2.0 beside its structure in SDMX-ML 3.0."""

    form = "DATA_SDMX_CSV_2_0_0"
    suffixes = (".sdmx.csv", STRUCTURE)


class SdmxMl(_Sdmx):
    """SDMX-ML 3.0, structure-specific data beside their structure."""

    form = "DATA_SDMX_ML_3_0"
    suffixes = (".sdmx.xml", STRUCTURE)


def identifier(name: str, taken: Sequence[str] = ()) -> str:
    """A name as an SDMX identifier: capitals, digits and `_`, a letter first, different from those that are taken."""
    plain = re.sub("[^A-Z0-9]+", "_", name.upper()).strip("_")[:LONGEST].rstrip("_")
    first = chosen = plain if plain[:1].isalpha() else f"X_{plain}".rstrip("_")
    number = 1
    while chosen in taken:
        number += 1
        chosen = f"{first}_{number}"
    return chosen


def codes_of(levels: Sequence[str]) -> tuple[str, ...]:
    """The levels themselves where all can be codes, else numbered codes."""
    if all(CODE.fullmatch(level) and level.lower().strip("-") not in NOTHING for level in levels):
        return tuple(levels)
    width = len(str(len(levels)))
    return tuple(f"L{place:0{width}d}" for place in range(1, len(levels) + 1))


def _structures(sheet: ReleaseSheet, name: str, agency: str) -> tuple[list[Any], DataStructureDefinition]:
    """Code lists, concepts, the data structure, and a data flow; facts are annotations of the structure."""
    from pysdmx.model import Agency, Annotation, Concept, ConceptScheme, DataStructureDefinition
    from pysdmx.model.dataflow import Components

    maintainer, headings = Agency(id=agency), _dimensions(sheet)
    words = {**headings, **{_number_id(sheet, each): each for each in sheet.numbers}, UNIT: "unit"}
    concepts = ConceptScheme(
        id=f"CS_{name}",
        name=_words(f"Concepts of {sheet.name}"),
        agency=maintainer,
        version=VERSION,
        items=[Concept(id=key, name=_words(word)) for key, word in words.items()],
    )
    lists = [_codelist(sheet, place, name, maintainer) for place in range(len(sheet.columns))]
    facts = {"label": PUBLIC, **dict(sorted(sheet.facts.items()))}
    definition = DataStructureDefinition(
        id=name,
        name=_words(sheet.name),
        agency=maintainer,
        version=VERSION,
        components=Components(_components(sheet, lists, concepts.id, agency)),
        annotations=[Annotation(id=key, title=key, text=_words(word)) for key, word in facts.items()],
    )
    return [*lists, concepts, definition], definition


def _codelist(sheet: ReleaseSheet, place: int, name: str, maintainer: Any) -> Codelist:
    from pysdmx.model import Code, Codelist

    levels, heading = sheet.labels[place], list(_dimensions(sheet))[place]
    items = [Code(id=code, name=_words(level)) for code, level in zip(codes_of(levels), levels, strict=True)]
    return Codelist(
        id=f"CL_{name}_{heading}", name=_words(sheet.columns[place]), agency=maintainer, version=VERSION, items=items
    )


def _components(sheet: ReleaseSheet, lists: Sequence[Codelist], scheme: str, agency: str) -> list[Component]:
    from pysdmx.model import Component as Of
    from pysdmx.model import DataType, ItemReference, Role

    types = {np.int32: DataType.INTEGER, np.int64: DataType.LONG, np.float64: DataType.DOUBLE}

    def concept(key: str) -> ItemReference:
        return ItemReference(sdmx_type="Concept", agency=agency, id=scheme, version=VERSION, item_id=key)

    found = []
    of_dimensions: Sequence[Codelist | None] = lists or [None]
    for key, codes in zip(_dimensions(sheet), of_dimensions, strict=True):
        urn = None if codes is None else f"urn:sdmx:org.sdmx.infomodel.codelist.{codes.short_urn}"
        kind = DataType.LONG if codes is None else DataType.STRING
        found.append(Of(key, True, Role.DIMENSION, concept(key), kind, local_codes=codes, local_enum_ref=urn))
    for name in sheet.numbers:
        key, kind = _number_id(sheet, name), types[NUMBERS[name]]
        if key == MEASURE:
            found.append(Of(key, True, Role.MEASURE, concept(key), kind))
        else:
            found.append(Of(key, False, Role.ATTRIBUTE, concept(key), kind, attachment_level="O"))
    found.append(Of(UNIT, False, Role.ATTRIBUTE, concept(UNIT), DataType.STRING, attachment_level="D"))
    return found


def _dimensions(sheet: ReleaseSheet) -> dict[str, str]:
    """The identifier of each label column, and its name; where there are none, rows are numbered."""
    taken = [MEASURE, UNIT, ROW, *(name.upper() for name in NUMBERS)]
    found: dict[str, str] = {}
    for column in sheet.columns:
        found[identifier(column, [*taken, *found])] = column
    return found or {ROW: "row"}


def _words(text: str) -> str:
    """Text that XML can hold."""
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _number_id(sheet: ReleaseSheet, name: str) -> str:
    """Whole numbers are the measure where there are any, else the first column of numbers."""
    measure = "value" if "value" in sheet.numbers else next(iter(sheet.numbers))
    return MEASURE if name == measure else name.upper()


def _observations(sheet: ReleaseSheet) -> dict[str, Any]:
    found: dict[str, Any] = {ROW: np.arange(1, sheet.rows + 1)}
    if sheet.labels:
        places = np.unravel_index(np.arange(sheet.rows), [len(levels) for levels in sheet.labels])
        codes = [np.array(codes_of(levels), dtype=object) for levels in sheet.labels]
        found = {key: words[place] for key, words, place in zip(_dimensions(sheet), codes, places, strict=True)}
    return {**found, **{_number_id(sheet, name): each for name, each in sheet.numbers.items()}}


def require_sdmx() -> None:
    """Refuse where the packages for SDMX are not installed; to be asked before anything is spent."""
    try:
        import pandas  # noqa: F401
        import pysdmx.io.xml  # noqa: F401
    except ImportError:
        raise InvalidRequest(
            "SDMX is asked for, and its packages are not installed",
            why="most releases do without it, so that it is an extra",
            instead="install dualmandate[sdmx]",
        ) from None
