"""Preferences that are not known: the best loss as a distribution, robust choices, and what a survey is worth.

Costs and values enter welfare linearly, so the loss that maximizes expected welfare is the best one at the mean of what
is believed. The best loss itself differs from state to state, and so does what the choice then costs.

A robust choice needs no probabilities: it is the loss whose worst regret over a set of preferences is least. Regret
max W(ε'; θ) − W(ε; θ) is convex in the preferences θ, because W is linear in them and a maximum of linear functions is
convex. Relative regret is quasiconvex: it is at most r where cost(ε; θ) ≤ (1 + r)·least(θ), linear below concave. Where
two numbers multiply (a cost and its weight), both hold for each of them alone. Either way the worst of a box of
preferences is at one of its corners, so only corners are searched. Source: Savage 1951 [Sav51].

A survey is worth what the choice gains from it in expectation: E[V(what will be believed)] − V(what is believed), with
V the highest expected welfare. Source: Raiffa and Schlaifer 1961, part 2 [RS61].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dualmandate.choice.beliefs import WIDEST, Beliefs, number_asked_for
from dualmandate.choice.cost_grid import CostGrid
from dualmandate.choice.optimum import Choice, Limits
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidPreferences, InvalidValue
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Floats
from dualmandate.population.wording import chosen_loss, money, number, percent

SMALLEST_SHARE = 1e-4  # A share below this is said to be small, and not written out.
LEVEL = 0.95
HALF = 0.5
ROUNDING = 1e-12  # A relative difference below this in what a loss costs is none.
BINDING = 1e-6  # A corner binds whose regret is within this share of the worst.
SCORE_STEP = 0.02  # What may come to be believed is laid out in this step of a standard normal.
SIGNALS = 801  # A survey may give at least this many answers, spread over what can be expected.
FARTHEST = 8.0  # Answers lie at most this many standard errors beyond the outermost state.
MOST_RESPONDENTS = 1e9


@dataclass(frozen=True, eq=False)
class UncertainChoice:
    """The choice that maximizes expected welfare, and what it would be if preferences were known.

    Arrays have shape (states,), in the order of the beliefs.
    """

    choice: Choice  # the one that maximizes expected welfare
    beliefs: Beliefs
    cost_grid: CostGrid
    epsilons: Floats  # the best loss in each state
    least_costs: Floats  # what society loses there, USD

    @property
    def weights(self) -> Floats:
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

    def span(self, level: float = LEVEL) -> str:
        """The interval in words; what has no upper bound is said to have none."""
        low, high = map(number, self.interval(level))
        if math.isinf(self.interval(level)[1]):
            return f"above {low}"
        return f"at {low}" if low == high else f"between {low} and {high}"

    @property
    def at_limits(self) -> tuple[float, float]:
        """Probability that the best loss stands at the lowest, and at the highest, that the limits allow.

        Where no limit is set: that it is 0, and that none is too large.
        """
        low, high = self.cost_grid.at_limit(self.epsilons)
        return float(self.weights[low].sum()), float(self.weights[high].sum())

    def regrets(self, epsilon: float | None = None) -> Floats:
        """What society loses in each state by a loss (the chosen one) instead of the best; USD, ≥ 0."""
        at = self.choice.epsilon
        if epsilon is not None:
            at = self.cost_grid.inside(epsilon, f"the regret of {self.choice.privacy_measure} = {epsilon:g}")
        costs = self._cost_at(at)
        return np.where(costs - self.least_costs > ROUNDING * costs, costs - self.least_costs, 0.0)

    def regret_quantile(self, probability: float, epsilon: float | None = None) -> float:
        """What regret stays below with a probability, USD."""
        return weighted_quantile(self.regrets(epsilon), self.weights, probability, discrete=self.beliefs.discrete)

    @cached_property
    def value_of_perfect_information(self) -> float:
        """Expected regret of the choice, USD: the most that knowing preferences exactly could be worth here.

        E[max W] − max E[W]. Source: Raiffa and Schlaifer 1961 [RS61].
        """
        gained = self.expected_cost - float(self.weights @ self.least_costs)
        return gained if gained > ROUNDING * self.expected_cost else 0.0

    @cached_property
    def expected_cost(self) -> float:
        """What society loses in expectation at the choice, USD."""
        return float(self.weights @ self._cost_at(self.choice.epsilon))

    def density(self, points: Floats) -> Floats:
        """Probability per unit of ln loss of the best loss at given losses, away from limits; for pictures."""
        low, high = self.cost_grid.at_limit(self.epsilons)
        free = ~(low | high)
        logs, weights = np.log(self.epsilons[free]), self.weights[free]
        if not len(logs):
            return np.zeros_like(points)
        as_many = float(weights.sum() ** 2 / (weights**2).sum())  # equally likely states that say as much
        width = max(_deviation(logs, weights) * 0.6 * min(as_many, 2000.0) ** -0.2, 1e-6)
        inside = np.ones(len(points), dtype=bool)
        places = [logs]
        for limit, sign in ((self.cost_grid.bounds.lowest, 1), (self.cost_grid.bounds.highest, -1)):
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
        name, chosen = self.choice.privacy_measure, float(self.choice.loss)
        below, above = self.at_limits
        # Where it stands at a limit more often than not, nothing lies beyond.
        middle = f", and as likely above {number(self.median)} as below" if max(below, above) < HALF else ""
        lines = [
            f"Expected welfare is highest at {name} = {chosen_loss(chosen)}.",
            f"If preferences were known, the best {name} would lie {self.span()} with probability {percent(LEVEL)}"
            f"{middle}.",
        ]
        if above > 0 and self.cost_grid.bounds.highest is None:
            bound = "It has no upper bound: with" if math.isinf(self.interval()[1]) else "With"
            lines.append(
                f"{bound} probability {share_in_words(above)} no loss would be too large, because what was measured "
                "does not rule out that it costs people nothing."
            )
        elif above > 0:
            lines.append(f"With probability {share_in_words(above)} it would be the largest that the limits allow.")
        if below > 0 and self.cost_grid.bounds.lowest is not None:
            lines.append(
                f"With probability {share_in_words(below)} it would be the smallest that leaves tables fit for use."
            )
        share = self.value_of_perfect_information / self.expected_cost if self.expected_cost > 0 else 0.0
        lines.append(
            f"Not knowing costs {money(self.value_of_perfect_information, self.choice.currency)} in expectation, "
            f"{share_in_words(share)} of what society loses: no survey is worth more to this decision."
        )
        regret = money(self.regret_quantile(0.95), self.choice.currency)
        more = f"With probability 5 % the choice costs more than {regret} against the best."
        lines.append(
            more if self.regret_quantile(0.95) > 0 else "With probability 95 % no other would have been better."
        )
        return "\n".join(lines)

    __str__ = explain

    def _cost_at(self, epsilon: float) -> Floats:
        costs: Floats = self.beliefs.multiples @ self.cost_grid.costs(np.array([epsilon]))[0]
        return costs


def choose_under_uncertainty(frontier: Frontier, beliefs: Beliefs, limits: Limits | None = None) -> UncertainChoice:
    """Carry beliefs about preferences through a frontier: the choice, and the best loss in every state.

    The frontier stays as it is: where a technology was chosen or a loss split by stated values, knowing better would
    also move that, to second order.
    """
    choice, land = beliefs.explore(frontier, limits)
    epsilons, least = land.cheapest(beliefs.multiples, open_ended=beliefs.open_ended)
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
    if discrete or not np.isfinite(ordered[-1]):
        place = int(np.searchsorted(reached, probability - 1e-12))
        return float(ordered[min(place, len(ordered) - 1)])
    return float(np.interp(probability, reached - shares / 2, ordered))


def _deviation(values: Floats, weights: Floats) -> float:
    mean = weights @ values / weights.sum()
    return float(np.sqrt(max(weights @ (values - mean) ** 2 / weights.sum(), 0.0)))


def share_in_words(share: float) -> str:
    """A share in percent; one that is too small to write is said to be small, not to be nothing."""
    if 0 < share < SMALLEST_SHARE:
        return f"less than {percent(SMALLEST_SHARE)}"
    return percent(share)


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
    privacy_measure: PrivacyMeasure
    currency: str
    relative: bool
    regret: float  # the worst, USD; a share of the least cost where relative
    corners: tuple[Corner, ...]
    cost_grid: CostGrid
    multiples: Floats  # (corners, parts)

    @property
    def loss(self) -> PrivacyLoss:
        """The choice as an exact number, rounded down to five digits."""
        return PrivacyLoss.chosen(self.epsilon, self.privacy_measure)

    def regrets(self, losses: Floats) -> Floats:
        """Regret of each loss at each corner, in the unit of the criterion; shape (losses, corners)."""
        least = np.array([corner.least_cost for corner in self.corners])
        gap = self.cost_grid.costs(losses) @ self.multiples.T - least
        found: Floats = gap / least if self.relative else gap
        return found

    def explain(self) -> str:
        """The choice and the corners that decide it, in sentences."""
        share = share_in_words(self.regret)
        most = f"at most {share}" if share[0].isdigit() else share
        size = most if self.relative else f"at most {money(self.regret, self.currency)}"
        low = min(self.corners, key=lambda corner: corner.epsilon)
        high = max(self.corners, key=lambda corner: corner.epsilon)
        if self.regret == 0:
            best = f"{self.privacy_measure} = {chosen_loss(self.epsilon)}"
            return f"Whatever the preferences in the set, {best} is the best choice for them."
        lines = [
            f"Whatever the preferences in the set, {self.privacy_measure} = {chosen_loss(self.epsilon)} costs "
            f"society {size} "
            f"more than the best choice for them; every other {self.privacy_measure} may cost more.",
            f"The best choice ranges from {number(low.epsilon)}{_where(low)} to {number(high.epsilon)}{_where(high)}.",
        ]
        worst = [_where(corner).removeprefix(" at ") for corner in self.corners if corner.binding and corner.values]
        if worst:
            lines.append(f"The regret is largest at {' and at '.join(worst[:3])}.")
        return "\n".join(lines)

    __str__ = explain


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
    gap = land.costs(np.array([chosen]))[0] @ beliefs.multiples.T - least
    regrets = np.where(gap > ROUNDING * least, gap, 0.0) / scale
    most = float(regrets.max())
    states = [()] * len(least) if beliefs.values is None else beliefs.values.tolist()  # a scenario has no numbers
    binding = regrets >= most * (1 - BINDING)
    corners = tuple(
        Corner(dict(zip(beliefs.names, values, strict=True)), *told)
        for values, *told in zip(states, *(each.tolist() for each in (epsilons, least, regrets, binding)), strict=True)
    )
    named = frontier.privacy_measure, beliefs.like.currency
    return RobustChoice(chosen, *named, relative, most, corners, land, beliefs.multiples)


def _where(corner: Corner) -> str:
    values = ", ".join(f"{name.replace('_', ' ')} {number(value, 6)}" for name, value in corner.values.items())
    return f" at {values}" if values else ""


@dataclass(frozen=True)
class SurveyValue:
    """What a survey of so many people is worth to this decision."""

    respondents: int
    spread: float  # standard deviation of ln of the number in one answer
    parameter: str  # the number that is asked for
    value: float  # USD, ≥ 0
    perfect: float  # what knowing everything exactly would be worth, USD
    currency: str

    @property
    def share(self) -> float:
        """Of what perfect information is worth."""
        return self.value / self.perfect if self.perfect > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"another survey of {self.respondents:,} people is worth {money(self.value, self.currency)} to this "
            f"decision, {share_in_words(self.share)} of what knowing preferences exactly is worth"
        )


def survey_value(
    known: UncertainChoice, respondents: int, *, spread: float, parameter: str | None = None
) -> SurveyValue:
    """What asking so many people about one number is worth, USD.

    Each answer measures ln of the number with standard deviation `spread`, so n of them with spread/√n. For lognormal
    beliefs the updated mean is lognormal with log variance v = s² − 1/(1/s² + n/spread²), and since welfare is linear
    the value is that of perfect information about such a number (c/ε², linear cost: the share 1 − e^{−v/9} of what
    society loses). For any other beliefs, answers are laid out on a line and each updates the weights of the states.
    """
    name = number_asked_for(known.beliefs.names, parameter)
    if not (isinstance(respondents, int) and respondents > 0 and math.isfinite(spread) and spread > 0):
        raise InvalidValue(
            f"a survey of {respondents} people whose answers have the spread {spread}",
            why="a survey asks somebody, and answers differ",
            instead="state a whole number of people and a spread above 0",
        )
    lognormal = known.beliefs.uncertain
    worth = (
        _conjugate(known, name, respondents=respondents, spread=spread)
        if lognormal
        else _updated(known, name, error=spread / math.sqrt(respondents))
    )
    perfect = known.value_of_perfect_information
    return SurveyValue(respondents, spread, name, worth, perfect, known.choice.currency)


def best_survey(
    known: UncertainChoice, *, cost_per_respondent: float, spread: float, parameter: str | None = None
) -> SurveyValue | None:
    """The survey whose worth exceeds its cost by most; None where not even the best one pays.

    Sizes are searched over powers of 2 first, then by thirds around the best of them, to a thousandth.
    """
    if not (math.isfinite(cost_per_respondent) and cost_per_respondent > 0):
        raise InvalidValue(
            f"a cost of {cost_per_respondent} {known.choice.currency} a respondent",
            why="people who are asked cost time and money",
            instead="state a cost above 0",
        )
    most = min(known.value_of_perfect_information / cost_per_respondent, MOST_RESPONDENTS)
    if most < 1:
        return None

    def gain(size: int) -> float:
        return survey_value(known, size, spread=spread, parameter=parameter).value - cost_per_respondent * size

    steps = math.ceil(math.log(most) / math.log(2)) + 1
    sizes = sorted({max(1, round(min(2.0**i, most))) for i in range(steps + 1)})
    best = max(range(len(sizes)), key=lambda i: gain(sizes[i]))
    low, high = sizes[max(best - 1, 0)], sizes[min(best + 1, len(sizes) - 1)]
    while high - low > max(2, low // 1000):
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if gain(left) >= gain(right) else (left, high)
    size = max((low, (low + high) // 2, high), key=gain)
    return survey_value(known, size, spread=spread, parameter=parameter) if gain(size) > 0 else None


def signal_value(known: UncertainChoice, likelihoods: ArrayLike) -> float:
    """What any evidence is worth, USD: `likelihoods[y, i]` is the probability of signal y in state i.

    Σ_y min over losses of Σ_i w_i·p(y | i)·cost_i is what society loses with the signal. Columns sum to 1.
    """
    table = np.asarray(likelihoods, dtype=np.float64)
    count = len(known.weights)
    if table.ndim != 2 or table.shape[1] != count or np.any(table < 0) or not np.allclose(table.sum(axis=0), 1):
        raise InvalidPreferences(
            "the likelihoods are not one probability of each signal in each state",
            why="in every state some signal is received",
            instead=f"state an array of shape (signals, {count}) whose columns sum to 1",
        )
    return _gained(known, (table * known.weights) @ known.beliefs.multiples)


def _conjugate(known: UncertainChoice, name: str, *, respondents: int, spread: float) -> float:
    beliefs = known.beliefs
    place = beliefs.known(name)
    prior = beliefs.uncertain[place].log_deviation
    # s² − 1/(1/s² + n/σ²), without the difference of two near numbers.
    learned = prior * math.sqrt(respondents * prior**2 / (respondents * prior**2 + spread**2))
    scores = np.arange(-WIDEST, WIDEST + SCORE_STEP / 2, SCORE_STEP)
    weights = np.exp(-(scores**2) / 2)
    weights /= weights.sum()
    assert beliefs.scaling is not None
    assert beliefs.log_covariance is not None
    # What is learned of one number is learned of others as far as their errors go together.
    each = learned * beliefs.log_covariance[place] / prior**2
    reach = beliefs.scaling.astype(np.float64) @ each  # (parts,)
    factors = np.exp(scores[:, None] * reach - reach**2 / 2)
    factors /= weights @ factors
    means = beliefs.weights @ beliefs.multiples
    return _gained(known, weights[:, None] * means * factors)


def _updated(known: UncertainChoice, name: str, *, error: float) -> float:
    beliefs = known.beliefs
    assert beliefs.values is not None
    column = beliefs.values[:, beliefs.known(name)]
    if np.any(column <= 0):
        raise InvalidPreferences(
            f"some state has {name} = 0",
            why="answers are about the logarithm of the number",
            instead="leave such states out, or use signal_value",
        )
    logs = np.log(column)
    answers = np.linspace(logs.min() - FARTHEST * error, logs.max() + FARTHEST * error, _count(logs, error))
    gained = np.zeros((len(answers), beliefs.multiples.shape[1]))
    for start in range(0, len(answers), 256):
        gaps = (answers[start : start + 256, None] - logs[None, :]) / error
        gained[start : start + 256] = (np.exp(-(gaps**2) / 2) * beliefs.weights) @ beliefs.multiples
    step = (answers[1] - answers[0]) / (error * math.sqrt(2 * math.pi))
    return _gained(known, gained * step)


def _count(logs: Floats, error: float) -> int:
    """Answers to lay out: at least three to a standard error, so that the trapezoids add up to all digits."""
    return max(SIGNALS, math.ceil(3 * (float(np.ptp(logs)) + 2 * FARTHEST * error) / error) + 1)


def _gained(known: UncertainChoice, multiples: Floats) -> float:
    """What is gained by choosing anew for each row: rows are weighted, and add up to the mean multiples."""
    totals = multiples.sum(axis=1)
    rows = multiples[totals > totals.max() * 1e-18]
    _, least = known.cost_grid.cheapest(rows)
    costs = multiples.sum(axis=0) @ known.cost_grid.costs(np.array([known.choice.epsilon]))[0]
    return max(float(costs - least.sum()), 0.0)
