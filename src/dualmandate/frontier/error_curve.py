"""How wrong a table may be, other than by its squared error: intervals that hold with a stated probability.

Each is one number that falls as the privacy loss grows, so it can be read the other way: the loss it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidLoss
from dualmandate.mechanism.mechanism import Production, positive_loss
from dualmandate.population import Currency

_PRECISION = 1e-9  # relative, of a loss found by bisection
_SMALLEST, _LARGEST = 1e-12, 1e12


@dataclass(frozen=True)
class ErrorCurve:
    """One measure of error as a function of the loss; never increasing, in the unit that `what` says."""

    what: str
    currency: Currency
    error: Callable[[float], float]

    def at(self, loss: float) -> float:
        """The error at a loss."""
        return self.error(positive_loss(loss))

    def loss_for(self, target: float) -> float:
        """The smallest loss at which the error is at most the target, to nine digits, never below it.

        By bisection: with whole-number noise intervals shrink in steps.
        """
        if not target > 0.0:
            raise InvalidLoss(
                f"a {self.what} of {target}",
                why="noise leaves some error at every finite loss",
                instead="ask for an error above 0",
            )
        high = 1.0
        while self.error(high) > target:
            high *= 2.0
            if high > _LARGEST:
                raise InvalidLoss(
                    f"a {self.what} of {target:g} is out of reach",
                    why=f"at {self.currency} = {_LARGEST:g} it is still {self.error(_LARGEST):g}",
                    instead="ask for a larger error",
                )
        low = high / 2.0
        while low > _SMALLEST and self.error(low) <= target:
            high, low = low, low / 2.0
        while high > low * (1.0 + _PRECISION):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.error(middle) <= target else (middle, high)
        return high


def interval(
    production: Production, table: str, *, failure_probability: float, simultaneous: bool = False
) -> ErrorCurve:
    """The (α, β) frontier of a table: the widest α that an error exceeds with probability at most β.

    Of each query by itself; `simultaneous` asks that no query of the table exceeds it, with the same probability.
    """
    widths = production.simultaneous_half_width if simultaneous else production.half_width
    return ErrorCurve(
        f"half-width of the {1 - failure_probability:.6g} interval of '{table}'",
        production.currency,
        lambda loss: float(np.max(widths(table, loss, 1.0 - failure_probability))),
    )
