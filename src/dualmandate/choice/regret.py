"""The price of a wrong privacy loss: how much welfare is lost by standing somewhere else than at the optimum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dualmandate.choice.limits import Limits
from dualmandate.choice.optimum import choose
from dualmandate.choice.outcome import Choice
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidLoss
from dualmandate.frontier.frontier import Frontier
from dualmandate.population.wording import money, number


@dataclass(frozen=True)
class Regret:
    """What society loses by one loss instead of the best one."""

    epsilon: float
    best_epsilon: float
    welfare: float  # USD
    best_welfare: float  # USD

    @property
    def multiple(self) -> float:
        """The loss as a multiple t of the best one."""
        return self.epsilon / self.best_epsilon

    @property
    def absolute(self) -> float:
        """Welfare lost, USD; ≥ 0 within the limits."""
        return self.best_welfare - self.welfare

    @property
    def relative(self) -> float:
        """Welfare lost as a share of what society loses at best."""
        return self.absolute / -self.best_welfare if self.best_welfare < 0 else math.inf

    def __str__(self) -> str:
        share = f"{self.relative:.1%} more" if self.relative < 1 else f"{1 + self.relative:,.1f} times as much"
        return f"{number(self.epsilon, 6)} costs society {money(self.absolute)} more than it must ({share})"


def regret(
    frontier: Frontier,
    welfare: SocialWelfare,
    epsilon: float,
    *,
    limits: Limits | None = None,
    best: Choice | None = None,
) -> Regret:
    """What choosing `epsilon` loses against the optimum within the limits (`best`, where it is already known).

    With loss c/ε² and a linear cost, ε = t·ε* loses the share (2t + t⁻²)/3 − 1, whatever the parameters.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidLoss(
            f"the regret of {frontier.currency} = {epsilon}",
            why="a release has a positive, finite loss",
            instead="ask for a positive loss",
        )
    chosen = best or choose(frontier, welfare, limits)
    return Regret(epsilon, chosen.epsilon, welfare.at(frontier, epsilon), chosen.welfare)


def regret_curve(
    frontier: Frontier,
    welfare: SocialWelfare,
    multiples: Iterable[float],
    *,
    limits: Limits | None = None,
    best: Choice | None = None,
) -> tuple[Regret, ...]:
    """Regret at multiples t of the optimum."""
    chosen = best or choose(frontier, welfare, limits)
    return tuple(regret(frontier, welfare, multiple * chosen.epsilon, best=chosen) for multiple in multiples)
