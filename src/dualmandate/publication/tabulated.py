"""What a tabulation finds: counts by cell, dense or sparse, tables of them, and for the curator what did not fit.

Where a histogram is sparse only cells that hold a record are visited, whatever the size of the domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.population import Domain, Histogram
from dualmandate.population.arrays import Integers
from dualmandate.population.domain import dense_shape
from dualmandate.workload import Factor, Identity, Table, Total
from dualmandate.workload.factor import Groups, Row


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


NOWHERE = -1  # This is the row of a level that is not counted.


def single_rows(factor: Factor) -> tuple[Integers, Integers | None] | None:
    """The one row that each level is counted in (or nowhere), and its weight, None for 1 each.

    None where levels may be counted in several rows.
    """
    if isinstance(factor, Identity):
        return np.arange(factor.size, dtype=np.int64), None
    if isinstance(factor, Total):
        return np.zeros(factor.size, dtype=np.int64), None
    if isinstance(factor, Row):
        return np.where(factor.values != 0, 0, NOWHERE), factor.values
    if not isinstance(factor, Groups) or len(np.unique(factor.cells)) != len(factor.cells):
        return None
    rows = np.full(factor.size, NOWHERE, dtype=np.int64)
    rows[factor.cells] = np.repeat(np.arange(factor.rows), np.diff(np.append(factor.starts, len(factor.cells))))
    return rows, factor.weights


def countable(tables: Sequence[Table]) -> bool:
    """Whether every record is counted in at most one row of each table."""
    factors = {factor.key: factor for table in tables for factor in table.factors}
    return all(single_rows(factor) is not None for factor in factors.values())


def add_counts(tables: Sequence[Table], histogram: SparseHistogram, into: Integers) -> None:
    """Add what `countable` tables count, before their weights and table after table; modulo 2⁶⁴, as everywhere."""
    levels, start = np.unravel_index(histogram.cells, histogram.domain.shape), 0
    for table in tables:
        rows, counts = np.zeros(len(histogram.cells), dtype=np.int64), histogram.counts
        kept = np.ones(len(rows), dtype=np.bool_)
        for factor, level in zip(table.factors, levels, strict=True):
            found = single_rows(factor)
            assert found is not None
            row = found[0][level]
            kept &= row != NOWHERE
            rows = rows * factor.rows + row
            counts = counts if found[1] is None else counts * found[1][level]
        np.add.at(into[start : start + table.query_count], rows[kept], counts[kept])
        start += table.query_count
