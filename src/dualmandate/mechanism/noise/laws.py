"""How noise is distributed, as certified numbers: for each value k, whole numbers around 2^bits · P(X ≤ k).

Everything transcendental is computed in balls (python-flint's arb): a midpoint and a radius that surely hold the true
number. Where a ball does not decide between two whole numbers, both are given. Source: [Joh17].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from flint import arb

GUARD_BITS = 64  # beyond those asked for; a ball then holds a whole number with a probability of about 2⁻⁶⁰
_ONE_AT_A_TIME = RLock()


Floors = tuple[int, int]


class Law(Protocol):
    """A distribution on whole numbers from `least` to `most`; None where there is no end."""

    @property
    def least(self) -> int | None:
        """The smallest value."""
        ...

    @property
    def most(self) -> int | None:
        """The largest value."""
        ...

    def floors(self, values: range, bits: int) -> list[Floors]:
        """For each value whole numbers l ≤ ⌊2^bits · P(X ≤ value)⌋ ≤ u, surely; least ≤ value ≤ most."""
        ...

    def __hash__(self) -> int:
        """Equal laws share their table."""
        ...


@dataclass(frozen=True)
class TwoSided:
    """Which stair, and on which side: P(X ≥ q) = (1 − s)·c^q and P(X ≤ −1 − q) = s·c^q for q ≥ 0.

    c = exp(−fold·rate), and s is the share of the values below zero in a staircase with b = exp(−rate):
    s = B/(A + B), A = high + b·(step − high), B = (high − 1) + b·(step − high + 1). For step = high = 1 and fold = 1
    this is the two-sided geometric law, s = b/(1 + b).
    """

    rate: Fraction
    fold: int = 1
    step: int = 1
    high: int = 1
    least: ClassVar[int | None] = None
    most: ClassVar[int | None] = None

    def floors(self, values: range, bits: int) -> list[Floors]:
        """By the closed form on each side."""
        rate = self.rate * self.fold
        with precision(bits + GUARD_BITS):
            decay, low = _exp(-self.rate), self.step - self.high
            right, left = self.high + decay * low, self.high - 1 + decay * (low + 1)
            right, left = right / (left + right), left / (left + right)
            return [
                floors_of(left * _exp(rate * (value + 1)) if value < 0 else 1 - right * _exp(-rate * (value + 1)), bits)
                for value in values
            ]


@dataclass(frozen=True)
class GeometricDigit:
    """One digit of a geometric number: P(X = i) ∝ exp(−rate·i), i = 0, …, size − 1.

    The digits of a geometric number are independent: exp(−rate·(size·j + i)) is a product.
    """

    rate: Fraction
    size: int
    least: ClassVar[int | None] = 0

    @property
    def most(self) -> int | None:
        """The last digit."""
        return self.size - 1

    def floors(self, values: range, bits: int) -> list[Floors]:
        """P(X ≤ i) = (1 − exp(−rate·(i + 1)))/(1 − exp(−rate·size))."""
        with precision(bits + GUARD_BITS):
            whole = ball_of(-self.rate * self.size).expm1()
            return [
                floors_of(ball_of(-self.rate * (value + 1)).expm1() / whole, bits)
                if value < self.size - 1
                else _all(bits)
                for value in values
            ]


@dataclass(frozen=True)
class StairPlace:
    """The place within a stair: P(X = i) ∝ 1 for i < high, exp(−rate) for high ≤ i < step."""

    rate: Fraction
    step: int
    high: int
    least: ClassVar[int | None] = 0

    @property
    def most(self) -> int | None:
        """The last place."""
        return self.step - 1

    def floors(self, values: range, bits: int) -> list[Floors]:
        """A sum of ones and of exp(−rate); exact where all places are alike."""
        if self.high in (0, self.step):
            return [(2**bits * (value + 1) // self.step,) * 2 for value in values]
        with precision(bits + GUARD_BITS):
            decay = _exp(-self.rate)
            whole = self.high + decay * (self.step - self.high)
            parts = (min(value + 1, self.high) + decay * max(value + 1 - self.high, 0) for value in values)
            return [
                floors_of(part / whole, bits) if value < self.step - 1 else _all(bits)
                for value, part in zip(values, parts, strict=True)
            ]


@dataclass(frozen=True)
class Normal:
    """The discrete Gaussian law: P(X = k) ∝ exp(−k²/(2·variance)). Source: [CKS20]."""

    variance: Fraction
    least: ClassVar[int | None] = None
    most: ClassVar[int | None] = None

    def floors(self, values: range, bits: int) -> list[Floors]:
        """P(X ≤ −k) = P(X ≥ k), and P(X ≤ k) = 1 − P(X ≥ k + 1), from the sum of the upper tail."""
        tails = _normal_tails(self.variance, bits)
        last = len(tails) - 1  # beyond, a tail lies between 0 and the last one, as that one's ball does
        with precision(bits + GUARD_BITS):
            return [
                floors_of(tails[min(-value, last)] if value < 0 else 1 - tails[min(value + 1, last)], bits)
                for value in values
            ]


@lru_cache(maxsize=1)  # a table asks for all of its values at once, and a tie for some forty in turn
def _normal_tails(variance: Fraction, bits: int) -> tuple[arb, ...]:
    """Balls of P(X ≥ k) for k = 0, …, N + 1, with w_k = exp(−k²/(2·variance)) beyond N below 2^−(bits + guard).

    Σ_{k > N} w_k ≤ w_{N+1}/(1 − w_{N+2}/w_{N+1}), because the ratios of neighbors fall.
    """
    from flint import arb

    last = math.isqrt(math.ceil(2 * variance * (bits + GUARD_BITS) * Fraction(7, 10))) + 1  # ln 2 < 7/10
    with precision(bits + 2 * GUARD_BITS + 2 * last.bit_length()):
        ratio, change = _exp(-1 / (2 * variance)), _exp(-1 / variance)
        weights = [arb(1)]
        for _ in range(last + 1):
            weights.append(weights[-1] * ratio)
            ratio = ratio * change
        sums = [arb(0).union(weights[last + 1] / (1 - ratio))]
        for weight in weights[last::-1]:
            sums.append(sums[-1] + weight)
        total = sums[-1] + sums[-2]  # Σ_{k ≥ 0} + Σ_{k ≥ 1}
        return tuple(each / total for each in reversed(sums))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """So many bits in this thread, while others wait: the library has one precision for all of them."""
    from flint import ctx

    with _ONE_AT_A_TIME, ctx.workprec(bits):
        yield


def ball_of(number: Fraction) -> arb:
    """A ball that holds the number, in the present precision."""
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))


def _exp(number: Fraction) -> arb:
    return ball_of(number).exp()


def _all(bits: int) -> Floors:
    return 2**bits, 2**bits


def floors_of(ball: arb, bits: int) -> Floors:
    """The floors of the two ends of 2^bits · ball, within 0 and 2^bits, as a probability is."""
    scaled = ball * 2**bits
    ends = (int(end.floor().unique_fmpz()) for end in (scaled.lower(), scaled.upper()))
    lower, upper = (min(max(end, 0), 2**bits) for end in ends)
    return lower, upper
