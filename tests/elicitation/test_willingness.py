"""Willingness to pay as a ratio of estimates: hand cases, Fieller's three shapes, and where there is no number."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from dualmandate.elicitation import taste_of
from dualmandate.elicitation.willingness import (
    Method,
    ParameterEstimates,
    critical_value,
    fieller,
    in_words,
    ratio_willingness,
    simulated_interval,
    willingness_to_pay,
)
from dualmandate.errors import InvalidPreferences, InvalidValue, UnknownName

Z = 1.959963984540054
METHODS: tuple[Method, ...] = ("delta", "krinsky-robb", "fieller")


def estimates(privacy: float, price: float, covariance: ArrayLike) -> ParameterEstimates:
    return ParameterEstimates(
        ("time", "privacy", "price"), np.array([-0.1, privacy, price]), _padded(covariance), -1.0, 100, 50
    )


def _padded(covariance: ArrayLike) -> NDArray[np.float64]:
    padded = np.eye(3)
    padded[1:, 1:] = covariance
    return padded


def test_a_hand_case() -> None:
    # −1/−0.5 = 2; delta: (V_nn + 2·2·V_nd + 4·V_dd)/0.25 = (.01 + .004 + .01)/.25 = .096.
    found = willingness_to_pay(estimates(1.0, -0.5, [[0.01, 0.001], [0.001, 0.0025]]), "privacy", "price")
    assert found.estimate == pytest.approx(2.0, rel=1e-15)
    assert found.standard_error == pytest.approx(math.sqrt(0.096), rel=1e-14)
    assert found.interval == pytest.approx((2 - Z * math.sqrt(0.096), 2 + Z * math.sqrt(0.096)), rel=1e-12)
    assert in_words(found) == "2 USD (95 % interval 1.393 to 2.607, delta)"


def test_the_three_methods_agree_where_the_price_is_sure() -> None:
    # A ratio leans to the side where the price effect is small; with a sure price effect there is nothing to lean on.
    wide = ratio_willingness(np.array([1.85, -1.0]), np.diag([0.008, 0.004]), method="fieller")
    assert wide.interval is not None
    assert wide.interval[1] - 1.85 > 1.85 - wide.interval[0]
    sure = [
        ratio_willingness(np.array([1.85, -1.0]), np.diag([0.01, 1e-8]), method=method).interval for method in METHODS
    ]
    for interval in sure:
        assert interval is not None
        assert interval == pytest.approx(sure[0], abs=3e-4)


def test_fieller_ends_are_where_the_test_just_rejects() -> None:
    values, covariance = np.array([1.0, -0.5]), np.array([[0.04, 0.01], [0.01, 0.01]])
    found = fieller(values, covariance, critical=Z)
    assert found.shape == "interval"
    for end in (found.lower, found.upper):
        error = math.sqrt(covariance[0, 0] + 2 * end * covariance[0, 1] + end**2 * covariance[1, 1])
        assert abs(values[0] + end * values[1]) / error == pytest.approx(Z, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "variances", "shape"),
    [
        ((1.0, -0.5), (0.04, 0.01), "interval"),
        ((1.0, -0.1), (0.04, 0.01), "outside an interval"),
        ((0.1, -0.1), (0.04, 0.01), "whole line"),
    ],
)
def test_fieller_has_three_shapes(values: tuple[float, float], variances: tuple[float, float], shape: str) -> None:
    found = fieller(np.array(values), np.diag(variances), critical=Z)
    assert found.shape == shape
    at = np.linspace(-60, 60, 4001)
    kept = (values[0] + at * values[1]) ** 2 <= Z**2 * (variances[0] + at**2 * variances[1])
    assert [number in found for number in at.tolist()] == kept.tolist()


def test_fieller_where_one_root_is_infinite() -> None:
    # Exact in binary: |d| = z·√V_dd with z = 2, so everything on one side of −C/2B is kept.
    found = fieller(np.array([1.0, -0.5]), np.diag([0.0625, 0.0625]), critical=2.0)
    assert (found.shape, found.lower, found.upper) == ("interval", 0.75, math.inf)
    mirrored = fieller(np.array([-1.0, -0.5]), np.diag([0.0625, 0.0625]), critical=2.0)
    assert (mirrored.lower, mirrored.upper) == (-math.inf, -0.75)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-5, 5),
    st.floats(-5, -0.01),
    st.floats(0.001, 2),
    st.floats(0.001, 2),
    st.floats(-0.95, 0.95),
    st.floats(-100, 100),
)
def test_fieller_is_the_set_of_ratios_that_are_not_rejected(
    numerator: float, price: float, first: float, second: float, correlation: float, ratio: float
) -> None:
    covariance = np.array([[first**2, correlation * first * second], [correlation * first * second, second**2]])
    found = fieller(np.array([numerator, price]), covariance, critical=Z)
    left = (numerator + ratio * price) ** 2
    right = Z**2 * (covariance[0, 0] + 2 * ratio * covariance[0, 1] + ratio**2 * covariance[1, 1])
    if abs(left - right) > 1e-9 * (left + right):
        assert (ratio in found) == (left <= right)


@pytest.mark.parametrize("method", METHODS)
def test_where_the_price_may_have_no_effect_there_is_no_number(method: Method) -> None:
    found = willingness_to_pay(estimates(1.0, -0.5, np.diag([0.01, 0.07])), "privacy", "price", method=method)
    assert (found.estimate, found.standard_error, found.interval) == (None, None, None)
    words = in_words(found)
    assert "unbounded" in words
    assert not any(character.isdigit() for character in words.replace("95 %", ""))
    # The same estimates are bounded at a level that the price's effect passes.
    assert willingness_to_pay(
        estimates(1.0, -0.5, np.diag([0.01, 0.07])), "privacy", "price", method=method, level=0.9
    ).estimate == pytest.approx(2.0)


def test_a_price_that_attracts_is_refused() -> None:
    with pytest.raises(InvalidPreferences, match="more often"):
        willingness_to_pay(estimates(1.0, 0.5, np.diag([0.01, 0.0025])), "privacy", "price")


def test_simulated_quantiles_are_those_of_the_normal_law() -> None:
    low, high = simulated_interval(np.array([3.0, 1.0]), np.diag([4.0, 1.0]), lambda draws: draws[:, 0], level=0.95)
    assert (low, high) == pytest.approx((3 - 2 * Z, 3 + 2 * Z), abs=0.01)
    again = simulated_interval(np.array([3.0, 1.0]), np.diag([4.0, 1.0]), lambda draws: draws[:, 0], level=0.95)
    assert again == (low, high)


def test_krinsky_and_robb_agree_with_plain_simulation() -> None:
    values, covariance = np.array([1.0, -0.5]), np.array([[0.02, 0.004], [0.004, 0.01]])
    found = ratio_willingness(values, covariance, method="krinsky-robb")
    draws = np.random.default_rng(1).multivariate_normal(values, covariance, 400_000)
    assert found.interval == pytest.approx(tuple(np.quantile(-draws[:, 0] / draws[:, 1], [0.025, 0.975])), rel=0.01)


def test_names_levels_and_methods_that_do_not_exist() -> None:
    assert critical_value(0.95) == pytest.approx(Z, rel=1e-14)
    with pytest.raises(InvalidValue, match="level"):
        critical_value(1.0)
    with pytest.raises(UnknownName, match="bootstrap"):
        critical_value(0.95, "bootstrap")
    with pytest.raises(UnknownName, match="wage"):
        willingness_to_pay(estimates(1.0, -0.5, np.eye(2)), "wage", "price")


def tastes(**values: float) -> ParameterEstimates:
    names = tuple(name.replace("_", " ") for name in values)
    spread = np.full((len(names), len(names)), 0.002) + 0.008 * np.eye(len(names))
    return ParameterEstimates(names, np.array(list(values.values())), spread, -1.0, 10, 10)


def simulated_errors(given: ParameterEstimates, name: str) -> tuple[float, float]:
    """Standard deviations of the mean and spread over estimates that might have been."""
    generator = np.random.default_rng(1)
    small = ParameterEstimates(given.names, given.values, given.covariance * 1e-4, -1.0, 10, 10)
    points = generator.multivariate_normal(small.values, small.covariance, 4000)
    tastes = [taste_of(ParameterEstimates(given.names, each, small.covariance, -1.0, 10, 10), name) for each in points]
    spreads = np.std([taste.mean for taste in tastes]), np.std([taste.standard_deviation for taste in tastes])
    return 100 * float(spreads[0]), 100 * float(spreads[1])


def test_normal() -> None:
    found = taste_of(tastes(epsilon=-1.0, standard_deviation_of_epsilon=2.0), "epsilon")
    assert astuple(found) == pytest.approx((-1.0, 0.1, 2.0, 0.1, -1.0, stats.norm.cdf(-0.5)))


def test_alike() -> None:
    assert astuple(taste_of(tastes(price=-0.5), "price")) == pytest.approx((-0.5, 0.1, 0.0, 0.0, -0.5, 0.0))
    assert taste_of(tastes(price=0.5, standard_deviation_of_price=0.0), "price").share_positive == 1
    scale = taste_of(tastes(log_scale=np.log(2.0)), "scale")
    assert astuple(scale) == pytest.approx((2.0, 0.2, 0.0, 0.0, 2.0, 1.0))


@pytest.mark.parametrize(("minus", "sign"), [("", 1), ("minus_", -1)])
def test_lognormal(minus: str, sign: int) -> None:
    given = tastes(**{f"mean_of_log_{minus}price": 0.3, f"standard_deviation_of_log_{minus}price": 0.6}, epsilon=1.0)
    found, law = taste_of(given, "price"), stats.lognorm(0.6, scale=np.exp(0.3))
    assert found.mean == pytest.approx(sign * law.mean())
    assert found.standard_deviation == pytest.approx(law.std())
    assert found.median == pytest.approx(sign * law.median())
    assert found.share_positive == (sign > 0)
    errors = simulated_errors(given, "price")
    assert (found.mean_standard_error, found.standard_deviation_standard_error) == pytest.approx(errors, rel=0.05)


@pytest.mark.parametrize("mean", [-3.0, -0.5, 0.0, 1.2, 4.0])
def test_triangular(mean: float) -> None:
    found = taste_of(tastes(epsilon=mean, half_width_of_epsilon=2.0), "epsilon")
    law = stats.triang(0.5, loc=mean - 2, scale=4)
    assert found.standard_deviation == pytest.approx(law.std())
    assert found.share_positive == pytest.approx(law.sf(0))
    assert found.standard_deviation_standard_error == pytest.approx(0.1 / np.sqrt(6))
