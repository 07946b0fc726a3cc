"""Best linear unbiased estimates of every table of a tree × chain, with standard errors, at the cost of passes.

Innovations (see `gls_weights`) rise from the leaves to the root and come down again. Leaves are never held all at once:
their measurements are read one family at a time, on the way up and once more on the way down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidInvariant, InvalidRequest
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.gls_weights import (
    Pair,
    Weights,
    child_shares,
    final_variances,
    table_variances,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

MeasuredTables = Mapping[Pair, NDArray[Any]]  # (nodes, groups) for a level of the tree and one of the chain


@dataclass(frozen=True, eq=False)
class Innovations:
    """Innovations of some nodes, with their variances: what subtrees tell the tree above them, and are told by it."""

    values: tuple[Floats, ...] = field(repr=False)  # [k], shape (nodes, groups)
    variances: tuple[Floats, ...] = field(repr=False)  # [k], shape (nodes, classes)

    def only(self, node: int) -> Innovations:
        """Of one node."""
        own = slice(node, node + 1)
        return Innovations(tuple(each[own] for each in self.values), tuple(each[own] for each in self.variances))


@dataclass(frozen=True, eq=False)
class UpwardPass:
    """What is known at each level of a tree from the measurements at and below it."""

    tree: Tree
    weights: Weights
    measured: MeasuredTables = field(repr=False)
    values: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k] of all levels but the last, or of all
    sums: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k] of the children, all levels but the last
    variances: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k], shape (nodes, classes)

    @cached_property
    def shares(self) -> tuple[tuple[Floats, ...], ...]:
        """Of each child in what its parent has beyond its children's sum; [l − 1][k], shape (nodes, classes)."""
        levels = enumerate(self.variances[1:], start=1)
        return tuple(tuple(child_shares(self.tree, each, level) for each in found) for level, found in levels)

    @property
    def root(self) -> Innovations:
        """What the tree above is told."""
        return Innovations(self.values[0], self.variances[0])

    def at(self, level: int, nodes: range) -> tuple[Floats, ...]:
        """Innovations of some nodes from what is at and below them; new arrays."""
        if level < len(self.values):
            return tuple(each[nodes.start : nodes.stop].copy() for each in self.values[level])
        return node_innovations(self.weights, self.measured, level=level, nodes=nodes)


@dataclass(frozen=True, eq=False)
class TreeEstimates:
    """Best linear unbiased estimates of all tables; those of leaves are computed when they are asked for."""

    upward: UpwardPass
    values: tuple[tuple[Floats, ...], ...] = field(repr=False)  # innovations [l][k] of all levels but the last
    variances: tuple[tuple[Floats, ...], ...] = field(repr=False)  # of innovations [l][k], shape (nodes, classes)

    @property
    def tree(self) -> Tree:
        """The geography."""
        return self.upward.tree

    @property
    def chain(self) -> PartitionChain:
        """The groupings of cells."""
        return self.upward.weights.chain

    def tables(self, level: int, nodes: range | None = None, finest: int | None = None) -> tuple[Floats, ...]:
        """Estimates of some nodes (all, if none are named) for each level of the chain; [k], shape (nodes, groups).

        `finest` is the last level of the chain that is asked for: there are none beyond.
        """
        rows = range(self.tree.sizes[level]) if nodes is None else nodes
        last = self.chain.last if finest is None else finest
        tables = self._innovations(level, rows)[: last + 1]
        for k in range(1, last + 1):
            put_back(tables[k], self.chain.parents[k - 1], self.upward.weights.shares[k], tables[k - 1])
        return tables

    def standard_errors(self, level: int, nodes: range | None = None, finest: int | None = None) -> tuple[Floats, ...]:
        """Standard errors of the same, whatever was measured."""
        rows = range(self.tree.sizes[level]) if nodes is None else nodes
        last = self.chain.last if finest is None else finest
        own = tuple(each[rows.start : rows.stop] for each in self.variances[level][: last + 1])
        return tuple(np.sqrt(each) for each in table_variances(self.upward.weights, own))

    def state(self, level: int) -> Innovations:
        """What the subtrees of a level (not the last) are told."""
        return Innovations(self.values[level], self.variances[level])

    def exact(self, level: int, k: int) -> bool:
        """Whether the tables of a level are known without noise."""
        return k < self._exact[level]

    @cached_property
    def _exact(self) -> tuple[int, ...]:
        """How many levels of the chain are known without noise, for each level of the tree."""
        noisy = ([bool(np.any(each)) for each in found] + [True] for found in self.upward.variances)
        return tuple(each.index(True) for each in noisy)

    def _innovations(self, level: int, nodes: range) -> tuple[Floats, ...]:
        if level < len(self.values):
            return tuple(each[nodes.start : nodes.stop].copy() for each in self.values[level])
        parents = self.tree.parents[level - 1][nodes.start : nodes.stop]
        return _settled(self.upward, self.values[level - 1], level=level, nodes=nodes, parents=parents)


def estimate(
    tree: Tree, chain: PartitionChain, measured: MeasuredTables, variances: Mapping[Pair, float]
) -> TreeEstimates:
    """Best linear unbiased estimates from noisy whole numbers; a pair of variance 0 is an invariant, held exactly.

    A pair is a level of the tree and one of the chain; any may be left out. Where nothing tells parts apart, the
    standard error is ∞ and the estimate an equal split. Measurements of structural zeros are not looked at.
    """
    weights = Weights.of(chain, variances, levels=tree.last + 1)
    _refuse_unless_shaped(tree, chain, measured, variances)
    _refuse_contradictions(tree, chain, measured, [pair for pair, each in variances.items() if each == 0])
    upward = pass_up(tree, weights, measured)
    return pass_down(upward, upward.root)


def pass_up(tree: Tree, weights: Weights, measured: MeasuredTables, leaves: Innovations | None = None) -> UpwardPass:
    """The upward pass. `leaves` are what the subtrees told, where the leaves of this tree are roots of such."""
    depth = weights.chain.last + 1
    variances, gains = upward_variances(tree, weights, None if leaves is None else leaves.variances)
    values: list[tuple[Floats, ...]] = [] if leaves is None else [leaves.values]
    sums: list[tuple[Floats, ...]] = []
    for level in range(tree.last - 1, -1, -1):
        if values:
            below = tuple(_children(values[0][k], tree.starts[level]) for k in range(depth))
        else:
            below = _leaf_sums(tree, weights, measured)
        here = node_innovations(weights, measured, level=level, nodes=range(tree.sizes[level]))
        gain = [gains[level][k][:, weights.classes[k]] for k in range(depth)]
        values.insert(0, tuple(gain[k] * here[k] + (1 - gain[k]) * below[k] for k in range(depth)))
        sums.insert(0, below)
    return UpwardPass(tree, weights, measured, tuple(values), tuple(sums), variances)


def pass_down(upward: UpwardPass, root: Innovations) -> TreeEstimates:
    """The downward pass, from what is finally known of the root."""
    tree, values = upward.tree, [root.values]
    for level in range(1, len(upward.values)):
        nodes = range(tree.sizes[level])
        values.append(_settled(upward, values[-1], level=level, nodes=nodes, parents=tree.parents[level - 1]))
    return TreeEstimates(upward, tuple(values), final_variances(tree, upward.variances, root.variances))


def node_innovations(weights: Weights, measured: MeasuredTables, *, level: int, nodes: range) -> tuple[Floats, ...]:
    """The innovations of some nodes from their own measurements: the upward pass along the chain."""
    chain, found = weights.chain, list[Floats]()
    held = _read(measured, (level, chain.last), nodes, chain)
    for k in range(chain.last, 0, -1):
        sums = np.empty((len(nodes), chain.sizes[k - 1]))
        take_out(held, chain.starts[k - 1], weights.shares[k], sums)
        found.insert(0, held)
        if (level, k - 1) in measured:
            gain = weights.gains[level][k - 1]
            sums = gain * _read(measured, (level, k - 1), nodes, chain) + (1 - gain) * sums
        held = sums
    return (held, *found)


def _read(measured: MeasuredTables, pair: Pair, nodes: range, chain: PartitionChain) -> Floats:
    """Measurements of some nodes as new floats, 0 where there are none or cells cannot occur."""
    if pair not in measured:
        return np.zeros((len(nodes), chain.sizes[pair[1]]))
    rows = measured[pair][nodes.start : nodes.stop].astype(np.float64)
    if chain.zeros is not None:
        rows[:, ~chain.possible[pair[1]]] = 0.0
    return rows


def _children(values: Floats, starts: Integers) -> Floats:
    sums = np.empty((starts.size - 1, values.shape[1]))
    add_children(values, starts, sums)
    return sums


def _leaf_sums(tree: Tree, weights: Weights, measured: MeasuredTables) -> tuple[Floats, ...]:
    """The sums of each family's innovations, one family at a time."""
    level = tree.last - 1
    sums = tuple(np.empty((tree.sizes[level], size)) for size in weights.chain.sizes)
    for node in range(tree.sizes[level]):
        family = node_innovations(weights, measured, level=tree.last, nodes=tree.children(level, node))
        for whole, each in zip(sums, family, strict=True):
            add_children(each, np.array([0, len(each)]), whole[node : node + 1])
    return sums


def _settled(
    upward: UpwardPass, above: tuple[Floats, ...], *, level: int, nodes: range, parents: Integers
) -> tuple[Floats, ...]:
    """Innovations of some nodes after their parents told theirs."""
    values, first = upward.at(level, nodes), int(parents[0]) if parents.size else 0
    last = int(parents[-1]) + 1 if parents.size else 0
    for k, each in enumerate(values):
        gaps = above[k][first:last] - upward.sums[level - 1][k][first:last]
        shares = upward.shares[level - 1][k][nodes.start : nodes.stop]
        hand_down(each, parents - first, shares, upward.weights.classes[k], gaps)
    return values


def _refuse_unless_shaped(
    tree: Tree, chain: PartitionChain, measured: MeasuredTables, variances: Mapping[Pair, float]
) -> None:
    shapes = {(level, k): (tree.sizes[level], chain.sizes[k]) for level, k in variances}
    if set(measured) != set(variances) or any(measured[pair].shape != shape for pair, shape in shapes.items()):
        raise InvalidRequest(
            "measurements that do not fit the tree and the chain",
            why="each measured pair of levels has one variance and one number a node and group",
            instead="give arrays of shape (nodes, groups) for exactly the pairs that have a variance",
        )


def _refuse_contradictions(tree: Tree, chain: PartitionChain, measured: MeasuredTables, exact: Sequence[Pair]) -> None:
    """Exact numbers must be counts, and agree wherever two of them tell the same."""
    tables = {pair: np.asarray(measured[pair]) for pair in exact}
    for i, (pair, table) in enumerate(tables.items()):
        impossible = table[:, ~chain.possible[pair[1]]]
        wrong = bool(np.any(table < 0) or np.any(table != np.rint(table)) or np.any(impossible))
        for other in exact[:i]:
            common = min(pair[0], other[0]), min(pair[1], other[1])
            views = [_coarser(tree, chain, tables[one], one, common) for one in (pair, other)]
            wrong = wrong or not np.array_equal(views[0], views[1])
        if wrong:
            raise InvalidInvariant(
                f"exact numbers at level {pair[0]} of the tree and {pair[1]} of the chain that cannot be counts",
                why="they are negative, not whole, in structural zeros, or do not add up to other exact numbers",
                instead="state counts of one population",
            )


def _coarser(tree: Tree, chain: PartitionChain, table: NDArray[Any], pair: Pair, to: Pair) -> NDArray[Any]:
    for starts in reversed(tree.starts[to[0] : pair[0]]):
        table = np.add.reduceat(table, starts[:-1], axis=0)
    for starts in reversed(chain.starts[to[1] : pair[1]]):
        table = np.add.reduceat(table, starts[:-1], axis=1)
    return table


@numba.njit(cache=True, nogil=True)
def take_out(values: Any, starts: Any, shares: Any, sums: Any) -> None:
    """Write the sum of each group's parts, and leave of each part what is not its share of that sum."""
    for row in range(values.shape[0]):
        for group in range(starts.size - 1):
            total = 0.0
            for part in range(starts[group], starts[group + 1]):
                total += values[row, part]
            sums[row, group] = total
            for part in range(starts[group], starts[group + 1]):
                values[row, part] -= shares[part] * total


@numba.njit(cache=True, nogil=True)
def put_back(values: Any, parents: Any, shares: Any, sums: Any) -> None:
    """Add to each part its share of its group's sum."""
    for row in range(values.shape[0]):
        for part in range(parents.size):
            values[row, part] += shares[part] * sums[row, parents[part]]


@numba.njit(cache=True, nogil=True)
def add_children(values: Any, starts: Any, sums: Any) -> None:
    """Write the sum of the rows of each node's children."""
    sums[:] = 0
    for node in range(starts.size - 1):
        for child in range(starts[node], starts[node + 1]):
            for place in range(values.shape[1]):
                sums[node, place] += values[child, place]


@numba.njit(cache=True, nogil=True)
def hand_down(values: Any, parents: Any, shares: Any, classes: Any, gaps: Any) -> None:
    """Add to each child its share of what its parent has beyond the sum of its children."""
    for child in range(values.shape[0]):
        for place in range(values.shape[1]):
            values[child, place] += shares[child, classes[place]] * gaps[parents[child], place]


@numba.njit(cache=True, nogil=True)
def count_across(values: Any, areas: Any, groups: Any, onto: Any) -> None:
    """Add each node's cells to the areas and groups that count them; a negative number counts nowhere."""
    for node in range(values.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[areas[node], groups[cell]] += values[node, cell]


@numba.njit(cache=True, nogil=True)
def spread_across(numbers: Any, areas: Any, groups: Any, factor: Any, onto: Any) -> None:
    """Add to each node's cells the number of the area and group that counts them, times a factor."""
    for node in range(onto.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[node, cell] += factor * numbers[areas[node], groups[cell]]
