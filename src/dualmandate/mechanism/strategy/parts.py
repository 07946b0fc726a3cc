"""A workload taken apart before anything is optimized: independent groups of attributes, levels that are alike merged.

A workload is a product of smaller ones where its tables are all combinations of theirs. Within a part, levels that
every table treats alike become one level, and an attribute whose levels are all exchangeable (each Gram matrix is
aI + bJ) is known by two eigenvalues a table: a + bn on the mean, a on the n − 1 differences.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import TooLarge
from dualmandate.mechanism.dense_strategy import possible_cells
from dualmandate.workload import Factor, Identity, Total, Workload
from dualmandate.workload.columns import inner
from dualmandate.workload.factor import LARGEST_DENSE, Numbers, affordable
from dualmandate.workload.levels import column_classes

LARGEST_AXIS = 4_096  # merged levels of an attribute whose Gram matrix is written out
MOST_BLOCKS = 2**16  # sets of exchangeable attributes that are told apart
_EXCHANGEABLE = 1e-12

Key = tuple[Hashable, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute of a part: its levels after merging, and how each factor looks on them."""

    size: int  # levels before merging
    kept: NDArray[np.intp]  # one level of each class
    labels: NDArray[np.int64] | None  # the class of each level; None: nothing is merged

    @property
    def merged(self) -> int:
        """Levels after merging."""
        return len(self.kept)

    def gram(self, factor: Factor) -> Floats:
        """FᵀF on the merged levels."""
        if self.merged > LARGEST_AXIS:
            raise TooLarge(
                f"an attribute with {self.merged:,} levels that queries tell apart in an ordered way",
                why=f"strategies are optimized for at most {LARGEST_AXIS:,} such levels",
                instead="group the levels, or publish with noise on each level",
            )
        if factor.scales is None:
            columns = factor.columns(self.kept).astype(np.float64)
            return np.asarray(columns.T @ columns)
        return np.asarray(inner(factor, self.kept[:, None], self.kept[None, :]), dtype=np.float64)

    def apply(self, factor: Factor, values: Floats, place: int) -> Floats:
        """F along one axis of an array over merged levels."""
        if self.labels is None:
            return np.asarray(factor.apply(values, place), dtype=np.float64)
        affordable(factor.rows, self.merged, "a dense factor")
        columns = factor.columns(self.kept).astype(np.float64)
        return np.moveaxis(np.tensordot(columns, values, axes=([1], [place])), 0, place)

    def merge(self, values: Numbers, place: int) -> Numbers:
        """Sums over the levels of each class, along one axis of an array."""
        if self.labels is None:
            return values
        moved = np.moveaxis(values, place, 0)
        summed = np.zeros((self.merged, *moved.shape[1:]), dtype=values.dtype)
        np.add.at(summed, self.labels, moved)
        return np.moveaxis(summed, 0, place)

    def row_sums(self, factor: Factor) -> Floats:
        """Σ of each row over merged levels; shape (rows,)."""
        return self.apply(factor, np.ones(self.merged), 0)

    def row_squares(self, factor: Factor) -> Floats:
        """Σ of squares of each row over merged levels; shape (rows,)."""
        if factor.scales is None:
            affordable(factor.rows, self.merged, "a dense factor")
            return np.asarray(np.square(factor.columns(self.kept).astype(np.float64)).sum(axis=1))
        return self.apply(factor, factor.scales[self.kept].astype(np.float64), 0)


@dataclass(frozen=True, eq=False)
class Part:
    """Attributes whose tables are not a product of smaller workloads, with the squared weight of each table."""

    axes: tuple[int, ...]  # attributes of the domain
    levels: tuple[Axis, ...]  # one an attribute
    tables: dict[Key, tuple[Factor, ...]]
    squared_weights: dict[Key, float]
    possible: NDArray[np.bool_] | None = None  # merged cells that can occur, row-major; None: all

    @property
    def merged_shape(self) -> tuple[int, ...]:
        """Merged levels of each attribute."""
        return tuple(level.merged for level in self.levels)

    @property
    def merged_size(self) -> int:
        """Merged cells (an exact integer)."""
        return math.prod(self.merged_shape)

    @cached_property
    def eigenvalues(self) -> tuple[dict[Hashable, tuple[float, float]] | None, ...]:
        """For each attribute with exchangeable levels, by factor: the Gram matrix on the mean and on differences."""
        if self.possible is not None:
            return (None,) * len(self.axes)
        found = []
        for place, level in enumerate(self.levels):
            factors = {factors[place].key: factors[place] for factors in self.tables.values()}
            pairs = {key: _exchangeable(level, factor) for key, factor in factors.items()}
            known = {key: pair for key, pair in pairs.items() if pair is not None}
            found.append(known if len(known) == len(pairs) else None)
        return tuple(found)

    @cached_property
    def exchangeable(self) -> tuple[int, ...]:
        """Places of the attributes whose levels can be permuted freely."""
        return tuple(place for place, pairs in enumerate(self.eigenvalues) if pairs is not None)

    @cached_property
    def ordered(self) -> tuple[int, ...]:
        """Places of all other attributes."""
        return tuple(place for place, pairs in enumerate(self.eigenvalues) if pairs is None)

    def block_weights(self) -> dict[frozenset[int], dict[Key, float]]:
        """For each set S of exchangeable attributes in differences (the others averaged): what each table weighs.

        w_t²·Π_{i∈S} a_i·Π_{i∉S} (a_i + b_i·n_i); tables that weigh nothing there are left out, and so is S if all do.
        """
        blocks: dict[frozenset[int], dict[Key, float]] = {}
        for key in self.tables:
            pairs = {place: (self.eigenvalues[place] or {})[key[place]] for place in self.exchangeable}
            fine = [place for place, (_, a) in pairs.items() if a > 0 and self.levels[place].merged > 1]
            if 2 ** len(fine) + len(blocks) > MOST_BLOCKS:
                raise TooLarge(
                    f"a table by {len(fine)} attributes among {len(self.tables):,} tables",
                    why=f"at most {MOST_BLOCKS:,} sets of attributes are told apart",
                    instead="ask for tables of fewer attributes",
                )
            for chosen in (frozenset(c) for order in range(len(fine) + 1) for c in combinations(fine, order)):
                weight = self.squared_weights[key] * math.prod(
                    a if place in chosen else mean for place, (mean, a) in pairs.items()
                )
                if weight > 0:
                    blocks.setdefault(chosen, {})[key] = weight
        return blocks

    def gram(self, weights: dict[Key, float], places: Sequence[int]) -> Floats:
        """Σ_t weight_t · ⊗ FᵀF over some attributes."""
        size = math.prod(self.levels[place].merged for place in places)
        affordable(size, size, "a Gram matrix")
        total = np.zeros((size, size))
        grams: dict[Key, Floats] = {}
        for key, weight in weights.items():
            for place in places:
                if (place, key[place]) not in grams:
                    grams[place, key[place]] = self.levels[place].gram(self.tables[key][place])
            total += weight * _kron([grams[place, key[place]] for place in places])
        return total

    def rows(self, weights: dict[Key, float], places: Sequence[int]) -> Floats:
        """The queries √weight_t · ⊗F over some attributes, written out on merged cells; equal queries once."""
        merged: dict[Key, tuple[float, Key]] = {}
        for key, weight in weights.items():
            short = tuple(key[place] for place in places)
            merged[short] = (merged.get(short, (0.0, key))[0] + weight, key)
        blocks = []
        for weight, key in merged.values():
            factors = [self.tables[key][p].columns(self.levels[p].kept).astype(np.float64) for p in places]
            blocks.append(math.sqrt(weight) * _kron(factors))
        return np.concatenate(blocks)

    def row_count(self, weights: dict[Key, float], places: Sequence[int]) -> int:
        """How many rows `rows` would give."""
        short = {tuple(key[place] for place in places): key for key in weights}
        return sum(math.prod(self.tables[key][place].rows for place in places) for key in short.values())


def parts_of(workload: Workload, *, split: bool = True) -> tuple[Part, ...]:
    """The parts of a workload: attributes split off one by one where the tables are all combinations (if `split`)."""
    squares: dict[Key, Fraction] = {}
    tables: dict[Key, tuple[Factor, ...]] = {}
    for table in workload.tables:
        key = tuple(factor.key for factor in table.factors)
        tables[key] = table.factors
        squares[key] = squares.get(key, Fraction(0)) + table.weight**2
    axes = tuple(range(len(workload.domain.shape)))
    if workload.domain.structural_zeros:
        return (_part_with_zeros(workload, tables, squares),)
    found = []
    for axis in axes if split else ():
        place = axes.index(axis)
        alone = _alone(squares, place) if len(axes) > 1 else None
        if alone is not None:
            single: dict[Key, tuple[Factor, ...]] = {
                (key,): (next(f[place] for k, f in tables.items() if k[place] == key),) for key in alone
            }
            found.append(_part((axis,), single, {(key,): value for key, value in alone.items()}))
            first = next(iter(alone))
            axes = axes[:place] + axes[place + 1 :]
            squares = {k[:place] + k[place + 1 :]: value for k, value in squares.items() if k[place] == first}
            tables = {k[:place] + k[place + 1 :]: f[:place] + f[place + 1 :] for k, f in tables.items()}
    found.append(_part(axes, tables, squares))
    return tuple(found)


def _alone(squares: dict[Key, Fraction], place: int) -> dict[Hashable, Fraction] | None:
    """Squared weights of one attribute's factors relative to the first, if they multiply those of the rest."""
    rest: dict[Key, dict[Hashable, Fraction]] = {}
    for key, value in squares.items():
        rest.setdefault(key[:place] + key[place + 1 :], {})[key[place]] = value
    first_key = next(iter(squares))[place]
    ratios: dict[Hashable, Fraction] | None = None
    for values in rest.values():
        if first_key not in values:
            return None
        found = {key: value / values[first_key] for key, value in values.items()}
        if ratios is not None and found != ratios:
            return None
        ratios = found
    return ratios


def _part(axes: tuple[int, ...], tables: dict[Key, tuple[Factor, ...]], squares: dict[Key, Fraction]) -> Part:
    levels = tuple(_axis([factors[place] for factors in tables.values()]) for place in range(len(axes)))
    return Part(axes, levels, tables, {key: float(value) for key, value in squares.items()})


def _part_with_zeros(workload: Workload, tables: dict[Key, tuple[Factor, ...]], squares: dict[Key, Fraction]) -> Part:
    """All attributes together: a merged cell is possible where one of its cells is."""
    if workload.domain.size > LARGEST_DENSE:
        raise TooLarge(
            f"a strategy for {workload.domain.size:.3g} cells with structural zeros",
            why=f"impossible cells are listed for at most {LARGEST_DENSE:,} cells",
            instead="optimize for fewer attributes, or without the structural zeros",
        )
    part = _part(tuple(range(len(workload.domain.shape))), tables, squares)
    possible: Numbers = possible_cells(workload.domain).reshape(workload.domain.shape).astype(np.int64)
    for place, level in enumerate(part.levels):
        possible = level.merge(possible, place)
    return Part(part.axes, part.levels, tables, part.squared_weights, (possible > 0).reshape(-1))


def _kron(matrices: Sequence[Floats]) -> Floats:
    product: Floats = np.ones((1, 1))
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix), dtype=np.float64)
    return product


def _axis(factors: Sequence[Factor]) -> Axis:
    size = factors[0].size
    distinct = list({factor.key: factor for factor in factors}.values())
    if any(isinstance(factor, Identity) for factor in distinct):
        return Axis(size, np.arange(size), None)
    first, labels = np.unique(column_classes(distinct, size), return_index=True, return_inverse=True)[1:]
    if len(first) == size:
        return Axis(size, np.arange(size), None)
    # Classes in the order of their first levels: neighbors stay neighbors.
    order = np.argsort(first)
    return Axis(size, first[order], np.argsort(order)[labels.reshape(-1)])


def _exchangeable(level: Axis, factor: Factor) -> tuple[float, float] | None:
    if isinstance(factor, Identity):
        return 1.0, 1.0
    if isinstance(factor, Total):
        return float(level.merged), 0.0
    gram = level.gram(factor)
    if level.merged == 1:
        return float(gram[0, 0]), 0.0
    both, own = float(gram[0, 1]), float(gram[0, 0] - gram[0, 1])
    model = own * np.eye(level.merged) + both
    if np.abs(gram - model).max() > _EXCHANGEABLE * max(float(np.abs(gram).max()), 1e-300):
        return None
    return own + both * level.merged, own
