"""Products, roots and projections of the small dense matrices that a workload is taken apart into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.axes import Floats


def kron(matrices: Sequence[Floats]) -> Floats:
    """The product of matrices of one attribute each; 1 × 1 where there are none."""
    found: Floats = np.ones((1, 1))
    for matrix in matrices:
        found = found * matrix if matrix.size == 1 else np.asarray(np.kron(found, matrix), dtype=np.float64)
    return found


def compact_root(gram: Floats) -> Floats:
    """R with RᵀR = G for a positive semidefinite G, with as many rows as its rank."""
    if len(gram) == 1:
        return np.sqrt(gram)
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def orthonormal(rows: Floats) -> Floats:
    """Orthonormal rows that span the same space."""
    if len(rows) == 0:
        return rows
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right[singular > max(rows.shape) * np.finfo(np.float64).eps * max(float(singular[0]), 1e-300)])


def without(gram: Floats, basis: Floats) -> Floats:
    """A positive semidefinite matrix projected on what is orthogonal to some orthonormal rows: (I − Π)V(I − Π)."""
    if len(basis) == 0:
        return gram
    half = gram - (gram @ basis.T) @ basis
    found = half - basis.T @ (basis @ half)
    return np.asarray((found + found.T) / 2.0)


def outer(vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Products of one entry of each vector, row-major."""
    found = vectors[0]
    for vector in vectors[1:]:
        found = np.multiply.outer(found, vector).reshape(-1)
    return found
