"""Poverty estimates and official Title I grants of DUALMANDATE_DATA, joined district by district."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dualmandate.gallery.grants import Grants, SchoolDistricts, Statute, TitleI, read_statute
from dualmandate.population.arrays import Floats

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "titlei"
# Official grants of New York and Hawaii are by county; three districts have other codes there.
NEW_YORK, HAWAII = "3620580", "1500030"
OTHER_CODES = {"2601103": "2612000", "4110890": "4110920", "4111450": "4111470"}
COUNTIES = {f"36820{county:02}": NEW_YORK for county in (5, 24, 47, 61, 81, 85)}


@dataclass(frozen=True)
class Fit:
    """Grants beside official ones, both brought to the same total."""

    districts: int
    official: float  # USD
    correlation: float
    displaced: float  # ½·Σ|A − a|/Σa
    median_deviation: float


def is_real() -> bool:
    return DATA.is_dir()


def _rows(name: str) -> list[dict[str, str]]:
    path = DATA / name
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def _expenditure() -> tuple[dict[str, float], float]:
    spent = {row["state"].lower(): float(row["exp_per_pupil"]) for row in _rows("state_per_pupil_expenditure_2018.csv")}
    codes = {row["Postal Code"]: row["Name"].lower() for row in _rows("fips_codes.csv")}
    national = spent["united states"]
    by_state = {code: spent[name] for code, name in codes.items() if name in spent}
    # 20 U.S.C. 6333(a)(4): Puerto Rico counts with the lower bound, which anything up to 80 % of the nation's gives.
    return by_state | {"PR": 0.5 * national}, national


@cache
def districts(poverty_year: int) -> SchoolDistricts:
    rows = [row for row in _rows("saipe_districts_2015_2020.csv.gz") if row["year"] == str(poverty_year)]
    expenditure, national = _expenditure()
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("poverty_5_17", "pop_5_17", "pop_total")}
    return SchoolDistricts(
        [row["leaid"] for row in rows],
        [row["state"] for row in rows],
        columns["poverty_5_17"],
        columns["pop_5_17"],
        expenditure,
        national,
        residents=columns["pop_total"],
    )


def chain(last: int, statute: Statute | None = None) -> tuple[TitleI, Grants]:
    """The grants of a fiscal year, with floors from those of the years before."""
    law, before = statute or read_statute(), None
    for year in range(2017, last + 1):
        formulas = TitleI(districts(int(law.year(year).poverty_year)), year, law, before)
        before = formulas.grants()
    assert before is not None
    return formulas, before


@cache
def official() -> dict[str, float]:
    """Grants of fiscal year 2019 by district, USD, without Puerto Rico and what is for neglected children."""
    sums: dict[str, float] = {}
    for row in _rows("title1_allocations_fy2019.csv.gz"):
        code = row["leaid"]
        if code.endswith("99999") or code.startswith("43"):
            continue
        code = HAWAII if code.startswith("1500") else COUNTIES.get(code, OTHER_CODES.get(code, code))
        sums[code] = sums.get(code, 0.0) + float(row["allocation"])
    return sums


def fit(codes: tuple[str, ...], amounts: Floats, without: tuple[str, ...] = ()) -> Fit:
    """How near grants are to the official ones of fiscal year 2019."""
    sums = official()
    joined = [place for place, code in enumerate(codes) if code in sums and code not in without]
    paid = np.array([sums[codes[place]] for place in joined])
    return compare(amounts[joined], paid)


def compare(amounts: Floats, paid: Floats) -> Fit:
    """Grants beside others of the same districts, brought to their total."""
    ours = amounts * (paid.sum() / amounts.sum())
    off, some = np.abs(ours - paid), paid > 0
    return Fit(
        paid.size,
        float(paid.sum()),
        float(np.corrcoef(ours, paid)[0, 1]),
        float(off.sum() / paid.sum() / 2),
        float(np.median(off[some] / paid[some])),
    )
