"""Where a log likelihood has its top, and how sure that makes its parameters; the draws of simulated likelihoods.

`maximize` climbs where gradients are known person by person and several tops may exist. Far away steps use the outer
product of the gradients [BHHH74]; from where two more units of log likelihood are in sight that matrix is improved step
by step (BFGS), and the last step is Newton's, on the matrix of second derivatives that the standard errors need anyway.
`climb` takes Newton's steps, halved where they overshoot, to the only top of a concave log likelihood, if it has one.

Amounts known to lie between two bounds, logistic or normal, are such a concave one. Contingent valuation and ordered
answers are the same problem: person i has probability F(u_i) − F(v_i), both indices linear in the parameters, u_i = ∞
or v_i = −∞ where nothing bounds her amount, and the logarithm is concave in (u, v).

Simulated likelihoods average over points that fill a cube evenly: the Halton sequence with permuted digits, the same
ones in every run. They stand for taste that differs, protect nobody, and are public. `scipy.stats.qmc.Halton` permutes
other digits: designs that were handed out, and estimates of their answers, would not be found again (the worked
survey's price of accuracy becomes 0.99 where it was 1.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from dualmandate.errors import NoEstimate

Floats = NDArray[np.float64]
Likelihood = Callable[[Floats], tuple[Floats, Floats]]  # parameters → (people,), (people, parameters)
Distribution = Literal["logistic", "normal"]
NEAR, CLOSE, THERE = 2.0, 1e-4, 1e-6  # gᵀM⁻¹g, twice the log likelihood in sight: BFGS from, Newton from, good enough
STILL = 1e-7  # Beside parameters of the order of one a step of Newton's method below this is the last.
ROUNDING = 1e-12  # A log likelihood is rounded by less than this share.
MOST_STEPS = 60  # Newton's method takes at most this many steps; ten are usual.
HALVINGS = 40
SUSPICIOUS = 1e-7  # It is asked whether anything bounds parameters whose least over largest eigenvalue is below this.
DIFFERENCE = 1e-5  # Second derivatives take this step; parameters are of the order of one.
LEAST_STEP = 1e-7
FAR = 1e4  # Parameters of the order of one never get there, unless nothing bounds them.
LOG_ROOT = 0.5 * math.log(2 * math.pi)
SEED = 2009  # The seed is public: estimates do not change from run to run.


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where a log likelihood is largest nearby."""

    point: Floats  # (parameters,)
    value: float  # log likelihood
    scores: Floats  # (people, parameters), gradients
    curvature: Floats  # (parameters, parameters), minus the second derivatives
    steps: int = 0

    @property
    def is_peak(self) -> bool:
        """Whether the log likelihood falls in every direction."""
        return bool(np.linalg.eigvalsh(self.curvature)[0] > 1e-8 * np.abs(self.curvature).max())

    @property
    def is_doubtful(self) -> bool:
        """Whether the log likelihood hardly falls in some direction, as it does where nothing bounds the parameters."""
        eigenvalues = np.linalg.eigvalsh(self.curvature)
        return bool(eigenvalues[0] <= SUSPICIOUS * eigenvalues[-1])

    def sandwich(self, cluster: NDArray[np.int64] | None = None) -> Floats:
        """Covariance of the parameters: H⁻¹(Σ g_c g_cᵀ)H⁻¹, gradients summed in each cluster of people, where given."""
        scores = self.scores
        if cluster is not None:
            scores = np.zeros((int(cluster.max()) + 1, scores.shape[1]))
            np.add.at(scores, cluster, self.scores)
        bread = np.linalg.inv(self.curvature)
        return np.asarray(bread @ (scores.T @ scores) @ bread)


def maximize(likelihood: Likelihood, start: Floats, *, most_steps: int = 200) -> Maximum | None:
    """The maximum uphill from `start`; None where none is reached."""
    point = start
    values, scores = likelihood(point)
    inverse = _inverse(scores.T @ scores)
    is_near = False
    for step in range(most_steps):
        gradient = scores.sum(axis=0)
        if inverse is None or not np.isfinite(gradient).all() or np.abs(point).max() > FAR:
            return None
        direction = inverse @ gradient
        promise = float(gradient @ direction)
        if promise < CLOSE:
            return _finish(likelihood, point, values, scores, step)
        is_near = is_near or promise < NEAR
        length, values, scores = _uphill(likelihood, point, direction, values.sum(), promise)
        if length < LEAST_STEP:
            return None
        moved = length * direction
        point = point + moved
        inverse = _bfgs(inverse, moved, gradient - scores.sum(axis=0)) if is_near else _inverse(scores.T @ scores)
    return None


def _uphill(
    likelihood: Likelihood, point: Floats, direction: Floats, value: float, promise: float
) -> tuple[float, Floats, Floats]:
    """A length of step that gains enough, with values and gradients there."""
    length = 1.0
    while True:
        values, scores = likelihood(point + length * direction)
        if values.sum() >= value + 1e-4 * length * promise or length < LEAST_STEP:
            return length, values, scores
        length /= 2


def _finish(likelihood: Likelihood, point: Floats, values: Floats, scores: Floats, steps: int) -> Maximum | None:
    """Newton's last step, and whether it was the last."""
    curvature = second_derivatives(likelihood, point, scores)
    gradient = scores.sum(axis=0)
    found = Maximum(point, float(values.sum()), scores, curvature, steps)
    if not found.is_peak:
        return found
    moved = point + np.linalg.solve(curvature, gradient)
    values, scores = likelihood(moved)
    gradient = scores.sum(axis=0)
    if not gradient @ np.linalg.solve(curvature, gradient) < THERE:
        return None
    return Maximum(moved, float(values.sum()), scores, curvature, steps + 1)


def second_derivatives(likelihood: Likelihood, point: Floats, scores: Floats) -> Floats:
    """Minus the second derivatives: differences of the gradient, made symmetric."""
    gradient = scores.sum(axis=0)
    columns = [
        (gradient - likelihood(point + DIFFERENCE * unit)[1].sum(axis=0)) / DIFFERENCE for unit in np.eye(len(point))
    ]
    whole = np.array(columns)
    return np.asarray((whole + whole.T) / 2)


def _inverse(matrix: Floats) -> Floats | None:
    if not np.isfinite(matrix).all() or np.linalg.cond(matrix) > 1e14:
        return None
    return np.asarray(np.linalg.inv(matrix))


def _bfgs(inverse: Floats, moved: Floats, change: Floats) -> Floats:
    """The inverse of a matrix that sends the step just made to the change of the gradient."""
    product = float(moved @ change)
    if product <= 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(change)):
        return inverse
    turn = np.eye(len(moved)) - np.outer(moved, change) / product
    return np.asarray(turn @ inverse @ turn.T + np.outer(moved, moved) / product)


def climb(evaluated: Callable[[Floats], Maximum], start: Floats, most_steps: int) -> Maximum | None:
    """The top of a concave log likelihood, by Newton's steps, halved; None where none is reached."""
    found = evaluated(start)
    for _ in range(most_steps):
        gradient = found.scores.sum(axis=0)
        try:
            step = np.linalg.solve(found.curvature, gradient)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        if np.abs(step).max() < STILL * max(1.0, float(np.abs(found.point).max())):
            return evaluated(found.point + step)
        for _ in range(HALVINGS):
            tried = evaluated(found.point + step)
            if tried.value >= found.value - ROUNDING * abs(found.value):
                break
            step = step / 2
        else:
            return None
        found = tried
    return None


def separating(rows: Floats) -> Floats | None:
    """A direction along which none of the rows falls and some rise, so that likelihood rises forever; None where none.

    A linear program [Kon07]: the largest Σ rows·δ over −1 ≤ δ ≤ 1 with rows·δ ≥ 0 is 0 if nothing separates.
    """
    from scipy.optimize import linprog

    kinds = np.unique(rows, axis=0)
    found = linprog(-kinds.sum(axis=0), A_ub=-kinds, b_ub=np.zeros(len(kinds)), bounds=(-1.0, 1.0), method="highs")
    return np.asarray(found.x) if found.status == 0 and -found.fun > 1e-7 * np.abs(kinds).max() else None


class IntervalRows(NamedTuple):
    """What multiplies the parameters in u and in v; a bound at infinity is flagged."""

    upper: Floats  # (people, parameters), of u
    lower: Floats  # (people, parameters), of v
    has_upper: NDArray[np.bool_]  # False: u = ∞
    has_lower: NDArray[np.bool_]  # False: v = −∞


def most_likely(rows: IntervalRows, start: Floats, distribution: Distribution) -> Maximum:
    """The most likely parameters, from a start that gives every answer a positive probability.

    Refused where the answers are separated, so that likelihood rises for ever, or the search fails.
    """
    found = climb(lambda parameters: interval_likelihood(rows, parameters, distribution), start, MOST_STEPS)
    if found is None or found.is_doubtful:
        rising = np.vstack([rows.upper[rows.has_upper], -rows.lower[rows.has_lower]])
        if separating(rising) is not None:
            raise NoEstimate(
                "bids and covariates separate the answers",
                why="some combination of them foretells every answer, so that the most likely effect is infinite",
                instead="offer bids at which some people say yes and others no, or leave a covariate out",
            )
    if found is None:
        raise NoEstimate(
            f"no most likely model was found in {MOST_STEPS} steps",
            why="the answers hardly say how willingness to pay changes with the bid or a covariate",
            instead="leave a covariate out, or ask more people",
        )
    return found


def interval_likelihood(rows: IntervalRows, parameters: Floats, distribution: Distribution) -> Maximum:
    """Log likelihood of amounts between bounds, its gradient person by person, and minus its second derivatives."""
    above = np.where(rows.has_upper, rows.upper @ parameters, np.inf)  # index at the lower bound
    below = np.where(rows.has_lower, rows.lower @ parameters, -np.inf)
    if not (above > below).all():  # amounts between two bounds ask for b > 0
        return Maximum(parameters, -math.inf, np.zeros_like(rows.upper), np.eye(len(parameters)))
    terms = _logistic_terms(above, below) if distribution == "logistic" else _normal_terms(above, below)
    level, up, down, up_up, down_down, up_down = terms
    scores = up[:, None] * rows.upper + down[:, None] * rows.lower
    cross = rows.upper.T @ (up_down[:, None] * rows.lower)
    squares = rows.upper.T @ (up_up[:, None] * rows.upper) + rows.lower.T @ (down_down[:, None] * rows.lower)
    return Maximum(parameters, float(level.sum()), scores, -(squares + cross + cross.T))


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


def halton(points: int, dimensions: int) -> Floats:
    """(dimensions, points) in the open interval (0, 1): the i-th point mirrors i's digits in a prime base at the comma.

    Each digit of each dimension is permuted at random once [Owe17], which breaks the bands that plain sequences
    of large bases show, and leaves every point uniform.
    """
    return np.stack([_column(base, points) for base in _primes(dimensions)])


def normal_draws(people: int, draws: int, dimensions: int) -> Floats:
    """(people, dimensions, draws) standard normal draws; each person has a stretch of the sequence of her own."""
    cube = halton(people * draws, dimensions).reshape(dimensions, people, draws)
    return np.ascontiguousarray(ndtri(cube).transpose(1, 0, 2))


def triangular(normal: Floats) -> Floats:
    """Symmetric triangular draws on (−1, 1) in place of standard normal ones, rank by rank; their variance is 1/6."""
    tail = np.sqrt(2 * ndtr(-np.abs(normal)))
    return np.asarray(np.sign(normal) * (1 - tail))


def _column(base: int, points: int) -> Floats:
    generator = np.random.default_rng((SEED, base))
    values, width = np.zeros(1), 1.0
    while len(values) < points or width > 2.0**-53:
        width /= base
        digits = generator.permutation(base) * width
        blocks = min(base, -(-points // len(values)))  # the next digit of a number: a block for each of its values
        values = (digits[:blocks, None] + values).reshape(-1)[:points]
    return np.clip(values, 2.0**-54, 1 - 2.0**-53)


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
