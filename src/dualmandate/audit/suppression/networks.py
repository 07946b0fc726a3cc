"""Equations that form a network, as those of two-dimensional tables do: ranges by largest flows, in whole numbers.

Where every unknown stands in at most two equations, once with each sign (after some equations are turned around), an
unknown is a pipe between two nodes and a solution a circulation. An unknown can rise as far as a flow can go from its
head back to its tail through what all others can still take up or give away.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers

LARGEST_FLOW = 2**31  # scipy's flows are numbers of 32 bits


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
