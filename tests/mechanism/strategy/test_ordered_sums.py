"""Sums in one order: digit by digit what plain loops give, in numpy and in compiled loops, and near to numpy's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.mechanism.strategy import arrays, ordered_kernel

Floats = NDArray[np.float64]
SHAPES = [  # rows, terms, columns: one of each, none of each, odd, and beyond what is taken at once
    (1, 1, 1),
    (1, 9, 1),
    (0, 3, 2),
    (3, 0, 2),
    (3, 2, 0),
    (2, 4, 8),
    (3, 5, 7),
    (1, 300, 3),
    (7, 258, 1),
    (2, 3, 600),
    (17, 19, 33),
    (35, 7, 35),
]


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = -1 if request.param == "compiled" else 2**40
    monkeypatch.setattr(arrays, "SMALL", limit)
    monkeypatch.setattr(arrays, "SMALL_INVERSE", limit)


def numbers(generator: np.random.Generator, rows: int, columns: int) -> Floats:
    """Of all sizes and both signs, with zeros of both signs."""
    found = generator.standard_normal((rows, columns)) * 10.0 ** generator.integers(-6, 6, (rows, columns))
    found[generator.random((rows, columns)) < 0.1] = 0.0
    found[generator.random((rows, columns)) < 0.1] = -0.0
    return found


def term_by_term(left: Floats, right: Floats) -> Floats:
    made = np.zeros((left.shape[0], right.shape[1]))
    for row in range(left.shape[0]):
        for column in range(right.shape[1]):
            total = 0.0
            for one, other in zip(left[row].tolist(), right[:, column].tolist(), strict=True):
                total += one * other
            made[row, column] = total
    return made


def assert_same_digits(found: Floats, right: Floats) -> None:
    assert found.shape == right.shape
    assert found.dtype == np.float64
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(right).tobytes()


@pytest.mark.parametrize(("rows", "terms", "columns"), SHAPES)
def test_products(generator: np.random.Generator, rows: int, terms: int, columns: int) -> None:
    left, right = numbers(generator, rows, terms), numbers(generator, terms, columns)
    assert_same_digits(arrays.product(left, right), term_by_term(left, right))
    assert_same_digits(arrays.gram(left), term_by_term(left, left.T))


def test_an_order_that_matters() -> None:
    """1 + 10¹⁶ − 10¹⁶ is 0 from left to right, and 1 in most other orders; nothing is fused."""
    left = np.array([[1.0, 1e16, -1e16]] * 2)
    assert arrays.product(left, np.ones((3, 3))).tolist() == [[0.0] * 3] * 2
    tiny = 1.0 + 2.0**-30
    squares = arrays.product(np.array([[tiny, -1.0]]), np.array([[tiny], [1.0 + 2.0**-29]]))
    assert squares.tolist() == [[0.0]]  # 2⁻⁶⁰ where the last product is not rounded before it is added


def test_any_layout(generator: np.random.Generator) -> None:
    left, right = numbers(generator, 6, 10), numbers(generator, 10, 9)
    expected = term_by_term(left, right)
    for one in (left, np.asfortranarray(left), np.repeat(left, 2, axis=1)[:, ::2]):
        for other in (right, np.asfortranarray(right), np.repeat(right, 2, axis=0)[::2], right[:, ::-1][:, ::-1]):
            assert_same_digits(arrays.product(one, other), expected)
    right.flags.writeable = False
    assert_same_digits(arrays.product(left, right), expected)
    whole = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(arrays.product(whole, whole.T), whole @ whole.T)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "terms", "columns"), [(68, 68, 1024), (17, 1024, 17), (11, 7_000, 11)])
def test_near_to_numpy(generator: np.random.Generator, rows: int, terms: int, columns: int) -> None:
    left, right = generator.random((rows, terms)), generator.random((terms, columns))
    np.testing.assert_allclose(arrays.product(left, right), left @ right, rtol=1e-12)
    np.testing.assert_allclose(arrays.gram(left), left @ left.T, rtol=1e-12)


def by_columns(matrix: Floats) -> Floats:
    """Gauss's and Jordan's steps on lists of numbers."""
    made = matrix.tolist()
    for k in range(len(made)):
        pivot = 1.0 / made[k][k]
        made[k] = [(1.0 if j == k else value) * pivot for j, value in enumerate(made[k])]
        for i in range(len(made)):
            if i != k:
                factor = made[i][k]
                kept = [0.0 if j == k else value for j, value in enumerate(made[i])]
                made[i] = [value - factor * other for value, other in zip(kept, made[k], strict=True)]
    return np.array(made).reshape(matrix.shape)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 13, 40])
def test_inverses(generator: np.random.Generator, size: int) -> None:
    rows = generator.random((size, 3 * size + 1))
    matrix = rows @ rows.T + np.eye(size)
    before = matrix.copy()
    found = arrays.inverse(matrix)
    np.testing.assert_array_equal(matrix, before)
    assert_same_digits(found, by_columns(matrix))
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12)
    assert_same_digits(arrays.inverse(np.asfortranarray(matrix)), by_columns(matrix))


def test_an_inverse_of_rows_as_large_as_any(generator: np.random.Generator) -> None:
    """Entries of 50 on 1,000 cells, the most that a search allows: a condition of 10⁷."""
    rows = np.where(generator.random((30, 1000)) < 0.5, 50.0, 0.0)
    matrix = rows @ rows.T + np.eye(30)
    assert np.linalg.cond(matrix) > 30
    np.testing.assert_allclose(arrays.inverse(matrix) @ matrix, np.eye(30), atol=1e-9)


def halves(values: list[float]) -> float:
    """numpy's order: up to 7 one by one, up to 128 by eight running sums, more by halves that are multiples of 8."""
    if len(values) < 8:
        total = -0.0
        for value in values:
            total += value
        return total
    if len(values) <= 128:
        sums, whole = values[:8], len(values) - len(values) % 8
        for place in range(8, whole):
            sums[place % 8] += values[place]
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
        for value in values[whole:]:
            total += value
        return total
    middle = len(values) // 2 - len(values) // 2 % 8
    return halves(values[:middle]) + halves(values[middle:])


@pytest.mark.parametrize("terms", [0, 1, 7, 8, 100, 128, 129, 1000, 5003])
def test_inner_products(generator: np.random.Generator, terms: int) -> None:
    left, right = numbers(generator, 3, terms), numbers(generator, 1, terms)[0]
    products = [[one * other for one, other in zip(row, right.tolist(), strict=True)] for row in left.tolist()]
    expected = np.array([0.0 + halves(each) for each in products])
    assert_same_digits(arrays.inner(left, right), expected)
    assert_same_digits(arrays.inner(left[1], right), expected[1])
    assert_same_digits(arrays.inner(np.repeat(left, 2, axis=1)[:, ::2], right), expected)


def test_one_version_is_compiled() -> None:
    kernels: list[Callable[..., None]] = [
        ordered_kernel._multiply,
        ordered_kernel._multiply_by_rows,
        ordered_kernel._invert,
    ]
    assert [len(each.signatures) for each in kernels] == [1, 1, 1]  # type: ignore[attr-defined]
