"""Query matrices on one attribute whose entries are listed: weighted sums, groups of levels, small dense matrices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload
from dualmandate.workload.factor import Integers, Numbers, Structure, affordable

MOST_LAYERS = 16  # of groups that overlap: beyond, columns are compared one by one


@dataclass(frozen=True, eq=False)
class Row:
    """One weighted sum over the levels: numbers in grid units, weights, or 1 where a level is counted."""

    values: Integers  # shape (size,)

    @property
    def rows(self) -> int:
        """One."""
        return 1

    @property
    def size(self) -> int:
        """One value a level."""
        return len(self.values)

    @cached_property
    def key(self) -> Hashable:
        """The kind and the values."""
        return ("row", self.values.tobytes())

    @property
    def scales(self) -> Integers:
        """The values."""
        return self.values

    @property
    def counts(self) -> Integers:
        """1 where the value is not zero."""
        return np.asarray(self.values != 0, dtype=np.int64)

    @property
    def structure(self) -> Structure:
        """A column is its value."""
        return Structure(lines=(self.values,))

    def columns(self, levels: Integers) -> Integers:
        """The values."""
        return self.values[None, levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        """1 where neither value is zero."""
        return np.asarray((self.values[left] != 0) & (self.values[right] != 0), dtype=np.int64)

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """The weighted sum."""
        summed = np.tensordot(values, self.values, axes=([axis], [0]))
        return np.asarray(np.expand_dims(summed, axis))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """The one value times each weight."""
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
        """Groups given as lists of levels."""
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
        """One a group."""
        return len(self.starts)

    @cached_property
    def key(self) -> Hashable:
        """The kind and the entries."""
        weights = None if self.weights is None else self.weights.tobytes()
        return ("groups", self.size, self.cells.tobytes(), self.starts.tobytes(), weights)

    @cached_property
    def scales(self) -> Integers:
        """The weights, 0 for a level in no group."""
        used = self.counts > 0
        return used.astype(np.int64) if self.weights is None else np.where(used, self.weights, 0)

    @cached_property
    def counts(self) -> Integers:
        """How many groups hold each level."""
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
        """The weight of the level in each group that holds it."""
        return self._incidence()[:, levels] * self.scales[levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        """The groups that hold both."""
        if self._layers is None:
            return self._overlaps[left, right]
        found = np.zeros(np.broadcast_shapes(np.shape(left), np.shape(right)), dtype=np.int64)
        for layer in self._layers:
            labels = layer[left]
            found += (labels == layer[right]) & (labels >= 0)
        return found

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """Sums over the groups."""
        in_order = len(self.cells) == self.size and np.array_equal(self.cells, np.arange(self.size))
        taken = values if in_order else np.take(values, self.cells, axis=axis)
        if self.weights is not None:
            taken = taken * _along(self.weights[self.cells], axis, values.ndim)
        return np.asarray(np.add.reduceat(taken, self.starts, axis=axis))

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """For each level the sum over the groups that hold it."""
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
        held = self._incidence()
        return held.T @ held

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
        """Rows of the matrix."""
        return int(self.matrix.shape[0])

    @property
    def size(self) -> int:
        """Columns of the matrix."""
        return int(self.matrix.shape[1])

    @cached_property
    def key(self) -> Hashable:
        """The kind, the shape and the entries."""
        return ("dense", self.matrix.shape, self.matrix.tobytes())

    @cached_property
    def scales(self) -> Integers | None:
        """Its one number, where a column has only one besides zeros."""
        largest, smallest = self.matrix.max(axis=0), self.matrix.min(axis=0)
        scale = np.where(largest > 0, largest, smallest)
        return scale if bool(np.all((self.matrix == 0) | (self.matrix == scale))) else None

    @property
    def counts(self) -> Integers:
        """Entries that are not zero."""
        return np.asarray(np.count_nonzero(self.matrix, axis=0), dtype=np.int64)

    @property
    def structure(self) -> Structure:
        """Columns are told apart one by one."""
        return Structure(marks=(_classes(self.matrix),))

    def columns(self, levels: Integers) -> Integers:
        """Columns of the matrix."""
        return self.matrix[:, levels]

    def shared(self, left: Integers, right: Integers) -> Integers:
        """Rows in which neither entry is zero."""
        filled = np.asarray(self.matrix != 0, dtype=np.int64)
        return np.asarray((filled.T @ filled)[left, right])

    def apply(self, values: Numbers, axis: int, /) -> Numbers:
        """The matrix times the values."""
        return np.moveaxis(np.tensordot(self.matrix, values, axes=([1], [axis])), 0, axis)

    def apply_transpose(self, values: Numbers, axis: int, /) -> Numbers:
        """The transposed matrix times the values."""
        return np.moveaxis(np.tensordot(self.matrix.T, values, axes=([1], [axis])), 0, axis)


def _along(values: Integers, axis: int, dimensions: int) -> Integers:
    shape = [1] * dimensions
    shape[axis] = len(values)
    return values.reshape(shape)


def _classes(matrix: NDArray[np.int64]) -> Integers:
    """A number for each column, the same for equal columns."""
    _, classes = np.unique(matrix, axis=1, return_inverse=True)
    return classes.reshape(-1).astype(np.int64)
