"""Histograms and queries in a sector, and back: differences of some classes of levels, averages over all others.

In the sector S a histogram is seen through ⊗_{(i, c) ∈ S} (I − J/m on the class c) ⊗ ⊗_{i ∉ S} (averages of classes,
1ᵀ/√m). Sectors do not overlap, so a strategy that treats exchangeable levels alike has AᵀA = Σ_S X_S ⊗ P_S.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.workload_blocks import Key, Sector, WorkloadBlock

CHUNK = 2**23  # numbers that are held while errors of queries are added up


def copies(part: WorkloadBlock, sector: Sector) -> int:
    """Combinations of levels of the classes that a sector looks at the differences of."""
    return math.prod(int(part.levels[place].members[one]) for place, one in sector)


def component(part: WorkloadBlock, counts: Floats, sector: Sector) -> Floats:
    """Histograms over merged cells, shape (k, *merged_shape), in a sector; shape (k, orbits of the sector, copies)."""
    fixed, values = dict(sector), counts
    for place, level in enumerate(part.levels):
        if place in fixed:
            values = np.take(values, level.levels_of(fixed[place]), axis=1 + place)
            values = values - values.mean(axis=1 + place, keepdims=True)
        else:
            values = level.averages(values, 1 + place)
    order = [1 + place for place in range(len(part.levels)) if place not in fixed]
    shaped = values.transpose([0, *order, *(1 + place for place in fixed)])
    return shaped.reshape(len(counts), math.prod(shaped.shape[1 : 1 + len(order)]), -1)


def add_component(part: WorkloadBlock, total: Floats, values: Floats, sector: Sector) -> None:
    """Add numbers of a sector, shape (k, orbits of the sector, copies), to counts over merged cells, in place."""
    fixed, levels = dict(sector), part.levels
    averaged = [place for place in range(len(levels)) if place not in fixed]
    shape = [part.orbit_shape[place] for place in averaged]
    full = values.reshape(len(values), *shape, *(int(levels[place].members[one]) for place, one in fixed.items()))
    order = [*averaged, *fixed]
    full = full.transpose([0, *(1 + order.index(place) for place in range(len(levels)))])
    index = [slice(None)] + [
        level.levels_of(fixed[place]) if place in fixed else np.arange(level.merged)
        for place, level in enumerate(levels)
    ]
    for place, level in enumerate(levels):
        if place in fixed:
            full = full - full.mean(axis=1 + place, keepdims=True)
        else:
            full = level.from_averages(full, 1 + place)
    total[np.ix_(np.arange(len(values)), *index[1:])] += full  # type: ignore[arg-type]


def squared_lengths(part: WorkloadBlock, key: Key, inverses: Mapping[Sector, tuple[Indices, Floats]]) -> Floats:
    """Squared length of each row of FA⁺ for one table, by rows of each factor.

    `inverses` has for each sector some of its orbits, and B_S over them (orbits × measurements) with X_S⁻¹ = B_SB_Sᵀ.
    """
    factors, levels = part.tables[key], part.levels
    maps = [level.averaged(factor) for level, factor in zip(levels, factors, strict=True)]
    spreads: dict[tuple[int, int], Floats] = {}
    total: Floats = np.zeros(tuple(factor.rows for factor in factors))
    for sector, (orbits, inverse) in inverses.items():
        for place, one in sector - spreads.keys():
            spreads[place, one] = levels[place].spread(factors[place], one)
        if not all(spreads[each].any() for each in sector):
            continue
        fixed = [place for place, _ in sector]
        averaged = [place for place in range(len(levels)) if place not in fixed]
        squares = _squares([maps[place] for place in averaged], orbits, inverse)
        shaped = reduce(np.multiply.outer, [spreads[each] for each in sector], squares)
        order = [*averaged, *fixed]
        total += shaped.transpose([order.index(place) for place in range(len(order))])
    return total


def _squares(maps: Sequence[Floats], orbits: Indices, inverse: Floats) -> Floats:
    """Σ over measured rows of (F·B_S)², by rows of each factor of an averaged attribute."""
    shape = tuple(each.shape[1] for each in maps)
    total = np.zeros(tuple(len(each) for each in maps))
    width = max(1, CHUNK // max(total.size, math.prod(shape)))
    for start in range(0, inverse.shape[1], width):
        some = inverse[:, start : start + width]
        values = np.zeros((math.prod(shape), some.shape[1]))
        values[orbits] = some
        values = values.reshape(*shape, some.shape[1])
        for axis, each in enumerate(maps):
            values = np.moveaxis(np.tensordot(each, values, axes=([1], [axis])), 0, axis)
        total += np.square(values).sum(axis=-1)
    return total
