"""Intervals of ratios hold, by every value that the noise can take, and are hardly wider than Fieller's set."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.elicitation import fieller
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, Noise
from dualmandate.publication.intervals import Interval
from dualmandate.publication.ratios import JointError, interval_of_ratio, joint_error

Floats = NDArray[np.float64]
SCALE = Fraction(1, 2)  # of discrete Laplace noise: ε = 2
FARTHEST = 8  # noise beyond has a probability below 10⁻⁶
APART, SHARE = ([3.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [1.0, 1.0])  # what both take of two draws
PLACES = np.arange(-FARTHEST, FARTHEST + 1)
MASSES = np.exp(-np.abs(PLACES) / float(SCALE))
CHANCES = np.outer(MASSES, MASSES) / MASSES.sum() ** 2
NOISE = (Noise(GEOMETRIC, SCALE),)


def error(numerator: list[float], denominator: list[float], noise: Noise = NOISE[0]) -> JointError:
    return JointError(np.array(numerator), np.array(denominator), np.zeros(len(numerator), dtype=np.int64), (noise,))


def reach(size: Floats, tail: float) -> float:
    """The smallest t with P(size > t) ≤ tail, over both draws."""
    order = np.argsort(size, axis=None)
    place = int(np.searchsorted(np.cumsum(CHANCES.reshape(-1)[order]), 1 - tail))
    return float(size.reshape(-1)[order][place])


@pytest.mark.parametrize(
    ("truth", "weights"), [((30.0, 12.0), APART), ((-9.0, 3.0), APART), ((3.0, 0.0), APART), ((5.0, 12.0), SHARE)]
)
def test_the_truth_is_held_over_every_value_of_the_noise(
    truth: tuple[float, float], weights: tuple[list[float], list[float]]
) -> None:
    joint = error(*weights)
    first, second = np.meshgrid(PLACES, PLACES, indexing="ij")
    held, unbounded, known = 0.0, 0.0, dict[tuple[float, float], Interval]()
    for x, y, chance in zip(first.flat, second.flat, CHANCES.flat, strict=True):
        if chance < 1e-5:
            continue
        noise = np.array([x, y])
        estimates = truth[0] + float(np.dot(weights[0], noise)), truth[1] + float(np.dot(weights[1], noise))
        if estimates not in known:
            known[estimates] = interval_of_ratio(*estimates, joint)
        found = known[estimates]
        unbounded += chance * math.isinf(found.upper)
        held += chance * (math.isinf(found.upper) if truth[1] == 0 else truth[0] / truth[1] in found)
    assert held >= 0.95  # where the true denominator is 0 there is no ratio: then the line must not end
    if truth[1] >= 12:
        assert held <= 0.995
        assert unbounded < 0.01


@pytest.mark.parametrize("weights", [APART, SHARE], ids=["apart", "a share"])
@pytest.mark.parametrize("estimates", [(300.0, 100.0), (31.0, 12.0), (2.0, 7.0), (-14.0, 9.0), (14.0, -9.0)])
def test_the_interval_is_hardly_wider_than_the_set(
    estimates: tuple[float, float], weights: tuple[list[float], list[float]]
) -> None:
    """The set by brute force: ratios on a fine grid, the quantile of each from all pairs of draws."""
    found = interval_of_ratio(*estimates, error(*weights))
    first, second = (np.add.outer(w[0] * PLACES, w[1] * PLACES) for w in weights)
    middle, half = (found.lower + found.upper) / 2, (found.upper - found.lower) / 2
    grid = middle + half * np.linspace(-1.5, 1.5, 1201)
    inside = [r for r in grid if abs(estimates[0] - r * estimates[1]) <= reach(np.abs(first - r * second), 0.05)]
    assert inside
    assert found.lower <= min(inside)
    assert max(inside) <= found.upper
    assert found.upper - found.lower <= 1.06 * (max(inside) - min(inside)) + 3 * half / 400


@pytest.mark.parametrize("covariance", [0.0, 0.6])
@pytest.mark.parametrize("estimates", [(5e4, 2e4), (2e4, 5e3), (-1e4, 3e3)])
def test_with_normal_noise_it_is_the_closed_form(estimates: tuple[float, float], covariance: float) -> None:
    """Discrete Gaussian noise of σ = 1,000 is as good as normal: the quadratic that another room solves."""
    spread = 1000.0
    rest = math.sqrt(1 - covariance**2)
    found = interval_of_ratio(*estimates, error([1.0, 0.0], [covariance, rest], Noise(GAUSSIAN, Fraction(10**6))))
    matrix = spread**2 * np.array([[1.0, -covariance], [-covariance, 1.0]])
    closed = fieller(np.array([-estimates[0], estimates[1]]), matrix, critical=1.959964)
    width = closed.upper - closed.lower
    assert found.lower == pytest.approx(closed.lower, abs=0.03 * width)
    assert found.upper == pytest.approx(closed.upper, abs=0.03 * width)
    assert found.upper - found.lower >= 0.999 * width


def test_a_denominator_without_noise_leaves_the_interval_of_the_numerator() -> None:
    one = interval_of_ratio(100.0, 50.0, error([1.0], [0.0], Noise(GEOMETRIC, Fraction(1))))
    assert (one.lower, one.upper, one.is_exact, round(one.probability, 4)) == (97 / 50, 103 / 50, True, 0.9732)
    nothing = joint_error(np.zeros(0), np.zeros(0), [np.zeros(0, dtype=np.int64)] * 2, [(), ()], shared=False)
    known = interval_of_ratio(1.0, 4.0, nothing)
    assert (known.lower, known.upper, known.probability) == (0.25, 0.25, 1.0)


def test_a_denominator_that_may_be_nothing_says_so() -> None:
    found = interval_of_ratio(100.0, 1.0, error([1.0, 0.0], [0.0, 1.0]))
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert "any number" in str(found)
    assert "may be 0" in str(found)
    assert math.isnan(interval_of_ratio(1.0, 0.0, error([1.0, 0.0], [0.0, 1.0])).estimate)
