"""The planner of the earlier working papers: data-dependent technologies, worst-case accuracy, covarying tastes.

Accuracy there is I = 1 − α, with α the largest error of any query as a share of the population; the technology bounds
it by α = K·ε^(−b). Tastes for privacy γ and accuracy η covary with income y, so that society's willingness to accept
is R = (1 + cov(γ, y))/(1 + cov(η, y)), and MRT = R gives ε* = (b·K/R)^(1/(1+b)).
Source: the 2017 and 2014 working papers "Revisiting the Economics of Privacy".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.gallery.paper.row import CONFIRMED, Row

SECTION = "the earlier working papers"


@dataclass(frozen=True)
class PowerLawTechnology:
    """Worst-case error α = constant·ε^(−exponent), a share of the population in (0, 1)."""

    constant: float
    exponent: float

    def optimum(self, willingness_to_accept: float) -> float:
        """The ε at which the marginal rate of transformation bKε^(−b−1) equals society's willingness to accept."""
        return (self.exponent * self.constant / willingness_to_accept) ** (1 / (1 + self.exponent))

    def error(self, epsilon: float) -> float:
        """α at a privacy loss."""
        return self.constant * epsilon**-self.exponent


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
    printed: tuple[float, float, float, float]  # ε*, I*, rounds of MWEM, change in welfare at ε*/2


STUDIES = (
    Study("income", 197_040_596, 797, 318_003, 0.083, 0.040, (0.0442, 0.8620, 3158.7, -0.013381)),
    Study("health", 242_977_154, 800, 320_400, 0.0154, 0.076, (0.0451, 0.8722, 3684.6, -0.012822)),
)


def rows() -> list[Row]:
    """The working papers' planner, re-derived."""
    return [row for study in STUDIES for row in _study_rows(study)] + _private_multiplicative_weights_rows()


def _study_rows(study: Study) -> list[Row]:
    technology = multiplicative_weights_exponential(study.population_size, study.cells, study.queries)
    privacy_taste, accuracy_taste = 1 + study.privacy_income_covariance, 1 + study.accuracy_income_covariance
    epsilon = technology.optimum(privacy_taste / accuracy_taste)
    error = technology.error(epsilon)
    rounds = 9 * math.log(study.cells) / error**2
    welfare_change = accuracy_taste * (error - technology.error(epsilon / 2)) + privacy_taste * epsilon / 2
    values = (epsilon, 1 - error, rounds, welfare_change)
    names = (
        ("epsilon", "optimal privacy loss ε*", ""),
        ("accuracy", "optimal accuracy I* = 1 − α", "share"),
        ("rounds", "rounds of multiplicative weights at the optimum", ""),
        ("halving", "change in welfare when ε* is halved", "utility"),
    )
    return [
        Row(f"working_paper.{study.name}.{key}", SECTION, f"{study.name}: {what}", printed, value, value, CONFIRMED, unit)
        for (key, what, unit), printed, value in zip(names, study.printed, values, strict=True)
    ]


def _private_multiplicative_weights_rows() -> list[Row]:
    # The 2014 version prints R, ε* and I*, not the inputs of K; at an optimum on α = K·ε^(−b), α* = R·ε*/b whatever K.
    willingness = (1 - 0.1435) / (1 + 0.1893)
    printed_epsilon, printed_accuracy, exponent = 0.0667, 0.9039, 0.5
    epsilon = (1 - printed_accuracy) * exponent / willingness
    accuracy = 1 - willingness * printed_epsilon / exponent
    health = (1 - 0.015) / (1 + 0.176)
    note = "confirmed: at the optimum α* = R·ε*/b whatever the technology's constant, so each follows from the other"
    return [
        Row("working_paper.pmw.willingness", SECTION, "2014: society's willingness to accept R",
            0.720, willingness, willingness, CONFIRMED),
        Row("working_paper.pmw.epsilon", SECTION, "2014, private multiplicative weights (b = ½): ε* from I* and R",
            printed_epsilon, epsilon, epsilon, note),
        Row("working_paper.pmw.accuracy", SECTION, "2014, private multiplicative weights (b = ½): I* from ε* and R",
            printed_accuracy, accuracy, accuracy, note, "share"),
        Row("working_paper.health.slide", SECTION, "the health slide's willingness to accept",
            0.837, health, health, "confirmed to rounding of the printed covariances"),
    ]
