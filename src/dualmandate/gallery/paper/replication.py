"""Every number of the paper, each statement joined with the numbers that answer it; section V is in `title_i`.

* Section III and Appendices B and C: randomized response and the matrix mechanism. The paper prints formulas, not
  numbers, here; each is evaluated at a stated point.
* Sections I and IV.A and Appendices A and D: what an attacker can learn, and how many equations were published.
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
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files

from dualmandate.choice import implied_coefficient_ratio
from dualmandate.elicitation.opinions import InterdependentPreferences
from dualmandate.frontier import frontier_of
from dualmandate.frontier.worst_case import multiplicative_weights_exponential
from dualmandate.gallery.paper.row import Computed, PaperRow
from dualmandate.gallery.paper.title_i import Calibration, title_i_numbers
from dualmandate.mechanism import GEOMETRIC, LAPLACE, MatrixMechanism, RandomizedResponse, laplace
from dualmandate.population import PrivacyLoss
from dualmandate.population.loss import epsilon_at
from dualmandate.semantics import Secret, odds_bound, posterior
from dualmandate.workload import groups, prefix

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


def _technologies() -> dict[str, Computed]:
    """The formulas of both technologies."""
    return {**_privacy_of_response(), **_accuracy_of_response(), **_matrix(), **_noise()}


def _privacy_of_response() -> dict[str, Computed]:
    survey = RandomizedResponse.binary(PEOPLE)
    skewed = RandomizedResponse.binary(PEOPLE, innocuous_share=SKEWED)
    no, yes = skewed.one_sided_losses(skewed.epsilon(TRUTH))
    step = 1e-6
    slope = (survey.truth_probability(1 + step) - survey.truth_probability(1 - step)) / (2 * step)
    odds = TRUTH / (1 - TRUTH)
    return {
        "response.epsilon": Computed.same(survey.epsilon(TRUTH), paper=math.log((1 + TRUTH) / (1 - TRUTH))),
        "response.truth_probability": Computed.same(survey.truth_probability(1), paper=math.expm1(1) / (math.e + 1)),
        "response.truth_slope": Computed.same(slope, paper=1 / (1 + math.cosh(1))),
        "response.yes": Computed.same(math.exp(yes), paper=1 + odds / SKEWED),
        "response.no": Computed.same(math.exp(no), paper=1 + odds / (1 - SKEWED)),
    }


def _accuracy_of_response() -> dict[str, Computed]:
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
        "response.accuracy_slope": Computed.same(right_slope, paper=printed_slope),
        "response.accuracy_of_truth": Computed(-sampling_variance, 0.0 - certain, -sampling_variance),
        "response.accuracy": Computed.same(
            -survey.mean_squared_error(epsilon), paper=sampling_variance - reported_variance / TRUTH**2
        ),
        "response.curvature": Computed.same(-survey.mean_squared_error_curvature(1)),
        "response.half": Computed.same(skewed.mean_squared_error(1) / survey.mean_squared_error(1)),
        "response.curator": Computed.same(survey.price_of_not_trusting_the_curator(1)),
    }


def _matrix() -> dict[str, Computed]:
    queries = prefix(8)
    nodes = [list(range(start, start + width)) for width in (8, 4, 2, 1) for start in range(0, 8, width)]
    tree = frontier_of(MatrixMechanism(groups(8, nodes), LAPLACE), queries)
    naive = frontier_of(laplace(), queries)
    coefficient = tree.expected_squared_error(1.0) / LAPLACE.variance(1.0)  # (ΔA)²‖QA⁺‖²_F
    return {
        "matrix.laplace": Computed.same(naive.accuracy(1), paper=-2.0 * 8 * 8**2),
        "matrix.accuracy": Computed.same(tree.accuracy(1)),
        "matrix.transformation": Computed.same(tree.marginal_rate_of_transformation(2), paper=4 * coefficient / 2**3),
        "matrix.curvature": Computed.same(tree.second_derivative(2), paper=-12 * coefficient / 2**4),
    }


def _noise() -> dict[str, Computed]:
    ratios = {epsilon: GEOMETRIC.variance(epsilon) / LAPLACE.variance(epsilon) for epsilon in (0.1, 1, 2.53, 4, 10)}
    return {f"noise.geometric.{epsilon:g}": Computed.same(ratio) for epsilon, ratio in ratios.items()}


def _learning() -> dict[str, Computed]:
    """The bound on learning and the arithmetic of reconstruction."""
    attributes = {loss: odds_bound(PrivacyLoss.pure(loss), Secret.ATTRIBUTE).factor for loss in ("1", "0.25", "0.1")}
    epsilon = Calibration().choice.epsilon
    statistics = math.fsum(STATISTICS)
    return {
        "semantics.in_or_out": Computed.same(odds_bound(PrivacyLoss.pure(1), Secret.IN_OR_OUT).factor, paper=math.e),
        **{f"semantics.attribute.{loss}": Computed.same(factor) for loss, factor in attributes.items()},
        **{f"companion.accuracy.{loss:g}": Computed.same(-math.expm1(-loss)) for loss in COMPANION_LOSSES},
        **{f"companion.slope.{loss:g}": Computed.same(math.exp(-loss)) for loss in COMPANION_LOSSES},
        **{f"semantics.belief.{prior:g}": Computed.same(posterior(prior, epsilon)) for prior in (0.01, 0.1, 0.5)},
        "reconstruction.statistics": Computed.same(statistics),
        "reconstruction.per_person": Computed.same(statistics / PERSONS),
        "reconstruction.cells": Computed.same(float(CELLS * BLOCKS)),
    }


def _census_2020() -> dict[str, Computed]:
    """ρ and ε of each product, and what the two redistricting budgets imply together."""
    losses = {product: PrivacyLoss.concentrated(1 / scale**2) for product, scale in SCALES.items()}
    epsilons = {product: epsilon_at(float(loss), FAILURE_PROBABILITY) for product, loss in losses.items()}
    ratio = implied_coefficient_ratio(losses["pl94_persons"], losses["pl94_units"])
    return {
        **{f"census_2020.{product}.rho": Computed.same(float(loss)) for product, loss in losses.items()},
        **{f"census_2020.{product}.epsilon": Computed.same(epsilon) for product, epsilon in epsilons.items()},
        "census_2020.implied_ratio": Computed.same(float(ratio)),
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


def _working_paper() -> dict[str, Computed]:
    """The working papers' planner, re-derived."""
    return {**_exponential_mechanism(), **_private_multiplicative_weights()}


def _exponential_mechanism() -> dict[str, Computed]:
    found: dict[str, Computed] = {}
    for study in STUDIES:
        technology = multiplicative_weights_exponential(study.population_size, study.cells, study.queries)
        tastes = InterdependentPreferences(study.privacy_income_covariance, study.accuracy_income_covariance)
        choice = tastes.choose(technology)
        lost = tastes.welfare_change(technology, before=choice.epsilon, after=choice.epsilon / 2)
        error = technology.error(choice.epsilon)
        found |= {
            f"working_paper.{study.name}.epsilon": Computed.same(choice.epsilon),
            f"working_paper.{study.name}.accuracy": Computed.same(choice.accuracy),
            f"working_paper.{study.name}.rounds": Computed.same(9 * math.log(study.cells) / error**2),
            f"working_paper.{study.name}.halving": Computed.same(lost),
        }
    return found


def _private_multiplicative_weights() -> dict[str, Computed]:
    # The 2014 version prints R, ε* and I*, not the inputs of K: each of the two follows from a technology through the
    # other, because α* = R·ε*/b at an optimum on α = K·ε^(−b), whatever K.
    tastes = InterdependentPreferences(-0.1435, 0.1893)
    printed_epsilon, printed_accuracy, exponent = 0.0667, 0.9039, 0.5
    willingness = tastes.willingness_to_accept
    return {
        "working_paper.pmw.willingness": Computed.same(willingness),
        "working_paper.pmw.epsilon": Computed.same((1 - printed_accuracy) * exponent / willingness),
        "working_paper.pmw.accuracy": Computed.same(1 - willingness * printed_epsilon / exponent),
        "working_paper.health.slide": Computed.same((1 - 0.015) / (1 + 0.176)),
    }


def rows() -> list[PaperRow]:
    """Every number of the paper, each with what follows from its inputs, what is right, and why they differ."""
    computed = {**_technologies(), **_learning(), **title_i_numbers(), **_working_paper(), **_census_2020()}
    text = (files(__package__) / "statements.toml").read_text(encoding="utf-8")
    found = []
    for section in tomllib.loads(text)["section"]:
        for statement in section["statement"]:
            numbers = computed.pop(statement["id"], None)
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
