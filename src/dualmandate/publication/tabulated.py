"""What a tabulation finds: counts by cell, dense or sparse, and for the curator what did not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dualmandate.population import Domain, Histogram
from dualmandate.population.arrays import Integers
from dualmandate.population.domain import dense_shape


@dataclass(frozen=True, eq=False)
class SparseHistogram:
    """Counts of the cells that hold a record; every other cell counts 0 and is noised all the same.

    A cell is its row-major position in the declared domain, as in a dense histogram.
    """

    domain: Domain
    cells: Integers = field(repr=False)  # shape (occupied,), increasing; never printed
    counts: Integers = field(repr=False)  # shape (occupied,), ≥ 1; never printed

    @property
    def total(self) -> int:
        """Number of records, N."""
        return int(self.counts.sum())

    def dense(self) -> Histogram:
        """The same counts with every cell written out, refused where they would not fit."""
        counts = np.zeros(dense_shape(self.domain), dtype=np.int64)
        counts.reshape(-1)[self.cells] = self.counts
        return Histogram(self.domain, counts)


@dataclass(frozen=True, eq=False)
class Tabulated:
    """The histogram of a source and how many records were read, those left out included: both confidential."""

    histogram: Histogram | SparseHistogram = field(repr=False)
    records_read: int = field(repr=False)


@dataclass(frozen=True, eq=False)
class CheckFindings:
    """What a curator's check counted, in records; for the eyes of those inside the wall.

    `outside` and `null` count every record by attribute, before any rule; `impossible`, `unidentified` and `excess`
    count records that the rules before them had kept, in this order.
    """

    records_read: int = field(repr=False)
    outside: Mapping[str, int] = field(repr=False)
    null: Mapping[str, int] = field(repr=False)
    impossible: int = field(repr=False)  # in a structural zero
    unidentified: int = field(repr=False)  # without the unit's identifier
    excess: int = field(repr=False)  # beyond what a unit may contribute
    refused: tuple[str, ...] = field(repr=False)  # attributes whose rule is `refuse` and that met a value it is for
