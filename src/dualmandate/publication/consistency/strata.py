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
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.estimates import (
    Levels,
    Pair,
    TreeEstimates,
    UpwardPass,
    Weights,
    child_shares,
    count_across,
    final_variances,
    take_across,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree, lies_within, renumbered

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


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """Orthogonal groupings of the cells that can occur, all that hold two of them too, and their strata."""

    chain: PartitionChain
    groupings: tuple[Integers, ...] = field(repr=False)
    possible: Booleans = field(repr=False)  # which cells can occur
    ranks: tuple[int, ...]
    coarser: tuple[tuple[int, ...], ...]  # for each stratum those of coarser groupings, the coarsest first

    @classmethod
    def of(cls, chain: PartitionChain, crossings: Sequence[CrossingMeasurement]) -> Orthogonal | None:
        """Those of a chain and of the tables that cross it; None where they are not orthogonal."""
        possible = chain.possible[-1]
        asked = [renumbered(chain.ancestors(k)[possible]) for k in range(chain.last + 1)]
        asked += [renumbered(crossing.groups[possible]) for crossing in crossings]
        whole = all(crossing.in_place and np.all(crossing.groups[possible] >= 0) for crossing in crossings)
        found = _closed(tuple(dict.fromkeys(each.tobytes() for each in asked))) if whole else None
        return None if found is None else cls(chain, found[0], possible, *found[1:])

    def sizes(self, labels: Integers) -> Floats:
        """What a grouping with a variance of 1 weighs in each stratum: the cells of a part, where it sees it, or 0."""
        key = labels.tobytes()
        if key not in self._known_sizes:
            own = renumbered(labels[self.possible])
            place = self._places[own.tobytes()]
            sizes = np.zeros(len(self.groupings))
            sizes[[place, *self.coarser[place]]] = own.size / (int(own.max()) + 1)
            self._known_sizes[key] = sizes
        return self._known_sizes[key]

    @cached_property
    def _known_sizes(self) -> dict[bytes, Floats]:
        return {}

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {each.tobytes(): place for place, each in enumerate(self.groupings)}

    def variances(self, tree: Tree, precision: Floats) -> tuple[tuple[Floats, ...], ...]:
        """Of each level the variances of strata, in the end and from what is at and below, and the weight of its own.

        Each of shape (nodes, strata). `precision` is what a node's own tables weigh in them; shape (levels, strata).
        """
        with np.errstate(divide="ignore"):
            weights = Weights(self.chain, (), (), (), (1 / precision,))
        upward, gains = upward_variances(tree, weights)
        found: tuple[Levels, ...] = final_variances(tree, upward, upward[0]), upward, gains
        return tuple(tuple(each[0] for each in levels) for levels in found)


@dataclass(frozen=True, eq=False)
class Strata:
    """Variances of the strata of each node, and the groupings that they belong to."""

    orthogonal: Orthogonal
    variances: tuple[Floats, ...] = field(repr=False)  # t of [l], shape (nodes, strata)
    upward: tuple[Floats, ...] = field(repr=False)  # the same from what is at and below each node
    gains: tuple[Floats, ...] = field(repr=False)  # the weight of a node's own tables in that

    @classmethod
    def of(
        cls,
        tree: Tree,
        chain: PartitionChain,
        variances: Mapping[Pair, float],
        crossings: Sequence[CrossingMeasurement],
        *,
        alone: bool = False,
    ) -> Strata | None:
        """The strata of a nest with crossing tables; None where they are not orthogonal.

        `alone` gives the variances of the nest without the numbers of the crossing tables.
        """
        orthogonal = Orthogonal.of(chain, crossings)
        if orthogonal is None:
            return None
        measured = [(level, chain.ancestors(k), variance) for (level, k), variance in variances.items()]
        own = [(each.level, each.groups, each.variance) for each in crossings]
        precision = np.zeros((tree.last + 1, len(orthogonal.groupings)))
        for level, labels, variance in measured if alone else (*measured, *own):
            sizes = orthogonal.sizes(labels)
            precision[level] += np.where(sizes > 0, np.inf, 0.0) if variance == 0 else sizes / variance
        return cls(orthogonal, *orthogonal.variances(tree, precision))

    @property
    def groupings(self) -> tuple[Integers, ...]:
        return self.orthogonal.groupings

    @property
    def possible(self) -> Booleans:
        return self.orthogonal.possible

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.orthogonal.ranks

    def standard_errors(self, level: int, labels: Integers, nodes: range | None = None) -> Floats:
        """Standard errors of a grouping's parts, given its part of each cell; shape (nodes, parts)."""
        rows = self.variances[level] if nodes is None else self.variances[level][nodes.start : nodes.stop]
        own = labels[self.possible]
        part = np.bincount(own, minlength=int(labels.max()) + 1)
        named = renumbered(own)
        coarser = [i for i, each in enumerate(self.groupings) if self.ranks[i] and lies_within(named, each)]
        of_one = rows[:, coarser] @ np.array([self.ranks[i] for i in coarser], dtype=np.float64) / own.size
        return np.sqrt(of_one)[:, None] * part

    def projections(self, labels: Integers, parts: int) -> tuple[tuple[int, Floats], ...]:
        """The strata of a grouping, and the projection of numbers of its parts on each; shape (parts, parts).

        Q of a stratum is P of its grouping less Q of all coarser ones; P of a coarser grouping averages the parts.
        """
        own = renumbered(labels[self.possible])
        used = labels[self.possible][np.unique(own, return_index=True)[1]]  # the part that each of these is
        firsts = np.unique(own, return_index=True)[1]
        coarser = [i for i, each in enumerate(self.groupings) if lies_within(own, each)]
        coarser.sort(key=lambda i: int(self.groupings[i].max()))
        found = dict[int, Floats]()
        for i in coarser:
            alike = self.groupings[i][firsts]
            small = (alike[:, None] == alike[None, :]) / np.bincount(alike)[alike][:, None]
            above = [found[j] for j in found if lies_within(self.groupings[i], self.groupings[j])]
            found[i] = small - sum(above, np.zeros_like(small))
        wide = {i: np.zeros((parts, parts)) for i in found if self.ranks[i]}
        for i, each in wide.items():
            each[np.ix_(used, used)] = found[i]
        return tuple(wide.items())

    def covariance(self, tree: Tree, stratum: int, scores: Sequence[tuple[int, Floats]], level: int) -> Floats:
        """What scores XᵀΣ⁻¹y of the nodes of some levels say of those of one, in one stratum; shape (nodes, parts)."""
        cut = max(level, *(own for own, _ in scores))
        upward: list[Floats] = []  # estimates from what is at and below each node, from the cut up to the root
        for here in range(cut, -1, -1):
            score = np.zeros((tree.sizes[here], scores[0][1].shape[1]))
            for own, each in scores:
                score += each if own == here else 0.0
            if upward:
                starts = tree.starts[here][:-1]
                below = np.add.reduceat(self.upward[here + 1][:, stratum], starts)[:, None]
                sums = np.add.reduceat(upward[0], starts, axis=0)
                score = score + np.divide(sums, below, out=np.zeros_like(sums), where=below > 0)
            upward.insert(0, self.upward[here][:, stratum, None] * score)
        final = upward[0]
        for here in range(1, level + 1):
            parents = tree.parents[here - 1]
            gaps = final - np.add.reduceat(upward[here], tree.starts[here - 1][:-1], axis=0)
            shares = child_shares(tree, self.upward[here][:, stratum, None], here)
            final = upward[here] + shares * gaps[parents]
        return np.asarray(final)


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

    `values` are Q_G·x of a cell, one for each part of the grouping, of the strata that some table sees, by level; each
    of shape (nodes, parts).
    """

    tree: Tree
    strata: Strata
    values: tuple[Mapping[int, Floats], ...] = field(repr=False)

    @classmethod
    def of(cls, tree: Tree, strata: Strata, measured: Sequence[Numbers]) -> StratumEstimates:
        """From the numbers of every table; those of variance 0 are exact."""
        said = []
        for level, nodes in enumerate(tree.sizes):
            said.append(_said(strata.orthogonal, nodes, [each[1:] for each in measured if each[0] == level]))
        found = tuple(dict[int, Floats]() for _ in said)
        for stratum in sorted({each for own in said for each in own}):
            passed = _passed(tree, strata, stratum, [own.get(stratum) for own in said])
            for own, each in zip(found, passed, strict=True):
                own[stratum] = each
        return cls(tree, strata, found)

    def numbers(
        self, level: int, labels: Integers, groups: int, *, rows: slice = slice(None), but: Collection[int] = ()
    ) -> Floats:
        """Estimates of a grouping's parts at some nodes, given its part of each cell; 0 for a part without any.

        `but`: of all strata but these.
        """
        orthogonal = self.strata.orthogonal
        parts, firsts = np.unique(labels[orthogonal.possible], return_index=True)
        sizes, count = orthogonal.sizes(labels), len(range(self.tree.sizes[level])[rows])
        found = np.zeros((count, groups))
        for stratum in np.flatnonzero(sizes).tolist():
            if stratum in self.values[level] and stratum not in but:
                columns = np.full(groups, NONE)
                columns[parts] = orthogonal.groupings[stratum][firsts]
                take_across(self.values[level][stratum][rows], columns, float(sizes.max()), found)
        return found

    def over_chain(self, weights: Weights, unknown: float) -> TreeEstimates:
        """The same as estimates of a chain; what nothing is known of has an `unknown` variance.

        The innovations of each step are the strata that it sees and the steps before it do not.
        """
        chain, steps = weights.chain, [weights.chain.ancestors(k) for k in range(weights.chain.last + 1)]
        seen = [frozenset(np.flatnonzero(self.strata.orthogonal.sizes(each)).tolist()) for each in steps]
        before = [frozenset[int](), *seen[:-1]]
        rows = list(zip(steps, chain.sizes, before, strict=True))
        values: Any = tuple(
            tuple(_Innovations(self, level, own, size, but) for own, size, but in rows)
            for level in range(self.tree.last + 1)
        )
        fresh = [own - but for own, but in zip(seen, before, strict=True)]
        upward, final = (
            tuple(tuple(self._spread(each, k, steps, fresh[k], unknown) for k in range(len(steps))) for each in levels)
            for levels in (self.strata.upward, self.strata.variances)
        )
        alike = tuple(np.zeros_like(each) for each in weights.classes)
        held = UpwardPass(self.tree, replace(weights, classes=alike), {}, (), (), upward)
        return TreeEstimates(held, values, final)

    def _spread(
        self, variances: Floats, k: int, steps: Sequence[Integers], fresh: Collection[int], unknown: float
    ) -> Floats:
        """The variance s of the sum of a group's parts: that of the innovation of one of m is s·(m − 1)/m²."""
        orthogonal, cells = self.strata.orthogonal, float(self.strata.possible.sum())
        chosen = sorted(fresh)
        known = np.where(np.isfinite(variances[:, chosen]), variances[:, chosen], unknown)
        size = float(orthogonal.sizes(steps[k]).max())
        of_one = size**2 / cells * (known @ np.array([orthogonal.ranks[each] for each in chosen], dtype=np.float64))
        parts = float(orthogonal.sizes(steps[k - 1]).max()) / size if k else 1.0
        return np.asarray(of_one * (parts**2 / (parts - 1) if parts > 1 else 1.0))[:, None]


@dataclass(frozen=True, eq=False)
class _Innovations:
    """Innovations of a step of a chain, worked out for the nodes that are asked for."""

    estimates: StratumEstimates
    level: int
    labels: Integers
    groups: int
    but: Collection[int]

    def __getitem__(self, rows: slice) -> Floats:
        return self.estimates.numbers(self.level, self.labels, self.groups, rows=rows, but=self.but)


def _said(
    orthogonal: Orthogonal, nodes: int, tables: Sequence[tuple[Integers, NDArray[Any], float]]
) -> dict[int, Floats]:
    """What the tables of some nodes say of each stratum that they see, put together by their weights."""
    said, weighed = dict[int, Floats](), dict[int, float]()
    for labels, numbers, variance in sorted(tables, key=lambda each: -each[2]):  # what is exact comes last
        sizes, areas = orthogonal.sizes(labels), np.arange(nodes)
        parts, firsts = np.unique(labels[orthogonal.possible], return_index=True)
        own = dict[int, Floats]()
        for stratum in sorted(np.flatnonzero(sizes).tolist(), key=lambda each: len(orthogonal.coarser[each])):
            grouping = orthogonal.groupings[stratum]
            columns = np.full(numbers.shape[1], NONE)
            columns[parts] = grouping[firsts]
            count = int(grouping.max()) + 1
            sums = np.zeros((nodes, count))
            count_across(numbers, areas, columns, sums)
            sums *= count / grouping.size
            ones = np.unique(grouping, return_index=True)[1]
            for other in orthogonal.coarser[stratum]:
                sums -= own[other][:, orthogonal.groupings[other][ones]]
            own[stratum] = sums
            weight = float(sizes.max()) / variance if variance else math.inf
            before = weighed.get(stratum, 0.0)
            share = 1.0 if math.isinf(weight) else weight / (before + weight)
            said[stratum] = share * sums + (1 - share) * said.get(stratum, 0.0)
            weighed[stratum] = before + weight
    return said


def _passed(tree: Tree, strata: Strata, stratum: int, said: Sequence[Floats | None]) -> list[Floats]:
    """A stratum of the nodes of every level, from what the tables of each say of it: up the tree, and down again."""
    count, sums = int(strata.groupings[stratum].max()) + 1, list[Floats]()
    values = [np.zeros((tree.sizes[-1], count)) if said[-1] is None else said[-1]]
    for level in range(tree.last - 1, -1, -1):
        below = np.add.reduceat(values[0], tree.starts[level][:-1], axis=0)
        gain, own = strata.gains[level][:, stratum, None], said[level]
        values.insert(0, below if own is None else gain * own + (1 - gain) * below)
        sums.insert(0, below)
    for level in range(1, tree.last + 1):
        shares = child_shares(tree, strata.upward[level][:, stratum, None], level)
        values[level] = values[level] + shares * (values[level - 1] - sums[level - 1])[tree.parents[level - 1]]
    return values
