"""Short names for the arrays that every room passes around; shapes are said where an array is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.intp]
