"""What is asked: all tables of a program over one domain, as one implicit query matrix Q."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.population import Counts, Domain, Protection
from dualmandate.population.arguments import checked_call, checked_class, expected
from dualmandate.population.arrays import Floats
from dualmandate.population.rational import Written, rational
from dualmandate.population.shown import cut_line
from dualmandate.workload.factor import (
    AllRange,
    Dense,
    Factor,
    Groups,
    Identity,
    Numbers,
    Prefix,
    Total,
    affordable,
    dense,
    gram,
    require_levels,
)
from dualmandate.workload.sensitivity import Norm, Sensitivity, sensitivity_of
from dualmandate.workload.table import Table, Tabulation, apply_tables, apply_tables_transpose

LARGEST_ANSWERS = 2**28  # queries answered at once; 2 GiB of 64-bit numbers
ONE_PERSON = Protection()
MOST_TABLES = 10**5  # of one workload


@checked_class
@dataclass(frozen=True, eq=False)
class Workload:
    """A union of weighted products over a domain (the paper's Q, queries × |χ|), never written out.

    Queries are numbered table by table, row-major within a table in the domain's order of attributes. Where all weights
    are whole, integer counts give integer answers.
    """

    domain: Domain
    tables: tuple[Table, ...]

    def __repr__(self) -> str:
        names = ", ".join(f"'{table.name}' {table.query_count:,}" for table in self.tables)
        return cut_line(f"Workload({self.query_count:,} queries of {self.domain.size:,} cells: {names})")

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
        return cls(domain, tuple(tabulation.table(domain) for tabulation in tabulations))

    @cached_property
    def query_count(self) -> int:
        """Number of queries of all tables (an exact integer, however large)."""
        return sum(table.query_count for table in self.tables)

    @property
    def shape(self) -> tuple[int, int]:
        return self.query_count, self.domain.size

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def table(self, name: str) -> Table:
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

    def answers_from(self, counts: Counts) -> NDArray[Any]:
        """Qx for counts on a domain of any size, each table from the marginal it asks about; shape (query_count,)."""
        return np.concatenate([self._answers_of(table, counts) for table in self.tables])

    def _answers_of(self, table: Table, counts: Counts) -> NDArray[Any]:
        # The total of all records is that of any attribute's marginal.
        axes = tuple(axis for axis, factor in enumerate(table.factors) if not isinstance(factor, Total)) or (0,)
        marginal = counts.project(self.domain.names[axis] for axis in axes)
        alone = Table(table.name, tuple(table.factors[axis] for axis in axes), table.weight)
        return Workload(marginal.domain, (alone,)).answers(marginal.counts)

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

    def dense(self) -> Floats:
        """Q written out; refused where it would not fit."""
        affordable(self.query_count, self.domain.size, "a dense query matrix")
        blocks = [float(table.weight) * reduce(np.kron, map(dense, table.factors)) for table in self.tables]
        return np.concatenate(blocks).astype(np.float64)

    def gram(self) -> Floats:
        """QᵀQ, |χ| × |χ|; refused where it would not fit."""
        affordable(self.domain.size, self.domain.size, "a Gram matrix")
        total = np.zeros((self.domain.size, self.domain.size))
        for table in self.tables:
            total += float(table.weight**2) * reduce(np.kron, map(gram, table.factors)).astype(np.float64)
        return total

    def sensitivity(self, protection: Protection = ONE_PERSON, norm: Norm = "l1") -> Sensitivity:
        """How far one protected unit can move the answers: ΔQ in the L1 or the L2 norm."""
        if (protection, norm) not in self._sensitivities:
            self._sensitivities[protection, norm] = sensitivity_of(self.domain, self.tables, protection, norm)
        return self._sensitivities[protection, norm]

    @cached_property
    def _sensitivities(self) -> dict[tuple[Protection, Norm], Sensitivity]:
        return {}  # worked out once: every kind of noise asks for the same

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


@checked_call
def identity(size: int) -> Workload:
    """Each of n cells by itself."""
    return _single("identity", Identity(size))


@checked_call
def total(size: int) -> Workload:
    """All n cells together."""
    return _single("total", Total(size))


@checked_call
def prefix(size: int) -> Workload:
    """The n sums of the first 1, 2, …, n cells."""
    return _single("prefix", Prefix(size))


@checked_call
def all_range(size: int) -> Workload:
    """The n(n + 1)/2 sums over ranges of consecutive cells."""
    return _single("all range", AllRange(size))


@checked_call
def groups(size: int, lists_of_cells: Iterable[Sequence[int]]) -> Workload:
    """Sums over groups of n cells, each a list of cell numbers from 0; groups may overlap."""
    require_levels(size)
    return _single("groups", Groups.of_lists(size, lists_of_cells))


def explicit(matrix: ArrayLike) -> Workload:
    """Any small matrix of numbers, queries × cells, taken exactly as written (0.1 means 1/10)."""
    array = np.asarray(matrix)
    if array.ndim != 2 or array.size == 0:
        raise InvalidWorkload(
            f"a query matrix of shape {array.shape}",
            why="queries are rows of numbers over cells",
            instead="give a matrix with at least one row and one column",
        )
    affordable(len(array), array.shape[1], "a dense query matrix")
    if array.dtype.kind in "iub":
        return _single("explicit", Dense(array.astype(np.int64)))
    exact = [_number(number, "an entry of a query matrix") for number in array.reshape(-1).tolist()]
    denominator = math.lcm(*(number.denominator for number in exact))
    numerators = [int(number * denominator) for number in exact]
    if max(map(abs, numerators)) >= 2**62:
        raise TooLarge(
            "a query matrix whose entries have no common denominator below 2^62",
            why="entries are kept exactly, as integers over one denominator",
            instead="round the entries to fewer digits",
        )
    whole = np.array(numerators, dtype=np.int64).reshape(array.shape)
    return _single("explicit", Dense(whole), Fraction(1, denominator))


@checked_call
def kron(*workloads: Workload) -> Workload:
    """All combinations of a query of each workload, over the product of their domains.

    Tables are the products of tables, the last workload's running fastest; within a table queries are row-major.
    """
    for each in workloads:
        expected(each, Workload, what="a workload", instead="make one: identity(100)")
    if not workloads:
        raise InvalidWorkload("a product of nothing", why="there is no domain", instead="give at least one workload")
    if math.prod(len(workload.tables) for workload in workloads) > MOST_TABLES:
        raise TooLarge(
            f"a product of workloads with more than {MOST_TABLES:,} tables",
            why="each combination of tables is a table of its own",
            instead="multiply smaller workloads",
        )
    tables = [
        Table(
            " × ".join(part.name for part in parts),
            tuple(factor for part in parts for factor in part.factors),
            math.prod((part.weight for part in parts), start=Fraction(1)),
            _shifted([part.label_axes for part in parts], [len(part.factors) for part in parts]),
            math.prod((part.grid for part in parts), start=Fraction(1)),
        )
        for parts in product(*(workload.tables for workload in workloads))
    ]
    return Workload(_product_domain([workload.domain for workload in workloads]), tuple(tables))


@checked_call
def stack(*workloads: Workload, weights: Sequence[Written] | None = None) -> Workload:
    """All queries of several workloads over one domain, each workload times its weight (> 0)."""
    if not workloads:
        raise InvalidWorkload("a stack of nothing", why="there is no domain", instead="give at least one workload")
    domain = workloads[0].domain
    if any(workload.domain != domain for workload in workloads):
        raise InvalidWorkload(
            f"workloads over domains of shapes {', '.join(str(each.domain.shape) for each in workloads)} are stacked",
            why="queries of one workload are asked about the same cells",
            instead="build them over one domain",
        )
    exact = [Fraction(1)] * len(workloads) if weights is None else [_number(each, "a weight") for each in weights]
    if len(exact) != len(workloads) or any(weight <= 0 for weight in exact):
        raise InvalidWorkload(
            f"{len(exact)} weights for {len(workloads)} workloads, or one that is not positive",
            why="each workload has a weight, and one that weighs nothing asks nothing",
            instead="give one positive weight a workload",
        )
    tables = [
        replace(table, weight=weight * table.weight)
        for workload, weight in zip(workloads, exact, strict=True)
        for table in workload.tables
    ]
    return Workload(domain, tuple(_named_apart(tables)))


@checked_call
def marginals(shape: Iterable[int], order: int | Iterable[int]) -> Workload:
    """All marginals of exactly `order` attributes of a domain of that shape; several orders give their union."""
    domain = Domain.of_shape(shape)
    dimensions = len(domain.shape)
    orders = (order,) if isinstance(order, int) else tuple(order)
    if not orders or any(not 0 <= each <= dimensions for each in orders) or len(set(orders)) < len(orders):
        raise InvalidWorkload(
            f"marginals of {', '.join(map(str, orders)) or 'no'} attributes out of {dimensions}",
            why=f"a marginal keeps between 0 and {dimensions} attributes, and each order is asked for once",
            instead=f"give orders from 0 to {dimensions}",
        )
    if sum(math.comb(dimensions, each) for each in orders) > MOST_TABLES:
        raise TooLarge(
            f"more than {MOST_TABLES:,} marginals of {dimensions} attributes",
            why="each marginal is a table of its own",
            instead="ask for lower orders, or for fewer attributes",
        )
    tables = []
    for kept in chain.from_iterable(combinations(range(dimensions), each) for each in orders):
        factors = tuple(Identity(n) if axis in kept else Total(n) for axis, n in enumerate(domain.shape))
        tables.append(Table(" × ".join(domain.names[axis] for axis in kept) or "total", factors, axes=kept))
    return Workload(domain, tuple(tables))


def _single(name: str, factor: Factor, weight: Fraction = Fraction(1)) -> Workload:
    return Workload(Domain.of_shape((factor.size,)), (Table(name, (factor,), weight),))


def _shifted(axes: Sequence[tuple[int, ...]], lengths: Sequence[int]) -> tuple[int, ...]:
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return tuple(start + axis for start, each in zip(starts, axes, strict=True) for axis in each)


def _product_domain(domains: Sequence[Domain]) -> Domain:
    """The product of labeled domains keeps its names where they are all different."""
    names = [name for domain in domains for name in domain.names]
    if len(set(names)) < len(names):
        return Domain.of_shape(size for domain in domains for size in domain.shape)
    return Domain(
        tuple(attribute for domain in domains for attribute in domain.attributes),
        tuple(hierarchy for domain in domains for hierarchy in domain.hierarchies),
        tuple(zero for domain in domains for zero in domain.structural_zeros),
    )


def _named_apart(tables: Iterable[Table]) -> Iterable[Table]:
    taken: set[str] = set()
    for table in tables:
        name, number = table.name, 1
        while name in taken:
            number += 1
            name = f"{table.name} ({number})"
        taken.add(name)
        yield table if name == table.name else replace(table, name=name)


def _number(number: Any, what: str) -> Fraction:
    try:
        return rational(number)
    except (ValueError, TypeError):
        raise InvalidWorkload(
            f"{what} is {number}", why="it is not a finite number", instead="give a finite number"
        ) from None
