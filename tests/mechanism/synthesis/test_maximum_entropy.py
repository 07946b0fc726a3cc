"""The most even distribution near to noisy marginals: what it is known to be where others can work it out."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.mechanism.synthesis.junction_tree import TreeModel, junction_tree
from dualmandate.mechanism.synthesis.maximum_entropy import NoisyMarginal, fitted
from dualmandate.population.arrays import Floats

SHAPE = (2, 3, 2)


def model_of(measured: list[NoisyMarginal], total: float, shape: tuple[int, ...] = SHAPE) -> TreeModel:
    tree = junction_tree(shape, [each.places for each in measured])
    possible = [None] * len(tree.cliques)
    return fitted(tree, measured, total, possible=possible, start={}, steps=400).model


def exactly(places: tuple[int, ...], counts: Floats) -> NoisyMarginal:
    return NoisyMarginal(places, counts, variance=1.0, evenness=1e-9)


def test_attributes_measured_one_by_one_are_independent() -> None:
    one, other = np.array([30.0, 70.0]), np.array([20.0, 50.0, 30.0])
    model = model_of([exactly((0,), one), exactly((1,), other)], 100.0)
    assert 100.0 * model.marginal((0, 1)) == pytest.approx(np.outer(one, other) / 100.0, abs=0.1)
    assert model.marginal((2,)) == pytest.approx([0.5, 0.5])


def test_three_pairs_give_what_iterative_proportional_fitting_does() -> None:
    counts = np.random.default_rng(3).integers(5, 60, size=SHAPE).astype(np.float64)
    pairs = [(0, 1), (1, 2), (0, 2)]
    sums = {pair: counts.sum(axis=3 - sum(pair)) for pair in pairs}
    scaled = np.full(SHAPE, counts.sum() / counts.size)
    for _ in range(2000):  # Deming and Stephan's method
        for pair, target in sums.items():
            scaled = scaled * np.expand_dims(target / scaled.sum(axis=3 - sum(pair)), 3 - sum(pair))
    model = model_of([exactly(pair, target) for pair, target in sums.items()], float(counts.sum()))
    assert counts.sum() * model.marginal((0, 1, 2)) == pytest.approx(scaled, abs=0.3)


def test_the_slope_vanishes_where_noise_is_weighed_against_evenness() -> None:
    """Of one marginal N·p − y + λσ²·θ = 0 with p ∝ exp(θ): two levels by hand, by bisection."""
    high, low = 80.0, 20.0
    model = model_of([NoisyMarginal((0,), np.array([high, low]), variance=50.0, evenness=0.5)], 100.0, (2,))
    below, above = 0.0, 10.0  # of θ of the first level; the second's is its negative
    for _ in range(100):
        middle = (below + above) / 2
        off = 100.0 / (1.0 + np.exp(-2 * middle)) - high + 25.0 * middle
        below, above = (below, middle) if off > 0 else (middle, above)
    assert float(model.marginal((0,))[0]) == pytest.approx(1.0 / (1.0 + np.exp(-2 * below)), abs=1e-3)


def test_noise_that_drowns_everything_leaves_what_was_even() -> None:
    model = model_of([NoisyMarginal((0,), np.array([1000.0, -900.0]), variance=1e9, evenness=1.0)], 100.0, (2,))
    assert model.marginal((0,)) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_two_measurements_of_one_marginal_are_one_by_their_precision() -> None:
    one = NoisyMarginal((0,), np.array([10.0, 20.0]), variance=4.0, evenness=0.1)
    both = one.joined(NoisyMarginal((0,), np.array([16.0, 26.0]), variance=2.0, evenness=0.9))
    assert both.evenness == 0.1
    assert both.variance == pytest.approx(4 / 3)
    assert both.counts == pytest.approx([14.0, 24.0])


def test_admissions_at_berkeley_without_a_three_way_interaction() -> None:
    """A published fit: G² = 20.20 and X² = 18.82 on 5 degrees of freedom for 4,526 applicants in six departments."""
    admitted = np.array([[512, 353, 120, 138, 53, 22], [89, 17, 202, 131, 94, 24]])
    rejected = np.array([[313, 207, 205, 279, 138, 351], [19, 8, 391, 244, 299, 317]])
    counts = np.stack([admitted, rejected]).astype(np.float64)  # by admission, sex and department
    pairs = [exactly(pair, counts.sum(axis=3 - sum(pair))) for pair in [(0, 1), (1, 2), (0, 2)]]
    expected = counts.sum() * model_of(pairs, counts.sum(), counts.shape).marginal((0, 1, 2))
    assert 2 * float((counts * np.log(counts / expected)).sum()) == pytest.approx(20.20428, abs=0.02)
    assert float((np.square(counts - expected) / expected).sum()) == pytest.approx(18.82, abs=0.03)
