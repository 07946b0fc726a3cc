"""The words for query matrices: workloads over unlabeled domains, and how to combine them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.population import Domain
from dualmandate.population.rational import Written, rational
from dualmandate.workload.factor import AllRange, Factor, Identity, Prefix, Total, affordable, require_levels
from dualmandate.workload.listed import Dense, Groups
from dualmandate.workload.table import Table
from dualmandate.workload.workload import Workload

MOST_TABLES = 10**5  # of one workload


def identity(size: int) -> Workload:
    """Each of n cells by itself."""
    return _single("identity", Identity(size))


def total(size: int) -> Workload:
    """All n cells together."""
    return _single("total", Total(size))


def prefix(size: int) -> Workload:
    """The n sums of the first 1, 2, …, n cells."""
    return _single("prefix", Prefix(size))


def all_range(size: int) -> Workload:
    """The n(n + 1)/2 sums over ranges of consecutive cells."""
    return _single("all range", AllRange(size))


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


def kron(*workloads: Workload) -> Workload:
    """All combinations of a query of each workload, over the product of their domains.

    Tables are the products of tables, the last workload's running fastest; within a table queries are row-major.
    """
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
    tables = [
        Table(
            " × ".join(domain.names[axis] for axis in kept) or "total",
            tuple(Identity(n) if axis in kept else Total(n) for axis, n in enumerate(domain.shape)),
            axes=kept,
        )
        for each in orders
        for kept in combinations(range(dimensions), each)
    ]
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
