"""One table: a weighted product of query matrices, one an attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.errors import InvalidWorkload
from dualmandate.workload.columns import column_norms, exact
from dualmandate.workload.factor import AllRange, Factor, Identity, Prefix, Total
from dualmandate.workload.listed import Groups, Row

if TYPE_CHECKING:
    from dualmandate.workload.tabulation import Tabulation


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

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise InvalidWorkload(
                f"the table '{self.name}' has weight {self.weight}",
                why="a table that weighs nothing asks nothing",
                instead="give it a positive weight, or leave it out",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows of each factor."""
        return tuple(factor.rows for factor in self.factors)

    @property
    def query_count(self) -> int:
        """Number of queries (an exact integer, however large)."""
        return math.prod(self.shape)

    @property
    def label_axes(self) -> tuple[int, ...]:
        """The attributes that label a row."""
        if self.axes is not None:
            return self.axes
        return tuple(axis for axis, factor in enumerate(self.factors) if not isinstance(factor, Total | Row))

    @property
    def largest_entry(self) -> int:
        """The largest size of an entry of the integer product."""
        return math.prod(_largest_entry(factor) for factor in self.factors)

    @property
    def squared_norm(self) -> Fraction:
        """Σ of all squared entries, weight included (‖Q‖²_F: the error of noise of variance 1 on every cell)."""
        return self.weight**2 * math.prod(_sum_of_squares(factor) for factor in self.factors)

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


def _sum_of_squares(factor: Factor) -> int:
    squares = column_norms(factor, 2)
    return int(exact(squares, int(squares.max()) * factor.size).sum())


def _largest_entry(factor: Factor) -> int:
    scales = factor.scales
    if scales is None:
        scales = factor.columns(np.arange(factor.size, dtype=np.int64))
    return int(max(scales.max(), -int(scales.min())))
