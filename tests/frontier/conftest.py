"""Small frontiers for the tests of this room: noise of one law, by table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.frontier import Frontier, Measure
from dualmandate.frontier.frontier import Curves
from dualmandate.frontier.numerics import derivative
from dualmandate.mechanism.mechanism import NoiseLaw

LawFrontier = Callable[[NoiseLaw, Mapping[str, float]], Frontier]


@dataclass(frozen=True, eq=False)
class LawCurves(Curves):
    """Every table is `coefficient` independent draws of one law, at unit sensitivity."""

    law: NoiseLaw
    coefficients: NDArray[np.float64]

    @property
    def convex_from(self) -> float:
        return 0.0

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        if measure == "largest variance":
            return np.full_like(self.coefficients, self.law.variance(loss))
        one = self.law.mean_absolute(loss) if measure == "absolute" else self.law.variance(loss)
        return self.coefficients * one

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        if measure == "largest variance":
            return np.full_like(self.coefficients, self.law.variance_slope(loss))
        one = self.law.mean_absolute_slope(loss) if measure == "absolute" else self.law.variance_slope(loss)
        return self.coefficients * one

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        if measure == "squared":
            return self.coefficients * self.law.variance_curvature(loss)
        return derivative(lambda at: self.slopes(at, measure), loss)

    def inverse(self, expected_squared_error: float) -> float | None:
        return None

    def technology(self, loss: float) -> str:
        return self.law.name

    def allocation(self, loss: float) -> dict[str, float]:
        return {"all": loss}


def law_frontier(law: NoiseLaw, coefficients: Mapping[str, float]) -> Frontier:
    curves = LawCurves(law, np.array(list(coefficients.values())))
    return Frontier(law.name, law.privacy_measure, {table: max(1, int(c)) for table, c in coefficients.items()}, curves)


@pytest.fixture(scope="session")
def of_law() -> LawFrontier:
    """Makes the frontier of a law from coefficients by table."""
    return law_frontier
