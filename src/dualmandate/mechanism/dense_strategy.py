"""A strategy given as a matrix: what it measures, and how far one protected unit can move it, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.workload import Sensitivity

LARGEST_STRATEGY = 2**22  # entries
LARGEST_PAIRS = 2**27  # entries looked at to compare all pairs of columns
_CLOSE = 1e-9  # columns whose norm comes this near to the largest, in floats, are compared exactly


@dataclass(frozen=True, eq=False)
class DenseStrategy:
    """The rows that are measured, A, written out over the cells of a domain in row-major order."""

    matrix: NDArray[np.float64]  # shape (rows, cells), finite

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.size == 0 or not np.all(np.isfinite(self.matrix)):
            raise InvalidMechanism(
                f"a strategy of shape {self.matrix.shape}",
                why="a strategy is a matrix of finite numbers, one column a cell",
                instead="give a matrix with at least one row and one column",
            )
        if self.matrix.size > LARGEST_STRATEGY:
            raise TooLarge(
                f"a dense strategy of {self.matrix.shape[0]:,} × {self.matrix.shape[1]:,} numbers",
                why=f"at most {LARGEST_STRATEGY:,} numbers are handled",
                instead="state the strategy as a workload, which is never written out",
            )

    @property
    def is_whole(self) -> bool:
        """Whether every entry is a whole number, small enough for differences of two to be exact."""
        return bool(np.all((self.matrix == np.rint(self.matrix)) & (np.abs(self.matrix) < 2**52)))

    @property
    def step(self) -> Fraction:
        """The common divisor of whole entries."""
        return Fraction(int(np.gcd.reduce(self.matrix.astype(np.int64), axis=None)) or 1)

    def sensitivity(self, domain: Domain, protection: Protection, norm: Literal["l1", "l2"]) -> Sensitivity:
        """The largest column (add or remove) or difference of two columns (replace), of cells that can occur."""
        if protection.invariants:
            raise InvalidMechanism(
                f"a dense strategy with the exact total '{protection.invariants[0].name}'",
                why="exact totals are stated by attributes, and a bare matrix has none",
                instead="state the strategy as a workload over the program's domain",
            )
        columns = self.matrix[:, domain.possible_cells()].T
        records = Fraction(protection.most_records_per_unit) ** _power(norm)
        if protection.neighbors is Neighbors.ADD_OR_REMOVE:
            largest = _largest(columns, norm)
            return Sensitivity(norm=norm, power=records * largest, exact=True, method="the largest column")
        if len(columns) ** 2 * columns.shape[1] > LARGEST_PAIRS:
            twice = 2 ** _power(norm) * _largest(columns, norm)
            return Sensitivity(norm=norm, power=records * twice, exact=False, method="twice the largest column")
        farthest = max((_largest(columns[i + 1 :] - column, norm) for i, column in enumerate(columns[:-1])), default=0)
        # A difference of two floats is rounded: it is exact for whole numbers, otherwise stretched to stay a bound.
        if self.is_whole:
            return Sensitivity(norm=norm, power=records * farthest, exact=True, method="all pairs of columns")
        bound = Fraction(farthest) * (1 + Fraction(1, 2**40))
        return Sensitivity(norm=norm, power=records * bound, exact=False, method="all pairs of columns, rounded up")

    @cached_property
    def rows(self) -> int:
        """Number of measurements."""
        return int(self.matrix.shape[0])


def _largest(columns: NDArray[np.float64], norm: Literal["l1", "l2"]) -> Fraction:
    """The largest ‖column‖₁ or ‖column‖₂², exactly: floats are fractions, and only the leaders are added as such."""
    power = _power(norm)
    sizes = (np.abs(columns) ** power).sum(axis=1)
    leaders = columns[sizes >= sizes.max(initial=0.0) * (1 - _CLOSE)]
    different = np.unique(np.sort(np.abs(leaders), axis=1), axis=0)
    sums = (sum((Fraction(entry) ** power for entry in row[row > 0].tolist()), Fraction(0)) for row in different)
    return max(sums, default=Fraction(0))


def _power(norm: Literal["l1", "l2"]) -> int:
    return 2 if norm == "l2" else 1
