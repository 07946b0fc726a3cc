"""How well each group of some tables is measured: the error of joint least squares, its slopes, and a descent.

A strategy counts the groups g of some tables, each count times a weight w_g ≥ 0. In the sector S a group is the row u_g
over orbits, so X_S = Σ w_g²u_gu_gᵀ and the error for sensitivity 1 is (max s)²·Σ μ_S tr(V_S X_S⁻¹), s_o = Σ_{g∋o} w_g
being the L1 norm of the columns of an orbit. With prices λ of the orbits, Λ_g = Σ_{o∈g} λ_o, a local optimum has
2w_gh_g = Λ_g, h_g = Σ μ_S‖u_gᵀX_S⁻¹W_Sᵀ‖² and V_S = W_SᵀW_S, and every orbit with a price has s_o = max s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.algebra import compact_root
from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.codings import finest
from dualmandate.mechanism.strategy.layout import Layout
from dualmandate.mechanism.strategy.parts import Sector

SMALL = 32  # dimensions of sectors that are solved together
WEIGHT_STEP = 0.4  # exponent of w_g ← w_g(2w_gh_g/Λ_g)^a; 1/3 is exact for a group alone
PRICE_STEP = 2.0  # exponent of λ_o ← λ_o·s_o^b; 3 is exact for a table alone
_RIDGE = 1e-9  # relative to the mean of diag X: directions that nothing measures
_FLOOR = 1e-14  # the same where nothing at all is measured
_SMALLEST = 1e-8  # eigenvalue of V_S, relative to the largest, down to which W_S is made the identity
_NEGLIGIBLE = 1e-6  # weight of a group, relative to the largest norm,, that is not worth measuring
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
        """By how much the error falls where a·u_gu_gᵀ is added to X, each group by itself; shape (amounts, groups)."""
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
        """Only some groups."""
        numbers = np.full(self.count + 1, len(kept))
        numbers[kept] = np.arange(len(kept))
        places = numbers[self.places]
        places = places[(places < len(kept)).any(axis=1)]
        return Weighing(places, len(kept), tuple(batch.restricted(numbers) for batch in self.batches))

    @cached_property
    def is_held(self) -> NDArray[np.bool_]:
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
        prices = prices * (2.0 * error / float(prices @ norms))
        weights = weights * _factors(2.0 * pulls, some.prices(prices))
        norms = some.norms(weights)
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
    mean = float(prices @ norms) / float(prices.sum())
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
    """By what weights change at a step."""
    ratios = np.clip(pulls / np.maximum(prices, 1e-300), 1.0 / _FARTHEST, _FARTHEST)
    return np.asarray(ratios**WEIGHT_STEP)


def weighing_of(layout: Layout) -> Weighing:
    """The problem of weights for all groups of some tables, which together must support the workload."""
    top = set(finest(layout.tables))
    is_top = np.array([table in top for table in layout.tables])
    found = [_sector_rows(layout, sector, is_top) for sector in layout.part.sectors]
    return Weighing(layout.places, layout.count, _batched(found, layout.count))


@dataclass(frozen=True, eq=False)
class _Rows:
    multiplicity: float
    rows: Floats
    groups: Indices
    asked: Floats


def _sector_rows(layout: Layout, sector: Sector, is_top: NDArray[np.bool_]) -> _Rows:
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
    return _Rows(layout.part.multiplicity(sector), rows, groups, asked)


def row_basis(rows: Floats) -> Floats | None:
    """Orthonormal rows that span the same space; None where that is everything, or nearly."""
    if len(rows) >= rows.shape[1]:
        return None
    values, vectors = np.linalg.eigh(rows @ rows.T)
    kept = values > values[-1] * 1e-10
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ rows)


def _batched(found: Sequence[_Rows], count: int) -> tuple[Batch, ...]:
    """Small sectors together, by dimensions rounded up to a power of two; large ones each by itself."""
    sizes: dict[tuple[int, int], list[_Rows]] = {}
    for number, each in enumerate(found):
        size = each.rows.shape[1]
        key = (1 << (size - 1).bit_length(), 0) if size <= SMALL else (size, number + 1)
        sizes.setdefault(key, []).append(each)
    return tuple(_batch(size, some, count) for (size, _), some in sizes.items())


def _batch(size: int, found: Sequence[_Rows], count: int) -> Batch:
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
