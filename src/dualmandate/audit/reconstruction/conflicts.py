"""Tables that no records can have: which published numbers contradict each other, as few as possible."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.reconstruction.propagation import propagate
from dualmandate.audit.reconstruction.solving import first_solution
from dualmandate.audit.solvers import cp_sat
from dualmandate.errors import InvalidTables

SECONDS = 10.0  # for the search for a smallest set
MOST_ROUNDS = 200  # of looking for a smallest set
MOST_NAMED = 12  # numbers of a conflict that are named
HOW = {
    "smallest": "no smaller set contradicts itself",
    "minimal": "none of them can be left out",
    "unfinished": "time ended before it was known which of them can be left out; --seconds gives more",
}


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
    ask = _Conflicts(bounded, time.monotonic() + seconds)
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
        to_meet.append(frozenset(range(rows)) - ask.grow(chosen))
        if ask.unsure:
            break
    return Conflict(first, "minimal")


class _Conflicts:
    """Answers whether a set of rows contradicts itself, until time ends."""

    def __init__(self, bounded: BoundedEquations, ends: float) -> None:
        self.bounded, self.ends = bounded, ends
        self.unsure = False  # whether some answer was not found in time

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.ends - time.monotonic()

    def contradict(self, rows: Sequence[int] | frozenset[int]) -> bool:
        """Whether no numbers satisfy these rows; what cannot be told in time counts as no, and is remembered."""
        kept = sorted(rows)
        if not kept:
            return False
        if self.left <= 0:
            self.unsure = True
            return False
        part = Equations.of_matrix(self.bounded.equations.matrix[kept])
        own = self.bounded.values[kept]
        low, high, wrong = propagate(part, own[None], own[None], least=self.bounded.least, most=self.bounded.most)
        if wrong[0]:
            return True
        state = first_solution(part, (own, own), (low[0], high[0]), seconds=max(self.left, 1e-3))[0]
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

    def grow(self, rows: frozenset[int]) -> frozenset[int]:
        """A set that holds together and contains the rows, to which no row can be added."""
        kept = set(rows)
        for row in range(self.bounded.equations.rows):
            if row not in kept and not self.contradict(frozenset(kept | {row})):
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
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 2019
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return frozenset(row for row in rows if solver.boolean_value(chosen[row]))
