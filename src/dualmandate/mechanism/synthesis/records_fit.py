"""A file of whole records whose marginals are nearly what was estimated, for domains that are too large to write out.

Tables that are counted from one file add up wherever they overlap, and nothing in them is below 0. The file is looked
for record by record: a record takes another level of an attribute where that brings the marginals of all tables nearer
to their estimates, Σ (count − estimate)²/variance, until next to none does, or the file is nearer to the estimates than
these are to the truth: what a further pass would fit is noise. It begins with records that were dealt from a model, or
that have the right numbers in each level, dealt at random by a public seed; everything it rests on was published, and
it can be made again.

With D = count − estimate and w = 1/variance of each marginal, a change of one level from l₀ to l costs
2·Σ w·(D[l] − D[l₀] + 1) over the marginals of that attribute, the other levels of the record as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Floats, Indices, Integers

MOST_LEVELS = 2**28  # of all records and attributes together
MOST_WORK = 2.0e11  # numbers that are looked at: about four minutes
LEAST_SWEEPS, MOST_SWEEPS = 2, 8
SETTLED = 5e-3  # of all levels: where fewer change in a sweep, a further one brings next to nothing
PUBLIC_SEED = 2019  # records are dealt from it; nothing confidential comes near
Levels = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Target:
    """The marginal of some attributes as it was estimated, and what its squared errors weigh."""

    places: tuple[int, ...]
    estimates: Floats
    weight: float  # > 0


@dataclass(frozen=True, eq=False)
class FittedRecords:
    """Whole records by their levels (attributes × records), and whether their fit came to its end."""

    levels: Levels = field(repr=False)
    finished: bool
    distance: float  # root mean squared, of the numbers of all marginals from their estimates

    def marginal(self, places: Sequence[int], sizes: Sequence[int]) -> Integers:
        """How many records have each combination of levels of some attributes, in the shape of these."""
        shape = [sizes[place] for place in places]
        cells = np.zeros(self.levels.shape[1], dtype=np.int64)
        for place, size in zip(places, shape, strict=True):
            cells = cells * size + self.levels[place]
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def is_affordable(sizes: Sequence[int], sets: Sequence[Sequence[int]], records: float) -> bool:
    """Whether a file of so many records can be held, and each of them looked at at least twice."""
    return records * len(sizes) <= MOST_LEVELS and 2 * records * looked_at(sizes, sets) <= MOST_WORK


def looked_at(sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> float:
    """Numbers that are looked at to change all levels of one record."""
    return float(sum(sizes[place] for places in sets for place in places))


def fitted_records(
    sizes: Sequence[int], targets: Sequence[Target], records: int, *, start: Levels | None = None
) -> FittedRecords:
    """The file of so many records that is found, from those of `start` on if there are any; deterministic."""
    levels = _dealt(sizes, targets, records) if start is None else start.copy()
    layout = MarginalViews.of(sizes, targets)
    sweeps = int(
        min(MOST_SWEEPS, max(1.0, MOST_WORK / max(1.0, records * looked_at(sizes, [t.places for t in targets]))))
    )
    finished = records == 0
    cells = sum(target.estimates.size for target in targets)
    for sweep in range(0 if finished else sweeps + 1):
        errors = layout.errors(levels, sizes, targets)
        finished = sweep >= LEAST_SWEEPS and layout.misfit(errors, targets) <= cells
        if finished or sweep == sweeps:
            break
        finished = _sweep(levels, errors, *layout.arrays) <= SETTLED * levels.size
        if finished:
            break
    found = FittedRecords(levels, finished, 0.0)
    squares = [np.square(found.marginal(each.places, sizes) - each.estimates) for each in targets]
    count = sum(each.size for each in squares)
    return FittedRecords(levels, finished, math.sqrt(math.fsum(float(each.sum()) for each in squares) / max(count, 1)))


def _dealt(sizes: Sequence[int], targets: Sequence[Target], records: int) -> Levels:
    """Records with about the estimated number in each level of each attribute, attributes dealt independently."""
    sums, weights = [np.zeros(size) for size in sizes], np.zeros(len(sizes))
    for target in targets:
        for axis, place in enumerate(target.places):
            others = tuple(other for other in range(len(target.places)) if other != axis)
            sums[place] += target.weight * target.estimates.sum(axis=others)
            weights[place] += target.weight
    generator, levels = np.random.default_rng(PUBLIC_SEED), np.zeros((len(sizes), records), dtype=np.uint16)
    for place, each in enumerate(sums):
        if weights[place] > 0:
            shares = np.maximum(each, 0.0)
            shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(each), 1.0 / len(each))
            levels[place] = generator.permutation(np.repeat(np.arange(len(each)), _whole(shares * records)))
    return levels


def _whole(numbers: Floats) -> Integers:
    """Whole numbers that add up to what these do: rounded down, the largest remainders up."""
    found = np.floor(numbers).astype(np.int64)
    missing = round(float(numbers.sum())) - int(found.sum())
    found[np.argsort(found - numbers, kind="stable")[:missing]] += 1
    return found


@dataclass(frozen=True, eq=False)
class MarginalViews:
    """Where the errors of each marginal stand, once for each of its attributes, whose levels are then side by side.

    A view is one marginal, arranged for one of its attributes: `starts` is its first number, and the other attributes
    follow with their strides. Views of one attribute stand together, and so do those of one marginal (`siblings`).
    """

    arrays: tuple[NDArray[Any], ...]
    views: tuple[tuple[int, int], ...]  # the number of a target and the axis whose levels are side by side
    starts: Indices

    @classmethod
    def of(cls, sizes: Sequence[int], targets: Sequence[Target]) -> MarginalViews:
        views = sorted(
            ((n, axis) for n, target in enumerate(targets) for axis in range(len(target.places))),
            key=lambda view: (targets[view[0]].places[view[1]], view),
        )
        numbers = {view: number for number, view in enumerate(views)}
        cells = [targets[n].estimates.size for n, _ in views]
        starts = np.cumsum([0, *cells])
        width = max((len(target.places) for target in targets), default=1)
        places = np.zeros((len(views), width), dtype=np.int64)  # of the attributes, the own one last
        strides = np.zeros((len(views), width), dtype=np.int64)
        siblings = np.full((len(views), width), -1, dtype=np.int64)
        for number, (n, axis) in enumerate(views):
            order = _turned(targets[n], axis)
            own = [targets[n].places[each] for each in order]
            shape = [sizes[place] for place in own]
            places[number, : len(own)] = own
            strides[number, : len(own)] = np.cumprod([1, *shape[:0:-1]])[::-1]
            siblings[number, : len(own)] = [numbers[n, each] for each in range(len(own))]
        lengths = np.array([len(targets[n].places) for n, _ in views], dtype=np.int64)
        weights = np.array([targets[n].weight for n, _ in views])
        of_place = np.searchsorted([targets[n].places[axis] for n, axis in views], np.arange(len(sizes) + 1))
        arrays = (np.array(sizes), of_place, starts, places, strides, siblings, lengths, weights)
        return cls(arrays, tuple(views), starts)

    def errors(self, levels: Levels, sizes: Sequence[int], targets: Sequence[Target]) -> Floats:
        """w·D of every view, one after the other."""
        found, fitted = np.empty(int(self.starts[-1])), FittedRecords(levels, False, 0.0)
        known: dict[int, Floats] = {}
        for number, (n, axis) in enumerate(self.views):
            if n not in known:
                known[n] = targets[n].weight * (fitted.marginal(targets[n].places, sizes) - targets[n].estimates)
            turned = known[n].transpose(_turned(targets[n], axis))
            found[self.starts[number] : self.starts[number + 1]] = turned.reshape(-1)
        return found

    def misfit(self, errors: Floats, targets: Sequence[Target]) -> float:
        """Σ D²/variance over every number of the targets: their count, where D is as large as the noise."""
        total = 0.0
        for number, (n, axis) in enumerate(self.views):
            if axis == 0:
                own = errors[self.starts[number] : self.starts[number + 1]]
                total += float(np.square(own).sum()) / targets[n].weight
        return total


def _turned(target: Target, axis: int) -> list[int]:
    return [*(each for each in range(len(target.places)) if each != axis), axis]


@numba.njit(cache=True, nogil=True)
def _sweep(
    levels: Levels,
    errors: Floats,
    sizes: Integers,
    of_place: Integers,
    starts: Integers,
    places: Integers,
    strides: Integers,
    siblings: Integers,
    lengths: Integers,
    weights: Floats,
) -> int:
    """Each level of each record once: the best other one is taken where it is better; how many were."""
    changed = 0
    costs = np.empty(sizes.max())
    rows = np.empty(len(starts), dtype=np.int64)
    for place in range(levels.shape[0]):  # one attribute after the other: what its levels cost stays at hand
        first, last, size = of_place[place], of_place[place + 1], sizes[place]
        if first == last:
            continue
        for record in range(levels.shape[1]):
            costs[:size] = 0.0
            whole = 0.0
            for view in range(first, last):
                row = starts[view]
                for axis in range(lengths[view] - 1):
                    row += strides[view, axis] * levels[places[view, axis], record]
                rows[view] = row
                whole += weights[view]
                for level in range(size):
                    costs[level] += errors[row + level]
            now, best = np.int64(levels[place, record]), 0
            for level in range(1, size):
                if costs[level] < costs[best]:
                    best = level
            if best == now or costs[now] - costs[best] <= whole:
                continue
            changed += 1
            for view in range(first, last):
                for sibling in range(lengths[view]):
                    other = siblings[view, sibling]
                    if other == view:
                        errors[rows[view] + now] -= weights[view]
                        errors[rows[view] + best] += weights[view]
                        continue
                    cell, step = starts[other], 0
                    for axis in range(lengths[other]):
                        if places[other, axis] == place:
                            step = strides[other, axis]
                        else:
                            cell += strides[other, axis] * levels[places[other, axis], record]
                    errors[cell + step * now] -= weights[view]
                    errors[cell + step * best] += weights[view]
            levels[place, record] = best
    return changed
