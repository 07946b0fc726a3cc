"""What a plan says beyond the paper's model, where the program asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dualmandate.choice import BudgetPath, TableSelection
from dualmandate.choice.markets import Institution


@dataclass(frozen=True, eq=False)
class Responding:
    """How participation moves the frontier, at the choice and at the peak."""

    rate: float  # share of people who take part at the choice
    rate_without_loss: float
    peak: float | None  # the loss beyond which accuracy falls; None where it never does
    assumed: tuple[str, ...]  # tables whose total is not stated, so that everybody is taken to be counted
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
    offering: TableSelection | None = None
    no_offering: str = ""  # why tables cannot be priced, where the program asks for it
    path: BudgetPath | None = None
    markets: tuple[Institution, ...] = ()
    existing: tuple[ExistingError, ...] = ()

    def document(self) -> dict[str, object]:
        """The parts that the program asked for, as they stand in the plan's JSON."""
        parts = {
            "participation": self._participation(),
            "offering": self._offering(),
            "path": self._path(),
            "markets": self._markets(),
            "existing_errors": self._existing(),
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _participation(self) -> dict[str, object] | None:
        if self.participation is None:
            return None
        return {
            "rate": self.participation.rate,
            "rate_without_loss": self.participation.rate_without_loss,
            "peak": self.participation.peak,
            "assumed_totals": list(self.participation.assumed),
            "source": self.participation.source,
        }

    def _offering(self) -> dict[str, object] | None:
        if self.offering is None:
            return {"why_not": self.no_offering} if self.no_offering else None
        return {
            "epsilon": self.offering.epsilon,
            "net": self.offering.net,
            "bound": self.offering.bound,
            "exact": self.offering.exact,
            "tables": [
                {
                    "name": verdict.name,
                    "table": verdict.table,
                    "detail": verdict.detail or None,
                    "value": verdict.value,
                    "price": verdict.price,
                    "published": verdict.published,
                    "epsilon": verdict.epsilon,
                    "errors": verdict.errors,
                }
                for verdict in self.offering.verdicts
            ],
        }

    def _path(self) -> dict[str, object] | None:
        if self.path is None:
            return None
        return {
            "total": self.path.total,
            "cap": self.path.cap,
            "price": self.path.price,
            "welfare": self.path.welfare,
            "releases": [
                {
                    "year": release.year,
                    "epsilon": release.epsilon,
                    "alone": release.alone,
                    "privacy_cost": release.privacy_cost,
                    "data_loss": release.data_loss,
                }
                for release in self.path.releases
            ],
        }

    def _markets(self) -> list[dict[str, object]] | None:
        if not self.markets:
            return None
        return [
            {
                "institution": row.name,
                "epsilon": row.epsilon,
                "accuracy": row.accuracy,
                "payment": row.payment,
                "total": row.total,
                "welfare": row.welfare,
                "forgone": row.forgone,
                "one_count": row.one_count,
                "why": row.why,
            }
            for row in self.markets
        ]

    def _existing(self) -> list[dict[str, object]] | None:
        if not self.existing:
            return None
        return [
            {"table": row.table, "unit": row.unit, "before": row.before, "noise": row.noise, "added": row.added}
            for row in self.existing
        ]
