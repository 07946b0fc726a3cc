"""The (ε, δ) of one release by the distribution of its privacy loss, composed numerically by dp-accounting.

For noise that was all fixed beforehand this is the exact curve, up to its discretization, which errs on the safe side:
a little below what the sum of ρ implies. It is a property of one release: two of them do not add up, so that it is
reported and never accounted with. The worst is taken over the changes that a unit can make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.changes import Change, Measured, largest_changes
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.loss import epsilon_at
from dualmandate.population.rational import Written, written_probability

LEAST_PROBABILITY = Fraction(1, 10**12)  # δ below which rounding errors of Fourier transforms would show
KEPT_BACK = 1e-3  # of δ, for these errors
FINENESS = 2e-5  # of the converted ε: how finely losses are told apart
MOST_COMPOSED = 64  # changes whose distributions are worked out


@dataclass(frozen=True)
class ReleasePrivacy:
    """What one protected unit loses by one release, at a failure probability.

    `by_conversion` follows from its ε or ρ. `by_distribution` is that of its exact noise, None where it is not known;
    `words` says why. Neither is a balance: such numbers of several releases do not add up.
    """

    by_conversion: PrivacyLoss
    by_distribution: PrivacyLoss | None
    words: str

    @property
    def loss(self) -> PrivacyLoss:
        """The smaller of the two."""
        known = [self.by_conversion] + ([] if self.by_distribution is None else [self.by_distribution])
        return min(known, key=lambda each: each.amount)


def release_privacy(
    groups: Sequence[Measured], protection: Protection, charge: PrivacyLoss, failure_probability: Written
) -> ReleasePrivacy:
    """The loss of a release whose noise was all fixed in its plan, as (ε, δ)."""
    probability = _checked(failure_probability)
    converted = _converted(charge, probability)
    epsilon, words = _composed(groups, protection, probability, bound=float(converted))
    exact = None if epsilon is None else PrivacyLoss.reported(epsilon, probability)
    return ReleasePrivacy(converted, exact, words)


def _checked(failure_probability: Written) -> Fraction:
    found = written_probability(failure_probability)
    if found is None:
        raise InvalidRequest(
            f"a loss at a failure probability of {failure_probability}",
            why="δ is a probability strictly between 0 and 1",
            instead="state one, for example 1e-10",
        )
    return found


def _converted(charge: PrivacyLoss, probability: Fraction) -> PrivacyLoss:
    """The tight conversion of ρ; a pure ε stays what it is where that is less."""
    epsilon = epsilon_at(charge.in_rho().amount, probability)
    if charge.privacy_measure is PrivacyMeasure.PURE_DP and float(charge) <= epsilon:
        return charge
    return PrivacyLoss.reported(epsilon, probability) if epsilon > 0 else charge


def _composed(
    groups: Sequence[Measured], protection: Protection, probability: Fraction, *, bound: float
) -> tuple[float | None, str]:
    if find_spec("dp_accounting") is None:
        return None, "dp-accounting is not installed: install dualmandate[accounting]"
    if probability < LEAST_PROBABILITY:
        return None, f"distributions are composed for δ of at least {float(LEAST_PROBABILITY):g}"
    changes = largest_changes(groups, protection)
    if changes is None or len(changes) > MOST_COMPOSED:
        return None, "the changes that one unit can make are too many to go through"
    found = [epsilon_of(change, float(probability), fineness=FINENESS * bound) for change in changes]
    if any(each is None for each in found):
        return None, "noise as broad as this is not composed value by value"
    worst = max((each for each in found if each is not None), default=0.0)
    if not 0 < worst < math.inf:
        return None, "δ alone covers the loss" if worst <= 0 else "the discretized distribution has no end"
    return worst, f"the worst of {len(changes)} kinds of changes, composed numerically"


def epsilon_of(change: Change, probability: float, *, fineness: float) -> float | None:
    """The ε at this δ between a release and one whose rows are shifted so, an upper bound to `fineness` a row.

    None where the loss of a row is not worked out.
    """
    composed: Any = None
    for (noise, size), count in sorted(change, key=str):
        one = noise.family.loss_distribution(noise.parameter, size, fineness)
        if one is None:
            return None
        rows = one.self_compose(count) if count > 1 else one
        composed = rows if composed is None else composed.compose(rows)
    return 0.0 if composed is None else float(composed.get_epsilon_for_delta(probability * (1 - KEPT_BACK)))
