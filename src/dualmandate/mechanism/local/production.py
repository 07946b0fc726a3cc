"""What local mechanisms produce: each of N people randomizes their own report, so that no curator is trusted.

With u = 1/(e^ε − 1) the variance of a query is C₂·u² + C₁·u + C₀ for every mechanism here, so that its slopes and
curvatures in ε have closed forms. Where two coins of a report may tell two people apart, each has ε/2.
Reports of different people are independent; errors are those of the mechanism, given the people, and not of a
superpopulation. Without shares of people the worst case of each query is stated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.mechanism import NamedMeasure, known_measure, positive_loss, table_rows, tail_of
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Sensitivity, Workload

LARGEST_CELLS = 4096  # levels that a person may report
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


@dataclass(frozen=True, eq=False)
class LocalProduction(ABC):
    """A `Production` in which people report; variance of a query = C₂·u² + C₁·u + C₀, u = 1/(e^ε − 1)."""

    workload: Workload
    protection: Protection
    population_size: int
    sensitive_shares: Floats | None  # π, shape (cells,); None: the worst case of each query
    technology: ClassVar[str]
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    combines: ClassVar[bool] = False

    @property
    def parts(self) -> int:
        """How many coins of a report share its loss."""
        return 1

    @property
    @abstractmethod
    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        """C₂, C₁ and C₀ of each query."""
        ...

    @abstractmethod
    def reported(self, people: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        """Unbiased estimates of the number of people in each cell, from simulated reports; shape (size, cells)."""
        ...

    @abstractmethod
    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """The law of the error of one query."""
        ...

    @property
    def sensitivity(self) -> Sensitivity:
        records = Fraction(self.protection.most_records_per_unit)
        return Sensitivity(norm="l1", power=records, exact=True, method="each record is randomized by itself")

    def unit_loss(self, loss: float) -> float:
        """ε of each report."""
        return positive_loss(loss) / self.protection.most_records_per_unit

    def query_variances(self, table: str, loss: float) -> Floats:
        u = self._u(loss)
        square, single, fixed = (part[self._rows(table)] for part in self.coefficients)
        return square * u * u + single * u + fixed

    def table_errors(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        if known_measure(measure) == "absolute":
            return {name: self._absolute(name, loss) for name in self._names}
        combine = np.sum if measure == "squared" else np.max
        return {name: float(combine(self.query_variances(name, loss))) for name in self._names}

    def table_slopes(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        """Absolute errors have kinks, where a mean of reports is whole: theirs is the chord's from −5 % to +5 %."""
        if known_measure(measure) == "absolute":
            low, high = 0.95 * loss, 1.05 * loss
            return {
                name: (self._absolute(name, high) - self._absolute(name, low)) / (high - low) for name in self._names
            }
        u = self._u(loss)
        slopes = {}
        for name in self._names:
            square, single, _ = (part[self._rows(name)] for part in self.coefficients)
            each = -u * (1 + u) * (2 * square * u + single) / self._coins
            worst = int(np.argmax(self.query_variances(name, loss)))
            slopes[name] = float(each.sum() if measure == "squared" else each[worst])
        return slopes

    def table_curvatures(self, loss: float) -> dict[str, float]:
        u = self._u(loss)
        square, single, _ = self.coefficients
        each = u * (1 + u) * (2 * square * u * (2 + 3 * u) + single * (1 + 2 * u)) / self._coins**2
        return {name: float(each[self._rows(name)].sum()) for name in self._names}

    def expected_squared_error(self, loss: float) -> float:
        return math.fsum(self.table_errors(loss).values())

    def half_width(self, table: str, loss: float, probability: float) -> Floats:
        tail = tail_of(probability)
        return np.array([0.0 if law is None else law.reach(tail) for law in self._laws(table, loss)])

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> Floats:
        rows = self._rows(table)
        return self.half_width(table, loss, 1 - tail_of(probability) / (rows.stop - rows.start))

    def draw(self, counts: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        people = self._checked(counts)
        return np.asarray(self.reported(people, loss, generator=generator, size=size) @ self._queries.T)

    def _checked(self, counts: Integers) -> Integers:
        people = counts.reshape(-1)
        if int(people.sum()) != self.population_size:
            raise InvalidMechanism(
                f"{int(people.sum()):,} simulated people in a survey of {self.population_size:,}",
                why="the number of people is public and part of the estimate",
                instead="give counts that add up to the population size",
            )
        return people

    @cached_property
    def _queries(self) -> Floats:
        return np.asarray(self.workload.dense(), dtype=np.float64)

    @property
    def _names(self) -> list[str]:
        return [table.name for table in self.workload.tables]

    def _rows(self, name: str) -> slice:
        return table_rows(self.workload, name)

    @property
    def _coins(self) -> int:
        return self.protection.most_records_per_unit * self.parts

    def _u(self, loss: float) -> float:
        return 1 / odds(positive_loss(loss) / self._coins)

    def _absolute(self, table: str, loss: float) -> float:
        return math.fsum(law.mean_absolute for law in self._laws(table, loss) if law is not None)

    def _laws(self, table: str, loss: float) -> list[CharacteristicFunction | None]:
        """The law of each query's error; None for a query without error, as the number of people."""
        variances = self.query_variances(table, loss)
        rows = range(*self._rows(table).indices(len(self._queries)))
        errors = zip(rows, variances.tolist(), strict=True)
        return [self._law(row, loss, variance) if variance > 0 else None for row, variance in errors]


def check_people(name: str, people: int, levels: int, shares: tuple[float, ...] | None) -> None:
    """Refuse a survey of nobody, of one level, or of shares that are none."""
    known = shares is None or (len(shares) == levels and min(shares) >= 0)
    add_up = shares is None or math.isclose(math.fsum(shares), 1, rel_tol=1e-9)
    if not (known and add_up and levels >= 2 and people >= 1):
        raise InvalidMechanism(
            f"{name} of {levels} levels by {people} people with the shares {shares}",
            why="people differ in two levels at least, and their shares add up to 1",
            instead="give at least two levels, one share a level or none, and at least one person",
        )


def shares_array(shares: tuple[float, ...] | None) -> Floats | None:
    """Shares as an array."""
    return None if shares is None else np.array(shares)


def check_local(name: str, levels: int, workload: Workload, protection: Protection) -> None:
    """Refuse a workload that people cannot report for one by one."""
    if protection.neighbors is not Neighbors.REPLACE_ONE:
        raise InvalidMechanism(
            f"{name} under add-or-remove neighbors",
            why="each person sends a report, so who takes part, and so N, is public",
            instead='state neighbors = "replace-one"',
        )
    partial = next((fixed for fixed in protection.invariants if fixed.by or fixed.where), None)
    if partial is not None:
        raise InvalidMechanism(
            f"{name} with the exact total '{partial.name}'",
            why="people randomize by themselves and cannot keep a total; only the number of people is exact",
            instead="drop the invariant, or use a mechanism with a curator",
        )
    if workload.domain.size != levels or workload.domain.size > LARGEST_CELLS:
        raise InvalidMechanism(
            f"{name} with {levels} levels for {workload.domain.size:,} cells",
            why=f"a person reports one cell of the domain, of at most {LARGEST_CELLS:,}",
            instead="have one level for each cell of the domain",
        )


def odds(epsilon: float) -> float:
    """e^ε − 1, as large as a float gets."""
    return math.expm1(min(positive_loss(epsilon), 709.0))
