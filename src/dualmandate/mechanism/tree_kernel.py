"""The compiled loops of a pruned tree: costs in whole numbers, and sums of weights in logarithms of floats.

What floats say of a draw is used only where it is clear of all their rounding (`PrunedTree.draw`).
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from dualmandate.population.arrays import Floats, Indices, Integers


def halves(cells: int) -> Indices:
    """The nodes of the tree, shape (2·cells − 1, 4): first cell, the one after its last, both halves' places or −1.

    Parents come before their halves.
    """
    return np.asarray(_halves(cells))


def without_each(counts: Integers, nodes: Indices, *, up: int, down: int) -> tuple[Integers, Integers, Indices]:
    """What each node costs whole, and each of its cells taken out; where in the second array each node begins."""
    begins = np.concatenate([[0], np.cumsum(nodes[:, 1] - nodes[:, 0])]).astype(np.intp)
    whole, without = np.zeros(len(nodes), dtype=np.int64), np.zeros(begins[-1], dtype=np.int64)
    _without_each(counts, nodes, begins, (up, down), whole, without)
    return whole, without, begins


def least(whole: Integers, nodes: Indices, *, factor: int, price: int) -> int:
    """The least of factor·cost + price a part among all ways to halve."""
    return int(_least(whole, nodes, factor, price))


def log_sums(
    costs: tuple[Integers, Integers, Indices], nodes: Indices, *, rate: float, shares: Floats
) -> tuple[Floats, Floats]:
    """ln Z of each node, and ln of that part of it in which one of its cells is taken out.

    `shares` are those of nodes that stay whole, are halved and lose a cell: of the root, of the others, and of those of
    two cells; shape (3, 3).
    """
    sums, taken = np.empty(len(nodes)), np.empty(len(nodes))
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    _log_sums(costs, nodes, rate, logs, sums, taken)
    return sums, taken


@numba.njit(cache=True, nogil=True)
def _halves(cells: Any) -> Any:
    nodes = np.empty((2 * cells - 1, 4), dtype=np.intp)
    nodes[0] = (0, cells, -1, -1)
    made = 1
    for place in range(2 * cells - 1):
        start, stop = nodes[place, 0], nodes[place, 1]
        if stop - start > 1:
            middle = (start + stop) // 2
            nodes[place, 2], nodes[place, 3] = made, made + 1
            nodes[made] = (start, middle, -1, -1)
            nodes[made + 1] = (middle, stop, -1, -1)
            made += 2
    return nodes


@numba.njit(cache=True, nogil=True)
def _around_quantile(values: Any, up: Any, down: Any, ranked: Any, out: Any) -> None:
    """min_c Σ up·(x − c)⁺ + down·(c − x)⁺ of the first 0, 1, 2, … values; c is their up/(up + down) quantile."""
    lower = below = above = 0  # how many values up to the quantile there are; their sum, and that of the others
    out[0] = 0
    for count in range(1, values.size + 1):
        value = values[count - 1]
        place = np.searchsorted(ranked[: count - 1], value)
        for other in range(count - 1, place, -1):
            ranked[other] = ranked[other - 1]
        ranked[place] = value
        wanted = -(-up * count // (up + down))
        if place < lower:
            below += value
            if wanted == lower:  # the largest of the lower ones is one of the others now
                below -= ranked[lower]
                above += ranked[lower]
        else:
            above += value
            if wanted > lower:
                below += ranked[lower]
                above -= ranked[lower]
        lower = wanted
        quantile = ranked[lower - 1]
        out[count] = up * (above - (count - lower) * quantile) + down * (lower * quantile - below)


@numba.njit(cache=True, nogil=True)
def _without_each(counts: Any, nodes: Any, begins: Any, sides: Any, whole: Any, without: Any) -> None:
    up, down = sides
    room = counts.size
    ranked = np.empty(room, dtype=np.int64)
    before, after = np.empty(room + 1, dtype=np.int64), np.empty(room + 1, dtype=np.int64)
    for node in range(len(nodes)):
        start, stop = nodes[node, 0], nodes[node, 1]
        size = stop - start
        _around_quantile(counts[start:stop], up, down, ranked, before)
        _around_quantile(counts[start:stop][::-1], up, down, ranked, after)
        whole[node] = before[size]
        for cell in range(size):
            without[begins[node] + cell] = before[cell] + after[size - 1 - cell]


@numba.njit(cache=True, nogil=True)
def _least(whole: Any, nodes: Any, factor: Any, price: Any) -> Any:
    best = np.empty(len(nodes), dtype=np.int64)
    for node in range(len(nodes) - 1, -1, -1):
        best[node] = factor * whole[node] + price
        if nodes[node, 2] >= 0:
            best[node] = min(best[node], best[nodes[node, 2]] + best[nodes[node, 3]])
    return best[0]


@numba.njit(cache=True, nogil=True)
def _added(one: Any, other: Any) -> Any:
    """ln(eᵃ + eᵇ)."""
    largest = max(one, other)
    if largest == -np.inf:
        return largest
    return largest + math.log1p(math.exp(min(one, other) - largest))


@numba.njit(cache=True, nogil=True)
def _log_sums(costs: Any, nodes: Any, rate: Any, logs: Any, sums: Any, taken: Any) -> None:
    whole, without, begins = costs
    for node in range(len(nodes) - 1, -1, -1):
        size = nodes[node, 1] - nodes[node, 0]
        taken[node] = -np.inf
        if size == 1:
            sums[node] = -rate * whole[node]
            continue
        row = 0 if node == 0 else 1 if size > 2 else 2
        total = logs[row, 0] - rate * whole[node]
        total = _added(total, logs[row, 1] + sums[nodes[node, 2]] + sums[nodes[node, 3]])
        if logs[row, 2] > -np.inf:
            mine = without[begins[node] : begins[node + 1]]
            smallest = mine.min()
            weight = 0.0
            for cost in mine:
                weight += math.exp(-rate * (cost - smallest))
            taken[node] = logs[row, 2] - math.log(size) + math.log(weight) - rate * smallest
            total = _added(total, taken[node])
        sums[node] = total
