"""Section III and Appendices B and C: randomized response and the matrix mechanism, formula by formula.

The paper prints formulas, not numbers, here; each is evaluated at a stated point.
"""

from __future__ import annotations

import math

from dualmandate.frontier import frontier_of
from dualmandate.gallery.paper.row import Computed
from dualmandate.mechanism import GEOMETRIC, LAPLACE, MatrixMechanism, RandomizedResponse, laplace
from dualmandate.workload import groups, prefix

PEOPLE, SHARE = 1_000, 0.3  # N and π of the survey that the formulas are evaluated at
TRUTH = 0.5  # its ρ
SKEWED = 0.25  # an innocuous share μ other than ½


def computed() -> dict[str, Computed]:
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
