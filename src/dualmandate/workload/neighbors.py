"""How far a record can move the answers, asked attribute by attribute.

Add or remove one record of cell c: the answers move by column c of the matrix, in each table by ‖a‖ = Π ‖a_i‖, a
product over attributes. Structural zeros are rules on cells, exact totals rules on pairs of cells (see `pairs`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.population.domain import Domain
from dualmandate.population.invariants import Labels
from dualmandate.workload.columns import column_norms, signs_vary, sizes_vary
from dualmandate.workload.extremum import CHUNK, Choices, Flags, Problem, undominated
from dualmandate.workload.factor import Factor, Integers, Numbers, Structure
from dualmandate.workload.hull import corners_within
from dualmandate.workload.levels import joined, row_ids, run_ends, twins_of
from dualmandate.workload.table import Table


@dataclass(frozen=True)
class Impossible:
    """A structural zero: a cell whose levels agree with all of its masks cannot occur."""

    flags: tuple[int, ...]
    monotone: bool = True

    def allows(self, flags: Flags) -> Flags:
        """Cells that miss some mask."""
        return ~flags[:, 0]


@dataclass(frozen=True)
class Question:
    """How far the answers of some tables can move: Δ₁ for `power` 1, Δ₂² for 2.

    The sum of products is an integer: `denominator` times the sensitivity, to the power.
    """

    domain: Domain
    tables: tuple[Table, ...]
    power: int
    invariants: tuple[Labels, ...] = ()
    heed_zeros: bool = True

    @cached_property
    def denominator(self) -> int:
        """The smallest number that turns every weight, to the power, into an integer."""
        return math.lcm(*(table.weight.denominator**self.power for table in self.tables))

    @cached_property
    def coefficients(self) -> tuple[int, ...]:
        """The weight of each table, to the power, in units of the denominator."""
        return tuple(int(table.weight**self.power * self.denominator) for table in self.tables)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """What is known of each attribute."""
        zeros = self.domain.all_zero_masks if self.heed_zeros else ()
        return tuple(
            Axis(
                tuple({table.factors[axis].key: table.factors[axis] for table in self.tables}.values()),
                self.power,
                tuple(masks.get(axis) for masks in zeros),
                tuple(labels.get(axis) for labels in self.invariants),
            )
            for axis in range(len(self.domain.shape))
        )

    @cached_property
    def always_inside(self) -> frozenset[int]:
        """Invariants whose groups together hold every cell."""
        return frozenset(
            number
            for number, labels in enumerate(self.invariants)
            if all(bool(np.all(each >= 0)) for each in labels.values())
        )

    def places(self, table: Table) -> tuple[int, ...]:
        """For each attribute, which of its distinct factors the table uses."""
        return tuple(axis.positions[factor.key] for axis, factor in zip(self.axes, table.factors, strict=True))


@dataclass(frozen=True)
class Axis:
    """One attribute: its distinct factors, the masks of structural zeros and the groups of invariants on it."""

    factors: tuple[Factor, ...]
    power: int
    zeros: tuple[Flags | None, ...]
    groups: tuple[Integers | None, ...]

    @cached_property
    def positions(self) -> dict[object, int]:
        """The place of each factor, by its key."""
        return {factor.key: place for place, factor in enumerate(self.factors)}

    @cached_property
    def norms(self) -> tuple[Numbers, ...]:
        """Column norms (to the power) of each factor."""
        return tuple(column_norms(factor, self.power) for factor in self.factors)

    @cached_property
    def unequal(self) -> tuple[bool, ...]:
        """Whether the entries of each factor differ in size."""
        return tuple(sizes_vary(factor) for factor in self.factors)

    @cached_property
    def signed(self) -> tuple[bool, ...]:
        """Whether the entries of each factor differ in sign."""
        return tuple(signs_vary(factor) for factor in self.factors)

    @property
    def size(self) -> int:
        """Number of levels."""
        return self.factors[0].size

    @cached_property
    def structure(self) -> Structure:
        """All that tells two levels apart: in the factors, in structural zeros and in the groups of invariants."""
        masks = tuple(mask.astype(np.int64) for mask in self.zeros if mask is not None)
        groups = tuple(labels for labels in self.groups if labels is not None)
        inside = tuple((labels >= 0).astype(np.int64) for labels in groups)
        told = Structure(marks=(*masks, *inside), labels=groups)
        return joined([*(factor.structure for factor in self.factors), told])

    @cached_property
    def ends(self) -> Integers:
        """Levels that remain when runs keep only their ends."""
        return run_ends(self.structure, self.size)

    @cached_property
    def essential(self) -> Integers:
        """Levels that may make the farthest pair."""
        return self.ends[twins_of(self.structure, self.ends)]

    def cell_flags(self, levels: Integers) -> Flags:
        """One flag a structural zero: whether the level agrees with it."""
        columns = [np.ones(len(levels), np.bool_) if mask is None else mask[levels] for mask in self.zeros]
        return np.stack(columns, axis=1) if columns else np.zeros((len(levels), 0), dtype=np.bool_)


def cells(question: Question) -> Problem:
    """Add or remove one record: the largest column norm."""
    columns = np.array([question.places(table) for table in question.tables], dtype=np.int64)
    axes = tuple(_cell_choices(axis) for axis in question.axes)
    zeros = range(len(question.axes[0].zeros))
    return Problem(question.coefficients, columns, axes, tuple(Impossible((zero,)) for zero in zeros))


def _cell_choices(axis: Axis) -> Choices:
    levels = axis.ends
    found: list[Choices] = []
    step = max(1, CHUNK // (len(axis.factors) + len(axis.zeros)))
    for begin in range(0, len(levels), step):
        some = levels[begin : begin + step]
        found.append(_best_cells(np.stack([norms[some] for norms in axis.norms], axis=1), axis.cell_flags(some)))
    numbers, flags = (np.concatenate([getattr(each, part) for each in found]) for part in ("numbers", "flags"))
    kept = corners_within(numbers, row_ids(flags.T, len(flags)))
    return _best_cells(numbers[kept], flags[kept])


def _best_cells(numbers: Numbers, flags: Flags) -> Choices:
    best = undominated(np.concatenate([numbers, ~flags], axis=1))
    return Choices(numbers[best], flags[best])
