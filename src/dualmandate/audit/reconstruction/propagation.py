"""Bounds of unknown counts from published numbers, tightened until nothing changes: sound, fast, often enough.

For an equation l ≤ Σ a_i·x_i ≤ u and current bounds of the x_i, each x_i lies where the other terms leave room for it.
A table's zero is the first case of it: every cell below it is 0.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers

UNBOUNDED = 2**43  # Stands for no bound of an unknown; a million of them still add up in 64 bits.
MOST_VISITS = 1000  # A row is visited at most this often on average: bounds may creep for ever, and are sound anyway.


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
