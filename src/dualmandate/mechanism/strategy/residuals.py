"""What is measured in a part, sector by sector: differences of some classes of levels, averages over all others.

In the sector S, A_S ⊗ ⊗_{(i, c) ∈ S} (I − J/m on the class c) ⊗ ⊗_{i ∉ S} (averages of classes, 1ᵀ/√m); sectors do not
overlap, so AᵀA = Σ_S A_SᵀA_S ⊗ P_S. Where no levels are exchangeable there is one sector: any matrix over merged cells.
Where all are, A_S is a number, and the rows are those of ResidualPlanner. Source: [XHZK23].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.dual import Measurement
from dualmandate.mechanism.strategy.parts import EVERYTHING_AVERAGED, Key, Part, Sector
from dualmandate.workload.sensitivity import Norm

CHUNK = 2**23  # numbers that are held while errors of queries are added up


@dataclass(frozen=True, eq=False)
class Residuals:
    """Rows measured over the merged cells of a part, by sectors; noise is independent from row to row."""

    part: Part
    measurements: dict[Sector, Measurement]  # rows over the orbits of each sector that are measured
    words: str

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return sum(len(each.rows) * self._copies(sector) for sector, each in self.measurements.items())

    def _copies(self, sector: Sector) -> int:
        return math.prod(int(self.part.levels[place].members[one]) for place, one in sector)

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
            values = self._component(counts, sector)[:, self._seen[sector][1]]
            values = np.moveaxis(np.tensordot(measured.rows, values, axes=([1], [1])), 0, 1)
            found.append(values.reshape(len(counts), -1))
        return np.concatenate(found, axis=1)

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers; shape (k, *merged_shape)."""
        total = np.zeros((len(measured), *self.part.merged_shape))
        start = 0
        for sector, block in self.measurements.items():
            stop = start + len(block.rows) * self._copies(sector)
            values = measured[:, start:stop].reshape(len(measured), len(block.rows), -1)
            values = np.moveaxis(np.tensordot(block.inverse, values, axes=([1], [1])), 0, 1)
            self._add(total, values, sector)
            start = stop
        return total

    def coefficients(self, key: Key) -> Floats:
        """Squared length of each row of FA⁺ for one table, by rows of each factor."""
        factors, levels = self.part.tables[key], self.part.levels
        total: Floats = np.zeros(tuple(factor.rows for factor in factors))
        for sector, block in self.measurements.items():
            fixed = dict(sector)
            shares: list[Floats] = []
            for place, one in fixed.items():
                shares.append(levels[place].spread(factors[place], one))
            if not all(share.any() for share in shares):
                continue
            averaged = [place for place in range(len(levels)) if place not in fixed]
            squares = self._squares(key, block, sector=sector)
            shaped = reduce(np.multiply.outer, shares, squares)
            order = [*averaged, *fixed]
            total += shaped.transpose([order.index(place) for place in range(len(order))])
        return total

    def _squares(self, key: Key, block: Measurement, *, sector: Sector) -> Floats:
        """Σ over measured rows of (F·B_S)², by rows of each factor of an averaged attribute."""
        fixed, part = dict(sector), self.part
        averaged = [place for place in range(len(part.levels)) if place not in fixed]
        maps = [part.levels[place].averaged(part.tables[key][place]) for place in averaged]
        shape = tuple(part.orbit_shape[place] for place in averaged)
        total = np.zeros(tuple(len(each) for each in maps))
        width = max(1, CHUNK // max(total.size, math.prod(shape)))
        for start in range(0, len(block.rows), width):
            some = block.inverse[:, start : start + width]
            values = np.zeros((math.prod(shape), some.shape[1]))
            values[self._seen[sector][1]] = some
            values = values.reshape(*shape, some.shape[1])
            for axis, each in enumerate(maps):
                values = np.moveaxis(np.tensordot(each, values, axes=([1], [axis])), 0, axis)
            total += np.square(values).sum(axis=-1)
        return total

    def _component(self, counts: Floats, sector: Sector) -> Floats:
        """Histograms in a sector; shape (k, orbits of the sector, copies)."""
        fixed, values = dict(sector), counts
        for place, level in enumerate(self.part.levels):
            if place in fixed:
                values = np.take(values, level.levels_of(fixed[place]), axis=1 + place)
                values = values - values.mean(axis=1 + place, keepdims=True)
            else:
                values = level.averages(values, 1 + place)
        order = [1 + place for place in range(len(self.part.levels)) if place not in fixed]
        copies = [1 + place for place in fixed]
        shaped = values.transpose([0, *order, *copies])
        return shaped.reshape(len(counts), math.prod(shaped.shape[1 : 1 + len(order)]), -1)

    def _add(self, total: Floats, values: Floats, sector: Sector) -> None:
        """Add numbers of a sector, shape (k, orbits that are measured, copies), to counts over merged cells."""
        fixed, levels = dict(sector), self.part.levels
        averaged = [place for place in range(len(levels)) if place not in fixed]
        shape = [self.part.orbit_shape[place] for place in averaged]
        full = np.zeros((len(values), math.prod(shape), values.shape[2]))
        full[:, self._seen[sector][1]] = values
        full = full.reshape(len(values), *shape, *(int(levels[place].members[one]) for place, one in fixed.items()))
        order = [*averaged, *fixed]
        full = full.transpose([0, *(1 + order.index(place) for place in range(len(levels)))])
        index = [slice(None)] + [
            level.levels_of(fixed[place]) if place in fixed else np.arange(level.merged)
            for place, level in enumerate(levels)
        ]
        for place, level in enumerate(levels):
            if place in fixed:
                full = full - full.mean(axis=1 + place, keepdims=True)
            else:
                full = level.from_averages(full, 1 + place)
        total[np.ix_(np.arange(len(values)), *index[1:])] += full  # type: ignore[arg-type]
