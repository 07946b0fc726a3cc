"""The top of a log likelihood whose gradient is known person by person.

Far away steps use the outer product of the gradients [BHHH74]; from where two more units of
log likelihood are in sight that matrix is improved step by step (BFGS), and the last step is Newton's, on the matrix
of second derivatives that the standard errors need anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Likelihood = Callable[[Floats], tuple[Floats, Floats]]  # parameters → (people,), (people, parameters)
NEAR, CLOSE, THERE = 2.0, 1e-4, 1e-6  # gᵀM⁻¹g, twice the log likelihood in sight: BFGS from, Newton from, good enough
DIFFERENCE = 1e-5  # Second derivatives take this step; parameters are of the order of one.
LEAST_STEP = 1e-7
FAR = 1e4  # Parameters of the order of one never get there, unless nothing bounds them.


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where a log likelihood is largest nearby."""

    point: Floats  # (parameters,)
    value: float  # log likelihood
    scores: Floats  # (people, parameters), gradients
    curvature: Floats  # (parameters, parameters), minus the second derivatives
    steps: int

    @property
    def is_peak(self) -> bool:
        """Whether the log likelihood falls in every direction."""
        return bool(np.linalg.eigvalsh(self.curvature)[0] > 1e-8 * np.abs(self.curvature).max())


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
