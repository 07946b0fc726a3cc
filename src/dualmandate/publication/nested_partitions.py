"""Which partitions nest, one in the next finer one: levels of a geography, or of groupings of cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from dualmandate.population.arrays import Integers
from dualmandate.publication.consistency.partitions import lies_within, renumbered

OUTSIDE = -1  # This is the step of a partition that is none of a chain's.
Worth = tuple[int, int]  # How many required partitions, and how many usable ones.


@dataclass(frozen=True, eq=False)
class NestedPartitions:
    """A chain of partitions: the finest, the coarser ones by its groups, and each given partition's step from the top.

    Step 0 is all in one. Partitions that are none of the steps lie within no step but the finest.
    """

    finest: Integers = field(repr=False)
    coarser: tuple[Integers, ...] = field(repr=False)
    steps: tuple[int, ...]

    @property
    def one_level(self) -> tuple[Integers, ...]:
        """The parents of the finest groups where there is nothing between them and all in one."""
        return (np.zeros(int(self.finest.max()) + 1, dtype=np.int64),)

    @property
    def in_order(self) -> tuple[Integers, ...]:
        """Which finest group stands where, then: each at its own number."""
        return (np.arange(int(self.finest.max()) + 1, dtype=np.int64),)

    @property
    def last(self) -> int:
        """The step of the finest partition."""
        return len(self.coarser) + 1

    def rows(self, own: Integers, orders: Sequence[Integers], step: int) -> Integers:
        """The row of a partition at each place of a step: a step's groups are named by the first of their kind."""
        own_of_finest = own[self._firsts]
        if step == 0:
            return own_of_finest[:1]
        if step == self.last:
            return own_of_finest[orders[-1]]
        level = self.coarser[step - 1]
        named = np.empty(int(level.max()) + 1, dtype=np.int64)
        named[level] = own_of_finest
        return named[orders[step - 1]]

    def step_for(self, own: Integers) -> int:
        """The coarsest step whose groups a partition takes as wholes."""
        labels = own[self._firsts]
        if np.all(labels == labels[0]):
            return 0
        fitting = (step for step, level in enumerate(self.coarser, start=1) if lies_within(level, labels))
        return next(fitting, self.last)

    @property
    def _firsts(self) -> Integers:
        """The first member of each finest group."""
        return np.unique(self.finest, return_index=True)[1]


@dataclass(frozen=True, eq=False)
class _Distinct:
    """One of the given partitions, and which of them are the same but for the numbers of their groups."""

    labels: Integers  # as the first of them, that leaves nothing out, numbers its groups
    groups: int
    members: tuple[int, ...]

    def worth(self, usable: Collection[int], required: Collection[int]) -> Worth:
        return sum(i in required for i in self.members), sum(i in usable for i in self.members)


def nested_partitions(partitions: Sequence[Integers]) -> NestedPartitions | None:
    """The chain of partitions that all nest; None where two do not."""
    found = heaviest_chain(partitions, range(len(partitions)), range(len(partitions)))
    return None if found is None or OUTSIDE in found.steps else found


def heaviest_chain(
    partitions: Sequence[Integers], usable: Collection[int], required: Collection[int]
) -> NestedPartitions | None:
    """The chain that holds the most of the usable partitions, and all that are required; None where these do not nest.

    Its finest step is a partition that all others lie in; where no such one is given, the coarsest there is.
    """
    known = [(each, each.worth(usable, required)) for each in _distinct(partitions)]
    candidates = sorted((each for each in known if each[1] != (0, 0)), key=lambda each: each[0].groups)
    chosen = _heaviest(candidates)
    if not set(required) <= {i for each in chosen for i in each.members}:
        return None
    proper = [each for each in chosen if each.groups > 1]
    # Groups keep the numbers that their tables give them, so that large tables are read as they stand.
    finest, above = (chosen[-1].labels if chosen else np.zeros_like(partitions[0])), proper[:-1]
    if not all(lies_within(finest, each) for each in partitions):
        together = np.stack([finest, *(renumbered(each) for each in partitions)])
        finest = np.unique(together, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        above = proper
    firsts = np.unique(finest, return_index=True)[1]
    steps = [OUTSIDE] * len(partitions)
    for each in chosen:
        for i in each.members:
            steps[i] = 1 + proper.index(each) if each in proper else 0
    return NestedPartitions(finest, tuple(each.labels[firsts] for each in above), tuple(steps))


def _distinct(partitions: Sequence[Integers]) -> list[_Distinct]:
    """Each partition once; of two with as many groups, the one that is given last comes first."""
    members: dict[bytes, list[int]] = {}
    for i in reversed(range(len(partitions))):
        members.setdefault(renumbered(partitions[i]).tobytes(), []).insert(0, i)
    found = list[_Distinct]()
    for each in members.values():
        labels = next((partitions[i] for i in each if partitions[i].min() >= 0), partitions[each[0]])
        found.append(_Distinct(labels, len(np.unique(labels)), tuple(each)))
    return found


def _heaviest(candidates: Sequence[tuple[_Distinct, Worth]]) -> list[_Distinct]:
    """The nested ones that are worth the most together, coarsest first; candidates are in the order of their sizes."""
    best: list[tuple[Worth, int]] = []  # what each is worth with those above it, and which comes before it
    for i, (own, (required, usable)) in enumerate(candidates):
        above = [(best[j][0], j) for j in range(i) if lies_within(own.labels, candidates[j][0].labels)]
        most, before = max(above, default=((0, 0), OUTSIDE))
        best.append(((most[0] + required, most[1] + usable), before))
    chosen, place = list[_Distinct](), max(range(len(best)), key=lambda i: (best[i][0], i), default=OUTSIDE)
    while place != OUTSIDE:
        chosen.insert(0, candidates[place][0])
        place = best[place][1]
    return chosen
