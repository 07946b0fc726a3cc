"""Contingent valuation: what people would pay, from yes and no to bids, with or without a spike at zero.

P(amount > t) = F(a_i − b·t) with a_i = x_i·θ, F logistic or normal, b > 0. A person whose amount lies between two
bounds has probability F(a_i − b·lower) − F(a_i − b·upper): one question, two questions [HLK91] and a spike at zero
[Kri97] are the same likelihood with other bounds. The price's coefficient is reported as −b under the name `bid`.

Turnbull's lower bound of the mean needs no assumption about the shape of amounts. Between two bids each amount is
counted as the lower one. The share that would pay at least each bid is the most likely one that never rises with the
bid: shares that rise are pooled with their neighbors [Tur76, HM97].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr

from dualmandate.elicitation.answers import BidAnswers
from dualmandate.elicitation.likelihood import Distribution, IntervalRows, log_density, most_likely
from dualmandate.elicitation.willingness import (
    Method,
    ParameterEstimates,
    Willingness,
    critical_value,
    ratio_willingness,
    simulated_interval,
)
from dualmandate.errors import NoEstimate, UnknownName
from dualmandate.population.wording import number

Floats = NDArray[np.float64]
BID = "bid"
AT_ONCE = 2_000_000  # At most this many numbers are held at a time while means are simulated.
MOST_ROUNDS = 200
STILL = 1e-9  # A relative gain of a cell below this is no gain.
ROUNDING = 1e-13  # A log likelihood is rounded by less than this share.
HEAVY = 1e3  # Masses that must sum to one weigh this much beside all people together.


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
    estimates: ParameterEstimates  # the constant, covariates, and `bid` (−b)
    distribution: Distribution

    def median(self, *, method: Method = "delta", level: float = 0.95) -> Willingness:
        """What the person with average covariates would pay in the middle of her distribution: x̄·θ/b; 0 in a spike."""
        average = self.answers.design.mean(axis=0)
        found = ratio_willingness(
            *self._ratio(float(average @ self.estimates.values[:-1]), average), method=method, level=level
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
        covariates are taken as they are.
        """
        found = ratio_willingness(*self.mean_ratio(), method=method, level=level)
        if found.estimate is None or not (self.answers.spike and method == "krinsky-robb"):
            return found
        values, covariance = self.estimates.values, self.estimates.covariance
        return replace(found, interval=simulated_interval(values, covariance, self._means, level=level))

    def mean_ratio(self) -> tuple[Floats, Floats]:
        """(n, d) such that people would pay −n/d on average, and their covariance; d is the effect of the bid.

        With a spike n is ln(1 + e^a) or its like, averaged over people, and normal to first order.
        """
        design, tastes = self.answers.design, self.estimates.values[:-1]
        if not self.answers.spike:
            average = design.mean(axis=0)
            return self._ratio(float(average @ tastes), average)
        index = design @ tastes
        slope = _probability(index, self.distribution) @ design / self.answers.people
        return self._ratio(float(_positive_part(index, self.distribution).mean()), slope)

    def _ratio(self, paid: float, slope: Floats) -> tuple[Floats, Floats]:
        """An amount in units of 1/b, by its slope in the tastes, beside the effect of the bid; and their covariance."""
        onto = np.zeros((2, len(slope) + 1))
        onto[0, :-1], onto[1, -1] = slope, 1.0
        return np.array([paid, self.estimates.values[-1]]), onto @ self.estimates.covariance @ onto.T

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
    estimates = ParameterEstimates(
        names=(*answers.names, BID),
        values=found.point / scale,
        covariance=found.sandwich(answers.cluster) / np.outer(scale, scale),
        log_likelihood=found.value,
        observations=answers.people,
        clusters=answers.people if answers.cluster is None else int(answers.cluster.max()) + 1,
    )
    return ContingentValuation(answers, estimates, distribution)


def _scaled(answers: BidAnswers) -> tuple[IntervalRows, Floats]:
    """Rows with columns of unit size, so that one step size fits all parameters, and the sizes."""
    below, above = np.isfinite(answers.lower), np.isfinite(answers.upper)
    bids = np.where(below, answers.lower, 0.0), np.where(above, answers.upper, 0.0)
    size = np.append(np.sqrt((answers.design**2).mean(axis=0)), answers.bids.mean())
    lower, upper = (np.column_stack([answers.design, bid]) / size for bid in bids)
    return IntervalRows(lower, upper, below, above), size


def _probability(index: Floats, distribution: Distribution) -> Floats:
    chances: Floats = expit(index) if distribution == "logistic" else ndtr(index)
    return chances


def _density(index: Floats, distribution: Distribution) -> Floats:
    density: Floats = expit(index) * expit(-index) if distribution == "logistic" else np.exp(log_density(index))
    return density


def _positive_part(index: Floats, distribution: Distribution) -> Floats:
    """∫_{−∞}^a F: what is paid on average, in units of 1/b, where nobody pays less than zero."""
    if distribution == "logistic":
        return np.logaddexp(0.0, index)
    part: Floats = index * ndtr(index) + np.exp(log_density(index))
    return part


@dataclass(frozen=True, eq=False)
class Turnbull:
    """Shares of people at each bid, and the bound that follows from them; amounts in the bids' unit.

    The bound is no estimate of the mean: `standard_error` says how sure the bound is, and no interval around it covers
    the mean with a stated probability.
    """

    bids: Floats  # sorted; the first is 0 where people were asked whether they would pay anything
    refusing: Floats  # share whose amount is at most each bid, never falling
    pooled: tuple[tuple[float, ...], ...]  # bids that share one estimate because the raw shares fell
    lower_bound: float
    standard_error: float

    def survival(self, amount: float) -> float:
        """The share that would pay more than an amount, at least: a step at each bid."""
        place = int(np.searchsorted(self.bids, amount, side="left"))
        return float(1.0 - self.refusing[place]) if place < len(self.bids) else 0.0

    def __str__(self) -> str:
        error = number(self.standard_error, 2)
        return f"at least {number(self.lower_bound)} on average (standard error of the bound {error})"


def turnbull(answers: BidAnswers) -> Turnbull:
    """The lower bound Σ_j (t_j − t_{j−1})·(1 − F_j), t_0 = 0, with its standard error.

    After one question a person the shares F_j are pooled averages, independent of each other; after two they are the
    self-consistent solution for amounts between bounds, with the covariance of their likelihood.
    """
    bids = np.concatenate([[0.0], answers.bids]) if answers.spike else answers.bids
    below = np.isfinite(answers.lower)
    if not answers.spike and not (below & np.isfinite(answers.upper)).any():
        refusing, covariance = _pooled_shares(answers, bids)
    else:
        refusing, covariance = _self_consistent(answers, bids)
    widths = np.diff(np.concatenate([[0.0], bids]))
    groups = np.split(bids, np.flatnonzero(np.diff(refusing) > 1e-9) + 1)
    pooled = tuple(tuple(group.tolist()) for group in groups if len(group) > 1)
    error = math.sqrt(max(float(widths @ covariance @ widths), 0.0))
    return Turnbull(bids, refusing, pooled, float(widths @ (1.0 - refusing)), error)


def _pooled_shares(answers: BidAnswers, bids: Floats) -> tuple[Floats, Floats]:
    """Isotonic shares; bids in one pool share an estimate, so their errors are the same."""
    from scipy.optimize import isotonic_regression

    asked = np.where(np.isfinite(answers.lower), answers.lower, answers.upper)
    place = np.searchsorted(bids, asked)
    people = np.bincount(place, minlength=len(bids)).astype(np.float64)
    refused = np.bincount(place, weights=~np.isfinite(answers.lower), minlength=len(bids))
    found = isotonic_regression(refused / people, weights=people)
    member = np.repeat(np.arange(len(found.weights)), np.diff(found.blocks))
    variances = found.x * (1.0 - found.x) / found.weights[member]
    return found.x, np.where(member[:, None] == member[None, :], variances[:, None], 0.0)


def _self_consistent(answers: BidAnswers, bids: Floats) -> tuple[Floats, Floats]:
    """Most likely shares, from the masses between bids: each person's amount lies in one of the cells she allows."""
    starts = np.concatenate([[-np.inf], bids])
    ends = np.concatenate([bids, [np.inf]])
    kinds, count = np.unique(
        (starts >= answers.lower[:, None]) & (ends <= answers.upper[:, None]), axis=0, return_counts=True
    )
    allowed = kinds.astype(np.float64)
    masses = _most_likely_masses(allowed, count.astype(np.float64))
    return np.cumsum(masses)[:-1], _covariance(allowed, count, masses)


def _most_likely_masses(allowed: Floats, count: Floats) -> Floats:
    """Masses that sum to one and maximize Σ count·ln(allowed·masses), by constrained Newton steps [Wan07].

    Each step is a least-squares problem with masses of at least 0, so that empty cells become exactly empty.
    """
    from scipy.optimize import nnls

    people, roots = count.sum(), np.sqrt(count)
    masses = np.full(allowed.shape[1], 1.0 / allowed.shape[1])
    for _ in range(MOST_ROUNDS):
        shares = allowed @ masses
        slopes = allowed / shares[:, None]
        if (count @ slopes).max() < (1.0 + STILL) * people:  # no cell deserves more
            return masses
        held = math.sqrt(people) * HEAVY  # holds the sum at one
        table = np.vstack([roots[:, None] * slopes, np.full(len(masses), held)])
        aim = nnls(table, np.append(2.0 * roots, held))[0]
        aim /= aim.sum()
        step, level = 1.0, float(count @ np.log(shares))
        while step > STILL and _level(allowed, count, masses + step * (aim - masses)) < level - ROUNDING * abs(level):
            step /= 2.0
        masses = masses + step * (aim - masses)
    raise NoEstimate(
        f"the shares between bids did not settle in {MOST_ROUNDS} rounds",
        why="too few people were asked at some bids",
        instead="pool bids before the survey is analyzed",
    )


def _level(allowed: Floats, count: Floats, masses: Floats) -> float:
    shares = allowed @ masses
    return float(count @ np.log(shares)) if (shares > 0).all() else -math.inf


def _covariance(allowed: Floats, count: NDArray[np.int64], masses: Floats) -> Floats:
    """Covariance of cumulated shares: inverse information of the masses that are not zero, which sum to one."""
    held = np.flatnonzero(masses > 1e-8)
    basis = np.vstack([np.eye(len(held) - 1), -np.ones(len(held) - 1)])  # directions that keep the sum
    ratios = allowed[:, held] @ basis / (allowed @ masses)[:, None]
    spread = basis @ np.linalg.pinv(ratios.T @ (count[:, None] * ratios)) @ basis.T
    onto = np.zeros((len(masses), len(held)))
    onto[held, np.arange(len(held))] = 1.0
    cumulated = np.cumsum(onto, axis=0)[:-1]
    return cumulated @ spread @ cumulated.T
