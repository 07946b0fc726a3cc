"""The power of tests: the stated bound against every test of small mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dualmandate.errors import InvalidPreferences
from dualmandate.population import Neighbors, PrivacyLoss
from dualmandate.semantics import Secret, largest_power, power_of_best_test


def test_no_rejection_region_of_geometric_noise_beats_the_bound() -> None:
    """Every threshold test of one count against the next, the best tests by Neyman and Pearson."""
    epsilon = 0.8
    ratio = math.exp(-epsilon)
    tail = [ratio**k / (1 + ratio) for k in range(1, 30)]  # P(noise ≥ k)
    for above, null in itertools.pairwise([1 - tail[0], *tail]):
        assert above == pytest.approx(largest_power(null, epsilon), rel=1e-12)
    middle = 0.5 * (tail[3] + tail[4])  # between two thresholds, by randomizing
    assert 0.5 * (tail[2] + tail[3]) == pytest.approx(largest_power(middle, epsilon))


def test_every_test_of_a_leaky_mechanism_obeys_the_bound_and_one_reaches_it() -> None:
    epsilon, delta = 0.6, 0.05
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    if_yes = np.array([(1 - delta) * keep, (1 - delta) * (1 - keep), delta, 0.0])
    if_no = np.array([(1 - delta) * (1 - keep), (1 - delta) * keep, 0.0, delta])
    slack = []
    for region in itertools.product((0, 1), repeat=4):
        chosen = np.array(region)
        slack.append(largest_power(float(if_no @ chosen), epsilon, delta) - float(if_yes @ chosen))
    assert min(slack) == pytest.approx(0.0, abs=1e-12)
    assert min(slack) > -1e-12


def test_limits_of_the_bound() -> None:
    assert largest_power(0.0, 1.0) == 0.0
    assert largest_power(1.0, 1.0) == 1.0
    assert largest_power(0.05, 1e-12) == pytest.approx(0.05)
    assert largest_power(0.05, 1000.0) == pytest.approx(1.0)
    with pytest.raises(InvalidPreferences, match="false-positive"):
        largest_power(1.2, 1.0)


def test_secrets_and_groups_multiply_the_loss() -> None:
    loss = PrivacyLoss.pure("0.5")
    assert power_of_best_test(0.05, loss) == pytest.approx(0.05 * math.exp(0.5))
    assert power_of_best_test(0.05, loss, Secret.ATTRIBUTE) == pytest.approx(0.05 * math.exp(1.0))
    assert power_of_best_test(0.05, loss, records=3) == pytest.approx(0.05 * math.exp(1.5))
    assert power_of_best_test(0.05, loss, neighbors=Neighbors.REPLACE_ONE) == 1.0
    one, four = PrivacyLoss.concentrated("0.01"), PrivacyLoss.concentrated("0.04")
    assert power_of_best_test(0.05, one, records=2) == power_of_best_test(0.05, four)
    assert power_of_best_test(0.05, one, Secret.ATTRIBUTE) == power_of_best_test(0.05, four)


@pytest.mark.parametrize("rho", [0.02, 0.125, 1.0])
def test_concentrated_bound_covers_the_gaussian_mechanism(rho: float) -> None:
    """The Gaussian mechanism with ρ = 1/(2σ²) has power Φ(Φ⁻¹(α) + √(2ρ)): below the bound, and not far below."""
    from scipy.stats import norm

    for alpha in (0.01, 0.05, 0.3):
        exact = float(norm.cdf(norm.ppf(alpha) + math.sqrt(2 * rho)))
        stated = power_of_best_test(alpha, PrivacyLoss.concentrated(str(rho)))
        assert exact < stated < exact + 0.35
        assert stated <= 1.0
