"""What is published about a part: whole-number rows, each with a rational weight, by sectors; losses are exact.

In the sector S, row r is b[r, o]·Π_{(i, c) ∈ S} (m_c·δ − 1) over merged cells, one copy for each choice of levels of
the classes in S; b is a row of whole numbers over orbits o, and m_c counts the levels of a class. Weighted by w_r it is
the row w_r·b·Π√m·Πm_c of `residuals`. One record moves all copies together by Σ(w|a|)² = w²b²·Πm_c(m_c − 1), or by
Σw|a| = w|b|·Π2(m_c − 1). Weights are whole numbers over a power of two, so that sums of them are that, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.dual import Measurement
from dualmandate.mechanism.strategy.farthest import farthest
from dualmandate.mechanism.strategy.parts import Key, Part, Sector
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.sectors import copies
from dualmandate.workload.factor import LARGEST_INTEGER, Integers, Numbers

CLOSE = 1e-9  # columns whose loss comes this near to the largest, in floats, are compared exactly


@dataclass(frozen=True, eq=False)
class WholeSector:
    """The rows of one sector: whole numbers without a common divisor, their weights, and how to put queries together.

    `inverse` is A_S⁺ for A_S = diag(w)·b in the coordinates of `residuals`, shape (orbits, rows).
    """

    numbers: Integers  # b, shape (rows, orbits that are measured)
    weights: tuple[Fraction, ...]  # w > 0, one a row, over powers of two
    inverse: Floats

    @cached_property
    def exponent(self) -> int:
        """The least t for which every 2^t·w is a whole number."""
        return max(weight.denominator.bit_length() - 1 for weight in self.weights)

    @cached_property
    def sizes(self) -> Floats:
        """The weights, rounded; shape (rows,)."""
        return np.array([float(weight) for weight in self.weights])

    def scaled(self, columns: Indices, largest: float) -> Numbers:
        """2^t·w·b over some orbits, exactly.

        64-bit integers where `largest`, a bound on every sum that is built from them, leaves room; else Python's own.
        """
        kind = np.int64 if largest < LARGEST_INTEGER / 2 else np.object_
        factors = [weight.numerator << self.exponent - weight.denominator.bit_length() + 1 for weight in self.weights]
        return np.asarray(np.array(factors, dtype=kind)[:, None] * self.numbers[:, columns].astype(kind))


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows of whole numbers over the merged cells of a part, times weights; noise is independent from row to row."""

    part: Part
    words: str
    sectors: dict[Sector, WholeSector]
    bits: int = 0  # to which rows with unequal entries were rounded; 0: there are none

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return sum(len(each.weights) * copies(self.part, sector) for sector, each in self.sectors.items())

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row, from the largest to the smallest."""
        return tuple(sorted({weight for each in self.sectors.values() for weight in each.weights}, reverse=True))

    @cached_property
    def _kinds(self) -> dict[Sector, Indices]:
        places = {weight: place for place, weight in enumerate(self.steps)}
        return {
            sector: np.array([places[weight] for weight in each.weights], dtype=np.intp)
            for sector, each in self.sectors.items()
        }

    def kinds(self) -> Indices:
        """The kind of each row, in the order of `count`; shape (rows,)."""
        return np.concatenate([np.repeat(kinds, copies(self.part, sector)) for sector, kinds in self._kinds.items()])

    @property
    def largest_entry(self) -> int:
        """The largest size of a number in a row: |a·x| is at most this times the records counted in x."""
        return max(
            int(np.abs(each.numbers).max()) * math.prod(size - 1 for size in self._sizes(sector))
            for sector, each in self.sectors.items()
        )

    def _sizes(self, sector: Sector) -> list[int]:
        """The levels of each class whose differences a sector holds."""
        return [int(self.part.levels[place].members[one]) for place, one in sector]

    @cached_property
    def _seen(self) -> dict[Sector, tuple[Indices, Indices]]:
        return {sector: self.part.seen(sector) for sector in self.sectors}

    def spread(self, sector: Sector, power: int) -> int:
        """Σ over the copies of a row of |Π(m·δ − 1)|^power at one cell: Π2(m − 1), or Πm(m − 1)."""
        return math.prod((size - 1) * ((size - 1) ** (power - 1) + 1) for size in self._sizes(sector))

    def rough_columns(self, power: int) -> Floats:
        """Σ_r (w_r·|a_r|)^power at each of the part's `cells`, in floats."""
        found = np.zeros(len(self.part.cells))
        for sector, each in self.sectors.items():
            terms = (each.sizes[:, None] * np.abs(each.numbers)) ** power
            found[self._seen[sector][0]] += self.spread(sector, power) * terms.sum(axis=0)
        return found

    def largest_column(self, power: int) -> Fraction:
        """The largest Σ_r (w_r·|a_r|)^power of a cell that can occur, exactly: what one record can move."""
        rough = self.rough_columns(power)
        leaders = np.flatnonzero(rough >= float(rough.max()) * (1 - CLOSE))
        return max(self._columns(leaders, power, bound=2 * float(rough.max())))

    def _columns(self, cells: Indices, power: int, *, bound: float) -> list[Fraction]:
        """Σ_r (w_r·|a_r|)^power at some of `cells`, exactly; `bound` is above all of them."""
        totals = [Fraction(0)] * len(cells)
        for sector, each in self.sectors.items():
            here, columns = np.intersect1d(cells, self._seen[sector][0], return_indices=True)[1:]
            if len(here) == 0:
                continue
            scaled = each.scaled(columns, math.ldexp(bound, power * each.exponent))
            sums = (np.abs(scaled) ** power).sum(axis=0)
            share = Fraction(self.spread(sector, power), 1 << power * each.exponent)
            for place, value in zip(here.tolist(), sums.tolist(), strict=True):
                totals[place] += share * value
        return totals

    def largest_difference(self, power: int, same: Integers | None = None) -> tuple[Fraction, bool]:
        """The largest Σ_r (w_r·|a_r − a'_r|)^power between two cells that can occur, and whether it is exact.

        That is what one changed record can move; where it is not exact, it is an upper bound. With `same`, one label a
        merged cell (row-major), only between cells of one label.
        """
        return farthest(self, power, same)

    def count(self, counts: Integers) -> Integers:
        """a·x for whole histograms over merged cells, shape (k, *merged_shape); shape (k, rows), exact.

        Sums are taken modulo 2^64, so that they are right wherever `largest_entry` times the records is below 2^63.
        Below 2^53 floats hold them exactly, and are multiplied far faster. Numbers that are not whole stay so.
        """
        whole = counts.dtype.kind in "iu"
        if whole and self.largest_entry * float(np.abs(counts).sum(dtype=np.float64)) < 2**52:
            return np.asarray(np.rint(self._counted(counts.astype(np.float64))), dtype=np.int64)
        return self._counted(counts)

    def _counted(self, counts: Numbers) -> Numbers:
        found = []
        for sector, each in self.sectors.items():
            values = self._component(counts, sector)[:, self._seen[sector][1]]
            answers = np.moveaxis(np.tensordot(each.numbers.astype(values.dtype), values, axes=([1], [1])), 0, 1)
            found.append(answers.reshape(len(counts), -1))
        return np.concatenate(found, axis=1)

    def _component(self, counts: Numbers, sector: Sector) -> Numbers:
        """Sums over classes, and m times a level less its class; shape (k, orbits of the sector, copies)."""
        fixed, values, levels = dict(sector), counts, self.part.levels
        averaged = [place for place in range(len(levels)) if place not in fixed]
        for place in averaged:
            values = levels[place].class_sums(values, 1 + place)
        for place, one in fixed.items():
            values = np.take(values, levels[place].levels_of(one), axis=1 + place)
            values = values.shape[1 + place] * values - values.sum(axis=1 + place, keepdims=True)
        shaped = values.transpose([0, *(1 + place for place in averaged), *(1 + place for place in fixed)])
        return shaped.reshape(len(counts), -1, copies(self.part, sector))

    @cached_property
    def _measured(self) -> Residuals:
        return self._residuals(None)

    def _residuals(self, variances: Floats | None) -> Residuals:
        """The weighted rows in the coordinates of `residuals`; noise of some variance by kinds, 1 where not stated."""
        measurements = {}
        for sector, each in self.sectors.items():
            rows = each.sizes[:, None] * each.numbers * lengths(self.part, sector)
            noise = 1.0 if variances is None else np.sqrt(variances[self._kinds[sector]])
            measurements[sector] = Measurement(rows, each.inverse * noise)
        return Residuals(self.part, measurements, self.words)

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers, from weighted rows w·(a·x + noise)."""
        return self._measured.estimate(measured)

    def coefficients(self, key: Key, variances: Floats | None = None) -> Floats:
        """Σ_r (FA⁺)²·v of each query of a table, v by the kind of row (1 where not stated); by rows of each factor."""
        return (self._measured if variances is None else self._residuals(variances)).coefficients(key)

    def table_sums(self, key: Key) -> Floats:
        """Σ over the queries of a table and the rows of each kind of (FA⁺)²; shape (kinds,)."""
        part, factors = self.part, self.part.tables[key]
        total = np.zeros(len(self.steps))
        for sector, each in self.sectors.items():
            fixed = dict(sector)
            share = math.prod(
                float(part.own(place, factors[place])[one]) * (int(part.levels[place].members[one]) - 1)
                for place, one in fixed.items()
            )
            if share > 0:
                averaged = [place for place in range(len(factors)) if place not in fixed]
                whole = self._over_orbits(each.inverse, sector)
                seen = whole
                for axis, place in enumerate(averaged):
                    gram = part.averaged_gram(place, factors[place])
                    seen = np.moveaxis(np.tensordot(gram, seen, axes=([1], [axis])), 0, axis)
                sums = (whole * seen).reshape(-1, len(each.weights)).sum(axis=0)
                np.add.at(total, self._kinds[sector], share * sums)
        return total

    def combined(self, key: Key, shares: Sequence[Floats]) -> Floats:
        """What a sum of queries of a table takes of each weighted row; shares of the rows of each factor."""
        part, found = self.part, []
        pairs = zip(part.tables[key], shares, part.levels, strict=True)
        rows = [factor.apply_transpose(each, 0)[level.kept] for factor, each, level in pairs]
        for sector, each in self.sectors.items():
            fixed = dict(sector)
            averaged = [part.levels[place].averages(row, 0) for place, row in enumerate(rows) if place not in fixed]
            means = reduce(np.multiply.outer, averaged, np.ones(())).reshape(-1)[self._seen[sector][1]]
            values = [means @ each.inverse]
            for place, one in fixed.items():
                here = rows[place][part.levels[place].levels_of(one)]
                values.append(here - here.mean())
            found.append(reduce(np.multiply.outer, values).reshape(-1))
        return np.concatenate(found)

    def _over_orbits(self, values: Floats, sector: Sector) -> Floats:
        """Numbers by measured orbits and rows, over all orbits of a sector; shape (*classes, rows)."""
        fixed = dict(sector)
        shape = [size for place, size in enumerate(self.part.orbit_shape) if place not in fixed]
        full = np.zeros((math.prod(shape), values.shape[1]))
        full[self._seen[sector][1]] = values
        return full.reshape(*shape, values.shape[1])


def lengths(part: Part, sector: Sector) -> Floats:
    """Π√m over averaged attributes times Πm_c over the others, for each orbit measured: from b to orthonormal rows."""
    fixed = dict(sector)
    averaged = [np.sqrt(level.members) for place, level in enumerate(part.levels) if place not in fixed]
    together = reduce(np.multiply.outer, averaged, np.ones(())).reshape(-1)
    return np.asarray(together[part.seen(sector)[1]] * float(copies(part, sector)))


def published(residuals: Residuals, sectors: dict[Sector, WholeSector], bits: int) -> WholeRows:
    """Whole-number rows in place of given ones; `bits` is 0 where nothing had to be rounded."""
    words = f"{residuals.words}, in whole numbers of {bits} bits" if bits else residuals.words
    return WholeRows(residuals.part, words, sectors, bits)
