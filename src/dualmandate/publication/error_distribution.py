"""How far the error of a published number goes: S = Σ w·X, X independent whole-number noise of known laws.

* one draw: in closed form;
* weights in simple ratios: S lies on a lattice, and its probabilities are a Fourier transform, exact to 10⁻¹²;
* others: the draws of the largest weights are taken value by value, because they make steps that no smooth law has, and
  the rest by its characteristic function, with a little Gaussian noise added, which is paid for: never too short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np

from dualmandate.mechanism import Noise
from dualmandate.mechanism.combination import Combination, Term, computable
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.population.arrays import Floats, Integers

NOTHING = 1e-12  # A weight below so much of the largest is a rounding error.
LONGEST_REMEMBERED = 2**12  # The reach of a law with at most so many different weights is remembered.
SHOWN = 11  # Weights are told apart by so many digits.
FOURIER_ERROR = 1e-11  # The sums of a lattice are off by less than this in a tail probability.
SUM_ERROR = 1e-12  # The same for the sums of a characteristic function, which are seen to be off by 10⁻¹⁴.
BEYOND = 2_000.0  # One draw of the rest may reach so many of its standard deviations: more frequencies are too many.
# Draws are taken value by value as long as there are at most so many products, and values after rare ones are left.
MOST_PRODUCTS, MOST_VALUES = 2**20, 2**16
RARE = 1e-15  # A value with at most this probability is left out, and counted as missed.
BLUR_SHARE = 0.002  # The added noise may cost this share of the tail probability.

Draws = tuple[Noise, tuple[float, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Reach:
    """How far an error goes: P(|S| ≤ distance) is `probability`, or at least that; `step` is that of its lattice."""

    distance: float
    probability: float
    is_exact: bool
    words: str
    step: float | None = None


def error_of(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> Combination:
    """The law of Σ w·X over measured rows: one weight a row, the kind of each row, and the noise of each kind."""
    return _combination(_draws(weights, kinds, noises))


def reach_of_rows(weights: Floats, kinds: Integers, noises: Sequence[Noise], tail: float) -> Reach | None:
    """How far Σ w·X goes; worked out once for numbers whose errors have the same law, as those of a table often do."""
    draws = _draws(weights, kinds, noises)
    if sum(len(distinct) for _, distinct, _ in draws) > LONGEST_REMEMBERED:
        return reach_of(error_of(weights, kinds, noises), tail)
    return _known_reach(draws, tail)


@lru_cache(maxsize=2**9)
def _known_reach(draws: tuple[Draws, ...], tail: float) -> Reach | None:
    return reach_of(_combination(draws), tail)


def _draws(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> tuple[Draws, ...]:
    """The noise of each kind, its different weights, and how many rows have each."""
    sizes = np.abs(weights)
    used = np.flatnonzero(sizes > NOTHING * sizes.max(initial=0.0))
    found = []
    for kind in np.unique(kinds[used]):
        here = sizes[used[kinds[used] == kind]]
        digits = SHOWN - math.floor(math.log10(float(here.max())))
        distinct, counts = np.unique(np.round(here, digits), return_counts=True)
        found.append((noises[kind], tuple(distinct[::-1].tolist()), tuple(counts[::-1].tolist())))
    return tuple(found)


def _combination(draws: Sequence[Draws]) -> Combination:
    terms = (Term(noise.distribution(), np.array(w), np.array(n, dtype=np.float64)) for noise, w, n in draws)
    return Combination(tuple(terms))


def reach_of(error: Combination, tail: float) -> Reach | None:
    """The smallest t with P(|S| > t) ≤ tail, or a little more where it is not exact; None where a sum has no end."""
    if error.variance == 0.0:
        words = "nothing was left to chance" if not error.terms else "noise this rare is never seen"
        return Reach(0.0, 1.0, not error.terms, words)
    if error.step is not None:
        draws = sum(float(term.counts.sum()) for term in error.terms)
        distance = error.reach(tail if draws == 1 else tail - FOURIER_ERROR)
        words = "one draw of noise" if draws == 1 else f"{draws:,.0f} draws of noise on a lattice"
        return Reach(distance, 1 - error.tail(distance), True, words, error.step)
    split = Split.of(error)
    if split.rest.variance == 0.0:
        return split.by_values(computable(tail))
    return split.by_both(computable(tail)) if split.has_end else None


@dataclass(frozen=True, eq=False)
class Split:
    """S = D + R: D has listed values with their probabilities, R is known by its characteristic function."""

    values: Floats
    probabilities: Floats  # add up to 1 − `missed`
    missed: float
    rest: Combination

    @classmethod
    def of(cls, error: Combination) -> Split:
        """The draws of the largest weights as long as their values are few, and the rest."""
        pairs = [(term.noise, zip(term.factors, term.counts, strict=True)) for term in error.terms]
        draws = [(float(factor), noise, int(count)) for noise, each in pairs for factor, count in each]
        draws.sort(key=lambda each: -each[0])
        values, masses, left = np.zeros(1), np.ones(1), list[Term]()
        for factor, noise, count in draws:
            taken = 0
            while not left and taken < count:
                found = _with_draw(values, masses, factor=factor, noise=noise)
                if found is None:
                    break
                values, masses = found
                taken += 1
            if taken < count:
                left.append(Term(noise, np.array([factor]), np.array([float(count - taken)])))
        return cls(values, masses, max(0.0, 1 - math.fsum(masses)), Combination(tuple(left)))

    @property
    def has_end(self) -> bool:
        """Whether the frequencies are not too many: no rare draw of the rest goes far beyond the others."""
        return self.rest.law.largest <= BEYOND * math.sqrt(self.rest.variance)

    def by_values(self, tail: float) -> Reach:
        """Where every draw is taken value by value."""
        sizes = np.abs(self.values)
        order = np.argsort(sizes, kind="stable")
        sums = np.cumsum(self.probabilities[order])
        # What was left out of the values may be more than the tail: then every value is within.
        place = min(int(np.searchsorted(sums, 1 - tail)), len(sums) - 1)
        distance = float(sizes[order][place]) * (1 + 1e-9)
        held = float(self.probabilities[sizes <= distance].sum())
        return Reach(distance, held, self.missed < FOURIER_ERROR, "every value of the noise by itself")

    def by_both(self, tail: float) -> Reach:
        """P(|S| > t + z) ≤ P(|S + Z| > t) + P(|Z| > z), Z the noise that is added to the rest."""
        margin = -NormalDist().inv_cdf(BLUR_SHARE * tail / 2) * self.rest.law.blur
        allowed = (1 - BLUR_SHARE) * tail - SUM_ERROR - self.missed
        low, high = 0.0, float(np.abs(self.values).max()) + self.rest.law.largest
        while high - low > self._grid[0] / 4:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > allowed else (low, middle)
        held = 1 - (self._beyond(high) + SUM_ERROR + self.missed + BLUR_SHARE * tail)
        return Reach(high + margin, max(held, 1 - tail), False, "by its characteristic function")

    def _beyond(self, distance: float) -> float:
        """P(|D + R + Z| > distance) = 2·Σ P(D = d)·P(R + Z > distance − d), or a little more."""
        step, above = self._grid
        places = (distance - self.values) / step
        right = above[np.clip(np.floor(places), 0, len(above) - 1).astype(np.intp)]
        left = 1 - above[np.clip(np.ceil(-places), 0, len(above) - 1).astype(np.intp)]
        return 2 * float(self.probabilities @ np.where(places >= 0, right, left))

    @cached_property
    def _grid(self) -> tuple[float, Floats]:
        """P(R + Z > k steps) for k = 0, 1, …; never rising."""
        step, tails = self.rest.law.blurred_tails
        return step, np.minimum.accumulate(tails) / 2


def _with_draw(values: Floats, masses: Floats, *, factor: float, noise: Distribution) -> tuple[Floats, Floats] | None:
    """The values of D and one more draw, without rare ones; None where they would be too many."""
    reach = int(noise.reach(RARE))
    if len(values) * (2 * reach + 1) > MOST_PRODUCTS:
        return None
    places = np.arange(-reach, reach + 1)
    chances = np.array([math.exp(noise.log_likelihood(float(place))) for place in places])
    sums, products = np.add.outer(values, factor * places).reshape(-1), np.multiply.outer(masses, chances).reshape(-1)
    kept = products > RARE
    return (sums[kept], products[kept]) if int(kept.sum()) <= MOST_VALUES else None
