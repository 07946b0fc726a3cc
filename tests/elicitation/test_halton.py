from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from dualmandate.elicitation.likelihood import halton, normal_draws, triangular


def test_digits_fill_their_cells() -> None:
    """Among any base^m consecutive points from the start, each interval of that length holds exactly one."""
    for base, column in zip((2, 3, 5, 7, 11), halton(11**2, 5), strict=True):
        size = base**2
        assert sorted(np.floor(column[:size] * size).astype(int)) == list(range(size))


def test_the_same_points_every_time() -> None:
    assert (halton(100, 3) == halton(100, 3)).all()
    assert (halton(1000, 5)[:3, :100] == halton(100, 3)).all()


def test_points_are_inside_and_even() -> None:
    points = halton(2000, 12)
    assert points.shape == (12, 2000)
    assert 0 < points.min() < points.max() < 1
    random = np.random.default_rng(1).random((2000, 12))
    assert qmc.discrepancy(points[:6].T) < qmc.discrepancy(random[:, :6]) / 10
    assert qmc.discrepancy(points[:6].T) < 1.2 * qmc.discrepancy(qmc.Halton(6, rng=1).random(2000))
    correlations = np.corrcoef(points) - np.eye(12)
    assert np.abs(correlations).max() < 0.03  # plain Halton columns of bases 31 and 37 come in bands


def test_normal_draws_are_normal_for_everybody() -> None:
    draws = normal_draws(50, 400, 3)
    assert draws.shape == (50, 3, 400)
    assert np.abs(draws.mean(axis=2)).max() < 0.05
    assert draws.var(axis=2) == pytest.approx(1, abs=0.1)
    assert stats.kstest(draws[:, 1].reshape(-1), "norm").pvalue > 0.01
    assert not (draws[0] == draws[1]).any()


def test_triangular_draws_keep_ranks() -> None:
    normal = np.linspace(-4, 4, 2001)
    found = triangular(normal)
    expected = stats.triang(0.5, loc=-1, scale=2).ppf(stats.norm.cdf(normal))
    assert found == pytest.approx(expected, abs=1e-12)
    assert triangular(normal_draws(50, 400, 1)).var() == pytest.approx(1 / 6, rel=1e-3)
