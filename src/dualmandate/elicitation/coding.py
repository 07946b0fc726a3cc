"""Privacy loss as people are told it and as it enters their utility."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.errors import InvalidSurvey
from dualmandate.population import Neighbors, PrivacyLoss
from dualmandate.semantics.posterior import Secret, neighbor_steps, odds_bound

Form = Literal["linear", "exponential", "bounded", "posterior"]

LARGEST_ROUNDING = 0.1  # The words differ from a loss by at most this share of it.
_UNITS = (100, 1_000, 10_000, 100_000, 1_000_000)


def cost_per_parameter(form: Form, epsilon: ArrayLike, prior: float | None = None) -> NDArray[np.float64]:
    """What a loss costs one person, per dollar of the parameter of the form: κ(ε)/k, a pure number (ε for linear).

    Linear ε; exponential e^ε − 1; bounded 1 − e^{−ε}; posterior q(ε) − p, with q = p/(p + (1 − p)·e^{−ε}). A choice
    model with this regressor and a price has β/β_price = k, the mean disclosure cost in the unit of the form.
    """
    loss = np.asarray(epsilon, dtype=np.float64)
    if form == "exponential":
        return np.asarray(np.expm1(loss))
    if form == "bounded":
        return np.asarray(-np.expm1(-loss))
    if form == "posterior":
        assert prior is not None
        return np.asarray(prior / (prior + (1 - prior) * np.exp(-loss)) - prior)
    return loss


@dataclass(frozen=True)
class BeliefScale:
    """How losses are said: what somebody believed of a secret, and the most that they may come to believe.

    Files that differ in the secret lie `steps` neighbor steps apart, so that odds move by at most e^{steps·ε}.
    """

    prior: float  # strictly between 0 and 1
    secret: Secret = Secret.IN_OR_OUT
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE

    def __post_init__(self) -> None:
        if not 0 < self.prior < 1:
            raise InvalidSurvey(
                f"the belief before a release is {self.prior:g}",
                why="what is already certain cannot become more or less so",
                instead="state a prior strictly between 0 and 1",
            )
        if neighbor_steps(self.secret, self.neighbors) is None:
            raise InvalidSurvey(
                f"under {self.neighbors} neighbors nothing bounds what is believed of '{self.secret}'",
                why="the number of records is public, so nobody's presence is protected",
                instead=f'state secret = "{Secret.ATTRIBUTE}", or other neighbors',
            )

    @property
    def steps(self) -> int:
        """Neighbor steps between the two files of the secret."""
        steps = neighbor_steps(self.secret, self.neighbors)
        assert steps is not None
        return steps

    def highest(self, epsilon: float) -> float:
        """The most that a loss lets somebody believe, in [prior, 1]."""
        if epsilon == 0:
            return self.prior
        bound = odds_bound(PrivacyLoss.pure(epsilon), self.secret, neighbors=self.neighbors)
        return bound.belief(self.prior).highest

    def epsilon(self, belief: ArrayLike) -> NDArray[np.float64]:
        """The loss that lets the prior become this belief: (logit q − logit p)/steps."""
        after = np.asarray(belief, dtype=np.float64)
        odds = np.log(after) - np.log1p(-after) - math.log(self.prior) + math.log1p(-self.prior)
        return np.asarray(odds / self.steps)

    def told(self, epsilons: Sequence[float]) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """Each loss in words that people understand, and the loss that the words say.

        "from 10 in 1,000 to at most 16 in 1,000" says ε = .476 where .5 was meant: answers are about the words, so the
        loss that they say is what is recorded. One count (in 100, in 1,000, …) serves all levels: the smallest that
        keeps every level within a tenth of what was meant, and apart from the others.
        """
        for unit in _UNITS:
            before = round(self.prior * unit)
            after = [round(self.highest(epsilon) * unit) for epsilon in epsilons]
            if not 0 < before < unit or max(after) >= unit or len(set(after)) < len(after):
                continue
            scale = BeliefScale(before / unit, self.secret, self.neighbors)
            said = [0.0 if n == before else float(f"{scale.epsilon(n / unit):.5g}") for n in after]
            near = all(abs(a - b) <= LARGEST_ROUNDING * b for a, b in zip(said, epsilons, strict=True))
            if near and abs(before / unit - self.prior) <= LARGEST_ROUNDING * self.prior:
                return tuple(_belief(before, n, unit) for n in after), tuple(said)
        raise InvalidSurvey(
            "the losses cannot be told apart in words",
            why=f"a belief is told as a whole number in at most {_UNITS[-1]:,}, and some levels come out the same",
            instead="choose levels that lie farther apart, or a prior nearer to 1 in 2",
        )


def _belief(before: int, after: int, unit: int) -> str:
    if after == before:
        return f"stays at {before:,} in {unit:,}"
    return f"from {before:,} in {unit:,} to at most {after:,} in {unit:,}"
