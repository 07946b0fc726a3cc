"""Discrete Gaussian noise: whole numbers under zero-concentrated differential privacy (ρ)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism import theta
from dualmandate.mechanism.geometric import Geometric
from dualmandate.mechanism.mechanism import LARGEST_SHIFT, positive_loss
from dualmandate.mechanism.noise import GaussianSampler, Sampler
from dualmandate.population import PrivacyMeasure

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
        return GAUSSIAN.variance(self.rate)

    @property
    def mean_absolute(self) -> float:
        return GAUSSIAN.mean_absolute(self.rate)

    def tail(self, distance: float) -> float:
        """P(|X| > t), summed exactly."""
        if distance < 0:
            return 1.0
        return 2 * theta.upper_sum(self.rate, math.floor(distance) + 1) * math.exp(-self._log_total)

    def reach(self, tail: float) -> float:
        """The smallest whole t with P(|X| > t) ≤ tail, by bisection."""
        if self.tail(0) <= tail:
            return 0.0
        low, high = 0, 1
        while self.tail(high) > tail:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(middle) > tail else (low, middle)
        return float(high)

    def log_likelihood(self, value: float) -> float:
        """Logarithm of the probability; −∞ off the whole numbers."""
        return -self.rate * value * value - self._log_total if value == round(value) else -math.inf

    def characteristic(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[exp(itX)] = θ(rate, t)/θ(rate, 0)."""
        return theta.theta_ratio(self.rate, frequencies)

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draws for simulation and tests, by rejection from geometric noise [CKS20]; never for publication."""
        count = math.prod(size) if isinstance(size, tuple) else size
        sigma = math.sqrt(1 / (2 * self.rate))
        width = math.floor(sigma) + 1
        proposal = Geometric(1 / width)
        kept: list[NDArray[np.float64]] = []
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
        return theta.log_theta(self.rate)


@dataclass(frozen=True)
class GaussianLaw:
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

    def variance(self, unit_loss: float) -> float:
        """V = E[X²]."""
        return theta.square_cumulants(positive_loss(unit_loss))[0]

    def variance_slope(self, unit_loss: float) -> float:
        """V′ = −Var(X²)."""
        return -theta.square_cumulants(positive_loss(unit_loss))[1]

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ = third cumulant of X²."""
        return theta.square_cumulants(positive_loss(unit_loss))[2]

    def mean_absolute(self, unit_loss: float) -> float:
        return theta.absolute_moments(positive_loss(unit_loss))[0]

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """−Cov(|X|, X²) = −(E|X|³ − E|X|·V)."""
        first, third = theta.absolute_moments(positive_loss(unit_loss))
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

        return distributions.from_discrete_gaussian_mechanism(
            math.nextafter(math.sqrt(parameter), 0.0),
            sensitivity=shift,
            value_discretization_interval=fineness,
            use_connect_dots=True,
        )


GAUSSIAN = GaussianLaw()
