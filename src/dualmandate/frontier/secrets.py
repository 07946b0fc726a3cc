"""Privacy by secrets (Pufferfish): what a loss for one record means where the records of a group go together.

A group, such as a household, has m members; from a public source it is known which share p_j of groups has j of them
counted. The secret is whether one given member is counted. Who knows p believes of j, if she is and if she is not,

    q¹_j = p_j·j/Σ_i p_i·i,    q⁰_j = p_j·(m − j)/Σ_i p_i·(m − i).

A release whose likelihood moves by at most e^{±η} with one record can move the odds of the secret by at most e^{±L(η)},

    L(η) = max( ln E¹e^{ηj}/E⁰e^{ηj}, ln E⁰e^{−ηj}/E¹e^{−ηj} ),

because q¹/q⁰ rises in j, so that likelihoods that rise, or fall, as fast as they may tell the two apart best; noise on
the number that the group is counted in reaches it. It holds for every release that sees of a group only how many of it
are counted. L = η where members are independent (p binomial), L = m·η where all are alike. L(η) ≤ W·η throughout,
W = W∞(q¹, q⁰) how far the number must move at most to turn one belief into the other: the Wasserstein mechanism adds
noise for a sensitivity of W. Source: [KM12]; [SWC17].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidPreferences
from dualmandate.frontier.frontier import Curves, Frontier, listed
from dualmandate.frontier.numerics import root
from dualmandate.mechanism import Measure
from dualmandate.population.arrays import Floats

ADD_UP = 1e-9  # Shares add up to 1 within this.
LEVEL = 1e-12  # Shares that differ by less than this, from rounding, are equal.


@dataclass(frozen=True)
class GroupSecret:
    """Whether one member of a group of m is counted, where it is known how often 0, 1, …, m of a group are."""

    shares: tuple[float, ...]  # p, shape (m + 1,), each in [0, 1)

    def __post_init__(self) -> None:
        proper = len(self.shares) >= 2 and all(0 <= share < 1 for share in self.shares)
        if not (proper and abs(math.fsum(self.shares) - 1) <= ADD_UP and self.shares[0] + self.shares[-1] > 0):
            raise InvalidPreferences(
                f"groups of which {', '.join(f'{share:g}' for share in self.shares)} have 0, 1, … members counted",
                why="shares of groups add up to 1; some group counts none or all of its members, and not every group "
                "counts as many",
                instead="state the share of groups with 0, 1, … members counted, up to the size of a group",
            )

    @property
    def members(self) -> int:
        """m."""
        return len(self.shares) - 1

    @cached_property
    def beliefs(self) -> tuple[Floats, Floats]:
        """q⁰ and q¹, shape (m + 1,): the number counted, if the member is not and if she is."""
        p, j = np.array(self.shares), np.arange(self.members + 1)
        without, with_her = p * (self.members - j), p * j
        return without / without.sum(), with_her / with_her.sum()

    @cached_property
    def wasserstein(self) -> int:
        """W∞(q¹, q⁰): the largest difference between quantiles."""
        below, above = (np.cumsum(each) for each in self.beliefs)
        levels = np.concatenate([below, above])
        middle = levels[levels < 1 - LEVEL] + LEVEL  # just above each step both quantiles are read
        low, high = (np.searchsorted(each, np.append(middle, LEVEL)) for each in (below, above))
        return int(np.max(np.minimum(high, self.members) - np.minimum(low, self.members)))

    def loss(self, record_loss: float) -> float:
        """L(η), for a loss η > 0 of one record."""
        return max(self._gap(record_loss, 1)[0], self._gap(record_loss, -1)[0])

    def slope(self, record_loss: float) -> float:
        """L′ > 0."""
        return max(self._gap(record_loss, 1), self._gap(record_loss, -1))[1]

    def record_loss(self, loss: float) -> float:
        """The η at which the secret loses as much as this: at least loss/m."""
        low, high = math.log(loss / self.members), math.log(loss)
        return math.exp(root(lambda at: loss - self.loss(math.exp(at)), low, high, step=1.0))

    def _gap(self, record_loss: float, sign: int) -> tuple[float, float]:
        """|ln E¹e^{±ηj} − ln E⁰e^{±ηj}| and its derivative."""
        j = sign * np.arange(self.members + 1)
        ends = []
        for belief in self.beliefs:
            kept = belief > 0
            logs = np.log(belief[kept]) + record_loss * j[kept]
            tilted = np.exp(logs - logs.max())
            ends.append((float(logs.max()) + math.log(tilted.sum()), float(tilted @ j[kept] / tilted.sum())))
        (without, fewer), (with_her, more) = ends
        return sign * (with_her - without), sign * (more - fewer)


@dataclass(frozen=True, eq=False)
class SecretCurves(Curves):
    """Curves of a frontier as functions of what a secret loses, by the chain rule."""

    frontier: Frontier
    secret: GroupSecret
    steps: int  # losses of the frontier that one record's change counts

    def values(self, loss: float, measure: Measure) -> Floats:
        return listed(self.frontier.table_errors(self.spent(loss), measure))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        spent = self.spent(loss)
        rise = self.secret.slope(self.steps * spent) * self.steps
        return listed(self.frontier.table_slopes(spent, measure)) / rise

    def technology(self, loss: float) -> str:
        return self.frontier.technology(self.spent(loss))

    def allocation(self, loss: float) -> dict[str, float]:
        return self.frontier.allocation(self.spent(loss))

    def spent(self, loss: float) -> float:
        """The loss of the frontier at which the secret loses this much."""
        return self.secret.record_loss(loss) / self.steps


def by_secret(frontier: Frontier, secret: GroupSecret, steps: int = 1) -> Frontier:
    """The frontier counted by what a secret loses; `steps` is how many neighbor steps change one record."""
    curves = SecretCurves(frontier, secret, steps)
    return Frontier(frontier.name, frontier.privacy_measure, frontier.query_counts, curves)
