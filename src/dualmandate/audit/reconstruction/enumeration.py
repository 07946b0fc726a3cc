"""Unknown counts from published numbers: bounds tightened until nothing changes, then every solution of what is left.

For an equation l ≤ Σ a_i·x_i ≤ u and current bounds of the x_i, each x_i lies where the other terms leave room for it:
sound, fast, often enough. A table's zero is the first case of it: every cell below it is 0. The unknowns that are still
free fall into pieces that share no equation. Each is solved by itself, by branching, with the same bounds after every
step: solutions multiply, distances between solutions add up.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers

MOST_SOLUTIONS = 4096  # At most this many solutions of one piece are listed.
MOST_STEPS = 20_000  # Branching in one piece takes at most this many steps.
FIRST_SOLUTIONS = 1024  # After this many, a list is given up that does not look as if it came to an end.
UNBOUNDED = 2**43  # Stands for no bound of an unknown; a million of them still add up in 64 bits.
MOST_VISITS = 1000  # A row is visited at most this often on average: bounds may creep for ever, and are sound anyway.


def pieces(
    equations: Equations, low: Integers, high: Integers, shown: NDArray[np.bool_] | None = None
) -> list[Integers]:
    """The free unknowns of one place, in pieces that share no equation; each in increasing order.

    `shown` says which equations there are in this place, all where it is not stated; shape (rows,).
    """
    free = np.flatnonzero(low < high)
    if not free.size:
        return []
    rows = np.arange(equations.rows) if shown is None else np.flatnonzero(shown)
    labels = _pieces(equations.starts, equations.cells, rows, free, equations.size)
    order = np.argsort(labels, kind="stable")
    return [np.sort(part) for part in np.split(free[order], np.flatnonzero(np.diff(labels[order])) + 1)]


@numba.njit(cache=True, nogil=True)
def _pieces(starts: Any, cells: Any, rows: Any, free: Any, size: int) -> Any:
    parent = np.full(size, -1, dtype=np.int64)
    for i in free:
        parent[i] = i
    for row in rows:
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
    equations: Equations,
    free: Integers,
    values: tuple[Integers, Integers],
    low: Integers,
    shown: NDArray[np.bool_] | None = None,
) -> tuple[Equations, Integers, Integers]:
    """The equations of one piece: its unknowns numbered from 0, and what is left for them after the fixed ones.

    `values` are the published lower and upper numbers of the place, `low` the current lower bounds (fixed unknowns have
    their value there); `shown` as for `pieces`.
    """
    cell_starts, cell_rows = equations.by_cell
    rows = np.unique(np.concatenate([cell_rows[cell_starts[i] : cell_starts[i + 1]] for i in free]))
    rows = rows if shown is None else rows[shown[rows]]
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
            if count == FIRST_SOLUTIONS and _share_tried(depth, at, value, depth_low, depth_high) * len(found) < count:
                return count, False
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


@numba.njit(cache=True, nogil=True)
def _share_tried(depth: int, at: Any, value: Any, depth_low: Any, depth_high: Any) -> float:
    """The share of all branches that the search has behind it, were every value of an unknown as much work."""
    share, width = 0.0, 1.0
    for level in range(depth + 1):
        i = at[level]
        width /= depth_high[level, i] - depth_low[level, i] + 1
        share += width * (value[level] - 1 - depth_low[level, i])
    return share + width


def farthest(solutions: Integers) -> int:
    """How far the two solutions that differ most lie apart, Σ|x − x′|.

    Solutions that lie farthest from the middle come first: what even the far end of all ranges cannot reach is not
    compared any more.
    """
    least, largest = solutions.min(axis=0), solutions.max(axis=0)
    reach_of = np.maximum(largest - solutions, solutions - least).sum(axis=1)
    order = np.argsort(-reach_of, kind="stable")
    return int(_farthest(np.ascontiguousarray(solutions[order]), reach_of[order]))


@numba.njit(cache=True, nogil=True)
def _farthest(solutions: Any, reach_of: Any) -> int:
    best = 0
    for p in range(len(solutions)):
        if reach_of[p] <= best:
            break
        for q in range(p):
            distance = 0
            for i in range(solutions.shape[1]):
                distance += abs(solutions[p, i] - solutions[q, i])
            best = max(best, distance)
    return best


def propagate(
    equations: Equations,
    lower: Integers,
    upper: Integers,
    *,
    least: Integers | None = None,
    most: Integers | None = None,
) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Bounds of every unknown of every place, each shape (places, unknowns), and which places contradict themselves.

    `lower` and `upper` bound each published number, shape (places, rows); `least` (0) and `most` (`UNBOUNDED`) bound
    each unknown beforehand, shape (unknowns,).
    """
    places = len(lower)
    low, high = (np.empty((places, equations.size), dtype=np.int64) for _ in range(2))
    low[:] = 0 if least is None else least
    high[:] = UNBOUNDED if most is None else most
    possible = np.ones(places, dtype=np.bool_)
    _propagate_all(equations.structure, lower, upper, (low, high), possible)
    return low, high, ~possible


@numba.njit(cache=True, nogil=True)
def _propagate_all(structure: Any, lower: Any, upper: Any, bounds: Any, possible: Any) -> None:
    rows = len(structure[0]) - 1
    low, high = bounds
    queue, waiting = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.bool_)
    for place in range(len(lower)):
        for row in range(rows):
            queue[row] = row
            waiting[row] = True
        values, own = (lower[place], upper[place]), (low[place], high[place])
        possible[place] = tighten(structure, values, own, (queue, waiting), rows)


@numba.njit(cache=True, nogil=True)
def tighten(structure: Any, values: Any, bounds: Any, work: Any, count: int) -> bool:
    """Tighten the bounds of one place from the first `count` rows in the queue on; False where they contradict.

    `work` is the queue and which rows wait in it; afterwards none does.
    """
    rows = len(structure[0]) - 1
    queue, waiting = work
    head, length, visits = 0, count, 0
    possible = True
    while possible and length > 0 and visits < MOST_VISITS * rows:
        visits += 1
        row = queue[head]
        head = head + 1 if head + 1 < rows else 0
        waiting[row] = False
        length = _visit(structure, row, values, bounds, work, (head, length - 1))
        possible = length >= 0
        if not possible:
            length = -length - 1
    for left in range(length):
        waiting[queue[(head + left) % rows]] = False
    return possible


@numba.njit(cache=True, nogil=True)
def _visit(structure: Any, row: int, values: Any, bounds: Any, work: Any, line: Any) -> int:
    """Tighten the unknowns of one row, and queue the rows of those that changed: how many wait now, n.

    −n − 1 where the row contradicts the bounds. `line` is where the queue begins and how many waited.
    """
    starts, cells, coefficients, cell_starts, cell_rows = structure
    low, high = bounds
    lower, upper = values[0][row], values[1][row]
    queue, waiting = work
    head: int = line[0]
    length: int = line[1]
    least, largest = 0, 0
    for k in range(starts[row], starts[row + 1]):
        a, i = coefficients[k], cells[k]
        least += a * low[i] if a > 0 else a * high[i]
        largest += a * high[i] if a > 0 else a * low[i]
    if least > upper or largest < lower:
        return -length - 1
    if largest <= upper and least >= lower:
        return length  # says nothing more
    for k in range(starts[row], starts[row + 1]):
        a, i = coefficients[k], cells[k]
        if low[i] == high[i]:
            continue
        near, far = (low[i], high[i]) if a > 0 else (high[i], low[i])
        room, need = upper - (least - a * near), lower - (largest - a * far)
        most, fewest = (room // a, -((-need) // a)) if a > 0 else (need // a, -((-room) // a))
        new_low, new_high = max(fewest, low[i]), min(most, high[i])
        if new_low > new_high:
            return -length - 1
        if new_high == high[i] and new_low == low[i]:
            continue
        # keep the sums of this row current, so that its later unknowns profit
        least += a * (new_low - low[i]) if a > 0 else a * (new_high - high[i])
        largest += a * (new_high - high[i]) if a > 0 else a * (new_low - low[i])
        low[i], high[i] = new_low, new_high
        for j in range(cell_starts[i], cell_starts[i + 1]):
            other = cell_rows[j]
            if not waiting[other]:
                waiting[other] = True
                queue[(head + length) % (len(starts) - 1)] = other
                length += 1
    return length


@numba.njit(cache=True, nogil=True)
def holds(structure: Any, values: Any, counts: Any) -> bool:
    """Whether counts satisfy every row."""
    starts, cells, coefficients = structure[0], structure[1], structure[2]
    for row in range(len(starts) - 1):
        total = 0
        for k in range(starts[row], starts[row + 1]):
            total += coefficients[k] * counts[cells[k]]
        if total < values[0][row] or total > values[1][row]:
            return False
    return True
