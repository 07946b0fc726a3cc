"""The two nested families that tables add up over, a geography and one chain of groupings of its cells.

Which partitions nest, one in the next finer one, and so can be levels of either, is found here too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain
from dualmandate.population.arrays import Booleans, Integers


@dataclass(frozen=True, eq=False)
class _Levels:
    """Nested levels, coarsest first: `parents[l][v]` is the part of level l that part v of level l + 1 lies in.

    Level 0 is one part. Parts of one part stand side by side, in the order of what they lie in.
    """

    parents: tuple[Integers, ...] = field(repr=False)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Parts of each level: nodes of a tree, groups of a chain."""
        return (1, *(each.size for each in self.parents))

    @cached_property
    def starts(self) -> tuple[Integers, ...]:
        """For each level but the last, where the parts of its parts start, and at last where they end."""
        return tuple(
            np.searchsorted(each, np.arange(size + 1)).astype(np.int64)
            for each, size in zip(self.parents, self.sizes[:-1], strict=True)
        )

    @property
    def last(self) -> int:
        """The level of the leaves of a tree, of the cells of a chain."""
        return len(self.parents)


@dataclass(frozen=True, eq=False)
class Tree(_Levels):
    """A geography, root first: `parents[l][v]` is the node of level l that node v of level l + 1 lies in.

    Level 0 is one node. Children of one parent stand side by side, in the order of their parents, as sorted codes do.
    """

    def __post_init__(self) -> None:
        _refuse_unless_nested(self.parents, "a tree")

    @classmethod
    def of(cls, groups: Sequence[Integers], leaves: int | None = None) -> tuple[Self, tuple[Integers, ...]]:
        """The tree of nested groups, coarsest first, each with one group number a leaf, and how it orders them.

        The second value holds for each level from 1 on which group, and at last which leaf, stands at each place.
        Without groups, so many leaves are children of the root.
        """
        parents, orders = _nested(groups, leaves)
        return cls(parents), orders

    def children(self, level: int, node: int) -> range:
        """The nodes of the next level that lie in a node."""
        return range(int(self.starts[level][node]), int(self.starts[level][node + 1]))

    def subtree(self, level: int, node: int) -> tuple[Tree, tuple[range, ...]]:
        """The tree below a node, itself the root, and which nodes of this tree each of its levels holds."""
        nodes = [range(node, node + 1)]
        for starts in self.starts[level:]:
            nodes.append(range(int(starts[nodes[-1].start]), int(starts[nodes[-1].stop])))
        parents = zip(self.parents[level:], nodes[:-1], nodes[1:], strict=True)
        return Tree(tuple(all_[own.start : own.stop] - above.start for all_, above, own in parents)), tuple(nodes)


@dataclass(frozen=True, eq=False)
class PartitionChain(_Levels):
    """Nested groupings of the cells of a node, coarsest first; the last level are the cells themselves.

    `parents[k][h]` is the group of level k that group h of level k + 1 lies in; level 0 is the total. Groups of one
    group stand side by side. `zeros` marks cells that cannot occur: they count 0 everywhere.
    """

    zeros: Booleans | None = field(default=None, repr=False)  # shape (cells,)

    def __post_init__(self) -> None:
        _refuse_unless_nested(self.parents, "a chain")
        if self.zeros is not None and (self.zeros.shape != (self.sizes[-1],) or self.zeros.all()):
            raise InvalidDomain(
                f"structural zeros of shape {self.zeros.shape} for a chain of {self.sizes[-1]:,} cells",
                why="each cell can occur or not, and at least one can",
                instead="mark the cells that cannot occur with True, in the order of the chain",
            )

    @classmethod
    def of(
        cls, groups: Sequence[Integers], zeros: Booleans | None = None, cells: int | None = None
    ) -> tuple[Self, tuple[Integers, ...]]:
        """The chain of nested groups, coarsest first, each with one group number a cell, and how it orders them.

        The second value holds for each level from 1 on which group, and at last which cell, stands at each place.
        Without groups, so many cells are parts of the total.
        """
        parents, orders = _nested(groups, cells)
        return cls(parents, None if zeros is None else zeros[orders[-1]]), orders

    @cached_property
    def possible(self) -> tuple[Booleans, ...]:
        """Which groups of each level hold a cell that can occur; [k], shape (groups,)."""
        found = [np.ones(self.sizes[-1], dtype=np.bool_) if self.zeros is None else ~self.zeros]
        for starts in reversed(self.starts):
            found.insert(0, np.logical_or.reduceat(found[0], starts[:-1]))
        return tuple(found)

    def ancestors(self, level: int) -> Integers:
        """The group of a level that each cell lies in; shape (cells,)."""
        labels = np.arange(self.sizes[level], dtype=np.int64)
        for parents in self.parents[level:]:
            labels = labels[parents]
        return labels

    def sums(self, cells: NDArray[np.generic], level: int) -> Integers:
        """The counts of a level's groups, from those of the cells along the last axis."""
        if level == self.last:
            return np.asarray(cells, dtype=np.int64)
        starts = self.starts[level]
        for below in self.starts[level + 1 :]:
            starts = below[starts]
        return np.asarray(np.add.reduceat(cells, starts[:-1], axis=-1, dtype=np.int64))


def _nested(groups: Sequence[Integers], size: int | None) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Parents of each level and the order of the groups and, at last, of what they group."""
    keys = np.stack([np.zeros(groups[0].size if groups else size or 0, dtype=np.int64), *groups])
    order = np.lexsort((np.arange(keys.shape[1]), *keys[::-1]))
    places, parents, orders = np.zeros(order.size, dtype=np.int64), [], []
    for key in keys[1:, order]:
        firsts = np.flatnonzero(np.diff(np.stack([places, key]), axis=1, prepend=-1).any(axis=0))
        parents.append(places[firsts])
        orders.append(key[firsts])
        places = np.repeat(np.arange(firsts.size), np.diff(np.append(firsts, order.size)))
    return (*parents, places), (*orders, order)


def _refuse_unless_nested(parents: Sequence[Integers], what: str) -> None:
    size = 1
    for level, each in enumerate(parents):
        steps = np.diff(each)
        whole = each.ndim == 1 and each.dtype == np.int64 and each.size >= size and each[0] == 0
        if not whole or each[-1] != size - 1 or np.any((steps < 0) | (steps > 1)):
            raise InvalidDomain(
                f"level {level + 1} of {what} does not lie within level {level}",
                why="every group holds at least one part, and the parts of a group stand side by side in its order",
                instead="give for each part the number of its group, from 0 and not decreasing, or sort with `of`",
            )
        size = each.size
    if not parents:
        raise InvalidDomain(
            f"{what} of one level", why="there is nothing to make consistent", instead="name a second level"
        )


def renumbered(labels: Integers) -> Integers:
    """The same parts, numbered from 0 in the order of their first members."""
    firsts, members = first_and_members(labels)
    return np.argsort(np.argsort(firsts))[members]


def first_and_members(labels: Integers) -> tuple[Integers, Integers]:
    """Where each label stands first, in the order of the labels, and which of them each place has.

    Labels are numbers of groups, few beside their places, so that nothing need be sorted.
    """
    low, size = int(labels.min()), labels.size
    span = int(labels.max()) - low + 1
    if span > 4 * size:
        _, firsts, members = np.unique(labels, return_index=True, return_inverse=True)
        return firsts, members.reshape(-1)
    codes, firsts = labels - low, np.full(span, size, dtype=np.int64)
    firsts[codes[::-1]] = np.arange(size - 1, -1, -1)  # of equal labels the last that is written, the first, stays
    there = firsts < size
    return firsts[there], (np.cumsum(there) - 1)[codes]


SOME = 2**12  # Of partitions of far more places so many are looked at first, drawn once and for all.


def lies_within(fine: Integers, coarse: Integers) -> bool:
    """Whether each part of the finer partition, numbered from 0, lies in one part of the coarser.

    Most that do not lie within another are told by a few thousand places.
    """
    parts, some = int(fine.max()) + 1, _some_places(fine.size) if fine.size > 4 * SOME else None
    if some is not None and not _lies_within(fine[some], coarse[some], parts):
        return False
    return _lies_within(fine, coarse, parts)


def _lies_within(fine: Integers, coarse: Integers, parts: int) -> bool:
    own = np.zeros(parts, dtype=np.int64)
    own[fine] = coarse
    return bool(np.array_equal(own[fine], coarse))


@lru_cache(maxsize=64)
def _some_places(size: int) -> Integers:
    return np.random.default_rng(0).integers(size, size=SOME)


OUTSIDE = -1  # This is the step of a partition that is none of a chain's.
Worth = tuple[int, int]  # How many required partitions, and how many usable ones.


@dataclass(frozen=True, eq=False)
class NestedPartitions:
    """A chain of partitions: the finest, the coarser ones by its groups, and each given partition's step from the top.

    Step 0 is all in one. Partitions that are none of the steps lie within no step but the finest.
    """

    finest: Integers = field(repr=False)
    coarser: tuple[Integers, ...] = field(repr=False)
    steps: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(self.finest.max()) + 1

    @property
    def last(self) -> int:
        return len(self.coarser) + 1

    def rows(self, own: Integers, orders: Sequence[Integers], step: int) -> Integers:
        """The row of a partition at each place of a step: a step's groups are named by the first of their kind."""
        own_of_finest = own[self._firsts]
        if step == 0:
            return own_of_finest[:1]
        if step == self.last:
            return own_of_finest[orders[-1]]
        level = self.coarser[step - 1]
        named = np.empty(int(level.max()) + 1, dtype=np.int64)
        named[level] = own_of_finest
        return named[orders[step - 1]]

    def step_for(self, own: Integers) -> int:
        """The coarsest step whose groups a partition takes as wholes."""
        labels = own[self._firsts]
        if np.all(labels == labels[0]):
            return 0
        fitting = (step for step, level in enumerate(self.coarser, start=1) if lies_within(level, labels))
        return next(fitting, self.last)

    @property
    def _firsts(self) -> Integers:
        return first_and_members(self.finest)[0]


@dataclass(frozen=True, eq=False)
class _Distinct:
    """One of the given partitions, and which of them are the same but for the numbers of their groups."""

    labels: Integers  # as the first of them, that leaves nothing out, numbers its groups
    groups: int
    members: tuple[int, ...]

    def worth(self, usable: Collection[int], required: Collection[int]) -> Worth:
        return sum(i in required for i in self.members), sum(i in usable for i in self.members)


def heaviest_chain(
    partitions: Sequence[Integers], usable: Collection[int], required: Collection[int]
) -> NestedPartitions | None:
    """The chain that holds the most of the usable partitions, and all that are required; None where these do not nest.

    Its finest step is a partition that all others lie in; where no such one is given, the coarsest there is.
    """
    known = [(each, each.worth(usable, required)) for each in _distinct(partitions)]
    candidates = sorted((each for each in known if each[1] != (0, 0)), key=lambda each: each[0].groups)
    chosen = _heaviest(candidates)
    if not set(required) <= {i for each in chosen for i in each.members}:
        return None
    proper = [each for each in chosen if each.groups > 1]
    # Groups keep the numbers that their tables give them, so that large tables are read as they stand.
    finest, above = (chosen[-1].labels if chosen else np.zeros_like(partitions[0])), proper[:-1]
    if not all(lies_within(finest, each) for each in partitions):
        for given in partitions:  # the order of their groups is that of the first, then of the second, and so on
            further = renumbered(given)
            finest = first_and_members(finest * (int(further.max()) + 1) + further)[1]
        above = proper
    firsts = first_and_members(finest)[0]
    steps = [OUTSIDE] * len(partitions)
    for each in chosen:
        for i in each.members:
            steps[i] = 1 + proper.index(each) if each in proper else 0
    return NestedPartitions(finest, tuple(each.labels[firsts] for each in above), tuple(steps))


def _distinct(partitions: Sequence[Integers]) -> list[_Distinct]:
    """Each partition once; of two with as many groups, the one that is given last comes first."""
    members: dict[bytes, list[int]] = {}
    for i in reversed(range(len(partitions))):
        members.setdefault(renumbered(partitions[i]).tobytes(), []).insert(0, i)
    found = list[_Distinct]()
    for each in members.values():
        labels = next((partitions[i] for i in each if partitions[i].min() >= 0), partitions[each[0]])
        found.append(_Distinct(labels, len(first_and_members(labels)[0]), tuple(each)))
    return found


def _heaviest(candidates: Sequence[tuple[_Distinct, Worth]]) -> list[_Distinct]:
    """The nested ones that are worth the most together, coarsest first; candidates are in the order of their sizes."""
    best: list[tuple[Worth, int]] = []  # what each is worth with those above it, and which comes before it
    for i, (own, (required, usable)) in enumerate(candidates):
        above = [(best[j][0], j) for j in range(i) if lies_within(own.labels, candidates[j][0].labels)]
        most, before = max(above, default=((0, 0), OUTSIDE))
        best.append(((most[0] + required, most[1] + usable), before))
    chosen, place = list[_Distinct](), max(range(len(best)), key=lambda i: (best[i][0], i), default=OUTSIDE)
    while place != OUTSIDE:
        chosen.insert(0, candidates[place][0])
        place = best[place][1]
    return chosen
