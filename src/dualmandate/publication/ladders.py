"""Partitions that nest, one in the next finer one: levels of a geography, or of groupings of cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.population.arrays import Integers
from dualmandate.publication.sparse_counting import NOWHERE, single_rows
from dualmandate.workload import Factor, Table

OUTSIDE = -1  # the step of a partition that is none of a ladder's
REQUIRED = 10**6  # what a partition that must be held counts more than one that need not


@dataclass(frozen=True, eq=False)
class Ladder:
    """Nested partitions: the finest one, the coarser ones by its groups, and each given partition's step from the top.

    Step 0 is all in one. Partitions that are none of the steps lie within no step but the finest.
    """

    finest: Integers = field(repr=False)
    coarser: tuple[Integers, ...] = field(repr=False)
    steps: tuple[int, ...]

    @property
    def one_level(self) -> Integers:
        """The finest groups in their own order."""
        return np.arange(int(self.finest.max()) + 1, dtype=np.int64)

    @property
    def below(self) -> Integers:
        """The one group that all of them lie in."""
        return np.zeros_like(self.one_level)

    @property
    def last(self) -> int:
        """The step of the finest partition."""
        return len(self.coarser) + 1

    def rows(self, own: Integers, orders: Sequence[Integers], step: int) -> Integers:
        """The row of a partition at each place of a step: a step's groups are named by the first of their kind."""
        firsts = np.unique(self.finest, return_index=True)[1]
        own_of_finest = own[firsts]
        if step == 0:
            return own_of_finest[:1]
        if step - 1 == len(self.coarser):
            return own_of_finest[orders[-1]]
        level = self.coarser[step - 1]
        named = np.empty(int(level.max()) + 1, dtype=np.int64)
        named[level] = own_of_finest
        return named[orders[step - 1]]

    def step_for(self, own: Integers) -> int:
        """The coarsest step whose groups a partition takes as wholes."""
        firsts = np.unique(self.finest, return_index=True)[1]
        labels = own[firsts]
        if np.all(labels == labels[0]):
            return 0
        fitting = (step for step, level in enumerate(self.coarser, start=1) if _within(level, labels))
        return next(fitting, self.last)


def ladder_of(partitions: Sequence[Integers]) -> Ladder | None:
    """The ladder of partitions that all nest; None where two do not."""
    found = longest_ladder(partitions, range(len(partitions)), range(len(partitions)))
    return None if found is None or OUTSIDE in found.steps else found


def longest_ladder(partitions: Sequence[Integers], usable: Collection[int], required: Collection[int]) -> Ladder | None:
    """The ladder that holds the most of the usable partitions, and all that are required; None where these do not nest.

    Its finest step is a partition that all others lie in; where no such one is given, the coarsest there is.
    """
    names = [_named(each) for each in partitions]
    keys = [each.tobytes() for each in names]
    different = {key: i for i, key in reversed(list(enumerate(keys)))}
    worth = {key: sum(1 for i in usable if keys[i] == key) for key in different}
    for i in required:
        worth[keys[i]] += REQUIRED
    rungs = sorted((key for key in different if worth[key]), key=lambda key: int(names[different[key]].max()))
    chosen = _heaviest(rungs, names, different, worth)
    if any(keys[i] not in chosen for i in required):
        return None
    # Groups keep the numbers that their tables give them, so that large tables are read as they stand.
    finest = partitions[different[chosen[-1]]] if chosen else np.zeros_like(names[0])
    proper = [key for key in chosen if names[different[key]].max() > 0]
    if not all(_within(finest, each) for each in names):
        finest = np.unique(np.stack([finest, *names]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        above = proper
    else:
        above = proper[:-1]
    firsts = np.unique(finest, return_index=True)[1]
    coarser = tuple(partitions[different[key]][firsts] for key in above)
    steps = {key: 1 + place for place, key in enumerate(proper)} | dict.fromkeys(set(chosen) - set(proper), 0)
    return Ladder(finest, coarser, tuple(steps.get(key, OUTSIDE) for key in keys))


def _heaviest(
    rungs: Sequence[bytes], names: Sequence[Integers], places: dict[bytes, int], worth: dict[bytes, int]
) -> list[bytes]:
    """The nested ones that are worth the most together, coarsest first; `rungs` are in the order of their sizes."""
    best: list[tuple[int, int]] = []  # what each is worth with those above it, and which comes before it
    for i, key in enumerate(rungs):
        own = names[places[key]]
        above = [(best[j][0], j) for j in range(i) if _within(own, names[places[rungs[j]]])]
        most, before = max(above, default=(0, OUTSIDE))
        best.append((most + worth[key], before))
    chosen, place = list[bytes](), max(range(len(best)), key=lambda i: (best[i][0], i), default=OUTSIDE)
    while place != OUTSIDE:
        chosen.insert(0, rungs[place])
        place = best[place][1]
    return chosen


def _named(labels: Integers) -> Integers:
    """The same parts, numbered from 0 in the order of their first members."""
    _, firsts, members = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[members.reshape(-1)]


def _within(fine: Integers, coarse: Integers) -> bool:
    """Whether each group of the finer partition lies in one group of the coarser."""
    own = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    own[fine] = coarse
    return bool(np.array_equal(own[fine], coarse))


def counted_rows(factor: Factor) -> Integers | None:
    """The row that each level is counted in, with weight 1, or `NOWHERE`; None where it is counted otherwise."""
    found = single_rows(factor)
    if found is None or (found[1] is not None and np.any(found[1][found[0] != NOWHERE] != 1)):
        return None
    return found[0]


def joined(labels: Sequence[Integers], table: Table, rest: Sequence[int]) -> Integers:
    """The table's row of each cell of the rest, row-major in its other attributes; `NOWHERE` where some is."""
    found = np.zeros(1, dtype=np.int64)
    for each, other in zip(labels, rest, strict=True):
        nowhere = np.logical_or.outer(found == NOWHERE, each == NOWHERE)
        sums = np.add.outer(found * table.factors[other].rows, each)
        found = np.where(nowhere, NOWHERE, sums).reshape(-1)
    return found
