"""The error of an answer that is put together from several noisy measurements: S = Σ c·X, its E|S| and its tails.

A single term has a closed form. Otherwise S is known by its characteristic function φ(t) = Π φ_X(c·t), and
E|S| = (2/π)·∫₀^∞ (1 − φ(t))/t² dt. Summed with step h instead of integrated, the right side is *exact* as long as
|S| ≤ 2π/h, because Σ (1 − cos mθ)/m² = πθ/2 − θ²/4 on [0, 2π]. What is left out is the end of the sum; replaced by its
mean it leaves a relative error below 10⁻⁶. Tails are taken of S plus a little Gaussian noise, whose φ ends, and then
widened to cover it: a half-width is never too small, and too wide by at most 3 % of the standard deviation of S and by
what 2 % of the tail probability are worth. Three kinds of noise are better off:

* whole-number noise with commensurable factors: S lies on a lattice and φ is periodic, so the Fourier sum is folded
  into one period; relative error of E|S| below 10⁻¹², tails exact to 10⁻¹²;
* whole-number noise that is almost surely 0: E|S| is that of one draw alone, Σ c·E|X|; below 10⁻⁷;
* Laplace noise: E|S| is an integral of positive terms, by the trapezoidal rule in ln t; below 10⁻¹².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.laplace import Laplace
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.population.arrays import Floats

FINEST_TAIL = 1e-10  # smallest tail probability that is computed
_NODES = 2**15  # frequencies of a sum that is cut off
_BLOCK = 2**14  # frequencies held at once
_BLUR = 2e-3  # standard deviation of the added Gaussian, relative to that of S


@dataclass(frozen=True, eq=False)
class CharacteristicFunction:
    """The law of a centered error S, known by the real part of E[exp(itS)]."""

    at: Callable[[Floats], Floats]
    variance: float  # > 0
    largest: float  # a distance that |S| exceeds with negligible probability

    @property
    def mean_absolute(self) -> float:
        spacing = 2 * math.pi / self.largest
        total, late = 0.0, 0.0
        for orders in blocks(1, _NODES + 1):
            values = self.at(spacing * orders)
            total += float(np.sum((1 - values) / np.square(orders)))
            late += float(np.sum(values[orders > _NODES // 2]))
        rest = 1 / _NODES - 1 / (2 * _NODES**2) + 1 / (6 * _NODES**3)
        total += (1 - late / (_NODES - _NODES // 2)) * rest
        return 2 / math.pi * (spacing * self.variance / 4 + total / spacing)

    def tail(self, distance: float) -> float:
        """P(|S| > distance), or a little more."""
        step, tails = self.blurred_tails
        place = math.floor((distance - 6 * self.blur) / step)
        return min(float(tails[min(place, len(tails) - 1)]) + 2e-9, 1.0) if place >= 0 else 1.0

    def tail_alone(self, distance: float) -> float:
        """The same at one distance, without a table: it moves with the noise where `tail` stays or jumps a little."""
        at, spacing, total = min(distance - 6 * self.blur, self.largest), math.pi / self.largest, 0.0
        if at <= 0:
            return 1.0
        for frequencies, weights in self._blurred():
            total += float(weights @ np.sin(frequencies * at))
        return min(max(1 - spacing / math.pi * (at + 2 * total), 0.0) + 2e-9, 1.0)

    def _blurred(self) -> Iterator[tuple[Floats, Floats]]:
        """Frequencies mh and φ(mh)·e^(−(blur·mh)²/2)/(mh), some thousands at a time."""
        spacing = math.pi / self.largest
        for orders in blocks(1, self._count + 1):
            frequencies = spacing * orders
            yield frequencies, self.at(frequencies) * np.exp(-np.square(self.blur * frequencies) / 2) / frequencies

    @property
    def _count(self) -> int:
        """Frequencies after which the Gaussian has gone; without large prime factors, which make transforms slow."""
        count = math.ceil(8 * self.largest / (self.blur * math.pi))
        even = 1 << max(count.bit_length() - 4, 0)
        return -(-count // even) * even

    def reach(self, tail: float) -> float:
        """The smallest t with P(|S| > t) ≤ tail, or a little more."""
        # P(|S| > t + z) ≤ P(|S + Z| > t) + P(|Z| > z): a hundredth of the tail is given to the second part.
        margin = -NormalDist().inv_cdf(computable(tail) / 200) * self.blur
        step, tails = self.blurred_tails
        after = int(np.argmax(tails <= 0.99 * tail))
        drop = tails[after - 1] - tails[after] if after else 0.0
        part = float((tails[after - 1] - 0.99 * tail) / drop) if drop > 0 else 0.0
        return step * (max(after - 1, 0) + part) + margin

    @property
    def blur(self) -> float:
        """The standard deviation of the Gaussian noise that is added."""
        return _BLUR * math.sqrt(self.variance)

    @cached_property
    def blurred_tails(self) -> tuple[float, Floats]:
        """P(|S + Z| > k steps) for k = 0, 1, …, Z Gaussian: 1 − (h/π)(x + 2·Σ φ(mh)·sin(mhx)/(mh)), all x at once."""
        spacing, count = math.pi / self.largest, self._count
        weights = np.concatenate([np.zeros(1), *(found for _, found in self._blurred())])
        waves = -np.fft.rfft(weights, 2 * count).imag
        distances = self.largest / count * np.arange(count + 1)
        tails = 1 - spacing / math.pi * (distances + 2 * waves)
        return self.largest / count, np.append(np.maximum(tails, 0.0), 0.0)


def computable(tail: float) -> float:
    """The tail probability, refused where Fourier sums cannot tell it from 0."""
    if tail < FINEST_TAIL:
        raise InvalidMechanism(
            f"an interval that a combination of noise leaves with probability {tail:.3g}",
            why=f"tails of combined noise are computed down to {FINEST_TAIL:g}",
            instead="ask for a probability a little further from 1",
        )
    return tail


def blocks(start: int, stop: int) -> Iterator[Floats]:
    """The whole numbers from start to stop − 1, some thousands at a time."""
    for first in range(start, stop, _BLOCK):
        yield np.arange(first, min(first + _BLOCK, stop), dtype=np.float64)


_NEGLECTED = 1e-20  # tail of one term that the sums leave out
_BETWEEN = 8  # factors, at least, after which frequencies that are lost already are left out
_RARE = 1e-8  # chance of any noise at all, below which 1 − φ would cancel and two draws never meet
_FINEST = 5000  # largest denominator that is looked for between two factors
SMOOTHNESS = 5e-4  # relative, of half-widths as a function of the number of draws
_SMOOTH = 30  # standard deviations of S, in lattice steps, from which its tails are taken as those of a smooth law
_LONGEST_PERIOD = 2**17  # frequencies of a folded sum; a longer one is hardly told from a smooth law


@dataclass(frozen=True, eq=False)
class Term:
    """Independent draws of one noise that reach an answer: `counts[i]` of them times `factors[i]` > 0."""

    noise: Distribution
    factors: Floats  # shape (n,)
    counts: Floats  # shape (n,), ≥ 1


@dataclass(frozen=True, eq=False)
class Combination:
    """A sum of independent noise terms; symmetric about 0."""

    terms: tuple[Term, ...]

    @property
    def variance(self) -> float:
        """Σ count·factor²·V."""
        return math.fsum(term.noise.variance * float(term.counts @ term.factors**2) for term in self.terms)

    @property
    def mean_absolute(self) -> float:
        if self._single is not None:
            noise, factor = self._single
            return factor * noise.mean_absolute
        if self.variance == 0:
            return 0.0
        if self._is_rare:
            return math.fsum(term.noise.mean_absolute * float(term.counts @ term.factors) for term in self.terms)
        if all(isinstance(term.noise, Laplace) for term in self.terms):
            return _laplace_mean_absolute(self.terms)
        return self.law.mean_absolute if self._period is None else self._folded_mean_absolute(*self._period)

    def tail(self, distance: float) -> float:
        """P(|S| > distance), or a little more where it is not exact."""
        if self._single is not None:
            noise, factor = self._single
            return noise.tail(distance / factor)
        if self.variance == 0 or distance < 0:
            return float(distance < 0)
        if self._period is None:
            return self.law.tail(distance)
        steps = math.floor(distance / self._period[0] * (1 + 1e-12))
        return float(self._lattice_tails[min(steps, len(self._lattice_tails) - 1)])

    def smooth_tail(self, distance: float) -> float:
        """The same as `tail`, or a little more; it moves with the noise where `tail` stays or jumps."""
        sums = self._single is None and self.variance > 0 and distance >= 0 and self._period is None
        return self.law.tail_alone(distance) if sums else self.tail(distance)

    def reach(self, tail: float) -> float:
        """The smallest t with P(|S| > t) ≤ tail, or a little more where it is not exact."""
        if self._single is not None:
            noise, factor = self._single
            return factor * noise.reach(tail)
        if self.variance == 0:
            return 0.0
        if self._period is None:
            return self.law.reach(tail)
        return self._period[0] * int(np.argmax(self._lattice_tails <= computable(tail)))

    def crossing(self, tail: float) -> float:
        """Where P(|S| ≥ t), drawn through its logarithms between the values that S can take, has fallen to `tail`.

        At least `reach` and less than a step more; it moves with the noise where `reach` stays or jumps.
        """
        at, step = self.reach(tail), self.step
        if step is None or self.variance == 0:
            return at
        before, after = 1.0 if at < step / 2 else self.tail(at - step), self.tail(at)
        if not before > tail >= after > 0:
            return at
        return at + step * math.log(before / tail) / math.log(before / after)

    def smooth_reach(self, tail: float) -> float:
        """The same as `reach`, never less and hardly more, but smooth in the number of draws where there are many."""
        if self.is_coarse:
            return self.reach(tail)
        step = 0.0 if self._period is None else self._period[0]
        # A uniform draw over one lattice step makes the law smooth; |S| ≤ |S + U| + step/2 pays for it.
        smoothed = CharacteristicFunction(
            lambda t: self.characteristic(t) * np.sinc(t * (step / (2 * math.pi))),
            self.variance + step**2 / 12,
            self.law.largest + step,
        )
        return smoothed.reach(tail) * (1 + SMOOTHNESS) + step / 2

    @property
    def is_coarse(self) -> bool:
        """Whether S is a single draw, or its lattice is so coarse that its tails fall in steps."""
        if self._single is not None or self.variance == 0:
            return True
        return self._period is not None and self.variance < (_SMOOTH * self._period[0]) ** 2

    @property
    def step(self) -> float | None:
        """The lattice on which S lies and on which `tail` and `reach` are exact; None where they are bounds."""
        if self._single is not None:
            noise, factor = self._single
            return noise.step * factor if noise.discrete else None
        return None if self._period is None else self._period[0]

    def characteristic(self, frequencies: Floats) -> Floats:
        value, left = np.ones_like(frequencies), np.arange(len(frequencies))
        for term in self.terms:
            start = 0
            while start < len(term.factors) and len(left):
                together = max(_BETWEEN, _BLOCK // len(left))  # a product of many terms is soon next to nothing
                factors, counts = (each[start : start + together] for each in (term.factors, term.counts))
                one = term.noise.characteristic(np.multiply.outer(factors, frequencies[left]).reshape(-1))
                one = one.reshape(len(factors), -1)
                value[left] *= np.prod(one if np.all(counts == 1) else one ** counts[:, None], axis=0)
                left = left[np.abs(value[left]) > _NEGLECTED]
                start += together
        return value

    @cached_property
    def _single(self) -> tuple[Distribution, float] | None:
        """The only term, if there is only one draw."""
        if sum(float(term.counts.sum()) for term in self.terms) != 1:
            return None
        term = next(term for term in self.terms if len(term.counts))
        return term.noise, float(term.factors[0])

    @property
    def _is_rare(self) -> bool:
        return all(term.noise.discrete for term in self.terms) and (
            math.fsum(term.noise.tail(0.0) * float(term.counts.sum()) for term in self.terms) < _RARE
        )

    @cached_property
    def law(self) -> CharacteristicFunction:
        """S by its characteristic function alone, whatever its lattice."""
        filled = [term for term in self.terms if len(term.factors)]
        widest = max(term.noise.reach(_NEGLECTED) * float(term.factors.max()) for term in filled)
        return CharacteristicFunction(self.characteristic, self.variance, 12 * math.sqrt(self.variance) + widest)

    @cached_property
    def _period(self) -> tuple[float, int] | None:
        """The lattice step of S and an even number of steps that covers its range, where both are moderate."""
        if not all(term.noise.discrete for term in self.terms):
            return None
        step = common_step(np.concatenate([term.factors * term.noise.step for term in self.terms]))
        if step is None:
            return None
        length = 2 * math.ceil(self.law.largest / step) + 4
        return (step, length) if length <= _LONGEST_PERIOD else None

    def _folded_mean_absolute(self, step: float, length: int) -> float:
        """The sum over one period of φ, each order with the weights of all its repetitions: (π/P)²/sin²(πr/P)."""
        spacing = 2 * math.pi / (length * step)
        total = 0.0
        for orders in blocks(1, length // 2 + 1):
            weights = np.square(math.pi / length / np.sin(math.pi * orders / length))
            weights[orders == length // 2] /= 2
            total += float(weights @ (1 - self.characteristic(spacing * orders)))
        return 2 / math.pi * (spacing * self.variance / 4 + total / spacing)

    @cached_property
    def _lattice_tails(self) -> Floats:
        """P(|S| > k steps) for k = 0, 1, …, from the probabilities by a discrete Fourier transform."""
        assert self._period is not None
        step, length = self._period
        spacing = 2 * math.pi / (length * step)
        values = np.concatenate([self.characteristic(spacing * orders) for orders in blocks(0, length // 2 + 1)])
        probabilities = np.maximum(np.fft.irfft(values, length)[: length // 2 + 1], 0.0)
        return np.append(2 * np.cumsum(probabilities[:0:-1])[::-1], 0.0)


def common_step(values: Floats) -> float | None:
    """The largest step of which all values are whole multiples, if their ratios are simple fractions."""
    distinct = np.unique(np.abs(values[values != 0]))
    largest = float(distinct[-1])
    denominator, numerator = 1, 0
    for value in distinct:
        ratio = float(value) / largest
        fraction = Fraction(ratio).limit_denominator(_FINEST)
        if fraction == 0 or abs(ratio - float(fraction)) > 1e-10:
            return None
        denominator = math.lcm(denominator, fraction.denominator)
        if denominator > _LONGEST_PERIOD:
            return None
    for value in distinct:
        numerator = math.gcd(numerator, round(float(value) / largest * denominator))
    return largest * numerator / denominator


def _laplace_mean_absolute(terms: tuple[Term, ...]) -> float:
    """E|S| = (2/π)·∫₀^∞ φ(t)·Σ 2b²/(1 + b²t²) dt, with t = eˣ: the integrand falls at both ends and is smooth."""
    scales = np.concatenate([term.factors * term.noise.mean_absolute for term in terms])
    counts = np.concatenate([term.counts for term in terms])
    unit = math.sqrt(float(counts @ scales**2))
    squares = np.square(scales / unit)
    step = 1 / 8
    total = 0.0
    for x in np.arange(-37.0, 14.0 - math.log(float(squares.max())) / 2, step):
        t = math.exp(x)
        ratios = squares * (t * t)
        decay = math.exp(-float(counts @ np.log1p(ratios)))
        total += t * decay * float(counts @ (2 * squares / (1 + ratios)))
    return 2 / math.pi * step * total * unit
