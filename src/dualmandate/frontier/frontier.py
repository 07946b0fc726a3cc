"""The production frontier: how much accuracy each privacy loss buys (the paper's G(ε, I) = 0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from dualmandate.mechanism.mechanism import Measure
from dualmandate.population import PrivacyMeasure

__all__ = ["Frontier", "Measure", "log_grid"]

SAME = 1e-9  # relative distance within which two losses are one


class Frontier(Protocol):
    """Accuracy as a function of privacy loss, with its slopes. `loss` is ε or ρ, by `currency`; always > 0."""

    @property
    def name(self) -> str:
        """The technology, or technologies, in words."""
        ...

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What `loss` is counted in."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it produces, in the workload's order."""
        ...

    @property
    def query_counts(self) -> Mapping[str, int]:
        """Number of queries of each table."""
        ...

    def table_errors(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Expected error of each table: Σ E[error²], Σ E|error|, or max E[error²]; ≥ 0, in the table's unit."""
        ...

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_errors` with respect to the loss; ≤ 0."""
        ...

    def expected_squared_error(self, loss: float) -> float:
        """E‖M(x, Q) − Qx‖², summed over all queries; ≥ 0."""
        ...

    def accuracy(self, loss: float) -> float:
        """The paper's I: minus the expected squared error; ≤ 0, higher is better."""
        ...

    def marginal_rate_of_transformation(self, loss: float) -> float:
        """dI/dloss > 0: accuracy gained for one more unit of privacy loss."""
        ...

    def second_derivative(self, loss: float) -> float:
        """d²I/dloss²; < 0 where the frontier is concave."""
        ...

    def epsilon_for(self, accuracy: float) -> float:
        """The smallest privacy loss that buys this accuracy (< 0)."""
        ...

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier at this loss."""
        ...

    def allocation(self, loss: float) -> dict[str, float]:
        """How the loss is split over groups of tables measured apart; one entry where they are measured together."""
        ...


def log_grid(low: float, high: float, *, through: tuple[float, ...] = (), points: int = 81) -> list[float]:
    """Evenly spaced ratios from `low` to `high`, both included, with the losses `through` that lie between added."""
    kept = {float(loss) for loss in through if low <= loss <= high}
    even = [low, *np.geomspace(low, high, points)[1:-1].tolist(), high]
    return sorted(kept | {loss for loss in even if not any(math.isclose(loss, own, rel_tol=SAME) for own in kept)})
