"""How the levels of one attribute roll up: state > county > tract > block, districts, industries."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain
from dualmandate.population.attribute import Attribute


@dataclass(frozen=True, eq=False)
class Grouping:
    """A named partition of some of an attribute's levels: tables may be made `by` it.

    `assignment[i]` is the index into `labels` of the group that level i belongs to, or -1 where it belongs to none
    (a block outside every place); shape (attribute.size,).
    """

    name: str
    labels: tuple[str, ...]
    assignment: NDArray[np.int64]

    def __post_init__(self) -> None:
        used = np.unique(self.assignment)
        used = used[used != -1]
        if len(set(self.labels)) != len(self.labels) or not np.array_equal(used, np.arange(len(self.labels))):
            raise InvalidDomain(
                f"the groups of '{self.name}' are not a list of groups that each hold a level",
                why="every group needs a name of its own and at least one level",
                instead="make it from one group code a level, with Grouping.of",
            )
        if not self.labels:
            raise InvalidDomain(
                f"'{self.name}' puts no level into any group",
                why="a table by it would have no cells",
                instead="give at least one level a group code",
            )

    @classmethod
    def of(cls, name: str, codes: Sequence[str | None]) -> Grouping:
        """A grouping from one group code a level, None where a level belongs to no group."""
        labels = tuple(dict.fromkeys(code for code in codes if code is not None))
        index = {label: i for i, label in enumerate(labels)}
        assigned = np.array([-1 if code is None else index[code] for code in codes], dtype=np.int64)
        return cls(name, labels, assigned)

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    def position(self, label: str) -> int:
        """Index of a group, refused with the nearest spelling where there is none."""
        found = self._positions.get(label)
        if found is not None:
            return found
        near = difflib.get_close_matches(str(label), self.labels[:1000], n=1)
        raise InvalidDomain(
            f"'{label}' is not a group of '{self.name}'",
            why="groups come from the program's code lists",
            instead=f"did you mean '{near[0]}'?" if near else f"its groups begin with '{self.labels[0]}'",
        )

    def refines(self, coarser: Grouping) -> bool:
        """Whether every group of this grouping lies within one group of the other (or wholly outside it)."""
        inside = self.assignment >= 0
        # A level outside this grouping must be outside the coarser one too, or the coarser group would be split.
        if np.any(coarser.assignment[~inside] >= 0):
            return False
        lowest = np.full(self.size, np.iinfo(np.int64).max)
        highest = np.full(self.size, -2)
        np.minimum.at(lowest, self.assignment[inside], coarser.assignment[inside])
        np.maximum.at(highest, self.assignment[inside], coarser.assignment[inside])
        return bool(np.all(lowest == highest))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nested groupings of one attribute, coarsest first; the attribute itself is the finest level.

    Groupings that do not nest (a block's tract and its legislative district) belong in separate hierarchies.
    """

    attribute: str
    groupings: tuple[Grouping, ...]

    def __post_init__(self) -> None:
        for coarser, finer in pairwise(self.groupings):
            if coarser.assignment.shape != finer.assignment.shape or not finer.refines(coarser):
                raise InvalidDomain(
                    f"'{finer.name}' does not nest within '{coarser.name}'",
                    why=f"some '{finer.name}' lies in two groups of '{coarser.name}'",
                    instead="put groupings that cross into separate hierarchies",
                )

    @classmethod
    def by_prefix(cls, attribute: Attribute, lengths: Mapping[str, int]) -> Hierarchy:
        """A hierarchy read off the first characters of each code (FIPS: state 2, county 5, tract 11, …; NAICS)."""
        missing = attribute.missing
        for name, length in lengths.items():
            short = next((code for code in attribute.levels if code != missing and len(code) < length), None)
            if length < 1 or short is not None:
                raise InvalidDomain(
                    f"'{name}' asks for the first {length} characters of '{attribute.name}'",
                    why="a length must be at least 1" if length < 1 else f"the code '{short}' is shorter than that",
                    instead="give a length that every code has",
                )
        ordered = sorted(lengths.items(), key=lambda item: item[1])
        groupings = [
            Grouping.of(name, [None if code == missing else code[:length] for code in attribute.levels])
            for name, length in ordered
        ]
        return cls(attribute.name, tuple(groupings))
