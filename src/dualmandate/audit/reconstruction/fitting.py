"""The most likely file behind numbers of which each is known in its own way: with noise, within bounds, or not at all.

As in `noisy`, expected counts μ are bent as little as the numbers ask for: x = μ·exp(−Aᵀλ). A row that is known to lie
between two numbers is pulled to the nearer one where it lies outside, and let go where it lies inside; a row with noise
of scale b says no more than |λ| ≤ 1/b. Both end at the counts with the least Σ|A·x − y|/b + Σ x·ln(x/μ) − x + μ within
all bounds: every step is the best for its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations
from dualmandate.errors import InvalidRequest

Floats = NDArray[np.float64]
SWEEPS = 200
SETTLED = 1e-9  # of a dual, by which one sweep changes it at most in the end
FEWEST = 1e-9  # expected in a cell that may occur at all


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of each number of each place, shape (places, rows): bounds, and how loud they are.

    A number that was shown exactly has equal bounds and a scale of 0; one with noise has equal bounds and its mean
    absolute noise; a hidden one lies between 0 and infinity.
    """

    least: Floats = field(repr=False)
    largest: Floats = field(repr=False)
    scales: Floats = field(repr=False)

    @classmethod
    def shown(cls, values: NDArray[Any], scales: Floats | float = 0.0) -> Known:
        """Numbers that were published, with errors of known size."""
        exact = values.astype(np.float64)
        return cls(exact, exact, np.broadcast_to(np.asarray(scales, dtype=np.float64), exact.shape))

    def beside(self, other: Known) -> Known:
        """Two things that are known of numbers, the rows of one after the rows of the other."""
        pairs = ((self.least, other.least), (self.largest, other.largest), (self.scales, other.scales))
        return Known(*(np.concatenate(pair, axis=1) for pair in pairs))


def stacked(*parts: Equations) -> Equations:
    """The rows of several equations over the same unknowns, in turn."""
    from scipy.sparse import vstack

    return Equations.of_matrix(vstack([each.matrix for each in parts], format="csr"))


def most_likely_within(equations: Equations, known: Known, expected: Floats, *, sweeps: int = SWEEPS) -> Floats:
    """The most likely counts of each place; shape (places, unknowns).

    `expected` are counts expected beforehand, in the same shape; 0 is a structural zero. Rows count each unknown once.
    """
    if (equations.coefficients != 1).any():
        raise InvalidRequest(
            "tables with weights or differences",
            why="rows of counts are fitted in proportion, and each counts a record once",
            instead="give the counts that these numbers were made of",
        )
    found = np.where(expected > 0, np.maximum(expected, FEWEST), 0.0)
    scales = np.ascontiguousarray(known.scales)
    _fit(equations.starts, equations.cells, known.least, known.largest, scales, found, sweeps)
    return found


@numba.njit(cache=True, nogil=True)
def _fit(starts: Any, cells: Any, least: Any, largest: Any, scales: Any, found: Any, sweeps: int) -> None:
    rows = len(starts) - 1
    for place in range(len(found)):
        duals = np.zeros(rows)
        x = found[place]
        for _ in range(sweeps):
            moved = 0.0
            for row in range(rows):
                total = 0.0
                for k in range(starts[row], starts[row + 1]):
                    total += x[cells[k]]
                if total <= 0:
                    continue
                limit = np.inf if scales[place, row] <= 0 else 1.0 / scales[place, row]
                # what the row would add up to if it said nothing
                free = total * np.exp(duals[row])
                wanted = min(max(free, least[place, row]), largest[place, row])
                new = np.log(free / wanted) if wanted > 0 else np.inf
                new = min(max(new, -limit), limit)
                step = new - duals[row]
                if step == 0.0:
                    continue
                duals[row] = new
                factor = np.exp(-step)
                for k in range(starts[row], starts[row + 1]):
                    x[cells[k]] *= factor
                if step < np.inf:
                    moved = max(moved, abs(step))
            if moved < SETTLED:
                break
