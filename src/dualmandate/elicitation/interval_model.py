"""The likelihood of amounts known to lie between two bounds, logistic or normal, and its only maximum.

Contingent valuation and ordered answers are the same problem: person i has probability F(u_i) − F(v_i), both indices
linear in the parameters, u_i = ∞ or v_i = −∞ where nothing bounds her amount. The logarithm is concave in (u, v), so
Newton's method with halved steps finds the only maximum, or there is none.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_ndtr

from dualmandate.errors import NoEstimate

Floats = NDArray[np.float64]
Distribution = Literal["logistic", "normal"]
MOST_STEPS = 60  # Newton's method takes at most this many steps; ten are usual.
STILL = 1e-9  # Beside parameters whose columns have unit size, a step below this is none.
HALVINGS = 40
LOG_ROOT = 0.5 * math.log(2 * math.pi)


class IntervalRows(NamedTuple):
    """What multiplies the parameters in u and in v; a bound at infinity is flagged."""

    upper: Floats  # (people, parameters), of u
    lower: Floats  # (people, parameters), of v
    has_upper: NDArray[np.bool_]  # False: u = ∞
    has_lower: NDArray[np.bool_]  # False: v = −∞


class MostLikely(NamedTuple):
    """The maximum: parameters, ln likelihood there, its gradient person by person, and its Hessian."""

    parameters: Floats
    log_likelihood: float
    scores: Floats  # (people, parameters)
    hessian: Floats


def most_likely(rows: IntervalRows, start: Floats, distribution: Distribution) -> MostLikely:
    """The most likely parameters, from a start that gives every answer a positive probability.

    Refused where the answers are separated, so that likelihood rises for ever, or the search fails.
    """
    found = _evaluated(rows, start, distribution)
    for _ in range(MOST_STEPS):
        try:
            step = np.linalg.solve(-found.hessian, found.scores.sum(axis=0))
        except np.linalg.LinAlgError:
            break
        if not np.isfinite(step).all():
            break
        if np.abs(step).max() < STILL * max(1.0, float(np.abs(found.parameters).max())):
            return found
        best = found.log_likelihood
        for _ in range(HALVINGS):
            tried = _evaluated(rows, found.parameters + step, distribution)
            if tried.log_likelihood >= best - 1e-12 * abs(best):
                break
            step = step / 2
        else:
            break
        found = tried
    raise _no_maximum(rows)


def _no_maximum(rows: IntervalRows) -> NoEstimate:
    """Why no maximum was found: a direction in which no answer ever becomes less likely, or a failure of the search."""
    from scipy.optimize import linprog

    rising = np.vstack([rows.upper[rows.has_upper], -rows.lower[rows.has_lower]])
    ends = (-1.0, 1.0)
    answer = linprog(-rising.sum(axis=0), A_ub=-rising, b_ub=np.zeros(len(rising)), bounds=ends, method="highs")
    if answer.success and -answer.fun > 1e-7 * len(rising):
        return NoEstimate(
            "bids and covariates separate the answers",
            why="some combination of them foretells every answer, so that the most likely effect is infinite",
            instead="offer bids at which some people say yes and others no, or leave a covariate out",
        )
    return NoEstimate(
        f"no most likely model was found in {MOST_STEPS} steps",
        why="the answers hardly say how willingness to pay changes with the bid or a covariate",
        instead="leave a covariate out, or ask more people",
    )


def _evaluated(rows: IntervalRows, parameters: Floats, distribution: Distribution) -> MostLikely:
    """Log likelihood, its gradient person by person, and its Hessian."""
    above = np.where(rows.has_upper, rows.upper @ parameters, np.inf)  # index at the lower bound
    below = np.where(rows.has_lower, rows.lower @ parameters, -np.inf)
    if not (above > below).all():  # amounts between two bounds ask for b > 0
        shape = (len(parameters), len(parameters))
        return MostLikely(parameters, -math.inf, np.zeros_like(rows.upper), np.zeros(shape))
    terms = _logistic_terms(above, below) if distribution == "logistic" else _normal_terms(above, below)
    level, up, down, up_up, down_down, up_down = terms
    scores = up[:, None] * rows.upper + down[:, None] * rows.lower
    cross = rows.upper.T @ (up_down[:, None] * rows.lower)
    hessian = (
        rows.upper.T @ (up_up[:, None] * rows.upper)
        + rows.lower.T @ (down_down[:, None] * rows.lower)
        + cross
        + cross.T
    )
    return MostLikely(parameters, float(level.sum()), scores, hessian)


def _logistic_terms(above: Floats, below: Floats) -> tuple[Floats, ...]:
    """ln(F(u) − F(v)) = ln F(u) + ln F(−v) + ln(1 − e^(v−u)) with its derivatives in u and v; no digits are lost."""
    gap = above - below
    with np.errstate(over="ignore"):
        odds = 1.0 / np.expm1(gap)
    bend = odds * (1.0 + odds)
    chance_above, chance_below = expit(above), expit(below)
    return (
        log_expit(above) + log_expit(-below) + np.log1p(-np.exp(-gap)),
        expit(-above) + odds,
        -chance_below - odds,
        -chance_above * expit(-above) - bend,
        -chance_below * expit(-below) - bend,
        bend,
    )


def _normal_terms(above: Floats, below: Floats) -> tuple[Floats, ...]:
    """The same for the normal law, worked in the tail that holds the smaller numbers."""
    mirrored = below > 0
    high, low = np.where(mirrored, -below, above), np.where(mirrored, -above, below)
    larger = log_ndtr(high)
    level = larger + np.log1p(-np.exp(log_ndtr(low) - larger))
    up = np.exp(log_density(above) - level)
    down = -np.exp(log_density(below) - level)
    finite_above, finite_below = (np.where(np.isfinite(index), index, 0.0) for index in (above, below))
    return level, up, down, -finite_above * up - up**2, -finite_below * down - down**2, -up * down


def log_density(index: Floats) -> Floats:
    """Logarithm of the standard normal density."""
    density: Floats = -0.5 * index**2 - LOG_ROOT
    return density
