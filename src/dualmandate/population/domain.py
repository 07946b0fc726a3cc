"""Everything a record can say: the paper's data domain χ, kept as a product of attributes and never written out.

A level is one value an attribute can take; a missing answer is a level like any other. Levels come from the program,
never from the data. Numbers are recorded on a declared grid between declared bounds, so that sums over them are
integers in grid units and their sensitivity is known. Levels roll up by hierarchies: state > county > tract > block.

Cells are numbered in row-major order of the attributes as declared. Structural zeros are combinations that cannot
occur; they are given by rule (a product of level sets), never found in the data. A histogram counts the records in each
cell (the paper's x): public or synthetic here; confidential ones travel boxed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain, TooLarge, did_you_mean
from dualmandate.population.arguments import checked_class, expected, unexpected
from dualmandate.population.labels import NO_LABELS, Labels
from dualmandate.population.rational import Written, rational, rational_or, written
from dualmandate.population.shown import cut_line, span_of

MOST_ZERO_STATES = 2**20  # ways in which structural zeros may overlap while cells are counted
LARGEST_LISTED_ATTRIBUTE = 2**26  # levels whose numbers are held one by one; 512 MiB of 64-bit integers
LARGEST_DENSE_HISTOGRAM = 2**28  # cells; 2 GiB of 64-bit counts


@dataclass(frozen=True)
class GridLevels(Sequence[str]):
    """The levels lower, lower + grid, …, without holding a label for each: ten million levels cost nothing.

    With `missing`, one more level after them records a missing answer.
    """

    lower: Fraction
    grid: Fraction
    size: int  # levels, the missing one included
    missing: str | None = None

    def __len__(self) -> int:
        return self.size

    @property
    def points(self) -> int:
        """How many numbers lie on the grid."""
        return self.size - (self.missing is not None)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self.size)))
        if not -self.size <= index < self.size:
            raise IndexError(index)
        place = index % self.size
        if self.missing is not None and place == self.points:
            return self.missing
        return written(self.lower + self.grid * place)

    def position(self, level: str) -> int | None:
        """Index of a level, or None where the grid has no such point."""
        if self.missing is not None and level == self.missing:
            return self.points
        try:
            steps = (rational(level) - self.lower) / self.grid
        except ValueError:
            return None
        return int(steps) if steps.denominator == 1 and 0 <= steps < self.points else None


@checked_class
@dataclass(frozen=True)
class Attribute:
    """One column of the confidential file and the levels it may take (a factor of the paper's χ).

    Make one with `categories`, `ordered_levels`, `binned` or `numbers`. `ordered` says that neighbors in the list are
    neighbors in meaning. `missing` names the level, always the last, that records a missing answer.
    """

    name: str
    levels: Sequence[str]
    ordered: bool = False
    missing: str | None = None
    lower: Fraction | None = None  # lowest number on the grid; numbers only
    grid: Fraction | None = None  # distance between two numbers, > 0; numbers only
    edges: tuple[Fraction, ...] | None = None  # bin edges, increasing; binned numbers only
    level_labels: Labels = field(default_factory=lambda: NO_LABELS, compare=False, repr=False)  # words for readers

    def __repr__(self) -> str:
        return cut_line(
            f"Attribute('{self.name}': {self.size:,} levels from '{self.levels[0]}' to '{self.levels[-1]}')"
        )

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise InvalidDomain("an attribute has no name", why="tables name attributes", instead="give it a name")
        if not hasattr(self.levels, "__len__"):
            raise unexpected(self.levels, what="a list of levels", instead='list them: Attribute("sex", ("f", "m"))')
        if len(self.levels) == 0:
            raise InvalidDomain(
                f"attribute '{self.name}' has no levels",
                why="a domain with an empty attribute has no cells",
                instead="list the values that can be recorded",
            )
        if isinstance(self.levels, tuple) and len(set(self.levels)) != len(self.levels):
            twice = next(level for level, count in Counter(self.levels).items() if count > 1)
            raise InvalidDomain(
                f"attribute '{self.name}' lists the level '{twice}' twice",
                why="each record must fall into exactly one level",
                instead="list each level once",
            )

    @classmethod
    def categories(cls, name: str, values: Iterable[str], *, missing: str | None = None) -> Attribute:
        """An attribute whose values have no order (sex, district, industry)."""
        return cls(name, _levels(name, values, missing), missing=missing)

    @classmethod
    def ordered_levels(cls, name: str, values: Iterable[str], *, missing: str | None = None) -> Attribute:
        """An attribute whose values stand in an order (schooling, age in years)."""
        return cls(name, _levels(name, values, missing), ordered=True, missing=missing)

    @classmethod
    def binned(cls, name: str, edges: Iterable[Written], *, missing: str | None = None) -> Attribute:
        """A number recorded by the interval it falls in: [e₀, e₁), [e₁, e₂), …, the last one closed."""
        points = tuple(_number(name, edge) for edge in edges)
        if len(points) < 2 or any(high <= low for low, high in pairwise(points)):
            raise InvalidDomain(
                f"the bin edges of '{name}' do not increase",
                why="a bin lies between two different numbers",
                instead="give at least two edges, each larger than the one before",
            )
        pairs = list(pairwise(points))
        labels = [f"[{written(low)}, {written(high)})" for low, high in pairs[:-1]]
        labels.append(f"[{written(pairs[-1][0])}, {written(pairs[-1][1])}]")
        return cls(name, _levels(name, labels, missing), ordered=True, missing=missing, edges=points)

    @classmethod
    def numbers(
        cls, name: str, lower: Written, upper: Written, grid: Written = 1, *, missing: str | None = None
    ) -> Attribute:
        """A number clamped to [lower, upper] and rounded to a grid, so that its sums have a known sensitivity.

        Both bounds must be multiples of the grid: a sum is then an integer in grid units. A missing number adds 0.
        """
        low, high, step = (_number(name, number) for number in (lower, upper, grid))
        if step <= 0 or high <= low or (high - low) / step >= 2**62:
            raise InvalidDomain(
                f"the numbers of '{name}' cannot be laid out from {written(low)} to {written(high)} by {written(step)}",
                why="a sum needs a lower bound below its upper bound and a positive grid, with fewer than 2^62 points",
                instead="state lower < upper and grid > 0",
            )
        if (low / step).denominator != 1 or (high / step).denominator != 1:
            raise InvalidDomain(
                f"the bounds {written(low)} and {written(high)} of '{name}' miss its grid {written(step)}",
                why="sums are integers in grid units",
                instead="choose bounds that lie on the grid",
            )
        points = int((high - low) / step) + 1
        if missing is not None and GridLevels(low, step, points).position(missing) is not None:
            raise InvalidDomain(
                f"the missing level '{missing}' of '{name}' is also one of its numbers",
                why="a record that says this number would be taken for one that says nothing",
                instead="choose another word for a missing answer",
            )
        levels = GridLevels(low, step, points + (missing is not None), missing)
        return cls(name, levels, ordered=True, missing=missing, lower=low, grid=step)

    @property
    def size(self) -> int:
        return len(self.levels)

    @property
    def upper(self) -> Fraction | None:
        """The highest number on the grid: larger ones are clipped to it; numbers only."""
        levels = self.levels
        return levels.lower + levels.grid * (levels.points - 1) if isinstance(levels, GridLevels) else None

    @property
    def is_numeric(self) -> bool:
        """Whether sums over this attribute are declared (bounds and grid)."""
        return self.grid is not None

    @property
    def grid_values(self) -> NDArray[np.int64]:
        """The number each level stands for, in grid units, a missing one 0; shape (size,)."""
        if self.lower is None or self.grid is None:
            raise InvalidDomain(
                f"'{self.name}' has no numbers to sum",
                why="a sum needs bounds and a grid, so that one record cannot move it by more than is accounted for",
                instead=f"declare {self.name} = {{ lower = …, upper = …, grid = … }}",
            )
        first = int(self.lower / self.grid)
        if self.size > LARGEST_LISTED_ATTRIBUTE or abs(first) >= 2**62:
            raise TooLarge(
                f"'{self.name}' takes {self.size:,} numbers, the first of them {written(self.lower)}",
                why=f"at most {LARGEST_LISTED_ATTRIBUTE:,} numbers below 2^62 grid units are held one by one",
                instead="choose a coarser grid or narrower bounds",
            )
        values = first + np.arange(self.size, dtype=np.int64)
        if self.missing is not None:
            values[-1] = 0
        return values

    def position(self, level: str) -> int:
        """Index of a level, refused with the nearest spelling where there is none."""
        found = self.levels.position(level) if isinstance(self.levels, GridLevels) else self._positions.get(level)
        if found is not None:
            return found
        listed = () if isinstance(self.levels, GridLevels) else self.levels[:1000]
        raise InvalidDomain(
            f"'{level}' is not a level of '{self.name}'",
            why="levels come from the program's code lists, never from the data",
            instead=did_you_mean(level, listed, span_of(self.levels)),
        )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {level: index for index, level in enumerate(self.levels)}


def _levels(name: str, values: Iterable[str], missing: str | None) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidDomain(
            f"the levels of '{name}' are given as the one word '{values}'",
            why="it would be taken for a list of its letters",
            instead="give a list of levels",
        )
    levels = tuple(str(value) for value in values)
    return levels if missing is None else (*(level for level in levels if level != missing), missing)


def _number(name: str, number: Written) -> Fraction:
    return rational_or(
        InvalidDomain, number, what=f"'{number}' among the numbers of '{name}'", instead="give a finite number"
    )


@dataclass(frozen=True, eq=False)
class Grouping:
    """A named partition of some of an attribute's levels: tables may be made `by` it.

    `assignment[i]` is the index into `labels` of the group that level i belongs to, or -1 where it belongs to none
    (a block outside every place); shape (attribute.size,).
    """

    name: str
    labels: tuple[str, ...]
    assignment: NDArray[np.int64]
    level_labels: Labels = field(default_factory=lambda: NO_LABELS, repr=False)  # words for readers

    def __post_init__(self) -> None:
        groups, inside = len(self.labels), (self.assignment >= -1) & (self.assignment < len(self.labels))
        held = np.bincount(self.assignment[inside] + 1, minlength=groups + 1)[1:]
        listed = len(set(self.labels)) == groups and bool(np.all(inside)) and bool(np.all(held))
        if not listed:
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
        return len(self.labels)

    def position(self, label: str) -> int:
        """Index of a group, refused with the nearest spelling where there is none."""
        found = self._positions.get(label)
        if found is not None:
            return found
        raise InvalidDomain(
            f"'{label}' is not a group of '{self.name}'",
            why="groups come from the program's code lists",
            instead=did_you_mean(str(label), self.labels[:1000], f"its groups begin with '{self.labels[0]}'"),
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
        codes = [code for code in attribute.levels if code != missing]
        for name, length in lengths.items():
            short = next((code for code in codes if len(code) < length), None)
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


@checked_class
@dataclass(frozen=True)
class Domain:
    """The attributes of a record, the groupings of their levels, and the combinations that cannot occur (χ)."""

    attributes: tuple[Attribute, ...]
    hierarchies: tuple[Hierarchy, ...] = ()
    structural_zeros: tuple[StructuralZero, ...] = ()

    def __repr__(self) -> str:
        return cut_line(f"Domain({self.size:,} cells: {' × '.join(f'{a.name} {a.size:,}' for a in self.attributes)})")

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InvalidDomain("the domain has no attributes", why="a record must say something", instead="name one")
        for each in self.attributes:
            expected(each, Attribute, what="an attribute", instead='make one: Attribute("sex", ("f", "m"))')
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
        sizes = tuple(expected(shape, Iterable, what="a shape", instead="give the size of each axis: (2, 3)"))
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
        return self.attributes[self.axis(name)]

    def axis(self, name: str) -> int:
        """Position of an attribute among the attributes."""
        try:
            return self.names.index(name)
        except ValueError:
            raise self._unknown(name) from None

    def axes(self, names: Iterable[str]) -> tuple[int, ...]:
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

    def level_labels(self, name: str) -> Labels:
        """What the levels of an attribute, or the groups of a grouping, are called for readers."""
        axis, grouping = self.resolve(name)
        return self.attributes[axis].level_labels if grouping is None else grouping.level_labels

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
        return InvalidDomain(
            f"'{name}' is not an attribute or grouping of the domain",
            why=f"the domain has {', '.join(known[:12])}{', …' if len(known) > 12 else ''}",
            instead=did_you_mean(name, known, "use one of these names, or declare it"),
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


@checked_class
@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of records by cell, dense, in the shape of the domain (x; ‖x‖₁ = N)."""

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)  # shape domain.shape, ≥ 0; never printed

    def __post_init__(self) -> None:
        if self.counts.shape != self.domain.shape:
            raise InvalidDomain(
                f"counts of shape {self.counts.shape} do not fit a domain of shape {self.domain.shape}",
                why="a histogram has one count a cell",
                instead="reshape the counts in row-major order of the attributes",
            )
        if self.counts.dtype.kind not in "iu" or (self.counts.size and int(self.counts.min()) < 0):
            raise InvalidDomain(
                "counts that are not whole numbers of records",
                why="a histogram counts records",
                instead="give integers of at least 0",
            )

    @classmethod
    def zeros(cls, domain: Domain) -> Histogram:
        return cls(domain, np.zeros(dense_shape(domain), dtype=np.int64))

    @property
    def total(self) -> int:
        """Number of records, N."""
        return int(self.counts.sum())

    def project(self, names: Iterable[str]) -> Histogram:
        """The histogram of some attributes alone."""
        kept = tuple(names)
        axes = self.domain.axes(kept)
        dropped = tuple(axis for axis in range(len(self.domain.shape)) if axis not in axes)
        summed = self.counts.sum(axis=dropped) if dropped else self.counts
        order = np.argsort(np.argsort(axes))
        return Histogram(self.domain.project(kept), np.transpose(summed, tuple(int(i) for i in order)))


def dense_shape(domain: Domain) -> tuple[int, ...]:
    """The domain's shape, refused where a dense array of it would not fit."""
    if domain.size > LARGEST_DENSE_HISTOGRAM:
        raise TooLarge(
            f"a dense histogram of {domain.size:.3g} cells was asked for",
            why=f"at most {LARGEST_DENSE_HISTOGRAM:,} cells are held densely",
            instead="ask for tables of fewer attributes; workloads and sensitivities never need the dense domain",
        )
    return domain.shape
