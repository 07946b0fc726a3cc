"""The best nest of small strategies for an axis of very many levels: which blocks, and what each size gets of the loss.

The largest blocks are the parts of the whole axis, as many as a strategy can still be optimized for; smaller ones share
the rest evenly. The errors of a nest with given shares have a closed form in the mean of f over paths, matrices b × b,
whatever the number of cells; shares are found by descent on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.mechanism.strategy.integer_rows import IntegerRows
from dualmandate.mechanism.strategy.nested_rows import BlockRows, IntegerNest, SolvedBlock, long_place, solved_blocks
from dualmandate.mechanism.strategy.workload_blocks import EVERYTHING_AVERAGED, WorkloadBlock
from dualmandate.population.arrays import Floats
from dualmandate.workload import AllRange, Factor, Identity, Prefix, Total, Workload, all_range, prefix
from dualmandate.workload.sensitivity import Norm

LARGEST_TOP = 512  # parts of the whole axis: a strategy for so many is found in seconds
LARGEST_BLOCK = {"l1": 16, "l2": 256}  # parts of the other blocks; with L1 they are counts, which few parts serve best
SHARE_BITS = 16  # of the factor that the weights of a size are multiplied by
_TOLERANCE = 1e-7  # of the descent for shares: below what rounding them costs

Dense = Callable[[Workload], IntegerRows | None]  # the rows of an optimized strategy, where it is a list of rows


@dataclass(frozen=True)
class Asked:
    """What a long axis is asked for, as far as shares of the loss depend on it: what each kind of sum weighs."""

    prefixes: float = 0.0
    ranges: float = 0.0  # each range of the axis
    levels: float = 0.0
    total: float = 0.0

    @classmethod
    def of(cls, part: WorkloadBlock) -> Asked:
        """Listed sums count as ranges, as many as they are."""
        weights = dict.fromkeys(("prefixes", "ranges", "levels", "total"), 0.0)
        size = part.merged_size
        for key, factors in part.tables.items():
            factor = factors[long_place(part)]
            weight = part.squared_weights[key]
            if isinstance(factor, Prefix):
                weights["prefixes"] += weight
            elif isinstance(factor, Identity):
                weights["levels"] += weight
            elif isinstance(factor, Total):
                weights["total"] += weight
            else:
                weights["ranges"] += weight * factor.rows / (size * (size + 1) / 2)
        return cls(**weights)

    def error(self, blocks: Sequence[SolvedBlock], *, public: bool) -> float:
        """What all answers err together, with noise of variance 1 on each weighted row and all blocks full."""
        size = float(math.prod(len(block.inverse) for block in blocks))
        of_total = 0.0 if public else 1.0 / blocks[-1].total
        found = self.total * of_total
        if self.prefixes or self.ranges:
            mean, ends = _of_paths(blocks, 1.0, of_total), _of_slope(blocks, of_total)
            found += self.prefixes * size * mean + self.ranges * ((size + 1.0) * size * mean - ends)
        if self.levels:
            found += self.levels * size * _of_paths(blocks, 0.0, of_total)
        return found


def _inside(block: SolvedBlock) -> Floats:
    """The covariance of the parts of a block whose total is known: X⁻¹ − X⁻¹11ᵀX⁻¹/(1ᵀX⁻¹1)."""
    return np.asarray(block.inverse - block.total * np.outer(block.summed, block.summed))


def _of_paths(blocks: Sequence[SolvedBlock], before: float, of_total: float) -> float:
    """The mean variance of a prefix sum (`before` 1) or a level (0): its parts at each size are independent."""
    found, mean, square = 0.0, 1.0, 1.0
    for block in blocks:
        inside, shares = _inside(block), block.shares
        earlier = before * np.tril(np.ones_like(inside), -1)
        mixed = earlier @ inside
        found += float(np.einsum("ij,ij->i", mixed, earlier).mean())
        found += 2.0 * mean * float(mixed.diagonal().mean()) + square * float(inside.diagonal().mean())
        known = earlier @ shares
        square = float((known**2 + 2.0 * mean * known * shares + square * shares**2).mean())
        mean = float((known + mean * shares).mean())
    return found + square * of_total


def _of_slope(blocks: Sequence[SolvedBlock], of_total: float) -> float:
    """The variance of the sum of all prefix sums: cells count n, n − 1, …, 1 times, the same slope in every block."""
    size = math.prod(len(block.inverse) for block in blocks)
    found, length, first = 0.0, 1, float(size)
    for block in blocks:
        places = np.arange(len(block.inverse), dtype=np.float64)
        count = size // (length * len(places))
        found += count * length**2 * float(places @ _inside(block) @ places)
        first -= length * float(places @ block.shares)
        length *= len(places)
    return found + first**2 * of_total


@dataclass(frozen=True, eq=False)
class _Size:
    """One size of blocks before it is weighed: rows, and the sum of each column's sizes or squares at most."""

    rows: BlockRows
    largest: Fraction

    @classmethod
    def of(cls, rows: BlockRows, power: int) -> _Size:
        return cls(rows, max(rows.columns(power)))

    def factor(self, share: float, power: int) -> float:
        """What its weights are multiplied by to move by that share."""
        return float((share / float(self.largest)) ** (1.0 / power))


def best_nest(part: WorkloadBlock, norm: Norm, dense: Dense, *, top: int = LARGEST_TOP) -> tuple[IntegerNest, float]:
    """The nest that errs least of those that are tried, and its error for one record added or removed.

    The whole axis has at most about `top` parts.
    """
    part, asked, power = part.cell_by_cell(), Asked.of(part), 2 if norm == "l2" else 1
    found = []
    for sizes in _sizes(part.merged_size, norm, dense, top):
        weighed = [_Size.of(each, power) for each in sizes]
        shares, error = _best_shares(weighed, asked, power, public=bool(part.public))
        found.append((error, [(each, share) for each, share in zip(weighed, shares, strict=True)]))
    _, chosen = min(found, key=lambda each: each[0])
    kept = tuple(each.rows.times(_dyadic(each.factor(share, power))) for each, share in chosen)
    words = f"totals of blocks of {' × '.join(f'{each.parts:,}' for each in reversed(kept))} levels, nested"
    nest = IntegerNest(part, kept, words)
    squares = math.fsum(weight * float(nest.table_sums(key).sum()) for key, weight in part.squared_weights.items())
    return nest, float(nest.largest_column(power)) ** (2 // power) * squares


def _dyadic(number: float) -> Fraction:
    return Fraction(max(round(math.ldexp(number, SHARE_BITS)), 1), 1 << SHARE_BITS)


def _sizes(cells: int, norm: Norm, dense: Dense, most: int) -> Iterator[list[BlockRows]]:
    """Rows of each size of block, from the smallest on: for the whole axis those of prefix sums, or of all ranges."""
    rest = -(-cells // most)
    few = max(1, math.ceil(math.log(rest) / math.log(LARGEST_BLOCK[norm]))) if rest > 1 else 0
    parts = list[int]()
    for left in range(few, 0, -1):
        parts.append(math.ceil(rest ** (1.0 / left) - 1e-9))
        rest = -(-rest // parts[-1])
    below = [_block(size, all_range, dense) if norm == "l2" else _counts(size) for size in parts]
    top = -(-cells // math.prod(parts))
    for workload in (prefix, all_range):
        yield [*below, _block(top, workload, dense)]


def _counts(parts: int) -> BlockRows:
    return BlockRows(np.eye(parts, dtype=np.int64), (Fraction(1),) * parts)


def _block(parts: int, workload: Callable[[int], Workload], dense: Dense) -> BlockRows:
    found = dense(workload(parts)) if parts > 1 else None
    if found is None or found.part.orbit_count < parts:
        return _counts(parts)
    rows = found.sectors[EVERYTHING_AVERAGED]
    return BlockRows(rows.numbers, rows.weights)


def _best_shares(sizes: Sequence[_Size], asked: Asked, power: int, *, public: bool) -> tuple[list[float], float]:
    """The share of the sensitivity of each size of block, and the error at sensitivity 1."""
    from scipy.optimize import minimize

    written = [size.rows.weighted for size in sizes]

    def shares(point: Floats) -> Floats:
        grown = np.exp(point - point.max())
        return np.asarray(grown / grown.sum())

    def error(point: Floats) -> float:
        factors = [size.factor(share, power) for size, share in zip(sizes, shares(point).tolist(), strict=True)]
        rows = [factor * each for factor, each in zip(factors, written, strict=True)]
        return math.log(asked.error(solved_blocks(rows), public=public))

    start = np.zeros(len(sizes))
    if len(sizes) == 1:
        return [1.0], math.exp(error(start))
    found = minimize(error, start, method="Nelder-Mead", options={"fatol": _TOLERANCE, "xatol": 1e-3, "maxfev": 60})
    return shares(found.x).tolist(), math.exp(float(found.fun))


def known_bound(part: WorkloadBlock) -> float:
    """A lower bound for one record of any matrix mechanism on a long axis: each table at its own best.

    By singular values for prefix sums, ranges and levels; elsewhere no query errs less than its largest entry squared.
    Where a record moves and the total is public, columns lie within 1/√2 of a center, and one direction is known.
    """
    cells, found = part.merged_size, 0.0
    known = 1 if part.public else 0
    for key, factors in part.tables.items():
        factor = factors[long_place(part)]
        singular = _singular(factor, cells)
        if singular is None:
            bound = 0.0 if known else float(factor.rows)
        else:
            bound = math.fsum(np.sort(singular)[: cells - known].tolist()) ** 2 / cells
        found += part.squared_weights[key] * bound * (2.0 if known else 1.0)
    return found


def _singular(factor: Factor, cells: int) -> Floats | None:
    """Singular values of a factor over its own levels, where they are known."""
    numbers = np.arange(1, cells + 1, dtype=np.float64)
    if isinstance(factor, Prefix):
        return np.asarray(0.5 / np.sin((2.0 * numbers - 1.0) * math.pi / (4.0 * cells + 2.0)))
    if isinstance(factor, AllRange):
        # QᵀQ is n + 1 times the inverse of the matrix of second differences.
        return np.asarray(math.sqrt(cells + 1.0) / (2.0 * np.sin(numbers * math.pi / (2.0 * cells + 2.0))))
    if isinstance(factor, Identity):
        return np.ones(cells)
    return None
