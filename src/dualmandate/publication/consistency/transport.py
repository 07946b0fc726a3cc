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
no more. Where no path is left, no table with these margins keeps to it. Totals that cross are no network: they are
held by an integer program, with a limit of time and an honest answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from dualmandate.errors import NoConsistentTables
from dualmandate.population.arrays import Floats, Integers

MOST_SWEEPS = 1000  # At most so many rounds find the duals: poorer ones only leave more units to move.
TOLERANCE = 0.05  # Margins may miss so many records before units are moved, likewise.
_MOST_STEPS = 200  # At most so many Newton steps solve one margin.
_NEAR = 1e-12  # A margin is solved to this, relative.
NO_LIMITS: Integers = np.empty((0, 0), dtype=np.int64)
NOTHING_ACROSS: Integers = np.empty((0, 0), dtype=np.int64)
UNLIMITED = 2**36  # No count reaches this bound, and sums of many such stay below 2⁶³.


class TransportProblem(NamedTuple):
    """A table to be found; a tuple, because compiled code takes these."""

    targets: Floats  # e; shape (rows, columns)
    row_scales: Floats  # ρ > 0
    column_scales: Floats  # q > 0
    row_sums: Integers  # R > 0
    column_sums: Integers  # C > 0, with the same sum
    most: Integers  # of each cell, or `NO_LIMITS`


def apportion(targets: Floats, scales: Floats, total: int, most: Integers | None = None) -> Integers:
    """Whole numbers n from 0 to `most` with a given sum, minimizing Σ (n_i − e_i)²/ρ_i; shape (targets,).

    `most` must allow the sum.
    """
    counts = np.zeros(targets.size, dtype=np.int64)
    _apportion(targets, scales, total, np.full(targets.size, UNLIMITED) if most is None else most, counts)
    return counts


@numba.njit(cache=True, nogil=True)
def shift(values: Any, slopes: Any, total: Any, start: Any) -> Any:
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


@numba.njit(cache=True, nogil=True)
def _apportion(targets: Any, scales: Any, total: Any, most: Any, counts: Any) -> None:
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


@numba.njit(cache=True, nogil=True)
def margin_duals(problem: Any, tolerance: Any, most_sweeps: Any) -> Any:
    """α and β: rows and columns in turn, until rows are met (to `tolerance`) after columns were."""
    targets, rho, q = problem.targets, problem.row_scales, problem.column_scales
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
            missed = max(missed, abs(sum_ - problem.row_sums[r]))
            alpha[r] = shift(row, row_slopes, problem.row_sums[r], alpha[r])
        for c in range(columns):
            for r in range(rows):
                column_slopes[r] = rho[r] * q[c]
                column[r] = targets[r, c] + column_slopes[r] * alpha[r]
            beta[c] = shift(column, column_slopes, problem.column_sums[c], beta[c])
        if missed <= tolerance:
            break
    return alpha, beta


@numba.njit(cache=True, nogil=True)
def _whole_table(problem: Any, counts: Any) -> Any:
    """Round at the duals, and move the units that margins miss; False where they cannot all be moved."""
    targets, rho, q, most = problem.targets, problem.row_scales, problem.column_scales, problem.most
    rows, columns = targets.shape
    alpha, beta = margin_duals(problem, TOLERANCE, MOST_SWEEPS)
    supply = np.empty(rows + columns, dtype=np.int64)  # of rows what they still have to give, of columns what they must
    supply[:rows] = problem.row_sums
    supply[rows:] = -problem.column_sums
    for r in range(rows):
        for c in range(columns):
            x = targets[r, c] + rho[r] * q[c] * (alpha[r] + beta[c])
            counts[r, c] = np.int64(max(0.0, np.floor(x + 0.5)))
            if most.size:
                counts[r, c] = min(counts[r, c], most[r, c])
            supply[r] -= counts[r, c]
            supply[rows + c] += counts[r, c]
    potentials = np.concatenate((2 * alpha, -2 * beta))
    while _move_a_unit(problem, counts, supply, potentials):
        pass
    return not np.any(supply)


@numba.njit(cache=True, nogil=True)
def _move_a_unit(problem: Any, counts: Any, supply: Any, potentials: Any) -> Any:
    """Move one unit from the first node with supply to the nearest that lacks one; False where there is no path.

    Nodes are rows, then columns. Row to column adds a unit to the cell, column to row takes one from it.
    """
    source = 0
    while source < supply.size and supply[source] <= 0:
        source += 1
    if source == supply.size:
        return False
    distance, before = np.full(supply.size, np.inf), np.full(supply.size, -1)
    end = _shortest_path(problem, counts, supply, potentials, source, distance, before)
    if end < 0:
        return False
    supply[source] -= 1
    supply[end] += 1
    rows = problem.targets.shape[0]
    while before[end] >= 0:
        start = before[end]
        if start < rows:
            counts[start, end - rows] += 1
        else:
            counts[end, start - rows] -= 1
        end = start
    return True


@numba.njit(cache=True, nogil=True)
def _shortest_path(
    problem: Any, counts: Any, supply: Any, potentials: Any, source: Any, distance: Any, before: Any
) -> Any:
    """The nearest node that lacks a unit, by Dijkstra's algorithm on reduced costs, none below 0; −1 for none.

    `before` is filled with the node before each on the way, and potentials are raised so that costs stay so.
    """
    done = np.zeros(supply.size, dtype=np.bool_)
    distance[source] = 0.0
    while True:
        nearest, least = -1, np.inf
        for node in range(supply.size):
            if not done[node] and distance[node] < least:
                nearest, least = node, distance[node]
        if nearest < 0:
            return -1
        if supply[nearest] < 0:
            break
        done[nearest] = True
        _reach_neighbors(problem, counts, potentials, nearest, done, distance, before)
    for node in range(supply.size):
        if done[node]:
            potentials[node] += least - distance[node]
    return nearest


@numba.njit(cache=True, nogil=True)
def _reach_neighbors(
    problem: Any, counts: Any, potentials: Any, node: Any, done: Any, distance: Any, before: Any
) -> None:
    """Shorten the ways to the nodes on the other side: a full cell is given no unit, an empty one has none to take."""
    targets, rho, q, most = problem.targets, problem.row_scales, problem.column_scales, problem.most
    rows, columns = targets.shape
    from_row = node < rows
    for other in range(rows, rows + columns) if from_row else range(rows):
        if done[other]:
            continue
        r, c = (node, other - rows) if from_row else (other, node - rows)
        full = most.size and counts[r, c] >= most[r, c]
        if full if from_row else counts[r, c] == 0:
            continue
        step = 1 if from_row else -1
        cost = (1 + 2 * step * (counts[r, c] - targets[r, c])) / (rho[r] * q[c])
        through = distance[node] + max(0.0, cost - potentials[node] + potentials[other])
        if through < distance[other]:
            distance[other], before[other] = through, node


@numba.njit(cache=True, nogil=True)
def split_groups(
    targets: Any, scales: Any, shares: Any, starts: Any, margins: Any, most: Any, across: Any, counts: Any
) -> Any:
    """Split each child's count of each group over the group's parts, so that children add up to the parent's parts.

    `margins` are the children's counts of the groups and the parent's of the parts; `scales` of children and groups;
    `most` of children and parts, or empty. Only children with some and parts with some enter. False where `most`
    allows no such table. `across` are, of tables that cross the groups, the row of each part, or `NOTHING_ACROSS`:
    what rounding one group leaves of their sums is made up for in the next ones.
    """
    coarse, fine = margins
    left = np.zeros((across.shape[0], targets.shape[0], across.max() + 1 if across.size else 0))
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
                small[i] = targets[children[i]][parts]
                carry_in(small[i], across, parts, left[:, children[i]])
                for j in range(parts.size):
                    if most.size:
                        limits[i, j] = most[children[i], parts[j]]
            rho, of_children = scales[:, group][children], coarse[:, group][children]
            problem = TransportProblem(small, rho, shares[parts], of_children, fine[parts], limits)
            if not _whole_table(problem, found):
                return False
            for i in range(children.size):
                for j in range(parts.size):
                    counts[children[i], parts[j]] = found[i, j]
                carry_out(targets[children[i]][parts], found[i], across, parts, left[:, children[i]])
    return True


@numba.njit(cache=True, nogil=True)
def carry_in(targets: Any, across: Any, parts: Any, left: Any) -> None:
    """Add to the parts of a group what rounding has so far left of the sums that they go into, in even parts."""
    used = targets > 0
    for t in range(across.shape[0]):
        many = np.zeros(left.shape[1])
        for j in range(parts.size):
            if used[j] and across[t, parts[j]] >= 0:
                many[across[t, parts[j]]] += 1
        for j in range(parts.size):
            if used[j] and across[t, parts[j]] >= 0:
                targets[j] += left[t, across[t, parts[j]]] / many[across[t, parts[j]]]


@numba.njit(cache=True, nogil=True)
def carry_out(targets: Any, counts: Any, across: Any, parts: Any, left: Any) -> None:
    """What rounding the parts of a group leaves of these sums."""
    for t in range(across.shape[0]):
        for j in range(parts.size):
            if across[t, parts[j]] >= 0:
                left[t, across[t, parts[j]]] += max(targets[j], 0.0) - counts[j]


SECONDS = 60.0  # The solver gives up after so long.
SOLVE_ERROR = 4  # This is scipy's word for a solver that gave up.


@dataclass(frozen=True, eq=False)
class IntegerSolution:
    """Counts that satisfy every equation exactly, and whether none nearer exists."""

    counts: Integers = field(repr=False)  # shape (cells,)
    distance: float  # Σ weight·|count − target|
    status: Literal["proved optimal", "feasible, not proved optimal"]


def integer_program(
    targets: Floats,
    equations: Any,
    totals: Integers,
    *,
    weights: Floats | None = None,
    most: Integers | None = None,
    seconds: float = SECONDS,
) -> IntegerSolution:
    """Non-negative whole numbers with `equations` @ counts = totals, nearest to the targets in weighted absolute terms.

    Equations are whole numbers, dense or sparse, and may cross; no count is above `most` where it is given. Nothing is
    relaxed: where no counts satisfy them, or none were found in `seconds`, it is refused.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    cells, matrix = targets.size, csr_array(equations)
    highest = np.full(cells, np.inf) if most is None else most.astype(np.float64)
    price = np.ones(cells) if weights is None else weights
    unit, none = eye_array(cells), csr_array((matrix.shape[0], cells))
    held = LinearConstraint(hstack([matrix, none]), totals, totals)
    # d ≥ n − e and d ≥ e − n: the second half of the variables are distances
    apart = LinearConstraint(
        vstack([hstack([-unit, unit]), hstack([unit, unit])]), np.concatenate([-targets, targets]), np.inf
    )
    for presolve in (True, False):  # the solver's first steps fail on some problems that it solves without them
        with _unheard():
            found = milp(
                np.concatenate([np.zeros(cells), price]),
                integrality=np.repeat([1, 0], cells),
                bounds=Bounds(0, np.concatenate([highest, np.full(cells, np.inf)])),
                constraints=[held, apart],
                options={"time_limit": seconds, "mip_rel_gap": 0.0, "presolve": presolve},
            )
        if found.status != SOLVE_ERROR:
            break
    if found.x is None:
        raise _none(proved=found.status == 2, seconds=seconds)
    counts = np.rint(found.x[:cells]).astype(np.int64)
    if np.any(matrix @ counts != totals) or np.any(counts < 0) or np.any(counts > highest):
        raise _none(proved=False, seconds=seconds)
    distance = float((price * np.abs(counts - targets)).sum())
    return IntegerSolution(counts, distance, "proved optimal" if found.status == 0 else "feasible, not proved optimal")


@contextmanager
def _unheard() -> Iterator[None]:
    """The solver prints to standard output below Python, where a document may be expected."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _none(*, proved: bool, seconds: float) -> NoConsistentTables:
    return NoConsistentTables(
        "the totals that are to hold exactly " + ("contradict each other" if proved else "were not met in time"),
        why="no counts satisfy all of them"
        if proved
        else f"the solver found no counts that satisfy all, in at most {seconds:g} seconds",
        instead="state totals of one population"
        if proved
        else "allow more time, or hold fewer crossing totals exactly",
    )
