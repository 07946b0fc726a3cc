"""What noisy numbers say of cells that are alike: as smooth as the numbers themselves make likely, and no smoother.

Cells were measured with noise, y = A·t + e. A penalty ‖Rt‖² is 0 where cells are even, and grows where they are not;
the estimate minimizes ‖y − A·t‖² + κ·‖Rt‖² over t, in units of the noise. It is the mean of t given y where t has the
prior exp(−κ·‖Rt‖²/2), and κ, and which of several penalties, are taken by what they make of y: the likelihood of all
contrasts that no even t changes (restricted maximum likelihood, [PT71]). Where cells differ by much more than noise, κ
goes to 0 and the estimate to least squares. Nothing here sees any data but the noisy numbers, so that nothing is lost.

A single high cell would make all of them look rough. So what stands out of the cells around it by far more than noise
does is set aside first, and the rest is smoothed.

With AᵀA = LLᵀ and L⁻¹Rᵀ = UΓ^½Vᵀ the numbers z = UᵀL⁻¹Aᵀy are independent with variances 1 + 1/(κγ), their estimates
are z/(1 + κγ), and what lies beside the columns of U stays as it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.population.arrays import Floats, Indices

STRENGTHS = np.exp(np.arange(-20.0, 20.5, 1.0))  # of a penalty, about that at which it equals the noise
ROUGH_SHARE = 0.03  # of the variance of a cell, in the penalty for data that are smooth but for it
STANDS_OUT = 8.0  # deviations of noise: Laplace noise goes as far once in 80 tables of a thousand cells
AROUND = (33, 9)  # cells a side whose median a cell stands out of, by the number of attributes
NOTHING = 1e-10  # of the largest γ: a direction that the penalty leaves alone


@dataclass(frozen=True, eq=False)
class _Directions:
    """Of one penalty: γ > 0, shape (directions,), and U, shape (cells, directions)."""

    root: Floats  # R
    penalties: Floats
    columns: Floats

    def strength(self, numbers: Floats) -> tuple[float, float]:
        """The likeliest κ for z, and its logarithmic likelihood."""
        middle = float(np.median(self.penalties))
        variances = 1.0 + 1.0 / np.outer(STRENGTHS / middle, self.penalties)
        likelihoods = -0.5 * (np.log(variances) + np.square(numbers) / variances).sum(axis=1)
        best = int(likelihoods.argmax())
        return float(STRENGTHS[best] / middle), float(likelihoods[best])


@dataclass(frozen=True, eq=False)
class Smoother:
    """Rows in units of their noise, shape (rows, cells), and the penalties that come into question."""

    rows: Floats
    triangle: Floats  # L
    directions: tuple[_Directions, ...]

    @classmethod
    def of(cls, rows: Floats, roots: Sequence[Floats]) -> Smoother | None:
        """For penalties by their R; None where the rows do not tell all cells apart, so that some were not measured."""
        from scipy.linalg import solve_triangular

        try:
            triangle: Floats = np.asarray(np.linalg.cholesky(rows.T @ rows), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        found = []
        for root in roots:
            columns, singular, _ = np.linalg.svd(solve_triangular(triangle, root.T, lower=True), full_matrices=False)
            kept = singular**2 > NOTHING * singular[0] ** 2
            found.append(_Directions(root, singular[kept] ** 2, columns[:, kept]))
        return cls(rows, triangle, tuple(found))

    @cached_property
    def inverse(self) -> Floats:
        """(AᵀA)⁻¹Aᵀ, shape (cells, rows)."""
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve((self.triangle, True), self.rows.T))

    @cached_property
    def _deviations(self) -> Floats:
        """Of the least-squares estimate of each cell."""
        return np.asarray(np.sqrt(np.square(self.inverse).sum(axis=1)))

    def fit_around_peaks(self, measured: Floats, shape: tuple[int, ...], *, noise: float = 1.0) -> Floats:
        """The estimate of each cell of a table, in which what stands out is left as it was measured.

        With k peaks among n cells, of h deviations on average, this is done where it makes the numbers likelier: by
        more than ln n!/k!(n − k)! for where they lie and ln h + 1 for how high each is.
        """
        from scipy.ndimage import median_filter
        from scipy.special import gammaln

        plain = (self.inverse @ measured).reshape(shape)
        sides = AROUND[min(sum(size > 1 for size in shape), len(AROUND)) - 1]
        level = median_filter(plain, size=[min(size, sides) for size in shape], mode="nearest")
        high = ((plain - level).reshape(-1)) / (noise * self._deviations)
        stands_out = np.abs(high) > STANDS_OUT
        some = int(stands_out.sum())
        if not some:
            return self.fit(measured, noise=noise)
        price = gammaln(high.size + 1) - gammaln(some + 1) - gammaln(high.size - some + 1)
        price += some * (math.log(float(np.abs(high[stands_out]).mean())) + 1)
        peaks = np.where(stands_out, high * noise * self._deviations, 0.0)
        left = measured - self.rows @ peaks
        if self._likelihood(left / noise) - price <= self._likelihood(measured / noise):
            return self.fit(measured, noise=noise)
        return peaks + self.fit(left, noise=noise)

    def _likelihood(self, numbers: Floats) -> float:
        """The highest of all penalties."""
        from scipy.linalg import solve_triangular

        given = solve_triangular(self.triangle, self.rows.T @ numbers, lower=True)
        return max((each.strength(each.columns.T @ given)[1] for each in self.directions), default=0.0)

    def fit(self, measured: Floats, *, noise: float = 1.0, at_least_zero: bool = False) -> Floats:
        """The estimate of each cell; `noise` is the deviation of the numbers that were measured."""
        from scipy.linalg import solve_triangular

        given = solve_triangular(self.triangle, self.rows.T @ measured / noise, lower=True)
        estimate, added, highest = given, np.zeros((0, len(given))), -np.inf
        for each in self.directions:
            numbers = each.columns.T @ given
            strength, likelihood = each.strength(numbers)
            if likelihood > highest:
                left = strength * each.penalties / (1.0 + strength * each.penalties)
                estimate, added, highest = (
                    given - each.columns @ (left * numbers),
                    strength**0.5 * each.root,
                    likelihood,
                )
        found = solve_triangular(self.triangle, estimate, trans="T", lower=True)
        if at_least_zero and np.any(found < 0):
            # The same least squares, among numbers of 0 and more.
            from scipy.optimize import nnls

            wanted = np.concatenate([given, np.zeros(len(added))])
            found = nnls(np.concatenate([self.triangle.T, added]), wanted, maxiter=100 * len(found))[0]
        return np.asarray(found * noise)


def roots_of_cells(shape: tuple[int, ...]) -> list[Floats]:
    """For cells that scatter around one number, for neighbors that are alike, and for both at once."""
    size = int(np.prod(shape))
    if size == 1:
        return []
    places, neighbors = np.arange(size).reshape(shape), np.zeros((size, size))
    for axis, length in enumerate(shape):
        one, other = (np.take(places, range(first, first + length - 1), axis).reshape(-1) for first in (0, 1))
        for left, right, sign in ((one, one, 1), (other, other, 1), (one, other, -1), (other, one, -1)):
            np.add.at(neighbors, (left, right), sign)
    values, vectors = np.linalg.eigh(neighbors)
    rough, directions = values[1:], vectors[:, 1:].T  # The first is the sum of all cells.
    spread = size / (1.0 / rough).sum() / rough  # the variances that neighbors which are alike have in each direction
    return [np.sqrt(each)[:, None] * directions for each in (np.ones(size - 1), rough, 1.0 / (spread + ROUGH_SHARE))]


def roots_of_pieces(sizes: Indices, parts: Indices) -> list[Floats]:
    """For pieces of parts that were cut up, within each part: scattered around one density, and alike to the next.

    `sizes` are those of the pieces in cells, `parts` the part of each; pieces of different parts are never likened.
    """
    first = np.flatnonzero(parts[1:] == parts[:-1])
    if not len(first):
        return []
    several = np.flatnonzero(np.bincount(parts)[parts] > 1)
    same = parts[several][:, None] == parts
    means = same / np.bincount(parts, weights=sizes)[parts[several]][:, None]
    scattered = -means
    scattered[np.arange(len(several)), several] += 1.0 / sizes[several]
    steps = np.zeros((len(first), len(sizes)))
    steps[np.arange(len(first)), first] = -1.0 / sizes[first]
    steps[np.arange(len(first)), first + 1] = 1.0 / sizes[first + 1]
    apart = (sizes[first] + sizes[first + 1]) / 2
    return [np.sqrt(sizes[several])[:, None] * scattered, steps / np.sqrt(apart)[:, None]]
