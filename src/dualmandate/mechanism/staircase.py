"""Staircase noise: real-valued, constant on steps; the least squared error of all noise for one answer under pure ε.

For answers that change by whole numbers a step of 1 is enough. Against Laplace it wins where epsilon is large: its
variance falls like exp(−2ε/3), Laplace's like 1/ε².
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dualmandate.mechanism.mechanism import NoiseLaw, positive_loss
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats


@dataclass(frozen=True)
class Staircase:
    """Noise whose density is h·bᵏ on [k, k + γ) and h·bᵏ⁺¹ on [k + γ, k + 1), symmetric; b = exp(−`rate`).

    γ is the share of each step that stands high, chosen for least variance; h = (1 − b)/(2c), c = γ + b(1 − γ).
    """

    rate: float
    discrete: ClassVar[bool] = False
    step: ClassVar[float] = 0.0

    @cached_property
    def _shape(self) -> _Shape:
        return _Shape.of(self.rate)

    @property
    def high_share(self) -> float:
        """γ in (0, ½)."""
        return self._shape.high

    @property
    def variance(self) -> float:
        """V = (p + b)·w², p = (b(1 + b)/2)^⅔, w = 1/(1 − b)."""
        power, b, w = _powers(self.rate)
        return (power + b) * w * w

    @property
    def mean_absolute(self) -> float:
        """E|X| = b/(1 − b) + (γ² + b(1 − γ²))/(2c)."""
        shape = self._shape
        moment = shape.high_over_root * shape.high + shape.root**2 * (1 - shape.high**2)
        return shape.decay / shape.rest + moment / (2 * shape.mass_over_root)

    def tail(self, distance: float) -> float:
        """P(|X| > k + s) = bᵏ·(b + (1 − b)·([γ − s]₊ + b(1 − max(s, γ)))/c), 0 ≤ s < 1."""
        if distance < 0:
            return 1.0
        shape = self._shape
        whole = math.floor(distance)
        part = distance - whole
        left = max(shape.high - part, 0.0) + shape.decay * (1 - max(part, shape.high))
        return math.exp(-self.rate * whole) * (shape.decay + shape.rest * left / shape.mass)

    def reach(self, tail: float) -> float:
        """The smallest t with P(|X| > t) ≤ tail: the tail is linear within each piece."""
        if tail >= 1:
            return 0.0
        shape = self._shape
        whole = math.floor(-math.log(tail) / self.rate)
        ratio = min(max(tail * math.exp(self.rate * whole), shape.decay), 1.0)
        low_piece = shape.rest * shape.decay / shape.mass
        if ratio >= shape.decay + low_piece * (1 - shape.high):
            return whole + shape.mass * (1 - ratio) / shape.rest
        return whole + 1 - (ratio - shape.decay) / low_piece

    def log_likelihood(self, value: float) -> float:
        shape = self._shape
        whole = math.floor(abs(value))
        steps = whole if abs(value) - whole < shape.high else whole + 1
        return math.log(shape.rest / (2 * shape.mass)) - self.rate * steps

    def characteristic(self, frequencies: Floats) -> Floats:
        """E[exp(itX)]: a mixture of uniform noise on (−k − γ, k + γ), summed in closed form."""
        shape = self._shape
        t = np.where(frequencies == 0, 1.0, frequencies)
        wave = np.sin(shape.high * t) + shape.decay * np.sin((1 - shape.high) * t)
        ring = shape.rest**2 + 4 * shape.decay * np.square(np.sin(t / 2))
        value: Floats = np.where(frequencies == 0, 1.0, shape.rest**2 * wave / (shape.mass * t * ring))
        return value

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        shape = self._shape
        whole = np.floor(generator.standard_exponential(size) / self.rate)
        is_high = generator.random(size) < shape.high / shape.mass
        place = generator.random(size)
        part = np.where(is_high, shape.high * place, shape.high + (1 - shape.high) * place)
        return np.asarray((whole + part) * generator.choice(np.array([-1.0, 1.0]), size), dtype=np.float64)


@dataclass(frozen=True)
class _Shape:
    """The numbers behind a staircase at rate u: b, 1 − b, γ, c, and the rate at which γ falls.

    With r = exp(−u/3), so b = r³, everything that vanishes for large u is kept relative to r: no 0/0 at any u.
    γ = (A − b)/(1 − b), A³ = b(1 + b)/2, written as b(1 + 2b)/(2(A² + Ab + b²)), which does not cancel at b = 1.
    """

    root: float  # r
    decay: float  # b
    rest: float  # 1 − b
    high: float  # γ
    high_over_root: float  # γ/r
    fall_over_root: float  # −(dγ/du)/r > 0

    @classmethod
    def of(cls, unit_loss: float) -> _Shape:
        r, b, rest = math.exp(-unit_loss / 3), math.exp(-unit_loss), -math.expm1(-unit_loss)
        alpha = math.cbrt((1 + b) / 2)  # A = α·r
        cubic = alpha**2 + alpha * r**2 + r**4
        ratio = (1 + 2 * b) / (2 * cubic)
        growth = alpha * (1 + 2 * b) / (3 * (1 + b))
        cubic_growth = 2 * alpha * growth + growth * r**2 + alpha * r**2 + 2 * r**4
        fall = ratio * (1 + 2 * b / (1 + 2 * b) - cubic_growth / cubic)
        return cls(r, b, rest, ratio * r, ratio, fall)

    @property
    def mass(self) -> float:
        """c = γ + b(1 − γ)."""
        # Beyond u ≈ 2,100 the high part is narrower than the smallest float.
        return max(self.root * self.mass_over_root, sys.float_info.min)

    @property
    def mass_over_root(self) -> float:
        return self.high_over_root + self.root**2 * (1 - self.high)


@dataclass(frozen=True)
class StaircaseLaw(NoiseLaw):
    """Staircase noise with unit steps at unit loss u = ε/Δ₁, γ optimal for squared error.

    V = ((b(1 + b)/2)^⅔ + b)/(1 − b)², b = exp(−u). A change by a vector s of *whole* numbers costs u·‖s‖₁; a change
    by half a step can cost as much as a whole one, which is why it needs whole numbers although it is real-valued.
    Source: [GV16].
    """

    name: ClassVar[str] = "staircase"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    needs_whole_numbers: ClassVar[bool] = True
    publishable: ClassVar[bool] = False

    def at(self, unit_loss: float) -> Staircase:
        return Staircase(positive_loss(unit_loss))

    def variance_slope(self, unit_loss: float) -> float:
        """V′, by d/du = −b·d/db: a sum of terms of one sign."""
        power, b, w = _powers(unit_loss)
        rate = 2 * (1 + 2 * b) / (3 * (1 + b))
        return -(power * rate + b + (power + b) * 2 * b * w) * w * w

    def variance_curvature(self, unit_loss: float) -> float:
        """V″, likewise."""
        power, b, w = _powers(unit_loss)
        rate = 2 * (1 + 2 * b) / (3 * (1 + b))
        second = power * (rate**2 + 2 * b / (3 * (1 + b) ** 2)) + b
        return (second + 4 * (power * rate + b) * b * w + (power + b) * 2 * b * (1 + 2 * b) * w * w) * w * w

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """Derivative of E|X|, through b and γ."""
        shape = _Shape.of(positive_loss(unit_loss))
        g, r, b, rest = shape.high, shape.root, shape.decay, shape.rest
        moment = shape.high_over_root * g + r**2 * (1 - g**2)
        moment_fall = 2 * g * shape.fall_over_root * rest + r**2 * (1 - g**2)
        mass_fall = shape.fall_over_root * rest + r**2 * (1 - g)
        return -b / rest / rest - (moment_fall - moment * mass_fall / shape.mass_over_root) / (2 * shape.mass_over_root)


def _powers(unit_loss: float) -> tuple[float, float, float]:
    """The values (b(1 + b)/2)^⅔, b = exp(−u) and w = 1/(1 − b)."""
    b = math.exp(-positive_loss(unit_loss))
    return math.exp(-2 * unit_loss / 3) * math.cbrt((1 + b) / 2) ** 2, b, -1 / math.expm1(-unit_loss)


STAIRCASE = StaircaseLaw()
