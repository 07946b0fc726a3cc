"""Sums of products in one order, so that a search takes the same way on every processor.

A library of linear algebra adds up in the order that suits a processor, and fuses products into sums where it can; a
search of thousands of steps makes different strategies of such last digits. Here every entry of a product of matrices
is added up term by term, from the first to the last, each product rounded before it is added. Large products take
compiled loops, which are loaded when they are first needed, and small ones numpy: both give the same digits.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

DEPTH, WIDTH = 256, 256  # terms and columns that stay in the fast memory of a core
_LINE = 16  # columns that are computed together where fewer are needed

_GIVEN = numba.types.Array(numba.float64, 2, "C", readonly=True)
_MADE = numba.types.Array(numba.float64, 2, "C")


def multiply(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """A·B."""
    made = np.zeros((left.shape[0], right.shape[1]))
    if right.flags.f_contiguous and not right.flags.c_contiguous:
        _multiply_by_rows(_plain(left), _plain(right.T), False, made)
    else:
        _multiply(_plain(left), _plain(right), made)
    return made


def multiply_by_itself(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """A·Aᵀ, of which half is computed."""
    made, plain = np.zeros((rows.shape[0], rows.shape[0])), _plain(rows)
    _multiply_by_rows(plain, plain, True, made)
    return made


def invert(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of a symmetric matrix with positive eigenvalues."""
    made = np.array(matrix, dtype=np.float64, order="C")
    _invert(made)
    return made


def _plain(array: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(array, dtype=np.float64)


def _add_products_loop(left: Any, right: Any, out: Any, skipped: Any, first: Any, last: Any, is_half: Any) -> None:
    """Add the products with some columns of `right`, whose first row meets column `skipped` of `left`.

    Of half a symmetric product, each row needs its columns up to the diagonal.
    """
    rows, terms = left.shape[0], right.shape[0]
    fours = terms - terms % 4
    for i in range(0, rows - rows % 2, 2):
        stop = min(last, (i + 1 + _LINE) // _LINE * _LINE) if is_half else last
        c, d, u, v = out[i, first:stop], out[i + 1, first:stop], left[i, skipped:], left[i + 1, skipped:]
        for k in range(0, fours, 4):
            u0, u1, u2, u3, v0, v1, v2, v3 = u[k], u[k + 1], u[k + 2], u[k + 3], v[k], v[k + 1], v[k + 2], v[k + 3]
            r0, r1 = right[k, first:stop], right[k + 1, first:stop]
            r2, r3 = right[k + 2, first:stop], right[k + 3, first:stop]
            for j in range(c.size):
                x0, x1, x2, x3 = r0[j], r1[j], r2[j], r3[j]
                c[j] = (((c[j] + u0 * x0) + u1 * x1) + u2 * x2) + u3 * x3
                d[j] = (((d[j] + v0 * x0) + v1 * x1) + v2 * x2) + v3 * x3
        for k in range(fours, terms):
            u0, v0, r0 = u[k], v[k], right[k, first:stop]
            for j in range(c.size):
                c[j] += u0 * r0[j]
                d[j] += v0 * r0[j]
    if rows % 2:
        c, u = out[rows - 1, first:last], left[rows - 1, skipped:]
        for k in range(0, fours, 4):
            u0, u1, u2, u3 = u[k], u[k + 1], u[k + 2], u[k + 3]
            r0, r1 = right[k, first:last], right[k + 1, first:last]
            r2, r3 = right[k + 2, first:last], right[k + 3, first:last]
            for j in range(c.size):
                c[j] = (((c[j] + u0 * r0[j]) + u1 * r1[j]) + u2 * r2[j]) + u3 * r3[j]
        for k in range(fours, terms):
            u0, r0 = u[k], right[k, first:last]
            for j in range(c.size):
                c[j] += u0 * r0[j]


_add_products = numba.njit(nogil=True)(_add_products_loop)


def _multiply_loop(left: Any, right: Any, out: Any) -> None:
    terms, columns = right.shape
    for first in range(0, columns, WIDTH):
        for k in range(0, terms, DEPTH):
            _add_products(left, right[k : k + DEPTH], out, k, first, min(first + WIDTH, columns), False)


def _multiply_by_rows_loop(left: Any, right: Any, is_half: Any, out: Any) -> None:
    """left·rightᵀ, turned piece by piece; where half of it tells the rest, the rest is copied."""
    columns, terms = right.shape
    turned = np.empty((DEPTH, columns))
    for k in range(0, terms, DEPTH):
        depth = min(DEPTH, terms - k)
        for j in range(columns):
            for here in range(depth):
                turned[here, j] = right[j, k + here]
        _add_products(left, turned[:depth], out, k, 0, columns, is_half)
    if is_half:
        for i in range(columns):
            for j in range(i):
                out[j, i] = out[i, j]


def _invert_loop(matrix: Any) -> None:
    size = matrix.shape[0]
    for k in range(size):
        source, pivot = matrix[k], 1.0 / matrix[k, k]
        source[k] = 1.0
        for j in range(size):
            source[j] *= pivot
        for i in range(size):
            if i != k:
                target, factor = matrix[i], matrix[i, k]
                target[k] = 0.0
                for j in range(size):
                    target[j] -= factor * source[j]


_multiply = numba.njit((_GIVEN, _GIVEN, _MADE), cache=True, nogil=True)(_multiply_loop)
_multiply_by_rows = numba.njit((_GIVEN, _GIVEN, numba.boolean, _MADE), cache=True, nogil=True)(_multiply_by_rows_loop)
_invert = numba.njit((_MADE,), cache=True, nogil=True)(_invert_loop)


Floats = NDArray[np.float64]

SMALL = 2**16  # multiplications of a product, up to which loading compiled loops would take longer than it saves
SMALL_INVERSE = 12  # rows, the same


def product(left: Floats, right: Floats) -> Floats:
    """A·B: entry (i, j) is 0 + a_i0·b_0j + a_i1·b_1j + …, from left to right."""
    if left.size * right.shape[1] <= SMALL:
        return _added(np.multiply(left.T[:, :, None], right[:, None, :], order="C"))

    return multiply(left, right)


def gram(rows: Floats) -> Floats:
    """A·Aᵀ, the same as `product` to the last digit."""
    if rows.size * len(rows) <= SMALL:
        return product(rows, rows.T)

    return multiply_by_itself(rows)


def inner(left: Floats, right: Floats) -> Floats:
    """Inner products of a vector, or of each row of a matrix, with a vector.

    numpy adds up neighbors in one order on every processor: in blocks of 128 by eight running sums, then by halves.
    """
    return np.asarray((left * right).sum(axis=-1))


def inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix with positive eigenvalues, by Gauss's and Jordan's steps from first to last.

    Such matrices need no exchange of rows. Nothing is checked: numbers that are not finite stay so.
    """
    if len(matrix) > SMALL_INVERSE:
        return invert(matrix)
    made = np.array(matrix, dtype=np.float64)
    for k in range(len(made)):
        pivot, factors = 1.0 / made[k, k], made[:, k].copy()
        made[k, k] = 1.0
        source = made[k] * pivot
        made[:, k] = 0.0
        made -= factors[:, None] * source
        made[k] = source
    return made


def _added(terms: Floats) -> Floats:
    """Σ along the first axis, from the first to the last; along the memory numpy would add up by halves."""
    count, rows, columns = terms.shape
    if rows * columns == 1 and count:
        return np.asarray(np.cumsum(terms, axis=0)[-1] + 0.0)
    return np.asarray(np.add.reduce(terms, axis=0, initial=0.0))
