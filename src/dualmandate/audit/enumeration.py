"""Every solution of a small piece of what is left: by branching, with the same bounds after every step.

After propagation the unknowns that are still free fall into pieces that share no equation. Each piece is solved by
itself: solutions multiply, distances between solutions add up.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.propagation import holds, tighten

MOST_SOLUTIONS = 4096  # of one piece that are listed
MOST_STEPS = 20_000  # of branching in one piece


def pieces(equations: Equations, low: Integers, high: Integers) -> list[Integers]:
    """The free unknowns of one place, in pieces that share no equation; each in increasing order."""
    free = np.flatnonzero(low < high)
    if not free.size:
        return []
    labels = _pieces(equations.starts, equations.cells, free, equations.size)
    order = np.argsort(labels, kind="stable")
    return [np.sort(part) for part in np.split(free[order], np.flatnonzero(np.diff(labels[order])) + 1)]


@numba.njit(cache=True, nogil=True)
def _pieces(starts: Any, cells: Any, free: Any, size: int) -> Any:
    parent = np.full(size, -1, dtype=np.int64)
    for i in free:
        parent[i] = i
    for row in range(len(starts) - 1):
        first = -1
        for k in range(starts[row], starts[row + 1]):
            i = cells[k]
            if parent[i] < 0:
                continue
            root = i
            while parent[root] != root:
                parent[root] = parent[parent[root]]
                root = parent[root]
            if first < 0:
                first = root
            else:
                parent[root] = first
    labels = np.empty(len(free), dtype=np.int64)
    for k in range(len(free)):
        root = free[k]
        while parent[root] != root:
            root = parent[root]
        labels[k] = root
    return labels


def piece_equations(
    equations: Equations, free: Integers, values: tuple[Integers, Integers], low: Integers
) -> tuple[Equations, Integers, Integers]:
    """The equations of one piece: its unknowns numbered from 0, and what is left for them after the fixed ones.

    `values` are the published lower and upper numbers of the place, `low` the current lower bounds (fixed unknowns have
    their value there).
    """
    cell_starts, cell_rows = equations.by_cell
    rows = np.unique(np.concatenate([cell_rows[cell_starts[i] : cell_starts[i + 1]] for i in free]))
    matrix = equations.matrix[rows]
    fixed = low.copy()
    fixed[free] = 0
    taken = matrix @ fixed
    own = Equations.of_matrix(matrix[:, free], [equations.name(int(row)) for row in rows] if equations.names else ())
    return own, values[0][rows] - taken, values[1][rows] - taken


def enumerate_piece(
    piece: Equations, values: tuple[Integers, Integers], bounds: tuple[Integers, Integers]
) -> tuple[Integers, bool]:
    """Solutions of a piece, shape (solutions, unknowns), in lexicographic order, and whether these are all.

    Every unknown of a piece is free, and there is at least one.
    """
    found = np.empty((MOST_SOLUTIONS, piece.size), dtype=np.int64)
    count, complete = _search(piece.structure, values, bounds, found, MOST_STEPS)
    return found[:count].copy(), bool(complete)


@numba.njit(cache=True, nogil=True)
def _search(structure: Any, values: Any, bounds: Any, found: Any, most_steps: int) -> Any:
    """Depth first: fix the first free unknown to each of its values in turn, tighten, go on."""
    cell_starts, cell_rows = structure[3], structure[4]
    low, high = bounds
    size, rows = len(low), len(structure[0]) - 1
    depth_low = np.empty((size + 1, size), dtype=np.int64)
    depth_high = np.empty((size + 1, size), dtype=np.int64)
    at = np.empty(size + 1, dtype=np.int64)  # the unknown that is branched on at each depth
    value = np.empty(size + 1, dtype=np.int64)  # and its next value
    queue, waiting = np.empty(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_)
    depth_low[0], depth_high[0] = low, high
    depth, count, steps = 0, 0, 0
    at[0] = _first_free(low, high)
    value[0] = low[at[0]]
    while depth >= 0:
        i = at[depth]
        if value[depth] > depth_high[depth, i]:
            depth -= 1
            continue
        steps += 1
        if steps > most_steps:
            return count, False
        own_low, own_high = depth_low[depth + 1], depth_high[depth + 1]
        own_low[:], own_high[:] = depth_low[depth], depth_high[depth]
        own_low[i] = own_high[i] = value[depth]
        value[depth] += 1
        waited = 0
        for j in range(cell_starts[i], cell_starts[i + 1]):
            queue[waited] = cell_rows[j]
            waiting[cell_rows[j]] = True
            waited += 1
        if not tighten(structure, values, (own_low, own_high), (queue, waiting), waited):
            continue
        following = _first_free(own_low, own_high)
        if following < 0:
            if not holds(structure, values, own_low):
                continue  # tightening may have stopped before it saw that
            if count == len(found):
                return count, False
            found[count] = own_low
            count += 1
            continue
        depth += 1
        at[depth], value[depth] = following, own_low[following]
    return count, True


@numba.njit(cache=True, nogil=True)
def _first_free(low: Any, high: Any) -> int:
    for i in range(len(low)):
        if low[i] < high[i]:
            return i
    return -1


def farthest(solutions: Integers) -> int:
    """How far the two solutions that differ most lie apart, Σ|x − x′|.

    Solutions that lie farthest from the middle come first: what even the far end of all ranges cannot reach is not
    compared any more.
    """
    least, largest = solutions.min(axis=0), solutions.max(axis=0)
    reach = np.maximum(largest - solutions, solutions - least).sum(axis=1)
    order = np.argsort(-reach, kind="stable")
    return int(_farthest((solutions - least)[order].astype(np.int32), reach[order]))


@numba.njit(cache=True, nogil=True)
def _farthest(solutions: Any, reach: Any) -> int:
    best = 0
    for p in range(len(solutions)):
        if reach[p] <= best:
            break
        for q in range(p):
            distance = 0
            for i in range(solutions.shape[1]):
                distance += abs(solutions[p, i] - solutions[q, i])
            best = max(best, distance)
    return best
