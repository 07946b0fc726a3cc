"""Thirteen thousand school districts and 46 million children that do not exist, always the same.

Codes and names of districts are made from word lists; the children are a confidential file that harms nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STATES = 50
DISTRICTS_PER_STATE = 260
_FIRST = (
    "Alder", "Amber", "Apple", "Ash", "Aspen", "Badger", "Bear", "Beech", "Birch", "Briar", "Cardinal", "Cedar",
    "Cherry", "Chestnut", "Clover", "Copper", "Cottonwood", "Crane", "Crystal", "Cypress", "Deer", "Dogwood", "Eagle",
    "Elder", "Elk", "Elm", "Falcon", "Fern", "Fir", "Flint", "Fox", "Granite", "Hawk", "Hazel", "Hemlock", "Heron",
    "Hickory", "Holly", "Iron", "Juniper", "Larch", "Laurel", "Linden", "Magnolia", "Maple", "Marble", "Mulberry",
    "Oak", "Olive", "Orchard", "Otter", "Pecan", "Pine", "Plum", "Poplar", "Quail", "Redwood", "Robin", "Sage",
    "Silver", "Spruce", "Sumac", "Swan", "Sycamore", "Willow",
)  # fmt: skip
_SECOND = (
    "Bay", "Bend", "Bluff", "Bridge", "Brook", "Canyon", "Creek", "Crossing", "Falls", "Field", "Forest", "Glen",
    "Grove", "Harbor", "Hill", "Lake", "Meadow", "Point", "Ridge", "Valley",
)  # fmt: skip
_KIND = (
    "City", "Community", "Consolidated", "County", "Elementary", "Independent", "Joint", "Regional", "Unified", "Union",
)  # fmt: skip
_STRIDE = 4_801  # It shares no factor with 13,000, so every name comes up once, and neighbors in the list differ.
CHILDREN = 46_000_000
SEED = 2019  # The seed is public: nobody is in this file.
SPREAD = 1.2  # The logarithm of a district's size has this standard deviation.
ELIGIBLE = (2.0, 8.0)  # Shares of eligible children follow this beta law.
DISTRICTS_A_GROUP = 500  # Rows of this many districts are written together.


def districts() -> Iterator[tuple[str, str, str]]:
    """Code (state, then district: seven digits), state and name of each district, in the order of the codes."""
    count = STATES * DISTRICTS_PER_STATE
    for position in range(count):
        state, district = divmod(position, DISTRICTS_PER_STATE)
        rest, first = divmod(position * _STRIDE % count, len(_FIRST))
        kind, second = divmod(rest, len(_SECOND))
        name = f"{_FIRST[first]} {_SECOND[second]} {_KIND[kind]} School District"
        yield f"{state + 1:02d}{district + 1:05d}", f"{state + 1:02d}", name


def code_list() -> str:
    """The districts as a CSV file with the columns district, state and name."""
    rows = ["district,state,name", *(",".join(row) for row in districts())]
    return "\n".join(rows) + "\n"


def counts() -> NDArray[np.int64]:
    """Children by district, not eligible and eligible; shape (districts, 2)."""
    codes = sum(1 for _ in districts())
    generator = np.random.Generator(np.random.PCG64(SEED))
    sizes = np.exp(SPREAD * generator.standard_normal(codes))
    whole = np.floor(sizes / sizes.sum() * CHILDREN).astype(np.int64)
    whole[: CHILDREN - int(whole.sum())] += 1
    eligible = np.rint(whole * generator.beta(*ELIGIBLE, codes)).astype(np.int64)
    return np.stack([whole - eligible, eligible], axis=1)


def write_children(path: Path) -> None:
    """One row a child: the district and whether the child is eligible, as Parquet of a few megabytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array([code for code, _, _ in districts()]), pa.array(["no", "yes"])
    types = pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("district", types[0]), ("eligible", types[1])])
    children = counts()
    cells = np.indices(children.shape, dtype=np.int32).reshape(2, -1)
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, children.size, 2 * DISTRICTS_A_GROUP):
            these = slice(start, start + 2 * DISTRICTS_A_GROUP)
            rows = [np.repeat(levels[these], children.reshape(-1)[these]) for levels in cells]
            columns = [pa.DictionaryArray.from_arrays(row, name) for row, name in zip(rows, names, strict=True)]
            file.write_table(pa.table(columns, schema=schema))
