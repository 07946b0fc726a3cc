"""Marginals of attributes whose levels are all alike, measured and put together without the cells of the domain.

Where queries treat the levels of every attribute alike, a workload splits into residual spaces, one for each set S of
attributes: what the marginal of S says beyond those of fewer attributes. With r_S = ⊗(I − J/n)·M_S·x the marginal of U
is Σ_{S ⊆ U} r_S/Π_{U∖S} n, so that whoever knows r_S for every S within a table knows all of them, and they agree where
they overlap. Only sets within the tables asked for matter, however many attributes there are.

For Gaussian noise each r_S is measured by itself, as whole numbers: the marginal of S with n·δ − 1 along each of its
attributes. With c_S = Π(1 − 1/n), the squared distance that a record moves r_S by, and g_S what a unit of its variance
costs in the tables, σ_S² ∝ √(c_S/g_S) costs least of all strategies, (Σ √(c_S·g_S))². For pure ε marginals are counted
as they are, with weights that a search found. Source: [XHZK23].

Noise of one standard deviation has one law, however many sets share it: weights that differ little are made equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock, asks_nothing
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import Factor, Table, Total
from dualmandate.workload.sensitivity import Norm

MARGINALS_FROM = 10**7  # cells, from which on a domain is not written out where marginals are enough
WEIGHT_BITS = 16  # of a weight, from its first binary digit
ALIKE = 1.005  # Weights of at most this ratio share a law: variances are off by 0.5 % at most, errors by 0.001 %.
Places: TypeAlias = tuple[int, ...]  # of attributes within a part, increasing
Marginal: TypeAlias = Callable[[Places], NDArray[Any]]  # the counts of the merged levels of some attributes
Factors: TypeAlias = tuple[Factor, ...]


def below(places: Places) -> Iterator[Places]:
    """Every set within a set, itself and the empty one too."""
    for count in range(len(places) + 1):
        yield from combinations(places, count)


@dataclass(frozen=True, eq=False)
class TableQueries:
    """One table over merged levels: the attributes that it does not only add up, and those whose levels it tells apart.

    For each row of a factor its mean over the levels, and the squared length of what it differs from that.
    """

    axes: Places  # attributes that are more than summed
    fine: Places  # of these, those whose levels it tells apart
    means: Mapping[int, Floats]
    spreads: Mapping[int, Floats]

    @classmethod
    def of(cls, part: WorkloadBlock, factors: Factors) -> TableQueries:
        axes = tuple(place for place, factor in enumerate(factors) if not isinstance(factor, Total))
        fine = tuple(place for place in axes if part.own(place, factors[place])[0] > 0)
        means = {place: _means(part, place, factors[place]) for place in axes}
        return cls(axes, fine, means, {place: part.levels[place].spread(factors[place], 0) for place in fine})

    def squares(self, space: Places) -> Floats:
        """Squared length of each query on a residual space; flat, row-major."""
        each = [self.spreads[place] if place in space else self.means[place] ** 2 for place in self.axes]
        return np.asarray(reduce(np.multiply.outer, each, np.ones(()))).reshape(-1)

    def cost(self, space: Places) -> float:
        """The sum of `squares`."""
        sums = (self.spreads[place] if place in space else self.means[place] ** 2 for place in self.axes)
        return math.prod(math.fsum(each.tolist()) for each in sums)


def _means(part: WorkloadBlock, place: int, factor: Factor) -> Floats:
    axis = part.levels[place]
    return axis.apply(factor, np.full(axis.merged, 1.0 / axis.merged), 0)


@dataclass(frozen=True, eq=False)
class Residual:
    """The space of one set of attributes, and what its queries cost."""

    moved: float  # c_S, the squared distance that one record moves it by
    cost: float  # g_S, of a variance of 1, with each table times its value


def residuals_of(part: WorkloadBlock) -> dict[Places, Residual]:
    """The residual spaces that queries see, those of fewer attributes first."""
    costs: dict[Places, float] = {}
    for key, factors in part.tables.items():
        queries = TableQueries.of(part, factors)
        for space in below(queries.fine):
            costs[space] = costs.get(space, 0.0) + part.squared_weights[key] * queries.cost(space)
    seen = {space: cost for space, cost in costs.items() if cost > 0}
    if not seen:
        raise asks_nothing()
    sizes = part.merged_shape
    ordered = sorted(seen, key=lambda space: (len(space), space))
    return {space: Residual(math.prod(1 - 1 / sizes[place] for place in space), seen[space]) for space in ordered}


@dataclass(frozen=True, eq=False)
class FoundMarginals:
    """Marginals to measure, by the weight of each, as they are found; `residual`: as differences, else as counts."""

    part: WorkloadBlock
    weights: Mapping[Places, float]
    residual: bool
    words: str

    __repr__ = one_line

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm."""
        power, sizes = 1 if norm == "l1" else 2, self.part.merged_shape
        spreads = (_spread(sizes, space, power) if self.residual else 1 for space in self.weights)
        total = math.fsum(weight**power * spread for weight, spread in zip(self.weights.values(), spreads, strict=True))
        return total if power == 1 else math.sqrt(total)

    def exact(self, _: Norm) -> IntegerMarginals:
        """The same with rational weights, of which few differ."""
        found = _alike(list(self.weights.values()))
        return IntegerMarginals(self.part, tuple(self.weights), tuple(found), self.residual, self.words)


def least_variance(part: WorkloadBlock) -> tuple[FoundMarginals, float]:
    """For Gaussian noise what measures every residual space at the least cost, and that cost: no strategy has less."""
    spaces = residuals_of(part)
    total = math.fsum(math.sqrt(each.moved * each.cost) for each in spaces.values())
    sizes, weights = part.merged_shape, {}
    for space, each in spaces.items():
        variance = math.sqrt(each.moved / each.cost) * total
        weights[space] = 1.0 / (math.sqrt(variance) * math.prod(sizes[place] for place in space))
    words = f"differences over {len(spaces):,} sets of attributes, in closed form"
    return FoundMarginals(part, weights, residual=True, words=words), total**2


def _spread(sizes: Sequence[int], space: Places, power: int) -> int:
    """Σ over the rows of a residual space of |Π(n·δ − 1)|^power at one cell: Π2(n − 1), or Πn(n − 1)."""
    return math.prod((sizes[place] - 1) * ((sizes[place] - 1) ** (power - 1) + 1) for place in space)


def _alike(weights: Sequence[float]) -> list[Fraction]:
    """Rational weights: those within a ratio of `ALIKE` become one, their middle."""
    order = np.argsort(weights, kind="stable")
    found, start = [Fraction(0)] * len(weights), 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or weights[order[stop]] > ALIKE * weights[order[start]]:
            middle = _rounded(math.sqrt(weights[order[start]] * weights[order[stop - 1]]))
            for place in order[start:stop]:
                found[place] = middle
            start = stop
    return found


def _rounded(weight: float) -> Fraction:
    mantissa, exponent = math.frexp(weight)
    return Fraction(round(mantissa * 2**WEIGHT_BITS)) * Fraction(2) ** (exponent - WEIGHT_BITS)


Source: TypeAlias = tuple[int, float]  # a marginal by its number, and what a residual space takes of it


@dataclass(frozen=True, eq=False)
class IntegerMarginals:
    """Marginals as they are measured: each a list of whole numbers with one rational weight.

    `residual`: differences Π(n·δ − 1) of each marginal, else its counts. Noise is independent from row to row.
    """

    part: WorkloadBlock
    sets: tuple[Places, ...]
    weights: tuple[Fraction, ...]  # > 0
    residual: bool
    words: str

    __repr__ = one_line

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.part.merged_shape

    def shape(self, space: Places) -> tuple[int, ...]:
        return tuple(self.sizes[place] for place in space)

    @cached_property
    def starts(self) -> Indices:
        """The first row of each marginal, and the number of all rows."""
        return np.cumsum([0, *(math.prod(self.shape(each)) for each in self.sets)])

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row, from the largest to the smallest."""
        return tuple(sorted(set(self.weights), reverse=True))

    @cached_property
    def kind_of(self) -> Indices:
        """The kind of each marginal."""
        places = {weight: place for place, weight in enumerate(self.steps)}
        return np.array([places[weight] for weight in self.weights], dtype=np.intp)

    def kinds(self) -> Indices:
        return np.repeat(self.kind_of, np.diff(self.starts))

    def largest_column(self, power: int) -> Fraction:
        """Σ_r (w_r·|a_r|)^power at any cell, exactly: what one record can move."""
        spreads = (_spread(self.sizes, space, power) if self.residual else 1 for space in self.sets)
        return sum((w**power * spread for w, spread in zip(self.weights, spreads, strict=True)), Fraction(0))

    def count(self, marginal: Marginal) -> Integers:
        """The whole numbers that are measured, from counts of merged levels, modulo 2⁶⁴; shape (rows,)."""
        found = []
        for space in self.sets:
            values = marginal(space).astype(np.int64, copy=False)
            for axis in range(len(space) if self.residual else 0):
                values = values.shape[axis] * values - values.sum(axis=axis, keepdims=True)
            found.append(values.reshape(-1))
        return np.concatenate(found)

    @cached_property
    def sources(self) -> dict[Places, tuple[Source, ...]]:
        """What the best estimate of each residual space takes of the measured marginals.

        Of differences that are measured, the space itself over Πn. Of counts, the marginals of more attributes, each
        summed and weighed by its precision w²/Π_{T∖S} n.
        """
        if self.residual:
            return {space: ((n, 1.0 / math.prod(self.shape(space))),) for n, space in enumerate(self.sets)}
        found: dict[Places, list[tuple[int, float]]] = {}
        for number, (kept, weight) in enumerate(zip(self.sets, self.weights, strict=True)):
            whole = math.prod(self.shape(kept))
            for space in below(kept):
                summed = whole / math.prod(self.shape(space))
                found.setdefault(space, []).append((number, float(weight) ** 2 / summed))
        totals = {space: math.fsum(share for _, share in some) for space, some in found.items()}
        return {space: tuple((n, share / totals[space]) for n, share in some) for space, some in found.items()}

    @cached_property
    def noise(self) -> dict[Places, tuple[tuple[int, float], ...]]:
        """The variance of the estimate of each residual space: of each kind, times that of a weighted row."""
        found: dict[Places, tuple[tuple[int, float], ...]] = {}
        for space, taken in self.sources.items():
            each = []
            for number, share in taken:
                summed = math.prod(self.shape(self.sets[number])) / math.prod(self.shape(space))
                each.append((int(self.kind_of[number]), share**2 * summed / float(self.weights[number]) ** 2))
            found[space] = tuple(each)
        return found

    def estimated(self, measured: NDArray[Any]) -> dict[Places, Floats]:
        """The best linear unbiased estimate of every residual space, from noisy whole numbers; shape (rows,)."""
        found = {}
        for space, taken in self.sources.items():
            total = np.zeros(self.shape(space))
            for number, share in taken:
                kept = self.sets[number]
                values = measured[self.starts[number] : self.starts[number + 1]].reshape(self.shape(kept))
                summed = tuple(axis for axis, place in enumerate(kept) if place not in space)
                total += share * values.sum(axis=summed, dtype=np.float64)
            found[space] = centered(total)
        return found

    @cached_property
    def _queries(self) -> dict[int, TableQueries]:
        return {}

    def queries(self, table: Table) -> TableQueries:
        """What a table asks, worked out once."""
        if id(table) not in self._queries:
            factors = tuple(table.factors[axis] for axis in self.part.axes)
            self._queries[id(table)] = TableQueries.of(self.part, factors)
        return self._queries[id(table)]

    def answers(self, table: Table, estimates: Mapping[Places, Floats]) -> Floats:
        """The answers of a table before its weight; shape (query_count,)."""
        queries = self.queries(table)
        values = self.marginal(queries.axes, queries.fine, estimates)
        return self.asked(table, queries.axes, values).reshape(-1)

    def marginal(self, kept: Places, fine: Places, estimates: Mapping[Places, Floats]) -> Floats:
        """The marginal of some attributes, Σ r_S/Π n over the sets S of those that are told apart."""
        values = np.zeros(self.shape(kept))
        for space in below(fine):
            rest = math.prod(self.sizes[place] for place in kept if place not in space)
            shaped = [self.sizes[place] if place in space else 1 for place in kept]
            values += estimates[space].reshape(shaped) / rest
        return values

    def asked(self, table: Table, kept: Places, values: NDArray[Any]) -> NDArray[Any]:
        """The queries of a table from the marginal of the attributes that it does not only add up."""
        for axis, place in enumerate(kept):
            values = self.part.levels[place].apply(table.factors[self.part.axes[place]], values, axis)
        return values

    def table_sums(self, table: Table) -> Floats:
        """Σ over the queries of a table and the rows of each kind of (FA⁺)²; shape (kinds,)."""
        queries, total = self.queries(table), np.zeros(len(self.steps))
        for space in below(queries.fine):
            cost = queries.cost(space)
            for kind, share in self.noise[space]:
                total[kind] += share * cost
        return total

    def query_variances(self, table: Table, variances: Floats) -> Floats:
        """The variance of each query before the table's weight, from that of a weighted row of each kind."""
        queries = self.queries(table)
        total = np.zeros(table.query_count)
        for space in below(queries.fine):
            variance = math.fsum(share * float(variances[kind]) for kind, share in self.noise[space])
            total += variance * queries.squares(space)
        return total

    def taken(self, table: Table, shares: NDArray[Any]) -> tuple[Indices, Floats]:
        """What a sum of queries of a table takes of the noise of whole numbers: which rows, and how much of each.

        `shares` of each query, flat.
        """
        queries = self.queries(table)
        query = np.asarray(shares, dtype=np.float64).reshape([len(queries.means[place]) for place in queries.axes])
        for axis, place in enumerate(queries.axes):
            factor, level = table.factors[self.part.axes[place]], self.part.levels[place]
            query = np.take(factor.apply_transpose(query, axis), level.kept, axis=axis)
        found: dict[int, Floats] = {}
        for space in below(queries.fine):
            rest = tuple(axis for axis, place in enumerate(queries.axes) if place not in space)
            own = centered(query.sum(axis=rest)) / math.prod(query.shape[axis] for axis in rest)
            for number, share in self.sources[space]:
                kept = self.sets[number]
                shaped = [self.sizes[place] if place in space else 1 for place in kept]
                there = found.setdefault(number, np.zeros(self.shape(kept)))
                there += share * own.reshape(shaped)
        rows = [np.arange(self.starts[number], self.starts[number + 1]) for number in found]
        return np.concatenate(rows), np.concatenate([each.reshape(-1) for each in found.values()])


def centered(values: Floats) -> Floats:
    """⊗(I − J/n): less the mean along every axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values
