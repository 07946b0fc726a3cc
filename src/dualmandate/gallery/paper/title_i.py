"""Section V of the paper: Title I grants to school districts, every number recomputed.

Eligible children of L districts are counted with noise; a district's grant is its count times C dollars. Society pays
k̄ per child and unit of ε, and one dollar for each squared dollar of a district's error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualmandate.choice import (
    Choice,
    ExponentialCost,
    InformationUtility,
    LinearCost,
    SocialWelfare,
    TableValue,
    choose,
    implied_weight,
)
from dualmandate.frontier import Frontier, frontier_of
from dualmandate.gallery.paper.row import CONFIRMED, Row
from dualmandate.mechanism import mechanism_named
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import identity

SECTION = "V. Title I"
PRINTED_EPSILON = 2.52
POPULATION_2014 = 318.6e6  # residents of the United States
SCHOOL_LUNCH = 2.28  # USD, the paper's price of a lunch
UNCONDITIONAL_COST = 61.0  # USD per person and year: 15.4 billion of losses over 251 million residents of 16 and over


@dataclass(frozen=True)
class Calibration:
    """The paper's inputs, each of which a row may change."""

    districts: int = 13_000
    children: float = 46e6
    mean_squared_expenditure: float = 2.0e7  # C̄², USD² per child²
    information_utility: InformationUtility = LinearCost(1_400.0)
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


def rows() -> list[Row]:
    """Every number of the section, then what its assumptions do to them."""
    paper = Calibration()
    return [*_benchmark(paper), *_wide_weight(paper), *_privacy_advocate(paper), *_assumptions(paper)]


def _row(key: str, what: str, paper: float | None, computed: float, corrected: float, why: str, unit: str = "") -> Row:  # noqa: PLR0913
    return Row(f"title_i.{key}", SECTION, what, paper, computed, corrected, why, unit)


def _benchmark(paper: Calibration) -> list[Row]:
    best = paper.choice
    epsilon = best.epsilon
    slope = paper.frontier.marginal_rate_of_transformation(epsilon)
    return [
        _row("willingness_to_accept", "WTA = η·N·k̄/C̄² at η = 1", 3220, best.willingness_to_accept,
             best.willingness_to_accept, CONFIRMED, "accuracy per epsilon"),
        _row("epsilon", "optimal privacy loss at η = 1", PRINTED_EPSILON, epsilon, epsilon,
             "E1: (4L/WTA)^(1/3) = 2.5276 was truncated, not rounded"),
        _row("root_mean_squared_error", "RMSE of a grant at η = 1", 2509, paper.misallocation(PRINTED_EPSILON),
             paper.misallocation(epsilon), "E2: computed at the truncated ε (and then cut off, not rounded)", "USD"),
        _row("per_student", "misallocation per student at η = 1", 0.70, paper.per_student(PRINTED_EPSILON),
             paper.per_student(epsilon), "E3: 70.7 cents round to 71", "USD"),
        _row("accuracy", "accuracy I = −2L/ε² at the optimum", None, best.accuracy, best.accuracy,
             "not printed in the paper", "squared children"),
        _row("privacy_cost", "privacy cost at the optimum", None, best.privacy_cost, best.privacy_cost,
             "not printed; always twice the data loss when errors fall like 1/ε² and cost is linear", "USD"),
        _row("data_loss", "data loss at the optimum", None, best.data_loss, best.data_loss,
             "not printed", "USD"),
        _row("sign", "equation (10): G_ε/G_I at the optimum", 3220, -slope, -slope,
             "E8: G_ε/G_I = −MRT; the sign was dropped between the second and the third term", "accuracy per epsilon"),
    ]


def _wide_weight(paper: Calibration) -> list[Row]:
    weight = paper.children / (POPULATION_2014 - paper.children)
    rounded = replace(paper, relative_privacy_weight=0.15)
    right = replace(paper, relative_privacy_weight=weight)
    at_rounded, at_right = rounded.choice.epsilon, right.choice.epsilon
    why = "E5: consistent only with the truncated 2.52 and η = .15; E4: η itself should be .169"
    return [
        _row("weight_of_others", "η = N/(POP − N)", 0.15, weight, weight,
             "E4: .15 would need 352.7 million residents; with 318.6 million (2014) it is .169"),
        _row("epsilon_of_others", "optimal privacy loss at that η", 4.74, at_rounded, at_right, why),
        _row("root_mean_squared_error_of_others", "RMSE of a grant at that ε", 1334, rounded.misallocation(at_rounded),
             right.misallocation(at_right), why, "USD"),
        _row("per_student_of_others", "misallocation per student at that ε", 0.38, rounded.per_student(at_rounded),
             right.per_student(at_right), why, "USD"),
    ]


def _privacy_advocate(paper: Calibration) -> list[Row]:
    epsilon = 0.1
    weight = implied_weight(paper.frontier, paper.welfare, epsilon).value
    error, per_student = paper.misallocation(epsilon), paper.per_student(epsilon)
    lunches = per_student / SCHOOL_LUNCH
    return [
        _row("root_mean_squared_error_at_tenth", "RMSE of a grant at ε = 0.1", 63_000, error, error, CONFIRMED, "USD"),
        _row("per_student_at_tenth", "misallocation per student at ε = 0.1", 18, per_student, per_student, CONFIRMED,
             "USD"),
        _row("lunches", "days of school lunch that buys", 7, lunches, lunches, "E7: 17.87/2.28 is nearly eight days",
             "days"),
        _row("implied_weight", "relative weight η that ε = 0.1 implies", 12_000, weight, weight,
             "E6: (2.5276/0.1)³ = 16,149; 12,000 is what cubing 2.3 would give"),
    ]


def _assumptions(paper: Calibration) -> list[Row]:
    best = paper.choice.epsilon
    exponential = replace(paper, information_utility=ExponentialCost(1_400.0))
    unconditional = replace(paper, information_utility=LinearCost(UNCONDITIONAL_COST))
    geometric = replace(paper, noise="geometric")
    geometric_best = geometric.choice.epsilon
    light = replace(geometric, relative_privacy_weight=0.15)
    light_best = light.choice.epsilon
    replaced = replace(paper, neighbors=Neighbors.REPLACE_ONE)
    curvature = paper.frontier.second_derivative(best)
    units = "E15: dollars of privacy are added to squared dollars of error; the answer depends on the unit of money"
    cost = "E13: at ε ≈ 2.5 the worst case e^ε − 1 is 4.6 times ε, its slope 12.5 times; linear is not its approximation"
    lattice = "E17: counts are integers, and two-sided geometric noise dominates Laplace noise at every ε"
    return [
        _row("exponential", "ε* at η = 1 if the cost is k(e^ε − 1)", PRINTED_EPSILON, best, exponential.choice.epsilon,
             cost),
        _row("exponential_of_others", "ε* at η = .15 if the cost is k(e^ε − 1)", 4.74,
             replace(paper, relative_privacy_weight=0.15).choice.epsilon,
             replace(exponential, relative_privacy_weight=0.15).choice.epsilon, cost),
        _row("linearity", "worst-case cost over its linear stand-in at ε*", 1, math.expm1(best) / best,
             math.expm1(best) / best, cost),
        _row("marginal_linearity", "slope of the worst case over its linear stand-in at ε*", 1, math.exp(best),
             math.exp(best), cost),
        _row("worst_case_loss", "worst-case loss of utility at ε*, in units of v", math.expm1(PRINTED_EPSILON),
             math.expm1(best), -math.expm1(-best),
             "E12: e^ε − 1 bounds the gain of a nonnegative utility, or the rise of a cost; its loss is at most 1 − e^−ε"),
        _row("unconditional", "ε* with the expected cost of identity theft", PRINTED_EPSILON, best,
             unconditional.choice.epsilon,
             "E14: $1,343 is the loss of a victim who lost money; over all residents it is about $61 a year"),
        _row("in_cents", "ε* with money counted in cents", PRINTED_EPSILON, best, replace(paper, price=100.0).choice.epsilon,
             units),
        _row("in_thousands", "ε* with money counted in thousands of dollars", PRINTED_EPSILON, best,
             replace(paper, price=1e-3).choice.epsilon, units),
        _row("geometric", "ε* with geometric noise, η = 1", PRINTED_EPSILON, best, geometric_best, lattice),
        _row("geometric_error", "RMSE of a grant with geometric noise, η = 1", 2509, paper.misallocation(best),
             geometric.misallocation(geometric_best), lattice, "USD"),
        _row("geometric_of_others", "ε* with geometric noise, η = .15", 4.74,
             replace(paper, relative_privacy_weight=0.15).choice.epsilon, light_best, lattice),
        _row("geometric_error_of_others", "RMSE of a grant with geometric noise, η = .15", 1334,
             replace(paper, relative_privacy_weight=0.15).misallocation(
                 replace(paper, relative_privacy_weight=0.15).choice.epsilon),
             light.misallocation(light_best), lattice, "USD"),
        _row("replace_one", "ε* if neighbors replace one record", PRINTED_EPSILON, best, replaced.choice.epsilon,
             "the sensitivity of disjoint counts doubles; section VI.A uses this relation without saying so"),
        _row("curvature", "curvature of the production function at ε*", None, curvature, curvature,
             "E21: I(ε) is concave and unbounded below, not \"closed, bounded, and convex\"; the set under it is convex",
             "accuracy per epsilon²"),
    ]
