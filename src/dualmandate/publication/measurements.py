"""What a release holds: noisy whole numbers, and the tables that were put together from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism import Noise

RELEASE_SCHEMA = "release/1"


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What was measured for one group of tables: noisy whole numbers in the order of its strategy's rows."""

    group: str
    noises: tuple[Noise, ...]  # of each kind of row
    kinds: NDArray[np.int64] = field(repr=False)  # of each row; shape (rows,)
    values: NDArray[np.int64] = field(repr=False)  # with noise, modulo 2⁶⁴; shape (rows,)


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One table of a release, row-major over its labels.

    `estimates` are the best linear unbiased ones; `values` are whole numbers, at least 0, consistent across tables, or
    None where the tables were not made consistent. All in `unit`.
    """

    name: str
    unit: str
    columns: tuple[str, ...]  # attributes or groupings
    labels: tuple[tuple[str, ...], ...]  # the levels of each column
    estimates: NDArray[np.float64] = field(repr=False)  # shape (cells,)
    standard_errors: NDArray[np.float64] = field(repr=False)  # shape (cells,)
    values: NDArray[np.int64] | None = field(default=None, repr=False)  # shape (cells,)


@dataclass(frozen=True, eq=False)
class Glance:
    """What a page shows of a table that is on the disk already: its first numbers, how many it has, how precise."""

    first: PublishedTable  # all labels, and the first numbers
    cells: int
    typical_error: float  # the median of its standard errors; of some of them in a large table
