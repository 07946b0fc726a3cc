"""Closed-form frontiers against the paper's numbers and formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.frontier import frontier_of
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    MatrixMechanism,
    Measure,
    Mechanism,
    NoiseLaw,
    OptimizedMechanism,
    RandomizedResponse,
    gaussian,
    geometric,
    laplace,
    staircase,
)
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.workload import identity, kron, prefix, stack, total

DISTRICTS = 13_000
CHOSEN = 2.527644
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def test_title_i() -> None:
    """I(ε) = −2L/ε², MRT = 4L/ε³: at the paper's optimum MRT = WTA = 3,220 and accuracy −4,069.506."""
    frontier = frontier_of(laplace(), identity(DISTRICTS))
    assert frontier.privacy_measure is PrivacyMeasure.PURE_DP
    assert frontier.tables == ("identity",)
    assert frontier.query_counts == {"identity": DISTRICTS}
    exact = (52_000 / 3_220) ** (1 / 3)
    assert exact == pytest.approx(CHOSEN, abs=5e-7)
    assert frontier.accuracy(exact) == pytest.approx(-4_069.506, abs=5e-4)
    assert frontier.marginal_rate_of_transformation(exact) == pytest.approx(3_220)
    assert frontier.second_derivative(exact) == pytest.approx(-12 * DISTRICTS / exact**4)
    assert frontier.epsilon_for(-2 * DISTRICTS / 9) == pytest.approx(3.0, rel=1e-15)
    assert frontier.technology(1.0) == "laplace"
    assert frontier.allocation(1.0) == {"all": 1.0}


def test_replace_one_doubles_the_sensitivity() -> None:
    once, twice = (frontier_of(laplace(), identity(50), protection=p) for p in (Protection(), REPLACE_ONE))
    assert twice.accuracy(2.0) == pytest.approx(once.accuracy(1.0))


def test_geometric_noise_beats_laplace_by_the_printed_ratios() -> None:
    """Ratios of variances .999, .921, .603, .304, .0045 at ε = .1, 1, ε*, 4, 10; MRT = cosh(ε/2)/(2·sinh³(ε/2))."""
    plain, whole = frontier_of(laplace(), identity(7)), frontier_of(geometric(), identity(7))
    for epsilon, ratio in ((0.1, 0.999), (1.0, 0.921), (CHOSEN, 0.603), (4.0, 0.304), (10.0, 0.0045)):
        assert whole.accuracy(epsilon) / plain.accuracy(epsilon) == pytest.approx(
            ratio, abs=5e-4 if ratio > 0.1 else 5e-5
        )
        mrt = 7 * math.cosh(epsilon / 2) / (2 * math.sinh(epsilon / 2) ** 3)
        assert whole.marginal_rate_of_transformation(epsilon) == pytest.approx(mrt)


def test_matrix_mechanism_formula() -> None:
    """I = −Var(e)·(ΔA)²·‖QA⁺‖²_F with the Moore-Penrose inverse, MRT = 4(ΔA)²‖QA⁺‖²_F/ε³."""
    workload, strategy = prefix(8), stack(identity(8), total(8))
    frontier = frontier_of(MatrixMechanism(strategy, LAPLACE), workload)
    reconstruction = workload.dense() @ np.linalg.pinv(strategy.dense())
    coefficient = 2**2 * float(np.sum(reconstruction**2))
    for epsilon in (0.3, 1.0, 4.0):
        assert frontier.accuracy(epsilon) == pytest.approx(-2 * coefficient / epsilon**2)
        assert frontier.marginal_rate_of_transformation(epsilon) == pytest.approx(4 * coefficient / epsilon**3)
        assert frontier.second_derivative(epsilon) == pytest.approx(-12 * coefficient / epsilon**4)
    assert frontier.epsilon_for(-2 * coefficient / 0.04) == pytest.approx(0.2, rel=1e-12)


def test_randomized_response_frontier() -> None:
    """N·MSE = 1/(4·sinh²(ε/2)) at μ = ½; of the count, N/2 times the variance of geometric noise, at every ε."""
    people = 1_000
    frontier = frontier_of(RandomizedResponse.binary(people), kron(identity(2)))
    for epsilon in (0.2, 1.0, 3.0):
        one_count = people / (4 * math.sinh(epsilon / 2) ** 2)
        assert frontier.expected_squared_error(epsilon) == pytest.approx(2 * one_count)  # "yes" and "no"
        assert one_count / GEOMETRIC.variance(epsilon) == pytest.approx(people / 2)
        mrt = 2 * people * math.cosh(epsilon / 2) / (4 * math.sinh(epsilon / 2) ** 3)
        assert frontier.marginal_rate_of_transformation(epsilon) == pytest.approx(mrt)
        curvature = -2 * people * (2 + math.cosh(epsilon)) / (8 * math.sinh(epsilon / 2) ** 4)
        assert frontier.second_derivative(epsilon) == pytest.approx(curvature)


def test_concentrated_frontiers_count_in_rho_unless_a_failure_probability_is_stated() -> None:
    rho = frontier_of(gaussian(), identity(9))
    assert rho.privacy_measure is PrivacyMeasure.ZCDP
    assert rho.accuracy(0.02) == pytest.approx(-9 / (2 * 0.02))
    epsilon = frontier_of(gaussian(), identity(9), failure_probability=1e-10)
    assert epsilon.privacy_measure is PrivacyMeasure.PURE_DP
    assert epsilon.accuracy(17.1434) == pytest.approx(rho.accuracy(2.5562), rel=1e-4)
    pure = frontier_of(geometric(), identity(9), failure_probability=1e-10)
    assert pure.name == "geometric"


@pytest.mark.parametrize("mechanism", [laplace(), geometric(), staircase()], ids=lambda m: str(m.name))
def test_tables_with_weights_and_all_measures(mechanism: Mechanism) -> None:
    """Every table's loss sums its queries, whatever the measure; slopes are their derivatives (see conformance)."""
    workload = stack(identity(4), total(4), weights=[1, 3])
    frontier = frontier_of(mechanism, workload)
    assert frontier.query_counts == {"identity": 4, "total": 1}
    squared, largest = frontier.table_errors(1.5), frontier.table_errors(1.5, "largest variance")
    assert squared["identity"] == pytest.approx(4 * largest["identity"])
    assert squared["total"] == pytest.approx(largest["total"])
    assert frontier.table_errors(1.5, "absolute")["identity"] < math.sqrt(4 * squared["identity"])


def test_curvatures_of_absolute_errors_of_combined_noise_are_derivatives() -> None:
    frontier = frontier_of(MatrixMechanism(identity(8), GEOMETRIC), prefix(8))
    for loss in (0.4, 1.3):
        step = 1e-4 * loss
        slopes = [sum(frontier.table_slopes(at, "absolute").values()) for at in (loss - step, loss + step)]
        curvature = sum(frontier.table_curvatures(loss, "absolute").values())
        assert curvature == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, GAUSSIAN], ids=lambda law: str(law.name))
def test_an_optimized_strategy_has_a_frontier_in_every_measure(law: NoiseLaw) -> None:
    """Errors against draws; slopes and curvatures against differences; MRT is minus the slope of squared error."""
    workload = stack(identity(6), total(6))
    mechanism = OptimizedMechanism(law, {"identity": 1.0, "total": 4.0})
    frontier, loss = frontier_of(mechanism, workload), 0.8
    assert frontier.privacy_measure is law.privacy_measure
    generator, counts = np.random.default_rng(11), np.arange(6, dtype=np.int64)
    drawn = mechanism.production(workload).draw(counts, loss, generator=generator, size=4_000) - workload.answers(
        counts
    )
    measured: dict[Measure, NDArray[np.float64]] = {"squared": drawn**2, "absolute": np.abs(drawn)}
    for measure, errors in measured.items():
        found = frontier.table_errors(loss, measure)
        assert found["identity"] == pytest.approx(errors[:, :6].sum() / 4_000, rel=0.05)
        assert found["total"] == pytest.approx(errors[:, 6].sum() / 4_000, rel=0.05)
        step = 1e-4 * loss
        before, after = (frontier.table_errors(at, measure)["total"] for at in (loss - step, loss + step))
        slopes = [frontier.table_slopes(at, measure)["total"] for at in (loss - step, loss + step)]
        assert sum(slopes) / 2 == pytest.approx((after - before) / (2 * step), rel=1e-5)
        curvature = frontier.table_curvatures(loss, measure)["total"]
        assert curvature == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-4)
    assert frontier.marginal_rate_of_transformation(loss) == pytest.approx(-sum(frontier.table_slopes(loss).values()))
    assert frontier.expected_squared_error(frontier.epsilon_for(-5.0)) == pytest.approx(5.0)
