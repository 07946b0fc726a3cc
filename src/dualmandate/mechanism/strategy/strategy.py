"""What to measure so that a workload's answers carry the least noise, and how near to the best possible that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, InvalidWorkload, UnknownName
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.exact import (
    ExactBlock,
    ExactStrategy,
    affordable_estimate,
    answers_of,
    known_counts,
    merged_counts,
    part_by_part,
    table_key,
)
from dualmandate.mechanism.strategy.workload_blocks import Key, WorkloadBlock
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import Workload
from dualmandate.workload.sensitivity import Norm

NoiseName = Literal["laplace", "gaussian"]
LEAST_WORTH = Fraction(1, 10**6)  # of the dearest table: what is worth less still has to be answered


class BlockMeasurement(Protocol):
    """What is measured about one part of a workload; its strategy A has one column a merged cell."""

    @property
    def part(self) -> WorkloadBlock:
        """The attributes and tables."""
        ...

    @property
    def words(self) -> str:
        """What is measured, in words."""
        ...

    @property
    def rows(self) -> int:
        """Number of measurements."""
        ...

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm ΔA."""
        ...

    def measure(self, counts: Floats) -> Floats:
        """Ax for histograms over merged cells, shape (k, *merged_shape); shape (k, rows)."""
        ...

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers; shape (k, *merged_shape)."""
        ...

    def coefficients(self, key: Key) -> Floats:
        """Squared length of each row of FA⁺ for one table, by rows of each factor."""
        ...

    def exact(self, norm: Norm) -> ExactBlock:
        """Whole-number rows with rational weights that measure nearly the same."""
        ...


@dataclass(frozen=True, eq=False)
class Strategy:
    """What is measured for a workload (the paper's A), a product of one strategy a part, and its certificate.

    With noise of variance V at sensitivity 1, the expected squared error of all answers together is
    V·`error_coefficient`, error_coefficient = (ΔA)²‖QA⁺‖²_F with each table times its value; no strategy has one below
    `lower_bound`. Both are for the neighbor relation of `protection`.
    """

    workload: Workload
    noise: NoiseName
    protection: Protection
    values: dict[str, Fraction]  # what the squared error of each table costs
    found_error: float  # of the rows as they were found, for one record added or removed
    lower_bound: float
    bound: str  # which bound, and for which class of mechanisms
    measurements: tuple[BlockMeasurement, ...]

    @property
    def norm(self) -> Norm:
        """The norm of its sensitivity: L1 for pure ε, L2 for Gaussian noise."""
        return "l1" if self.noise == "laplace" else "l2"

    @property
    def sensitivity(self) -> float:
        """ΔA: the largest column norm times the records of a unit, or the largest distance of two columns.

        Norms of a product are products of norms.
        """
        if self.protection.neighbors is Neighbors.ADD_OR_REMOVE:
            records = self.protection.most_records_per_unit
            return records * math.prod(part.sensitivity(self.norm) for part in self.measurements)
        return self.exact.sensitivity(self.protection).value

    @cached_property
    def error_coefficient(self) -> float:
        """(ΔA)²‖QA⁺‖²_F, each table times its value; for moves of a record, of the whole-number rows."""
        if self.protection.neighbors is Neighbors.ADD_OR_REMOVE:
            return self.found_error * self.protection.most_records_per_unit**2
        return self.exact.error_coefficient(self.protection)

    @property
    def rows(self) -> int:
        """Number of measurements (an exact integer, however large)."""
        return math.prod(part.rows for part in self.measurements)

    @property
    def gap(self) -> str:
        """How far from the best possible it is, in words."""
        ratio = self.error_coefficient / self.lower_bound - 1.0
        if ratio <= 1e-12:
            return f"optimal: equal to the bound ({self.bound})"
        if self.noise == "gaussian":
            return f"at most {_share(ratio)} above the best possible ({self.bound})"
        return (
            f"{1.0 + ratio:.3g} times a lower bound that is not known to be reached with laplace noise ({self.bound}); "
            "a better strategy may exist"
        )

    @property
    def description(self) -> str:
        """What is measured, in words."""
        names = self.workload.domain.names
        parts = [f"{', '.join(names[axis] for axis in each.part.axes)}: {each.words}" for each in self.measurements]
        joined = "; ".join(parts)
        return f"all combinations of ({joined})" if len(parts) > 1 else joined

    def query_coefficients(self, table_name: str) -> Floats:
        """Squared length of each row of QA⁺ for a table, times (ΔA)²; shape (query_count of the table,).

        The variance of a query is that of noise at sensitivity 1 times this.
        """
        table = self.workload.table(table_name)
        found = [each.coefficients(table_key(each.part, table)) for each in self.measurements]
        axes = [axis for each in self.measurements for axis in each.part.axes]
        outer = reduce(np.multiply.outer, found).transpose(np.argsort(axes))
        return np.asarray(float(table.weight) ** 2 * self.sensitivity**2 * outer.reshape(-1))

    def measure(self, counts: NDArray[Any]) -> Floats:
        """Ax, without noise, for a public or synthetic histogram, dense or flattened; shape (rows,)."""
        values = merged_counts(self.workload, self._parts, counts.astype(np.float64))
        return part_by_part(values, [(each.part, each.measure) for each in self.measurements])

    @property
    def _parts(self) -> list[WorkloadBlock]:
        return [each.part for each in self.measurements]

    def reconstruct(self, measured: Floats, like: NDArray[Any] | None = None) -> Floats:
        """The workload's answers from noisy measurements: QA⁺y, best linear unbiased; shape (query_count,).

        Beside public totals, `like` is any histogram that has them: what is public is taken from it.
        """
        if measured.shape != (self.rows,):
            raise InvalidWorkload(
                f"{measured.shape} numbers were given for {self.rows:,} measurements",
                why="there is one number a measurement",
                instead="give them in the order of `measure`",
            )
        affordable_estimate(math.prod(part.merged_size for part in self._parts))
        known = known_counts(self.workload, self._parts, like)
        values = measured
        if known is not None:
            values = values - part_by_part(known, [(each.part, each.measure) for each in self.measurements])
        values = values.reshape([each.rows for each in self.measurements])
        for each in self.measurements:
            values = np.moveaxis(values, 0, -1)
            values = each.estimate(values.reshape(-1, each.rows)).reshape(*values.shape[:-1], *each.part.merged_shape)
        return answers_of(self.workload, self._parts, values if known is None else values + known)

    @cached_property
    def exact(self) -> ExactStrategy:
        """The same strategy as it is published: whole-number rows with rational losses."""
        parts = tuple(each.exact(self.norm) for each in self.measurements)
        return ExactStrategy(self.workload, self.norm, parts, self.values)


def _share(ratio: float) -> str:
    return f"{ratio:.2%}" if ratio >= 5e-5 else f"{ratio:.1e} of the bound"


def known_noise(noise: str) -> None:
    """Refuse a noise for which no strategies are optimized."""
    if noise not in ("laplace", "gaussian"):
        raise InvalidMechanism(
            f"a strategy for {noise} noise",
            why="strategies are optimized for the L1 norm (laplace) or the L2 norm (gaussian)",
            instead="ask for 'laplace', which serves every noise in epsilon, or 'gaussian'",
        )


def worth_of(workload: Workload, values: Mapping[str, float] | None) -> dict[str, Fraction]:
    """What the squared error of each table costs, exactly; at least a millionth of the dearest, to stay answerable."""
    names = [table.name for table in workload.tables]
    for name, value in (values or {}).items():
        if name not in names:
            raise UnknownName(
                f"'{name}' is not a table of this workload",
                why=f"it has {', '.join(names[:12])}{', …' if len(names) > 12 else ''}",
                instead="name one of its tables",
            )
        if not (math.isfinite(value) and value >= 0):
            raise InvalidWorkload(
                f"the accuracy of '{name}' is worth {value}",
                why="a strategy weighs squared errors by what they cost: finite numbers, 0 or more",
                instead="state a finite value",
            )
    exact = {name: Fraction((values or {}).get(name, 1.0)) for name in names}
    dearest = max(exact.values())
    if dearest == 0:
        raise InvalidWorkload(
            "a strategy for tables whose accuracy is worth nothing",
            why="there is nothing to weigh one table's errors against another's by",
            instead="give at least one table a positive value",
        )
    return {name: max(value, dearest * LEAST_WORTH) for name, value in exact.items()}
