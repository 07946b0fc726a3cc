"""A frontier in ρ, read in the ε that ρ implies at a stated failure probability δ.

With L = ln(1/δ) and a = α − 1, ρ-zCDP implies (ε, δ) for ε(α) = αρ + h(a),
h(a) = L/a − ln(1 + 1/a) − ln(1 + a)/a. The best order α satisfies ρ = −h′(a) = (L − ln(1 + a))/a², so both ρ and
ε = h − α·h′ are known functions of the order, and by the envelope theorem dε/dρ = α, dα/dρ = −1/h″.
Source: [CKS20] proposition 12 (the conversion in `population.conversion`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.difference import derivative
from dualmandate.frontier.frontier import Frontier, Measure
from dualmandate.population import Currency


@dataclass(frozen=True)
class Conversion:
    """ρ as a function of ε at a failure probability δ, with its derivatives."""

    failure_probability: float

    def __post_init__(self) -> None:
        if not 0.0 < self.failure_probability < 1.0:
            raise InvalidLoss(
                f"a failure probability of {self.failure_probability}",
                why="a concentrated loss becomes an epsilon only up to a probability δ between 0 and 1",
                instead="state 0 < δ < 1, for example 1e-10",
            )

    def rho(self, epsilon: float) -> tuple[float, float, float]:
        """ρ(ε), ρ′ = 1/α and ρ″ = 1/(α³·h″)."""
        root = epsilon / (math.sqrt(epsilon + self._log) + math.sqrt(self._log))  # √ρ of the simple conversion
        above = self._order_where(lambda a: self._epsilon(a) - epsilon, guess=math.sqrt(self._log) / root)
        rho, alpha = self._rho(above), 1.0 + above
        curvature = 1.0 / (above * above * alpha) + 2.0 * rho / above
        return rho, 1.0 / alpha, 1.0 / (alpha**3 * curvature)

    def epsilon(self, rho: float) -> float:
        """ε(ρ); 0 where ρ is so small that δ alone covers it."""
        above = self._order_where(lambda a: self._rho(a) - rho, guess=math.sqrt(self._log / rho))
        return max(self._epsilon(above), 0.0)

    @property
    def _log(self) -> float:
        return -math.log(self.failure_probability)

    def _rho(self, above: float) -> float:
        return (self._log - math.log1p(above)) / above**2

    def _epsilon(self, above: float) -> float:
        bound = (self._log - math.log1p(above)) / above - math.log1p(1.0 / above)
        return bound + (1.0 + above) * self._rho(above)

    def _order_where(self, falling: Callable[[float], float], *, guess: float) -> float:
        """The a = α − 1 in (0, 1/δ − 1) at which a decreasing function of it is zero."""
        from scipy.optimize import brentq

        high = math.log(1.0 / self.failure_probability - 1.0)
        low = min(math.log(guess), high) - 1.0
        while falling(math.exp(low)) <= 0.0:
            low -= 2.0
        return math.exp(brentq(lambda x: falling(math.exp(x)), low, high, xtol=1e-15, rtol=8.9e-16))


@dataclass(frozen=True, eq=False)
class ConvertedCurves:
    """Curves of a frontier in ρ as functions of ε, by the chain rule."""

    frontier: Frontier
    conversion: Conversion

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Errors of each table at the ρ that this ε stands for."""
        return _listed(self.frontier.table_losses(self.conversion.rho(loss)[0], measure))

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Slopes in ρ, times ρ′."""
        rho, slope, _ = self.conversion.rho(loss)
        return _listed(self.frontier.table_slopes(rho, measure)) * slope

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Curvatures in ρ times ρ′², plus slopes times ρ″."""
        rho, slope, curvature = self.conversion.rho(loss)
        if isinstance(self.frontier, CurveFrontier):
            inner = _listed(self.frontier.table_curvatures(rho, measure))
        else:
            inner = derivative(lambda at: _listed(self.frontier.table_slopes(at, measure)), rho)
        return inner * slope**2 + _listed(self.frontier.table_slopes(rho, measure)) * curvature

    def inverse(self, expected_squared_error: float) -> float | None:
        """The ρ that buys this accuracy, as ε."""
        return self.conversion.epsilon(self.frontier.epsilon_for(-expected_squared_error))

    def technology(self, loss: float) -> str:
        """The technology at the ρ that this ε stands for."""
        return self.frontier.technology(self.conversion.rho(loss)[0])

    def allocation(self, loss: float) -> dict[str, float]:
        """All tables together: the ε itself. Groups measured apart: their ρ, because ε at a δ does not add up."""
        groups = self.frontier.allocation(self.conversion.rho(loss)[0])
        return groups if len(groups) > 1 else dict.fromkeys(groups, loss)


def in_epsilon(frontier: Frontier, failure_probability: float) -> CurveFrontier:
    """A frontier in ρ expressed in ε at a stated δ, by the tight conversion; a frontier in ε is refused."""
    if frontier.currency is not Currency.RHO:
        raise InvalidLoss(
            f"'{frontier.name}' counts its loss in {frontier.currency} already",
            why="only a concentrated loss is expressed in ε at a δ",
            instead="use the frontier as it is",
        )
    curves = ConvertedCurves(frontier, Conversion(failure_probability))
    name = f"{frontier.name} at δ = {failure_probability:.3g}"
    return CurveFrontier(name, Currency.EPSILON, frontier.query_counts, curves)


def _listed(by_table: dict[str, float]) -> NDArray[np.float64]:
    return np.array(list(by_table.values()))
