"""Unknown counts from published numbers: bounds tightened until nothing changes, then every solution of what is left.

For an equation l ≤ Σ a_i·x_i ≤ u and current bounds of the x_i, each x_i lies where the other terms leave room for it:
sound, fast, often enough. A table's zero is the first case of it: every cell below it is 0. The unknowns that are still
free fall into pieces that share no equation. Each is solved by itself, by branching, with the same bounds after every
step: solutions multiply, distances between solutions add up.

In pieces too large to list, a constraint solver finds a solution, proves that there is no other, or how far two differ:
CP-SAT first; where it neither finds nor refutes in time, HiGHS. Where no records have all published numbers, it finds
which contradict each other, as few as possible. What it could not prove in its time is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numba
import numpy as np

from dualmandate.audit.options import SECONDS, cp_sat, cp_solver, highs
from dualmandate.audit.tables import Equations
from dualmandate.errors import InvalidTables
from dualmandate.population.arrays import Booleans, Integers

MOST_SOLUTIONS = 4096  # At most this many solutions of one piece are listed.
MOST_STEPS = 20_000  # Branching in one piece takes at most this many steps.
FIRST_SOLUTIONS = 1024  # After this many, a list is given up that does not look as if it came to an end.
UNBOUNDED = 2**43  # Stands for no bound of an unknown; a million of them still add up in 64 bits.
MOST_VISITS = 1000  # A row is visited at most this often on average: bounds may creep for ever, and are sound anyway.


def pieces(equations: Equations, low: Integers, high: Integers, shown: Booleans | None = None) -> list[Integers]:
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
    shown: Booleans | None = None,
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
) -> tuple[Integers, Integers, Booleans]:
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


Status = Literal["found", "impossible", "unknown"]
Bounds = tuple[Integers, Integers]
ROUNDING = 1e-6  # A bound that the solver states as a float may be off by this much.
MOST_ROUNDS = 200  # A smallest set is looked for in at most this many rounds.
MOST_NAMED = 12  # At most this many numbers of a conflict are named.
HOW = {
    "smallest": "no smaller set contradicts itself",
    "minimal": "none of them can be left out",
    "unfinished": "time ended before it was known which of them can be left out; --seconds gives more",
}


@dataclass(frozen=True, eq=False)
class Distance:
    """How far two solutions of a piece lie apart, Σ|x − x′|: found, and at most possible (equal where proved)."""

    found: int
    most: int
    ends: Integers | None  # two solutions that far apart, shape (2, unknowns)


def first_solution(
    piece: Equations, values: Bounds, bounds: Bounds, *, seconds: float
) -> tuple[Status, Integers | None]:
    """One solution of a piece, or that there is none, or neither in time."""
    cp_model = cp_sat()
    model, unknowns = _model(piece, values, bounds)
    solver = _solver(seconds)
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "found", np.array([solver.value(each) for each in unknowns], dtype=np.int64)
    return ("impossible", None) if status == cp_model.INFEASIBLE else _by_highs(piece, values, bounds, seconds)


def farthest_apart(piece: Equations, values: Bounds, bounds: Bounds, *, seconds: float) -> Distance:
    """The largest distance between two solutions; 0 proves that there is one only.

    Two solutions are x and x + p − q with p and q not both above 0 for one unknown. As p − q satisfies the equations
    with 0 on the right, bounds from linear programs are tight, which they are not for two copies of x; and as only one
    of p and q is above 0, already x + p and x − q keep within the bounds, which says more than x + p − q does.
    """
    cp_model = cp_sat()
    model, unknowns = _model(piece, values, bounds)
    widths = [int(width) for width in bounds[1] - bounds[0]]
    more, less = ([model.new_int_var(0, width, "") for width in widths] for _ in range(2))
    for i, width in enumerate(widths):
        rises = model.new_bool_var("")
        model.add(more[i] <= width * rises)
        model.add(less[i] <= width - width * rises)
        model.add(unknowns[i] + more[i] <= int(bounds[1][i]))
        model.add(unknowns[i] - less[i] >= int(bounds[0][i]))
        if i == 0:
            model.add(rises == 1)  # the two may change places
    if np.array_equal(*values):
        _say(model, piece, (0 * values[0], 0 * values[1]), [a - b for a, b in zip(more, less, strict=True)])
    else:
        _say(model, piece, values, [x + a - b for x, a, b in zip(unknowns, more, less, strict=True)])
    model.maximize(sum(more) + sum(less))
    solver = _solver(seconds)
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Distance(0, sum(widths), None)
    one = np.array([solver.value(x) for x in unknowns], dtype=np.int64)
    step = np.array([solver.value(a) - solver.value(b) for a, b in zip(more, less, strict=True)], dtype=np.int64)
    most = min(sum(widths), int(solver.best_objective_bound + ROUNDING))
    return Distance(int(np.abs(step).sum()), most, np.stack([one, one + step]))


def ranges(
    piece: Equations, values: Bounds, bounds: Bounds, *, known: Integers, seconds: float
) -> tuple[Integers, Integers, bool]:
    """The least and the largest value of each unknown over all solutions, and whether that is proved.

    `known` are some solutions, or least and largest values of some, shape (…, unknowns). Each further one that is found
    leaves the present range of as many unknowns as possible; where none leaves any, the ranges are right. Without
    proof, `bounds` stand.
    """
    cp_model = cp_sat()
    least, largest = known.min(axis=0), known.max(axis=0)
    model, unknowns = _model(piece, values, bounds)
    solver, ends = _solver(seconds), time.monotonic() + seconds  # all of it is one question
    while True:
        model.clear_objective()
        leaving = []
        for i, x in enumerate(unknowns):
            for beyond, open_end in ((x > int(largest[i]), largest[i] < bounds[1][i]),
                                     (x < int(least[i]), least[i] > bounds[0][i])):  # fmt: skip
                if open_end:
                    leaves = model.new_bool_var("")
                    model.add(beyond).only_enforce_if(leaves)
                    leaving.append(leaves)
        if not leaving:
            return least, largest, True
        model.maximize(sum(leaving))
        solver.parameters.max_time_in_seconds = max(ends - time.monotonic(), 0.0)
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return bounds[0], bounds[1], False
        if solver.objective_value < 1:
            proved = status == cp_model.OPTIMAL
            return (least, largest, True) if proved else (bounds[0], bounds[1], False)
        found = np.array([solver.value(x) for x in unknowns], dtype=np.int64)
        least, largest = np.minimum(least, found), np.maximum(largest, found)


def _say(model: Any, piece: Equations, values: Bounds, unknowns: list[Any]) -> None:
    for row in range(piece.rows):
        part = slice(piece.starts[row], piece.starts[row + 1])
        terms = sum(int(a) * unknowns[i] for a, i in zip(piece.coefficients[part], piece.cells[part], strict=True))
        model.add_linear_constraint(terms, int(values[0][row]), int(values[1][row]))


def _model(piece: Equations, values: Bounds, bounds: Bounds) -> tuple[Any, list[Any]]:
    model = cp_sat().CpModel()
    unknowns = [model.new_int_var(int(least), int(most), "") for least, most in zip(*bounds, strict=True)]
    _say(model, piece, values, unknowns)
    return model, unknowns


def _solver(seconds: float) -> Any:
    solver = cp_solver(seconds)
    solver.parameters.linearization_level = 2
    solver.parameters.cp_model_probing_level = 0  # bounds were propagated before
    solver.parameters.symmetry_level = 0  # unknowns of a piece hardly ever are alike
    return solver


def highs_model(piece: Equations, values: tuple[Any, Any], bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    """A model of HiGHS, on one thread, of rows and unknowns within bounds (of any kind of number); and its module."""
    highspy = highs()
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("threads", 1)
    model.addVars(piece.size, *(each.astype(np.float64) for each in bounds))
    rows = piece.starts[:-1].astype(np.int32), piece.cells.astype(np.int32), piece.coefficients.astype(np.float64)
    model.addRows(piece.rows, *(each.astype(np.float64) for each in values), len(piece.cells), *rows)
    return model, highspy


def _by_highs(piece: Equations, values: Bounds, bounds: Bounds, seconds: float) -> tuple[Status, Integers | None]:
    solver, highspy = highs_model(piece, values, bounds)
    solver.setOptionValue("time_limit", seconds)
    integral = np.full(piece.size, highspy.HighsVarType.kInteger)
    solver.changeColsIntegrality(piece.size, np.arange(piece.size, dtype=np.int32), integral)
    solver.run()
    state = solver.getModelStatus()
    if state == highspy.HighsModelStatus.kInfeasible:
        return "impossible", None
    found = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    if found.size == piece.size:
        said = piece.matrix @ found
        held = np.all((values[0] <= said) & (said <= values[1])) and np.all((bounds[0] <= found) & (found <= bounds[1]))
        if held:  # checked in whole numbers: a solver in floats only proposes
            return "found", found
    return "unknown", None


@dataclass(frozen=True, eq=False)
class BoundedEquations:
    """Equations A·x = values with bounds of the unknowns; some rows hold together or not."""

    equations: Equations
    values: Integers = field(repr=False)  # (rows,)
    least: Integers = field(repr=False)  # (unknowns,)
    most: Integers = field(repr=False)

    @classmethod
    def counts(cls, equations: Equations, values: Integers, most: Integers | None) -> BoundedEquations:
        """Counts, from 0 on: none is above the largest published number, as each stands in one."""
        width = int(values.max(initial=0))
        ceiling = np.full(equations.size, width) if most is None else np.minimum(most, width)
        return cls(equations, values, np.zeros(equations.size, dtype=np.int64), ceiling)

    def state(self, rows: list[int], seconds: float) -> Status:
        """Whether some numbers satisfy these rows."""
        part, own = Equations.of_matrix(self.equations.matrix[rows]), self.values[rows]
        low, high, wrong = propagate(part, own[None], own[None], least=self.least, most=self.most)
        if wrong[0]:
            return "impossible"
        return first_solution(part, (own, own), (low[0], high[0]), seconds=max(seconds, 1e-3))[0]


@dataclass(frozen=True)
class Conflict:
    """Rows that contradict each other, and how few they are known to be."""

    rows: tuple[int, ...]
    kind: Literal["smallest", "minimal", "unfinished"]

    def named(self, names: Iterable[str]) -> str:
        """The numbers that contradict each other, the first of them where they are many."""
        said = list(names)
        return "; ".join(said[:MOST_NAMED]) + (f"; and {len(said) - MOST_NAMED:,} more" if said[MOST_NAMED:] else "")


def contradiction(
    equations: Equations, values: Integers, most: Integers | None, *, seconds: float = SECONDS
) -> InvalidTables:
    """The refusal of tables that contradict each other, naming a smallest set that does."""
    found = smallest_conflict(BoundedEquations.counts(equations, values, most), seconds=seconds)
    said = found.named(f"{equations.name(row)} = {values[row]:,}" for row in found.rows)
    alone = len(found.rows) == 1
    return InvalidTables(
        f"the tables contradict each other: {said}",
        why="no records have it" if alone else f"no records have all {len(found.rows):,} of these numbers "
        f"({HOW[found.kind]})",
        instead="check these numbers; tables with noise, rounding or swapping are for the attack on noisy tables",
    )  # fmt: skip


def smallest_conflict(bounded: BoundedEquations, *, seconds: float = SECONDS) -> Conflict:
    """Rows that contradict each other, as few as were found in the time given.

    A conflict must meet the complement of every set of rows that can hold together: a smallest set that meets all
    complements found so far either contradicts itself, and is a smallest conflict, or grows to a further such set
    [IPLM15]. Where that takes too long, rows are left out one by one from a first conflict as long as it stays one.
    """
    ask = Conflicts(bounded.state, seconds)
    rows = bounded.equations.rows
    first = ask.shrink(range(rows))
    if ask.unsure:
        return Conflict(first, "unfinished")
    if len(first) == 1:
        return Conflict(first, "smallest")
    to_meet: list[frozenset[int]] = []
    for _ in range(MOST_ROUNDS):
        chosen = _smallest_meeting(to_meet, ask.left)
        if chosen is None:
            break
        if len(chosen) >= len(first):
            return Conflict(first, "smallest")
        if ask.contradict(chosen):
            return Conflict(tuple(sorted(chosen)), "smallest")
        to_meet.append(frozenset(range(rows)) - ask.grow(chosen, rows))
        if ask.unsure:
            break
    return Conflict(first, "minimal")


class Conflicts:
    """Answers whether some rows contradict each other, until time ends; `state(rows, seconds)` asks a solver."""

    def __init__(self, state: Callable[[list[int], float], Status], seconds: float) -> None:
        self.state, self.ends = state, time.monotonic() + seconds
        self.unsure = False  # whether some answer was not found in time

    @property
    def left(self) -> float:
        return self.ends - time.monotonic()

    def contradict(self, rows: Iterable[int]) -> bool:
        """Whether nothing has these rows; what cannot be told in time counts as no, and is remembered."""
        kept, left = sorted(rows), self.left
        if not kept:
            return False
        state = self.state(kept, left) if left > 0 else "unknown"
        self.unsure |= state == "unknown"
        return state == "impossible"

    def shrink(self, rows: Sequence[int]) -> tuple[int, ...]:
        """A conflict inside the rows from which no row can be left out; halves are tried first."""
        kept = list(rows)
        width = max(len(kept) // 2, 1)
        while width:
            start = 0
            while start < len(kept):
                fewer = kept[:start] + kept[start + width :]
                if self.contradict(fewer):
                    kept = fewer
                else:
                    start += width
            width //= 2
        return tuple(kept)

    def grow(self, rows: frozenset[int], every: int) -> frozenset[int]:
        """A set that holds together and contains the rows, to which none of `every` row can be added."""
        kept = set(rows)
        for row in range(every):
            if row not in kept and not self.contradict(kept | {row}):
                kept.add(row)
        return frozenset(kept)


def _smallest_meeting(sets: Sequence[frozenset[int]], seconds: float) -> frozenset[int] | None:
    """A smallest set of rows with at least one of each of the sets; None where the solver did not end."""
    cp_model = cp_sat()
    if seconds <= 0:
        return None
    model = cp_model.CpModel()
    rows = sorted(frozenset().union(*sets))
    chosen = {row: model.new_bool_var("") for row in rows}
    for each in sets:
        model.add_bool_or([chosen[row] for row in sorted(each)])
    model.minimize(sum(chosen.values()))
    solver = cp_solver(seconds)
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return frozenset(row for row in rows if solver.boolean_value(chosen[row]))
