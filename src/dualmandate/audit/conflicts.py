"""Tables that no records can have: which published numbers contradict each other, as few as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.propagation import propagate
from dualmandate.audit.solving import first_solution
from dualmandate.errors import InvalidTables

SECONDS = 5.0  # for each question whether some numbers contradict each other
MOST_ROUNDS = 200  # of looking for a smallest set


def contradiction(equations: Equations, values: Integers, most: Integers | None) -> InvalidTables:
    """The refusal of tables that contradict each other, naming a smallest set that does."""
    rows, smallest = smallest_conflict(equations, values, most)
    said = "; ".join(f"{equations.name(row)} = {values[row]:,}" for row in rows)
    kind = "no smaller set contradicts itself" if smallest else "none of them can be left out"
    return InvalidTables(
        f"the tables contradict each other: {said}",
        why=f"no records have all {len(rows):,} of these numbers ({kind})" if len(rows) > 1 else "no records have it",
        instead="check these numbers; tables with noise, rounding or swapping are for the attack on noisy tables",
    )


def smallest_conflict(equations: Equations, values: Integers, most: Integers | None) -> tuple[tuple[int, ...], bool]:
    """Rows that contradict each other, and whether no set of fewer rows does.

    A conflict must meet the complement of every set of rows that can hold together: a smallest set that meets all
    complements found so far either contradicts itself, and is a smallest conflict, or grows to a further such set
    [IPLM15]. Where that takes too many rounds, rows are left out one by one
    from a first conflict as long as it stays one.
    """
    ask = _Conflicts(equations, values, most)
    first = ask.shrink(range(equations.rows))
    to_meet: list[frozenset[int]] = []
    for _ in range(MOST_ROUNDS):
        chosen = _smallest_meeting(to_meet)
        if chosen is None:
            break
        if len(chosen) >= len(first):
            return first, True
        if ask.contradict(chosen):
            return tuple(sorted(chosen)), True
        to_meet.append(frozenset(range(equations.rows)) - ask.grow(chosen))
    return first, False


class _Conflicts:
    """Answers whether a set of rows contradicts itself."""

    def __init__(self, equations: Equations, values: Integers, most: Integers | None) -> None:
        self.equations, self.values, self.most = equations, values, most
        width = int(values.max(initial=0))
        self.ceiling = np.full(equations.size, width) if most is None else np.minimum(most, width)

    def contradict(self, rows: Sequence[int] | frozenset[int]) -> bool:
        """Whether no counts have these numbers; what a solver cannot tell in time counts as no."""
        kept = sorted(rows)
        if not kept:
            return False
        part = Equations.of_matrix(self.equations.matrix[kept])
        own = self.values[kept]
        low, high, wrong = propagate(part, own[None], own[None], most=self.ceiling)
        if wrong[0]:
            return True
        return first_solution(part, (own, own), (low[0], high[0]), seconds=SECONDS)[0] == "impossible"

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
        for row in range(self.equations.rows):
            if row not in kept and not self.contradict(frozenset(kept | {row})):
                kept.add(row)
        return frozenset(kept)


def _smallest_meeting(sets: Sequence[frozenset[int]]) -> frozenset[int] | None:
    """A smallest set of rows with at least one of each of the sets; None where the solver did not end."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    rows = sorted(frozenset().union(*sets))
    chosen = {row: model.new_bool_var("") for row in rows}
    for each in sets:
        model.add_bool_or([chosen[row] for row in sorted(each)])
    model.minimize(sum(chosen.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 2019
    solver.parameters.max_time_in_seconds = SECONDS
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return frozenset(row for row in rows if solver.boolean_value(chosen[row]))
