"""Rows of floating-point numbers as whole numbers times weights over powers of two, where they are that already."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.workload.factor import Integers

WEIGHT_BITS = 20  # of the weight of a row that keeps its entries
LARGEST_DENOMINATOR = 4_096  # of ratios between entries that are kept as they are
DIGITS = 6  # behind the point of numbers that are rounded next: equal ones stay equal on every machine
_ROUNDING = 1e-11  # relative, by which a ratio may miss a fraction
_NOTHING = 1e-9  # of the largest entry of a row: what is below is zero


@dataclass(frozen=True, eq=False)
class Kept:
    """A row that keeps its entries: whole numbers without a common divisor, times a weight."""

    numbers: Integers
    weight: Fraction


def kept_row(row: Floats) -> Kept | None:
    """A row as a weight times small whole numbers; None if its entries are not in such ratios."""
    sizes = np.abs(row)
    row = np.where(sizes > _NOTHING * float(sizes.max()), row, 0.0)
    smallest = float(np.abs(row[row != 0]).min())
    denominator = 1
    for ratio in np.unique(np.round(np.abs(row[row != 0]) / smallest, 12)).tolist():
        nearest = Fraction(ratio).limit_denominator(LARGEST_DENOMINATOR)
        denominator = math.lcm(denominator, nearest.denominator)
        if abs(ratio - float(nearest)) > _ROUNDING * ratio or denominator > LARGEST_DENOMINATOR:
            return None
    numbers = np.rint(row / smallest * denominator).astype(np.int64)
    divisor = int(np.gcd.reduce(numbers))
    return Kept(numbers // divisor, rounded_down(smallest / denominator * divisor))


def rounded_down(size: float) -> Fraction:
    """A number > 0 rounded down to 20 bits."""
    mantissa, exponent = math.frexp(size)
    return math.floor(round(mantissa * 2.0**WEIGHT_BITS, DIGITS)) * power_of_two(exponent - WEIGHT_BITS)


def power_of_two(exponent: int) -> Fraction:
    """2^exponent, which may be negative."""
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def without_divisors(rows: Integers, weights: Sequence[Fraction]) -> tuple[Integers, tuple[Fraction, ...]]:
    """Rows divided by their common divisors, which go into their weights; empty rows are left out."""
    divisors = np.gcd.reduce(rows, axis=1)
    kept = np.flatnonzero(divisors)
    divided = rows[kept] // divisors[kept, None]
    return divided, tuple(weights[row] * int(divisors[row]) for row in kept.tolist())
