"""How far errors in counts move money: dollars displaced, the typical error of a grant, and whose grants they are.

Displaced is ½·Σ |given − due|: what would have to change hands to put things right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dualmandate.frontier import Decision
from dualmandate.mechanism import Production
from dualmandate.planning.grants import SchoolDistricts, Statute
from dualmandate.population.arrays import Floats

Errors = Callable[[np.random.Generator], Floats]
"""Errors of all counts, drawn once; shape (recipients,)."""


@dataclass(frozen=True, eq=False)
class Displacement:
    """What a decision by wrong numbers does to recipients, in the mean over draws; USD, shape (recipients,)."""

    due: Floats
    bias: Floats  # given − due
    absolute: Floats  # |given − due|
    squared: Floats  # (given − due)², USD²

    @property
    def displaced(self) -> float:
        """½·Σ E|given − due|, USD."""
        return float(self.absolute.sum()) / 2

    @property
    def root_mean_squared_error(self) -> float:
        """√(Σ E(given − due)² / recipients), USD."""
        return float(np.sqrt(self.squared.mean()))

    def by_size(self, sizes: Floats, edges: Sequence[float]) -> list[tuple[int, float, float, float]]:
        """Recipients, Σ due, and Σ E|given − due| and Σ E(given − due) as shares of it, by class of size."""
        classes = np.searchsorted(np.asarray(edges), sizes, side="right")
        rows = []
        for place in range(len(edges) + 1):
            among = classes == place
            due = float(self.due[among].sum())
            shares = [float(errors[among].sum()) / due if due else 0.0 for errors in (self.absolute, self.bias)]
            rows.append((int(among.sum()), due, shares[0], shares[1]))
        return rows


def displacement(
    decision: Decision, counts: Floats, errors: Errors, *, repetitions: int, seed: int = 0
) -> Displacement:
    """A decision made many times with wrong counts, beside the one with the given ones, which are public."""
    due = decision.allocation(counts)
    sums = np.zeros((3, due.size))
    for repetition in range(repetitions):
        wrong = decision.allocation(counts + errors(np.random.default_rng([seed, repetition]))) - due
        sums += wrong, np.abs(wrong), np.square(wrong)
    bias, absolute, squared = sums / repetitions
    return Displacement(due, bias, absolute, squared)


def noise_errors(production: Production, loss: float) -> Errors:
    """Errors of counts that are published with the noise of a technology, at a privacy loss."""

    nobody = np.zeros(production.workload.domain.shape, dtype=np.int64)

    def draw(generator: np.random.Generator) -> Floats:
        return np.asarray(production.draw(nobody, loss, generator=generator, size=1), dtype=np.float64).reshape(-1)

    return draw


def estimation_errors(districts: SchoolDistricts, statute: Statute) -> Errors:
    """Errors that poverty estimates have anyhow: normal, by the median coefficient of variation of districts' sizes."""
    sizes = np.asarray(districts.school_age if districts.residents is None else districts.residents, dtype=np.float64)
    relative = np.asarray(statute.estimate_errors)[np.searchsorted(statute.estimate_populations, sizes)]
    spread = relative * np.asarray(districts.children, dtype=np.float64)

    def draw(generator: np.random.Generator) -> Floats:
        return np.rint(spread * generator.standard_normal(spread.size))

    return draw
