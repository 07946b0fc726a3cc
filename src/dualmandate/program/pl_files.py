"""Redistricting files as the Census Bureau delivers them: a geographic header and segments of tables (P.L. 94-171).

Since 2020 they are lines of values between bars: a header `rigeo2020.pl` with 97 values a place, and beside it
`ri000012020.pl` (tables P1 and P2), `ri000022020.pl` (P3, P4 and H1) and `ri000032020.pl` (P5), whose lines have the
header's logical record numbers. Layout: 2020 Census State Redistricting Data Summary File, Technical Documentation.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidFile, Place
from dualmandate.program.file import read_bytes
from dualmandate.program.text_columns import TextColumns

ENDING = ".pl"
LARGEST_FILE = 2**30  # At most this many bytes: the header of the largest state has 0.2 GB.
BLOCK = "750"  # the summary level of a block
BLOCK_DIGITS = 15
FILE_ID = "PLST"

HEADER = (
    *("FILEID", "STUSAB", "SUMLEV", "GEOVAR", "GEOCOMP", "CHARITER", "CIFSN", "LOGRECNO", "GEOID", "GEOCODE"),
    *("REGION", "DIVISION", "STATE", "STATENS", "COUNTY", "COUNTYCC", "COUNTYNS", "COUSUB", "COUSUBCC", "COUSUBNS"),
    *("SUBMCD", "SUBMCDCC", "SUBMCDNS", "ESTATE", "ESTATECC", "ESTATENS", "CONCIT", "CONCITCC", "CONCITNS"),
    *("PLACE", "PLACECC", "PLACENS", "TRACT", "BLKGRP", "BLOCK", "AIANHH", "AIHHTLI", "AIANHHFP", "AIANHHCC"),
    *("AIANHHNS", "AITS", "AITSFP", "AITSCC", "AITSNS", "TTRACT", "TBLKGRP", "ANRC", "ANRCCC", "ANRCNS", "CBSA"),
    *("MEMI", "CSA", "METDIV", "NECTA", "NMEMI", "CNECTA", "NECTADIV", "CBSAPCI", "NECTAPCI", "UA", "UATYPE", "UR"),
    *("CD116", "CD118", "CD119", "CD120", "CD121", "SLDU18", "SLDU22", "SLDU24", "SLDU26", "SLDU28"),
    *("SLDL18", "SLDL22", "SLDL24", "SLDL26", "SLDL28", "VTD", "VTDI", "ZCTA", "SDELM", "SDSEC", "SDUNI", "PUMA"),
    *("AREALAND", "AREAWATR", "BASENAME", "NAME", "FUNCSTAT", "GCUNI", "POP100", "HU100", "INTPTLAT", "INTPTLON"),
    *("LSADC", "PARTFLAG", "UGA"),
)
LINKS = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")  # what each line of a segment begins with

ALONE = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "Other")
RACES = tuple(
    tuple(names) for size in range(1, 7) for names in combinations(ALONE, size)
)  # 63, as the tables list them
_OF_SIZE = tuple(sum(len(names) == size for names in RACES) for size in range(1, 7))  # 6, 15, 20, 15, 6, 1
RACE_CELLS, ORIGIN_CELLS, UNIT_CELLS, QUARTER_CELLS = 71, 73, 3, 10
SEGMENTS = {1: (RACE_CELLS, ORIGIN_CELLS), 2: (RACE_CELLS, ORIGIN_CELLS, UNIT_CELLS), 3: (QUARTER_CELLS,)}
# Of the tables, P1 and P3 by race: the total, one race, two or more, and within these as many as two to six.
_SUMS = (0, 1, 8, 9, 25, 46, 62, 69)
_CELLS = tuple(place for place in range(RACE_CELLS) if place not in _SUMS)


@dataclass(frozen=True, eq=False)
class RedistrictingTables:
    """Persons of each block by voting age (no, yes), Hispanic origin (no, yes) and race, in the order of the header."""

    blocks: TextColumns
    persons: NDArray[np.int64] = field(repr=False)  # shape (blocks, 2, 2, 63)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The code of each block, 15 digits."""
        return self.blocks.codes(None)


def read_header(file: Path, what: str = "geographic header") -> TextColumns:
    """The blocks of a geographic header: a code list with the columns of the header that any block fills in.

    The first column, GEOCODE, is the code of the block; the others say which county, district or precinct it is in.
    """
    content = read_bytes(file, largest=LARGEST_FILE, what=what)
    level, code, number = (HEADER.index(name) for name in ("SUMLEV", "GEOCODE", "LOGRECNO"))
    parts = tuple(HEADER.index(name) for name in ("STATE", "COUNTY", "TRACT", "BLOCK"))
    seen: dict[str, int] = {}
    blocks, lines = [], []
    for line, row in _records(file, content, len(HEADER)):
        if not (len(row[level]) == 3 and row[level].isdigit()):
            raise odd_record(file, line, "its summary level is no number of three digits", "SUMLEV")
        if not row[number].isdigit():
            raise odd_record(file, line, "its logical record number is no whole number", "LOGRECNO")
        if row[number] in seen:
            raise odd_record(file, line, f"line {seen[row[number]]} has the same logical record number", "LOGRECNO")
        seen[row[number]] = line
        if row[level] != BLOCK:
            continue
        if not (len(row[code]) == BLOCK_DIGITS and row[code].isdigit()):
            raise odd_record(file, line, f"the code of a block has {BLOCK_DIGITS} digits", "GEOCODE")
        if row[code] != "".join(row[place] for place in parts):
            raise odd_record(file, line, "it is not its state, county, tract and block, one after the other", "GEOCODE")
        blocks.append(row)
        lines.append(line)
    if not blocks:
        raise InvalidFile(
            f"the {what} '{file.name}' has no blocks",
            why=f"no line has the summary level {BLOCK}",
            instead="take the state's whole file of redistricting data",
            where=Place(str(file)),
        )
    columns = dict(zip(HEADER, zip(*blocks, strict=True), strict=True))
    filled = {name: values for name, values in columns.items() if name == "GEOCODE" or any(values)}
    found = TextColumns(
        file, {"GEOCODE": filled.pop("GEOCODE")} | filled, tuple(lines), hashlib.sha256(content).hexdigest()
    )
    found.codes(None)
    return found


def read_tables(header: Path) -> RedistrictingTables:
    """The tables P1 to P4 of every block, from a geographic header and the first two segments beside it.

    From them follow persons by voting age, Hispanic origin and race: under 18 is all less 18 and over, Hispanic of a
    race is all of it less not Hispanic. Sums that do not hold are refused, with the line on which they stand.
    """
    blocks = read_header(header)
    numbers = blocks.column("LOGRECNO")
    by_age = []
    for segment in (1, 2):
        file = segment_beside(header, segment)
        cells, lines = _segment(file, segment, numbers, header)
        race, origin = cells[:, :RACE_CELLS], cells[:, RACE_CELLS : RACE_CELLS + ORIGIN_CELLS]
        _check_sums(file, lines, race, f"P{2 * segment - 1}")
        _check_sums(file, lines, origin[:, 2:], f"P{2 * segment}")
        _check(file, lines, origin[:, 0] == origin[:, 1] + origin[:, 2], f"P{2 * segment}: Hispanic and not Hispanic")
        _check(file, lines, origin[:, 0] == race[:, 0], f"P{2 * segment - 1} and P{2 * segment}: the total")
        everybody, others = race[:, _CELLS], origin[:, 2:][:, _CELLS]
        _check(file, lines, np.all(others <= everybody, axis=1), f"P{2 * segment}: not Hispanic, and all")
        by_age.append(np.stack([others, everybody - others], axis=1))
    everybody, adults = by_age
    _check(file, lines, np.all(adults <= everybody, axis=(1, 2)), "P3 and P4: 18 years and over, and all")
    population = np.array([int(text) if text.isdigit() else -1 for text in blocks.column("POP100")])
    _check(header, blocks.lines, population == everybody.sum(axis=(1, 2)), "POP100 and table P1: the population")
    return RedistrictingTables(blocks, np.stack([everybody - adults, adults], axis=1))


def segment_beside(header: Path, segment: int) -> Path:
    """Where a segment lies beside the header: `ri000012020.pl` beside `rigeo2020.pl`."""
    state, _, rest = header.name.partition("geo")
    return header.with_name(f"{state}{segment:05}{rest}")


def header_lines(places: Iterable[Mapping[str, str]]) -> str:
    """A geographic header with these places, as `read_header` reads it; what a place does not name is empty."""
    return "".join("|".join(place.get(name, "") for name in HEADER) + "\n" for place in places)


def table_lines(state: str, segment: int, numbers: Sequence[int], persons: NDArray[np.int64]) -> str:
    """The first or the second segment of tables, from persons by Hispanic origin and race; shape (places, 2, 63)."""
    everybody, others = persons.sum(axis=1), persons[:, 0]
    hispanic = persons[:, 1].sum(axis=1)[:, None]
    race = _with_sums(everybody)
    cells = [race, race[:, :1], hispanic, _with_sums(others)]
    if segment == 2:
        cells.append(np.zeros((len(persons), UNIT_CELLS), dtype=np.int64))
    begins = f"{FILE_ID}|{state}|000|{segment:02}"
    rows = zip(numbers, np.concatenate(cells, axis=1).tolist(), strict=True)
    return "".join(f"{begins}|{number}|{'|'.join(map(str, row))}\n" for number, row in rows)


def odd_record(file: Path, line: int, why: str, name: str | None = None) -> InvalidFile:
    """A record that is not as the layout has it; it is public, and never left out in silence."""
    return InvalidFile(
        f"a record of '{file.name}' cannot be read" + (f": its {name}" if name else ""),
        why=why,
        instead="take the file again from where it was published; nothing of it may be missing or changed",
        where=Place(str(file), line),
    )


def _records(file: Path, content: bytes, width: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file, with as many values as the layout has; names of places in Latin-1 are read too."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # as the Bureau wrote names such as Doña Ana County
    for line, record in enumerate(text.splitlines(), start=1):
        values = record.split("|")
        if len(values) != width:
            why = f"it has {len(values)} values between bars, and the layout of 2020 has {width}"
            raise odd_record(file, line, why)
        if values[0] != FILE_ID:
            raise odd_record(file, line, f"it is not '{FILE_ID}'", "FILEID")
        yield line, [sys.intern(value) for value in values]


def _segment(
    file: Path, segment: int, numbers: tuple[str, ...], header: Path
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """The numbers of a segment for some logical record numbers, in their order, and the line of each."""
    widths, wanted = SEGMENTS[segment], {number: place for place, number in enumerate(numbers)}
    width = len(LINKS) + sum(widths)
    cells = np.zeros((len(wanted), sum(widths)), dtype=np.int64)
    lines = [0] * len(wanted)
    content = read_bytes(file, largest=LARGEST_FILE, what=f"segment {segment} of tables")
    for line, row in _records(file, content, width):
        if row[3].lstrip("0") != str(segment):
            raise odd_record(file, line, f"it is not that of segment {segment}", "CIFSN")
        place = wanted.get(row[4])
        if place is None:
            continue
        if lines[place]:
            raise odd_record(file, line, f"line {lines[place]} has the same logical record number", "LOGRECNO")
        lines[place] = line
        for cell, text in enumerate(row[len(LINKS) :]):
            if not (text.isascii() and text.isdigit()):
                raise odd_record(file, line, f"value {len(LINKS) + cell + 1} is no whole number of persons")
            cells[place, cell] = int(text)
    if 0 in lines:
        number = numbers[lines.index(0)]
        raise InvalidFile(
            f"'{file.name}' has no record {number}",
            why=f"'{header.name}' has a block with this logical record number",
            instead="take header and segments of one state and one census",
            where=Place(str(file)),
        )
    return cells, tuple(lines)


def _with_sums(races: NDArray[np.int64]) -> NDArray[np.int64]:
    """Persons of 63 races as a table prints them, with its sums; shape (places, 71)."""
    ends = np.cumsum((0, *_OF_SIZE))
    of_size = [races[:, a:b].sum(axis=1) for a, b in pairwise(ends)]
    several = sum(of_size[1:], start=np.zeros(len(races), dtype=np.int64))
    found = np.zeros((len(races), RACE_CELLS), dtype=np.int64)
    found[:, _CELLS] = races
    found[:, _SUMS] = np.stack([of_size[0] + several, of_size[0], several, *of_size[1:]], axis=1)
    return found


def _check_sums(file: Path, lines: tuple[int, ...], cells: NDArray[np.int64], table: str) -> None:
    _check(file, lines, np.all(_with_sums(cells[:, _CELLS]) == cells, axis=1), f"{table}: its sums")


def _check(file: Path, lines: tuple[int, ...], holds: NDArray[np.bool_], what: str) -> None:
    if not holds.all():
        raise odd_record(file, lines[int(np.argmin(holds))], f"numbers do not fit together ({what})")
