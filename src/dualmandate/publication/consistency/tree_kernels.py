"""The compiled loops of the passes along a chain and along a tree. Sums run in the order of their parts."""

from __future__ import annotations

from typing import Any

import numba


@numba.njit(cache=True, nogil=True)
def take_out(values: Any, starts: Any, shares: Any, sums: Any) -> None:
    """Write the sum of each group's parts, and leave of each part what is not its share of that sum."""
    for row in range(values.shape[0]):
        for group in range(starts.size - 1):
            total = 0.0
            for part in range(starts[group], starts[group + 1]):
                total += values[row, part]
            sums[row, group] = total
            for part in range(starts[group], starts[group + 1]):
                values[row, part] -= shares[part] * total


@numba.njit(cache=True, nogil=True)
def put_back(values: Any, parents: Any, shares: Any, sums: Any) -> None:
    """Add to each part its share of its group's sum."""
    for row in range(values.shape[0]):
        for part in range(parents.size):
            values[row, part] += shares[part] * sums[row, parents[part]]


@numba.njit(cache=True, nogil=True)
def add_children(values: Any, starts: Any, sums: Any) -> None:
    """Write the sum of the rows of each node's children."""
    sums[:] = 0
    for node in range(starts.size - 1):
        for child in range(starts[node], starts[node + 1]):
            for place in range(values.shape[1]):
                sums[node, place] += values[child, place]


@numba.njit(cache=True, nogil=True)
def hand_down(values: Any, parents: Any, shares: Any, classes: Any, gaps: Any) -> None:
    """Add to each child its share of what its parent has beyond the sum of its children."""
    for child in range(values.shape[0]):
        for place in range(values.shape[1]):
            values[child, place] += shares[child, classes[place]] * gaps[parents[child], place]


@numba.njit(cache=True, nogil=True)
def count_across(values: Any, areas: Any, groups: Any, onto: Any) -> None:
    """Add each node's cells to the areas and groups that count them; a negative number counts nowhere."""
    for node in range(values.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[areas[node], groups[cell]] += values[node, cell]


@numba.njit(cache=True, nogil=True)
def spread_across(numbers: Any, areas: Any, groups: Any, factor: Any, onto: Any) -> None:
    """Add to each node's cells the number of the area and group that counts them, times a factor."""
    for node in range(onto.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[node, cell] += factor * numbers[areas[node], groups[cell]]
