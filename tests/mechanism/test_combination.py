"""Sums of noise: expected absolute error and tails against exact convolution, closed forms and simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import DiscreteGaussian, Distribution, Geometric, Laplace, Staircase
from dualmandate.mechanism.combination import CharacteristicFunction, Combination, Term, common_step
from dualmandate.mechanism.mechanism import Stretched


def combination(noise: Distribution, factors: Sequence[float], counts: Sequence[float] | None = None) -> Combination:
    numbers = np.ones(len(factors)) if counts is None else np.array(counts, dtype=np.float64)
    return Combination((Term(noise, np.array(factors, dtype=np.float64), numbers),))


def convolved(noise: Distribution, multiples: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The exact law of a sum of whole multiples of whole-number noise."""
    far = int(noise.reach(1e-22)) + 2
    once = np.exp([noise.log_likelihood(float(k)) for k in range(-far, far + 1)])
    law = np.ones(1)
    for multiple in multiples:
        spaced = np.zeros(2 * far * multiple + 1)
        spaced[::multiple] = once
        law = np.convolve(law, spaced)
    return np.arange(len(law), dtype=np.float64) - (len(law) - 1) / 2, law


DISCRETE = [Geometric(0.3), Geometric(3.0), DiscreteGaussian(0.05), DiscreteGaussian(2.0)]


@pytest.mark.parametrize("noise", DISCRETE, ids=repr)
def test_whole_number_noise_equals_convolution(noise: Distribution) -> None:
    values, law = convolved(noise, [7, 7, 3, 1])
    found = combination(noise, [1, 3 / 7, 1 / 7], [2, 1, 1])
    assert found.mean_absolute == pytest.approx(np.abs(values) @ law / 7, rel=1e-12)
    assert found.variance == pytest.approx(values**2 @ law / 49, rel=1e-10)
    for tail in (0.6, 0.3, 0.05, 1e-4, 1e-8):
        reach = found.reach(tail)
        beyond = law[np.abs(values) > 7 * reach + 1e-6].sum()
        before = law[np.abs(values) > 7 * reach - 1 + 1e-6].sum()
        assert beyond <= tail * (1 + 1e-9)
        assert reach == 0 or before > tail * (1 - 1e-9)
        assert found.tail(reach) == pytest.approx(beyond, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("noise", DISCRETE, ids=repr)
def test_incommensurable_factors_are_nearly_as_good(noise: Distribution) -> None:
    values, law = convolved(noise, [7, 7, 3, 1])
    found = combination(noise, [1, 3 / 7 * (1 + 1e-7), 1 / 7 * (1 - 3e-7)], [2, 1, 1])
    assert found.mean_absolute == pytest.approx(np.abs(values) @ law / 7, rel=1e-6)
    for tail in (0.3, 0.05, 1e-4):
        reach = found.reach(tail)
        assert law[np.abs(values) > 7 * reach + 1e-6].sum() <= tail
        narrower = reach - 0.03 * math.sqrt(found.variance)
        assert law[np.abs(values) >= 7 * narrower - 1e-6].sum() > 0.98 * tail
        assert law[np.abs(values) > 7 * reach + 1e-6].sum() <= found.tail(reach)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_equal_laplace_terms_have_a_closed_form(count: int) -> None:
    expected = math.exp(math.log(2 * count) + math.log(math.comb(2 * count, count)) - 2 * count * math.log(2))
    assert combination(Laplace(0.7), [1.0], [count]).mean_absolute == pytest.approx(0.7 * expected, rel=1e-12)


def test_different_laplace_terms_by_partial_fractions() -> None:
    scales = np.array([1.0, 0.5, 0.2])
    weights = [math.prod(b**2 / (b**2 - c**2) for c in scales if c != b) for b in scales]
    found = combination(Laplace(1.0), scales.tolist())
    assert found.mean_absolute == pytest.approx(float(weights @ scales), rel=1e-12)
    for distance in (0.5, 2.0, 8.0):
        exact = float(weights @ np.exp(-distance / scales))
        assert exact <= found.tail(distance) <= 1.05 * exact
        assert distance <= found.reach(exact) <= distance + 0.05 * math.sqrt(found.variance)


@pytest.mark.parametrize("rate", [0.3, 2.0, 6.0])
def test_staircase_terms_against_simulation(rate: float) -> None:
    noise = Staircase(rate)
    draws = noise.draw(np.random.default_rng(11), (4, 400_000))
    sizes = np.abs(np.array([1, 0.5, 0.5, 0.3]) @ draws)
    found = combination(noise, [1, 0.5, 0.3], [1, 2, 1])
    assert abs(found.mean_absolute - sizes.mean()) < 5 * sizes.std() / math.sqrt(sizes.size)
    reach = found.reach(0.05)
    assert 0.95 < np.mean(sizes <= reach) < 0.953


def test_one_draw_keeps_its_closed_form() -> None:
    found = combination(Staircase(2.0), [0.3])
    assert found.mean_absolute == 0.3 * Staircase(2.0).mean_absolute
    assert found.reach(1e-30) == 0.3 * Staircase(2.0).reach(1e-30)
    assert found.tail(1.0) == Staircase(2.0).tail(1 / 0.3)


@pytest.mark.parametrize("noise", [Laplace(2.0), Geometric(0.4), DiscreteGaussian(0.3), Staircase(1.5)], ids=repr)
def test_the_fourier_sum_recovers_single_noise(noise: Distribution) -> None:
    law = CharacteristicFunction(noise.characteristic, noise.variance, noise.reach(1e-20))
    assert law.mean_absolute == pytest.approx(noise.mean_absolute, rel=1e-6)
    for tail in (0.2, 1e-3):
        assert noise.tail(law.reach(tail)) <= tail
        assert law.tail(law.reach(tail)) >= noise.tail(law.reach(tail))


def test_two_lattices_in_one_sum() -> None:
    values, law = convolved(Geometric(0.5), [3, 2])
    third = Term(Geometric(0.5), np.array([1.0]), np.ones(1))
    half = Term(Stretched(Geometric(0.5), 2 / 3), np.array([1.0]), np.ones(1))
    assert Combination((third, half)).mean_absolute == pytest.approx(np.abs(values) @ law / 3, rel=1e-12)


def test_no_noise_is_no_error() -> None:
    nothing = Combination(())
    assert nothing.mean_absolute == nothing.variance == nothing.reach(0.05) == nothing.tail(0.0) == 0


@pytest.mark.parametrize("noise", [Geometric(0.5), Laplace(1.0)], ids=repr)
def test_tails_beyond_arithmetic_are_refused(noise: Distribution) -> None:
    with pytest.raises(InvalidMechanism, match="combination of noise"):
        combination(noise, [1.0, 0.5]).reach(1e-14)


@pytest.mark.parametrize(
    ("values", "step"),
    [([1.0, 0.5, 0.25], 0.25), ([6.0, 4.0], 2.0), ([1 / 3, 1 / 7], 1 / 21), ([1.0, math.sqrt(2)], None), ([0.3], 0.3)],
)
def test_the_common_step(values: list[float], step: float | None) -> None:
    found = common_step(np.array(values))
    assert found is None if step is None else found == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("rate", [16.0, 19.0, 25.0, 40.0, 70.0])
def test_rare_noise_equals_convolution(rate: float) -> None:
    """1 − φ cancels where noise is almost surely 0; the law itself does not."""
    values, law = convolved(Geometric(rate), [7, 7, 3, 1])
    found = combination(Geometric(rate), [1, 3 / 7, 1 / 7], [2, 1, 1])
    assert found.mean_absolute == pytest.approx(np.abs(values) @ law / 7, rel=1e-7)
