"""What is public is not measured, and neighbors that agree on it are moves of one record within groups."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.mechanism.strategy.reference import rows_over_cells

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.strategy.dual import gaussian_optimum, pair_optimum
from dualmandate.mechanism.strategy.nested_rows import IntegerNest
from dualmandate.mechanism.strategy.workload_blocks import (
    WorkloadBlock,
    orthonormal,
    parts_of,
    public_tables,
    same_groups,
)
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection
from dualmandate.population.arrays import Floats
from dualmandate.workload import Tabulation, Workload, all_range, identity, kron, marginals, prefix, stack, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def _districts() -> tuple[Workload, Protection]:
    """People by block, age and race, with the people of each block known."""
    names = {"block": "abc", "age": "yo", "race": "xyz"}
    domain = Domain(tuple(Attribute.categories(name, list(levels)) for name, levels in names.items()))
    tabulations = [
        Tabulation("by block and age", by=("block", "age")),
        Tabulation("by race", by=("race",)),
        Tabulation("old x", where=(("age", ("o",)), ("race", ("x",)))),
    ]
    protection = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by block", ("block",)),))
    return Workload.from_tabulations(domain, tabulations), protection


def _cases() -> list[tuple[Workload, Protection]]:
    words = [
        identity(6),
        prefix(8),
        all_range(6),
        stack(identity(6), total(6)),
        marginals((3, 4), 1),
        kron(prefix(3), identity(4)),
    ]
    return [*((workload, REPLACE_ONE) for workload in words), _districts()]


def _written_out(part: WorkloadBlock, rows: Floats) -> Floats:
    found = np.zeros((len(rows), part.merged_size))
    found[:, part.cells] = rows
    return found


def _private(workload: Workload, protection: Protection) -> NDArray[np.float64]:
    """Q less what is public, by hand: the columns of a block have mean 0, or all columns do."""
    queries = workload.dense()
    if not protection.invariants:
        return np.asarray(queries - queries.mean(axis=1, keepdims=True))
    by_block = queries.reshape(len(queries), 3, 6)
    return np.asarray((by_block - by_block.mean(axis=2, keepdims=True)).reshape(len(queries), 18))


def _moves(workload: Workload, protection: Protection) -> list[tuple[int, int]]:
    cells = workload.domain.size
    group = np.arange(cells) // 6 if protection.invariants else np.zeros(cells)
    return [(one, other) for one in range(cells) for other in range(one) if group[one] == group[other]]


@pytest.mark.parametrize(("workload", "protection"), _cases())
def test_the_best_strategy_for_moves_is_certified(workload: Workload, protection: Protection) -> None:
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    apart = part.cell_by_cell()
    assert apart.merged_size == workload.domain.size
    private = _private(workload, protection)
    np.testing.assert_allclose(apart.gram(), private.T @ private, atol=1e-9)
    measured, error, lower = pair_optimum(apart.gram(), same_groups(apart, workload.domain, protection))
    moves = np.array(_moves(workload, protection))
    farthest = np.square(measured.rows[:, moves[:, 0]] - measured.rows[:, moves[:, 1]]).sum(axis=0).max()
    np.testing.assert_allclose(private @ measured.inverse @ measured.rows, private, atol=1e-8)
    assert farthest * np.square(private @ measured.inverse).sum() == pytest.approx(error, rel=1e-9)
    assert lower <= error <= lower * (1 + 2e-5)


@pytest.mark.parametrize(("workload", "protection"), _cases())
def test_the_bound_for_moves_holds_for_every_strategy(workload: Workload, protection: Protection) -> None:
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    apart = part.cell_by_cell()
    _, best, _ = pair_optimum(apart.gram(), same_groups(apart, workload.domain, protection))
    rough = gaussian_optimum(part)
    assert rough.lower <= best * (1 + 1e-9)
    assert rough.lower >= 0.5 * best
    private, moves = _private(workload, protection), np.array(_moves(workload, protection))
    generator = np.random.default_rng(17)
    for _ in range(40):
        rows = generator.standard_normal((workload.domain.size + 2, workload.domain.size))
        farthest = np.square(rows[:, moves[:, 0]] - rows[:, moves[:, 1]]).sum(axis=0).max()
        assert farthest * np.square(private @ np.linalg.pinv(rows)).sum() >= best * (1 - 2e-5)


@pytest.mark.parametrize(("workload", "protection"), _cases())
def test_rows_over_orbits_measure_all_that_is_private(workload: Workload, protection: Protection) -> None:
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    found = gaussian_optimum(part).measured
    assert not isinstance(found, IntegerNest)
    rows = rows_over_cells(found)
    private = _private(workload, protection)
    np.testing.assert_allclose(private @ np.linalg.pinv(rows) @ rows, private, atol=1e-7)
    exact = found.exact("l2")
    ones, keys = np.ones(len(exact.steps)), [tuple(factor.key for factor in table.factors) for table in workload.tables]
    coefficients = [exact.coefficients(key, ones) for key in keys]
    inverse = exact.estimate(np.eye(exact.rows)).reshape(exact.rows, -1).T
    squares = np.square(private @ inverse).sum(axis=1)
    found_squares = np.concatenate([each.reshape(-1) for each in coefficients])
    np.testing.assert_allclose(found_squares, squares, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("size", [2, 6, 40])
def test_the_bound_is_reached_where_all_moves_are_alike(size: int) -> None:
    """Every cell by itself under replace-one: 2·(n − 1), whatever is measured."""
    (part,) = parts_of(identity(size), public=public_tables(identity(size).domain, REPLACE_ONE))
    assert gaussian_optimum(part).lower == pytest.approx(2.0 * (size - 1), rel=1e-12)


def test_the_label_of_a_cell_is_its_group() -> None:
    workload, protection = _districts()
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    apart = part.cell_by_cell()
    labels = same_groups(apart, workload.domain, protection)
    assert labels is not None
    assert labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert same_groups(apart, workload.domain, REPLACE_ONE) is None


def test_an_invariant_under_a_condition_leaves_the_rest_one_group() -> None:
    workload, _ = _districts()
    condition = (("age", ("o",)),)
    protection = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("old", ("block",), condition),))
    (part,) = parts_of(workload, public=public_tables(workload.domain, protection))
    apart = part.cell_by_cell()
    labels = same_groups(apart, workload.domain, protection)
    assert labels is not None
    young, old = labels.reshape(3, 2, 3)[:, 0], labels.reshape(3, 2, 3)[:, 1]
    assert len(np.unique(young)) == 1
    assert [len(np.unique(block)) for block in old] == [1, 1, 1]
    assert len(np.unique(labels)) == 4


def test_what_is_all_public_is_refused() -> None:
    with pytest.raises(InvalidMechanism, match="no neighboring file can change"):
        _ = parts_of(total(5), public=public_tables(total(5).domain, REPLACE_ONE))[0].sectors


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing_spans_nothing(shape: tuple[int, int]) -> None:
    """Structural zeros may leave a sector in which much is public no cell that is measured."""
    assert orthonormal(np.zeros(shape)).shape == (0, shape[1])


def test_values_weigh_tables() -> None:
    stacked = stack(identity(6), total(6))
    (part,) = parts_of(stacked, {table.name: Fraction(k + 1) for k, table in enumerate(stacked.tables)})
    (plain,) = parts_of(stack(identity(6), total(6), weights=[1, 1]))
    one, other = part.cell_by_cell().gram(), plain.cell_by_cell().gram()
    np.testing.assert_allclose(one, other + 1.0)
