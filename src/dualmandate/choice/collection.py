"""How many people to ask: the size of a sample and the privacy loss of those asked, chosen together.

A random share s of N people is asked, for c USD each. Their counts are weighted by 1/s, so that noise grows by 1/s² and
a table that counts S records has the error of sampling besides; only those who are asked lose privacy:

    cost(s, ε) = c·N·s + s·Σ_g η_g·N_g·κ_g(ε) + Σ_t b_t·(ESE_t(ε)/s² + S_t·(1 − s)/s).

Where errors cost b·C/ε² and losses cost k each, the condition in ε is ε·s = (2·b·C/(N·k))^(1/3), the loss that would be
chosen for everybody: then privacy and noise cost the same at every s, and the condition in s is s = √(b·S/(c·N)).

If nobody could know who was asked, a person would lose ln(1 + s·(e^ε − 1)) [BBG18]. That is not counted: who is asked
knows it, and s·ε ≤ ln(1 + s·(e^ε − 1)), so that everybody together would bear more than those who are asked do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidPreferences, Refusal

LEAST_SHARE = 1e-7
POINTS = 29  # shares that are looked at, four in every factor of ten, before the best is polished


@dataclass(frozen=True)
class SampleChoice:
    """The share of people to ask, the loss of each, and what all of it costs, USD."""

    share: float  # s in (0, 1]
    respondents: float
    epsilon: float
    tables: tuple[str, ...]  # that are worth collecting for
    collection_cost: float
    net: float  # welfare less the cost of asking; the value of publishing is in it where tables are chosen too
    everybody: float  # the same when everybody is asked
    amplified: float | None  # ε of everybody if nobody knew who was asked; None where the loss is counted in rho

    @property
    def gained(self) -> float:
        """USD: how much better off society is than when everybody is asked."""
        return self.net - self.everybody


def best_share(worth: Callable[[float], float], cost: float, population_size: float) -> tuple[float, float]:
    """The share s at which worth(s) − cost·s is largest, with that; `cost` is that of asking everybody, USD.

    Shares at which nothing can be chosen are passed over; refused where that holds for everybody too.
    """
    from scipy.optimize import minimize_scalar

    if not (math.isfinite(cost) and cost >= 0):
        raise InvalidPreferences(
            f"asking everybody costs {cost:g} in money",
            why="nobody is asked for less than nothing",
            instead="state a finite cost of at least 0",
        )

    def net(log_share: float) -> float:
        share = math.exp(log_share)
        try:
            return worth(share) - cost * share
        except Refusal:
            return -math.inf

    least = max(LEAST_SHARE, min(1.0, 1 / population_size))
    grid = np.linspace(math.log(least), 0.0, POINTS) if least < 1 else np.array([0.0])
    heights = [net(float(point)) for point in grid]
    if heights[-1] == -math.inf:
        worth(1.0)  # says why
    place = int(np.argmax(heights))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    points = {float(grid[place]): heights[place]}
    if low < high:
        worst = min(height for height in heights if height > -math.inf)  # parabolas do not go through an infinity

        def loss(point: float) -> float:
            return -max(net(point), worst)

        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        points[float(found.x)] = -float(found.fun)
    best = max(points, key=points.__getitem__)
    return math.exp(best), points[best]


def of_those_asked(welfare: SocialWelfare, share: float) -> SocialWelfare:
    """Society where only a share of every group loses privacy."""
    return replace(welfare, groups=tuple(replace(group, size=group.size * share) for group in welfare.groups))


def amplified(epsilon: float, share: float) -> float:
    """ln(1 + s·(e^ε − 1)), without overflow."""
    if share == 1:
        return epsilon
    return float(np.logaddexp(math.log1p(-share), math.log(share) + epsilon))
