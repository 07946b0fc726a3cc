"""Every number of the paper, each statement joined with the numbers that answer it.

* Section III and Appendices B and C: randomized response and the matrix mechanism. The paper prints formulas, not
  numbers, here; each is evaluated at a stated point.
* Sections I and IV.A and Appendices A and D: what an attacker can learn, and how many equations were published.
* Section V: Title I grants to school districts, its assumptions changed in turn. Eligible children of L districts are
  counted with noise; a district's grant is its count times C dollars. Society pays k̄ per child and unit of ε, and one
  dollar for each squared dollar of a district's error.
* What the 2020 Census chose, read from the scale parameters of its published configurations. They state the noise by a
  rational global scale σ; ρ = 1/σ². The ε at δ = 10⁻¹⁰ is the tight conversion of Canonne, Kamath and Steinke (2020).
  An implied η is not given: it would need the workload's frontier.
* The planner of the earlier working papers "Revisiting the Economics of Privacy" (2014, 2017): accuracy is I = 1 − α,
  with α the largest error of any query as a share of the population, bounded by the technology as α = K·ε^(−b). Tastes
  for privacy γ and accuracy η covary with income y, so that society's willingness to accept is
  R = (1 + cov(γ, y))/(1 + cov(η, y)), and MRT = R gives ε* = (b·K/R)^(1/(1+b)).
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.resources import files

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
    implied_coefficient_ratio,
    implied_weight,
)
from dualmandate.elicitation import DiscountHorizon
from dualmandate.elicitation.opinions import InterdependentPreferences
from dualmandate.frontier import Frontier, frontier_of
from dualmandate.frontier.worst_case import multiplicative_weights_exponential
from dualmandate.mechanism import GEOMETRIC, LAPLACE, MatrixMechanism, RandomizedResponse, laplace, mechanism_named
from dualmandate.population import Neighbors, PrivacyLoss, Protection
from dualmandate.population.loss import epsilon_at
from dualmandate.semantics import Secret, odds_bound, posterior
from dualmandate.workload import groups, identity, prefix

PEOPLE, SHARE = 1_000, 0.3  # N and π of the survey that the formulas are evaluated at
TRUTH = 0.5  # The survey's ρ.
SKEWED = 0.25  # An innocuous share μ other than ½.
STATISTICS = (2.8e9, 2.8e9, 2.1e9, 31e6)  # Linearly independent ones: PL 94-171, the balance of SF1, SF2, the PUMS.
PERSONS = 309e6  # The 2010 Census counted this many.
CELLS, BLOCKS = 500_000, 10**7
COMPANION_LOSSES = (0.5, 3.0)  # Here the companion paper's figure, PF = 1 − e^−ε, draws its tangents.
FAILURE_PROBABILITY = 1e-10
SCALES = {
    "pl94_persons": Fraction(339, 542),
    "pl94_units": Fraction(12343, 3379),
    "dhc_persons": Fraction(254, 485),
    "demonstration_12_persons": Fraction(429, 439),
    "demonstration_12_units": Fraction(4499, 959),
    "demonstration_4_persons": Fraction(2379, 1024),
    "demonstration_4_units": Fraction(17371, 1024),
}
PRINTED_EPSILON = 2.52
POPULATION_2014 = 318.6e6  # The United States had this many residents.
SCHOOL_LUNCH = 2.28  # USD, the paper's price of a lunch
IDENTITY_THEFT = LinearCost(1_400.0)  # USD per child per epsilon: $1,343, rounded up
UNCONDITIONAL_COST = 61.0  # USD per person and year: 15.4 billion of losses over 251 million residents of 16 and over
LIFETIME = DiscountHorizon(
    0.03, 40, "OMB Circular A-94"
)  # Over this time, and at this rate, a yearly amount is one amount.
VICTIM_COST = 1_343.0  # USD, of a victim who lost at least a dollar
SMALL_DISTRICT = 10  # Eligible children: the statute's smallest count for a grant.
Value = float | str | None


@dataclass(frozen=True)
class PaperRow:
    """What the paper says, what its own inputs give, what is right, and why they differ.

    `paper` is a number or wording as printed, or what a formula or sentence of it says there (a cost that it calls
    linear is 1 times its linear stand-in); `from_its_inputs` is computed from the paper's stated inputs and
    formulas; `corrected` is computed with the mistake mended, and equals `from_its_inputs` where nothing is wrong but
    rounding. None: the paper gives no such number, or there is nothing to compute.
    """

    id: str
    section: str
    what: str
    unit: str
    paper: Value
    from_its_inputs: Value
    corrected: Value
    why: str


@dataclass(frozen=True)
class Computed:
    """The numbers of one statement. `paper` evaluates a formula that the paper prints without a number."""

    from_its_inputs: float
    corrected: float
    paper: float | None = None


Numbers = dict[str, float | Computed]  # by statement; a number alone is one about which the paper's inputs are right


def _same(value: float, *, paper: float) -> Computed:
    """A number about which the paper's inputs are right, beside a formula that the paper prints."""
    return Computed(value, value, paper)


def _technologies() -> Numbers:
    """The formulas of both technologies."""
    return {**_privacy_of_response(), **_accuracy_of_response(), **_matrix(), **_noise()}


def _privacy_of_response() -> Numbers:
    survey = RandomizedResponse.binary(PEOPLE)
    skewed = RandomizedResponse.binary(PEOPLE, innocuous_share=SKEWED)
    no, yes = skewed.one_sided_losses(skewed.epsilon(TRUTH))
    step = 1e-6
    slope = (survey.truth_probability(1 + step) - survey.truth_probability(1 - step)) / (2 * step)
    odds = TRUTH / (1 - TRUTH)
    return {
        "response.epsilon": _same(survey.epsilon(TRUTH), paper=math.log((1 + TRUTH) / (1 - TRUTH))),
        "response.truth_probability": _same(survey.truth_probability(1), paper=math.expm1(1) / (math.e + 1)),
        "response.truth_slope": _same(slope, paper=1 / (1 + math.cosh(1))),
        "response.yes": _same(math.exp(yes), paper=1 + odds / SKEWED),
        "response.no": _same(math.exp(no), paper=1 + odds / (1 - SKEWED)),
    }


def _accuracy_of_response() -> Numbers:
    survey = RandomizedResponse.binary(PEOPLE, sensitive_share=SHARE)
    skewed = RandomizedResponse.binary(PEOPLE, innocuous_share=SKEWED, sensitive_share=SHARE)
    epsilon = survey.epsilon(TRUTH)
    reported = TRUTH * SHARE + (1 - TRUTH) * 0.5
    reported_variance = reported * (1 - reported) / PEOPLE
    sampling_variance = SHARE * (1 - SHARE) / PEOPLE
    printed_slope = 2 * reported_variance / TRUTH - (SHARE - 0.5) * (1 - 2 * SHARE) / (PEOPLE**2 * TRUTH)
    right_slope = -survey.mean_squared_error_slope(epsilon) * (1 + math.cosh(epsilon))  # dε/dρ = 1 + cosh ε
    certain = round(survey.mean_squared_error(700.0), 12)  # an ε at which everybody tells the truth
    return {
        "response.accuracy_slope": _same(right_slope, paper=printed_slope),
        "response.accuracy_of_truth": Computed(-sampling_variance, 0.0 - certain, -sampling_variance),
        "response.accuracy": _same(
            -survey.mean_squared_error(epsilon), paper=sampling_variance - reported_variance / TRUTH**2
        ),
        "response.curvature": -survey.mean_squared_error_curvature(1),
        "response.half": skewed.mean_squared_error(1) / survey.mean_squared_error(1),
        "response.curator": survey.price_of_not_trusting_the_curator(1),
    }


def _matrix() -> Numbers:
    queries = prefix(8)
    nodes = [list(range(start, start + width)) for width in (8, 4, 2, 1) for start in range(0, 8, width)]
    tree = frontier_of(MatrixMechanism(groups(8, nodes), LAPLACE), queries)
    naive = frontier_of(laplace(), queries)
    coefficient = tree.expected_squared_error(1.0) / LAPLACE.variance(1.0)  # (ΔA)²‖QA⁺‖²_F
    return {
        "matrix.laplace": _same(naive.accuracy(1), paper=-2.0 * 8 * 8**2),
        "matrix.accuracy": tree.accuracy(1),
        "matrix.transformation": _same(tree.marginal_rate_of_transformation(2), paper=4 * coefficient / 2**3),
        "matrix.curvature": _same(tree.second_derivative(2), paper=-12 * coefficient / 2**4),
    }


def _noise() -> Numbers:
    ratios = {epsilon: GEOMETRIC.variance(epsilon) / LAPLACE.variance(epsilon) for epsilon in (0.1, 1, 2.53, 4, 10)}
    return {f"noise.geometric.{epsilon:g}": ratio for epsilon, ratio in ratios.items()}


def _learning() -> Numbers:
    """The bound on learning and the arithmetic of reconstruction."""
    attributes = {loss: odds_bound(PrivacyLoss.pure(loss), Secret.ATTRIBUTE).factor for loss in ("1", "0.25", "0.1")}
    epsilon = Calibration().choice.epsilon
    statistics = math.fsum(STATISTICS)
    return {
        "semantics.in_or_out": _same(odds_bound(PrivacyLoss.pure(1), Secret.IN_OR_OUT).factor, paper=math.e),
        **{f"semantics.attribute.{loss}": factor for loss, factor in attributes.items()},
        **{f"companion.accuracy.{loss:g}": -math.expm1(-loss) for loss in COMPANION_LOSSES},
        **{f"companion.slope.{loss:g}": math.exp(-loss) for loss in COMPANION_LOSSES},
        **{f"semantics.belief.{prior:g}": posterior(prior, epsilon) for prior in (0.01, 0.1, 0.5)},
        "reconstruction.statistics": statistics,
        "reconstruction.per_person": statistics / PERSONS,
        "reconstruction.cells": float(CELLS * BLOCKS),
    }


def _census_2020() -> Numbers:
    """ρ and ε of each product, and what the two redistricting budgets imply together."""
    losses = {product: PrivacyLoss.concentrated(1 / scale**2) for product, scale in SCALES.items()}
    epsilons = {product: epsilon_at(float(loss), FAILURE_PROBABILITY) for product, loss in losses.items()}
    ratio = implied_coefficient_ratio(losses["pl94_persons"], losses["pl94_units"])
    return {
        **{f"census_2020.{product}.rho": float(loss) for product, loss in losses.items()},
        **{f"census_2020.{product}.epsilon": epsilon for product, epsilon in epsilons.items()},
        "census_2020.implied_ratio": float(ratio),
    }


@dataclass(frozen=True)
class WorkingPaper:
    """One application of the 2017 paper: a survey's covariances and a synthetic population's size."""

    name: str
    population_size: float
    cells: int
    queries: int
    privacy_income_covariance: float  # cov(γ, y)
    accuracy_income_covariance: float  # cov(η, y)


STUDIES = (
    WorkingPaper("income", 197_040_596, 797, 318_003, 0.083, 0.040),
    WorkingPaper("health", 242_977_154, 800, 320_400, 0.0154, 0.076),
)


def _working_paper() -> Numbers:
    """The working papers' planner, re-derived."""
    found = _private_multiplicative_weights()
    for study in STUDIES:
        technology = multiplicative_weights_exponential(study.population_size, study.cells, study.queries)
        tastes = InterdependentPreferences(study.privacy_income_covariance, study.accuracy_income_covariance)
        choice = tastes.choose(technology)
        lost = tastes.welfare_change(technology, before=choice.epsilon, after=choice.epsilon / 2)
        error = technology.error(choice.epsilon)
        found |= {
            f"working_paper.{study.name}.epsilon": choice.epsilon,
            f"working_paper.{study.name}.accuracy": choice.accuracy,
            f"working_paper.{study.name}.rounds": 9 * math.log(study.cells) / error**2,
            f"working_paper.{study.name}.halving": lost,
        }
    return found


def _private_multiplicative_weights() -> Numbers:
    # The 2014 version prints R, ε* and I*, not the inputs of K: each of the two follows from a technology through the
    # other, because α* = R·ε*/b at an optimum on α = K·ε^(−b), whatever K.
    tastes = InterdependentPreferences(-0.1435, 0.1893)
    printed_epsilon, printed_accuracy, exponent = 0.0667, 0.9039, 0.5
    willingness = tastes.willingness_to_accept
    return {
        "working_paper.pmw.willingness": willingness,
        "working_paper.pmw.epsilon": (1 - printed_accuracy) * exponent / willingness,
        "working_paper.pmw.accuracy": 1 - willingness * printed_epsilon / exponent,
        "working_paper.health.slide": (1 - 0.015) / (1 + 0.176),
    }


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


def _title_i() -> Numbers:
    """Every number that the section prints, and those under other costs, units, noise and neighbors."""
    paper = Calibration()
    return {
        **_benchmark(paper),
        **_wide_weight(paper),
        **_privacy_advocate(paper),
        **_costs(),
        **_geometric(),
        **_utility(),
    }


def _benchmark(paper: Calibration) -> Numbers:
    best = paper.choice
    slope = paper.frontier.marginal_rate_of_transformation(best.epsilon)
    return {
        "title_i.willingness_to_accept": best.willingness_to_accept,
        "title_i.epsilon": best.epsilon,
        "title_i.root_mean_squared_error": paper.misallocation(best.epsilon),
        "title_i.root_mean_squared_error_as_printed": paper.misallocation(PRINTED_EPSILON),
        "title_i.per_student": paper.per_student(best.epsilon),
        "title_i.accuracy": best.accuracy,
        "title_i.privacy_cost": best.privacy_cost,
        "title_i.data_loss": best.data_loss,
        "title_i.sign": -slope,
    }


def _wide_weight(paper: Calibration) -> Numbers:
    weight = paper.children / (POPULATION_2014 - paper.children)
    rounded = replace(paper, relative_privacy_weight=0.15)
    right = replace(paper, relative_privacy_weight=weight)
    printed, mended = rounded.choice.epsilon, right.choice.epsilon
    return {
        "title_i.weight_of_others": weight,
        "title_i.epsilon_of_others": Computed(printed, mended),
        "title_i.root_mean_squared_error_of_others": Computed(
            rounded.misallocation(printed), right.misallocation(mended)
        ),
        "title_i.per_student_of_others": Computed(rounded.per_student(printed), right.per_student(mended)),
    }


def _privacy_advocate(paper: Calibration) -> Numbers:
    epsilon = 0.1
    per_student = paper.per_student(epsilon)
    return {
        "title_i.root_mean_squared_error_at_tenth": paper.misallocation(epsilon),
        "title_i.per_student_at_tenth": per_student,
        "title_i.lunches": per_student / SCHOOL_LUNCH,
        "title_i.implied_weight": implied_weight(paper.frontier, paper.welfare, epsilon).value,
    }


def _costs() -> Numbers:
    paper = Calibration()
    light = replace(paper, relative_privacy_weight=0.15)
    best, light_best = paper.choice.epsilon, light.choice.epsilon
    exponential = ExponentialCost(1_400.0)

    def read(**changed: object) -> float:
        """ε* under another assumption than the paper's: a reading, not a correction."""
        return replace(paper, **changed).choice.epsilon  # type: ignore[arg-type]

    over_time = UNCONDITIONAL_COST * LIFETIME.present_value
    return {
        "title_i.exponential": read(information_utility=exponential),
        "title_i.exponential_of_others": read(information_utility=exponential, relative_privacy_weight=0.15),
        "title_i.linearity": math.expm1(best) / best,
        "title_i.linearity_of_others": math.expm1(light_best) / light_best,
        "title_i.marginal_linearity": math.exp(best),
        "title_i.marginal_linearity_of_others": math.exp(light_best),
        "title_i.worst_case_loss": Computed(math.expm1(best), -math.expm1(-best)),
        "title_i.cost_of_a_victim": VICTIM_COST,
        "title_i.cost_in_a_year": UNCONDITIONAL_COST,
        "title_i.cost_over_time": over_time,
        "title_i.unconditional_in_a_year": read(information_utility=LinearCost(UNCONDITIONAL_COST)),
        "title_i.unconditional_over_time": read(information_utility=LinearCost(over_time)),
        "title_i.in_cents": Computed(read(price=100.0), best),
        "title_i.in_thousands": Computed(read(price=1e-3), best),
        "title_i.replace_one": read(neighbors=Neighbors.REPLACE_ONE),
    }


def _geometric() -> Numbers:
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
        "title_i.curvature": paper.frontier.second_derivative(best),
        # E[max(0, n + X)] − n of Laplace noise X with scale s is (s/2)·e^(−n/s).
        "title_i.range_edit": _same(scale / 2 * math.exp(-SMALL_DISTRICT / scale), paper=0.0),
    }


def _utility() -> Numbers:
    """Exact cost of Laplace noise to a risk-averse person, over its Taylor approximation, at s = r|a|ΔA/ε."""
    risk = WealthRisk(risk_aversion=1.0, exposures=np.array([1.0]))
    return {f"utility.taylor.{s:g}": _same(risk.diagnostic(1 / s).ratio, paper=1.0) for s in (0.5, 0.9)}


def rows() -> list[PaperRow]:
    """Every number of the paper, each with what follows from its inputs, what is right, and why they differ."""
    computed = {**_technologies(), **_learning(), **_title_i(), **_working_paper(), **_census_2020()}
    text = (files(__package__) / "statements.toml").read_text(encoding="utf-8")
    found = []
    for section in tomllib.loads(text)["section"]:
        for statement in section["statement"]:
            numbers = computed.pop(statement["id"], None)
            numbers = Computed(numbers, numbers) if isinstance(numbers, float) else numbers
            found.append(
                PaperRow(
                    id=statement["id"],
                    section=section["name"],
                    what=statement["what"],
                    unit=statement.get("unit", ""),
                    paper=statement.get("paper", numbers.paper if numbers else None),
                    from_its_inputs=numbers.from_its_inputs if numbers else statement.get("from_its_inputs"),
                    corrected=numbers.corrected if numbers else statement["corrected"],
                    why=statement["why"],
                )
            )
    assert not computed, f"numbers without a statement: {sorted(computed)}"
    return found
