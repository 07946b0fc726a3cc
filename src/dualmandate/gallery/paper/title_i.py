"""Section V of the paper: Title I grants to school districts, every number recomputed; its assumptions changed in turn.

Eligible children of L districts are counted with noise; a district's grant is its count times C dollars. Society pays
k̄ per child and unit of ε, and one dollar for each squared dollar of a district's error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dualmandate.choice import (
    Choice,
    ExponentialCost,
    InformationUtility,
    LinearCost,
    SocialWelfare,
    TableValue,
    WealthRisk,
    choose,
    implied_weight,
)
from dualmandate.frontier import Frontier, frontier_of
from dualmandate.gallery.paper.row import Computed
from dualmandate.mechanism import mechanism_named
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import identity

PRINTED_EPSILON = 2.52
POPULATION_2014 = 318.6e6  # The United States had this many residents.
SCHOOL_LUNCH = 2.28  # USD, the paper's price of a lunch
IDENTITY_THEFT = LinearCost(1_400.0)  # USD per child per epsilon: $1,343, rounded up
UNCONDITIONAL_COST = 61.0  # USD per person and year: 15.4 billion of losses over 251 million residents of 16 and over
SMALL_DISTRICT = 10  # Eligible children: the statute's smallest count for a grant.


@dataclass(frozen=True)
class Calibration:
    """The paper's inputs, each of which a row may change."""

    districts: int = 13_000
    children: float = 46e6
    mean_squared_expenditure: float = 2.0e7  # C̄², USD² per child²
    information_utility: InformationUtility = IDENTITY_THEFT
    relative_privacy_weight: float = 1.0
    price: float = 1.0  # USD per USD²
    noise: str = "laplace"
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE

    @property
    def frontier(self) -> Frontier:
        """I(ε) of one count a district."""
        protection = Protection("child", self.neighbors)
        return frontier_of(mechanism_named(self.noise), identity(self.districts), protection=protection)

    @property
    def welfare(self) -> SocialWelfare:
        """The planner's welfare in dollars."""
        value = TableValue(
            self.frontier.tables[0],
            self.mean_squared_expenditure * self.price,
            unit="child",
            consequence=self.mean_squared_expenditure,
            price=self.price,
        )
        return SocialWelfare.uniform(
            self.children,
            self.information_utility,
            table_values=(value,),
            relative_privacy_weight=self.relative_privacy_weight,
            protected_unit="child",
        )

    @property
    def choice(self) -> Choice:
        """Where MRT = WTA."""
        return choose(self.frontier, self.welfare)

    def misallocation(self, epsilon: float) -> float:
        """RMSE of a district's grant, √(C̄²·ESE/L), USD."""
        squared = self.frontier.expected_squared_error(epsilon) / self.districts
        return math.sqrt(self.mean_squared_expenditure * squared)

    def per_student(self, epsilon: float) -> float:
        """The same spread over students, RMSE·L/N, USD."""
        return self.misallocation(epsilon) * self.districts / self.children


def title_i_numbers() -> dict[str, Computed]:
    """Every number that the section prints, and those under other costs, units, noise and neighbors."""
    paper = Calibration()
    return {
        **_benchmark(paper),
        **_wide_weight(paper),
        **_privacy_advocate(paper),
        **_costs(),
        **_noise(),
        **_utility(),
    }


def _benchmark(paper: Calibration) -> dict[str, Computed]:
    best = paper.choice
    slope = paper.frontier.marginal_rate_of_transformation(best.epsilon)
    return {
        "title_i.willingness_to_accept": Computed.same(best.willingness_to_accept),
        "title_i.epsilon": Computed.same(best.epsilon),
        "title_i.root_mean_squared_error": Computed.same(paper.misallocation(best.epsilon)),
        "title_i.root_mean_squared_error_as_printed": Computed.same(paper.misallocation(PRINTED_EPSILON)),
        "title_i.per_student": Computed.same(paper.per_student(best.epsilon)),
        "title_i.accuracy": Computed.same(best.accuracy),
        "title_i.privacy_cost": Computed.same(best.privacy_cost),
        "title_i.data_loss": Computed.same(best.data_loss),
        "title_i.sign": Computed.same(-slope),
    }


def _wide_weight(paper: Calibration) -> dict[str, Computed]:
    weight = paper.children / (POPULATION_2014 - paper.children)
    rounded = replace(paper, relative_privacy_weight=0.15)
    right = replace(paper, relative_privacy_weight=weight)
    printed, mended = rounded.choice.epsilon, right.choice.epsilon
    return {
        "title_i.weight_of_others": Computed.same(weight),
        "title_i.epsilon_of_others": Computed(printed, mended),
        "title_i.root_mean_squared_error_of_others": Computed(
            rounded.misallocation(printed), right.misallocation(mended)
        ),
        "title_i.per_student_of_others": Computed(rounded.per_student(printed), right.per_student(mended)),
    }


def _privacy_advocate(paper: Calibration) -> dict[str, Computed]:
    epsilon = 0.1
    per_student = paper.per_student(epsilon)
    return {
        "title_i.root_mean_squared_error_at_tenth": Computed.same(paper.misallocation(epsilon)),
        "title_i.per_student_at_tenth": Computed.same(per_student),
        "title_i.lunches": Computed.same(per_student / SCHOOL_LUNCH),
        "title_i.implied_weight": Computed.same(implied_weight(paper.frontier, paper.welfare, epsilon).value),
    }


def _costs() -> dict[str, Computed]:
    paper = Calibration()
    light = replace(paper, relative_privacy_weight=0.15)
    best, light_best = paper.choice.epsilon, light.choice.epsilon
    exponential = ExponentialCost(1_400.0)

    def against(changed: Calibration) -> Computed:
        return Computed(best, changed.choice.epsilon)

    return {
        "title_i.exponential": against(replace(paper, information_utility=exponential)),
        "title_i.exponential_of_others": Computed(
            light_best, replace(light, information_utility=exponential).choice.epsilon
        ),
        "title_i.linearity": Computed.same(math.expm1(best) / best),
        "title_i.linearity_of_others": Computed.same(math.expm1(light_best) / light_best),
        "title_i.marginal_linearity": Computed.same(math.exp(best)),
        "title_i.marginal_linearity_of_others": Computed.same(math.exp(light_best)),
        "title_i.worst_case_loss": Computed(math.expm1(best), -math.expm1(-best), math.expm1(PRINTED_EPSILON)),
        "title_i.unconditional": against(replace(paper, information_utility=LinearCost(UNCONDITIONAL_COST))),
        "title_i.in_cents": against(replace(paper, price=100.0)),
        "title_i.in_thousands": against(replace(paper, price=1e-3)),
        "title_i.replace_one": against(replace(paper, neighbors=Neighbors.REPLACE_ONE)),
    }


def _noise() -> dict[str, Computed]:
    paper, geometric = Calibration(), Calibration(noise="geometric")
    best, right = paper.choice.epsilon, geometric.choice.epsilon
    light = replace(paper, relative_privacy_weight=0.15)
    light_geometric = replace(geometric, relative_privacy_weight=0.15)
    light_best, light_right = light.choice.epsilon, light_geometric.choice.epsilon
    scale = 1 / 0.1  # Laplace noise at ε = 0.1
    return {
        "title_i.geometric": Computed(best, right),
        "title_i.geometric_error": Computed(paper.misallocation(best), geometric.misallocation(right)),
        "title_i.geometric_of_others": Computed(light_best, light_right),
        "title_i.geometric_error_of_others": Computed(
            light.misallocation(light_best), light_geometric.misallocation(light_right)
        ),
        "title_i.curvature": Computed.same(paper.frontier.second_derivative(best)),
        # E[max(0, n + X)] − n of Laplace noise X with scale s is (s/2)·e^(−n/s).
        "title_i.range_edit": Computed.same(scale / 2 * math.exp(-SMALL_DISTRICT / scale), paper=0.0),
    }


def _utility() -> dict[str, Computed]:
    """Exact cost of Laplace noise to a risk-averse person, over its Taylor approximation, at s = r|a|ΔA/ε."""
    risk = WealthRisk(risk_aversion=1.0, exposures=np.array([1.0]))
    return {f"utility.taylor.{s:g}": Computed.same(risk.diagnostic(1 / s).ratio, paper=1.0) for s in (0.5, 0.9)}
