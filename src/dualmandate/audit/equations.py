"""What published tables say of unknown records: equations over the counts of a file's cells.

The unknowns are not people but cells: how many records have each combination of values. A published number is one
equation, Σ a·x = y with whole coefficients, or one inequality where it was rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidTables
from dualmandate.population.arrays import Integers
from dualmandate.workload import Workload

LARGEST_COUNT = 2**31  # A published count above this is no count of people.


@dataclass(frozen=True, eq=False)
class Equations:
    """The left-hand sides, shared by every place for which the same tables are published (rows × unknown cells).

    Row r holds the coefficients `coefficients[starts[r]:starts[r + 1]]` at the unknowns `cells[…]`. `names` say where a
    row was published, for words.
    """

    starts: Integers = field(repr=False)  # (rows + 1,)
    cells: Integers = field(repr=False)
    coefficients: Integers = field(repr=False)
    size: int  # number of unknowns
    names: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of_workload(cls, workload: Workload) -> Equations:
        """The equations of tables over the cells of their domain, row-major; structural zeros are no unknowns' fault.

        Tables are counted without their weights: a weight is public and can be divided out.
        """
        from scipy.sparse import csr_array, kron, vstack

        parts, names = list[Any](), list[str]()
        for table in workload.tables:
            matrix = csr_array(np.ones((1, 1), dtype=np.int64))
            for factor in table.factors:
                matrix = csr_array(kron(matrix, csr_array(factor.columns(np.arange(factor.size))), format="csr"))
            parts.append(matrix)
            levels = [attribute.levels for attribute in workload.domain.attributes]
            names.extend(f"{table.name}: {', '.join(label)}".rstrip(": ") for label in table.labels(levels))
        return cls.of_matrix(vstack(parts, format="csr"), names)

    @classmethod
    def of_matrix(cls, matrix: Any, names: Sequence[str] = ()) -> Equations:
        """From a sparse or dense matrix of whole numbers, rows × unknowns."""
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        rows.eliminate_zeros()
        parts = (each.astype(np.int64) for each in (rows.indptr, rows.indices, rows.data))
        return cls(*parts, int(rows.shape[1]), tuple(names))

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def by_cell(self) -> tuple[Integers, Integers]:
        """For each unknown where its rows start, and these rows."""
        order = np.argsort(self.cells, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.cells, minlength=self.size))]).astype(np.int64)
        return starts, np.repeat(np.arange(self.rows), np.diff(self.starts))[order].astype(np.int64)

    @property
    def structure(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """What a compiled loop needs: by row its start, unknowns and coefficients, by unknown its start and rows."""
        return self.starts, self.cells, self.coefficients, *self.by_cell

    @cached_property
    def matrix(self) -> Any:
        """The same as a sparse matrix, rows × unknowns."""
        from scipy.sparse import csr_array

        parts = (self.coefficients, self.cells, self.starts)
        return csr_array(parts, shape=(self.rows, self.size), copy=True)  # it may sort its rows in place

    def of(self, counts: NDArray[Any]) -> Integers:
        """What would be published of some counts; shape (…, rows) from (…, unknowns)."""
        return np.asarray((self.matrix @ counts.reshape(-1, self.size).T).T.reshape(*counts.shape[:-1], self.rows))

    def name(self, row: int) -> str:
        return self.names[row] if self.names else f"number {row + 1}"

    def only(self, rows: Integers) -> Equations:
        """The equations of some rows, in their order."""
        return Equations.of_matrix(self.matrix[rows], [self.name(int(row)) for row in rows] if self.names else ())

    def without(self, dropped: Mapping[str, Any] | set[str]) -> Equations:
        """The equations without tables of some names (the part of a row's name before its colon)."""
        kept = [row for row in range(self.rows) if self.name(row).split(":")[0] not in dropped]
        return Equations.of_matrix(self.matrix[kept], [self.name(row) for row in kept])


def checked_values(equations: Equations, values: NDArray[Any]) -> Integers:
    """Published numbers as whole numbers, one row of them a place; refused where they cannot be counts."""
    given = np.atleast_2d(np.asarray(values))
    if given.shape[-1] != equations.rows:
        raise InvalidTables(
            f"{given.shape[-1]:,} numbers are given for {equations.rows:,} places of tables",
            why="every published number belongs to one equation",
            instead="give one number for each",
        )
    whole = given.astype(np.int64)
    wrong = np.argwhere((whole != given) | (whole < 0) | (whole > LARGEST_COUNT))
    if wrong.size:
        place, row = (int(each) for each in wrong[0])
        raise InvalidTables(
            f"'{equations.name(row)}' of place {place + 1} is {given[place, row]}",
            why="exact tables are whole numbers from 0 on",
            instead="give counts; noisy or rounded tables are for the attack on noisy tables",
        )
    return whole
