"""From a tolerated risk to an epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.errors import InvalidPreferences
from dualmandate.semantics import (
    epsilon_for_disclosure_risk,
    epsilon_for_relative_risk,
    epsilon_for_risk_profile,
    posterior,
)


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


def test_a_profile_is_as_strict_as_its_strictest_prior() -> None:
    def profile(prior: float) -> float:
        return 3.0 if prior < 0.3 else 1.5

    priors = [0.01, 0.1, 0.29, 0.3, 0.6]
    found = epsilon_for_risk_profile(profile, priors)
    assert found == min(epsilon_for_relative_risk(profile(prior), prior) for prior in priors)
    for prior in priors:
        assert posterior(prior, found) <= profile(prior) * prior * (1 + 1e-12)
    assert any(posterior(prior, found * 1.001) > profile(prior) * prior for prior in priors)


def test_a_constant_ratio_is_ruled_by_the_rarest_prior_and_a_flat_ceiling_by_the_likeliest() -> None:
    assert epsilon_for_risk_profile(lambda _: 4.0) == pytest.approx(math.log(4), rel=1e-5)
    ceiling = epsilon_for_risk_profile(lambda prior: 0.5 / prior, np.linspace(0.01, 0.4, 40))
    assert ceiling == pytest.approx(math.log(0.5 / 0.4 * 0.6 / 0.5))
    assert epsilon_for_risk_profile(lambda prior: 1.01 / prior) == math.inf


def test_lee_clifton_bound_by_brute_force() -> None:
    """Laplace noise of scale Δf/ε on a mean: the attacker names who is missing among n with at most the risk."""
    values = np.array([1.0, 2.0, 3.0, 10.0])
    possible = np.array(
        [(values.sum() - value) / 3 for value in values]
    )  # mean of the others, one file a person left out
    difference = float(possible.max() - possible.min())
    sensitivity, risk = 4.0, 1 / 3
    epsilon = epsilon_for_disclosure_risk(risk, 4, sensitivity=sensitivity, largest_difference=difference)
    assert epsilon == pytest.approx(sensitivity / difference * math.log(3 * (1 / 3) / (2 / 3)))
    outputs = np.linspace(-200, 200, 40001)[:, None]
    likelihood = np.exp(-np.abs(outputs - possible) * epsilon / sensitivity)
    beliefs = likelihood / likelihood.sum(axis=1, keepdims=True)
    assert beliefs.max() <= risk


@pytest.mark.parametrize("risk", [0.0, 0.25, 1.0, math.nan])
def test_risks_that_guessing_already_reaches_are_refused(risk: float) -> None:
    with pytest.raises(InvalidPreferences, match="disclosure risk"):
        epsilon_for_disclosure_risk(risk, 4, sensitivity=1, largest_difference=1)


def test_impossible_profiles_are_refused() -> None:
    with pytest.raises(InvalidPreferences, match="relative risk"):
        epsilon_for_relative_risk(1.0, 0.1)
    with pytest.raises(InvalidPreferences, match="a prior of 1"):
        epsilon_for_relative_risk(2.0, 1.0)
    with pytest.raises(InvalidPreferences, match="sensitivity of 0"):
        epsilon_for_disclosure_risk(0.5, 4, sensitivity=0, largest_difference=1)
