"""From ρ to (ε, δ) and back: the 2020 Census settings, safe rounding, derivatives."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidLoss
from dualmandate.population.loss import epsilon_at, rho_at, rho_curvature_at, rho_slope_at

DELTA = 1e-10

# Production settings of the 2020 Census products: ρ = 1/global_scale², and the ε published for δ = 1e-10.
CENSUS = [
    (Fraction(542, 339) ** 2, 17.14),
    (Fraction(3379, 12343) ** 2, 2.47),
    (Fraction(485, 254) ** 2, 21.13),
    (Fraction(439, 429) ** 2, 10.30),
    (Fraction(959, 4499) ** 2, 1.90),
    (Fraction(1024, 2379) ** 2, 4.00),
    (Fraction(1024, 17371) ** 2, 0.50),
]

losses = st.floats(1e-6, 1e4)
deltas = st.floats(-200, -0.1).map(lambda exponent: 10.0**exponent)


def delta_of(rho: float, epsilon: float) -> float:
    """The definition, by brute force: the least δ over a dense grid of orders."""
    logs = []
    for step in range(1, 20_000):
        t = math.exp(-6 + step * 1e-3)
        alpha = 1 + t
        logs.append(t * (alpha * rho - epsilon) - math.log(t) + alpha * math.log1p(-1 / alpha))
    return math.exp(min(logs))


@pytest.mark.parametrize(("rho", "epsilon"), CENSUS)
def test_the_census_settings(rho: Fraction, epsilon: float) -> None:
    assert epsilon_at(rho, DELTA) == pytest.approx(epsilon, abs=0.005)


def test_the_simple_bound_is_larger() -> None:
    rho = float(CENSUS[0][0])
    simple = rho + 2 * math.sqrt(rho * math.log(1 / DELTA))
    assert simple == pytest.approx(17.90, abs=0.005)
    assert epsilon_at(rho, DELTA) < simple


def test_a_quoted_rho_loses_information() -> None:
    assert epsilon_at(0.07, DELTA) == pytest.approx(2.39, abs=0.005)


def exact_epsilon(rho: float, delta: float) -> Decimal:
    """The same with fifty digits: Newton's method for ρt² = ln(1/δ) − ln(1 + t), from the right of its root."""
    with localcontext(prec=50):
        concentrated, log_odds = Decimal(rho), -Decimal(delta).ln()
        t = (log_odds / concentrated).sqrt()
        for _ in range(200):
            t -= (concentrated * t * t + (1 + t).ln() - log_odds) / (2 * concentrated * t + 1 / (1 + t))
        return concentrated * (1 + t) + (t / (1 + t)).ln() + (log_odds - (1 + t).ln()) / t


@given(rho=st.floats(0.01, 100.0), delta=st.floats(-30, -2).map(lambda exponent: 10.0**exponent))
@settings(max_examples=30, deadline=None)
def test_conversions_are_rounded_the_safe_way(rho: float, delta: float) -> None:
    exact = exact_epsilon(rho, delta)
    assert exact <= Decimal(epsilon_at(rho, delta)) <= exact * (1 + Decimal("1e-12"))
    assert exact_epsilon(rho_at(float(exact), delta), delta) <= Decimal(float(exact))


@pytest.mark.parametrize(("rho", "delta"), [(2.5, 1e-10), (0.1, 1e-6), (1e-3, 1e-3), (30.0, 1e-12)])
def test_the_definition_agrees(rho: float, delta: float) -> None:
    assert delta_of(rho, epsilon_at(rho, delta)) == pytest.approx(delta, rel=1e-5)


@given(rho=losses, delta=deltas)
@settings(max_examples=60, deadline=None)
def test_there_and_back_never_gains(rho: float, delta: float) -> None:
    epsilon = epsilon_at(rho, delta)
    if epsilon > 1e-9:
        back = rho_at(epsilon, delta)
        assert back == pytest.approx(rho, rel=1e-9)
        assert epsilon_at(back, delta) <= epsilon + 1e-12 * (1 + epsilon)


@given(epsilon=losses, delta=deltas)
@settings(max_examples=60, deadline=None)
def test_a_chosen_rho_keeps_to_its_epsilon(epsilon: float, delta: float) -> None:
    rho = rho_at(epsilon, delta)
    assert rho > 0
    assert epsilon_at(rho, delta) <= epsilon + 1e-12 * (1 + epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.5, 17.0, 300.0])
def test_slopes_are_derivatives(epsilon: float) -> None:
    step = 1e-4 * epsilon
    chord = (rho_at(epsilon + step, DELTA) - rho_at(epsilon - step, DELTA)) / (2 * step)
    bend = (rho_slope_at(epsilon + step, DELTA) - rho_slope_at(epsilon - step, DELTA)) / (2 * step)
    assert rho_slope_at(epsilon, DELTA) == pytest.approx(chord, rel=1e-6)
    assert rho_curvature_at(epsilon, DELTA) == pytest.approx(bend, rel=1e-6)


def test_a_loss_that_delta_covers_is_nothing() -> None:
    assert epsilon_at(1e-6, 0.5) == 0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_only_positive_losses_are_converted(bad: float) -> None:
    with pytest.raises(InvalidLoss, match="conversion of rho"):
        epsilon_at(bad, DELTA)
    with pytest.raises(InvalidLoss, match="conversion of epsilon"):
        rho_at(bad, DELTA)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan])
def test_delta_is_a_probability(bad: float) -> None:
    with pytest.raises(InvalidLoss, match="failure probability"):
        epsilon_at(1.0, bad)
    with pytest.raises(InvalidLoss, match="failure probability"):
        rho_at(1.0, bad)
