"""The least and the largest value of every unknown that equations allow: by flows where they form a network, by linear
programs where they do not.

Programs share their solutions: whatever one of them finds widens the known range of all unknowns, and an unknown that
was seen at a bound needs no program of its own. After a change of cost the last basis stays feasible, so the primal
simplex goes on from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.networks import network_of
from dualmandate.audit.propagation import UNBOUNDED
from dualmandate.errors import InvalidTables

PRIMAL_SIMPLEX = 4  # HiGHS's name for it
NEAR = 1e-6  # of a bound that is whole
Floats = NDArray[np.float64]


def extremes(piece: Equations, values: Integers, bounds: tuple[Integers, Integers]) -> tuple[Integers, Integers, int]:
    """The range of each unknown of a connected piece A·x = values within bounds; and how many programs it took.

    Ranges are those of real numbers, and rounded inward: every whole solution lies in them.
    """
    solver = _Programs(piece, values, bounds)
    network = network_of(piece)
    if network is not None and bounds[1].max() < UNBOUNDED:
        start = np.rint(solver.solve(np.zeros(piece.size), largest=False)).astype(np.int64)
        if np.array_equal(piece.matrix @ start, values):
            return *network.extremes(start, bounds), 2 * piece.size
    return solver.ranges()


class _Programs:
    """One linear model whose cost changes."""

    def __init__(self, piece: Equations, values: Integers, bounds: tuple[Integers, Integers]) -> None:
        import highspy

        self.size, self.bounds, self.names = piece.size, bounds, highspy
        self.columns = np.arange(piece.size, dtype=np.int32)
        self.model = highspy.Highs()
        self.model.silent()
        for option, value in (("simplex_strategy", PRIMAL_SIMPLEX), ("presolve", "off"), ("threads", 1)):
            self.model.setOptionValue(option, value)
        upper = np.where(bounds[1] >= UNBOUNDED, highspy.kHighsInf, bounds[1].astype(np.float64))
        self.model.addVars(piece.size, bounds[0].astype(np.float64), upper)
        right = values.astype(np.float64)
        self.model.addRows(
            piece.rows,
            right,
            right,
            len(piece.cells),
            piece.starts[:-1].astype(np.int32),
            piece.cells.astype(np.int32),
            piece.coefficients.astype(np.float64),
        )
        self.solved = 0

    def solve(self, cost: Floats, *, largest: bool) -> Floats:
        """Where the cost is least (or largest); infinite where nothing bounds it."""
        states = self.names.HighsModelStatus
        self.model.changeColsCost(self.size, self.columns, -cost if largest else cost)
        self.model.run()
        self.solved += 1
        state = self.model.getModelStatus()
        if state in (states.kUnbounded, states.kUnboundedOrInfeasible):
            return np.where(cost != 0, np.inf, np.nan)
        if state != states.kOptimal:
            raise InvalidTables(
                "the published numbers contradict each other",
                why="no numbers in the suppressed cells make all tables add up",
                instead="check that all tables count the same units, and what is said to bound them",
            )
        return np.array(self.model.getSolution().col_value)

    def ranges(self) -> tuple[Integers, Integers, int]:
        """The range of each unknown."""
        first = self.solve(np.zeros(self.size), largest=False)
        seen = [first.copy(), first.copy()]
        ends: list[Any] = [self.bounds[0].astype(np.float64), self.bounds[1].astype(np.float64)]
        for unknown in range(self.size):
            for side in (0, 1):
                if abs(seen[side][unknown] - ends[side][unknown]) <= NEAR:
                    continue  # a solution is there already
                cost = np.zeros(self.size)
                cost[unknown] = 1.0
                found = self.solve(cost, largest=bool(side))
                if np.isinf(found[unknown]):
                    continue  # nothing bounds it: what was known before stands
                ends[side][unknown] = found[unknown]
                seen = [np.minimum(seen[0], found), np.maximum(seen[1], found)]
        least, largest = np.ceil(ends[0] - NEAR).astype(np.int64), np.floor(ends[1] + NEAR).astype(np.int64)
        return least, np.maximum(largest, least), self.solved
