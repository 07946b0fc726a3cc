"""Rows that are measured, and the answers from them: the tables themselves, another workload or matrix, a strategy.

A row of weight w is a whole number a·x that is measured with noise of its own loss: u·w (ε) or u·w² (ρ), u the loss for
one unit of sensitivity. Rows are numbered from 0; a row's noise is a function of its number. Rows of one weight are one
kind. The paper's Theorem 1 measures the tables; its Theorem 2 measures a strategy A and answers by QA⁺.

A row of an optimized strategy is noise of the law on the lattice w·ℤ, V_w(u) = w²·V(u·wᵖ). With C_tw = Σ (QA⁺)² over
the queries of table t and the rows of weight w, the table's expected squared error is Σ_w C_tw·V_w(u): the frontier
needs no query by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from statistics import NormalDist
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from dualmandate.errors import InvalidMechanism, TooLarge, UnsupportedWorkload
from dualmandate.mechanism.combination import Combination, Term
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.mechanism.reconstruction import (
    AxisMap,
    DenseNoise,
    DirectNoise,
    FactorMap,
    KroneckerNoise,
    MatrixMap,
    MixedAnswers,
    TableNoise,
    is_identity,
    reconstruct,
    require_small,
    unsupported_row,
)
from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import Sensitivity, Table, Tabulation, Workload
from dualmandate.workload.factor import Factor, dense
from dualmandate.workload.sensitivity import Norm
from dualmandate.workload.table import apply_tables

EVERY_CELL = "every cell"
LARGEST_STRATEGY = 2**22  # A dense strategy has at most so many entries.
LARGEST_PAIRS = 2**27  # So many entries are looked at, at most, to compare all pairs of columns.
_CLOSE = 1e-9  # Columns whose norm comes this near to the largest, in floats, are compared exactly.
REPRESENTATIVES = 7  # So many queries of a table, from the least to the most noisy, are worked out by themselves.
LARGEST_WRITTEN_OUT = 2**22  # A reconstruction of at most so many numbers is written out to simulate releases.
SAME_SHARE = 12  # decimal digits, to which two answers take the same of the noise
LEADING = 24  # The noise of so many rows of a query, by the variance they bring, is taken as it is.
LUMPED = 12  # So many equal draws stand for all other rows.
NEARLY_NORMAL = 0.2  # Below this excess kurtosis an error is as good as normal, but for a correction.
LARGEST_SHARE = 0.1  # One row has at most this share in the variance of such an error: it takes many values.


@dataclass(frozen=True, eq=False)
class TableRows:
    """The tables themselves: each answer is one row times the weight of its table. Source: [AS19] Theorem 1."""

    workload: Workload  # the tables that are answered
    direct: ClassVar[bool] = True  # whether each answer is one row times its weight
    whole: ClassVar[bool] = True  # whether every row is a whole number times its weight, as whole-number noise needs it
    needs_public: ClassVar[bool] = False  # whether answers beside public totals rest on these too
    strategy: ClassVar[None] = None  # the optimized strategy, where the rows are its own

    __repr__ = one_line

    def technology(self, noise: str) -> str:
        """What is measured with this noise, in words."""
        return noise

    @property
    def size(self) -> int:
        """How many whole numbers are measured."""
        return self.workload.query_count

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight w > 0 of each kind of row."""
        return tuple(dict.fromkeys(table.weight for table in self.workload.tables))

    def kinds(self) -> Indices:
        """The kind of each row; shape (size,)."""
        if len(self.steps) == 1:
            return np.broadcast_to(np.intp(0), (self.size,))  # one number, however many rows
        kinds = [self.steps.index(table.weight) for table in self.workload.tables]
        return np.repeat(kinds, [table.query_count for table in self.workload.tables])

    @cached_property
    def counted(self) -> tuple[Table, ...]:
        """The rows as tables without weights, one after the other; None where they are no tables."""
        return _unweighted(self.workload)

    def sensitivity(self, protection: Protection, norm: Norm) -> Sensitivity:
        """How far one protected unit can move the weighted rows, in exact arithmetic."""
        return self.workload.sensitivity(protection, norm)

    def count(self, counts: Integers) -> Integers:
        """The whole numbers for a histogram, modulo 2⁶⁴; shape (size,)."""
        return _count(self.counted, self.workload.domain, counts)

    def answers(self, measured: Integers, _: Floats | None, /) -> Floats:
        """Unbiased answers, table after table, from rows with noise; shape (query_count,).

        Beside totals that are published exactly, some rows need a histogram that has these.
        """
        return np.asarray(measured * np.array([float(weight) for weight in self.steps])[self.kinds()])

    def changed(self, cell: int) -> tuple[Integers, Integers]:
        """Which rows one record in a cell changes, in their order, and by how much."""
        return cell_change(self.counted, self.workload.domain.shape, cell)

    @cached_property
    def answered(self) -> Mapping[str, MixedAnswers]:
        """How noise reaches the answers of each table."""
        noises = []
        for table, start in zip(self.workload.tables, _starts(self.workload), strict=True):
            kind = self.steps.index(table.weight)
            noises.append(DirectNoise(table.query_count, kind, len(self.steps), start, self.size))
        return _answered(self.workload, noises, self.steps)

    def spread(self, noise: Floats) -> Floats:
        """Errors of all answers, shape (n, query_count), from noise of weighted rows, shape (n, size)."""
        return noise

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        """What the sum of some numbers of a table takes of the noise of each row; shape (size,)."""
        weight = float(self.workload.table(table).weight)
        return _gathered(self.workload, self.answered[table].noise, table, numbers) * weight


@dataclass(frozen=True, eq=False)
class MatrixRows:
    """The rows of a strategy, and the workload's answers from these: Qx + QA⁺·e. Source: [AS19] Theorem 2; [LMHMR15].

    The strategy is a workload over the same domain, or a matrix over its cells. It must support the workload: QA⁺A = Q.
    A strategy of one product (every cell, say) is never written out.
    """

    workload: Workload
    matrix: Workload | Floats | Integers
    direct: ClassVar[bool] = False
    needs_public: ClassVar[bool] = False
    strategy: ClassVar[None] = None

    def __post_init__(self) -> None:
        cells = self.matrix.domain.shape if isinstance(self.matrix, Workload) else (self._dense.matrix.shape[1],)
        _same_cells(self.workload, cells)

    @classmethod
    def every_cell(cls, workload: Workload) -> MatrixRows:
        """Every cell of the domain, each by itself: tables are sums of cells."""
        cells = Tabulation(EVERY_CELL, by=workload.domain.names)
        return cls(workload, Workload.from_tabulations(workload.domain, [cells]))

    def technology(self, noise: str) -> str:
        return f"matrix mechanism with {noise} noise"

    @property
    def whole(self) -> bool:
        return isinstance(self.matrix, Workload) or self._dense.is_whole

    @property
    def size(self) -> int:
        return self.matrix.query_count if isinstance(self.matrix, Workload) else len(self._dense.matrix)

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        if isinstance(self.matrix, Workload):
            return tuple(dict.fromkeys(self._lattices))
        return (self._dense.step if self._dense.is_whole else Fraction(1),)

    def kinds(self) -> Indices:
        if not isinstance(self.matrix, Workload) or len(self.steps) == 1:
            return np.broadcast_to(np.intp(0), (self.size,))
        kinds = [self.steps.index(step) for step in self._lattices]
        return np.repeat(kinds, [table.query_count for table in self.matrix.tables])

    @cached_property
    def counted(self) -> tuple[Table, ...] | None:
        """None also where the entries of a table have a common divisor, by which its rows are divided."""
        if not isinstance(self.matrix, Workload) or any(_divisor(table) != 1 for table in self.matrix.tables):
            return None
        return _unweighted(self.matrix)

    def sensitivity(self, protection: Protection, norm: Norm) -> Sensitivity:
        if not isinstance(self.matrix, Workload):
            return self._dense.sensitivity(self.workload.domain, protection, norm)
        if protection.invariants and self.matrix.domain.shape != self.workload.domain.shape:
            raise InvalidMechanism(
                f"a strategy over numbered cells with the exact total '{protection.invariants[0].name}'",
                why="exact totals are stated by attributes, and numbered cells have none",
                instead="state the strategy over the program's domain",
            )
        found = self._strategy.sensitivity(protection, norm)
        if not self.workload.domain.structural_zeros or self._strategy.domain is self.workload.domain:
            return found
        return replace(found, exact=False, method=f"{found.method}; structural zeros not heeded")

    def count(self, counts: Integers) -> Integers:
        if isinstance(self.matrix, Workload):
            found = _count(_unweighted(self.matrix), self._strategy.domain, counts)
            if self.counted is not None:
                return found
            divisors = [_divisor(table) for table in self.matrix.tables]
            return np.asarray(found // np.repeat(divisors, [table.query_count for table in self.matrix.tables]))
        rows = (self._dense.matrix / float(self.steps[0])).astype(np.int64)
        return np.asarray(rows @ counts.reshape(-1), dtype=np.int64)

    def answers(self, measured: Integers, _: Floats | None, /) -> Floats:
        """Sums of the rows with noise; what is public takes no part in them."""
        return np.asarray(self.spread((measured * self._row_weights)[None, :])[0])

    def changed(self, cell: int) -> tuple[Integers, Integers]:
        if self.counted is not None:
            return cell_change(self.counted, self._strategy.domain.shape, cell)
        return column_change(self, cell)

    @cached_property
    def answered(self) -> Mapping[str, MixedAnswers]:
        return _answered(self.workload, self._noises, self.steps)

    def spread(self, noise: Floats) -> Floats:
        return np.concatenate([each.spread(noise) for each in self._noises], axis=1)

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        return _gathered(self.workload, self.answered[table].noise, table, numbers) * self._row_weights

    @cached_property
    def _lattices(self) -> list[Fraction]:
        """The weight of each table's rows, with the common divisor of its entries: the coarser, the less noise."""
        assert isinstance(self.matrix, Workload)
        return [table.weight * _divisor(table) for table in self.matrix.tables]

    @property
    def _row_weights(self) -> Floats:
        return np.array([float(step) for step in self.steps])[self.kinds()]

    @cached_property
    def _strategy(self) -> Workload:
        """The strategy over the workload's own domain, whose rules and groupings the promise is about; or over cells.

        A strategy brings its tables alone: combinations that only its own domain rules out can occur all the same.
        """
        assert isinstance(self.matrix, Workload)
        if self.matrix.domain.shape == self.workload.domain.shape:
            return Workload(self.workload.domain, self.matrix.tables)
        return Workload(Domain.of_shape(self.matrix.domain.shape), self.matrix.tables)

    @cached_property
    def _dense(self) -> DenseStrategy:
        matrix = self.matrix.dense() if isinstance(self.matrix, Workload) else self.matrix
        return DenseStrategy(np.asarray(matrix, dtype=np.float64))

    @cached_property
    def _noises(self) -> tuple[TableNoise, ...]:
        matrix = self.matrix
        if isinstance(matrix, Workload) and len(matrix.tables) == 1 and self._strategy.domain is self.workload.domain:
            return _from_product(self.workload, matrix.tables[0])
        return self._from_matrix()

    def _from_matrix(self) -> tuple[TableNoise, ...]:
        workload = self.workload
        require_small(workload.query_count, self.size, workload.domain.size)
        matrix, missed = reconstruct(np.asarray(workload.dense(), dtype=np.float64), self._dense.matrix)
        columns = tuple(np.flatnonzero(self.kinds() == kind) for kind in range(len(self.steps)))
        noises = []
        for table, start in zip(workload.tables, _starts(workload), strict=True):
            if missed is not None and missed < start + table.query_count:
                raise _unsupported(workload, table, missed - start)
            noises.append(DenseNoise(matrix[start : start + table.query_count], columns))
        return tuple(noises)


@dataclass(frozen=True, eq=False)
class DenseStrategy:
    """A strategy given as a matrix A, written out over the cells of a domain in row-major order."""

    matrix: Floats  # shape (rows, cells), finite

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.size == 0 or not np.all(np.isfinite(self.matrix)):
            raise InvalidMechanism(
                f"a strategy of shape {self.matrix.shape}",
                why="a strategy is a matrix of finite numbers, one column a cell",
                instead="give a matrix with at least one row and one column",
            )
        if self.matrix.size > LARGEST_STRATEGY:
            raise TooLarge(
                f"a dense strategy of {self.matrix.shape[0]:,} × {self.matrix.shape[1]:,} numbers",
                why=f"at most {LARGEST_STRATEGY:,} numbers are handled",
                instead="state the strategy as a workload, which is never written out",
            )

    @property
    def is_whole(self) -> bool:
        """Whether every entry is a whole number, small enough for differences of two to be exact."""
        return bool(np.all((self.matrix == np.rint(self.matrix)) & (np.abs(self.matrix) < 2**52)))

    @property
    def step(self) -> Fraction:
        """The common divisor of whole entries."""
        return Fraction(int(np.gcd.reduce(self.matrix.astype(np.int64), axis=None)) or 1)

    def sensitivity(self, domain: Domain, protection: Protection, norm: Norm) -> Sensitivity:
        """The largest column (add or remove) or difference of two columns (replace), of cells that can occur."""
        if protection.invariants:
            raise InvalidMechanism(
                f"a dense strategy with the exact total '{protection.invariants[0].name}'",
                why="exact totals are stated by attributes, and a bare matrix has none",
                instead="state the strategy as a workload over the program's domain",
            )
        columns = self.matrix[:, domain.possible_cells()].T
        records = Fraction(protection.most_records_per_unit) ** _power(norm)
        if protection.neighbors is Neighbors.ADD_OR_REMOVE:
            largest = _largest(columns, norm)
            return Sensitivity(norm=norm, power=records * largest, exact=True, method="the largest column")
        if len(columns) ** 2 * columns.shape[1] > LARGEST_PAIRS:
            twice = 2 ** _power(norm) * _largest(columns, norm)
            return Sensitivity(norm=norm, power=records * twice, exact=False, method="twice the largest column")
        farthest = max((_largest(columns[i + 1 :] - column, norm) for i, column in enumerate(columns[:-1])), default=0)
        # A difference of two floats is rounded: it is exact for whole numbers, otherwise stretched to stay a bound.
        if self.is_whole:
            return Sensitivity(norm=norm, power=records * farthest, exact=True, method="all pairs of columns")
        bound = Fraction(farthest) * (1 + Fraction(1, 2**40))
        return Sensitivity(norm=norm, power=records * bound, exact=False, method="all pairs of columns, rounded up")


def cell_change(tables: Sequence[Table], shape: tuple[int, ...], cell: int) -> tuple[Integers, Integers]:
    """Which numbers of tables, one table after the other, a record in a cell changes, and by how much before weights.

    From the levels of the cell: of the rest of the domain, however large, nothing is looked at.
    """
    levels = [np.array([level]) for level in np.unravel_index(cell, shape)]
    rows, sizes, start = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for table in tables:
        at, by = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        for factor, level in zip(table.factors, levels, strict=True):
            column = factor.columns(level).reshape(-1)
            there = np.flatnonzero(column)
            at = (at[:, None] * factor.rows + there).reshape(-1)
            by = (by[:, None] * column[there]).reshape(-1)
        rows.append(start + at)
        sizes.append(by)
        start += table.query_count
    return np.concatenate(rows), np.concatenate(sizes)


def column_change(rows: MatrixRows | StrategyRows, cell: int) -> tuple[Integers, Integers]:
    """The same of any rows, by counting a histogram of one record."""
    shape = rows.workload.domain.shape
    histogram = np.zeros(math.prod(shape), dtype=np.int64)
    histogram[cell] = 1
    column = rows.count(histogram.reshape(shape))
    changed = np.flatnonzero(column)
    return changed, column[changed]


def _unweighted(measured: Workload) -> tuple[Table, ...]:
    """The measured tables without their weights: counting stays in whole numbers."""
    return tuple(replace(table, weight=Fraction(1)) for table in measured.tables)


def _count(tables: tuple[Table, ...], domain: Domain, counts: Integers) -> Integers:
    """The whole numbers for a histogram, modulo 2⁶⁴: no count is too large to go on; shape (rows,)."""
    parts = apply_tables(tables, counts.reshape(domain.shape))
    return np.concatenate([part.reshape(-1) for part in parts]).astype(np.int64, copy=False)


def _starts(workload: Workload) -> list[int]:
    """The first number of each table among all of them."""
    ends = np.cumsum([table.query_count for table in workload.tables]).tolist()
    return [0, *ends[:-1]]


def _answered(workload: Workload, noises: Sequence[TableNoise], steps: tuple[Fraction, ...]) -> dict[str, MixedAnswers]:
    return {table.name: MixedAnswers(noise, steps) for table, noise in zip(workload.tables, noises, strict=True)}


def _gathered(workload: Workload, noise: TableNoise, table: str, numbers: Sequence[int]) -> Floats:
    shares = np.zeros(workload.table(table).query_count)
    np.add.at(shares, np.asarray(numbers, dtype=np.intp), 1.0)
    return noise.gathered(shares)


def _from_product(workload: Workload, strategy: Table) -> tuple[TableNoise, ...]:
    """Attribute by attribute: QA⁺ of a product is the product of the F_i·A_i⁺."""
    found: dict[object, tuple[AxisMap, int | None]] = {}
    noises: list[TableNoise] = []
    for table in workload.tables:
        maps, missed = [], []
        for axis, (asked, measured) in enumerate(zip(table.factors, strategy.factors, strict=True)):
            key = (axis, asked.key)
            if key not in found:
                found[key] = _axis_map(asked, measured)
            maps.append(found[key][0])
            missed.append(found[key][1])
        row = unsupported_row(missed, maps)
        if row is not None:
            raise _unsupported(workload, table, row)
        noises.append(KroneckerNoise(tuple(maps), strategy.shape, float(table.weight / strategy.weight)))
    return tuple(noises)


def _axis_map(asked: Factor, measured: Factor) -> tuple[AxisMap, int | None]:
    if is_identity(measured):
        return FactorMap(asked), None
    require_small(asked.rows, measured.rows, measured.size)
    matrix, missed = reconstruct(dense(asked).astype(np.float64), dense(measured).astype(np.float64))
    # Where a row is missed its reconstruction may be empty: its own length says whether it asks something.
    return (FactorMap(asked) if missed is not None else MatrixMap(matrix)), missed


def _same_cells(workload: Workload, shape: tuple[int, ...]) -> None:
    if shape not in (workload.domain.shape, (workload.domain.size,)):
        raise InvalidMechanism(
            f"a strategy over cells of shape {shape} for a domain of shape {workload.domain.shape}",
            why="a strategy measures the cells of the workload's own domain",
            instead="state the strategy over the same attributes",
        )


def _unsupported(workload: Workload, table: Table, row: int) -> UnsupportedWorkload:
    label = next(islice(workload.labels(table.name), row, None), ())
    query = f"'{', '.join(label)}' of table '{table.name}'" if label else f"table '{table.name}'"
    return UnsupportedWorkload(
        f"the strategy does not support the query {query}",
        why="no combination of its measurements gives this query (QA⁺A ≠ Q)",
        instead="add a measurement that tells these cells apart, for example the cells themselves",
    )


def _largest(columns: Floats, norm: Norm) -> Fraction:
    """The largest ‖column‖₁ or ‖column‖₂², exactly: floats are fractions, and only the leaders are added as such."""
    power = _power(norm)
    sizes = (np.abs(columns) ** power).sum(axis=1)
    leaders = columns[sizes >= sizes.max(initial=0.0) * (1 - _CLOSE)]
    different = np.unique(np.sort(np.abs(leaders), axis=1), axis=0)
    sums = (sum((Fraction(entry) ** power for entry in row[row > 0].tolist()), Fraction(0)) for row in different)
    return max(sums, default=Fraction(0))


def _divisor(table: Table) -> int:
    """The common divisor of the entries of a table, before its weight."""
    entries = [dense(factor) if factor.scales is None else factor.scales for factor in table.factors]
    return math.prod(int(np.gcd.reduce(each, axis=None)) or 1 for each in entries)


def _power(norm: Literal["l1", "l2"]) -> int:
    return 2 if norm == "l2" else 1


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

    def crossing(self, tail: float) -> float:
        return self.reach(tail)

    def smooth_tail(self, distance: float) -> float:
        """P(|S| > t) = 2·(1 − Φ(z)) + φ(z)·(z³ − 3z)·excess/12, z = t/σ (Edgeworth)."""
        if self.spread == 0.0:
            return float(distance < 0.0)
        z = distance / self.spread
        normal = NormalDist()
        return min(max(2 * normal.cdf(-z) + normal.pdf(z) * (z**3 - 3 * z) * self.excess / 12, 0.0), 1.0)


Error: TypeAlias = Combination | NearlyNormal


@dataclass(frozen=True, eq=False)
class StrategyRows:
    """The rows of a strategy that was optimized for a workload, and for the neighbors of a protection."""

    strategy: ExactStrategy
    direct: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    counted: ClassVar[None] = None
    needs_public: ClassVar[bool] = True

    __repr__ = one_line

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

    def count(self, counts: Integers) -> Integers:
        return self.strategy.count(counts)

    def answers(self, measured: Integers, public: Floats | None, /) -> Floats:
        return self.strategy.reconstruct(measured, public)

    def changed(self, cell: int) -> tuple[Integers, Integers]:
        return column_change(self, cell)

    @cached_property
    def answered(self) -> Mapping[str, StrategyAnswers]:
        return {table.name: StrategyAnswers(self, table.name) for table in self.workload.tables}

    def spread(self, noise: Floats) -> Floats:
        if noise.shape[1] * self.workload.query_count <= LARGEST_WRITTEN_OUT:
            tables = [self.strategy.query_rows(each.name, range(each.query_count)) for each in self.workload.tables]
            return np.asarray(noise @ np.concatenate(tables).T)
        nothing = np.zeros(self.workload.domain.shape)
        weights = self.strategy.row_weights
        return np.array([self.strategy.reconstruct(each / weights, like=nothing) for each in noise])

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        rows, shares = self.strategy.taken(table, numbers)
        return _spread_out(rows, shares, self.size)

    def taken(self, table: str, numbers: Sequence[int]) -> tuple[Indices, Floats]:
        """The same of the rows that it takes anything of: which, and how much."""
        return self.strategy.taken(table, numbers)

    @cached_property
    def laws(self) -> dict[tuple[float, ...], dict[bytes, RememberedError]]:
        """The errors that were worked out, by the variances of the noise and by what an answer takes of it."""
        return {}

    @cached_property
    def _kinds(self) -> Indices:
        return self.strategy.kinds()


@dataclass(frozen=True, eq=False)
class RememberedError:
    """The error of an answer, each number of it worked out once."""

    error: Combination | NearlyNormal

    @cached_property
    def mean_absolute(self) -> float:
        return self.error.mean_absolute

    def reach(self, tail: float) -> float:
        return self._once("reach", tail)

    def crossing(self, tail: float) -> float:
        return self._once("crossing", tail)

    def smooth_tail(self, distance: float) -> float:
        return self._once("smooth_tail", distance)

    @cached_property
    def _known(self) -> dict[tuple[str, float], float]:
        return {}

    def _once(self, what: str, at: float) -> float:
        if (what, at) not in self._known:
            self._known[what, at] = float(getattr(self.error, what)(at))
        return self._known[what, at]


@dataclass(frozen=True, eq=False)
class StrategyAnswers:
    """The answers of one table from the rows of a strategy."""

    rows: StrategyRows
    table: str
    independent: ClassVar[bool] = False
    single: ClassVar[None] = None

    __repr__ = one_line

    @property
    def sums(self) -> Floats:
        return self.rows.strategy.table_sums(self.table)

    def variances(self, of_row: Callable[[Fraction], float]) -> Floats:
        return self.rows.strategy.query_variances(self.table, of_row)

    def mean_absolute(self, noises: Sequence[Distribution]) -> float:
        return float(self._scaled(noises, lambda error: error.mean_absolute, least=False).sum())

    def reaches(self, noises: Sequence[Distribution], tail: float) -> Floats:
        """Worked out for queries from the least to the most noisy; others take the widest, in standard deviations."""
        return self._scaled(noises, lambda error: error.reach(tail), least=True)

    def misses(self, noises: Sequence[Distribution], distance: float) -> float:
        """Worked out for queries from the least to the most noisy; between them its logarithm is interpolated."""
        spreads, chosen, found = self._found(noises, lambda error: error.smooth_tail(distance))
        logs = np.log(np.maximum(found, 1e-300))
        return float(np.exp(np.interp(spreads, spreads[chosen], logs)).sum()) if found.any() else 0.0

    def widest(self, noises: Sequence[Distribution], tail: float) -> float:
        return float(self._scaled(noises, lambda error: error.crossing(tail), least=True).max())

    def _scaled(self, noises: Sequence[Distribution], of: Callable[[RememberedError], float], *, least: bool) -> Floats:
        """A number that grows with the error's spread, for each query: its standard deviation times a ratio.

        The ratio is worked out for some queries, and between them interpolated, or (`least`) the largest of all.
        """
        spreads, chosen, found = self._found(noises, of)
        ratios = found / np.maximum(spreads[chosen], 1e-300)
        if least and len(chosen) == REPRESENTATIVES:
            return np.asarray(spreads * ratios.max())
        return np.asarray(spreads * np.interp(spreads, spreads[chosen], ratios))

    def _found(
        self, noises: Sequence[Distribution], of: Callable[[RememberedError], float]
    ) -> tuple[Floats, Indices, Floats]:
        """The standard deviation of each error, some queries of increasing ones, and a number worked out for these."""
        by_step = {step: noise.variance for step, noise in zip(self.rows.steps, noises, strict=True)}
        spreads = np.sqrt(self.variances(by_step.__getitem__))
        chosen = _representatives(spreads)
        kinds, excesses = self.rows.kinds(), [_excess(noise) for noise in noises]
        found, laws = [], self.rows.laws.setdefault(tuple(noise.variance for noise in noises), {})
        for number in chosen.tolist():
            rows, shares = self.rows.taken(self.table, [number])
            sizes = np.abs(shares) / self.rows.strategy.row_weights[rows]
            order = np.lexsort((sizes, kinds[rows]))
            law = np.round(sizes[order], SAME_SHARE).tobytes() + kinds[rows][order].tobytes()
            if law not in laws:  # numbers of many tables have errors of one law
                laws[law] = RememberedError(error_of_shares(sizes, kinds[rows], noises, excesses))
            found.append(of(laws[law]))
        return spreads, chosen, np.array(found)


def _spread_out(rows: Indices, shares: Floats, size: int) -> Floats:
    if len(shares) == size:
        return shares
    found = np.zeros(size)
    found[rows] = shares
    return found


def error_of_shares(
    shares: Floats, kinds: Indices, noises: Sequence[Distribution], excesses: Sequence[float] | None = None
) -> Error:
    """The error of one answer: nearly normal where many rows share in it, else the leading ones and a lump.

    `shares` ≥ 0 of the noise of each weighted row, the kind of each, and the noise of each kind with its excess
    kurtosis, where that is known.
    """
    variances = np.array([noise.variance for noise in noises])[kinds] * shares**2
    total = float(variances.sum())
    if total == 0.0:  # decided by what is public, or noise that is almost surely 0
        return NearlyNormal(0.0, 0.0)
    fourths = np.array(excesses or [_excess(noise) for noise in noises])[kinds] * variances**2
    excess = float(np.sum(fourths / total / total))
    if excess < NEARLY_NORMAL and float(variances.max(initial=0.0)) < LARGEST_SHARE * total:
        return NearlyNormal(math.sqrt(total), excess)
    order = np.argsort(-variances, kind="stable")
    leading, rest = order[:LEADING], float(variances[order[LEADING:]].sum())
    terms = []
    for kind in np.unique(kinds[leading]):
        here = np.round(shares[leading[kinds[leading] == kind]], 12)
        distinct, counts = np.unique(here[here > 0], return_counts=True)
        terms.append(Term(noises[kind], distinct, counts.astype(np.float64)))
    if rest > 1e-12 * total:
        noise = noises[kinds[order[LEADING]]]
        terms.append(Term(noise, np.array([math.sqrt(rest / LUMPED / noise.variance)]), np.array([float(LUMPED)])))
    return Combination(tuple(terms))


Rows: TypeAlias = TableRows | MatrixRows | StrategyRows


@dataclass(frozen=True)
class DecidedAnswers:
    """The answers of a table that public totals decide: no noise reaches them."""

    query_count: int
    kinds: int
    independent: ClassVar[bool] = True

    @property
    def sums(self) -> Floats:
        return np.zeros(self.kinds)

    @property
    def single(self) -> Floats:
        return np.zeros(self.kinds)

    def variances(self, _: Callable[[Fraction], float], /) -> Floats:
        return np.zeros(self.query_count)

    def mean_absolute(self, _: Sequence[Distribution], /) -> float:
        return 0.0

    def reaches(self, _: Sequence[Distribution], _tail: float, /) -> Floats:
        return np.zeros(self.query_count)

    def misses(self, _: Sequence[Distribution], _distance: float, /) -> float:
        return 0.0

    def widest(self, _: Sequence[Distribution], _tail: float, /) -> float:
        return 0.0


Answers: TypeAlias = MixedAnswers | StrategyAnswers | DecidedAnswers


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
