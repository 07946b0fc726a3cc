"""What noise mechanisms produce: the noise is known exactly, and so is how much of it reaches each query."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, UnknownName
from dualmandate.mechanism.combination import SMOOTHNESS, Combination, Term
from dualmandate.mechanism.kinds import FEW, Kinds, Mix, draws
from dualmandate.mechanism.lattice import on_lattice
from dualmandate.mechanism.mechanism import Measure, NoiseLaw, known_measure, positive_loss, tail_of
from dualmandate.population import Currency, PrivacyLoss, Protection
from dualmandate.workload import Sensitivity, Workload


class TableNoise(Protocol):
    """How the noise of what is measured reaches the queries of one table."""

    @property
    def coefficients(self) -> tuple[NDArray[np.float64], ...]:
        """One array a source, shape (query_count,): a query's variance is the sum of source variance × coefficient."""
        ...

    @property
    def independent(self) -> bool:
        """Whether the errors of its queries are independent of each other."""
        ...

    @property
    def kinds(self) -> Kinds:
        """Its queries by the mix of noise that reaches them."""
        ...

    def spread(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """The errors of its queries, shape (size, query_count), from noise of shape (size, measured rows)."""
        ...


@dataclass(frozen=True)
class Measured:
    """Rows that are measured with noise on one lattice: whole-number queries times `step`."""

    rows: int
    step: Fraction = Fraction(1)


@dataclass(frozen=True, eq=False)
class NoiseProduction:
    """What noise of one law, added to what is measured, produces for a workload; a `Production`.

    At a loss the law is used at unit loss u = loss/Δ₁ (ε) or loss/Δ₂² (ρ), Δ the sensitivity of what is measured.
    """

    technology: str
    workload: Workload
    protection: Protection
    law: NoiseLaw
    sensitivity: Sensitivity
    measured: tuple[Measured, ...]  # in the order of measurement
    noises: tuple[TableNoise, ...]  # one a table of the workload

    def __post_init__(self) -> None:
        if self.sensitivity.power <= 0:
            raise InvalidMechanism(
                f"{self.technology} for answers that no protected {self.protection.unit} can change",
                why="exact totals, or the public number of records, decide what is measured: noise protects nothing",
                instead="publish it as the exact total that it is, or drop the invariant",
            )

    @property
    def currency(self) -> Currency:
        """What `loss` is counted in."""
        return self.law.currency

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The lattices of the noise, each once: one source of noise for each."""
        return tuple(dict.fromkeys(block.step for block in self.measured))

    @cached_property
    def sources(self) -> tuple[NoiseLaw, ...]:
        """The law on each lattice."""
        return tuple(on_lattice(self.law, step) for step in self.steps)

    @property
    def query_coefficients(self) -> tuple[NDArray[np.float64], ...]:
        """Squared length of each row of QA⁺, one array a table.

        With one source of noise, a query's variance is `sources[0].variance(unit_loss)` × its coefficient.
        """
        return tuple(reduce(np.add, noise.coefficients) for noise in self.noises)

    @cached_property
    def error_coefficient(self) -> float:
        """(ΔA)²·‖QA⁺‖²_F: expected squared error = variance of noise for unit sensitivity × this, for scaled noise."""
        power = float(self.sensitivity.power)
        squared = power if self.currency is Currency.RHO else power**2
        return squared * math.fsum(math.fsum(sums) for sums in self._sums)

    def unit_loss(self, loss: float) -> float:
        """Loss for one unit of sensitivity: ε/Δ₁ or ρ/Δ₂²."""
        return positive_loss(loss) / float(self.sensitivity.power)

    def exact_unit_loss(self, loss: Fraction) -> Fraction:
        """The same without rounding: what an exact sampler is set by (times step, or step², of its lattice)."""
        return PrivacyLoss(loss, self.currency).amount / self.sensitivity.power

    def privacy_loss(self, loss: Fraction) -> PrivacyLoss:
        """The privacy loss at this setting: exact, or at most that where the sensitivity is a bound."""
        return PrivacyLoss(loss, self.currency)

    def query_variances(self, table: str, loss: float) -> NDArray[np.float64]:
        """E[error²] of each query of a table."""
        unit, noise = self.unit_loss(loss), self.noises[self._index(table)]
        parts = [scaled(c, law.variance(unit)) for law, c in zip(self.sources, noise.coefficients, strict=True)]
        return reduce(np.add, parts)

    def table_losses(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Expected error of each table."""
        unit = self.unit_loss(loss)
        if known_measure(measure) == "squared":
            return self._by_table([law.variance(unit) for law in self.sources])
        if measure == "absolute":
            return self._absolute_losses(unit)
        return {table.name: float(np.max(self.query_variances(table.name, loss))) for table in self.workload.tables}

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_losses` with respect to the loss."""
        unit, power = self.unit_loss(loss), float(self.sensitivity.power)
        if known_measure(measure) == "squared":
            return self._by_table([law.variance_slope(unit) / power for law in self.sources])
        if measure == "absolute":
            return {name: slope / power for name, slope in self._absolute_slopes(unit).items()}
        slopes = {}
        for table, noise in zip(self.workload.tables, self.noises, strict=True):
            worst = int(np.argmax(self.query_variances(table.name, loss)))
            found = zip(self.sources, noise.coefficients, strict=True)
            slopes[table.name] = math.fsum(law.variance_slope(unit) / power * float(c[worst]) for law, c in found)
        return slopes

    def table_curvatures(self, loss: float) -> dict[str, float]:
        """Second derivative of each table's expected squared error."""
        unit, power = self.unit_loss(loss), float(self.sensitivity.power)
        return self._by_table([law.variance_curvature(unit) / power**2 for law in self.sources])

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
        """Half the width of an interval that holds the true answer with this probability, query by query."""
        return self._reaches(table, loss, tail_of(probability))

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> NDArray[np.float64]:
        """Half-widths such that all answers of the table lie within theirs with at least this probability.

        Exact for independent errors (each query gets p^(1/n)); otherwise by the union bound (1 − (1 − p)/n).
        """
        tail = tail_of(probability)
        noise, count = self.noises[self._index(table)], self.workload.tables[self._index(table)].query_count
        shared = -math.expm1(math.log1p(-tail) / count) if noise.independent else tail / count
        return self._reaches(table, loss, shared)

    def relative_errors(self, table: str, loss: float, reference: NDArray[np.float64]) -> NDArray[np.float64]:
        """Root mean squared error of each query as a share of a public reference answer; infinite where that is 0."""
        return relative(self.query_variances(table, loss), reference)

    def draw(
        self, counts: NDArray[np.int64], loss: float, *, generator: np.random.Generator, size: int
    ) -> NDArray[np.float64]:
        """Simulated answers from public or synthetic counts, shape (size, query_count); never for publication."""
        laws = {step: law.at(self.unit_loss(loss)) for step, law in zip(self.steps, self.sources, strict=True)}
        parts = [laws[block.step].draw(generator, (size, block.rows)) for block in self.measured]
        noise = np.concatenate(parts, axis=1)
        errors = np.concatenate([table.spread(noise) for table in self.noises], axis=1)
        return np.asarray(self.workload.answers(counts) + errors, dtype=np.float64)

    @cached_property
    def _sums(self) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(total(c) for c in noise.coefficients) for noise in self.noises)

    def _index(self, table: str) -> int:
        names = [known.name for known in self.workload.tables]
        if table not in names:
            raise UnknownName(
                f"'{table}' is not a table of this workload",
                why=f"it has {', '.join(names[:12])}{', …' if len(names) > 12 else ''}",
                instead="name one of its tables",
            )
        return names.index(table)

    def _by_table(self, values: list[float]) -> dict[str, float]:
        return {
            table.name: math.fsum(value * summed for value, summed in zip(values, sums, strict=True))
            for table, sums in zip(self.workload.tables, self._sums, strict=True)
        }

    def _combination(self, mix: Mix, unit: float) -> Combination:
        pairs = zip(self.sources, mix, strict=True)
        return Combination(tuple(Term(law.at(unit), *bag) for law, bag in pairs if len(bag[0])))

    def _absolute_losses(self, unit: float) -> dict[str, float]:
        if not self.law.needs_whole_numbers:
            # Scaled noise: E|S| at unit loss 1, stretched.
            return {name: loss * unit ** -_elasticity(self.currency) for name, loss in self._unit_absolute.items()}
        return self._over_kinds(lambda mix: self._combination(mix, unit).mean_absolute)

    def _absolute_slopes(self, unit: float) -> dict[str, float]:
        """d Σ E|S|/du: exact for one draw and for scaled noise, otherwise a central difference of fourth order."""
        if not self.law.needs_whole_numbers:
            elasticity = -_elasticity(self.currency) / unit
            return {name: loss * elasticity for name, loss in self._absolute_losses(unit).items()}

        def fall(mix: Mix) -> float:
            if draws(mix) != 1:
                return -slope_of(lambda at: self._combination(mix, at).mean_absolute, unit)
            law, factors = next((law, bag[0]) for law, bag in zip(self.sources, mix, strict=True) if len(bag[0]))
            return -float(factors[0]) * law.mean_absolute_slope(unit)

        return {name: -falls for name, falls in self._over_kinds(fall, tolerance=1e-4).items()}

    @cached_property
    def _unit_absolute(self) -> dict[str, float]:
        return self._over_kinds(lambda mix: self._combination(mix, 1.0).mean_absolute)

    def _over_kinds(self, expected: Callable[[Mix], float], *, tolerance: float = 1e-6) -> dict[str, float]:
        return {
            table.name: float(noise.kinds.evaluate(expected, tolerance=tolerance) @ noise.kinds.numbers())
            for table, noise in zip(self.workload.tables, self.noises, strict=True)
        }

    def _reaches(self, table: str, loss: float, tail: float) -> NDArray[np.float64]:
        unit, kinds = self.unit_loss(loss), self.noises[self._index(table)].kinds
        if len(kinds.mixes) <= FEW:
            widths = np.array([self._combination(mix, unit).reach(tail) for mix in kinds.mixes])
        else:
            widths = kinds.evaluate(
                lambda mix: self._combination(mix, unit).smooth_reach(tail),
                rough=lambda mix: self._combination(mix, unit).is_coarse,
                tolerance=SMOOTHNESS,
            )
        return np.broadcast_to(widths[0], kinds.members.shape) if len(widths) == 1 else widths[kinds.members]


def constant(value: float, count: int) -> NDArray[np.float64]:
    """An array of one value that takes no memory, however many queries there are."""
    return np.broadcast_to(np.float64(value), (count,))


def scaled(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """An array times a number; a constant array stays one that takes no memory."""
    return constant(float(values[0]) * factor, len(values)) if values.strides == (0,) else values * factor


def total(values: NDArray[np.float64]) -> float:
    """The sum of an array, at once where it is constant."""
    return float(values[0]) * len(values) if values.strides == (0,) else float(np.sum(values))


def relative(variances: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean squared error over the size of the reference; infinite where that is 0."""
    sizes = np.abs(np.asarray(reference, dtype=np.float64)).reshape(variances.shape)
    return np.asarray(np.divide(np.sqrt(variances), sizes, out=np.full(variances.shape, np.inf), where=sizes > 0))


def slope_of(curve: Callable[[float], float], at: float) -> float:
    """The derivative of a smooth curve: a central difference of fourth order, relative error some 10⁻⁷."""
    step = 0.01 * min(at, 1.0)
    near, far = (curve(at + k * step) - curve(at - k * step) for k in (1, 2))
    return (8 * near - far) / (12 * step)


def _elasticity(currency: Currency) -> float:
    """How fast scaled noise shrinks: like 1/ε, or like 1/√ρ."""
    return 0.5 if currency is Currency.RHO else 1.0
