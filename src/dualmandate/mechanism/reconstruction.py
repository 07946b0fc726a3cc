"""From measurements back to answers: R = QA⁺, and how much noise it carries to each query.

For a strategy that is one product A = A₁ ⊗ … ⊗ A_d, a table F₁ ⊗ … ⊗ F_d is reconstructed by F₁A₁⁺ ⊗ … ⊗ F_dA_d⁺:
one small matrix an attribute, and none at all where A_i is the identity. Everything else is dense and guarded by size.
Structural zeros are not used here: the inverse is that of the whole strategy, as the paper defines it.

Queries are sorted by the mix of noise that reaches them, and each mix is computed once. Tables of groups of unequal
size (counties of 1 to 10,000 blocks), put together from measured cells, have a different sum for every size. For sums
of n equal draws, ln value is a smooth function of ln n, from slope 1 (few draws that are mostly 0) to slope ½
(Gaussian): a polynomial through Chebyshev points gives it, and is checked in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, reduce
from itertools import product
from typing import TypeAlias

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.combination import SMOOTHNESS, Combination, Term
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.workload.factor import Factor, Identity, Numbers, dense

FEW = 80  # counts that are computed one by one
_SMALL = 64  # draws; below, counts are too far apart to lie near Chebyshev points
_POINTS = 40

Bag = tuple[Floats, Floats]  # different factors > 0, and how many draws have each
Mix = tuple[Bag, ...]  # one bag a source of noise


@dataclass(frozen=True, eq=False)
class Kinds:
    """The queries of a table by the mix of noise that reaches them: equal mixes have equal errors."""

    mixes: tuple[Mix, ...]
    members: Indices  # shape (query_count,), the mix of each query

    def numbers(self) -> Integers:
        """How many queries each mix reaches."""
        if len(self.mixes) == 1:
            return np.array([len(self.members)])
        return np.bincount(self.members, minlength=len(self.mixes))

    def evaluate(
        self, value: Callable[[Mix], float], *, rough: Callable[[Mix], bool] | None = None, tolerance: float = 1e-6
    ) -> Floats:
        """A number ≥ 0 for each mix, shape (mixes,).

        Sums of equal draws are interpolated, to a relative tolerance, where there are many; `rough` says which of them
        are computed by themselves all the same, because the value is not smooth there.
        """
        found = np.empty(len(self.mixes))
        for place, counts in _families(self.mixes):
            smooth = np.array([rough is None or not rough(self.mixes[i]) for i in place])
            of_count = _of_count(value, self.mixes[place[0]])
            found[place[smooth]] = over_counts(of_count, counts[smooth], tolerance=tolerance)
            found[place[~smooth]] = [value(self.mixes[i]) for i in place[~smooth]]
        return found


def draws(mix: Mix) -> float:
    """How many draws reach the query."""
    return math.fsum(float(counts.sum()) for _, counts in mix)


def _of_count(value: Callable[[Mix], float], mix: Mix) -> Callable[[float], float]:
    """The value of a mix of equal draws as a function of their number; of any other mix, of itself."""
    if sum(len(factors) for factors, _ in mix) != 1:
        return lambda _: value(mix)
    return lambda count: value(tuple((factors, np.full(len(factors), count)) for factors, _ in mix))


def _families(mixes: tuple[Mix, ...]) -> Iterator[tuple[Indices, Floats]]:
    """Mixes of equal draws that differ in their number only, together; every other mix by itself."""
    families: dict[object, list[tuple[int, float]]] = {}
    for place, mix in enumerate(mixes):
        equal = sum(len(factors) for factors, _ in mix) == 1
        key = tuple(tuple(factors.tolist()) for factors, _ in mix) if equal else place
        families.setdefault(key, []).append((place, draws(mix)))
    for members in families.values():
        places, counts = zip(*members, strict=True)
        yield np.array(places, dtype=np.intp), np.array(counts, dtype=np.float64)


def over_counts(value: Callable[[float], float], counts: Floats, *, tolerance: float) -> Floats:
    """The value of each count; computed one by one for few counts, or where the curve is not smooth."""
    exact, distinct = cache(value), np.unique(counts)
    many = distinct[distinct > _SMALL]
    smooth = _interpolated(exact, many, tolerance) if len(many) > FEW else None
    values = np.array([exact(float(count)) for count in (distinct if smooth is None else distinct[distinct <= _SMALL])])
    return (values if smooth is None else np.concatenate([values, smooth]))[np.searchsorted(distinct, counts)]


def interpolation(nodes: Floats, places: Floats) -> Floats:
    """From values at nodes to those of the polynomial through them, by the barycentric formula; (places, nodes)."""
    gaps = (nodes[:, None] - nodes[None, :]) * (4 / (nodes.max() - nodes.min()))
    np.fill_diagonal(gaps, 1.0)
    where = places[:, None] - nodes[None, :]
    at_node = np.abs(where) < 1e-14
    ratios = 1 / np.prod(gaps, axis=1) / np.where(at_node, 1.0, where)
    ratios[at_node.any(axis=1)] = at_node[at_node.any(axis=1)].astype(np.float64)
    return np.asarray(ratios / ratios.sum(axis=1, keepdims=True))


def _interpolated(value: Callable[[float], float], counts: Floats, tolerance: float) -> Floats | None:
    """A polynomial in logarithms; None where values vanish or a check in between fails."""
    low, high = math.log(counts[0]), math.log(counts[-1])
    angles = np.cos(np.pi * np.arange(_POINTS) / (_POINTS - 1))
    wanted = np.exp((low + high) / 2 - (high - low) / 2 * angles)
    nodes = np.unique(counts[np.searchsorted(counts, wanted).clip(0, len(counts) - 1)])
    values = np.array([value(float(node)) for node in nodes])
    if not np.all(values > 0):
        return None
    found = interpolation(np.log(nodes), np.log(counts)) @ np.log(values)
    between = [i for i in range(0, len(counts), max(1, len(counts) // 9)) if counts[i] not in nodes]
    checks = [abs(math.log(value(float(counts[i]))) - found[i]) for i in between]
    return np.exp(found) if max(checks, default=0.0) < tolerance else None


LARGEST_INVERSE = 2048  # smaller side of a matrix that is inverted
LARGEST_ENTRIES = 2**25  # of a matrix that is written out; 256 MiB of 64-bit numbers
MOST_KINDS = 4096  # different mixes of noise in one table
MOST_SIZES = 256  # different sizes among the entries of a factor
_UNSUPPORTED = 1e-8  # part of a query, relative to its length, that measurements may miss by rounding
_NEGLIGIBLE = 1e-12  # entry of QA⁺, relative to the largest, that is rounding error
_ONE_DRAW = (np.ones(1), np.ones(1))
_NO_DRAW = (np.empty(0), np.empty(0))


@dataclass(frozen=True)
class DirectNoise:
    """Each query gets one draw of its own."""

    query_count: int
    kind: int  # of its rows
    kind_count: int
    start: int  # of this table among all measured rows
    rows: int  # of all tables
    independent: bool = True  # whether the errors of its queries are independent of each other

    @property
    def coefficients(self) -> tuple[Floats, ...]:
        """One array a kind of row, shape (query_count,): a query's variance is the sum of variance × coefficient."""
        return tuple(constant(float(i == self.kind), self.query_count) for i in range(self.kind_count))

    @property
    def kinds(self) -> Kinds:
        """Its queries by the mix of noise that reaches them."""
        mix = tuple(_ONE_DRAW if i == self.kind else _NO_DRAW for i in range(self.kind_count))
        return Kinds((mix,), np.broadcast_to(np.intp(0), (self.query_count,)))

    def spread(self, noise: Floats) -> Floats:
        """The errors of its queries, shape (size, query_count), from noise of shape (size, measured rows)."""
        return noise[:, self.start : self.start + self.query_count]

    def gathered(self, shares: Floats) -> Floats:
        """What a sum of its queries, each times its share, takes of the noise of every row; shape (measured rows,)."""
        found = np.zeros(self.rows)
        found[self.start : self.start + self.query_count] = shares
        return found


@dataclass(frozen=True, eq=False)
class FactorMap:
    """F·A⁺ for one attribute that is measured level by level: F itself."""

    factor: Factor

    @cached_property
    def squares(self) -> Floats:
        """Squared length of each row, without writing F out where each column holds one number."""
        if isinstance(self.factor, Identity):
            return constant(1.0, self.factor.rows)
        if self.factor.scales is None:
            return np.asarray(np.square(dense(self.factor).astype(np.float64)).sum(axis=1))
        return np.asarray(self.factor.apply(self.factor.scales.astype(np.float64), 0), dtype=np.float64)

    @property
    def disjoint(self) -> bool:
        """Whether no measurement is used in two rows."""
        return bool(np.all(self.factor.counts <= 1))

    @cached_property
    def bags(self) -> tuple[tuple[Bag, ...], Indices]:
        """The different rows as bags of entries, counted size by size, and which of them each row is."""
        scales = self.factor.scales
        if isinstance(self.factor, Identity):
            return ((np.ones(1), np.ones(1)),), np.broadcast_to(np.intp(0), (self.factor.rows,))
        if scales is None:
            return _bags_of(dense(self.factor).astype(np.float64))
        sizes = np.unique(np.abs(scales[scales != 0])).astype(np.float64)
        _bounded(len(sizes), MOST_SIZES, "different sizes among the weights of one attribute")
        safe = np.where(scales == 0, 1, scales).astype(np.float64)
        numbers = [self.factor.apply(np.where(np.abs(scales) == size, 1 / safe, 0.0), 0) for size in sizes]
        counts, members = np.unique(np.rint(np.stack(numbers, axis=1)), axis=0, return_inverse=True)
        return tuple((sizes[row > 0], row[row > 0]) for row in counts), members.reshape(-1)

    def apply(self, values: Floats, axis: int) -> Numbers:
        """F·A⁺ along one axis of an array."""
        return self.factor.apply(values, axis)

    def apply_transpose(self, values: Floats, axis: int) -> Numbers:
        """(F·A⁺)ᵀ along one axis of an array."""
        return self.factor.apply_transpose(values, axis)


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """The same written out."""

    matrix: Floats  # shape (rows of F, rows of A)

    @cached_property
    def squares(self) -> Floats:
        return np.asarray(np.square(self.matrix).sum(axis=1))

    @property
    def disjoint(self) -> bool:
        return _disjoint(self.matrix)

    @cached_property
    def bags(self) -> tuple[tuple[Bag, ...], Indices]:
        """Rows with the same entries in any order, up to sign, are alike."""
        return _bags_of(self.matrix)

    def apply(self, values: Floats, axis: int) -> Numbers:
        return np.moveaxis(np.tensordot(self.matrix, values, axes=([1], [axis])), 0, axis)

    def apply_transpose(self, values: Floats, axis: int) -> Numbers:
        return np.moveaxis(np.tensordot(self.matrix, values, axes=([0], [axis])), 0, axis)


AxisMap: TypeAlias = FactorMap | MatrixMap


@dataclass(frozen=True, eq=False)
class KroneckerNoise:
    """A table reconstructed from one product of measurements, all of one kind."""

    maps: tuple[AxisMap, ...]
    measured_shape: tuple[int, ...]  # rows of each factor of the strategy
    weight: float  # of the table, over that of the strategy

    @cached_property
    def coefficients(self) -> tuple[Floats, ...]:
        """weight² times the product of squared lengths, attribute by attribute."""
        squares = [axis.squares for axis in self.maps]
        count = math.prod(len(part) for part in squares)
        if all(part.strides == (0,) or len(part) == 1 for part in squares):
            return (constant(self.weight**2 * math.prod(float(part[0]) for part in squares), count),)
        _bounded(count, LARGEST_ENTRIES, "queries whose errors differ")
        return (self.weight**2 * reduce(np.multiply.outer, squares).reshape(-1),)

    @property
    def independent(self) -> bool:
        return all(axis.disjoint for axis in self.maps)

    @cached_property
    def kinds(self) -> Kinds:
        """One kind for each combination of kinds of rows."""
        parts = [axis.bags for axis in self.maps]
        shape = [len(bags) for bags, _ in parts]
        _bounded(math.prod(shape), MOST_KINDS, "different mixes of noise")
        products = (reduce(_times, bags) for bags in product(*(bags for bags, _ in parts)))
        mixes = tuple(((factors * self.weight, counts),) for factors, counts in products)
        if len(mixes) == 1:
            return Kinds(mixes, np.broadcast_to(np.intp(0), (math.prod(len(members) for _, members in parts),)))
        grid = np.ix_(*(members for _, members in parts))
        return Kinds(mixes, np.asarray(np.ravel_multi_index(grid, shape), dtype=np.intp).reshape(-1))

    def spread(self, noise: Floats) -> Floats:
        values: Numbers = noise.reshape(len(noise), *self.measured_shape)
        for place, axis in enumerate(self.maps):
            values = axis.apply(values, place + 1)
        return np.asarray(values.reshape(len(noise), -1) * self.weight, dtype=np.float64)

    def gathered(self, shares: Floats) -> Floats:
        values: Numbers = shares.reshape([len(axis.squares) for axis in self.maps])
        for place, axis in enumerate(self.maps):
            values = axis.apply_transpose(values, place)
        return np.asarray(values.reshape(-1) * self.weight, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DenseNoise:
    """A table reconstructed by a matrix that is written out."""

    matrix: Floats  # rows of QA⁺, shape (query_count, measured rows)
    columns: tuple[Indices, ...]  # the measured rows of each source

    @cached_property
    def coefficients(self) -> tuple[Floats, ...]:
        """Squared length of each row, source by source."""
        return tuple(np.square(self.matrix[:, part]).sum(axis=1) for part in self.columns)

    @property
    def independent(self) -> bool:
        return _disjoint(self.matrix)

    @cached_property
    def kinds(self) -> Kinds:
        """Rows with the same entries of each source, in any order and up to sign, are alike."""
        parts = [_bags_of(self.matrix[:, part]) for part in self.columns]
        found, members = np.unique(np.stack([each for _, each in parts], axis=1), axis=0, return_inverse=True)
        mixes = tuple(tuple(bags[index] for (bags, _), index in zip(parts, row, strict=True)) for row in found.tolist())
        _bounded(len(mixes), MOST_KINDS, "different mixes of noise")
        return Kinds(mixes, members.reshape(-1))

    def spread(self, noise: Floats) -> Floats:
        return noise @ self.matrix.T

    def gathered(self, shares: Floats) -> Floats:
        return shares @ self.matrix


TableNoise: TypeAlias = DirectNoise | KroneckerNoise | DenseNoise  # how what is measured reaches the queries of a table


@dataclass(frozen=True, eq=False)
class MixedAnswers:
    """How the noise of rows reaches the answers of one table, each a known mix of draws."""

    noise: TableNoise
    steps: tuple[Fraction, ...]  # the weight of each kind of row

    @cached_property
    def sums(self) -> Floats:
        """Σ of squared coefficients over the answers and the rows of each kind; shape (kinds,)."""
        return np.array([total(each) for each in self.noise.coefficients])

    def check(self) -> None:
        """Refuse more different mixes of noise than are followed."""
        _ = self.noise.kinds

    @property
    def independent(self) -> bool:
        """Whether the errors of its answers are independent of each other."""
        return self.noise.independent

    @cached_property
    def single(self) -> Floats | None:
        """Σ |coefficient| over the answers and the rows of each kind, where each rests on one row; else None."""
        kinds = self.noise.kinds
        if any(draws(mix) > 1 for mix in kinds.mixes):
            return None
        factors = [[float(factors.sum()) for factors, _ in mix] for mix in kinds.mixes]
        return np.asarray(kinds.numbers() @ np.array(factors))

    def variances(self, of_row: Callable[[Fraction], float]) -> Floats:
        """The variance of each answer, given that of a weighted row of each weight; shape (query_count,)."""
        pairs = zip(self.steps, self.noise.coefficients, strict=True)
        return reduce(np.add, [scaled(each, of_row(step)) for step, each in pairs])

    def mean_absolute(self, noises: Sequence[Distribution]) -> float:
        """Σ E|error| over its answers, given the noise of a weighted row of each kind."""
        found = self.noise.kinds.evaluate(lambda mix: combination(mix, noises).mean_absolute)
        return float(found @ self.noise.kinds.numbers())

    def misses(self, noises: Sequence[Distribution], distance: float) -> float:
        """Σ P(|error| > distance) over its answers."""
        found = self.noise.kinds.evaluate(lambda mix: combination(mix, noises).tail(distance))
        return float(found @ self.noise.kinds.numbers())

    def widest(self, noises: Sequence[Distribution], tail: float) -> float:
        """The largest t of `reaches`, as it moves with the noise (`Combination.crossing`)."""
        mixes = self.noise.kinds.mixes
        if len(mixes) > FEW:
            return float(self.reaches(noises, tail).max())
        return max(combination(mix, noises).crossing(tail) for mix in mixes)

    def reaches(self, noises: Sequence[Distribution], tail: float) -> Floats:
        """For each answer a t with P(|error| > t) ≤ tail, given the noise of a weighted row of each kind.

        One kind of query after the other; interpolated, never too small and hardly too wide, where they are many.
        """
        kinds = self.noise.kinds
        if len(kinds.mixes) <= FEW:
            widths = np.array([combination(mix, noises).reach(tail) for mix in kinds.mixes])
        else:
            widths = kinds.evaluate(
                lambda mix: combination(mix, noises).smooth_reach(tail),
                rough=lambda mix: combination(mix, noises).is_coarse,
                tolerance=SMOOTHNESS,
            )
        return np.broadcast_to(widths[0], kinds.members.shape) if len(widths) == 1 else widths[kinds.members]


def combination(mix: Mix, noises: Sequence[Distribution]) -> Combination:
    """The error of a query that such a mix of noise reaches."""
    return Combination(tuple(Term(noise, *bag) for noise, bag in zip(noises, mix, strict=True) if len(bag[0])))


def constant(value: float, count: int) -> Floats:
    """An array of one value that takes no memory, however many queries there are."""
    return np.broadcast_to(np.float64(value), (count,))


def scaled(values: Floats, factor: float) -> Floats:
    """An array times a number; a constant array stays one that takes no memory."""
    return constant(float(values[0]) * factor, len(values)) if values.strides == (0,) else values * factor


def total(values: Floats) -> float:
    """The sum of an array, at once where it is constant."""
    return float(values[0]) * len(values) if values.strides == (0,) else float(np.sum(values))


def reconstruct(queries: Floats, strategy: Floats) -> tuple[Floats, int | None]:
    """R = QA⁺ and the first query that A does not support (row of Q ≠ row of QA⁺A), or None."""
    left, singular, right = np.linalg.svd(strategy, full_matrices=False)
    kept = singular > singular[0] * max(strategy.shape) * np.finfo(np.float64).eps
    inside = queries @ right[kept].T
    missed = np.linalg.norm(queries - inside @ right[kept], axis=1) > _UNSUPPORTED * np.linalg.norm(queries, axis=1)
    matrix = (inside / singular[kept]) @ left[:, kept].T
    return matrix, int(np.argmax(missed)) if np.any(missed) else None


def require_small(query_count: int, rows: int, columns: int) -> None:
    """Refuse, before anything is written out, a reconstruction that is too large to be dense."""
    _bounded(min(rows, columns), LARGEST_INVERSE, "rows or columns of a strategy that is inverted")
    _bounded(max(query_count, 1) * max(rows, columns), LARGEST_ENTRIES, "numbers in a dense reconstruction")


def is_identity(factor: Factor) -> bool:
    """Whether a factor is the identity matrix, however it was made."""
    if isinstance(factor, Identity) or factor.rows != factor.size:
        return isinstance(factor, Identity)
    if factor.scales is None or not (np.all(factor.scales == 1) and np.all(factor.counts == 1)):
        return False
    levels = np.arange(factor.size, dtype=np.float64)
    return bool(np.array_equal(factor.apply(levels, 0), levels))


def _bags_of(matrix: Floats) -> tuple[tuple[Bag, ...], Indices]:
    sizes = np.sort(np.abs(matrix), axis=1)
    largest = float(sizes.max(initial=0.0)) or 1.0
    rounded = np.round(sizes / largest, 12) * largest
    different, members = np.unique(rounded, axis=0, return_inverse=True)
    bags = []
    for row in different:
        values, counts = np.unique(row[row > _NEGLIGIBLE * largest], return_counts=True)
        bags.append((values, counts.astype(np.float64)))
    return tuple(bags), members.reshape(-1)


def _times(one: Bag, other: Bag) -> Bag:
    _bounded(len(one[0]) * len(other[0]), LARGEST_INVERSE**2, "different entries in one row of a reconstruction")
    values = np.multiply.outer(one[0], other[0]).reshape(-1)
    counts = np.multiply.outer(one[1], other[1]).reshape(-1)
    merged, places = np.unique(values, return_inverse=True)
    return merged, np.bincount(places.reshape(-1), weights=counts, minlength=len(merged)).astype(np.float64)


def _disjoint(matrix: Floats) -> bool:
    used = np.abs(matrix) > _NEGLIGIBLE * np.abs(matrix).max(initial=0.0)
    return bool(np.all(np.count_nonzero(used, axis=0) <= 1))


def _bounded(number: int, most: int, what: str) -> None:
    if number > most:
        raise TooLarge(
            f"{number:,} {what}",
            why=f"at most {most:,} are handled one by one",
            instead='measure the tables themselves (strategy = "workload"), or ask for fewer tables at once',
        )


def unsupported_row(rows: Sequence[int | None], maps: Sequence[AxisMap]) -> int | None:
    """The row-major number of a query that a product of strategies misses, given a missed row an attribute."""
    if all(row is None for row in rows):
        return None
    # On the other attributes take a row that asks something, or the query would be empty and so supported.
    chosen = [int(np.argmax(axis.squares)) if row is None else row for row, axis in zip(rows, maps, strict=True)]
    return int(np.ravel_multi_index(chosen, [len(axis.squares) for axis in maps]))
