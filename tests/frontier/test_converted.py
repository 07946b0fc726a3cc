"""A frontier in ρ expressed in ε at a stated δ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dualmandate.errors import InvalidLoss
from dualmandate.frontier import envelope, in_epsilon, public_guess, split
from dualmandate.frontier.numerics import derivative
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.laplace import LAPLACE
from dualmandate.population import PrivacyMeasure
from dualmandate.population.loss import epsilon_at, rho_at

if TYPE_CHECKING:
    from tests.frontier.conftest import LawFrontier


def test_frontier_in_epsilon_is_the_frontier_in_rho_at_the_converted_loss(of_law: LawFrontier) -> None:
    inner = of_law(GAUSSIAN, {"a": 3.0, "b": 40.0})
    frontier = in_epsilon(inner, 1e-9)
    assert frontier.privacy_measure is PrivacyMeasure.PURE_DP
    assert frontier.name == "gaussian at δ = 1e-09"
    for rho in (0.01, 0.4, 3.0):
        epsilon = epsilon_at(rho, 1e-9)
        assert frontier.accuracy(epsilon) == pytest.approx(inner.accuracy(rho), rel=1e-9)
        assert frontier.epsilon_for(inner.accuracy(rho)) == pytest.approx(epsilon, rel=1e-9)
    assert frontier.allocation(2.0) == {"all": 2.0}
    assert frontier.technology(2.0) == "gaussian"


def test_a_loss_that_the_failure_probability_covers_costs_no_epsilon(of_law: LawFrontier) -> None:
    frontier = in_epsilon(of_law(GAUSSIAN, {"a": 1.0}), 0.1)
    assert frontier.epsilon_for(-1e6) == 0.0
    assert frontier.accuracy(1e-9) > -1e3


def test_an_accuracy_that_a_guess_has_costs_no_epsilon(of_law: LawFrontier) -> None:
    measured = of_law(GAUSSIAN, {"a": 1.0})
    converted = in_epsilon(envelope([public_guess(measured, {"a": 5.0}), measured]), 1e-10)
    assert converted.epsilon_for(-6.0) == 0.0
    assert converted.expected_squared_error(converted.epsilon_for(-4.0)) == pytest.approx(4.0)


def test_groups_keep_their_rho(of_law: LawFrontier) -> None:
    inner = split([of_law(GAUSSIAN, {"a": 2.0}), of_law(GAUSSIAN, {"b": 8.0})])
    frontier = in_epsilon(inner, 1e-10)
    rho = rho_at(1.0, 1e-10)
    assert frontier.allocation(1.0) == pytest.approx({"a": rho / 3, "b": 2 * rho / 3})
    assert derivative(frontier.accuracy, 1.0) == pytest.approx(frontier.marginal_rate_of_transformation(1.0), rel=1e-9)


def test_what_is_not_concentrated_is_refused(of_law: LawFrontier) -> None:
    with pytest.raises(InvalidLoss, match="in epsilon already"):
        in_epsilon(of_law(LAPLACE, {"a": 1.0}), 1e-10)
    for failure_probability in (0.0, 1.0):
        with pytest.raises(InvalidLoss, match="failure probability"):
            in_epsilon(of_law(GAUSSIAN, {"a": 1.0}), failure_probability)
