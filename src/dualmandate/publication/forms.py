"""How a group of tables is measured: which whole numbers, with which exact noise, and the answers from them.

A row of weight w, a whole number a·x, gets noise of its own loss: u·w (ε) or u·w² (ρ), u the loss for one unit of
sensitivity. In the order of a form its rows are numbered from 0; a row's noise is a function of its number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, ExactStrategy, MatrixMechanism, NoiseMechanism, NoiseProduction
from dualmandate.population import Currency, Protection
from dualmandate.publication.measurements import Noise
from dualmandate.workload import Tabulation, Workload
from dualmandate.workload.evaluation import apply_tables

Floats = NDArray[np.float64]
EVERY_CELL = "every cell"
SAMPLED = {"laplace": Currency.EPSILON, "geometric": Currency.EPSILON, "gaussian": Currency.RHO}


class Form(Protocol):
    """What is measured for a group of tables."""

    @property
    def workload(self) -> Workload:
        """The tables that are answered."""
        ...

    @property
    def protection(self) -> Protection:
        """Who is protected, and against which changes."""
        ...

    @property
    def rows(self) -> int:
        """How many whole numbers are measured."""
        ...

    def kinds(self) -> NDArray[np.intp]:
        """The kind of noise that each row gets; shape (rows,)."""
        ...

    def noises(self, loss: Fraction) -> tuple[Noise, ...]:
        """The noise of each kind of row, so that the group loses exactly `loss`."""
        ...

    def count(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The whole numbers for a histogram; shape (rows,)."""
        ...

    def answers(self, measured: NDArray[np.int64], public: Floats | None, /) -> Floats:
        """Unbiased answers, table after table, from rows with noise; shape (query_count,).

        `public` is a histogram that has the totals which are published exactly; None where there are none.
        """
        ...

    def variances(self, table: str, loss: Fraction) -> Floats:
        """The variance of each answer of a table; shape (query_count,)."""
        ...

    def query_rows(self, table: str, numbers: list[int]) -> Floats:
        """What some answers of a table take of the noise of each row; shape (len(numbers), rows)."""
        ...


@dataclass(frozen=True, eq=False)
class StrategyForm:
    """The whole-number rows of an optimized strategy, put together by least squares."""

    strategy: ExactStrategy
    protection: Protection

    @property
    def workload(self) -> Workload:
        """The tables that are answered."""
        return self.strategy.workload

    @property
    def rows(self) -> int:
        """How many whole numbers are measured."""
        return self.strategy.rows

    def kinds(self) -> NDArray[np.intp]:
        """The kind of each row: rows of one weight are one kind."""
        return self.strategy.kinds()

    def noises(self, loss: Fraction) -> tuple[Noise, ...]:
        """The noise of each kind of row, so that the group loses exactly `loss`."""
        return tuple(_noise(each, self.strategy.power) for each in self.strategy.row_losses(loss, self.protection))

    def count(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The whole numbers for a histogram; shape (rows,)."""
        return self.strategy.count(counts)

    def answers(self, measured: NDArray[np.int64], public: Floats | None, /) -> Floats:
        """Unbiased answers, table after table, from rows with noise; shape (query_count,)."""
        return self.strategy.reconstruct(measured, public)

    def variances(self, table: str, loss: Fraction) -> Floats:
        """The variance of each answer of a table; shape (query_count,)."""
        variance = {
            step: float(step) ** 2 * noise.distribution().variance
            for step, noise in zip(self.strategy.steps, self.noises(loss), strict=True)
        }
        return self.strategy.query_variances(table, variance.__getitem__)

    def query_rows(self, table: str, numbers: list[int]) -> Floats:
        """What some answers of a table take of the noise of each row; shape (len(numbers), rows)."""
        weights = np.array([float(step) for step in self.strategy.steps])[self.kinds()]
        return np.asarray(self.strategy.query_rows(table, numbers) * weights)


@dataclass(frozen=True, eq=False)
class DirectForm:
    """The tables themselves, or every cell: what is measured is answered by sums of it."""

    workload: Workload
    protection: Protection
    currency: Currency
    every_cell: bool = False

    @cached_property
    def _measured(self) -> Workload:
        if not self.every_cell:
            return self.workload
        cells = Tabulation(EVERY_CELL, by=self.workload.domain.names)
        return Workload.from_tabulations(self.workload.domain, [cells])

    @cached_property
    def _production(self) -> NoiseProduction:
        law = GEOMETRIC if self.currency is Currency.EPSILON else GAUSSIAN
        mechanism = MatrixMechanism(self._measured, law) if self.every_cell else NoiseMechanism(law)
        return mechanism.production(self.workload, self.protection)

    @property
    def rows(self) -> int:
        """How many whole numbers are measured."""
        return self._measured.query_count

    @cached_property
    def _weights(self) -> tuple[Fraction, ...]:
        """Different weights of tables: rows of one weight are one kind."""
        return tuple(dict.fromkeys(table.weight for table in self._measured.tables))

    @property
    def table_kinds(self) -> tuple[int, ...]:
        """The kind of the rows of each measured table."""
        return tuple(self._weights.index(table.weight) for table in self._measured.tables)

    def kinds(self) -> NDArray[np.intp]:
        """The kind of each row: rows of tables of one weight are one kind."""
        if len(self._weights) == 1:
            return np.broadcast_to(np.intp(0), (self.rows,))  # one number, however many rows
        return np.repeat(self.table_kinds, [table.query_count for table in self._measured.tables])

    def noises(self, loss: Fraction) -> tuple[Noise, ...]:
        """The noise of each kind of row, so that the group loses exactly `loss`."""
        power = 1 if self.currency is Currency.EPSILON else 2
        unit = loss / self._production.sensitivity.power
        return tuple(_noise(unit * weight**power, power) for weight in self._weights)

    def count(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The whole numbers for a histogram, modulo 2⁶⁴: no count is too large to go on; shape (rows,)."""
        parts = apply_tables(self.counted.tables, counts.reshape(self.counted.domain.shape))
        return np.concatenate([part.reshape(-1) for part in parts]).astype(np.int64, copy=False)

    @cached_property
    def counted(self) -> Workload:
        """The measured tables without their weights: counting stays in whole numbers."""
        tables = tuple(replace(table, weight=Fraction(1)) for table in self._measured.tables)
        return Workload(self._measured.domain, tables)

    def answers(self, measured: NDArray[np.int64], _: Floats | None, /) -> Floats:
        """The rows with noise, or sums of them; what is public takes no part in them."""
        if not self.every_cell:
            return np.asarray(measured * np.array([float(weight) for weight in self._weights])[self.kinds()])
        return self.workload.answers(measured.astype(np.float64).reshape(self.workload.domain.shape))

    def variances(self, table: str, loss: Fraction) -> Floats:
        """The variance of each answer of a table; shape (query_count,)."""
        return self._production.query_variances(table, float(loss))

    def query_rows(self, table: str, numbers: list[int]) -> Floats:
        """What some answers of a table take of the noise of each row; shape (len(numbers), rows)."""
        tables = self.workload.tables
        place = next(place for place, each in enumerate(tables) if each.name == table)
        found = np.zeros((len(numbers), self.rows))
        if self.every_cell:
            unit = np.zeros(self.workload.query_count)
            start = sum(each.query_count for each in tables[:place])
            for row, number in zip(found, numbers, strict=True):
                unit[start + number] = 1.0
                row[:] = self.workload.transpose_answers(unit).reshape(-1)
                unit[start + number] = 0.0
            return found
        start = sum(each.query_count for each in tables[:place])
        found[np.arange(len(numbers)), start + np.array(numbers, dtype=np.intp)] = float(tables[place].weight)
        return found


def currency_of(noise: str) -> Currency:
    """What exact noise of this name is counted in; refused where no exact sampler draws it."""
    if noise not in SAMPLED:
        raise InvalidMechanism(
            f"{noise} noise cannot be published",
            why="only noise that is drawn exactly, on whole numbers, keeps its promise",
            instead='plan with noise = "geometric", "gaussian" or "best"',
        )
    return SAMPLED[noise]


def _noise(row_loss: Fraction, power: int) -> Noise:
    return Noise("laplace", 1 / row_loss) if power == 1 else Noise("gaussian", 1 / (2 * row_loss))
