from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from dualmandate.elicitation import Estimates, taste_of


def estimates(**values: float) -> Estimates:
    names = tuple(name.replace("_", " ") for name in values)
    spread = np.full((len(names), len(names)), 0.002) + 0.008 * np.eye(len(names))
    return Estimates(names, np.array(list(values.values())), spread, -1.0, 10, 10)


def simulated_errors(given: Estimates, name: str) -> tuple[float, float]:
    """Standard deviations of the mean and spread over estimates that might have been."""
    generator = np.random.default_rng(1)
    small = Estimates(given.names, given.values, given.covariance * 1e-4, -1.0, 10, 10)
    points = generator.multivariate_normal(small.values, small.covariance, 4000)
    tastes = [taste_of(Estimates(given.names, each, small.covariance, -1.0, 10, 10), name) for each in points]
    spreads = np.std([taste.mean for taste in tastes]), np.std([taste.standard_deviation for taste in tastes])
    return 100 * float(spreads[0]), 100 * float(spreads[1])


def test_normal() -> None:
    found = taste_of(estimates(epsilon=-1.0, standard_deviation_of_epsilon=2.0), "epsilon")
    assert astuple(found) == pytest.approx((-1.0, 0.1, 2.0, 0.1, -1.0, stats.norm.cdf(-0.5)))


def test_alike() -> None:
    assert astuple(taste_of(estimates(price=-0.5), "price")) == pytest.approx((-0.5, 0.1, 0.0, 0.0, -0.5, 0.0))
    assert taste_of(estimates(price=0.5, standard_deviation_of_price=0.0), "price").share_positive == 1
    scale = taste_of(estimates(log_scale=np.log(2.0)), "scale")
    assert astuple(scale) == pytest.approx((2.0, 0.2, 0.0, 0.0, 2.0, 1.0))


@pytest.mark.parametrize(("minus", "sign"), [("", 1), ("minus_", -1)])
def test_lognormal(minus: str, sign: int) -> None:
    given = estimates(**{f"mean_of_log_{minus}price": 0.3, f"standard_deviation_of_log_{minus}price": 0.6}, epsilon=1.0)
    found, law = taste_of(given, "price"), stats.lognorm(0.6, scale=np.exp(0.3))
    assert found.mean == pytest.approx(sign * law.mean())
    assert found.standard_deviation == pytest.approx(law.std())
    assert found.median == pytest.approx(sign * law.median())
    assert found.share_positive == (sign > 0)
    errors = simulated_errors(given, "price")
    assert (found.mean_standard_error, found.standard_deviation_standard_error) == pytest.approx(errors, rel=0.05)


@pytest.mark.parametrize("mean", [-3.0, -0.5, 0.0, 1.2, 4.0])
def test_triangular(mean: float) -> None:
    found = taste_of(estimates(epsilon=mean, half_width_of_epsilon=2.0), "epsilon")
    law = stats.triang(0.5, loc=mean - 2, scale=4)
    assert found.standard_deviation == pytest.approx(law.std())
    assert found.share_positive == pytest.approx(law.sf(0))
    assert found.standard_deviation_standard_error == pytest.approx(0.1 / np.sqrt(6))
