"""Frontiers in closed form: the noise of a technology is known exactly, so its accuracy at every loss is too.

For noise scaled to a sensitivity, ESE(ε) = C·V(ε/Δ), so MRT = −C·V′/Δ and d²I/dε² = −C·V″/Δ²: for Laplace noise
V = 2/u², I = −2·C·Δ²/ε², MRT = 4·C·Δ²/ε³ (the paper's equation for the MRT), with C = ‖QA⁺‖²_F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.frontier.converted import in_epsilon
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.frontier import Measure
from dualmandate.frontier.numerics import SmoothCurve, derivative
from dualmandate.mechanism import Mechanism, Production
from dualmandate.population import PrivacyMeasure, Protection
from dualmandate.workload import Workload


@dataclass(frozen=True, eq=False)
class ClosedFormCurves:
    """Curves of one technology, from what it states about itself."""

    production: Production

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        logs = self._read_off(loss, measure)
        return _listed(self.production.table_errors(loss, measure)) if logs is None else np.exp(logs[0])

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        logs = self._read_off(loss, measure)
        if logs is None:
            return _listed(self.production.table_slopes(loss, measure))
        level, elasticity, _ = logs
        return np.exp(level) * elasticity / loss

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Curvatures of each table: stated by the technology for squared error, otherwise from its slopes."""
        if measure == "squared":
            return _listed(self.production.table_curvatures(loss))
        logs = self._read_off(loss, measure)
        if logs is None:
            return derivative(lambda at: self.slopes(at, measure), loss)
        level, elasticity, bend = logs
        return np.exp(level) * (bend + elasticity * (elasticity - 1.0)) / loss**2

    def inverse(self, expected_squared_error: float) -> float | None:
        """√(ESE(1)/ESE) where the error falls like 1/ε², as it does for Laplace noise; otherwise unknown."""
        unit = self.production.expected_squared_error(1.0)
        loss = math.sqrt(unit / expected_squared_error)
        probes = (loss, 0.01, 100.0)
        is_inverse_square = all(
            math.isclose(self.production.expected_squared_error(at) * at * at, unit, rel_tol=1e-14) for at in probes
        )
        return loss if is_inverse_square else None

    def technology(self, loss: float) -> str:
        """The same at every loss."""
        del loss
        return self.production.technology

    def allocation(self, loss: float) -> dict[str, float]:
        """All tables are measured together."""
        return {"all": loss}

    def _read_off(
        self, loss: float, measure: Measure
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Absolute errors of combined noise as logarithms, read off polynomials; None for all that is computed."""
        return self._absolute.logs(loss) if measure == "absolute" and self._absolute is not None else None

    @cached_property
    def _absolute(self) -> SmoothCurve | None:
        if not self.production.combines:
            return None
        return SmoothCurve(lambda loss: _listed(self.production.table_errors(loss, "absolute")))


def _listed(by_table: dict[str, float]) -> NDArray[np.float64]:
    return np.array(list(by_table.values()))


def priced(production: Production) -> CurveFrontier:
    """The frontier of a measurement, or of anything else that states its errors."""
    query_counts = {table.name: table.query_count for table in production.workload.tables}
    return CurveFrontier(production.technology, production.privacy_measure, query_counts, ClosedFormCurves(production))


def frontier_of(
    mechanism: Mechanism,
    workload: Workload,
    *,
    protection: Protection | None = None,
    failure_probability: float | None = None,
) -> CurveFrontier:
    """How much accuracy each privacy loss buys when a mechanism answers a workload.

    Without a `protection` it is the mechanism's own: add or remove one person, or replace one in randomized response.
    A technology under zCDP counts its loss in ρ; with a `failure_probability` δ the frontier is expressed in the ε
    that ρ implies at that δ.
    """
    production = mechanism.production(workload) if protection is None else mechanism.production(workload, protection)
    frontier = priced(production)
    if failure_probability is None or production.privacy_measure is PrivacyMeasure.PURE_DP:
        return frontier
    return in_epsilon(frontier, failure_probability)
