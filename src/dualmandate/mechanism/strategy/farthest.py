"""How far one changed record can move whole-number rows: the largest difference of two columns, exactly.

For squares it is X_cc + X_c'c' − 2X_cc' with X_cc' = Σ_S Σ_r w_r²·b_ro·b_ro'·Π_S m(m·δ − 1), b over the orbits o, o' of
the two cells, m the levels of a class, and δ = 1 where both cells have the same level. It depends on orbits and on the
attributes with the same level, not on the levels, so each pair of orbits is looked at once for every such pattern.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.orbit_pairs import CHUNK, OrbitPairs
from dualmandate.mechanism.strategy.parts import EVERYTHING_AVERAGED, Sector
from dualmandate.workload.factor import LARGEST_INTEGER, Integers, Numbers

if TYPE_CHECKING:
    from dualmandate.mechanism.strategy.whole_rows import WholeRows, WholeSector

MOST_DIFFERENCES = 2**32  # of two numbers, between all pairs of columns
MOST_LEADERS = 2**24  # products that are added up exactly
_CLOSE = 1e-9  # of the largest column: differences this near to the largest, in floats, are compared exactly

Answer = tuple[Fraction, bool]  # the value, and whether it is exact; otherwise it is an upper bound


def farthest(rows: WholeRows, power: int, same: Integers | None) -> Answer:
    """The largest Σ_r (w_r·|a_r − a'_r|)^power over pairs of cells that can occur, and whether it is exact.

    With `same`, one label a merged cell, only over pairs of one label. A bound is 2^power times the largest column.
    """
    bound = 2**power * rows.largest_column(power), False
    if power == 1:
        return _all_pairs(rows, same) or bound
    return _Squares.of(rows).farthest(same) or bound


def _all_pairs(rows: WholeRows, same: Integers | None) -> Answer | None:
    """Sums of sizes, by comparing all columns; None where there are too many, or exchangeable cells."""
    part = rows.part
    if part.orbit_count < part.merged_size:
        return None
    cells, sector = OrbitPairs.of(part).orbits, rows.sectors[EVERYTHING_AVERAGED]
    largest = math.ldexp(2 * float(rows.rough_columns(1).max()), sector.exponent)
    alone = np.count_nonzero(sector.numbers, axis=1) == 1
    if largest >= LARGEST_INTEGER / 2 or np.count_nonzero(~alone) * len(cells) ** 2 > MOST_DIFFERENCES:
        return None
    values = np.zeros((len(sector.weights), len(cells)), dtype=np.int64)
    values[:, np.searchsorted(cells, part.cells)] = sector.scaled(np.arange(len(part.cells)), largest)
    sums, own = values[~alone], np.abs(values[alone]).sum(axis=0)
    labels = np.zeros(len(cells), dtype=np.int64) if same is None else same[cells]
    best, height = 0, max(1, CHUNK // len(cells))
    for start in range(0, len(cells), height):
        here = slice(start, start + height)
        apart = own[here, None] + own[None, start:]
        for row in sums:
            apart += np.abs(row[here, None] - row[None, start:])
        allowed = labels[here, None] == labels[None, start:]
        np.fill_diagonal(allowed, val=False)
        best = max(best, int(np.max(apart, where=allowed, initial=0)))
    return Fraction(best, 1 << sector.exponent), True


@dataclass(frozen=True, eq=False)
class _Squares:
    """Differences of columns in squares, for pairs of orbits."""

    rows: WholeRows
    pairs: OrbitPairs
    sizes: Floats  # X_cc of each orbit, rounded

    @classmethod
    def of(cls, rows: WholeRows) -> _Squares:
        pairs = OrbitPairs.of(rows.part)
        sizes = np.zeros(len(pairs.orbits))
        sizes[np.searchsorted(pairs.orbits, rows.part.cells)] = rows.rough_columns(2)
        return cls(rows, pairs, sizes)

    def farthest(self, same: Integers | None) -> Answer | None:
        """The largest difference; None where there are too many pairs."""
        count = len(self.pairs.orbits)
        looked_at = count**2 << len(self.pairs.varied)
        if self.pairs.are_many or looked_at * len(self.rows.sectors) > MOST_DIFFERENCES:
            return None
        labels = self.pairs.labels(same)
        close, rough, found, ties = _CLOSE * float(self.sizes.max()), 0.0, Fraction(0), False
        for start, stop in self.pairs.chunks():
            apart = np.where(self.pairs.allowed(start, stop, labels), self._rough(start, stop), -1.0)
            rough = max(rough, float(apart.max()))
            pattern, one, other = np.nonzero(apart >= max(rough - close, 0.0))
            ties = ties or len(pattern) * sum(len(each.weights) for each in self.rows.sectors.values()) > MOST_LEADERS
            if not ties:
                found = max([found, *self._exactly(pattern, one + start, other + start)])
        return (Fraction(rough + close), False) if ties else (found, labels.exact)

    def _shares(self, sector: Sector) -> Floats:
        """Π_S m(m·δ − 1) for each pattern; shape (patterns,)."""
        found = np.ones(len(self.pairs.patterns))
        for place, one in sector:
            size = float(self.rows.part.levels[place].members[one])
            found *= np.where(self.pairs.patterns[:, self.pairs.varied.index(place)], size * (size - 1), -size)
        return found

    def _share(self, sector: Sector, pattern: int) -> int:
        """The same for one pattern, exactly."""
        sizes = [(place, int(self.rows.part.levels[place].members[one])) for place, one in sector]
        return math.prod(
            size * (size - 1) if self.pairs.patterns[pattern, self.pairs.varied.index(place)] else -size
            for place, size in sizes
        )

    def _places(self, sector: Sector) -> Indices:
        """Where the orbits that a sector measures stand among all that can occur."""
        part = self.rows.part
        return np.searchsorted(self.pairs.orbits, part.cells[part.seen(sector)[0]])

    def _rough(self, start: int, stop: int) -> Floats:
        """X_cc + X_c'c' − 2X_cc' in floats; shape (patterns, orbits here, orbits from the first of these on)."""
        sizes = self.sizes[start:stop, None] + self.sizes[None, start:]
        found = np.repeat(sizes[None], 2 ** len(self.pairs.varied), axis=0)
        for sector, each in self.rows.sectors.items():
            places, values = self._places(sector), each.sizes[:, None] * each.numbers
            here, there = np.flatnonzero((places >= start) & (places < stop)), np.flatnonzero(places >= start)
            if len(here):
                products = values[:, here].T @ values[:, there]
                index = np.ix_(np.arange(len(found)), places[here] - start, places[there] - start)
                found[index] -= np.multiply.outer(2 * self._shares(sector), products)
        return found

    def _exactly(self, pattern: Indices, one: Indices, other: Indices) -> list[Fraction]:
        """The same for some patterns and pairs of orbits, exactly."""
        totals, bound = [Fraction(0)] * len(pattern), 8 * float(self.sizes.max())
        for sector, each in self.rows.sectors.items():
            places, spread = self._places(sector), self.rows.spread(sector, 2)
            number = np.full(len(self.pairs.orbits), -1)
            number[places] = np.arange(len(places))
            touched = np.flatnonzero((number[one] >= 0) | (number[other] >= 0))
            unit = Fraction(1, 1 << 2 * each.exponent)
            largest = math.ldexp(bound, 2 * each.exponent)
            left, right = (_columns(each, number[side[touched]], largest) for side in (one, other))
            sums = [(a * b).sum(axis=0).tolist() for a, b in ((left, left), (right, right), (left, right))]
            for place, square, another, mixed in zip(touched.tolist(), *sums, strict=True):
                totals[place] += unit * (spread * (square + another) - 2 * self._share(sector, pattern[place]) * mixed)
        return totals


def _columns(sector: WholeSector, numbers: Indices, largest: float) -> Numbers:
    """2^t·w·b over some orbits; zero for those that are not measured, numbered -1."""
    return np.where(numbers >= 0, sector.scaled(np.maximum(numbers, 0), largest), 0)
