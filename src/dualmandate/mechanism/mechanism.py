"""The seam between computer science and economics: what a technology must say about itself.

A mechanism is a way to answer a workload. For a workload and a protection it states a `Production`: the noise it adds,
known exactly, and how much of that noise reaches each query. The frontier turns this into accuracy bought by loss.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.population import Currency


class Distribution(Protocol):
    """One draw of noise, known exactly; its mean is 0."""

    @property
    def discrete(self) -> bool:
        """Whether the noise is a whole number."""
        ...

    @property
    def variance(self) -> float:
        """E[X²]."""
        ...

    @property
    def mean_absolute(self) -> float:
        """E|X|."""
        ...

    def tail(self, distance: float) -> float:
        """P(|X| > distance)."""
        ...

    def half_width(self, probability: float) -> float:
        """The smallest t with P(|X| ≤ t) ≥ probability."""
        ...

    def log_likelihood(self, value: float) -> float:
        """Logarithm of the probability (discrete) or of the density at a value."""
        ...

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Draws for simulation and tests; never for publication."""
        ...


class NoiseLaw(Protocol):
    """A family of noise, indexed by the loss for one unit of sensitivity: ε/Δ₁, or ρ/Δ₂²."""

    @property
    def name(self) -> str:
        """The word for it in a program file."""
        ...

    @property
    def currency(self) -> Currency:
        """What its privacy loss is counted in."""
        ...

    @property
    def discrete(self) -> bool:
        """Whether the noise is a whole number, and so serves integer answers only."""
        ...

    def at(self, unit_loss: float) -> Distribution:
        """The noise at a loss for one unit of sensitivity."""
        ...

    def variance(self, unit_loss: float) -> float:
        """V, the variance of the noise."""
        ...

    def variance_slope(self, unit_loss: float) -> float:
        """V′ < 0."""
        ...

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ > 0."""
        ...
