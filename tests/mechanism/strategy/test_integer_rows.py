"""Whole-number rows against the same rows written out cell by cell: losses exactly, answers and errors by matrices."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.mechanism.strategy.dual import GaussianOptimum, gaussian_optimum
from dualmandate.mechanism.strategy.integer_rounding import whole_rows
from dualmandate.mechanism.strategy.integer_rows import IntegerRows, OptimalRows, Residuals
from dualmandate.mechanism.strategy.p_identity import p_identity_measurement, search_p_identity
from dualmandate.mechanism.strategy.workload_blocks import (
    EVERYTHING_AVERAGED,
    WorkloadBlock,
    parts_of,
    public_labels,
    public_tables,
    same_groups,
)
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.domain import StructuralZero
from dualmandate.workload import (
    Identity,
    Prefix,
    Table,
    Total,
    Workload,
    all_range,
    explicit,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)

BINS = groups(9, [[0, 1, 2, 3], [4, 5, 6], [7, 8]])


def differences_of(part: WorkloadBlock) -> GaussianOptimum:
    """The optimum in differences, also where plain counts would do."""
    with patch("dualmandate.mechanism.strategy.dual.MOST_MARGINALS", 0):
        return gaussian_optimum(part)


def one_way(shape: tuple[int, ...], ordered: int) -> Workload:
    """One table an attribute, prefix sums on the first few."""
    tables = [
        Table(
            f"by {axis}",
            tuple(
                (Prefix(n) if axis < ordered else Identity(n)) if place == axis else Total(n)
                for place, n in enumerate(shape)
            ),
        )
        for axis in range(len(shape))
    ]
    return Workload(Domain.of_shape(shape), tuple(tables))


def married(*, asked_by_marriage: bool) -> Workload:
    """Ages by marriage, where the youngest cannot be married."""
    domain = Domain(
        (Attribute("age", ("0", "1", "2", "3")), Attribute("married", ("no", "yes"))),
        structural_zeros=(StructuralZero.of({"age": ("0", "1"), "married": "yes"}),),
    )
    by_marriage = Identity(2) if asked_by_marriage else Total(2)
    return Workload(domain, (Table("ages", (Prefix(4), by_marriage)), Table("all", (Total(4), Total(2)))))


GAUSSIAN = {
    "prefix": prefix(7),
    "ranges and cells": stack(all_range(6), identity(6), weights=["1/2", 3]),
    "identity and total": stack(identity(6), total(6)),
    "one query": total(5),
    "overlapping groups": groups(12, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 0]]),
    "cells that nobody asks about": groups(6, [[1, 2], [2, 3]]),
    "signed": explicit([[1, -1, 0, 2], [0, 1, 1, -1]]),
    "attribute of size 1": stack(kron(prefix(4), identity(1)), kron(total(4), identity(1))),
    "marginals": marginals((3, 2, 4), (1, 2)),
    "one-way with sums": one_way((4, 3, 3, 2), 1),
    "one-way with two kinds of sums": one_way((4, 5, 3), 2),
    "levels in classes": stack(kron(identity(9), total(4)), kron(BINS, prefix(4)), kron(total(9), identity(4))),
    "levels in classes, of lower rank": stack(kron(identity(9), total(3)), kron(BINS, total(3)), one_way((9, 3), 0)),
    "sizes without a small common multiple": stack(
        identity(21), groups(21, [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9], [*range(10, 17)], [*range(8, 21)]])
    ),
    "all others": explicit((1 - np.eye(4, dtype=np.int64)).tolist()),
    "structural zeros": married(asked_by_marriage=True),
    "structural zeros, fewer queries": married(asked_by_marriage=False),
}
LAPLACE = {
    "prefix": prefix(9),
    "ranges": all_range(18),
    "two ordered attributes": one_way((4, 3), 2),
    "structural zeros": married(asked_by_marriage=True),
    "cells that nobody asks about": groups(6, [[1, 2], [2, 3]]),
}
QUERIES = {
    "groups": groups(12, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 0]]),
    "signed": explicit([[1, -1, 0, 2], [0, 1, 1, -1]]),
    "large and weighted": stack(explicit([[100_003, 99_991, 0], [1, 2, 3]]), identity(3), weights=["1/3", 7]),
    "large": explicit([[100_003, 99_991, 0], [1, 2, 3], [0, 0, 0], [0, 4, 6]]),
    "structural zeros": married(asked_by_marriage=False),
}


def p_identity(part: WorkloadBlock) -> Residuals:
    apart = part.cell_by_cell()
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    measured = p_identity_measurement(search_p_identity(gram).sums)
    return Residuals(apart, {EVERYTHING_AVERAGED: measured}, "cells and sums")


def the_queries(part: WorkloadBlock) -> Residuals:
    apart = part.cell_by_cell()
    rows = apart.queries()[:, apart.cells]
    rows = rows / np.abs(rows).sum(axis=0).max()
    return Residuals(apart, {EVERYTHING_AVERAGED: OptimalRows(rows, np.linalg.pinv(rows))}, "the queries")


NAMES = [
    *(f"gaussian, {name}" for name in GAUSSIAN),
    *(f"sums, {name}" for name in LAPLACE),
    *(f"queries, {name}" for name in QUERIES),
]


@cache
def case(name: str) -> tuple[IntegerRows, int]:
    """Whole-number rows by name, with the power that their noise needs."""
    kind, workload = name.split(", ", 1)
    if kind == "gaussian":
        measured = differences_of(parts_of(GAUSSIAN[workload])[0]).measured
        assert isinstance(measured, Residuals)
        return whole_rows(measured, "l2"), 2
    part = parts_of((LAPLACE if kind == "sums" else QUERIES)[workload], split=False)[0]
    return whole_rows(p_identity(part) if kind == "sums" else the_queries(part), "l1"), 1


every_case = pytest.mark.parametrize("name", NAMES)


def written_out(rows: IntegerRows) -> Integers:
    """Every row over merged cells from its definition, by loops: b·Π(m·δ − 1)."""
    part, found = rows.part, []
    for sector, each in rows.sectors.items():
        orbits = part.cells[part.seen(sector)[0]]
        for numbers in each.numbers:
            by_orbit = dict(zip(orbits.tolist(), numbers.tolist(), strict=True))
            copies = [part.levels[place].levels_of(one).tolist() for place, one in sector]
            for chosen in product(*copies):
                levels = {place: level for (place, _), level in zip(sector, chosen, strict=True)}
                found.append([entry(part, cell, by_orbit, levels) for cell in np.ndindex(*part.merged_shape)])
    return np.array(found, dtype=np.int64)


def entry(part: WorkloadBlock, cell: tuple[int, ...], by_orbit: dict[int, int], levels: dict[int, int]) -> int:
    classes = tuple(int(level.classes[at]) for level, at in zip(part.levels, cell, strict=True))
    value = by_orbit.get(int(np.ravel_multi_index(classes, part.orbit_shape)), 0)
    for place, level in levels.items():
        axis = part.levels[place]
        if axis.classes[level] != axis.classes[cell[place]]:
            return 0
        value *= int(axis.members[axis.classes[level]]) * (cell[place] == level) - 1
    return value


def weights(rows: IntegerRows) -> list[Fraction]:
    return [rows.steps[kind] for kind in rows.kinds().tolist()]


def possible(part: WorkloadBlock) -> NDArray[np.bool_]:
    return np.ones(part.merged_size, dtype=np.bool_) if part.possible is None else part.possible.reshape(-1)


def weighted(rows: IntegerRows) -> Floats:
    return np.array([float(weight) for weight in weights(rows)])[:, None] * written_out(rows)


def queries(part: WorkloadBlock) -> Floats:
    """The queries of all tables without their weights, over merged cells that can occur."""
    blocks = []
    for factors in part.tables.values():
        matrix: Floats = np.ones((1, 1))
        for factor, level in zip(factors, part.levels, strict=True):
            matrix = np.kron(matrix, factor.columns(level.kept)).astype(np.float64)
        blocks.append(matrix)
    return np.concatenate(blocks)[:, possible(part)]


@every_case
def test_rows_are_what_they_say(name: str) -> None:
    rows, _ = case(name)
    matrix = written_out(rows)
    assert matrix.shape == (rows.rows, rows.part.merged_size)
    cells = np.eye(rows.part.merged_size, dtype=np.int64).reshape(-1, *rows.part.merged_shape)
    np.testing.assert_array_equal(rows.count(cells).T, matrix)
    assert rows.largest_entry == np.abs(matrix).max()
    assert np.all(np.gcd.reduce(matrix, axis=1) == 1)
    assert not matrix[:, ~possible(rows.part)].any()
    assert len(set(rows.steps)) == len(rows.steps)
    assert all(step > 0 and step.denominator.bit_count() == 1 for step in rows.steps)
    assert set(rows.kinds().tolist()) == set(range(len(rows.steps)))


@every_case
def test_the_largest_column_is_exact(name: str) -> None:
    rows, power = case(name)
    matrix, each = written_out(rows), weights(rows)
    for any_power in (1, 2):
        columns = [
            sum(((w * abs(a)) ** any_power for w, a in zip(each, column, strict=True)), Fraction(0))
            for column in matrix[:, possible(rows.part)].T.tolist()
        ]
        assert rows.largest_column(any_power) == max(columns)
    assert 0.95 < rows.largest_column(power) < 1.05


def labels_of(part: WorkloadBlock) -> list[Integers | None]:
    """No labels, one attribute, classes of one attribute, a few labels without a pattern, and each cell its own."""
    cells = np.indices(part.merged_shape).reshape(len(part.merged_shape), -1)
    return [
        None,
        cells[0].astype(np.int64),
        part.levels[0].classes[cells[0]].astype(np.int64),
        ((np.arange(part.merged_size) * 7 + 3) % 5 // 2).astype(np.int64),
        np.arange(part.merged_size, dtype=np.int64),
    ]


@every_case
def test_the_largest_difference_is_exact(name: str) -> None:
    rows, power = case(name)
    columns = written_out(rows).T.tolist()
    each, mask = weights(rows), possible(rows.part)
    pairs = {
        (one, other): sum(
            ((w * abs(a - b)) ** power for w, a, b in zip(each, columns[one], columns[other], strict=True)),
            Fraction(0),
        )
        for one, other in combinations(np.flatnonzero(mask).tolist(), 2)
    }
    for labels in labels_of(rows.part):
        allowed = [value for (one, other), value in pairs.items() if labels is None or labels[one] == labels[other]]
        assert rows.largest_difference(power, labels) == (max(allowed, default=Fraction(0)), True)


def test_differences_beyond_what_is_compared_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = case("gaussian, levels in classes")
    exact = rows.largest_difference(2)
    cells = np.arange(rows.part.merged_size)
    labels = ((cells * 7 + 3) % 5 // 2).astype(np.int64)
    some = rows.largest_difference(2, labels)
    sizes, whether = rows.largest_difference(1)
    columns = [(w * column).tolist() for w, column in zip(weights(rows), written_out(rows).astype(object), strict=True)]
    apart = [sum(map(abs, np.subtract(a, b))) for a, b in combinations(zip(*columns, strict=True), 2)]
    assert not whether
    assert sizes >= max(apart)
    assert sizes == 2 * rows.largest_column(1)
    for limit in ("integer_rows.MOST_LABELED", "integer_rows.MOST_LEADERS", "integer_rows.MOST_PAIRS"):
        monkeypatch.setattr(f"dualmandate.mechanism.strategy.{limit}", 0)
        value, whether = rows.largest_difference(2, labels)
        assert not whether
        assert some[0] <= value <= 4 * rows.largest_column(2)
    assert value >= exact[0]
    plain, _ = case("sums, prefix")
    monkeypatch.setattr("dualmandate.mechanism.strategy.integer_rows.MOST_DIFFERENCES", 0)
    assert plain.largest_difference(1) == (Fraction(2), False)


@every_case
def test_answers_come_back(name: str) -> None:
    rows, _ = case(name)
    part = rows.part
    counts = np.where(possible(part), np.arange(1, part.merged_size + 1) % 7, 0)
    some = np.stack([counts, counts[::-1] * possible(part)]).reshape(2, *part.merged_shape)
    measured = np.array([float(weight) for weight in weights(rows)]) * rows.count(some).astype(np.float64)
    estimate = rows.estimate(measured).reshape(2, -1)[:, possible(part)]
    expected = some.reshape(2, -1)[:, possible(part)] @ queries(part).T
    np.testing.assert_allclose(estimate @ queries(part).T, expected, atol=1e-8 * np.abs(expected).max())


@every_case
def test_errors_are_those_of_the_pseudo_inverse(name: str) -> None:
    rows, _ = case(name)
    part = rows.part
    matrix = weighted(rows)[:, possible(part)]
    shares = queries(part) @ np.linalg.pinv(matrix, rcond=1e-10)
    np.testing.assert_allclose(shares @ matrix, queries(part), atol=1e-6)
    kinds, variances = rows.kinds(), np.linspace(1.0, 3.0, len(rows.steps))
    bumps = np.cos(np.arange(rows.rows))
    estimate = rows.estimate(bumps[None]).reshape(-1)[possible(part)]
    scale = np.abs(shares).max()
    np.testing.assert_allclose(queries(part) @ estimate, shares @ bumps, atol=1e-8 * scale * rows.rows)
    start = 0
    for key, factors in part.tables.items():
        shape = tuple(factor.rows for factor in factors)
        here = shares[start : start + math.prod(shape)]
        squares = np.square(here).sum(axis=1).reshape(shape)
        np.testing.assert_allclose(
            rows.coefficients(key, np.ones(len(rows.steps))), squares, rtol=1e-6, atol=1e-10 * scale**2
        )
        by_kind = np.square(here) @ variances[kinds]
        np.testing.assert_allclose(
            rows.coefficients(key, variances), by_kind.reshape(shape), rtol=1e-6, atol=1e-10 * scale**2
        )
        sums = np.bincount(kinds, weights=np.square(here).sum(axis=0), minlength=len(rows.steps))
        np.testing.assert_allclose(rows.table_sums(key), sums, rtol=1e-6, atol=1e-10 * scale**2)
        for index in np.ndindex(*shape):
            expected = here[np.ravel_multi_index(index, shape)]
            units = [np.eye(1, size, place)[0] for size, place in zip(shape, index, strict=True)]
            np.testing.assert_allclose(rows.combined(key, units), expected, atol=1e-8 * scale)
        ones = [np.ones(size) for size in shape]
        np.testing.assert_allclose(rows.combined(key, ones), here.sum(axis=0), atol=1e-8 * scale * len(here))
        start += math.prod(shape)


def test_queries_of_large_numbers_are_measured_as_they_are() -> None:
    rows, _ = case("queries, large")
    assert rows.bits == 0
    assert written_out(rows).tolist() == [[100_003, 99_991, 0], [1, 2, 3], [0, 2, 3]]
    assert rows.steps[0] == 2 * rows.steps[1] < 1 / 50_000


REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def districts() -> tuple[Workload, Protection]:
    """Ages and races by block, with the people of each block known."""
    names = {"block": "abc", "age": "yo", "race": "xyz"}
    domain = Domain(tuple(Attribute.categories(name, list(levels)) for name, levels in names.items()))
    tables = (
        Table("by block and age", (Identity(3), Identity(2), Total(3))),
        Table("by race", (Total(3), Total(2), Identity(3))),
    )
    protection = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by block", ("block",)),))
    return Workload(domain, tables), protection


@pytest.mark.parametrize(
    ("workload", "protection"),
    [
        (prefix(6), REPLACE_ONE),
        (stack(identity(6), total(6)), REPLACE_ONE),
        (stack(identity(9), BINS), REPLACE_ONE),
        (one_way((4, 5, 3), 2), REPLACE_ONE),
        (groups(8, [[0, 1, 2], [2, 3, 4], [4, 5, 6, 7]]), REPLACE_ONE),
        (one_way((4, 3, 3), 1), REPLACE_ONE),
        districts(),
    ],
)
def test_what_is_public_is_left_out(workload: Workload, protection: Protection) -> None:
    """Rows answer all that is private, and their errors and differences are those of what they say beside it."""
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    measured = differences_of(part).measured
    assert isinstance(measured, Residuals)
    for rows in (whole_rows(measured, "l2"), whole_rows(p_identity(part), "l1")):
        known = np.array([np.ones(part.merged_size)])
        labels = same_groups(rows.part, workload.domain, protection)
        moves = public_labels(rows.part)
        assert moves is not None
        expected = np.zeros(part.merged_size) if labels is None else labels
        np.testing.assert_array_equal(np.equal.outer(moves, moves), np.equal.outer(expected, expected))
        if labels is not None:
            known = np.array([labels == label for label in np.unique(labels)], dtype=np.float64)
        private = np.eye(part.merged_size) - np.linalg.pinv(known) @ known
        matrix, asked = weighted(rows) @ private, queries(rows.part) @ private
        shares = asked @ np.linalg.pinv(matrix, rcond=1e-10)
        np.testing.assert_allclose(shares @ matrix, asked, atol=1e-8)
        found = np.concatenate(
            [rows.coefficients(key, np.ones(len(rows.steps))).reshape(-1) for key in rows.part.tables]
        )
        np.testing.assert_allclose(found, np.square(shares).sum(axis=1), rtol=1e-6, atol=1e-12)
        counts = (np.arange(part.merged_size) % 5).reshape(1, *part.merged_shape)
        beside = weighted(rows) @ (np.eye(part.merged_size) - private) @ counts.reshape(-1)
        estimate = rows.estimate(np.array([float(w) for w in weights(rows)]) * rows.count(counts) - beside)
        np.testing.assert_allclose(queries(rows.part) @ estimate.reshape(-1), asked @ counts.reshape(-1), atol=1e-8)
        np.testing.assert_allclose(known @ estimate.reshape(-1), 0.0, atol=1e-9)
        columns = (weighted(rows) @ private).T
        distances = [
            np.square(columns[one] - columns[other]).sum()
            for one, other in combinations(range(part.merged_size), 2)
            if labels is None or labels[one] == labels[other]
        ]
        assert float(rows.largest_difference(2, labels)[0]) == pytest.approx(max(distances), rel=1e-9)


def test_numbers_beyond_64_bits_are_exact() -> None:
    """A sector of many large classes: sums of squares pass 2^62, and stay whole."""
    workload = marginals((97, 101, 103, 89, 83, 79, 73, 71), 3)
    measured = differences_of(parts_of(workload)[0]).measured
    assert isinstance(measured, Residuals)
    rows = whole_rows(measured, "l2")
    sizes = rows.part.merged_shape
    expected, farthest = Fraction(0), []
    for sector, each in rows.sectors.items():
        expected += each.weights[0] ** 2 * math.prod(sizes[place] * (sizes[place] - 1) for place, _ in sector)
    assert rows.largest_column(2) == expected
    for same in product((False, True), repeat=len(sizes)):
        mixed = sum(
            (
                each.weights[0] ** 2 * math.prod(sizes[i] * (sizes[i] - 1) if same[i] else -sizes[i] for i, _ in sector)
                for sector, each in rows.sectors.items()
            ),
            Fraction(0),
        )
        farthest.append(2 * (expected - mixed))
    assert rows.largest_difference(2) == (max(farthest), True)
    assert expected.denominator > 2**62
