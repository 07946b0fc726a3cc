"""Conditional logit: what the average respondent gives up for what, from choices among alternatives [McF74]."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linprog

from dualmandate.elicitation.choices import ChoiceData, Differences
from dualmandate.elicitation.maximizing import Maximum
from dualmandate.elicitation.willingness import ParameterEstimates
from dualmandate.errors import NoEstimate

Floats = NDArray[np.float64]
MOST_STEPS = 50
TOLERANCE = 1e-16  # Newton's method ends where gᵀ(−H)⁻¹g, twice the log likelihood still to gain, is below this.
ROUNDING = 1e-12  # A log likelihood is rounded by less than this share.
SUSPICIOUS_INDEX = 12.0  # At odds of 160,000 to 1 against a choice it is asked whether anything bounds coefficients.
SUSPICIOUS_CURVATURE = 1e-7  # The same, where the least over the largest eigenvalue of −H is below this.


def conditional_logit(data: ChoiceData, *, cluster: bool = True, most_steps: int = MOST_STEPS) -> ParameterEstimates:
    """Coefficients of the attributes, one for all respondents, in utility per unit of the attribute.

    P(j | task) = exp(x_j·β)/Σ_i exp(x_i·β); β maximizes Σ log P(chosen) by Newton's method. Errors are clustered by
    respondent (sandwich without a small-sample factor), or plain.
    """
    differences = Differences.of(data)
    differences.check_rank()
    top = newton(differences, most_steps=most_steps)
    bread = np.linalg.inv(top.curvature)
    covariance = bread
    if cluster:
        if data.people <= len(data.names):
            raise NoEstimate(
                f"{data.people} respondents are too few for errors of {len(data.names)} parameters",
                why="answers of one person hang together, so that people count and not answers",
                instead="ask more people, explain choices by fewer attributes, or take plain errors",
            )
        by_person = np.add.reduceat(top.scores, differences.first_tasks, axis=0)
        covariance = bread @ (by_person.T @ by_person) @ bread
    scale = differences.scale
    return ParameterEstimates(
        names=data.names,
        values=top.point / scale,
        covariance=covariance / np.outer(scale, scale),
        log_likelihood=top.value,
        observations=data.tasks,
        clusters=data.people if cluster else data.tasks,
    )


def newton(differences: Differences, *, most_steps: int = MOST_STEPS) -> Maximum:
    """The top of a concave log likelihood, in standardized attributes; gradients by task."""
    rows, starts = differences.rows, differences.task_starts
    size, tasks = rows.shape[1], len(starts) - 1
    scores, curvature = np.empty((tasks, size)), np.empty((size, size))
    beta = np.zeros(size)
    value = logit_pass(rows, starts, beta, scores, curvature)
    for number in range(most_steps):
        gradient = scores.sum(axis=0)
        eigenvalues = np.linalg.eigvalsh(curvature)
        if eigenvalues[0] <= SUSPICIOUS_CURVATURE * eigenvalues[-1]:
            _check_separation(differences)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < TOLERANCE:
            if np.abs(rows @ beta).max() > SUSPICIOUS_INDEX:
                _check_separation(differences)
            return Maximum(beta, value, scores, curvature, number)
        length = 1.0
        while True:
            found = logit_pass(rows, starts, beta + length * step, scores, curvature)
            if found >= value - ROUNDING * abs(value) or length < 1e-6:
                break
            length /= 2
        beta, value = beta + length * step, found
    _check_separation(differences)
    raise NoEstimate(
        f"the conditional logit did not converge in {most_steps} steps",
        why="the log likelihood was still rising",
        instead="look for attributes that nearly repeat each other, or allow more steps",
    )


def _check_separation(differences: Differences) -> None:
    """Refuse where some direction of coefficients is never contradicted: the likelihood rises along it forever.

    A linear program [Kon07]: the largest Σ −rows·δ over −1 ≤ δ ≤ 1 with rows·δ ≤ 0 is 0 if nothing separates.
    """
    rows = np.unique(differences.rows, axis=0)
    alone = [
        name
        for name, column in zip(differences.names, rows.T, strict=True)
        if (column <= 0).all() or (column >= 0).all()
    ]
    if not alone:
        found = linprog(rows.sum(axis=0), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1.0, 1.0), method="highs")
        if found.status != 0 or found.fun > -1e-7 * np.abs(rows).max():
            return
        together = [name for name, part in zip(differences.names, found.x, strict=True) if abs(part) > 1e-7]
        words = f"{', '.join(together[:-1])} and {together[-1]} together" if together[1:] else together[0]
    else:
        words = " and ".join(alone)
    raise NoEstimate(
        f"{words} separate{'' if len(alone) > 1 else 's'} the chosen alternatives from the others",
        why="no choice goes against it, so that a larger coefficient always fits better and none is the best",
        instead="ask more people, show alternatives that trade it off, or leave it out",
    )


@njit(cache=True)
def logit_pass(rows: Floats, starts: NDArray[np.int64], beta: Floats, scores: Floats, curvature: Floats) -> float:
    """Log likelihood; fills gradients by task and −H. `rows` are attributes of the others less those of the chosen."""
    size = rows.shape[1]
    curvature[:] = 0.0
    value = 0.0
    index = np.empty(rows.shape[0])
    for task in range(starts.size - 1):
        first, last = starts[task], starts[task + 1]
        top = 0.0  # the index of the chosen alternative
        for row in range(first, last):
            index[row] = 0.0
            for k in range(size):
                index[row] += rows[row, k] * beta[k]
            top = max(top, index[row])
        total = np.exp(-top)
        for row in range(first, last):
            index[row] = np.exp(index[row] - top)
            total += index[row]
        value -= top + np.log(total)
        for k in range(size):
            scores[task, k] = 0.0
        for row in range(first, last):
            share = index[row] / total
            for k in range(size):
                scores[task, k] -= share * rows[row, k]
                for other in range(k + 1):
                    curvature[k, other] += share * rows[row, k] * rows[row, other]
        for k in range(size):
            for other in range(k + 1):
                curvature[k, other] -= scores[task, k] * scores[task, other]
    for k in range(size):
        for other in range(k):
            curvature[other, k] = curvature[k, other]
    return value
