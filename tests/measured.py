"""Measurements for tests: what is measured with the exact noise of a currency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    ExactStrategy,
    MatrixRows,
    Measurement,
    Rows,
    StrategyRows,
    TableRows,
)
from dualmandate.population import PrivacyMeasure, Protection
from dualmandate.workload import Workload


def direct(
    workload: Workload, protection: Protection, privacy_measure: PrivacyMeasure, every_cell: bool = False
) -> Measurement:
    """The tables themselves, or every cell."""
    rows = MatrixRows.every_cell(workload) if every_cell else TableRows(workload)
    return Measurement(rows, GAUSSIAN if privacy_measure is PrivacyMeasure.ZCDP else GEOMETRIC, protection)


def optimized(strategy: ExactStrategy, protection: Protection) -> Measurement:
    """The rows of a strategy."""
    return Measurement(StrategyRows(strategy), GAUSSIAN if strategy.power == 2 else GEOMETRIC, protection)


def query_rows(rows: Rows, table: str, numbers: Sequence[int]) -> NDArray[np.float64]:
    """What some answers of a table take of the noise of each row; shape (len(numbers), rows)."""
    return np.stack([rows.weights(table, [number]) for number in numbers])
