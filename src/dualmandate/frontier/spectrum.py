"""Singular values of query matrices that are never written out: what the limits of accuracy are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import Factor, Identity, Total, dense

LARGEST_EIGENPROBLEM = 2_048  # rows and columns of a matrix whose eigenvalues are computed


@dataclass(frozen=True)
class Spectrum:
    """The sum of the singular values of a matrix, the largest of them, and the number of columns that are not zero."""

    total: float
    largest: float
    columns: int


def spectrum(workload: Workload) -> Spectrum:
    """The spectrum of a workload: from its factors, from its lattice of marginals, or from its Gram matrix."""
    domain = workload.domain
    if not domain.structural_zeros:
        if len(workload.tables) == 1:
            return product_spectrum(workload.tables[0])
        if all(isinstance(factor, Identity | Total) for table in workload.tables for factor in table.factors):
            return _marginal_spectrum(workload)
    if domain.size > LARGEST_EIGENPROBLEM:
        raise TooLarge(
            f"the singular values of a workload over {domain.size:.3g} cells were asked for",
            why=f"eigenvalues are computed for at most {LARGEST_EIGENPROBLEM:,} cells, unless the workload is one "
            "table or made of marginals",
            instead="bound one of its tables alone, which bounds the whole",
        )
    possible = domain.possible_cells()
    return _of_gram(workload.gram()[np.ix_(possible, possible)])


def product_spectrum(table: Table) -> Spectrum:
    """The spectrum of one table: singular values of a product are the products of singular values."""
    parts = [_factor_spectrum(factor) for factor in table.factors]
    weight = abs(float(table.weight))
    return Spectrum(
        weight * math.prod(part.total for part in parts),
        weight * math.prod(part.largest for part in parts),
        math.prod(part.columns for part in parts),
    )


def _factor_spectrum(factor: Factor) -> Spectrum:
    scales = factor.scales
    if scales is not None and np.all(factor.counts <= 1):
        # Rows share no column, so they are orthogonal: singular values are their lengths.
        values = np.sqrt(np.abs(factor.apply(scales.astype(np.float64), 0)))
        return Spectrum(float(values.sum()), float(values.max()), int(np.count_nonzero(scales)))
    if min(factor.rows, factor.size) > LARGEST_EIGENPROBLEM:
        raise TooLarge(
            f"the singular values of a factor of {factor.rows:,} × {factor.size:,} were asked for",
            why=f"eigenvalues are computed for at most {LARGEST_EIGENPROBLEM:,} rows or levels",
            instead="bound another table of the workload",
        )
    matrix = dense(factor).astype(np.float64)
    columns = int(np.count_nonzero(np.any(matrix != 0.0, axis=0)))
    found = _of_gram(matrix @ matrix.T if factor.rows <= factor.size else matrix.T @ matrix)
    return Spectrum(found.total, found.largest, columns)


def _of_gram(gram: NDArray[np.float64]) -> Spectrum:
    eigenvalues = np.linalg.eigvalsh(gram)
    # Eigenvalues that are 0 come out as rounding of the largest one; their roots would add up.
    rounding = float(eigenvalues[-1]) * len(gram) * float(np.finfo(np.float64).eps)
    values = np.sqrt(eigenvalues[eigenvalues > rounding])
    return Spectrum(float(values.sum()), float(values.max(initial=0.0)), int(np.count_nonzero(np.diag(gram))))


def _marginal_spectrum(workload: Workload) -> Spectrum:
    """Marginals in closed form: on the residual space of an attribute set S, of dimension Π_{i∈S}(n_i − 1), the Gram
    matrix is v_S = Σ_{T ⊇ S} w_T²·Π_{i∉T} n_i, summed over tables T."""
    shape = workload.domain.shape
    sums = np.zeros(2 ** len(shape))
    for table in workload.tables:
        kept = [isinstance(factor, Identity) or factor.size == 1 for factor in table.factors]
        index = sum(1 << axis for axis, keep in enumerate(kept) if keep)
        sums[index] += float(table.weight) ** 2 * math.prod(n for n, keep in zip(shape, kept, strict=True) if not keep)
    dimensions = np.ones(1)
    for axis, size in enumerate(shape):
        dimensions = np.concatenate([dimensions, dimensions * (size - 1)])
        halves = sums.reshape(-1, 2, 1 << axis)
        halves[:, 0] += halves[:, 1]
    values = np.sqrt(sums)
    return Spectrum(float(dimensions @ values), float(values[dimensions > 0].max()), math.prod(shape))
