"""What privacy loss costs one protected unit: κ(ε) in USD, and its slope κ'(ε).

Four forms, each with a parameter in its own unit. Linear is the paper's reading of Ghosh and Roth; exponential is the
worst case when utility is a cost; bounded is the worst case when it is a loss of something one has; posterior prices
what a stranger may come to believe. The logarithm of κ' is kept apart, because e^ε and e^−ε leave the range of floats
long before the search for the optimum ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from dualmandate.errors import InvalidPreferences
from dualmandate.population import PrivacyMeasure

FORMS = ("linear", "exponential", "bounded", "posterior")
LARGEST_EXPONENT = 709.0  # e^709 is still a float.


class InformationUtility(Protocol):
    """Cost of privacy loss to one protected unit (minus the paper's v^Info); increasing, 0 at no loss."""

    @property
    def form(self) -> str:
        """The word for it in a program file."""
        ...

    @property
    def parameter(self) -> float:
        """The mean disclosure cost, ≥ 0, in the unit of the form."""
        ...

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What the loss is counted in."""
        ...

    @property
    def convex(self) -> bool:
        """Whether each further unit of loss costs more than the last: one optimum then, on a concave frontier."""
        ...

    @property
    def most(self) -> float:
        """The cost when nothing is protected, USD; infinite where it has no bound."""
        ...

    def cost(self, loss: float) -> float:
        """κ, USD; infinite where it exceeds the range of floats."""
        ...

    def marginal_cost(self, loss: float) -> float:
        """κ', USD per unit of loss."""
        ...

    def log_marginal_cost(self, loss: float) -> float:
        """ln κ'; −∞ where the parameter is 0."""
        ...

    def scaled(self, factor: float) -> InformationUtility:
        """The same form with its parameter multiplied."""
        ...

    def unit(self, protected_unit: str) -> str:
        """The unit of the parameter, in words."""
        ...


@dataclass(frozen=True)
class LinearCost:
    """Each unit of loss costs the same: κ = k·ε. Source: Abowd and Schmutte 2019, section IV."""

    parameter: float  # k, USD per protected unit per unit of loss, ≥ 0
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
    form = "linear"
    convex = True

    def __post_init__(self) -> None:
        _check(self.parameter)

    @property
    def most(self) -> float:
        return math.inf if self.parameter > 0 else 0.0

    def cost(self, loss: float) -> float:
        return self.parameter * loss

    def marginal_cost(self, loss: float) -> float:  # noqa: ARG002 - the same at every loss
        """k, USD per unit of loss."""
        return self.parameter

    def log_marginal_cost(self, loss: float) -> float:  # noqa: ARG002 - the same at every loss
        return _log(self.parameter)

    def scaled(self, factor: float) -> LinearCost:
        return replace(self, parameter=self.parameter * factor)

    def unit(self, protected_unit: str) -> str:
        return f"USD per {protected_unit} per {self.privacy_measure}"


@dataclass(frozen=True)
class ExponentialCost:
    """Odds of harm may rise by the factor e^ε: κ = k·(e^ε − 1), k the expected harm when absent from the data."""

    parameter: float  # k, USD per protected unit, ≥ 0
    form = "exponential"
    convex = True
    privacy_measure = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        _check(self.parameter)

    @property
    def most(self) -> float:
        return math.inf if self.parameter > 0 else 0.0

    def cost(self, loss: float) -> float:
        return _times(self.parameter, math.expm1(loss) if loss <= LARGEST_EXPONENT else math.inf)

    def marginal_cost(self, loss: float) -> float:
        """k·e^ε, USD per epsilon."""
        return _exp(self.log_marginal_cost(loss))

    def log_marginal_cost(self, loss: float) -> float:
        return _log(self.parameter) + loss

    def scaled(self, factor: float) -> ExponentialCost:
        return replace(self, parameter=self.parameter * factor)

    def unit(self, protected_unit: str) -> str:
        return f"USD per {protected_unit}"


@dataclass(frozen=True)
class BoundedCost:
    """At most everything can be lost: κ = k·(1 − e^−ε), k all that can be lost. Welfare is then not concave."""

    parameter: float  # k, USD per protected unit, ≥ 0
    form = "bounded"
    convex = False
    privacy_measure = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        _check(self.parameter)

    @property
    def most(self) -> float:
        return self.parameter

    def cost(self, loss: float) -> float:
        return -self.parameter * math.expm1(-loss)

    def marginal_cost(self, loss: float) -> float:
        """k·e^−ε, USD per epsilon."""
        return _exp(self.log_marginal_cost(loss))

    def log_marginal_cost(self, loss: float) -> float:
        return _log(self.parameter) - loss

    def scaled(self, factor: float) -> BoundedCost:
        return replace(self, parameter=self.parameter * factor)

    def unit(self, protected_unit: str) -> str:
        return f"USD per {protected_unit}"


@dataclass(frozen=True)
class PosteriorCost:
    """What a stranger may come to believe is priced: κ = h·(q(ε) − p), q = p/(p + (1 − p)·e^−ε).

    Welfare is then not concave. p → 0 with h·p fixed is the exponential form; p = ½ is (h/2)·tanh(ε/2).
    """

    parameter: float  # h, USD per protected unit per certain disclosure, ≥ 0
    prior: float  # p, what was believed before, strictly between 0 and 1
    form = "posterior"
    convex = False
    privacy_measure = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        _check(self.parameter)
        if not 0 < self.prior < 1:
            raise InvalidPreferences(
                f"a prior of {self.prior}",
                why="who is already certain learns nothing",
                instead="state a prior strictly between 0 and 1",
            )

    @property
    def most(self) -> float:
        return self.parameter * (1 - self.prior)

    def belief(self, loss: float) -> float:
        """q, the most that someone with the prior may come to believe; a probability."""
        return self.prior / (self.prior + (1 - self.prior) * math.exp(-loss))

    def cost(self, loss: float) -> float:
        # q − p = p·(1 − p)·(1 − e^−ε)/(p + (1 − p)·e^−ε): no cancellation at small losses.
        odds = self.prior + (1 - self.prior) * math.exp(-loss)
        return self.parameter * self.prior * (1 - self.prior) * -math.expm1(-loss) / odds

    def marginal_cost(self, loss: float) -> float:
        """h·q·(1 − q), USD per epsilon."""
        return _exp(self.log_marginal_cost(loss))

    def log_marginal_cost(self, loss: float) -> float:
        logit = math.log(self.prior) - math.log1p(-self.prior) + loss
        return _log(self.parameter) - abs(logit) - 2 * math.log1p(math.exp(-abs(logit)))

    def scaled(self, factor: float) -> PosteriorCost:
        return replace(self, parameter=self.parameter * factor)

    def unit(self, protected_unit: str) -> str:
        return f"USD per {protected_unit} per disclosure"


def _check(parameter: float) -> None:
    if not math.isfinite(parameter) or parameter < 0:
        raise InvalidPreferences(
            f"a disclosure cost of {parameter}",
            why="privacy loss is a bad: it costs a finite amount, and not less than nothing",
            instead="state a finite cost of at least 0",
        )


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent <= LARGEST_EXPONENT else math.inf


def _times(parameter: float, value: float) -> float:
    return parameter * value if parameter > 0 else 0.0
