"""Noise on a tree × chain: where each number gets its noise from, and that counts are added in their places."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.mechanism import GAUSSIAN, Noise
from dualmandate.mechanism.noise import NoiseKey, subkey
from dualmandate.population import Confidential, Domain, Histogram
from dualmandate.publication import SparseHistogram, Tabulated, tree_measuring
from dualmandate.publication.consistency.gls_weights import Pair
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.tree_measuring import TreePlaces, measure_tree

AREAS, GROUPS = np.array([1, 0, 1, 0, 1]), np.array([0, 1, 0, 1])
NOISE = Noise(GAUSSIAN, Fraction(9))


def key(pair: Pair) -> NoiseKey:
    return subkey(bytes(32), "test", histogram_mac=b"", measurement=str(pair))


@pytest.fixture
def places() -> TreePlaces:
    tree, leaves = Tree.of([AREAS])
    chain, cells = PartitionChain.of([GROUPS])
    return TreePlaces(tree, chain, leaves[-1], cells[-1])


def boxed(counts: NDArray[np.int64], *, sparse: bool) -> Confidential[Tabulated]:
    domain, flat = Domain.of_shape(counts.shape), counts.reshape(-1)
    occupied = np.flatnonzero(flat)
    histogram = SparseHistogram(domain, occupied, flat[occupied]) if sparse else Histogram(domain, counts)
    return Confidential("test", Tabulated(histogram, int(counts.sum())))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("large", [2**24, 3])
def test_each_number_has_its_count_and_its_own_noise(
    places: TreePlaces, monkeypatch: pytest.MonkeyPatch, sparse: bool, large: int
) -> None:
    monkeypatch.setattr(tree_measuring, "LARGE", large)
    monkeypatch.setattr(tree_measuring, "BLOCK", 8)
    counts = np.random.default_rng(1).poisson(3.0, (5, 4)).astype(np.int64)
    noises = {(level, k): NOISE for level in range(3) for k in range(3)} | {(0, 0): None}
    found = measure_tree(boxed(counts, sparse=sparse), places, noises, key)
    sorted_counts = counts[np.argsort(AREAS, kind="stable")][:, np.argsort(GROUPS, kind="stable")]
    rows = [np.ones((1, 5)), np.repeat(np.eye(2), [2, 3], axis=1), np.eye(5)]
    columns = [np.ones((4, 1)), np.repeat(np.eye(2), 2, axis=0), np.eye(4)]
    for (level, k), values in found.items():
        exact = rows[level] @ sorted_counts @ columns[k]
        size = exact.size
        noise = NOISE.sampler().draw(key((level, k)), range(size)).reshape(exact.shape)
        assert np.array_equal(values, exact + (0 if (level, k) == (0, 0) else noise))
        assert values.dtype == (np.int32 if size > large else np.int64)
