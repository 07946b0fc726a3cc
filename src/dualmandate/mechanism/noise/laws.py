"""How noise is distributed, as certified numbers, and as a table: which value each 64-bit word means.

For each value k, whole numbers around 2^bits · P(X ≤ k) are computed in balls (python-flint's arb): a midpoint and a
radius that surely hold the true number. Where a ball does not decide between two whole numbers, both are given. A word
that lies between them leaves the value open, a tie, and is resolved with as many words as it takes. Source: [Joh17].

A draw is what the thresholds themselves say, however near to them bounds are: vaguer bounds make more ties, and no
other draw. So the table of a law holds bounds from sums and products of floats, each of which IEEE 754 rounds by at
most 2⁻⁵³ of itself, in a fraction of a millisecond; balls are asked about the few words that lie between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise.words import WORD_BITS, Words
from dualmandate.population.arrays import Floats, Indices, Integers

if TYPE_CHECKING:
    from flint import arb

GUARD_BITS = 64  # beyond those asked for; a ball then holds a whole number with a probability of about 2⁻⁶⁰
LEAST_BROAD_VARIANCE = 2**22
CURVES = 2**6  # a standard deviation
REACH = 37 * CURVES // 4  # curves on either side; beyond is less than 2⁻⁶⁴
DEGREE = 9
MARGIN = 2.0**15  # units of 2⁻⁶⁴ by which a word must miss a threshold: three times what all errors can amount to
OVERLAP = 1.0 / 16.0  # of a piece, by which the thresholds around a word may lie beside its own
GUIDE_BITS = 14
LARGEST_WORD = 2**WORD_BITS - 1
HALF_UNIT = 2.0**-53  # what one operation on floats is off by at most, of its result
SAFETY = 2.0  # times what errors add up to, for the errors of computing it
EXTRA_BITS = 8  # weights below 2^−(64 + 8) are left out of a table, and their sum is an error of it
NIBBLE = 4  # bits of a whole number that are looked up at once
_CRAMER = 1.09  # |He_n(z)|·exp(−z²/4) ≤ 1.09·√n!
_ONE_AT_A_TIME = RLock()

Floors = tuple[int, int]


class Law(Protocol):
    """A distribution on whole numbers from `least` to `most`; None where there is no end."""

    @property
    def least(self) -> int | None:
        """The smallest value."""

    @property
    def most(self) -> int | None:
        """The largest value."""

    def floors(self, values: range, bits: int) -> list[Floors]:
        """For each value whole numbers l ≤ ⌊2^bits · P(X ≤ value)⌋ ≤ u, surely; least ≤ value ≤ most."""

    def __hash__(self) -> int:
        """Equal laws share their table."""


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


def resolve(law: Law, words: Iterable[int], *, word_bits: int = WORD_BITS) -> int:
    """The draw that these words decide, the slow way, exact for every word and every law; they must not end before.

    One after another they are the digits of one uniform number U in [0, 1); the draw is the smallest k with
    U < P(X ≤ k). After each word U is known to lie in [n, n + 1)/2^bits; where that does not decide, the next is taken.
    More words never change a decision, so that it does not matter how sharp the bounds are.
    """
    number = bits = 0
    for word in words:
        number, bits = number << word_bits | word, bits + word_bits
        if number == 0 and law.least is None:
            continue  # U may still be smaller than any P(X ≤ k)
        value = first_not_below(law, number, bits=bits)
        # U ≥ P(X ≤ value − 1) is sure; n < l makes U < P(X ≤ value) sure.
        if number < _floors(law, value, bits)[0]:
            return value
    raise AssertionError("the words ended before they decided")


def first_not_below(law: Law, number: int, *, bits: int) -> int:
    """The smallest k whose upper floor is at least `number`; number > 0 where the law has no least value."""
    low, high = law.least, law.most
    reach = 1
    while low is None or high is None:  # the law has no ends: double until they are found
        if low is None and _floors(law, -reach, bits)[1] < number:
            low = -reach
        if high is None and _floors(law, reach, bits)[1] >= number:
            high = reach
        reach *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _floors(law, middle, bits)[1] < number else (low, middle)
    return low


def _floors(law: Law, value: int, bits: int) -> Floors:
    return law.floors(range(value, value + 1), bits)[0]


@dataclass(frozen=True)
class BroadNormal:
    """The discrete Gaussian law P(X = k) ∝ exp(−k²/(2·variance)) for a variance of 2²² or more.

    Σ_{j ≤ k} exp(−j²/(2V)) is an integral, half of its last term and derivatives of that, by Euler's and Maclaurin's
    formula, with a remainder that is bounded: a few derivatives give hundreds of bits. Three terms tell a threshold to
    some thousand units of the last bit, and these are the same curve for every variance but for a step:
    Φ(z) + (σ⁻¹/2)·Φ′(z) + (σ⁻²/12)·Φ″(z) at z = k/σ. So all such laws share the pieces of one curve; a word that comes
    nearer to a threshold is a tie. Source: [Joh17], and DLMF 2.10 and 18.14 for the two bounds.
    """

    variance: Fraction
    least: ClassVar[int | None] = None
    most: ClassVar[int | None] = None

    def floors(self, values: range, bits: int) -> list[Floors]:
        with precision(bits + 2 * GUARD_BITS):
            smooth = _smooth(self.variance, bits + GUARD_BITS)
            return [floors_of(smooth.at(value) + smooth.remainder, bits) for value in values]


@dataclass(frozen=True, eq=False)
class _Smooth:
    """H with |P(X ≤ k) − H(k)| within the remainder: Φ(k/σ) + (f/2 + Σ B_2m/(2m)!·f^(2m−1))/√(2πV), f = exp(−x²/(2V)).

    The remainder is at most |B_2p|/(2p)!·∫|f^(2p)|, and ∫|f^(2p)| ≤ √(2πV)·√(2p)!/V^p because Hermite's polynomials are
    orthogonal (Cauchy and Schwarz). Σ_k f(k) exceeds √(2πV) by less than a part in 2^(2²⁶) (Poisson).
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

    def at(self, value: int) -> arb:
        """H at a whole number."""
        from flint import arb

        x = arb(value)
        slopes = [(-x * x / (2 * self.variance)).exp()]  # f, f′, …: f^(n) = −(x·f^(n−1) + (n − 1)·f^(n−2))/V
        before = arb(0)
        for n in range(1, 2 * len(self.factors)):
            slopes.append(-(x * slopes[-1] + (n - 1) * before) / self.variance)
            before = slopes[-2]
        corrections = sum((factor * slope for factor, slope in zip(self.factors, slopes[1::2], strict=True)), arb(0))
        return ((-x / self.root).erfc() * self.area / 2 + slopes[0] / 2 + corrections) / self.whole


@lru_cache(maxsize=1)  # a tie asks for some forty values in turn
def _smooth(variance: Fraction, bits: int) -> _Smooth:
    return _Smooth.of(variance, bits)


def _left_out(variance: arb, count: int) -> arb:
    """|B_2p|/(2p)!·√(2p)!/V^p, which bounds what is left out of P(X ≤ k) after p derivatives."""
    from flint import arb, fmpq

    return abs(arb(fmpq.bernoulli(2 * count))) / arb(math.factorial(2 * count)).sqrt() / variance**count


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """Thresholds of a law: in piece j, 2⁶⁴·P(X ≤ k) is starts[j] + Σ a[j, n]·tⁿ ± MARGIN/3 at t = step·k − first − j.

    A word w ≥ starts[j] means the value k between whose thresholds and those of k − 1 it lies, if MARGIN within them.
    """

    step: float  # pieces a value
    first: int
    starts: Words  # shape (pieces,), rising
    coefficients: Floats  # shape (pieces, DEGREE + 1)
    guide: NDArray[np.int32]  # the piece of the smallest word whose first 14 bits are g; shape (2¹⁴ + 1,)

    def ties(self, words: Words) -> Indices:
        """Places of the words that leave the value open."""
        from dualmandate.mechanism.noise.kernel import look_up_curves

        open_places = np.zeros(len(words), dtype=np.bool_)
        look_up_curves(words, self, out=np.empty(len(words), dtype=np.int64), is_open=open_places)
        return np.flatnonzero(open_places)


def curves_of(law: BroadNormal) -> ThresholdCurves:
    """The curves of a law: those of all laws, with half a step of their slope and a twelfth of a square of their bend.

    Errors in units of 2⁻⁶⁴: k·step is off by 2⁻⁵² of itself, which moves Φ by at most max|z·φ(z)|·2⁻⁵² (1,000 units);
    what is left out after two terms is 0.0068/V² (7,200), the second term itself |φ‴|/(720·V²) (900), floats and
    Taylor's polynomial some hundred.
    """
    with precision(WORD_BITS + GUARD_BITS):
        step = float((CURVES / ball_of(law.variance).sqrt()).mid())
    starts, plain, guide = _curves_of_all()
    n = np.arange(plain.shape[1])
    slope, bend = np.zeros_like(plain), np.zeros_like(plain)
    slope[:, :-1] = plain[:, 1:] * n[1:]
    bend[:, :-1] = slope[:, 1:] * n[1:]
    return ThresholdCurves(step, -REACH, starts, plain + step / 2.0 * slope + step**2 / 12.0 * bend, guide)


@lru_cache(maxsize=1)
def _curves_of_all() -> tuple[Words, Floats, NDArray[np.int32]]:
    """2⁶⁴·Φ((j + t)/CURVES) for −REACH ≤ j < REACH and 0 ≤ t ≤ 1, by Taylor: φ^(n+1) = −z·φ^(n) − n·φ^(n−1)."""
    from flint import arb

    starts, coefficients = [], []
    with precision(WORD_BITS + 2 * GUARD_BITS):
        units = [arb(2**WORD_BITS) / (math.factorial(n) * CURVES**n) for n in range(DEGREE + 1)]
        for piece in range(-REACH, REACH):
            z = arb(piece) / CURVES
            values = [(-z / arb(2).sqrt()).erfc() / 2, (-z * z / 2).exp() / (2 * arb.pi()).sqrt()]
            before = arb(0)
            for n in range(DEGREE - 1):
                values.append(-z * values[-1] - n * before)
                before = values[-2]
            scaled = [value * unit for value, unit in zip(values, units, strict=True)]
            starts.append(max(0, min(int(scaled[0].mid().floor().unique_fmpz()), LARGEST_WORD)))
            scaled[0] -= starts[-1]
            assert all(value.rad() < 2.0**-40 for value in scaled)
            coefficients.append([float(value.mid()) for value in scaled])
    rising: Words = np.array(starts, dtype=np.uint64)
    assert np.all(rising[1:] >= rising[:-1])
    words = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(WORD_BITS - GUIDE_BITS)
    places = np.searchsorted(rising, words, side="right").astype(np.int64) - 1
    guide = np.append(np.maximum(places, 0), len(rising) - 1).astype(np.int32)
    return rising, np.array(coefficients), guide


def beyond_degree() -> float:
    """What Taylor's polynomial misses, in units of 2⁻⁶⁴: |φ^(n)| ≤ 1.09·√n!/√(2π), twice for the corrections."""
    slope = 2.0 * _CRAMER * math.sqrt(math.factorial(DEGREE)) / math.sqrt(2.0 * math.pi)
    return 2.0**WORD_BITS * slope * ((1.0 + OVERLAP) / CURVES) ** (DEGREE + 1) / math.factorial(DEGREE + 1)


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Thresholds of one law: a word w means first + j, j the smallest with w ≤ upper[j], unless w ≥ lower[j] (a tie).

    Between lower[j] and upper[j] lies ⌊2⁶⁴·P(X ≤ first + j)⌋. A word that is 0 where the law has no least value, or
    2⁶⁴ − 1, is a tie, too. guide[g] is the j of the smallest word whose first 14 bits are g.
    """

    first: int
    lower: Words  # shape (values,), rising
    upper: Words  # shape (values,), rising; the same array where every floor is certain
    guide: NDArray[np.int32]  # shape (2¹⁴ + 1,)

    def ties(self, words: Words) -> Indices:
        places = np.searchsorted(self.upper, words)
        return np.flatnonzero(words >= self.lower[places])


@lru_cache(maxsize=64)
def table_of(law: Law) -> NoiseTable | ThresholdCurves:
    """The table of a law, computed once: a fraction of a millisecond where it has a thousand values."""
    if isinstance(law, BroadNormal):
        return curves_of(law)
    if isinstance(law, Normal):
        return _normal_bounds(law)
    if isinstance(law, GeometricDigit):
        return _digit_bounds(law)
    return _geometric_bounds(law) if isinstance(law, TwoSided) else thresholds_of(law)


@dataclass(frozen=True, eq=False)
class Tails:
    """2⁶⁴ times the probabilities of one side, falling, and how far each may be from the truth."""

    values: Floats
    errors: Floats

    def floors(self) -> tuple[Words, Words]:
        """Bounds of ⌊value⌋, until there is nothing left."""
        lower, upper = (np.floor(np.maximum(end, 0.0)) for end in self._ends())
        count = int(np.argmax(upper == 0.0)) + 1
        assert upper[count - 1] == 0.0
        return lower[:count].astype(np.uint64), upper[:count].astype(np.uint64)

    def floors_of_the_rest(self) -> tuple[Words, Words]:
        """Bounds of ⌊2⁶⁴ − value⌋, until nothing but the largest word is left."""
        most, least = (np.ceil(end) for end in reversed(self._ends()))
        count = int(np.argmax(least <= 1.0)) + 1
        assert least[count - 1] <= 1.0
        lower, upper = (LARGEST_WORD - np.maximum(end[:count] - 1.0, 0.0).astype(np.uint64) for end in (most, least))
        return lower, upper

    def _ends(self) -> tuple[Floats, Floats]:
        return self.values - self.errors, self.values + self.errors


def _table_between(left: Tails, right: Tails) -> NoiseTable:
    """From P(X ≤ −1 − q) and P(X ≥ 1 + q), q = 0, 1, …"""
    below, above = left.floors(), right.floors_of_the_rest()
    lower, upper = (
        np.maximum.accumulate(np.concatenate([one[::-1], other])) for one, other in zip(below, above, strict=True)
    )
    return NoiseTable(-len(below[0]), lower, upper, _guide(upper))


def _normal_bounds(law: Normal) -> NoiseTable:
    """Beyond the last weight, n, weights sum to less than ∫ exp(−x²/(2V)) from n on, below V/n times the last."""
    last = math.isqrt(math.ceil(2 * law.variance * (WORD_BITS + EXTRA_BITS) * Fraction(7, 10))) + 1  # ln 2 < 7/10
    weights, error = _powers(1 / (2 * law.variance), np.arange(last + 1, dtype=np.int64) ** 2)
    sums, errors = _sums_from_each(weights, error, beyond=float(law.variance) / last * weights[-1])
    tails = _shares(sums[1:], errors[1:], total=sums[0] + sums[1], of_total=errors[0] + errors[1])
    return _table_between(tails, tails)


def _digit_bounds(law: GeometricDigit) -> NoiseTable:
    """Nothing lies beyond the last digit."""
    weights, error = _powers(law.rate, np.arange(law.size, dtype=np.int64))
    sums, errors = (np.append(each, 0.0) for each in _sums_from_each(weights, error))
    tails = _shares(sums[1:], errors[1:], total=sums[0], of_total=errors[0])
    lower, upper = (np.maximum.accumulate(each) for each in tails.floors_of_the_rest())
    return NoiseTable(0, lower, upper, _guide(upper))


def _sums_from_each(weights: Floats, error: float, *, beyond: float = 0.0) -> tuple[Floats, Floats]:
    """Falling weights that are off by `error` of themselves, added up from each on, and how far each sum may be off.

    They are added from the smallest; a sum is off by at most 2⁻⁵³ of all sums so far, by its weights, and by what is
    `beyond` them.
    """
    sums = np.add.accumulate(weights[::-1])
    errors = error * sums + HALF_UNIT * np.add.accumulate(sums) + beyond
    return sums[::-1], SAFETY * errors[::-1]


def _shares(sums: Floats, errors: Floats, *, total: float, of_total: float) -> Tails:
    """Sums as parts of a total, in units of 2⁻⁶⁴; `of_total` is how far the total may be off."""
    shares, relative = sums / total, of_total / total + HALF_UNIT
    return Tails(2.0**WORD_BITS * shares, 2.0**WORD_BITS * SAFETY * (errors / total + shares * relative))


def _geometric_bounds(law: TwoSided) -> NoiseTable:
    """The tails are s·c^q and (1 − s)·c^(q + 1): powers, and two more roundings."""
    rate = law.rate * law.fold
    last = math.ceil((WORD_BITS + EXTRA_BITS) * Fraction(7, 10) / rate) + 1
    powers, error = _powers(rate, np.arange(last + 1, dtype=np.int64))
    with precision(WORD_BITS + GUARD_BITS):
        decay, low = _exp(-law.rate), law.step - law.high
        right, left = law.high + decay * low, law.high - 1 + decay * (low + 1)
        shares = [2.0**WORD_BITS * float((side / (left + right)).mid()) for side in (left, right)]
    whole = [share * part for share, part in zip(shares, (powers[:-1], powers[1:]), strict=True)]
    left_tails, right_tails = (Tails(side, SAFETY * (error + 4 * HALF_UNIT) * side) for side in whole)
    return _table_between(left_tails, right_tails)


def _powers(rate: Fraction, exponents: Integers) -> tuple[Floats, float]:
    """exp(−rate·n) for whole numbers n ≥ 0, and how far each may be off, of itself, where it is no vanishing number.

    One factor for each four bits of n, known to half a unit, is looked up; so many factors make as many products less
    one.
    """
    places = range(-(-int(exponents[-1]).bit_length() // NIBBLE) or 1)
    digits = np.empty((len(places), 2**NIBBLE))
    with precision(WORD_BITS + GUARD_BITS + NIBBLE * len(places)):
        base = _exp(-rate)
        for place in places:
            power = base / base
            for digit in range(2**NIBBLE):
                digits[place, digit] = float(power.mid())
                power = power * base
            base = power
    found = digits[0][exponents & (2**NIBBLE - 1)]
    for place in places[1:]:
        found = found * digits[place][(exponents >> (NIBBLE * place)) & (2**NIBBLE - 1)]
    return found, 2 * SAFETY * len(places) * HALF_UNIT


def _guide(upper: Words) -> NDArray[np.int32]:
    """For each 14 bits that a word may begin with how many bounds lie below all such words."""
    first_bits = (upper >> np.uint64(WORD_BITS - GUIDE_BITS)).astype(np.int64)
    below = np.cumsum(np.bincount(first_bits, minlength=2**GUIDE_BITS)[:-1])
    guide: NDArray[np.int32] = np.concatenate(([0], below, [len(upper) - 1])).astype(np.int32)
    return guide


def thresholds_of(law: Law) -> NoiseTable:
    """The table that has every threshold as near as 64 bits tell it."""
    first = first_not_below(law, 1, bits=WORD_BITS) - 1 if law.least is None else law.least
    last = first_not_below(law, LARGEST_WORD, bits=WORD_BITS) if law.most is None else law.most
    floors = law.floors(range(first, last + 1), WORD_BITS)
    assert law.least is not None or floors[0][1] == 0  # only the word 0 may mean something smaller
    lower, upper = (_rising([min(pair[end], LARGEST_WORD) for pair in floors]) for end in (0, 1))
    assert upper[-1] == LARGEST_WORD  # only this word may mean something larger
    return NoiseTable(first, lower, lower if np.array_equal(lower, upper) else upper, _guide(upper))


def _rising(numbers: list[int]) -> Words:
    """Bounds of rising numbers: each also bounds the next ones."""
    rising: Words = np.maximum.accumulate(np.array(numbers, dtype=np.uint64))
    return rising
