"""Pairs of cells that a changed record can move between, looked at once for each pair of orbits and each pattern.

How far a symmetric strategy's columns are apart depends on the orbits of the two cells and on the attributes on which
they have the same level, not on the levels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.axes import Indices
from dualmandate.mechanism.strategy.parts import Part
from dualmandate.workload.factor import Integers

MOST_PAIRS = 2**28  # of orbits, times patterns
CHUNK = 2**22  # numbers that are held at once
MOST_LABELED = 2**26  # pairs of cells that are looked at one by one for their labels

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Labels:
    """Which pairs of cells have one label: by attributes that must agree, by orbits, or by a list of what occurs."""

    agreeing: frozenset[int] = frozenset()  # places of attributes on which two cells must have the same level
    orbits: Integers | None = None  # one label an orbit
    listed: Mask | None = None  # by patterns and both orbits
    exact: bool = True  # False: pairs of different labels are among them


@dataclass(frozen=True, eq=False)
class OrbitPairs:
    """Pairs of orbits that can occur, and patterns of attributes on which two cells have the same level."""

    part: Part
    orbits: Indices  # that can occur, asked about or not
    classes: tuple[Indices, ...]  # one an attribute: the class of each orbit
    varied: tuple[int, ...]  # places of attributes with classes of several levels

    @classmethod
    def of(cls, part: Part) -> OrbitPairs:
        """The pairs of orbits of a part."""
        orbits = np.arange(part.orbit_count)
        if part.possible is not None:
            orbits = np.flatnonzero(part.possible[np.ix_(*(level.first for level in part.levels))])
        varied = tuple(place for place, level in enumerate(part.levels) if int(level.members.max()) > 1)
        return cls(part, orbits, np.unravel_index(orbits, part.orbit_shape), varied)

    @property
    def are_many(self) -> bool:
        """Whether there are too many pairs to look at."""
        count = len(self.orbits)
        return count << len(self.varied) > CHUNK or count**2 << len(self.varied) > MOST_PAIRS

    @cached_property
    def patterns(self) -> Mask:
        """True for the same level; shape (patterns, attributes that are varied)."""
        numbers = np.arange(2 ** len(self.varied))
        return np.asarray((numbers[:, None] >> np.arange(len(self.varied))) & 1, dtype=np.bool_)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Stretches of orbits, each to be compared with all from its first on."""
        count = len(self.orbits)
        height = max(1, (CHUNK >> len(self.varied)) // count)
        for start in range(0, count, height):
            yield start, min(start + height, count)

    def labels(self, same: Integers | None) -> Labels:
        """What labels of merged cells say about orbits and patterns."""
        if same is None:
            return Labels()
        grid = same.reshape(self.part.merged_shape)
        told = [place for place in range(grid.ndim) if np.any(grid != np.take(grid, [0], axis=place))]
        if len(np.unique(same)) == math.prod(self.part.merged_shape[place] for place in told):
            return Labels(agreeing=frozenset(told))
        first = grid[np.ix_(*(level.first for level in self.part.levels))]
        if np.array_equal(first[np.ix_(*(level.classes for level in self.part.levels))], grid):
            return Labels(orbits=first.reshape(-1)[self.orbits])
        listed = self._listed(same)
        return Labels(exact=False) if listed is None else Labels(listed=listed)

    def _listed(self, same: Integers) -> Mask | None:
        """Patterns and pairs of orbits of cells with one label, by looking at all; None where there are too many."""
        part, count = self.part, len(self.orbits)
        possible = np.ones(part.merged_shape, dtype=np.bool_) if part.possible is None else part.possible
        cells = np.flatnonzero(possible)
        cells = cells[np.argsort(same[cells], kind="stable")]
        groups = np.split(cells, np.flatnonzero(np.diff(same[cells])) + 1)
        if sum(len(group) ** 2 for group in groups) > MOST_LABELED or count**2 << len(self.varied) > MOST_LABELED:
            return None
        found = np.zeros((2 ** len(self.varied), count, count), dtype=np.bool_)
        for group in groups:
            levels = np.unravel_index(group, part.merged_shape)
            classes = [level.classes[each] for level, each in zip(part.levels, levels, strict=True)]
            orbits = np.searchsorted(self.orbits, np.ravel_multi_index(classes, part.orbit_shape))
            pattern = np.zeros((len(group), len(group)), dtype=np.intp)
            for bit, place in enumerate(self.varied):
                pattern += (levels[place][:, None] == levels[place][None, :]).astype(np.intp) << bit
            found[pattern, orbits[:, None], orbits[None, :]] = True
        return found

    def allowed(self, start: int, stop: int, labels: Labels) -> Mask:
        """Which patterns are possible between some orbits and all from the first of them on.

        A cell and itself are among them: their difference is 0.
        """
        here, there, patterns = slice(start, stop), slice(start, None), self.patterns
        found = np.ones((len(patterns), stop - start, len(self.orbits) - start), dtype=np.bool_)
        for place, classes in enumerate(self.classes):
            equal = classes[here, None] == classes[None, there]
            if place in self.varied:
                several = self.part.levels[place].members[classes[here]] > 1
                differ = ~equal | several[:, None]
                if place in labels.agreeing:
                    differ = np.zeros_like(equal)
                found &= np.where(patterns[:, self.varied.index(place), None, None], equal, differ)
            elif place in labels.agreeing:
                found &= equal
        if labels.orbits is not None:
            found &= labels.orbits[here, None] == labels.orbits[None, there]
        if labels.listed is not None:
            found &= labels.listed[:, here, there]
        return found
