"""Forty-six million children that do not exist, always the same: a confidential file to publish from without harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.gallery.title_i.districts import districts

CHILDREN = 46_000_000
SEED = 2019  # public: nobody is in this file
SPREAD = 1.2  # of the logarithm of a district's size
ELIGIBLE = (2.0, 8.0)  # shares of eligible children follow this beta law
DISTRICTS_A_GROUP = 500  # of rows that are written together


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
