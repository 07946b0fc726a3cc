"""The planner of the earlier working papers: data-dependent technologies, worst-case accuracy, covarying tastes.

Accuracy there is I = 1 − α, with α the largest error of any query as a share of the population; the technology bounds
it by α = K·ε^(−b). Tastes for privacy γ and accuracy η covary with income y, so that society's willingness to accept
is R = (1 + cov(γ, y))/(1 + cov(η, y)), and MRT = R gives ε* = (b·K/R)^(1/(1+b)).
Source: the 2017 and 2014 working papers "Revisiting the Economics of Privacy".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.gallery.paper.row import Computed


@dataclass(frozen=True)
class PowerLawTechnology:
    """Worst-case error α = constant·ε^(−exponent), a share of the population in (0, 1)."""

    constant: float
    exponent: float

    def optimum(self, willingness_to_accept: float) -> float:
        """The ε at which the marginal rate of transformation bKε^(−b−1) equals society's willingness to accept."""
        return math.pow(self.exponent * self.constant / willingness_to_accept, 1 / (1 + self.exponent))

    def error(self, epsilon: float) -> float:
        """α at a privacy loss."""
        return self.constant * math.pow(epsilon, -self.exponent)


def multiplicative_weights_exponential(population_size: float, cells: int, queries: int) -> PowerLawTechnology:
    """MWEM (Hardt, Ligett and McSherry 2012): b = 1/3, K = 3·(10·ln k·ln|χ|/n)^(1/3)."""
    return PowerLawTechnology(3 * (10 * math.log(queries) * math.log(cells) / population_size) ** (1 / 3), 1 / 3)


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
        privacy_taste, accuracy_taste = 1 + study.privacy_income_covariance, 1 + study.accuracy_income_covariance
        epsilon = technology.optimum(privacy_taste / accuracy_taste)
        error = technology.error(epsilon)
        lost = accuracy_taste * (error - technology.error(epsilon / 2)) + privacy_taste * epsilon / 2
        found |= {
            f"working_paper.{study.name}.epsilon": Computed.same(epsilon),
            f"working_paper.{study.name}.accuracy": Computed.same(1 - error),
            f"working_paper.{study.name}.rounds": Computed.same(9 * math.log(study.cells) / error**2),
            f"working_paper.{study.name}.halving": Computed.same(lost),
        }
    return found


def _private_multiplicative_weights() -> dict[str, Computed]:
    # The 2014 version prints R, ε* and I*, not the inputs of K; at an optimum on α = K·ε^(−b), α* = R·ε*/b whatever K.
    willingness = (1 - 0.1435) / (1 + 0.1893)
    printed_epsilon, printed_accuracy, exponent = 0.0667, 0.9039, 0.5
    return {
        "working_paper.pmw.willingness": Computed.same(willingness),
        "working_paper.pmw.epsilon": Computed.same((1 - printed_accuracy) * exponent / willingness),
        "working_paper.pmw.accuracy": Computed.same(1 - willingness * printed_epsilon / exponent),
        "working_paper.health.slide": Computed.same((1 - 0.015) / (1 + 0.176)),
    }
