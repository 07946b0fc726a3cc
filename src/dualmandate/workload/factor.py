"""Query matrices on one attribute, what one level moves in them and what two levels have in common.

A table is a product F₁ ⊗ … ⊗ F_d of integer matrices, one an attribute: rows are queries, columns the attribute's
levels. Some are described by a rule (each level, the total, prefix sums, all ranges), the entries of others are listed
(weighted sums, groups of levels, small dense matrices). Norms and products of whole columns are products of those of
the factors' columns: 64-bit integers where they provably fit, Python integers where they might not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.population.arrays import Integers

LARGEST_DENSE = 2**25  # entries of a matrix that is written out; 256 MiB of 64-bit numbers
LARGEST_ATTRIBUTE = 2**26  # levels of one attribute; 512 MiB of 64-bit numbers
LARGEST_INTEGER = 2**62  # 64-bit integers are used below this
Numbers = NDArray[Any]  # 64-bit integers, Python integers where those would overflow, or floats
MOST_LAYERS = 16  # of groups that overlap: beyond, columns are compared one by one


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

    @property
    def size(self) -> int:
        """Number of levels."""

    @property
    def key(self) -> Hashable:
        """Equal only for equal matrices."""

    @property
    def scales(self) -> Integers | None:
        """The one number that each column holds besides zeros (0 for an empty column); None where a column mixes."""

    @property
    def counts(self) -> Integers:
        """In how many rows each column is not zero; shape (size,)."""

    @property
    def structure(self) -> Structure:
        """How its columns may be compared."""

    def columns(self, levels: Integers) -> Integers:
        """Some columns written out; shape (rows, len(levels))."""

    def shared(self, left: Integers, right: Integers) -> Integers:
        """In how many rows both columns are not zero, level by level; `left` and `right` broadcast."""

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """F along one axis of an array: the axis has `size` entries before and `rows` after."""

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """Fᵀ along one axis of an array: the axis has `rows` entries before and `size` after."""


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
class _Rule:
    """A matrix of zeros and ones that a rule and a size describe; unless said otherwise, one row a level."""

    size: int

    def __post_init__(self) -> None:
        require_levels(self.size)

    @property
    def rows(self) -> int:
        return self.size

    @property
    def key(self) -> Hashable:
        return (type(self), self.size)

    @property
    def scales(self) -> Integers:
        return ones(self.size)

    @property
    def counts(self) -> Integers:
        return ones(self.size)


class Identity(_Rule):
    """Each level by itself: I."""

    @property
    def structure(self) -> Structure:
        return Structure(labels=(np.arange(self.size, dtype=np.int64),))

    def columns(self, levels: Integers) -> Integers:
        return np.asarray(np.arange(self.size)[:, None] == levels, dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        return np.asarray(left == right, dtype=np.int64)

    def apply(self, values: Numbers, _axis: int, /) -> Numbers:
        return values

    def apply_transpose(self, values: Numbers, _axis: int, /) -> Numbers:
        return values


class Total(_Rule):
    """All levels together: a row of ones."""

    @property
    def rows(self) -> int:
        return 1

    @property
    def structure(self) -> Structure:
        return Structure()  # all columns are alike

    def columns(self, levels: Integers) -> Integers:
        return np.ones((1, len(levels)), dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        return np.ones(np.broadcast_shapes(np.shape(left), np.shape(right)), dtype=np.int64)

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        return np.asarray(values.sum(axis=axis, keepdims=True))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        shape = list(values.shape)
        shape[axis] = self.size
        return np.broadcast_to(values, shape)


class Prefix(_Rule):
    """Everything up to and including each level: a lower triangle of ones."""

    @property
    def counts(self) -> Integers:
        return self.size - np.arange(self.size, dtype=np.int64)

    @property
    def structure(self) -> Structure:
        return Structure(ordered=True)  # levels j ≤ k share the n − k sums that reach k

    def columns(self, levels: Integers) -> Integers:
        return np.asarray(np.arange(self.size)[:, None] >= levels, dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        return np.asarray(self.size - np.maximum(left, right))

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        return np.cumsum(values, axis=axis)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        return np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis)


class AllRange(_Rule):
    """Every range of consecutive levels, by its first level and then its last."""

    @property
    def rows(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def counts(self) -> Integers:
        before = np.arange(1, self.size + 1, dtype=np.int64)
        return before * before[::-1]

    @property
    def structure(self) -> Structure:
        # Levels j ≤ k share (j + 1)(n − k) ranges: not linear, so positions are told apart.
        return Structure(marks=(np.arange(self.size, dtype=np.int64),))

    @cached_property
    def _ends(self) -> tuple[Integers, Integers]:
        first, last = np.triu_indices(self.size)
        return first.astype(np.int64), last.astype(np.int64)

    def columns(self, levels: Integers) -> Integers:
        first, last = self._ends
        return np.asarray((first[:, None] <= levels) & (levels <= last[:, None]), dtype=np.int64)

    def shared(self, left: Integers, right: Integers) -> Integers:
        return np.asarray((np.minimum(left, right) + 1) * (self.size - np.maximum(left, right)))

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        first, last = self._ends
        sums = np.cumsum(values, axis=axis)
        before = np.take(sums, first - 1, axis=axis, mode="wrap")
        # A range from the first level on has nothing before it.
        starts = [slice(None)] * values.ndim
        starts[axis] = slice(0, self.size)
        before[tuple(starts)] = 0
        return np.asarray(np.take(sums, last, axis=axis) - before)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
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


@dataclass(frozen=True, eq=False)
class Row:
    """One weighted sum over the levels: numbers in grid units, weights, or 1 where a level is counted."""

    values: Integers  # shape (size,)

    @property
    def rows(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return len(self.values)

    @cached_property
    def key(self) -> Hashable:
        return ("row", self.values.tobytes())

    @property
    def scales(self) -> Integers:
        return self.values

    @property
    def counts(self) -> Integers:
        return np.asarray(self.values != 0, dtype=np.int64)

    @property
    def structure(self) -> Structure:
        return Structure(lines=(self.values,))

    def columns(self, levels: Integers) -> Integers:
        return self.values[None, levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        return np.asarray((self.values[left] != 0) & (self.values[right] != 0), dtype=np.int64)

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        summed = np.tensordot(values, self.values, axes=([axis], [0]))
        return np.asarray(np.expand_dims(summed, axis))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        return np.asarray(values * _along(self.values, axis, values.ndim))


@dataclass(frozen=True, eq=False)
class Groups:
    """Sums over groups of levels, each level times its weight: sparse rows, one a group; groups may overlap."""

    size: int
    cells: Integers  # the levels of each group, group after group; none is empty
    starts: Integers  # where each group begins in `cells`; shape (rows,)
    weights: Integers | None = None  # of each level, not zero where it is used; None: 1 each
    names: Sequence[str] | None = None  # of the groups

    @classmethod
    def of_lists(cls, size: int, lists: Iterable[Sequence[int]], names: Sequence[str] | None = None) -> Groups:
        groups = [np.asarray(group, dtype=np.int64) for group in lists]
        if not groups or any(len(group) == 0 for group in groups):
            raise InvalidWorkload(
                "a list of groups in which a group, or everything, is empty",
                why="a sum over no levels asks nothing",
                instead="list the levels of each group",
            )
        cells = np.concatenate(groups)
        if cells.min() < 0 or cells.max() >= size or any(len(np.unique(group)) < len(group) for group in groups):
            raise InvalidWorkload(
                f"groups of {size} levels that name a level twice, or one that does not exist",
                why=f"levels are numbered 0 to {size - 1}, and a record is counted once in a group",
                instead="list each level of a group once",
            )
        lengths = np.array([len(group) for group in groups])
        return cls(size, cells, np.cumsum(lengths) - lengths, names=names)

    @classmethod
    def of_labels(cls, labels: Integers, names: Sequence[str], weights: Integers | None = None) -> Groups:
        """A partition: label i is a position in `names`, -1 counts nowhere; groups without levels are left out."""
        used = labels >= 0 if weights is None else (labels >= 0) & (weights != 0)
        cells = np.flatnonzero(used)
        cells = cells[np.argsort(labels[cells], kind="stable")].astype(np.int64)
        kept, starts = np.unique(labels[cells], return_index=True)
        named = names if len(kept) == len(names) else tuple(names[int(label)] for label in kept)
        return cls(len(labels), cells, starts.astype(np.int64), weights, named)

    @property
    def rows(self) -> int:
        return len(self.starts)

    @cached_property
    def key(self) -> Hashable:
        weights = None if self.weights is None else self.weights.tobytes()
        return ("groups", self.size, self.cells.tobytes(), self.starts.tobytes(), weights)

    @cached_property
    def scales(self) -> Integers:
        used = self.counts > 0
        return used.astype(np.int64) if self.weights is None else np.where(used, self.weights, 0)

    @cached_property
    def counts(self) -> Integers:
        return np.bincount(self.cells, minlength=self.size).astype(np.int64)

    @property
    def structure(self) -> Structure:
        """What two levels share is the number of layers in which they belong to the same group."""
        if self._layers is None:
            return Structure(marks=(_classes(self._incidence()),), lines=(self.scales,))
        inside = tuple((layer >= 0).astype(np.int64) for layer in self._layers)
        lines = () if self.weights is None else (self.scales,)
        return Structure(marks=inside, labels=self._layers, lines=lines)

    def columns(self, levels: Integers) -> Integers:
        return self._incidence()[:, levels] * self.scales[levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        if self._layers is None:
            return self._overlaps[left, right]
        found = np.zeros(np.broadcast_shapes(np.shape(left), np.shape(right)), dtype=np.int64)
        for layer in self._layers:
            labels = layer[left]
            found += (labels == layer[right]) & (labels >= 0)
        return found

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        in_order = len(self.cells) == self.size and np.array_equal(self.cells, np.arange(self.size))
        taken = values if in_order else np.take(values, self.cells, axis=axis)
        if self.weights is not None:
            taken = taken * _along(self.weights[self.cells], axis, values.ndim)
        return np.asarray(np.add.reduceat(taken, self.starts, axis=axis))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        order = np.argsort(self.cells, kind="stable")
        held, starts = np.unique(self.cells[order], return_index=True)
        sums = np.add.reduceat(np.take(values, self._row_of_entry[order], axis=axis), starts, axis=axis)
        if self.weights is not None:
            sums = sums * _along(self.weights[held], axis, values.ndim)
        shape = list(values.shape)
        shape[axis] = self.size
        found = np.zeros(shape, dtype=sums.dtype)
        place: list[slice | Integers] = [slice(None)] * values.ndim
        place[axis] = held
        found[tuple(place)] = sums
        return found

    @cached_property
    def _row_of_entry(self) -> Integers:
        return np.repeat(np.arange(self.rows), np.diff(np.append(self.starts, len(self.cells))))

    def _incidence(self) -> Integers:
        affordable(self.rows, self.size, "a dense factor")
        held = np.zeros((self.rows, self.size), dtype=np.int64)
        held[self._row_of_entry, self.cells] = 1
        return held

    @cached_property
    def _overlaps(self) -> Integers:
        affordable(self.size, self.size, "a dense factor")
        held = self._incidence().astype(np.float64)  # which multiplies far faster, and holds these counts exactly
        return np.asarray(np.rint(held.T @ held), dtype=np.int64)

    @cached_property
    def _layers(self) -> tuple[Integers, ...] | None:
        """The groups dealt into layers without overlap: the group of each level, -1 for none; None for too many."""
        if int(self.counts.max()) > MOST_LAYERS:
            return None
        if int(self.counts.max()) == 1:
            layer = np.full(self.size, -1, dtype=np.int64)
            layer[self.cells] = self._row_of_entry
            return (layer,)
        layers: list[Integers] = []
        for row, group in enumerate(np.split(self.cells, self.starts[1:])):
            free = next((layer for layer in layers if np.all(layer[group] < 0)), None)
            if free is None:
                if len(layers) == MOST_LAYERS:
                    return None
                free = np.full(self.size, -1, dtype=np.int64)
                layers.append(free)
            free[group] = row
        return tuple(layers)


@dataclass(frozen=True, eq=False)
class Dense:
    """Any small integer matrix, written out."""

    matrix: Integers  # shape (rows, size)

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.size == 0 or self.matrix.dtype != np.int64:
            raise InvalidWorkload(
                f"a query matrix of shape {self.matrix.shape} and type {self.matrix.dtype}",
                why="queries are rows of 64-bit integers over levels",
                instead="give a matrix with at least one row and one column",
            )
        affordable(self.rows, self.size, "a dense factor")

    @property
    def rows(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def key(self) -> Hashable:
        return ("dense", self.matrix.shape, self.matrix.tobytes())

    @cached_property
    def scales(self) -> Integers | None:
        largest, smallest = self.matrix.max(axis=0), self.matrix.min(axis=0)
        scale = np.where(largest > 0, largest, smallest)
        return scale if bool(np.all((self.matrix == 0) | (self.matrix == scale))) else None

    @property
    def counts(self) -> Integers:
        return np.asarray(np.count_nonzero(self.matrix, axis=0), dtype=np.int64)

    @property
    def structure(self) -> Structure:
        return Structure(marks=(_classes(self.matrix),))

    def columns(self, levels: Integers) -> Integers:
        return self.matrix[:, levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        filled = np.asarray(self.matrix != 0, dtype=np.int64)
        return np.asarray((filled.T @ filled)[left, right])

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        return np.moveaxis(np.tensordot(self.matrix, values, axes=([1], [axis])), 0, axis)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        return np.moveaxis(np.tensordot(self.matrix.T, values, axes=([1], [axis])), 0, axis)


def _along(values: Integers, axis: int, dimensions: int) -> Integers:
    shape = [1] * dimensions
    shape[axis] = len(values)
    return values.reshape(shape)


def _classes(matrix: Integers) -> Integers:
    """A number for each column, the same for equal columns."""
    _, classes = np.unique(matrix, axis=1, return_inverse=True)
    return classes.reshape(-1).astype(np.int64)


def exact(values: Integers, largest: int) -> Numbers:
    """The values in a type that holds integers up to `largest`."""
    return values if largest < LARGEST_INTEGER else values.astype(object)


def column_norms(factor: Factor, power: int) -> Numbers:
    """Σ_r |F[r, j]|^power for each level j: ‖column‖₁ or ‖column‖₂²; shape (size,)."""
    entries = _entries(factor)
    sizes = np.abs(exact(entries, _largest(entries) ** power * factor.rows)) ** power
    return np.asarray(sizes.sum(axis=0) if factor.scales is None else sizes * factor.counts)


def inner(factor: Factor, left: Integers, right: Integers) -> Numbers:
    """⟨F[:, l], F[:, r]⟩, level by level."""
    first, second, times = _paired(factor, left, right, degree=2)
    return np.asarray((first * second * times).sum(axis=0))


def least(factor: Factor, left: Integers, right: Integers, *, signed: bool = False) -> Numbers:
    """Σ_r min(|F[r, l]|, |F[r, r']|), each with the sign of the product of the two where `signed`."""
    first, second, times = _paired(factor, left, right)
    smaller = np.minimum(np.abs(first), np.abs(second)) * times
    return np.asarray((smaller * np.sign(first) * np.sign(second) if signed else smaller).sum(axis=0))


def leading(factor: Factor, left: Integers, right: Integers, *, signed: bool = False) -> Numbers:
    """Σ |F[r, l]| over the rows in which neither column is zero, with the sign of the product where `signed`."""
    first, second, times = _paired(factor, left, right)
    sizes = np.abs(first) * (second != 0) * times
    return np.asarray((sizes * np.sign(first) * np.sign(second) if signed else sizes).sum(axis=0))


def _paired(
    factor: Factor, left: Integers, right: Integers, *, degree: int = 1
) -> tuple[Numbers, Numbers, Integers | int]:
    """Entries of each pair of columns, and how often they meet; to be multiplied and added up along the first axis.

    The one number of each column, as often as both are not zero; or where a column mixes, both written out.
    """
    if factor.scales is not None:
        scales = exact(factor.scales, _largest(factor.scales) ** degree * factor.rows)
        return scales[left][None], scales[right][None], factor.shared(left, right)
    left, right = np.broadcast_arrays(left, right)
    affordable(factor.rows, left.size, "a list of columns")
    shape = (factor.rows, *left.shape)
    first, second = factor.columns(left.reshape(-1)), factor.columns(right.reshape(-1))
    largest = max(_largest(first), _largest(second)) ** degree * factor.rows
    return exact(first.reshape(shape), largest), exact(second.reshape(shape), largest), 1


def gram(factor: Factor) -> Numbers:
    """FᵀF, size × size; refused where it would not fit."""
    affordable(factor.size, factor.size, "a Gram matrix")
    levels = np.arange(factor.size, dtype=np.int64)
    return inner(factor, levels[:, None], levels[None, :])


def sizes_vary(factor: Factor) -> bool:
    """Whether entries that are not zero differ in size."""
    scales = factor.scales
    if scales is None:
        return True
    sizes = np.abs(scales[scales != 0])
    return len(sizes) > 0 and bool(sizes.min() != sizes.max())


def signs_vary(factor: Factor) -> bool:
    """Whether entries that are not zero differ in sign."""
    entries = _entries(factor)
    return bool(np.any(entries > 0) and np.any(entries < 0))


def largest_entry(factor: Factor) -> int:
    """The largest size of an entry."""
    return _largest(_entries(factor))


def _entries(factor: Factor) -> Integers:
    """The one number of each column besides zeros; all columns where one mixes."""
    return factor.columns(np.arange(factor.size, dtype=np.int64)) if factor.scales is None else factor.scales


def _largest(values: Integers) -> int:
    return int(max(values.max(), -int(values.min())))
