"""One table: a weighted product of query matrices, one an attribute; as an agency asks for it, and its answers.

Answers of many tables come from one histogram, and back, without a dense matrix: each table applies one factor an
attribute, those that shrink the array first. Tables that begin with the same steps share them: the steps form a tree,
walked once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Literal

import numpy as np

from dualmandate.errors import InvalidWorkload
from dualmandate.population import Attribute, Domain, Grouping
from dualmandate.population.arguments import checked_class
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.rational import Written, rational_or, written
from dualmandate.population.shown import one_line
from dualmandate.workload.factor import (
    LARGEST_INTEGER,
    AllRange,
    Factor,
    Groups,
    Identity,
    Numbers,
    Prefix,
    Row,
    Total,
    largest_entry,
)

LevelWeights = tuple[tuple[str, Fraction], ...]
Sums = Literal["prefix", "ranges"] | tuple[tuple[str, str], ...]  # of an axis: words, or the ends of each range
PREFIX, RANGES = "prefix", "ranges"
Step = tuple[int, Factor]


@dataclass(frozen=True, eq=False)
class Table:
    """The queries w·(F₁ ⊗ … ⊗ F_d), row-major in the domain's order of attributes.

    The product is an integer matrix; the weight w > 0 turns its answers into those that were asked for. `axes` are the
    attributes that label a row, in the order in which a label names them; where not stated, all that are not summed.
    """

    name: str
    factors: tuple[Factor, ...]  # one an attribute of the domain
    weight: Fraction = Fraction(1)
    axes: tuple[int, ...] | None = None
    grid: Fraction = Fraction(1)  # what one unit of an answer stands for: the grid of a summed number
    tabulation: Tabulation | None = None  # what it came from

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise InvalidWorkload(
                f"the table '{self.name}' has weight {self.weight}",
                why="a table that weighs nothing asks nothing",
                instead="give it a positive weight, or leave it out",
            )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.rows for factor in self.factors)

    @cached_property
    def query_count(self) -> int:
        """Number of queries (an exact integer, however large)."""
        return math.prod(self.shape)

    @property
    def label_axes(self) -> tuple[int, ...]:
        """The attributes that label a row."""
        if self.axes is not None:
            return self.axes
        return tuple(axis for axis, factor in enumerate(self.factors) if not isinstance(factor, Total | Row))

    @cached_property
    def largest_entry(self) -> int:
        """The largest size of an entry of the integer product."""
        return math.prod(largest_entry(factor) for factor in self.factors)

    def labels(self, levels: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
        """For each row its label on each of `axes`, from the levels of all attributes."""
        axes = self.label_axes
        places = [axes.index(axis) for axis in sorted(axes)]
        each = (self.axis_labels(axis, levels[axis]) for axis in sorted(axes))
        for combination in product(*each):
            label = [""] * len(places)
            for place, word in zip(places, combination, strict=True):
                label[place] = word
            yield tuple(label)

    def axis_labels(self, axis: int, levels: Sequence[str]) -> tuple[str, ...]:
        """The labels of its rows on one attribute, from the attribute's levels."""
        return tuple(_row_labels(self.factors[axis], levels))


def _row_labels(factor: Factor, levels: Sequence[str]) -> Iterator[str]:
    if isinstance(factor, Identity):
        return iter(levels)
    if isinstance(factor, Prefix):
        return (f"up to {level}" for level in levels)
    if isinstance(factor, AllRange):
        count = len(levels)
        return (f"{levels[first]} to {levels[last]}" for first in range(count) for last in range(first, count))
    if isinstance(factor, Groups) and factor.names is not None:
        return iter(factor.names)
    return (f"row {row}" for row in range(factor.rows))


@checked_class
@dataclass(frozen=True)
class Tabulation:
    """Counts (or sums of a numeric attribute) for each combination of `by`, of the records under `where`.

    Names are attributes or groupings of the domain. With `by` empty it is a grand total. `weights` gives some levels of
    an attribute a weight in [-1, 1] that their records are counted with, other levels of it 0. `sum_of` adds up a
    numeric attribute; answers are then integers in units of its grid. `sums` says of attributes in `by` that their
    levels are not shown one by one but added up in the order of the list: "prefix", everything up to each level;
    "ranges", every range of levels; or some ranges, each by its first and its last level.
    """

    name: str
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    weights: tuple[tuple[str, LevelWeights], ...] = ()
    sum_of: str | None = None
    sums: tuple[tuple[str, Sums], ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidWorkload("a table has no name", why="releases name their tables", instead="give it a name")
        if isinstance(self.by, str):
            object.__setattr__(self, "by", (self.by,))
        self._once("where", [name for name, _ in self.where])
        self._once("weights", [name for name, _ in self.weights])
        self._once("sums", [name for name, _ in self.sums])
        for name, _ in self.sums:
            if name not in self.by:
                raise InvalidWorkload(
                    f"the table '{self.name}' adds up levels of '{name}', which is not in its `by`",
                    why="sums over an axis are shown along it",
                    instead=f"name '{name}' in `by`, or leave its sums out",
                )
        for name, weights in self.weights:
            self._once(f"weights.{name}", [level for level, _ in weights])
        for name, levels in self.where:
            if isinstance(levels, str) or not levels:
                raise InvalidWorkload(
                    f"the table '{self.name}' lists no levels of '{name}' in `where`",
                    why="a filter keeps records whose level is in a list of at least one",
                    instead=f"list the levels of '{name}' to count, or leave it out",
                )
        exact = (
            (name, tuple((level, self._weight(level, number)) for level, number in each)) for name, each in self.weights
        )
        object.__setattr__(self, "weights", tuple(exact))

    @classmethod
    def of(
        cls,
        name: str,
        by: str | Sequence[str] = (),
        *,
        where: Mapping[str, str | Sequence[str]] | None = None,
        weights: Mapping[str, Mapping[str, Written]] | None = None,
        sum_of: str | None = None,
        sums: Mapping[str, Literal["prefix", "ranges"] | Sequence[tuple[str, str]]] | None = None,
    ) -> Tabulation:
        """A tabulation from mappings, as in a program file; a decimal weight 0.1 means 1/10."""
        filters = tuple(
            (attribute, (levels,) if isinstance(levels, str) else tuple(levels))
            for attribute, levels in (where or {}).items()
        )
        weighted = tuple(
            (attribute, tuple((level, cls._exact(name, level, number)) for level, number in each.items()))
            for attribute, each in (weights or {}).items()
        )
        added = tuple(
            (attribute, each if isinstance(each, str) else tuple((first, last) for first, last in each))
            for attribute, each in (sums or {}).items()
        )
        return cls(name, (by,) if isinstance(by, str) else tuple(by), filters, weighted, sum_of, added)

    def table(self, domain: Domain, *, picked: Mapping[int, Booleans] | None = None) -> Table:
        """The tabulation as a product of query matrices over a domain.

        `picked` restricts it further, to some levels of the attributes whose places it names.
        """
        inside = self._inside(domain, picked or {})
        scales, denominator = self._scales(domain)
        by: dict[int, Grouping | None] = {}
        for name in self.by:
            axis, grouping = domain.resolve(name)
            if axis in by:
                raise InvalidWorkload(
                    f"the table '{self.name}' names '{domain.names[axis]}' twice in `by`",
                    why="its cells would be divided by one attribute in two ways",
                    instead="name each attribute once, by itself or by one of its groupings",
                )
            by[axis] = grouping
        added = self._added(domain, {*inside, *scales})
        factors = tuple(
            added.get(axis) or _factor(domain, axis, by, inside.get(axis), scales.get(axis))
            for axis in range(len(domain.shape))
        )
        if any(factor is None for factor in factors):
            raise InvalidWorkload(
                f"every answer of the table '{self.name}' is 0",
                why="no level that it counts has a weight, a number or a group other than none",
                instead="give at least one level that it counts a weight other than 0",
            )
        grid = Fraction(1) if self.sum_of is None else domain.attribute(self.sum_of).grid or Fraction(1)
        found = tuple(factor for factor in factors if factor is not None)
        return Table(self.name, found, Fraction(1, denominator), tuple(by), grid, self)

    def _added(self, domain: Domain, others: AbstractSet[int]) -> dict[int, Factor]:
        """The query matrices of the attributes whose levels are added up in order."""
        found: dict[int, Factor] = {}
        for name, sums in self.sums:
            axis, grouping = domain.resolve(name)
            attribute = domain.attributes[axis]
            if grouping is not None or axis in others or not attribute.ordered:
                why = "they are groups of levels" if grouping is not None else "its levels have no order"
                if grouping is None and attribute.ordered:
                    why = "the same table selects, weighs or sums its levels"
                raise InvalidWorkload(
                    f"the table '{self.name}' adds up '{name}' in the order of its levels",
                    why=why,
                    instead="add up an attribute of ordered levels, bins or numbers, and select by other attributes",
                )
            if sums == PREFIX:
                found[axis] = Prefix(attribute.size)
            elif sums == RANGES:
                found[axis] = AllRange(attribute.size)
            elif not isinstance(sums, str):
                found[axis] = _listed_ranges(self.name, attribute, sums)
        return found

    def _inside(self, domain: Domain, picked: Mapping[int, Booleans]) -> dict[int, Booleans]:
        """Which levels of each filtered attribute are counted."""
        inside = dict(picked)
        for name, levels in self.where:
            axis, _ = domain.resolve(name)
            mask = domain.mask(name, levels)
            inside[axis] = inside[axis] & mask if axis in inside else mask
        if inside and domain.count_possible(inside) == 0:
            raise InvalidWorkload(
                f"no record can be counted by the table '{self.name}'",
                why="its `where` leaves no cell that can occur",
                instead="name levels that can occur together",
            )
        return inside

    def _scales(self, domain: Domain) -> tuple[dict[int, Integers], int]:
        """The number that each level of some attributes is counted with, times a common denominator."""
        scales: dict[int, Integers] = {}
        denominator = 1
        if self.sum_of is not None:
            axis = domain.axis(self.sum_of)
            scales[axis] = domain.attributes[axis].grid_values
        for name, weights in self.weights:
            axis, grouping = domain.resolve(name)
            if axis in scales:
                raise InvalidWorkload(
                    f"the table '{self.name}' weights '{domain.names[axis]}' twice",
                    why="a level would be counted with two different numbers",
                    instead="weight or sum each attribute once",
                )
            common = math.lcm(*(weight.denominator for _, weight in weights))
            if common >= LARGEST_INTEGER:
                raise InvalidWorkload(
                    f"the weights of '{name}' in the table '{self.name}' have no common denominator below 2^62",
                    why="weights are exact: integers over one denominator",
                    instead="write them with fewer digits",
                )
            numbers = np.zeros(domain.attributes[axis].size, dtype=np.int64)
            for level, weight in weights:
                place = domain.attributes[axis].position(level) if grouping is None else grouping.position(level)
                chosen = place if grouping is None else grouping.assignment == place
                numbers[chosen] = int(weight * common)
            scales[axis] = numbers
            denominator *= common
        return scales, denominator

    def _once(self, what: str, names: Sequence[str]) -> None:
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise InvalidWorkload(
                f"the table '{self.name}' names '{twice}' twice in `{what}`",
                why="it would be unclear which of the two holds",
                instead="name it once",
            )

    def _weight(self, level: str, number: Written) -> Fraction:
        weight = self._exact(self.name, level, number)
        if not -1 <= weight <= 1:
            raise InvalidWorkload(
                f"the weight {written(weight)} of '{level}' in the table '{self.name}'",
                why="weights lie between -1 and 1, so that one record moves an answer by at most 1",
                instead="divide all weights of the table by the largest",
            )
        return weight

    @staticmethod
    def _exact(name: str, level: str, number: Written) -> Fraction:
        what = f"the weight '{number}' of '{level}' in the table '{name}'"
        return rational_or(InvalidWorkload, number, what=what, instead="give a number between -1 and 1")


def _listed_ranges(table: str, attribute: Attribute, ranges: Sequence[tuple[str, str]]) -> Factor:
    """Sums over some ranges of the levels of an attribute, each from its first to its last level."""
    ends = [(attribute.position(first), attribute.position(last)) for first, last in ranges]
    names = [first if first == last else f"{first} to {last}" for first, last in ranges]
    backward = next((name for name, (first, last) in zip(names, ends, strict=True) if first > last), None)
    if not ends or backward is not None or len(set(ends)) < len(ends):
        what = f"the range {backward} of" if backward else "no range, or the same one twice, of"
        raise InvalidWorkload(
            f"the table '{table}' asks for {what} '{attribute.name}'",
            why="a range goes from its first level to its last, and each is a number of its own",
            instead='write each range once, as ["first level", "last level"] in the order of the levels',
        )
    return Groups.of_lists(attribute.size, [range(first, last + 1) for first, last in ends], names)


def _factor(
    domain: Domain, axis: int, by: Mapping[int, Grouping | None], inside: Booleans | None, scales: Integers | None
) -> Factor | None:
    """The query matrix of one attribute; None where all of it is zero."""
    attribute = domain.attributes[axis]
    if axis not in by:
        if inside is None and scales is None:
            return Total(attribute.size)
        row = np.ones(attribute.size, dtype=np.int64) if scales is None else scales
        row = row if inside is None else row * inside
        return Row(row) if bool(np.any(row)) else None
    grouping = by[axis]
    if grouping is None and inside is None and scales is None:
        return Identity(attribute.size)
    labels = np.arange(attribute.size, dtype=np.int64) if grouping is None else grouping.assignment
    labels = labels if inside is None else np.where(inside, labels, -1)
    used = labels >= 0 if scales is None else (labels >= 0) & (scales != 0)
    if not bool(np.any(used)):
        return None
    return Groups.of_labels(labels, attribute.levels if grouping is None else grouping.labels, scales)


def apply_tables(tables: Sequence[Table], counts: Numbers) -> list[Numbers]:
    """For each table its integer product times the counts, weight left out; in the shape of the table."""
    found: dict[int, Numbers] = {}

    def walk(values: Numbers, pending: list[tuple[int, list[Step]]]) -> None:
        for number, steps in pending:
            if not steps:
                found[number] = values
        for (axis, factor), members in _next_steps(pending):
            walk(factor.apply(values, axis), members)

    walk(counts, [(number, _steps(table)) for number, table in enumerate(tables)])
    return [found[number] for number in range(len(tables))]


def apply_tables_transpose(tables: Sequence[Table], answers: Sequence[Numbers]) -> Numbers:
    """Σ over tables of the transposed integer product times that table's answers; in the shape of the domain."""

    def parts(pending: list[tuple[int, list[Step]]]) -> Iterator[Numbers]:
        for (axis, factor), members in _next_steps(pending):
            yield factor.apply_transpose(added(members), axis)
        for number, steps in pending:
            if not steps:
                yield answers[number]

    def added(pending: list[tuple[int, list[Step]]]) -> Numbers:
        total: Numbers | None = None
        owned = False
        for part in parts(pending):
            if total is None:
                total = part
            elif owned and np.can_cast(part.dtype, total.dtype):
                total += part
            else:
                total, owned = total + part, True
        assert total is not None
        return total

    return added([(number, _steps(table)) for number, table in enumerate(tables)])


def _steps(table: Table) -> list[Step]:
    steps = [(axis, factor) for axis, factor in enumerate(table.factors) if not isinstance(factor, Identity)]
    return sorted(steps, key=lambda step: (step[1].rows / step[1].size, step[0]))


def _next_steps(pending: list[tuple[int, list[Step]]]) -> list[tuple[Step, list[tuple[int, list[Step]]]]]:
    branches: dict[object, tuple[Step, list[tuple[int, list[Step]]]]] = {}
    for number, steps in pending:
        if steps:
            axis, factor = steps[0]
            branches.setdefault((axis, factor.key), (steps[0], []))[1].append((number, steps[1:]))
    return list(branches.values())
