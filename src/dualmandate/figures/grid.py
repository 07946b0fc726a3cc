"""The privacy losses a picture is drawn at."""

from __future__ import annotations

import numpy as np


def log_grid(low: float, high: float, *, through: tuple[float, ...] = (), points: int = 81) -> list[float]:
    """Evenly spaced ratios from `low` to `high`, both included, with the losses `through` that lie between added."""
    ends = [low, *np.geomspace(low, high, points)[1:-1].tolist(), high]
    return sorted({*ends, *(float(loss) for loss in through if low <= loss <= high)})
