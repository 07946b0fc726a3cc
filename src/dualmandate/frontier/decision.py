"""Accuracy valued through the decision that is made with it: money given out by a formula, with noisy counts.

A formula with thresholds, minima or a fixed appropriation turns errors in counts into misallocated dollars in a way
that has no closed form. The decision is made many times with noisy counts of public or synthetic data, and the
misallocation against the decision with exact counts is the error: a simulated frontier whose one table is in USD, so
that its squared error is in USD² and has the price of squared misallocation.

For a formula that is linear in counts this is the paper's case: Σ C²·ESE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload
from dualmandate.frontier.curves import CurveFrontier
from dualmandate.frontier.simulated import Release, Simulation, simulated_numbers
from dualmandate.mechanism import Production
from dualmandate.population import Currency, Histogram
from dualmandate.workload import Workload


class Decision(Protocol):
    """Money given out by published numbers; the same numbers always give the same money."""

    @property
    def name(self) -> str:
        """What is given out, as a table of its own."""
        ...

    def allocation(self, numbers: NDArray[np.float64], /) -> NDArray[np.float64]:
        """USD to each recipient, shape (recipients,), from the answers of a workload, shape (query_count,)."""
        ...


@dataclass(frozen=True, eq=False)
class FormulaGrant:
    """A grant by formula: so much a head, to places that are large enough, scaled down to what was appropriated.

    A place with fewer than `threshold` counted heads gets nothing. Where the formula asks for more than the
    `appropriation`, every place gets the same share of what it asks for.
    """

    per_head: Sequence[float] | NDArray[np.float64]  # C, USD a head, one a place
    threshold: float = 0.0
    appropriation: float = math.inf  # USD
    name: str = "grants"

    def allocation(self, numbers: NDArray[np.float64], /) -> NDArray[np.float64]:
        """USD to each place; negative counts ask for nothing where there is a threshold."""
        rates = np.asarray(self.per_head, dtype=np.float64)
        if numbers.shape != rates.shape:
            raise InvalidWorkload(
                f"{numbers.size} numbers for {rates.size} places",
                why="a formula by the head needs one number a place",
                instead="ask for a table with one cell a place",
            )
        asked = np.where(numbers >= self.threshold, rates * numbers, 0.0) if self.threshold > 0 else rates * numbers
        total = float(asked.sum())
        return asked * min(1.0, self.appropriation / total) if total > 0 else asked


def decision_frontier(
    decision: Decision,
    release: Release,
    workload: Workload,
    *,
    histogram: Histogram,
    simulation: Simulation,
    currency: Currency = Currency.EPSILON,
) -> CurveFrontier:
    """How far a decision with noisy answers is off, in USD, at each privacy loss; one table, named after the decision.

    `histogram` is public or synthetic: a frontier is printed, so confidential counts must never stand here.
    """
    exact = np.asarray(workload.answers(histogram.counts), dtype=np.float64)
    truth = decision.allocation(exact)

    def decide(loss: float, counts: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return decision.allocation(np.asarray(release(loss, counts, generator), dtype=np.float64))

    return simulated_numbers(
        decide,
        truth,
        {decision.name: truth.size},
        histogram=histogram,
        simulation=simulation,
        currency=currency,
        name=f"{decision.name} decided with noisy counts",
    )


def noisy_answers(production: Production) -> Release:
    """The plain chain: a technology's noisy answers, with nothing done to them."""

    def release(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return production.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)

    return release
