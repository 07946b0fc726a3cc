"""Losses that are not squared: relative errors, errors beyond a threshold, and the worst error of a table.

Each is a measure of one table, read off the exact law of its errors: what a planner prices instead of Σ E[error²].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidMechanism, InvalidValue
from dualmandate.mechanism import Measurement, Production
from dualmandate.population.arrays import Floats


@dataclass(frozen=True, eq=False)
class RelativeErrors:
    """Σ E[error²]/m²: squared errors as shares of the size m that each number is publicly expected to have."""

    table: str
    magnitudes: float | Floats  # m > 0, in steps of the answers: of every number, or one each, shape (query_count,)
    power = 0
    quick = True
    convex = True

    def unit(self, _unit: str, _currency: str, /) -> str:
        return ""

    def __post_init__(self) -> None:
        if not (np.all(np.isfinite(self.magnitudes)) and np.all(np.asarray(self.magnitudes) > 0)):
            raise InvalidValue(
                f"a number of table '{self.table}' that is expected to be 0 or less",
                why="an error is no share of nothing",
                instead="state how large each number is expected to be, above 0",
            )

    def curve(self, production: Production, /) -> Callable[[float], float]:
        if isinstance(self.magnitudes, float):
            squared = self.magnitudes**2
            return lambda loss: production.table_errors(loss)[self.table] / squared
        weights = self.magnitudes**-2.0
        if isinstance(production, Measurement):
            return production.weighed_squares(self.table, weights)
        return lambda loss: float(production.query_variances(self.table, loss) @ weights)


@dataclass(frozen=True)
class TailMisses:
    """Σ P(|error| > t): how many numbers of a table are expected to be off by more than a threshold."""

    table: str
    threshold: float  # t ≥ 0, in steps of the answers
    power = 0
    quick = False
    convex = True  # of noise with one peak, scaled by the loss

    def unit(self, _unit: str, _currency: str, /) -> str:
        return ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise InvalidValue(
                f"a threshold of {self.threshold} in table '{self.table}'",
                why="an error has a size of at least 0",
                instead="state a finite threshold of at least 0",
            )

    def curve(self, production: Production, /) -> Callable[[float], float]:
        measured = _measured(production, self.table)
        return lambda loss: measured.expected_misses(self.table, loss, self.threshold)


@dataclass(frozen=True)
class WorstError:
    """α(ε; β): with probability 1 − β no number of a table is off by more. Source: [AS19], the accuracy of PMW.

    Exact for numbers whose errors are independent, else by the union bound. Whole-number noise makes α a whole number
    that jumps; priced is the curve through these jumps, which is never below it and less than a step above.
    """

    table: str
    miss_probability: float  # β, strictly between 0 and 1
    power = 1
    quick = False
    convex = True  # of noise with one peak, scaled by the loss

    def unit(self, unit: str, _currency: str, /) -> str:
        return unit

    def curve(self, production: Production, /) -> Callable[[float], float]:
        measured = _measured(production, self.table)
        return lambda loss: measured.worst_error(self.table, loss, self.miss_probability)


def _measured(production: Production, table: str) -> Measurement:
    if not isinstance(production, Measurement):
        raise InvalidMechanism(
            f"{production.technology} does not say how far a number of table '{table}' may be off",
            why="the chance of a large error is read off the noise of a measurement",
            instead="use noise on the tables, on every cell or on a strategy; or squared errors",
        )
    return production
