"""Marginals measured as plain counts for pure ε: which of the 2^d tables, and how well each.

A strategy that measures the marginal T with weight θ_T has sensitivity Σθ, because a record is in one cell of each.
On the residual space of S its Gram matrix is X_S = Σ_{T ⊇ S} θ_T²·Π_{i∉T} n_i, so its error is (Σθ)²·Σ_S m_S·v_S/X_S.
Marginals finer than those asked for belong in the search. Sums over supersets and subsets are Yates' butterflies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.arrays import NUMPY
from dualmandate.mechanism.strategy.descent import descend
from dualmandate.mechanism.strategy.partitions import GroupStack, stacked_marginals
from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock
from dualmandate.population.arrays import Floats

MOST_ATTRIBUTES = 16  # of which all marginals are weighed
MOST_LISTED = 4_096  # marginals that are weighed where there are more attributes
MOST_UNIONS = 2**20  # pairs of tables whose unions are looked at
STRUCTURED = 4  # starts that follow from the tables asked for
MOST_WORK = 2**16  # starts × marginals × attributes, beyond which only a few starts are made
MOST_STEPS = 500  # of one start
_NEGLIGIBLE = 1e-7  # weight, relative to their sum, of a marginal that is not worth measuring
_GOLDEN = (math.sqrt(5) - 1) / 2


def best_marginals(part: WorkloadBlock, starts: int | None = None) -> tuple[GroupStack, float]:
    """The best weights found, and the error for sensitivity 1; a closed form for one attribute."""
    shape = part.merged_shape
    problem = _Problem.of(part)
    if len(shape) == 1:
        found = [problem.one_attribute()]
    else:
        found = [problem.improved(start) for start in islice(problem.starts(), starts or problem.usual_starts)]
    weights, error = min(found, key=lambda each: each[1])
    kept = {chosen: float(weight) for chosen, weight in zip(problem.sets, weights, strict=True) if weight > 0}
    how = "in closed form" if len(shape) == 1 else f"the best of {len(found)} starts"
    return stacked_marginals(part, kept, f"{len(kept)} marginals as weighted counts, {how}"), error


@dataclass(frozen=True, eq=False)
class _Problem:
    """Marginals T that may be measured, and residual spaces S that queries see; the last T is every cell."""

    shape: tuple[int, ...]
    sets: tuple[frozenset[int], ...]  # T, by the places that a marginal keeps
    needs: Floats  # m_S·v_S, by S
    spans: Floats  # Π_{i∉T} n_i, by T
    asked: Floats  # squared weight of the tables whose finest residual space is T
    holds: Floats | None  # 1 where S ⊆ T, shape (S, T), for a list; None: all sets, by their bits

    @classmethod
    def of(cls, part: WorkloadBlock) -> _Problem:
        shape, asked = part.merged_shape, dict[frozenset[int], float]()
        for key, weight in part.squared_weights.items():
            fine = [place for place, factor in enumerate(part.tables[key]) if part.own(place, factor)[0] > 0]
            asked[frozenset(fine)] = asked.get(frozenset(fine), 0.0) + weight
        needs = {
            frozenset(place for place, _ in sector): part.multiplicity(sector) * math.fsum(weights.values())
            for sector, weights in part.sectors.items()
        }
        every = len(shape) <= MOST_ATTRIBUTES
        sets = _all_sets(len(shape)) if every else _listed_sets(set(asked), set(needs), len(shape))
        holds = None if every else np.array([[float(seen <= kept) for kept in sets] for seen in needs])
        return cls(
            shape,
            sets,
            np.array([needs.get(each, 0.0) for each in (sets if every else needs)]),
            np.array([math.prod(float(n) for i, n in enumerate(shape) if i not in kept) for kept in sets]),
            np.array([asked.get(kept, 0.0) for kept in sets]),
            holds,
        )

    def error(self, weights: Floats) -> tuple[float, Floats]:
        """(Σθ)²·Σ needs/X, and its gradient."""
        gram = self._seen_by(weights**2 * self.spans)
        seen = self.needs > 0
        shares = np.zeros_like(gram)
        shares[seen] = self.needs[seen] / gram[seen]
        total, noise = float(weights.sum()), float(shares.sum())
        shares[seen] /= gram[seen]
        slope = 2 * total * noise - 2 * total**2 * weights * self.spans * self._held_by(shares)
        return total**2 * noise, slope

    def improved(self, start: Floats) -> tuple[Floats, float]:
        """The local optimum from a start; weights that carry nothing are dropped."""
        first, _ = self.error(start)
        least = np.zeros(len(start))
        least[-1] = 1e-9 * float(start.sum())  # the cells themselves keep every query answerable

        def loss(above: Floats) -> tuple[float, Floats]:
            value, slope = self.error(above + least)
            return value / first, slope / first

        found = descend(loss, start - least, arrays=NUMPY, upper=1e9, steps=MOST_STEPS, tolerance=1e-9)
        weights = (found.point + least) / (found.point + least).sum()
        trimmed = np.where(weights > _NEGLIGIBLE, weights, 0.0)
        supported = self._seen_by(trimmed**2 * self.spans)[self.needs > 0].min() > 0
        candidates = [trimmed / trimmed.sum(), weights] if supported else [weights]
        return min(((each, self.error(each)[0]) for each in candidates), key=lambda each: each[1])

    def one_attribute(self) -> tuple[Floats, float]:
        """Identity and total with weights 1 and u: (1 + u)²(a + b/(1 + nu²)) is stationary at roots of a quartic."""
        n, b, a = self.shape[0], self.needs[0], self.needs[1] if self.shape[0] > 1 else 0.0
        if a == 0.0:
            return np.array([1.0, 0.0]), self.error(np.array([1.0, 0.0]))[0]
        roots = np.roots([a * n**2, 0.0, 2 * a * n, -b * n, a + b])
        ratios = [0.0, *(float(root.real) for root in roots if abs(root.imag) < 1e-9 and root.real > 0)]
        found = [np.array([ratio, 1.0]) / (1 + ratio) for ratio in ratios]
        return min(((each, self.error(each)[0]) for each in found), key=lambda each: each[1])

    @property
    def usual_starts(self) -> int:
        return STRUCTURED + max(4, min(36, MOST_WORK // (len(self.sets) * len(self.shape))))

    def starts(self) -> Iterator[Floats]:
        """Enumerated: the tables asked for, cube roots of sizes, all alike, then points of an even spread."""
        count = len(self.sets)
        cells = math.prod(float(n) for n in self.shape) / self.spans
        floor = np.full(count, 1e-3 / count)
        asked = np.sqrt(self.asked)
        yield asked / asked.sum() + floor
        cubes = _cube_roots(self.asked * cells)
        yield cubes / cubes.sum() + floor
        yield np.full(count, 1.0 / count)
        finest = floor.copy()
        finest[-1] += 1.0
        yield finest
        points = np.arange(1, count + 1)
        for number in itertools.count(1):
            spread = np.modf(number * (points * _GOLDEN + points**2 * (math.sqrt(2) - 1)))[0]
            yield spread / spread.sum() + floor

    def _seen_by(self, values: Floats) -> Floats:
        """For each S, the sum over the marginals that hold it."""
        return self._over(values, upward=False) if self.holds is None else _times(values, self._held)

    def _held_by(self, values: Floats) -> Floats:
        """For each T, the sum over the residual spaces that it holds."""
        return self._over(values, upward=True) if self.holds is None else _times(values, self.holds)

    @cached_property
    def _held(self) -> Floats:
        """1 where S ⊆ T, shape (T, S)."""
        assert self.holds is not None
        return np.ascontiguousarray(self.holds.T)

    def _over(self, values: Floats, *, upward: bool) -> Floats:
        """Sums over subsets (`upward`) or supersets of each of all sets: Yates' butterfly."""
        sums = values.copy()
        for place in range(len(self.shape)):
            halves = sums.reshape(-1, 2, 1 << place)
            if upward:
                halves[:, 1] += halves[:, 0]
            else:
                halves[:, 0] += halves[:, 1]
        return sums


def _times(values: Floats, matrix: Floats) -> Floats:
    return np.asarray(NUMPY.matmul(values[None], matrix)[0])


def _cube_roots(values: Floats) -> Floats:
    """Newton's steps from the power of two above, which are the same on every machine; of 0 it is 0."""
    found = np.ldexp(1.0, -(-np.frexp(values)[1] // 3))
    for _ in range(8):
        found = found - (found - values / (found * found)) / 3.0
    return np.where(values > 0.0, found, 0.0)


def _all_sets(count: int) -> tuple[frozenset[int], ...]:
    """All sets of places, by their bits."""
    return tuple(frozenset(i for i in range(count) if index >> i & 1) for index in range(2**count))


def _listed_sets(asked: set[frozenset[int]], seen: set[frozenset[int]], count: int) -> tuple[frozenset[int], ...]:
    """Of too many sets: those that queries see, unions of two tables asked for, and every cell, which comes last."""
    unions = {one | other for one in asked for other in asked} if len(asked) ** 2 <= MOST_UNIONS else set()
    ranked = sorted(seen | unions, key=lambda each: (each not in seen, len(each), sorted(each)))
    if len(seen) > MOST_LISTED:
        raise TooLarge(
            f"weights for {len(seen):,} marginals of {count} attributes",
            why=f"at most {MOST_LISTED:,} marginals of more than {MOST_ATTRIBUTES} attributes are weighed",
            instead="ask about fewer attributes at once, or use gaussian noise, which has a closed form",
        )
    every = frozenset(range(count))
    return (*(each for each in ranked[:MOST_LISTED] if each != every), every)
