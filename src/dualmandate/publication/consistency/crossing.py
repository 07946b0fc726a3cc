"""Measured tables that cross the chain, or the tree: estimates with them, held to nothing but their noise.

Let P be the covariance of the estimates x̂ of a nest alone, K what crossing tables count, z their numbers and R their
variances. With all measurements together the best linear unbiased estimates are x̂ + P·Kᵀλ, (K·P·Kᵀ + R)·λ = z − K·x̂:
one equation a crossing number, however many cells there are. P·Kᵀλ are the estimates of the nest from σ²·Kᵀλ in place
of measurements of its cells (with variance σ²) and 0 in place of all others; so conjugate gradients need passes over
the tree alone, and only down to the level that is counted across. Whatever λ is linear in z − K·x̂ keeps estimates
unbiased: how far the gradients went is a matter of precision, 10⁻¹² here, and of nothing else.

Where groupings of cells are orthogonal, estimates have a closed form, and standard errors are exact (`strata`).
Elsewhere standard errors are upper bounds: of a table of the nest that of the nest alone, of a crossing table that of
its own number and the nest's put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import (
    Innovations,
    MeasuredTables,
    Pair,
    TreeEstimates,
    Weights,
    combined,
    estimate,
    node_innovations,
    pass_down,
    pass_up,
    spread_across,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.strata import CrossingMeasurement, Strata, StratumEstimates


@dataclass(frozen=True, eq=False)
class ShiftedMeasurements:
    """Measurements of cells and what crossing tables add to them; rows are made when they are read."""

    base: NDArray[Any] = field(repr=False)
    shifts: tuple[tuple[Integers, Integers, Floats], ...] = field(repr=False)  # areas of nodes, groups, numbers
    factor: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    def __getitem__(self, rows: slice) -> Floats:
        found = self.base[rows].astype(np.float64)
        for areas, groups, numbers in self.shifts:
            spread_across(numbers, areas[rows], groups, self.factor, found)
        return found


PRECISION = 1e-12  # λ is found to this precision, relative.
MOST_VAIN = 50  # After so many steps that came no nearer, rounding is all that is left.
NOTHING = 1e-12  # Rounding leaves so much of the spread of a whole group, which has none.
FAINT = 1e5  # A measurement with so many times the largest variance says next to nothing.
ROUNDS = 4  # Each leaves less than 10⁻⁴ of what depends on it.

Times = Callable[[Sequence[Floats]], list[Floats]]  # The product of a symmetric system of equations with λ.


@dataclass(frozen=True, eq=False)
class CrossedEstimates:
    """Best linear unbiased estimates of a nest and of the tables that cross it."""

    estimates: TreeEstimates
    alone: TreeEstimates  # what the nest says without the others
    crossings: tuple[CrossingMeasurement, ...]
    tables: tuple[Floats, ...] = field(repr=False)  # of the crossings; shape (areas, groups) each

    @property
    def best(self) -> bool:
        return self.estimates.upward.weights.best

    def bounds(self, number: int) -> Floats:
        """Upper bounds of the standard errors of a crossing table; shape (areas, groups)."""
        crossing = self.crossings[number]
        own = np.full(crossing.shape, crossing.variance)
        if crossing.in_place:
            own = combined(own, nest_variances(self.alone, crossing))[0]
        return np.asarray(np.sqrt(own))


def estimate_crossed(
    nest: tuple[Tree, PartitionChain],
    measured: MeasuredTables,
    variances: Mapping[Pair, float],
    crossed: Sequence[tuple[CrossingMeasurement, NDArray[Any]]],
) -> CrossedEstimates:
    """Best linear unbiased estimates from what a nest and crossing tables measured; see `estimate` for the nest.

    Where a crossing table counts cells that nobody measured, what is known of them is taken for a measurement with a
    very large variance, again and again, until nothing depends on it: a few rounds.
    """
    tree, chain = nest
    alone = found = estimate(tree, chain, measured, variances)
    crossings = tuple(crossing for crossing, _ in crossed)
    if not crossings:
        return CrossedEstimates(alone, alone, (), ())
    levels = {crossing.level for crossing in crossings if not _usable(tree, chain, variances, crossing)}
    unknown = FAINT * max(*variances.values(), *(crossing.variance for crossing in crossings))
    strata = Strata.of(tree, chain, variances, crossings)
    if strata is not None:
        numbers = [(level, chain.ancestors(k), measured[level, k], each) for (level, k), each in variances.items()]
        numbers += [(each.level, each.groups, values, each.variance) for each, values in crossed]
        own = StratumEstimates.of(tree, strata, numbers)
        tables = tuple(own.numbers(each.level, each.groups, each.shape[1]) for each in crossings)
        return CrossedEstimates(own.over_chain(alone.upward.weights, unknown), alone, crossings, tables)
    all_variances = dict(variances) | {(level, chain.last): unknown for level in levels}
    for _ in range(ROUNDS if levels else 1):
        known = dict(measured) | {(level, chain.last): found.tables(level)[-1] for level in levels}
        start = estimate(tree, chain, known, all_variances) if levels else alone
        system = _System(tree, start.upward.weights, all_variances, crossings)
        gaps = [np.asarray(numbers) - crossing.of(start) for crossing, numbers in crossed]
        diagonals = [_diagonal(start, crossing) for crossing in crossings]
        multipliers = _solved(system.times, gaps, diagonals)
        found = estimate(tree, chain, system.shifted(known, multipliers), all_variances)
    return CrossedEstimates(found, alone, crossings, tuple(crossing.of(found) for crossing in crossings))


def _usable(
    tree: Tree, chain: PartitionChain, variances: Mapping[Pair, float], crossing: CrossingMeasurement
) -> list[int]:
    """Levels, at or below that of a crossing table, where single cells are measured."""
    return [level for level in range(crossing.level, tree.last + 1) if variances.get((level, chain.last), 0.0) > 0]


def _diagonal(estimates: TreeEstimates, crossing: CrossingMeasurement) -> Floats:
    """About the variances of a crossing table less what the nest alone says of it; shape (areas, groups)."""
    own = np.full(crossing.shape, crossing.variance)
    return own + nest_variances(estimates, crossing) if crossing.in_place else own


def nest_variances(estimates: TreeEstimates, crossing: CrossingMeasurement) -> Floats:
    """Variances of a crossing table as the nest alone tells it, where areas are nodes; shape (nodes, groups).

    For a sum a·x of cells Var = Σ_k t_k·Σ_g (Σ b·a² − (Σ b·a)²) over the parts of each group g, with a of a group the
    sum b·a of its parts, and at last a²·Var of the total.
    """
    weights, chain, columns = estimates.upward.weights, estimates.chain, crossing.shape[1]
    variances, found = estimates.variances[crossing.level], np.zeros(crossing.shape)
    places = np.flatnonzero((crossing.groups >= 0) & chain.possible[-1])
    groups, amounts = crossing.groups[places], np.ones(places.size, dtype=np.float64)
    for k in range(chain.last, 0, -1):
        shares, parents = weights.shares[k][places], chain.parents[k - 1][places]
        pairs, members = np.unique(parents * columns + groups, return_inverse=True)
        means = np.bincount(members, weights=shares * amounts)
        spread = np.bincount(members, weights=shares * amounts**2) - means**2
        places, groups = np.divmod(pairs, columns)
        of_class = np.zeros((variances[k].shape[1], columns))
        alike = weights.classes[k][chain.starts[k - 1][places]]
        np.add.at(of_class, (alike, groups), np.where(spread > NOTHING, spread, 0.0))
        found += _product(variances[k], of_class)
        amounts = means.astype(np.float64)
    totals = np.zeros((1, columns))
    totals[0, groups] = amounts**2
    return found + _product(variances[0], totals)


def _product(variances: Floats, coefficients: Floats) -> Floats:
    """Their product, where ∞ × 0 is 0."""
    infinite = np.isinf(variances)
    product = np.where(infinite, 0.0, variances) @ coefficients
    return np.where(infinite.astype(np.float64) @ coefficients > 0, np.inf, product)


@dataclass(frozen=True, eq=False)
class _System:
    """K·P·Kᵀ + R, by passes over the tree down to the level that crossing tables touch."""

    tree: Tree
    weights: Weights
    variances: Mapping[Pair, float]
    crossings: tuple[CrossingMeasurement, ...]

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """For each crossing table the level whose measurements of cells it moves: its own, or the next with some."""
        chain = self.weights.chain
        return tuple(_usable(self.tree, chain, self.variances, crossing)[0] for crossing in self.crossings)

    def shifted(self, measured: MeasuredTables, multipliers: Sequence[Floats]) -> dict[Pair, Any]:
        """The measurements with σ²·Kᵀλ added to those of cells."""
        found: dict[Pair, Any] = dict(measured)
        last = self.weights.chain.last
        for level in set(self.levels):
            shifts = tuple(
                (self._areas(crossing, level), crossing.groups, numbers)
                for crossing, own, numbers in zip(self.crossings, self.levels, multipliers, strict=True)
                if own == level
            )
            found[level, last] = ShiftedMeasurements(measured[level, last], shifts, self.variances[level, last])
        return found

    def _areas(self, crossing: CrossingMeasurement, level: int) -> Integers:
        areas = crossing.areas
        for parents in self.tree.parents[crossing.level : level]:
            areas = areas[parents]
        return areas

    @cached_property
    def _cut(self) -> int:
        return max(1, *self.levels)

    @cached_property
    def _risen(self) -> tuple[Any, Any]:
        variances, gains = upward_variances(self.tree, self.weights)
        return variances[self._cut], gains[self._cut]

    @cached_property
    def _nothing(self) -> MeasuredTables:
        sizes = self.tree.sizes, self.weights.chain.sizes
        return {pair: np.broadcast_to(0.0, (sizes[0][pair[0]], sizes[1][pair[1]])) for pair in self.variances}

    def times(self, multipliers: Sequence[Floats]) -> list[Floats]:
        """(K·P·Kᵀ + R)·λ."""
        measured, cut = self.shifted(self._nothing, multipliers), self._cut
        if cut == self.tree.last:
            upward = pass_up(self.tree, self.weights, measured)
        else:
            own = node_innovations(self.weights, measured, level=cut, nodes=range(self.tree.sizes[cut]))
            variances, gains = self._risen
            known = tuple(gains[k][:, self.weights.classes[k]] * each for k, each in enumerate(own))
            upward = pass_up(Tree(self.tree.parents[:cut]), self.weights, measured, Innovations(known, variances))
        found = pass_down(upward, upward.root)
        pairs = zip(self.crossings, multipliers, strict=True)
        return [crossing.of(found) + crossing.variance * own for crossing, own in pairs]


def _solved(times: Times, gaps: Sequence[Floats], scales: Sequence[Floats]) -> list[Floats]:
    """λ, by conjugate gradients with the diagonal as preconditioner."""
    sizes = np.cumsum([0, *(gap.size for gap in gaps)])
    diagonal = np.concatenate([each.reshape(-1) for each in scales])

    def apart(numbers: Floats) -> list[Floats]:
        return [numbers[sizes[i] : sizes[i + 1]].reshape(gap.shape) for i, gap in enumerate(gaps)]

    residual = np.concatenate([gap.reshape(-1) for gap in gaps])
    found, ahead = np.zeros_like(residual), residual / diagonal
    power = start = least = float(residual @ ahead)
    vain = 0  # steps since it was nearest
    while power > PRECISION**2 * start and vain < MOST_VAIN:
        moved = np.concatenate([each.reshape(-1) for each in times(apart(ahead))])
        length = power / float(ahead @ moved)
        found += length * ahead
        residual = residual - length * moved
        scaled = residual / diagonal
        before, power = power, float(residual @ scaled)
        least, vain = (power, 0) if power < least else (least, vain + 1)
        ahead = scaled + power / before * ahead
    return apart(found)
