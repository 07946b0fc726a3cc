"""The compiled loops of the passes along a chain and along a tree. Sums run in the order of their parts."""

from __future__ import annotations

from typing import Any

import numba


def _take_out_loop(values: Any, starts: Any, shares: Any, sums: Any) -> None:
    """Write the sum of each group's parts, and leave of each part what is not its share of that sum."""
    for row in range(values.shape[0]):
        for group in range(starts.size - 1):
            total = 0.0
            for part in range(starts[group], starts[group + 1]):
                total += values[row, part]
            sums[row, group] = total
            for part in range(starts[group], starts[group + 1]):
                values[row, part] -= shares[part] * total


def _put_back_loop(values: Any, parents: Any, shares: Any, sums: Any) -> None:
    """Add to each part its share of its group's sum."""
    for row in range(values.shape[0]):
        for part in range(parents.size):
            values[row, part] += shares[part] * sums[row, parents[part]]


def _add_children_loop(values: Any, starts: Any, sums: Any) -> None:
    """Write the sum of the rows of each node's children."""
    sums[:] = 0
    for node in range(starts.size - 1):
        for child in range(starts[node], starts[node + 1]):
            for place in range(values.shape[1]):
                sums[node, place] += values[child, place]


def _hand_down_loop(values: Any, parents: Any, shares: Any, classes: Any, gaps: Any) -> None:
    """Add to each child its share of what its parent has beyond the sum of its children."""
    for child in range(values.shape[0]):
        for place in range(values.shape[1]):
            values[child, place] += shares[child, classes[place]] * gaps[parents[child], place]


def _count_across_loop(values: Any, areas: Any, groups: Any, onto: Any) -> None:
    """Add each node's cells to the areas and groups that count them; a negative number counts nowhere."""
    for node in range(values.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[areas[node], groups[cell]] += values[node, cell]


def _spread_across_loop(numbers: Any, areas: Any, groups: Any, factor: Any, onto: Any) -> None:
    """Add to each node's cells the number of the area and group that counts them, times a factor."""
    for node in range(onto.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[node, cell] += factor * numbers[areas[node], groups[cell]]


take_out = numba.njit(cache=True, nogil=True)(_take_out_loop)
put_back = numba.njit(cache=True, nogil=True)(_put_back_loop)
add_children = numba.njit(cache=True, nogil=True)(_add_children_loop)
hand_down = numba.njit(cache=True, nogil=True)(_hand_down_loop)
count_across = numba.njit(cache=True, nogil=True)(_count_across_loop)
spread_across = numba.njit(cache=True, nogil=True)(_spread_across_loop)
