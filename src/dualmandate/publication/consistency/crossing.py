"""Measured tables that cross the chain, or the tree: estimates with them, held to nothing but their noise.

Let P be the covariance of the estimates x̂ of a nest alone, K what crossing tables count, z their numbers and R their
variances. With all measurements together the best linear unbiased estimates are x̂ + P·Kᵀλ, (K·P·Kᵀ + R)·λ = z − K·x̂:
one equation a crossing number, however many cells there are. P·Kᵀλ are the estimates of the nest from σ²·Kᵀλ in place
of measurements of its cells (with variance σ²) and 0 in place of all others; so conjugate gradients need passes over
the tree alone, and only down to the level that is counted across; where groupings are orthogonal, not even over the
cells, but over the groups of one crossing table at a time. Whatever λ is linear in z − K·x̂ keeps estimates unbiased:
how far the gradients went is a matter of precision, 10⁻¹² here, and of nothing else.

Standard errors are exact where groupings of cells are orthogonal [Bai08]: parts of one size each, any two groupings
sharing their parts evenly within what holds both, as the tables of a product of attributes do. They take the cells
apart into *strata* G with projections Q_G, and every measured table F weighs in the strata of the groupings that it
refines, n_F/σ² each, n_F the cells of a part. So the covariance of a node's cells is Σ t_G·Q_G, for any variances at
any level, and t_G rises and comes down the tree by itself. The variance of a part of F is n_F²/n·Σ t_G·rank Q_G over
those strata, n the number of cells. Elsewhere standard errors are upper bounds: of a table of the nest that of the nest
alone, of a crossing table that of its own number and the nest's put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.estimates import (
    Innovations,
    Levels,
    MeasuredTables,
    Pair,
    TreeEstimates,
    Weights,
    child_shares,
    combined,
    count_across,
    estimate,
    final_variances,
    node_innovations,
    pass_down,
    pass_up,
    spread_across,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree, lies_within, renumbered

NUMBERS_AT_ONCE = 2**20  # At most this many estimates are computed at once.


@dataclass(frozen=True, eq=False)
class CrossingMeasurement:
    """A measured table of areas × groups of cells; each node of a level is in one area or none, cells likewise."""

    level: int  # of the tree
    areas: Integers = field(repr=False)  # the table's row of each node of the level, −1 for none; shape (nodes,)
    groups: Integers = field(repr=False)  # the table's row of each cell of the chain, −1 for none; shape (cells,)
    shape: tuple[int, int]  # areas and groups of the table
    variance: float

    @cached_property
    def in_place(self) -> bool:
        """Whether areas are the nodes themselves."""
        return bool(np.array_equal(self.areas, np.arange(self.shape[0])))

    def step(self, chain: PartitionChain) -> int:
        """The first grouping of the chain whose groups it counts as wholes."""
        labels, step = self.groups, chain.last
        while step > 0:
            firsts = labels[chain.starts[step - 1][:-1]]
            if np.any(labels != firsts[chain.parents[step - 1]]):
                break
            labels, step = firsts, step - 1
        return step

    def labels(self, chain: PartitionChain, step: int) -> Integers:
        """The table's row of each group of a grouping that it counts as wholes."""
        labels = self.groups
        for starts in reversed(chain.starts[step:]):
            labels = labels[starts[:-1]]
        return labels

    def of(self, estimates: TreeEstimates) -> Floats:
        """The table of some estimates; shape (areas, groups)."""
        found = np.zeros(self.shape)
        together = max(NUMBERS_AT_ONCE // self.groups.size, 1)
        for start in range(0, self.areas.size, together):
            nodes = range(start, min(start + together, self.areas.size))
            cells = estimates.tables(self.level, nodes)[-1]
            count_across(cells, self.areas[nodes.start : nodes.stop], self.groups, found)
        return found


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


MOST_STRATA = 64  # At most this many groupings are closed under what holds two of them.


@dataclass(frozen=True, eq=False)
class Orthogonal:
    """Orthogonal groupings of the cells that can occur, all that hold two of them too, and their strata."""

    chain: PartitionChain
    groupings: tuple[Integers, ...] = field(repr=False)
    possible: Booleans = field(repr=False)  # which cells can occur
    ranks: tuple[int, ...]

    @classmethod
    def of(cls, chain: PartitionChain, crossings: Sequence[CrossingMeasurement]) -> Orthogonal | None:
        """Those of a chain and of the tables that cross it; None where they are not orthogonal."""
        possible = chain.possible[-1]
        asked = [renumbered(chain.ancestors(k)[possible]) for k in range(chain.last + 1)]
        asked += [renumbered(crossing.groups[possible]) for crossing in crossings]
        whole = all(crossing.in_place and np.all(crossing.groups[possible] >= 0) for crossing in crossings)
        groupings = _closed(asked) if whole else None
        return None if groupings is None else cls(chain, tuple(groupings), possible, tuple(_ranks(groupings)))

    def sizes(self, labels: Integers) -> Floats:
        """What a grouping with a variance of 1 weighs in each stratum: the cells of a part, where it sees it, or 0."""
        own = renumbered(labels[self.possible])
        return np.array([own.size / (int(own.max()) + 1) if lies_within(own, each) else 0.0 for each in self.groupings])

    def variances(self, tree: Tree, precision: Floats) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Of each level the variances of strata, shape (nodes, strata), in the end and from what is at and below.

        `precision` is what a node's own tables weigh in them; shape (levels, strata).
        """
        with np.errstate(divide="ignore"):
            weights = Weights(self.chain, (), (), (), (1 / precision,))
        upward: Levels = upward_variances(tree, weights)[0]
        final = final_variances(tree, upward, upward[0])
        return tuple(each[0] for each in final), tuple(each[0] for each in upward)


@dataclass(frozen=True, eq=False)
class Strata:
    """Variances of the strata of each node, and the groupings that they belong to."""

    orthogonal: Orthogonal
    variances: tuple[Floats, ...] = field(repr=False)  # t of [l], shape (nodes, strata)
    upward: tuple[Floats, ...] = field(repr=False)  # the same from what is at and below each node

    @classmethod
    def of(
        cls,
        tree: Tree,
        chain: PartitionChain,
        variances: Mapping[Pair, float],
        crossings: Sequence[CrossingMeasurement],
        *,
        alone: bool = False,
    ) -> Strata | None:
        """The strata of a nest with crossing tables; None where they are not orthogonal.

        `alone` gives the variances of the nest without the numbers of the crossing tables.
        """
        orthogonal = Orthogonal.of(chain, crossings)
        if orthogonal is None:
            return None
        measured = [(level, chain.ancestors(k), variance) for (level, k), variance in variances.items()]
        own = [(each.level, each.groups, each.variance) for each in crossings]
        precision = np.zeros((tree.last + 1, len(orthogonal.groupings)))
        for level, labels, variance in measured if alone else (*measured, *own):
            sizes = orthogonal.sizes(labels)
            precision[level] += np.where(sizes > 0, np.inf, 0.0) if variance == 0 else sizes / variance
        return cls(orthogonal, *orthogonal.variances(tree, precision))

    @property
    def groupings(self) -> tuple[Integers, ...]:
        return self.orthogonal.groupings

    @property
    def possible(self) -> Booleans:
        return self.orthogonal.possible

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.orthogonal.ranks

    def standard_errors(self, level: int, labels: Integers, nodes: range | None = None) -> Floats:
        """Standard errors of a grouping's parts, given its part of each cell; shape (nodes, parts)."""
        rows = self.variances[level] if nodes is None else self.variances[level][nodes.start : nodes.stop]
        own = labels[self.possible]
        part = np.bincount(own, minlength=int(labels.max()) + 1)
        named = renumbered(own)
        coarser = [i for i, each in enumerate(self.groupings) if self.ranks[i] and lies_within(named, each)]
        of_one = rows[:, coarser] @ np.array([self.ranks[i] for i in coarser], dtype=np.float64) / own.size
        return np.sqrt(of_one)[:, None] * part

    def projections(self, labels: Integers, parts: int) -> tuple[tuple[int, Floats], ...]:
        """The strata of a grouping, and the projection of numbers of its parts on each; shape (parts, parts).

        Q of a stratum is P of its grouping less Q of all coarser ones; P of a coarser grouping averages the parts.
        """
        own = renumbered(labels[self.possible])
        used = labels[self.possible][np.unique(own, return_index=True)[1]]  # the part that each of these is
        firsts = np.unique(own, return_index=True)[1]
        coarser = [i for i, each in enumerate(self.groupings) if lies_within(own, each)]
        coarser.sort(key=lambda i: int(self.groupings[i].max()))
        found = dict[int, Floats]()
        for i in coarser:
            alike = self.groupings[i][firsts]
            small = (alike[:, None] == alike[None, :]) / np.bincount(alike)[alike][:, None]
            above = [found[j] for j in found if lies_within(self.groupings[i], self.groupings[j])]
            found[i] = small - sum(above, np.zeros_like(small))
        wide = {i: np.zeros((parts, parts)) for i in found if self.ranks[i]}
        for i, each in wide.items():
            each[np.ix_(used, used)] = found[i]
        return tuple(wide.items())

    def covariance(self, tree: Tree, stratum: int, scores: Sequence[tuple[int, Floats]], level: int) -> Floats:
        """What scores XᵀΣ⁻¹y of the nodes of some levels say of those of one, in one stratum; shape (nodes, parts)."""
        cut = max(level, *(own for own, _ in scores))
        upward: list[Floats] = []  # estimates from what is at and below each node, from the cut up to the root
        for here in range(cut, -1, -1):
            score = np.zeros((tree.sizes[here], scores[0][1].shape[1]))
            for own, each in scores:
                score += each if own == here else 0.0
            if upward:
                starts = tree.starts[here][:-1]
                below = np.add.reduceat(self.upward[here + 1][:, stratum], starts)[:, None]
                sums = np.add.reduceat(upward[0], starts, axis=0)
                score = score + np.divide(sums, below, out=np.zeros_like(sums), where=below > 0)
            upward.insert(0, self.upward[here][:, stratum, None] * score)
        final = upward[0]
        for here in range(1, level + 1):
            parents = tree.parents[here - 1]
            gaps = final - np.add.reduceat(upward[here], tree.starts[here - 1][:-1], axis=0)
            shares = child_shares(tree, self.upward[here][:, stratum, None], here)
            final = upward[here] + shares * gaps[parents]
        return np.asarray(final)


def _closed(asked: Sequence[Integers]) -> list[Integers] | None:
    """The groupings and all that hold two of them; None where parts differ in size or groupings are not orthogonal."""
    found = list({each.tobytes(): each for each in asked}.values())
    if any(np.ptp(np.bincount(each)) for each in found):
        return None
    pairs = list(combinations(range(len(found)), 2))
    while pairs:
        one, other = (found[place] for place in pairs.pop())
        both = _holding(one, other)
        shared = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)[1]
        sizes = [each.size // (int(each.max()) + 1) for each in (one, other, both)]
        if np.ptp(np.bincount(both)) or np.any(shared * sizes[2] != sizes[0] * sizes[1]):
            return None
        if not any(np.array_equal(both, each) for each in found):
            pairs += [(place, len(found)) for place in range(len(found))]
            found.append(both)
            if len(found) > MOST_STRATA:
                return None
    return found


def _holding(one: Integers, other: Integers) -> Integers:
    """The finest grouping whose parts hold those of both."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sizes = int(one.max()) + 1, int(other.max()) + 1
    joined = coo_array((np.ones(one.size), (one, other + sizes[0])), shape=(sum(sizes), sum(sizes)))
    return renumbered(connected_components(joined, directed=False)[1][one].astype(np.int64))


def _ranks(groupings: Sequence[Integers]) -> list[int]:
    """Of the stratum of each grouping: its parts less the ranks of all coarser ones."""
    parts = [int(each.max()) + 1 for each in groupings]
    ranks = [0] * len(parts)
    for i in np.argsort(parts, kind="stable"):
        below = [j for j in range(len(parts)) if j != i and lies_within(groupings[i], groupings[j])]
        ranks[i] = parts[i] - sum(ranks[j] for j in below)
    return ranks


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
        return self.alone.upward.weights.best

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
    all_variances = dict(variances) | {(level, chain.last): unknown for level in levels}
    for _ in range(ROUNDS if levels else 1):
        known = dict(measured) | {(level, chain.last): found.tables(level)[-1] for level in levels}
        start = estimate(tree, chain, known, all_variances) if levels else alone
        system = _System(tree, start.upward.weights, all_variances, crossings)
        gaps = [np.asarray(numbers) - crossing.of(start) for crossing, numbers in crossed]
        fast = None if levels else StratifiedSystem.of(system)
        diagonals = [_diagonal(start, crossing) for crossing in crossings]
        multipliers = _solved((fast or system).times, gaps, diagonals)
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


@dataclass(frozen=True, eq=False)
class StratifiedSystem:
    """The same system where groupings are orthogonal: a table sees no strata but those of its own groups."""

    tree: Tree
    strata: Strata  # of the nest alone
    crossings: tuple[CrossingMeasurement, ...]

    @classmethod
    def of(cls, system: _System) -> StratifiedSystem | None:
        """None where groupings are not orthogonal, or a table counts what the nest does not know at all."""
        strata = None
        if system.weights.best:
            strata = Strata.of(system.tree, system.weights.chain, system.variances, system.crossings, alone=True)
        if strata is None or any(not np.isfinite(each).all() for each in strata.upward):
            return None
        return cls(system.tree, strata, system.crossings)

    @cached_property
    def _shared(self) -> tuple[tuple[Floats, ...], ...]:
        """[i][j]: how many cells each group of table j shares with each of table i; shape (groups j, groups i)."""
        groups = [(each.groups[self.strata.possible], each.shape[1]) for each in self.crossings]

        def shared(one: tuple[Integers, int], other: tuple[Integers, int]) -> Floats:
            found = np.bincount(one[0] * other[1] + other[0], minlength=one[1] * other[1])
            return found.astype(np.float64).reshape(one[1], other[1])

        return tuple(tuple(shared(other, own) for other in groups) for own in groups)

    @cached_property
    def _projections(self) -> tuple[tuple[tuple[int, Floats], ...], ...]:
        """[i]: the strata of table i, and the projection of numbers of its groups on each."""
        return tuple(self.strata.projections(each.groups, each.shape[1]) for each in self.crossings)

    def times(self, multipliers: Sequence[Floats]) -> list[Floats]:
        found = []
        for i, own in enumerate(self.crossings):
            scores = list[tuple[int, Floats]]()
            for j, other in enumerate(self.crossings):
                scores.append((other.level, multipliers[j] @ self._shared[i][j]))
            product = own.variance * multipliers[i]
            for stratum, projection in self._projections[i]:
                inner = [(level, each @ projection) for level, each in scores]
                product = product + self.strata.covariance(self.tree, stratum, inner, own.level)
            found.append(product)
        return found


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
