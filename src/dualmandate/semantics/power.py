"""What the best test of a secret can find: an attacker who accuses the innocent rarely also finds the guilty rarely.

Under (ε, δ) every test of one neighboring file against the other obeys
power ≤ e^ε·α + δ and 1 − α ≤ e^ε·(1 − power) + δ ([WZ10], [KOV15]).
"""

from __future__ import annotations

import math

import numpy as np

from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure
from dualmandate.semantics.posterior import Secret, after_steps, checked_probability, neighbor_steps

# A concentrated loss gives one (ε, δ) for each δ; the smallest of their bounds holds.
_FAILURE_PROBABILITIES = np.concatenate([np.logspace(-12, -2, 21), np.linspace(0.02, 0.98, 25)])


def largest_power(false_positive_rate: float, epsilon: float, failure_probability: float = 0.0) -> float:
    """The most that a test with false-positive rate α can detect: min(e^ε·α + δ, 1 − e^{−ε}·(1 − δ − α)), in [α, 1]."""
    alpha = checked_probability(false_positive_rate, "a false-positive rate")
    delta = checked_probability(failure_probability, "a failure probability")
    rising = math.exp(min(epsilon, 709.0)) * alpha + delta
    falling = 1.0 - math.exp(-epsilon) * (1.0 - delta - alpha)
    return min(rising, falling, 1.0)


def power_of_best_test(
    false_positive_rate: float,
    loss: PrivacyLoss,
    secret: Secret = Secret.IN_OR_OUT,
    *,
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE,
    records: int = 1,
) -> float:
    """The most that any test of a secret can detect at a false-positive rate; 1 where the secret is not protected."""
    checked_probability(false_positive_rate, "a false-positive rate")
    steps = neighbor_steps(secret, neighbors)
    if steps is None:
        return 1.0
    if loss.privacy_measure is not PrivacyMeasure.ZCDP:
        return largest_power(false_positive_rate, *after_steps(loss, steps * records, None))
    pairs = (after_steps(loss, steps * records, float(delta)) for delta in _FAILURE_PROBABILITIES)
    return min(largest_power(false_positive_rate, epsilon, delta) for epsilon, delta in pairs)
