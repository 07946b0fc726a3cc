"""Numerics of curves over privacy losses: slopes, roots, the lowest place, sums, and curves read off polynomials.

Most of it works on logarithms of losses, so that losses of any size are found to full relative precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import heappop, heappush
from typing import overload

import numpy as np
from numpy.polynomial import chebyshev

from dualmandate.population.arrays import Floats

_STEP = 3.0e-3  # At this step of ln loss truncation and rounding both stay near 1e-13 for elasticities below five.
SMALLEST_LOSS, LARGEST_LOSS = 1e-150, 1e150  # No loss beyond these is looked for.
_GROWTH = math.log(4.0)
_VANISHED = 1e3  # This far below every target lies the logarithm of nothing.
_DEGREE = 15
_WIDTH = 0.9  # A stretch of ln loss is this wide.
_ROUGH = 1e-8  # A last coefficient above this says that the curve is not smooth there.
_SAME = 1e-9  # Losses nearer to each other than this share of them are one.
_UNDERFLOW = 1e-290  # A value below this has lost its digits.
_NEAR = 5e-3  # relative, how near to the least value of a sum a bound of it comes
_DEGREES = np.arange(_DEGREE + 1)
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))


@overload
def derivative(curve: Callable[[float], float], at: float) -> float: ...


@overload
def derivative(curve: Callable[[float], Floats], at: float) -> Floats: ...


def derivative(curve: Callable[[float], float] | Callable[[float], Floats], at: float) -> float | Floats:
    """d curve/d loss at a positive loss: central differences of sixth order in ln loss."""

    def spread(steps: int) -> float | Floats:
        return curve(at * math.exp(steps * _STEP)) - curve(at * math.exp(-steps * _STEP))

    return (45.0 * spread(1) - 9.0 * spread(2) + spread(3)) / (60.0 * _STEP * at)


def second_derivative(curve: Callable[[float], Floats], at: float) -> Floats:
    """d² curve/d loss² at a positive loss, in the same way and from the same values."""

    def around(steps: int) -> Floats:
        return curve(at * math.exp(steps * _STEP)) + curve(at * math.exp(-steps * _STEP))

    bend = (270.0 * around(1) - 27.0 * around(2) + 2.0 * around(3) - 490.0 * curve(at)) / (180.0 * _STEP**2)
    return (bend - derivative(curve, at) * at) / at**2


def root(
    falling: Callable[[float], float],
    low: float,
    high: float,
    *,
    step: float = 0.0,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> float:
    """Where a falling function is 0, between two ends; the nearer end where it is 0 nowhere between them.

    With a `step` the ends are moved out by it until the function changes sign there, or they are at those of `within`.
    """
    from scipy.optimize import brentq

    while step and falling(low) < 0 and low > within[0]:
        low = max(low - step, within[0])
    while step and falling(high) > 0 and high < within[1]:
        high = min(high + step, within[1])
    if falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=1e-15, rtol=8.9e-16))


def lowest(curve: Callable[[float], float], points: Floats, heights: Floats) -> float:
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


def least_sum(rising: Callable[[float], float], falling: Callable[[float], float], low: float, high: float) -> float:
    """What a rising and a falling curve add up to at least between two positive ends: a bound, and near to it.

    Between a and b their sum is nowhere below rising(a) + falling(b). The stretch where that is least is halved, until
    a value was met that is hardly larger.
    """
    up, down = cache(rising), cache(falling)
    met, stretches = min(up(end) + down(end) for end in (low, high)), [(up(low) + down(high), low, high)]
    while True:
        bound, left, right = heappop(stretches)
        middle = math.sqrt(left * right)
        if bound >= met * (1 - _NEAR) or not left < middle < right:
            return bound
        met = min(met, up(middle) + down(middle))
        for start, end in ((left, middle), (middle, right)):
            heappush(stretches, (up(start) + down(end), start, end))


def loss_where(
    curve: Callable[[float], float], target: float, *, within: tuple[float, float] = (SMALLEST_LOSS, LARGEST_LOSS)
) -> float:
    """The smallest loss at which a decreasing positive curve has fallen to `target` > 0.

    0 where it is already there at any loss that is looked at, infinite where it never falls so far.
    """

    def excess(log_loss: float) -> float:
        value = curve(math.exp(log_loss))
        return math.log(value) - math.log(target) if value > 0.0 else -_VANISHED  # discrete noise leaves the floats

    lowest_log, highest_log = math.log(within[0]), math.log(within[1])
    start = min(max(0.0, lowest_log), highest_log)
    found = root(excess, start, start, step=_GROWTH, within=(lowest_log, highest_log))
    return 0.0 if found <= lowest_log else math.inf if found >= highest_log else math.exp(found)


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """Smooth curves of several tables, positive or 0 throughout, known through a few values on a stretch of losses."""

    curve: Callable[[float], Floats]  # shape (tables,)

    def logs(self, loss: float) -> tuple[Floats, Floats, Floats] | None:
        """ln value, its elasticity and the derivative of that in ln loss; None where the curve is not smooth enough."""
        stretch = math.floor(math.log(loss) / _WIDTH)
        if stretch not in self._stretches:
            self._stretches[stretch] = self._coefficients(stretch)
        coefficients = self._stretches[stretch]
        if coefficients is None:
            return None
        at = 2.0 * (math.log(loss) / _WIDTH - stretch) - 1.0
        level, slope, bend = np.cos(_DEGREES * math.acos(min(max(at, -1.0), 1.0))) @ coefficients
        return level, slope, bend

    @cached_property
    def _stretches(self) -> dict[int, Floats | None]:
        return {}

    def _coefficients(self, stretch: int) -> Floats | None:
        """Of the polynomial and its first two derivatives in ln loss; shape (3, degrees, tables)."""
        losses = np.exp(_WIDTH * (stretch + (_NODES + 1.0) / 2.0))
        values = np.array([self.curve(float(loss)) for loss in losses])
        never = ~values.any(axis=0)  # exact tables have no errors at any loss
        if not np.all(values[:, ~never] > _UNDERFLOW):
            return None
        coefficients = np.asarray(_TO_COEFFICIENTS @ np.log(np.where(never, 1.0, values)), dtype=np.float64)
        if np.max(np.abs(coefficients[-2:])) > _ROUGH:
            return None
        found = np.zeros((3, *coefficients.shape))
        for order in range(3):
            found[order, : _DEGREE + 1 - order] = chebyshev.chebder(coefficients, order, scl=2.0 / _WIDTH)
        found[0, 0, never] = -np.inf
        return found


def log_grid(
    low: float,
    high: float,
    *,
    through: tuple[float, ...] = (),
    points: int = 81,
    within: tuple[float, float] = (0.0, math.inf),
) -> list[float]:
    """Evenly spaced ratios from `low` to `high`, both included, with the losses `through` that lie between added.

    What is asked for beyond `within`, the losses at which a frontier is known, is left out.
    """
    low, high = max(low, within[0]), min(high, within[1])
    kept = {float(loss) for loss in through if low <= loss <= high}
    even = [low, *np.geomspace(low, high, points)[1:-1].tolist(), high]
    return sorted(kept | {loss for loss in even if not any(math.isclose(loss, own, rel_tol=_SAME) for own in kept)})
