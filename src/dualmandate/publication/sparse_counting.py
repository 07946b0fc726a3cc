"""Tables of a sparse histogram: only cells that hold a record are visited, whatever the size of the domain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualmandate.population.arrays import Integers
from dualmandate.publication.tabulated import SparseHistogram
from dualmandate.workload import Factor, Identity, Table, Total
from dualmandate.workload.factor import Groups, Row

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
