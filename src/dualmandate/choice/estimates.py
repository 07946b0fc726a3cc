"""What a survey estimated, as a plan takes it along: normal estimates, and the numbers that are ratios of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidPreferences
from dualmandate.population.arrays import Floats

Ratio = tuple[str, ...]  # the estimate that a number is proportional to, and the one it is divided by, if any
ROUNDING = 1e-8  # Ten digits of a covariance that were written down leave at most this of a negative variance.


@dataclass(frozen=True, eq=False)
class JointEstimates:
    """What a survey estimated, jointly normal, each estimate as a share of its own value: every mean is 1.

    A number of the survey is its stated value times a ratio of two of them (a cost: the effect of the privacy loss over
    that of the price), or times one. Its relative error is, by the delta method, that of the numerator less that of the
    denominator; the quantiles of a ratio are the ends of Fieller's set [Fie54].
    """

    names: tuple[str, ...]
    covariance: Floats  # (names, names), of the shares

    def __post_init__(self) -> None:
        wide, spread = len(self.names), self.covariance
        square = spread.shape == (wide, wide) and bool(np.isfinite(spread).all()) and np.allclose(spread, spread.T)
        if not (wide and len(set(self.names)) == wide and square and _is_covariance(spread)):
            raise InvalidPreferences(
                f"the estimates {', '.join(self.names)} have no such covariance",
                why="it has a row and a column for each, is symmetric, and no combination has a negative variance",
                instead="state it as it was estimated, of estimates divided by their values",
            )

    def only(self, names: Sequence[str]) -> JointEstimates:
        """Some of the estimates."""
        places = [self.names.index(name) for name in names]
        return JointEstimates(tuple(names), self.covariance[np.ix_(places, places)])

    def relative_covariance(self, ratios: Sequence[Ratio]) -> Floats:
        """Covariance of the relative errors of some numbers, by the delta method; shape (ratios, ratios)."""
        above, below = self.sides(ratios)
        spread: Floats = (above - below) @ self.covariance @ (above - below).T
        return spread

    def sides(self, ratios: Sequence[Ratio]) -> tuple[Floats, Floats]:
        """1 where an estimate stands above, and where one stands below, the line of a ratio; shapes (ratios, names)."""
        above, below = np.zeros((2, len(ratios), len(self.names)))
        for number, ratio in enumerate(ratios):
            for side, name in zip((above, below), ratio, strict=False):
                side[number, self.names.index(name)] = 1
        return above, below


def _is_covariance(spread: Floats) -> bool:
    sizes = np.linalg.eigvalsh(spread)
    return bool(np.diag(spread).min() > 0 and sizes[0] > -ROUNDING * sizes[-1])
