"""The best strategy for Gaussian noise, with a certificate: the dual problem of the matrix mechanism.

minimize tr(V X⁻¹) over X = AᵀA with diag X ≤ 1. Its dual is max over d ≥ 0, Σd = 1 of (tr (D^½VD^½)^½)², so any d gives
a lower bound, and X = D^-½(D^½VD^½)^½D^-½, scaled to diag X ≤ 1, gives a strategy. Both meet at the optimum. Where V
splits into blocks V_S of multiplicity μ_S over orbits of N cells, d is spread evenly over each orbit: with p the mass
of an orbit and U_S = N^-½V_SN^-½, the bound is (Σ μ_S tr(P^½U_SP^½)^½)². Source: [LM13], [DMRST22], [ENU20].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.arrays import Array, arrays_of

Floats = NDArray[np.float64]
Spectrum: TypeAlias = tuple[Floats, Array, Array]  # eigenvalues in the processor's memory, eigenvectors, P^½

MOST_STEPS = 400
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
    cells: NDArray[np.intp]  # the orbits, among all that are measured


@dataclass(frozen=True, eq=False)
class OptimalRows:
    """Rows A_S that are measured in one block (rows × orbits), and B_S (orbits × rows) with W·B_S·A_S = W."""

    rows: Floats
    inverse: Floats


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
    return _measurements(blocks, spectra, 1.0 / np.sqrt(_diagonal(blocks, spectra, rounded)))


def _error(block: SymmetryBlock, measured: OptimalRows) -> float:
    """μ·tr(U·X⁻¹) of a block that is a Gram matrix."""
    inverse = arrays_of(block.matrix).asarray(measured.inverse)
    return block.multiplicity * float((inverse * (block.matrix @ inverse)).sum())


def _measurements(
    blocks: Sequence[SymmetryBlock], spectra: Sequence[Spectrum], scales: Floats
) -> tuple[OptimalRows, ...]:
    """Rows with each column scaled, and their inverses."""
    pairs = zip(blocks, spectra, strict=True)
    return tuple(_measurement(block, spectrum, scales[block.cells]) for block, spectrum in pairs)


def _measurement(block: SymmetryBlock, spectrum: Spectrum, scales: Floats) -> OptimalRows:
    arrays, (values, vectors, root) = arrays_of(block.matrix), spectrum
    if block.by_rows:
        rows = (vectors * arrays.asarray(values**-0.25)).T @ block.matrix
        inverse = (root * root)[:, None] * (block.matrix.T @ (vectors * arrays.asarray(values**-0.75)))
    else:
        rows = (vectors * arrays.asarray(values**0.25) / root[:, None]).T
        inverse = root[:, None] * vectors * arrays.asarray(values**-0.25)
    return OptimalRows(arrays.to_numpy(rows) * scales, arrays.to_numpy(inverse) / scales[:, None])
