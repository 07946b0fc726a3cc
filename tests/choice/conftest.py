"""Small frontiers with known formulas, and the Title I program of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from dualmandate.choice import InformationUtility, LinearCost, PopulationGroup, SocialWelfare, TableValue
from dualmandate.population import PrivacyMeasure

TABLE = "eligible children by district"


@dataclass(frozen=True)
class PowerFrontier:
    """Loss c_t/ε^power in each table: Laplace noise (power 2), Gaussian noise in rho (power 1)."""

    coefficients: Mapping[str, float]
    power: float = 2.0
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
    counts: Mapping[str, int] = field(default_factory=dict)
    name: str = "power"

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.coefficients)

    @property
    def query_counts(self) -> Mapping[str, int]:
        return self.counts or dict.fromkeys(self.coefficients, 1)

    def table_errors(self, loss: float, measure: str = "squared") -> dict[str, float]:
        if measure == "absolute":  # Laplace: E|e| = 1/ε a query where c = 2 a query
            return {t: self.query_counts[t] * math.sqrt(c / 2 / self.query_counts[t]) / loss for t, c in self._items()}
        return {t: c * loss**-self.power for t, c in self._items()}

    def table_slopes(self, loss: float, measure: str = "squared") -> dict[str, float]:
        power = 1 if measure == "absolute" else self.power
        return {t: -power * value / loss for t, value in self.table_errors(loss, measure).items()}

    def expected_squared_error(self, loss: float) -> float:
        return math.fsum(self.table_errors(loss).values())

    def accuracy(self, loss: float) -> float:
        return -self.expected_squared_error(loss)

    def marginal_rate_of_transformation(self, loss: float) -> float:
        return -math.fsum(self.table_slopes(loss).values())

    def second_derivative(self, loss: float) -> float:
        return -self.power * (self.power + 1) * self.expected_squared_error(loss) / loss**2

    def epsilon_for(self, accuracy: float) -> float:
        return float((math.fsum(self.coefficients.values()) / -accuracy) ** (1 / self.power))

    def technology(self, loss: float) -> str:
        return self.name

    def allocation(self, loss: float) -> dict[str, float]:
        return {"all": loss}

    def _items(self) -> tuple[tuple[str, float], ...]:
        return tuple(self.coefficients.items())


@dataclass(frozen=True)
class GeometricFrontier:
    """Two-sided geometric noise on L disjoint counts: L/(2·sinh²(ε/2))."""

    count: int
    table: str = TABLE
    name: str = "geometric"
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)

    @property
    def query_counts(self) -> Mapping[str, int]:
        return {self.table: self.count}

    def table_errors(self, loss: float, measure: str = "squared") -> dict[str, float]:
        return {self.table: 2 * self.count * math.exp(-loss) / math.expm1(-loss) ** 2}

    def table_slopes(self, loss: float, measure: str = "squared") -> dict[str, float]:
        return {self.table: self.table_errors(loss)[self.table] * (1 + math.exp(-loss)) / math.expm1(-loss)}

    def expected_squared_error(self, loss: float) -> float:
        return self.table_errors(loss)[self.table]

    def accuracy(self, loss: float) -> float:
        return -self.expected_squared_error(loss)

    def marginal_rate_of_transformation(self, loss: float) -> float:
        return -self.table_slopes(loss)[self.table]

    def second_derivative(self, loss: float) -> float:
        return -self.count * (2 + math.cosh(loss)) / (4 * math.sinh(loss / 2) ** 4)

    def epsilon_for(self, accuracy: float) -> float:
        return 2 * math.asinh(math.sqrt(self.count / (-2 * accuracy)))

    def technology(self, loss: float) -> str:
        return self.name

    def allocation(self, loss: float) -> dict[str, float]:
        return {"all": loss}


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
