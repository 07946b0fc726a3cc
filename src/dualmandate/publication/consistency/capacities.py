"""The most that a cell may count at a place: cells that cannot occur there, and bounds that are known.

From the root down nothing may be given that cannot be placed below. The room of a node is the smaller of what is
stated for it and of what its children have room for; a table within its node's room can always be split, cell by cell.
What each child may get of a group then lies between what others have no room for and what it has room for itself.
Exact totals of children may contradict room even so: then the family is an integer program, and refused if it has no
solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.integer_programs import SECONDS, integer_program
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.transport import UNLIMITED


@dataclass(frozen=True, eq=False)
class Capacities:
    """For some levels of a tree the most that each cell of each node counts, or whether it can occur at all."""

    tree: Tree
    chain: PartitionChain
    stated: Mapping[int, NDArray[Any]] = field(repr=False)  # (nodes, cells): whole numbers, or bool: can it occur

    def __post_init__(self) -> None:
        for level, most in self.stated.items():
            known = 0 <= level <= self.tree.last and most.shape == (self.tree.sizes[level], self.chain.sizes[-1])
            whole = known and (most.dtype == np.bool_ or (np.issubdtype(most.dtype, np.integer) and most.min() >= 0))
            if not whole:
                raise InvalidRequest(
                    f"bounds at level {level} that do not fit the tree and the chain",
                    why="each cell of each node has one bound, a whole number from 0 on, or can occur or not",
                    instead="give arrays of shape (nodes, cells) for levels of the tree",
                )

    def room(self, level: int, nodes: range) -> Integers:
        """The most that the cells of some nodes can count; shape (nodes, cells), `UNLIMITED` at the most."""
        if level == self.tree.last:
            return self._own(level, nodes)
        return self._above[level][nodes.start : nodes.stop]

    def _own(self, level: int, nodes: range) -> Integers:
        most = np.full((len(nodes), self.chain.sizes[-1]), UNLIMITED)
        if level in self.stated:
            rows = self.stated[level][nodes.start : nodes.stop]
            most = np.where(rows, UNLIMITED, 0) if rows.dtype == np.bool_ else np.minimum(rows, UNLIMITED)
        most[:, ~self.chain.possible[-1]] = 0
        return most.astype(np.int64)

    @cached_property
    def _above(self) -> tuple[Integers, ...]:
        """The room of every level but the last, from what the next one has, one family at a time."""
        found: list[Integers] = []
        for level in range(self.tree.last - 1, -1, -1):
            most = self._own(level, range(self.tree.sizes[level]))
            for node in range(self.tree.sizes[level]):
                children = self.tree.children(level, node)
                below = found[0][children.start : children.stop] if found else self._own(level + 1, children)
                most[node] = np.minimum(most[node], below.sum(axis=0))
            found.insert(0, most)
        return tuple(found)


@dataclass(frozen=True, eq=False)
class FamilyCapacities:
    """What a family's cells have room for, and what follows for its groups."""

    chain: PartitionChain
    most: Integers = field(repr=False)  # of children and cells; no more than the parent counts
    least: Integers = field(repr=False)  # what the other children have no room for

    @classmethod
    def of(cls, chain: PartitionChain, most: Integers, parent: NDArray[Any]) -> FamilyCapacities:
        """The room of a node's children, given the node's table."""
        own = np.minimum(most, parent)
        return cls(chain, own, np.maximum(parent - (own.sum(axis=0) - own), 0))

    def groups(self, step: int) -> tuple[Integers, Integers]:
        """The least of each child and group of a grouping, and how much more it may count."""
        least = self.chain.sums(self.least, step)
        return least, self.chain.sums(self.most, step) - least


def integer_family(
    targets: Floats, parent: NDArray[Any], room: FamilyCapacities, exact: Sequence[tuple[int, Integers]]
) -> Integers:
    """Children's cells that add up to the parent's, to what is exact, and keep to their room; shape (children, cells).

    `exact` are groupings with counts of the children. Nearest in absolute terms, by an integer program; refused where
    there are none.
    """
    from scipy.sparse import csr_array, vstack

    chain = room.chain
    rows, cells = np.nonzero(room.most)
    columns = np.arange(rows.size)
    ones = np.ones(rows.size)
    held = [csr_array((ones, (cells, columns)), shape=(chain.sizes[-1], rows.size))]
    totals = [np.asarray(parent, dtype=np.int64)]
    for step, counts in exact:
        groups = chain.ancestors(step)[cells] + rows * chain.sizes[step]
        held.append(csr_array((ones, (groups, columns)), shape=(counts.size, rows.size)))
        totals.append(counts.reshape(-1))
    found = integer_program(
        np.maximum(targets[rows, cells], 0.0),
        vstack(held),
        np.concatenate(totals),
        most=room.most[rows, cells],
        seconds=SECONDS,
    )
    whole = np.zeros(room.most.shape, dtype=np.int64)
    whole[rows, cells] = found.counts
    return whole
