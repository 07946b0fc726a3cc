"""From ρ of zero-concentrated privacy to (ε, δ) for a report, and back: the tight conversion.

ρ-zCDP gives (ε, δ) for δ = inf over α > 1 of exp((α − 1)(αρ − ε))/(α − 1)·(1 − 1/α)^α. Solved for ε, with t = α − 1
and L = ln(1/δ):  ε = ρ(1 + t) + ln(t/(1 + t)) + (L − ln(1 + t))/t,  least where  ρt² = L − ln(1 + t).
The two sides of the last equation run in opposite directions, so t is found safely, and every t gives a valid ε.
Source: [CKS20].
"""

from __future__ import annotations

import math
from fractions import Fraction

from dualmandate.errors import InvalidLoss

_ROUNDING = 32 * 2.0**-53  # more than the relative rounding error of any sum below
_STEPS = 200  # bisections; 64-bit numbers are exhausted long before


def epsilon_at(rho: float | Fraction, failure_probability: float | Fraction) -> float:
    """The smallest ε that a ρ implies at this δ, rounded up; 0 where δ alone covers the loss."""
    concentrated, log_odds = _checked(rho, "rho"), _log_odds(failure_probability)
    t = _best_order(concentrated, log_odds)
    terms = (concentrated * (1 + t), -math.log1p(1 / t), log_odds / t, -math.log1p(t) / t)
    rounded_up = math.fsum(terms) + _ROUNDING * math.fsum(abs(term) for term in terms)
    return max(rounded_up, 0.0)


def rho_at(epsilon: float | Fraction, failure_probability: float | Fraction) -> float:
    """The largest ρ that still gives (ε, δ), rounded down."""
    log_odds = _log_odds(failure_probability)
    target = _checked(epsilon, "epsilon")
    t = _order_of(target, log_odds)
    # Any t gives a valid ρ: solve the bound at this t for ρ instead of trusting the root.
    terms = (target, math.log1p(1 / t), -log_odds / t, math.log1p(t) / t)
    rounded_down = math.fsum(terms) - _ROUNDING * math.fsum(abs(term) for term in terms)
    return max(rounded_down / (1 + t) * (1 - _ROUNDING), 0.0)


def rho_slope_at(epsilon: float | Fraction, failure_probability: float | Fraction) -> float:
    """Derivative dρ/dε = 1/α; between 0 and 1."""
    return 1 / (1 + _order_of(_checked(epsilon, "epsilon"), _log_odds(failure_probability)))


def rho_curvature_at(epsilon: float | Fraction, failure_probability: float | Fraction) -> float:
    """Second derivative d²ρ/dε² = t²/((2ρt + 1/(1 + t))(1 + t)³) > 0."""
    log_odds = _log_odds(failure_probability)
    t = _order_of(_checked(epsilon, "epsilon"), log_odds)
    rho = (log_odds - math.log1p(t)) / t**2
    return t**2 / ((2 * rho * t + 1 / (1 + t)) * (1 + t) ** 3)


def _best_order(rho: float, log_odds: float) -> float:
    """The t > 0 with ρt² = L − ln(1 + t), between 0 and the smaller of √(L/ρ) and 1/δ − 1."""
    low, high = 0.0, min(math.sqrt(log_odds / rho), math.expm1(min(log_odds, 700.0)))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rho * middle * middle < log_odds - math.log1p(middle):
            low = middle
        else:
            high = middle
    return high


def _order_of(epsilon: float, log_odds: float) -> float:
    """The t at which ρ(t) = (L − ln(1 + t))/t² converts to this ε: ρ(1 + 2t) + ln(t/(1 + t)), decreasing in t."""
    low, high = 0.0, math.expm1(min(log_odds, 700.0))
    for _ in range(_STEPS):
        # Geometric steps first: t spans many orders of magnitude.
        middle = math.sqrt(low * high) if low > 0 else min(high / 1e3, math.sqrt(high))
        if middle in (low, high):
            break
        rho = (log_odds - math.log1p(middle)) / middle**2
        if rho * (1 + 2 * middle) - math.log1p(1 / middle) > epsilon:
            low = middle
        else:
            high = middle
    return high


def _checked(amount: float | Fraction, name: str) -> float:
    value = float(amount)
    if not (math.isfinite(value) and value > 0):
        raise InvalidLoss(
            f"a conversion of {name} = {value}",
            why="only a positive, finite loss can be converted",
            instead=f"state a positive {name}",
        )
    return value


def _log_odds(failure_probability: float | Fraction) -> float:
    value = float(failure_probability)
    if not 0 < value < 1:
        raise InvalidLoss(
            f"a conversion at a failure probability of {value}",
            why="ρ gives a pure ε at no δ of 0, and nothing at a δ of 1",
            instead="state 0 < δ < 1, for example 1e-10",
        )
    return -math.log(value)
