"""Tables that pull: against another solver, and whole numbers with margins that hold whatever pulls."""

from __future__ import annotations

import numpy as np
import piqp
import pytest
from numpy.typing import NDArray
from tests.publication.consistency.test_estimates import FREE, REGULAR, TREE, indices, measure

from dualmandate.publication.consistency.crossing import estimate_crossed
from dualmandate.publication.consistency.estimates import Pair
from dualmandate.publication.consistency.partitions import PartitionChain
from dualmandate.publication.consistency.strata import CrossingMeasurement
from dualmandate.publication.consistency.top_down_rounding import (
    CountConstraints,
    SoftConstraint,
    soft_constrained,
    top_down,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Problem = tuple[Floats, Floats, Integers, tuple[Integers, Integers], tuple[SoftConstraint, ...]]


def problem(seed: int, children: int, sizes: list[int]) -> Problem:
    """A family of small counts, some of its margins 0, with two tables that cross its groups."""
    generator = np.random.default_rng(seed)
    parts, starts = sum(sizes), np.append(0, np.cumsum(sizes))
    truth = generator.poisson(generator.gamma(0.4, 3.0, (children, parts)))
    targets = truth + generator.normal(0.0, 4.0, truth.shape)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    slopes = generator.uniform(0.5, 2.0, (children, len(sizes)))[:, groups] * generator.uniform(0.5, 2.0, parts)
    pulls = []
    for labels in (generator.integers(-1, 3, parts), np.arange(parts) % 2):
        exact = np.stack([truth[:, labels == j].sum(axis=1) for j in range(int(labels.max()) + 1)], axis=1)
        wanted = exact + generator.normal(0.0, 1.0, exact.shape)
        pulls.append(SoftConstraint(labels, wanted, generator.uniform(0.5, 3.0, children)))
    return targets, slopes, starts, (np.add.reduceat(truth, starts[:-1], axis=1), truth.sum(axis=0)), tuple(pulls)


def by_another_solver(found: Problem, *, columns: bool) -> Floats:
    targets, slopes, starts, margins, pulls = found
    children, parts = targets.shape
    curvature, slope = np.diag(1 / slopes.reshape(-1)), -(targets / slopes).reshape(-1)
    for pull in pulls:
        counted = (pull.labels == np.arange(pull.wanted.shape[1])[:, None]).astype(float)
        for child in range(children):
            rows = np.kron(np.eye(children)[child], counted)
            curvature += rows.T @ rows / pull.variances[child]
            slope -= rows.T @ pull.wanted[child] / pull.variances[child]
    groups = np.repeat(np.eye(len(starts) - 1), np.diff(starts), axis=1)
    equations, known = np.kron(np.eye(children), groups), margins[0].reshape(-1)
    if columns:
        equations = np.concatenate([equations, np.tile(np.eye(parts), children)])
        known = np.concatenate([known, margins[1]])
    rank, kept = 0, list[int]()
    for row in range(len(equations)):  # equations that say something new
        if np.linalg.matrix_rank(equations[[*kept, row]]) > rank:
            kept.append(row)
            rank += 1
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    given = equations[kept], known[kept].astype(np.float64)
    solver.setup(curvature, slope, *given, x_l=np.zeros(targets.size))
    assert solver.solve() == piqp.PIQP_SOLVED
    return np.asarray(solver.result.x).reshape(targets.shape)


@pytest.mark.parametrize("seed", range(8))
def test_pulled_tables_are_those_of_another_solver(seed: int) -> None:
    found = problem(seed, 2 + seed, [3, 2, 4])
    ours, aimed = soft_constrained(*found, tolerance=1e-10, most_sweeps=100_000)
    assert ours == pytest.approx(by_another_solver(found, columns=True), abs=1e-5)
    # What it says of cells that are empty leaves them empty: the nearest table without pulls is the same.
    alone = by_another_solver((aimed, *found[1:4], ()), columns=True)
    assert ours == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_root_has_no_columns_to_meet(seed: int) -> None:
    targets, slopes, starts, margins, pulls = problem(seed, 1, [3, 2, 4])
    slopes[:, 1] = 0.0  # cannot occur
    ours, _ = soft_constrained(targets, slopes, starts, (margins[0], None), pulls, tolerance=1e-10, most_sweeps=100_000)
    slopes[:, 1], targets[:, 1] = 1e-9, 0.0
    theirs = by_another_solver((targets, slopes, starts, margins, pulls), columns=False)
    assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("level", [1, 2])
def test_whole_tables_come_nearer_to_what_pulls_and_still_add_up(level: int) -> None:
    """Precise numbers of a crossing table move whole counts to them; margins hold."""
    nodes = TREE.sizes[level]
    table = CrossingMeasurement(level, np.arange(nodes), indices(0, 1, 2, 0, 1, 2), (nodes, 3), 0.05)
    noisy, missed = {pair: 12 * each for pair, each in FREE.items()}, np.zeros(2)
    for seed in range(20):
        truth, measured = measure(TREE, REGULAR, noisy, seed)
        exact = np.stack([truth[:, table.groups == j].sum(axis=1) for j in range(3)], axis=1)
        for starts in reversed(TREE.starts[level:]):
            exact = np.add.reduceat(exact, starts[:-1], axis=0)
        found = estimate_crossed((TREE, REGULAR), measured, noisy, [(table, exact)]).estimates
        for i, constraints in enumerate((CountConstraints(), CountConstraints((table,)))):
            tables = top_down(found, constraints=constraints)
            for above, below, starts in zip(tables, tables[1:], TREE.starts, strict=False):
                assert np.array_equal(np.add.reduceat(below, starts[:-1], axis=0), above)
            counted = np.stack([tables[level][:, table.groups == j].sum(axis=1) for j in range(3)], axis=1)
            missed[i] += np.abs(counted - exact).sum()
    assert missed[1] < 0.8 * missed[0]


def test_what_is_counted_below_pulls_above_too() -> None:
    """Many cells that are mostly empty: from the root down their noise below 0 is cut off, and sums of them drift."""
    chain, missed = PartitionChain((np.zeros(60, dtype=np.int64),)), np.zeros(2)
    variances: dict[Pair, float] = {(level, k): 30.0 for level in range(3) for k in range(2)} | {(0, 0): 0.0}
    table = CrossingMeasurement(1, np.arange(2), np.arange(60) % 2, (2, 2), 0.1)
    for seed in range(10):
        generator = np.random.default_rng(seed)
        levels = [generator.poisson(1.0, (5, 60)) * (np.arange(60) < 6) * (2 - np.arange(60) % 2)]
        for starts in reversed(TREE.starts):
            levels.insert(0, np.add.reduceat(levels[0], starts[:-1], axis=0))
        measured = {}
        for (level, k), variance in variances.items():
            exact = levels[level] if k else levels[level].sum(axis=1, keepdims=True)
            measured[level, k] = np.rint(exact + generator.normal(0, variance**0.5, exact.shape))
        numbers = levels[1].reshape(2, 30, 2).sum(axis=1)
        found = estimate_crossed((TREE, chain), measured, variances, [(table, numbers)]).estimates
        for i, constraints in enumerate((CountConstraints(), CountConstraints((table,)))):
            counted = top_down(found, constraints=constraints)[1].reshape(2, 30, 2).sum(axis=1)
            missed[i] += np.abs(counted - numbers).sum()
    assert missed[1] < 0.15 * missed[0]


def test_cells_that_nobody_measured_are_found_where_the_many_are_and_rounding_keeps_what_pulls() -> None:
    """Groups of sixteen cells, of which hardly any but the first two count somebody; tables of halves, and of eight."""
    many, cells = 30, np.arange(480)
    chain, missed = PartitionChain((np.zeros(many, dtype=np.int64), np.repeat(np.arange(many), 16))), list[float]()
    labels = cells // 16 * 2 + cells % 2, cells % 2, cells % 16 // 2
    pulls = [CrossingMeasurement(1, np.arange(2), each, (2, int(each.max()) + 1), 4.0) for each in labels]
    variances: dict[Pair, float] = {(level, k): 4.0 for level in range(3) for k in range(2)} | {(0, 0): 0.0}
    for seed in range(5):
        generator = np.random.default_rng(seed)
        sizes = np.repeat(generator.lognormal(1.0, 2.0, many), 16)
        rates = np.outer([0.9, 0.04, 0.02, 0.02, 0.01, 0.01, 0.0, 0.0], [0.7, 0.3]).reshape(-1)
        levels = [generator.poisson(sizes * np.tile(rates, many), (5, 16 * many))]
        for starts in reversed(TREE.starts):
            levels.insert(0, np.add.reduceat(levels[0], starts[:-1], axis=0))
        measured = {}
        for (level, k), variance in variances.items():
            exact = chain.sums(levels[level], k)
            measured[level, k] = np.rint(exact + generator.normal(0, variance**0.5, exact.shape))
        truth, numbers = [], []
        for pull in pulls:
            truth.append(np.stack([levels[1][:, pull.groups == j].sum(axis=1) for j in range(pull.shape[1])], axis=1))
            numbers.append(np.rint(truth[-1] + generator.normal(0, 2.0, truth[-1].shape)))
        found = estimate_crossed((TREE, chain), measured, variances, list(zip(pulls, numbers, strict=True))).estimates
        tables = top_down(found, constraints=CountConstraints(tuple(pulls)))
        for above, below, starts in zip(tables, tables[1:], TREE.starts, strict=False):
            assert np.array_equal(np.add.reduceat(below, starts[:-1], axis=0), above)
        counted = np.stack([tables[1][:, labels[2] == j].sum(axis=1) for j in range(8)], axis=1)
        missed.append(float(np.square(counted - truth[2]).mean()))
    assert np.mean(missed) < 2.8  # the measurements miss 4; cells found one by one 3.2


def test_few_families_hold_cells_that_margins_leave_free() -> None:
    """A group with one part, or one child, that has any is its margin; the rest is as without it."""
    targets, slopes, starts, margins, pulls = problem(3, 4, [3, 2, 4])
    rows, columns = margins[0].copy(), margins[1].copy()
    rows[:, 1] = [5, 0, 0, 0]
    columns[3:5] = [4, 1]
    ours, aimed = soft_constrained(targets, slopes, starts, (rows, columns), pulls, tolerance=1e-10)
    assert np.array_equal(ours[0, 3:5], columns[3:5])
    assert not ours[1:, 3:5].any()
    assert np.array_equal(aimed[0, 3:5], columns[3:5])
    assert np.add.reduceat(ours, starts[:-1], axis=1) == pytest.approx(rows, abs=1e-6)
