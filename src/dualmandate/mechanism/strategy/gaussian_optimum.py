"""The best strategy of a part for Gaussian noise: a closed form where there is one orbit, else the dual problem."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.algebra import compact_root
from dualmandate.mechanism.strategy.arrays import NUMPY, Arrays
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.dual import OptimalRows, SymmetryBlock, solve
from dualmandate.mechanism.strategy.partition_stack import GroupStack, stacked_marginals
from dualmandate.mechanism.strategy.public_totals import pair_bound
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.workload_blocks import Sector, WorkloadBlock, asks_nothing

LARGEST_PROBLEM = 2_048  # rows and columns of a matrix whose eigenvalues are computed again and again
LARGEST_ON_DEVICE = 8_192  # the same on an accelerator
LARGEST_LIST = 2**24  # entries of a list of queries that is written out
TOLERANCE = 1e-5  # relative gap between error and bound
FINE_TOLERANCE = 1e-8  # the same where there are few cells
FEW_CELLS = 256
MOST_MARGINALS = 512  # sets of attributes that are looked at for plain counts
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GaussianOptimum:
    """A strategy for one part: its error and the least that any strategy can have, for sensitivity 1."""

    measured: Residuals | GroupStack
    error: float
    lower: float


def gaussian_optimum(part: WorkloadBlock, tolerance: float | None = None, arrays: Arrays = NUMPY) -> GaussianOptimum:
    """The strategy of least total variance for a part, with its certificate."""
    if part.is_symmetric and part.possible is None:
        return _closed_form(part)
    sizes = part.orbit_sizes
    blocks = {sector: _block(part, sector, arrays) for sector in part.sectors}
    blocks = {sector: block for sector, block in blocks.items() if block.matrix.shape[0]}
    goal = tolerance or (FINE_TOLERANCE if len(sizes) <= FEW_CELLS else TOLERANCE)
    found = solve(list(blocks.values()), sizes / sizes.sum(), goal)
    measurements = {}
    for (sector, block), each in zip(blocks.items(), found.measurements, strict=True):
        lengths = np.sqrt(sizes[block.cells])
        inverse, basis = each.inverse / lengths[:, None], part.public_basis(sector)
        # What is public is known: only the rest of a query is put together from measurements.
        measurements[sector] = OptimalRows(each.rows * lengths, inverse - basis.T @ (basis @ inverse))
    rows = sum(len(each.rows) for each in found.measurements)
    words = f"{rows:,} weighted sums of {len(sizes):,} cells by the dual problem"
    if len(blocks) > 1:
        words = f"{rows:,} sums of {len(sizes):,} kinds of cells in {len(blocks):,} sectors by the dual problem"
    lower = pair_bound(part, list(blocks), found.masses) if part.public else min(found.lower, found.upper)
    return GaussianOptimum(Residuals(part, measurements, words), found.upper, lower)


def _closed_form(part: WorkloadBlock) -> GaussianOptimum:
    """v_S the Gram matrix on the residual space of S, of dimension m_S: X_S ∝ √v_S, error (Σ m_S√v_S)²/N."""
    values = {sector: math.fsum(each.values()) for sector, each in part.sectors.items()}
    total = math.fsum(part.multiplicity(sector) * math.sqrt(value) for sector, value in values.items())
    if total == 0.0:
        raise asks_nothing()
    levels = float(part.merged_size)
    error = total**2 / levels
    lower = pair_bound(part, list(values), np.ones(1)) if part.public else error
    energies = {sector: math.sqrt(value) * levels / total for sector, value in values.items()}
    counts = None if part.public else _as_counts(part, energies)
    if counts is not None:
        return GaussianOptimum(counts, error, lower)
    measurements = {}
    for sector, energy in energies.items():
        row = math.sqrt(energy)
        measurements[sector] = OptimalRows(np.array([[row]]), np.array([[1 / row]]))
    words = f"differences over {len(values):,} sets of attributes, in closed form"
    return GaussianOptimum(Residuals(part, measurements, words), error, lower)


def _as_counts(part: WorkloadBlock, energies: dict[Sector, float]) -> GroupStack | None:
    """The same X as plain counts of marginals, where their squared weights come out as no less than 0.

    X_S = Σ_{T ⊇ S} θ_T²·Π_{i∉T} n_i is solved from the largest sets down.
    """
    if len(energies) > MOST_MARGINALS:
        return None
    shape = part.merged_shape
    sets = {frozenset(place for place, _ in sector): energy for sector, energy in energies.items()}
    squares: dict[frozenset[int], float] = {}
    for kept in sorted(sets, key=lambda each: -len(each)):
        above = math.fsum(squares[other] for other in squares if other > kept)
        squares[kept] = sets[kept] - above  # θ_T²·Π_{i∉T} n_i
        if squares[kept] < -_ROUNDING * sets[kept]:
            return None
    weights = {
        kept: math.sqrt(value / math.prod(n for place, n in enumerate(shape) if place not in kept))
        for kept, value in squares.items()
        if value > _ROUNDING * sets[kept]
    }
    return stacked_marginals(part, weights, f"{len(weights)} marginals as weighted counts, in closed form")


def _block(part: WorkloadBlock, sector: Sector, arrays: Arrays) -> SymmetryBlock:
    """U_S = N^-½V_SN^-½ over the orbits that are measured; by rows where it has fewer of them."""
    largest = LARGEST_PROBLEM if arrays is NUMPY else LARGEST_ON_DEVICE
    cells, inside = part.seen(sector)
    scales = 1.0 / np.sqrt(part.orbit_sizes[cells])
    multiplicity = part.multiplicity(sector)
    if len(cells) <= largest:
        gram = part.gram(sector)[np.ix_(inside, inside)] * np.multiply.outer(scales, scales)
        if _has_full_rank(gram) or 5 * len(rows := compact_root(gram)) > 4 * len(cells):
            return SymmetryBlock(multiplicity, arrays.asarray(gram), False, cells)
        return SymmetryBlock(multiplicity, arrays.asarray(rows), True, cells)
    count = part.row_count(sector)
    if count > largest or count * len(cells) > LARGEST_LIST:
        raise TooLarge(
            f"an optimal strategy for {count:,} queries about {len(cells):,} cells that they tell apart",
            why=f"the dual problem is solved for at most {largest:,} queries or cells at once with {arrays.name}",
            instead="group levels, ask about fewer attributes at once, optimize some of the tables alone, "
            "or ask for an accelerator",
        )
    rows = np.ascontiguousarray(part.rows(sector)[:, inside] * scales)
    return SymmetryBlock(multiplicity, arrays.asarray(rows), True, cells)


def _has_full_rank(gram: Floats) -> bool:
    """Whether a positive semidefinite matrix is clearly definite; far cheaper than its eigenvalues."""
    try:
        diagonal = np.diag(np.linalg.cholesky(gram))
    except np.linalg.LinAlgError:
        return False
    return float(diagonal.min()) > 1e-6 * float(diagonal.max())
