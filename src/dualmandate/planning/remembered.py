"""A frontier that remembers what it was asked: a plan looks at the same losses again under many preferences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dualmandate.frontier import CurveFrontier, Curves, Measure

Key = tuple[float, Measure]


@dataclass(frozen=True, eq=False)
class RememberedCurves:
    """The same curves; each number is worked out once."""

    original: Curves
    _values: dict[Key, NDArray[np.float64]] = field(default_factory=dict)
    _slopes: dict[Key, NDArray[np.float64]] = field(default_factory=dict)

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Errors of each table."""
        if (loss, measure) not in self._values:
            self._values[loss, measure] = self.original.values(loss, measure)
        return self._values[loss, measure]

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Slopes of each table."""
        if (loss, measure) not in self._slopes:
            self._slopes[loss, measure] = self.original.slopes(loss, measure)
        return self._slopes[loss, measure]

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Curvatures of each table; asked for rarely."""
        return self.original.curvatures(loss, measure)

    def inverse(self, expected_squared_error: float) -> float | None:
        """The loss for an error, where it is known."""
        return self.original.inverse(expected_squared_error)

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier."""
        return self.original.technology(loss)

    def allocation(self, loss: float) -> dict[str, float]:
        """The loss spent on each group of tables."""
        return self.original.allocation(loss)


def remembered(frontier: CurveFrontier, *, name: str | None = None) -> CurveFrontier:
    """The same frontier, under another name where one is given, that works out each number once."""
    return replace(frontier, name=name or frontier.name, curves=RememberedCurves(frontier.curves))
