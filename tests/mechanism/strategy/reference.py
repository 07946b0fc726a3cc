"""What a strategy measures, written out as matrices: what its errors and sensitivities are held against."""

from __future__ import annotations

import numpy as np

from dualmandate.mechanism import Strategy
from dualmandate.mechanism.strategy.exact import ExactStrategy, merged_counts, part_by_part
from dualmandate.mechanism.strategy.integer_rows import Residuals
from dualmandate.mechanism.strategy.marginal_rows import FoundMarginals
from dualmandate.mechanism.strategy.nested_rows import IntegerNest
from dualmandate.mechanism.strategy.partitions import GroupStack
from dualmandate.mechanism.strategy.workload_blocks import component
from dualmandate.population.arrays import Floats
from dualmandate.workload.factor import dense


def rows_over_cells(measured: Residuals | GroupStack) -> Floats:
    """A of one part over its merged cells; shape (rows, merged cells)."""
    part, found = measured.part, []
    if isinstance(measured, GroupStack):
        for factors, weights, kept in measured.layout:
            matrix: Floats = np.ones((1, 1))
            for factor in factors:
                matrix = np.asarray(np.kron(matrix, dense(factor)), dtype=np.float64)
            found.append((matrix * weights[:, None])[kept])
        return np.concatenate(found)
    cells = np.eye(part.merged_size).reshape(-1, *part.merged_shape)
    for sector, each in measured.measurements.items():
        values = component(part, cells, sector)[:, part.seen(sector)[1]]
        found.append(np.einsum("ro,koc->rck", each.rows, values).reshape(-1, part.merged_size))
    return np.concatenate(found)


def written_out(strategy: Strategy) -> Floats:
    """A, column by column, over all cells of the domain."""
    parts = [each.part for each in strategy.measurements]
    matrices = [
        rows_over_cells(each) for each in strategy.measurements if not isinstance(each, FoundMarginals | IntegerNest)
    ]

    def column(cell: Floats) -> Floats:
        steps = [
            (part, lambda counts, rows=rows: counts.reshape(len(counts), -1) @ rows.T)
            for part, rows in zip(parts, matrices, strict=True)
        ]
        return np.asarray(part_by_part(merged_counts(strategy.workload, parts, cell), steps))

    return np.stack([column(cell) for cell in np.eye(strategy.workload.domain.size)], axis=1)


def row_weights(exact: ExactStrategy) -> Floats:
    """The weight of each row."""
    return np.array([float(step) for step in exact.steps])[exact.kinds()]


def coefficients(strategy: Strategy, table: str) -> Floats:
    """Squared length of each row of QA⁺ for a table of the published strategy, times Δ²."""
    exact = strategy.exact
    return exact.sensitivity(strategy.protection).value ** 2 * exact.query_variances(table, lambda _: 1.0)
