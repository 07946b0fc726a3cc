"""What every noise says about itself: moments, tails, quantiles, characteristic function and draws agree."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    STAIRCASE,
    Distribution,
    NoiseLaw,
    NoiseMechanism,
    Staircase,
)
from dualmandate.mechanism.mechanism import LatticeLaw, Stretched
from dualmandate.workload import identity

UNITS = (0.02, 0.3, 1.0, 2.5, 6.0)
LAWS: list[NoiseLaw] = [
    LAPLACE,
    GEOMETRIC,
    STAIRCASE,
    GAUSSIAN,
    LatticeLaw(GEOMETRIC, Fraction(1, 3)),
    LatticeLaw(STAIRCASE, Fraction(5, 2)),
    LatticeLaw(GAUSSIAN, Fraction(2, 7)),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.name} {getattr(law, 'step', '')}")
every_unit = pytest.mark.parametrize("unit", UNITS)


def support(noise: Distribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and probabilities: all of a discrete noise, or narrow cells of a continuous one that respect its kinks."""
    far = noise.reach(1e-18)
    if noise.discrete:
        count = round(far / noise.step) + 2
        values = noise.step * np.arange(-count, count + 1, dtype=np.float64)
        return values, np.exp([noise.log_likelihood(float(value)) for value in values])
    stretch = noise.factor if isinstance(noise, Stretched) else 1.0
    inner = noise.noise if isinstance(noise, Stretched) else noise
    high = inner.high_share if isinstance(inner, Staircase) else 0.5
    wholes = np.arange(0, math.ceil(far / stretch) + 1, dtype=np.float64)
    fine = np.linspace(0, 1, 41 if len(wholes) < 100 else 5)[:-1]
    edges = np.unique(np.concatenate([wholes[:, None] + high * fine, wholes[:, None] + high + (1 - high) * fine]))
    edges = np.concatenate([-edges[:0:-1], edges]) * stretch
    middles = (edges[1:] + edges[:-1]) / 2
    return middles, np.diff(edges) * np.exp([noise.log_likelihood(float(middle)) for middle in middles])


@every_law
@every_unit
def test_probabilities_give_the_moments(law: NoiseLaw, unit: float) -> None:
    noise = law.at(unit)
    values, probabilities = support(noise)
    # Cells of a continuous noise are narrow, not points: some parts in ten thousand.
    tolerance = 1e-11 if noise.discrete else 2e-3
    assert probabilities.sum() == pytest.approx(1, rel=tolerance)
    assert values**2 @ probabilities == pytest.approx(noise.variance, rel=tolerance)
    assert np.abs(values) @ probabilities == pytest.approx(noise.mean_absolute, rel=tolerance)
    assert noise.variance == pytest.approx(law.variance(unit), rel=1e-14)
    assert noise.mean_absolute == pytest.approx(law.mean_absolute(unit), rel=1e-14)


@every_law
@every_unit
def test_probabilities_give_the_characteristic_function(law: NoiseLaw, unit: float) -> None:
    noise = law.at(unit)
    values, probabilities = support(noise)
    frequencies = np.array([0.0, 0.01, 0.4, 2.0, 7.0])
    summed = np.cos(np.multiply.outer(frequencies, values)) @ probabilities
    assert noise.characteristic(frequencies) == pytest.approx(summed, abs=1e-11 if noise.discrete else 3e-3)


@every_law
@every_unit
def test_tails_are_sums_of_probabilities(law: NoiseLaw, unit: float) -> None:
    noise = law.at(unit)
    assert noise.tail(-0.1) == 1
    values, probabilities = support(noise)
    for distance in (0.0, 0.4 * noise.step, noise.mean_absolute, 3.3 * math.sqrt(noise.variance)):
        summed = probabilities[np.abs(values) > distance + 1e-12].sum()
        assert noise.tail(distance) == pytest.approx(summed, rel=1e-9, abs=1e-11 if noise.discrete else 5e-2)


@every_law
@every_unit
def test_half_widths_are_the_smallest_that_hold(law: NoiseLaw, unit: float) -> None:
    noise = law.at(unit)
    for tail in (0.99, 0.5, 0.1, 0.05, 1e-9):
        width = noise.reach(tail)
        if noise.discrete:
            assert noise.tail(width) <= tail
            assert width == 0 or noise.tail(width - noise.step) > tail
        else:
            assert noise.tail(width) == pytest.approx(tail, rel=1e-6)


@every_law
@every_unit
def test_draws_have_the_stated_moments(law: NoiseLaw, unit: float) -> None:
    noise = law.at(unit)
    drawn = noise.draw(np.random.default_rng(7), (200, 300)).reshape(-1)
    assert drawn.shape == (60_000,)
    for sample, expected in (
        (drawn, 0.0),
        (np.abs(drawn), noise.mean_absolute),
        (drawn**2, noise.variance),
        (np.cos(drawn), float(noise.characteristic(np.array([1.0]))[0])),
        ((np.abs(drawn) > noise.mean_absolute).astype(np.float64), noise.tail(noise.mean_absolute)),
    ):
        assert abs(sample.mean() - expected) <= 5 * sample.std() / math.sqrt(len(drawn)) + 1e-9
    if noise.discrete:
        assert np.allclose(drawn / noise.step, np.rint(drawn / noise.step), atol=1e-9)


@every_law
@pytest.mark.parametrize("unit", [1e-3, 0.05, 0.7, 1.0, 3.0, 12.0])
def test_slopes_are_derivatives(law: NoiseLaw, unit: float) -> None:
    step = 1e-4 * min(unit, 1.0)
    for curve, slope in (
        (law.variance, law.variance_slope),
        (law.variance_slope, law.variance_curvature),
        (law.mean_absolute, law.mean_absolute_slope),
    ):
        chord = (curve(unit + step) - curve(unit - step)) / (2 * step)
        assert slope(unit) == pytest.approx(chord, rel=1e-6)


@every_law
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_noise_needs_a_positive_loss(law: NoiseLaw, bad: float) -> None:
    for use in (law.at, law.variance, law.variance_slope, law.variance_curvature, law.mean_absolute):
        with pytest.raises(InvalidLoss, match="privacy loss of"):
            use(bad)


@every_law
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.2, math.nan])
def test_intervals_need_a_probability(law: NoiseLaw, bad: float) -> None:
    with pytest.raises(InvalidMechanism, match="interval that holds"):
        NoiseMechanism(law).production(identity(2)).half_width("identity", 1.0, bad)


def test_the_words_and_currencies() -> None:
    assert [law.name for law in LAWS[:4]] == ["laplace", "geometric", "staircase", "gaussian"]
    assert [str(law.privacy_measure) for law in LAWS[:4]] == ["epsilon", "epsilon", "epsilon", "rho"]
    assert [law.at(1.0).discrete for law in LAWS[:4]] == [False, True, False, True]
    assert [law.needs_whole_numbers for law in LAWS[:4]] == [False, True, True, True]


def test_the_reach_of_noise_that_is_wider_than_floats_tell_apart_is_found_at_once() -> None:
    """At such a rate no single step moves a probability: stepping to the exact one took for ever."""
    assert GEOMETRIC.at(1e-32).reach(0.05) == pytest.approx(math.log(20) * 1e32, rel=1e-9)
