"""Partitions of a histogram as they were published, written from their papers: what ours is compared with.

`dawa` [LHMW14]: a quarter of ε for a partition into intervals whose lengths are powers of two, by the least sum of
their noisy costs Σ|x_i − mean| + 1/ε₂, by dynamic programming; the rest for a binary tree of sums over the parts, whose
weights are chosen from the leaves upwards, each the best for the queries within its node. Noise on a cost has the scale
that the authors' program gives it, (2 − 1/m − 1/n)/ε₁ for m of n cells and none for a single one, and `cut` keeps noisy
sums of distances from falling below 0, as that program does. Without it the least of so many noisy sums is nearly all
noise, and errors are two to four times as large on data that can be merged; the paper's argument for its privacy does
not cover it. `ahp` [ZCXMX14]: half of ε for noise on every cell, numbers below 0.35·ln(n)/ε₁ set to 0; cells in the
order of these are put together greedily while that lowers the error that is estimated; the rest for the sums.

In two dimensions `dawa` runs along a Hilbert curve. `uniform_grid` and `adaptive_grid` [QYL13]: √(N·ε/10) cells a side;
or a quarter of that, at least 10, and within each, half of ε spent, √(N′·ε/2/5) more, both levels averaged by their
variances. `quadtree` [CPSSY12]: squares halved both ways down to single cells, the loss growing by ∛2 a level, made
consistent by least squares. N is given to them.

Noise is that of floats: nothing here may be published.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
PARTITION_SHARE = 0.25
CELLS_SHARE = 0.5
THRESHOLD = 0.35
GRID = 10.0  # N·ε/m², of a grid of m × m
COARSEST = 10  # cells a side of the first level of the adaptive grid
WEIGHTS = np.linspace(0.0, 0.95, 96)  # of a node beside its subtrees


def dawa(
    counts: Integers,
    queries: Floats,
    epsilon: float,
    *,
    generator: np.random.Generator,
    cut: bool = True,
    louder: float = 1.0,
    estimate: bool = False,
) -> Floats:
    """Answers of one release, or its `estimate` of the cells; queries have shape (query_count, cells).

    Noise on costs is `louder` than that of the authors' program by a factor.
    """
    first, second = PARTITION_SHARE * epsilon, (1 - PARTITION_SHARE) * epsilon
    starts, ends = intervals(len(counts))
    lengths = ends - starts
    scales = np.where(lengths > 1, louder * (2 - 1 / lengths - 1 / len(counts)) / first, 0.0)
    noisy = _deviations(counts.tobytes()) + scales * generator.laplace(0.0, 1.0, len(starts))
    costs = (np.maximum(noisy, 0.0) if cut else noisy) + 1 / second
    parts = cheapest(starts, ends, costs)
    sizes = np.diff(np.append(parts, len(counts)))
    merged = np.add.reduceat(queries, parts, axis=1) / sizes
    rows, covariance = greedy_tree(merged.T @ merged)
    measured = rows @ np.add.reduceat(counts, parts) + generator.laplace(0.0, 1 / second, len(rows))
    totals = covariance @ (rows.T @ measured)
    return np.repeat(totals / sizes, sizes) if estimate else np.asarray(merged @ totals)


def ahp(counts: Integers, queries: Floats, epsilon: float, *, generator: np.random.Generator) -> Floats:
    """Answers of one release."""
    cells, first, second = len(counts), CELLS_SHARE * epsilon, (1 - CELLS_SHARE) * epsilon
    noisy = counts + generator.laplace(0.0, 1 / first, cells)
    noisy[noisy <= THRESHOLD * math.log(cells) / first] = 0.0
    order = np.argsort(-noisy, kind="stable")
    sums, squares = (np.concatenate([[0.0], np.cumsum(noisy[order] ** power)]) for power in (1, 2))
    alone = 2 / second**2

    def error(start: int, stop: int) -> float:
        size = stop - start
        return float(squares[stop] - squares[start] - (sums[stop] - sums[start]) ** 2 / size + alone / size)

    found, start = np.empty(cells), 0
    while start < cells:
        stop = start + 1
        while stop < cells and error(start, stop + 1) <= error(start, stop) + alone:
            stop += 1
        chosen = order[start:stop]
        found[chosen] = (counts[chosen].sum() + generator.laplace(0.0, 1 / second)) / len(chosen)
        start = stop
    return np.asarray(queries @ found)


def intervals(cells: int) -> tuple[Integers, Integers]:
    """Starts and ends of all intervals whose length is a power of two, by their length."""
    lengths = [2**power for power in range(cells.bit_length())]
    starts = [np.arange(cells - length + 1, dtype=np.int64) for length in lengths]
    return np.concatenate(starts), np.concatenate([each + size for each, size in zip(starts, lengths, strict=True)])


def deviations(counts: Integers) -> Floats:
    """Σ|x_i − mean| of each interval."""
    found = []
    for power in range(len(counts).bit_length()):
        windows = np.lib.stride_tricks.sliding_window_view(counts, 2**power)
        found.append(np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1))
    return np.concatenate(found)


@lru_cache(maxsize=32)
def _deviations(counts: bytes) -> Floats:
    return deviations(np.frombuffer(counts, dtype=np.int64))


def cheapest(starts: Integers, ends: Integers, costs: Floats) -> Integers:
    """Where the parts of the cheapest partition into given intervals begin."""
    cells = int(ends.max())
    order = np.argsort(ends, kind="stable")
    starts, costs = starts[order], costs[order]
    first = np.searchsorted(ends[order], np.arange(cells + 2))
    least, back = np.zeros(cells + 1), np.zeros(cells + 1, dtype=np.int64)
    for end in range(1, cells + 1):
        here = slice(first[end], first[end + 1])
        sums = least[starts[here]] + costs[here]
        best = int(np.argmin(sums))
        least[end], back[end] = sums[best], starts[here][best]
    found, end = [], cells
    while end > 0:
        end = int(back[end])
        found.append(end)
    return np.array(found[::-1])


def greedy_tree(gram: Floats) -> tuple[Floats, Floats]:
    """Weighted sums over the nodes of a binary tree, columns of norm 1 at most, and (AᵀA)⁻¹.

    With subtrees of covariance C = diag(C₁, C₂) at norm 1, a node of weight λ has the precision
    (1 − λ)²·C⁻¹ + λ²·11ᵀ, inverted by the formula for one more row.
    """
    rows: list[Floats] = []

    def build(start: int, stop: int) -> tuple[list[tuple[int, int, float]], Floats]:
        if stop - start == 1:
            return [(start, stop, 1.0)], np.ones((1, 1))
        middle = (start + stop) // 2
        left, first = build(start, middle)
        right, second = build(middle, stop)
        below = np.zeros((stop - start, stop - start))
        below[: middle - start, : middle - start], below[middle - start :, middle - start :] = first, second
        asked, sums = gram[start:stop, start:stop], below.sum(axis=1)
        kept = (1 - WEIGHTS) ** 2
        gain = WEIGHTS**2 / kept**2 / (1 + WEIGHTS**2 * sums.sum() / kept)
        best = int(np.argmin(np.sum(asked * below) / kept - gain * (sums @ asked @ sums)))
        weight = float(WEIGHTS[best])
        nodes = [(first_cell, end, each * (1 - weight)) for first_cell, end, each in left + right]
        nodes += [(start, stop, weight)] if weight else []
        return nodes, below / kept[best] - gain[best] * np.outer(sums, sums)

    nodes, covariance = build(0, len(gram))
    for start, stop, weight in nodes:
        row = np.zeros(len(gram))
        row[start:stop] = weight
        rows.append(row)
    return np.array(rows), covariance


def uniform_grid(counts: Integers, epsilon: float, *, generator: np.random.Generator) -> Floats:
    """Estimates of the cells of a table of two attributes."""
    cells_a_side = round(math.sqrt(counts.sum() * epsilon / GRID))
    return _spread(counts, [_ends(size, max(1, cells_a_side)) for size in counts.shape], epsilon, generator)


def adaptive_grid(counts: Integers, epsilon: float, *, generator: np.random.Generator) -> Floats:
    """Estimates of the cells of a table of two attributes."""
    half = epsilon / 2
    a_side = max(COARSEST, round(math.sqrt(counts.sum() * epsilon / GRID) / 4))
    rows, columns = (_ends(size, a_side) for size in counts.shape)
    found = np.empty(counts.shape)
    for top, bottom in itertools.pairwise(rows):
        for left, right in itertools.pairwise(columns):
            within = counts[top:bottom, left:right]
            whole = within.sum() + generator.laplace(0.0, 1 / half)
            finer = max(1, math.ceil(math.sqrt(max(whole, 0.0) * half / (GRID / 2))))
            ends = [_ends(size, finer) for size in within.shape]
            cells = _spread(within, ends, half, generator)
            # The first level has the variance of one count, the sum of the second that of as many as there are.
            many = math.prod(len(each) - 1 for each in ends)
            total = (whole * many + cells.sum()) / (many + 1)
            found[top:bottom, left:right] = cells + (total - cells.sum()) / within.size
    return found


def quadtree(counts: Integers, epsilon: float, *, generator: np.random.Generator) -> Floats:
    """Estimates of the cells of a table of two attributes whose sides are powers of two."""
    sums: list[Floats] = [counts.astype(np.float64)]
    factors: list[tuple[int, ...]] = []
    while sums[0].size > 1:
        factor = tuple(2 if size > 1 else 1 for size in sums[0].shape)
        rows, columns = (size // by for size, by in zip(sums[0].shape, factor, strict=True))
        sums.insert(0, sums[0].reshape(rows, factor[0], columns, factor[1]).sum(axis=(1, 3)))
        factors.insert(0, factor)
    shares = 2.0 ** (np.arange(len(sums)) / 3)
    scales = shares.sum() / shares / epsilon
    noisy = [each + generator.laplace(0.0, scale, each.shape) for each, scale in zip(sums, scales, strict=True)]
    # From the leaves upwards each node is averaged with the sum of its children; downwards these share what is left.
    variances = [2 * scale**2 for scale in scales]
    for level in reversed(range(len(factors))):
        below = _grouped(noisy[level + 1], factors[level]).sum(axis=(1, 3))
        of_below = math.prod(factors[level]) * variances[level + 1]
        weight = of_below / (of_below + variances[level])
        noisy[level] = weight * noisy[level] + (1 - weight) * below
        variances[level] *= weight
    for level, factor in enumerate(factors):
        left = noisy[level] - _grouped(noisy[level + 1], factor).sum(axis=(1, 3))
        noisy[level + 1] = noisy[level + 1] + np.kron(left / math.prod(factor), np.ones(factor))
    return noisy[-1]


def _grouped(table: Floats, factor: tuple[int, ...]) -> Floats:
    return table.reshape(table.shape[0] // factor[0], factor[0], table.shape[1] // factor[1], factor[1])


def _ends(size: int, pieces: int) -> list[int]:
    pieces = min(pieces, size)
    return [size * each // pieces for each in range(pieces + 1)]


def _spread(counts: Integers, ends: list[list[int]], epsilon: float, generator: np.random.Generator) -> Floats:
    """Noisy counts of a grid, spread evenly over its cells."""
    rows, columns = ends
    sums = np.add.reduceat(np.add.reduceat(counts, rows[:-1], axis=0), columns[:-1], axis=1)
    even = (sums + generator.laplace(0.0, 1 / epsilon, sums.shape)) / np.outer(np.diff(rows), np.diff(columns))
    return np.repeat(np.repeat(even, np.diff(rows), axis=0), np.diff(columns), axis=1)
