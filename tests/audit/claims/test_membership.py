"""Membership: power against what differential privacy allows, for allele counts, means and tables."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dualmandate.audit.claims.checks import OperatingPoint, audit_noise, log_weights
from dualmandate.audit.claims.membership import (
    EPSILONS,
    NAMED,
    Frequencies,
    MembershipAttack,
    allele_counts,
    bound_trial,
    homer,
    likelihood_ratio,
    means,
    neighbor_sums,
    power_curve,
    tables,
)
from dualmandate.audit.finding import Finding, Range, Rate
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import DiscreteGaussian, Geometric
from dualmandate.population import PrivacyLoss
from dualmandate.workload import marginals, prefix


def test_tests_lean_to_members() -> None:
    generator = np.random.default_rng(2)
    population = generator.uniform(0.1, 0.9, 5000)
    people = (generator.random((400, 5000)) < population).astype(float)
    published = people[:200].mean(axis=0)
    for test in (homer, likelihood_ratio):
        members = np.array([float(test(published, person, population)) for person in people[:200]])
        others = np.array([float(test(published, person, population)) for person in people[200:]])
        assert np.mean(members > np.quantile(others, 0.95)) > 0.9  # exact frequencies give members away


def test_thresholds_are_not_judged_by_what_set_them() -> None:
    generator = np.random.default_rng(4)
    without, present = generator.normal(size=40_000), generator.normal(1.0, size=20_000)
    for point, rate in zip(power_curve(without, present, rates=(0.05,)), (0.05,), strict=True):
        low, high = point.false_positive_rate.interval(0.999)
        assert low <= rate <= high
        assert point.true_positive_rate.value == pytest.approx(norm.sf(norm.isf(0.05) - 1), abs=0.015)
    with pytest.raises(InvalidRequest):
        power_curve(without[:2], present)


def test_both_directions_bound_the_loss() -> None:
    clearing = OperatingPoint(Rate(9_000, 10_000), Rate(10_000, 10_000))  # never clears a member
    assert clearing.epsilon_at_least() > 4
    assert clearing.exceeds(2.0)
    assert not clearing.exceeds(2.0, 0.1)
    even = OperatingPoint(Rate(500, 1000), Rate(500, 1000))
    assert even.epsilon_at_least() == 0.0
    assert not even.exceeds(0.0)
    assert OperatingPoint(Rate(10, 1000), Rate(500, 1000)).allowed(1.0, 0.1) == pytest.approx(0.01 * np.e + 0.1)
    # Half of the others are spared: at least e^−ε times so many members are missed.
    assert even.allowed(5.0) == pytest.approx(1 - np.exp(-5.0) / 2)


def test_true_noise_never_exceeds_its_bound() -> None:
    found = bound_trial()
    assert found.draws == 20_000
    assert {each.epsilon for each in found.comparisons} == set(EPSILONS)
    assert {each.law for each in found.comparisons} == {"laplace", "gaussian"}
    assert found.exceedances == ()
    assert 0.9 < found.closest <= 1.0  # and the tests are not blind
    tight = [each for each in found.comparisons if each.law == "laplace" and each.attributes == 1]
    for epsilon in EPSILONS:
        informed = [each.point for each in tight if each.epsilon == epsilon and each.test == "informed"]
        assert 0.3 * epsilon < max(point.epsilon_at_least() for point in informed) <= epsilon
    # two directions, two rates each, every one outside its interval on one side alone
    assert (1 - found.single_level) / 2 * 4 * len(found.comparisons) == pytest.approx(0.001, rel=1e-6)


def test_half_of_the_noise_is_found_out() -> None:
    found = bound_trial(epsilons=(1.0, 5.0), noise_share=0.5)
    assert {(each.law, each.epsilon) for each in found.exceedances} == {
        (law, epsilon) for law in ("laplace", "gaussian") for epsilon in (1.0, 5.0)
    }
    for wrong in ({"draws": 1}, {"level": 1.0}, {"noise_share": 0.0}):
        with pytest.raises(InvalidRequest):
            bound_trial(**wrong)


def test_audit_noise_is_exact_and_its_own() -> None:
    for law, parameter, known in (
        ("laplace", Fraction(3), Geometric(1 / 3)),
        ("gaussian", Fraction(9), DiscreteGaussian(1 / 18)),
    ):
        drawn = audit_noise(b"key", "a test", law, parameter, (200, 100))  # type: ignore[arg-type]
        assert drawn.var() == pytest.approx(known.variance, rel=0.05)
        assert (drawn == audit_noise(b"key", "a test", law, parameter, (200, 100))).all()  # type: ignore[arg-type]
        for key, purpose in ((b"other", "a test"), (b"key", "another")):
            assert not (drawn == audit_noise(key, purpose, law, parameter, (200, 100))).all()  # type: ignore[arg-type]
        weights = log_weights(law, parameter)(np.array([[0.0, 4.0, -4.0]]), np.arange(3))[0]  # type: ignore[arg-type]
        exact = [known.log_likelihood(k) for k in (0.0, 4.0, -4.0)]
        assert (weights - weights[0]).tolist() == pytest.approx([each - exact[0] for each in exact])


def recognized(target: Frequencies) -> dict[str, list[Finding]]:
    found = MembershipAttack().run(target, b"audit")
    assert found == MembershipAttack().run(target, b"audit")
    assert all(finding.reference == "draws" for finding in found)
    by_test = {name: [each for each in found if each.claim.startswith(words)] for name, words in NAMED.items()}
    assert sum(map(len, by_test.values())) == len(found)
    return by_test


def targets(loss: PrivacyLoss) -> dict[str, Frequencies]:
    draws = np.random.default_rng(9)
    genotypes = draws.binomial(2, 0.4, (50, 30))
    values = draws.integers(0, 100, (40, 5))
    cells = draws.integers(0, 12, 60)
    return {
        "allele counts": allele_counts(genotypes, 2 - genotypes[0], population=np.full(30, 0.4), loss=loss),
        "means": means(values, 99 - values[0], largest=np.full(5, 99), population=np.full(5, 0.5), loss=loss),
        "tables": tables(marginals((3, 4), [1, 2]), cells, None, population=np.full(12, 1 / 12), loss=loss),
    }


@pytest.mark.parametrize("kind", ["allele counts", "means", "tables"])
@pytest.mark.parametrize("loss", [PrivacyLoss.pure(1), PrivacyLoss.concentrated("1/8")], ids=["epsilon", "rho"])
def test_members_of_every_kind_of_statistic(kind: str, loss: PrivacyLoss) -> None:
    found = recognized(targets(loss)[kind])
    for test, findings in found.items():
        assert len(findings) == 5, test
        for finding in findings:
            assert "not above" in finding.claim
            falsely, allowed = (each.success for each in finding.baselines)
            assert isinstance(finding.success, Rate)
            assert isinstance(falsely, Rate)
            assert isinstance(allowed, Range)
            assert falsely.value <= allowed.largest <= 1
    best = [finding.success.value - finding.baselines[0].success.value for finding in found["informed"]]  # type: ignore[union-attr]
    assert max(best) > 0.03  # who knows everybody else learns something


@pytest.mark.parametrize("kind", ["allele counts", "means", "tables"])
def test_without_noise_everybody_is_recognized(kind: str) -> None:
    found = recognized(targets(PrivacyLoss.pure(10**6))[kind])
    assert {finding.success.value for finding in found["informed"]} == {1.0}  # type: ignore[union-attr]


def test_a_member_who_is_none() -> None:
    some: Any = np.array([[0, 3], [1, 1]])
    for members, largest in ((some, None), (some[:1], np.array([3, 3])), (-some, np.array([3, 3]))):
        with pytest.raises(InvalidRequest):
            neighbor_sums(members, None, population=np.full(2, 0.5), largest=largest)
    with pytest.raises(InvalidRequest, match="weights or sums"):
        tables(
            marginals((3, 4), [1]).__class__(prefix(3).domain, tuple(_doubled(prefix(3)))),
            np.array([0, 1]),
            None,
            population=np.full(3, 1 / 3),
            loss=PrivacyLoss.pure(1),
        )


def _doubled(workload: Any) -> Any:
    from dataclasses import replace

    return [replace(table, weight=Fraction(2)) for table in workload.tables]
