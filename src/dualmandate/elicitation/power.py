"""How many people to ask: from the precision of a survey to the precision of the privacy loss that it decides.

At an optimum whose privacy loss goes with the cost to the power −e (e = 1/3 for a linear cost and errors of c/ε²,
because ε* = (2c/K)^{1/3}), an estimate of the mean disclosure cost k from n people with coefficient of variation CV/√n
leaves ln ε* a standard error of e·CV/√n. ε* is then known within a factor of 1 + w with the confidence z for

    n = (z·e·CV / ln(1 + w))²
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualmandate.elicitation.design import Design
from dualmandate.errors import InvalidSurvey

CUBE_ROOT = 1 / 3  # elasticity of the optimum in the cost: linear cost, errors of c/ε²


@dataclass(frozen=True)
class Precision:
    """What is asked of a survey: ε* within ±`within` (a share) with this `confidence`.

    `elasticity` says by how many percent ε* falls when the cost rises by one.
    """

    within: float = 0.2
    confidence: float = 0.95
    elasticity: float = CUBE_ROOT

    def __post_init__(self) -> None:
        if not (self.within > 0 and 0 < self.confidence < 1 and self.elasticity > 0):
            raise InvalidSurvey(
                f"a precision of ±{self.within:.0%} with confidence {self.confidence:g}",
                why="a precision is a share above 0, a confidence lies between 0 and 1, an elasticity is positive",
                instead="state within = 0.2 and confidence = 0.95, or the like",
            )

    @property
    def _deviations(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1 + self.confidence) / 2))

    def respondents(self, coefficient_of_variation: float) -> int:
        """The fewest respondents that reach it; CV = 2.4149 asks for 75 at ±20 %."""
        share = self._deviations * self.elasticity * coefficient_of_variation / math.log1p(self.within)
        return max(1, math.ceil(share**2))

    def reached(self, coefficient_of_variation: float, respondents: int) -> float:
        """The share within which so many respondents bring ε*."""
        error = self.elasticity * coefficient_of_variation / math.sqrt(respondents)
        return math.expm1(self._deviations * error)


def coefficient_of_variation(
    design: Design, coefficients: Sequence[float], attribute: str, price: str, *, spread: float = 0.0
) -> float:
    """Standard error of the mean cost from one respondent of a design, over the cost; divide by √n for n respondents.

    The cost is a ratio of coefficients, k = β/β_price, so by the delta method var(ln k) = gᵀI⁻¹g with g = 1/β at the
    attribute and −1/β_price at the price, I the information of one respondent. `spread` is the coefficient of
    variation of k among people: its square is added, as people are a sample of everybody.
    """
    names = [each.name for each in design.attributes]
    gradient = np.zeros(len(names))
    for name, sign in ((attribute, 1.0), (price, -1.0)):
        gradient[names.index(name)] = sign / coefficients[names.index(name)]
    information = design.information(coefficients)
    # in units in which each coefficient is 1, or the inverse would mix dollars with epsilons
    scale = np.abs(np.asarray(coefficients, dtype=np.float64))
    scale[scale == 0] = 1.0
    covariance = np.linalg.inv(information * np.outer(scale, scale))
    return math.sqrt(float((gradient * scale) @ covariance @ (gradient * scale)) + spread**2)
