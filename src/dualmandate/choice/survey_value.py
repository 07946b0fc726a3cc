"""What it is worth to learn more about preferences before choosing: preposterior analysis.

A survey is worth what the choice gains from it in expectation: E[V(what will be believed)] − V(what is believed), with
V the highest expected welfare. Source: Raiffa and Schlaifer 1961, part 2 [RS61].
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dualmandate.choice.beliefs import WIDEST
from dualmandate.choice.landscape import Floats
from dualmandate.choice.uncertainty import UncertainChoice
from dualmandate.errors import InvalidPreferences, InvalidValue
from dualmandate.population.wording import money

STEP = 0.02  # of a standard normal, between what may come to be believed
SIGNALS = 801  # answers that a survey may give, spread over what can be expected
FARTHEST = 8.0  # standard errors beyond the outermost state
MOST_RESPONDENTS = 1e9


@dataclass(frozen=True)
class SurveyValue:
    """What a survey of so many people is worth to this decision."""

    respondents: int
    spread: float  # standard deviation of ln of the number in one answer
    parameter: str  # the number that is asked for
    value: float  # USD, ≥ 0
    perfect: float  # what knowing everything exactly would be worth, USD

    @property
    def share(self) -> float:
        """Of what perfect information is worth."""
        return self.value / self.perfect if self.perfect > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"another survey of {self.respondents:,} people is worth {money(self.value)} to this decision, "
            f"{self.share:.1%} of what knowing preferences exactly is worth"
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
    name = _parameter(known, parameter)
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
    return SurveyValue(respondents, spread, name, worth, known.value_of_perfect_information)


def survey_values(
    known: UncertainChoice, respondents: Iterable[int], *, spread: float, parameter: str | None = None
) -> tuple[SurveyValue, ...]:
    """What surveys of several sizes are worth."""
    return tuple(survey_value(known, size, spread=spread, parameter=parameter) for size in respondents)


def best_survey(
    known: UncertainChoice, *, cost_per_respondent: float, spread: float, parameter: str | None = None
) -> SurveyValue | None:
    """The survey whose worth exceeds its cost by most; None where not even the best one pays.

    Sizes are searched over powers of 2 first, then by thirds around the best of them, to a thousandth.
    """
    if not (math.isfinite(cost_per_respondent) and cost_per_respondent > 0):
        raise InvalidValue(
            f"a cost of {cost_per_respondent} USD a respondent",
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


def _parameter(known: UncertainChoice, parameter: str | None) -> str:
    names = known.beliefs.names
    if parameter is None and len(names) != 1:
        raise InvalidPreferences(
            "the survey does not say which number it asks for",
            why=f"uncertain are {', '.join(names) or 'whole scenarios'}",
            instead="name one of them; for scenarios, use signal_value",
        )
    name = names[0] if parameter is None else parameter
    known.beliefs.known(name)
    return name


def _conjugate(known: UncertainChoice, name: str, *, respondents: int, spread: float) -> float:
    beliefs = known.beliefs
    place = beliefs.known(name)
    prior = beliefs.uncertain[place].log_deviation
    # s² − 1/(1/s² + n/σ²), without the difference of two near numbers.
    learned = prior * math.sqrt(respondents * prior**2 / (respondents * prior**2 + spread**2))
    scores = np.arange(-WIDEST, WIDEST + STEP / 2, STEP)
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
    _, least = known.landscape.cheapest(rows)
    costs = multiples.sum(axis=0) @ known.landscape.costs(np.array([known.choice.epsilon]))[0]
    return max(float(costs - least.sum()), 0.0)
