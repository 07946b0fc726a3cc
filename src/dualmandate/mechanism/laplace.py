"""Laplace noise: the paper's Theorem 1. Real-valued, serves any linear workload under pure ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualmandate.mechanism.mechanism import NoiseLaw, positive_loss
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats


@dataclass(frozen=True)
class Laplace:
    """Noise with density exp(−|x|/b)/(2b), b = `scale` > 0 in the unit of the answer."""

    scale: float
    discrete: ClassVar[bool] = False
    step: ClassVar[float] = 0.0

    @property
    def variance(self) -> float:
        """2b²."""
        return 2 * self.scale * self.scale

    @property
    def mean_absolute(self) -> float:
        """E|X| = b."""
        return self.scale

    def tail(self, distance: float) -> float:
        """P(|X| > t) = exp(−t/b)."""
        return math.exp(-distance / self.scale) if distance > 0 else 1.0

    def reach(self, tail: float) -> float:
        """The smallest t with P(|X| > t) ≤ tail: −b·ln(tail)."""
        return max(-self.scale * math.log(tail), 0.0)

    def log_likelihood(self, value: float) -> float:
        return -abs(value) / self.scale - math.log(2 * self.scale)

    def characteristic(self, frequencies: Floats) -> Floats:
        """E[exp(itX)] = 1/(1 + b²t²)."""
        return 1 / (1 + np.square(self.scale * frequencies))

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        return generator.laplace(0.0, self.scale, size)


@dataclass(frozen=True)
class LaplaceLaw(NoiseLaw):
    """Laplace noise with scale 1/u at unit loss u = ε/Δ₁: V = 2/u².

    Its log density falls by u for each unit, so a change of the answers by a vector s costs u·‖s‖₁, whole or not.
    Source: [AS19] Theorem 1; [LMHMR15] proposition 2.
    """

    name: ClassVar[str] = "laplace"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    needs_whole_numbers: ClassVar[bool] = False
    publishable: ClassVar[bool] = False

    def at(self, unit_loss: float) -> Laplace:
        return Laplace(1 / positive_loss(unit_loss))

    def variance_slope(self, unit_loss: float) -> float:
        """V′ = −4/u³."""
        scale = 1 / positive_loss(unit_loss)
        return -4 * scale * scale * scale

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ = 12/u⁴."""
        square = self.variance(unit_loss)
        return 3 * square * square

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """−1/u²."""
        return -self.variance(unit_loss) / 2


LAPLACE = LaplaceLaw()
