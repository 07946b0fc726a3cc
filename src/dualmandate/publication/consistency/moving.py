"""A histogram of whole numbers improved by moving one record at a time along one attribute, until no move helps.

For tables that count a record at most once; then a move changes at most two numbers of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.workload import Table, Workload

LEAST_GAIN = 1e-9  # relative to the weights; below, rounding would let moves go round in circles
MOST_SWEEPS = 30
REACH = 32  # levels to either side that a record is offered: all of a short attribute, and the near ones of a long one


@dataclass(frozen=True, eq=False)
class Hits:
    """Which number of each table a record adds to: Σ over attributes of `rows`, and by how much: Π of `scales`.

    Both are stacked over the attributes' levels; a negative row says that the table does not count that level.
    """

    starts: NDArray[np.int64] = field(repr=False)  # of each attribute's levels, and at last their number
    rows: NDArray[np.int64] = field(repr=False)  # shape (tables, levels of all attributes)
    scales: NDArray[np.float64] = field(repr=False)  # the same shape
    matters: NDArray[np.bool_] = field(repr=False)  # whether a table tells levels of an attribute apart

    @classmethod
    def of(cls, workload: Workload) -> Hits | None:
        """The hits of a workload; None where some table counts some record more than once."""
        if any(np.any(factor.counts > 1) for table in workload.tables for factor in table.factors):
            return None
        starts = np.concatenate([[0], np.cumsum(workload.domain.shape)]).astype(np.int64)
        first = np.cumsum([0, *(table.query_count for table in workload.tables)])
        found = [_table_hits(table, int(start)) for table, start in zip(workload.tables, first[:-1], strict=True)]
        rows, scales = np.stack([each[0] for each in found]), np.stack([each[1] for each in found])
        matters = [
            np.any((rows[:, a:b] != rows[:, a : a + 1]) | (scales[:, a:b] != scales[:, a : a + 1]), axis=1)
            for a, b in pairwise(starts)
        ]
        return cls(starts, rows, scales, np.stack(matters, axis=1))


def _table_hits(table: Table, first: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    strides = np.cumprod([1, *table.shape[:0:-1]])[::-1]
    rows, scales = [], []
    for axis, (factor, stride) in enumerate(zip(table.factors, strides, strict=True)):
        scale = np.asarray(factor.apply_transpose(np.ones(factor.rows), 0))
        place = np.asarray(factor.apply_transpose(np.arange(factor.rows, dtype=np.float64), 0))
        place = np.rint(place / np.where(scale == 0, 1.0, scale)).astype(np.int64)
        rows.append(np.where(scale == 0, -(2**62), place * stride + (first if axis == 0 else 0)))
        scales.append(scale * (float(table.weight) if axis == 0 else 1.0))
    return np.concatenate(rows).astype(np.int64), np.concatenate(scales)


def improve(
    counts: NDArray[np.int64],
    atoms: NDArray[np.int64],
    hits: Hits,
    *,
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    shape: Sequence[int],
) -> None:
    """Move records within their atom while Σ weight·residual² falls; `counts` and `residuals` are changed in place.

    `atoms` are −1 for cells that cannot occur; `counts` and `atoms` are flat, of a domain of this `shape`.
    """
    sizes = np.array(shape, dtype=np.int64)
    strides = np.cumprod(np.append(1, sizes[:0:-1]))[::-1].astype(np.int64)
    tables = (hits.rows, hits.scales, hits.matters)
    for _ in range(MOST_SWEEPS):
        if not _sweep(counts, atoms, residuals, weights, tables, (sizes, strides, hits.starts), LEAST_GAIN):
            break


def _sweep_loop(
    counts: Any, atoms: Any, residuals: Any, weights: Any, tables: Any, layout: Any, least_gain: Any
) -> Any:
    """Offer each occupied cell's record the best level near its own of each attribute in turn; how many moved."""
    sizes, strides, starts = layout
    levels = np.empty(sizes.size, dtype=np.int64)
    count = tables[0].shape[0]
    where = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)
    moved = 0
    for first in range(counts.size):
        cell = first
        if counts[cell] == 0:
            continue
        for axis in range(sizes.size):
            levels[axis] = (cell // strides[axis]) % sizes[axis]
        for axis in range(sizes.size):
            used = _others(tables, starts, levels, axis, where)
            best, least = levels[axis], 0.0
            for level in range(max(0, levels[axis] - REACH), min(sizes[axis], levels[axis] + REACH + 1)):
                other = cell + (level - levels[axis]) * strides[axis]
                if level != levels[axis] and atoms[other] == atoms[cell]:
                    ends = (starts[axis] + levels[axis], starts[axis] + level)
                    gain, scale = _change(tables, used, where, ends, residuals, weights)
                    if gain < least and gain < -least_gain * scale:
                        best, least = level, gain
            if best != levels[axis]:
                ends = (starts[axis] + levels[axis], starts[axis] + best)
                _carry_out(tables, used, where, ends, residuals)
                counts[cell] -= 1
                cell += (best - levels[axis]) * strides[axis]
                counts[cell] += 1
                levels[axis] = best
                moved += 1
    return moved


def _others_loop(tables: Any, starts: Any, levels: Any, axis: Any, where: Any) -> Any:
    """Tables that a move along the attribute can change, and where the other attributes place a record; how many."""
    rows, scales, matters = tables
    used = 0
    for table in range(rows.shape[0]):
        if matters[table, axis]:
            base, factor = np.int64(0), 1.0
            for other in range(levels.size):
                place = starts[other] + levels[other]
                if other != axis and factor != 0:
                    base += rows[table, place]
                    factor *= scales[table, place]
            if factor != 0:
                where[0][used], where[1][used], where[2][used] = table, base, factor
                used += 1
    return used


def _change_loop(tables: Any, used: Any, where: Any, ends: Any, residuals: Any, weights: Any) -> Any:
    """By how much Σ weight·residual² rises when a record moves from one level to another, and the weights involved."""
    gain, scale = 0.0, 0.0
    for i in range(used):
        table, base, factor = where[0][i], where[1][i], where[2][i]
        lost, won = factor * tables[1][table, ends[0]], factor * tables[1][table, ends[1]]
        here, there = base + tables[0][table, ends[0]], base + tables[0][table, ends[1]]
        if here == there:
            lost, won = 0.0, won - lost
        if lost != 0:
            gain += weights[here] * lost * (lost - 2 * residuals[here])
            scale += weights[here] * lost * lost
        if won != 0:
            gain += weights[there] * won * (won + 2 * residuals[there])
            scale += weights[there] * won * won
    return gain, scale


def _carry_out_loop(tables: Any, used: Any, where: Any, ends: Any, residuals: Any) -> None:
    """Bring the residuals to where the move leaves them."""
    for i in range(used):
        table, base, factor = where[0][i], where[1][i], where[2][i]
        for end, sign in ((ends[0], -1.0), (ends[1], 1.0)):
            if tables[1][table, end] != 0:
                residuals[base + tables[0][table, end]] += sign * factor * tables[1][table, end]


_others = numba.njit(cache=True, nogil=True)(_others_loop)
_change = numba.njit(cache=True, nogil=True)(_change_loop)
_carry_out = numba.njit(cache=True, nogil=True)(_carry_out_loop)
_sweep = numba.njit(cache=True, nogil=True)(_sweep_loop)
