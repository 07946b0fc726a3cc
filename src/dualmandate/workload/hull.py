"""Corners: a sum of products is linear in what one attribute contributes, so it is largest at a corner of the choices.

Only choices on a line or in a plane are looked at: that is where prefix sums, suffix sums, ranges of values and all
straight trade-offs lie, and there the corners are found exactly, in integers.
"""

from __future__ import annotations

import numpy as np

from dualmandate.workload.factor import LARGEST_INTEGER, Integers, Numbers

FEWEST_POINTS = 8  # below, corners are not looked for
MOST_OUTLINE_POINTS = 10**5  # of the outline from which the corners are found


def corners(points: Numbers) -> Integers:
    """Rows among which every linear function of the rows is largest; all rows where they fill more than a plane."""
    everything = np.arange(len(points))
    if len(points) < FEWEST_POINTS or 8 * int(np.abs(points).max()) ** 3 >= LARGEST_INTEGER:
        return everything
    steps = points - points[0]
    moved = np.flatnonzero(steps.any(axis=1))
    if len(moved) == 0:
        return everything[:1]
    first = steps[moved[0]]
    along = int(np.argmax(first != 0))
    off_line = np.flatnonzero(np.any(steps * first[along] != steps[:, [along]] * first, axis=1))
    if len(off_line) == 0:
        return np.array([np.argmin(points[:, along]), np.argmax(points[:, along])])
    second = steps[off_line[0]]
    across = int(np.argmax(first * second[along] != second * first[along]))
    area = int(first[along] * second[across] - first[across] * second[along])
    of_first = steps[:, along] * second[across] - steps[:, across] * second[along]
    of_second = first[along] * steps[:, across] - first[across] * steps[:, along]
    if bool(np.any(area * steps != of_first[:, None] * first + of_second[:, None] * second)):
        return everything
    return _outline_corners(points[:, along], points[:, across])


def corners_within(points: Numbers, key: Integers) -> Integers:
    """`corners` of the rows of each key."""
    order = np.argsort(key, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    return np.concatenate([part[corners(points[part])] for part in parts])


def _outline_corners(x: Numbers, y: Numbers) -> Integers:
    order = np.lexsort((y, x))
    ends = np.flatnonzero(np.diff(x[order]))
    outline = order[np.unique(np.concatenate([[0], ends, ends + 1, [len(order) - 1]]))]
    if len(outline) > MOST_OUTLINE_POINTS:
        return np.arange(len(x))
    places = list(zip(x[outline].tolist(), y[outline].tolist(), strict=True))
    found = {*_chain(places, range(len(places))), *_chain(places, range(len(places) - 1, -1, -1))}
    return np.asarray(outline[sorted(found)])


def _chain(places: list[tuple[int, int]], walk: range) -> list[int]:
    """One side of the outline: points are dropped while the walk does not turn left."""
    chain: list[int] = []
    for here in walk:
        while len(chain) > 1 and _turn(places[chain[-2]], places[chain[-1]], places[here]) <= 0:
            chain.pop()
        chain.append(here)
    return chain


def _turn(one: tuple[int, int], two: tuple[int, int], three: tuple[int, int]) -> int:
    return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])
