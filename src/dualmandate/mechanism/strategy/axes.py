"""One attribute before anything is optimized: levels that are alike merged, levels that can be exchanged in classes.

Two levels are exchangeable where swapping them changes no query's place in the workload: on a class of m such levels
every Gram matrix is aI + bJ. The levels of an attribute then split into the averages of its classes (unit vectors
1/√m) and, for each class, m − 1 differences that all look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.workload import Factor, Identity, Total
from dualmandate.workload.factor import LARGEST_INTEGER, Numbers, affordable, inner
from dualmandate.workload.levels import column_classes, row_ids

LARGEST_AXIS = 8_192  # merged levels of an attribute whose Gram matrix is written out
_ROUNDING = 1e-12  # of a sum of squares, below which what is left over is rounding error


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute: its levels after merging, the classes of those that can be exchanged, and factors on them."""

    size: int  # levels before merging
    kept: Indices  # one level of each merged level
    labels: Integers | None  # the merged level of each level; None: nothing is merged
    classes: Indices  # the class of each merged level, from 0 on in the order of first levels

    @property
    def merged(self) -> int:
        return len(self.kept)

    @cached_property
    def members(self) -> Indices:
        """Merged levels in each class, m; shape (orbits,)."""
        return np.bincount(self.classes)

    @property
    def orbits(self) -> int:
        return len(self.members)

    @cached_property
    def first(self) -> Indices:
        """The first merged level of each class; shape (orbits,)."""
        return np.unique(self.classes, return_index=True)[1]

    def levels_of(self, one: int) -> Indices:
        return np.flatnonzero(self.classes == one)

    def level_by_level(self) -> Axis:
        """The same levels, each a class of its own."""
        return Axis(self.size, self.kept, self.labels, np.arange(self.merged))

    def averaged(self, factor: Factor) -> Floats:
        """F on the averages of classes, Σ over a class divided by √m; shape (rows, orbits)."""
        affordable(factor.rows, self.orbits, "a factor over classes of levels")
        indicator = np.zeros((self.merged, self.orbits))
        indicator[np.arange(self.merged), self.classes] = 1.0 / np.sqrt(self.members)[self.classes]
        return self.apply(factor, indicator, 0)

    def gram(self, factor: Factor) -> Floats:
        """FᵀF on the averages of classes; shape (orbits, orbits)."""
        if self.orbits == 1 and isinstance(factor, Identity | Total):
            return np.array([[1.0 if isinstance(factor, Identity) else float(self.merged)]])
        if self.orbits > LARGEST_AXIS:
            raise TooLarge(
                f"an attribute with {self.orbits:,} levels that queries tell apart in an ordered way",
                why=f"strategies are optimized for at most {LARGEST_AXIS:,} such levels",
                instead="group the levels, or publish with noise on each level",
            )
        if self.merged > LARGEST_AXIS or factor.scales is None:
            rows = self.averaged(factor)
            return np.asarray(rows.T @ rows)
        products = np.asarray(inner(factor, self.kept[:, None], self.kept[None, :]), dtype=np.float64)
        if self.orbits == self.merged:
            return products
        by_class = np.zeros((self.orbits, self.merged))
        np.add.at(by_class, self.classes, products)
        summed = np.zeros((self.orbits, self.orbits))
        np.add.at(summed, self.classes, by_class.T)
        return summed / np.sqrt(np.multiply.outer(self.members, self.members))

    def own(self, factor: Factor) -> Floats:
        """a of aI + bJ on each class, which is FᵀF on its differences; 0 for a class of one; shape (orbits,)."""
        found = np.zeros(self.orbits)
        several = np.flatnonzero(self.members > 1)
        if not len(several):
            return found
        in_order = self.kept[np.argsort(self.classes, kind="stable")]
        firsts = (np.cumsum(self.members) - self.members)[several]
        here, there = in_order[firsts], in_order[firsts + 1]
        together = len(several) if factor.scales is not None else 1  # columns that mix are written out
        for start in range(0, len(several), together):
            part = slice(start, start + together)
            pairs = inner(factor, here[part], np.stack([here[part], there[part]]))
            found[several[part]] = (pairs[0] - pairs[1]).astype(np.float64)
        return found

    def spread(self, factor: Factor, one: int) -> Floats:
        """‖f − mean‖² over the levels of a class, for each row f of a factor; shape (rows,)."""
        here = (self.classes == one).astype(np.float64)
        sums = self.apply(factor, here, 0)
        if factor.scales is None:
            affordable(factor.rows, int(here.sum()), "a dense factor")
            columns = factor.columns(self.kept[self.levels_of(one)]).astype(np.float64)
            squares = np.asarray(np.square(columns).sum(axis=1))
        else:
            squares = self.apply(factor, here * factor.scales[self.kept].astype(np.float64), 0)
        differences = squares - np.square(sums) / float(self.members[one])
        return np.where(differences > _ROUNDING * np.maximum(squares, 1e-300), differences, 0.0)

    def apply(self, factor: Factor, values: Floats, place: int) -> Floats:
        """F along one axis of an array over merged levels."""
        if self.labels is None:
            return np.asarray(factor.apply(values, place), dtype=np.float64)
        affordable(factor.rows, self.merged, "a dense factor")
        columns = factor.columns(self.kept).astype(np.float64)
        return np.moveaxis(np.tensordot(columns, values, axes=([1], [place])), 0, place)

    def merge(self, values: Numbers, place: int) -> Numbers:
        """Sums over the levels that are merged, along one axis of an array."""
        return values if self.labels is None else _summed(values, self.labels, place, self.merged)

    def class_sums(self, values: Numbers, place: int) -> Numbers:
        """Σ over each class, along one axis of an array over merged levels."""
        return values if self.orbits == self.merged else _summed(values, self.classes, place, self.orbits)

    def averages(self, values: Floats, place: int) -> Floats:
        """Σ over each class divided by √m, along one axis of an array over merged levels."""
        if self.orbits == self.merged:
            return values
        lengths = np.sqrt(self.members.astype(np.float64))
        return self.class_sums(values, place) / _along(lengths, place, values.ndim)

    def from_averages(self, values: Floats, place: int) -> Floats:
        """The transpose of `averages`: each class's number divided by √m, for each of its merged levels."""
        if self.orbits == self.merged:
            return values
        lengths = np.sqrt(self.members.astype(np.float64))
        return np.take(values / _along(lengths, place, values.ndim), self.classes, axis=place)


def axis_of(factors: Sequence[Factor]) -> Axis:
    """The axis of some factors: levels merged where every factor treats them alike."""
    distinct = list({factor.key: factor for factor in factors}.values())
    kept, labels = _merged(distinct, factors[0].size)
    return Axis(factors[0].size, kept, labels, _classes(distinct, kept, None))


def with_zeros(axis: Axis, factors: Sequence[Factor], possible: Booleans) -> Axis:
    """The axis where exchangeable levels must also be possible together with the same others.

    `possible` has shape (merged levels, merged cells of the other attributes).
    """
    distinct = list({factor.key: factor for factor in factors}.values())
    return Axis(axis.size, axis.kept, axis.labels, _classes(distinct, axis.kept, possible))


def ends_of(axis: Axis, factors: Sequence[Factor]) -> Axis:
    """The axis of the two levels that enclose all others, where the columns of its factors lie on a line; else itself.

    That is so where an attribute is only counted and summed: a column between two others is a mixture of them, so that
    no norm of it is larger, and a strategy for the ends is one for all. Labels between the ends are −1.
    """
    if axis.merged <= 2 or any(factor.rows > 1 for factor in factors):
        return axis
    columns = np.concatenate([factor.columns(axis.kept) for factor in {each.key: each for each in factors}.values()])
    steps = columns - columns[:, :1]
    row, level = np.unravel_index(int(np.argmax(np.abs(steps))), steps.shape)
    line = steps[:, level]
    if int(abs(line[row])) ** 2 >= LARGEST_INTEGER or np.any(steps * line[row] != np.multiply.outer(line, steps[row])):
        return axis
    ends = np.sort([int(np.argmin(steps[row])), int(np.argmax(steps[row]))])
    labels = np.full(axis.size, -1)
    labels[axis.kept[ends]] = [0, 1]
    return Axis(axis.size, axis.kept[ends], labels, np.arange(2))


def mixture(axis: Axis, ends: Axis, factors: Sequence[Factor]) -> Floats:
    """What each merged level takes of the two ends, 0 to 1; shape (2, merged)."""
    values = next(row for factor in factors if np.ptp(row := factor.columns(axis.kept)[0]) > 0)
    low, high = values[np.searchsorted(axis.kept, ends.kept)]
    shares = (values - low) / (high - low)
    return np.stack([1.0 - shares, shares])


def _merged(factors: Sequence[Factor], size: int) -> tuple[Indices, Integers | None]:
    if any(isinstance(factor, Identity) for factor in factors):
        return np.arange(size), None
    first, labels = np.unique(column_classes(factors, size), return_index=True, return_inverse=True)[1:]
    if len(first) == size:
        return np.arange(size), None
    # Merged levels in the order of their first levels: neighbors stay neighbors.
    order = np.argsort(first)
    return first[order], np.argsort(order)[labels.reshape(-1)]


def _classes(factors: Sequence[Factor], kept: Indices, possible: Booleans | None) -> Indices:
    """Classes of exchangeable levels, numbered by their first levels."""
    marks = np.zeros(len(kept), dtype=np.int64)
    if possible is not None:
        known: dict[bytes, int] = {}
        marks = np.array([known.setdefault(row.tobytes(), len(known)) for row in np.packbits(possible, axis=1)])
    telling = [factor for factor in factors if not isinstance(factor, Identity | Total)]
    if not telling:
        found: Numbers = marks
    elif len(kept) <= LARGEST_AXIS:
        found = _swapped(telling, kept, marks)
    elif all(np.all(factor.counts <= 1) and factor.scales is not None for factor in telling):
        found = row_ids([marks, *(column for factor in telling for column in _partition(factor, kept))], len(kept))
    else:
        found = np.arange(len(kept))
    first, labels = np.unique(found, return_index=True, return_inverse=True)[1:]
    return np.asarray(np.argsort(np.argsort(first))[labels.reshape(-1)], dtype=np.intp)


def _partition(factor: Factor, kept: Indices) -> tuple[Integers, Integers]:
    """For disjoint groups: two levels are exchangeable within a group, or where each is a group by itself."""
    assert factor.scales is not None
    scales = factor.scales[kept].astype(np.int64)
    rows = np.arange(1, factor.rows + 1, dtype=np.int64)
    labels = factor.apply_transpose(rows, 0)[kept] // np.where(scales == 0, 1, scales)
    labels = np.where(scales == 0, 0, labels)
    alone = np.bincount(labels)[labels] == 1
    return scales, np.where(alone & (labels > 0), -1, labels)


def _swapped(factors: Sequence[Factor], kept: Indices, marks: Integers) -> Indices:
    """Classes of levels that may be swapped without changing any Gram matrix, by comparing rows of it."""
    grams = [np.asarray(inner(factor, kept[:, None], kept[None, :])) for factor in factors]
    found = np.full(len(kept), -1)
    known: dict[tuple[object, ...], list[int]] = {}
    for level in range(len(kept)):
        signature = (int(marks[level]), *(_signature(gram, level) for gram in grams))
        for other in known.setdefault(signature, []):
            if all(_same_but(gram, level, other) for gram in grams):
                found[level] = found[other]
                break
        else:
            known[signature].append(level)
            found[level] = level
    return found


def _signature(gram: Numbers, level: int) -> tuple[object, ...]:
    row = np.sort(gram[level])
    return gram[level, level], tuple(row.tolist()) if row.dtype == object else row.tobytes()


def _same_but(gram: Numbers, one: int, other: int) -> bool:
    """Whether two rows agree everywhere but at the two levels themselves."""
    differs = gram[one] != gram[other]
    differs[[one, other]] = False
    return not differs.any()


def _summed(values: Numbers, labels: Integers | Indices, place: int, count: int) -> Numbers:
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    return np.asarray(np.add.reduceat(np.take(values, order, axis=place), starts, axis=place))


def _along(values: Floats, place: int, dimensions: int) -> Floats:
    shape = [1] * dimensions
    shape[place] = len(values)
    return values.reshape(shape)
