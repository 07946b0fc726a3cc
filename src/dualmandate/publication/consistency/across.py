"""Measured tables that cross the chain, or the tree: what they count."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.estimating import Estimates
from dualmandate.publication.consistency.nesting import Chain, Indices
from dualmandate.publication.consistency.passes import count_across, spread_across
from dualmandate.publication.consistency.weighing import Floats

NUMBERS_AT_ONCE = 2**20  # whose estimates are computed at once


@dataclass(frozen=True, eq=False)
class Crossing:
    """A measured table of areas × groups of cells; each node of a level is in one area or none, cells likewise."""

    level: int  # of the tree
    areas: Indices = field(repr=False)  # the table's row of each node of the level, −1 for none; shape (nodes,)
    groups: Indices = field(repr=False)  # the table's row of each cell of the chain, −1 for none; shape (cells,)
    shape: tuple[int, int]  # areas and groups of the table
    variance: float

    @cached_property
    def in_place(self) -> bool:
        """Whether areas are the nodes themselves."""
        return bool(np.array_equal(self.areas, np.arange(self.shape[0])))

    def step(self, chain: Chain) -> int:
        """The first grouping of the chain whose groups it counts as wholes."""
        labels, step = self.groups, chain.last
        while step > 0:
            firsts = labels[chain.starts[step - 1][:-1]]
            if np.any(labels != firsts[chain.parents[step - 1]]):
                break
            labels, step = firsts, step - 1
        return step

    def labels(self, chain: Chain, step: int) -> Indices:
        """The table's row of each group of a grouping that it counts as wholes."""
        labels = self.groups
        for starts in reversed(chain.starts[step:]):
            labels = labels[starts[:-1]]
        return labels

    def of(self, estimates: Estimates) -> Floats:
        """The table of some estimates; shape (areas, groups)."""
        found = np.zeros(self.shape)
        together = max(NUMBERS_AT_ONCE // self.groups.size, 1)
        for start in range(0, self.areas.size, together):
            nodes = range(start, min(start + together, self.areas.size))
            cells = estimates.tables(self.level, nodes)[-1]
            count_across(cells, self.areas[nodes.start : nodes.stop], self.groups, found)
        return found


@dataclass(frozen=True, eq=False)
class Shifted:
    """Measurements of cells and what crossing tables add to them; rows are made when they are read."""

    base: NDArray[Any] = field(repr=False)
    shifts: tuple[tuple[Indices, Indices, Floats], ...] = field(repr=False)  # areas of nodes, groups, numbers
    factor: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes and cells."""
        return self.base.shape

    def __getitem__(self, rows: slice) -> Floats:
        """Some rows, as new floats."""
        found = self.base[rows].astype(np.float64)
        for areas, groups, numbers in self.shifts:
            spread_across(numbers, areas[rows], groups, self.factor, found)
        return found
