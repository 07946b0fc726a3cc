"""Strategies for pure ε on a few hundred cells: each cell by itself, and some weighted sums of cells.

A = [I; B]·diag(s)⁻¹ with B ≥ 0 of p rows and s = 1 + column sums of B, so that every column has L1 norm 1. Its error is
tr(SVS·(I + BᵀB)⁻¹), S = diag(s); by Woodbury's identity the error and its gradient cost O(n²p). Starts are
enumerated, and a problem of many cells starts from the solutions for every second cell. Source: [MMHM18].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from dualmandate.mechanism.strategy.dual import Measurement
from dualmandate.mechanism.strategy.parts import Floats

COARSEST = 64  # cells of a problem that is tried from every start
KEPT = 2  # solutions that are carried on
FINER = (3, 4, 6)  # of the enumerated starts, those tried for finer rows
STEPS = 400
LAST_STEPS = 800  # where one solution alone is carried on
LARGEST_ENTRY = 50.0  # of B: beyond, the cells are hardly measured and Woodbury's identity loses digits
ONE_THREAD = 2**18  # multiplications that are not shared among threads
NARROWEST = 16  # columns of a piece
_GOLDEN = (math.sqrt(5) - 1) / 2


def p_identity_error(gram: Floats, sums: Floats) -> tuple[float, Floats]:
    """Error of [I; B] scaled to unit columns, and its gradient in B; `sums` is B, shape (p, n)."""
    scales = 1.0 + sums.sum(axis=0)
    transposed = np.ascontiguousarray(sums.T)
    solved = np.linalg.inv(np.eye(len(sums)) + sums @ transposed) @ sums  # BZ, with Z = (I + BᵀB)⁻¹
    product = _times(solved * scales, gram)  # CSV
    diagonal = np.diag(gram)
    by_scale = scales * diagonal - np.einsum("ij,ij->j", sums, product)
    inner = product * scales
    slope = 2.0 * by_scale - 2.0 * (inner - (inner @ transposed) @ solved)
    return float(scales @ by_scale), slope


def _times(left: Floats, right: Floats) -> Floats:
    """A product in pieces too small to be shared among threads, which then wait for each other.

    Thousands of products of a few rows follow each other; on a busy machine sharing them takes a hundred times as long.
    """
    width = ONE_THREAD // left.size
    if width < NARROWEST or width >= right.shape[1]:
        return np.asarray(left @ right)
    return np.concatenate([left @ right[:, at : at + width] for at in range(0, right.shape[1], width)], axis=1)


def best_p_identity(gram: Floats) -> tuple[Floats, float]:
    """The best B found for a Gram matrix, shape (p, n), and the error of its strategy."""
    return _best_few(gram)[0]


def _best_few(gram: Floats) -> list[tuple[Floats, float]]:
    """The best solutions: from every start where cells are few, else from those for every second or fourth cell.

    These are drawn out, and finer rows are added.
    """
    size = len(gram)
    if size < 2 * COARSEST:
        found = _sorted(_polished(gram, start, steps=60) for start in _starts(size))
        return _sorted(_polished(gram, sums, steps=1500) for sums, _ in found[:4])[:KEPT]
    if size > 4 * COARSEST:
        [(drawn, _), *_] = _best_few(gram[::4, ::4])
        return [_polished(gram, _finer(drawn, 4, size, number=4), steps=LAST_STEPS)]
    coarse = _best_few(gram[::2, ::2])
    starts = [_finer(drawn, 2, size, number=number) for drawn, _ in coarse for number in FINER]
    found = _sorted(_polished(gram, start, steps=120) for start in starts)
    return _sorted(_polished(gram, sums, steps=STEPS) for sums, _ in found[:KEPT])


def _finer(coarse: Floats, times: int, size: int, *, number: int) -> Floats:
    """Rows of a coarser solution drawn out, and one row of finer ones for every 16 cells."""
    drawn = np.repeat(coarse, times, axis=1)[:, :size]
    return np.concatenate([drawn, _spread(max(1, size // 16 + 1 - len(drawn)), size, number)])


def _sorted(found: Iterable[tuple[Floats, float]]) -> list[tuple[Floats, float]]:
    return sorted(found, key=lambda each: each[1])


def p_identity_measurement(sums: Floats) -> Measurement:
    """The rows [I; B]·diag(s)⁻¹, and their least-squares inverse diag(s)·(I + BᵀB)⁻¹[I; B]ᵀ."""
    from scipy.linalg import cho_factor, cho_solve

    scales = 1.0 + sums.sum(axis=0)
    size = sums.shape[1]
    stacked = np.concatenate([np.eye(size), sums])
    factor = cho_factor(np.eye(len(sums)) + sums @ sums.T)
    inverse = stacked.T - sums.T @ cho_solve(factor, sums @ stacked.T)
    return Measurement(stacked / scales, scales[:, None] * inverse)


def _polished(gram: Floats, start: Floats, steps: int) -> tuple[Floats, float]:
    from scipy.optimize import minimize

    shape = start.shape
    unit = float(np.trace(gram))

    def loss(flat: Floats) -> tuple[float, Floats]:
        value, slope = p_identity_error(gram, flat.reshape(shape))
        return value / unit, slope.reshape(-1) / unit

    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-9, "gtol": 1e-9, "maxcor": 10}
    bounds = [(0.0, LARGEST_ENTRY)] * start.size
    found = minimize(loss, start.reshape(-1), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    sums = found.x.reshape(shape)
    return sums, p_identity_error(gram, sums)[0]


def _starts(size: int) -> Iterator[Floats]:
    """Nested and overlapping windows, then points of an even spread, all enumerated."""
    rows = max(1, size // 16)
    for count in sorted({rows, 2 * rows, max(1, size // 12)}):
        yield _windows(size, count)
        for number in range(1, 5):
            yield _spread(count, size, number)


def _windows(size: int, count: int) -> Floats:
    """Sums of consecutive cells of equal length, fading at their ends so that neighbors differ."""
    centers = (np.arange(count) + 0.5) * size / count
    distance = np.abs(np.arange(size) + 0.5 - centers[:, None]) * count / size
    return np.asarray(0.3 * np.maximum(0.0, 1.2 - distance))


def _spread(count: int, size: int, number: int) -> Floats:
    """Numbers in [0, 1) without a pattern, the same on every machine."""
    points = np.arange(1, count * size + 1, dtype=np.float64)
    return np.asarray(
        np.modf(points * _GOLDEN * number + points**2 * (math.sqrt(2) - 1) / number)[0].reshape(count, size)
    )
