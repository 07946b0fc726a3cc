"""What a plan says beyond the paper's model, where the program asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dualmandate.choice import Offering, Path
from dualmandate.choice.markets import Institution


@dataclass(frozen=True, eq=False)
class Responding:
    """How participation moves the frontier, at the choice and at the peak."""

    rate: float  # share of people who take part at the choice
    rate_without_loss: float
    peak: float | None  # the loss beyond which accuracy falls; None where it never does
    assumed_totals: tuple[str, ...]  # tables whose total is not stated, so that everybody is taken to be counted
    source: str
    noise_cost: Callable[[float], float]  # USD: what errors would cost at a loss if everybody took part
    cost: Callable[[float], float]  # USD: what they cost with those who do, beyond the peak too


@dataclass(frozen=True)
class ExistingError:
    """The error that a table had before noise, and what noise makes of it; RMSE of one number, in the table's unit."""

    table: str
    unit: str
    before: float
    noise: float

    @property
    def together(self) -> float:
        """Independent errors add up in squares."""
        return math.hypot(self.before, self.noise)

    @property
    def added(self) -> float:
        """By which share noise widens the error that was there."""
        return self.together / self.before - 1


@dataclass(frozen=True, eq=False)
class Extensions:
    """The optional parts of a plan."""

    participation: Responding | None = None
    offering: Offering | None = None
    no_offering: str = ""  # why tables cannot be priced, where the program asks for it
    path: Path | None = None
    markets: tuple[Institution, ...] = ()
    existing: tuple[ExistingError, ...] = ()
