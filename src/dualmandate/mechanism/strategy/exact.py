"""The strategy that is published: whole-number rows with rational losses, and what a release of it loses, exactly.

Each row is divided by the common divisor of its entries and measured as a whole number with discrete noise of its own
loss: u·w (pure ε) or u·w² (ρ), w the row's weight and u the loss for one unit of sensitivity. A unit then loses at most
u·max Σ_r (w_r·|a_r·Δx|)^p over neighbors, which is computed in exact arithmetic, squares only. Rows that are a weight
times 0/1 are plain counts, so that coarse noise keeps what it gains over continuous noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism.strategy.integer_rows import IntegerRows
from dualmandate.mechanism.strategy.marginal_rows import IntegerMarginals, Marginal, Places
from dualmandate.mechanism.strategy.nested_rows import IntegerNest
from dualmandate.mechanism.strategy.partitions import IntegerPartitions
from dualmandate.mechanism.strategy.workload_blocks import Key, WorkloadBlock, require_memory, same_groups
from dualmandate.population import Neighbors, Protection
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import Sensitivity, Table, Workload
from dualmandate.workload.sensitivity import Norm

BYTES_A_CELL = 96.0  # of an estimate, with what is held on the way
MOST_KINDS = 2**16  # different weights of rows of a product of parts

ProductBlock: TypeAlias = IntegerRows | IntegerPartitions | IntegerNest  # what is measured about one part of a product
ExactBlock: TypeAlias = ProductBlock | IntegerMarginals  # marginals are all of a strategy


@dataclass(frozen=True, eq=False)
class ExactStrategy:
    """Whole-number rows for a workload, a product of one list of rows a part; a row of a product is a product of rows.

    Rows are in the row-major order of the parts, and so are kinds: the weight of a kind is the product of its parts'.
    Where marginals are measured, there is one part, and nothing is written out over the cells of the domain.
    """

    workload: Workload
    norm: Norm
    parts: tuple[ExactBlock, ...]
    values: dict[str, Fraction]  # of each table's accuracy

    __repr__ = one_line

    @property
    def marginals(self) -> IntegerMarginals | None:
        """What is measured, where it is marginals."""
        part = self.parts[0]
        return part if isinstance(part, IntegerMarginals) else None

    @cached_property
    def counted_sets(self) -> tuple[Places, ...]:
        """The attributes of each marginal that is measured, by their places in the domain; none for other rows."""
        found = self.marginals
        return () if found is None else tuple(tuple(found.part.axes[place] for place in each) for each in found.sets)

    @property
    def _products(self) -> tuple[ProductBlock, ...]:
        assert self.marginals is None
        return tuple(part for part in self.parts if not isinstance(part, IntegerMarginals))

    @property
    def power(self) -> int:
        """1 where losses add up with sizes of changes (ε), 2 where they do with squares (ρ)."""
        return 1 if self.norm == "l1" else 2

    @property
    def rows(self) -> int:
        """Number of measurements (an exact integer, however large)."""
        return math.prod(part.rows for part in self.parts)

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row."""
        count = math.prod(len(part.steps) for part in self.parts)
        if count > MOST_KINDS:
            raise TooLarge(
                f"a product of strategies with {count:,} different weights",
                why=f"at most {MOST_KINDS:,} are told apart, each with a loss of its own",
                instead="publish with gaussian noise, or fewer attributes with ordered queries",
            )
        found = [Fraction(1)]
        for part in self.parts:
            found = [one * other for one in found for other in part.steps]
        return tuple(found)

    def kinds(self) -> Indices:
        """The kind of each row; shape (rows,)."""
        found = np.zeros(1, dtype=np.intp)
        for part in self.parts:
            found = np.add.outer(found * len(part.steps), part.kinds()).reshape(-1)
        return found

    def sensitivity(self, protection: Protection) -> Sensitivity:
        """How far one protected unit can move the weighted rows, in exact arithmetic."""
        records = Fraction(protection.most_records_per_unit) ** self.power
        if protection.neighbors is Neighbors.ADD_OR_REMOVE:
            power = math.prod((part.largest_column(self.power) for part in self.parts), start=records)
            return Sensitivity(self.norm, power, True, "the largest column of whole-number rows")
        if len(self.parts) > 1:
            raise InvalidMechanism(
                f"a product of strategies for neighbors that {protection.relation}",
                why="two cells may differ in several parts at once, and rows of products are not compared",
                instead="optimize the strategy for this protection, which keeps all attributes together",
            )
        [part] = self.parts
        if isinstance(part, IntegerMarginals):
            raise InvalidMechanism(
                f"marginals without the cells of the domain for neighbors that {protection.relation}",
                why="what is public, the number of records at least, is put together with every cell of the domain",
                instead='state neighbors = "add-or-remove", or record fewer attributes or levels',
            )
        largest, exact = part.largest_difference(self.power, same_groups(part.part, self.workload.domain, protection))
        method = "the farthest pair of columns of whole-number rows"
        return Sensitivity(self.norm, records * largest, exact, method if exact else f"upper bound: {method}")

    def count(self, counts: NDArray[Any]) -> Integers:
        """The whole numbers that are measured, before noise, for a histogram of counts; shape (rows,)."""
        if self.marginals is not None:
            shaped = _shaped(self.workload, counts)
            return self.count_marginals(lambda kept: shaped.sum(axis=_others(kept, shaped.ndim), dtype=np.int64))
        return self._counted(merged_counts(self.workload, [part.part for part in self.parts], counts.astype(np.int64)))

    def count_marginals(self, marginal: Marginal) -> Integers:
        """The same from the marginals of `counted_sets`, by the attributes of the domain."""
        found = self.marginals
        assert found is not None
        part = found.part

        def merged(places: Places) -> NDArray[Any]:
            values = marginal(tuple(part.axes[place] for place in places))
            for position, place in enumerate(places):
                values = part.levels[place].merge(values, position)
            return values

        return found.count(merged)

    def _counted(self, values: NDArray[Any]) -> NDArray[Any]:
        return part_by_part(values, [(part.part, part.count) for part in self._products])

    def reconstruct(self, measured: NDArray[Any], like: NDArray[Any] | None = None) -> Floats:
        """The workload's answers from noisy whole numbers in the order of `count`; shape (query_count,).

        Beside public totals, `like` is any histogram that has them (the totals spread evenly over their cells, say):
        what is public is taken from it, and only the rest from the measurements.
        """
        if measured.shape != (self.rows,):
            raise InvalidWorkload(
                f"{measured.shape} numbers were given for {self.rows:,} measurements",
                why="there is one number a measurement",
                instead="give them in the order of `count`",
            )
        if self.marginals is not None:
            residuals = self.marginals.estimated(measured)
            found = ((float(table.weight), self.marginals.answers(table, residuals)) for table in self.workload.tables)
            return np.concatenate([weight * answers for weight, answers in found])
        affordable_estimate(math.prod(part.part.merged_size for part in self.parts))
        known = self._known_counts(like)
        values: Floats = measured.astype(np.float64)
        if known is not None:
            values = values - self._counted(known)
        values = values.reshape([part.rows for part in self.parts])
        for part in self._products:
            weights = np.array([float(step) for step in part.steps])[part.kinds()]
            values = np.moveaxis(values, 0, -1) * weights
            values = part.estimate(values.reshape(-1, part.rows)).reshape(*values.shape[:-1], *part.part.merged_shape)
        return self._answers(values if known is None else values + known)

    def _known_counts(self, like: NDArray[Any] | None) -> Floats | None:
        """A histogram over merged cells that has the public totals; None where nothing is public."""
        if not any(part.part.public for part in self.parts):
            return None
        if like is None:
            raise InvalidWorkload(
                "answers from measurements alone, beside public totals",
                why="what is public was not measured, and answers rest on it",
                instead="give `like`, any histogram that has the public totals",
            )
        return merged_counts(self.workload, [part.part for part in self.parts], like.astype(np.float64))

    def _answers(self, values: Floats) -> Floats:
        """The workload's answers from counts over merged cells, in the order of the parts' attributes."""
        axes = [axis for part in self.parts for axis in part.part.axes]
        levels = [level for part in self.parts for level in part.part.levels]
        answers = []
        for table in self.workload.tables:
            found = values
            for place, (axis, level) in enumerate(zip(axes, levels, strict=True)):
                found = level.apply(table.factors[axis], found, place)
            answers.append(float(table.weight) * found.transpose(np.argsort(axes)).reshape(-1))
        return np.concatenate(answers)

    @cached_property
    def _sums(self) -> dict[str, Floats]:
        if (own := self.marginals) is not None:
            return {table.name: float(table.weight) ** 2 * own.table_sums(table) for table in self.workload.tables}
        found = {}
        for table in self.workload.tables:
            parts = [part.table_sums(table_key(part.part, table)) for part in self._products]
            found[table.name] = float(table.weight) ** 2 * reduce(np.multiply.outer, parts).reshape(-1)
        return found

    def table_sums(self, table: str) -> Floats:
        """Σ of (QA⁺)² over the queries of a table and the rows of each kind; shape (kinds,)."""
        return self._sums[table]

    def error_coefficient(self, protection: Protection) -> float:
        """Δ²·‖QA⁺‖²_F, each table times its value: what continuous noise of variance 1 at Δ = 1 would cost."""
        total = math.fsum(float(self.values[name]) * float(sums.sum()) for name, sums in self._sums.items())
        return self.sensitivity(protection).value ** 2 * total

    def query_variances(self, table_name: str, variance: Callable[[Fraction], float]) -> Floats:
        """The variance of each query of a table, given that of a weighted row of each weight; shape (query_count,)."""
        table = self.workload.table(table_name)
        if self.marginals is not None:
            by_kind = np.array([variance(step) for step in self.marginals.steps])
            return float(table.weight) ** 2 * self.marginals.query_variances(table, by_kind)
        weights, last = float(table.weight) ** 2, self._products[-1]
        keys = [table_key(part.part, table) for part in self.parts]
        axes = [axis for part in self.parts for axis in part.part.axes]
        total: Floats | float = 0.0
        # Over kinds of all parts but the last, whose variances are passed on in one go.
        for chosen, outer in self._all_but_last(keys):
            variances = np.array([variance(chosen * step) for step in last.steps])
            total = total + np.multiply.outer(outer, last.coefficients(keys[-1], variances))
        return np.asarray(weights * np.asarray(total).transpose(np.argsort(axes)).reshape(-1))

    def _all_but_last(self, keys: list[Key]) -> list[tuple[Fraction, Floats]]:
        found: list[tuple[Fraction, Floats]] = [(Fraction(1), np.ones(()))]
        for part, key in zip(self._products[:-1], keys[:-1], strict=True):
            units = np.eye(len(part.steps))
            split = [(step, part.coefficients(key, unit)) for step, unit in zip(part.steps, units, strict=True)]
            found = [(one * step, np.multiply.outer(done, each)) for one, done in found for step, each in split]
        return found

    def taken(self, table_name: str, numbers: Sequence[int]) -> tuple[Indices, Floats]:
        """What the sum of some numbers of a table takes of the noise of whole numbers: of which rows, and how much."""
        table = self.workload.table(table_name)
        if self.marginals is not None:
            chosen = np.bincount(np.asarray(numbers, dtype=np.intp), minlength=table.query_count)
            rows, shares = self.marginals.taken(table, chosen)
            return rows, float(table.weight) * shares
        shape = table.shape
        places = np.unravel_index(np.asarray(numbers, dtype=np.intp), shape)
        levels = [np.isin(np.arange(size), each).astype(np.float64) for size, each in zip(shape, places, strict=True)]
        if math.prod(int(each.sum()) for each in levels) == len(numbers):  # a product of rows of the factors
            whole = self.combined(table_name, levels)
        else:
            whole = self.query_rows(table_name, list(numbers)).sum(axis=0)
        return np.arange(len(whole)), np.asarray(self.row_weights * whole)

    @cached_property
    def row_weights(self) -> Floats:
        """The weight of each row, rounded; shape (rows,)."""
        return np.array([float(step) for step in self.steps])[self.kinds()]

    def query_rows(self, table_name: str, numbers: Sequence[int]) -> Floats:
        """Some rows of QA⁺, by their numbers within their table; shape (len(numbers), rows)."""
        if self.marginals is not None:
            found = np.zeros((len(numbers), self.rows))
            for here, number in zip(found, numbers, strict=True):
                rows, shares = self.taken(table_name, [number])
                here[rows] = shares / self.row_weights[rows]
            return found
        shape = self.workload.table(table_name).shape
        places = [np.unravel_index(number, shape) for number in numbers]
        units = [[np.eye(1, size, int(place))[0] for size, place in zip(shape, each, strict=True)] for each in places]
        return np.stack([self.combined(table_name, each) for each in units])

    def combined(self, table_name: str, shares: Sequence[Floats]) -> Floats:
        """A sum of rows of QA⁺, each times the product of its shares, by the rows of each factor; shape (rows,).

        Ones for some rows of each factor give the sum of the queries in their product.
        """
        table = self.workload.table(table_name)
        total = np.full(1, float(table.weight))
        for part in self._products:
            here = part.combined(table_key(part.part, table), [shares[axis] for axis in part.part.axes])
            total = np.multiply.outer(total, here).reshape(-1)
        return total


def _others(kept: Places, count: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(count) if axis not in kept)


def part_by_part(
    values: NDArray[Any], parts: Sequence[tuple[WorkloadBlock, Callable[[NDArray[Any]], NDArray[Any]]]]
) -> NDArray[Any]:
    """What is measured of a histogram over merged cells, part after part: rows of a product are products of rows."""
    for part, measured in parts:
        size = len(part.axes)
        values = np.moveaxis(values, range(size), range(-size, 0))
        rest = values.shape[: values.ndim - size]
        values = measured(values.reshape(-1, *values.shape[values.ndim - size :])).reshape(*rest, -1)
    return values.reshape(-1)


def merged_counts(workload: Workload, parts: Sequence[WorkloadBlock], counts: NDArray[Any]) -> NDArray[Any]:
    """A histogram, dense or flattened, over merged cells in the order of the parts' attributes."""
    values = _shaped(workload, counts).transpose([axis for part in parts for axis in part.axes])
    for place, level in enumerate(level for part in parts for level in part.levels):
        values = level.merge(values, place)
    return values


def _shaped(workload: Workload, counts: NDArray[Any]) -> NDArray[Any]:
    """A histogram in the shape of the domain; refused where it is too large, or another one's."""
    domain = workload.domain
    affordable_estimate(domain.size)
    if counts.shape not in (domain.shape, (domain.size,)):
        raise InvalidWorkload(
            f"counts of shape {counts.shape} do not fit a domain of shape {domain.shape}",
            why="a histogram has one count a cell",
            instead="give the counts in the shape of the domain, or flattened in row-major order",
        )
    return counts.reshape(domain.shape)


def table_key(part: WorkloadBlock, table: Table) -> Key:
    """What a part knows a table by."""
    return tuple(table.factors[axis].key for axis in part.axes)


def affordable_estimate(cells: int) -> None:
    """Refuse to hold more cells at once than fit."""
    instead = "use the strategy's errors, which need no cells, or ask about fewer attributes"
    require_memory(BYTES_A_CELL * cells, f"an estimate of {cells:.3g} cells", instead=instead)
