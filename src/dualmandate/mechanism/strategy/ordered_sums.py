"""Sums of products in one order, so that a search takes the same way on every processor.

A library of linear algebra adds up in the order that suits a processor, and fuses products into sums where it can; a
search of thousands of steps makes different strategies of such last digits. Here every entry of a product of matrices
is added up term by term, from the first to the last, each product rounded before it is added. Large products take
compiled loops, which are loaded when they are first needed, and small ones numpy: both give the same digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL = 2**16  # multiplications of a product, up to which loading compiled loops would take longer than it saves
SMALL_INVERSE = 12  # rows, the same


def product(left: Floats, right: Floats) -> Floats:
    """A·B: entry (i, j) is 0 + a_i0·b_0j + a_i1·b_1j + …, from left to right."""
    if left.size * right.shape[1] <= SMALL:
        return _added(np.multiply(left.T[:, :, None], right[:, None, :], order="C"))
    from dualmandate.mechanism.strategy.ordered_kernel import multiply

    return multiply(left, right)


def gram(rows: Floats) -> Floats:
    """A·Aᵀ, the same as `product` to the last digit."""
    if rows.size * len(rows) <= SMALL:
        return product(rows, rows.T)
    from dualmandate.mechanism.strategy.ordered_kernel import multiply_by_itself

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
        from dualmandate.mechanism.strategy.ordered_kernel import invert

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
