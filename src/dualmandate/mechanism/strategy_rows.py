"""The whole-number rows of an optimized strategy, and the answers that least squares put together from them.

A row of weight w is noise of the law on the lattice w·ℤ, V_w(u) = w²·V(u·wᵖ). With C_tw = Σ (QA⁺)² over the queries of
table t and the rows of weight w, the table's expected squared error is Σ_w C_tw·V_w(u): the frontier needs no query by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.combination import Combination, Term
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.mechanism.rows import column_change
from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.population import Protection
from dualmandate.workload import Sensitivity, Workload
from dualmandate.workload.sensitivity import Norm

REPRESENTATIVES = 7  # So many queries of a table, from the least to the most noisy, are worked out by themselves.
LARGEST_WRITTEN_OUT = 2**22  # A reconstruction of at most so many numbers is written out to simulate releases.
LEADING = 24  # The noise of so many rows of a query, by the variance they bring, is taken as it is.
LUMPED = 12  # So many equal draws stand for all other rows.
NEARLY_NORMAL = 0.2  # Below this excess kurtosis an error is as good as normal, but for a correction.
LARGEST_SHARE = 0.1  # One row has at most this share in the variance of such an error: it takes many values.


@dataclass(frozen=True)
class NearlyNormal:
    """The sum of many small errors: normal, corrected for its excess kurtosis (Cornish and Fisher)."""

    spread: float  # standard deviation
    excess: float  # ≥ 0, small

    @property
    def mean_absolute(self) -> float:
        """E|S| = σ·√(2/π)·(1 − excess/24)."""
        return self.spread * math.sqrt(2.0 / math.pi) * (1.0 - self.excess / 24.0)

    def reach(self, tail: float) -> float:
        """The t with P(|S| > t) = tail: σ·(z + (z³ − 3z)·excess/24)."""
        z = NormalDist().inv_cdf(1.0 - tail / 2.0)
        return self.spread * (z + (z**3 - 3.0 * z) * self.excess / 24.0)


Error: TypeAlias = Combination | NearlyNormal


@dataclass(frozen=True, eq=False)
class StrategyRows:
    """The rows of a strategy that was optimized for a workload, and for the neighbors of a protection."""

    strategy: ExactStrategy
    direct: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    counted: ClassVar[None] = None
    needs_public: ClassVar[bool] = True

    @property
    def workload(self) -> Workload:
        return self.strategy.workload

    def technology(self, noise: str) -> str:
        return f"optimized strategy with {noise} noise"

    @property
    def size(self) -> int:
        return self.strategy.rows

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return self.strategy.steps

    def kinds(self) -> Indices:
        return self._kinds

    def sensitivity(self, protection: Protection, norm: Norm) -> Sensitivity:
        if norm != self.strategy.norm:
            raise InvalidMechanism(
                f"noise whose loss grows with the {norm.upper()} norm, on a strategy for the "
                f"{self.strategy.norm.upper()} norm",
                why="its rows are weighed for another norm",
                instead=f"optimize the strategy for {'gaussian' if norm == 'l2' else 'laplace'!r}",
            )
        return self.strategy.sensitivity(protection)

    def count(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.strategy.count(counts)

    def answers(self, measured: NDArray[np.int64], public: Floats | None, /) -> Floats:
        return self.strategy.reconstruct(measured, public)

    def changed(self, cell: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return column_change(self, cell)

    @cached_property
    def answered(self) -> Mapping[str, StrategyAnswers]:
        return {table.name: StrategyAnswers(self, table.name) for table in self.workload.tables}

    def spread(self, noise: Floats) -> Floats:
        if noise.shape[1] * self.workload.query_count <= LARGEST_WRITTEN_OUT:
            tables = [self.strategy.query_rows(each.name, range(each.query_count)) for each in self.workload.tables]
            return np.asarray(noise @ np.concatenate(tables).T)
        nothing = np.zeros(self.workload.domain.shape)
        return np.array([self.strategy.reconstruct(each / self._row_weights, like=nothing) for each in noise])

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        shape = self.workload.table(table).shape
        places = np.unravel_index(np.asarray(numbers, dtype=np.intp), shape)
        shares = [np.isin(np.arange(size), each).astype(np.float64) for size, each in zip(shape, places, strict=True)]
        if math.prod(int(each.sum()) for each in shares) == len(numbers):  # a product of rows of the factors
            return np.asarray(self._row_weights * self.strategy.combined(table, shares))
        return np.asarray(self._row_weights * self.strategy.query_rows(table, list(numbers)).sum(axis=0))

    @cached_property
    def _kinds(self) -> Indices:
        return self.strategy.kinds()

    @cached_property
    def _row_weights(self) -> Floats:
        return np.array([float(step) for step in self.steps])[self._kinds]


@dataclass(frozen=True, eq=False)
class StrategyAnswers:
    """The answers of one table from the rows of a strategy; an `Answers` of a measurement."""

    rows: StrategyRows
    table: str
    independent: ClassVar[bool] = False
    single: ClassVar[None] = None

    @property
    def sums(self) -> Floats:
        return self.rows.strategy.table_sums(self.table)

    def variances(self, of_row: Callable[[Fraction], float]) -> Floats:
        return self.rows.strategy.query_variances(self.table, of_row)

    def mean_absolute(self, noises: Sequence[Distribution]) -> float:
        return float(self._scaled(noises, lambda error: error.mean_absolute, least=False).sum())

    def reaches(self, noises: Sequence[Distribution], tail: float) -> Floats:
        """Worked out for queries from the least to the most noisy one; the others take the widest of these.

        In standard deviations.
        """
        return self._scaled(noises, lambda error: error.reach(tail), least=True)

    def _scaled(self, noises: Sequence[Distribution], of: Callable[[Error], float], *, least: bool) -> Floats:
        """A number that grows with the error's spread, for each query: its standard deviation times a ratio.

        The ratio is worked out for some queries, and between them interpolated, or (`least`) the largest of all.
        """
        by_step = {step: noise.variance for step, noise in zip(self.rows.steps, noises, strict=True)}
        spreads = np.sqrt(self.variances(by_step.__getitem__))
        chosen = _representatives(spreads)
        shares = np.abs(self.rows.strategy.query_rows(self.table, chosen.tolist()))
        laws = [(noise, _excess(noise)) for noise in noises]
        found = [of(self._error(each, laws)) for each in shares]
        ratios = np.array(found) / np.maximum(spreads[chosen], 1e-300)
        if least and len(chosen) == REPRESENTATIVES:
            return np.asarray(spreads * ratios.max())
        return np.asarray(spreads * np.interp(spreads, spreads[chosen], ratios))

    def _error(self, shares: Floats, laws: Sequence[tuple[Distribution, float]]) -> Error:
        """The error of one query: nearly normal where many rows share in it, else the leading ones and a lump."""
        kinds = self.rows.kinds()
        variances = np.array([noise.variance for noise, _ in laws])[kinds] * shares**2
        total = float(variances.sum())
        fourths = np.array([excess for _, excess in laws])[kinds] * variances**2
        excess = float(fourths.sum()) / max(total, 1e-300) ** 2
        if excess < NEARLY_NORMAL and float(variances.max(initial=0.0)) < LARGEST_SHARE * total:
            return NearlyNormal(math.sqrt(total), excess)
        order = np.argsort(-variances, kind="stable")
        leading, rest = order[:LEADING], float(variances[order[LEADING:]].sum())
        terms = []
        for kind in np.unique(kinds[leading]):
            here = np.round(shares[leading[kinds[leading] == kind]], 12)
            distinct, counts = np.unique(here[here > 0], return_counts=True)
            terms.append(Term(laws[kind][0], distinct, counts.astype(np.float64)))
        if rest > 1e-12 * total:
            noise = laws[kinds[order[LEADING]]][0]
            terms.append(Term(noise, np.array([math.sqrt(rest / LUMPED / noise.variance)]), np.array([float(LUMPED)])))
        return Combination(tuple(terms))


def _representatives(spreads: Floats) -> Indices:
    """Queries of different spread, sorted by it: all that differ, or some from the least to the most noisy."""
    order = np.argsort(spreads, kind="stable")
    first = np.flatnonzero(np.diff(spreads[order], prepend=-1.0) > 1e-9 * float(spreads.max()))
    distinct = order[first]
    if len(distinct) <= REPRESENTATIVES:
        return distinct
    return distinct[np.rint(np.linspace(0, len(distinct) - 1, REPRESENTATIVES)).astype(np.intp)]


def _excess(noise: Distribution) -> float:
    """Excess kurtosis, from the characteristic function near 0: ln φ(t) = −σ²t²/2 + excess·σ⁴t⁴/24 − …"""
    if noise.variance == 0.0:
        return 0.0
    frequency = 0.05 / math.sqrt(noise.variance)
    value = math.log(float(noise.characteristic(np.array([frequency]))[0]))
    return 24.0 * (value + 0.05**2 / 2.0) / 0.05**4
