"""The best privacy loss as a distribution: what is believed about preferences, carried through the frontier.

Costs and values enter welfare linearly, so the loss that maximizes expected welfare is the best one at the mean of what
is believed. The best loss itself differs from state to state, and so does what the choice then costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.choice.beliefs import Beliefs
from dualmandate.choice.landscape import Floats, Landscape
from dualmandate.choice.limits import Limits
from dualmandate.choice.outcome import Choice
from dualmandate.errors import InvalidLoss, InvalidValue
from dualmandate.frontier.frontier import Frontier
from dualmandate.population.wording import money, number

SMALLEST_SHARE = 1e-4  # that is written out
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class UncertainChoice:
    """The choice that maximizes expected welfare, and what it would be if preferences were known.

    Arrays have shape (states,), in the order of the beliefs.
    """

    choice: Choice  # the one that maximizes expected welfare
    beliefs: Beliefs
    landscape: Landscape
    epsilons: Floats  # the best loss in each state
    least_costs: Floats  # what society loses there, USD

    @property
    def weights(self) -> Floats:
        """How likely each state is."""
        return self.beliefs.weights

    @property
    def median(self) -> float:
        """The loss that is as likely too low as too high."""
        return self.quantile(0.5)

    @property
    def mean(self) -> float:
        """The expected best loss; not what should be chosen."""
        return float(self.weights @ self.epsilons)

    def quantile(self, probability: float) -> float:
        """The loss that the best one stays below with a probability."""
        return weighted_quantile(self.epsilons, self.weights, probability, discrete=self.beliefs.discrete)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Where the best loss lies with probability `level`, as likely below as above."""
        if not 0 < level < 1:
            raise InvalidValue(
                f"an interval of level {level:g}",
                why="it holds a share of what is believed",
                instead="state a level strictly between 0 and 1, such as 0.95",
            )
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    @property
    def at_limits(self) -> tuple[float, float]:
        """Probability that the best loss stands at the lowest, and at the highest, that the limits allow."""
        low, high = self.landscape.at_limit(self.epsilons)
        return float(self.weights[low].sum()), float(self.weights[high].sum())

    def regrets(self, epsilon: float | None = None) -> Floats:
        """What society loses in each state by a loss (the chosen one) instead of the best; USD, ≥ 0."""
        at = self.choice.epsilon if epsilon is None else self._inside(epsilon)
        return np.maximum(self._cost_at(at) - self.least_costs, 0.0)

    def relative_regrets(self, epsilon: float | None = None) -> Floats:
        """Regrets as shares of what society loses at best in the same state."""
        shares: Floats = self.regrets(epsilon) / self.least_costs
        return shares

    def regret_quantile(self, probability: float, epsilon: float | None = None) -> float:
        """What regret stays below with a probability, USD."""
        return weighted_quantile(self.regrets(epsilon), self.weights, probability, discrete=self.beliefs.discrete)

    @cached_property
    def value_of_perfect_information(self) -> float:
        """Expected regret of the choice, USD: the most that knowing preferences exactly could be worth here.

        E[max W] − max E[W]. Source: Raiffa and Schlaifer 1961 [RS61].
        """
        return max(self.expected_cost - float(self.weights @ self.least_costs), 0.0)

    @cached_property
    def expected_cost(self) -> float:
        """What society loses in expectation at the choice, USD."""
        return float(self.weights @ self._cost_at(self.choice.epsilon))

    def density(self, points: Floats) -> Floats:
        """Probability per unit of ln loss of the best loss at given losses, away from limits; for pictures."""
        low, high = self.landscape.at_limit(self.epsilons)
        free = ~(low | high)
        logs, weights = np.log(self.epsilons[free]), self.weights[free]
        if not len(logs):
            return np.zeros_like(points)
        width = max(_deviation(logs, weights) * 0.6 * min(_effective(weights), 2000.0) ** -0.2, 1e-6)
        inside = np.ones(len(points), dtype=bool)
        places = [logs]
        for limit, sign in ((self.landscape.bounds.lowest, 1), (self.landscape.bounds.highest, -1)):
            if limit is not None:  # what a kernel would carry beyond a limit is folded back
                places.append(2 * np.log(limit) - logs)
                inside &= sign * (np.log(points) - np.log(limit)) >= -1e-12
        heights = np.zeros(len(points))
        for place in places:
            gaps = (np.log(points)[:, None] - place[None, :]) / width
            heights += np.exp(-(gaps**2) / 2) @ weights / (width * np.sqrt(2 * np.pi))
        return np.where(inside, heights, 0.0)

    def explain(self) -> str:
        """The distribution and what it means, in sentences."""
        name, chosen = self.choice.currency, float(self.choice.loss)
        low, high = self.interval()
        lines = [
            f"Preferences are not known exactly. Expected welfare is highest at {name} = {number(chosen, 6)}.",
            f"If preferences were known, the best {name} would lie between {number(low)} and {number(high)} with "
            f"probability {LEVEL:.0%}, and as likely above {number(self.median)} as below.",
        ]
        below, above = self.at_limits
        if above > 0:
            lines.append(f"With probability {share_in_words(above)} it would be the largest that the limits allow.")
        if below > 0:
            lines.append(
                f"With probability {share_in_words(below)} it would be the smallest that leaves tables fit for use."
            )
        share = self.value_of_perfect_information / self.expected_cost if self.expected_cost > 0 else 0.0
        lines.append(
            f"Not knowing costs {money(self.value_of_perfect_information)} in expectation, "
            f"{share_in_words(share)} of what society loses: no survey is worth more to this decision."
        )
        lines.append(
            f"With probability 5% the choice costs more than {money(self.regret_quantile(0.95))} against the best."
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain()

    def _cost_at(self, epsilon: float) -> Floats:
        costs: Floats = self.beliefs.multiples @ self.landscape.costs(np.array([epsilon]))[0]
        return costs

    def _inside(self, epsilon: float) -> float:
        low, high = np.exp(self.landscape.grid.points[[0, -1]]).tolist()
        if not low * (1 - 1e-9) <= epsilon <= high * (1 + 1e-9):
            raise InvalidLoss(
                f"the regret of {self.choice.currency} = {epsilon:g}",
                why=f"losses between {number(low)} and {number(high)} were looked at: others are outside the limits, "
                "or far from every best one",
                instead="ask for a loss between these",
            )
        return epsilon


def choose_under_uncertainty(frontier: Frontier, beliefs: Beliefs, limits: Limits | None = None) -> UncertainChoice:
    """Carry beliefs about preferences through a frontier: the choice, and the best loss in every state.

    The frontier stays as it is: where a technology was chosen or a loss split by stated values, knowing better would
    also move that, to second order.
    """
    choice, land = beliefs.explore(frontier, limits)
    epsilons, least = land.cheapest(beliefs.multiples)
    return UncertainChoice(choice, beliefs, land, epsilons, least)


def weighted_quantile(values: Floats, weights: Floats, probability: float, *, discrete: bool = False) -> float:
    """The value that a weighted sample stays below with a probability.

    Between the points of a continuum the distribution is read off linearly; a discrete one jumps.
    """
    if not 0 <= probability <= 1:
        raise InvalidValue(
            f"a quantile at {probability:g}", why="it is a probability", instead="state a number between 0 and 1"
        )
    order = np.argsort(values, kind="stable")
    ordered, shares = values[order], weights[order]
    reached = np.cumsum(shares)
    if discrete:
        place = int(np.searchsorted(reached, probability - 1e-12))
        return float(ordered[min(place, len(ordered) - 1)])
    return float(np.interp(probability, reached - shares / 2, ordered))


def _deviation(values: Floats, weights: Floats) -> float:
    mean = weights @ values / weights.sum()
    return float(np.sqrt(max(weights @ (values - mean) ** 2 / weights.sum(), 0.0)))


def _effective(weights: NDArray[np.float64]) -> float:
    """How many equally likely states say as much."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def share_in_words(share: float) -> str:
    """A share in percent; one that is too small to write is said to be small, not to be nothing."""
    if 0 < share < SMALLEST_SHARE:
        return f"less than {SMALLEST_SHARE:.2%}"
    return f"{share:.2%}" if share < 0.1 else f"{share:.1%}"
