"""Publishing nothing new: a public guess has finite error at no privacy loss at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.frontier import Frontier, Measure


@dataclass(frozen=True, eq=False)
class GuessCurves:
    """Errors of a guess that was made without the data: the same at every loss."""

    errors: Mapping[Measure, NDArray[np.float64]]

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """The errors of the guess."""
        del loss
        return self.errors[measure]

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Zero."""
        del loss
        return np.zeros_like(self.errors[measure])

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Zero."""
        return self.slopes(loss, measure)

    def inverse(self, expected_squared_error: float) -> float | None:
        """0 where the guess is good enough; refused where it is not."""
        reached = math.fsum(self.errors["squared"])
        if expected_squared_error < reached:
            raise InvalidLoss(
                f"an expected squared error of {expected_squared_error:.6g} is out of reach of a guess",
                why=f"publishing nothing new leaves {reached:.6g} at every loss",
                instead="measure the tables",
            )
        return 0.0

    def technology(self, loss: float) -> str:
        """Nothing is measured."""
        del loss
        return "public guess"

    def allocation(self, loss: float) -> dict[str, float]:
        """Nothing is spent."""
        del loss
        return {"all": 0.0}


def public_guess(
    frontier: Frontier,
    squared_errors: Mapping[str, float],
    *,
    absolute_errors: Mapping[str, float] | None = None,
    largest_variances: Mapping[str, float] | None = None,
) -> CurveFrontier:
    """Publishing nothing new, as a member of an envelope: last year's tables, or a model's, serve without any loss.

    Its expected errors come from public sources, by table. It stands on the frontier at small losses, where measuring
    adds more noise than the guess is wrong by; a frontier of noise alone would have infinite error at ε = 0.
    """
    tables = frontier.tables
    errors: dict[Measure, NDArray[np.float64]] = {"squared": _listed(squared_errors, tables)}
    counts = np.array([frontier.query_counts[table] for table in tables], dtype=np.float64)
    # By Cauchy and Schwarz, Σ|e| ≤ √(k·Σe²); and the largest of k squares is at most their sum.
    errors["absolute"] = (
        np.sqrt(counts * errors["squared"]) if absolute_errors is None else _listed(absolute_errors, tables)
    )
    errors["largest variance"] = errors["squared"] if largest_variances is None else _listed(largest_variances, tables)
    return CurveFrontier("public guess", frontier.currency, frontier.query_counts, GuessCurves(errors))


def _listed(errors: Mapping[str, float], tables: tuple[str, ...]) -> NDArray[np.float64]:
    missing = [table for table in tables if not (math.isfinite(errors.get(table, math.nan)) and errors[table] >= 0.0)]
    if missing:
        raise InvalidMechanism(
            f"the error of a guess at '{missing[0]}' is not stated",
            why="a guess joins the frontier by its expected error",
            instead="state a finite error of at least 0 for every table",
        )
    return np.array([errors[table] for table in tables], dtype=np.float64)
