"""Nearest tables with given margins: against another solver, and whole ones against every other whole table."""

from __future__ import annotations

from itertools import product

import numpy as np
import piqp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.transport import (
    NO_LIMITS,
    NOTHING_ACROSS,
    TransportProblem,
    apportion,
    margin_duals,
    split_groups,
)

Problem = tuple[Floats, tuple[Floats, Floats], tuple[Integers, Integers]]


def problem(seed: int, rows: int, columns: int, *, crowd: float = 3.0, noise: float = 4.0) -> Problem:
    """Estimates of a table of small counts, its scales, and its margins, all of which are positive."""
    generator = np.random.default_rng(seed)
    truth = generator.poisson(generator.gamma(0.4, crowd, (rows, columns)))
    truth[np.arange(max(rows, columns)) % rows, np.arange(max(rows, columns)) % columns] += 1
    targets = truth + generator.normal(0.0, noise, truth.shape)
    scales = generator.uniform(0.5, 2.0, rows), generator.uniform(0.5, 2.0, columns)
    return targets, scales, (truth.sum(axis=1).astype(np.int64), truth.sum(axis=0).astype(np.int64))


def by_another_solver(found: Problem) -> NDArray[np.float64]:
    targets, (rho, q), (of_rows, of_columns) = found
    rows, columns = targets.shape
    weights = 1 / np.outer(rho, q).reshape(-1)
    margins = np.concatenate([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])[:-1]
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    known = np.concatenate([of_rows, of_columns])[:-1].astype(np.float64)
    solver.setup(np.diag(weights), -weights * targets.reshape(-1), margins, known, x_l=np.zeros(rows * columns))
    assert solver.solve() == piqp.PIQP_SOLVED
    return np.asarray(solver.result.x).reshape(rows, columns)


def cost(table: NDArray[np.int64], found: Problem) -> float:
    return float((((table - found[0]) ** 2) / np.outer(*found[1])).sum())


@pytest.mark.parametrize("seed", range(12))
def test_continuous_tables_are_those_of_another_solver(seed: int) -> None:
    found = problem(seed, 3 + seed, 2 + seed % 5)
    targets, scales, margins = found
    alpha, beta = margin_duals(TransportProblem(targets, *scales, *margins, NO_LIMITS), 1e-11, 100_000)
    ours = np.maximum(targets + np.outer(*scales) * (alpha[:, None] + beta[None, :]), 0.0)
    assert ours == pytest.approx(by_another_solver(found), abs=1e-6)


def nearest_whole(found: Problem, most: Integers | None = None) -> Integers | None:
    """The table that `split_groups` makes of one group; None where it finds none within bounds."""
    targets, (rho, q), (of_rows, of_columns) = found
    counts, starts = np.empty(targets.shape, dtype=np.int64), np.array([0, len(q)])
    limits = NO_LIMITS if most is None else most
    met = split_groups(targets, rho[:, None], q, starts, (of_rows[:, None], of_columns), limits, NOTHING_ACROSS, counts)
    return counts if met else None


def whole_tables(of_rows: list[int], of_columns: list[int]) -> list[list[list[int]]]:
    """Every table of non-negative whole numbers with these margins."""
    if len(of_rows) == 1:
        return [[of_columns]]
    firsts = (row for row in product(*(range(most + 1) for most in of_columns)) if sum(row) == of_rows[0])
    return [
        [list(first), *rest]
        for first in firsts
        for rest in whole_tables(of_rows[1:], [have - take for have, take in zip(of_columns, first, strict=True)])
    ]


@pytest.mark.parametrize("seed", range(40))
def test_no_whole_table_is_nearer(seed: int) -> None:
    found = problem(seed, 2 + seed % 3, 2 + seed % 2, crowd=1.0, noise=2.0)
    every = whole_tables(found[2][0].tolist(), found[2][1].tolist())
    best = min(cost(np.array(table), found) for table in every)
    whole = nearest_whole(found)
    assert whole is not None
    assert cost(whole, found) == pytest.approx(best, rel=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 9), st.floats(0.1, 30), st.floats(0, 1000))
@settings(max_examples=150, deadline=None)
def test_margins_are_always_met(seed: int, rows: int, columns: int, crowd: float, noise: float) -> None:
    found = problem(seed, rows, columns, crowd=crowd, noise=noise)
    whole = nearest_whole(found)
    assert whole is not None
    assert whole.min() >= 0
    assert whole.sum(axis=1).tolist() == found[2][0].tolist()
    assert whole.sum(axis=0).tolist() == found[2][1].tolist()
    again = nearest_whole(found)
    assert again is not None
    assert whole.tobytes() == again.tobytes()


@given(st.integers(0, 2**32), st.integers(2, 14), st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_no_cycle_of_units_improves(seed: int, rows: int, columns: int) -> None:
    """Convex costs on a network: a table is the nearest if no cycle of unit moves is cheaper than nothing (AMO93)."""
    found = problem(seed, rows, columns)
    whole, (targets, (rho, q), _) = nearest_whole(found), found
    assert whole is not None
    steps = np.full((rows + columns, rows + columns), np.inf)  # nodes: rows, then columns
    rising = (1 + 2 * (whole - targets)) / np.outer(rho, q)
    steps[:rows, rows:] = rising
    steps[rows:, :rows] = np.where(whole > 0, 2 / np.outer(rho, q) - rising, np.inf).T
    for node in range(rows + columns):
        steps = np.minimum(steps, steps[:, node : node + 1] + steps[node : node + 1])
    assert np.diag(steps).min() >= -1e-9


@given(st.lists(st.tuples(st.floats(-5, 9), st.floats(0.1, 5)), min_size=1, max_size=4), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_apportioned_counts_are_the_nearest_with_their_sum(parts: list[tuple[float, float]], total: int) -> None:
    targets, scales = np.array(parts).T.copy()
    found = apportion(targets, scales, total)
    every = (n for n in product(range(total + 1), repeat=len(parts)) if sum(n) == total)
    assert found.sum() == total
    assert found.min() >= 0
    costs = [((np.array(each) - targets) ** 2 / scales).sum() for each in every]
    assert ((found - targets) ** 2 / scales).sum() == pytest.approx(min(costs), rel=1e-9, abs=1e-9)


def test_whole_numbers_of_a_whole_solution_are_themselves() -> None:
    table = np.array([[3, 0, 2], [0, 5, 1]])
    found = nearest_whole((table.astype(float), (np.ones(2), np.ones(3)), (table.sum(axis=1), table.sum(axis=0))))
    assert found is not None
    assert found.tolist() == table.tolist()
