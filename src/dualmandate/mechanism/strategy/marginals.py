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
from itertools import islice

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.arrays import NUMPY
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.descent import descend
from dualmandate.mechanism.strategy.group_stack import GroupStack, stacked_marginals
from dualmandate.mechanism.strategy.parts import Part

MOST_ATTRIBUTES = 16
STRUCTURED = 4  # starts that follow from the tables asked for
MOST_WORK = 2**16  # starts × marginals × attributes, beyond which only a few starts are made
MOST_STEPS = 500  # of one start
_NEGLIGIBLE = 1e-7  # weight, relative to their sum, of a marginal that is not worth measuring
_GOLDEN = (math.sqrt(5) - 1) / 2


def best_marginals(part: Part, starts: int | None = None) -> tuple[GroupStack, float]:
    """The best weights found, and the error for sensitivity 1; a closed form for one attribute."""
    shape = part.merged_shape
    if len(shape) > MOST_ATTRIBUTES:
        raise TooLarge(
            f"weights for 2^{len(shape)} marginals",
            why=f"all marginals of at most {MOST_ATTRIBUTES} attributes are weighed",
            instead="ask about fewer attributes at once, or use gaussian noise, which has a closed form",
        )
    problem = _Problem.of(part)
    if len(shape) == 1:
        found = [problem.one_attribute()]
    else:
        found = [problem.improved(start) for start in islice(problem.starts(), starts or problem.usual_starts)]
    weights, error = min(found, key=lambda each: each[1])
    kept = {
        frozenset(place for place in range(len(shape)) if index >> place & 1): float(weight)
        for index, weight in enumerate(weights)
        if weight > 0
    }
    how = "in closed form" if len(shape) == 1 else f"the best of {len(found)} starts"
    return stacked_marginals(part, kept, f"{len(kept)} marginals as weighted counts, {how}"), error


@dataclass(frozen=True, eq=False)
class _Problem:
    shape: tuple[int, ...]
    needs: Floats  # m_S·v_S, by bits of S
    spans: Floats  # Π_{i∉T} n_i, by bits of T
    asked: Floats  # squared weight of the tables whose finest residual space is S

    @classmethod
    def of(cls, part: Part) -> _Problem:
        shape = part.merged_shape
        needs, asked, spans = np.zeros(2 ** len(shape)), np.zeros(2 ** len(shape)), np.ones(1)
        for sector, weights in part.sectors.items():
            index = sum(1 << place for place, _ in sector)
            needs[index] = part.multiplicity(sector) * math.fsum(weights.values())
        for key, weight in part.squared_weights.items():
            fine = [place for place, factor in enumerate(part.tables[key]) if part.own(place, factor)[0] > 0]
            asked[sum(1 << place for place in fine)] += weight
        for n in shape:
            spans = np.concatenate([spans * n, spans])
        return cls(shape, needs, spans, asked)

    def error(self, weights: Floats) -> tuple[float, Floats]:
        """(Σθ)²·Σ needs/X, and its gradient."""
        gram = self._over(weights**2 * self.spans, upward=False)
        seen = self.needs > 0
        shares = np.zeros_like(gram)
        shares[seen] = self.needs[seen] / gram[seen]
        total, noise = float(weights.sum()), float(shares.sum())
        shares[seen] /= gram[seen]
        slope = 2 * total * noise - 2 * total**2 * weights * self.spans * self._over(shares, upward=True)
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
        supported = self._over(trimmed**2 * self.spans, upward=False)[self.needs > 0].min() > 0
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
        """As many starts as are worth their time."""
        return STRUCTURED + max(4, min(36, MOST_WORK // (len(self.needs) * len(self.shape))))

    def starts(self) -> Iterator[Floats]:
        """Enumerated: the tables asked for, cube roots of sizes, all alike, then points of an even spread."""
        count = len(self.needs)
        cells = math.prod(self.shape) / self.spans
        floor = np.full(count, 1e-3 / count)
        asked = np.sqrt(self.asked)
        yield asked / asked.sum() + floor
        cubes = np.cbrt(self.asked * cells)
        yield cubes / cubes.sum() + floor
        yield np.full(count, 1.0 / count)
        finest = floor.copy()
        finest[-1] += 1.0
        yield finest
        points = np.arange(1, count + 1)
        for number in itertools.count(1):
            spread = np.modf(number * (points * _GOLDEN + points**2 * (math.sqrt(2) - 1)))[0]
            yield spread / spread.sum() + floor

    def _over(self, values: Floats, *, upward: bool) -> Floats:
        """Sums over subsets (`upward`) or supersets of each set."""
        sums = values.copy()
        for place in range(len(self.shape)):
            halves = sums.reshape(-1, 2, 1 << place)
            if upward:
                halves[:, 1] += halves[:, 0]
            else:
                halves[:, 0] += halves[:, 1]
        return sums
