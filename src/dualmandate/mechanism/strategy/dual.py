"""The best strategy for Gaussian noise, with a certificate: the dual problem of the matrix mechanism.

minimize tr(V X⁻¹) over X = AᵀA with diag X ≤ 1. Its dual is max over d ≥ 0, Σd = 1 of (tr (D^½VD^½)^½)², so any d gives
a lower bound, and X = D^-½(D^½VD^½)^½D^-½, scaled to diag X ≤ 1, gives a strategy. Both meet at the optimum. With
exchangeable attributes V splits into blocks V_S, of multiplicity μ_S, over the c cells of the other attributes: with
N levels of exchangeable attributes in all, the bound is (Σ μ_S tr(D^½V_SD^½)^½)²/N. Source: [LM13], [DMRST22], [ENU20].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 400
COARSE = 96  # cells below which no coarser problem is solved first
MEMORY = 8  # steps that are combined
_SMALLEST = 1e-10  # share of the mean that a cell keeps in d
_ROUNDING = 1e-13  # by which a bound may fall without having fallen


@dataclass(frozen=True, eq=False)
class Block:
    """V_S over the cells, as a Gram matrix (cells × cells) or by its rows W_S (rows × cells, fewer than cells)."""

    multiplicity: float
    matrix: Floats
    by_rows: bool


@dataclass(frozen=True, eq=False)
class Measurement:
    """Rows A_S that are measured in one block (rows × cells), and B_S (cells × rows) with W·B_S·A_S = W."""

    rows: Floats
    inverse: Floats


@dataclass(frozen=True, eq=False)
class Optimum:
    """A strategy and its certificate: `lower` ≤ error of the best strategy ≤ `upper` = error of this one."""

    lower: float
    upper: float
    weights: Floats  # d, the dual solution
    measurements: tuple[Measurement, ...]  # one a block; largest column norm 1


def solve(blocks: Sequence[Block], levels: float, tolerance: float) -> Optimum:
    """The optimum to a relative gap of `tolerance`, or as near as 400 steps come.

    `levels` is N, the number of combinations of exchangeable levels behind each cell.
    """
    weights = _start(blocks, levels, tolerance)
    lower, upper, best = 0.0, np.inf, weights
    history = _History()
    for _ in range(MOST_STEPS):
        trace, diagonal = _evaluate(blocks, weights)
        if trace * float(diagonal.max()) / levels < upper:
            upper, best = trace * float(diagonal.max()) / levels, weights
        weights = history.next(weights, trace, diagonal / trace)
        lower = max(lower, trace**2 / levels)
        if upper <= lower * (1 + tolerance):
            break
    scale = np.sqrt(levels / float(_evaluate(blocks, best)[1].max()))
    measurements = tuple(_measurement(block, best, scale) for block in blocks)
    return Optimum(lower, upper, best, measurements)


class _History:
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


def _start(blocks: Sequence[Block], levels: float, tolerance: float) -> Floats:
    """Uniform; for Gram matrices the solution for every fourth cell drawn out, near where neighbors are alike."""
    cells = blocks[0].matrix.shape[1]
    if cells < 4 * COARSE or any(block.by_rows for block in blocks):
        return np.full(cells, 1.0 / cells)
    chosen = np.arange(1, cells, 4)
    coarse = [Block(block.multiplicity, block.matrix[np.ix_(chosen, chosen)], False) for block in blocks]
    found = solve(coarse, levels, max(tolerance, 1e-6)).weights
    return _normalized(np.exp(np.interp(np.arange(cells), chosen, np.log(found))))


def _spectrum(block: Block, weights: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues > 0 and eigenvectors of D^½VD^½, or of WDWᵀ."""
    from scipy.linalg import eigh

    root = np.sqrt(weights)
    scaled = block.matrix * root if block.by_rows else root[:, None] * block.matrix * root
    values, vectors = eigh(scaled @ scaled.T if block.by_rows else scaled, overwrite_a=True, check_finite=False)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return values[kept], vectors[:, kept]


def _evaluate(blocks: Sequence[Block], weights: Floats) -> tuple[float, Floats]:
    """Σ μ·tr M^½, and Σ μ·diag X before scaling; shape (cells,)."""
    diagonal, trace = np.zeros(len(weights)), 0.0
    for block in blocks:
        values, vectors = _spectrum(block, weights)
        trace += block.multiplicity * float(np.sqrt(values).sum())
        if block.by_rows:
            half = (vectors * values**-0.25).T @ block.matrix
            diagonal += block.multiplicity * np.einsum("ij,ij->j", half, half)
        else:
            half = vectors * values**0.25
            diagonal += block.multiplicity * np.einsum("ij,ij->i", half, half) / weights
    return trace, diagonal


def _measurement(block: Block, weights: Floats, scale: float) -> Measurement:
    values, vectors = _spectrum(block, weights)
    if block.by_rows:
        rows = (vectors * values**-0.25).T @ block.matrix
        inverse = weights[:, None] * (block.matrix.T @ (vectors * values**-0.75))
    else:
        root = np.sqrt(weights)[:, None]
        rows = (vectors * values**0.25 / root).T
        inverse = root * vectors * values**-0.25
    return Measurement(scale * rows, inverse / scale)
