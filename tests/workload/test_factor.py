from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.workload import AllRange, Dense, Factor, Groups, Identity, Prefix, Row, Total, column_norms, gram
from dualmandate.workload.factor import dense, inner, leading, least, signs_vary, sizes_vary

AnyFactor = Callable[..., st.SearchStrategy[Factor]]


@pytest.mark.parametrize(
    ("factor", "matrix"),
    [
        (Identity(3), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (Total(3), [[1, 1, 1]]),
        (Prefix(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (AllRange(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1]]),
        (Row(np.array([2, 0, -1])), [[2, 0, -1]]),
        (Groups.of_lists(3, [[0, 2], [1], [1, 2]]), [[1, 0, 1], [0, 1, 0], [0, 1, 1]]),
        (Groups.of_labels(np.array([1, -1, 0]), ("a", "b"), np.array([3, 5, -2])), [[0, 0, -2], [3, 0, 0]]),
        (Groups.of_labels(np.array([2, -1, 2]), ("a", "b", "c")), [[1, 0, 1]]),
        (Dense(np.array([[1, 2, 3], [0, -1, 0]])), [[1, 2, 3], [0, -1, 0]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_matrices_by_hand(factor: Factor, matrix: list[list[int]]) -> None:
    assert dense(factor).tolist() == matrix
    assert (factor.rows, factor.size) == np.shape(matrix)


@given(data=st.data(), size=st.integers(1, 7))
@settings(max_examples=150, deadline=None)
def test_everything_agrees_with_the_dense_matrix(data: st.DataObject, size: int, any_factor: AnyFactor) -> None:
    factor = data.draw(any_factor(size))
    matrix = dense(factor)
    levels = np.arange(size)
    left, right = levels[:, None], levels[None, :]
    first, second = matrix[:, :, None], matrix[:, None, :]
    both = (first != 0) & (second != 0)
    smaller = np.minimum(np.abs(first), np.abs(second))
    signs = np.sign(first) * np.sign(second)
    assert np.array_equal(column_norms(factor, 1), np.abs(matrix).sum(axis=0))
    assert np.array_equal(column_norms(factor, 2), (matrix**2).sum(axis=0))
    assert np.array_equal(factor.counts, (matrix != 0).sum(axis=0))
    assert np.array_equal(gram(factor), matrix.T @ matrix)
    assert np.array_equal(factor.shared(left, right), both.sum(axis=0))
    assert np.array_equal(inner(factor, left, right), (first * second).sum(axis=0))
    assert np.array_equal(least(factor, left, right), (smaller * both).sum(axis=0))
    assert np.array_equal(least(factor, left, right, signed=True), (smaller * signs).sum(axis=0))
    assert np.array_equal(leading(factor, left, right), (np.abs(first) * both).sum(axis=0))
    assert np.array_equal(leading(factor, left, right, signed=True), (np.abs(first) * signs).sum(axis=0))
    filled = matrix[matrix != 0]
    assert sizes_vary(factor) == (factor.scales is None or len(set(np.abs(filled).tolist())) > 1)
    assert signs_vary(factor) == (bool((filled > 0).any()) and bool((filled < 0).any()))


@given(data=st.data(), size=st.integers(1, 6), axis=st.integers(0, 2), whole=st.booleans())
@settings(max_examples=150, deadline=None)
def test_applied_along_an_axis_forward_and_back(
    data: st.DataObject, size: int, axis: int, whole: bool, any_factor: AnyFactor
) -> None:
    factor = data.draw(any_factor(size))
    matrix = dense(factor)
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    shape = [2, 3, 4]
    shape[axis] = size
    values = generator.integers(-9, 9, shape) if whole else generator.normal(size=shape)
    applied = factor.apply(values, axis)
    assert np.allclose(applied, np.moveaxis(np.tensordot(matrix, values, axes=([1], [axis])), 0, axis))
    assert applied.dtype == values.dtype
    shape[axis] = factor.rows
    answers = generator.integers(-9, 9, shape) if whole else generator.normal(size=shape)
    back = factor.apply_transpose(answers, axis)
    assert np.allclose(back, np.moveaxis(np.tensordot(matrix.T, answers, axes=([1], [axis])), 0, axis))
    assert np.isclose((applied * answers).sum(), (values * back).sum())


@given(data=st.data(), size=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_structure_tells_columns_apart(data: st.DataObject, size: int, any_factor: AnyFactor) -> None:
    factor = data.draw(any_factor(size))
    columns = dense(factor).T
    structure = factor.structure
    told = [*structure.marks, *structure.labels, *structure.lines]
    if structure.ordered:
        told.append(np.arange(size))
    alike = [[all(array[j] == array[k] for array in told) for k in range(size)] for j in range(size)]
    assert alike == [[bool(np.array_equal(one, other)) for other in columns] for one in columns]


def test_many_overlapping_groups_are_compared_one_by_one() -> None:
    lists = [list(range(first, last + 1)) for first in range(12) for last in range(first, 12)]
    factor = Groups.of_lists(12, lists)
    assert np.array_equal(dense(factor), dense(AllRange(12)))
    assert np.array_equal(gram(factor), gram(AllRange(12)))
    assert len(factor.structure.labels) == 0


def test_large_numbers_stay_exact() -> None:
    factor = Row(np.array([2**40, -(2**40) + 1]))
    assert column_norms(factor, 2).tolist() == [2**80, (2**40 - 1) ** 2]
    assert gram(factor).tolist() == [[2**80, -(2**40) * (2**40 - 1)], [-(2**40) * (2**40 - 1), (2**40 - 1) ** 2]]
    mixed = Dense(np.array([[2**40, 1], [1, 2**40]]))
    assert mixed.scales is None
    assert column_norms(mixed, 2).tolist() == [2**80 + 1, 2**80 + 1]


def test_keys_are_equal_for_equal_matrices_only() -> None:
    one, other = Groups.of_lists(3, [[0, 1]]), Groups.of_lists(3, [[0, 1]])
    assert one.key == other.key
    assert one.key != Groups.of_lists(3, [[0, 1], [2]]).key
    assert one.key != Groups.of_lists(4, [[0, 1]]).key
    assert Row(np.array([1, 2])).key != Row(np.array([2, 1])).key
    assert Identity(3).key != Total(3).key
    assert Dense(np.eye(2, dtype=np.int64)).key != Dense(np.ones((2, 2), dtype=np.int64)).key


def test_dense_requests_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(TooLarge, match="dense factor"):
        dense(Identity(10**6))
    with pytest.raises(TooLarge, match="Gram"):
        gram(Prefix(10**6))


@pytest.mark.parametrize("kind", [Identity, Total, Prefix, AllRange])
def test_no_levels_are_refused(kind: type[Identity | Total | Prefix | AllRange]) -> None:
    with pytest.raises(InvalidWorkload, match="0 levels"):
        kind(0)


@pytest.mark.parametrize("lists", [[], [[]], [[0], []], [[0, 0]], [[3]], [[-1]]])
def test_groups_that_cannot_be_meant_are_refused(lists: list[list[int]]) -> None:
    with pytest.raises(InvalidWorkload):
        Groups.of_lists(3, lists)


@pytest.mark.parametrize("matrix", [np.zeros((0, 2), dtype=np.int64), np.zeros(3, dtype=np.int64), np.eye(2)])
def test_dense_matrices_are_integers_with_rows_and_columns(matrix: NDArray[Any]) -> None:
    with pytest.raises(InvalidWorkload):
        Dense(matrix)
