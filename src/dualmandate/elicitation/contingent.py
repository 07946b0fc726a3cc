"""Contingent valuation: what people would pay, from yes and no to bids, with or without a spike at zero.

P(amount > t) = F(a_i − b·t) with a_i = x_i·θ, F logistic or normal, b > 0. A person whose amount lies between two
bounds has probability F(a_i − b·lower) − F(a_i − b·upper): one question, two questions [HLK91] and a spike at zero
[Kri97] are the same likelihood with other bounds. The price's coefficient is reported as −b under the name `bid`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr

from dualmandate.elicitation.bids import BidAnswers
from dualmandate.elicitation.estimate import Estimates, Method, Willingness
from dualmandate.elicitation.interval_model import Distribution, IntervalRows, most_likely
from dualmandate.elicitation.willingness import critical_value, ratio_willingness, simulated_interval, unbounded
from dualmandate.errors import UnknownName

Floats = NDArray[np.float64]
BID = "bid"
LOG_ROOT = 0.5 * math.log(2 * math.pi)
AT_ONCE = 2_000_000  # numbers held at a time while means are simulated


@dataclass(frozen=True)
class Share:
    """A share of people, with its interval (symmetric in the log odds)."""

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    level: float = 0.95


@dataclass(frozen=True, eq=False)
class ContingentValuation:
    """What people would pay, as estimated from their answers; amounts are in the bids' unit."""

    answers: BidAnswers
    estimates: Estimates  # the constant, covariates, and `bid` (−b)
    distribution: Distribution

    def median(self, *, method: Method = "delta", level: float = 0.95) -> Willingness:
        """What the person with average covariates would pay in the middle of her distribution: x̄·θ/b; 0 in a spike."""
        average = self.answers.design.mean(axis=0)
        onto = np.zeros((2, len(average) + 1))
        onto[0, :-1], onto[1, -1] = average, 1.0
        found = ratio_willingness(
            onto @ self.estimates.values, onto @ self.estimates.covariance @ onto.T, method=method, level=level
        )
        if not self.answers.spike or found.estimate is None or found.interval is None:
            return found
        low, high = found.interval
        clipped = (max(low, 0.0), max(high, 0.0))
        return Willingness(max(found.estimate, 0.0), found.standard_error, clipped, level, method)

    def mean(self, *, method: Method = "delta", level: float = 0.95) -> Willingness:
        """What people would pay on average.

        With a spike nobody pays less than zero: ∫₀^∞ P(amount > t) dt, averaged over people: ln(1 + e^a)/b (logistic),
        (a·Φ(a) + φ(a))/b (normal). Without, amounts lie on the whole line, and the mean is the median. People's
        covariates are taken as they are. By "delta" or "krinsky-robb"; "fieller" only without a spike.
        """
        if not self.answers.spike:
            return self.median(method=method, level=level)
        critical = critical_value(level, method)
        if method == "fieller":
            raise UnknownName(
                "Fieller's interval for a mean with a spike",
                why="this mean is no ratio of two estimates",
                instead='choose "delta" or "krinsky-robb"',
            )
        values, covariance = self.estimates.values, self.estimates.covariance
        if unbounded(values[-1], math.sqrt(covariance[-1, -1]), critical):
            return Willingness(None, None, None, level, method)
        index = self.answers.design @ values[:-1]
        steepness = -values[-1]
        mean = float(_positive_part(index, self.distribution).mean() / steepness)
        chances = _probability(index, self.distribution)
        gradient = np.append(chances @ self.answers.design / self.answers.people, mean) / steepness
        error = math.sqrt(gradient @ covariance @ gradient)
        interval = (mean - critical * error, mean + critical * error)
        if method == "krinsky-robb":
            interval = simulated_interval(values, covariance, self._means, level=level)
        return Willingness(mean, error, interval, level, method)

    def share_at_zero(self, level: float = 0.95) -> Share:
        """The share of people who would pay nothing: 1 − F(a_i), averaged; without a spike, at most nothing."""
        critical = critical_value(level)
        index = self.answers.design @ self.estimates.values[:-1]
        share = float(_probability(-index, self.distribution).mean())
        gradient = -(_density(index, self.distribution) @ self.answers.design) / self.answers.people
        error = math.sqrt(gradient @ self.estimates.covariance[:-1, :-1] @ gradient)
        odds, width = math.log(share / (1 - share)), critical * error / (share * (1 - share))
        return Share(share, error, (float(expit(odds - width)), float(expit(odds + width))), level)

    def survival(self, amounts: ArrayLike) -> Floats:
        """The share of people who would pay more than each amount (≥ 0)."""
        index = self.answers.design @ self.estimates.values[:-1]
        at = np.asarray(amounts, dtype=np.float64)
        shares: Floats = _probability(index[:, None] + self.estimates.values[-1] * at, self.distribution).mean(axis=0)
        return shares

    def _means(self, draws: Floats) -> Floats:
        """(draws,): the mean at each draw of the parameters; unbounded where the bid has no effect."""
        people, count = np.unique(self.answers.design, axis=0, return_counts=True)
        total = np.zeros(len(draws))
        step = max(1, AT_ONCE // len(draws))
        for start in range(0, len(people), step):
            index = draws[:, :-1] @ people[start : start + step].T
            total += _positive_part(index, self.distribution) @ count[start : start + step]
        steepness = np.where(draws[:, -1] < 0, -draws[:, -1], np.nan)
        return np.nan_to_num(total / self.answers.people / steepness, nan=np.inf)


def contingent_valuation(answers: BidAnswers, *, distribution: Distribution = "logistic") -> ContingentValuation:
    """The model that makes the answers most likely, with a sandwich covariance (by cluster, where clusters are given).

    Refused where no such model exists (bids and covariates separate yes from no) or none was found.
    """
    if distribution not in get_args(Distribution):
        raise UnknownName(
            f"there is no distribution '{distribution}'",
            why="amounts follow a law that the house knows",
            instead=f"choose one of {', '.join(get_args(Distribution))}",
        )
    scaled, scale = _scaled(answers)
    start = np.zeros(len(scale))
    start[-1] = -1.0  # gives every answer a positive probability
    found = most_likely(scaled, start, distribution)
    values = found.parameters / scale
    bread = np.linalg.inv(-found.hessian)
    scores = found.scores
    clusters = answers.people
    if answers.cluster is not None:
        clusters = int(answers.cluster.max()) + 1
        scores = np.zeros((clusters, scores.shape[1]))
        np.add.at(scores, answers.cluster, found.scores)
    covariance = bread @ (scores.T @ scores) @ bread / np.outer(scale, scale)
    estimates = Estimates((*answers.names, BID), values, covariance, found.log_likelihood, answers.people, clusters)
    return ContingentValuation(answers, estimates, distribution)


def _scaled(answers: BidAnswers) -> tuple[IntervalRows, Floats]:
    """Rows with columns of unit size, so that one step size fits all parameters, and the sizes."""
    below, above = np.isfinite(answers.lower), np.isfinite(answers.upper)
    bids = np.where(below, answers.lower, 0.0), np.where(above, answers.upper, 0.0)
    size = np.append(np.sqrt((answers.design**2).mean(axis=0)), answers.bids.mean())
    lower, upper = (np.column_stack([answers.design, bid]) / size for bid in bids)
    return IntervalRows(lower, upper, below, above), size


def _log_density(index: Floats) -> Floats:
    density: Floats = -0.5 * index**2 - LOG_ROOT
    return density


def _probability(index: Floats, distribution: Distribution) -> Floats:
    chances: Floats = expit(index) if distribution == "logistic" else ndtr(index)
    return chances


def _density(index: Floats, distribution: Distribution) -> Floats:
    density: Floats = expit(index) * expit(-index) if distribution == "logistic" else np.exp(_log_density(index))
    return density


def _positive_part(index: Floats, distribution: Distribution) -> Floats:
    """∫_{−∞}^a F: what is paid on average, in units of 1/b, where nobody pays less than zero."""
    if distribution == "logistic":
        return np.logaddexp(0.0, index)
    part: Floats = index * ndtr(index) + np.exp(_log_density(index))
    return part
