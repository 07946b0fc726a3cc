"""Which epsilon keeps the risk of disclosure at what somebody is ready to accept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from dualmandate.errors import InvalidPreferences
from dualmandate.population.wording import number

_PRIORS = tuple(float(1.0 / (1.0 + np.exp(-log_odds))) for log_odds in np.linspace(-14.0, 14.0, 2801))


def epsilon_for_disclosure_risk(
    risk: float,
    population_size: int,
    *,
    sensitivity: float,
    largest_difference: float,
) -> float:
    """The largest ε at which an attacker who knows all but one of n people cannot name the missing one better than ρ.

    ε ≤ (Δf/Δv)·ln((n − 1)·ρ/(1 − ρ)): Δf is the query's sensitivity that noise is scaled to, Δv the largest difference
    between its values on the n possible files, and every one of the n people is a priori equally likely to be the one.
    Source: [LC11].
    """
    if population_size < 2 or not 1.0 / population_size < risk < 1.0:
        raise InvalidPreferences(
            f"a disclosure risk of {risk} among {population_size} people",
            why="guessing alone names the right one with probability 1/n, and only certainty has probability 1",
            instead=f"state a risk between {number(1 / max(population_size, 1), 3)} and 1",
        )
    if not (sensitivity > 0.0 and largest_difference > 0.0):
        raise InvalidPreferences(
            f"a sensitivity of {sensitivity} and a largest difference of {largest_difference}",
            why="a query that never changes discloses nothing at any epsilon",
            instead="state both as positive numbers",
        )
    log_odds = math.log(population_size - 1) + math.log(risk) - math.log1p(-risk)
    return sensitivity / largest_difference * log_odds


def epsilon_for_relative_risk(relative_risk: float, prior: float, *, steps: int = 1) -> float:
    """The largest ε that keeps posterior ≤ r·prior: ε = ln(r(1 − p)/(1 − rp)), infinite once rp ≥ 1.

    `steps` is the number of neighbor steps of the secret (2: attribute against attribute under add-or-remove).
    Source: [KR23], solved for ε.
    """
    if not relative_risk > 1.0:
        raise InvalidPreferences(
            f"a relative risk of {relative_risk} at prior {prior}",
            why="every release that says something lets some belief rise, so no epsilon keeps it from rising at all",
            instead="state a ratio of posterior to prior above 1",
        )
    if not 0.0 < prior < 1.0:
        raise InvalidPreferences(
            f"a prior of {prior}",
            why="somebody who is certain learns nothing",
            instead="state a prior strictly between 0 and 1",
        )
    if relative_risk * prior >= 1.0:
        return math.inf
    return (math.log(relative_risk) + math.log1p(-prior) - math.log1p(-relative_risk * prior)) / steps


def epsilon_for_risk_profile(
    profile: Callable[[float], float],
    priors: Iterable[float] = _PRIORS,
    *,
    steps: int = 1,
) -> float:
    """The largest ε that keeps posterior/prior ≤ r(p) at every prior listed; by default 2,801 from 1e-6 to 1 − 1e-6.

    Infinite where the profile accepts certainty at each of them. Source: [KR23].
    """
    return min(epsilon_for_relative_risk(profile(prior), prior, steps=steps) for prior in priors)
