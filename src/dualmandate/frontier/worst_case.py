"""Technologies known by a bound on their worst error: multiplicative weights, as in the earlier working papers.

Accuracy is I = 1 − α there, with α the largest error of any query as a share of the population; a technology bounds it
by α = K·ε^(−b) [ASWP]. These are guarantees, not expected errors, so they stand beside the other frontiers, not among
them: a bound that holds for every data set says little about the error on one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.mechanism import positive_loss


@dataclass(frozen=True)
class PowerLawTechnology:
    """Worst-case error α = constant·ε^(−exponent), a share of the population."""

    constant: float  # > 0
    exponent: float  # > 0

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) and number > 0 for number in (self.constant, self.exponent)):
            raise InvalidMechanism(
                f"a worst error of {self.constant:g}·ε^(−{self.exponent:g})",
                why="an error is positive and falls as the privacy loss rises",
                instead="state a positive constant and a positive exponent",
            )

    def error(self, epsilon: float) -> float:
        """α at a privacy loss."""
        return self.constant * math.pow(positive_loss(epsilon), -self.exponent)

    def accuracy(self, epsilon: float) -> float:
        """I = 1 − α; 1 is perfect, and 0 or less is no guarantee at all."""
        return 1.0 - self.error(epsilon)

    def marginal_rate_of_transformation(self, epsilon: float) -> float:
        """dI/dε = b·K·ε^(−b−1) > 0."""
        return self.exponent * self.error(epsilon) / epsilon

    def epsilon_for(self, accuracy: float) -> float:
        """The privacy loss that buys an accuracy I < 1."""
        if not accuracy < 1.0:
            raise InvalidLoss(
                f"no privacy loss buys an accuracy of {accuracy:g}",
                why="a worst error of zero takes an infinite privacy loss",
                instead="ask for an accuracy below 1",
            )
        return math.pow(self.constant / (1.0 - accuracy), 1.0 / self.exponent)

    def optimum(self, willingness_to_accept: float) -> float:
        """The ε at which MRT equals society's willingness to accept R: (b·K/R)^(1/(1+b))."""
        return math.pow(self.exponent * self.constant / willingness_to_accept, 1 / (1 + self.exponent))


def multiplicative_weights_exponential(population_size: float, cells: int, queries: int) -> PowerLawTechnology:
    """MWEM [HLM12]: b = 1/3, K = 3·(10·ln k·ln|χ|/n)^(1/3)."""
    return PowerLawTechnology(3 * (10 * math.log(queries) * math.log(cells) / population_size) ** (1 / 3), 1 / 3)


def private_multiplicative_weights(
    population_size: float, cells: int, queries: int, *, failure_probability: float, miss_probability: float
) -> PowerLawTechnology:
    """PMW [HR10]: b = 1/2, K = 8·√(3·ln(k/β)·ln(4/δ))·(ln|χ|)^(1/4)/√n.

    The privacy loss is exceeded with probability at most `failure_probability` δ, and the error with probability at
    most `miss_probability` β.
    """
    logs = 3 * math.log(queries / miss_probability) * math.log(4 / failure_probability)
    return PowerLawTechnology(8 * math.sqrt(logs / population_size) * math.log(cells) ** 0.25, 0.5)
