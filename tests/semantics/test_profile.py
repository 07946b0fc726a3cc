"""From a tolerated risk to an epsilon."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.errors import InvalidPreferences
from dualmandate.semantics import (
    epsilon_for_relative_risk,
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


def test_impossible_risks_are_refused() -> None:
    with pytest.raises(InvalidPreferences, match="relative risk"):
        epsilon_for_relative_risk(1.0, 0.1)
    with pytest.raises(InvalidPreferences, match="a prior of 1"):
        epsilon_for_relative_risk(2.0, 1.0)
