"""What randomized response produces for a workload: errors in closed form, for every query and every ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, UnknownName
from dualmandate.mechanism.characteristic import CharacteristicFunction
from dualmandate.mechanism.mechanism import Measure, known_measure, positive_loss, tail_of
from dualmandate.population import Currency, Protection
from dualmandate.workload import Sensitivity, Workload


@dataclass(frozen=True, eq=False)
class ResponseProduction:
    """A `Production` in which each person randomizes; variance of a query = C₂·u² + C₁·u, u = 1/(e^ε − 1).

    C₂ = N·Var_μ(q)/m² and C₁ = N·E(q_z − q_x)²/m, z drawn from the innocuous and x from the sensitive shares.
    """

    workload: Workload
    protection: Protection
    population_size: int
    innocuous_shares: NDArray[np.float64]  # μ, shape (cells,)
    sensitive_shares: NDArray[np.float64] | None  # π, shape (cells,); None: the worst case of each query
    technology: ClassVar[str] = "randomized response"
    currency: ClassVar[Currency] = Currency.EPSILON
    combines: ClassVar[bool] = False

    @property
    def sensitivity(self) -> Sensitivity:
        """Reports of one person: each record is randomized by itself."""
        return Sensitivity(
            norm="l1",
            power=Fraction(self.protection.most_records_per_unit),
            exact=True,
            method="each record is randomized by itself",
        )

    @property
    def is_worst_case(self) -> bool:
        """Whether errors are upper bounds, because they depend on shares that are not known."""
        return self.sensitive_shares is None and not np.allclose(self._distances, self._distances[:, :1])

    def unit_loss(self, loss: float) -> float:
        """ε of each report."""
        return positive_loss(loss) / self.protection.most_records_per_unit

    def query_variances(self, table: str, loss: float) -> NDArray[np.float64]:
        u = self._u(loss)
        square, single = (part[self._rows(table)] for part in self._coefficients)
        return square * u * u + single * u

    def table_losses(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        if known_measure(measure) == "absolute":
            return {name: self._absolute(name, loss) for name in self._names}
        combine = np.sum if measure == "squared" else np.max
        return {name: float(combine(self.query_variances(name, loss))) for name in self._names}

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_losses` with respect to the loss.

        The absolute error has a kink wherever the mean of the reports passes a whole number; its slope is that of the
        chord from 5 % below to 5 % above the loss.
        """
        if known_measure(measure) == "absolute":
            low, high = 0.95 * loss, 1.05 * loss
            return {
                name: (self._absolute(name, high) - self._absolute(name, low)) / (high - low) for name in self._names
            }
        u = self._u(loss)
        slopes = {}
        for name in self._names:
            square, single = (part[self._rows(name)] for part in self._coefficients)
            each = -u * (1 + u) * (2 * square * u + single) / self.protection.most_records_per_unit
            worst = int(np.argmax(self.query_variances(name, loss)))
            slopes[name] = float(each.sum() if measure == "squared" else each[worst])
        return slopes

    def table_curvatures(self, loss: float) -> dict[str, float]:
        u, records = self._u(loss), self.protection.most_records_per_unit
        square, single = self._coefficients
        each = u * (1 + u) * (2 * square * u * (2 + 3 * u) + single * (1 + 2 * u)) / records**2
        return {name: float(each[self._rows(name)].sum()) for name in self._names}

    def expected_squared_error(self, loss: float) -> float:
        return math.fsum(self.table_losses(loss).values())

    def half_width(self, table: str, loss: float, probability: float) -> NDArray[np.float64]:
        tail = tail_of(probability)
        return np.array([0.0 if law is None else law.reach(tail) for law in self._laws(table, loss)])

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> NDArray[np.float64]:
        """Half-widths such that all answers lie within theirs with at least this probability (union bound)."""
        rows = self._rows(table)
        return self.half_width(table, loss, 1 - tail_of(probability) / (rows.stop - rows.start))

    def draw(
        self, counts: NDArray[np.int64], loss: float, *, generator: np.random.Generator, size: int
    ) -> NDArray[np.float64]:
        """Simulated answers from public or synthetic counts, shape (size, query_count); never for publication."""
        people = counts.reshape(-1)
        if int(people.sum()) != self.population_size:
            raise InvalidMechanism(
                f"{int(people.sum()):,} simulated people in a survey of {self.population_size:,}",
                why="the number of people is public and part of the estimate",
                instead="give counts that add up to the population size",
            )
        truth = self._truth(loss)
        reports = np.zeros((size, len(people)))
        for cell, number in enumerate(people.tolist()):
            reports += generator.multinomial(number, self._report_shares(cell, truth), size)
        estimates = (reports - self.population_size * (1 - truth) * self.innocuous_shares) / truth
        return np.asarray(estimates @ self._queries.T)

    @cached_property
    def _queries(self) -> NDArray[np.float64]:
        return np.asarray(self.workload.dense(), dtype=np.float64)

    @property
    def _names(self) -> list[str]:
        return [table.name for table in self.workload.tables]

    def _rows(self, name: str) -> slice:
        start = 0
        for table in self.workload.tables:
            if table.name == name:
                return slice(start, start + table.query_count)
            start += table.query_count
        raise UnknownName(
            f"'{name}' is not a table of this workload",
            why=f"it has {', '.join(self._names[:12])}",
            instead="name one of its tables",
        )

    @cached_property
    def _distances(self) -> NDArray[np.float64]:
        """E(q_z − q_x)² for each query and each true cell x; shape (query_count, cells)."""
        first = self._queries @ self.innocuous_shares
        second = np.square(self._queries) @ self.innocuous_shares
        return second[:, None] - 2 * first[:, None] * self._queries + np.square(self._queries)

    @cached_property
    def _coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """C₂ and C₁ of each query."""
        centered = self._queries - (self._queries @ self.innocuous_shares)[:, None]
        spread = np.square(centered) @ self.innocuous_shares
        shares = self.sensitive_shares
        distance = self._distances.max(axis=1) if shares is None else self._distances @ shares
        smallest = float(self.innocuous_shares.min())
        return self.population_size * spread / smallest**2, self.population_size * distance / smallest

    def _u(self, loss: float) -> float:
        return 1 / math.expm1(min(self.unit_loss(loss), 709.0))

    def _truth(self, loss: float) -> float:
        smallest = float(self.innocuous_shares.min())
        return smallest / (self._u(loss) + smallest)

    def _report_shares(self, cell: int, truth: float) -> NDArray[np.float64]:
        shares = (1 - truth) * self.innocuous_shares
        shares[cell] += truth
        return shares

    def _absolute(self, table: str, loss: float) -> float:
        return math.fsum(law.mean_absolute for law in self._laws(table, loss) if law is not None)

    def _laws(self, table: str, loss: float) -> list[CharacteristicFunction | None]:
        """The law of each query's error; None for a query without error, as the number of people."""
        variances = self.query_variances(table, loss)
        rows = range(*self._rows(table).indices(len(self._queries)))
        errors = zip(rows, variances.tolist(), strict=True)
        return [self._law(row, loss, variance) if variance > 0 else None for row, variance in errors]

    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """A sum over people: φ(t) = Π over cells of E[exp(it(q_d − E q_d)/ρ)]^(people in the cell).

        Cells that the query treats alike are one: what matters of a report is the query's value.
        """
        values, cells = np.unique(self._queries[row], return_inverse=True)
        innocuous = np.bincount(cells, weights=self.innocuous_shares)
        if self.sensitive_shares is None:
            people = np.zeros(len(values))
            people[cells[int(np.argmax(self._distances[row]))]] = self.population_size
        else:
            people = np.bincount(cells, weights=self.population_size * self.sensitive_shares).astype(np.float64)
        truth = self._truth(loss)

        def at(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
            waves = [np.exp(1j * value / truth * frequencies) for value in values]
            log_value = np.zeros(frequencies.shape, dtype=np.complex128)
            for place in np.flatnonzero(people):
                shares = (1 - truth) * innocuous
                shares[place] += truth
                one = sum(share * wave for share, wave in zip(shares, waves, strict=True))
                log_value += people[place] * (np.log(one) - 1j * float(values @ shares) / truth * frequencies)
            return np.asarray(np.exp(log_value).real, dtype=np.float64)

        width = float(values[-1] - values[0]) / truth
        largest = min(12 * math.sqrt(variance) + 50 * width, self.population_size * width)
        return CharacteristicFunction(at, variance, largest)
