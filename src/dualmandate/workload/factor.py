"""Query matrices on one attribute, known by rule instead of written out.

A table is a product F₁ ⊗ … ⊗ F_d of integer matrices, one an attribute: rows are queries, columns the attribute's
levels. Here are those that a rule describes (each level, the total, prefix sums, all ranges); `listed` has the rest.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload, TooLarge

LARGEST_DENSE = 2**25  # entries of a matrix that is written out; 256 MiB of 64-bit numbers
LARGEST_ATTRIBUTE = 2**26  # levels of one attribute; 512 MiB of 64-bit numbers
LARGEST_INTEGER = 2**62  # 64-bit integers are used below this

Integers = NDArray[np.int64]
Numbers = NDArray[Any]  # 64-bit integers, Python integers where those would overflow, or floats


@dataclass(frozen=True)
class Structure:
    """What must be known of two columns of a factor to compare them, level by level; each array has shape (size,).

    Two columns can be told from their `marks`, from whether their `labels` agree (-1 agrees with nothing), from their
    numbers on a `line` and, where `ordered`, from their positions. A column is linear in its numbers on a line, and
    what two columns share is linear in ordered positions; the rest of the matrix is fixed by marks and labels.
    """

    marks: tuple[Integers, ...] = ()
    labels: tuple[Integers, ...] = ()
    lines: tuple[Integers, ...] = ()
    ordered: bool = False


class Factor(Protocol):
    """An integer matrix, rows × levels of one attribute, that is applied without being written out."""

    @property
    def rows(self) -> int:
        """Number of queries."""
        ...

    @property
    def size(self) -> int:
        """Number of levels."""
        ...

    @property
    def key(self) -> Hashable:
        """Equal only for equal matrices."""
        ...

    @property
    def scales(self) -> Integers | None:
        """The one number that each column holds besides zeros (0 for an empty column); None where a column mixes."""
        ...

    @property
    def counts(self) -> Integers:
        """In how many rows each column is not zero; shape (size,)."""
        ...

    @property
    def structure(self) -> Structure:
        """How its columns may be compared."""
        ...

    def columns(self, levels: Integers) -> Integers:
        """Some columns written out; shape (rows, len(levels))."""
        ...

    def shared(self, left: Integers, right: Integers) -> Integers:
        """In how many rows both columns are not zero, level by level; `left` and `right` broadcast."""
        ...

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """F along one axis of an array: the axis has `size` entries before and `rows` after."""
        ...

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """Fᵀ along one axis of an array: the axis has `rows` entries before and `size` after."""
        ...


def affordable(rows: int, columns: int, what: str) -> None:
    """Refuse to write out a matrix that would not fit."""
    if rows * columns > LARGEST_DENSE:
        raise TooLarge(
            f"{what} of {rows:,} × {columns:,} numbers was asked for",
            why=f"at most {LARGEST_DENSE:,} numbers are written out",
            instead="use the implicit matrix: answers, sensitivities and errors never need the dense one",
        )


def dense(factor: Factor) -> Integers:
    """The whole matrix; refused where it would not fit."""
    affordable(factor.rows, factor.size, "a dense factor")
    return factor.columns(np.arange(factor.size, dtype=np.int64))


def ones(size: int) -> Integers:
    """A column of ones that takes no memory."""
    return np.broadcast_to(np.int64(1), (size,))


def require_levels(size: int) -> None:
    """Refuse a matrix without columns, or with more than can be held one by one."""
    if not isinstance(size, int | np.integer) or size < 1:
        raise InvalidWorkload(
            f"a query matrix over {size} levels",
            why="queries are asked about at least one level",
            instead="give a positive whole number of levels",
        )
    if size > LARGEST_ATTRIBUTE:
        raise TooLarge(
            f"a query matrix over {size:,} levels of one attribute",
            why=f"at most {LARGEST_ATTRIBUTE:,} levels of an attribute are told apart",
            instead="choose a coarser grid, or bin the number",
        )


@dataclass(frozen=True)
class Identity:
    """Each level by itself: I."""

    size: int

    def __post_init__(self) -> None:
        require_levels(self.size)

    @property
    def rows(self) -> int:
        """One a level."""
        return self.size

    @property
    def key(self) -> Hashable:
        """The kind and the size."""
        return ("identity", self.size)

    @property
    def scales(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def counts(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def structure(self) -> Structure:
        """Two levels are the same, or they are not."""
        return Structure(labels=(np.arange(self.size, dtype=np.int64),))

    def columns(self, levels: Integers) -> Integers:
        """Unit vectors."""
        return np.asarray(np.arange(self.size)[:, None] == levels, dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        """1 for the same level."""
        return np.asarray(left == right, dtype=np.int64)

    def apply(self, values: Numbers, _axis: int, /) -> Numbers:
        """The values themselves."""
        return values

    def apply_transpose(self, values: Numbers, _axis: int, /) -> Numbers:
        """The values themselves."""
        return values


@dataclass(frozen=True)
class Total:
    """All levels together: a row of ones."""

    size: int

    def __post_init__(self) -> None:
        require_levels(self.size)

    @property
    def rows(self) -> int:
        """One."""
        return 1

    @property
    def key(self) -> Hashable:
        """The kind and the size."""
        return ("total", self.size)

    @property
    def scales(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def counts(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def structure(self) -> Structure:
        """All columns are alike."""
        return Structure()

    def columns(self, levels: Integers) -> Integers:
        """Ones."""
        return np.ones((1, len(levels)), dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        """Always 1."""
        return np.ones(np.broadcast_shapes(np.shape(left), np.shape(right)), dtype=np.int64)

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """The sum."""
        return np.asarray(values.sum(axis=axis, keepdims=True))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """The one value, for every level."""
        shape = list(values.shape)
        shape[axis] = self.size
        return np.broadcast_to(values, shape)


@dataclass(frozen=True)
class Prefix:
    """Everything up to and including each level: a lower triangle of ones."""

    size: int

    def __post_init__(self) -> None:
        require_levels(self.size)

    @property
    def rows(self) -> int:
        """One a level."""
        return self.size

    @property
    def key(self) -> Hashable:
        """The kind and the size."""
        return ("prefix", self.size)

    @property
    def scales(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def counts(self) -> Integers:
        """The sums that reach each level."""
        return self.size - np.arange(self.size, dtype=np.int64)

    @property
    def structure(self) -> Structure:
        """Levels j ≤ k share the n − k sums that reach k."""
        return Structure(ordered=True)

    def columns(self, levels: Integers) -> Integers:
        """Ones from the level on."""
        return np.asarray(np.arange(self.size)[:, None] >= levels, dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        """The sums that reach the later of the two."""
        return np.asarray(self.size - np.maximum(left, right))

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """Running sums."""
        return np.cumsum(values, axis=axis)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """Running sums from the end."""
        return np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis)


@dataclass(frozen=True)
class AllRange:
    """Every range of consecutive levels, by its first level and then its last."""

    size: int

    def __post_init__(self) -> None:
        require_levels(self.size)

    @property
    def rows(self) -> int:
        """One for each first ≤ last."""
        return self.size * (self.size + 1) // 2

    @property
    def key(self) -> Hashable:
        """The kind and the size."""
        return ("all range", self.size)

    @property
    def scales(self) -> Integers:
        """Ones."""
        return ones(self.size)

    @property
    def counts(self) -> Integers:
        """The ranges that hold each level."""
        before = np.arange(1, self.size + 1, dtype=np.int64)
        return before * before[::-1]

    @property
    def structure(self) -> Structure:
        """Levels j ≤ k share (j + 1)(n − k) ranges: not linear, so positions are told apart."""
        return Structure(marks=(np.arange(self.size, dtype=np.int64),))

    @cached_property
    def _ends(self) -> tuple[Integers, Integers]:
        first, last = np.triu_indices(self.size)
        return first.astype(np.int64), last.astype(np.int64)

    def columns(self, levels: Integers) -> Integers:
        """1 where the range holds the level."""
        first, last = self._ends
        return np.asarray((first[:, None] <= levels) & (levels <= last[:, None]), dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        """The ranges that begin before both and end after both."""
        return np.asarray((np.minimum(left, right) + 1) * (self.size - np.maximum(left, right)))

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """Differences of running sums."""
        first, last = self._ends
        sums = np.cumsum(values, axis=axis)
        before = np.take(sums, first - 1, axis=axis, mode="wrap")
        # A range from the first level on has nothing before it.
        starts = [slice(None)] * values.ndim
        starts[axis] = slice(0, self.size)
        before[tuple(starts)] = 0
        return np.asarray(np.take(sums, last, axis=axis) - before)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """Ranges that have begun, less those that have ended."""
        first, last = self._ends
        edges = np.arange(self.size)
        begun = np.add.reduceat(values, np.searchsorted(first, edges), axis=axis)
        by_last = np.argsort(last, kind="stable")
        ended = np.add.reduceat(np.take(values, by_last, axis=axis), np.searchsorted(last[by_last], edges), axis=axis)
        ended_before = np.roll(ended, 1, axis=axis)
        begin = [slice(None)] * values.ndim
        begin[axis] = slice(0, 1)
        ended_before[tuple(begin)] = 0
        return np.cumsum(begun - ended_before, axis=axis)
