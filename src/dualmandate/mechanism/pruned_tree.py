"""A partition of ordered cells into parts, taken by the exponential mechanism and drawn exactly.

All cells are halved, the halves are halved, and so on to single cells. From the root downwards a node is either a part
as a whole, or split into its halves, or one of its cells is taken out and what lies before and after it are parts.
A record lies in one part, so that it moves the cost of a partition, the sum over its parts, no further than that of one
part. With a share q of splits and a share p of nodes of m cells that lose one,

    P(partition) ∝ Π (1 − q − p, or q, or p/m, at each node that is reached)·exp(−rate·Σ cost of its parts)

loses ε = rate·(the range of what a record moves costs by) [MT07], however many partitions there are. At the root q and
p are smaller by the factor `opened`: data in which nothing stands out stay one part, and what does stand out pays for
that once. The weights of all that can become of a node add up to Z = (1 − q − p)·exp(−rate·cost) + q·Z_left·Z_right +
p·mean_j exp(−rate·cost without cell j), and the draw takes each of the three with its share of Z. Where nothing tells
the cells of a node apart, it stays whole with a probability of at least about 1 − q − p: these shares are what keeps a
partition from following noise. A part that is worth it costs ln(1/q)/rate for each halving, and a single cell
ln(m/p)/rate, however deep it lies.

A draw is decided in floats with a bound on their error, and where that leaves it open, in balls, with more words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.mechanism.noise import NoiseKey
from dualmandate.mechanism.noise.laws import Floors, ball_of, floors_of, precision, resolve
from dualmandate.mechanism.noise.words import WORD_BITS, words_of_cell
from dualmandate.population.arrays import Floats, Indices, Integers

if TYPE_CHECKING:
    from flint import arb

GUARD_BITS = 64
UP, DOWN = 3, 1  # what a record above and below the middle of its part costs
COST_MOVES = Fraction(UP + DOWN, 2)  # half of the range that one record moves a cost by, which is all a choice sees
FEWEST_WITHOUT = 3  # cells of a node of which one is taken out: of two, halving does the same
UNIT = 2.0**-52  # relative, twice what one operation of floats errs by
LARGEST_SLACK = 1e-3  # of a probability: beyond, floats are not asked


@dataclass(frozen=True, eq=False)
class TreeCosts:
    """The nodes of a tree of halves, parents first, and what each costs as one part and where a cell is taken out."""

    nodes: Indices  # first cell, the one after its last, places of both halves (−1 where there are none); shape (·, 4)
    whole: Integers
    each_without: Integers  # of all nodes, one after another
    begins: Indices

    @property
    def cells(self) -> int:
        return int(self.nodes[0, 1])

    def size(self, node: int) -> int:
        return int(self.nodes[node, 1] - self.nodes[node, 0])

    def halves(self, node: int) -> list[int]:
        """The places of both halves; none of a single cell."""
        return [int(half) for half in self.nodes[node, 2:] if half >= 0]

    def without(self, node: int) -> Integers:
        """What is left costs when a cell is taken out, for each; empty where none is."""
        if self.size(node) < FEWEST_WITHOUT:
            return self.each_without[:0]
        return self.each_without[self.begins[node] : self.begins[node + 1]]

    def least(self, factor: int, price: int) -> int:
        """The least of factor·cost + price a part among all ways to halve; moves by `factor` where a cost moves by 1"""
        from dualmandate.mechanism.tree_kernel import least

        return least(self.whole, self.nodes, factor=factor, price=price)


def unevenness(counts: Integers) -> TreeCosts:
    """Of each node min_c Σ UP·(x_i − c)⁺ + DOWN·(c − x_i)⁺: how far its cells are from being alike.

    A whole number. A record that comes moves that sum by −DOWN to UP for every c, and so its minimum: by a range of
    UP + DOWN, as |x − c| would for a sum of half as many records. What stands out of a part costs more than what is
    lacking in it: most data are a few high cells among many low ones.
    """
    from dualmandate.mechanism.tree_kernel import halves, without_each

    nodes = halves(len(counts))
    whole, without, begins = without_each(np.ascontiguousarray(counts, dtype=np.int64), nodes, up=UP, down=DOWN)
    return TreeCosts(nodes, whole, without, begins)


@dataclass(frozen=True, eq=False)
class PrunedTree:
    """The law of a partition; q = `splits`, p = `taken_out`."""

    costs: TreeCosts
    rate: Fraction
    splits: Fraction
    taken_out: Fraction
    opened: Fraction = Fraction(1)

    def draw(self, key: NoiseKey) -> list[int]:
        """Where the parts begin, in order; a node's word is a function of its place."""
        nodes, cells = self.costs.nodes.tolist(), self.costs.cells
        starts, waiting = set(), [0]
        while waiting:
            node = waiting.pop()
            start, stop, *halves = nodes[node]
            starts.add(start)
            if stop - start == 1:
                continue
            chosen = self._chosen(node, words_of_cell(key, start * (cells + 1) + stop, level=0))
            if chosen == 1:
                waiting += halves
            elif chosen > 1:
                cell = start + chosen - 2
                starts |= {cell, cell + 1} - {stop}
        return sorted(starts)

    def _chosen(self, node: int, words: Iterator[int]) -> int:
        """What becomes of a node, as `shares` numbers it: by floats where they are sure of it."""
        first = next(words)
        bounds, slack = self._near_shares(node)
        at = first / 2**WORD_BITS
        chosen = int(np.searchsorted(bounds, at, side="right"))
        near = bounds[max(chosen - 1, 0) : chosen + 1]
        if slack < LARGEST_SLACK and chosen < len(bounds) and np.all(np.abs(near[near < 1.0 - slack] - at) > slack):
            return chosen

        def again() -> Iterator[int]:
            yield first
            yield from words

        return resolve(Fork(self, node), again())

    def _near_shares(self, node: int) -> tuple[Floats, float]:
        """`shares` in floats, the last of them 1, and how far each may be off."""
        sums, taken, slack = self._logarithms
        row = self._shares[self._row(node)]
        left, right = self.costs.halves(node)
        rate, total = float(self.rate), sums[node]
        found = [
            np.exp(np.log(row[0]) - rate * self.costs.whole[node] - total),
            np.exp(np.log(row[1]) + sums[left] + sums[right] - total),
        ]
        without = self.costs.without(node)
        if row[2] and len(without):
            weights = np.exp(-rate * (without - without.min()))
            found += list(np.exp(taken[node] - total) / weights.sum() * weights)
        bounds = np.cumsum(found)
        bounds[-1] = 1.0
        return bounds, slack

    @cached_property
    def _shares(self) -> Floats:
        """Of nodes that stay whole, are halved, lose a cell: of the root, of the others, of those of two cells."""
        rows = [self._given(0), (1 - self.splits - self.taken_out, self.splits, self.taken_out)]
        rows.append((1 - self.splits, self.splits, Fraction(0)))
        return np.array([[float(each) for each in row] for row in rows])

    def _row(self, node: int) -> int:
        return 0 if node == 0 else 1 if self.costs.size(node) >= FEWEST_WITHOUT else 2

    def _given(self, node: int) -> tuple[Fraction, Fraction, Fraction]:
        """The shares of a node that stays whole, is halved, loses a cell, where nothing tells its cells apart."""
        opened = self.opened if node == 0 else Fraction(1)
        taken_out = opened * self.taken_out if self.costs.size(node) >= FEWEST_WITHOUT else Fraction(0)
        return 1 - opened * self.splits - taken_out, opened * self.splits, taken_out

    @cached_property
    def _logarithms(self) -> tuple[Floats, Floats, float]:
        """ln Z and ln of its last term, of each node, and how far a share may be off that is made of them.

        With costs up to C and L = rate·C + 64, which bounds all logarithms, one node adds at most some 8 roundings of
        numbers up to L, and those of a sum of its m terms; errors of halves add up, over 2n nodes at most. A share is
        the exponential of three such numbers, and is summed up over m + 2.
        """
        from dualmandate.mechanism.tree_kernel import log_sums

        costs = (self.costs.whole, self.costs.each_without, self.costs.begins)
        rate, cells = float(self.rate), self.costs.cells
        sums, taken = log_sums(costs, self.costs.nodes, rate=rate, shares=self._shares)
        largest = rate * float(self.costs.whole[0]) + 2 * cells + 64
        return sums, taken, 4 * UNIT * (2 * cells * (8 * largest + 16) + 2 * cells * cells.bit_length())

    def shares(self, node: int, bits: int) -> list[arb]:
        """P(at most choice i | a node is reached): 0 it stays whole, 1 it is split, 2 + j it loses its jth cell."""
        weights, sums = self._weighed(bits)
        stays, splits, taken_out = self._given(node)
        left, right = self.costs.halves(node)
        found = [
            ball_of(stays) * weights[int(self.costs.whole[node])],
            ball_of(splits) * sums[left] * sums[right],
        ]
        without = self.costs.without(node)
        if len(without):
            each = ball_of(taken_out / len(without))
            found += [each * weights[cost] for cost in without.tolist()]
        return [part / sums[node] for part in accumulate(found)]

    def _weighed(self, bits: int) -> tuple[dict[int, arb], dict[int, arb]]:
        """exp(−rate·cost) of each cost there is, and Z of each node, in the present precision, which is `bits`."""
        if bits not in self._known:
            listed = np.unique(np.concatenate([self.costs.whole, self.costs.each_without])).tolist()
            weights = {cost: (-ball_of(self.rate * cost)).exp() for cost in listed}
            self._known[bits] = weights, self._sums(weights)
        return self._known[bits]

    def _sums(self, weights: Mapping[int, arb]) -> dict[int, arb]:
        sums: dict[int, arb] = {}
        for node in reversed(range(len(self.costs.nodes))):
            whole, halves = weights[int(self.costs.whole[node])], self.costs.halves(node)
            if not halves:
                sums[node] = whole
                continue
            stays, splits, taken_out = self._given(node)
            sums[node] = ball_of(stays) * whole + ball_of(splits) * sums[halves[0]] * sums[halves[1]]
            without = self.costs.without(node)
            if len(without):
                different, times = np.unique(without, return_counts=True)
                pairs = zip(different.tolist(), times.tolist(), strict=True)
                added = sum((weights[cost] * count for cost, count in pairs), start=ball_of(Fraction(0)))
                sums[node] += ball_of(taken_out / len(without)) * added
        return sums

    @cached_property
    def _known(self) -> dict[int, tuple[dict[int, arb], dict[int, arb]]]:
        return {}


@dataclass(frozen=True, eq=False)
class Fork:
    """What becomes of a node that is reached, as `PrunedTree.shares` numbers it."""

    tree: PrunedTree
    node: int

    @property
    def least(self) -> int | None:
        return 0

    @property
    def most(self) -> int | None:
        return 1 + len(self.tree.costs.without(self.node))

    def floors(self, values: range, bits: int) -> list[Floors]:
        with precision(bits + GUARD_BITS):
            if bits not in self._known:
                self._known[bits] = self.tree.shares(self.node, bits + GUARD_BITS)
            sums = self._known[bits]
            return [floors_of(sums[value], bits) if value != self.most else (2**bits, 2**bits) for value in values]

    @cached_property
    def _known(self) -> dict[int, list[arb]]:
        return {}
