"""Probabilities of two correlated normal variables, for many pairs of limits at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)


def bivariate_cdf(first: Floats, second: Floats, correlation: float) -> Floats:
    """P(X ≤ first, Y ≤ second), of any shape that broadcasts; limits may be infinite, |correlation| < 1.

    Φ(h)Φ(k) + ∫₀^{asin ρ} exp(−(h² + k² − 2hk·sin θ)/(2cos²θ)) dθ/2π [Dre78]: Gauss and Legendre's rule with 48 nodes
    is good to 10⁻¹⁵ up to |ρ| = 0.99 and to 10⁻¹² up to 0.999.
    """
    product = ndtr(first) * ndtr(second)
    h, k = np.broadcast_arrays(first, second)
    inside = np.isfinite(h) & np.isfinite(k)
    extra = np.zeros(h.shape)
    half = math.asin(correlation) / 2.0
    angles = half * (NODES + 1.0)
    sines, squares = np.sin(angles), 2.0 * np.cos(angles) ** 2
    u, v = h[inside][:, None], k[inside][:, None]
    extra[inside] = np.exp(-(u * u + v * v - 2.0 * u * v * sines) / squares) @ WEIGHTS * (half / (2.0 * math.pi))
    probability: Floats = product + extra
    return probability


def bivariate_density(first: Floats, second: Floats, correlation: float) -> Floats:
    """The joint density; also the derivative of the probability with respect to the correlation. 0 at infinity."""
    h, k = np.broadcast_arrays(first, second)
    inside = np.isfinite(h) & np.isfinite(k)
    density = np.zeros(h.shape)
    rest = 1.0 - correlation**2
    u, v = h[inside], k[inside]
    density[inside] = np.exp(-(u * u + v * v - 2.0 * correlation * u * v) / (2.0 * rest))
    density /= 2.0 * math.pi * math.sqrt(rest)
    return density


def edge_density(at: Floats, other: Floats, correlation: float) -> Floats:
    """φ(at)·P(Y ≤ other | X = at): the derivative of the probability with respect to a limit. 0 at infinity."""
    x, y = np.broadcast_arrays(at, other)
    inside = np.isfinite(x)
    density = np.zeros(x.shape)
    u = x[inside]
    within = ndtr((y[inside] - correlation * u) / math.sqrt(1.0 - correlation**2))
    density[inside] = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi) * within
    return density
