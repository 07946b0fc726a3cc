"""Privacy loss as an exact number: ε of pure differential privacy, ρ of zero-concentrated, (ε, δ) for reporting.

A *chosen* loss is rounded down before noise is set; a *reported* one is exact or rounded up. How losses of several
releases compose is the matter of the accountant (`ledger.composition`).

ρ-zCDP gives (ε, δ) for δ = inf over α > 1 of exp((α − 1)(αρ − ε))/(α − 1)·(1 − 1/α)^α. Solved for ε, with t = α − 1
and L = ln(1/δ):  ε = ρ(1 + t) + ln(t/(1 + t)) + (L − ln(1 + t))/t,  least where  ρt² = L − ln(1 + t).
The two sides of the last equation run in opposite directions, so t is found safely, and every t gives a valid ε: the
tight conversion of [CKS20].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from dualmandate.errors import InvalidLoss
from dualmandate.population.arguments import checked_class
from dualmandate.population.rational import Written, rational_or, rounded_up

SIGNIFICANT_DIGITS = 5  # of a chosen loss
PRINTED_DIGITS = 6  # of a loss in words
_ROUNDING = 32 * 2.0**-53  # more than the relative rounding error of any sum below
_STEPS = 200  # bisections; 64-bit numbers are exhausted long before


class PrivacyMeasure(StrEnum):
    """What a privacy loss is counted in."""

    PURE_DP = "epsilon"
    ZCDP = "rho"


@checked_class
@dataclass(frozen=True)
class PrivacyLoss:
    """An exact privacy loss: `amount` of ε (pure) or of ρ (zCDP).

    With a `failure_probability` δ > 0 it is an (ε, δ) statement: for reports, never to be added up.
    """

    amount: Fraction
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
    failure_probability: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Fraction) or not isinstance(self.failure_probability, Fraction):
            object.__setattr__(self, "amount", _exact(self.amount))
            object.__setattr__(self, "failure_probability", _exact(self.failure_probability))
        object.__setattr__(self, "privacy_measure", PrivacyMeasure(self.privacy_measure))
        if self.amount <= 0:
            raise InvalidLoss(
                f"a privacy loss of {self.amount} {self.privacy_measure}",
                why="a release with no privacy loss says nothing about the data, and a negative one does not exist",
                instead=f"state a positive {self.privacy_measure}",
            )
        if not 0 <= self.failure_probability < 1 or (
            self.failure_probability and self.privacy_measure is PrivacyMeasure.ZCDP
        ):
            raise InvalidLoss(
                f"a failure probability of {self.failure_probability} with {self.privacy_measure}",
                why="δ is a probability below 1, and belongs to an epsilon",
                instead="state 0 < δ < 1 with an epsilon, or no δ",
            )

    @classmethod
    def pure(cls, epsilon: Written) -> PrivacyLoss:
        """ε-differential privacy."""
        return cls(_exact(epsilon))

    @classmethod
    def concentrated(cls, rho: Written) -> PrivacyLoss:
        """ρ-zero-concentrated differential privacy."""
        return cls(_exact(rho), PrivacyMeasure.ZCDP)

    @classmethod
    def reported(cls, epsilon: float, failure_probability: Written = 0) -> PrivacyLoss:
        """An ε computed for a report, rounded up to six significant decimal digits, with its δ."""
        if not math.isfinite(epsilon) or epsilon <= 0:
            raise InvalidLoss(
                f"a reported epsilon of {epsilon}",
                why="a report states a positive, finite loss",
                instead="report the loss of a release that was made",
            )
        return cls(
            Fraction(rounded_up(Fraction(epsilon), PRINTED_DIGITS)), failure_probability=_exact(failure_probability)
        )

    @classmethod
    def chosen(cls, amount: float, privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP) -> PrivacyLoss:
        """A loss found by the planner, rounded down to five significant decimal digits: 2.527644… → 6319/2500."""
        if not math.isfinite(amount) or amount <= 0:
            raise InvalidLoss(
                f"a chosen {privacy_measure} of {amount}",
                why="noise is set by a positive, finite loss",
                instead=f"choose a positive {privacy_measure}",
            )
        exact = Fraction(amount)
        step = Fraction(10) ** (math.floor(math.log10(amount)) - SIGNIFICANT_DIGITS + 1)
        rounded = exact // step * step
        return cls(rounded if rounded > 0 else exact, privacy_measure)

    def for_records(self, records: int) -> PrivacyLoss:
        """Group privacy, the loss of records that change together: mε [DMNS06], or m²ρ [BS16]."""
        if records < 1 or self.failure_probability:
            raise InvalidLoss(
                f"the loss of {records} records from {self}",
                why="group privacy is stated for a whole number of records and a pure or concentrated loss",
                instead="ask for at least one record",
            )
        power = 2 if self.privacy_measure is PrivacyMeasure.ZCDP else 1
        return PrivacyLoss(self.amount * records**power, self.privacy_measure)

    def in_rho(self) -> PrivacyLoss:
        """A pure ε as the ρ it implies, ε²/2 (Bun and Steinke 2016)."""
        if self.privacy_measure is PrivacyMeasure.ZCDP:
            return self
        if self.failure_probability:
            raise InvalidLoss(
                f"cannot express {self} in rho",
                why="an (ε, δ) statement does not imply a ρ",
                instead="start from the ρ or the pure ε of the mechanism",
            )
        return PrivacyLoss.concentrated(self.amount**2 / 2)

    def exact(self) -> str:
        """The amount as an exact string: "6319/2500"."""
        return str(self.amount)

    def __float__(self) -> float:
        return float(self.amount)

    def __repr__(self) -> str:
        return f"PrivacyLoss({self})"

    def __str__(self) -> str:
        amount = f"{self.privacy_measure} = {_printed(self.amount)}"
        return f"{amount}, δ = {_printed(self.failure_probability)}" if self.failure_probability else amount


def _exact(number: Written) -> Fraction:
    return rational_or(
        InvalidLoss, number, what=f"a privacy loss of {number}", instead="state a positive, finite number"
    )


def _printed(number: Fraction) -> str:
    rounded = rounded_up(number, PRINTED_DIGITS).normalize()
    return f"{rounded:f}" if -5 < rounded.adjusted() < 15 else f"{rounded:e}"


def epsilon_at(rho: float | Fraction, failure_probability: float | Fraction) -> float:
    """The smallest ε that a ρ implies at this δ, rounded up; 0 where δ alone covers the loss."""
    concentrated, log_odds = _checked(rho, "rho"), _log_odds(failure_probability)
    t = _best_order(concentrated, log_odds)
    terms = (concentrated * (1 + t), -math.log1p(1 / t), log_odds / t, -math.log1p(t) / t)
    return max(math.fsum(terms) + _ROUNDING * math.fsum(abs(term) for term in terms), 0.0)


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
    high = min(math.sqrt(log_odds / rho), math.expm1(min(log_odds, 700.0)))
    return _bisected(lambda t: rho * t * t < log_odds - math.log1p(t), high)


def _order_of(epsilon: float, log_odds: float) -> float:
    """The t at which ρ(t) = (L − ln(1 + t))/t² converts to this ε: ρ(1 + 2t) + ln(t/(1 + t)), decreasing in t."""

    def too_low(t: float) -> bool:
        return (log_odds - math.log1p(t)) / t**2 * (1 + 2 * t) - math.log1p(1 / t) > epsilon

    return _bisected(too_low, math.expm1(min(log_odds, 700.0)))


def _bisected(too_low: Callable[[float], bool], high: float) -> float:
    """The least t that is not too low, to the last digit."""
    low = 0.0
    for _ in range(_STEPS):
        # Geometric steps first: t spans many orders of magnitude.
        middle = math.sqrt(low * high) if low > 0 else min(high / 1e3, math.sqrt(high))
        if middle in (low, high):
            break
        low, high = (middle, high) if too_low(middle) else (low, middle)
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
