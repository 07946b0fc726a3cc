"""Orthogonal groupings of cells and their strata: exact variances, and estimates in closed form, at any size.

Groupings of cells are orthogonal [Bai08] where the parts of each have one size, and any two share their parts evenly
within what holds both, as the tables of a product of attributes do. They take the cells apart into *strata* G with
projections Q_G, and every measured table F weighs in the strata of the groupings that it refines, n_F/σ² each, n_F the
cells of a part. So the covariance of a node's cells is Σ t_G·Q_G, for any variances at any level, and t_G rises and
comes down the tree by itself. The variance of a part of F is n_F²/n·Σ t_G·rank Q_G over those strata, n the number of
cells.

Estimates come apart in the same way: what a table says of a stratum is Q_G applied to its numbers, spread evenly over
the cells of their parts; it is one number for each part of G, however many cells there are. What the tables of a node
say is combined by their weights, and rises and comes down the tree. So tables of any attributes are estimated together
by as many passes over the tree as there are strata, each as broad as its grouping, though nobody measured single cells.

Tables with `where` count some kinds of cells only, adults say, and others all, or sums of them. Where the cells of all
kinds correspond, and groupings are the same within each, a table weighs with BᵀB·n_F/σ², B the kinds that it sums (one
row for adults, one for everybody): numbers become vectors over kinds, t_G matrices, and all else stays as it is. What
no table tells of the kinds, or only tables of levels above, is left out of these matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.estimates import (
    Pair,
    TreeEstimates,
    UpwardPass,
    Weights,
    count_across,
    put_back,
    take_across,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree, lies_within, renumbered
from dualmandate.workload.levels import row_ids

NUMBERS_AT_ONCE = 2**20  # At most this many estimates are computed at once.
NONE = -1  # the part of a grouping that a group without a cell lies in


@dataclass(frozen=True, eq=False)
class CrossingMeasurement:
    """A measured table of areas × groups of cells; each node of a level is in one area or none, cells likewise."""

    level: int  # of the tree
    areas: Integers = field(repr=False)  # the table's row of each node of the level, −1 for none; shape (nodes,)
    groups: Integers = field(repr=False)  # the table's row of each cell of the chain, −1 for none; shape (cells,)
    shape: tuple[int, int]  # areas and groups of the table
    variance: float

    @cached_property
    def in_place(self) -> bool:
        """Whether areas are the nodes themselves."""
        return bool(np.array_equal(self.areas, np.arange(self.shape[0])))

    def step(self, chain: PartitionChain) -> int:
        """The first grouping of the chain whose groups it counts as wholes."""
        labels, step = self.groups, chain.last
        while step > 0:
            firsts = labels[chain.starts[step - 1][:-1]]
            if np.any(labels != firsts[chain.parents[step - 1]]):
                break
            labels, step = firsts, step - 1
        return step

    def labels(self, chain: PartitionChain, step: int) -> Integers:
        """The table's row of each group of a grouping that it counts as wholes."""
        labels = self.groups
        for starts in reversed(chain.starts[step:]):
            labels = labels[starts[:-1]]
        return labels

    def of(self, estimates: TreeEstimates) -> Floats:
        """The table of some estimates; shape (areas, groups)."""
        found = np.zeros(self.shape)
        together = max(NUMBERS_AT_ONCE // self.groups.size, 1)
        for start in range(0, self.areas.size, together):
            nodes = range(start, min(start + together, self.areas.size))
            cells = estimates.tables(self.level, nodes)[-1]
            count_across(cells, self.areas[nodes.start : nodes.stop], self.groups, found)
        return found


MOST_STRATA = 64  # At most this many groupings are closed under what holds two of them.
MOST_KINDS = 8  # At most so many kinds of cells are told apart by what tables leave out.
TINY = 1e-9  # Rounding leaves so much of a number of size 1 that is 0.


class Seen(NamedTuple):
    """What a table tells apart: sums of kinds of cells (p × kinds, 0 or 1), and parts of the cells of each kind."""

    sums: Floats
    parts: Integers  # of the cells of a kind
    columns: Integers  # the table's group of each part and sum; shape (parts, p)

    @property
    def size(self) -> float:
        """Cells of a kind in a part."""
        return self.parts.size / len(self.columns)


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """Orthogonal groupings of the cells of a kind, all that hold two of them too, and their strata.

    Tables that leave out some cells (`where`) tell kinds of cells apart: those that the same tables count. Cells of all
    kinds correspond, in the order of the chain, and every table counts sums of whole kinds, by a grouping of the cells
    that is the same for each.
    """

    chain: PartitionChain
    cells: Integers = field(repr=False)  # the cells that can occur; shape (kinds, cells of a kind)
    groupings: tuple[Integers, ...] = field(repr=False)  # of the cells of a kind
    ranks: tuple[int, ...]
    coarser: tuple[tuple[int, ...], ...]  # for each stratum those of coarser groupings, the coarsest first

    @classmethod
    def of(cls, chain: PartitionChain, crossings: Sequence[CrossingMeasurement]) -> Orthogonal | None:
        """Those of a chain and of the tables that cross it; None where they are not orthogonal."""
        if not all(crossing.in_place for crossing in crossings):
            return None
        possible = np.flatnonzero(chain.possible[-1])
        counted = np.array(
            [np.ones(possible.size, dtype=np.bool_), *(each.groups[possible] >= 0 for each in crossings)]
        )
        members = row_ids(counted, possible.size)
        kinds = int(members.max(initial=-1)) + 1
        if kinds > MOST_KINDS or np.ptp(np.bincount(members)):
            return None
        cells = possible[np.argsort(members, kind="stable")].reshape(kinds, -1)
        labels = [*(chain.ancestors(k) for k in range(chain.last + 1)), *(each.groups for each in crossings)]
        seen = [_seen(cells, each) for each in labels]
        parts = [each.parts.tobytes() for each in seen if each is not None]
        found = _closed(tuple(dict.fromkeys(parts))) if len(parts) == len(seen) else None
        return None if found is None else cls(chain, cells, *found)

    def seen(self, labels: Integers) -> Seen:
        """What a table of the chain, or one that crosses it, tells apart."""
        key = labels.tobytes()
        if key not in self._known:
            found = _seen(self.cells, labels)
            assert found is not None
            self._known[key] = found
        return self._known[key]

    def sees(self, labels: Integers) -> tuple[int, ...]:
        """The strata that a table sees: those of the groupings that its own refines."""
        parts = self.seen(labels).parts
        key = parts.tobytes()
        if key not in self._known_strata:
            place = self._places[key]
            self._known_strata[key] = tuple(sorted((place, *self.coarser[place])))
        return self._known_strata[key]

    @cached_property
    def _known(self) -> dict[bytes, Seen]:
        return {}

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {each.tobytes(): place for place, each in enumerate(self.groupings)}

    @cached_property
    def _known_strata(self) -> dict[bytes, tuple[int, ...]]:
        return {}


def _seen(cells: Integers, labels: Integers) -> Seen | None:
    """None where a table does not count sums of whole kinds by one grouping."""
    rows, sums = labels[cells], list[Booleans]()
    left = rows[:, 0] >= 0
    if np.any((rows >= 0) != left[:, None]) or not left.any():
        return None
    firsts = list[Integers]()
    while left.any():
        first = rows[np.argmax(left)]
        same = left & np.all(rows == first, axis=1)
        sums.append(same)
        firsts.append(first)
        left = left & ~same
    parts = renumbered(firsts[0])
    places = np.unique(parts, return_index=True)[1]
    columns = np.stack([first[places] for first in firsts], axis=1)
    alike = all(np.array_equal(renumbered(first), parts) for first in firsts)
    distinct = np.unique(columns).size == columns.size
    return Seen(np.array(sums, dtype=np.float64), parts, columns) if alike and distinct else None


Said = tuple[int, Integers, float]  # a level, the group of each cell, and the variance of a number


@dataclass(frozen=True, eq=False)
class Stratum:
    """What is known of one stratum at each level of a tree: sums of kinds of its cells, as C·x, and their covariances.

    C is chosen so that at each level some rows are known, from what is at and below a node, some of these exactly, and
    others not at all; levels above know what those below do. `own` is the precision of a node's own tables; what
    `upward` and `final` are, the covariances from what is at and below a node, and in the end, is 0 where C·x is not
    known or exact. Nodes of the last level are alike, `final` those of one parent: their arrays have one row, and one
    for each parent.
    """

    tree: Tree
    basis: Floats  # C; shape (rows, kinds)
    inverse: Floats  # its pseudoinverse
    known: Booleans  # shape (levels, rows)
    exact: Booleans
    own: Floats  # shape (levels, rows, rows)
    below: tuple[Floats, ...] = field(repr=False)  # the precision of the sum of a node's children; (nodes, rows, rows)
    upward: tuple[Floats, ...] = field(repr=False)
    final: tuple[Floats, ...] = field(repr=False)

    @classmethod
    def of(cls, tree: Tree, kinds: int, said: Sequence[tuple[int, Floats, float]]) -> Stratum:
        """From the level of each table that sees it, the sums of kinds it tells, and the precision (∞: exact)."""
        levels = tree.last + 1
        told = frozenset((level, tuple(map(tuple, sums.tolist())), math.isinf(each)) for level, sums, each in said)
        basis, inverse, known, exact = _adapted(levels, kinds, told)
        own = np.zeros((levels, len(basis), len(basis)))
        for level, sums, precision in said:
            rows = _small_as_0(sums @ inverse)
            own[level] += 0.0 if math.isinf(precision) else precision * rows.T @ rows
        below, upward = [np.zeros((1, *own.shape[1:]))], list[Floats]()
        for level in range(tree.last, -1, -1):
            if upward:
                many = np.diff(tree.starts[level])[:, None, None]
                sums = many * upward[0] if level + 1 == tree.last else _sums(upward[0], tree.starts[level])
                below.insert(0, _inverse(sums, known[level + 1] & ~exact[level + 1]))
            upward.insert(0, _inverse(own[level] + below[0], known[level] & ~exact[level]))
        final = [upward[0]]
        for level in range(1, levels):
            above, share = final[-1], cls._shares(tree, upward, below, level)
            parents = slice(None) if level == tree.last else tree.parents[level - 1]
            gap = above[parents] - _inverse(below[level - 1], known[level] & ~exact[level])[parents]
            final.append(upward[level] + share @ gap @ share.swapaxes(-1, -2))
        return cls(tree, basis, inverse, known, exact, own, tuple(below), tuple(upward), tuple(final))

    @staticmethod
    def _shares(tree: Tree, upward: Sequence[Floats], below: Sequence[Floats], level: int) -> Floats:
        """Of a child in what its parent has beyond its children's sum: V_c·(ΣV)⁻¹; of the last level one a parent."""
        parents = slice(None) if level == tree.last else tree.parents[level - 1]
        return np.asarray(upward[level] @ below[level - 1][parents])

    def coordinates(self, sums: Floats) -> Floats:
        """What sums of kinds are of the rows of C, as near as can be."""
        return _small_as_0(sums @ self.inverse)

    def variances(self, level: int, sums: Floats, *, upward: bool = False) -> Floats:
        """Of sums of kinds of a cell, ∞ where they are not known; of the last level for each parent."""
        rows, covariances = self.coordinates(sums), (self.upward if upward else self.final)[level]
        found = np.einsum("pi,nij,pj->np", rows, covariances, rows)
        unknown = np.abs(rows[:, ~self.known[level]]).max(axis=1, initial=0.0) > TINY
        unknown |= np.abs(rows @ self.basis - sums).max(axis=1) > TINY
        return np.where(unknown, np.inf, np.maximum(found, 0.0))

    def passed(self, said: Sequence[tuple[Floats, Sequence[tuple[Floats, Floats]]]], parts: int) -> list[Floats]:
        """C·x of the nodes of every level, from what the tables of each say: up the tree, and down again.

        `said` are, of each level, Σ precision·(its rows)ᵀ·numbers of shape (nodes, parts, rows), and of what is exact
        its rows of C·x and their numbers.
        """
        tree, sums, values = self.tree, list[Floats](), list[Floats]()
        for level in range(tree.last, -1, -1):
            right, held = said[level]
            if values:
                sums.insert(0, _sums(values[0], tree.starts[level]))
                right = right + sums[0] @ self.below[level]
            fixed = np.zeros((tree.sizes[level], parts, len(self.basis)))
            if self.exact[level].any():
                rows, numbers = [each for each, _ in held], [each for _, each in held]
                if values and self.exact[level + 1].any():
                    rows.append(np.eye(len(self.basis))[self.exact[level + 1]])
                    numbers.append(sums[0][..., self.exact[level + 1]])
                solved = np.linalg.pinv(np.concatenate(rows)[:, self.exact[level]])
                fixed[..., self.exact[level]] = np.concatenate(numbers, axis=-1) @ solved.T
                right = right - fixed @ (self.own[level] + self.below[level])
            values.insert(0, fixed + right @ self.upward[level])
        for level in range(1, tree.last + 1):
            parents, share = tree.parents[level - 1], self._shares(tree, self.upward, self.below, level)
            told = (values[level - 1] - sums[level - 1])[parents]
            alone = values[level - 1][..., ~self.known[level]] / np.diff(tree.starts[level - 1])[:, None, None]
            shares = share[parents] if level == tree.last else share
            values[level] += told @ shares.swapaxes(-1, -2)
            values[level][..., ~self.known[level]] = alone[parents]
        return values


def _sums(values: Floats, starts: Integers) -> Floats:
    return np.asarray(np.add.reduceat(values, starts[:-1], axis=0))


def _inverse(matrices: Floats, places: Booleans) -> Floats:
    """The inverse of the rows and columns of some places, 0 elsewhere."""
    found, own = np.zeros_like(matrices), np.flatnonzero(places)
    if own.size:
        block = np.ix_(np.arange(len(matrices)), own, own)
        found[block] = np.linalg.inv(matrices[block])
    return found


def _small_as_0(numbers: Floats) -> Floats:
    return np.where(np.abs(numbers) > TINY, numbers, 0.0)


def _span(rows: Sequence[tuple[float, ...]], kinds: int) -> Floats:
    """An orthonormal basis of what rows span."""
    _, sizes, found = np.linalg.svd(np.array([(0.0,) * kinds, *sorted(set(rows))]))
    return np.asarray(found[: int((sizes > TINY).sum())])


@lru_cache(maxsize=1024)
def _adapted(
    levels: int, kinds: int, told: frozenset[tuple[int, tuple[tuple[float, ...], ...], bool]]
) -> tuple[Floats, Floats, Booleans, Booleans]:
    """Rows of C, and their pseudoinverse; which are known, and which exactly, at each level: shape (levels, rows).

    From the sums of kinds that tables of some levels tell, exactly or not. What is known at a level, and what exactly,
    are spans within those of the level above, the second within the first; rows are such that some span each of them.
    """
    spans, held = list[Floats](), list[Floats]()
    for level in range(levels):
        spans.append(_span([row for own, sums, _ in told if own >= level for row in sums], kinds))
        held.append(_span([row for own, sums, exact in told if own >= level and exact for row in sums], kinds))
    found = np.zeros((0, kinds))
    for span in reversed(spans):
        for inner in (*(_both(span, each) for each in reversed(held)), span):
            for row in inner:
                beyond = row - row @ np.linalg.pinv(found) @ found
                if np.abs(beyond).max() > TINY:
                    found = np.concatenate([found, row[None]])
    known, exact = (np.array([[_within(row, span) for row in found] for span in each]) for each in (spans, held))
    shape = levels, len(found)
    inverse: Floats = np.asarray(np.linalg.pinv(found), dtype=np.float64)
    return found, inverse, known.reshape(shape).astype(np.bool_), exact.reshape(shape).astype(np.bool_)


def _both(one: Floats, other: Floats) -> Floats:
    """A basis of what two spans of orthonormal rows share: vectors that both projections keep."""
    if not len(one) or not len(other):
        return np.zeros((0, one.shape[1]))
    left, sizes, _ = np.linalg.svd(one @ other.T)
    return np.asarray(left.T[: int((sizes > 1 - TINY).sum())] @ one)


def _within(row: Floats, span: Floats) -> bool:
    return bool(np.abs(row - row @ span.T @ span).max() <= TINY)


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata that tables of a nest, and those that cross it, see, with what is known of each."""

    tree: Tree
    orthogonal: Orthogonal
    found: tuple[Stratum, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        tree: Tree,
        chain: PartitionChain,
        variances: Mapping[Pair, float],
        crossings: Sequence[CrossingMeasurement],
    ) -> Strata | None:
        """The strata of a nest with crossing tables; None where they are not orthogonal."""
        orthogonal = Orthogonal.of(chain, crossings)
        if orthogonal is None:
            return None
        said: list[Said] = [(level, chain.ancestors(k), variance) for (level, k), variance in variances.items()]
        return cls.measured(
            tree, orthogonal, [*said, *((each.level, each.groups, each.variance) for each in crossings)]
        )

    @classmethod
    def measured(cls, tree: Tree, orthogonal: Orthogonal, said: Sequence[Said]) -> Strata:
        """From the tables that are measured, each with a variance, 0 where it is exact."""
        of_each = [list[tuple[int, Floats, float]]() for _ in orthogonal.groupings]
        for level, labels, variance in said:
            seen = orthogonal.seen(labels)
            for stratum in orthogonal.sees(labels):
                of_each[stratum].append((level, seen.sums, seen.size / variance if variance else math.inf))
        return cls(tree, orthogonal, tuple(Stratum.of(tree, len(orthogonal.cells), each) for each in of_each))

    def variances(self, level: int, labels: Integers) -> Floats:
        """Of the numbers of a table, for each of its sums of kinds; of the last level for each parent of nodes."""
        seen, cells = self.orthogonal.seen(labels), self.orthogonal.cells.shape[1]
        found = np.zeros((1, len(seen.sums)))
        for stratum in self.orthogonal.sees(labels):
            if rank := self.orthogonal.ranks[stratum]:
                found = found + seen.size**2 * rank / cells * self.found[stratum].variances(level, seen.sums)
        return found

    def mean_variance(self, level: int, labels: Integers) -> float:
        """The mean variance of the numbers of a table."""
        found = self.variances(level, labels).mean(axis=1)
        alike = len(found) > 1 and level == self.tree.last
        return float(np.average(found, weights=np.diff(self.tree.starts[-1]) if alike else None))

    def standard_errors(self, level: int, labels: Integers, nodes: range | None = None) -> Floats:
        """Standard errors of a grouping's parts, given its part of each cell; shape (nodes, parts)."""
        rows = range(self.tree.sizes[level]) if nodes is None else nodes
        own = self.tree.parents[-1][rows.start : rows.stop] if level == self.tree.last else slice(rows.start, rows.stop)
        of_sums, seen = np.sqrt(self.variances(level, labels))[own], self.orthogonal.seen(labels)
        found = np.zeros((len(rows), int(labels.max()) + 1))
        for columns, each in zip(seen.columns.T, of_sums.T, strict=True):
            found[:, columns] = each[:, None]
        return found


@lru_cache(maxsize=4)  # a plan asks for the same groupings at each loss and each division of it that it compares
def _closed(
    asked: tuple[bytes, ...],
) -> tuple[tuple[Integers, ...], tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
    """Groupings and all that hold two of them, with their ranks, and of each those that are coarser, coarsest first.

    None where parts differ in size or groupings are not orthogonal. A rank is that of the stratum: the parts of a
    grouping less the ranks of all coarser ones.

    Each grouping is the memory of its parts, numbered from 0 in the order of their first members.
    """
    found = [np.frombuffer(each, dtype=np.int64) for each in asked]
    if any(np.ptp(np.bincount(each)) for each in found):
        return None
    parts = [int(each.max()) + 1 for each in found]
    pairs = list(combinations(range(len(found)), 2))
    while pairs:
        one, other = pairs.pop()
        together, shared = _meeting(found[one], found[other], parts[other])
        if together.size in (parts[one], parts[other]):  # one lies within the other
            continue
        holding = _holding(together // parts[other], together % parts[other])
        both = int(holding.max()) + 1
        sizes = [found[0].size // count for count in (parts[one], parts[other], both)]
        if np.ptp(np.bincount(holding)) or np.any(shared * sizes[2] != sizes[0] * sizes[1]):
            return None
        wide = holding[found[one]]
        if not any(count == both and np.array_equal(wide, each) for count, each in zip(parts, found, strict=True)):
            pairs += [(place, len(found)) for place in range(len(found))]
            found.append(wide)
            parts.append(both)
            if len(found) > MOST_STRATA:
                return None
    coarser, ranks = [tuple[int, ...]()] * len(found), [0] * len(found)
    order = sorted(range(len(found)), key=parts.__getitem__)
    for rank, i in enumerate(order):
        coarser[i] = tuple(j for j in order[:rank] if parts[j] < parts[i] and lies_within(found[i], found[j]))
        ranks[i] = parts[i] - sum(ranks[j] for j in coarser[i])
    return tuple(found), tuple(ranks), tuple(coarser)


def _meeting(one: Integers, other: Integers, parts: int) -> tuple[Integers, Integers]:
    """Which parts of two groupings have a cell in common, as part·parts of the other + its part, and how many."""
    codes = one * parts + other
    span = (int(one.max()) + 1) * parts
    if span > 4 * codes.size:
        return np.unique(codes, return_counts=True)
    counts = np.bincount(codes, minlength=span)
    together = np.flatnonzero(counts)
    return together, counts[together]


def _holding(one: Integers, other: Integers) -> Integers:
    """Of each part of a grouping, that of the finest grouping that holds it and all parts of another that it meets.

    `one` and `other` are the parts that meet, each pair once.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sizes = int(one.max()) + 1, int(other.max()) + 1
    joined = coo_array((np.ones(one.size), (one, other + sizes[0])), shape=(sum(sizes), sum(sizes)))
    return renumbered(connected_components(joined, directed=False)[1][: sizes[0]].astype(np.int64))


Numbers = tuple[int, Integers, NDArray[Any], float]  # a level, the part of each cell, numbers of parts, their variance


@dataclass(frozen=True, eq=False)
class StratumEstimates:
    """Best linear unbiased estimates of everything that orthogonal groupings tell, stratum by stratum.

    `values` are C·x of a stratum (see `Stratum`), for a cell of each part of the grouping, by level and stratum; each
    of shape (nodes, parts, rows of C).
    """

    tree: Tree
    strata: Strata
    values: tuple[Mapping[int, Floats], ...] = field(repr=False)

    @classmethod
    def of(cls, tree: Tree, strata: Strata, measured: Sequence[Numbers]) -> StratumEstimates:
        """From the numbers of every table; those of variance 0 are exact."""
        found = tuple(dict[int, Floats]() for _ in tree.sizes)
        told = [
            [_Projected(strata.orthogonal, *each[1:]) for each in measured if each[0] == level]
            for level in range(tree.last + 1)
        ]
        for stratum, own in enumerate(strata.found):
            if not len(own.basis):
                continue
            parts, said = int(strata.orthogonal.groupings[stratum].max()) + 1, []
            for level, nodes in enumerate(tree.sizes):
                right, held = np.zeros((nodes, parts, len(own.basis))), list[tuple[Floats, Floats]]()
                for each in told[level]:
                    if stratum in strata.orthogonal.sees(each.labels):
                        rows, numbers = own.coordinates(each.seen.sums), each.on(stratum)
                        if each.variance:
                            right += numbers @ (each.seen.size / each.variance * rows)
                        else:
                            held.append((rows, numbers))
                said.append((right, held))
            for of_level, values in zip(found, own.passed(said, parts), strict=True):
                of_level[stratum] = values
        return cls(tree, strata, found)

    def numbers(self, level: int, labels: Integers, groups: int, *, rows: slice = slice(None)) -> Floats:
        """Estimates of a grouping's parts at some nodes, given its part of each cell; 0 for a part without any."""
        orthogonal = self.strata.orthogonal
        seen, found = orthogonal.seen(labels), np.zeros((len(range(self.tree.sizes[level])[rows]), groups))
        firsts = np.unique(seen.parts, return_index=True)[1]
        for stratum in orthogonal.sees(labels):
            if stratum in self.values[level]:
                own = self.values[level][stratum][rows]
                told = own @ self.strata.found[stratum].coordinates(seen.sums).T
                columns = np.full(groups, NONE)
                places = orthogonal.groupings[stratum][firsts][:, None] * len(seen.sums) + np.arange(len(seen.sums))
                columns[seen.columns] = places
                take_across(told.reshape(len(told), -1), columns, seen.size, found)
        return found

    def over_chain(self, weights: Weights, unknown: float) -> TreeEstimates:
        """The same as estimates of a chain; what nothing is known of has an `unknown` variance."""
        chain, steps = weights.chain, [weights.chain.ancestors(k) for k in range(weights.chain.last + 1)]
        values: Any = tuple(
            tuple(_Innovations(self, level, weights, k) for k in range(len(steps)))
            for level in range(self.tree.last + 1)
        )
        sums = [self.strata.orthogonal.seen(each) for each in steps]
        classes = [np.zeros(1, dtype=np.int64)]
        for k in range(1, len(steps)):  # groups vary alike that are of one sum of kinds
            of_group = np.zeros(chain.sizes[k - 1], dtype=np.int64)
            of_group[sums[k - 1].columns] = np.arange(len(sums[k - 1].sums))
            classes.append(of_group[chain.parents[k - 1]])
        upward, final = (
            tuple(
                tuple(self._spread((level, k), steps, weights, unknown, upward=up) for k in range(len(steps)))
                for level in range(self.tree.last + 1)
            )
            for up in (True, False)
        )
        held = UpwardPass(self.tree, replace(weights, classes=tuple(classes), best=True), {}, (), (), upward)
        return TreeEstimates(held, values, final)

    def _spread(
        self, pair: Pair, steps: Sequence[Integers], weights: Weights, unknown: float, *, upward: bool
    ) -> Floats:
        """The variance s of the sum of a group's parts, for each of the sums of kinds that groups are of.

        That of the innovation of a part with share b of its group is s·b·(1 − b).
        """
        (level, k), orthogonal = pair, self.strata.orthogonal
        seen, own = orthogonal.seen(steps[k]), orthogonal.sees(steps[k])
        above, before = (orthogonal.seen(steps[k - 1]), orthogonal.sees(steps[k - 1])) if k else (seen, ())
        whole = [int(np.argmax(above.sums @ each > 0)) for each in seen.sums]
        share = weights.shares[k][seen.columns[0]]
        found = np.zeros((1, len(seen.sums)))
        for stratum in own:
            rows = seen.size * seen.sums
            if stratum in before:
                rows = rows - share[:, None] * above.size * above.sums[whole]
            if rank := orthogonal.ranks[stratum]:
                each = self.strata.found[stratum].variances(level, rows, upward=upward)
                found = found + rank / orthogonal.cells.shape[1] * each
        spread = share * (1 - share)
        found = np.where(spread > TINY, found / np.where(spread > TINY, spread, 1.0), found) if k else found
        found = np.where(np.isfinite(found), found, unknown)
        means = np.stack([found[:, np.array(whole) == j].mean(axis=1) for j in range(len(above.sums))], axis=1)
        if k == 0:
            means = found
        nodes = self.tree.sizes[level]
        if level == self.tree.last and len(means) > 1:
            means = means[self.tree.parents[-1]]
        return np.ascontiguousarray(np.broadcast_to(means, (nodes, means.shape[1])))


@dataclass(frozen=True, eq=False)
class _Innovations:
    """Innovations of a step of a chain, worked out for the nodes that are asked for."""

    estimates: StratumEstimates
    level: int
    weights: Weights
    step: int

    def __getitem__(self, rows: slice) -> Floats:
        chain, k = self.weights.chain, self.step
        found = self.estimates.numbers(self.level, chain.ancestors(k), chain.sizes[k], rows=rows)
        if k:
            above = self.estimates.numbers(self.level, chain.ancestors(k - 1), chain.sizes[k - 1], rows=rows)
            put_back(found, chain.parents[k - 1], -self.weights.shares[k], above)
        return found


@dataclass(frozen=True, eq=False)
class _Projected:
    """What the numbers of a table say of each stratum, of a cell of each part, for each of its sums of kinds."""

    orthogonal: Orthogonal
    labels: Integers
    numbers: NDArray[Any]
    variance: float

    @property
    def seen(self) -> Seen:
        return self.orthogonal.seen(self.labels)

    def on(self, stratum: int) -> Floats:
        """Shape (nodes, parts of the stratum's grouping, sums)."""
        if stratum not in self._found:
            grouping, sums = self.orthogonal.groupings[stratum], len(self.seen.sums)
            firsts = np.unique(self.seen.parts, return_index=True)[1]
            columns, count = np.full(self.numbers.shape[1], NONE), int(grouping.max()) + 1
            columns[self.seen.columns] = grouping[firsts][:, None] * sums + np.arange(sums)
            found = np.zeros((len(self.numbers), count * sums))
            count_across(self.numbers, np.arange(len(self.numbers)), columns, found)
            found = found.reshape(len(found), count, sums) * (count / grouping.size)
            ones = np.unique(grouping, return_index=True)[1]
            for other in self.orthogonal.coarser[stratum]:
                found -= self.on(other)[:, self.orthogonal.groupings[other][ones]]
            self._found[stratum] = found
        return self._found[stratum]

    @cached_property
    def _found(self) -> dict[int, Floats]:
        return {}
