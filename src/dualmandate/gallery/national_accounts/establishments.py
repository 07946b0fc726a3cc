"""An economic census of 40,000 establishments that do not exist, always the same: industry, county, product, payroll.

Payroll is skewed, by a lognormal law that is assumed: most pay a few hundred thousand dollars a year,
and one in a thousand pays as much as hundreds of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 2017  # The seed is public: nobody pays these wages.
ESTABLISHMENTS = 40_000
SECTORS = {
    "11": "Agriculture",
    "23": "Construction",
    "31": "Manufacturing",
    "42": "Wholesale trade",
    "44": "Retail trade",
    "48": "Transportation",
    "52": "Finance",
    "62": "Health care",
}
INDUSTRIES_A_SECTOR = 4
STATES, COUNTIES_A_STATE = 4, 4
PRODUCTS = ("goods", "services", "resale")
MEDIAN, SPREAD = 300.0, 1.6  # thousand USD a year, and the standard deviation of the logarithm


def industries() -> tuple[tuple[str, str, str], ...]:
    """Code, sector and label of each industry."""
    return tuple(
        (f"{sector}{number}", sector, f"{name}, group {number}")
        for sector, name in SECTORS.items()
        for number in range(1, INDUSTRIES_A_SECTOR + 1)
    )


def counties() -> tuple[tuple[str, str], ...]:
    """Code and state of each county."""
    return tuple(
        (f"{state:02}{2 * number + 1:03}", f"{state:02}")
        for state in range(1, STATES + 1)
        for number in range(COUNTIES_A_STATE)
    )


def code_lists() -> dict[str, str]:
    """Industries and counties as code lists."""
    listed = ["industry,sector,label", *(",".join(f'"{each}"' for each in row) for row in industries())]
    placed = ["county,state", *(",".join(row) for row in counties())]
    return {"industries.csv": "\n".join(listed) + "\n", "counties.csv": "\n".join(placed) + "\n"}


@cache
def establishments() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each establishment belongs (rows: industry, county, product), and its payroll in thousand USD."""
    draws = np.random.default_rng(SEED)
    sizes = len(industries()), len(counties()), len(PRODUCTS)
    shares = [draws.dirichlet(np.full(size, 3.0)) for size in sizes[:2]]
    places = [draws.choice(size, ESTABLISHMENTS, p=share) for size, share in zip(sizes, shares, strict=False)]
    mixes = draws.dirichlet(np.ones(sizes[2]), sizes[0]).cumsum(axis=1)  # industries make one product mostly
    product = (draws.random(ESTABLISHMENTS)[:, None] > mixes[places[0]]).sum(axis=1)
    payroll = np.maximum(np.rint(MEDIAN * np.exp(SPREAD * draws.standard_normal(ESTABLISHMENTS))), 1)
    rows = np.stack([*places, np.minimum(product, sizes[2] - 1)]).astype(np.int64)
    return rows, payroll.astype(np.int64)


def write_establishments(path: Path) -> None:
    """One row an establishment, as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    rows, payroll = establishments()
    levels = [code for code, *_ in industries()], [code for code, _ in counties()], list(PRODUCTS)
    names = "industry", "county", "product"
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(row.astype(np.int32)), pa.array(each))
        for name, row, each in zip(names, rows, levels, strict=True)
    }
    parquet.write_table(pa.table({**columns, "payroll": pa.array(payroll)}), path)
