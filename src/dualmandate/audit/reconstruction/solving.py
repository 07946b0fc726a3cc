"""Pieces too large to list: a constraint solver finds a solution, proves that there is no other, or how far two differ;
and which published numbers contradict each other, as few as possible, where no records have them all.

What it could not prove in its time is said. CP-SAT first; where it neither finds nor refutes in time, HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dualmandate.audit.effort import SECONDS, cp_sat, cp_solver, highs
from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.reconstruction.enumeration import propagate
from dualmandate.errors import InvalidTables

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
