"""How far a release can move what somebody believes about one person, and what the best test of a secret can find.

A secret is a pair of statements about a person that cannot both be true; what an attacker believes is a prior on the
first of them. A release with pure loss ε moves the odds between two neighboring files by at most e^{±ε}, whatever the
attacker knows about everybody else, provided that records are drawn independently (the paper's equation for semantic
privacy; [KM12] theorem 6.1). Files that lie several neighbor steps apart lose the bound of each step:

    secret                          add-or-remove     replace-one
    in the file with a, or out           1 step       not protected: the number of records is public
    in with a, or in with b              2 steps      1 step

With a failure probability δ no bound holds for every outcome. For any β > δ the odds move, up or down, by more than
(β·e^ε + δ)/(β − δ) with probability at most β: if B is the set of outcomes whose likelihood ratio exceeds e^t, then
P(B) ≤ e^ε·P′(B) + δ ≤ e^{ε−t}·P(B) + δ, so P(B) ≤ δ/(1 − e^{ε−t}); outcomes whose ratio is below e^{−t} add at most
e^{−t} times as much, and both together are β at e^t = (β·e^ε + δ)/(β − δ).

An attacker who accuses the innocent rarely also finds the guilty rarely: under (ε, δ) every test of one neighboring
file against the other obeys power ≤ e^ε·α + δ and 1 − α ≤ e^ε·(1 − power) + δ ([WZ10], [KOV15]).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidPreferences
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure
from dualmandate.population.loss import epsilon_at

# A concentrated loss gives one (ε, δ) for each δ; the smallest of their bounds holds.
_FAILURE_PROBABILITIES = np.concatenate([np.logspace(-12, -2, 21), np.linspace(0.02, 0.98, 25)])


class Secret(StrEnum):
    """The two kinds of statements about a person that a release may help to tell apart."""

    IN_OR_OUT = "in or out"
    ATTRIBUTE = "one attribute or another"


@dataclass(frozen=True)
class Belief:
    """What somebody believed before a release, and the least and most they can believe after it; all in [0, 1]."""

    prior: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class OddsBound:
    """How far the odds of a secret can move: by a factor between e^{−log_factor} and e^{log_factor}.

    `log_factor` is infinite where the secret is not protected. `exception_probability` β is 0 for a pure loss; with a
    δ it is the probability with which the bound may fail, upward or downward.
    """

    log_factor: float
    exception_probability: float = 0.0

    @property
    def protected(self) -> bool:
        """Whether anything is promised about this secret."""
        return math.isfinite(self.log_factor)

    @property
    def factor(self) -> float:
        """Largest factor on the odds, e^{log_factor}; infinite where it exceeds every number."""
        return math.exp(self.log_factor) if self.log_factor < 709.0 else math.inf

    def belief(self, prior: float) -> Belief:
        """The beliefs a prior can turn into."""
        return Belief(prior, posterior(prior, -self.log_factor), posterior(prior, self.log_factor))


def posterior(prior: float, log_factor: float) -> float:
    """Belief after the odds moved by e^t: p·e^t/(1 − p + p·e^t), computed without overflow."""
    checked_probability(prior, "a prior belief")
    if prior in (0.0, 1.0):
        return prior
    log_odds = math.log(prior) - math.log1p(-prior) + log_factor
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    return math.exp(log_odds) / (1.0 + math.exp(log_odds))


def odds_bound(
    loss: PrivacyLoss,
    secret: Secret = Secret.IN_OR_OUT,
    *,
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE,
    records: int = 1,
    failure_probability: float | None = None,
    exception_probability: float | None = None,
) -> OddsBound:
    """How far a loss lets the odds of a secret move: e^{±ε}, e^{±2ε}, e^{±mε} for m records that change together.

    A loss in ρ is first expressed in ε at the `failure_probability`, after multiplying ρ by the square of the number of
    neighbor steps. `exception_probability` is the β of the module's text; by default √δ, which costs nothing visible.
    """
    steps = neighbor_steps(secret, neighbors)
    if steps is None:
        return OddsBound(math.inf)
    epsilon, delta = after_steps(loss, steps * records, failure_probability)
    return _with_exceptions(epsilon, delta, exception_probability)


def participation_bound(loss: PrivacyLoss, *, records: int = 1) -> OddsBound:
    """How much one's own record adds to any conclusion: the odds with it, over the odds without it, are e^{±2ε}.

    Posterior against posterior: whatever the attacker wants to know and however records depend on each other, the
    likelihood of each of two statements changes by at most e^{±ε} when one record is left out (Nissim et al. 2018).
    Pure losses only: with a δ, outcomes that are rare under one statement may be common under the other, and there the
    odds may differ by any factor.
    """
    if loss.privacy_measure is PrivacyMeasure.ZCDP or loss.failure_probability:
        raise InvalidLoss(
            f"no bound on the odds of any two statements follows from {loss}",
            why="where δ > 0, the likelihood of an unlikely statement may change by any factor",
            instead="state a pure epsilon, or say how often a conclusion is drawn: at most e^ε times as often, plus δ",
        )
    epsilon, _ = after_steps(loss, records, None)
    return OddsBound(2.0 * epsilon)


def neighbor_steps(secret: Secret, neighbors: Neighbors) -> int | None:
    """Number of neighbor steps between the two files of a secret; None where no number of steps leads there."""
    if neighbors is Neighbors.REPLACE_ONE:
        return 1 if secret is Secret.ATTRIBUTE else None
    return 1 if secret is Secret.IN_OR_OUT else 2


def after_steps(loss: PrivacyLoss, steps: int, failure_probability: float | None) -> tuple[float, float]:
    """The (ε, δ) between files `steps` neighbor steps apart: mε; with δ, δ·(e^{mε} − 1)/(e^ε − 1); in ρ, m²ρ."""
    if steps < 1:
        raise InvalidLoss(
            f"a group of {steps} records",
            why="a guarantee is stated for at least one record",
            instead="ask for one record or more",
        )
    if loss.privacy_measure is PrivacyMeasure.ZCDP:
        if failure_probability is None:
            raise InvalidLoss(
                f"no bound on beliefs follows from {loss} alone",
                why="a concentrated loss bounds beliefs only up to a failure probability δ",
                instead="state a failure probability, for example 1e-10",
            )
        return epsilon_at(float(loss.amount) * steps**2, failure_probability), failure_probability
    epsilon, delta = float(loss.amount), float(loss.failure_probability)
    if delta == 0.0:
        return steps * epsilon, 0.0
    grown = sum(math.exp(min(step * epsilon, 700.0)) for step in range(steps)) * delta
    return steps * epsilon, min(grown, 1.0)


def _with_exceptions(epsilon: float, delta: float, exception_probability: float | None) -> OddsBound:
    if delta == 0.0:
        return OddsBound(epsilon)
    exceptions = math.sqrt(delta) if exception_probability is None else exception_probability
    if exceptions <= delta:
        return OddsBound(math.inf, exceptions)
    # ln((β·e^ε + δ)/(β − δ)) without overflow.
    log_factor = epsilon + math.log(exceptions + delta * math.exp(-epsilon)) - math.log(exceptions - delta)
    return OddsBound(log_factor, exceptions)


def checked_probability(value: float, what: str) -> float:
    """The value, refused unless it lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise InvalidPreferences(
            f"{what} of {value}", why="a probability lies between 0 and 1", instead="state a number from 0 to 1"
        )
    return value


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
