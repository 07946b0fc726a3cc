"""Frontiers small enough to check by hand: c/ε² a table, and its geometric twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dualmandate.choice import BoundedCost, Choice, Limits, LinearCost, SocialWelfare, TableValue, choose
from dualmandate.choice.welfare import InformationUtility
from dualmandate.frontier import Curves, Frontier, Measure
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats
from dualmandate.report.figures import Figure
from dualmandate.report.theme import WIDE

DISTRICTS = "eligible children by district"


@dataclass(frozen=True, eq=False)
class SmallCurves(Curves):
    """Noise of variance 2/ε² (Laplace), or 1/(2 sinh²(ε/2)) (geometric), on every number of every table."""

    name: str
    counts: Floats

    def values(self, loss: float, measure: Measure) -> Floats:
        if measure != "squared":
            return self.counts / loss
        return self.counts * (2 / loss**2 if self.name == "laplace" else 1 / (2 * math.sinh(loss / 2) ** 2))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        if measure != "squared":
            return -self.counts / loss**2
        if self.name == "laplace":
            return self.counts * (-4 / loss**3)
        return self.counts * (-math.cosh(loss / 2) / (2 * math.sinh(loss / 2) ** 3))

    def technology(self, loss: float) -> str:
        return self.name


class SmallFrontier(Frontier):
    """The frontier of such noise."""

    def __init__(
        self,
        name: str,
        query_counts: Mapping[str, int],
        privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
    ) -> None:
        curves = SmallCurves(name, np.array(list(query_counts.values()), dtype=np.float64))
        super().__init__(name, privacy_measure, query_counts, curves)


def title_i_welfare(cost: InformationUtility | None = None) -> SocialWelfare:
    """46 million children at 1,400 USD per epsilon against squared errors of 13,000 districts at 2e7 USD each."""
    value = TableValue(DISTRICTS, 2e7, unit="child", consequence=2e7, price=1.0)
    return SocialWelfare.uniform(46e6, cost or LinearCost(1400.0), table_values=(value,), protected_unit="child")


@dataclass(frozen=True)
class Case:
    """A frontier, preferences, limits and the choice that follows."""

    frontier: SmallFrontier
    welfare: SocialWelfare
    limits: Limits
    choice: Choice

    @classmethod
    def of(cls, welfare: SocialWelfare, limits: Limits | None = None, frontier: SmallFrontier | None = None) -> Case:
        frontier, limits = frontier or SmallFrontier("laplace", {DISTRICTS: 13_000}), limits or Limits()
        return cls(frontier, welfare, limits, choose(frontier, welfare, limits))


@pytest.fixture(scope="session")
def laplace() -> SmallFrontier:
    return SmallFrontier("laplace", {DISTRICTS: 13_000})


@pytest.fixture(scope="session")
def geometric() -> SmallFrontier:
    return SmallFrontier("geometric", {DISTRICTS: 13_000})


@pytest.fixture(scope="session")
def title_i() -> Case:
    return Case.of(title_i_welfare())


@pytest.fixture(scope="session")
def capped() -> Case:
    return Case.of(title_i_welfare(), Limits(largest_epsilon=2.0))


@pytest.fixture(scope="session")
def fit_for_use() -> Case:
    return Case.of(title_i_welfare(), Limits(consequence_floors={DISTRICTS: 2000.0}))


@pytest.fixture(scope="session")
def bounded() -> Case:
    return Case.of(title_i_welfare(BoundedCost(20_000.0)), Limits(largest_epsilon=9.0))


@pytest.fixture(scope="session")
def two_tables() -> Case:
    """Two tables in two units, one with absolute loss: welfare is no function of accuracy alone."""
    values = (
        TableValue("children", 2e7, unit="child", consequence=2e7, price=1.0),
        TableValue("hours", 500.0, "absolute", unit="hour"),
    )
    welfare = SocialWelfare.uniform(46e6, LinearCost(1400.0), table_values=values, protected_unit="child")
    return Case.of(welfare, frontier=SmallFrontier("laplace", {"children": 13_000, "hours": 40}))


Units = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def units() -> Units:
    """Every mark of a picture with its data and encoding, from all layers and panels."""

    def walk(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for inner in (*part.get("layer", ()), *part.get("vconcat", ())):
            yield from walk(inner)
        if "mark" in part:
            yield {"name": "", **part}

    def found(figure: Figure, width: int = WIDE) -> list[dict[str, Any]]:
        return list(walk(figure.specification(width)))

    return found


def lies_on(drawn: list[dict[str, float]], curve: list[dict[str, float]]) -> bool:
    """Whether a line is drawn through one stretch of a curve's rows, cut at most where it leaves its plane."""
    through = [row for row in drawn if row in curve]
    first = curve.index(through[0]) if through else 0
    return through == curve[first : first + len(through)] and len(drawn) <= len(through) + 2 <= len(curve) + 2
