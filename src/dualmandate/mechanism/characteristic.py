"""What a characteristic function says about an error S: its E|S| and its tails, by Fourier sums.

E|S| = (2/π)·∫₀^∞ (1 − φ(t))/t² dt. Summed with step h instead of integrated, the right side is *exact* as long as
|S| ≤ 2π/h, because Σ (1 − cos mθ)/m² = πθ/2 − θ²/4 on [0, 2π]. What is left out is the end of the sum; replaced by its
mean it leaves a relative error below 10⁻⁶.

Tails are taken of S plus a little Gaussian noise, whose φ ends, and then widened to cover it: a half-width is never too
small, and too wide by at most 3 % of the standard deviation of S and by what 2 % of the tail probability are worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism

FINEST_TAIL = 1e-10  # smallest tail probability that is computed
_NODES = 2**15  # frequencies of a sum that is cut off
_BLOCK = 2**14  # frequencies held at once
_BLUR = 2e-3  # standard deviation of the added Gaussian, relative to that of S


@dataclass(frozen=True, eq=False)
class CharacteristicFunction:
    """The law of a centered error S, known by the real part of E[exp(itS)]."""

    at: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    variance: float  # > 0
    largest: float  # a distance that |S| exceeds with negligible probability

    @property
    def mean_absolute(self) -> float:
        """E|S|."""
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
    def blurred_tails(self) -> tuple[float, NDArray[np.float64]]:
        """P(|S + Z| > k steps) for k = 0, 1, …, Z Gaussian: 1 − (h/π)(x + 2·Σ φ(mh)·sin(mhx)/(mh)), all x at once."""
        spacing = math.pi / self.largest
        count = math.ceil(8 / (self.blur * spacing))
        weights = np.zeros(count + 1)
        for orders in blocks(1, count + 1):
            frequencies = spacing * orders
            blurred = self.at(frequencies) * np.exp(-np.square(self.blur * frequencies) / 2)
            weights[orders.astype(np.int64)] = blurred / frequencies
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


def blocks(start: int, stop: int) -> Iterator[NDArray[np.float64]]:
    """The whole numbers from start to stop − 1, some thousands at a time."""
    for first in range(start, stop, _BLOCK):
        yield np.arange(first, min(first + _BLOCK, stop), dtype=np.float64)
