"""The privacy losses a picture is drawn at."""

from __future__ import annotations

import math

import numpy as np

SAME = 1e-9  # relative distance within which two losses are one


def log_grid(low: float, high: float, *, through: tuple[float, ...] = (), points: int = 81) -> list[float]:
    """Evenly spaced ratios from `low` to `high`, both included, with the losses `through` that lie between added."""
    kept = {float(loss) for loss in through if low <= loss <= high}
    even = [low, *np.geomspace(low, high, points)[1:-1].tolist(), high]
    return sorted(kept | {loss for loss in even if not any(math.isclose(loss, own, rel_tol=SAME) for own in kept)})
