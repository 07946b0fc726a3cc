"""OpenDP's samplers as an oracle: the same law, drawn by others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey, Sampler

DRAWS = 40_000


@pytest.mark.parametrize(
    ("sampler", "scale"),
    [
        (LaplaceSampler(Fraction(1)), 1.0),
        (LaplaceSampler(Fraction(10)), 10.0),
        (LaplaceSampler(Fraction(1000)), 1000.0),
        (GaussianSampler(Fraction(1)), 1.0),
        (GaussianSampler(Fraction(100)), 10.0),
    ],
    ids=str,
)
def test_both_draw_the_same_law(sampler: Sampler, scale: float, key: NoiseKey) -> None:
    """Two-sample chi-square; their draws are new each time, so that one run in a million may fail by chance."""
    dp.enable_features("contrib")
    is_laplace = isinstance(sampler, LaplaceSampler)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int) if is_laplace else dp.l2_distance(T=float)
    measurement = (dp.m.make_laplace if is_laplace else dp.m.make_gaussian)(*space, scale)
    theirs, ours = np.array(measurement([0] * DRAWS)), sampler.draw(key, range(25 * DRAWS))
    edges = np.unique(np.quantile(ours, np.linspace(0.005, 0.995, 60)).astype(np.int64))
    counts = [np.bincount(np.searchsorted(edges, each), minlength=len(edges) + 1) for each in (theirs, ours)]
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-6
