"""One privacy loss over groups of tables that are measured apart, in shares that were stated and stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.frontier import Measure
from dualmandate.frontier.split import common_currency, counts_of_groups

Asked = Callable[[CurveFrontier, float], dict[str, float]]  # of a group, at its share


@dataclass(frozen=True, eq=False)
class StatedCurves:
    """Curves of tables whose groups get the same shares s_g of every loss: error(s_g·loss), whatever errors cost."""

    groups: Mapping[str, CurveFrontier]
    shares: tuple[float, ...]  # s_g > 0, in the order of the groups; sum to 1

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Errors of each table at its group's share of the loss."""
        return self._listed(lambda group, share: group.table_losses(share * loss, measure), power=0)

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Slopes of each table in its group's loss, times the group's share of one more unit."""
        return self._listed(lambda group, share: group.table_slopes(share * loss, measure), power=1)

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Second derivatives: those of the group, times its share squared."""
        return self._listed(lambda group, share: group.table_curvatures(share * loss, measure), power=2)

    def inverse(self, expected_squared_error: float) -> float | None:
        """No closed form."""
        del expected_squared_error
        return None

    def technology(self, loss: float) -> str:
        """The technology of each group, where they differ."""
        used = [group.technology(share * loss) for group, share in zip(self.groups.values(), self.shares, strict=True)]
        return ", ".join(dict.fromkeys(used))

    def allocation(self, loss: float) -> dict[str, float]:
        """The loss spent on each group."""
        return {name: share * loss for name, share in zip(self.groups, self.shares, strict=True)}

    def _listed(self, asked: Asked, *, power: int) -> NDArray[np.float64]:
        pairs = zip(self.groups.values(), self.shares, strict=True)
        return np.array([share**power * each for group, share in pairs for each in asked(group, share).values()])


def stated_split(frontiers: Mapping[str, CurveFrontier], shares: Mapping[str, Fraction]) -> CurveFrontier:
    """The frontier of groups of tables that are measured apart, each at its stated share of one loss."""
    if set(shares) != set(frontiers) or min(shares.values(), default=0) <= 0 or sum(shares.values()) != 1:
        raise InvalidLoss(
            f"shares that add up to {sum(shares.values())} over {len(shares)} of {len(frontiers)} groups",
            why="every group of tables has a share above 0, and together they are the whole loss",
            instead="state one share for each group, so that they add up to exactly 1",
        )
    counts = counts_of_groups(frontiers)
    currency = common_currency(tuple(frontiers.values()))
    name = f"stated shares of {', '.join(frontiers) if len(frontiers) <= 4 else f'{len(frontiers)} groups'}"
    floats = tuple(float(shares[group]) for group in frontiers)
    return CurveFrontier(name, currency, counts, StatedCurves(dict(frontiers), floats))
