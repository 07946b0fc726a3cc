"""Two-sided geometric noise (discrete Laplace): whole numbers under pure ε, never worse than Laplace on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dualmandate.mechanism.mechanism import LARGEST_SHIFT, ExactLaw, positive_loss
from dualmandate.mechanism.noise import LaplaceSampler, Sampler
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats

LEAST_RATE, ROUNDED_UP = 1e-15, 1e-12


@dataclass(frozen=True)
class Geometric:
    """Noise with P(X = k) = (1 − a)/(1 + a)·a^|k| on the whole numbers, a = exp(−`rate`), rate > 0 for each unit."""

    rate: float
    discrete: ClassVar[bool] = True
    step: ClassVar[float] = 1.0

    @property
    def variance(self) -> float:
        """2a/(1 − a)² = 1/(2·sinh²(rate/2))."""
        a, w = _decay(self.rate)
        return 2 * a * w * w

    @property
    def mean_absolute(self) -> float:
        """E|X| = 2a/(1 − a²) = 1/sinh(rate)."""
        a, w = _decay(self.rate)
        return 2 * a * w / (1 + a)

    def tail(self, distance: float) -> float:
        """P(|X| > t) = 2a^(⌊t⌋ + 1)/(1 + a)."""
        if distance < 0:
            return 1.0
        return 2 * math.exp(-self.rate * (math.floor(distance) + 1)) / (1 + math.exp(-self.rate))

    def reach(self, tail: float) -> float:
        guess = (math.log(2 / tail) - math.log1p(math.exp(-self.rate))) / self.rate - 1
        if self.rate < LEAST_RATE:  # single steps move no float
            return float(math.ceil(guess * (1 + ROUNDED_UP)))
        distance = max(math.ceil(guess), 0)
        # The logarithm may round across a whole number, never across two.
        while distance > 0 and self.tail(distance - 1) <= tail:
            distance -= 1
        while self.tail(distance) > tail:
            distance += 1
        return float(distance)

    def log_likelihood(self, value: float) -> float:
        """Logarithm of the probability; −∞ off the whole numbers."""
        if value != round(value):
            return -math.inf
        decay = math.exp(-self.rate)
        return math.log(-math.expm1(-self.rate)) - math.log1p(decay) - self.rate * abs(value)

    def characteristic(self, frequencies: Floats) -> Floats:
        """E[exp(itX)] = 1/(1 + 2V·sin²(t/2)), V the variance."""
        return 1 / (1 + 2 * self.variance * np.square(np.sin(frequencies / 2)))

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Draws for simulation and tests, as a difference of two geometric draws; never for publication."""
        failures = [np.floor(generator.standard_exponential(size) / self.rate) for _ in range(2)]
        return failures[0] - failures[1]


@dataclass(frozen=True)
class GeometricLaw(ExactLaw):
    """Two-sided geometric noise at unit loss u = ε/Δ₁: P(X = k) ∝ exp(−u|k|).

    A change of whole-number answers by a vector s costs u·‖s‖₁. V = 1/(2·sinh²(u/2)), written in a = exp(−u) with
    positive terms only, so that nothing cancels near u = 0 and nothing overflows for large u.
    Source: [GRS12]; the paper's footnote to Theorem 1.
    """

    name: ClassVar[str] = "geometric"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    needs_whole_numbers: ClassVar[bool] = True
    publishable: ClassVar[bool] = True
    published_as: ClassVar[str] = "laplace"  # the discrete Laplace law, as releases name it

    def at(self, unit_loss: float) -> Geometric:
        return Geometric(positive_loss(unit_loss))

    def variance_slope(self, unit_loss: float) -> float:
        """V′ = −2a(1 + a)/(1 − a)³."""
        a, w = _decay(unit_loss)
        return -2 * a * (1 + a) * w * w * w

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ = 2a(1 + 4a + a²)/(1 − a)⁴."""
        a, w = _decay(unit_loss)
        return 2 * a * (1 + 4 * a + a * a) * w * w * w * w

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """−2a(1 + a²)/(1 − a²)²."""
        a, w = _decay(unit_loss)
        return -2 * a * (1 + a * a) * w * w / (1 + a) ** 2

    def parameter(self, unit_loss: Fraction) -> Fraction:
        """The scale 1/u."""
        return 1 / unit_loss

    def unit_loss(self, parameter: Fraction) -> Fraction:
        """ε = 1/scale."""
        return 1 / parameter

    def sampler(self, parameter: Fraction) -> Sampler:
        return LaplaceSampler(parameter)

    def loss_distribution(self, parameter: Fraction, shift: int, fineness: float) -> Any | None:
        if shift > LARGEST_SHIFT:
            return None
        from dp_accounting.pld import privacy_loss_distribution as distributions

        rate = math.nextafter(1 / parameter, math.inf)
        return distributions.from_discrete_laplace_mechanism(
            rate, sensitivity=shift, value_discretization_interval=fineness, use_connect_dots=True
        )


def _decay(unit_loss: float) -> tuple[float, float]:
    """The values a = exp(−u) and w = 1/(1 − a), the second without cancellation."""
    return math.exp(-positive_loss(unit_loss)), -1 / math.expm1(-unit_loss)


GEOMETRIC = GeometricLaw()
