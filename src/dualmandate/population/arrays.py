"""Short names for the arrays that every room passes around; shapes are said where an array is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.intp]


def square_root(covariance: Floats) -> Floats:
    """R with R·Rᵀ = covariance, also where that is singular."""
    sizes, directions = np.linalg.eigh(covariance)
    root: Floats = directions * np.sqrt(np.maximum(sizes, 0.0))
    return root
