"""Where a count or sum of many people's reports lies: errors of many independent reports are about normal."""

from __future__ import annotations

from statistics import NormalDist

from dualmandate.mechanism.mechanism import tail_of


def normal_interval(
    estimate: float, *, standard_error: float, probability: float, largest: float
) -> tuple[float, float]:
    """Estimate ± z standard errors, within 0 and the largest possible: all of that where reports tell nothing."""
    reach = NormalDist().inv_cdf(1 - tail_of(probability) / 2) * standard_error
    return min(max(estimate - reach, 0.0), largest), min(max(estimate + reach, 0.0), largest)
