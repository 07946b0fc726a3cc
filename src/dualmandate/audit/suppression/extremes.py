"""The least and the largest value of every unknown that equations allow: by flows where they form a network, by linear
programs where they do not.

Programs share their solutions: whatever one of them finds widens the known range of all unknowns, and an unknown that
was seen at a bound needs no program of its own. After a change of cost the last basis stays feasible, so the primal
simplex goes on from there. Where time ends, the bounds that were known before stand: they hold, and may be wide.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.reconstruction.propagation import UNBOUNDED
from dualmandate.audit.suppression.networks import network_of
from dualmandate.errors import InvalidTables

PRIMAL_SIMPLEX = 4  # HiGHS's name for it
NEAR = 1e-6  # of a bound that is whole
RELATIVE = 1e-12  # and of the largest number: what sums of floats may be off by
SECONDS = 10.0  # for all bounds of one piece
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Extremes:
    """The range of each unknown; `reached` says which are known to be as narrow as the equations make them."""

    least: Integers = field(repr=False)
    largest: Integers = field(repr=False)
    reached: NDArray[np.bool_] = field(repr=False)
    programs: int  # linear programs and flows that this took


def extremes(
    piece: Equations,
    values: Integers,
    bounds: tuple[Integers, Integers],
    *,
    wanted: NDArray[np.bool_] | None = None,
    seconds: float = SECONDS,
) -> Extremes:
    """The range of each unknown (or of those that are `wanted`) of a connected piece A·x = values within bounds.

    Ranges are those of real numbers, and rounded inward: every whole solution lies in them.
    """
    asked = np.arange(piece.size) if wanted is None else np.flatnonzero(wanted)
    ends = time.monotonic() + seconds
    solver = _Programs(piece, values, bounds, ends)
    network = network_of(piece)
    if network is not None and bounds[1].max() < UNBOUNDED // 2:
        first = solver.solve(np.zeros(piece.size), largest=False)
        if first is None:
            return solver.nothing()
        start = np.rint(first).astype(np.int64)
        if np.array_equal(piece.matrix @ start, values) and network.fits(start, bounds):
            least, largest, reached = network.extremes(start, bounds, asked, ends)
            return Extremes(least, largest, reached, 2 * int(reached.sum()))
    return solver.ranges(asked)


class _Programs:
    """One linear model whose cost changes."""

    def __init__(self, piece: Equations, values: Integers, bounds: tuple[Integers, Integers], ends: float) -> None:
        import highspy

        self.size, self.bounds, self.names, self.ends = piece.size, bounds, highspy, ends
        self.columns = np.arange(piece.size, dtype=np.int32)
        self.model = highspy.Highs()
        self.model.silent()
        for option, value in (("simplex_strategy", PRIMAL_SIMPLEX), ("presolve", "off"), ("threads", 1)):
            self.model.setOptionValue(option, value)
        finite = bounds[1] < UNBOUNDED // 2  # what is left of no bound after something was taken off is none either
        upper = np.where(finite, bounds[1].astype(np.float64), highspy.kHighsInf)
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
        scale = max(float(np.abs(each).max(initial=0)) for each in (values, bounds[0], bounds[1][finite]))
        self.near = NEAR + RELATIVE * scale
        self.solved = 0

    def solve(self, cost: Floats, *, largest: bool) -> Floats | None:
        """Where the cost is least (or largest); infinite where nothing bounds it, None where time ended."""
        states = self.names.HighsModelStatus
        left = self.ends - time.monotonic()
        if left <= 0:
            return None
        self.model.setOptionValue("time_limit", self.model.getRunTime() + left)  # its clock runs on from run to run
        self.model.changeColsCost(self.size, self.columns, -cost if largest else cost)
        self.model.run()
        self.solved += 1
        state = self.model.getModelStatus()
        open_end = state in (states.kUnbounded, states.kUnboundedOrInfeasible)
        if open_end and cost.any():
            return np.where(cost != 0, np.inf, np.nan)
        if open_end or state == states.kInfeasible:
            raise InvalidTables(
                "the published numbers contradict each other",
                why="no numbers in the suppressed cells make all tables add up",
                instead="check that all tables count the same units, and what is said to bound them",
            )
        return np.array(self.model.getSolution().col_value) if state == states.kOptimal else None

    def nothing(self) -> Extremes:
        """What is known where not even a first solution was found in time: the bounds."""
        return Extremes(*self.bounds, np.zeros(self.size, dtype=np.bool_), self.solved)

    def ranges(self, asked: Integers) -> Extremes:
        """The range of each unknown that is asked for; the bounds of the others stand."""
        first = self.solve(np.zeros(self.size), largest=False)
        if first is None:
            return self.nothing()
        seen = [first.copy(), first.copy()]
        outer = [each.astype(np.float64) for each in self.bounds]
        reached = np.isin(np.arange(self.size), asked)
        for unknown in asked.tolist():
            for side in (0, 1):
                if abs(seen[side][unknown] - outer[side][unknown]) <= self.near:
                    continue  # a solution is there already
                cost = np.zeros(self.size)
                cost[unknown] = 1.0
                found = self.solve(cost, largest=bool(side))
                if found is None:
                    reached[unknown] = False
                    continue
                if np.isinf(found[unknown]):
                    continue  # nothing bounds it: what was known before stands
                outer[side][unknown] = found[unknown]
                seen = [np.minimum(seen[0], found), np.maximum(seen[1], found)]
        least = np.maximum(np.ceil(outer[0] - self.near).astype(np.int64), self.bounds[0])
        largest = np.minimum(np.floor(outer[1] + self.near).astype(np.int64), self.bounds[1])
        return Extremes(least, np.maximum(largest, least), reached, self.solved)
