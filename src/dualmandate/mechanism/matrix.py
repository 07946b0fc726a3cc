"""The matrix mechanism: measure a strategy A well, and put the answers together from it (the paper's Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, UnsupportedWorkload
from dualmandate.mechanism.additive import norm_of
from dualmandate.mechanism.dense_strategy import DenseStrategy
from dualmandate.mechanism.lattice import lattice_of
from dualmandate.mechanism.mechanism import EVERY_PERSON, NoiseLaw
from dualmandate.mechanism.production import Measured, NoiseProduction, TableNoise
from dualmandate.mechanism.reconstruction import (
    AxisMap,
    DenseNoise,
    FactorMap,
    KroneckerNoise,
    MatrixMap,
    is_identity,
    reconstruct,
    require_small,
    unsupported_row,
)
from dualmandate.population import Currency, Domain, Protection
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import Factor, dense


@dataclass(frozen=True, eq=False)
class MatrixMechanism:
    """Noise on a strategy's answers, and the workload's answers from these: M(x) = Qx + QA⁺·e.

    I = −Var(e)·(ΔA)²·‖QA⁺‖²_F for scaled noise. The strategy is a workload over the same domain, or a matrix over its
    cells. It must support the workload: QA⁺A = Q. A strategy of one product (the identity, say) is never written out.
    Source: [AS19] Theorem 2; [LMHMR15].
    """

    strategy: Workload | NDArray[np.float64] | NDArray[np.int64]
    law: NoiseLaw

    @property
    def name(self) -> str:
        """The technology in words."""
        return f"matrix mechanism with {self.law.name} noise"

    @property
    def currency(self) -> Currency:
        """What its privacy loss is counted in."""
        return self.law.currency

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> NoiseProduction:
        """What it produces for a workload that its strategy supports."""
        if isinstance(self.strategy, Workload):
            strategy = _over_the_same_cells(workload, self.strategy, protection)
            sensitivity = strategy.sensitivity(protection, norm_of(self.currency))
            if workload.domain.structural_zeros and strategy.domain is not workload.domain:
                method = f"{sensitivity.method}; structural zeros not heeded"
                sensitivity = replace(sensitivity, exact=False, method=method)
            measured = tuple(Measured(table.query_count, lattice_of(self.law, table)) for table in strategy.tables)
            is_product = len(measured) == 1 and strategy.domain is workload.domain
            product = strategy.tables[0] if is_product else None
            noises = self._from_matrix(workload, measured) if product is None else _from_product(workload, product)
        else:
            _same_cells(workload, (self._dense.matrix.shape[1],))
            self._check_whole()
            sensitivity = self._dense.sensitivity(workload.domain, protection, norm_of(self.currency))
            measured = (Measured(self._dense.rows, self._dense.step if self.law.needs_whole_numbers else Fraction(1)),)
            noises = self._from_matrix(workload, measured)
        return NoiseProduction(self.name, workload, protection, self.law, sensitivity, measured, noises)

    @cached_property
    def _dense(self) -> DenseStrategy:
        matrix = self.strategy.dense() if isinstance(self.strategy, Workload) else self.strategy
        return DenseStrategy(np.asarray(matrix, dtype=np.float64))

    def _from_matrix(self, workload: Workload, measured: tuple[Measured, ...]) -> tuple[TableNoise, ...]:
        require_small(workload.query_count, sum(block.rows for block in measured), workload.domain.size)
        matrix, missed = reconstruct(np.asarray(workload.dense(), dtype=np.float64), self._dense.matrix)
        steps = list(dict.fromkeys(block.step for block in measured))
        source = np.repeat([steps.index(block.step) for block in measured], [block.rows for block in measured])
        columns = tuple(np.flatnonzero(source == i) for i in range(len(steps)))
        noises, start = [], 0
        for table in workload.tables:
            if missed is not None and missed < start + table.query_count:
                raise _unsupported(workload, table, missed - start)
            noises.append(DenseNoise(matrix[start : start + table.query_count], columns))
            start += table.query_count
        return tuple(noises)

    def _check_whole(self) -> None:
        if self.law.needs_whole_numbers and not self._dense.is_whole:
            raise InvalidMechanism(
                f"{self.law.name} noise on a strategy with fractions",
                why="its promise holds for measurements that change by whole numbers",
                instead="scale the rows to whole numbers, state the strategy as a weighted workload, or use laplace",
            )


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


def _over_the_same_cells(workload: Workload, strategy: Workload, protection: Protection) -> Workload:
    """The strategy over the workload's own domain, whose rules and groupings the promise is about; or over its cells.

    A strategy brings its tables alone: combinations that only its own domain rules out can occur all the same.
    """
    _same_cells(workload, strategy.domain.shape)
    if strategy.domain.shape == workload.domain.shape:
        return Workload(workload.domain, strategy.tables)
    if protection.invariants:
        raise InvalidMechanism(
            f"a strategy over numbered cells with the exact total '{protection.invariants[0].name}'",
            why="exact totals are stated by attributes, and numbered cells have none",
            instead="state the strategy over the program's domain",
        )
    return Workload(Domain.of_shape(strategy.domain.shape), strategy.tables)


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
