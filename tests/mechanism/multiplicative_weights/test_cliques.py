"""Marginals of a product of potentials: those of the whole domain written out, and of domains that nobody could."""

from __future__ import annotations

from functools import reduce
from itertools import combinations

import numpy as np
import pytest

from dualmandate.mechanism.multiplicative_weights.cliques import LARGEST_TREE, Axes, CliqueTree, spread
from dualmandate.population.arrays import Floats

SHAPE = (2, 3, 4, 2, 3, 2)
ALL = tuple(range(len(SHAPE)))
CASES: dict[str, list[Axes]] = {
    "nothing": [],
    "a chain": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    "a ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)],
    "two islands": [(0, 1, 2), (3, 4)],
    "a star, and one attribute twice": [(2, 0), (2, 4), (2,), (4,)],
    "everything": [ALL, (1, 2)],
}


def written_out(potentials: dict[Axes, Floats]) -> Floats:
    logs = reduce(np.add, [spread(value, axes, ALL) for axes, value in potentials.items()], np.zeros(SHAPE))
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("name", CASES)
def test_marginals_are_those_of_the_domain_written_out(name: str) -> None:
    generator = np.random.default_rng(4)
    potentials = {
        tuple(sorted(axes)): generator.normal(scale=2.0, size=[SHAPE[axis] for axis in sorted(axes)])
        for axes in CASES[name]
    }
    whole = written_out(potentials)
    marginals = CliqueTree.joining(SHAPE, potentials).marginals(potentials, 1000.0)
    for size in (1, 2, 3):
        for axes in combinations(ALL, size):
            expected = 1000 * whole.sum(axis=tuple(axis for axis in ALL if axis not in axes))
            assert marginals.of(axes) == pytest.approx(expected, rel=1e-10), axes


def test_a_chain_of_many_attributes_costs_what_its_cliques_do() -> None:
    shape = (10,) * 40
    links: list[Axes] = [(axis, axis + 1) for axis in range(39)]
    tree = CliqueTree.joining(shape, links)
    assert tree.size == 39 * 100 + 10
    generator = np.random.default_rng(5)
    potentials = {link: generator.normal(size=(10, 10)) for link in links}
    marginals = tree.marginals(potentials, 1.0)
    # P(first, last) of a Markov chain is a product of matrices.
    chain = reduce(np.matmul, [np.exp(potentials[link]) for link in links])
    assert marginals.of((0, 39)) == pytest.approx(chain / chain.sum(), rel=1e-9)


def test_a_tree_knows_when_it_would_be_too_large() -> None:
    pairs = list(combinations(range(8), 2))
    assert CliqueTree.joining((10,) * 8, pairs).size > LARGEST_TREE
