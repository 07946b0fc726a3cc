"""Distributions by other means than the house's: sums in mpmath, term by term from the definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

import mpmath

DIGITS = 100

Weight = Callable[[int], Any]


def number(fraction: Fraction) -> Any:
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def laplace(scale: Fraction) -> Weight:
    """exp(−|k|/scale)."""
    return lambda k: mpmath.exp(-abs(k) / number(scale))


def gaussian(variance: Fraction) -> Weight:
    """exp(−k²/(2·variance))."""
    return lambda k: mpmath.exp(-k * k / (2 * number(variance)))


def staircase(rate: Fraction, step: int, high: int) -> Weight:
    """bʲ on the high part of stair j, bʲ⁺¹ on the low part."""

    def weight(k: int) -> Any:
        stair, place = divmod(abs(k), step)
        return mpmath.exp(-number(rate) * (stair if place < high else stair + 1))

    return weight


@dataclass(frozen=True)
class Distribution:
    """Probabilities of a weight on −reach, …, reach; what lies beyond is below 10⁻⁶⁰ by the choice of reach."""

    name: str
    weight: Weight
    reach: int

    def __str__(self) -> str:
        return self.name

    @cached_property
    def probabilities(self) -> list[Any]:
        with mpmath.workdps(DIGITS):
            weights = [self.weight(k) for k in range(-self.reach, self.reach + 1)]
            assert max(weights[0], weights[-1]) < mpmath.mpf(10) ** -65
            total = mpmath.fsum(weights)
            return [each / total for each in weights]

    @cached_property
    def sums(self) -> list[Any]:
        with mpmath.workdps(DIGITS):
            return list(accumulate(self.probabilities))

    def probability(self, k: int) -> Any:
        return self.probabilities[k + self.reach]

    def floor(self, k: int, bits: int) -> int:
        """⌊2^bits · P(X ≤ k)⌋."""
        with mpmath.workdps(DIGITS):
            return int(mpmath.floor(self.scaled(k, bits)))

    def scaled(self, k: int, bits: int) -> Any:
        """2^bits · P(X ≤ k)."""
        with mpmath.workdps(DIGITS):
            return mpmath.ldexp(self.sums[k + self.reach], bits)


@cache
def laplace_sums(scale: Fraction) -> Distribution:
    return Distribution("laplace", laplace(scale), int(scale * 160) + 160)


@cache
def gaussian_sums(variance: Fraction) -> Distribution:
    return Distribution("gaussian", gaussian(variance), int(18 * max(variance, Fraction(1)) ** Fraction(1, 2)) + 18)


@cache
def staircase_sums(rate: Fraction, step: int, high: int) -> Distribution:
    return Distribution("staircase", staircase(rate, step, high), step * (int(160 / rate) + 160))
