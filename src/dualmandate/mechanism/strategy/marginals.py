"""Marginals measured as plain counts for pure ε: which of the 2^d tables, and how well each.

A strategy that measures the marginal T with weight θ_T has sensitivity Σθ, because a record is in one cell of each.
On the residual space of S its Gram matrix is X_S = Σ_{T ⊇ S} θ_T²·Π_{i∉T} n_i, so its error is (Σθ)²·Σ_S m_S·v_S/X_S.
Marginals finer than those asked for belong in the search. Sums over supersets and subsets are Yates' butterflies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.arrays import NUMPY
from dualmandate.mechanism.strategy.descent import descend
from dualmandate.mechanism.strategy.marginal_rows import Places, Residual, below, residuals_of
from dualmandate.mechanism.strategy.partitions import GroupStack, stacked_marginals
from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock
from dualmandate.population.arrays import Floats, Indices

Held: TypeAlias = tuple[Indices, Indices]

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


def best_wide_marginals(part: WorkloadBlock, starts: int | None) -> tuple[dict[Places, float], float, str]:
    """The same among the tables asked for and those within them, by the places that they keep; and how, in words.

    Nothing finer is looked at, so that nothing is counted that is larger than the largest table.
    """
    problem = _Problem.within(residuals_of(part), part.merged_shape)
    found = [problem.improved(start) for start in islice(problem.starts(), starts or problem.usual_starts)]
    weights, error = min(found, key=lambda each: each[1])
    kept = {
        tuple(sorted(chosen)): float(weight) for chosen, weight in zip(problem.sets, weights, strict=True) if weight > 0
    }
    words = f"{len(kept):,} marginals as weighted counts, the best of {len(found)} starts among those within the tables"
    return kept, error, words


@dataclass(frozen=True, eq=False)
class _Problem:
    """Marginals T that may be measured, and residual spaces S that queries see; the finest T answer every query."""

    shape: tuple[int, ...]
    sets: tuple[frozenset[int], ...]  # T, by the places that a marginal keeps
    needs: Floats  # m_S·v_S, by S
    spans: Floats  # Π_{i∉T} n_i, by T
    asked: Floats  # squared weight of the tables whose finest residual space is T
    holds: Held | None  # by numbers of S and T, where S ⊆ T, for a list; None: all sets, by their bits
    finest: Indices  # numbers of the T that keep every query answerable

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
        holds = None if every else _held(list(needs), sets)
        return cls(
            shape,
            sets,
            np.array([needs.get(each, 0.0) for each in (sets if every else needs)]),
            np.array([math.prod(float(n) for i, n in enumerate(shape) if i not in kept) for kept in sets]),
            np.array([asked.get(kept, 0.0) for kept in sets]),
            holds,
            np.array([len(sets) - 1]),
        )

    @classmethod
    def within(cls, spaces: Mapping[Places, Residual], shape: tuple[int, ...]) -> _Problem:
        """The tables asked for and those within them; in units of the whole domain, whose size may be no number."""
        sets = tuple(map(frozenset, spaces))
        sizes = np.array([math.prod(float(shape[place]) for place in space) for space in spaces])
        costs = np.array([each.cost for each in spaces.values()])
        holds = _held(sets, sets)
        alone = np.bincount(holds[0], minlength=len(sets)) == 1  # within no other
        needs = costs / sizes
        return cls(shape, sets, needs, 1.0 / sizes, np.where(alone, needs, 0.0), holds, np.flatnonzero(alone))

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
        least[self.finest] = 1e-9 * float(start.sum())

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
        cells = self.spans.max() / self.spans
        floor = np.full(count, 1e-3 / count)
        asked = np.sqrt(self.asked)
        yield asked / asked.sum() + floor
        cubes = _cube_roots(self.asked * cells)
        yield cubes / cubes.sum() + floor
        yield np.full(count, 1.0 / count)
        finest = floor.copy()
        finest[self.finest] += 1.0 / len(self.finest)
        yield finest
        points = np.arange(1, count + 1)
        for number in itertools.count(1):
            spread = np.modf(number * (points * _GOLDEN + points**2 * (math.sqrt(2) - 1)))[0]
            yield spread / spread.sum() + floor

    def _seen_by(self, values: Floats) -> Floats:
        """For each S, the sum over the marginals that hold it."""
        if self.holds is None:
            return self._over(values, upward=False)
        return _added(self.holds[0], values[self.holds[1]], len(self.needs))

    def _held_by(self, values: Floats) -> Floats:
        """For each T, the sum over the residual spaces that it holds."""
        if self.holds is None:
            return self._over(values, upward=True)
        return _added(self.holds[1], values[self.holds[0]], len(self.sets))

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


def _added(places: Indices, values: Floats, count: int) -> Floats:
    """Values added up by place, one after the other."""
    return np.asarray(np.bincount(places, weights=values, minlength=count), dtype=np.float64)


def _held(seen: Sequence[frozenset[int]], sets: Sequence[frozenset[int]]) -> Held:
    """Numbers of residual spaces and of the marginals that hold them, pair by pair."""
    numbers = {space: number for number, space in enumerate(seen)}
    pairs = []
    for kept, each in enumerate(sets):
        few = 2 ** len(each) <= len(seen)
        within = map(frozenset, below(tuple(sorted(each)))) if few else (space for space in seen if space <= each)
        pairs += [(numbers[space], kept) for space in within if space in numbers]
    found = np.array(sorted(pairs), dtype=np.intp).reshape(-1, 2)
    return found[:, 0].copy(), found[:, 1].copy()


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
