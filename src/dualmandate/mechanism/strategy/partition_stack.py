"""Tables of plain counts, each count with a weight of its own, measured together and made consistent by least squares.

A = the rows of all tables times their weights. Groups of exchangeable levels share a weight, so AᵀA splits into one
block X_S a sector, and estimates are Σ_S X_S⁺Aᵀy without A or A⁺ ever being written out over cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.level_partitions import Grouping, Partition, group_count
from dualmandate.mechanism.strategy.symmetry_blocks import add_component, component, squared_lengths
from dualmandate.mechanism.strategy.workload_blocks import Key, Sector, WorkloadBlock
from dualmandate.workload import Factor
from dualmandate.workload.sensitivity import Norm

if TYPE_CHECKING:
    from dualmandate.mechanism.strategy.integer_partitions import IntegerPartitions


@dataclass(frozen=True, eq=False)
class Layout:
    """The groups of some tables, numbered table after table, over the orbits that can occur, asked about or not."""

    part: WorkloadBlock
    tables: tuple[Grouping, ...]
    orbits: Indices  # that can occur, row-major: a record in any of them is counted
    places: Indices  # the group of each table that holds an orbit; shape (tables, orbits)
    scales: Floats  # the entry of an orbit in the row of its group: √m where m levels are counted together
    starts: Indices  # the first group of each table, and the number of all groups

    @classmethod
    def of(cls, part: WorkloadBlock, tables: Sequence[Grouping]) -> Layout:
        """The layout of some tables."""
        orbits = np.arange(part.orbit_count)
        if part.possible is not None:
            orbits = np.flatnonzero(part.possible[np.ix_(*(level.first for level in part.levels))])
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
        """Number of groups."""
        return int(self.starts[-1])

    def columns(self, sector: Sector) -> tuple[Indices, Indices]:
        """Which of `orbits` a sector has, and where each stands among the sector's own orbits."""
        own = self.part.orbits_of(sector)
        where = np.minimum(np.searchsorted(self.orbits, own), len(self.orbits) - 1)
        inside = np.flatnonzero(self.orbits[where] == own)
        return where[inside], inside

    def telling(self, sector: Sector) -> NDArray[np.bool_]:
        """Which tables tell levels of the classes apart that a sector looks at the differences of; shape (tables,)."""
        found = np.ones(len(self.tables), dtype=np.bool_)
        for place, one in sector:
            found &= self._fine[place][:, one]
        return found

    @cached_property
    def _fine(self) -> list[NDArray[np.bool_]]:
        """For each attribute which classes a table tells the levels of apart; shape (tables, classes)."""
        return [np.array([table[place].fine for table in self.tables]) for place in range(len(self.part.axes))]

    def rows(self, some: NDArray[np.bool_], columns: Indices) -> tuple[Indices, Floats]:
        """The groups of some tables that hold some orbits, and the row of each over these."""
        places = self.places[some][:, columns]
        groups, numbers = np.unique(places, return_inverse=True)
        rows = np.zeros((len(groups), len(columns)))
        rows[numbers.reshape(places.shape), np.arange(len(columns))] = self.scales[some][:, columns]
        return groups, rows


_ROUNDING = 1e-9  # of the largest singular value of a sector, below which a direction is not measured
_UNSEEN = 1e-12  # share of a workload's squares that may lie outside of what is measured


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A table of plain counts F₁ ⊗ … ⊗ F_d over all levels of a part's attributes, 0/1 with disjoint rows."""

    factors: tuple[Factor, ...]
    weights: Floats  # of each row, row-major; a row of weight 0 is not measured


@dataclass(frozen=True, eq=False)
class GroupStack:
    """Some tables of a part, each group of each times a weight, stacked; one row a combination of groups."""

    part: WorkloadBlock
    groupings: tuple[Grouping, ...]
    weights: tuple[Floats, ...]  # by groups of each attribute's coding, one array a table
    words: str

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
    def tables(self) -> tuple[CountedTable, ...]:
        """What is counted over all levels of the attributes, and the weight of each row."""
        found = []
        for grouping, (_, weights, _) in zip(self.groupings, self.layout, strict=True):
            pairs = zip(grouping, self.part.levels, strict=True)
            found.append(CountedTable(tuple(coding.factor(axis, merged=False) for coding, axis in pairs), weights))
        return tuple(found)

    @cached_property
    def layout(self) -> tuple[tuple[tuple[Factor, ...], Floats, Indices], ...]:
        """For each table its factors over merged levels, the weight of each row, and the rows that are measured."""
        found = []
        for grouping, weights in zip(self.groupings, self.weights, strict=True):
            pairs = list(zip(grouping, self.part.levels, strict=True))
            by_row = weights[np.ix_(*(coding.rows_of(axis)[1] for coding, axis in pairs))].reshape(-1)
            factors = tuple(coding.factor(axis, merged=True) for coding, axis in pairs)
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
                found[sector] = (inside, root - basis.T @ (basis @ root))
            else:
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

    def measure(self, counts: Floats) -> Floats:
        """Ax for histograms over merged cells, shape (k, *merged_shape); shape (k, rows)."""
        found = []
        for factors, weights, kept in self.layout:
            values = counts
            for place, factor in enumerate(factors):
                values = factor.apply(values, 1 + place)
            found.append(values.reshape(len(counts), -1)[:, kept] * weights[kept])
        return np.concatenate(found, axis=1)

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
        return self.solved(sums)

    def solved(self, sums: Floats, sectors: Iterable[Sector] | None = None) -> Floats:
        """Σ_S X_S⁺ applied to numbers over merged cells, less what is public; shape (k, *merged_shape).

        `sectors` are those in which the numbers are not zero; all where None.
        """
        total = np.zeros_like(sums)
        for sector in self.roots if sectors is None else sectors:
            orbits, root = self.roots[sector]
            values = component(self.part, sums, sector)
            solved = np.tensordot(root, values[:, orbits], axes=([0], [1]))
            values = np.zeros_like(values)
            values[:, orbits] = np.moveaxis(np.tensordot(self.inverses[sector][1], solved, axes=([1], [0])), 0, 1)
            add_component(self.part, total, values, sector)
        return total

    def coefficients(self, key: Key) -> Floats:
        """Squared length of each row of FA⁺ for one table, by rows of each factor."""
        return squared_lengths(self.part, key, self.inverses)

    def exact(self, norm: Norm) -> IntegerPartitions:
        """The same counts with weights that are whole multiples of a small step."""
        # Published groups are made of these.
        from dualmandate.mechanism.strategy.integer_partitions import whole_groups

        del norm
        return whole_groups(self)


def stacked_marginals(part: WorkloadBlock, weights: Mapping[frozenset[int], float], words: str) -> GroupStack:
    """Marginals of attributes whose levels are all exchangeable, each with one weight, by the places they keep."""
    groupings = tuple(
        tuple(Partition.of(level, [0], [place in kept]) for place, level in enumerate(part.levels)) for kept in weights
    )
    arrays = tuple(np.full((1,) * len(part.levels), weight) for weight in weights.values())
    return GroupStack(part, groupings, arrays, words)
