"""How a taste is distributed among people, from the parameters of a mixed logit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dualmandate.elicitation.estimate import Estimates


@dataclass(frozen=True)
class Taste:
    """A coefficient among people, in its own unit: utility, or money in willingness-to-pay space."""

    mean: float
    mean_standard_error: float
    standard_deviation: float  # among people; 0 where all are alike
    standard_deviation_standard_error: float
    median: float
    share_positive: float  # of people


def taste_of(estimates: Estimates, name: str) -> Taste:
    """The distribution of a coefficient ("epsilon", "willingness to pay for epsilon", "scale"), errors by delta method.

    Normal with mean m and standard deviation s: just that. Lognormal with m and s of the logarithm: mean e^(m + s²/2),
    standard deviation mean·√(e^(s²) − 1). Triangular with half width h: standard deviation h/√6.
    """
    for sign, subject in ((1.0, name), (-1.0, f"minus {name}")):
        if f"mean of log {subject}" in estimates.names:
            return _lognormal(estimates, subject, sign)
    if f"log {name}" in estimates.names:
        middle = math.exp(estimates.value(f"log {name}"))
        return Taste(middle, middle * estimates.standard_error(f"log {name}"), 0.0, 0.0, middle, 1.0)
    mean, error = estimates.value(name), estimates.standard_error(name)
    if f"half width of {name}" in estimates.names:
        half, root = f"half width of {name}", math.sqrt(6)
        width = estimates.value(half)
        inside = min(max(mean / width, -1.0), 1.0)
        tail = (1 - abs(inside)) ** 2 / 2
        positive = 1 - tail if inside > 0 else tail
        return Taste(mean, error, width / root, estimates.standard_error(half) / root, mean, positive)
    spread = f"standard deviation of {name}"
    if spread not in estimates.names:
        return Taste(mean, error, 0.0, 0.0, mean, float(mean > 0))
    wide = estimates.value(spread)
    share = float(ndtr(mean / wide)) if wide > 0 else float(mean > 0)
    return Taste(mean, error, wide, estimates.standard_error(spread), mean, share)


def _lognormal(estimates: Estimates, subject: str, sign: float) -> Taste:
    (m, s), covariance = estimates.joint((f"mean of log {subject}", f"standard deviation of log {subject}"))
    mean, ratio = math.exp(m + s**2 / 2), math.sqrt(math.expm1(s**2))
    of_mean = np.array([mean, s * mean])
    deviation = mean * ratio
    of_deviation = np.array([deviation, s * deviation + (s * mean * math.exp(s**2) / ratio if ratio else mean)])
    errors = (math.sqrt(slope @ covariance @ slope) for slope in (of_mean, of_deviation))
    mean_error, deviation_error = errors
    return Taste(sign * mean, mean_error, deviation, deviation_error, sign * math.exp(m), float(sign > 0))
