"""A state of 3,000 census blocks that does not exist, always the same: its last census, its lines, its people today.

The last census is public and comes as redistricting files do: a geographic header with the districts that were drawn
then, and segments of tables. The people of this census are a confidential file that harms nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.program.pl_files import ALONE, RACES, header_lines, table_lines

SEED = 2020  # The seed is public: nobody lives here.
STATE, FIPS, NAME = "ZZ", "99", "Invented State"
COUNTIES, TRACTS, GROUPS, BLOCKS = 4, 32, 120, 3_000
EMPTY = 0.3  # of blocks nobody lives in, as in Rhode Island
PERSONS, SPREAD = 35.5, 1.0  # median of a populated block, and the standard deviation of its logarithm
MIX = (0.70, 0.10, 0.006, 0.04, 0.001, 0.008, 0.025, 0.12)  # of the state: each race alone, several; Hispanic
LIKENESS = 12.0  # of a tract to the state: the smaller, the more people live apart
ADULTS = (0.81, 0.72, 0.72, 0.76, 0.70, 0.70, 0.55, 0.66)
SEVERAL = 0.85 ** np.arange(len(RACES) - len(ALONE))  # combinations of races: the first are the usual ones
HISPANIC_RACES = (0.43, 0.06, 0.02, 0.005, 0.002, 0.33)  # of each race alone; the rest names several
STAYED, CAME = 0.86, 0.20  # of the persons of the last census, and how many new ones there are to each
DISTRICTS = 8
LETTERS = "WBIAPO"  # a race is written by its names' letters


@dataclass(frozen=True, eq=False)
class InventedState:
    """Blocks with their codes and districts, and persons at the last census and today."""

    codes: tuple[str, ...]
    districts: tuple[str, ...]  # of each block, as drawn after the last census
    before: NDArray[np.int64]  # persons by block, voting age, Hispanic and race; shape (blocks, 2, 2, 63)
    today: NDArray[np.int64]

    @cached_property
    def public_files(self) -> dict[str, str]:
        """What the last census published, as redistricting files."""
        places = [
            _place(number, code, district, persons)
            for number, (code, district, persons) in enumerate(
                zip(self.codes, self.districts, self.before.sum(axis=(1, 2, 3)).tolist(), strict=True), start=1
            )
        ]
        numbers = list(range(1, len(places) + 1))
        everybody, adults = self.before.sum(axis=1), self.before[:, 1]
        return {
            "zzgeo2020.pl": header_lines(places),
            "zz000012020.pl": table_lines(STATE, 1, numbers, everybody),
            "zz000022020.pl": table_lines(STATE, 2, numbers, adults),
            "races.csv": race_list(),
        }

    def write_persons(self, path: Path) -> None:
        """One row a person of today, in an order that tells nothing, as Parquet."""
        import pyarrow as pa
        from pyarrow import parquet

        places = np.nonzero(self.today)
        rows = np.stack([np.repeat(place, self.today[places]) for place in places])
        rows = rows[:, np.random.default_rng(SEED).permutation(rows.shape[1])]
        levels = self.codes, ("no", "yes"), ("no", "yes"), race_codes()
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.array(row.astype(np.int32)), pa.array(each))
            for name, row, each in zip(("block", "voting_age", "hispanic", "race"), rows, levels, strict=True)
        }
        parquet.write_table(pa.table(columns), path)


def invented_state() -> InventedState:
    """The same state every time."""
    draws = np.random.default_rng(SEED)
    group = np.arange(BLOCKS) * GROUPS // BLOCKS
    tract = group * TRACTS // GROUPS
    county = tract * COUNTIES // TRACTS
    in_group = np.arange(BLOCKS) - np.searchsorted(group, group)
    codes = tuple(
        f"{FIPS}{2 * c + 1:03}{100 * (t + 1):06}{g + 1}{n:03}"
        for c, t, g, n in zip(county, tract, group - group[np.searchsorted(tract, tract)], in_group, strict=True)
    )
    sizes = PERSONS * np.exp(SPREAD * draws.standard_normal(BLOCKS)) * (draws.random(BLOCKS) > EMPTY)
    shares = draws.dirichlet(LIKENESS * np.array(MIX), TRACTS)[tract]
    before = _by_race(draws, draws.poisson(sizes[:, None] * shares))
    growth = draws.gamma(16.0, 1 / 16.0, TRACTS)[tract]  # tracts grow apart; the mean is as many as came
    came = _by_race(draws, draws.poisson(CAME * (growth * sizes)[:, None] * shares))
    today = draws.binomial(before, STAYED) + came
    return InventedState(codes, _districts(before.sum(axis=(1, 2, 3))), before, today)


def race_codes() -> tuple[str, ...]:
    """63 races by the letters of their names: W, B, …, WB, …, WBIAPO."""
    letter = dict(zip(ALONE, LETTERS, strict=True))
    return tuple("".join(letter[name] for name in names) for names in RACES)


def race_list() -> str:
    """The races as a code list, with their labels and whether they are one or several."""
    rows = [
        f"{code},{' and '.join(names)},{'one race' if len(names) == 1 else 'two or more races'}"
        for code, names in zip(race_codes(), RACES, strict=True)
    ]
    return "\n".join(["race,label,races", *rows]) + "\n"


def _by_race(draws: np.random.Generator, persons: NDArray[np.int64]) -> NDArray[np.int64]:
    """From six races alone, several and Hispanic to voting age, Hispanic and 63 races."""
    adults = draws.binomial(persons, np.array(ADULTS))
    several = SEVERAL / SEVERAL.sum()
    hispanic = np.concatenate([HISPANIC_RACES, (1 - sum(HISPANIC_RACES)) * several])
    found = np.zeros((len(persons), 2, 2, len(RACES)), dtype=np.int64)
    for age, counts in enumerate((persons - adults, adults)):
        found[:, age, 0, : len(ALONE)] = counts[:, : len(ALONE)]
        found[:, age, 0, len(ALONE) :] = draws.multinomial(counts[:, -2], several)
        found[:, age, 1] = draws.multinomial(counts[:, -1], hispanic)
    return found


def _districts(persons: NDArray[np.int64]) -> tuple[str, ...]:
    """Districts of as equal a population as whole blocks in their order allow."""
    middle = np.cumsum(persons) - persons / 2
    number = np.minimum((middle * DISTRICTS / max(int(persons.sum()), 1)).astype(np.int64), DISTRICTS - 1)
    return tuple(f"{each + 1:02}" for each in number)


def _place(number: int, code: str, district: str, persons: int) -> dict[str, str]:
    """A block as the header has it."""
    return {
        "FILEID": "PLST",
        "STUSAB": STATE,
        "SUMLEV": "750",
        "GEOVAR": "00",
        "GEOCOMP": "00",
        "CHARITER": "000",
        "CIFSN": "00",
        "LOGRECNO": str(number),
        "GEOID": f"7500000US{code}",
        "GEOCODE": code,
        "STATE": code[:2],
        "COUNTY": code[2:5],
        "TRACT": code[5:11],
        "BLKGRP": code[11],
        "BLOCK": code[11:],
        "CD116": district,
        "NAME": f"Block {code[11:]}",
        "POP100": str(persons),
    }
