"""Whole tables with given margins, as near as can be to estimates: the many small problems below each node.

Continuous: minimize Σ (x_rc − e_rc)²/(ρ_r·q_c) over x ≥ 0 with Σ_c x_rc = R_r and Σ_r x_rc = C_c. At the optimum
x_rc = max(0, e_rc + ρ_r·q_c·(α_r + β_c)); the duals α and β are found row by row and column by column in turn, each
step solving one margin exactly (dual coordinate ascent).

Whole: the nearest whole number n_rc to x_rc, for any duals, is the best where a unit in row r earns 2α_r and one in
column c earns 2β_c; only margins are missed by some units. Each missing unit is then moved along a shortest path of the
residual network (successive shortest paths with convex costs, [AMO93]). Costs less earnings stay at least 0
on every arc, so that the table with the right margins is the nearest of all whole ones, not only of the roundings.
A path always exists: from a row every column can be given a unit, and a row or column that has too much has a cell to
take from. Each path lowers what is missed by one unit, so it ends, whatever the duals were.

Cells may have a most: then the nearest number that is allowed takes the place of the nearest, and full cells are given
no more. Where no path is left, no table with these margins keeps to it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import NoConsistentTables

MOST_SWEEPS = 1000  # when whole numbers follow: poorer duals only leave them more units to move
TOLERANCE = 0.05  # of a margin, likewise
_MOST_STEPS = 200
_NEAR = 1e-12  # of a margin that one step solves, relative
NO_LIMITS: NDArray[np.int64] = np.empty((0, 0), dtype=np.int64)
UNLIMITED = 2**36  # and more: no bound that counts reach, and sums of many such stay below 2⁶³


def transport(
    targets: NDArray[np.float64],
    scales: tuple[NDArray[np.float64], NDArray[np.float64]],
    margins: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    tolerance: float,
    most_sweeps: int,
) -> NDArray[np.float64]:
    """The nearest non-negative table with these margins of rows and columns; shape (rows, columns).

    `scales` are ρ > 0 of the rows and q > 0 of the columns, `margins` R > 0 and C > 0 with equal sums. Column margins
    are met to rounding, row margins within `tolerance`, unless `most_sweeps` end first.
    """
    alpha, beta = _duals(targets, scales[0], scales[1], margins, tolerance, most_sweeps)
    return np.asarray(np.maximum(targets + np.outer(*scales) * (alpha[:, None] + beta[None, :]), 0.0))


def whole_transport(
    targets: NDArray[np.float64],
    scales: tuple[NDArray[np.float64], NDArray[np.float64]],
    margins: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The nearest table of whole numbers from 0 to `most` with these margins (see `transport`); refused if none is."""
    counts = np.empty(targets.shape, dtype=np.int64)
    if not _whole(targets, scales[0], scales[1], margins, NO_LIMITS if most is None else most, counts):
        raise NoConsistentTables(
            "margins that cells cannot meet",
            why="what each cell may count at most leaves too little room",
            instead="state margins and bounds of one population",
        )
    return counts


def apportion(
    targets: NDArray[np.float64], scales: NDArray[np.float64], total: int, most: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Whole numbers n from 0 to `most` with a given sum, minimizing Σ (n_i − e_i)²/ρ_i; shape (targets,).

    `most` must allow the sum.
    """
    counts = np.zeros(targets.size, dtype=np.int64)
    _apportion(targets, scales, total, np.full(targets.size, UNLIMITED) if most is None else most, counts)
    return counts


def _shift_loop(values: Any, slopes: Any, total: Any, start: Any) -> Any:
    """The t with Σ max(0, value + slope·t) = total > 0, by Newton's steps: convex and in pieces, so it ends there."""
    t = start
    for _ in range(_MOST_STEPS):
        sum_, rate = 0.0, 0.0
        for i in range(values.size):
            x = values[i] + slopes[i] * t
            if x > 0:
                sum_ += x
                rate += slopes[i]
        if rate == 0:
            t = (total - values[0]) / slopes[0]
            continue
        t -= (sum_ - total) / rate
        if abs(sum_ - total) <= _NEAR * total:
            break
    return t


shift = numba.njit(cache=True, nogil=True)(_shift_loop)


def _apportion_loop(targets: Any, scales: Any, total: Any, most: Any, counts: Any) -> None:
    """Round at the shift that gives the sum, then add or take the cheapest units one by one."""
    counts[:] = 0
    if total == 0:
        return
    level = shift(targets, scales, total, 0.0)
    left = total
    for i in range(targets.size):
        counts[i] = min(np.int64(max(0.0, np.floor(targets[i] + scales[i] * level + 0.5))), most[i])
        left -= counts[i]
    while left != 0:
        step = 1 if left > 0 else -1
        best, least = -1, np.inf
        for i in range(targets.size):
            cost = (1 + 2 * step * (counts[i] - targets[i])) / scales[i]
            if cost < least and 0 <= counts[i] + step <= most[i]:
                best, least = i, cost
        counts[best] += step
        left -= step


_apportion = numba.njit(cache=True, nogil=True)(_apportion_loop)


def _duals_loop(targets: Any, rho: Any, q: Any, margins: Any, tolerance: Any, most_sweeps: Any) -> Any:
    """α and β: rows and columns in turn, until rows are met after columns were."""
    rows, columns = targets.shape
    alpha, beta, row_slopes, column_slopes = np.zeros(rows), np.zeros(columns), np.empty(columns), np.empty(rows)
    row, column = np.empty(columns), np.empty(rows)
    for _ in range(most_sweeps):
        missed = 0.0
        for r in range(rows):
            sum_ = 0.0
            for c in range(columns):
                row_slopes[c] = rho[r] * q[c]
                row[c] = targets[r, c] + row_slopes[c] * beta[c]
                sum_ += max(0.0, row[c] + row_slopes[c] * alpha[r])
            missed = max(missed, abs(sum_ - margins[0][r]))
            alpha[r] = shift(row, row_slopes, margins[0][r], alpha[r])
        for c in range(columns):
            for r in range(rows):
                column_slopes[r] = rho[r] * q[c]
                column[r] = targets[r, c] + column_slopes[r] * alpha[r]
            beta[c] = shift(column, column_slopes, margins[1][c], beta[c])
        if missed <= tolerance:
            break
    return alpha, beta


_duals = numba.njit(cache=True, nogil=True)(_duals_loop)


def _whole_loop(targets: Any, rho: Any, q: Any, margins: Any, most: Any, counts: Any) -> Any:
    """Round at the duals, and move the units that margins miss; False where they cannot all be moved."""
    rows, columns = targets.shape
    alpha, beta = _duals(targets, rho, q, margins, TOLERANCE, MOST_SWEEPS)
    supply = np.empty(rows + columns, dtype=np.int64)  # of rows what they still have to give, of columns what they must
    supply[:rows] = margins[0]
    supply[rows:] = -margins[1]
    for r in range(rows):
        for c in range(columns):
            x = targets[r, c] + rho[r] * q[c] * (alpha[r] + beta[c])
            counts[r, c] = np.int64(max(0.0, np.floor(x + 0.5)))
            if most.size:
                counts[r, c] = min(counts[r, c], most[r, c])
            supply[r] -= counts[r, c]
            supply[rows + c] += counts[r, c]
    potentials = np.concatenate((2 * alpha, -2 * beta))
    while _move_a_unit(targets, rho, q, most, counts, supply, potentials):
        pass
    return not np.any(supply)


def _move_a_unit_loop(targets: Any, rho: Any, q: Any, most: Any, counts: Any, supply: Any, potentials: Any) -> Any:
    """Move one unit from the first node with supply to the nearest that lacks one (Dijkstra); False if there is none.

    Nodes are rows, then columns. Row to column adds a unit to the cell, column to row takes one from it.
    """
    rows, nodes = targets.shape[0], supply.size
    source = 0
    while source < nodes and supply[source] <= 0:
        source += 1
    if source == nodes:
        return False
    distance, before, done = np.full(nodes, np.inf), np.full(nodes, -1), np.zeros(nodes, dtype=np.bool_)
    distance[source] = 0.0
    while True:
        nearest, least = -1, np.inf
        for node in range(nodes):
            if not done[node] and distance[node] < least:
                nearest, least = node, distance[node]
        if nearest < 0:
            return False
        if supply[nearest] < 0:
            break
        done[nearest] = True
        for other in range(rows, nodes) if nearest < rows else range(rows):
            r, c = (nearest, other - rows) if nearest < rows else (other, nearest - rows)
            if done[other] or (nearest >= rows and counts[r, c] == 0):
                continue
            if most.size and nearest < rows and counts[r, c] >= most[r, c]:
                continue
            step = 1 if nearest < rows else -1
            cost = (1 + 2 * step * (counts[r, c] - targets[r, c])) / (rho[r] * q[c])
            through = least + max(0.0, cost - potentials[nearest] + potentials[other])
            if through < distance[other]:
                distance[other], before[other] = through, nearest
    for node in range(nodes):
        if done[node]:
            potentials[node] += least - distance[node]
    supply[nearest] += 1
    while before[nearest] >= 0:
        start = before[nearest]
        if start < rows:
            counts[start, nearest - rows] += 1
        else:
            counts[nearest, start - rows] -= 1
        nearest = start
    supply[nearest] -= 1
    return True


_move_a_unit = numba.njit(cache=True, nogil=True)(_move_a_unit_loop)
_whole = numba.njit(cache=True, nogil=True)(_whole_loop)


def _stage_loop(targets: Any, scales: Any, shares: Any, starts: Any, margins: Any, most: Any, counts: Any) -> Any:
    """Split each child's count of each group over the group's parts, so that children add up to the parent's parts.

    `margins` are the children's counts of the groups and the parent's of the parts; `scales` of children and groups;
    `most` of children and parts, or empty. Only children with some and parts with some enter. False where `most`
    allows no such table.
    """
    coarse, fine = margins
    counts[:] = 0
    for group in range(starts.size - 1):
        parts = starts[group] + np.flatnonzero(fine[starts[group] : starts[group + 1]])
        children = np.flatnonzero(coarse[:, group])
        if parts.size == 1:
            counts[:, parts[0]] = coarse[:, group]
        elif children.size == 1:
            counts[children[0], parts] = fine[parts]
        elif parts.size:
            small, found = np.empty((children.size, parts.size)), np.empty((children.size, parts.size), dtype=np.int64)
            limits = np.empty((children.size, parts.size) if most.size else (0, 0), dtype=np.int64)
            for i in range(children.size):
                for j in range(parts.size):
                    small[i, j] = targets[children[i], parts[j]]
                    if most.size:
                        limits[i, j] = most[children[i], parts[j]]
            sums = (coarse[:, group][children], fine[parts])
            if not _whole(small, scales[:, group][children], shares[parts], sums, limits, found):
                return False
            for i in range(children.size):
                for j in range(parts.size):
                    counts[children[i], parts[j]] = found[i, j]
    return True


stage = numba.njit(cache=True, nogil=True)(_stage_loop)
