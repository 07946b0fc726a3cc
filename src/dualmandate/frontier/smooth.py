"""Errors that take long to compute, read off polynomials.

The expected absolute error of an answer put together from many whole-number draws has no closed form; each value is a
Fourier sum, and a choice asks for thousands. Its logarithm is a very smooth function of ln loss, so a few values on
each stretch of losses are enough: between them it is a Chebyshev polynomial, whose derivatives are the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

_DEGREE = 15
_WIDTH = 0.9  # of a stretch of ln loss
_ROUGH = 1e-8  # a last coefficient above this says that the curve is not smooth there
_TINY = 1e-290

_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """Positive, smooth curves of several tables, known through a few values on each stretch of losses."""

    curve: Callable[[float], NDArray[np.float64]]  # shape (tables,)

    def logs(self, loss: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """ln value, its elasticity and the derivative of that in ln loss; None where the curve is not smooth enough."""
        stretch = math.floor(math.log(loss) / _WIDTH)
        if stretch not in self._stretches:
            self._stretches[stretch] = self._coefficients(stretch)
        coefficients = self._stretches[stretch]
        if coefficients is None:
            return None
        at, scale = 2.0 * (math.log(loss) / _WIDTH - stretch) - 1.0, 2.0 / _WIDTH
        parts = [chebyshev.chebval(at, chebyshev.chebder(coefficients, order)) for order in range(3)]
        level, slope, bend = (np.asarray(part, dtype=np.float64) for part in parts)
        return level, slope * scale, bend * scale**2

    @cached_property
    def _stretches(self) -> dict[int, NDArray[np.float64] | None]:
        return {}

    def _coefficients(self, stretch: int) -> NDArray[np.float64] | None:
        losses = np.exp(_WIDTH * (stretch + (_NODES + 1.0) / 2.0))
        values = np.array([self.curve(float(loss)) for loss in losses])
        if not np.all(values > _TINY):
            return None
        coefficients: NDArray[np.float64] = _TO_COEFFICIENTS @ np.log(values)
        return None if np.max(np.abs(coefficients[-2:])) > _ROUGH else coefficients
