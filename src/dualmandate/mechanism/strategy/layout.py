"""Where the groups of some tables lie among the orbits of a part, and the row of each group in a sector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.codings import Grouping, group_count
from dualmandate.mechanism.strategy.parts import Part, Sector


@dataclass(frozen=True, eq=False)
class Layout:
    """The groups of some tables, numbered table after table, over the orbits that can occur, asked about or not."""

    part: Part
    tables: tuple[Grouping, ...]
    orbits: Indices  # that can occur, row-major: a record in any of them is counted
    places: Indices  # the group of each table that holds an orbit; shape (tables, orbits)
    scales: Floats  # the entry of an orbit in the row of its group: √m where m levels are counted together
    starts: Indices  # the first group of each table, and the number of all groups

    @classmethod
    def of(cls, part: Part, tables: Sequence[Grouping]) -> Layout:
        """The layout of some tables."""
        orbits = np.arange(part.orbit_count)
        if part.possible is not None:
            orbits = np.flatnonzero(part.possible[np.ix_(*(level.first for level in part.levels))])
        classes = np.unravel_index(orbits, part.orbit_shape)
        lengths = [np.sqrt(level.members.astype(np.float64)) for level in part.levels]
        starts = np.cumsum([0, *(group_count(table) for table in tables)])
        places = np.zeros((len(tables), len(orbits)), dtype=np.intp)
        scales = np.ones((len(tables), len(orbits)))
        for number, table in enumerate(tables):
            for coding, here, length in zip(table, classes, lengths, strict=True):
                places[number] = places[number] * coding.count + np.asarray(coding.groups)[here]
                scales[number] *= np.where(coding.fine, 1.0, length)[here]
        return cls(part, tuple(tables), orbits, places + starts[:-1, None], scales, starts)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.starts[-1])

    def columns(self, sector: Sector) -> tuple[Indices, Indices]:
        """Which of `orbits` a sector has, and where each stands among the sector's own orbits."""
        own = self.part.orbits_of(sector)
        where = np.minimum(np.searchsorted(self.orbits, own), len(self.orbits) - 1)
        inside = np.flatnonzero(self.orbits[where] == own)
        return where[inside], inside

    def telling(self, sector: Sector) -> NDArray[np.bool_]:
        """Which tables tell levels of the classes apart that a sector looks at the differences of; shape (tables,)."""
        found = np.ones(len(self.tables), dtype=np.bool_)
        for place, one in sector:
            found &= self._fine[place][:, one]
        return found

    @cached_property
    def _fine(self) -> list[NDArray[np.bool_]]:
        """For each attribute which classes a table tells the levels of apart; shape (tables, classes)."""
        return [np.array([table[place].fine for table in self.tables]) for place in range(len(self.part.axes))]

    def rows(self, some: NDArray[np.bool_], columns: Indices) -> tuple[Indices, Floats]:
        """The groups of some tables that hold some orbits, and the row of each over these."""
        places = self.places[some][:, columns]
        groups, numbers = np.unique(places, return_inverse=True)
        rows = np.zeros((len(groups), len(columns)))
        rows[numbers.reshape(places.shape), np.arange(len(columns))] = self.scales[some][:, columns]
        return groups, rows
