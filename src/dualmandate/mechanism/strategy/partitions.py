"""Which tables of plain counts to measure for pure ε, and how well each group of each: the best found.

The finest tables that the workload asks for, or common refinements of them, are weighed group by group. Then coarser
tables are put in one after the other, those first that promise most, and stay where the error falls. The order is
fixed: no start is drawn, and more starts can only improve what is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.codings import (
    Grouping,
    coarser_tables,
    entries,
    finest,
    group_count,
    joined,
    own_tables,
)
from dualmandate.mechanism.strategy.group_stack import GroupStack
from dualmandate.mechanism.strategy.group_weights import Weighed, Weighing, descend, descend_by_tables, weighing_of
from dualmandate.mechanism.strategy.layout import Layout
from dualmandate.mechanism.strategy.parts import Part
from dualmandate.workload.factor import LARGEST_DENSE

STARTS = 33  # the tables asked for, and points of an even spread
ROUNDS = 3  # of tables that are put in
TOGETHER = 8  # tables that are compared before one of them is put in
STEPS = 12  # of a descent, after which the worse half of them is given up
LARGEST_BASE = 1_024  # groups of the finest tables
FEW_GROUPS = 128  # of a table that is finer than all asked for, up to which it is a candidate
LARGEST_POOL = 2**24  # numbers in the rows of all tables
MOST_SECTORS = 1_024
MOST_JOINS = 24  # of tables that are tried
MOST_WORK = 4e10  # multiplications, about
SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])  # of a strategy, that a table is thought to be given
SHARE = 0.3  # that it is given
KEPT = 1e-3  # of a strategy, that the finest tables keep where a query needs them
_GOLDEN = (math.sqrt(5) - 1) / 2
_BETTER = 1.0 - 1e-5


def fits(part: Part) -> bool:
    """Whether the family can be searched: the finest tables have few groups over few orbits."""
    if len(part.sectors) > MOST_SECTORS or not _is_small(own_tables(part)):
        return False
    widest = min(part.sectors, key=len)
    return part.row_count(widest) * len(part.orbits_of(widest)) <= LARGEST_DENSE


def groups_asked(part: Part) -> int:
    """Groups of exchangeable cells in the finest tables asked for."""
    return sum(group_count(table) for table in own_tables(part))


def _is_small(tables: Sequence[Grouping]) -> bool:
    groups, numbers = (sum(map(size, tables)) for size in (group_count, entries))
    return groups <= LARGEST_BASE and numbers <= LARGEST_POOL


def best_partitions(part: Part, starts: int | None = None) -> tuple[GroupStack, float]:
    """The best tables and weights found for a part that `fits`, and the error for sensitivity 1."""
    tables, base = _candidates(part)
    layout = Layout.of(part, tables)
    search = _Search(weighing_of(layout), layout.starts)
    stack = _stacked(layout, weights := search.best(base, starts or STARTS))
    if math.isinf(error := stack.error()):
        # Queries that weigh next to nothing have lost what they need: the finest tables support everything.
        stack = _stacked(layout, (1.0 - KEPT) * weights + KEPT / base * search.first(base))
        error = stack.error()
    return stack, error


def _stacked(layout: Layout, weights: Floats) -> GroupStack:
    """Only the tables that have weights."""
    pieces = np.split(weights, layout.starts[1:-1])
    kept = [number for number, piece in enumerate(pieces) if piece.any()]
    tables = tuple(layout.tables[number] for number in kept)
    shaped = [pieces[number].reshape([coding.count for coding in layout.tables[number]]) for number in kept]
    words = f"{len(kept):,} tables of counts with {np.count_nonzero(weights):,} weights, the best of enumerated starts"
    return GroupStack(layout.part, tables, tuple(shaped), words)


def _candidates(part: Part) -> tuple[tuple[Grouping, ...], int]:
    """The tables to choose from, and how many of the first are the start.

    All that can be made of the codings where they are few, else those coarser than the start.
    """
    base = _best_base(part)
    everything = reduce(joined, base)
    if group_count(everything) <= FEW_GROUPS:
        tables = _pool(part, tuple(dict.fromkeys((*base, everything))))
        if sum(group_count(table) for table in tables) * group_count(everything) ** 2 <= MOST_WORK / 1000:
            return tables, len(base)
    return _pool(part, base), len(base)


def _best_base(part: Part) -> tuple[Grouping, ...]:
    """The finest tables asked for, two of them joined again and again as long as that is better."""
    base = own_tables(part)
    found = _promise(part, base)
    left = min(MOST_JOINS, MOST_SECTORS // len(part.sectors))
    while len(base) > 1:
        joins = sorted((group_count(joined(one, two)), i, j) for (i, one), (j, two) in combinations(enumerate(base), 2))
        best = (found, base)
        chosen, left = joins[: min(TOGETHER, left)], left - TOGETHER
        for _, i, j in chosen:
            rest = (table for number, table in enumerate(base) if number not in (i, j))
            other = finest([joined(base[i], base[j]), *rest])
            promise = _promise(part, other)
            if promise < best[0]:
                best = (promise, other)
        if best[1] is base or left <= 0:
            return best[1]
        found, base = best
    return base


def _promise(part: Part, base: tuple[Grouping, ...]) -> float:
    """About the error of some tables alone; infinite where they are too many."""
    if not _is_small(base):
        return math.inf
    layout = Layout.of(part, base)
    problem = weighing_of(layout)
    steps = max(4, min(8, int(MOST_WORK / 20 / problem.work)))
    return descend(problem, np.ones(layout.count), None, steps=steps).promise


def _pool(part: Part, base: tuple[Grouping, ...]) -> tuple[Grouping, ...]:
    """The finest tables, and coarser ones as long as there is room, the smallest first."""
    chosen, room = list(base), LARGEST_POOL - sum(entries(table) for table in base)
    for table in sorted(coarser_tables(part, base)[len(base) :], key=group_count):
        room -= entries(table)
        if room >= 0:
            chosen.append(table)
    return tuple(chosen)


@dataclass(frozen=True, eq=False)
class _Search:
    problem: Weighing
    starts: Indices  # the first group of each table

    def best(self, base: int, starts: int) -> Floats:
        """The weights of the best strategy found: from equal weights of the first tables, and from spread ones."""
        best = self._grown(self.first(base))
        work = ROUNDS * self._round_of(best) + 2 * STEPS * TOGETHER * self.problem.work
        attempts = min((starts - 1) // TOGETHER, int(MOST_WORK / work) - 1) if base < len(self.starts) - 1 else 0
        for attempt in range(attempts):
            found = self._grown(self._spread(attempt * TOGETHER + 1))
            best = min(best, found, key=lambda each: each.error)
        return self._filled(self._settled(best.weights, best.prices, tolerance=1e-8).weights)

    def first(self, count: int) -> Floats:
        """The weight 1 for all groups of the first tables."""
        return np.asarray(np.arange(self.problem.count) < self.starts[count], dtype=np.float64)

    def _round_of(self, point: Weighed) -> float:
        """Multiplications of a round of tables that are put in."""
        return self._restricted(point.weights).work * (3 * STEPS * TOGETHER + 64)

    def _restricted(self, weights: Floats) -> Weighing:
        return self.problem.restricted(np.flatnonzero(weights))

    def _spread(self, first: int) -> Floats:
        """The best of some starts in which weights of tables are spread evenly, one weight a table."""
        points = np.arange(1, len(self.starts))
        found = []
        for number in range(first, first + TOGETHER):
            spread = np.modf(number * (points * _GOLDEN + points**2 * (math.sqrt(2) - 1)))[0]
            found.append(descend_by_tables(self.problem, self.starts, spread / spread.sum(), steps=2 * STEPS))
        shares, _ = min(found, key=lambda each: each[1])
        return np.repeat(shares, np.diff(self.starts))

    def _grown(self, weights: Floats) -> Weighed:
        """A start, and what it becomes when tables are put in one after the other."""
        point = self._settled(weights, None)
        ranked: list[int] = []
        for _ in range(min(ROUNDS, int(MOST_WORK / self._round_of(point)))):
            ranked = ranked or self._ranked(point)
            now, ranked = ranked[:TOGETHER], ranked[TOGETHER:]
            found = self._put_in(point, now)
            if found.error < _BETTER * point.error:
                point, ranked = found, []
            elif not ranked:
                break
        return point

    def _settled(self, weights: Floats, prices: Floats | None, tolerance: float = 1e-6) -> Weighed:
        steps = max(12, min(64, int(MOST_WORK / 4 / self._restricted(weights).work)))
        return descend(self.problem, weights, prices, steps=steps, tolerance=tolerance)

    def _ranked(self, point: Weighed) -> list[int]:
        """All tables, those first with which the error would be least if each group stood by itself."""
        amounts = np.square(SHARES / (1.0 - SHARES))
        falls = np.add.reduceat(self.problem.gains(point.weights, amounts), self.starts[:-1], axis=1)
        errors = (point.error - falls) / np.square(1.0 - SHARES)[:, None]
        return [int(number) for number in np.argsort(errors.min(axis=0), kind="stable")]

    def _put_in(self, point: Weighed, tables: Sequence[int]) -> Weighed:
        """The best point that one of some tables leads to."""
        found = []
        for number in tables:
            weights = (1.0 - SHARE) * point.weights
            weights[self.starts[number] : self.starts[number + 1]] += SHARE
            found.append(descend(self.problem, weights, point.prices, steps=STEPS))
        while len(found) > 1:
            found = sorted(found, key=lambda each: each.promise)[: (len(found) + 1) // 2]
            found = [descend(self.problem, each.weights, each.prices, steps=STEPS) for each in found]
        best = found[0]
        return self._settled(best.weights, best.prices)

    def _filled(self, weights: Floats) -> Floats:
        """Groups all of whose cells have room take it: measuring more never hurts; the largest norm is then 1."""
        norms = self.problem.norms(weights)
        weights, norms = weights / norms.max(), norms / norms.max()
        for group in np.flatnonzero(weights):
            here = (self.problem.places == group).any(axis=0)
            room = 1.0 - float(norms[here].max())
            weights[group] += room
            norms[here] += room
        return weights
