"""Random small workloads, and brute force over every cell and pair of cells of their dense matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.errors import InvalidDomain, InvalidInvariant
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, Invariant, StructuralZero
from dualmandate.population.protection import group_labels
from dualmandate.workload import AllRange, Dense, Factor, Groups, Identity, Prefix, Row, Table, Total, Workload
from dualmandate.workload.factor import dense

Draw = st.DrawFn


def numbers(draw: Draw, count: int, low: int, high: int) -> list[int]:
    return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))


@st.composite
def factors(draw: Draw, size: int, *, low: int = -2, high: int = 3) -> Factor:
    """Any kind of factor over a few levels."""
    kind = draw(st.sampled_from(["identity", "total", "prefix", "range", "row", "groups", "partition", "dense"]))
    if kind == "identity":
        return Identity(size)
    if kind == "total":
        return Total(size)
    if kind == "prefix":
        return Prefix(size)
    if kind == "range":
        return AllRange(size)
    if kind == "row":
        return Row(np.array(numbers(draw, size, low, high), dtype=np.int64))
    if kind == "groups":
        subsets = st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True)
        return Groups.of_lists(size, draw(st.lists(subsets, min_size=1, max_size=4)))
    if kind == "partition":
        labels = np.array(numbers(draw, size, -1, 2), dtype=np.int64)
        labels[draw(st.integers(0, size - 1))] = 0
        weights = np.array(numbers(draw, size, low, high), dtype=np.int64) if draw(st.booleans()) else None
        if weights is not None and not np.any(weights[labels >= 0]):
            weights = None
        return Groups.of_labels(labels, ("a", "b", "c"), weights)
    rows = draw(st.integers(1, 3))
    return Dense(np.array([numbers(draw, size, low, high) for _ in range(rows)], dtype=np.int64))


@st.composite
def groupings(draw: Draw, name: str, size: int) -> Grouping:
    codes = draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=size, max_size=size))
    codes[draw(st.integers(0, size - 1))] = "a"
    return Grouping.of(name, codes)


@st.composite
def domains(draw: Draw, *, most_attributes: int = 3, zeros: bool = True) -> Domain:
    """A few attributes of a few levels, each with a grouping, and structural zeros that leave some cell."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most_attributes))
    attributes = tuple(Attribute.categories(f"x{i}", map(str, range(size))) for i, size in enumerate(sizes))
    hierarchies = tuple(
        Hierarchy(f"x{i}", (draw(groupings(f"g{i}", size)),)) for i, size in enumerate(sizes) if draw(st.booleans())
    )
    listed = []
    for _ in range(draw(st.integers(0, 2)) if zeros else 0):
        named = draw(st.lists(st.sampled_from(range(len(sizes))), min_size=1, max_size=2, unique=True))
        levels = {
            f"x{i}": tuple(
                map(str, draw(st.lists(st.integers(0, sizes[i] - 1), min_size=1, max_size=sizes[i], unique=True)))
            )
            for i in named
        }
        listed.append(StructuralZero.of(levels))
    try:
        return Domain(attributes, hierarchies, tuple(listed))
    except InvalidDomain:
        return Domain(attributes, hierarchies)


@st.composite
def workloads(draw: Draw, *, zeros: bool = True, most_attributes: int = 3) -> Workload:
    """A union of weighted products of random factors."""
    domain = draw(domains(zeros=zeros, most_attributes=most_attributes))
    low = draw(st.sampled_from([-2, 0, 0]))
    tables = tuple(
        Table(
            f"table {number}",
            tuple(draw(factors(size, low=low)) for size in domain.shape),
            Fraction(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    return Workload(domain, tables)


@st.composite
def invariants(draw: Draw, domain: Domain) -> Invariant:
    """An exact total by some attributes or groupings, under some filter."""
    named = draw(st.lists(st.sampled_from(range(len(domain.shape))), max_size=2, unique=True))
    grouped = {hierarchy.attribute: hierarchy.groupings[0].name for hierarchy in domain.hierarchies}
    by = tuple(draw(st.sampled_from([f"x{i}", grouped.get(f"x{i}", f"x{i}")])) for i in named)
    where = []
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(domain.shape) - 1))
        levels = draw(st.lists(st.sampled_from(domain.attributes[axis].levels), min_size=1, unique=True))
        where.append((f"x{axis}", tuple(levels)))
    total = Invariant(f"total {draw(st.integers(0, 10**6))}", by, tuple(where))
    try:
        group_labels(domain, total)
    except InvalidInvariant:
        return Invariant(total.name, by)
    return total


@dataclass(frozen=True)
class BruteForce:
    """Everything from dense integer matrices, cell by cell."""

    workload: Workload

    @property
    def denominator(self) -> int:
        return math.lcm(*(table.weight.denominator for table in self.workload.tables))

    def columns(self) -> NDArray[np.int64]:
        """Integer columns, `denominator` times those of the workload; shape (cells, queries)."""
        blocks = [
            int(table.weight * self.denominator) * reduce(np.kron, map(dense, table.factors))
            for table in self.workload.tables
        ]
        return np.concatenate(blocks).T

    def cells(self) -> list[tuple[int, ...]]:
        return list(product(*(range(size) for size in self.workload.domain.shape)))

    def possible(self) -> list[bool]:
        domain = self.workload.domain
        masks = [domain.zero_masks(zero) for zero in domain.structural_zeros]
        return [not any(all(mask[axis][cell[axis]] for axis in mask) for mask in masks) for cell in self.cells()]

    def group(self, invariant: Invariant) -> list[object]:
        """The group of each cell, None outside."""
        domain = self.workload.domain
        found: list[object] = []
        for cell in self.cells():
            named = []
            for name in invariant.by:
                axis, grouping = domain.resolve(name)
                named.append(cell[axis] if grouping is None else int(grouping.assignment[cell[axis]]))
            kept = all(
                domain.mask(name, levels)[cell[domain.resolve(name)[0]]] for name, levels in invariant.where
            ) and not any(
                domain.resolve(name)[1] is not None and label < 0
                for name, label in zip(invariant.by, named, strict=True)
            )
            found.append(tuple(named) if kept else None)
        return found

    def add_or_remove(self, power: int) -> Fraction:
        sizes = (np.abs(self.columns()) ** power).sum(axis=1)[self.possible()]
        return Fraction(int(sizes.max()), self.denominator**power)

    def replace_one(self, power: int, kept: tuple[Invariant, ...] = ()) -> Fraction:
        columns = self.columns()
        distances = (np.abs(columns[:, None] - columns[None, :]) ** power).sum(axis=2)
        allowed = np.outer(self.possible(), self.possible())
        for invariant in kept:
            groups = self.group(invariant)
            allowed &= np.array([[one == other for other in groups] for one in groups])
        return Fraction(int(distances[allowed].max()), self.denominator**power)


@pytest.fixture(scope="session")
def brute_force() -> type[BruteForce]:
    return BruteForce


@pytest.fixture(scope="session")
def any_workload() -> Callable[..., st.SearchStrategy[Workload]]:
    return workloads


@pytest.fixture(scope="session")
def any_factor() -> Callable[..., st.SearchStrategy[Factor]]:
    return factors


@pytest.fixture(scope="session")
def any_invariant() -> Callable[[Domain], st.SearchStrategy[Invariant]]:
    return invariants
