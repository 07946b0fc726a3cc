"""Consistency trades bias for error, and the simulation shows both."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import DiscreteGaussian
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.post_processing import Both, consistency_effect, tree_releases


def test_small_cells_of_a_tree_become_too_large_and_errors_smaller() -> None:
    generator = np.random.default_rng(3)
    tree, chain = (
        Tree((np.zeros(4, dtype=np.int64), np.repeat(np.arange(4), 6))),
        PartitionChain((np.zeros(8, dtype=np.int64),)),
    )
    truth = generator.poisson(generator.gamma(0.3, 8.0, (24, 8)))
    noises = {(level, k): DiscreteGaussian(1 / 18) for level in range(3) for k in range(2)} | {(0, 0): None}
    exact, draw = tree_releases(tree, chain, truth, noises)
    named = {f"level {level}, {k}": (level, k) for level, k in noises}

    def release(generator: np.random.Generator) -> dict[str, Both]:
        drawn = draw(generator)
        return {name: drawn[pair] for name, pair in named.items()}

    truths = {name: exact[pair] for name, pair in named.items()}
    found = consistency_effect(truths, release, generator, releases=20)
    cells = {(each.table, each.least): each for each in found}
    empty, large = cells["level 2, 1", 0], cells["level 2, 1", 10]
    assert abs(empty.unbiased_bias) < 0.5 < empty.consistent_bias
    assert empty.consistent_error < 0.7 * empty.unbiased_error
    assert large.consistent_bias < -0.1
    assert (empty.least, empty.most, large.most) == (0, 0, 99)
    assert sum(each.cells for each in found if each.table == "level 2, 1") == truth.size
    total = cells["level 0, 0", 100] if ("level 0, 0", 100) in cells else cells["level 0, 0", 1000]
    assert total.consistent_error == 0


def test_no_simulation_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="0 simulated releases"):
        consistency_effect({}, lambda _: {}, np.random.default_rng(1), releases=0)
    with pytest.raises(InvalidRequest, match="rising order"):
        consistency_effect({}, lambda _: {}, np.random.default_rng(1), sizes=(3, 1))
