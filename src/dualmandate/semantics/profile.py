"""Which epsilon keeps the risk of disclosure at what somebody is ready to accept."""

from __future__ import annotations

import math

from dualmandate.errors import InvalidPreferences


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
