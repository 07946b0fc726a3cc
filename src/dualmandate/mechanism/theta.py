"""Sums over the whole numbers of exp(−u·n²): the normalizing constant of discrete Gaussian noise and its moments.

θ(u) = Σ exp(−u·n²). For u ≥ 1 a few terms are enough. For u < 1 Poisson summation turns θ into
√(π/u)·ψ(1/u), ψ(s) = 1 + 2·Σ exp(−π²n²s), where again a few terms are enough: every value below is accurate to
about 10⁻¹⁵, relative, for every u.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_TERMS = range(1, 11)  # the last one is below exp(−81) of the first, at u = 1 as at s = 1
_SMALL = 0.01  # below it, odd sums are taken by the Euler-Maclaurin formula, whose error is then below 10⁻²⁰
# Coefficients B₂ₖ/(2k·(k − 1)!) of the Euler-Maclaurin formula for Σ n·exp(−u·n²), k = 1, …, 8.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = tuple(number / (2 * k * math.factorial(k - 1)) for k, number in enumerate(_BERNOULLI, start=1))


def log_theta(u: float) -> float:
    """Logarithm of θ(u), the sum over all whole n of exp(−u·n²)."""
    if u >= 1:
        return math.log1p(2 * math.fsum(math.exp(-u * n * n) for n in _TERMS))
    dual = 2 * math.fsum(math.exp(-((math.pi * n) ** 2) / u) for n in _TERMS)
    return math.log(math.pi / u) / 2 + math.log1p(dual)


@lru_cache(maxsize=4096)
def square_cumulants(u: float) -> tuple[float, float, float]:
    """First three cumulants of n² under P(n) ∝ exp(−u·n²): V = −(ln θ)′, then −V′ and V″; all > 0."""
    if u >= 1:
        return _cumulants([n * n for n in _TERMS], u)
    s = 1 / u
    if u < _SMALL:
        # The corrections below are under exp(−π²/u) < 10⁻⁴⁰⁰.
        return s / 2, s * s / 2, s * s * s
    first, second, third = _cumulants([(math.pi * n) ** 2 for n in _TERMS], s)
    return (
        s / 2 - s**2 * first,
        s**2 / 2 - 2 * s**3 * first + s**4 * second,
        s**3 - 6 * s**4 * first + 6 * s**5 * second - s**6 * third,
    )


def absolute_moments(u: float) -> tuple[float, float]:
    """E|n| and E|n|³ under P(n) ∝ exp(−u·n²)."""
    if u >= _SMALL:
        n = np.arange(1, math.ceil(math.sqrt(50 / u)) + 2, dtype=np.float64)
        weights = np.exp(-u * n * n)
        first, third = float(np.sum(n * weights)), float(np.sum(n**3 * weights))
    else:
        first = 1 / (2 * u) - math.fsum(c * (-u) ** k for k, c in enumerate(_EULER))
        third = 1 / (2 * u * u) - math.fsum(k * c * (-u) ** (k - 1) for k, c in enumerate(_EULER) if k > 0)
    scale = 2 * math.exp(-log_theta(u))
    return scale * first, scale * third


def upper_sum(u: float, start: int) -> float:
    """The sum over n ≥ start of exp(−u·n²), start ≥ 1.

    Term by term while there are at most some ten thousand; then as an integral from start − ½ with the corrections
    of the midpoint rule (Euler-Maclaurin), accurate to 10⁻¹² while the sum is above 10⁻³⁰⁰.
    """
    if u * start * start > 745:
        return 0.0
    if u >= 1e-6:
        stop = math.ceil(math.sqrt(start * start + 45 / u))
        n = np.arange(start, stop + 1, dtype=np.float64)
        return float(np.sum(np.exp(-u * n * n)))
    edge = start - 0.5
    root = math.sqrt(u)
    x = root * edge
    # d^m/dx^m exp(−x²) = (−1)^m·H_m(x)·exp(−x²), H the Hermite polynomials; odd m below.
    hermite = [1.0, 2 * x]
    for m in range(1, 7):
        hermite.append(2 * x * hermite[m] - 2 * m * hermite[m - 1])
    coefficients = ((1, 1 / 24), (3, -7 / 5760), (5, 31 / 967680), (7, -127 / 154828800))
    corrections = -math.fsum(c * root**m * hermite[m] for m, c in coefficients) * math.exp(-x * x)
    return math.sqrt(math.pi / u) / 2 * math.erfc(x) + corrections


def theta_ratio(u: float, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ exp(−u·n²)·cos(n·t) / θ(u): the characteristic function of discrete Gaussian noise; positive."""
    t = np.mod(frequencies + np.pi, 2 * np.pi) - np.pi
    total = math.exp(log_theta(u))
    if u >= 1:
        value = np.ones_like(t)
        for n in _TERMS:
            value += 2 * math.exp(-u * n * n) * np.cos(n * t)
        return value / total
    value = np.zeros_like(t)
    for k in range(-4, 5):
        value += np.exp(-np.square(t + 2 * np.pi * k) / (4 * u))
    return value * (math.sqrt(math.pi / u) / total)


def _cumulants(squares: list[float] | list[int], weight: float) -> tuple[float, float, float]:
    """Cumulants of y under P(0) ∝ 1, P(y) ∝ 2·exp(−weight·y) for y in `squares`."""
    masses = [2 * math.exp(-weight * y) for y in squares]
    total = 1 + math.fsum(masses)
    first, second, third = (
        math.fsum(mass * float(y) ** power for mass, y in zip(masses, squares, strict=True)) / total
        for power in (1, 2, 3)
    )
    return first, second - first**2, third - 3 * second * first + 2 * first**3
