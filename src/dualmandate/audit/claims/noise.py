"""Noise for audits, drawn as releases draw it from the audit's own key; and whether two releases share noise.

Whoever has two releases that share noise has the exact difference of what they counted. Where noise is independent,
symmetric and falls off on both sides, a row of one release equals the same row of another with probability Σ p_k·q_k at
most, whatever was counted: that is its largest difference in probability. And squared differences are at least as large
as those of the noise alone, in distribution [And55], so that their sum is hardly ever much below its mean:
P(S ≤ E − t) ≤ exp(−t²/(2·Σ E d⁴)) [Mau03]. Both bounds hold for any two files.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.checks import ClaimCheck
from dualmandate.audit.equations import Floats, Integers
from dualmandate.mechanism import DiscreteGaussian, Geometric
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey, Sampler

SUSPICIOUS = 1e-6  # Two releases are said to share noise where the chance is below this.
FEWEST = 8  # At least this many numbers are compared.
Law = Literal["laplace", "gaussian"]
LogPmf = Callable[[Floats, NDArray[np.intp]], Floats]  # of noise in some columns, up to a constant; (draws, columns)


@dataclass(frozen=True)
class RowNoise:
    """The exact noise of a row: discrete Laplace with its scale, or discrete Gaussian with its σ²."""

    law: Law
    parameter: Fraction

    @property
    def largest(self) -> float:
        """The probability of 0, the largest of all."""
        return math.exp(self._distribution.log_likelihood(0.0))

    @property
    def variance(self) -> float:
        return self._distribution.variance

    @property
    def fourth_moment(self) -> float:
        """E k⁴, from above."""
        if self.law == "laplace":
            q = math.exp(-1 / float(self.parameter))
            return 2 * q * (1 + 11 * q + 11 * q**2 + q**3) / ((-math.expm1(math.log(q))) ** 4 * (1 + q))
        return 3 * float(self.parameter) ** 2 + float(self.parameter)  # 3σ⁴, and more where σ is small

    @property
    def _distribution(self) -> Geometric | DiscreteGaussian:
        rate = float(1 / self.parameter)
        return Geometric(rate) if self.law == "laplace" else DiscreteGaussian(rate / 2)


def coincidence(one: RowNoise, other: RowNoise) -> float:
    """The probability Σ p_k·q_k that two independent draws are equal; of two laws, at most.

    Both are weights e^(−f(k)/parameter), and the product of two is one with 1/parameter added up.
    """
    if one.law != other.law:
        return min(one.largest, other.largest)
    both = RowNoise(one.law, 1 / (1 / one.parameter + 1 / other.parameter))
    return one.largest * other.largest / both.largest


@dataclass(frozen=True)
class SharedNoise:
    """Rows of two releases that count the same: how many are equal, how many independent noise lets one expect."""

    equal: int
    rows: int
    expected: float  # at most, on average
    chance: float  # of so many equal rows, or of differences so small, at most

    @property
    def check(self) -> ClaimCheck:
        broken = self.chance < SUSPICIOUS
        chance = f"{self.chance:.2g}" if self.chance > 1e-300 else "less than 1e-300"
        return ClaimCheck(
            "seed reuse",
            broken,
            f"{self.equal:,} of {self.rows:,} rows are equal, of independent noise {self.expected:,.3g} at most"
            f" on average; the chance of this, or of differences as small, is {chance} at most"
            + (": the two releases SHARE NOISE, and their difference is exposed" if broken else ""),
        )


def shared_noise(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    noises: tuple[tuple[RowNoise, RowNoise], ...],
    kinds: NDArray[np.int64],
) -> SharedNoise:
    """Compare rows that count the same in two releases; `kinds` says of each row which pair of `noises` it has."""
    from scipy.stats import binom

    used = np.unique(kinds)
    chances = np.zeros(len(noises))
    moments = np.zeros((len(noises), 2))
    for kind in used:
        one, other = noises[int(kind)]
        chances[kind] = coincidence(one, other)
        fourth = one.fourth_moment + other.fourth_moment + 6 * one.variance * other.variance
        moments[kind] = one.variance + other.variance, fourth
    apart = first - second
    equal, rows = int((apart == 0).sum()), len(first)
    by_count = float(binom.sf(equal - 1, rows, float(chances[used].max())))
    mean, fourth = moments[kinds].sum(axis=0)
    missing = max(float(mean) - float(np.square(apart, dtype=np.float64).sum()), 0.0)
    by_size = math.exp(-(missing**2) / (2 * float(fourth)))
    return SharedNoise(equal, rows, float(chances[kinds].sum()), min(1.0, 2 * min(by_count, by_size)))


def audit_noise(key: bytes, purpose: str, law: Law, parameter: Fraction, shape: tuple[int, ...]) -> Integers:
    """Discrete noise for one purpose of an audit; `parameter` is the scale of Laplace or the σ² of Gaussian noise.

    Equal for an equal key and purpose. The key is the audit's own: no release draws from it.
    """
    sampler = LaplaceSampler(parameter) if law == "laplace" else GaussianSampler(parameter)
    return drawn_from(sampler, key, purpose, shape)


def drawn_from(sampler: Sampler, key: bytes, purpose: str, shape: tuple[int, ...]) -> Integers:
    """The same of any exact noise."""
    own = NoiseKey(hashlib.blake2b(f"noise: {purpose}".encode(), key=key[:64], digest_size=32).digest())
    return sampler.draw(own, range(int(np.prod(shape)))).reshape(shape)


def own_law(word: str) -> Law | None:
    """The law that a release names, where the audit has arithmetic of its own for it."""
    return "laplace" if word == "laplace" else "gaussian" if word == "gaussian" else None


def log_weights(law: Law, parameters: Fraction | Floats) -> LogPmf:
    """The logarithm of the probability of noise, up to a constant that cancels in ratios.

    `parameters` is one for all columns, or one a column.
    """
    power = 1 if law == "laplace" else 2
    scales = np.atleast_1d(np.asarray(parameters, dtype=np.float64)) * power

    def logarithms(noise: Floats, columns: NDArray[np.intp]) -> Floats:
        return np.asarray(np.abs(noise) ** power / -(scales[columns] if len(scales) > 1 else scales))

    return logarithms
