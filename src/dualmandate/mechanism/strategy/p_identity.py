"""Strategies for pure ε on up to thousands of cells: each cell by itself, and some weighted sums of cells.

A = [I; B]·diag(s)⁻¹ with B ≥ 0 of p rows and s = 1 + column sums of B, so that every column has L1 norm 1. Its error is
tr(SVS·(I + BᵀB)⁻¹), S = diag(s); by Woodbury's identity it and its gradient cost O(n²p), or O(np²) where V follows an
order of the cells. The search begins at enumerated starts: windows that overlap, as those of good strategies do, with
the strategy for their centers drawn out above them. Source: [MMHM18] for the family; the starts are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.strategy.arrays import NUMPY, Array, Arrays, arrays_of
from dualmandate.mechanism.strategy.descent import Descent, descend
from dualmandate.mechanism.strategy.integer_rows import OptimalRows
from dualmandate.population.arrays import Floats, Indices

STARTS, MORE_STARTS = 7, 19  # unless asked otherwise; the second where cells are few
COARSE_STARTS = 5  # of the problem for the windows' centers
FEW_CELLS = 248  # below, the centers are too few to be a problem of their own
SHORT_ORDER = 128  # cells below which running sums are no quicker than a product
SPANS = (16, 18, 14, 20, 12, 24, 15, 22)  # cells from one center to the next
BROAD = (0, 1, 2)  # windows above the others where cells are few
HEIGHT, BROAD_HEIGHT = 0.8, 0.5  # of windows: near those of good strategies
MOST_HALVINGS = 8  # of the total's height, from 1: far from the best one the search ends at the cells alone
SPREAD_SPANS, SPREAD_NUMBERS = (16, 12, 8), (4, 1, 3, 2)  # cells for each row; which numbers they get
SHORT, LONG, LEAST_LONG = 40, 500, 100  # steps from every start, and from the promising ones
LONG_OPERATIONS = 10**11  # floating-point operations after which numpy's long descents end, but for the least steps
TOLERANCE = 5e-6  # relative gain of ten steps that are the last
LARGEST_ENTRY = 50.0  # of B: beyond, the cells are hardly measured and Woodbury's identity loses digits
ROUNDING = 1e-12  # of the largest entry: by how much V may differ from what its order says
BLOCK = 256  # rows of V that are looked at together
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class WrittenGram:
    """V, the Gram matrix of the queries: any, written out."""

    arrays: Arrays
    matrix: Array
    diagonal: Array  # diag V, shape (n,)
    ordered: bool = False  # whether neighbors are alike: V_jk = u_j·w_k for j < k

    def between(self, rows: Array, scales: Array) -> Array:
        """R·S·V·S for rows R, shape (p, n), and S = diag(scales): one product of matrices."""
        product = self.arrays.matmul(rows * scales, self.matrix)
        product *= scales
        return product

    def operations(self, rows: int) -> int:
        """Floating-point operations of the products of matrices in `between`: 2pn²."""
        return 2 * rows * len(self.diagonal) ** 2


@dataclass(frozen=True, eq=False)
class OrderedGram:
    """V_jk = u_j·w_k for j < k, as for prefix sums, 1·(n − k), and ranges, (j + 1)·(n − k): running sums suffice."""

    arrays: Arrays
    before: Array  # u, shape (n,)
    after: Array  # w, shape (n,)
    diagonal: Array
    ordered: bool = True

    def between(self, rows: Array, scales: Array) -> Array:
        """Σ_{j≤k} x_j·u_j·w_k + Σ_{j>k} x_j·w_j·u_k + x_k·(V_kk − u_k·w_k), for x the scaled rows."""
        before, after = self.before * scales, self.after * scales
        product = self.arrays.cumulative_sum(rows * before)
        product *= after
        rest = self.arrays.cumulative_sum(rows * after)
        rest = rest[:, -1:] - rest
        rest *= before
        product += rest
        product += rows * (self.diagonal * scales * scales - before * after)
        return product

    def operations(self, rows: int) -> int:
        """No product of matrices."""
        return 0 * rows


Gram: TypeAlias = WrittenGram | OrderedGram


@dataclass(frozen=True, eq=False)
class Search:
    """The best strategy of the family that was found, and the work that it took."""

    sums: Array  # B, shape (p, n), with no row of zeros but where there is no other
    error: float
    evaluations: int  # of the error, in the descents but for those of coarser problems
    operations: int  # floating-point operations of these, in products and inverses of matrices


def gram_form(gram: Array) -> Gram:
    """V in the form that it is multiplied by fastest; an array of numpy or of an accelerator, shape (n, n)."""
    arrays, diagonal, size = arrays_of(gram), gram.diagonal(), gram.shape[0]
    corner = float(gram[0, -1])
    if corner == 0.0:
        return WrittenGram(arrays, gram, diagonal)
    before, after = gram[:, -1] / corner, gram[0, :] * 1.0
    allowed = ROUNDING * float(diagonal.max())
    places = arrays.asarray(np.arange(size))
    for first in range(0, size, BLOCK):
        rows = slice(first, first + BLOCK)
        off = abs(gram[rows] - before[rows, None] * after) * (places > places[rows, None])
        if not float(off.max()) <= allowed:
            return WrittenGram(arrays, gram, diagonal)
    if size < SHORT_ORDER:
        return WrittenGram(arrays, gram, diagonal, ordered=True)
    return OrderedGram(arrays, before, after, diagonal)


def p_identity_error(gram: Array, sums: Array) -> tuple[float, Array]:
    """Error of [I; B] scaled to unit columns, and its gradient in B; `sums` is B, shape (p, n)."""
    arrays = arrays_of(gram)
    return _error(arrays, WrittenGram(arrays, gram, gram.diagonal()), sums)


def _error(arrays: Arrays, gram: Gram, sums: Array) -> tuple[float, Array]:
    scales = arrays.sum(sums, 0)
    scales += 1.0
    inner = arrays.gram(sums)
    inner += arrays.eye(sums.shape[0])
    solved = arrays.matmul(arrays.inv(inner), sums)  # C = (I + BBᵀ)⁻¹B
    product = gram.between(solved, scales)  # CSVS
    by_scale = scales * gram.diagonal - arrays.sum(sums * product, 0) / scales
    product -= arrays.matmul(arrays.matmul(product, solved.T), sums)
    slope = by_scale - product
    slope *= 2.0
    return float(arrays.vecdot(scales, by_scale)), slope


def error_operations(gram: Gram, rows: int) -> int:
    """Floating-point operations of an error and its gradient in B of `rows` rows, in products and inverses of matrices.

    p × p by p × n twice, p × n by n × p twice, where BBᵀ is symmetric: 7p²n; a symmetric inverse: 2p³; and V's own.
    """
    return 7 * rows**2 * len(gram.diagonal) + 2 * rows**3 + gram.operations(rows)


def search_p_identity(gram: Array, *, starts: int | None = None, longest: int = LONG) -> Search:
    """The best B found for a Gram matrix, of numpy or on an accelerator, the error of its strategy, and the work.

    A start is left after a short descent unless it is below all earlier ones of its kind: later ones change nothing,
    and the error can only fall. `longest` is the most steps from one start, beyond the first 40.
    """
    if starts is not None and starts < 1:
        raise InvalidRequest(f"{starts} starts", why="a search starts somewhere", instead="ask for 1 start or more")
    arrays = arrays_of(gram)
    gram = arrays.asarray(gram)
    form = gram_form(gram)
    unit, size = float(form.diagonal.sum()), len(form.diagonal)

    def loss(sums: Array) -> tuple[float, Array]:
        value, slope = _error(arrays, form, sums)
        slope /= unit
        return value / unit, slope

    def descended(start: Array, steps: int) -> Descent:
        return descend(loss, start, arrays=arrays, upper=LARGEST_ENTRY, steps=steps, tolerance=TOLERANCE)

    best = Descent(arrays.zeros((1, size)), 1.0, steps=0, evaluations=0)  # the cells alone
    lowest: dict[str, float] = {}
    evaluations = operations = 0
    for kind, start in islice(_starts(arrays, gram, form), starts or (MORE_STARTS if size < FEW_CELLS else STARTS)):
        each = error_operations(form, len(start))
        found = descended(arrays.asarray(start), SHORT)
        made = found.evaluations
        if found.value < lowest.get(kind, math.inf):
            lowest[kind] = found.value
            affordable = max(LEAST_LONG, LONG_OPERATIONS // each) if arrays is NUMPY else longest
            found = descended(found.point, min(longest, affordable))
            made += found.evaluations
        evaluations, operations = evaluations + made, operations + made * each
        best = min(best, found, key=lambda descent: descent.value)
    return Search(_without_empty(arrays, best.point), best.value * unit, evaluations, operations)


def _without_empty(arrays: Arrays, sums: Array) -> Array:
    """Rows that measure something, or one that does not."""
    kept = arrays.nonzero(arrays.sum(sums, 1) > 0.0)
    return sums[kept] if len(kept) else sums[:1]


def _starts(arrays: Arrays, gram: Array, form: Gram) -> Iterator[tuple[str, Floats]]:
    """The total, then windows; where V has no order that they could follow, numbers without a pattern between them."""
    size = len(form.diagonal)
    totals = [np.full((1, size), 0.5**power) for power in range(MOST_HALVINGS)]
    yield "total", min(totals, key=lambda total: _error(arrays, form, arrays.asarray(total))[0])
    windows = (("windows", start) for span in SPANS for start in _windows(arrays, gram, form, span))
    spread = (
        ("spread", _spread(max(1, size // span), size, number)) for number in SPREAD_NUMBERS for span in SPREAD_SPANS
    )
    for _ in range(0 if form.ordered else len(SPANS)):
        yield from islice(windows, 2)
        yield from islice(spread, 1)
    yield from windows
    yield from spread


def _windows(arrays: Arrays, gram: Array, form: Gram, span: int) -> Iterator[Floats]:
    """Windows around centers `span` cells apart, and above them the solution for the centers, or broad windows."""
    centers = _centers(arrays, gram, form, span)
    windows, nearest = _fading(arrays, gram, form, centers)
    if len(form.diagonal) >= FEW_CELLS:
        coarse = np.ascontiguousarray(arrays.to_numpy(gram[centers][:, centers]))
        few = len(centers) < FEW_CELLS
        drawn = search_p_identity(coarse, starts=COARSE_STARTS if few else 2, longest=LONG if few else SHORT).sums
        yield np.concatenate([windows, HEIGHT * np.minimum(drawn, 1.0)[:, nearest]])
        return
    for count in BROAD[: len(centers)]:
        above = _centers(arrays, gram, form, len(form.diagonal) / count) if count else []
        broad = _fading(arrays, gram, form, above)[0] * BROAD_HEIGHT / HEIGHT
        yield np.concatenate([windows, broad])


def _centers(arrays: Arrays, gram: Array, form: Gram, span: float) -> list[int]:
    """Cells one span apart; without an order, cells each as far as can be from those before, in the metric of V."""
    size = len(form.diagonal)
    count = max(1, round(size / span))
    if form.ordered:
        return [int((place + 0.5) * size / count) for place in range(count)]
    diagonal = arrays.to_numpy(form.diagonal)

    def distances(cell: int) -> Floats:
        return np.asarray(diagonal + diagonal[cell] - 2.0 * arrays.to_numpy(gram[cell]))

    chosen = [int(distances(0).argmax())]
    nearest = distances(chosen[0])
    while len(chosen) < count and nearest.max() > 0.0:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, distances(chosen[-1]))
    return chosen


def _fading(arrays: Arrays, gram: Array, form: Gram, centers: list[int]) -> tuple[Floats, Indices]:
    """A window around each center, shape (centers, n), which fades to 0 at the next, and each cell's nearest center.

    The squared distance of two cells is that of their columns in the workload, V_jj + V_kk − 2V_jk.
    """
    cells = np.arange(len(form.diagonal))
    windows, nearest = np.full((len(centers), len(cells)), HEIGHT), np.zeros(len(cells), dtype=np.intp)
    if len(centers) < 2:
        return windows, nearest
    diagonal = arrays.to_numpy(form.diagonal)
    distances = diagonal + diagonal[centers, None] - 2.0 * arrays.to_numpy(gram[centers])
    distances = np.maximum(distances, 0.0)
    nearest = distances.argmin(axis=0)
    near = distances[nearest, cells]
    distances[nearest, cells] = np.inf
    second = distances.argmin(axis=0)
    far = distances[second, cells]
    share = far / np.where(far > 0.0, near + far, 1.0)
    windows[:] = 0.0
    windows[second, cells] = HEIGHT * (1.0 - share)
    windows[nearest, cells] = HEIGHT * share
    return windows, nearest


def _spread(count: int, size: int, number: int) -> Floats:
    """Numbers in [0, 1) without a pattern, the same on every machine."""
    points = np.arange(1, count * size + 1, dtype=np.float64)
    spread = np.modf(points * _GOLDEN * number + points**2 * (math.sqrt(2) - 1) / number)[0]
    return np.asarray(spread.reshape(count, size))


def p_identity_measurement(sums: Floats) -> OptimalRows:
    """The rows [I; B]·diag(s)⁻¹, and their least-squares inverse diag(s)·(I + BᵀB)⁻¹[I; B]ᵀ."""
    from scipy.linalg import cho_factor, cho_solve

    scales = 1.0 + sums.sum(axis=0)
    size = sums.shape[1]
    stacked = np.concatenate([np.eye(size), sums])
    factor = cho_factor(np.eye(len(sums)) + sums @ sums.T)
    inverse = stacked.T - sums.T @ cho_solve(factor, sums @ stacked.T)
    return OptimalRows(stacked / scales, scales[:, None] * inverse)
