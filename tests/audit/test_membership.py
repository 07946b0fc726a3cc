"""Membership and claims: power against what differential privacy allows, and checks that find planted faults."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.audit.claims import (
    exact_totals,
    least_loss,
    missing_keys,
    pmf_ratio,
    precision_check,
    reuse_check,
)
from dualmandate.audit.membership import (
    PowerPoint,
    frequency_attack,
    homer,
    likelihood_ratio,
    power_curve,
)
from dualmandate.audit.rates import Rate
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GEOMETRIC

DRAWS = 20_000


def test_rates_at_the_ends() -> None:
    assert Rate(0, 10).interval()[0] == 0.0
    assert Rate(0, 10).interval()[1] == pytest.approx(1 - 0.025 ** (1 / 10))  # closed form
    assert Rate(10, 10).interval() == pytest.approx((0.025 ** (1 / 10), 1.0))
    assert Rate(8, 100).interval() == pytest.approx((0.0352, 0.1516), abs=5e-5)  # published tables
    assert "8.0%" in str(Rate(8, 100))
    for wrong in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(InvalidRequest):
            Rate(*wrong)


def test_intervals_cover() -> None:
    generator = np.random.default_rng(1)
    for truth in (0.002, 0.05, 0.5):
        counts = generator.binomial(200, truth, 2000)
        ends = {int(count): Rate(int(count), 200).interval() for count in np.unique(counts)}
        assert np.mean([ends[int(c)][0] <= truth <= ends[int(c)][1] for c in counts]) >= 0.94


def test_tests_lean_to_members() -> None:
    generator = np.random.default_rng(2)
    population = generator.uniform(0.1, 0.9, 5000)
    people = (generator.random((400, 5000)) < population).astype(float)
    published = people[:200].mean(axis=0)
    for test in (homer, likelihood_ratio):
        members = np.array([float(test(published, person, population)) for person in people[:200]])
        others = np.array([float(test(published, person, population)) for person in people[200:]])
        assert np.mean(members > np.quantile(others, 0.95)) > 0.9  # exact frequencies give members away


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("attributes", [1, 20])
def test_no_test_exceeds_what_is_allowed(epsilon: float, attributes: int) -> None:
    generator = np.random.default_rng(int(10 * epsilon) + attributes)
    population = generator.uniform(0.2, 0.8, attributes)
    members = (generator.random((50, attributes)) < population).astype(np.int64)
    replacement = 1 - members[0]  # every value changes: the farthest neighbor
    law = GEOMETRIC.at(epsilon / attributes)

    def noise(shape: tuple[int, int]) -> NDArray[np.float64]:
        return np.asarray(law.draw(generator, shape), dtype=np.float64)

    found = frequency_attack(members, replacement, noise, population=population, draws=DRAWS)
    for points in found.values():
        assert not any(point.exceeds(epsilon) for point in points)
        assert max(point.epsilon_at_least(level=0.999) for point in points) <= epsilon
    informed = max(point.epsilon_at_least() for point in found["informed"])
    assert informed > (0.5 if attributes == 1 else 0.1) * epsilon  # and the attack is not blind
    if attributes == 1:
        assert any(point.exceeds(epsilon / 2) for point in found["informed"])  # a false claim is caught


def test_thresholds_are_not_judged_by_what_set_them() -> None:
    generator = np.random.default_rng(4)
    without, present = generator.normal(size=40_000), generator.normal(1.0, size=20_000)
    for point, rate in zip(power_curve(without, present, rates=(0.05,)), (0.05,), strict=True):
        low, high = point.false_positives.interval(0.999)
        assert low <= rate <= high
        assert point.true_positives.value == pytest.approx(0.2595, abs=0.015)  # 1 − Φ(1.645 − 1)
    with pytest.raises(InvalidRequest):
        power_curve(without[:2], present)


def test_both_directions_bound_the_loss() -> None:
    clearing = PowerPoint(Rate(9_000, 10_000), Rate(10_000, 10_000))  # never clears a member
    assert clearing.epsilon_at_least() > 4
    assert PowerPoint(Rate(500, 1000), Rate(500, 1000)).epsilon_at_least() == 0.0


def test_the_ratio_of_probabilities() -> None:
    law = GEOMETRIC.at(0.7)
    assert not pmf_ratio(law.log_likelihood, shift=1, epsilon=0.7, reach=50).broken
    assert pmf_ratio(law.log_likelihood, shift=1, epsilon=0.69, reach=50).broken
    assert pmf_ratio(law.log_likelihood, shift=2, epsilon=0.7, reach=50).broken

    def cut(k: int) -> float:
        return law.log_likelihood(k) if abs(k) <= 5 else -math.inf

    found = pmf_ratio(cut, shift=1, epsilon=5.0, reach=10)
    assert found.broken
    assert "cannot produce" in found.words


def test_a_loss_from_draws_alone() -> None:
    generator = np.random.default_rng(5)
    one, other = generator.laplace(0, 1, 200_000), generator.laplace(1, 1, 200_000)
    found = least_loss(one, other)
    assert 0.8 < found <= 1.0  # the mechanism's loss is 1


def test_floats_give_answers_away() -> None:
    generator = np.random.default_rng(6)
    naive = generator.laplace(0, 1, 200)
    assert precision_check(naive, 1 + naive).broken
    grid = np.rint(naive * 1024) / 1024
    assert not precision_check(grid, 1 + grid).broken
    assert not precision_check(np.rint(naive), 1 + np.rint(naive)).broken


def test_shared_noise_is_noticed() -> None:
    generator = np.random.default_rng(7)
    noise, truth = generator.normal(0, 10, 200), generator.integers(0, 50, 200)
    later = truth.copy()
    later[3] += 1
    assert reuse_check(truth + noise, later + noise, variance=100.0).broken
    assert not reuse_check(truth + noise, later + generator.normal(0, 10, 200), variance=100.0).broken
    with pytest.raises(InvalidRequest):
        reuse_check(noise[:3], noise[:3], variance=1.0)


def test_missing_and_exact_numbers() -> None:
    assert missing_keys(["a"], ["a", "b"]).broken
    assert missing_keys(["a", "c"], ["a"]).broken
    assert not missing_keys(["b", "a"], ["a", "b"]).broken
    total = exact_totals({"total": True}, add_or_remove=True)
    assert total.broken
    assert "blatantly non-private" in total.words
    assert "replace-one" in total.words
    assert not exact_totals({"total": True}, add_or_remove=False).broken
    assert exact_totals({"total": True, "women": False}, add_or_remove=False).broken
    assert not exact_totals({}, add_or_remove=True).broken
