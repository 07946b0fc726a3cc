"""The compiled loops of `arrays`: fast, and each entry added up in the one order that is told there.

Two rows and four terms are taken at once, and the processor works on as many columns as it likes: neither changes the
order of an entry's terms. Without the compiler's leave to be inexact, no product is fused into a sum.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dualmandate.population.arrays import Floats

DEPTH, WIDTH = 256, 256  # terms and columns that stay in the fast memory of a core
_LINE = 16  # columns that are computed together where fewer are needed

_GIVEN = numba.types.Array(numba.float64, 2, "C", readonly=True)
_MADE = numba.types.Array(numba.float64, 2, "C")


def multiply(left: Floats, right: Floats) -> Floats:
    """A·B."""
    made = np.zeros((left.shape[0], right.shape[1]))
    if right.flags.f_contiguous and not right.flags.c_contiguous:
        _multiply_by_rows(_plain(left), _plain(right.T), False, made)
    else:
        _multiply(_plain(left), _plain(right), made)
    return made


def multiply_by_itself(rows: Floats) -> Floats:
    """A·Aᵀ, of which half is computed."""
    made, plain = np.zeros((rows.shape[0], rows.shape[0])), _plain(rows)
    _multiply_by_rows(plain, plain, True, made)
    return made


def invert(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix with positive eigenvalues."""
    made = np.array(matrix, dtype=np.float64, order="C")
    _invert(made)
    return made


def _plain(array: Floats) -> Floats:
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
