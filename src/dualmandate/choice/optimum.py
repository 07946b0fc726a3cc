"""The choice: the privacy loss at which welfare is highest, within the limits; and the price of any other.

Welfare need not be concave (bounded and posterior costs, envelopes of technologies), so every point where W' changes
sign is found on a logarithmic grid, polished, and compared with the ends. What changes sign is the logarithm of gain
over cost, ln(−D') − ln P': free of the scale of dollars, and finite where P' itself is not. The grid of costs that
serves thousands of preferences (`cost_grid`) is read off cubics; one choice is polished on the frontier itself.

Regret is how much welfare is lost by standing somewhere else than at the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dualmandate.choice.limits import LARGEST_LOSS, SMALLEST_LOSS, Bounds, Limits
from dualmandate.choice.outcome import Choice, LocalOptimum, outcome
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidLoss, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.population.wording import money, number

LEAST_POINTS = 400  # The grid has at least this many points.
POINTS_PER_DECADE = 60
LOWEST_START, HIGHEST_START = 1e-4, 1e3
STEEPEST = 1e4  # Beyond this ln gain − ln cost is cut off, so that a root finder never meets an infinity.
UNDERFLOW = 1e-290  # A slope below this, USD per unit of loss, has lost its digits.
BENT = 1e-9  # A second difference on the grid above this is not just rounding.
CLOSE = 1e-6  # An optimum this near to an end of the grid is not yet bracketed.
TIE = 1e-13  # A relative difference of welfare below this is no difference.
FLAT = 0.01  # A data loss whose elasticity is below this has reached its floor.


def choose(frontier: Frontier, welfare: SocialWelfare, limits: Limits | None = None) -> Choice:
    """The privacy loss that maximizes welfare on the frontier, within the limits (MRT = WTA where none binds).

    Source: Abowd and Schmutte 2019, equation (10) with its sign put right.
    """
    welfare.check(frontier)
    limits = limits or Limits()
    bounds = limits.bounds(frontier, welfare)
    best, candidates = best_within(frontier, welfare, bounds)
    return outcome(frontier, welfare, bounds=bounds, best=best, candidates=candidates)


def best_within(
    frontier: Frontier, welfare: SocialWelfare, bounds: Bounds
) -> tuple[LocalOptimum, tuple[LocalOptimum, ...]]:
    """The best of all local optima and ends between bounds, and all of them; refused where no loss is best."""
    candidates = local_optima(frontier, welfare, bounds)
    peaks = [candidate for candidate in candidates if candidate.kind != "minimum"]
    best = max(peaks, key=lambda candidate: candidate.welfare, default=None)
    _refuse_unbounded(frontier, welfare, bounds=bounds, best=best)
    assert best is not None
    return best, candidates


def local_optima(frontier: Frontier, welfare: SocialWelfare, bounds: Bounds | None = None) -> tuple[LocalOptimum, ...]:
    """Every point where W' changes sign, and the ends that the limits set, by increasing loss."""
    from scipy.optimize import brentq

    bounds = bounds or Bounds()
    gain = _Advantage(frontier, welfare)
    found: list[LocalOptimum] = []
    for (low, before), (high, after) in pairwise(_grid(gain, *gain.range(bounds))):
        if (before > 0) != (after > 0):
            loss = math.exp(brentq(gain, low, high, xtol=1e-14, rtol=1e-14))
            found.append(LocalOptimum(loss, welfare.at(frontier, loss), "maximum" if before > 0 else "minimum"))
    if bounds.lowest is not None:
        found.insert(0, LocalOptimum(bounds.lowest, welfare.at(frontier, bounds.lowest), "end", "fitness for use"))
    if bounds.highest is not None and bounds.highest != bounds.lowest:
        found.append(LocalOptimum(bounds.highest, welfare.at(frontier, bounds.highest), "end", bounds.highest_by))
    return tuple(found)


def advantage(frontier: Frontier, welfare: SocialWelfare, loss: float) -> float:
    """ln(−D') − ln P', gain over cost of one more unit of loss: 0 at an optimum, positive where more is better."""
    return _Advantage(frontier, welfare)(math.log(loss))


@dataclass(frozen=True)
class _Advantage:
    """ln(−D') − ln P' as a function of the logarithm of the loss: positive where more loss is worth its cost."""

    frontier: Frontier
    welfare: SocialWelfare

    def __call__(self, log_loss: float) -> float:
        loss = math.exp(log_loss)
        gain = -self.welfare.marginal_data_loss(self.frontier, loss)
        cost = self.welfare.log_marginal_privacy_cost(loss)
        if gain <= 0:
            return -STEEPEST if cost > -math.inf else 0.0
        if not math.isfinite(gain) or cost == -math.inf:
            return STEEPEST
        return min(max(math.log(gain) - cost, -STEEPEST), STEEPEST)

    def readable(self, log_loss: float) -> bool:
        """Whether the sign means something: not where both have left the range of floats, or the frontier ends."""
        loss = math.exp(log_loss)
        try:
            gain = -self.welfare.marginal_data_loss(self.frontier, loss)
        except InvalidLoss:
            return False
        return gain > UNDERFLOW or self.welfare.log_marginal_privacy_cost(loss) > math.log(UNDERFLOW)

    def range(self, bounds: Bounds) -> tuple[float, float]:
        """Logarithms of the losses to search between, widened until welfare rises at the low end and falls at the high.

        Widening stops at the limits, and where floats no longer tell gain from cost.
        """
        highest = math.log(bounds.highest or HIGHEST_START)
        lowest = math.log(bounds.lowest or min(LOWEST_START, math.exp(highest) * LOWEST_START))
        while highest > lowest and not self.readable(highest):
            highest -= math.log(2)
        while highest > lowest and not self.readable(lowest):
            lowest += math.log(2)
        if bounds.highest is None and math.isinf(self.welfare.most_privacy_cost):
            while highest < math.log(LARGEST_LOSS) and self(highest) > -CLOSE and self.readable(highest + math.log(10)):
                highest += math.log(10)
        if bounds.lowest is None:
            while lowest > math.log(SMALLEST_LOSS) and self(lowest) < CLOSE and self.readable(lowest - math.log(10)):
                lowest -= math.log(10)
        return lowest, highest


def _grid(gain: Callable[[float], float], lowest: float, highest: float) -> list[tuple[float, float]]:
    """Points, with the advantage there, between which it changes sign at most once.

    A logarithmic grid, refined where the curve nearly touches 0; exact zeros are left out, so that each lies between
    two points of opposite sign.
    """
    from scipy.optimize import minimize_scalar

    if lowest >= highest:
        return []
    count = max(LEAST_POINTS, math.ceil(POINTS_PER_DECADE * (highest - lowest) / math.log(10)))
    points = [(float(x), gain(float(x))) for x in np.linspace(lowest, highest, count + 1)]
    points = [(x, value) for x, value in points if value != 0]
    touching = []
    for (left, a), (_, b), (right, c) in zip(points, points[1:], points[2:], strict=False):
        side = math.copysign(1.0, b)
        if min(side * a, side * c) >= abs(b) and side * (a + c) - 2 * abs(b) > BENT:

            def distance(x: float, side: float = side) -> float:
                return side * gain(x)

            nearest = minimize_scalar(distance, bounds=(left, right), method="bounded", options={"xatol": 1e-10})
            if nearest.fun < 0:
                touching.append((float(nearest.x), side * float(nearest.fun)))
    return sorted([*points, *touching])


def _refuse_unbounded(frontier: Frontier, welfare: SocialWelfare, *, bounds: Bounds, best: LocalOptimum | None) -> None:
    """Refuse where some loss beyond every candidate is better: more and more loss, or none at all."""
    reached = -math.inf if best is None else best.welfare
    gain = _Advantage(frontier, welfare)
    lowest, highest = gain.range(bounds)
    privacy_measure = frontier.privacy_measure
    inside = f"; the best {privacy_measure} inside, {number(best.epsilon, 6)}, gives {money(reached)}" if best else ""
    if bounds.lowest is None and gain(lowest) <= 0:
        nothing = welfare.at(frontier, math.exp(lowest))
        if nothing > reached:
            raise NoOptimum(
                f"no {privacy_measure} is worth its cost: society is best off as {privacy_measure} falls to 0{inside}",
                why="every release costs more in privacy than the errors it removes",
                instead="publish nothing new, or state what errors in the tables cost",
            )
    if bounds.highest is not None:
        return
    if math.isfinite(welfare.most_privacy_cost):
        limit = -welfare.most_privacy_cost - _least_data_loss(frontier, welfare, math.exp(highest))
        if best is None or limit - reached > TIE * abs(limit):
            raise NoOptimum(
                f"welfare rises without limit of {privacy_measure}, to {money(limit)} when nothing is "
                f"protected{inside}",
                why="the cost of privacy loss is bounded, and exact tables are worth more than all of it",
                instead=f"state a legal cap (largest_{privacy_measure}), or a cost that grows with every unit of loss",
            )
    elif best is None:
        raise NoOptimum(
            f"welfare still rises at {privacy_measure} = {number(math.exp(highest), 3)}",
            why="privacy loss costs next to nothing beside the errors it removes",
            instead=f"state a legal cap (largest_{privacy_measure}), and check the units of the costs and values",
        )


def _least_data_loss(frontier: Frontier, welfare: SocialWelfare, loss: float) -> float:
    """The data loss at unlimited privacy loss: existing errors alone, or what it has leveled off at."""
    data_loss, floor = welfare.data_loss(frontier, loss), welfare.least_data_loss
    falling = -welfare.marginal_data_loss(frontier, loss) * loss
    return floor if falling > FLAT * (data_loss - floor) else data_loss


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
            f"the regret of {frontier.privacy_measure} = {epsilon}",
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
