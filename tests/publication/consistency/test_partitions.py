"""Trees and chains: what nests, what is refused, and how unsorted groups are sorted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain
from dualmandate.publication.consistency.partitions import PartitionChain, Tree, lies_within


def indices(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def test_sizes_children_and_subtrees() -> None:
    tree = Tree((indices(0, 0), indices(0, 0, 1), indices(0, 1, 1, 2, 2)))
    assert tree.sizes == (1, 2, 3, 5)
    assert tree.last == 3
    assert tree.children(1, 0) == range(2)
    subtree, nodes = tree.subtree(1, 0)
    assert subtree.sizes == (1, 2, 3)
    assert nodes == (range(1), range(2), range(3))
    assert [each.tolist() for each in subtree.parents] == [[0, 0], [0, 1, 1]]
    other, nodes = tree.subtree(1, 1)
    assert nodes == (range(1, 2), range(2, 3), range(3, 5))
    assert [each.tolist() for each in other.parents] == [[0], [0, 0]]


def test_unsorted_groups_are_sorted() -> None:
    county, tract = indices(1, 0, 1, 0, 1), indices(7, 3, 5, 3, 7)
    tree, (counties, tracts, leaves) = Tree.of([county, tract])
    assert counties.tolist() == [0, 1]
    assert tracts.tolist() == [3, 5, 7]
    assert leaves.tolist() == [1, 3, 2, 0, 4]
    assert [each.tolist() for each in tree.parents] == [[0, 0], [0, 1, 1], [0, 0, 1, 2, 2]]
    zeros = np.array([True, False, False, False, False])
    chain, orders = PartitionChain.of([county, tract], zeros)
    assert chain.zeros is not None
    assert np.flatnonzero(chain.zeros).tolist() == [3]
    assert orders[-1].tolist() == leaves.tolist()


def test_sums_of_cells() -> None:
    chain = PartitionChain((indices(0, 0), indices(0, 0, 1)))
    cells = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
    assert chain.sums(cells, 2).tolist() == cells.tolist()
    assert chain.sums(cells, 1).tolist() == [[3, 3], [9, 6]]
    assert chain.sums(cells, 0).tolist() == [[6], [15]]


@pytest.mark.parametrize(
    "parents",
    [
        (),
        (indices(0, 2),),
        (indices(1, 1),),
        (indices(0, 0), indices(0, 1, 0)),
        (indices(0, 0), indices(0, 0)),
        (np.zeros((1, 2), dtype=np.int64),),
        (np.zeros(2),),
    ],
)
def test_what_does_not_nest_is_refused(parents: tuple[NDArray[np.int64], ...]) -> None:
    with pytest.raises(InvalidDomain):
        Tree(parents)
    with pytest.raises(InvalidDomain):
        PartitionChain(parents)


@pytest.mark.parametrize("zeros", [np.ones(2, dtype=bool), np.zeros(3, dtype=bool)])
def test_structural_zeros_mark_some_cells(zeros: NDArray[np.bool_]) -> None:
    with pytest.raises(InvalidDomain, match="structural zeros"):
        PartitionChain((indices(0, 0),), zeros)


def test_one_place_of_a_large_partition_decides_whether_it_lies_within_another() -> None:
    """A few thousand places tell most; whether it does, all of them."""
    fine = np.arange(50_000) // 5
    coarse = fine // 10
    assert lies_within(fine, coarse)
    assert not lies_within(coarse, fine)
    coarse[49_999] += 1
    assert not lies_within(fine, coarse)
