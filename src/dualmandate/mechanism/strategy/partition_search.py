"""Which tables of plain counts to measure for pure ε, and how well each group of each: the best found.

The finest tables that the workload asks for, or common refinements of them, are weighed group by group. Then coarser
tables are put in one after the other, those first that promise most, and stay where the error falls. The order is
fixed: no start is drawn, and more starts can only improve what is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations

import numpy as np

from dualmandate.mechanism.strategy.partitions import (
    Grouping,
    GroupStack,
    Layout,
    coarser_tables,
    entries,
    finest,
    group_count,
    joined,
    own_tables,
)
from dualmandate.mechanism.strategy.workload_blocks import Sector, WorkloadBlock, compact_root
from dualmandate.population.arrays import Booleans, Floats, Indices
from dualmandate.workload.factor import LARGEST_DENSE

SMALL = 32  # dimensions of sectors that are solved together
WEIGHT_STEP = 0.4  # exponent of w_g ← w_g(2w_gh_g/Λ_g)^a; 1/3 is exact for a group alone
PRICE_STEP = 2.0  # exponent of λ_o ← λ_o·s_o^b; 3 is exact for a table alone
_RIDGE = 1e-9  # relative to the mean of diag X: directions that nothing measures
_FLOOR = 1e-14  # the same where nothing at all is measured
_SMALLEST = 1e-8  # eigenvalue of V_S, relative to the largest, down to which W_S is made the identity
_NEGLIGIBLE = 1e-6  # weight of a group, relative to the largest norm,, that is not worth measuring
_VANISHING = 1e-100  # of norms that start at 1
_FARTHEST = 1e3  # by which a weight may change at a step, to the power of the step


@dataclass(frozen=True, eq=False)
class Batch:
    """Sectors of about the same dimension n; rows and groups are filled up with zeros and the group after the last."""

    multiplicities: Floats  # shape (sectors,)
    rows: Floats  # u_g, shape (sectors, rows, n)
    groups: Indices  # shape (sectors, rows)
    asked: Floats  # W_S, shape (sectors, ranks, n)
    unused: Floats  # 1 for dimensions that a sector does not have; shape (sectors, n)
    is_white: bool  # whether W_S = I

    def error(self, weights: Floats) -> tuple[float, Floats]:
        """Σ μ tr(V X⁻¹), and w·h by groups; `weights` has a 0 at its end."""
        here = weights[self.groups]
        scaled = self.rows * here[:, :, None]
        if len(scaled) == 1:
            solved = _solved(scaled[0], None if self.is_white else self.asked[0])[None]
        else:
            solved = np.asarray(np.linalg.solve(self._gram(scaled), self.asked.transpose(0, 2, 1)), np.float64)
        errors = np.einsum("kii->k", solved) if self.is_white else np.einsum("kri,kir->k", self.asked, solved)
        pulled = self.rows @ solved
        squares = np.einsum("kgr,kgr->kg", pulled, pulled) * here * self.multiplicities[:, None]
        return float(self.multiplicities @ errors), _summed(self.groups, squares, len(weights))

    def _gram(self, scaled: Floats) -> Floats:
        gram = scaled.transpose(0, 2, 1) @ scaled
        index = np.arange(gram.shape[1])
        gram[:, index, index] += _RIDGE * np.einsum("kii->k", gram)[:, None] / len(index) + self.unused + _FLOOR
        return gram

    def gains(self, weights: Floats, amounts: Floats) -> Floats:
        scaled = self.rows * weights[self.groups][:, :, None]
        inverse = np.linalg.inv(np.linalg.cholesky(self._gram(scaled)))
        whitened = self.rows @ inverse.transpose(0, 2, 1)
        lengths = np.square(whitened).sum(axis=2)
        pulls = np.square(whitened @ (inverse @ self.asked.transpose(0, 2, 1))).sum(axis=2)
        pulls *= self.multiplicities[:, None]
        falls = [amount * pulls / (1.0 + amount * lengths) for amount in amounts]
        return np.array([_summed(self.groups, each, len(weights)) for each in falls])

    def restricted(self, numbers: Indices) -> Batch:
        """Only some groups: `numbers` has the new number of each, the last for those left out."""
        groups = numbers[self.groups]
        left_out = groups == numbers[-1]
        width = max(1, int((~left_out).sum(axis=1).max()))
        order = np.argsort(left_out, axis=1, kind="stable")[:, :width]
        rows = np.take_along_axis(self.rows, order[:, :, None], axis=1)
        groups = np.take_along_axis(groups, order, axis=1)
        return replace(self, rows=rows, groups=groups)


def _solved(scaled: Floats, asked: Floats | None) -> Floats:
    """(AᵀA)⁻¹Wᵀ of one sector; W = I where None."""
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

    gram = scaled.T @ scaled
    index = np.arange(len(gram))
    gram[index, index] += _RIDGE * float(np.trace(gram)) / len(gram) + _FLOOR
    factor, failed = dpotrf(gram.T, lower=0, clean=1, overwrite_a=1)
    assert not failed
    if asked is not None:
        return np.asarray(dpotrs(factor, asked.T, lower=0)[0])
    half = dpotri(factor, lower=0, overwrite_c=1)[0]
    inverse = half + half.T
    inverse[index, index] *= 0.5
    return np.asarray(inverse)


def _summed(groups: Indices, values: Floats, count: int) -> Floats:
    """Σ of values by groups; shape (count,)."""
    return np.asarray(np.bincount(groups.reshape(-1), values.reshape(-1), count), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The groups of some tables, where they lie, and what they tell in each sector."""

    places: Indices  # the group of each table that holds an orbit that can occur; shape (tables, orbits)
    count: int  # groups
    batches: tuple[Batch, ...]

    def norms(self, weights: Floats) -> Floats:
        """s: L1 norms of the columns, by orbits that can occur."""
        return np.asarray(np.append(weights, 0.0)[self.places].sum(axis=0))

    def prices(self, of_orbits: Floats) -> Floats:
        """Λ: what a unit of weight costs each group."""
        return _summed(self.places, np.broadcast_to(of_orbits, self.places.shape), self.count + 1)[:-1]

    def error(self, weights: Floats) -> tuple[float, Floats]:
        """Σ μ tr(V X⁻¹), and w·h, minus half its slopes, by groups."""
        padded = np.append(weights, 0.0)
        found = [batch.error(padded) for batch in self.batches]
        return sum(error for error, _ in found), np.sum([squares for _, squares in found], axis=0)[:-1]

    def gains(self, weights: Floats, amounts: Floats) -> Floats:
        """By how much the error falls where a·u_gu_gᵀ is added to X, each group by itself; shape (amounts, groups)."""
        padded = np.append(weights, 0.0)
        return np.asarray(np.sum([batch.gains(padded, amounts) for batch in self.batches], axis=0)[:, :-1])

    def restricted(self, kept: Indices) -> Weighing:
        numbers = np.full(self.count + 1, len(kept))
        numbers[kept] = np.arange(len(kept))
        places = numbers[self.places]
        places = places[(places < len(kept)).any(axis=1)]
        return Weighing(places, len(kept), tuple(batch.restricted(numbers) for batch in self.batches))

    @cached_property
    def is_held(self) -> Booleans:
        """Whether a group holds cells that can occur; shape (groups,)."""
        return np.isin(np.arange(self.count), self.places)

    @cached_property
    def work(self) -> float:
        """Multiplications of one evaluation, about."""
        total = 0.0
        for batch in self.batches:
            sectors, rows, size = batch.rows.shape
            total += 1e5 + sectors * (2e3 + size * (size + 2 * batch.asked.shape[1]) * (rows + 50))
        return total


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weights of groups with largest norm 1, prices of orbits, and the error."""

    weights: Floats
    prices: Floats
    error: float
    promise: float  # the error if all orbits had the mean norm, by prices: about what a descent ends at


def descend(problem: Weighing, start: Floats, prices: Floats | None, *, steps: int, tolerance: float = 1e-6) -> Weighed:
    """A descent from some weights by multiplicative steps of weights and prices, until nothing changes."""
    # Groups of cells that cannot occur are never measured.
    kept = np.flatnonzero((start > 0) & problem.is_held)
    some, weights = problem.restricted(kept), start[kept]
    norms = some.norms(weights)
    weights, norms = weights / norms.max(), norms / norms.max()
    error, pulls = some.error(weights)
    if prices is None:
        shares = weights * pulls / some.prices(np.ones(len(norms)))
        prices = np.append(shares, 0.0)[some.places].sum(axis=0)
    last = np.inf
    for step in range(steps):
        if not float(prices @ norms) > 0.0:
            break  # nothing that has a price is measured
        prices = prices * (2.0 * error / float(prices @ norms))
        lighter = weights * _factors(2.0 * pulls, some.prices(prices))
        norms_then = some.norms(lighter)
        if float(prices @ norms_then) <= _VANISHING * float(prices.sum()):
            break  # where public totals decide what orbits cost, weights die out: what was found before stands
        weights, norms = lighter, norms_then
        prices = prices * np.clip(norms * prices.sum() / float(prices @ norms), 0.2, 5.0) ** PRICE_STEP
        error, pulls = some.error(weights)
        if step % 4 == 3:
            reached = error * float(norms.max()) ** 2
            if abs(last - reached) < tolerance * reached:
                break
            last = reached
            large = weights > _NEGLIGIBLE * norms.max()
            if large.sum() < 0.9 * len(large):
                kept, weights, pulls = kept[large], weights[large], pulls[large]
                some = some.restricted(np.flatnonzero(large))
    largest = float(norms.max())
    found = np.zeros(problem.count)
    found[kept] = np.where(weights > _NEGLIGIBLE * largest, weights / largest, 0.0)
    paid = float(prices.sum())
    mean = float(prices @ norms) / paid if paid > 0.0 else largest
    return Weighed(found, prices, error * largest**2, error * mean**2)


def descend_by_tables(problem: Weighing, starts: Indices, shares: Floats, *, steps: int) -> tuple[Floats, float]:
    """The same with one weight a table: the shares of the tables, which add up to 1, and the error."""
    sizes = np.diff(starts)
    for _ in range(steps):
        error, pulls = problem.error(np.repeat(shares, sizes))
        shares = shares * _factors(np.add.reduceat(pulls, starts[:-1]), np.full(len(shares), error))
        shares = np.where(shares > _NEGLIGIBLE * shares.sum(), shares, 0.0) / shares.sum()
    return shares, problem.error(np.repeat(shares, sizes))[0]


def _factors(pulls: Floats, prices: Floats) -> Floats:
    ratios = np.clip(pulls / np.maximum(prices, 1e-300), 1.0 / _FARTHEST, _FARTHEST)
    return np.asarray(ratios**WEIGHT_STEP)


def weighing_of(layout: Layout) -> Weighing:
    """The problem of weights for all groups of some tables, which together must support the workload."""
    top = set(finest(layout.tables))
    is_top = np.array([table in top for table in layout.tables])
    found = [_sector_rows(layout, sector, is_top) for sector in layout.part.sectors]
    return Weighing(layout.places, layout.count, _batched(found, layout.count))


@dataclass(frozen=True, eq=False)
class _GroupRows:
    multiplicity: float
    rows: Floats
    groups: Indices
    asked: Floats


def _sector_rows(layout: Layout, sector: Sector, is_top: Booleans) -> _GroupRows:
    """u_g and W_S in a basis of what the finest tables tell about a sector."""
    columns, inside = layout.columns(sector)
    telling = layout.telling(sector)
    groups, rows = layout.rows(telling, columns)
    asked = layout.part.rows(sector)[:, inside]
    basis = row_basis(layout.rows(telling & is_top, columns)[1])
    if basis is not None:
        rows, asked = rows @ basis.T, asked @ basis.T
    if len(asked) >= asked.shape[1]:
        asked = compact_root(asked.T @ asked)
        squares = np.square(asked).sum(axis=1)  # its rows are orthogonal
        if len(asked) == asked.shape[1] and squares.min() > _SMALLEST * squares.max():
            rows, asked = rows @ (asked / squares[:, None]).T, np.eye(len(asked))
    return _GroupRows(layout.part.multiplicity(sector), rows, groups, asked)


def row_basis(rows: Floats) -> Floats | None:
    """Orthonormal rows that span the same space; None where that is everything, or nearly."""
    if len(rows) >= rows.shape[1]:
        return None
    values, vectors = np.linalg.eigh(rows @ rows.T)
    kept = values > values[-1] * 1e-10
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ rows)


def _batched(found: Sequence[_GroupRows], count: int) -> tuple[Batch, ...]:
    """Small sectors together, by dimensions rounded up to a power of two; large ones each by itself."""
    sizes: dict[tuple[int, int], list[_GroupRows]] = {}
    for number, each in enumerate(found):
        size = each.rows.shape[1]
        key = (1 << (size - 1).bit_length(), 0) if size <= SMALL else (size, number + 1)
        sizes.setdefault(key, []).append(each)
    return tuple(_batch(size, some, count) for (size, _), some in sizes.items())


def _batch(size: int, found: Sequence[_GroupRows], count: int) -> Batch:
    size = size if len(found) > 1 else found[0].rows.shape[1]
    rows = np.zeros((len(found), max(len(each.rows) for each in found), size))
    asked = np.zeros((len(found), max(len(each.asked) for each in found), size))
    groups = np.full(rows.shape[:2], count)
    unused = np.ones((len(found), size))
    for number, each in enumerate(found):
        rows[number, : len(each.rows), : each.rows.shape[1]] = each.rows
        asked[number, : len(each.asked), : each.rows.shape[1]] = each.asked
        groups[number, : len(each.groups)] = each.groups
        unused[number, : each.rows.shape[1]] = 0.0
    white = len(found) == 1 and np.array_equal(asked[0], np.eye(size))
    return Batch(np.array([each.multiplicity for each in found]), rows, groups, asked, unused, white)


STARTS = 33  # the tables asked for, and points of an even spread
ROUNDS = 3  # of tables that are put in
TOGETHER = 8  # tables that are compared before one of them is put in
STEPS = 12  # of a descent, after which the worse half of them is given up
LARGEST_BASE = 1_024  # groups of the finest tables
FEW_GROUPS = 128  # of a table that is finer than all asked for, up to which it is a candidate
LARGEST_POOL = 2**24  # numbers in the rows of all tables
MOST_SECTORS = 1_024
MOST_JOINS = 24  # of tables that are tried
MOST_WORK = 4e10  # multiplications, about
SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])  # of a strategy, that a table is thought to be given
SHARE = 0.3  # that it is given
KEPT = 1e-3  # of a strategy, that the finest tables keep where a query needs them
_GOLDEN = (math.sqrt(5) - 1) / 2
_BETTER = 1.0 - 1e-5


def fits(part: WorkloadBlock) -> bool:
    """Whether the family can be searched: the finest tables have few groups over few orbits."""
    if len(part.sectors) > MOST_SECTORS or not _is_small(own_tables(part)):
        return False
    widest = min(part.sectors, key=len)
    return part.row_count(widest) * len(part.orbits_of(widest)) <= LARGEST_DENSE


def groups_asked(part: WorkloadBlock) -> int:
    """Groups of exchangeable cells in the finest tables asked for."""
    return sum(group_count(table) for table in own_tables(part))


def _is_small(tables: Sequence[Grouping]) -> bool:
    groups, numbers = (sum(map(size, tables)) for size in (group_count, entries))
    return groups <= LARGEST_BASE and numbers <= LARGEST_POOL


def best_partitions(part: WorkloadBlock, starts: int | None = None) -> tuple[GroupStack, float]:
    """The best tables and weights found for a part that `fits`, and the error for sensitivity 1."""
    tables, base = _candidates(part)
    layout = Layout.of(part, tables)
    search = _Search(weighing_of(layout), layout.starts)
    stack = _stacked(layout, weights := search.best(base, starts or STARTS))
    if math.isinf(error := stack.error()):
        # Queries that weigh next to nothing have lost what they need: the finest tables support everything.
        stack = _stacked(layout, (1.0 - KEPT) * weights + KEPT / base * search.first(base))
        error = stack.error()
    return stack, error


def _stacked(layout: Layout, weights: Floats) -> GroupStack:
    """Only the tables that have weights."""
    pieces = np.split(weights, layout.starts[1:-1])
    kept = [number for number, piece in enumerate(pieces) if piece.any()]
    tables = tuple(layout.tables[number] for number in kept)
    shaped = [pieces[number].reshape([coding.count for coding in layout.tables[number]]) for number in kept]
    words = f"{len(kept):,} tables of counts with {np.count_nonzero(weights):,} weights, the best of enumerated starts"
    return GroupStack(layout.part, tables, tuple(shaped), words)


def _candidates(part: WorkloadBlock) -> tuple[tuple[Grouping, ...], int]:
    """The tables to choose from, all of few or those coarser than the start, and how many of the first that is."""
    base = _best_base(part)
    everything = reduce(joined, base)
    if group_count(everything) <= FEW_GROUPS:
        tables = _pool(part, tuple(dict.fromkeys((*base, everything))))
        if sum(group_count(table) for table in tables) * group_count(everything) ** 2 <= MOST_WORK / 1000:
            return tables, len(base)
    return _pool(part, base), len(base)


def _best_base(part: WorkloadBlock) -> tuple[Grouping, ...]:
    """The finest tables asked for, two of them joined again and again as long as that is better."""
    base = own_tables(part)
    found = _promise(part, base)
    left = min(MOST_JOINS, MOST_SECTORS // len(part.sectors))
    while len(base) > 1:
        joins = sorted((group_count(joined(one, two)), i, j) for (i, one), (j, two) in combinations(enumerate(base), 2))
        best = (found, base)
        chosen, left = joins[: min(TOGETHER, left)], left - TOGETHER
        for _, i, j in chosen:
            rest = (table for number, table in enumerate(base) if number not in (i, j))
            other = finest([joined(base[i], base[j]), *rest])
            promise = _promise(part, other)
            if promise < best[0]:
                best = (promise, other)
        if best[1] is base or left <= 0:
            return best[1]
        found, base = best
    return base


def _promise(part: WorkloadBlock, base: tuple[Grouping, ...]) -> float:
    """About the error of some tables alone; infinite where they are too many."""
    if not _is_small(base):
        return math.inf
    layout = Layout.of(part, base)
    problem = weighing_of(layout)
    steps = max(4, min(8, int(MOST_WORK / 20 / problem.work)))
    return descend(problem, np.ones(layout.count), None, steps=steps).promise


def _pool(part: WorkloadBlock, base: tuple[Grouping, ...]) -> tuple[Grouping, ...]:
    """The finest tables, and coarser ones as long as there is room, the smallest first."""
    chosen, room = list(base), LARGEST_POOL - sum(entries(table) for table in base)
    for table in sorted(coarser_tables(part, base)[len(base) :], key=group_count):
        room -= entries(table)
        if room >= 0:
            chosen.append(table)
    return tuple(chosen)


@dataclass(frozen=True, eq=False)
class _Search:
    problem: Weighing
    starts: Indices  # the first group of each table

    def best(self, base: int, starts: int) -> Floats:
        """The weights of the best strategy found: from equal weights of the first tables, and from spread ones."""
        best = self._grown(self.first(base))
        work = ROUNDS * self._round_of(best) + 2 * STEPS * TOGETHER * self.problem.work
        attempts = min((starts - 1) // TOGETHER, int(MOST_WORK / work) - 1) if base < len(self.starts) - 1 else 0
        for attempt in range(attempts):
            found = self._grown(self._spread(attempt * TOGETHER + 1))
            best = min(best, found, key=lambda each: each.error)
        return self._filled(self._settled(best.weights, best.prices, tolerance=1e-8).weights)

    def first(self, count: int) -> Floats:
        """The weight 1 for all groups of the first tables."""
        return np.asarray(np.arange(self.problem.count) < self.starts[count], dtype=np.float64)

    def _round_of(self, point: Weighed) -> float:
        """Multiplications of a round of tables that are put in."""
        return self._restricted(point.weights).work * (3 * STEPS * TOGETHER + 64)

    def _restricted(self, weights: Floats) -> Weighing:
        return self.problem.restricted(np.flatnonzero(weights))

    def _spread(self, first: int) -> Floats:
        """The best of some starts in which weights of tables are spread evenly, one weight a table."""
        points = np.arange(1, len(self.starts))
        found = []
        for number in range(first, first + TOGETHER):
            spread = np.modf(number * (points * _GOLDEN + points**2 * (math.sqrt(2) - 1)))[0]
            found.append(descend_by_tables(self.problem, self.starts, spread / spread.sum(), steps=2 * STEPS))
        shares, _ = min(found, key=lambda each: each[1])
        return np.repeat(shares, np.diff(self.starts))

    def _grown(self, weights: Floats) -> Weighed:
        """A start, and what it becomes when tables are put in one after the other."""
        point = self._settled(weights, None)
        ranked: list[int] = []
        for _ in range(min(ROUNDS, int(MOST_WORK / self._round_of(point)))):
            ranked = ranked or self._ranked(point)
            now, ranked = ranked[:TOGETHER], ranked[TOGETHER:]
            found = self._put_in(point, now)
            if found.error < _BETTER * point.error:
                point, ranked = found, []
            elif not ranked:
                break
        return point

    def _settled(self, weights: Floats, prices: Floats | None, tolerance: float = 1e-6) -> Weighed:
        steps = max(12, min(64, int(MOST_WORK / 4 / self._restricted(weights).work)))
        return descend(self.problem, weights, prices, steps=steps, tolerance=tolerance)

    def _ranked(self, point: Weighed) -> list[int]:
        """All tables, those first with which the error would be least if each group stood by itself."""
        amounts = np.square(SHARES / (1.0 - SHARES))
        falls = np.add.reduceat(self.problem.gains(point.weights, amounts), self.starts[:-1], axis=1)
        errors = (point.error - falls) / np.square(1.0 - SHARES)[:, None]
        return [int(number) for number in np.argsort(errors.min(axis=0), kind="stable")]

    def _put_in(self, point: Weighed, tables: Sequence[int]) -> Weighed:
        """The best point that one of some tables leads to."""
        found = []
        for number in tables:
            weights = (1.0 - SHARE) * point.weights
            weights[self.starts[number] : self.starts[number + 1]] += SHARE
            found.append(descend(self.problem, weights, point.prices, steps=STEPS))
        while len(found) > 1:
            found = sorted(found, key=lambda each: each.promise)[: (len(found) + 1) // 2]
            found = [descend(self.problem, each.weights, each.prices, steps=STEPS) for each in found]
        best = found[0]
        return self._settled(best.weights, best.prices)

    def _filled(self, weights: Floats) -> Floats:
        """Groups all of whose cells have room take it: measuring more never hurts; the largest norm is then 1."""
        norms = self.problem.norms(weights)
        weights, norms = weights / norms.max(), norms / norms.max()
        for group in np.flatnonzero(weights):
            here = (self.problem.places == group).any(axis=0)
            room = 1.0 - float(norms[here].max())
            weights[group] += room
            norms[here] += room
        return weights
