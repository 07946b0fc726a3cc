"""Noise for answers that are whole numbers times a weight: measured whole, then rescaled.

A table with weight w holds answers on the lattice w·ℤ. It is measured as the whole-number table at unit loss u·w
(u·w² under ρ) and the result is multiplied by w. One unit that moves the table by w·s then costs u·w·‖s‖₁ =
u·‖w·s‖₁ (or u·‖w·s‖₂²): exactly its share of the *weighted* workload's sensitivity, so the whole release loses
u·Δ, as with continuous noise. The coarser the lattice, the less noise is needed. As the lattice gets finer, geometric
noise tends to Laplace noise of the same rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.mechanism import Distribution, NoiseLaw, positive_loss
from dualmandate.population import PrivacyMeasure


@dataclass(frozen=True)
class Stretched:
    """Noise times a positive factor."""

    noise: Distribution
    factor: float

    @property
    def discrete(self) -> bool:
        return self.noise.discrete

    @property
    def step(self) -> float:
        return self.noise.step * self.factor

    @property
    def variance(self) -> float:
        """Grows with the square of the factor."""
        return self.noise.variance * self.factor * self.factor

    @property
    def mean_absolute(self) -> float:
        """Grows with the factor."""
        return self.noise.mean_absolute * self.factor

    def tail(self, distance: float) -> float:
        return self.noise.tail(self._steps(distance))

    def reach(self, tail: float) -> float:
        return self.noise.reach(tail) * self.factor

    def log_likelihood(self, value: float) -> float:
        found = self.noise.log_likelihood(self._steps(value))
        return found if self.discrete else found - math.log(self.factor)

    def characteristic(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of the noise at stretched frequencies."""
        return self.noise.characteristic(frequencies * self.factor)

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return self.noise.draw(generator, size) * self.factor

    def _steps(self, value: float) -> float:
        """A value in units of the factor; lattice points must not miss their whole number by a rounding error."""
        steps = value / self.factor
        nearest = round(steps)
        is_near = math.isclose(steps, nearest, rel_tol=1e-12, abs_tol=1e-9)
        return float(nearest) if self.discrete and is_near else steps


@dataclass(frozen=True)
class LatticeLaw:
    """A law of whole-number noise, used on the lattice step·ℤ: V_step(u) = step²·V(u·stepᵖ), p = 1 for ε, 2 for ρ."""

    law: NoiseLaw
    step: Fraction  # > 0

    @property
    def name(self) -> str:
        """The word for the family."""
        return self.law.name

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.law.privacy_measure

    @property
    def needs_whole_numbers(self) -> bool:
        """Whether its promise holds only for changes by whole steps."""
        return self.law.needs_whole_numbers

    @property
    def publishable(self) -> bool:
        return self.law.publishable

    def at(self, unit_loss: float) -> Stretched:
        """The noise at a loss for one unit of sensitivity, in the unit of the weighted answer."""
        return Stretched(self.law.at(self._inner(unit_loss)), float(self.step))

    def variance(self, unit_loss: float) -> float:
        return float(self.step) ** 2 * self.law.variance(self._inner(unit_loss))

    def variance_slope(self, unit_loss: float) -> float:
        return float(self.step) ** (2 + self._power) * self.law.variance_slope(self._inner(unit_loss))

    def variance_curvature(self, unit_loss: float) -> float:
        return float(self.step) ** (2 + 2 * self._power) * self.law.variance_curvature(self._inner(unit_loss))

    def mean_absolute(self, unit_loss: float) -> float:
        return float(self.step) * self.law.mean_absolute(self._inner(unit_loss))

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """Derivative of E|X|; < 0."""
        return float(self.step) ** (1 + self._power) * self.law.mean_absolute_slope(self._inner(unit_loss))

    @property
    def _power(self) -> int:
        return loss_power(self.privacy_measure)

    def _inner(self, unit_loss: float) -> float:
        return positive_loss(unit_loss) * float(self.step) ** self._power


def on_lattice(law: NoiseLaw, step: Fraction) -> NoiseLaw:
    """The law for answers that are multiples of a step; a law that serves any answer stays as it is."""
    return law if step == 1 or not law.needs_whole_numbers else LatticeLaw(law, step)


def loss_power(privacy_measure: PrivacyMeasure) -> int:
    """How a loss grows when answers are stretched: ε like the stretch, ρ like its square."""
    return 2 if privacy_measure is PrivacyMeasure.ZCDP else 1
