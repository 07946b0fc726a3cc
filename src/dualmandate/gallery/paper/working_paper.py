"""The planner of the earlier working papers: data-dependent technologies, worst-case accuracy, covarying tastes.

Accuracy there is I = 1 − α, with α the largest error of any query as a share of the population; the technology bounds
it by α = K·ε^(−b). Tastes for privacy γ and accuracy η covary with income y, so that society's willingness to accept
is R = (1 + cov(γ, y))/(1 + cov(η, y)), and MRT = R gives ε* = (b·K/R)^(1/(1+b)).
Source: the 2017 and 2014 working papers "Revisiting the Economics of Privacy".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.elicitation.interdependent import InterdependentPreferences
from dualmandate.frontier.worst_case import multiplicative_weights_exponential
from dualmandate.gallery.paper.row import Computed


@dataclass(frozen=True)
class Study:
    """One application of the 2017 paper: a survey's covariances and a synthetic population's size."""

    name: str
    population_size: float
    cells: int
    queries: int
    privacy_income_covariance: float  # cov(γ, y)
    accuracy_income_covariance: float  # cov(η, y)


STUDIES = (
    Study("income", 197_040_596, 797, 318_003, 0.083, 0.040),
    Study("health", 242_977_154, 800, 320_400, 0.0154, 0.076),
)


def computed() -> dict[str, Computed]:
    """The working papers' planner, re-derived."""
    return {**_exponential_mechanism(), **_private_multiplicative_weights()}


def _exponential_mechanism() -> dict[str, Computed]:
    found: dict[str, Computed] = {}
    for study in STUDIES:
        technology = multiplicative_weights_exponential(study.population_size, study.cells, study.queries)
        tastes = InterdependentPreferences(study.privacy_income_covariance, study.accuracy_income_covariance)
        choice = tastes.choose(technology)
        lost = tastes.welfare_change(technology, before=choice.epsilon, after=choice.epsilon / 2)
        error = technology.error(choice.epsilon)
        found |= {
            f"working_paper.{study.name}.epsilon": Computed.same(choice.epsilon),
            f"working_paper.{study.name}.accuracy": Computed.same(choice.accuracy),
            f"working_paper.{study.name}.rounds": Computed.same(9 * math.log(study.cells) / error**2),
            f"working_paper.{study.name}.halving": Computed.same(lost),
        }
    return found


def _private_multiplicative_weights() -> dict[str, Computed]:
    # The 2014 version prints R, ε* and I*, not the inputs of K: each of the two follows from a technology through the
    # other, because α* = R·ε*/b at an optimum on α = K·ε^(−b), whatever K.
    tastes = InterdependentPreferences(-0.1435, 0.1893)
    printed_epsilon, printed_accuracy, exponent = 0.0667, 0.9039, 0.5
    willingness = tastes.willingness_to_accept
    return {
        "working_paper.pmw.willingness": Computed.same(willingness),
        "working_paper.pmw.epsilon": Computed.same((1 - printed_accuracy) * exponent / willingness),
        "working_paper.pmw.accuracy": Computed.same(1 - willingness * printed_epsilon / exponent),
        "working_paper.health.slide": Computed.same((1 - 0.015) / (1 + 0.176)),
    }
