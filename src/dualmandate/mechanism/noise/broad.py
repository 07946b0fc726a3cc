"""Discrete Gaussian noise of large variance: the same law, its sums in closed form, and curves between thresholds.

Σ_{j ≤ k} exp(−j²/(2V)) is an integral, half of its last term and derivatives of that, by Euler's and Maclaurin's
formula, with a remainder that is bounded: for V ≥ 2²⁴ a few derivatives give hundreds of bits. So 2⁶⁴·P(X ≤ k) follows
a smooth curve, and a table needs it only at every B-th value: between, a polynomial tells the thresholds to some units
of the last bit. A word that comes nearer to one than that is a tie, and is resolved as ties are. Source: [Joh17], and
DLMF 2.10 and 18.14 for the two bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise.laws import GUARD_BITS, Floors, ball_of, floors_of, precision
from dualmandate.mechanism.noise.ties import first_not_below
from dualmandate.mechanism.noise.words import WORD_BITS, Words

if TYPE_CHECKING:
    from flint import arb

LEAST_BROAD_VARIANCE = 2**24
CURVES = 2**10  # a standard deviation, at least, up to twice as many
DEGREE = 5
MARGIN = 64.0  # units of 2⁻⁶⁴ by which a word must miss a threshold: four times what rounding and degree can amount to
GUIDE_BITS = 14
_LARGEST_STEP = 2.0**53  # units within one curve: whole numbers below are exact as floats
_CRAMER = 1.09  # |He_n(z)|·exp(−z²/4) ≤ 1.09·√n!


@dataclass(frozen=True)
class BroadNormal:
    """The discrete Gaussian law P(X = k) ∝ exp(−k²/(2·variance)) for a variance of 2²⁴ or more."""

    variance: Fraction
    least: ClassVar[int | None] = None
    most: ClassVar[int | None] = None

    def floors(self, values: range, bits: int) -> list[Floors]:
        """From the closed form, with its remainder."""
        with precision(bits + 2 * GUARD_BITS):
            smooth = _Smooth.of(self.variance, bits + GUARD_BITS)
            return [floors_of(smooth.at(value, 0)[0] + smooth.remainder, bits) for value in values]


@dataclass(frozen=True, eq=False)
class _Smooth:
    """H with |P(X ≤ k) − H(k)| within the remainder: Φ(k/σ) + (f/2 + Σ B_2m/(2m)!·f^(2m−1))/√(2πV), f = exp(−x²/(2V)).

    The remainder is at most |B_2p|/(2p)!·∫|f^(2p)|, and ∫|f^(2p)| ≤ √(2πV)·√(2p)!/V^p because Hermite's polynomials are
    orthogonal (Cauchy and Schwarz). Σ_k f(k) exceeds √(2πV) by less than a part in 2^(2²⁸) (Poisson).
    """

    variance: arb
    root: arb  # √(2V)
    area: arb  # √(2πV)
    whole: arb  # the same, and the little by which the sum exceeds it
    factors: tuple[arb, ...]  # B_2m/(2m)!, m = 1, …, p
    remainder: arb  # a ball around 0

    @classmethod
    def of(cls, variance: Fraction, bits: int) -> _Smooth:
        """With a remainder below 2^−bits, in the present precision."""
        from flint import arb, fmpq

        assert variance >= LEAST_BROAD_VARIANCE
        assert bits < 2**20
        v = ball_of(variance)
        count = 1
        while (left := _left_out(v, count)) >= arb(2) ** -bits:
            count += 1
        factors = tuple(arb(fmpq.bernoulli(2 * m)) / math.factorial(2 * m) for m in range(1, count + 1))
        little = arb(1).union(1 + arb(2) ** (-(2**21)))
        area = (2 * arb.pi() * v).sqrt()
        return cls(v, (2 * v).sqrt(), area, area * little, factors, (-left).union(left))

    def at(self, value: int, count: int) -> list[arb]:
        """H and its first derivatives at a whole number."""
        from flint import arb

        x = arb(value)
        slopes = [(-x * x / (2 * self.variance)).exp()]  # f, f′, …: f^(n) = −(x·f^(n−1) + (n − 1)·f^(n−2))/V
        before = arb(0)
        for n in range(1, 2 * len(self.factors) + count):
            slopes.append(-(x * slopes[-1] + (n - 1) * before) / self.variance)
            before = slopes[-2]
        ends = [slopes[n] / 2 + self._corrections(slopes[n + 1 :: 2]) for n in range(count + 1)]
        lead = [(-x / self.root).erfc() * self.area / 2, *slopes]
        return [(first + rest) / self.whole for first, rest in zip(lead, ends, strict=False)]

    def _corrections(self, slopes: list[arb]) -> arb:
        from flint import arb

        return sum((factor * slope for factor, slope in zip(self.factors, slopes, strict=False)), arb(0))


def _left_out(variance: arb, count: int) -> arb:
    """|B_2p|/(2p)!·√(2p)!/V^p, which bounds what is left out of P(X ≤ k) after p derivatives."""
    from flint import arb, fmpq

    return abs(arb(fmpq.bernoulli(2 * count))) / arb(math.factorial(2 * count)).sqrt() / variance**count


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """Thresholds of a law, `width` a piece: 2⁶⁴·P(X < first + width·j + s) is starts[j] + Σ a[j, n]·sⁿ ± MARGIN/4.

    A word w ≥ starts[j] means the value s of piece j between whose thresholds it lies, if it lies MARGIN within them.
    """

    first: int
    width: int
    starts: Words  # shape (pieces,), rising
    coefficients: NDArray[np.float64]  # shape (pieces, DEGREE + 1)
    guide: NDArray[np.int32]  # the piece of the smallest word whose first 14 bits are g; shape (2¹⁴ + 1,)

    def ties(self, words: Words) -> NDArray[np.intp]:
        """Places of the words that leave the value open."""
        from dualmandate.mechanism.noise.kernel import look_up_curves

        open_places = np.zeros(len(words), dtype=np.bool_)
        look_up_curves(words, self, out=np.empty(len(words), dtype=np.int64), is_open=open_places)
        return np.flatnonzero(open_places)


def curves_of(law: BroadNormal) -> ThresholdCurves:
    """The curves of a law: about a second."""
    width = 2 ** (math.isqrt(math.floor(law.variance)).bit_length() - 1) // CURVES
    first = (first_not_below(law, 1, bits=WORD_BITS) - 1) // width
    last = first_not_below(law, 2**WORD_BITS - 1, bits=WORD_BITS) // width
    starts, coefficients = [], []
    with precision(WORD_BITS + 2 * GUARD_BITS):
        smooth = _Smooth.of(law.variance, WORD_BITS + GUARD_BITS)
        for piece in range(first, last + 1):
            values = smooth.at(piece * width - 1, DEGREE)
            scaled = [value * (2**WORD_BITS) / math.factorial(n) for n, value in enumerate(values)]
            starts.append(max(0, min(int(scaled[0].mid().floor().unique_fmpz()), 2**WORD_BITS - 1)))
            scaled[0] -= starts[-1]
            assert all(value.rad() * width**n < 2.0**-40 for n, value in enumerate(scaled))
            coefficients.append([float(value.mid()) for value in scaled])
    rising: Words = np.array(starts, dtype=np.uint64)
    assert np.all(rising[1:] >= rising[:-1])
    assert float(np.diff(rising).max()) < _LARGEST_STEP
    assert _beyond_degree(law.variance, width) < 1.0
    words = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(WORD_BITS - GUIDE_BITS)
    places = np.searchsorted(rising, words, side="right").astype(np.int64) - 1
    guide = np.append(np.maximum(places, 0), len(rising) - 1).astype(np.int32)
    return ThresholdCurves(first * width, width, rising, np.array(coefficients), guide)


def _beyond_degree(variance: Fraction, width: int) -> float:
    """What Taylor's polynomial misses at most, in units of 2⁻⁶⁴: |f^(n)| ≤ 1.09·√n!/σⁿ, twice for the corrections."""
    sigma = math.sqrt(variance)
    slope = 2.0 * _CRAMER * math.sqrt(math.factorial(DEGREE)) / math.sqrt(2.0 * math.pi)
    return 2.0**WORD_BITS * slope * (width / sigma) ** (DEGREE + 1) / math.factorial(DEGREE + 1)
