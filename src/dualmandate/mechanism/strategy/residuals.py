"""What is measured in a part, sector by sector: differences of some classes of levels, averages over all others.

In the sector S, A_S ⊗ ⊗_{(i, c) ∈ S} (I − J/m on the class c) ⊗ ⊗_{i ∉ S} (averages of classes, 1ᵀ/√m); sectors do not
overlap, so AᵀA = Σ_S A_SᵀA_S ⊗ P_S. Where no levels are exchangeable there is one sector: any matrix over merged cells.
Where all are, A_S is a number, and the rows are those of ResidualPlanner. Source: [XHZK23].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.dual import OptimalRows
from dualmandate.mechanism.strategy.symmetry_blocks import add_component, component, copies, squared_lengths
from dualmandate.mechanism.strategy.workload_blocks import EVERYTHING_AVERAGED, Key, Sector, WorkloadBlock
from dualmandate.workload.sensitivity import Norm

if TYPE_CHECKING:
    from dualmandate.mechanism.strategy.integer_rows import IntegerRows


@dataclass(frozen=True, eq=False)
class Residuals:
    """Rows measured over the merged cells of a part, by sectors; noise is independent from row to row."""

    part: WorkloadBlock
    measurements: dict[Sector, OptimalRows]  # rows over the orbits of each sector that are measured
    words: str

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return sum(len(each.rows) * copies(self.part, sector) for sector, each in self.measurements.items())

    @cached_property
    def _seen(self) -> dict[Sector, tuple[Indices, Indices]]:
        return {sector: self.part.seen(sector) for sector in self.measurements}

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm ΔA; L1 only where nothing is exchangeable, for differences have many signs."""
        if norm == "l1":
            assert self.part.orbit_count == self.part.merged_size
            return float(np.abs(self.measurements[EVERYTHING_AVERAGED].rows).sum(axis=0).max())
        squares = np.zeros(len(self.part.cells))
        for sector, measured in self.measurements.items():
            squares[self._seen[sector][0]] += self.part.multiplicity(sector) * np.square(measured.rows).sum(axis=0)
        return math.sqrt(float((squares / self.part.orbit_sizes).max()))

    def measure(self, counts: Floats) -> Floats:
        """Ax for histograms over merged cells, shape (k, *merged_shape); shape (k, rows)."""
        found = []
        for sector, measured in self.measurements.items():
            values = component(self.part, counts, sector)[:, self._seen[sector][1]]
            values = np.moveaxis(np.tensordot(measured.rows, values, axes=([1], [1])), 0, 1)
            found.append(values.reshape(len(counts), -1))
        return np.concatenate(found, axis=1)

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers; shape (k, *merged_shape)."""
        total = np.zeros((len(measured), *self.part.merged_shape))
        start = 0
        for sector, block in self.measurements.items():
            stop = start + len(block.rows) * copies(self.part, sector)
            values = measured[:, start:stop].reshape(len(measured), len(block.rows), -1)
            full = np.zeros((len(measured), len(self.part.orbits_of(sector)), values.shape[2]))
            full[:, self._seen[sector][1]] = np.moveaxis(np.tensordot(block.inverse, values, axes=([1], [1])), 0, 1)
            add_component(self.part, total, full, sector)
            start = stop
        return total

    def coefficients(self, key: Key) -> Floats:
        """Squared length of each row of FA⁺ for one table, by rows of each factor."""
        inverses = {sector: (self._seen[sector][1], each.inverse) for sector, each in self.measurements.items()}
        return squared_lengths(self.part, key, inverses)

    def exact(self, norm: Norm) -> IntegerRows:
        """Whole-number rows with rational weights, whose error is at most 0.1 % more."""
        # Rounding measures its own error with rows like these.
        from dualmandate.mechanism.strategy.integer_rounding import whole_rows

        return whole_rows(self, norm)
