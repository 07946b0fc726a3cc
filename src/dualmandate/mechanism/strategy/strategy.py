"""What to measure so that a workload's answers carry the least noise, and how near to the best possible that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.parts import Key, Part
from dualmandate.workload import Workload
from dualmandate.workload.sensitivity import Norm

Noise = Literal["laplace", "gaussian"]
LARGEST_ESTIMATE = 2**26  # merged cells that are estimated at once; 512 MiB of 64-bit numbers


class PartMeasurement(Protocol):
    """What is measured about one part of a workload; its strategy A has one column a merged cell."""

    @property
    def part(self) -> Part:
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


@dataclass(frozen=True, eq=False)
class Strategy:
    """What is measured for a workload (the paper's A), a product of one strategy a part, and its certificate.

    With noise of variance V at sensitivity 1, the expected squared error of all answers together is
    V·`error_coefficient`, error_coefficient = (ΔA)²‖QA⁺‖²_F; no strategy has one below `lower_bound`. Both are for one
    record added or removed.
    """

    workload: Workload
    noise: Noise
    error_coefficient: float
    lower_bound: float
    bound: str  # which bound, and for which class of mechanisms
    measurements: tuple[PartMeasurement, ...]

    @property
    def norm(self) -> Norm:
        """The norm of its sensitivity: L1 for pure ε, L2 for Gaussian noise."""
        return "l1" if self.noise == "laplace" else "l2"

    @property
    def sensitivity(self) -> float:
        """ΔA: the largest column norm, 1 up to rounding; norms of a product are products of norms."""
        return math.prod(part.sensitivity(self.norm) for part in self.measurements)

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
        found = [each.coefficients(_key(each.part, table.factors)) for each in self.measurements]
        axes = [axis for each in self.measurements for axis in each.part.axes]
        outer = reduce(np.multiply.outer, found).transpose(np.argsort(axes))
        return np.asarray(float(table.weight) ** 2 * self.sensitivity**2 * outer.reshape(-1))

    def measure(self, counts: NDArray[Any]) -> Floats:
        """Ax, without noise, for a public or synthetic histogram, dense or flattened; shape (rows,)."""
        domain = self.workload.domain
        self._affordable(domain.size)
        if counts.shape not in (domain.shape, (domain.size,)):
            raise InvalidWorkload(
                f"counts of shape {counts.shape} do not fit a domain of shape {domain.shape}",
                why="a histogram has one count a cell",
                instead="give the counts in the shape of the domain, or flattened in row-major order",
            )
        values: Floats = counts.reshape(domain.shape).astype(np.float64)
        values = values.transpose([axis for each in self.measurements for axis in each.part.axes])
        for each in self.measurements:
            for place, level in enumerate(each.part.levels):
                values = level.merge(values, place)
            count = len(each.part.axes)
            values = np.moveaxis(values, range(count), range(-count, 0))
            rest = values.shape[: values.ndim - count]
            values = each.measure(values.reshape(-1, *values.shape[values.ndim - count :])).reshape(*rest, -1)
        return values.reshape(-1)

    def reconstruct(self, measured: Floats) -> Floats:
        """The workload's answers from noisy measurements: QA⁺y, best linear unbiased; shape (query_count,)."""
        if measured.shape != (self.rows,):
            raise InvalidWorkload(
                f"{measured.shape} numbers were given for {self.rows:,} measurements",
                why="there is one number a measurement",
                instead="give them in the order of `measure`",
            )
        self._affordable(math.prod(each.part.merged_size for each in self.measurements))
        values = measured.reshape([each.rows for each in self.measurements])
        for each in self.measurements:
            values = np.moveaxis(values, 0, -1)
            values = each.estimate(values.reshape(-1, each.rows)).reshape(*values.shape[:-1], *each.part.merged_shape)
        axes = [axis for each in self.measurements for axis in each.part.axes]
        levels = [level for each in self.measurements for level in each.part.levels]
        answers = []
        for table in self.workload.tables:
            found = values
            for place, (axis, level) in enumerate(zip(axes, levels, strict=True)):
                found = level.apply(table.factors[axis], found, place)
            answers.append(float(table.weight) * found.transpose(np.argsort(axes)).reshape(-1))
        return np.concatenate(answers)

    def _affordable(self, cells: int) -> None:
        if cells > LARGEST_ESTIMATE:
            raise TooLarge(
                f"an estimate of {cells:.3g} cells",
                why=f"at most {LARGEST_ESTIMATE:,} cells are estimated at once",
                instead="use the strategy's errors, which need no cells, or ask about fewer attributes",
            )


def _key(part: Part, factors: tuple[Any, ...]) -> Key:
    return tuple(factors[axis].key for axis in part.axes)


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
