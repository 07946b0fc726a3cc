"""The noise that may be published: exact draws from laws with rational parameters.

A sampler is a description. Its draws are whole numbers modulo 2⁶⁴, a function of a key and of the cell's place: the sum
of a count and its noise, taken modulo 2⁶⁴ as 64-bit integers do, is what the exact sum is after forgetting multiples of
2⁶⁴, so that the promise holds without a remainder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.noise.broad import BroadNormal
from dualmandate.mechanism.noise.drawing import Integers, Level, draw_noise
from dualmandate.mechanism.noise.key import NoiseKey
from dualmandate.mechanism.noise.laws import GeometricDigit, Normal, StairPlace, TwoSided

LARGEST_SCALE = 2**40  # noise reaches 2⁶³ with a probability below exp(−2²²)
LARGEST_VARIANCE = 2**60  # a standard deviation of 2³⁰: 64 bits tell its values apart by far
LARGEST_TABLE_VARIANCE = 2**28  # 300,000 thresholds, one a value; beyond, curves pass through some of them
LARGEST_STEP = 2**16
FIRST_TABLE_SCALE = 64  # up to here one table holds every value that one word can mean; beyond, digits follow
DIGIT_BITS = 10
LARGEST_TERM_BITS = 1024  # of a numerator or denominator


class Sampler(Protocol):
    """A law of noise, ready to be drawn from."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """What each word of a draw decides; as many words a draw, ties aside."""
        ...

    def draw(self, key: NoiseKey, cells: range, *, out: Integers | None = None) -> Integers:
        """The noise of consecutive cells, modulo 2⁶⁴; shape (len(cells),). Written to `out` where given."""
        ...


@dataclass(frozen=True)
class LaplaceSampler:
    """Discrete Laplace noise: P(X = k) ∝ exp(−|k|/scale) on the whole numbers.

    A count that one unit changes by 1 is protected with ε = 1/scale. Source: [GRS12].
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _refuse_unless_exact("a scale", self.scale)
        _refuse_above("a scale", self.scale, largest=LARGEST_SCALE)

    @property
    def levels(self) -> tuple[Level, ...]:
        """One table; for scales above 64 a table and digits."""
        return tuple(_geometric_levels(1 / Fraction(self.scale), step=1, high=1))

    def draw(self, key: NoiseKey, cells: range, *, out: Integers | None = None) -> Integers:
        return draw_noise(self.levels, key, cells=cells, out=out)


@dataclass(frozen=True)
class GaussianSampler:
    """Discrete Gaussian noise: P(X = k) ∝ exp(−k²/(2·variance)) on the whole numbers.

    A count that one unit changes by 1 is protected with ρ = 1/(2·variance). `variance` is the parameter σ²; the noise
    itself varies slightly less. Source: [CKS20].
    """

    variance: Fraction

    def __post_init__(self) -> None:
        _refuse_unless_exact("a variance", self.variance)
        _refuse_above("a variance", self.variance, largest=LARGEST_VARIANCE)

    @property
    def levels(self) -> tuple[Level, ...]:
        """One table; for large variances of curves between thresholds."""
        variance = Fraction(self.variance)
        return (Level.alike(Normal(variance) if variance <= LARGEST_TABLE_VARIANCE else BroadNormal(variance)),)

    def draw(self, key: NoiseKey, cells: range, *, out: Integers | None = None) -> Integers:
        return draw_noise(self.levels, key, cells=cells, out=out)


@dataclass(frozen=True)
class StaircaseSampler:
    """Staircase noise on the whole numbers: P(X = k) ∝ bʲ if |k| − j·step < high, else bʲ⁺¹; j = ⌊|k|/step⌋.

    b = exp(−rate). An answer that one unit changes by `step` is protected with ε = rate. Counts on a grid of 1/step
    units have step = the number of grid points a unit. Source: [GV16], its discrete setting.
    """

    rate: Fraction
    step: int
    high: int  # 1 ≤ high ≤ step

    def __post_init__(self) -> None:
        _refuse_unless_exact("a rate", self.rate)
        _refuse_above("a number of steps to fall by e", 1 / Fraction(self.rate), largest=LARGEST_SCALE // LARGEST_STEP)
        if not 1 <= self.high <= self.step <= LARGEST_STEP:
            raise InvalidMechanism(
                f"a staircase of step {self.step} and high part {self.high}",
                why=f"the high part is at least 1 and within the step, and the step at most {LARGEST_STEP:,}",
                instead="state whole numbers with 1 ≤ high ≤ step",
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """The stair, as for Laplace noise, and the place within it."""
        return tuple(_geometric_levels(Fraction(self.rate), step=self.step, high=self.high))

    def draw(self, key: NoiseKey, cells: range, *, out: Integers | None = None) -> Integers:
        return draw_noise(self.levels, key, cells=cells, out=out)


def _geometric_levels(rate: Fraction, *, step: int, high: int) -> Iterator[Level]:
    """The side and the stair's leading part, its further digits, and the place within the stair.

    A value k ≥ 0 and a value −1 − k have the same digits; below zero the first place of each stair is gone (0 counts
    once), so that one more place is low.
    """
    folds = math.ceil(1 / (rate * FIRST_TABLE_SCALE) - 1).bit_length() if rate * FIRST_TABLE_SCALE < 1 else 0
    yield Level.alike(TwoSided(rate, fold=2**folds, step=step, high=high))
    while folds:
        width = (folds - 1) % DIGIT_BITS + 1  # the first digit takes what does not fill the others
        folds -= width
        yield Level.alike(GeometricDigit(rate * 2**folds, 2**width), 2**width)
    if step > 1:
        yield Level(StairPlace(rate, step, high), StairPlace(rate, step, high - 1), step)


def _refuse_unless_exact(what: str, number: Fraction) -> None:
    exact = isinstance(number, Fraction | int) and not isinstance(number, bool)
    if not exact or number <= 0 or max(Fraction(number).as_integer_ratio()).bit_length() > LARGEST_TERM_BITS:
        raise InvalidMechanism(
            f"{what} of {number!s:.40} for exact noise",
            why=f"exact noise is set by a positive fraction of whole numbers of up to {LARGEST_TERM_BITS:,} bits",
            instead="state a Fraction, rounded so that the loss is not above the one chosen",
        )


def _refuse_above(what: str, number: Fraction, *, largest: int) -> None:
    if number > largest:
        raise InvalidMechanism(
            f"{what} of about {number.numerator // number.denominator:,}",
            why=f"exact noise is drawn up to {largest:,}: beyond, tables or 64-bit numbers would not hold it",
            instead="choose a larger loss, or count in larger units",
        )
