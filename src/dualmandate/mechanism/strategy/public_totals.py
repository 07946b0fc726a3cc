"""What is known without any measurement: exact totals, and the number of records where one record is replaced.

Public totals span a space R of queries. Only what the workload asks beyond R has to be measured, and neighbors, which
agree on R, differ by a record moved between two cells c, c′ of the same groups. For any weights π ≥ 0 on such pairs
that add up to 1, L = Σ π(e_c − e_c′)(e_c − e_c′)ᵀ bounds every strategy: its error coefficient is at least
(tr (L^½VL^½)^½)², because the largest squared move is at least the mean one; and X = L^-½(L^½VL^½)^½L^-½ attains it
where all moves of positive weight are equally far. Source: [LM13], [ENU20], for pairs of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.algebra import without
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.dual import AscentSteps, OptimalRows
from dualmandate.mechanism.strategy.workload_blocks import Sector, WorkloadBlock
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.population.protection import group_labels, steps
from dualmandate.workload import Factor, Total
from dualmandate.workload.factor import Groups
from dualmandate.workload.levels import row_ids

LARGEST_BY_PAIRS = 256  # cells of which all pairs are weighed
MOST_STEPS = 300
TOLERANCE = 1e-5

Factors = tuple[Factor, ...]


def public_tables(domain: Domain, protection: Protection) -> tuple[Factors, ...]:
    """The tables that are published exactly, or known beforehand; none where records may be added and removed."""
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return ()
    found: list[Factors] = [tuple(Total(size) for size in domain.shape)]
    for invariant in protection.invariants:
        labels = group_labels(domain, invariant)
        found.append(
            tuple(
                Groups.of_labels(labels[axis], [str(group) for group in range(int(labels[axis].max()) + 1)])
                if axis in labels
                else Total(size)
                for axis, size in enumerate(domain.shape)
            )
        )
    return tuple(found)


def same_groups(part: WorkloadBlock, domain: Domain, protection: Protection) -> NDArray[np.int64] | None:
    """A label for each merged cell of a part of all attributes: a record may move between equal labels.

    None where it may move anywhere.
    """
    kept = steps(domain, protection).kept
    if not kept:
        return None
    columns = []
    for invariant in kept:
        labels = group_labels(domain, invariant)
        found, outside = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.bool_)
        for place, axis in enumerate(part.axes):
            level = part.levels[place]
            here = labels[axis][level.kept] if axis in labels else np.zeros(level.merged, dtype=np.int64)
            found = np.add.outer(found * (int(here.max()) + 2), here + 1)
            outside = np.logical_or.outer(outside, here < 0)
        columns.append(np.where(outside, -1, found).reshape(-1))
    return row_ids(columns, part.merged_size)


def pair_bound(part: WorkloadBlock, sectors: Sequence[Sector], masses: Floats) -> float:
    """The least error coefficient of any strategy when one record moves within its groups; from masses of orbits.

    Moves are drawn within groups in proportion to d, the masses shared by the cells of an orbit: L is then
    2·(D − D^½ΠD^½), Π the projector on D^½R, and moves of a cell to itself, of weight tr D^½ΠD^½, are left out.
    """
    trace, together = 0.0, 0.0
    for sector in {*sectors, *part.public_sectors}:
        cells, inside = part.seen(sector)
        per_cell = masses[cells] / part.orbit_sizes[cells]
        basis = part.public_basis(sector, per_cell)
        together += part.multiplicity(sector) * float((np.square(basis).sum(axis=0) * per_cell).sum())
        if sector in sectors:
            root = np.sqrt(per_cell)
            gram = part.gram(sector)[np.ix_(inside, inside)] * np.multiply.outer(root, root)
            values = np.linalg.eigvalsh(without(gram, basis))
            kept = values[values > max(float(values[-1]), 0.0) * len(values) * np.finfo(np.float64).eps]
            trace += part.multiplicity(sector) * float(np.sqrt(kept).sum())
    return 2.0 * trace**2 / (1.0 - together) if together < 1.0 - 1e-12 else 0.0


def pair_optimum(gram: Floats, same: NDArray[np.int64] | None) -> tuple[OptimalRows, float, float]:
    """The best strategy for moves within groups of few cells, its error, and the bound, by weights on pairs of cells.

    The Gram matrix is that of what is private. Weights of pairs that are farther apart than the mean one grow.
    """
    count = len(gram)
    first, second = np.triu_indices(count, 1)
    if same is not None:
        allowed = same[first] == same[second]
        first, second = first[allowed], second[allowed]
    weights, history = np.full(len(first), 1.0 / len(first)), AscentSteps()
    lower, best, found = 0.0, np.inf, None
    for _ in range(MOST_STEPS):
        rows, inverse, trace = _from_pairs(gram, first, second, weights)
        squares = np.square(rows).sum(axis=0)
        apart = squares[first] + squares[second] - 2.0 * np.einsum("ij,ij->j", rows[:, first], rows[:, second])
        lower = max(lower, trace**2)
        if trace * float(apart.max()) < best:
            best, found = trace * float(apart.max()), OptimalRows(rows, inverse)
        if best <= lower * (1 + TOLERANCE):
            break
        weights = history.next(weights, trace, np.maximum(apart, 0.0) / trace)
    assert found is not None
    return found, best, min(lower, best)


def _from_pairs(
    gram: Floats, first: NDArray[np.intp], second: NDArray[np.intp], weights: Floats
) -> tuple[Floats, Floats, float]:
    """A with AᵀA = L^-½(L^½VL^½)^½L^-½, its inverse for private queries, and tr (L^½VL^½)^½."""
    laplacian = np.zeros_like(gram)
    laplacian[first, second] = laplacian[second, first] = -weights
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    values, vectors = np.linalg.eigh(laplacian)
    kept = values > values[-1] * 1e-13
    root, back = vectors[:, kept] * np.sqrt(values[kept]), vectors[:, kept] / np.sqrt(values[kept])
    energies, modes = np.linalg.eigh(root.T @ gram @ root)
    used = energies > max(float(energies[-1]), 0.0) * len(energies) * np.finfo(np.float64).eps
    energies, modes = energies[used], modes[:, used]
    rows = (back @ (modes * energies**0.25)).T
    return rows, root @ (modes * energies**-0.25), float(np.sqrt(energies).sum())
