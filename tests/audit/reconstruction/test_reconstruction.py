"""Records from exact tables: listed by brute force, proved by propagation, pieces and solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.audit.reconstruction import exact as reconstruction
from dualmandate.audit.reconstruction import solving
from dualmandate.audit.reconstruction.exact import Reconstruction, reconstruct
from dualmandate.audit.reconstruction.solving import (
    BoundedEquations,
    farthest_apart,
    first_solution,
    propagate,
    ranges,
    smallest_conflict,
)
from dualmandate.audit.tables import Equations
from dualmandate.benchmarks.generated_blocks import BlockSizes, blocks, tables
from dualmandate.errors import InvalidTables
from dualmandate.workload import identity, kron, marginals, stack, total

TWO_WAY = Equations.of_workload(marginals((2, 3, 2), [0, 2]))
ONE_WAY = Equations.of_workload(marginals((2, 2), [0, 1]))


def all_files(equations: Equations, values: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Every file of records with these tables, by trying all."""
    every = np.array(list(product(range(most + 1), repeat=equations.size)))
    return np.asarray(every[(equations.of(every) == values).all(axis=1)])


def check(found: Reconstruction, files: NDArray[np.int64]) -> None:
    assert found.all_solutions
    assert found.proved
    assert found.solutions == len(files)
    assert found.counts is not None
    assert (files == found.counts).all(axis=1).any()
    assert np.array_equal(found.least, files.min(axis=0))
    assert np.array_equal(found.largest, files.max(axis=0))
    apart = max(np.abs(one - files).sum(axis=1).max() for one in files) / 2
    assert found.apart == found.most_apart == apart
    assert found.unique == (len(files) == 1)
    assert found.variability == (apart / files[0].sum() if files[0].sum() else 0)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=8, max_size=8))
def test_every_file_with_the_same_tables_is_counted(counts: list[int]) -> None:
    equations = Equations.of_workload(marginals((2, 2, 2), 2))
    values = equations.of(np.array(counts))
    (found,) = reconstruct(equations, values)
    check(found, all_files(equations, values, 2))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_margins_leave_many_files(counts: list[int]) -> None:
    values = ONE_WAY.of(np.array(counts))
    (found,) = reconstruct(ONE_WAY, values)
    check(found, all_files(ONE_WAY, values, 12))


def test_the_solver_finds_what_the_list_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    equations = Equations.of_workload(marginals((3, 3), 1))
    for _ in range(6):
        values = equations.of(generator.integers(0, 3, 9))
        (listed,) = reconstruct(equations, values)
        monkeypatch.setattr(solving, "MOST_STEPS", 3)
        (solved,) = reconstruct(equations, values)
        monkeypatch.undo()
        assert listed.all_solutions
        assert (solved.apart, solved.most_apart) == (listed.apart, listed.apart)
        assert np.array_equal(solved.least, listed.least)
        assert np.array_equal(solved.largest, listed.largest)
        assert solved.proved
        assert solved.solutions <= listed.solutions
        assert solved.counts is not None
        assert np.array_equal(equations.of(solved.counts), values)


def test_one_solution_is_proved_by_the_solver_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # x + y = 3, x + 2y = 5 … with three unknowns where propagation alone does not decide
    equations = Equations.of_matrix(np.array([[1, 1, 1], [1, 2, 4], [3, 1, 2]]))
    truth = np.array([1, 2, 1])
    values = equations.of(truth)
    low, high, _ = propagate(equations, values[None], values[None])
    assert (low < high).any()
    monkeypatch.setattr(solving, "MOST_STEPS", 0)
    (found,) = reconstruct(equations, values)
    assert found.unique
    assert found.proved
    assert found.counts is not None
    assert np.array_equal(found.counts, truth)


def test_without_time_bounds_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    equations = Equations.of_workload(marginals((6, 6), 1))
    values = equations.of(np.random.default_rng(1).integers(0, 9, 36))
    monkeypatch.setattr(solving, "MOST_STEPS", 0)
    monkeypatch.setattr(reconstruction, "first_solution", lambda *_, **__: ("unknown", None))
    (found,) = reconstruct(equations, values)
    assert found.counts is None
    assert not found.proved
    assert not found.all_solutions
    assert not found.unique
    low, high, _ = propagate(equations, values[None], values[None])
    assert np.array_equal(found.least, low[0])
    assert np.array_equal(found.largest, high[0])
    assert found.most_apart == (high - low).sum() / 2


def test_inequalities_and_negative_coefficients() -> None:
    equations = Equations.of_matrix(np.array([[1, 1], [2, -3]]))
    lower, upper = np.array([[4, -3]]), np.array([[5, 0]])
    low, high, wrong = propagate(equations, lower, upper)
    assert not wrong[0]
    fits = [(x, y) for x in range(6) for y in range(6) if 4 <= x + y <= 5 and -3 <= 2 * x - 3 * y <= 0]
    assert (low[0] <= np.min(fits, axis=0)).all()
    assert (high[0] >= np.max(fits, axis=0)).all()
    values = lower[0], upper[0]
    found = ranges(equations, values, (low[0], high[0]), known=np.array(fits[:1]), seconds=60)
    assert np.array_equal(found[0], np.min(fits, axis=0))
    assert np.array_equal(found[1], np.max(fits, axis=0))
    apart = farthest_apart(equations, values, (low[0], high[0]), seconds=60)
    expected = max(abs(a - c) + abs(b - d) for a, b in fits for c, d in fits)
    assert apart.found == apart.most == expected
    assert apart.ends is not None
    assert {tuple(end) for end in apart.ends.tolist()} <= set(fits)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_propagation_never_excludes_a_file(seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-2, 4, (4, 5))
    counts = generator.integers(0, 4, 5)
    equations = Equations.of_matrix(matrix)
    exact = equations.of(counts)
    slack = generator.integers(0, 3, 4)
    low, high, wrong = propagate(equations, (exact - slack)[None], (exact + slack)[None])
    assert not wrong[0]
    assert (low[0] <= counts).all()
    assert (counts <= high[0]).all()


def test_highs_answers_where_the_first_solver_does_not() -> None:
    from dualmandate.audit.reconstruction.solving import _by_highs

    equations = Equations.of_workload(marginals((3, 3), 1))
    truth = np.arange(9)
    values = equations.of(truth)
    bounds = np.zeros(9, dtype=np.int64), np.full(9, 40)
    state, found = _by_highs(equations, (values, values), bounds, 10.0)
    assert state == "found"
    assert found is not None
    assert np.array_equal(equations.of(found), values)
    wrong = values.copy()
    wrong[0] += 1
    assert _by_highs(equations, (wrong, wrong), bounds, 10.0)[0] == "impossible"
    assert first_solution(equations, (wrong, wrong), bounds, seconds=60.0)[0] == "impossible"


def test_tables_that_contradict_each_other() -> None:
    workload = stack(kron(total(2), total(3)), kron(identity(2), total(3)), kron(total(2), identity(3)))
    equations = Equations.of_workload(workload)
    values = equations.of(np.array([1, 2, 0, 3, 1, 1]))
    values[0] += 1
    with pytest.raises(InvalidTables, match="contradict each other") as refusal:
        list(reconstruct(equations, values))
    assert "no smaller set" in refusal.value.why
    found = smallest_conflict(BoundedEquations.counts(equations, values, None))
    assert found.kind == "smallest"
    assert found.rows == (0, 1, 2)


def test_a_contradiction_that_bounds_do_not_show() -> None:
    # Even sums of x, y, z in pairs but an odd total: no bound says so, the solver does.
    equations = Equations.of_matrix(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    with pytest.raises(InvalidTables, match="all 3"):
        list(reconstruct(equations, np.array([1, 1, 1])))


def test_structural_zeros_are_nobody() -> None:
    equations = Equations.of_workload(marginals((2, 2), 1))
    values = equations.of(np.array([1, 1, 1, 0]))
    (free,) = reconstruct(equations, values)
    (held,) = reconstruct(equations, values, impossible=np.array([False, False, False, True]))
    assert free.solutions == 2
    assert held.unique
    assert held.counts is not None
    assert held.counts.tolist() == [1, 1, 1, 0]


def test_a_block_of_nobody() -> None:
    (found,) = reconstruct(TWO_WAY, np.zeros(TWO_WAY.rows, dtype=np.int64))
    assert found.unique
    assert found.records == 0
    assert found.variability == 0.0


@pytest.mark.parametrize(
    "values", [np.array([1, 2]), np.full(ONE_WAY.rows, -1), np.full(ONE_WAY.rows, 0.5), np.full(ONE_WAY.rows, 2**40)]
)
def test_numbers_that_are_no_counts(values: NDArray[Any]) -> None:
    with pytest.raises(InvalidTables):
        list(reconstruct(ONE_WAY, values))


def test_cells_that_no_table_counts() -> None:
    equations = Equations.of_matrix(np.array([[1, 0]]))
    with pytest.raises(InvalidTables, match="counted in no table"):
        list(reconstruct(equations, np.array([3])))


def test_a_generated_census() -> None:
    equations = Equations.of_workload(tables())
    truth = blocks(300, seed=2010)
    assert ((truth.sum(axis=1) >= 30) & (truth.sum(axis=1) <= 100)).all()
    values = equations.of(truth)
    found = list(reconstruct(equations, values, workers=2))
    assert len(found) == 300
    assert all(each.proved for each in found)
    agreed = sum(each.right(own) for each, own in zip(found, truth, strict=True))
    assert 0.88 < agreed / truth.sum() < 1  # 38 age bins, against the tabulated file itself
    for each, own in zip(found, truth, strict=True):
        assert (each.least <= own).all()
        assert (own <= each.largest).all()
        assert each.counts is not None
        assert each.variability is not None
        assert np.abs(each.counts - own).sum() / 2 <= each.most_apart
        if each.unique:
            assert np.array_equal(each.counts, own)
            assert each.variability == 0
    fewer = list(
        reconstruct(Equations.of_workload(tables(summary_file=False)), _redistricting(values[:20]), variability=False)
    )
    assert np.mean([each.unique for each in fewer]) == 0


def _redistricting(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values[:, : Equations.of_workload(tables(summary_file=False)).rows]


def test_small_blocks_are_mostly_unique() -> None:
    equations = Equations.of_workload(tables())
    truth = blocks(60, seed=1, sizes=BlockSizes(1, 9))
    found = list(reconstruct(equations, equations.of(truth)))
    assert np.mean([each.unique for each in found]) > 0.9
