"""Differences of columns written out, for the few tables that fit no product form and are small."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from dualmandate.workload.extremum import CHUNK
from dualmandate.workload.factor import LARGEST_INTEGER, Integers
from dualmandate.workload.levels import row_ids
from dualmandate.workload.neighbors import Question

LARGEST_COMPARISON = 10**9  # differences of entries that are looked at


def farthest(question: Question) -> int | None:
    """The largest L1 distance of two columns of neighbors, merged cells compared one by one; None for too many."""
    levels = [axis.essential for axis in question.axes]
    count = math.prod(len(each) for each in levels)
    rows = sum(table.query_count for table in question.tables)
    sizes = zip(question.tables, question.coefficients, strict=True)
    bound = sum(2 * table.largest_entry * table.query_count * weight for table, weight in sizes)
    if rows * count**2 > LARGEST_COMPARISON or bound >= LARGEST_INTEGER:
        return None
    possible, group = _cells(question, levels)
    blocks = [
        weight * reduce(np.kron, [factor.columns(each) for factor, each in zip(table.factors, levels, strict=True)])
        for table, weight in zip(question.tables, question.coefficients, strict=True)
    ]
    columns = np.concatenate(blocks)[:, possible].T
    best = 0
    step = max(1, CHUNK // columns.size)
    for begin in range(0, len(columns), step):
        some = slice(begin, begin + step)
        distances = np.abs(columns[some, None, :] - columns[None, :, :]).sum(axis=2)
        best = max(best, int(np.where(group[some, None] == group[None, :], distances, 0).max()))
    return best


def _cells(question: Question, levels: list[Integers]) -> tuple[Integers, Integers]:
    """Merged cells that can occur, by their number in the product of levels, and the group of each under invariants."""
    grid = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(-1, len(levels))
    possible = np.ones(len(grid), dtype=np.bool_)
    for number in range(len(question.axes[0].zeros)):
        agrees = np.ones(len(grid), dtype=np.bool_)
        for axis, place in zip(question.axes, grid.T, strict=True):
            mask = axis.zeros[number]
            agrees &= True if mask is None else mask[place]
        possible &= ~agrees
    grid = grid[possible]
    groups: list[Integers] = []
    for labels in question.invariants:
        of_cells = [of_levels[grid[:, place]] for place, of_levels in labels.items()]
        inside = np.ones(len(grid), dtype=np.bool_)
        for each in of_cells:
            inside &= each >= 0
        groups.append(np.where(inside, row_ids(of_cells, len(grid)), -1))
    return np.flatnonzero(possible), row_ids(groups, len(grid))
