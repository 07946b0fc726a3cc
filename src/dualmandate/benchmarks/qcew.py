"""Employment and wages of New Jersey's counties by ownership and industry in 2016, with suppressed cells, as published.

County totals are made of ownerships, these of goods and services, supersectors, sectors, and industries of 3 to 6
digits: one tree a county and quarter. Where the file is not at hand, one of the same shape is generated.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.suppression.cells import LinkedTables, tree_relations
from dualmandate.audit.suppression.series import Series

FILE = Path("qcew", "nj_counties_2016_quarterly.csv.gz")
VARIABLES = ("month1_emplvl", "month2_emplvl", "month3_emplvl", "total_qtrly_wages")
TITLES = ("employment in the first month", "employment in the second month", "employment in the third month", "wages")
QUARTERS = 4
SUPERSECTORS = {  # the sectors of each, by the Bureau of Labor Statistics
    "1011": ("11", "21"),
    "1012": ("23",),
    "1013": ("31-33",),
    "1021": ("42", "44-45", "48-49", "22"),
    "1022": ("51",),
    "1023": ("52", "53"),
    "1024": ("54", "55", "56"),
    "1025": ("61", "62"),
    "1026": ("71", "72"),
    "1027": ("81",),
    "1028": ("92",),
    "1029": ("99",),
}
SECTORS = {sector: supersector for supersector, sectors in SUPERSECTORS.items() for sector in sectors}
RANGES = {str(two): span for span in ("31-33", "44-45", "48-49") for two in range(int(span[:2]), int(span[3:]) + 1)}
ALL = "10"
SUPPRESSED = "(D)"


def parent_industry(code: str) -> str | None:
    """The industry that another is a part of; None for all industries together."""
    if code == ALL:
        return None
    if code in ("101", "102"):
        return ALL
    if code in SUPERSECTORS:
        return code[:3]
    if code in SECTORS:
        return SECTORS[code]
    return RANGES.get(code[:2], code[:2]) if len(code) == 3 else code[:-1]


@dataclass(frozen=True, eq=False)
class Quarterly:
    """Cells (county × ownership × industry) in four quarters; a cell that is not listed in a quarter is 0 there."""

    keys: tuple[tuple[str, str, str], ...] = field(repr=False)
    suppressed: NDArray[np.bool_] = field(repr=False)  # (cells, quarters)
    establishments: NDArray[np.int64] = field(repr=False)
    values: dict[str, NDArray[np.int64]] = field(repr=False)

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """The cell that each is a part of; −1 for county totals."""
        place = {key: i for i, key in enumerate(self.keys)}
        found = np.full(len(self.keys), -1, dtype=np.int64)
        for i, (county, ownership, industry) in enumerate(self.keys):
            if ownership != "0":
                above = parent_industry(industry)
                parent = (county, "0", ALL) if above is None else (county, ownership, above)
                found[i] = place.get(parent, -1)
        return found

    def linked(self, variable: str, quarter: int) -> tuple[LinkedTables, int]:
        """One variable in one quarter, and how many totals were left out because their published parts differ."""
        values, hidden = self.values[variable][:, quarter], self.suppressed[:, quarter]
        parents = self.parents.copy()
        relations = tree_relations(parents)
        counts = abs(relations.matrix) @ hidden.astype(np.int64)
        wrong = (counts == 0) & (relations.matrix @ values != 0)
        totals = relations.cells[relations.starts[1:] - 1][wrong]
        parents[np.isin(parents, totals)] = -1
        return LinkedTables(tree_relations(parents), values, hidden), len(totals)

    def series(self, variable: str) -> Series:
        """One variable over the year."""
        return Series(self.parents, self.values[variable], self.suppressed, self.establishments.astype(np.float64))


def read(file: Path, counties: int | None = None) -> Quarterly:
    """The published file, or the first counties of it."""
    import duckdb

    columns = ", ".join(("disclosure_code", "qtrly_estabs_count", *VARIABLES))
    rows = duckdb.execute(
        f"""with published as (from read_csv(?, all_varchar = true))
        select area_fips, own_code, industry_code, qtr, {columns} from published
        where area_fips in (select distinct area_fips from published order by 1 limit ?)""",
        [str(file), counties],
    ).fetchall()
    keys = tuple(sorted({row[:3] for row in rows}))
    place = {key: i for i, key in enumerate(keys)}
    suppressed = np.zeros((len(keys), QUARTERS), dtype=np.bool_)
    numbers = np.zeros((1 + len(VARIABLES), len(keys), QUARTERS), dtype=np.int64)
    for row in rows:
        i, quarter = place[row[:3]], int(row[3]) - 1
        suppressed[i, quarter] = row[4] == "N"
        numbers[:, i, quarter] = [int(each) for each in row[5:]]
    return Quarterly(keys, suppressed, numbers[0], dict(zip(VARIABLES, numbers[1:], strict=True)))


def held_out(quarterly: Quarterly, *, count: int, seed: int) -> tuple[Quarterly, NDArray[np.int64]]:
    """The same tables with some published cells suppressed too, and which: (cell, quarter) each; shape (count, 2).

    Only cells that a table leaves open are taken: another part of the same total is suppressed in that quarter.
    """
    parents, hidden = quarterly.parents, quarterly.suppressed
    open_totals = np.zeros_like(hidden)
    inside = parents >= 0
    for quarter in range(QUARTERS):
        open_totals[np.unique(parents[inside & hidden[:, quarter]]), quarter] = True
    leaves = np.ones(len(parents), dtype=np.bool_)
    leaves[parents[inside]] = False
    positive = quarterly.values[VARIABLES[2]] > 0
    open_now = open_totals[np.maximum(parents, 0)] & (inside & leaves)[:, None]
    candidates = np.argwhere(~hidden & open_now & positive)
    chosen = np.random.default_rng(seed).permutation(candidates)[:count]
    marked = hidden.copy()
    marked[chosen[:, 0], chosen[:, 1]] = True
    return Quarterly(quarterly.keys, marked, quarterly.establishments, quarterly.values), chosen


def write_folder(quarterly: Quarterly, folder: Path, variables: Sequence[str] = VARIABLES) -> Path:
    """The same tables as a folder that `dualmandate audit` reads: tables.toml, and one CSV file for each variable."""
    folder.mkdir(parents=True, exist_ok=True)
    head = '[tables]\nschema = 1\nname   = "employment and wages by county and industry"\nplace  = "county"\n'
    (folder / "tables.toml").write_text(head + "".join(_table_keys(each) for each in variables), encoding="utf-8")
    names = [f"{ownership} {industry}" for _, ownership, industry in quarterly.keys]
    above = ["" if parent < 0 else names[parent] for parent in quarterly.parents.tolist()]
    for variable in variables:
        values = quarterly.values[variable]
        with (folder / f"{variable}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["county", "industry", "part_of", "quarter", "establishments", "value"])
            for i, (county, _, _) in enumerate(quarterly.keys):
                for quarter in range(QUARTERS):
                    value = SUPPRESSED if quarterly.suppressed[i, quarter] else values[i, quarter]
                    size = quarterly.establishments[i, quarter]
                    rows.writerow([county, names[i], above[i], quarter + 1, size, value])
    return folder


def _table_keys(variable: str) -> str:
    return f"""
[[magnitudes]]
name   = "{TITLES[VARIABLES.index(variable)]}"
file   = "{variable}.csv"
cell   = "industry"
parent = "part_of"
period = "quarter"
size   = "establishments"
"""


def file_at_hand() -> Path | None:
    """The published file, where the environment points to real data."""
    folder = os.environ.get("DUALMANDATE_DATA")
    found = Path(folder) / FILE if folder else None
    return found if found is not None and found.is_file() else None


def at_hand(counties: int | None = None) -> tuple[Quarterly, str]:
    """Some counties of the published file, all where not stated, or generated ones; and which these are, in words."""
    file = file_at_hand()
    if file is None:
        made = generated() if counties is None else generated(counties)
        return made, "generated counties"
    places = "New Jersey's counties" if counties is None else f"{counties} of New Jersey's counties"
    return read(file, counties), f"{places} 2016"


def generated(counties: int = 3, *, seed: int = 2016) -> Quarterly:
    """A stand-in: private industries under two ownerships, small cells suppressed and one more in the same total."""
    generator = np.random.default_rng(seed)
    keys: list[tuple[str, str, str]] = []
    for fips in (f"34{2 * county + 1:03}" for county in range(counties)):
        codes = {"101", "102", ALL, *SUPERSECTORS, *SECTORS}
        four = [f"{sector[:2]}{third}{fourth}" for sector in SECTORS for third in "123" for fourth in "1234"]
        codes.update(four, (code[:3] for code in four))
        keys += [(fips, "0", ALL), *((fips, ownership, code) for ownership in ("1", "5") for code in codes)]
    keys.sort()
    empty = np.zeros((len(keys), QUARTERS), dtype=np.int64)
    shell = Quarterly(tuple(keys), empty.astype(np.bool_), empty, {})
    parents = shell.parents
    leaves_at = np.setdiff1d(np.arange(len(keys)), parents)
    establishments, values = empty.copy(), {name: empty.copy() for name in VARIABLES}
    establishments[leaves_at] = 1 + generator.poisson(generator.lognormal(1.0, 1.2, len(leaves_at)))[:, None]
    size = generator.lognormal(2.5, 1.0, len(leaves_at))[:, None] * establishments[leaves_at]
    opened = generator.random((len(leaves_at), QUARTERS)) < 0.1  # so that what is suppressed changes over the year
    establishments[leaves_at] += opened
    for name in VARIABLES:
        drift = np.exp(np.cumsum(generator.normal(0, 0.04, (len(leaves_at), QUARTERS)), axis=1))
        values[name][leaves_at] = np.rint(size * drift * (12_000 if name == VARIABLES[-1] else 1))
    for table in (establishments, *values.values()):
        _add_up(table, parents)
    return Quarterly(tuple(keys), _suppressed(establishments, parents), establishments, values)


def _add_up(table: NDArray[np.int64], parents: NDArray[np.int64]) -> None:
    depth = np.zeros(len(parents), dtype=np.int64)
    above = parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[np.maximum(above, 0)], -1)
    for level in range(int(depth.max()), 0, -1):
        cells = np.flatnonzero(depth == level)
        np.add.at(table, parents[cells], table[cells])


def _suppressed(establishments: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Cells of fewer than three establishments, and the next smallest part of a total that would have only one."""
    hidden = (establishments > 0) & (establishments < 3)
    for total in np.unique(parents[parents >= 0])[::-1]:
        parts = np.flatnonzero(parents == total)
        for quarter in range(QUARTERS):
            own = hidden[parts, quarter]
            if own.sum() == 1 and not hidden[total, quarter]:
                shown = np.flatnonzero(~own)
                if shown.size:
                    hidden[parts[shown[np.argmin(establishments[parts[shown], quarter])]], quarter] = True
    return hidden
