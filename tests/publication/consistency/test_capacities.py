"""Bounds of cells: whole tables that keep to them are the nearest, and where none does it is said so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.publication.consistency.test_estimates import FREE, PRODUCT, REGULAR, TREE, WITH_ZEROS, measure, summing
from tests.publication.consistency.test_transport import cost, nearest_whole, problem, whole_tables

from dualmandate.errors import InvalidRequest, NoConsistentTables
from dualmandate.publication.consistency.estimates import estimate
from dualmandate.publication.consistency.top_down_rounding import (
    Capacities,
    CountConstraints,
    FamilyCapacities,
    integer_family,
    top_down,
)
from dualmandate.publication.consistency.transport import UNLIMITED, apportion


@pytest.mark.parametrize("seed", range(40))
def test_no_whole_table_within_bounds_is_nearer(seed: int) -> None:
    found = problem(seed, 2 + seed % 3, 2 + seed % 2, crowd=1.0, noise=2.0)
    most = np.random.default_rng(seed).integers(0, 4, found[0].shape)
    every = [np.array(table) for table in whole_tables(found[2][0].tolist(), found[2][1].tolist())]
    within = [cost(table, found) for table in every if np.all(table <= most)]
    whole = nearest_whole(found, most)
    if within:
        assert whole is not None
        assert np.all(whole <= most)
        assert cost(whole, found) == pytest.approx(min(within), rel=1e-9)
    else:
        assert whole is None


def test_both_cases_are_among_them() -> None:
    """Bounds that leave tables, and bounds that leave none: else the test above says nothing."""
    cases = set()
    for seed in range(40):
        found = problem(seed, 2 + seed % 3, 2 + seed % 2, crowd=1.0, noise=2.0)
        most = np.random.default_rng(seed).integers(0, 4, found[0].shape)
        every = whole_tables(found[2][0].tolist(), found[2][1].tolist())
        cases.add(any(np.all(np.array(table) <= most) for table in every))
    assert cases == {True, False}


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_apportioned_counts_within_bounds_are_the_nearest(seed: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    targets, scales, most = (
        generator.normal(2, 3, size),
        generator.uniform(0.2, 3, size),
        generator.integers(0, 4, size),
    )
    total = int(generator.integers(0, most.sum() + 1))
    found = apportion(targets, scales, total, most)
    assert found.sum() == total
    assert np.all((found >= 0) & (found <= most))
    grid = np.stack(np.meshgrid(*(np.arange(each + 1) for each in most), indexing="ij"), axis=-1).reshape(-1, size)
    costs = ((grid[grid.sum(axis=1) == total] - targets) ** 2 / scales).sum(axis=1)
    assert ((found - targets) ** 2 / scales).sum() == pytest.approx(costs.min(), rel=1e-9, abs=1e-9)


def levels_of(leaves: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [np.rint(summing(TREE.parents, level) @ leaves).astype(np.int64) for level in range(3)]


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from(["leaves", "middle", "both", "possible"]))
@settings(max_examples=40, deadline=None)
def test_bounds_of_any_population_are_kept_and_tables_add_up(seed: int, zeros: bool, where: str) -> None:
    """Bounds that the truth keeps to; totals of the root are exact. Nothing else can make them impossible."""
    chain, variances = (WITH_ZEROS, PRODUCT | {(0, 0): 0.0}) if zeros else (REGULAR, FREE | {(0, 0): 0.0})
    truth, measured = measure(TREE, chain, variances, seed)
    generator = np.random.default_rng(seed)
    sparse = truth * generator.integers(0, 2, truth.shape)
    measured[0, 0] = np.array([[sparse.sum()]])
    most = [each + generator.integers(0, 3, each.shape) for each in levels_of(sparse)]
    stated = {"leaves": {2: most[2]}, "middle": {1: most[1]}, "both": dict(enumerate(most))}
    bounds = stated.get(where, {2: sparse > 0})
    tables = top_down(
        estimate(TREE, chain, measured, variances),
        constraints=CountConstraints(capacities=Capacities(TREE, chain, bounds)),
    )
    assert tables[0].sum() == sparse.sum()
    for level, bound in bounds.items():
        assert np.all(tables[level] <= (bound if bound.dtype != np.bool_ else np.where(bound, UNLIMITED, 0)))
    for above, below, starts in zip(tables, tables[1:], TREE.starts, strict=False):
        assert np.array_equal(np.add.reduceat(below, starts[:-1], axis=0), above)
    assert min(table.min() for table in tables) >= 0


def test_exact_totals_without_room_are_refused() -> None:
    variances = FREE | {(0, 0): 0.0}
    _, measured = measure(TREE, REGULAR, variances)
    few = Capacities(TREE, REGULAR, {2: np.ones((5, 6), dtype=np.int64)})
    measured[0, 0] = np.array([[31]])
    with pytest.raises(NoConsistentTables, match="exact counts"):
        top_down(estimate(TREE, REGULAR, measured, variances), constraints=CountConstraints(capacities=few))
    measured[0, 0] = np.array([[30]])
    tables = top_down(estimate(TREE, REGULAR, measured, variances), constraints=CountConstraints(capacities=few))
    assert np.all(tables[2] == 1)


def test_exact_totals_of_children_without_room_are_refused() -> None:
    """The middle's totals are exact, and one of its nodes cannot hold its own."""
    variances = FREE | {(1, 0): 0.0}
    _, measured = measure(TREE, REGULAR, variances)
    measured[1, 0] = np.array([[40], [3]])
    few = Capacities(TREE, REGULAR, {1: np.array([[6] * 6, [9] * 6])})
    with pytest.raises(NoConsistentTables):
        top_down(estimate(TREE, REGULAR, measured, variances), constraints=CountConstraints(capacities=few))


def test_what_no_order_of_groupings_finds_an_integer_program_does() -> None:
    """Exact totals of children and cells that only some of them hold: every count follows, or there is none."""
    chain = REGULAR
    most = np.array([[9, 9, 0, 0, 0, 0], [0, 9, 9, 0, 0, 0], [9, 0, 9, 0, 0, 0]])
    parent = np.array([4, 4, 4, 0, 0, 0])
    room = FamilyCapacities.of(chain, most, parent)
    found = integer_family(np.zeros((3, 6)), parent, room, [(0, np.array([[5], [4], [3]]))])
    assert found.sum(axis=0).tolist() == parent.tolist()
    assert found.sum(axis=1).tolist() == [5, 4, 3]
    assert np.all(found <= most)
    with pytest.raises(NoConsistentTables, match="contradict"):
        integer_family(np.zeros((3, 6)), parent, room, [(0, np.array([[10], [1], [1]]))])


def test_the_least_of_a_child_is_what_others_cannot_hold() -> None:
    room = FamilyCapacities.of(
        REGULAR, np.array([[9, 2, 0, 1, 1, 1], [1, 9, 3, 1, 1, 1]]), np.array([5, 4, 3, 1, 1, 0])
    )
    assert room.least.tolist() == [[4, 0, 0, 0, 0, 0], [0, 2, 3, 0, 0, 0]]
    least, more = room.groups(1)
    assert least.tolist() == [[4, 0], [5, 0]]
    assert more.tolist() == [[3, 2], [3, 2]]


@pytest.mark.parametrize(
    ("level", "bound"),
    [
        (3, np.ones((5, 6), dtype=np.int64)),
        (2, np.ones((5, 5), dtype=np.int64)),
        (2, np.ones((5, 6))),
        (2, -np.ones((5, 6), dtype=np.int64)),
    ],
)
def test_bounds_that_do_not_fit_are_refused(level: int, bound: NDArray[np.int64]) -> None:
    with pytest.raises(InvalidRequest, match="do not fit"):
        Capacities(TREE, REGULAR, {level: bound})
