"""Partitions of an attribute's levels that a table may count by, and the tables that can be made of them.

A coding treats exchangeable levels alike: each class of levels is either part of one group, or every level of it is a
group by itself ("fine"). A table has one coding an attribute; its rows are plain counts, one a combination of groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dualmandate.mechanism.strategy.axes import Axis, Indices
from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock
from dualmandate.workload import Factor, Groups, Identity, Total
from dualmandate.workload.factor import AllRange, Prefix
from dualmandate.workload.levels import column_classes

MOST_TABLES = 1_024  # combinations of codings that are looked at
MOST_LAYERS = 4  # of overlapping groups that are dealt into partitions
LARGEST_LISTED = 2**20  # entries of overlapping groups that are dealt into partitions
SHORTEST_RUNS = (2, 3)  # consecutive levels that are counted together; longer ones have twice as many


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

    def factor(self, axis: Axis, *, merged: bool) -> Factor:
        """The rows as a 0/1 matrix over merged levels, or over all levels of the attribute."""
        rows, groups = self.rows_of(axis)
        labels = rows if merged or axis.labels is None else rows[axis.labels]
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
