"""The closed forms to full precision, from tiny to huge losses, against long arithmetic and figures from outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest

from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, LAPLACE, NOISE_LAWS, STAIRCASE, NoiseLaw
from dualmandate.mechanism.gaussian import log_theta, upper_sum

Number = Any  # of mpmath, which has no types
UNITS = (1e-8, 1e-4, 0.1, 1.0, 2.5276, 10.0, 60.0, 700.0)


def laplace(u: Number) -> Number:
    return 2 / u**2


def geometric(u: Number) -> Number:
    return 1 / (2 * mpmath.sinh(u / 2) ** 2)


def staircase(u: Number) -> Number:
    """Variance of the staircase with its γ put in, not the simplified form."""
    return staircase_moment(u, 2)


def staircase_absolute(u: Number) -> Number:
    return staircase_moment(u, 1)


def staircase_moment(u: Number, power: int) -> Number:
    b = mpmath.exp(-u)
    gamma = -b / (1 - b) + mpmath.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (mpmath.cbrt(2) * (1 - b) ** 2)
    mass = gamma + b * (1 - gamma)
    sums = (1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3)
    parts = [(gamma**n + b * (1 - gamma**n)) for n in (1, 2, 3)]
    if power == 1:
        return (1 - b) / mass * (parts[0] * sums[1] + parts[1] * sums[0] / 2)
    return (1 - b) / mass * (parts[0] * sums[2] + parts[1] * sums[1] + parts[2] * sums[0] / 3)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("law", "variance", "absolute"),
    [
        (LAPLACE, laplace, lambda u: 1 / u),
        (GEOMETRIC, geometric, lambda u: 1 / mpmath.sinh(u)),
        (STAIRCASE, staircase, staircase_absolute),
    ],
    ids=["laplace", "geometric", "staircase"],
)
def test_pure_laws_to_fourteen_digits(
    law: NoiseLaw, variance: Callable[[Number], Number], absolute: Callable[[Number], Number], unit: float
) -> None:
    with mpmath.workdps(400):
        u, step = mpmath.mpf(unit), mpmath.mpf(unit) * mpmath.mpf(10) ** -60
        expected = [variance(u), mpmath.diff(variance, u, 1, h=step), mpmath.diff(variance, u, 2, h=step)]
        expected += [absolute(u), mpmath.diff(absolute, u, 1, h=step)]
        found = [
            law.variance(unit),
            law.variance_slope(unit),
            law.variance_curvature(unit),
            law.mean_absolute(unit),
            law.mean_absolute_slope(unit),
        ]
        # exp(−2·700/3) is known to no more than 700 units in the last place.
        allowed = 1e-14 + 5e-17 * unit
        for number, exact in zip(found, expected, strict=True):
            assert abs(number / exact - 1) < allowed


@pytest.mark.parametrize("sigma_squared", [1e-3, 0.02, 0.3, 0.4999, 0.5001, 1.0, 7.0, 49.0])
def test_the_discrete_gaussian_to_fourteen_digits(sigma_squared: float) -> None:
    unit = 1 / (2 * sigma_squared)
    with mpmath.workdps(300):
        weights = {
            n: 2 * mpmath.exp(-mpmath.mpf(unit) * n * n) for n in range(1, int(28 * math.sqrt(sigma_squared)) + 4)
        }
        total = 1 + sum(weights.values())
        moments = {p: sum(w * mpmath.mpf(n) ** p for n, w in weights.items()) / total for p in (1, 2, 3, 4, 6)}
        expected = [
            moments[2],
            moments[2] ** 2 - moments[4],
            moments[6] - 3 * moments[4] * moments[2] + 2 * moments[2] ** 3,
            moments[1],
            moments[1] * moments[2] - moments[3],
            mpmath.log(total),
        ]
        found = [
            GAUSSIAN.variance(unit),
            GAUSSIAN.variance_slope(unit),
            GAUSSIAN.variance_curvature(unit),
            GAUSSIAN.mean_absolute(unit),
            GAUSSIAN.mean_absolute_slope(unit),
            log_theta(unit),
        ]
        for number, exact in zip(found, expected, strict=True):
            assert abs(number / exact - 1) < 1e-14


@pytest.mark.parametrize("sigma_squared", [1e2, 1e4, 1e8])
def test_a_wide_discrete_gaussian_is_gaussian(sigma_squared: float) -> None:
    unit = 1 / (2 * sigma_squared)
    assert GAUSSIAN.variance(unit) == pytest.approx(sigma_squared, rel=1e-15)
    assert GAUSSIAN.variance_slope(unit) == pytest.approx(-2 * sigma_squared**2, rel=1e-15)
    assert GAUSSIAN.variance_curvature(unit) == pytest.approx(8 * sigma_squared**3, rel=1e-15)
    assert log_theta(unit) == pytest.approx(math.log(2 * math.pi * sigma_squared) / 2, rel=1e-15)
    # E|X| = σ·√(2/π)·(1 − u/6 − u²/60 − u³/252 − …), by the Euler-Maclaurin formula.
    expected = math.sqrt(2 * sigma_squared / math.pi) * (1 - unit / 6 - unit**2 / 60 - unit**3 / 252)
    assert GAUSSIAN.mean_absolute(unit) == pytest.approx(expected, rel=unit**4 + 1e-15)


@pytest.mark.parametrize(("unit", "start"), [(1.0000001e-6, 1), (0.9999999e-6, 1), (0.9e-6, 4321), (0.9e-6, 20_000)])
def test_upper_sums_on_both_sides_of_the_switch(unit: float, start: int) -> None:
    summed = math.fsum(math.exp(-unit * n * n) for n in range(start, 60_000))
    assert upper_sum(unit, start) == pytest.approx(summed, rel=1e-12)


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, STAIRCASE, GAUSSIAN], ids=lambda law: law.name)
@pytest.mark.parametrize("unit", [1e-150, 1e-12, 1e3, 1e5, 1e300])
def test_extreme_losses_neither_overflow_nor_fail(law: NoiseLaw, unit: float) -> None:
    numbers = [law.variance(unit), -law.variance_slope(unit), law.variance_curvature(unit), law.mean_absolute(unit)]
    assert all(number >= 0 for number in numbers)
    if unit > 1:
        assert all(number < 1 for number in numbers)
        assert law.at(unit).reach(0.05) < 1
    else:
        assert law.variance(unit) > 1e11


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(0.1, 0.999), (1.0, 0.921), (2.53, 0.603), (4.0, 0.304), (10.0, 0.0045)]
)
def test_geometric_beats_laplace_by_the_known_ratios(epsilon: float, ratio: float) -> None:
    assert GEOMETRIC.variance(epsilon) / LAPLACE.variance(epsilon) == pytest.approx(ratio, rel=0.01)


def test_title_i_root_mean_squared_errors() -> None:
    assert math.sqrt(LAPLACE.variance(2.527644)) == pytest.approx(0.559499, abs=5e-7)
    assert math.sqrt(GEOMETRIC.variance(2.444299)) == pytest.approx(0.456216, abs=5e-7)
    assert math.sqrt(GEOMETRIC.variance(4.055453)) == pytest.approx(0.189442, abs=5e-7)


def test_staircase_against_laplace() -> None:
    # Geng and Viswanath: the same for small ε, exponentially better for large ε; geometric is better still on counts.
    assert STAIRCASE.variance(1e-3) / LAPLACE.variance(1e-3) == pytest.approx(1, abs=1e-6)
    for epsilon in (0.5, 2.0, 5.0, 10.0):
        assert GEOMETRIC.variance(epsilon) < STAIRCASE.variance(epsilon) < LAPLACE.variance(epsilon)
    assert STAIRCASE.variance(30.0) == pytest.approx(2 ** (-2 / 3) * math.exp(-20), rel=1e-4)


def test_only_laws_that_are_drawn_exactly_are_published() -> None:
    assert {name for name, law in NOISE_LAWS.items() if law.publishable} == {"geometric", "gaussian"}
