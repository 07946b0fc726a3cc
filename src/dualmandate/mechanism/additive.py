"""Noise straight on the answers: the paper's Theorem 1, with any law of noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.kinds import Kinds
from dualmandate.mechanism.lattice import lattice_of
from dualmandate.mechanism.mechanism import EVERY_PERSON, NoiseLaw
from dualmandate.mechanism.production import Measured, NoiseProduction, constant
from dualmandate.population import Currency, Protection
from dualmandate.workload import Workload

_ONE_DRAW = (np.ones(1), np.ones(1))
_NO_DRAW = (np.empty(0), np.empty(0))


@dataclass(frozen=True)
class NoiseMechanism:
    """Each answer of the workload plus independent noise: M(x) = Qx + e.

    A law for whole numbers measures each table as whole numbers and multiplies by the table's weight; its unit loss is
    scaled by the weight too, so that the sensitivity of the *weighted* workload accounts for it exactly
    (`dualmandate.mechanism.lattice`).
    Source: [AS19] Theorem 1.
    """

    law: NoiseLaw

    @property
    def name(self) -> str:
        """The word for the noise."""
        return self.law.name

    @property
    def currency(self) -> Currency:
        """What its privacy loss is counted in."""
        return self.law.currency

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> NoiseProduction:
        """What it produces: I = −V(ε/ΔQ)·(number of queries), for tables of weight 1."""
        steps = [lattice_of(self.law, table) for table in workload.tables]
        measured = tuple(Measured(table.query_count, step) for table, step in zip(workload.tables, steps, strict=True))
        distinct = list(dict.fromkeys(steps))
        starts = np.cumsum([0, *(block.rows for block in measured)])
        noises = tuple(
            DirectNoise(block.rows, source=distinct.index(block.step), sources=len(distinct), start=int(start))
            for block, start in zip(measured, starts, strict=False)
        )
        sensitivity = workload.sensitivity(protection, norm_of(self.currency))
        return NoiseProduction(self.name, workload, protection, self.law, sensitivity, measured, noises)


@dataclass(frozen=True)
class DirectNoise:
    """Each query gets one draw of its own."""

    query_count: int
    source: int  # which lattice
    sources: int  # of how many
    start: int  # of this table among all measured rows
    independent: bool = True

    @property
    def coefficients(self) -> tuple[NDArray[np.float64], ...]:
        """1 for its own source, 0 for the others."""
        return tuple(constant(float(i == self.source), self.query_count) for i in range(self.sources))

    @property
    def kinds(self) -> Kinds:
        """One draw, for every query."""
        mix = tuple(_ONE_DRAW if i == self.source else _NO_DRAW for i in range(self.sources))
        return Kinds((mix,), np.broadcast_to(np.intp(0), (self.query_count,)))

    def spread(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """The draws themselves."""
        return noise[:, self.start : self.start + self.query_count]


def norm_of(currency: Currency) -> Literal["l1", "l2"]:
    """The norm in which a sensitivity is measured: ℓ₁ for ε, ℓ₂ for ρ."""
    return "l2" if currency is Currency.RHO else "l1"
