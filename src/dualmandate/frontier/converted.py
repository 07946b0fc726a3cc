"""A frontier in ρ, read in the ε that ρ implies at a stated failure probability δ (`population.loss`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.frontier import Frontier, Measure
from dualmandate.frontier.numerics import derivative
from dualmandate.population import PrivacyMeasure
from dualmandate.population.loss import epsilon_at, rho_at, rho_curvature_at, rho_slope_at


@dataclass(frozen=True, eq=False)
class ConvertedCurves:
    """Curves of a frontier in ρ as functions of ε, by the chain rule."""

    frontier: Frontier
    failure_probability: float  # δ

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        return _listed(self.frontier.table_errors(rho_at(loss, self.failure_probability), measure))

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Slopes in ρ, times ρ′."""
        rho, slope = rho_at(loss, self.failure_probability), rho_slope_at(loss, self.failure_probability)
        return _listed(self.frontier.table_slopes(rho, measure)) * slope

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Curvatures in ρ times ρ′², plus slopes times ρ″."""
        delta = self.failure_probability
        rho, slope, curvature = rho_at(loss, delta), rho_slope_at(loss, delta), rho_curvature_at(loss, delta)
        if isinstance(self.frontier, CurveFrontier):
            inner = _listed(self.frontier.table_curvatures(rho, measure))
        else:
            inner = derivative(lambda at: _listed(self.frontier.table_slopes(at, measure)), rho)
        return inner * slope**2 + _listed(self.frontier.table_slopes(rho, measure)) * curvature

    def inverse(self, expected_squared_error: float) -> float | None:
        """The ρ that buys this accuracy, as ε; 0 where nothing needs to be measured for it."""
        rho = self.frontier.epsilon_for(-expected_squared_error)
        return epsilon_at(rho, self.failure_probability) if rho > 0.0 else 0.0

    def technology(self, loss: float) -> str:
        return self.frontier.technology(rho_at(loss, self.failure_probability))

    def allocation(self, loss: float) -> dict[str, float]:
        """All tables together: the ε itself. Groups measured apart: their ρ, because ε at a δ does not add up."""
        groups = self.frontier.allocation(rho_at(loss, self.failure_probability))
        return groups if len(groups) > 1 else dict.fromkeys(groups, loss)


def in_epsilon(frontier: Frontier, failure_probability: float) -> CurveFrontier:
    """A frontier in ρ expressed in ε at a stated δ, by the tight conversion; a frontier in ε is refused."""
    if frontier.privacy_measure is not PrivacyMeasure.ZCDP:
        raise InvalidLoss(
            f"'{frontier.name}' counts its loss in {frontier.privacy_measure} already",
            why="only a concentrated loss is expressed in ε at a δ",
            instead="use the frontier as it is",
        )
    rho_at(1.0, failure_probability)  # refuses what is not a probability
    curves = ConvertedCurves(frontier, failure_probability)
    name = f"{frontier.name} at δ = {failure_probability:.3g}"
    return CurveFrontier(name, PrivacyMeasure.PURE_DP, frontier.query_counts, curves)


def _listed(by_table: dict[str, float]) -> NDArray[np.float64]:
    return np.array(list(by_table.values()))
