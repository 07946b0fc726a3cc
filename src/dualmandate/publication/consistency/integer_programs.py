"""Families that cross, held exactly: an integer program, with a limit of time and an honest answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dualmandate.errors import NoConsistentTables
from dualmandate.population.arrays import Floats, Integers

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
