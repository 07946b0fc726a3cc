"""Technologies known by a bound on their worst error."""

from __future__ import annotations

import math

import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.frontier.worst_case import (
    PowerLawTechnology,
    multiplicative_weights_exponential,
    private_multiplicative_weights,
)


def test_a_hand_case() -> None:
    technology = PowerLawTechnology(2.0, 0.5)  # α = 2/√ε
    assert technology.error(16.0) == 0.5
    assert technology.accuracy(16.0) == 0.5
    assert technology.marginal_rate_of_transformation(16.0) == 0.5 * 0.5 / 16
    assert technology.epsilon_for(0.5) == pytest.approx(16.0)
    assert technology.optimum(1 / 64) == pytest.approx(16.0)


def test_the_rate_is_the_slope() -> None:
    technology = multiplicative_weights_exponential(197_040_596, 797, 318_003)
    step = 1e-7
    slope = (technology.accuracy(0.05 + step) - technology.accuracy(0.05 - step)) / (2 * step)
    assert technology.marginal_rate_of_transformation(0.05) == pytest.approx(slope, rel=1e-6)


def test_private_multiplicative_weights_by_hand() -> None:
    # ln(k/β) = 4, ln(4/δ) = 9, ln|χ| = 16: K = 8·√(3·36)·2/√n.
    technology = private_multiplicative_weights(
        1e6, round(math.exp(16)), round(math.exp(9)), failure_probability=4 * math.exp(-9), miss_probability=math.exp(5)
    )
    assert technology.constant == pytest.approx(8 * math.sqrt(108) * 2 / 1000, rel=1e-4)
    assert technology.exponent == 0.5


def test_the_working_papers_rounds() -> None:
    # 9·ln|χ|/α² rounds of multiplicative weights at the optimum, as their log prints.
    technology = multiplicative_weights_exponential(197_040_596, 797, 318_003)
    error = technology.error(technology.optimum(1.083 / 1.040))
    assert 9 * math.log(797) / error**2 == pytest.approx(3158.720177244290, rel=1e-12)


def test_refusals() -> None:
    with pytest.raises(InvalidMechanism):
        PowerLawTechnology(0.0, 0.5)
    with pytest.raises(InvalidLoss):
        PowerLawTechnology(1.0, 0.5).error(0.0)
    with pytest.raises(InvalidLoss):
        PowerLawTechnology(1.0, 0.5).epsilon_for(1.0)
