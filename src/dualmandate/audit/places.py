"""Places whose tables have suppressed numbers: what is shown is attacked, and what is hidden bounded by it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.suppression import LinkedTables
from dualmandate.audit.targets import ExactTables, SuppressedPart, SuppressedTables, boxed, opened


def shown_parts(target: ExactTables) -> Iterator[tuple[Integers, Equations, Integers]]:
    """Places in which the same numbers are shown: which they are, the equations of these numbers, and their values.

    Left out are places where some cell is counted by no number that is shown: nothing bounds it.
    """
    if target.hidden is None:
        yield np.arange(len(target.places)), target.equations, target.values
        return
    patterns, which = np.unique(target.hidden, axis=0, return_inverse=True)
    for number, hidden in enumerate(patterns):
        kept = np.flatnonzero(~hidden)
        equations = _only(target.equations, kept)
        counted = np.zeros(equations.size, dtype=np.bool_) if target.impossible is None else target.impossible.copy()
        counted[equations.cells] = True
        if counted.all():
            chosen = np.flatnonzero(which.reshape(-1) == number)
            yield chosen, equations, target.values[chosen][:, kept]


def _only(equations: Equations, rows: Integers) -> Equations:
    names = [equations.name(int(row)) for row in rows]
    return Equations.of_matrix(equations.matrix[rows], names)


def hidden_numbers(target: ExactTables) -> SuppressedTables | None:
    """The suppressed numbers of every place as linked tables; None where nothing is suppressed."""
    if target.hidden is None or not target.hidden.any():
        return None
    places = np.flatnonzero(target.hidden.any(axis=1))
    return SuppressedTables(target.name, tuple(_part(target, int(place)) for place in places), target.coarsening)


def _part(target: ExactTables, place: int) -> SuppressedPart:
    """One place: every number is the sum of cells that nobody published."""
    from scipy.sparse import csr_array, eye_array, hstack

    assert target.hidden is not None
    rows, size = target.equations.rows, target.equations.size
    # unknown cells first, then the numbers: Σ cells − number = 0
    relations = csr_array(hstack([target.equations.matrix, -eye_array(rows, dtype=np.int64)]))
    impossible = np.zeros(size, dtype=np.bool_) if target.impossible is None else target.impossible
    values = np.concatenate([np.zeros(size, dtype=np.int64), target.values[place]])
    names = tuple(f"{target.places[place]}: {target.equations.name(row)}" for row in range(rows))
    return SuppressedPart(
        LinkedTables(Equations.of_matrix(relations), values, np.concatenate([~impossible, target.hidden[place]])),
        (*(target.cell(unknown) for unknown in range(size)), *names),
        shown=np.concatenate([np.zeros(size, dtype=np.bool_), np.ones(rows, dtype=np.bool_)]),
        truths={
            reference: boxed(np.concatenate([counts[place], target.equations.of(counts[place])]))
            for reference, counts in opened(target.truths).items()
        },
    )
