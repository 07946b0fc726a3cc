"""The fitted distribution: the least misfit and evenness together, by an optimizer that knows nothing of pulls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dualmandate.mechanism.multiplicative_weights.fit import AskedTable, FittedDistribution, NoisyReading
from dualmandate.population.arrays import Floats
from dualmandate.workload import all_range, marginals

RANGES = all_range(6)
SHAPE = (2, 3)


def test_it_is_the_least_of_misfit_and_unevenness() -> None:
    asked = AskedTable.of(RANGES.domain, RANGES.tables[0])
    fitted = FittedDistribution(RANGES.domain, 100.0)
    rows, read = [1, 8, 13], [60, 25, 2]
    for row, value in zip(rows, read, strict=True):
        fitted.read(NoisyReading(asked.query(row), np.array([value]), 9.0))
    fitted.replay(500)
    queries = RANGES.dense()[rows]
    give = 1 / float(np.mean(queries.sum(axis=1) * 100 / 6))

    def cost(logs: Floats) -> float:
        shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        off = queries @ shares * 100 - read
        return float(off @ off / 18 + give * 100 * np.sum(shares * np.log(shares * 6)))

    found = minimize(cost, np.zeros(6), options={"gtol": 1e-9}).x
    expected = 100 * np.exp(found) / np.exp(found).sum()
    assert fitted.marginals.of((0,)) == pytest.approx(expected, abs=0.1)


def test_tables_that_are_known_well_are_fitted_together() -> None:
    workload = marginals(SHAPE, 1)
    fitted = FittedDistribution(workload.domain, 30.0)
    for table, values in zip(workload.tables, ([10, 20], [3, 9, 18]), strict=True):
        fitted.read(NoisyReading(AskedTable.of(workload.domain, table), np.array(values), 0.01))
    fitted.replay(300)
    # Of all with these margins the most even is their product.
    assert fitted.marginals.of((0, 1)) == pytest.approx(np.outer([10, 20], [3, 9, 18]) / 30, rel=1e-2)


def test_without_records_nothing_moves() -> None:
    workload = marginals(SHAPE, 1)
    fitted = FittedDistribution(workload.domain, 0.0)
    fitted.read(NoisyReading(AskedTable.of(workload.domain, workload.tables[0]), np.array([3, -4]), 1.0))
    fitted.replay(10)
    fitted.move_once()
    assert fitted.marginals.of((0, 1)).sum() == 0


def test_a_query_is_what_its_row_says() -> None:
    asked = AskedTable.of(RANGES.domain, RANGES.tables[0])
    for row in range(RANGES.query_count):
        assert np.array_equal(asked.query(row).written, RANGES.dense()[row])
