"""Small frontiers with known formulas, and the Title I program of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from dualmandate.choice import InformationUtility, LinearCost, PopulationGroup, SocialWelfare, TableValue
from dualmandate.frontier import Curves, Frontier, Measure
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats

TABLE = "eligible children by district"


@dataclass(frozen=True, eq=False)
class PowerCurves(Curves):
    """c_t/ε^power in each table."""

    coefficients: tuple[float, ...]
    counts: tuple[int, ...]
    power: float

    def values(self, loss: float, measure: Measure) -> Floats:
        if measure == "absolute":  # Laplace: E|e| = 1/ε a query where c = 2 a query
            pairs = zip(self.coefficients, self.counts, strict=True)
            return np.array([count * math.sqrt(c / 2 / count) / loss for c, count in pairs])
        return np.array([c * loss**-self.power for c in self.coefficients])

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return -(1 if measure == "absolute" else self.power) * self.values(loss, measure) / loss

    def technology(self, loss: float) -> str:
        return "power"


class PowerFrontier(Frontier):
    """Loss c_t/ε^power in each table: Laplace noise (power 2), Gaussian noise in rho (power 1)."""

    def __init__(
        self,
        coefficients: Mapping[str, float],
        power: float = 2.0,
        privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
        counts: Mapping[str, int] | None = None,
        name: str = "power",
    ) -> None:
        queries = counts or dict.fromkeys(coefficients, 1)
        curves = PowerCurves(tuple(coefficients.values()), tuple(queries[table] for table in coefficients), power)
        super().__init__(name, privacy_measure, {table: queries[table] for table in coefficients}, curves)


@dataclass(frozen=True, eq=False)
class GeometricCurves(Curves):
    """L/(2·sinh²(ε/2))."""

    count: int

    def values(self, loss: float, measure: Measure) -> Floats:
        return np.array([2 * self.count * math.exp(-loss) / math.expm1(-loss) ** 2])

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return self.values(loss, measure) * (1 + math.exp(-loss)) / math.expm1(-loss)

    def technology(self, loss: float) -> str:
        return "geometric"


class GeometricFrontier(Frontier):
    """Two-sided geometric noise on L disjoint counts."""

    def __init__(self, count: int, table: str = TABLE) -> None:
        super().__init__("geometric", PrivacyMeasure.PURE_DP, {table: count}, GeometricCurves(count))


@dataclass(frozen=True)
class TitleI:
    """The paper's program: counts of eligible children by district."""

    districts: int = 13_000
    children: float = 46e6
    squared_cost: float = 2.0e7  # USD² per child²
    cost: float = 1_400.0  # USD per child per epsilon
    table: str = TABLE

    @property
    def coefficient(self) -> float:
        """2c/K of the paper's case: the cube of its optimum."""
        return 4 * self.districts * self.squared_cost / (self.children * self.cost)

    def laplace(self, sensitivity: float = 1.0) -> PowerFrontier:
        """Expected squared error 2·L·Δ²/ε²."""
        squared = 2.0 * self.districts * sensitivity**2
        return PowerFrontier({self.table: squared}, counts={self.table: self.districts}, name="laplace")

    def geometric(self) -> GeometricFrontier:
        """The same with whole-number noise."""
        return GeometricFrontier(self.districts, self.table)

    def value(self, *, price: float = 1.0, squared_cost: float | None = None) -> TableValue:
        """Squared misallocation at a price."""
        squared = self.squared_cost if squared_cost is None else squared_cost
        return TableValue(self.table, squared * price, unit="child", consequence=squared, price=price)

    def welfare(
        self, utility: InformationUtility | None = None, *, weight: float = 1.0, value: TableValue | None = None
    ) -> SocialWelfare:
        """Welfare with the paper's numbers where nothing else is said."""
        group = PopulationGroup("everybody", self.children, utility or LinearCost(self.cost), weight)
        return SocialWelfare((group,), (value or self.value(),), protected_unit="child")


@pytest.fixture(scope="session")
def title_i() -> TitleI:
    return TitleI()


@pytest.fixture(scope="session")
def power_frontier() -> type[PowerFrontier]:
    """Frontiers c/ε^power, to be made in a test."""
    return PowerFrontier
