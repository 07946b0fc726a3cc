"""Discrete Gaussian noise: whole numbers under zero-concentrated differential privacy (ρ).

Its constants are sums over the whole numbers, θ(u) = Σ exp(−u·n²). For u ≥ 1 a few terms are enough. For u < 1 Poisson
summation turns θ into √(π/u)·ψ(1/u), ψ(s) = 1 + 2·Σ exp(−π²n²s), where again a few terms are enough: every value below
is accurate to about 10⁻¹⁵, relative, for every u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from dualmandate.mechanism.geometric import Geometric
from dualmandate.mechanism.mechanism import LARGEST_SHIFT, ExactLaw, positive_loss
from dualmandate.mechanism.noise import GaussianSampler, Sampler
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats

LARGEST_VARIANCE = 2**32  # The privacy loss of broader noise is not worked out, value by value.


@dataclass(frozen=True)
class DiscreteGaussian:
    """Noise with P(X = k) ∝ exp(−`rate`·k²) on the whole numbers; rate = 1/(2σ²) > 0.

    σ² is the parameter, not the variance: for small σ² the variance is smaller, 2·exp(−rate).
    """

    rate: float
    discrete: ClassVar[bool] = True
    step: ClassVar[float] = 1.0

    @property
    def variance(self) -> float:
        """E[X²] = −d ln θ/d rate."""
        return square_cumulants(self.rate)[0]

    @property
    def mean_absolute(self) -> float:
        return absolute_moments(self.rate)[0]

    def tail(self, distance: float) -> float:
        """P(|X| > t), summed exactly."""
        if distance < 0:
            return 1.0
        return 2 * upper_sum(self.rate, math.floor(distance) + 1) * math.exp(-self._log_total)

    def reach(self, tail: float) -> float:
        """The smallest whole t with P(|X| > t) ≤ tail, by bisection around that of a normal law."""
        if self.tail(0) <= tail:
            return 0.0
        normal = -NormalDist().inv_cdf(tail / 2) / math.sqrt(2 * self.rate) if 0 < tail < 1 else 0.0
        high, width = max(round(normal), 1), 1
        low = high - 1
        while self.tail(high) > tail:
            low, high, width = high, high + width, 2 * width
        while low > 0 and self.tail(low) <= tail:
            low, high, width = max(low - width, 0), low, 2 * width
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(middle) > tail else (low, middle)
        return float(high)

    def log_likelihood(self, value: float) -> float:
        """Logarithm of the probability; −∞ off the whole numbers."""
        return -self.rate * value * value - self._log_total if value == round(value) else -math.inf

    def characteristic(self, frequencies: Floats) -> Floats:
        """E[exp(itX)] = θ(rate, t)/θ(rate, 0)."""
        return theta_ratio(self.rate, frequencies)

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Draws for simulation and tests, by rejection from geometric noise [CKS20]; never for publication."""
        count = math.prod(size) if isinstance(size, tuple) else size
        sigma = math.sqrt(1 / (2 * self.rate))
        width = math.floor(sigma) + 1
        proposal = Geometric(1 / width)
        kept: list[Floats] = []
        missing = count
        while missing > 0:
            candidate = proposal.draw(generator, 3 * missing + 16)
            excess = np.abs(candidate) - sigma**2 / width
            accepted = candidate[generator.random(candidate.shape) < np.exp(-self.rate * np.square(excess))]
            kept.append(accepted[:missing])
            missing -= len(kept[-1])
        return np.concatenate([*kept, np.empty(0)]).reshape(size)

    @cached_property
    def _log_total(self) -> float:
        return log_theta(self.rate)


@dataclass(frozen=True)
class GaussianLaw(ExactLaw):
    """Discrete Gaussian noise at unit loss u = ρ/Δ₂²: P(X = k) ∝ exp(−u·k²), that is σ² = 1/(2u).

    A change of whole-number answers by a vector s costs ρ = u·‖s‖₂². V, −V′ and V″ are the cumulants of X².
    Source: [CKS20], [BS16].
    """

    name: ClassVar[str] = "gaussian"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.ZCDP
    needs_whole_numbers: ClassVar[bool] = True
    publishable: ClassVar[bool] = True
    published_as: ClassVar[str] = "gaussian"

    def at(self, unit_loss: float) -> DiscreteGaussian:
        return DiscreteGaussian(positive_loss(unit_loss))

    def variance_slope(self, unit_loss: float) -> float:
        """V′ = −Var(X²)."""
        return -square_cumulants(positive_loss(unit_loss))[1]

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ = third cumulant of X²."""
        return square_cumulants(positive_loss(unit_loss))[2]

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """−Cov(|X|, X²) = −(E|X|³ − E|X|·V)."""
        first, third = absolute_moments(positive_loss(unit_loss))
        return first * self.variance(unit_loss) - third

    def parameter(self, unit_loss: Fraction) -> Fraction:
        """σ² = 1/(2u)."""
        return 1 / (2 * unit_loss)

    def unit_loss(self, parameter: Fraction) -> Fraction:
        """ρ = 1/(2σ²)."""
        return 1 / (2 * parameter)

    def sampler(self, parameter: Fraction) -> Sampler:
        return GaussianSampler(parameter)

    def loss_distribution(self, parameter: Fraction, shift: int, fineness: float) -> Any | None:
        if shift > LARGEST_SHIFT or parameter > LARGEST_VARIANCE:
            return None
        from dp_accounting.pld import privacy_loss_distribution as distributions

        sigma = math.nextafter(math.sqrt(parameter), 0.0)
        return distributions.from_discrete_gaussian_mechanism(
            sigma, sensitivity=shift, value_discretization_interval=fineness, use_connect_dots=True
        )


GAUSSIAN = GaussianLaw()


_TERMS = range(1, 11)  # the last one is below exp(−81) of the first, at u = 1 as at s = 1
_SMALL = 0.01  # below it, odd sums are taken by the Euler-Maclaurin formula, whose error is then below 10⁻²⁰
# Coefficients B₂ₖ/(2k·(k − 1)!) of the Euler-Maclaurin formula for Σ n·exp(−u·n²), k = 1, …, 8.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = tuple(number / (2 * k * math.factorial(k - 1)) for k, number in enumerate(_BERNOULLI, start=1))


def log_theta(u: float) -> float:
    """Logarithm of θ(u), the sum over all whole n of exp(−u·n²)."""
    if u >= 1:
        return math.log1p(2 * math.fsum(math.exp(-u * n * n) for n in _TERMS))
    dual = 2 * math.fsum(math.exp(-((math.pi * n) ** 2) / u) for n in _TERMS)
    return math.log(math.pi / u) / 2 + math.log1p(dual)


@lru_cache(maxsize=4096)
def square_cumulants(u: float) -> tuple[float, float, float]:
    """First three cumulants of n² under P(n) ∝ exp(−u·n²): V = −(ln θ)′, then −V′ and V″; all > 0."""
    if u >= 1:
        return _cumulants([n * n for n in _TERMS], u)
    s = 1 / u
    if u < _SMALL:
        # The corrections below are under exp(−π²/u) < 10⁻⁴⁰⁰.
        return s / 2, s * s / 2, s * s * s
    first, second, third = _cumulants([(math.pi * n) ** 2 for n in _TERMS], s)
    return (
        s / 2 - s**2 * first,
        s**2 / 2 - 2 * s**3 * first + s**4 * second,
        s**3 - 6 * s**4 * first + 6 * s**5 * second - s**6 * third,
    )


def absolute_moments(u: float) -> tuple[float, float]:
    """E|n| and E|n|³ under P(n) ∝ exp(−u·n²)."""
    if u >= _SMALL:
        n = np.arange(1, math.ceil(math.sqrt(50 / u)) + 2, dtype=np.float64)
        weights = np.exp(-u * n * n)
        first, third = float(np.sum(n * weights)), float(np.sum(n**3 * weights))
    else:
        first = 1 / (2 * u) - math.fsum(c * (-u) ** k for k, c in enumerate(_EULER))
        third = 1 / (2 * u * u) - math.fsum(k * c * (-u) ** (k - 1) for k, c in enumerate(_EULER) if k > 0)
    scale = 2 * math.exp(-log_theta(u))
    return scale * first, scale * third


def upper_sum(u: float, start: int) -> float:
    """The sum over n ≥ start of exp(−u·n²), start ≥ 1.

    Term by term while there are at most some ten thousand; then as an integral from start − ½ with the corrections
    of the midpoint rule (Euler-Maclaurin), accurate to 10⁻¹² while the sum is above 10⁻³⁰⁰.
    """
    if u * start * start > 745:
        return 0.0
    if u >= 1e-6:
        stop = math.ceil(math.sqrt(start * start + 45 / u))
        n = np.arange(start, stop + 1, dtype=np.float64)
        return float(np.sum(np.exp(-u * n * n)))
    edge = start - 0.5
    root = math.sqrt(u)
    x = root * edge
    # d^m/dx^m exp(−x²) = (−1)^m·H_m(x)·exp(−x²), H the Hermite polynomials; odd m below.
    hermite = [1.0, 2 * x]
    for m in range(1, 7):
        hermite.append(2 * x * hermite[m] - 2 * m * hermite[m - 1])
    coefficients = ((1, 1 / 24), (3, -7 / 5760), (5, 31 / 967680), (7, -127 / 154828800))
    corrections = -math.fsum(c * root**m * hermite[m] for m, c in coefficients) * math.exp(-x * x)
    return math.sqrt(math.pi / u) / 2 * math.erfc(x) + corrections


def theta_ratio(u: float, frequencies: Floats) -> Floats:
    """Σ exp(−u·n²)·cos(n·t) / θ(u): the characteristic function of discrete Gaussian noise; positive."""
    t = np.mod(frequencies + np.pi, 2 * np.pi) - np.pi
    total = math.exp(log_theta(u))
    if u >= 1:
        value = np.ones_like(t)
        for n in _TERMS:
            value += 2 * math.exp(-u * n * n) * np.cos(n * t)
        return value / total
    value = np.zeros_like(t)
    # Terms beyond these are below exp(−8π²/4u) of the first; beside broad noise all but it vanish from floats.
    most = 0 if np.pi**2 / (4 * u) >= 750 else 1 if u < 0.4 else 2
    for k in range(-most, most + 1):
        value += np.exp(-np.square(t + 2 * np.pi * k) / (4 * u))
    return value * (math.sqrt(math.pi / u) / total)


def _cumulants(squares: list[float] | list[int], weight: float) -> tuple[float, float, float]:
    """Cumulants of y under P(0) ∝ 1, P(y) ∝ 2·exp(−weight·y) for y in `squares`."""
    masses = [2 * math.exp(-weight * y) for y in squares]
    total = 1 + math.fsum(masses)
    first, second, third = (
        math.fsum(mass * float(y) ** power for mass, y in zip(masses, squares, strict=True)) / total
        for power in (1, 2, 3)
    )
    return first, second - first**2, third - 3 * second * first + 2 * first**3
