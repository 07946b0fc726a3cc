"""What a published strategy produces: noise on whole-number rows, each with a loss of its own, and the answers from it.

A row of weight w is noise of the law on the lattice w·ℤ, V_w(u) = w²·V(u·wᵖ). With C_tw = Σ (QA⁺)² over the queries of
table t and the rows of weight w, the table's expected squared error is Σ_w C_tw·V_w(u): the frontier needs no query by
itself. Where there are many weights, ln V_w(u) is read off a polynomial in ln w.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.combination import Combination, Term
from dualmandate.mechanism.lattice import on_lattice
from dualmandate.mechanism.mechanism import Distribution, Measure, NoiseLaw, known_measure, positive_loss, tail_of
from dualmandate.mechanism.production import relative
from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.population import Currency, PrivacyLoss, Protection
from dualmandate.workload import Sensitivity, Workload

FEW_KINDS = 48  # weights whose noise is worked out one by one
NODES = 24  # points of the polynomial where there are more
REPRESENTATIVES = 7  # queries of a table, from the least to the most noisy, whose errors are worked out by themselves
LARGEST_WRITTEN_OUT = 2**22  # numbers of a reconstruction that is written out to simulate releases
STEP = 0.01  # relative, of central differences of fourth order
LEADING = 24  # rows of a query, by the variance they bring, whose noise is taken as it is
LUMPED = 12  # equal draws that stand for all others
NEARLY_NORMAL = 0.2  # excess kurtosis below which an error is as good as normal, but for a correction
LARGEST_SHARE = 0.1  # of one row in the variance of such an error, so that it takes many values


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
class StrategyProduction:
    """What noise of one law, on the whole-number rows of a strategy, produces for a workload; a `Production`."""

    strategy: ExactStrategy
    protection: Protection
    law: NoiseLaw

    def __post_init__(self) -> None:
        if self.sensitivity.power <= 0:
            raise InvalidMechanism(
                f"{self.technology} for answers that no protected {self.protection.unit} can change",
                why="exact totals, or the public number of records, decide what is measured: noise protects nothing",
                instead="publish it as the exact total that it is, or drop the invariant",
            )

    @property
    def technology(self) -> str:
        """The technology in words."""
        return f"optimized strategy with {self.law.name} noise"

    @property
    def currency(self) -> Currency:
        """What `loss` is counted in."""
        return self.law.currency

    @property
    def workload(self) -> Workload:
        """What is answered."""
        return self.strategy.workload

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far one protected unit can move the weighted rows."""
        return self.strategy.sensitivity(self.protection)

    def unit_loss(self, loss: float) -> float:
        """Loss for one unit of sensitivity: ε/Δ₁ or ρ/Δ₂²."""
        return positive_loss(loss) / float(self.sensitivity.power)

    def privacy_loss(self, loss: Fraction) -> PrivacyLoss:
        """The privacy loss at this setting: exact, or at most that where the sensitivity is a bound."""
        return PrivacyLoss(loss, self.currency)

    def query_variances(self, table: str, loss: float) -> NDArray[np.float64]:
        """E[error²] of each query of a table."""
        unit = self.unit_loss(loss)
        return self.strategy.query_variances(table, lambda step: on_lattice(self.law, step).variance(unit))

    def table_losses(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Expected error of each table."""
        if known_measure(measure) == "squared":
            return self._by_table(self._over_kinds(lambda law, unit: law.variance(unit), self.unit_loss(loss)))
        names = [table.name for table in self.workload.tables]
        if measure == "absolute":
            return {
                name: float(self._scaled(name, loss, lambda s: s.mean_absolute, least=False).sum()) for name in names
            }
        return {name: float(np.max(self.query_variances(name, loss))) for name in names}

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_losses` with respect to the loss; a central difference unless errors are squared."""
        if known_measure(measure) == "squared":
            unit, power = self.unit_loss(loss), float(self.sensitivity.power)
            return self._by_table(-self._over_kinds(lambda law, unit: -law.variance_slope(unit), unit) / power)
        near = {k: self.table_losses(loss * (1 + k * STEP), measure) for k in (-2, -1, 1, 2)}
        return {
            name: (8 * (near[1][name] - near[-1][name]) - (near[2][name] - near[-2][name])) / (12 * STEP * loss)
            for name in near[1]
        }

    def table_curvatures(self, loss: float) -> dict[str, float]:
        """Second derivative of each table's expected squared error."""
        unit, power = self.unit_loss(loss), float(self.sensitivity.power)
        return self._by_table(self._over_kinds(lambda law, unit: law.variance_curvature(unit), unit) / power**2)

    def expected_squared_error(self, loss: float) -> float:
        """E‖M(x, Q) − Qx‖²."""
        return math.fsum(self.table_losses(loss).values())

    def expected_squared_error_slope(self, loss: float) -> float:
        """First derivative of the expected squared error; < 0."""
        return math.fsum(self.table_slopes(loss).values())

    def expected_squared_error_curvature(self, loss: float) -> float:
        """Second derivative of the expected squared error; > 0."""
        return math.fsum(self.table_curvatures(loss).values())

    def half_width(self, table: str, loss: float, probability: float) -> NDArray[np.float64]:
        """Half the width of an interval that holds the true answer with at least this probability, query by query.

        Worked out for queries from the least to the most noisy one; the others take the widest of these, in standard
        deviations.
        """
        tail = tail_of(probability)
        return self._scaled(table, loss, lambda error: error.reach(tail), least=True)

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> NDArray[np.float64]:
        """Half-widths such that all answers of the table lie within theirs, by the union bound."""
        tail = tail_of(probability) / self.workload.table(table).query_count
        return self._scaled(table, loss, lambda error: error.reach(tail), least=True)

    def relative_errors(self, table: str, loss: float, reference: NDArray[np.float64]) -> NDArray[np.float64]:
        """Root mean squared error of each query as a share of a public reference answer; infinite where that is 0."""
        return relative(self.query_variances(table, loss), reference)

    def draw(
        self, counts: NDArray[np.int64], loss: float, *, generator: np.random.Generator, size: int
    ) -> NDArray[np.float64]:
        """Simulated answers from public or synthetic counts, shape (size, query_count); never for publication."""
        unit, noise = self.unit_loss(loss), np.empty((size, len(self._row_kinds)))
        for kind, step in enumerate(self.strategy.steps):
            rows = np.flatnonzero(self._row_kinds == kind)
            noise[:, rows] = on_lattice(self.law, step).at(unit).draw(generator, (size, len(rows)))
        workload = self.workload
        if noise.shape[1] * workload.query_count <= LARGEST_WRITTEN_OUT:
            tables = [self.strategy.query_rows(table.name, range(table.query_count)) for table in workload.tables]
            errors = noise @ np.concatenate(tables).T
        else:
            weights, nothing = self._steps[self._row_kinds], np.zeros(workload.domain.shape)
            errors = np.array([self.strategy.reconstruct(each / weights, like=nothing) for each in noise])
        return np.asarray(workload.answers(counts) + errors, dtype=np.float64)

    @cached_property
    def _steps(self) -> Floats:
        return np.array([float(step) for step in self.strategy.steps])

    def _over_kinds(self, value: Callable[[NoiseLaw, float], float], unit: float) -> Floats:
        """A number > 0 that the law has on each lattice, shape (kinds,); read off a polynomial where they are many."""
        if not self.law.needs_whole_numbers:
            return np.full(len(self._steps), value(self.law, unit))
        if len(self._nodes) == 0:
            return np.array([value(on_lattice(self.law, step), unit) for step in self.strategy.steps])
        at_nodes = [value(on_lattice(self.law, Fraction(float(node))), unit) for node in self._nodes]
        return np.asarray(np.exp(self._interpolation @ np.log(at_nodes)))

    @cached_property
    def _nodes(self) -> Floats:
        """Chebyshev points in ln w; none where there are few weights."""
        if len(self._steps) <= FEW_KINDS:
            return np.empty(0)
        low, high = np.log(self._steps.min()), np.log(self._steps.max())
        return np.asarray(np.exp((low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(NODES) / (NODES - 1))))

    @cached_property
    def _interpolation(self) -> Floats:
        """The barycentric formula: values at the nodes to values at all weights; shape (kinds, nodes)."""
        signs = np.where(np.arange(NODES) % 2 == 0, 1.0, -1.0)
        signs[[0, -1]] /= 2
        gaps = np.log(self._steps)[:, None] - np.log(self._nodes)[None, :]
        at_node = np.abs(gaps) < 1e-14
        ratios = signs / np.where(at_node, 1.0, gaps)
        ratios[at_node.any(axis=1)] = at_node[at_node.any(axis=1)].astype(np.float64)
        return np.asarray(ratios / ratios.sum(axis=1, keepdims=True))

    def _by_table(self, values: Floats) -> dict[str, float]:
        return {table.name: float(self.strategy.table_sums(table.name) @ values) for table in self.workload.tables}

    def _scaled(
        self, table: str, loss: float, of: Callable[[Combination | NearlyNormal], float], *, least: bool
    ) -> Floats:
        """A number that grows with the error's spread, for each query: its standard deviation times a ratio.

        The ratio is worked out for some queries, and between them interpolated, or (`least`) the largest of all.
        """
        spreads = np.sqrt(self.query_variances(table, loss))
        chosen = _representatives(spreads)
        shares = np.abs(self.strategy.query_rows(table, chosen.tolist()))
        noises = self._noises(self.unit_loss(loss))
        found = [of(self._error(each, noises)) for each in shares]
        ratios = np.array(found) / np.maximum(spreads[chosen], 1e-300)
        if least and len(chosen) == REPRESENTATIVES:
            return np.asarray(spreads * ratios.max())
        return np.asarray(spreads * np.interp(spreads, spreads[chosen], ratios))

    def _error(self, shares: Floats, laws: Sequence[tuple[Distribution, float]]) -> Error:
        """The error of one query: nearly normal where many rows share in it, else the leading ones and a lump."""
        variances = np.array([noise.variance for noise, _ in laws])[self._row_kinds] * shares**2
        total = float(variances.sum())
        fourths = np.array([excess for _, excess in laws])[self._row_kinds] * variances**2
        excess = float(fourths.sum()) / max(total, 1e-300) ** 2
        if excess < NEARLY_NORMAL and float(variances.max(initial=0.0)) < LARGEST_SHARE * total:
            return NearlyNormal(math.sqrt(total), excess)
        order = np.argsort(-variances, kind="stable")
        leading, rest = order[:LEADING], float(variances[order[LEADING:]].sum())
        terms = []
        for kind in np.unique(self._row_kinds[leading]):
            here = np.round(shares[leading[self._row_kinds[leading] == kind]], 12)
            distinct, counts = np.unique(here[here > 0], return_counts=True)
            terms.append(Term(laws[kind][0], distinct, counts.astype(np.float64)))
        if rest > 1e-12 * total:
            noise = laws[self._row_kinds[order[LEADING]]][0]
            terms.append(Term(noise, np.array([math.sqrt(rest / LUMPED / noise.variance)]), np.array([float(LUMPED)])))
        return Combination(tuple(terms))

    def _noises(self, unit: float) -> list[tuple[Distribution, float]]:
        """The noise of each kind of row in the unit of a weighted row, and its excess kurtosis."""
        found = [on_lattice(self.law, step).at(unit) for step in self.strategy.steps]
        return [(noise, _excess(noise)) for noise in found]

    @cached_property
    def _row_kinds(self) -> Indices:
        return self.strategy.kinds()


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
