"""Bounds on beliefs against exact Bayes on files small enough to write out."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, InvalidPreferences
from dualmandate.population import Neighbors, PrivacyLoss
from dualmandate.population.loss import epsilon_at
from dualmandate.semantics import (
    OddsBound,
    Secret,
    epsilon_for_relative_risk,
    odds_bound,
    participation_bound,
    posterior,
)

TITLE_I = PrivacyLoss.pure("2.527644")
OUTPUTS = np.arange(-60, 61)


def geometric(epsilon: float, count: int) -> NDArray[np.float64]:
    """Exact probabilities of a count plus two-sided geometric noise, on `OUTPUTS`."""
    ratio = math.exp(-epsilon)
    probabilities: NDArray[np.float64] = (1 - ratio) / (1 + ratio) * ratio ** np.abs(OUTPUTS - count)
    return probabilities


@pytest.mark.parametrize(("prior", "after"), [(0.01, 0.112298), (0.1, 0.581861), (0.5, 0.926057)])
def test_beliefs_at_the_title_i_loss(prior: float, after: float) -> None:
    belief = odds_bound(TITLE_I).belief(prior)
    assert belief.highest == pytest.approx(after, abs=5e-7)
    assert posterior(belief.highest, -float(TITLE_I)) == pytest.approx(prior)
    assert belief.lowest == pytest.approx(prior / (prior + (1 - prior) * math.exp(2.527644)))


@pytest.mark.parametrize(("epsilon", "factor"), [("1", 7.4), ("0.25", 1.65), ("0.1", 1.22)])
def test_posterior_to_posterior_factors_of_the_companion_paper(epsilon: str, factor: float) -> None:
    assert participation_bound(PrivacyLoss.pure(epsilon)).factor == pytest.approx(factor, abs=0.05 * factor / 7)


def test_each_neighbor_relation_protects_its_own_secrets() -> None:
    loss = PrivacyLoss.pure(1)
    steps = {
        (secret, neighbors): odds_bound(loss, secret, neighbors=neighbors).log_factor
        for secret in Secret
        for neighbors in Neighbors
    }
    assert steps == {
        (Secret.IN_OR_OUT, Neighbors.ADD_OR_REMOVE): 1.0,
        (Secret.ATTRIBUTE, Neighbors.ADD_OR_REMOVE): 2.0,
        (Secret.IN_OR_OUT, Neighbors.REPLACE_ONE): math.inf,
        (Secret.ATTRIBUTE, Neighbors.REPLACE_ONE): 1.0,
    }
    assert odds_bound(loss, records=4).log_factor == 4.0
    unprotected = odds_bound(loss, neighbors=Neighbors.REPLACE_ONE)
    assert not unprotected.protected
    assert (unprotected.belief(0.2).lowest, unprotected.belief(0.2).highest) == (0.0, 1.0)


@given(epsilon=st.floats(0.05, 3.0), prior=st.floats(0.001, 0.999), others=st.integers(0, 5))
def test_in_or_out_is_exactly_as_wide_as_geometric_noise_makes_it(epsilon: float, prior: float, others: int) -> None:
    inside, outside = geometric(epsilon, others + 1), geometric(epsilon, others)
    after = prior * inside / (prior * inside + (1 - prior) * outside)
    belief = odds_bound(PrivacyLoss.pure(Fraction(epsilon))).belief(prior)
    assert after.max() == pytest.approx(belief.highest, rel=1e-12)
    assert after.min() == pytest.approx(belief.lowest, rel=1e-12)


@given(epsilon=st.floats(0.05, 2.0), prior=st.floats(0.001, 0.999))
def test_attribute_against_attribute_takes_two_steps_of_add_or_remove(epsilon: float, prior: float) -> None:
    """A histogram of two cells: the person is in the first or in the second, so both noisy counts speak."""
    first = np.outer(geometric(epsilon, 1), geometric(epsilon, 0))
    second = np.outer(geometric(epsilon, 0), geometric(epsilon, 1))
    after = prior * first / (prior * first + (1 - prior) * second)
    belief = odds_bound(PrivacyLoss.pure(Fraction(epsilon)), Secret.ATTRIBUTE).belief(prior)
    assert after.max() == pytest.approx(belief.highest, rel=1e-12)
    one_step = odds_bound(PrivacyLoss.pure(Fraction(epsilon)), Secret.IN_OR_OUT).belief(prior)
    assert after.max() > one_step.highest


def test_randomized_response_reaches_the_replace_one_bound() -> None:
    epsilon = 1.3
    truth = math.tanh(epsilon / 2)
    yes = {1: truth + (1 - truth) / 2, 0: (1 - truth) / 2}
    bound = odds_bound(PrivacyLoss.pure("1.3"), Secret.ATTRIBUTE, neighbors=Neighbors.REPLACE_ONE)
    for prior in (0.02, 0.4, 0.9):
        after = [
            prior * on / (prior * on + (1 - prior) * off) for on, off in ((yes[1], yes[0]), (1 - yes[1], 1 - yes[0]))
        ]
        assert max(after) == pytest.approx(bound.belief(prior).highest)
        assert min(after) == pytest.approx(bound.belief(prior).lowest)


def test_own_record_adds_little_even_when_records_depend_on_each_other() -> None:
    """Posterior against posterior over every joint prior of a small family: odds with and without one's own record."""
    epsilon = 0.7
    bound = participation_bound(PrivacyLoss.pure("0.7"))
    generator = np.random.default_rng(1)
    widest = 0.0
    files = list(itertools.product((0, 1), repeat=3))
    for _ in range(200):
        joint = generator.dirichlet(np.full(len(files), 0.3))
        with_record = sum(
            p * np.outer([f[0], 1 - f[0]], geometric(epsilon, sum(f))) for p, f in zip(joint, files, strict=True)
        )
        without = sum(
            p * np.outer([f[0], 1 - f[0]], geometric(epsilon, sum(f[1:]))) for p, f in zip(joint, files, strict=True)
        )
        if min(joint @ [f[0] for f in files], 1 - joint @ [f[0] for f in files]) < 1e-9:
            continue
        moved = np.log(with_record[0] / with_record[1]) - np.log(without[0] / without[1])
        widest = max(widest, float(np.abs(moved).max()))
    assert epsilon < widest <= bound.log_factor


def test_failure_probability_bounds_all_but_a_stated_share_of_outcomes() -> None:
    """Randomized response that with probability δ tells the truth outright: exact share of outcomes above the bound."""
    epsilon, delta = 1.0, 1e-3
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    if_yes = np.array([(1 - delta) * keep, (1 - delta) * (1 - keep), delta, 0.0])
    if_no = np.array([(1 - delta) * (1 - keep), (1 - delta) * keep, 0.0, delta])
    loss = PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 1000))
    for exceptions in (0.0015, 0.01, 0.2):
        bound = odds_bound(loss, Secret.ATTRIBUTE, neighbors=Neighbors.REPLACE_ONE, exception_probability=exceptions)
        assert bound.factor == pytest.approx((exceptions * math.e + delta) / (exceptions - delta))
        surprising = (if_yes > bound.factor * if_no) | (if_no > bound.factor * if_yes)
        assert 0 < if_yes[surprising].sum() <= exceptions
    assert not odds_bound(loss, exception_probability=0.001).protected
    assert odds_bound(loss).exception_probability == pytest.approx(math.sqrt(delta))


def test_the_bound_with_exceptions_cannot_be_improved() -> None:
    """Two rare outcomes, one for each file, whose ratios are exactly the bound: together they have probability β."""
    epsilon, delta, exceptions = 0.5, 0.01, 0.05
    bound = odds_bound(
        PrivacyLoss(Fraction(1, 2), failure_probability=Fraction(1, 100)), exception_probability=exceptions
    )
    rare = exceptions / (1 + 1 / bound.factor)
    if_yes = np.array([rare, rare / bound.factor, 1 - exceptions])
    if_no = np.array([rare / bound.factor, rare, 1 - exceptions])
    assert if_yes[:2].sum() == pytest.approx(exceptions)
    for one, other in ((if_yes, if_no), (if_no, if_yes)):
        assert np.maximum(one - math.exp(epsilon) * other, 0).sum() == pytest.approx(delta)


def test_groups_with_a_failure_probability_grow_as_group_privacy_says() -> None:
    loss = PrivacyLoss(Fraction(1, 2), failure_probability=Fraction(1, 10**6))
    growth = (math.exp(1.5) - 1) / (math.exp(0.5) - 1)
    bound = odds_bound(loss, records=3, exception_probability=0.01)
    assert bound.factor == pytest.approx((0.01 * math.exp(1.5) + growth * 1e-6) / (0.01 - growth * 1e-6))


def test_concentrated_losses_need_and_use_a_failure_probability() -> None:
    rho = PrivacyLoss.concentrated("0.1")
    with pytest.raises(InvalidLoss, match="no bound on beliefs"):
        odds_bound(rho)
    bound = odds_bound(rho, Secret.ATTRIBUTE, failure_probability=1e-9, exception_probability=1e-3)
    assert bound.log_factor == pytest.approx(epsilon_at(0.4, 1e-9), rel=1e-5)


@pytest.mark.parametrize(
    "loss", [PrivacyLoss.concentrated("0.1"), PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 1000))]
)
def test_odds_of_any_two_statements_are_bounded_by_pure_losses_only(loss: PrivacyLoss) -> None:
    """With a δ: statements P = (1 − δ, δ), (1, 0) without the record, and (0, 1): outcome 2 has odds of δ, or of 0."""
    with pytest.raises(InvalidLoss, match="any two statements"):
        participation_bound(loss)


def test_certainty_never_moves_and_nonsense_is_refused() -> None:
    assert posterior(0.0, 5.0) == 0.0
    assert posterior(1.0, -5.0) == 1.0
    assert posterior(0.5, 800.0) == 1.0
    assert OddsBound(800.0).factor == math.inf
    for prior in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidPreferences, match="prior belief"):
            posterior(prior, 1.0)
    with pytest.raises(InvalidLoss, match="group of 0"):
        odds_bound(TITLE_I, records=0)


def test_kazan_reiter_at_five_and_a_tenth_is_log_nine() -> None:
    assert epsilon_for_relative_risk(5, 0.1) == pytest.approx(math.log(9))
    assert epsilon_for_relative_risk(5, 0.1, steps=2) == pytest.approx(math.log(9) / 2)
    assert epsilon_for_relative_risk(5, 0.2) == math.inf


@given(ratio=st.floats(1.01, 50), prior=st.floats(1e-4, 0.99))
def test_the_epsilon_found_lets_the_belief_rise_exactly_so_far(ratio: float, prior: float) -> None:
    epsilon = epsilon_for_relative_risk(ratio, prior)
    if math.isfinite(epsilon):
        assert posterior(prior, epsilon) == pytest.approx(ratio * prior)
    else:
        assert ratio * prior >= 1


def test_impossible_risks_are_refused() -> None:
    with pytest.raises(InvalidPreferences, match="relative risk"):
        epsilon_for_relative_risk(1.0, 0.1)
    with pytest.raises(InvalidPreferences, match="a prior of 1"):
        epsilon_for_relative_risk(2.0, 1.0)
