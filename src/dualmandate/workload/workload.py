"""What is asked: all tables of a program over one domain, as one implicit query matrix Q."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.population import Domain, Protection
from dualmandate.workload.columns import gram
from dualmandate.workload.evaluation import apply_tables, apply_tables_transpose
from dualmandate.workload.factor import Numbers, affordable, dense
from dualmandate.workload.levels import column_classes
from dualmandate.workload.sensitivity import Norm, Sensitivity, sensitivity_of
from dualmandate.workload.table import Table
from dualmandate.workload.tabulation import Tabulation

LARGEST_ANSWERS = 2**28  # queries answered at once; 2 GiB of 64-bit numbers
ONE_PERSON = Protection()


@dataclass(frozen=True, eq=False)
class Workload:
    """A union of weighted products over a domain (the paper's Q, queries × |χ|), never written out.

    Queries are numbered table by table, row-major within a table in the domain's order of attributes. Where all weights
    are whole, integer counts give integer answers.
    """

    domain: Domain
    tables: tuple[Table, ...]

    def __post_init__(self) -> None:
        if not self.tables:
            raise InvalidWorkload(
                "a workload without tables", why="there is nothing to publish", instead="ask for at least one table"
            )
        names = [table.name for table in self.tables]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidWorkload(
                f"two tables are called '{twice}'",
                why="values, errors and answers are given by the name of a table",
                instead="give each table its own name",
            )
        for table in self.tables:
            if tuple(factor.size for factor in table.factors) != self.domain.shape:
                raise InvalidWorkload(
                    f"the table '{table.name}' does not fit a domain of shape {self.domain.shape}",
                    why="a table has one query matrix an attribute, one column a level",
                    instead="build it over this domain",
                )

    @classmethod
    def from_tabulations(cls, domain: Domain, tabulations: Iterable[Tabulation]) -> Workload:
        """The workload of some tabulations over a domain."""
        return cls(domain, tuple(tabulation.table(domain) for tabulation in tabulations))

    @property
    def query_count(self) -> int:
        """Number of queries of all tables (an exact integer, however large)."""
        return sum(table.query_count for table in self.tables)

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and cells."""
        return self.query_count, self.domain.size

    @property
    def squared_norm(self) -> Fraction:
        """Σ of all squared entries of Q (‖Q‖²_F, the trace of QᵀQ)."""
        return sum((table.squared_norm for table in self.tables), Fraction(0))

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def table(self, name: str) -> Table:
        """The table of that name."""
        if name not in self._by_name:
            raise InvalidWorkload(
                f"there is no table '{name}'",
                why=f"the workload has {', '.join(list(self._by_name)[:12])}",
                instead="use one of these names",
            )
        return self._by_name[name]

    def only(self, names: Iterable[str]) -> Workload:
        """The workload of some of the tables, in the given order."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        return Workload(self.domain, tuple(self.table(name) for name in wanted))

    def labels(self, table_name: str) -> Iterator[tuple[str, ...]]:
        """For each answer of a table, in order, what it counts: a level or group for each name of its `by`."""
        return self.table(table_name).labels([attribute.levels for attribute in self.domain.attributes])

    def answers(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Qx for a histogram x, dense or flattened; shape (query_count,)."""
        self._answerable()
        applied = apply_tables(self.tables, self._histogram(counts))
        whole = all(table.weight.denominator == 1 for table in self.tables)
        parts = (_weighted(values, table.weight, whole) for values, table in zip(applied, self.tables, strict=True))
        return np.concatenate([part.reshape(-1) for part in parts])

    def table_answers(self, name: str, counts: NDArray[Any]) -> NDArray[Any]:
        """The answers of one table; shape (query_count of the table,)."""
        return self.only((name,)).answers(counts)

    def transpose_answers(self, answers: NDArray[Any]) -> NDArray[Any]:
        """Qᵀy for one number a query; in the shape of the domain."""
        self._answerable()
        if answers.shape != (self.query_count,):
            raise InvalidWorkload(
                f"{answers.shape} numbers were given for {self.query_count:,} queries",
                why="there is one number a query",
                instead="stack the tables in their order",
            )
        whole = answers.dtype.kind in "iu" and all(table.weight.denominator == 1 for table in self.tables)
        cuts = np.cumsum([table.query_count for table in self.tables])[:-1]
        parts = [
            _weighted(part.reshape(table.shape), table.weight, whole)
            for part, table in zip(np.split(answers, cuts), self.tables, strict=True)
        ]
        added = apply_tables_transpose(self.tables, parts)
        # One table alone may give a view of its own numbers.
        return added if added.flags.owndata and added.flags.writeable and added.base is None else np.array(added)

    def dense(self) -> NDArray[np.float64]:
        """Q written out; refused where it would not fit."""
        affordable(self.query_count, self.domain.size, "a dense query matrix")
        blocks = [float(table.weight) * reduce(np.kron, map(dense, table.factors)) for table in self.tables]
        return np.concatenate(blocks).astype(np.float64)

    def gram(self) -> NDArray[np.float64]:
        """QᵀQ, |χ| × |χ|; refused where it would not fit."""
        affordable(self.domain.size, self.domain.size, "a Gram matrix")
        total = np.zeros((self.domain.size, self.domain.size))
        for table in self.tables:
            total += float(table.weight**2) * reduce(np.kron, map(gram, table.factors)).astype(np.float64)
        return total

    def column_classes(self) -> tuple[NDArray[np.int64], ...]:
        """For each attribute, classes of levels that every table treats alike; shape (size,) each."""
        return tuple(
            column_classes(list({table.factors[axis].key: table.factors[axis] for table in self.tables}.values()), size)
            for axis, size in enumerate(self.domain.shape)
        )

    def sensitivity(self, protection: Protection = ONE_PERSON, norm: Norm = "l1") -> Sensitivity:
        """How far one protected unit can move the answers: ΔQ in the L1 or the L2 norm."""
        if norm not in ("l1", "l2"):
            raise InvalidWorkload(
                f"a sensitivity in the norm '{norm}'",
                why="noise is set by the sum or by the squares of changes",
                instead="ask for 'l1' or 'l2'",
            )
        return sensitivity_of(self.domain, self.tables, protection, norm)

    def _answerable(self) -> None:
        if self.query_count > LARGEST_ANSWERS or self.domain.size > LARGEST_ANSWERS:
            raise TooLarge(
                f"answers to {self.query_count:.3g} queries about {self.domain.size:.3g} cells were asked for",
                why=f"at most {LARGEST_ANSWERS:,} of either are held at once",
                instead="ask for fewer or smaller tables",
            )

    def _histogram(self, counts: NDArray[Any]) -> Numbers:
        if counts.shape not in (self.domain.shape, (self.domain.size,)):
            raise InvalidWorkload(
                f"counts of shape {counts.shape} do not fit a domain of shape {self.domain.shape}",
                why="a histogram has one count a cell",
                instead="give the counts in the shape of the domain, or flattened in row-major order",
            )
        values = counts.reshape(self.domain.shape)
        if values.dtype.kind not in "iub":
            return values.astype(np.float64, copy=False)
        largest = max(math.prod((table.largest_entry, math.ceil(table.weight))) for table in self.tables)
        lowest, highest = int(values.min()), int(values.max())
        records = int(values.sum(dtype=np.float64)) if lowest >= 0 else max(-lowest, highest) * values.size
        if records * largest >= 2**62:
            raise TooLarge(
                "answers beyond 64-bit integers",
                why="a sum of these counts with these weights may not fit",
                instead="choose a coarser grid for the summed number",
            )
        return values.astype(np.int64, copy=False)


def _weighted(values: Numbers, weight: Fraction, whole: bool) -> Numbers:
    if whole and values.dtype.kind in "iu":
        return values if weight == 1 else values * int(weight)
    return values.astype(np.float64) if weight == 1 else values * (weight.numerator / weight.denominator)
