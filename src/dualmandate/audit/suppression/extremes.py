"""The least and the largest value of every unknown that equations allow: by flows where they form a network, by linear
programs where they do not.

Programs share their solutions: whatever one of them finds widens the known range of all unknowns, and an unknown that
was seen at a bound needs no program of its own. After a change of cost the last basis stays feasible, so the primal
simplex goes on from there. Where time ends, the bounds that were known before stand: they hold, and may be wide.

Two-dimensional tables form networks. Where every unknown stands in at most two equations, once with each sign (after
some equations are turned around), an unknown is a pipe between two nodes and a solution a circulation. An unknown can
rise as far as a flow can go from its head back to its tail through what all others can still take up or give away.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.effort import SECONDS
from dualmandate.audit.equations import Equations, Floats, Integers
from dualmandate.audit.reconstruction.propagation import UNBOUNDED
from dualmandate.audit.solvers import highs
from dualmandate.errors import InvalidTables

PRIMAL_SIMPLEX = 4  # HiGHS's name for it.
NEAR = 1e-6  # A value this near to a whole bound has reached it.
RELATIVE = 1e-12  # Sums of floats may be off by this share of the largest number.
LARGEST_FLOW = 2**31  # Scipy's flows are numbers of 32 bits.


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
        highspy = highs()
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


@dataclass(frozen=True, eq=False)
class Network:
    """Unknown i carries flow from node `tails[i]` to node `heads[i]`; the last node is the world outside."""

    tails: Integers = field(repr=False)
    heads: Integers = field(repr=False)
    nodes: int

    def fits(self, start: Integers, bounds: tuple[Integers, Integers]) -> bool:
        """Whether no flow can be larger than the numbers that flows are counted in."""
        return int((bounds[1] - bounds[0]).sum()) < LARGEST_FLOW and bool(
            ((bounds[0] <= start) & (start <= bounds[1])).all()
        )

    def extremes(
        self, start: Integers, bounds: tuple[Integers, Integers], asked: Integers, ends: float = math.inf
    ) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """The least and the largest value of some unknowns over all solutions, from one solution within the bounds.

        And for which of those `asked` for they were found before the clock says `ends`: the bounds of others stand.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        least, largest = bounds[0].copy(), bounds[1].copy()
        found = np.zeros(len(start), dtype=np.bool_)
        down, up = start - bounds[0], bounds[1] - start
        for i in asked.tolist():
            if time.monotonic() >= ends:
                break
            found[i] = True
            tail, head = int(self.tails[i]), int(self.heads[i])
            if tail == head:
                continue
            others = np.arange(len(start)) != i
            sources = np.concatenate([self.tails[others], self.heads[others]])
            targets = np.concatenate([self.heads[others], self.tails[others]])
            room = np.concatenate([up[others], down[others]]).astype(np.int32)
            graph = csr_array((room, (sources, targets)), shape=(self.nodes, self.nodes))
            graph.sum_duplicates()
            # to raise i by one, one must come back from its head to its tail; to lower it, go the other way round
            largest[i] = start[i] + min(int(maximum_flow(graph, head, tail).flow_value), int(up[i]))
            least[i] = start[i] - min(int(maximum_flow(graph, tail, head).flow_value), int(down[i]))
        return least, largest, found


def network_of(equations: Equations) -> Network | None:
    """The network that equations form, or None where they do not."""
    if not (np.abs(equations.coefficients) == 1).all():
        return None
    cell_starts, cell_rows = equations.by_cell
    degrees = np.diff(cell_starts)
    if degrees.max(initial=0) > 2 or degrees.min(initial=1) < 1:
        return None
    order = np.argsort(equations.cells, kind="stable")
    signs = equations.coefficients[order]
    turned = _turned(equations.rows, cell_starts, cell_rows, signs)
    if turned is None:
        return None
    outside = equations.rows
    tails, heads = (np.full(equations.size, outside, dtype=np.int64) for _ in range(2))
    for i in range(equations.size):
        for k in range(cell_starts[i], cell_starts[i + 1]):
            row = cell_rows[k]
            # what stands with + in an equation flows into its node
            (heads if signs[k] * turned[row] > 0 else tails)[i] = row
    return Network(tails, heads, equations.rows + 1)


def _turned(rows: int, cell_starts: Integers, cell_rows: Integers, signs: Integers) -> Integers | None:
    """A sign for each equation, so that an unknown in two equations stands with + in one and with − in the other."""
    pairs: list[list[tuple[int, int]]] = [[] for _ in range(rows)]
    for i in range(len(cell_starts) - 1):
        if cell_starts[i + 1] - cell_starts[i] == 2:
            a, b = cell_starts[i], cell_starts[i] + 1
            one, other = int(cell_rows[a]), int(cell_rows[b])
            alike = -int(signs[a] * signs[b])  # +1: both keep their sign, or both are turned
            pairs[one].append((other, alike))
            pairs[other].append((one, alike))
    turned = np.zeros(rows, dtype=np.int64)
    for first in range(rows):
        if turned[first]:
            continue
        turned[first] = 1
        waiting = [first]
        while waiting:
            row = waiting.pop()
            for other, alike in pairs[row]:
                if not turned[other]:
                    turned[other] = turned[row] * alike
                    waiting.append(other)
                elif turned[other] != turned[row] * alike:
                    return None
    return turned
