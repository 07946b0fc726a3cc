"""Choices that need no probabilities: the loss whose worst regret over a set of preferences is least.

Regret max W(ε'; θ) − W(ε; θ) is convex in the preferences θ, because W is linear in them and a maximum of linear
functions is convex. Relative regret is quasiconvex: it is at most r where cost(ε; θ) ≤ (1 + r)·least(θ), linear below
concave. Where two numbers multiply (a cost and its weight), both hold for each of them alone. Either way the worst of a
box of preferences is at one of its corners, so only corners are searched. Source: Savage 1951 [Sav51].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dualmandate.choice.beliefs import Beliefs
from dualmandate.choice.landscape import Floats, Landscape
from dualmandate.choice.limits import Limits
from dualmandate.choice.uncertainty import share_in_words
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import Currency, PrivacyLoss
from dualmandate.population.wording import money, number

BINDING = 1e-6  # relative distance from the worst regret within which a corner binds


@dataclass(frozen=True)
class Corner:
    """One extreme state of preferences: the best loss in it, and the regret of the robust choice."""

    values: Mapping[str, float]  # of the numbers that are not agreed on; empty for a scenario
    epsilon: float
    least_cost: float  # what society loses at best, USD
    regret: float  # USD, or a share where the criterion is relative
    binding: bool  # whether it is the worst, or as bad as the worst


@dataclass(frozen=True, eq=False)
class RobustChoice:
    """The loss whose worst regret over a set of preferences is least."""

    epsilon: float
    currency: Currency
    relative: bool
    regret: float  # the worst, USD; a share of the least cost where relative
    corners: tuple[Corner, ...]
    landscape: Landscape
    multiples: Floats  # (corners, parts)

    @property
    def loss(self) -> PrivacyLoss:
        """The choice as an exact number, rounded down to five digits."""
        return PrivacyLoss.chosen(self.epsilon, self.currency)

    def regrets(self, losses: Floats) -> Floats:
        """Regret of each loss at each corner, in the unit of the criterion; shape (losses, corners)."""
        least = np.array([corner.least_cost for corner in self.corners])
        gap = self.landscape.costs(losses) @ self.multiples.T - least
        found: Floats = gap / least if self.relative else gap
        return found

    def explain(self) -> str:
        """The choice and the corners that decide it, in sentences."""
        share = share_in_words(self.regret)
        most = f"at most {share}" if share[0].isdigit() else share
        size = most if self.relative else f"at most {money(self.regret)}"
        low = min(self.corners, key=lambda corner: corner.epsilon)
        high = max(self.corners, key=lambda corner: corner.epsilon)
        lines = [
            f"Whatever the preferences in the set, {self.currency} = {number(self.epsilon, 6)} costs society {size} "
            f"more than the best choice for them; every other {self.currency} may cost more.",
            f"The best choice ranges from {number(low.epsilon)}{_where(low)} to {number(high.epsilon)}{_where(high)}.",
        ]
        worst = [_where(corner).removeprefix(" at ") for corner in self.corners if corner.binding and corner.values]
        if worst:
            lines.append(f"The regret is largest at {' and at '.join(worst[:3])}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain()


def minimax_regret(
    frontier: Frontier,
    preferences: Beliefs | SocialWelfare,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    limits: Limits | None = None,
    relative: bool = False,
) -> RobustChoice:
    """The loss whose worst regret is least, over the corners of `ranges` by names in `inputs`, or over given states.

    c/ε² and a linear cost between k_L and k_H: 1.5·(2c/N)^{1/3}·(k_H^{2/3} − k_L^{2/3})/(k_H − k_L).
    """
    beliefs = preferences if isinstance(preferences, Beliefs) else Beliefs.box(preferences, ranges or {})
    _, land = beliefs.explore(frontier, limits)
    epsilons, least = land.cheapest(beliefs.multiples)
    scale = least if relative else np.ones_like(least)

    def worst(costs: Floats) -> Floats:
        largest: Floats = np.max((costs @ beliefs.multiples.T - least) / scale, axis=1)
        return largest

    chosen = land.lowest_worst(worst)
    regrets = (land.costs(np.array([chosen]))[0] @ beliefs.multiples.T - least) / scale
    most = float(regrets.max())
    corners = tuple(
        Corner(
            dict(zip(beliefs.names, beliefs.values[i].tolist(), strict=True)) if beliefs.values is not None else {},
            float(epsilons[i]),
            float(least[i]),
            float(regrets[i]),
            bool(regrets[i] >= most * (1 - BINDING)),
        )
        for i in range(len(least))
    )
    return RobustChoice(chosen, frontier.currency, relative, most, corners, land, beliefs.multiples)


def _where(corner: Corner) -> str:
    values = ", ".join(f"{name} {number(value, 6)}" for name, value in corner.values.items())
    return f" at {values}" if values else ""
