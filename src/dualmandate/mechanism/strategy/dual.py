"""The best strategy for Gaussian noise, with a certificate: the dual problem of the matrix mechanism.

minimize tr(V X⁻¹) over X = AᵀA with diag X ≤ 1. Its dual is max over d ≥ 0, Σd = 1 of (tr (D^½VD^½)^½)², so any d gives
a lower bound, and X = D^-½(D^½VD^½)^½D^-½, scaled to diag X ≤ 1, gives a strategy. Both meet at the optimum. Where V
splits into blocks V_S of multiplicity μ_S over orbits of N cells, d is spread evenly over each orbit: with p the mass
of an orbit and U_S = N^-½V_SN^-½, the bound is (Σ μ_S tr(P^½U_SP^½)^½)². Where there is one orbit it has a closed form.

Public totals span a space R of queries. Only what the workload asks beyond R has to be measured, and neighbors, which
agree on R, differ by a record moved between two cells c, c′ of the same groups. For any weights π ≥ 0 on such pairs
that add up to 1, L = Σ π(e_c − e_c′)(e_c − e_c′)ᵀ bounds every strategy: its error coefficient is at least
(tr (L^½VL^½)^½)², because the largest squared move is at least the mean one; and X = L^-½(L^½VL^½)^½L^-½ attains it
where all moves of positive weight are equally far. Source: [LM13], [DMRST22], [ENU20].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.arrays import NUMPY, Array, Arrays, arrays_of
from dualmandate.mechanism.strategy.integer_rows import OptimalRows, Residuals
from dualmandate.mechanism.strategy.nested_rows import IntegerNest
from dualmandate.mechanism.strategy.partitions import GroupStack, stacked_marginals
from dualmandate.mechanism.strategy.workload_blocks import (
    Sector,
    WorkloadBlock,
    asks_nothing,
    compact_root,
    decided_by_totals,
    without,
)
from dualmandate.population.arrays import Floats, Indices, Integers

Spectrum: TypeAlias = tuple[Floats, Array, Array]  # eigenvalues in the processor's memory, eigenvectors, P^½

LARGEST_PROBLEM = 2_048  # rows and columns of a matrix whose eigenvalues are computed again and again
LARGEST_ON_DEVICE = 8_192  # the same on an accelerator
LARGEST_LIST = 2**24  # entries of a list of queries that is written out
TOLERANCE = 1e-5  # relative gap between error and bound
FINE_TOLERANCE = 1e-8  # the same where there are few cells
FEW_CELLS = 256
MOST_MARGINALS = 512  # sets of attributes that are looked at for plain counts
_CANCELED = 1e-12  # of a squared weight, below which it is the rest of a difference
LARGEST_BY_PAIRS = 256  # cells of which all pairs are weighed
MOST_STEPS, MOST_PAIR_STEPS = 400, 300
COARSE = 96  # cells below which no coarser problem is solved first
MEMORY = 8  # steps that are combined
_SMALLEST = 1e-10  # share of the mean that a cell keeps in d
_ROUNDING = 1e-13  # by which a bound may fall without having fallen
MASS_BITS = 16  # of the masses that a strategy is made from: the same ones on every machine
_TIE = 1e-9  # relative difference of errors below which two strategies are equally good
_DEFINITE = 1e-10  # of the largest eigenvalue, the smallest of a block that tells everything about its orbits


@dataclass(frozen=True, eq=False)
class SymmetryBlock:
    """U_S over some orbits, as a Gram matrix (orbits × orbits) or by its rows (rows × orbits, fewer than orbits)."""

    multiplicity: float
    matrix: Array  # of numpy, or on the device where the problem is solved
    by_rows: bool
    cells: Indices  # the orbits, among all that are measured


@dataclass(frozen=True, eq=False)
class Optimum:
    """A strategy and its certificate: `lower` ≤ error of the best strategy ≤ `upper` = error of this one."""

    lower: float
    upper: float
    masses: Floats  # p, the dual solution
    measurements: tuple[OptimalRows, ...]  # one a block, for U; largest column norm 1
    operations: int  # floating-point operations of all eigenproblems on the way, coarser ones included


def solve(blocks: Sequence[SymmetryBlock], start: Floats, tolerance: float) -> Optimum:
    """The optimum to a relative gap of `tolerance`, or as near as 400 steps come, from some masses of the orbits."""
    masses, operations = _coarse_start(blocks, start, tolerance)
    lower, upper, best = 0.0, np.inf, masses
    history, once = AscentSteps(), sum(_operations(block) for block in blocks)
    for _ in range(MOST_STEPS):
        trace, diagonal = _evaluate(blocks, masses)
        operations += once
        if trace * float(diagonal.max()) < upper:
            upper, best = trace * float(diagonal.max()), masses
        masses = history.next(masses, trace, diagonal / trace)
        lower = max(lower, trace**2)
        if upper <= lower * (1 + tolerance):
            break
    measurements = _leveled(blocks, best)
    error = math.inf if measurements is None else math.fsum(map(_error, blocks, measurements))
    if measurements is not None and error <= upper * (1 + _TIE):
        return Optimum(lower, error, best, measurements, operations + once)
    spectra = [_spectrum(block, best[block.cells]) for block in blocks]
    longest = float(_diagonal(blocks, spectra, best).max())
    measurements = _measurements(blocks, spectra, np.full(len(best), 1.0 / np.sqrt(longest)))
    return Optimum(lower, upper, best, measurements, operations + once)


class AscentSteps:
    """Anderson's combination of the last steps of log d ← log d + 2·log diag X.

    For diagonal V the doubled step is exact. Where a combined step lowers the bound, it is taken back and the plain one
    taken instead; where that was too long already, single steps are used from then on.
    """

    def __init__(self) -> None:
        self.points: list[Floats] = []
        self.steps: list[Floats] = []
        self.power = 2.0
        self.best = 0.0
        self.combined = False

    def next(self, weights: Floats, trace: float, relative: Floats) -> Floats:
        """The next d from the present one, its bound, and diag X relative to its mean."""
        if trace < self.best * (1 - _ROUNDING):
            if not self.combined:
                self.power = 1.0
            point, step = self.points[-1], self.steps[-1] / 2.0 * self.power
            self.points, self.steps, self.combined = [point], [step], False
            return _normalized(np.exp(point + step))
        self.best = max(trace, self.best)
        point, step = np.log(weights), self.power * np.log(np.maximum(relative, 1e-6))
        self.points, self.steps = [*self.points[-MEMORY:], point], [*self.steps[-MEMORY:], step]
        self.combined = len(self.points) > 1
        moved = point + step
        if self.combined:
            root = np.sqrt(weights)  # differences are weighed by the mass that they move
            changes = np.diff(np.array(self.steps), axis=0)
            travels = np.diff(np.array(self.points), axis=0)
            mixed = np.linalg.lstsq((changes * root).T, step * root, rcond=1e-10)[0]
            moved = moved - mixed @ (travels + changes)
        return _normalized(np.exp(np.clip(moved - point, -2.0, 2.0)) * weights)


def _normalized(weights: Floats) -> Floats:
    weights = weights / weights.sum()
    weights = np.maximum(weights, _SMALLEST / len(weights))
    return np.asarray(weights / weights.sum())


def _operations(block: SymmetryBlock) -> int:
    """The least that the eigenvalues and eigenvectors of a block take: (4/3 + 4/3 + 2)·n³, and the products by rows."""
    count, cells = len(block.matrix), block.matrix.shape[1]
    return 14 * count**3 // 3 + (3 * count**2 * cells if block.by_rows else 0)


def _coarse_start(blocks: Sequence[SymmetryBlock], start: Floats, tolerance: float) -> tuple[Floats, int]:
    """For Gram matrices the solution for every fourth cell drawn out, near where neighbors are alike; and its work."""
    cells = len(start)
    if cells < 4 * COARSE or any(block.by_rows or len(block.cells) < cells for block in blocks):
        return start, 0
    chosen = np.arange(1, cells, 4)
    places = np.arange(len(chosen))
    coarse = [SymmetryBlock(block.multiplicity, block.matrix[1::4, 1::4], False, places) for block in blocks]
    found = solve(coarse, start[chosen] / start[chosen].sum(), max(tolerance, 1e-6))
    return _normalized(np.exp(np.interp(np.arange(cells), chosen, np.log(found.masses)))), found.operations


def _spectrum(block: SymmetryBlock, masses: Floats) -> Spectrum:
    """Eigenvalues > 0 (in the processor's memory) and eigenvectors of P^½UP^½ or of WPWᵀ, and P^½."""
    arrays = arrays_of(block.matrix)
    root = arrays.asarray(np.sqrt(masses))
    scaled = block.matrix * root if block.by_rows else root[:, None] * block.matrix * root
    found, vectors = arrays.eigh(scaled @ scaled.T if block.by_rows else scaled)
    values = arrays.to_numpy(found)
    first = int(np.searchsorted(values, values[-1] * len(values) * np.finfo(np.float64).eps, side="right"))
    return values[first:], vectors[:, first:], root


def _evaluate(blocks: Sequence[SymmetryBlock], masses: Floats) -> tuple[float, Floats]:
    """Σ μ·tr M^½, and Σ μ·diag X before scaling; shape (orbits,)."""
    spectra = [_spectrum(block, masses[block.cells]) for block in blocks]
    traces = [each.multiplicity * float(np.sqrt(found[0]).sum()) for each, found in zip(blocks, spectra, strict=True)]
    return math.fsum(traces), _diagonal(blocks, spectra, masses)


def _diagonal(blocks: Sequence[SymmetryBlock], spectra: Sequence[Spectrum], masses: Floats) -> Floats:
    diagonal = np.zeros(len(masses))
    for block, (values, vectors, _) in zip(blocks, spectra, strict=True):
        arrays = arrays_of(block.matrix)
        if block.by_rows:
            half = (vectors * arrays.asarray(values**-0.25)).T @ block.matrix
            squares = arrays.to_numpy(arrays.sum(half * half, 0))
        else:
            half = vectors * arrays.asarray(values**0.25)
            squares = arrays.to_numpy(arrays.sum(half * half, 1)) / masses[block.cells]
        diagonal[block.cells] += block.multiplicity * squares
    return diagonal


def _leveled(blocks: Sequence[SymmetryBlock], masses: Floats) -> tuple[OptimalRows, ...] | None:
    """The strategy of rounded masses with every column scaled to norm 1; None where that would lose a query.

    At the optimum columns are that long already, and the error is stationary under what keeps them so: masses may be
    off by 10⁻⁵, by rounding or for want of further steps, and the error by 10⁻¹⁰.
    """
    fractions, exponents = np.frexp(masses)
    rounded = np.ldexp(np.rint(np.ldexp(fractions, MASS_BITS)), exponents - MASS_BITS)
    if any(block.by_rows for block in blocks):
        return None
    spectra = [_spectrum(block, rounded[block.cells]) for block in blocks]
    for block, (values, _, _) in zip(blocks, spectra, strict=True):
        if len(values) < len(block.cells) or values[0] < _DEFINITE * values[-1]:
            return None
    diagonal = _diagonal(blocks, spectra, rounded)
    return _measurements(blocks, spectra, 1.0 / np.sqrt(diagonal)) if np.all(diagonal > 0.0) else None


def _error(block: SymmetryBlock, measured: OptimalRows) -> float:
    """μ·tr(U·X⁻¹) of a block that is a Gram matrix."""
    inverse = arrays_of(block.matrix).asarray(measured.inverse)
    return block.multiplicity * float((inverse * (block.matrix @ inverse)).sum())


def _measurements(
    blocks: Sequence[SymmetryBlock], spectra: Sequence[Spectrum], scales: Floats
) -> tuple[OptimalRows, ...]:
    """Rows with each column scaled, and their inverses."""
    found = []
    for block, (values, vectors, root) in zip(blocks, spectra, strict=True):
        arrays, here = arrays_of(block.matrix), scales[block.cells]
        if block.by_rows:
            rows = (vectors * arrays.asarray(values**-0.25)).T @ block.matrix
            inverse = (root * root)[:, None] * (block.matrix.T @ (vectors * arrays.asarray(values**-0.75)))
        else:
            rows = (vectors * arrays.asarray(values**0.25) / root[:, None]).T
            inverse = root[:, None] * vectors * arrays.asarray(values**-0.25)
        found.append(OptimalRows(arrays.to_numpy(rows) * here, arrays.to_numpy(inverse) / here[:, None]))
    return tuple(found)


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


def pair_optimum(gram: Floats, same: Integers | None) -> tuple[OptimalRows, float, float]:
    """The best strategy for moves within groups of few cells, its error, and the bound, by weights on pairs of cells.

    The Gram matrix is that of what is private. Weights of pairs that are farther apart than the mean one grow.
    """
    count = len(gram)
    first, second = np.triu_indices(count, 1)
    if same is not None:
        allowed = same[first] == same[second]
        first, second = first[allowed], second[allowed]
    if len(first) == 0:
        raise decided_by_totals()
    weights, history = np.full(len(first), 1.0 / len(first)), AscentSteps()
    lower, best, found = 0.0, np.inf, None
    for _ in range(MOST_PAIR_STEPS):
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


def _from_pairs(gram: Floats, first: Indices, second: Indices, weights: Floats) -> tuple[Floats, Floats, float]:
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


@dataclass(frozen=True, eq=False)
class GaussianOptimum:
    """A strategy for one part: its error and the least that any strategy can have, for sensitivity 1."""

    measured: Residuals | GroupStack | IntegerNest
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
        if squares[kept] < -_CANCELED * sets[kept]:
            return None
    weights = {
        kept: math.sqrt(value / math.prod(n for place, n in enumerate(shape) if place not in kept))
        for kept, value in squares.items()
        if value > _CANCELED * sets[kept]
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
