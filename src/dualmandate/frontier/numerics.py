"""Numerics of curves over privacy losses: slopes, roots, the lowest place, and curves read off polynomials.

Most of it works on logarithms of losses, so that losses of any size are found to full relative precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss

_STEP = 3.0e-3  # At this step of ln loss truncation and rounding both stay near 1e-13 for elasticities below five.
_SMALLEST, _LARGEST = 1e-150, 1e150  # No loss beyond these is looked for.
_GROWTH = 4.0
_DEGREE = 15
_WIDTH = 0.9  # A stretch of ln loss is this wide.
_ROUGH = 1e-8  # A last coefficient above this says that the curve is not smooth there.
_VANISHED = 1e-290  # A value below this has lost its digits.
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))


@overload
def derivative(curve: Callable[[float], float], at: float) -> float: ...


@overload
def derivative(curve: Callable[[float], NDArray[np.float64]], at: float) -> NDArray[np.float64]: ...


def derivative(
    curve: Callable[[float], float] | Callable[[float], NDArray[np.float64]], at: float
) -> float | NDArray[np.float64]:
    """d curve/d loss at a positive loss: central differences of sixth order in ln loss."""

    def spread(steps: int) -> float | NDArray[np.float64]:
        return curve(at * math.exp(steps * _STEP)) - curve(at * math.exp(-steps * _STEP))

    return (45.0 * spread(1) - 9.0 * spread(2) + spread(3)) / (60.0 * _STEP * at)


def root(
    falling: Callable[[float], float],
    low: float,
    high: float,
    *,
    step: float = 0.0,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> float:
    """Where a falling function is 0, between two ends; the nearer end where it is 0 nowhere between them.

    With a `step` the ends are moved out by it until the function changes sign there, or they have left `within`.
    """
    from scipy.optimize import brentq

    while step and falling(low) < 0 and low > within[0]:
        low -= step
    while step and falling(high) > 0 and high < within[1]:
        high += step
    if falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=1e-14, rtol=1e-14))


def lowest(curve: Callable[[float], float], points: NDArray[np.float64], heights: NDArray[np.float64]) -> float:
    """Where a curve is least: its three lowest dips on a grid of rising points, each polished between its neighbors.

    `heights` are its values at the points. It may have kinks, so golden sections polish it: Brent's method stops at
    eight digits.
    """
    from scipy.optimize import golden

    inner = np.pad(heights, 1, constant_values=np.inf)
    dips = np.flatnonzero((heights <= inner[:-2]) & (heights <= inner[2:]))
    found = points[dips].tolist()
    for i in dips[np.argsort(heights[dips], kind="stable")][:3]:
        low, high = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
        middle = points[i] if low < points[i] < high else (low + high) / 2
        if curve(middle) < min(curve(low), curve(high)):
            found.append(float(golden(curve, brack=(low, middle, high), tol=1e-15, maxiter=100)))
    return float(min(found, key=curve))


def loss_where(curve: Callable[[float], float], target: float, *, start: float = 1.0) -> float:
    """The smallest loss at which a decreasing positive curve has fallen to `target` > 0.

    Brackets by steps of four from `start`, then Brent's method on logarithms, so that losses of any size are found to
    full relative precision. Refused where the curve never falls so far; 0 where it is already there at any loss.
    """
    from scipy.optimize import brentq

    def excess(log_loss: float) -> float:
        value = curve(math.exp(log_loss))
        return math.log(value) - math.log(target) if value > 0.0 else -math.inf

    high = start
    while curve(high) > target:
        high *= _GROWTH
        if high > _LARGEST:
            raise InvalidLoss(
                f"an expected error of {target:.6g} is out of reach",
                why=f"no privacy loss brings it below {curve(_LARGEST):.6g}",
                instead="ask for less accuracy, or for another technology",
            )
    low = high / _GROWTH
    while curve(low) <= target:
        high, low = low, low / _GROWTH
        if low < _SMALLEST:
            return 0.0
    while excess(math.log(high)) == -math.inf:
        # Noise of a discrete law can vanish from floats within one step: bisect until it is there on both ends.
        middle = math.sqrt(low * high)
        low, high = (middle, high) if curve(middle) > target else (low, middle)
        if high <= low * (1.0 + 1e-15):
            return high
    if curve(high) == target:
        return high
    return math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-15, rtol=8.9e-16))


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
        if not np.all(values > _VANISHED):
            return None
        coefficients: NDArray[np.float64] = _TO_COEFFICIENTS @ np.log(values)
        return None if np.max(np.abs(coefficients[-2:])) > _ROUGH else coefficients
