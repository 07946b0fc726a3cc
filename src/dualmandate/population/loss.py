"""Privacy loss as an exact number: ε of pure differential privacy, ρ of zero-concentrated, (ε, δ) for reporting.

A *chosen* loss is rounded down before noise is set; a *reported* one is exact or rounded up. How losses of several
releases compose is the matter of the accountant (`ledger.composition`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from fractions import Fraction

from dualmandate.errors import InvalidLoss
from dualmandate.population.rational import Written, rational

SIGNIFICANT_DIGITS = 5  # of a chosen loss
PRINTED_DIGITS = 6  # of a loss in words


class PrivacyMeasure(StrEnum):
    """What a privacy loss is counted in."""

    PURE_DP = "epsilon"
    ZCDP = "rho"


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
        return cls(Fraction(_rounded_up(Fraction(epsilon))), failure_probability=_exact(failure_probability))

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

    def __str__(self) -> str:
        amount = f"{self.privacy_measure} = {_printed(self.amount)}"
        return f"{amount}, δ = {_printed(self.failure_probability)}" if self.failure_probability else amount


def _exact(number: Written) -> Fraction:
    try:
        return rational(number)
    except ValueError as error:
        raise InvalidLoss(
            f"a privacy loss of {number}", why=f"it is {error}", instead="state a positive, finite number"
        ) from None


def _rounded_up(number: Fraction) -> Decimal:
    upward = Context(prec=PRINTED_DIGITS, rounding=ROUND_CEILING)
    return upward.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(upward)


def _printed(number: Fraction) -> str:
    rounded = _rounded_up(number)
    return f"{rounded:f}" if -5 < rounded.adjusted() < 15 else f"{rounded:e}"
