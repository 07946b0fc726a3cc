"""A partition of ordered cells into parts, taken by the exponential mechanism and drawn exactly.

All cells are halved, the halves are halved, and so on to single cells. From the root downwards a node is either a part
as a whole, or split into its halves, or one of its cells is taken out and what lies before and after it are parts.
A record lies in one part, so where it moves the cost of any part by at most 1 it moves the cost of every partition, the
sum over its parts, by at most 1. With a share q of splits and a share p of nodes of m cells that lose one,

    P(partition) ∝ Π (1 − q − p, or q, or p/m, at each node that is reached)·exp(−rate·Σ cost of its parts)

loses ε = 2·rate [MT07], however many partitions there are. The weights of all that can become of a node add up to
Z = (1 − q − p)·exp(−rate·cost) + q·Z_left·Z_right + p·mean_j exp(−rate·cost without cell j), in balls, and the draw
takes each of the three with its share of Z. Where nothing tells the cells of a node apart, it stays whole with a
probability of at least about 1 − q − p: these shares are what keeps a partition from following noise. A part that is
worth it costs ln(1/q)/rate for each halving, and a single cell ln(m/p)/rate, however deep it lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heappush, heappushpop
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.mechanism.noise import NoiseKey
from dualmandate.mechanism.noise.laws import Floors, ball_of, floors_of, precision, resolve
from dualmandate.mechanism.noise.words import words_of_cell
from dualmandate.population.arrays import Integers

if TYPE_CHECKING:
    from flint import arb

GUARD_BITS = 64
FEWEST_WITHOUT = 3  # cells of a node of which one is taken out: of two, halving does the same
Span = tuple[int, int]  # the first cell of a node, and the one after its last


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """What a node costs as one part, and where one of its cells is taken out: whole numbers."""

    whole: int
    without: Integers  # shape (cells,), or (0,) where none is taken out


def unevenness(counts: Integers) -> dict[Span, NodeCosts]:
    """Of each node Σ |x_i − median|: how many records lie elsewhere than if all its cells were alike; parents first.

    A whole number. No constant c moves Σ |x_i − c| by more than 1 when a record comes or goes, so neither does the
    best one.
    """
    found, waiting = {}, [(0, len(counts))]
    while waiting:
        span = waiting.pop()
        values = counts[slice(*span)].tolist()
        before = _around_median(values)
        without = np.zeros(0, dtype=np.int64)
        if len(values) >= FEWEST_WITHOUT:
            after = _around_median(values[::-1])[::-1]
            without = np.array(before[:-1], dtype=np.int64) + np.array(after[1:], dtype=np.int64)
        found[span] = NodeCosts(before[-1], without)
        waiting += _halves(span)
    return found


def _halves(span: Span) -> list[Span]:
    start, stop = span
    middle = (start + stop) // 2
    return [(start, middle), (middle, stop)] if stop - start > 1 else []


def _around_median(values: list[int]) -> list[int]:
    """Σ |x_i − median| of the first 0, 1, 2, … values: the sum of the upper half less that of the lower."""
    lower: list[int] = []  # negative numbers, so that the largest comes first
    upper: list[int] = []
    below = above = 0
    found = [0]
    for value in values:
        if len(lower) == len(upper):  # the lower half gets one more
            least = heappushpop(upper, value)
            heappush(lower, -least)
            above, below = above + value - least, below + least
        else:
            largest = -heappushpop(lower, -value)
            heappush(upper, largest)
            above, below = above + largest, below + value - largest
        middle = -lower[0] if len(lower) > len(upper) else 0
        found.append(above - (below - middle))
    return found


def least_cost(costs: Mapping[Span, NodeCosts], factor: int, price: int) -> int:
    """The least of factor·cost + price a part among all ways to halve; it moves by `factor` where a cost moves by 1."""
    best: dict[Span, int] = {}
    for span in reversed(list(costs)):
        whole = factor * costs[span].whole + price
        halves = _halves(span)
        best[span] = min(whole, sum(best[half] for half in halves)) if halves else whole
    return best[next(iter(costs))]


@dataclass(frozen=True, eq=False)
class PrunedTree:
    """The law of a partition; q = `splits`, p = `taken_out`."""

    costs: Mapping[Span, NodeCosts]  # parents first
    rate: Fraction
    splits: Fraction
    taken_out: Fraction

    def draw(self, key: NoiseKey) -> list[int]:
        """Where the parts begin, in order; a node's word is a function of its place."""
        starts, waiting = set(), [next(iter(self.costs))]
        end = waiting[0][1]
        while waiting:
            start, stop = span = waiting.pop()
            starts.add(start)
            if stop - start == 1:
                continue
            chosen = resolve(Fork(self, span), words_of_cell(key, start * (end + 1) + stop, level=0))
            if chosen == 1:
                waiting += _halves(span)
            elif chosen > 1:
                cell = start + chosen - 2
                starts |= {cell, cell + 1} - {stop}
        return sorted(starts)

    def shares(self, span: Span, bits: int) -> list[arb]:
        """P(at most choice i | a node is reached): 0 it stays whole, 1 it is split, 2 + j it loses its jth cell."""
        weights, sums = self._weighed(bits)
        left, right = _halves(span)
        found = [self._stays(span) * weights[self.costs[span].whole], ball_of(self.splits) * sums[left] * sums[right]]
        without = self.costs[span].without
        if len(without):
            each = ball_of(self.taken_out / len(without))
            found += [each * weights[cost] for cost in without.tolist()]
        return [part / sums[span] for part in accumulate(found)]

    def _stays(self, span: Span) -> arb:
        return ball_of(1 - self.splits - (self.taken_out if len(self.costs[span].without) else 0))

    def _weighed(self, bits: int) -> tuple[dict[int, arb], dict[Span, arb]]:
        """exp(−rate·cost) of each cost there is, and Z of each node, in the present precision, which is `bits`."""
        if bits not in self._known:
            listed = {each.whole for each in self.costs.values()}
            listed.update(np.unique(np.concatenate([each.without for each in self.costs.values()])).tolist())
            weights = {cost: (-ball_of(self.rate * cost)).exp() for cost in listed}
            self._known[bits] = weights, self._sums(weights)
        return self._known[bits]

    def _sums(self, weights: Mapping[int, arb]) -> dict[Span, arb]:
        split = ball_of(self.splits)
        sums: dict[Span, arb] = {}
        for span in reversed(list(self.costs)):
            each, halves = self.costs[span], _halves(span)
            if not halves:
                sums[span] = weights[each.whole]
                continue
            sums[span] = self._stays(span) * weights[each.whole] + split * sums[halves[0]] * sums[halves[1]]
            if len(each.without):
                different, times = np.unique(each.without, return_counts=True)
                pairs = zip(different.tolist(), times.tolist(), strict=True)
                added = sum((weights[cost] * count for cost, count in pairs), start=ball_of(Fraction(0)))
                sums[span] += ball_of(self.taken_out / len(each.without)) * added
        return sums

    @cached_property
    def _known(self) -> dict[int, tuple[dict[int, arb], dict[Span, arb]]]:
        return {}


@dataclass(frozen=True, eq=False)
class Fork:
    """What becomes of a node that is reached, as `PrunedTree.shares` numbers it."""

    tree: PrunedTree
    span: Span

    @property
    def least(self) -> int | None:
        return 0

    @property
    def most(self) -> int | None:
        return 1 + len(self.tree.costs[self.span].without)

    def floors(self, values: range, bits: int) -> list[Floors]:
        with precision(bits + GUARD_BITS):
            if bits not in self._known:
                self._known[bits] = self.tree.shares(self.span, bits + GUARD_BITS)
            sums = self._known[bits]
            return [floors_of(sums[value], bits) if value != self.most else (2**bits, 2**bits) for value in values]

    @cached_property
    def _known(self) -> dict[int, list[arb]]:
        return {}
