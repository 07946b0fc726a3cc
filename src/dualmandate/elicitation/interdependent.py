"""Tastes that covary with income: the working papers' own way from opinions to a privacy loss.

People care about their own privacy and data, and about those of others in proportion to income. Society's willingness
to accept privacy loss for accuracy is then R = (1 + cov(γ, y))/(1 + cov(η, y)), γ the taste for privacy, η the taste
for accuracy, y income [ASWP]. The covariances come from opinions on ordered scales, as polychoric correlations: all
three variables have variance one there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.elicitation.polychoric import Polychoric, Steps, answer_table, polychoric
from dualmandate.elicitation.willingness import critical_value
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier.worst_case import PowerLawTechnology
from dualmandate.population.wording import exact, number


@dataclass(frozen=True)
class InterdependentChoice:
    """The privacy loss at which the technology's rate equals society's, with its interval from the covariances."""

    epsilon: float
    accuracy: float  # I = 1 − α, a share
    willingness_to_accept: float
    epsilon_interval: tuple[float, float] | None  # None where the covariances have no stated errors
    accuracy_interval: tuple[float, float] | None
    level: float = 0.95

    def __str__(self) -> str:
        rate = number(self.willingness_to_accept)
        words = f"ε = {number(self.epsilon)} and I = {number(self.accuracy)}, where MRT = WTA = {rate}"
        if self.epsilon_interval is None:
            return words
        low, high = self.epsilon_interval
        return f"{words} ({100 * self.level:g} % interval of ε {number(low)} to {number(high)})"


@dataclass(frozen=True, eq=False)
class InterdependentPreferences:
    """Covariances of tastes with income, and how sure they are."""

    privacy_income_covariance: float  # cov(γ, y) > −1
    accuracy_income_covariance: float  # cov(η, y) > −1
    covariance: NDArray[np.float64] | None = None  # (2, 2), of the two estimates; None where they are only stated

    def __post_init__(self) -> None:
        for name, stated in (
            ("privacy", self.privacy_income_covariance),
            ("accuracy", self.accuracy_income_covariance),
        ):
            if not (math.isfinite(stated) and stated > -1.0):
                raise InvalidPreferences(
                    f"a covariance of {exact(stated)} between the taste for {name} and income",
                    why="at −1 and below society would want less of it for nothing",
                    instead="state a covariance above −1; income and tastes are measured in standard deviations",
                )

    @classmethod
    def of_answers(
        cls, income: ArrayLike, privacy: ArrayLike, accuracy: ArrayLike, *, method: Steps = "two-step"
    ) -> InterdependentPreferences:
        """From answers on ordered scales, one row a person, not a number where missing.

        The two correlations share people and their incomes; how far their errors hang together is worked out from the
        influence of each person on both.
        """
        pairs = [(income, privacy), (income, accuracy)]
        found = [polychoric(answer_table(*pair), method=method) for pair in pairs]
        influences = [_influence(each, *pair) for each, pair in zip(found, pairs, strict=True)]
        sizes = np.array([each.observations for each in found])
        joint = np.array([[one @ other for one in influences] for other in influences]) / np.outer(sizes, sizes)
        return cls(found[0].correlation, found[1].correlation, joint)

    @property
    def willingness_to_accept(self) -> float:
        """R = (1 + cov(γ, y))/(1 + cov(η, y)): accuracy for a unit of privacy loss."""
        return (1.0 + self.privacy_income_covariance) / (1.0 + self.accuracy_income_covariance)

    @property
    def standard_error(self) -> float | None:
        """The standard error of R, by the delta method."""
        return None if self.covariance is None else self.willingness_to_accept * self._log_error()

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """An interval for R, symmetric in its logarithm."""
        if self.covariance is None:
            return None
        width = critical_value(level) * self._log_error()
        return self.willingness_to_accept * math.exp(-width), self.willingness_to_accept * math.exp(width)

    def choose(self, technology: PowerLawTechnology, *, level: float = 0.95) -> InterdependentChoice:
        """ε* = (b·K/R)^(1/(1+b)); refused where the technology guarantees nothing there."""
        epsilon = technology.optimum(self.willingness_to_accept)
        accuracy = technology.accuracy(epsilon)
        if accuracy <= 0.0:
            raise NoOptimum(
                f"at ε = {number(epsilon)} the technology guarantees no accuracy",
                why="its worst error is at least the whole population",
                instead="count more people, ask fewer queries, or publish nothing",
            )
        band = self.interval(level)
        if band is None:
            return InterdependentChoice(epsilon, accuracy, self.willingness_to_accept, None, None, level)
        losses = technology.optimum(band[1]), technology.optimum(band[0])  # a higher R means a lower ε
        gains = technology.accuracy(losses[0]), technology.accuracy(losses[1])
        return InterdependentChoice(epsilon, accuracy, self.willingness_to_accept, losses, gains, level)

    def welfare_change(self, technology: PowerLawTechnology, *, before: float, after: float) -> float:
        """Mean change of utility when the privacy loss goes from `before` to `after`: (1 + cov η)ΔI − (1 + cov γ)Δε."""
        gained = technology.accuracy(after) - technology.accuracy(before)
        return (1.0 + self.accuracy_income_covariance) * gained - (1.0 + self.privacy_income_covariance) * (
            after - before
        )

    def _log_error(self) -> float:
        assert self.covariance is not None
        gradient = np.array(
            [1.0 / (1.0 + self.privacy_income_covariance), -1.0 / (1.0 + self.accuracy_income_covariance)]
        )
        return math.sqrt(float(gradient @ self.covariance @ gradient))


def _influence(found: Polychoric, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """(people,): influence of each person on a correlation; 0 for those who did not answer."""
    answers = [np.asarray(column, dtype=np.float64) for column in (first, second)]
    given = np.isfinite(answers[0]) & np.isfinite(answers[1])
    places = tuple(np.unique(column[given], return_inverse=True)[1] for column in answers)
    each = np.zeros(len(given))
    each[given] = found.influence[places]
    return each
