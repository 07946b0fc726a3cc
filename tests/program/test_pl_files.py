"""Redistricting files: what was written is read, the sums of every table are held, and odd records are named."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dualmandate.errors import InvalidFile
from dualmandate.gallery.redistricting import invented_state
from dualmandate.population.arrays import Integers
from dualmandate.program.pl_files import (
    HEADER,
    RACES,
    header_lines,
    read_header,
    read_tables,
    segment_beside,
    table_lines,
)

TRIALS = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "census_blocks"
PLACE = {
    "FILEID": "PLST",
    "STUSAB": "ZZ",
    "SUMLEV": "750",
    "LOGRECNO": "1",
    "STATE": "99",
    "COUNTY": "001",
    "TRACT": "000100",
    "BLOCK": "1000",
    "GEOCODE": "990010001001000",
    "CD116": "03",
    "POP100": "0",
}
SECOND = PLACE | {"LOGRECNO": "2", "BLOCK": "1001", "GEOCODE": "990010001001001"}
COUNTY = PLACE | {"SUMLEV": "050", "LOGRECNO": "7", "GEOCODE": "99001", "NAME": "Doña Ana County"}


@pytest.fixture
def persons() -> Integers:
    """Two blocks by voting age, Hispanic and race."""
    return np.random.default_rng(1).integers(0, 4, (2, 2, 2, len(RACES)))


@pytest.fixture
def header(tmp_path: Path, persons: Integers) -> Path:
    file = tmp_path / "zzgeo2020.pl"
    totals = persons.sum(axis=(1, 2, 3)).tolist()
    places = [COUNTY, PLACE | {"POP100": str(totals[0])}, SECOND | {"POP100": str(totals[1])}]
    file.write_bytes(header_lines(places).encode("latin-1"))
    for segment, counts in ((1, persons.sum(axis=1)), (2, persons[:, 1])):
        segment_beside(file, segment).write_text(table_lines("ZZ", segment, [1, 2], counts))
    return file


def test_what_was_written_is_read(header: Path, persons: Integers) -> None:
    assert len(HEADER) == 97
    assert segment_beside(header, 1).name == "zz000012020.pl"
    assert [len(line.split("|")) for line in segment_beside(header, 1).read_text().splitlines()] == [149, 149]
    found = read_tables(header)
    assert found.codes == ("990010001001000", "990010001001001")
    assert found.blocks.column("CD116") == ("03", "03")
    assert np.array_equal(found.persons, persons)


def test_tables_by_hand(header: Path) -> None:
    """One adult who is White and Black and not Hispanic: in P1 the cells of two races and of these two."""
    one = np.zeros((2, 2, len(RACES)), dtype=np.int64)
    one[0, 0, RACES.index(("White", "Black"))] = 1
    row = table_lines("ZZ", 1, [1, 2], one).splitlines()[0].split("|")[5:]
    assert [place + 1 for place, cell in enumerate(row[:71]) if cell != "0"] == [1, 9, 10, 11]  # P0010001, 9 to 11
    assert [place + 1 for place, cell in enumerate(row[71:]) if cell != "0"] == [1, 3, 11, 12, 13]  # P0020001, 3, …


def edit(at: int, place: int, value: str) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        rows[at][place] = value

    return change


@pytest.mark.parametrize(
    ("segment", "change", "line", "words"),
    [
        (0, lambda rows: rows[1].pop(), 2, "96 values between bars"),
        (0, edit(1, 0, "SF1"), 2, "FILEID"),
        (0, edit(1, HEADER.index("SUMLEV"), "75"), 2, "SUMLEV"),
        (0, edit(2, HEADER.index("LOGRECNO"), "1"), 3, "line 2 has the same logical record number"),
        (0, edit(2, HEADER.index("LOGRECNO"), "one"), 3, "LOGRECNO"),
        (0, edit(1, HEADER.index("GEOCODE"), "99001000100100"), 2, "15 digits"),
        (0, edit(1, HEADER.index("TRACT"), "000200"), 2, "state, county, tract and block"),
        (0, edit(2, HEADER.index("POP100"), "1"), 3, "POP100"),
        (1, edit(1, 3, "02"), 2, "CIFSN"),
        (1, edit(1, 40, "-1"), 2, "no whole number"),
        (1, edit(1, 40, "٣"), 2, "no whole number"),
        (1, edit(1, 4, "1"), 2, "line 1 has the same"),
        (1, edit(1, 4, "9"), None, "no record 2"),
        (1, edit(0, 5, "100000"), 1, "P1: its sums"),
        (1, edit(0, 5 + 71 + 1, "0"), 1, "Hispanic and not Hispanic"),
        (2, edit(0, 5 + 20, "900"), 1, "P3: its sums"),
    ],
)
def test_a_malformed_record_is_refused_with_its_line(
    header: Path, segment: int, change: Callable[[list[list[str]]], None], line: int | None, words: str
) -> None:
    file = segment_beside(header, segment) if segment else header
    rows = [row.split("|") for row in file.read_text(encoding="latin-1").splitlines()]
    change(rows)
    file.write_text("".join("|".join(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(InvalidFile) as caught:
        read_tables(header)
    where = caught.value.where
    assert where is not None
    assert (where.file, where.line) == (str(file), line)
    assert words in f"{caught.value.what}; {caught.value.why}"


def test_more_adults_than_persons_are_refused(header: Path, persons: Integers) -> None:
    adults = persons[:, 1].copy()
    adults[1, 0, 0] += persons[1, 0, 0, 0] + 1
    segment_beside(header, 2).write_text(table_lines("ZZ", 2, [1, 2], adults))
    with pytest.raises(InvalidFile, match="cannot be read") as caught:
        read_tables(header)
    assert "18 years and over" in caught.value.why


def test_more_of_a_race_that_are_not_hispanic_than_of_it_in_all_are_refused(header: Path, persons: Integers) -> None:
    everybody = persons.sum(axis=1)
    everybody[0, :, 5] += np.array([3, -3 - everybody[0, 1, 5]])  # fewer than none are Hispanic, and sums hold
    everybody[0, 1, 6] += 3 + persons.sum(axis=1)[0, 1, 5]
    segment_beside(header, 1).write_text(table_lines("ZZ", 1, [1, 2], everybody))
    with pytest.raises(InvalidFile, match="cannot be read") as caught:
        read_tables(header)
    assert "P2: not Hispanic, and all" in caught.value.why


def test_a_file_without_blocks_and_a_missing_segment_are_refused(header: Path, tmp_path: Path) -> None:
    segment_beside(header, 2).unlink()
    with pytest.raises(InvalidFile, match="segment 2 of tables"):
        read_tables(header)
    county = tmp_path / "county.pl"
    county.write_text(header_lines([COUNTY]), encoding="utf-8")
    with pytest.raises(InvalidFile, match="has no blocks"):
        read_header(county)


def test_files_of_the_census_bureau_hold_all_their_sums(tmp_path: Path) -> None:
    """Its trial of 2018 in Providence County where it is at hand, else the last census of the invented state."""
    if not TRIALS.is_dir():
        state = invented_state()
        for name, text in state.public_files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert np.array_equal(read_tables(tmp_path / "zzgeo2020.pl").persons, state.before)
        return
    for file in TRIALS.glob("*.pl.gz"):
        with gzip.open(file) as packed, (tmp_path / file.stem).open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    found = read_tables(tmp_path / "rigeo2018_2020Style.pl")
    assert len(found.codes) == 569
    assert found.persons.sum() == 29_225
    assert found.persons.sum(axis=(0, 3)).tolist() == [[2_352, 4_160], [10_126, 12_587]]
    assert {code[:5] for code in found.codes} == {"44007"}  # Providence County
