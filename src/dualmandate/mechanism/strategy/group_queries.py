"""What a query takes of counts of groups of cells, without writing anything out over cells.

A product of vectors, one an attribute, is a product in every sector: averages of classes for some attributes, what is
left of a class for the others. X_S⁺ acts on the averages alone, and so do the rows of a table, attribute by attribute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.group_stack import GroupStack
from dualmandate.mechanism.strategy.parts import Sector
from dualmandate.workload import Factor

_NOTHING = 1e-12  # of the largest entry of a vector: differences below are rounding errors


def taken_of_rows(stack: GroupStack, query: Sequence[Floats]) -> Floats:
    """AX⁺q for the product q of one vector over merged levels an attribute: shares of each weighted row; (rows,)."""
    totals = [np.zeros([factor.rows for factor in factors]) for factors, _, _ in stack.layout]
    for sector in stack.roots:
        differences = {place: _difference(stack, query[place], place, one) for place, one in sector}
        if all(each.any() for each in differences.values()):
            averages = _solved(stack, query, sector)
            for total, (factors, _, _) in zip(totals, stack.layout, strict=True):
                _add(stack, total, factors, differences=differences, averages=averages)
    pairs = zip(totals, stack.layout, strict=True)
    return np.concatenate([total.reshape(-1)[kept] * weights[kept] for total, (_, weights, kept) in pairs])


def _difference(stack: GroupStack, vector: Floats, place: int, one: int) -> Floats:
    """What is left of a vector on one class of levels, less its mean; 0 elsewhere."""
    levels = stack.part.levels[place].levels_of(one)
    here, found = vector[levels], np.zeros(len(vector))
    centered = here - here.mean()
    largest = float(np.abs(vector).max(initial=0.0))
    found[levels] = np.where(np.abs(centered) > _NOTHING * largest, centered, 0.0)
    return found


def _solved(stack: GroupStack, query: Sequence[Floats], sector: Sector) -> Floats:
    """X_S⁺ applied to the averages of the other attributes, less what is public; one axis an attribute."""
    fixed, levels = dict(sector), stack.part.levels
    averages = [levels[place].averages(each, 0) for place, each in enumerate(query) if place not in fixed]
    values = reduce(np.multiply.outer, averages, np.ones(()))
    orbits, root = stack.roots[sector]
    found = np.zeros(math.prod(values.shape))
    found[orbits] = stack.inverses[sector][1] @ (values.reshape(-1)[orbits] @ root)
    return found.reshape(values.shape)


def _add(
    stack: GroupStack, total: Floats, factors: Sequence[Factor], *, differences: dict[int, Floats], averages: Floats
) -> None:
    """Add what the rows of a table see of a sector, in place."""
    seen = {place: np.asarray(factors[place].apply(each, 0)) for place, each in differences.items()}
    if not all(each.any() for each in seen.values()):
        return
    others = [place for place in range(len(factors)) if place not in seen]
    values = averages
    for axis, place in enumerate(others):
        values = factors[place].apply(stack.part.levels[place].from_averages(values, axis), axis)
    values = reduce(np.multiply.outer, seen.values(), values)
    total += values.transpose([[*others, *seen].index(place) for place in range(len(factors))])
