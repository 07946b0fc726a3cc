"""Tables of plain counts, each count with a weight of its own, measured together and made consistent by least squares.

A table counts by a partition of each attribute's levels. Such a coding treats exchangeable levels alike: each class of
levels is either part of one group, or every level of it is a group by itself ("fine"). Rows are plain counts, one a
combination of groups. A = the rows of all tables times their weights. Groups of exchangeable levels share a weight, so
AᵀA splits into one block X_S a sector, and estimates are Σ_S X_S⁺Aᵀy without A or A⁺ ever being written out over cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.strategy.axes import Axis
from dualmandate.mechanism.strategy.integer_rows import OrbitPairs
from dualmandate.mechanism.strategy.workload_blocks import (
    Key,
    Sector,
    WorkloadBlock,
    add_component,
    component,
    squared_lengths,
)
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import Factor, Groups, Identity, Total
from dualmandate.workload.factor import AllRange, Prefix
from dualmandate.workload.levels import column_classes
from dualmandate.workload.sensitivity import Norm

MOST_TABLES = 1_024  # combinations of codings that are looked at
MOST_LAYERS = 4  # of overlapping groups that are dealt into partitions
LARGEST_LISTED = 2**20  # entries of overlapping groups that are dealt into partitions
SHORTEST_RUNS = (2, 3)  # consecutive levels that are counted together; longer ones have twice as many
BITS = 18  # of a weight, after the binary point
_ROUNDING = 1e-9  # of the largest singular value of a sector, below which a direction is not measured
_UNSEEN = 1e-12  # share of a workload's squares that may lie outside of what is measured
_NOTHING = 1e-12  # of the largest entry of a vector: differences below are rounding errors


@dataclass(frozen=True)
class Partition:
    """A partition of the levels of one attribute, by classes of exchangeable levels."""

    groups: tuple[int, ...]  # the group of each class, numbered in order of first classes
    fine: tuple[bool, ...]  # whether each level of the class is a row of its own; such a class shares no group

    @classmethod
    def of(cls, axis: Axis, labels: Iterable[object], fine: Iterable[bool]) -> Partition:
        """The coding that puts classes of equal labels together, but for those that are fine."""
        alone = tuple(bool(each) and int(count) > 1 for each, count in zip(fine, axis.members, strict=True))
        known: dict[object, int] = {}
        names = (("class", c) if alone[c] else ("label", label) for c, label in enumerate(labels))
        return cls(tuple(known.setdefault(name, len(known)) for name in names), alone)

    @property
    def count(self) -> int:
        """Groups, a fine class being one."""
        return max(self.groups) + 1

    def is_finer_than(self, other: Partition) -> bool:
        """Whether every row of the other one is a sum of rows of this one (or the same row)."""
        return self.joined(other) == self

    def joined(self, other: Partition) -> Partition:
        """The coarsest coding that is finer than both."""
        fine = tuple(one or two for one, two in zip(self.fine, other.fine, strict=True))
        known: dict[object, int] = {}
        pairs = enumerate(zip(self.groups, other.groups, strict=True))
        names = [("class", c) if fine[c] else ("pair", pair) for c, pair in pairs]
        return Partition(tuple(known.setdefault(name, len(known)) for name in names), fine)

    def rows_of(self, axis: Axis) -> tuple[Indices, Indices]:
        """The row of each merged level, rows in the order of their first levels, and the group of each row."""
        groups = np.asarray(self.groups)[axis.classes]
        alone = np.asarray(self.fine)[axis.classes]
        labels = np.where(alone, self.count + np.arange(axis.merged), groups)
        first, found = np.unique(labels, return_index=True, return_inverse=True)[1:]
        order = np.argsort(first)
        return np.asarray(np.argsort(order)[found.reshape(-1)]), np.asarray(groups[first[order]])

    def factor(self, axis: Axis) -> Factor:
        """The rows as a 0/1 matrix over merged levels."""
        labels, groups = self.rows_of(axis)
        if len(groups) == 1:
            return Total(len(labels))
        if len(groups) == len(labels):
            return Identity(len(labels))
        cells = np.argsort(labels, kind="stable").astype(np.int64)
        starts = np.searchsorted(labels[cells], np.arange(len(groups))).astype(np.int64)
        return Groups(len(labels), cells, starts)


Grouping = tuple[Partition, ...]  # a table: one coding an attribute


def group_count(table: Grouping) -> int:
    """Groups of a table that have weights of their own."""
    return math.prod(coding.count for coding in table)


def entries(table: Grouping) -> int:
    """Numbers in the rows of a table over all sectors, at most."""
    return math.prod(coding.count * len(coding.groups) + sum(coding.fine) for coding in table)


def is_finer(table: Grouping, other: Grouping) -> bool:
    """Whether every row of the other table is a sum of rows of this one."""
    return all(one.is_finer_than(two) for one, two in zip(table, other, strict=True))


def joined(table: Grouping, other: Grouping) -> Grouping:
    """The coarsest table that is finer than both."""
    return tuple(one.joined(two) for one, two in zip(table, other, strict=True))


def finest(tables: Iterable[Grouping]) -> tuple[Grouping, ...]:
    """The tables that none of the others is finer than."""
    distinct = list(dict.fromkeys(tables))
    return tuple(
        table for table in distinct if not any(other != table and is_finer(other, table) for other in distinct)
    )


def own_tables(part: WorkloadBlock) -> tuple[Grouping, ...]:
    """For each table asked for, the counts of cells that it treats alike; only the finest of them."""
    asked = (factors for key, factors in part.tables.items() if part.squared_weights[key] > 0)
    return finest(tuple(alike(part, place, factor) for place, factor in enumerate(factors)) for factors in asked)


def alike(part: WorkloadBlock, place: int, factor: Factor) -> Partition:
    """Levels together that a factor treats alike (equal columns)."""
    axis = part.levels[place]
    if isinstance(factor, Total):
        return Partition.of(axis, [0] * axis.orbits, [False] * axis.orbits)
    if isinstance(factor, Identity):
        return Partition.of(axis, range(axis.orbits), [True] * axis.orbits)
    labels = column_classes([factor], axis.size)[axis.kept[axis.first]]
    return Partition.of(axis, labels.tolist(), (part.own(place, factor) > 0).tolist())


def codings_of(part: WorkloadBlock, place: int) -> tuple[Partition, ...]:
    """Candidates for one attribute: the total, what each factor treats alike and its groups, classes, each level."""
    axis = part.levels[place]
    coarse = [False] * axis.orbits
    found = [Partition.of(axis, [0] * axis.orbits, coarse)]
    factors = {factors[place].key: factors[place] for factors in part.tables.values()}
    for factor in factors.values():
        found.append(alike(part, place, factor))
        found.extend(_layers(axis, factor))
    found.append(Partition.of(axis, range(axis.orbits), coarse))
    if any(isinstance(factor, Prefix | AllRange) for factor in factors.values()):
        doublings = range(axis.orbits.bit_length())
        widths = (width for run in SHORTEST_RUNS for times in doublings if (width := run << times) < axis.orbits)
        found.extend(Partition.of(axis, (np.arange(axis.orbits) // width).tolist(), coarse) for width in widths)
    found.append(Partition.of(axis, range(axis.orbits), [True] * axis.orbits))
    return tuple(dict.fromkeys(found))


def _layers(axis: Axis, factor: Factor) -> list[Partition]:
    """Overlapping groups dealt into layers that do not overlap; levels in no group form one more."""
    scales = factor.scales
    if isinstance(factor, Prefix | AllRange) or scales is None or factor.rows * axis.merged > LARGEST_LISTED:
        return []
    if not 2 <= int(factor.counts.max()) <= MOST_LAYERS or not np.all((scales == 0) | (scales == 1)):
        return []
    layers: list[Indices] = []
    for number, row in enumerate(factor.columns(axis.kept) != 0, start=1):
        free = next((layer for layer in layers if not layer[row].any()), None)
        if free is None:
            free = np.zeros(axis.merged, dtype=np.intp)
            layers.append(free)
        free[row] = number
    return [coding for layer in layers if (coding := _invariant(axis, layer)) is not None]


def _invariant(axis: Axis, labels: Indices) -> Partition | None:
    """The coding of a partition of merged levels, if it treats exchangeable levels alike."""
    sizes = np.bincount(labels)
    fine = []
    for one in range(axis.orbits):
        here = labels[axis.levels_of(one)]
        together = bool(np.all(here == here[0]))
        if not together and not np.all(sizes[here] == 1):
            return None
        fine.append(not together)
    return Partition.of(axis, labels[axis.first].tolist(), fine)


def coarser_tables(part: WorkloadBlock, tables: Sequence[Grouping]) -> tuple[Grouping, ...]:
    """All combinations of codings that one of these tables is at least as fine as, the given ones first.

    Where there are too many, each table with some attributes summed.
    """
    codings = [codings_of(part, place) for place in range(len(part.axes))]
    found = dict.fromkeys(tables)
    for table in tables:
        below = [[each for each in some if one.is_finer_than(each)] for some, one in zip(codings, table, strict=True)]
        if len(found) + math.prod(len(some) for some in below) > MOST_TABLES:
            below = [[some[0], one] if some[0] != one else [one] for some, one in zip(below, table, strict=True)]
        if len(found) + math.prod(len(some) for some in below) <= MOST_TABLES:
            found.update(dict.fromkeys(product(*below)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Layout:
    """The groups of some tables, numbered table after table, over the orbits that can occur, asked about or not."""

    part: WorkloadBlock
    tables: tuple[Grouping, ...]
    orbits: Indices  # that can occur, row-major: a record in any of them is counted
    places: Indices  # the group of each table that holds an orbit; shape (tables, orbits)
    scales: Floats  # the entry of an orbit in the row of its group: √m where m levels are counted together
    starts: Indices  # the first group of each table, and the number of all groups

    __repr__ = one_line

    @classmethod
    def of(cls, part: WorkloadBlock, tables: Sequence[Grouping]) -> Layout:
        orbits = part.possible_orbits
        classes = np.unravel_index(orbits, part.orbit_shape)
        lengths = [np.sqrt(level.members.astype(np.float64)) for level in part.levels]
        starts = np.cumsum([0, *(group_count(table) for table in tables)])
        places = np.zeros((len(tables), len(orbits)), dtype=np.intp)
        scales = np.ones((len(tables), len(orbits)))
        for number, table in enumerate(tables):
            for coding, here, length in zip(table, classes, lengths, strict=True):
                places[number] = places[number] * coding.count + np.asarray(coding.groups)[here]
                scales[number] *= np.where(coding.fine, 1.0, length)[here]
        return cls(part, tuple(tables), orbits, places + starts[:-1, None], scales, starts)

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def columns(self, sector: Sector) -> tuple[Indices, Indices]:
        """Which of `orbits` a sector has, and where each stands among the sector's own orbits."""
        own = self.part.orbits_of(sector)
        where = np.minimum(np.searchsorted(self.orbits, own), len(self.orbits) - 1)
        inside = np.flatnonzero(self.orbits[where] == own)
        return where[inside], inside

    def telling(self, sector: Sector) -> Booleans:
        """Which tables tell levels of the classes apart that a sector looks at the differences of; shape (tables,)."""
        found = np.ones(len(self.tables), dtype=np.bool_)
        for place, one in sector:
            found &= self._fine[place][:, one]
        return found

    @cached_property
    def _fine(self) -> list[Booleans]:
        """For each attribute which classes a table tells the levels of apart; shape (tables, classes)."""
        return [np.array([table[place].fine for table in self.tables]) for place in range(len(self.part.axes))]

    def rows(self, some: Booleans, columns: Indices) -> tuple[Indices, Floats]:
        """The groups of some tables that hold some orbits, and the row of each over these."""
        places = self.places[some][:, columns]
        groups, numbers = np.unique(places, return_inverse=True)
        rows = np.zeros((len(groups), len(columns)))
        rows[numbers.reshape(places.shape), np.arange(len(columns))] = self.scales[some][:, columns]
        return groups, rows


@dataclass(frozen=True, eq=False)
class GroupStack:
    """Some tables of a part, each group of each times a weight, stacked; one row a combination of groups."""

    part: WorkloadBlock
    groupings: tuple[Grouping, ...]
    weights: tuple[Floats, ...]  # by groups of each attribute's coding, one array a table
    words: str

    __repr__ = one_line

    @cached_property
    def rows(self) -> int:
        """Number of measurements (an exact integer, however large)."""
        total = 0
        for grouping, weights in zip(self.groupings, self.weights, strict=True):
            pairs = zip(grouping, self.part.levels, strict=True)
            counts = [np.bincount(coding.rows_of(axis)[1]).tolist() for coding, axis in pairs]
            total += sum(math.prod(each) for each, w in zip(product(*counts), weights.flat, strict=True) if w > 0)
        return total

    @cached_property
    def layout(self) -> tuple[tuple[tuple[Factor, ...], Floats, Indices], ...]:
        """For each table its factors over merged levels, the weight of each row, and the rows that are measured."""
        found = []
        for grouping, weights in zip(self.groupings, self.weights, strict=True):
            pairs = list(zip(grouping, self.part.levels, strict=True))
            by_row = weights[np.ix_(*(coding.rows_of(axis)[1] for coding, axis in pairs))].reshape(-1)
            factors = tuple(coding.factor(axis) for coding, axis in pairs)
            found.append((factors, by_row, np.flatnonzero(by_row > 0)))
        return tuple(found)

    @cached_property
    def places(self) -> Layout:
        """Where the groups of all tables lie among the orbits."""
        return Layout.of(self.part, self.groupings)

    @cached_property
    def flat(self) -> Floats:
        """The weights of all groups, table after table."""
        return np.concatenate([weights.reshape(-1) for weights in self.weights])

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm over all cells that can occur, asked about or not: Σw, or √Σw²."""
        power = 1 if norm == "l1" else 2
        largest = float((self.flat**power)[self.places.places].sum(axis=0).max())
        return largest if norm == "l1" else math.sqrt(largest)

    @cached_property
    def roots(self) -> dict[Sector, tuple[Indices, Floats]]:
        """For each sector its orbits that can occur, and B (orbits × rank) with X_S⁺ = BBᵀ."""
        found = {}
        for sector in self.part.sectors:
            inside = self.places.columns(sector)[1]
            groups, rows = self.rows_of(sector)
            _, sizes, right = np.linalg.svd(rows * self.flat[groups][:, None], full_matrices=False)
            seen = sizes > _ROUNDING * sizes.max(initial=0.0)
            found[sector] = (inside, np.asarray(right[seen].T / sizes[seen]))
        return found

    def rows_of(self, sector: Sector) -> tuple[Indices, Floats]:
        """The groups that a sector sees, and the row of each over its orbits that can occur, before weights."""
        return self.places.rows(self.places.telling(sector), self.places.columns(sector)[0])

    @cached_property
    def inverses(self) -> dict[Sector, tuple[Indices, Floats]]:
        """The same less what is public: only the rest of a query is put together from measurements."""
        found = {}
        for sector, (inside, root) in self.roots.items():
            if sector in self.part.public_sectors:
                basis = self.part.public_basis(sector)
                root = root - basis.T @ (basis @ root)
            found[sector] = (inside, root)
        return found

    def error(self) -> float:
        """Σ_S μ_S tr(V_S X_S⁺), the error of all queries; infinite where the tables do not support them."""
        total = 0.0
        for sector, (inside, root) in self.roots.items():
            asked = self.part.rows(sector)[:, inside]
            answered = asked @ root
            basis = root / np.linalg.norm(root, axis=0)
            if float(np.square(asked - (asked @ basis) @ basis.T).sum()) > _UNSEEN * float(np.square(asked).sum()):
                return math.inf
            total += self.part.multiplicity(sector) * float(np.square(answered).sum())
        return total

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers; shape (k, *merged_shape)."""
        sums = np.zeros((len(measured), *self.part.merged_shape))
        start = 0
        for factors, weights, kept in self.layout:
            values = np.zeros((len(measured), len(weights)))
            values[:, kept] = measured[:, start : start + len(kept)] * weights[kept]
            values = values.reshape(len(measured), *(factor.rows for factor in factors))
            for place, factor in enumerate(factors):
                values = factor.apply_transpose(values, 1 + place)
            sums += values
            start += len(kept)
        total = np.zeros_like(sums)
        for sector, (orbits, root) in self.roots.items():
            values = component(self.part, sums, sector)
            solved = np.tensordot(root, values[:, orbits], axes=([0], [1]))
            values = np.zeros_like(values)
            values[:, orbits] = np.moveaxis(np.tensordot(self.inverses[sector][1], solved, axes=([1], [0])), 0, 1)
            add_component(self.part, total, values, sector)
        return total

    def exact(self, _: Norm) -> IntegerPartitions:
        """The same counts, weights rounded down to multiples of 2^-BITS; groups that vanish must not be needed."""
        weights = tuple(np.ldexp(np.floor(np.ldexp(each, BITS)), -BITS) for each in self.weights)
        rounded = IntegerPartitions(self.part, self.groupings, weights, self.words)
        if not math.isfinite(rounded.error()):
            raise InvalidMechanism(
                "a strategy that rests on counts of a weight below a millionth",
                why="a row with no loss to speak of is not measured, and without it some query has no answer",
                instead="publish with noise on the tables, or weigh the tables more evenly",
            )
        return rounded


def stacked_marginals(part: WorkloadBlock, weights: Mapping[frozenset[int], float], words: str) -> GroupStack:
    """Marginals of attributes whose levels are all exchangeable, each with one weight, by the places they keep."""
    groupings = tuple(
        tuple(Partition.of(level, [0], [place in kept]) for place, level in enumerate(part.levels)) for kept in weights
    )
    arrays = tuple(np.full((1,) * len(part.levels), weight) for weight in weights.values())
    return GroupStack(part, groupings, arrays, words)


@dataclass(frozen=True, eq=False)
class IntegerPartitions(GroupStack):
    """Tables of plain counts as they are published: each count a whole number with a rational loss of its own.

    Nothing is rounded but the weights, down to multiples of 2^-BITS; a record is in at most one row of each table, so
    that it moves the rows by Σ_t w_t, and a record that changes its cell by the weights of both cells in the tables in
    which their rows differ.
    """

    __repr__ = one_line

    @cached_property
    def _distinct(self) -> Floats:
        """Different weights, from the largest to the smallest."""
        found = np.unique(self.flat)[::-1]
        return found[found > 0]

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(float(weight)) for weight in self._distinct)

    def _kinds_of(self, weights: Floats) -> Indices:
        return len(self._distinct) - 1 - np.searchsorted(self._distinct[::-1], weights)

    def kinds(self) -> Indices:
        return np.concatenate([self._kinds_of(weights[kept]) for _, weights, kept in self.layout])

    @cached_property
    def _moves(self) -> Integers:
        """The weight of each orbit's group in each table, in units of 2^-BITS; shape (tables, orbits)."""
        return np.rint(np.ldexp(self.flat, BITS)).astype(np.int64)[self.places.places]

    def largest_column(self, power: int) -> Fraction:
        """The largest Σ w^power over cells that can occur, exactly: a record is in one row of each table."""
        return Fraction(int((self._moves**power).sum(axis=0).max()), 1 << power * BITS)

    def largest_difference(self, power: int, same: Integers | None) -> tuple[Fraction, bool]:
        """The largest Σ (w^power + w′^power) over the tables in which two cells are in different rows; exact."""
        pairs = OrbitPairs.of(self.part)
        if pairs.are_many:
            return 2 * self.largest_column(power), False
        labels = pairs.labels(same)
        moves, groups = self._moves**power, self.places.places
        best = 0
        for start, stop in pairs.chunks():
            apart = np.zeros((len(pairs.patterns), stop - start, len(pairs.orbits) - start), dtype=np.int64)
            for table, (move, group) in enumerate(zip(moves, groups, strict=True)):
                shared = self._same_levels(table, pairs)[:, start:stop, None] & (
                    group[start:stop, None] == group[start:]
                )
                apart += np.where(shared, 0, move[start:stop, None] + move[None, start:])
            allowed = pairs.allowed(start, stop, labels)
            best = max(best, int(np.max(apart, where=allowed, initial=0)))
        return Fraction(best, 1 << power * BITS), labels.exact

    def _same_levels(self, table: int, pairs: OrbitPairs) -> Booleans:
        """For each pattern and orbit, whether cells of one group are in one row: levels told apart are the same."""
        found = np.ones((len(pairs.patterns), len(pairs.orbits)), dtype=np.bool_)
        for bit, place in enumerate(pairs.varied):
            told_apart = np.asarray(self.groupings[table][place].fine)[pairs.classes[place]]
            found &= pairs.patterns[:, bit, None] | ~told_apart
        return found

    def count(self, counts: Integers) -> Integers:
        """The counts of the groups for whole histograms over merged cells; shape (k, rows)."""
        found = []
        for factors, _, kept in self.layout:
            values = counts
            for place, factor in enumerate(factors):
                values = factor.apply(values, 1 + place)
            found.append(values.reshape(len(counts), -1)[:, kept])
        return np.concatenate(found, axis=1)

    def table_sums(self, key: Key) -> Floats:
        """Σ of (FA⁺)² over the queries of a table and the rows of each kind: μ_S·w²·u X⁺V_tX⁺u; shape (kinds,)."""
        total = np.zeros(len(self._distinct))
        for sector, (inside, private) in self.inverses.items():
            gram = self.part.table_gram(key, sector)
            if gram is None:
                continue
            groups, rows = self.rows_of(sector)
            taken = (rows @ self.roots[sector][1]) @ private.T
            squares = np.einsum("ij,ij->i", taken @ gram[np.ix_(inside, inside)], taken)
            weights = self.flat[groups]
            used = weights > 0
            shares = self.part.multiplicity(sector) * weights**2 * squares
            np.add.at(total, self._kinds_of(weights[used]), shares[used])
        return total

    def coefficients(self, key: Key, variances: Floats) -> Floats:
        inverses = {}
        for sector, (inside, private) in self.inverses.items():
            groups, rows = self.rows_of(sector)
            weights = self.flat[groups]
            used = weights > 0
            noise = weights[used] * np.sqrt(variances[self._kinds_of(weights[used])])
            inverses[sector] = (inside, private @ (rows[used] @ self.roots[sector][1]).T * noise)
        return squared_lengths(self.part, key, inverses)

    def combined(self, key: Key, shares: Sequence[Floats]) -> Floats:
        pairs = zip(self.part.tables[key], shares, self.part.levels, strict=True)
        return taken_of_rows(self, [factor.apply_transpose(each, 0)[axis.kept] for factor, each, axis in pairs])


def taken_of_rows(stack: GroupStack, query: Sequence[Floats]) -> Floats:
    """AX⁺q for the product q of one vector over merged levels an attribute: shares of each weighted row; (rows,)."""
    totals = [np.zeros([factor.rows for factor in factors]) for factors, _, _ in stack.layout]
    for sector in stack.roots:
        differences = {place: _difference(stack, query[place], place, one) for place, one in sector}
        if all(each.any() for each in differences.values()):
            averages = _solved(stack, query, sector)
            for total, (factors, _, _) in zip(totals, stack.layout, strict=True):
                _add(stack, total, factors, differences=differences, averages=averages)
    pairs = zip(totals, stack.layout, strict=True)
    return np.concatenate([total.reshape(-1)[kept] * weights[kept] for total, (_, weights, kept) in pairs])


def _difference(stack: GroupStack, vector: Floats, place: int, one: int) -> Floats:
    """What is left of a vector on one class of levels, less its mean; 0 elsewhere."""
    levels = stack.part.levels[place].levels_of(one)
    here, found = vector[levels], np.zeros(len(vector))
    centered = here - here.mean()
    largest = float(np.abs(vector).max(initial=0.0))
    found[levels] = np.where(np.abs(centered) > _NOTHING * largest, centered, 0.0)
    return found


def _solved(stack: GroupStack, query: Sequence[Floats], sector: Sector) -> Floats:
    """X_S⁺ applied to the averages of the other attributes, less what is public; one axis an attribute."""
    fixed, levels = dict(sector), stack.part.levels
    averages = [levels[place].averages(each, 0) for place, each in enumerate(query) if place not in fixed]
    values = reduce(np.multiply.outer, averages, np.ones(()))
    orbits, root = stack.roots[sector]
    found = np.zeros(math.prod(values.shape))
    found[orbits] = stack.inverses[sector][1] @ (values.reshape(-1)[orbits] @ root)
    return found.reshape(values.shape)


def _add(
    stack: GroupStack, total: Floats, factors: Sequence[Factor], *, differences: dict[int, Floats], averages: Floats
) -> None:
    """Add what the rows of a table see of a sector, in place."""
    seen = {place: np.asarray(factors[place].apply(each, 0)) for place, each in differences.items()}
    if not all(each.any() for each in seen.values()):
        return
    others = [place for place in range(len(factors)) if place not in seen]
    values = averages
    for axis, place in enumerate(others):
        values = factors[place].apply(stack.part.levels[place].from_averages(values, axis), axis)
    values = reduce(np.multiply.outer, seen.values(), values)
    total += values.transpose([[*others, *seen].index(place) for place in range(len(factors))])
