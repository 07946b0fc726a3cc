"""The value of accuracy from wealth: Taylor, the exact cost, and where the two part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    Exposures,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    WealthRisk,
    choose,
    expected_second_derivative,
    taylor_coefficient,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, UnsupportedWorkload
from dualmandate.population import PrivacyMeasure

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI


def at_s(s: float) -> WealthRisk:
    """One measurement with s = r·|a|·Δ/ε at ε = 1."""
    return WealthRisk(risk_aversion=s, exposures=np.array([1.0]))


def test_the_hand_sized_case() -> None:
    # Research note, section 8: Q = A = I₂, Π = (3, 4), U'' = −r gives b = 6.25·r.
    for strategy in (None, np.eye(2)):
        exposures = Exposures.of(np.array([3.0, 4.0]), np.eye(2), strategy)
        assert exposures.amounts.tolist() == pytest.approx([3, 4])
        assert taylor_coefficient(exposures, -0.02) == pytest.approx(6.25 * 0.02)


def test_a_strategy_that_is_not_the_workload() -> None:
    # Prefix sums of three cells measured as cells: a = ΠᵀQ, ‖Q‖²_F = 6.
    prefix = np.tril(np.ones((3, 3)))
    exposures = Exposures.of(np.array([1.0, 2.0, 3.0]), prefix, np.eye(3))
    assert exposures.amounts.tolist() == pytest.approx([6, 5, 3])
    assert exposures.share == pytest.approx(70 / 6)


def test_taylor_is_half_the_risk_aversion_times_the_variance() -> None:
    # Simulated: the second moment of wealth under Laplace noise on a strategy, against b·(−I).
    generator = np.random.default_rng(7)
    workload = np.tril(np.ones((4, 4)))
    strategy = np.vstack([np.eye(4), np.ones((1, 4))])
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    sensitivity, epsilon, risk_aversion = 2.0, 1.5, 1e-3
    noise = generator.laplace(scale=1 / epsilon, size=(400_000, 5)) * sensitivity
    errors = noise @ np.linalg.pinv(strategy).T @ workload.T
    accuracy = -float(np.mean(np.sum(errors**2, axis=1)))
    exposures = Exposures.of(weights, workload, strategy)
    predicted = -taylor_coefficient(exposures, -risk_aversion) * accuracy
    assert predicted == pytest.approx(0.5 * risk_aversion * float(np.var(errors @ weights)), rel=0.02)
    risk = WealthRisk(risk_aversion, exposures.amounts, sensitivity)
    assert risk.taylor(epsilon) == pytest.approx(predicted, rel=0.02)


def test_title_i_price_is_half_the_risk_aversion(title_i: TitleI) -> None:
    # Every district bears its own error at C a child: Σ b_ℓ = ½·r·C², so a price of 5e-8 is r = 1e-7.
    share = title_i.squared_cost / title_i.districts
    one = taylor_coefficient(Exposures(np.array([math.sqrt(title_i.squared_cost)]), share), -1e-7)
    assert title_i.districts * one == pytest.approx(5e-8 * title_i.squared_cost)


@pytest.mark.parametrize(("s", "ratio"), [(0.5, 1.150728), (0.9, 2.050285)])
def test_where_taylor_fails(s: float, ratio: float) -> None:
    diagnostic = at_s(s).diagnostic(1.0)
    assert diagnostic.ratio == pytest.approx(ratio, abs=5e-7)
    assert diagnostic.ratio == pytest.approx(-math.log(1 - s**2) / s**2, rel=1e-14)
    assert not diagnostic.trustworthy
    assert f"s = {s}" in str(diagnostic)
    assert "too low" in str(diagnostic)


def test_where_taylor_holds() -> None:
    diagnostic = at_s(0.05).diagnostic(1.0)
    assert diagnostic.trustworthy
    assert "close" in str(diagnostic)


@pytest.mark.parametrize("s", [1.0, 1.5])
def test_ruin_costs_without_bound(s: float) -> None:
    assert at_s(s).cost(1.0) == math.inf
    assert at_s(s).marginal_cost(1.0) == -math.inf
    assert "minus infinity" in str(at_s(s).diagnostic(1.0))


def generating_function(noise: str, tilt: float, rate: float) -> mpmath.mpf:
    """E[exp(tilt·X)] by summing or integrating over the noise itself."""
    if noise == "geometric":
        alpha = mpmath.exp(-rate)
        mass = (1 - alpha) / (1 + alpha)
        side = mpmath.nsum(lambda k: mass * alpha**k * mpmath.cosh(tilt * k), [1, mpmath.inf])
        return mass + 2 * side
    if noise == "laplace":
        return mpmath.quad(lambda x: rate * mpmath.exp(-rate * x) * mpmath.cosh(tilt * x), [0, 1, 10, mpmath.inf])
    deviation = mpmath.sqrt(1 / (2 * mpmath.mpf(rate)))
    return mpmath.quad(lambda x: mpmath.npdf(x, 0, deviation) * mpmath.exp(tilt * x), [-mpmath.inf, 0, mpmath.inf])


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize(("aversion", "epsilon"), [(0.3, 0.9), (0.05, 2.0)])
def test_exact_costs(noise: Literal["laplace", "geometric", "gaussian"], aversion: float, epsilon: float) -> None:
    risk = WealthRisk(aversion, np.array([1.5, -0.5]), sensitivity=1.25, noise=noise, people=3.0)
    rate = epsilon / 1.25 if noise != "gaussian" else epsilon / 1.25**2
    with mpmath.workdps(25):
        logs = [mpmath.log(generating_function(noise, aversion * abs(a), rate)) for a in (1.5, -0.5)]
        exact = float(3 * sum(logs) / aversion)
    assert risk.cost(epsilon) == pytest.approx(exact, rel=1e-10)
    step = 1e-5 * epsilon
    slope = (risk.cost(epsilon + step) - risk.cost(epsilon - step)) / (2 * step)
    assert risk.marginal_cost(epsilon) == pytest.approx(slope, rel=1e-8)


@settings(deadline=None, max_examples=60)
@given(s=st.floats(1e-6, 0.99), epsilon=st.floats(1e-3, 50))
def test_the_exact_cost_is_never_below_taylor(s: float, epsilon: float) -> None:
    for noise in ("laplace", "geometric"):
        risk = WealthRisk(s * epsilon, np.array([1.0]), noise=noise)
        assert risk.diagnostic(epsilon).ratio >= 1 - 1e-12
        assert risk.marginal_cost(epsilon) < 0


def test_small_risks_keep_their_digits() -> None:
    for noise in ("laplace", "geometric"):
        risk = WealthRisk(1e-9, np.array([1.0]), noise=noise)
        assert risk.diagnostic(1.0).ratio == pytest.approx(1, abs=1e-12)


def test_nothing_overflows() -> None:
    for noise in ("laplace", "geometric", "gaussian"):
        risk = WealthRisk(1e-3, np.array([1.0, 700.0]), noise=noise)
        assert 0 <= risk.cost(1e3) < math.inf
        assert -math.inf < risk.marginal_cost(1e3) <= 0


def test_gaussian_noise_needs_no_diagnostic() -> None:
    risk = WealthRisk(5.0, np.array([2.0]), sensitivity=3.0, noise="gaussian")
    assert risk.largest_s(0.1) == 0
    assert risk.diagnostic(0.1).ratio == 1
    assert risk.cost(0.5) == pytest.approx(0.5 * 5 * 4 * 9 / (2 * 0.5))


def test_choosing_with_the_exact_cost(title_i: TitleI) -> None:
    frontier, group = title_i.laplace(), PopulationGroup("everybody", title_i.children, LinearCost(title_i.cost))

    def chosen(aversion: float) -> float:
        risk = WealthRisk(aversion, np.array([math.sqrt(title_i.squared_cost)]), people=title_i.districts)
        choice = choose(frontier, SocialWelfare((group,), (), other_losses=(risk,)))
        assert risk.largest_s(choice.epsilon) < 1
        # Marginal cost = marginal gain by hand: K = (L/r)·2s²/((1 − s²)·ε).
        s = risk.largest_s(choice.epsilon)
        gain = title_i.districts / aversion * 2 * s**2 / (1 - s**2) / choice.epsilon
        # Near s = 1 the last digit of ε moves 1 − s² by a thousandth.
        assert gain == pytest.approx(title_i.children * title_i.cost, rel=1e-11 if s < 0.9 else 1e-2)
        return choice.epsilon

    # Weak aversion: the Taylor optimum of the research note (price 5e-8), a little above it.
    assert chosen(1e-7) == pytest.approx(0.00931192, rel=2e-3)
    assert chosen(1e-7) > 0.00931192
    # The paper's implicit r = 2 per dollar ruins at every ε below 8,944: the Taylor value says nothing there.
    taylor = choose(frontier, title_i.welfare()).epsilon
    ruin = WealthRisk(2.0, np.array([math.sqrt(title_i.squared_cost)]))
    assert math.isinf(ruin.cost(taylor))
    assert chosen(2.0) > 8944


def test_taylor_and_exact_agree_in_the_choice(power_frontier: type[PowerFrontier]) -> None:
    frontier, group = power_frontier({"t": 2.0}), PopulationGroup("everybody", 1.0, LinearCost(1e-6))
    exposures = Exposures.of(np.array([1.0]), np.eye(1))
    value = TableValue("t", taylor_coefficient(exposures, -1e-6))
    taylor = choose(frontier, SocialWelfare((group,), (value,)))
    risk = WealthRisk(1e-6, exposures.amounts)
    assert choose(frontier, SocialWelfare((group,), (), other_losses=(risk,))).epsilon == pytest.approx(taylor.epsilon)


def test_expected_curvature_of_utility() -> None:
    wealth = np.array([1.0, 2.0])
    # Logarithmic utility: U'' = −1/W².
    assert expected_second_derivative(lambda w: -1 / w**2, wealth) == pytest.approx(-0.625)
    weighted = expected_second_derivative(lambda w: -1 / w**2, wealth, np.array([0.25, 0.75]))
    assert weighted == pytest.approx(-(0.25 + 0.75 / 4))
    for bad in (lambda w: w, lambda w: 0 * w):
        with pytest.raises(InvalidPreferences, match="second derivative"):
            expected_second_derivative(bad, wealth)
    # Constant relative risk aversion has no value at zero wealth.
    with pytest.raises(InvalidPreferences, match="second derivative"):
        expected_second_derivative(lambda w: -1 / w**2, np.array([0.0, 1.0]))


def test_money_metric() -> None:
    exposures = Exposures.of(np.array([3.0, 4.0]), np.eye(2))
    # Logarithmic utility at wealth 100: r = 1/100.
    in_dollars = taylor_coefficient(exposures, -1e-4, marginal_utility=1e-2)
    assert in_dollars == pytest.approx(6.25 / 100)


def test_what_is_refused(power_frontier: type[PowerFrontier]) -> None:
    with pytest.raises(UnsupportedWorkload):
        Exposures.of(np.array([1.0, 1.0]), np.eye(2), np.array([[1.0, 1.0]]))
    for weights in (np.array([1.0]), np.array([1.0, math.inf])):
        with pytest.raises(InvalidPreferences, match="weights"):
            Exposures.of(weights, np.eye(2))
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidPreferences, match="risk aversion"):
            WealthRisk(bad, np.array([1.0]))
    group = PopulationGroup("everybody", 1.0, LinearCost(1, PrivacyMeasure.ZCDP))
    welfare = SocialWelfare((group,), (), other_losses=(WealthRisk(1.0, np.array([1.0])),))
    with pytest.raises(IncompatibleUnits, match="per epsilon"):
        choose(power_frontier({"t": 1.0}, power=1, privacy_measure=PrivacyMeasure.ZCDP), welfare)
