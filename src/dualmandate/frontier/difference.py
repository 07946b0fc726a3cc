"""Slopes of smooth curves that have no closed form, on a logarithmic scale of losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import NDArray

_STEP = 3.0e-3  # of ln loss: truncation and rounding both stay near 1e-13 for elasticities below five


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
