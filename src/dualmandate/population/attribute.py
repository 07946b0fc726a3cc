"""What can be recorded about a unit, one attribute at a time.

A level is one value an attribute can take; a missing answer is a level like any other. Levels come from the program,
never from the data. Numbers are recorded on a declared grid between declared bounds, so that sums over them are
integers in grid units and their sensitivity is known.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population.rational import Written, rational, written

LARGEST_LISTED_ATTRIBUTE = 2**26  # levels whose numbers are held one by one; 512 MiB of 64-bit integers


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

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise InvalidDomain("an attribute has no name", why="tables name attributes", instead="give it a name")
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
        cls,
        name: str,
        lower: Written,
        upper: Written,
        grid: Written = 1,
        *,
        missing: str | None = None,
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
        """Number of levels."""
        return len(self.levels)

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
        near = () if isinstance(self.levels, GridLevels) else difflib.get_close_matches(level, self.levels[:1000], n=1)
        span = f"its levels run from '{self.levels[0]}' to '{self.levels[-1]}'"
        raise InvalidDomain(
            f"'{level}' is not a level of '{self.name}'",
            why="levels come from the program's code lists, never from the data",
            instead=f"did you mean '{near[0]}'?" if near else span,
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
    try:
        return rational(number)
    except ValueError as error:
        raise InvalidDomain(
            f"'{number}' among the numbers of '{name}'", why=f"it is {error}", instead="give a finite number"
        ) from None
