"""Everything a record can say: the paper's data domain χ, kept as a product of attributes and never written out.

Cells are numbered in row-major order of the attributes as declared. Structural zeros are combinations that cannot
occur; they are given by rule (a product of level sets), never found in the data.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population.attribute import Attribute, GridLevels
from dualmandate.population.hierarchy import Grouping, Hierarchy

MOST_ZERO_STATES = 2**20  # ways in which structural zeros may overlap while cells are counted


@dataclass(frozen=True)
class StructuralZero:
    """A combination that cannot occur: every cell whose level of each named attribute is among those listed.

    For example `{"age": ("0", …, "14"), "married": ("yes",)}`. Unnamed attributes may take any level.
    """

    levels: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, levels: Mapping[str, str | Sequence[str]]) -> StructuralZero:
        """From a mapping of attribute to a level or levels."""
        listed = ((name, (wanted,) if isinstance(wanted, str) else tuple(wanted)) for name, wanted in levels.items())
        return cls(tuple(listed))


@dataclass(frozen=True)
class Domain:
    """The attributes of a record, the groupings of their levels, and the combinations that cannot occur (χ)."""

    attributes: tuple[Attribute, ...]
    hierarchies: tuple[Hierarchy, ...] = ()
    structural_zeros: tuple[StructuralZero, ...] = ()

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InvalidDomain("the domain has no attributes", why="a record must say something", instead="name one")
        names = [*self.names, *(grouping.name for h in self.hierarchies for grouping in h.groupings)]
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise InvalidDomain(
                f"the name '{twice}' is used twice",
                why="`by` and `where` must know which attribute or grouping is meant",
                instead="give each attribute and each grouping its own name",
            )
        for hierarchy in self.hierarchies:
            size = self.attribute(hierarchy.attribute).size
            for grouping in hierarchy.groupings:
                if grouping.assignment.shape != (size,):
                    raise InvalidDomain(
                        f"'{grouping.name}' does not assign the {size} levels of '{hierarchy.attribute}'",
                        why="each level must be assigned to a group, or to none",
                        instead="give one group code for each level",
                    )
        if self.structural_zeros and self.possible_size == 0:
            raise InvalidDomain(
                "the structural zeros together rule out every cell",
                why="no record could then occur",
                instead="name only the combinations of levels that cannot occur",
            )

    @classmethod
    def of_shape(cls, shape: Iterable[int]) -> Domain:
        """An unlabeled domain for matrix words: attributes axis0, axis1, … with levels 0, 1, …."""
        sizes = tuple(shape)
        if not sizes or any(size < 1 for size in sizes):
            raise InvalidDomain(
                f"the shape {sizes} has no cells",
                why="every attribute needs at least one level",
                instead="give positive sizes",
            )
        one = Fraction(1)
        return cls(tuple(Attribute(f"axis{i}", GridLevels(Fraction(0), one, n)) for i, n in enumerate(sizes)))

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names, in the order that numbers the cells."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """Number of cells |χ|, structural zeros included (an exact integer, however large)."""
        return math.prod(self.shape)

    @cached_property
    def possible_size(self) -> int:
        """Number of cells that can occur: all but the structural zeros (an exact integer)."""
        return self.count_possible({})

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name."""
        return self.attributes[self.axis(name)]

    def axis(self, name: str) -> int:
        """Position of an attribute among the attributes."""
        try:
            return self.names.index(name)
        except ValueError:
            raise self._unknown(name) from None

    def axes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Positions of several attributes."""
        return tuple(self.axis(name) for name in names)

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of some attributes alone, in the given order, with their hierarchies.

        Structural zeros that concern only these attributes stay; others say nothing about them alone.
        """
        kept = tuple(names)
        axes = self.axes(kept)
        hierarchies = tuple(hierarchy for hierarchy in self.hierarchies if hierarchy.attribute in kept)
        concerned = zip(self.structural_zeros, self.all_zero_masks, strict=True)
        zeros = tuple(zero for zero, masks in concerned if masks.keys() <= set(axes))
        return Domain(tuple(self.attributes[axis] for axis in axes), hierarchies, zeros)

    def resolve(self, name: str) -> tuple[int, Grouping | None]:
        """The axis that a name in `by` or `where` means, and the grouping of it (None: the attribute itself)."""
        if name in self.names:
            return self.axis(name), None
        if name in self._groupings:
            return self._groupings[name]
        raise self._unknown(name)

    def mask(self, name: str, levels: str | Sequence[str]) -> NDArray[np.bool_]:
        """Which levels of the attribute behind `name` are among the listed levels or groups; shape (size,)."""
        axis, grouping = self.resolve(name)
        wanted = (levels,) if isinstance(levels, str) else tuple(levels)
        if not wanted:
            raise InvalidDomain(
                f"no level of '{name}' is named",
                why="an empty list of levels picks no record",
                instead="list at least one level, or leave the name out",
            )
        if grouping is not None:
            return np.isin(grouping.assignment, [grouping.position(label) for label in wanted])
        chosen = np.zeros(self.attributes[axis].size, dtype=np.bool_)
        chosen[[self.attributes[axis].position(level) for level in wanted]] = True
        return chosen

    def zero_masks(self, zero: StructuralZero) -> dict[int, NDArray[np.bool_]]:
        """A structural zero as one mask of levels a constrained axis; a cell is impossible if all its masks hold."""
        masks: dict[int, NDArray[np.bool_]] = {}
        for name, levels in zero.levels:
            axis, _ = self.resolve(name)
            mask = self.mask(name, levels)
            masks[axis] = masks[axis] & mask if axis in masks else mask
        if not masks or all(mask.all() for mask in masks.values()):
            raise InvalidDomain(
                "a structural zero rules out every cell",
                why="no record could then occur",
                instead="name the combination of levels that cannot occur",
            )
        return masks

    @cached_property
    def all_zero_masks(self) -> tuple[dict[int, NDArray[np.bool_]], ...]:
        """`zero_masks` of every structural zero."""
        return tuple(self.zero_masks(zero) for zero in self.structural_zeros)

    def count_possible(self, within: Mapping[int, NDArray[np.bool_]]) -> int:
        """Number of cells that can occur among those whose level on each axis of `within` passes its mask."""
        zeros = self.all_zero_masks
        # Attributes of one zero follow each other, so that few zeros are undecided at a time.
        named = dict.fromkeys(axis for masks in zeros for axis in masks)
        order = list(dict.fromkeys([*named, *range(len(self.shape))]))
        last = [max(order.index(axis) for axis in masks) for masks in zeros]
        # For each set of zeros (as bits) that all levels so far agree with: how many combinations of levels.
        counts = {(1 << len(zeros)) - 1: 1}
        for place, axis in enumerate(order):
            kept = np.flatnonzero(within[axis]) if axis in within else None
            concerned = [bit for bit, masks in enumerate(zeros) if axis in masks]
            agreeing = [zeros[bit][axis] if kept is None else zeros[bit][axis][kept] for bit in concerned]
            patterns = _patterns(concerned, agreeing, self.shape[axis] if kept is None else len(kept))
            done = sum(1 << bit for bit in concerned if last[bit] == place)
            grown: Counter[int] = Counter()
            for bits, count in counts.items():
                for missed, levels in patterns.items():
                    left = bits & ~missed
                    if not left & done:
                        grown[left] += count * levels
            counts = grown
            if len(counts) > MOST_ZERO_STATES:
                raise TooLarge(
                    f"{len(zeros)} structural zeros overlap in more than {MOST_ZERO_STATES:,} ways",
                    why="the cells that can occur cannot be counted",
                    instead="state fewer, larger structural zeros",
                )
        return sum(counts.values())

    def possible_cells(self, *, without: int | None = None, held: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Which cells can occur, row-major; shape (size,).

        `without` leaves an attribute out; `held` says which of the zeros about it, in their order, apply (else none).
        """
        shape = tuple(1 if axis == without else size for axis, size in enumerate(self.shape))
        possible, about = np.ones(shape, dtype=np.bool_), 0
        for masks in self.all_zero_masks:
            if without in masks:
                applies, about = held is not None and bool(held[about]), about + 1
                if not applies:
                    continue
            named = {axis: mask for axis, mask in masks.items() if axis != without}
            chosen = (named.get(axis, np.ones(size, dtype=np.bool_)) for axis, size in enumerate(shape))
            possible[np.ix_(*chosen)] = False
        return possible.reshape(-1)

    @cached_property
    def _groupings(self) -> dict[str, tuple[int, Grouping]]:
        return {
            grouping.name: (self.axis(hierarchy.attribute), grouping)
            for hierarchy in self.hierarchies
            for grouping in hierarchy.groupings
        }

    def _unknown(self, name: str) -> InvalidDomain:
        known = [*self.names, *(grouping.name for h in self.hierarchies for grouping in h.groupings)]
        near = difflib.get_close_matches(name, known, n=1)
        return InvalidDomain(
            f"'{name}' is not an attribute or grouping of the domain",
            why=f"the domain has {', '.join(known[:12])}{', …' if len(known) > 12 else ''}",
            instead=f"did you mean '{near[0]}'?" if near else "use one of these names, or declare it",
        )


def _patterns(concerned: list[int], agreeing: list[NDArray[np.bool_]], levels: int) -> dict[int, int]:
    """For each set of structural zeros (as bits) that a level of one axis does not agree with: how many levels."""
    if not concerned:
        return {0: levels} if levels else {}
    rows, numbers = np.unique(np.stack(agreeing, axis=1), axis=0, return_counts=True)
    return {
        sum(1 << bit for bit, agrees in zip(concerned, row, strict=True) if not agrees): int(number)
        for row, number in zip(rows, numbers, strict=True)
    }
