"""What is measured in a part, sector by sector, and what of it is published: whole-number rows with rational weights.

In the sector S, A_S ⊗ ⊗_{(i, c) ∈ S} (I − J/m on the class c) ⊗ ⊗_{i ∉ S} (averages of classes, 1ᵀ/√m) is measured;
sectors do not overlap, so AᵀA = Σ_S A_SᵀA_S ⊗ P_S. Where no levels are exchangeable there is one sector: any matrix
over merged cells. Where all are, A_S is a number, and the rows are those of ResidualPlanner. Source: [XHZK23].

As it is published, row r of S is b[r, o]·Π_{(i, c) ∈ S} (m_c·δ − 1) over merged cells, one copy for each choice of
levels of the classes in S; b is a row of whole numbers over orbits o, and m_c counts the levels of a class. Weighted by
w_r it is the row w_r·b·Π√m·Πm_c of A_S. One record moves all copies together by Σ(w|a|)² = w²b²·Πm_c(m_c − 1), or by
Σw|a| = w|b|·Π2(m_c − 1). Weights are whole numbers over a power of two, so that sums of them are that, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from dualmandate.mechanism.strategy.workload_blocks import (
    EVERYTHING_AVERAGED,
    Key,
    Sector,
    WorkloadBlock,
    add_component,
    copies,
    squared_lengths,
)
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload.factor import LARGEST_INTEGER, Numbers
from dualmandate.workload.sensitivity import Norm

MOST_PAIRS = 2**28  # of orbits, times patterns
CHUNK = 2**22  # numbers that are held at once
MOST_LABELED = 2**26  # pairs of cells that are looked at one by one for their labels
CLOSE = 1e-9  # of the largest column: losses this near to the largest, in floats, are compared exactly
MOST_DIFFERENCES = 2**32  # of two numbers, between all pairs of columns
MOST_LEADERS = 2**24  # products that are added up exactly

Answer = tuple[Fraction, bool]  # the value, and whether it is exact; otherwise it is an upper bound


@dataclass(frozen=True, eq=False)
class OptimalRows:
    """Rows A_S that are measured in one block (rows × orbits), and B_S (orbits × rows) with W·B_S·A_S = W."""

    rows: Floats
    inverse: Floats

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Residuals:
    """Rows measured over the merged cells of a part, by sectors, as they are found; noise is independent by rows."""

    part: WorkloadBlock
    measurements: dict[Sector, OptimalRows]  # rows over the orbits of each sector that are measured
    words: str

    __repr__ = one_line

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm ΔA; L1 only where nothing is exchangeable, for differences have many signs."""
        if norm == "l1":
            assert self.part.orbit_count == self.part.merged_size
            return float(np.abs(self.measurements[EVERYTHING_AVERAGED].rows).sum(axis=0).max())
        squares = np.zeros(len(self.part.cells))
        for sector, measured in self.measurements.items():
            squares[self.part.seen(sector)[0]] += self.part.multiplicity(sector) * np.square(measured.rows).sum(axis=0)
        return math.sqrt(float((squares / self.part.orbit_sizes).max()))

    def exact(self, norm: Norm) -> IntegerRows:
        """Whole-number rows with rational weights, whose error is at most 0.1 % more."""
        # Rounding measures its own error with rows like these.
        from dualmandate.mechanism.strategy.integer_rounding import whole_rows

        return whole_rows(self, norm)


@dataclass(frozen=True, eq=False)
class Labels:
    """Which pairs of cells have one label: by attributes that must agree, by orbits, or by a list of what occurs."""

    agreeing: frozenset[int] = frozenset()  # places of attributes on which two cells must have the same level
    orbits: Integers | None = None  # one label an orbit
    listed: Booleans | None = None  # by patterns and both orbits
    exact: bool = True  # False: pairs of different labels are among them


@dataclass(frozen=True, eq=False)
class OrbitPairs:
    """Pairs of orbits that can occur, and patterns of attributes on which two cells have the same level."""

    part: WorkloadBlock
    orbits: Indices  # that can occur, asked about or not
    classes: tuple[Indices, ...]  # one an attribute: the class of each orbit
    varied: tuple[int, ...]  # places of attributes with classes of several levels

    @classmethod
    def of(cls, part: WorkloadBlock) -> OrbitPairs:
        orbits = part.possible_orbits
        varied = tuple(place for place, level in enumerate(part.levels) if int(level.members.max()) > 1)
        return cls(part, orbits, np.unravel_index(orbits, part.orbit_shape), varied)

    @property
    def are_many(self) -> bool:
        count = len(self.orbits)
        return count << len(self.varied) > CHUNK or count**2 << len(self.varied) > MOST_PAIRS

    @cached_property
    def patterns(self) -> Booleans:
        """True for the same level; shape (patterns, attributes that are varied)."""
        numbers = np.arange(2 ** len(self.varied))
        return np.asarray((numbers[:, None] >> np.arange(len(self.varied))) & 1, dtype=np.bool_)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Stretches of orbits, each to be compared with all from its first on."""
        count = len(self.orbits)
        height = max(1, (CHUNK >> len(self.varied)) // count)
        for start in range(0, count, height):
            yield start, min(start + height, count)

    def labels(self, same: Integers | None) -> Labels:
        """What labels of merged cells say about orbits and patterns."""
        if same is None:
            return Labels()
        grid = same.reshape(self.part.merged_shape)
        told = [place for place in range(grid.ndim) if np.any(grid != np.take(grid, [0], axis=place))]
        if len(np.unique(same)) == math.prod(self.part.merged_shape[place] for place in told):
            return Labels(agreeing=frozenset(told))
        first = grid[np.ix_(*(level.first for level in self.part.levels))]
        if np.array_equal(first[np.ix_(*(level.classes for level in self.part.levels))], grid):
            return Labels(orbits=first.reshape(-1)[self.orbits])
        listed = self._listed(same)
        return Labels(exact=False) if listed is None else Labels(listed=listed)

    def _listed(self, same: Integers) -> Booleans | None:
        """Patterns and pairs of orbits of cells with one label, by looking at all; None where there are too many."""
        part, count = self.part, len(self.orbits)
        possible = np.ones(part.merged_shape, dtype=np.bool_) if part.possible is None else part.possible
        cells = np.flatnonzero(possible)
        cells = cells[np.argsort(same[cells], kind="stable")]
        groups = np.split(cells, np.flatnonzero(np.diff(same[cells])) + 1)
        if sum(len(group) ** 2 for group in groups) > MOST_LABELED or count**2 << len(self.varied) > MOST_LABELED:
            return None
        found = np.zeros((2 ** len(self.varied), count, count), dtype=np.bool_)
        for group in groups:
            levels = np.unravel_index(group, part.merged_shape)
            classes = [level.classes[each] for level, each in zip(part.levels, levels, strict=True)]
            orbits = np.searchsorted(self.orbits, np.ravel_multi_index(classes, part.orbit_shape))
            pattern = np.zeros((len(group), len(group)), dtype=np.intp)
            for bit, place in enumerate(self.varied):
                pattern += (levels[place][:, None] == levels[place][None, :]).astype(np.intp) << bit
            found[pattern, orbits[:, None], orbits[None, :]] = True
        return found

    def allowed(self, start: int, stop: int, labels: Labels) -> Booleans:
        """Which patterns are possible between some orbits and all from the first of them on, a cell and itself too."""
        here, there, patterns = slice(start, stop), slice(start, None), self.patterns
        found = np.ones((len(patterns), stop - start, len(self.orbits) - start), dtype=np.bool_)
        for place, classes in enumerate(self.classes):
            equal = classes[here, None] == classes[None, there]
            if place in self.varied:
                several = self.part.levels[place].members[classes[here]] > 1
                differ = ~equal | several[:, None]
                if place in labels.agreeing:
                    differ = np.zeros_like(equal)
                found &= np.where(patterns[:, self.varied.index(place), None, None], equal, differ)
            elif place in labels.agreeing:
                found &= equal
        if labels.orbits is not None:
            found &= labels.orbits[here, None] == labels.orbits[None, there]
        if labels.listed is not None:
            found &= labels.listed[:, here, there]
        return found


@dataclass(frozen=True, eq=False)
class IntegerSector:
    """The rows of one sector: whole numbers without a common divisor, their weights, and how to put queries together.

    `inverse` is A_S⁺ for A_S = diag(w)·b in the coordinates of `Residuals`, shape (orbits, rows).
    """

    numbers: Integers  # b, shape (rows, orbits that are measured)
    weights: tuple[Fraction, ...]  # w > 0, one a row, over powers of two
    inverse: Floats

    __repr__ = one_line

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
class IntegerRows:
    """Rows of whole numbers over the merged cells of a part, times weights; noise is independent from row to row."""

    part: WorkloadBlock
    words: str
    sectors: dict[Sector, IntegerSector]
    bits: int = 0  # to which rows with unequal entries were rounded; 0: there are none

    __repr__ = one_line

    @property
    def rows(self) -> int:
        return sum(len(each.weights) * copies(self.part, sector) for sector, each in self.sectors.items())

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row, from the largest to the smallest."""
        return tuple(sorted({weight for each in self.sectors.values() for weight in each.weights}, reverse=True))

    @cached_property
    def _kinds(self) -> dict[Sector, Indices]:
        places = {weight: place for place, weight in enumerate(self.steps)}
        return {s: np.array([places[w] for w in each.weights], dtype=np.intp) for s, each in self.sectors.items()}

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

        That is what one changed record can move; where it is not exact, it is an upper bound, 2^power times the largest
        column. With `same`, one label a merged cell (row-major), only between cells of one label.
        """
        found = _all_pairs(self, same) if power == 1 else _Squares.of(self).farthest(same)
        return found or (2**power * self.largest_column(power), False)

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

    def estimate(self, measured: Floats) -> Floats:
        """The best linear unbiased counts, (k, *merged_shape), from weighted rows w·(a·x + noise), shape (k, rows)."""
        total = np.zeros((len(measured), *self.part.merged_shape))
        start = 0
        for sector, each in self.sectors.items():
            stop = start + len(each.weights) * copies(self.part, sector)
            values = measured[:, start:stop].reshape(len(measured), len(each.weights), -1)
            full = np.zeros((len(measured), len(self.part.orbits_of(sector)), values.shape[2]))
            full[:, self._seen[sector][1]] = np.moveaxis(np.tensordot(each.inverse, values, axes=([1], [1])), 0, 1)
            add_component(self.part, total, full, sector)
            start = stop
        return total

    def coefficients(self, key: Key, variances: Floats) -> Floats:
        """Σ_r (FA⁺)²·v for each query of a table, v the variance by kind; by rows of each factor."""
        inverses = {
            sector: (self._seen[sector][1], each.inverse * np.sqrt(variances[self._kinds[sector]]))
            for sector, each in self.sectors.items()
        }
        return squared_lengths(self.part, key, inverses)

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


def lengths(part: WorkloadBlock, sector: Sector) -> Floats:
    """Π√m over averaged attributes times Πm_c over the others, for each orbit measured: from b to orthonormal rows."""
    fixed = dict(sector)
    averaged = [np.sqrt(level.members) for place, level in enumerate(part.levels) if place not in fixed]
    together = reduce(np.multiply.outer, averaged, np.ones(())).reshape(-1)
    return np.asarray(together[part.seen(sector)[1]] * float(copies(part, sector)))


def published(residuals: Residuals, sectors: dict[Sector, IntegerSector], bits: int) -> IntegerRows:
    """Whole-number rows in place of given ones; `bits` is 0 where nothing had to be rounded."""
    words = f"{residuals.words}, in whole numbers of {bits} bits" if bits else residuals.words
    return IntegerRows(residuals.part, words, sectors, bits)


def _all_pairs(rows: IntegerRows, same: Integers | None) -> Answer | None:
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

    rows: IntegerRows
    pairs: OrbitPairs
    sizes: Floats  # X_cc of each orbit, rounded

    @classmethod
    def of(cls, rows: IntegerRows) -> _Squares:
        pairs = OrbitPairs.of(rows.part)
        sizes = np.zeros(len(pairs.orbits))
        sizes[np.searchsorted(pairs.orbits, rows.part.cells)] = rows.rough_columns(2)
        return cls(rows, pairs, sizes)

    def farthest(self, same: Integers | None) -> Answer | None:
        count = len(self.pairs.orbits)
        looked_at = count**2 << len(self.pairs.varied)
        if self.pairs.are_many or looked_at * len(self.rows.sectors) > MOST_DIFFERENCES:
            return None
        labels = self.pairs.labels(same)
        close, rough, found, ties = CLOSE * float(self.sizes.max()), 0.0, Fraction(0), False
        for start, stop in self.pairs.chunks():
            apart = np.where(self.pairs.allowed(start, stop, labels), self._rough(start, stop), -1.0)
            rough = max(rough, float(apart.max()))
            pattern, one, other = np.nonzero(apart >= max(rough - close, 0.0))
            ties = ties or len(pattern) * sum(len(each.weights) for each in self.rows.sectors.values()) > MOST_LEADERS
            if not ties:
                found = max([found, *self._exactly(pattern, one + start, other + start)])
        return (Fraction(rough + close), False) if ties else (found, labels.exact)

    def _shares(self, sector: Sector) -> Numbers:
        """Π_S m(m·δ − 1) for each pattern, exactly; shape (patterns,)."""
        found: Numbers = np.ones(len(self.pairs.patterns), dtype=np.object_)
        for place, one in sector:
            size = int(self.rows.part.levels[place].members[one])
            same = self.pairs.patterns[:, self.pairs.varied.index(place)]
            found *= np.where(same, size * (size - 1), -size).astype(np.object_)
        return found

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
                found[index] -= np.multiply.outer(2 * self._shares(sector).astype(np.float64), products)
        return found

    def _exactly(self, pattern: Indices, one: Indices, other: Indices) -> list[Fraction]:
        """The same for some patterns and pairs of orbits, exactly."""
        totals, bound = [Fraction(0)] * len(pattern), 8 * float(self.sizes.max())
        for sector, each in self.rows.sectors.items():
            places, spread = self._places(sector), self.rows.spread(sector, 2)
            number = np.full(len(self.pairs.orbits), -1)
            number[places] = np.arange(len(places))
            touched = np.flatnonzero((number[one] >= 0) | (number[other] >= 0))
            unit, shares = Fraction(1, 1 << 2 * each.exponent), self._shares(sector)[pattern]
            largest = math.ldexp(bound, 2 * each.exponent)
            left, right = (_columns(each, number[side[touched]], largest) for side in (one, other))
            sums = [(a * b).sum(axis=0).tolist() for a, b in ((left, left), (right, right), (left, right))]
            for place, square, another, mixed in zip(touched.tolist(), *sums, strict=True):
                totals[place] += unit * (spread * (square + another) - 2 * shares[place] * mixed)
        return totals


def _columns(sector: IntegerSector, numbers: Indices, largest: float) -> Numbers:
    """2^t·w·b over some orbits; zero for those that are not measured, numbered -1."""
    return np.where(numbers >= 0, sector.scaled(np.maximum(numbers, 0), largest), 0)
