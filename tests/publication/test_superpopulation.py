"""Intervals for the number behind a count: known ones without noise, and coverage over people and noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Noise
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.intervals import Interval
from dualmandate.publication.superpopulation import expected_number_interval

NONE: tuple[Floats, Integers] = np.zeros(0), np.zeros(0, dtype=np.int64)
ONE: tuple[Floats, Integers] = np.ones(1), np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize(
    ("count", "lower", "upper"), [(0, 0.0, 3.689), (2, 0.242, 7.225), (10, 4.795, 18.390), (100, 81.364, 121.627)]
)
def test_without_noise_it_is_garwoods(count: int, lower: float, upper: float) -> None:
    """The table of exact limits for a Poisson mean in Garwood (1936) and every handbook since."""
    found = expected_number_interval(count, *NONE, ())
    assert [found.lower, found.upper] == pytest.approx([lower, upper], abs=1e-3)
    assert "it covers the expected number" in str(found)


@pytest.mark.parametrize("mean", [0.0, 0.5, 4.0, 60.0])
@pytest.mark.parametrize(
    "noise", [Noise(GEOMETRIC, Fraction(5)), Noise(GEOMETRIC, Fraction(1, 3)), Noise(GAUSSIAN, Fraction(9))]
)
def test_it_holds_as_often_as_asked_for(mean: float, noise: Noise) -> None:
    generator = np.random.default_rng(7)
    draws = 20_000
    seen = generator.poisson(mean, draws) + noise.distribution().draw(generator, draws)
    values, counts = np.unique(seen, return_counts=True)
    found: list[Interval] = [expected_number_interval(float(each), *ONE, (noise,)) for each in values]
    held = sum(int(number) for number, one in zip(counts, found, strict=True) if mean in one)
    assert held / draws >= 0.945
    if mean > 1:  # and not for being too wide: half the chance to miss lies on either side
        assert held / draws <= 0.985


def test_it_is_wider_than_either_error_alone() -> None:
    noise = (Noise(GEOMETRIC, Fraction(5)),)
    both, sampled = expected_number_interval(50, *ONE, noise), expected_number_interval(50, *NONE, ())
    assert both.lower < sampled.lower < 50 < sampled.upper < both.upper
    sure = expected_number_interval(50, *ONE, noise, probability=0.99)
    assert sure.lower < both.lower < both.upper < sure.upper
