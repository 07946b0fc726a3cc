"""Whole tables of a tree: every constraint, for any measurements, and alike however the tree is cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.publication.consistency.estimates import Pair, estimate, pass_down, pass_up
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.top_down_rounding import top_down


def grown(generator: np.random.Generator, levels: int, most: int) -> tuple[NDArray[np.int64], ...]:
    """Parents of each level, every node with one to `most` parts."""
    parents: list[NDArray[np.int64]] = []
    size = 1
    for _ in range(levels):
        parents.append(np.repeat(np.arange(size), generator.integers(1, most + 1, size)))
        size = parents[-1].size
    return tuple(parents)


def added(tree: Tree, table: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    for starts in reversed(tree.starts[level:]):
        table = np.add.reduceat(table, starts[:-1], axis=0)
    return table


def measured(
    tree: Tree,
    chain: PartitionChain,
    truth: NDArray[np.int64],
    variances: dict[Pair, float],
    generator: np.random.Generator,
) -> dict[Pair, NDArray[np.int64]]:
    exact = {pair: chain.sums(added(tree, truth, pair[0]), pair[1]) for pair in variances}
    return {
        pair: np.rint(each + generator.normal(0, variances[pair] ** 0.5, each.shape)).astype(np.int64)
        for pair, each in exact.items()
    }


@given(st.integers(0, 2**32), st.sampled_from([(), ((0, 0),), ((1, 0),), ((0, 2), (2, 0)), ((1, 1),), ((2, 2),)]))
@settings(max_examples=60, deadline=None)
def test_every_constraint_holds(seed: int, invariants: tuple[Pair, ...]) -> None:
    generator = np.random.default_rng(seed)
    tree, parents = Tree(grown(generator, 2, 4)), grown(generator, 2, 4)
    zeros = generator.random(parents[-1].size) < 0.3
    zeros[generator.integers(zeros.size)] = False
    chain = PartitionChain(parents, zeros)
    truth = np.where(zeros, 0, generator.poisson(2.0, (tree.sizes[-1], zeros.size)))
    pairs = [(level, k) for level in range(3) for k in range(3)]
    variances = {pair: 0.0 if pair in invariants else 2.0 ** (pair[0] + pair[1]) for pair in pairs}
    values = measured(tree, chain, truth, variances, generator)
    tables = top_down(estimate(tree, chain, values, variances))
    for level, table in enumerate(tables):
        assert table.min() >= 0
        assert not table[:, zeros].any()
        if level:
            assert np.array_equal(np.add.reduceat(table, tree.starts[level - 1][:-1], axis=0), tables[level - 1])
    for level, k in invariants:
        assert np.array_equal(chain.sums(tables[level], k), values[level, k])


def test_without_noise_the_truth_comes_back() -> None:
    generator = np.random.default_rng(5)
    tree, chain = Tree(grown(generator, 3, 5)), PartitionChain(grown(generator, 2, 5))
    truth = generator.poisson(0.7, (tree.sizes[-1], chain.sizes[-1]))
    variances = {(level, k): 1e-6 * 2.0**level for level in range(4) for k in range(3)}
    tables = top_down(estimate(tree, chain, measured(tree, chain, truth, variances, generator), variances))
    assert np.array_equal(tables[-1], truth)


def test_a_subtree_alone_gives_the_same_bytes() -> None:
    generator = np.random.default_rng(8)
    tree, chain = (
        Tree(grown(generator, 3, 6)),
        PartitionChain((np.zeros(3, dtype=np.int64), np.repeat(np.arange(3), 4))),
    )
    truth = generator.poisson(1.5, (tree.sizes[-1], chain.sizes[-1]))
    variances = {(level, k): 3.0 * 2.0**level + k for level in range(4) for k in range(3)}
    values = measured(tree, chain, truth, variances, generator)
    whole = estimate(tree, chain, values, variances)
    tables = top_down(whole)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(tables, top_down(whole), strict=True))
    for node in range(tree.sizes[1]):
        subtree, nodes = tree.subtree(1, node)
        rows = [slice(each.start, each.stop) for each in nodes]
        own = {(level - 1, k): each[rows[level - 1]] for (level, k), each in values.items() if level}
        told = whole.state(1).only(node)
        alone = pass_down(pass_up(subtree, whole.upward.weights.below(1), own), told)
        for level, table in enumerate(top_down(alone, tables[1][node])):
            assert table.tobytes() == tables[level + 1][nodes[level].start : nodes[level].stop].tobytes()


def test_whole_tables_are_nearer_to_the_truth_than_measurements() -> None:
    generator = np.random.default_rng(11)
    tree, chain = (
        Tree(grown(generator, 3, 8)),
        PartitionChain((np.zeros(2, dtype=np.int64), np.repeat(np.arange(2), 10))),
    )
    truth = generator.poisson(0.5, (tree.sizes[-1], chain.sizes[-1]))
    variances = {(level, k): 9.0 for level in range(4) for k in range(3)}
    values = measured(tree, chain, truth, variances, generator)
    found = top_down(estimate(tree, chain, values, variances))[-1]
    assert np.abs(found - truth).mean() < 0.5 * np.abs(values[3, 2] - truth).mean()
    assert np.abs(found.sum(axis=1) - truth.sum(axis=1)).mean() < np.abs(values[3, 0][:, 0] - truth.sum(axis=1)).mean()


def test_large_counts_are_kept() -> None:
    tree, chain = Tree((np.zeros(2, dtype=np.int64),)), PartitionChain((np.zeros(2, dtype=np.int64),))
    truth = np.array([[2**33, 5], [7, 2**34]])
    variances = {(level, k): 1e-6 for level in range(2) for k in range(2)}
    tables = top_down(
        estimate(tree, chain, measured(tree, chain, truth, variances, np.random.default_rng(1)), variances)
    )
    assert tables[1].dtype == np.int64
    assert np.array_equal(tables[1], truth)
