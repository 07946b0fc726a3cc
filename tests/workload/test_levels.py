from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.population.arrays import Integers
from dualmandate.workload.levels import disjoint_pairs, row_ids, twins


def signatures(marks: Integers, partitions: list[Integers], levels: Integers) -> set[tuple[object, ...]]:
    """All that can be seen of every pair of some levels."""
    return {
        (
            int(marks[one]),
            int(marks[other]),
            *((int(each[one]) < 0, int(each[other]) < 0, each[one] == each[other] >= 0) for each in partitions),
        )
        for one in levels
        for other in levels
    }


@given(data=st.data(), size=st.integers(1, 24))
@settings(max_examples=200, deadline=None)
def test_twins_stand_for_every_pair(data: st.DataObject, size: int) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    fine = np.sort(random.integers(0, max(size // 2, 1), size))
    partitions = [np.arange(size), fine, fine // 2, fine // 4, random.integers(0, 3, size)]
    partitions = [np.where(random.random(size) < data.draw(st.sampled_from([0.6, 1.1])), p, -1) for p in partitions]
    partitions = data.draw(st.lists(st.sampled_from(partitions), max_size=4))
    # A level outside a partition must show it, as factors and invariants do.
    outside = [(labels >= 0).astype(np.int64) for labels in partitions]
    marks = row_ids([random.integers(0, 2, size), *outside], size)
    kept = twins(marks, partitions)
    assert signatures(marks, partitions, kept) == signatures(marks, partitions, np.arange(size))


def test_a_large_hierarchy_leaves_a_few_levels() -> None:
    block = np.arange(100_000)
    kept = twins(np.zeros(100_000, dtype=np.int64), [block, block // 6, block // 60, block // 900, block // 18_000])
    assert len(kept) <= 32


@given(data=st.data(), size=st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_disjoint_pairs_share_no_more_than_they_must(data: st.DataObject, size: int) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kinds = row_ids([random.integers(0, 3, size)], size)
    partitions = [random.integers(-1, count, size) for count in (2, 3, 6)]
    left, right = disjoint_pairs(kinds, partitions)
    assert len({(int(kinds[one]), int(kinds[other])) for one, other in zip(left, right, strict=True)}) == len(left)
    for one, other in zip(left, right, strict=True):
        for labels in partitions:
            if labels[one] == labels[other] >= 0:
                alike = labels[(kinds == kinds[one]) | (kinds == kinds[other])]
                assert np.all(alike == labels[one])


@settings(max_examples=100)
@given(st.data(), st.integers(1, 30))
def test_rows_are_numbered_in_their_order(data: st.DataObject, size: int) -> None:
    """As numpy would, which compares rows field by field: of floats, ∞ too, of truths and of whole numbers."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kinds = {"f": np.array([0.5, 1.0, 2.0, np.inf]), "b": np.array([False, True]), "i": np.array([-7, 0, 2**40])}
    columns = kinds[data.draw(st.sampled_from("fbi"))][random.integers(0, 2, (data.draw(st.integers(1, 80)), size))]
    different, expected = np.unique(columns, axis=1, return_inverse=True)
    found = row_ids(columns, size)
    assert np.array_equal(found, expected.reshape(-1))
    assert found.max() == different.shape[1] - 1


def test_row_ids_tell_rows_apart() -> None:
    columns = [np.array([1, 1, 2, 2, 1]), np.array([0, 0, 5, 0, 1])]
    ids = row_ids(columns, 5)
    assert ids[0] == ids[1]
    assert len({int(number) for number in ids}) == 4
    assert row_ids([], 3).tolist() == [0, 0, 0]
    large = row_ids([np.array([2**70, 2**70, 1], dtype=object)], 3)
    assert large[0] == large[1] != large[2]
