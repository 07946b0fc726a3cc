"""What is measured in a part, block by block: differences over some exchangeable attributes, means over the others.

For a set S of exchangeable attributes, A_S ⊗ ⊗_{i∈S}(I − J/n_i) ⊗ ⊗_{i∉S} 1ᵀ/√n_i; blocks of different S do not
overlap, so AᵀA = Σ_S A_SᵀA_S ⊗ P_S. Without exchangeable attributes there is one block: any matrix over merged cells.
With nothing else A_S is a number, and the rows are those of ResidualPlanner. Source: [XHZK23].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from dualmandate.mechanism.strategy.dual import Measurement
from dualmandate.mechanism.strategy.parts import Floats, Key, Part
from dualmandate.workload.sensitivity import Norm

CHUNK = 2**23  # numbers that are held while errors of queries are added up


@dataclass(frozen=True, eq=False)
class Residuals:
    """Rows measured over the merged cells of a part, by blocks; noise is independent from row to row."""

    part: Part
    exchangeable: tuple[int, ...]  # places that blocks tell apart
    cells: np.ndarray[tuple[int], np.dtype[np.intp]]  # cells of the other attributes that are measured, row-major
    measurements: dict[frozenset[int], Measurement]
    words: str

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return sum(len(self.measurements[chosen].rows) * self._copies(chosen) for chosen in self.measurements)

    @cached_property
    def _ordered(self) -> tuple[int, ...]:
        return tuple(place for place in range(len(self.part.axes)) if place not in self.exchangeable)

    @cached_property
    def _ordered_shape(self) -> tuple[int, ...]:
        return tuple(self.part.merged_shape[place] for place in self._ordered)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(self.part.merged_shape[place] for place in self.exchangeable)

    def _copies(self, chosen: frozenset[int]) -> int:
        return math.prod(self.part.merged_shape[place] for place in chosen)

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm ΔA; L1 only without exchangeable attributes, whose differences have many signs."""
        if norm == "l1":
            assert not self.exchangeable
            return float(np.abs(self.measurements[frozenset()].rows).sum(axis=0).max())
        levels = math.prod(self._sizes)
        squares = np.zeros(len(self.cells))
        for chosen, measured in self.measurements.items():
            share = math.prod(self.part.merged_shape[place] - 1 for place in chosen) / levels
            squares += share * np.square(measured.rows).sum(axis=0)
        return math.sqrt(float(squares.max()))

    def measure(self, counts: Floats) -> Floats:
        """Ax for histograms over merged cells, shape (k, *merged_shape); shape (k, rows)."""
        order = [0, *(1 + place for place in (*self._ordered, *self.exchangeable))]
        values = counts.transpose(order).reshape(len(counts), -1, *self._sizes)[:, self.cells]
        found = []
        for chosen, measured in self.measurements.items():
            part = self._component(values, chosen)
            part = np.moveaxis(np.tensordot(measured.rows, part, axes=([1], [1])), 0, 1)
            found.append(part.reshape(len(counts), -1))
        return np.concatenate(found, axis=1)

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers; shape (k, *merged_shape)."""
        total = np.zeros((len(measured), math.prod(self._ordered_shape), *self._sizes))
        start = 0
        for chosen, block in self.measurements.items():
            stop = start + len(block.rows) * self._copies(chosen)
            kept = [n if place in chosen else 1 for place, n in zip(self.exchangeable, self._sizes, strict=True)]
            values = measured[:, start:stop].reshape(len(measured), len(block.rows), *kept)
            values = np.moveaxis(np.tensordot(block.inverse, values, axes=([1], [1])), 0, 1)
            for axis, (place, n) in enumerate(zip(self.exchangeable, self._sizes, strict=True), start=2):
                centered = place in chosen
                values = values - values.mean(axis=axis, keepdims=True) if centered else values / math.sqrt(n)
            total[:, self.cells] += values
            start = stop
        shaped = total.reshape(len(measured), *self._ordered_shape, *self._sizes)
        places = (*self._ordered, *self.exchangeable)
        return shaped.transpose([0, *(1 + places.index(place) for place in range(len(places)))])

    def coefficients(self, key: Key) -> Floats:
        """Squared length of each row of FA⁺ for one table, by rows of each factor."""
        factors = self.part.tables[key]
        spreads = {place: mean_and_differences(self.part, key, place) for place in self.exchangeable}
        fine = {place for place, (_, differences) in spreads.items() if differences.any()}
        total: Floats | float = 0.0
        for chosen, block in self.measurements.items():
            if chosen <= fine:
                shares = [spreads[place][place in chosen] for place in self.exchangeable]
                total = total + reduce(np.multiply.outer, shares, self._squares(key, block))
        places = (*self._ordered, *self.exchangeable)
        shaped = np.broadcast_to(total, tuple(factors[place].rows for place in places))
        return shaped.transpose([places.index(place) for place in range(len(places))])

    def _squares(self, key: Key, block: Measurement) -> Floats:
        """Σ over measured rows of (F·B_S)², by rows of each factor that is not exchangeable."""
        factors = [self.part.tables[key][place] for place in self._ordered]
        total = np.zeros(tuple(factor.rows for factor in factors))
        width = max(1, CHUNK // max(total.size, math.prod(self._ordered_shape)))
        for start in range(0, len(block.rows), width):
            some = block.inverse[:, start : start + width]
            values = np.zeros((math.prod(self._ordered_shape), some.shape[1]))
            values[self.cells] = some
            values = values.reshape(*self._ordered_shape, some.shape[1])
            for axis, (place, factor) in enumerate(zip(self._ordered, factors, strict=True)):
                values = self.part.levels[place].apply(factor, values, axis)
            total += np.square(values).sum(axis=-1)
        return total

    def _component(self, values: Floats, chosen: frozenset[int]) -> Floats:
        for axis, (place, n) in enumerate(zip(self.exchangeable, self._sizes, strict=True), start=2):
            if place in chosen:
                values = values - values.mean(axis=axis, keepdims=True)
            else:
                values = values.sum(axis=axis, keepdims=True) / math.sqrt(n)
        return values


def mean_and_differences(part: Part, key: Key, place: int) -> tuple[Floats, Floats]:
    """‖f·J/n‖² and ‖f·(I − J/n)‖² for each row f of a table's factor; shape (rows,) each."""
    level, factor = part.levels[place], part.tables[key][place]
    means = np.square(level.row_sums(factor)) / level.merged
    differences = level.row_squares(factor) - means
    return means, np.where(differences > 1e-12 * np.maximum(means, 1e-300), differences, 0.0)
