"""Lists of solutions, their ends and their distances, against all solutions by brute force."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.audit.reconstruction import solving
from dualmandate.audit.reconstruction.exact import reconstruct
from dualmandate.audit.reconstruction.solving import (
    FIRST_SOLUTIONS,
    MOST_SOLUTIONS,
    enumerate_piece,
    farthest,
    farthest_apart,
    ranges,
)
from dualmandate.audit.tables import Equations
from dualmandate.workload import marginals

MOST = 3  # of an unknown


def some_piece(seed: int) -> tuple[Equations, Any, Any, NDArray[np.int64]]:
    """Two or three equations over five unknowns from 0 to 3, and all their solutions."""
    generator = np.random.default_rng(seed)
    equations = Equations.of_matrix(generator.integers(-1, 3, (2 + seed % 2, 5)))
    values = equations.of(generator.integers(0, MOST + 1, 5))
    bounds = np.zeros(5, dtype=np.int64), np.full(5, MOST)
    every = np.array(list(product(range(MOST + 1), repeat=5)))
    return equations, (values, values), bounds, every[(equations.of(every) == values).all(axis=1)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_ends_are_reached_from_one_solution(seed: int) -> None:
    equations, values, bounds, files = some_piece(seed)
    least, largest, proved = ranges(equations, values, bounds, known=files[-1:], seconds=60.0)
    assert proved
    assert np.array_equal(least, files.min(axis=0))
    assert np.array_equal(largest, files.max(axis=0))
    assert bounds[0].max() == 0  # what was given is left as it was
    assert bounds[1].min() == MOST


def test_far_ends_are_reached() -> None:
    equations = Equations.of_matrix(np.array([[1, 2, 0], [0, 3, 1]]))
    values = np.array([41, 65])  # x odd from 1 to 41, y from 0 to 20, z = 65 − 3y from 5 to 65
    bounds = np.zeros(3, dtype=np.int64), np.full(3, 90)
    for y in (0, 7, 20):
        known = np.array([[41 - 2 * y, y, 65 - 3 * y]])
        least, largest, proved = ranges(equations, (values, values), bounds, known=known, seconds=60.0)
        assert proved
        assert least.tolist() == [1, 0, 5]
        assert largest.tolist() == [41, 20, 65]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_distances_by_loop_by_solver_and_by_comparing_all(seed: int) -> None:
    equations, values, bounds, files = some_piece(seed)
    apart = max(int(np.abs(one - files).sum(axis=1).max()) for one in files)
    assert farthest(files) == apart
    solved = farthest_apart(equations, values, bounds, seconds=60.0)
    assert (solved.found, solved.most) == (apart, apart)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 6))
def test_no_pair_is_passed_over(seed: int, count: int, unknowns: int) -> None:
    solutions = np.random.default_rng(seed).integers(0, 3, (count, unknowns))
    assert farthest(solutions) == max(int(np.abs(one - solutions).sum(axis=1).max()) for one in solutions)


def test_long_distances() -> None:
    generator = np.random.default_rng(5)
    solutions = generator.integers(0, 60, (40, 9))
    assert farthest(solutions) == max(int(np.abs(one - solutions).sum(axis=1).max()) for one in solutions)
    assert farthest(np.array([[0, 130], [130, 0]])) == 260
    assert farthest(np.array([[3, 4]])) == 0


def test_without_time_ends_are_not_proved() -> None:
    equations = Equations.of_workload(marginals((5, 5), 1))
    values = equations.of(np.ones(25, dtype=np.int64))
    bounds = np.zeros(25, dtype=np.int64), np.full(25, 5)
    ask = partial(ranges, equations, (values, values), bounds, known=np.ones((1, 25), dtype=np.int64))
    least, largest, proved = ask(seconds=60.0)
    assert proved
    assert least.tolist() == [0] * 25
    assert largest.tolist() == [5] * 25
    least, largest, proved = ask(seconds=1e-9)
    assert not proved
    assert np.array_equal(least, bounds[0])
    assert np.array_equal(largest, bounds[1])


def test_what_the_search_leaves_open_the_solver_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    equations = Equations.of_workload(marginals((3, 3), 1))
    values = equations.of(np.random.default_rng(2).integers(0, 3, (5, 9)))
    listed = list(reconstruct(equations, values))
    monkeypatch.setattr(solving, "MOST_STEPS", 3)
    for one, other in zip(listed, reconstruct(equations, values), strict=True):
        assert other.proved
        assert (other.apart, other.most_apart) == (one.apart, one.apart)
        assert np.array_equal(other.least, one.least)
        assert np.array_equal(other.largest, one.largest)


def test_a_list_without_end_is_given_up_early() -> None:
    equations = Equations.of_matrix(np.ones((1, 12), dtype=np.int64))
    bounds = np.zeros(12, dtype=np.int64), np.full(12, 6)
    six = np.array([6])
    found, complete = enumerate_piece(equations, (six, six), bounds)  # of 12,376
    assert not complete
    assert len(found) == FIRST_SOLUTIONS
    assert np.array_equal(equations.of(found)[:, 0], np.full(len(found), 6))
    four = np.array([4])
    found, complete = enumerate_piece(equations, (four, four), bounds)
    assert not complete  # a mistake that costs a count, not a proof: there are 1,365
    three = np.array([3])
    found, complete = enumerate_piece(equations, (three, three), bounds)
    assert complete
    assert len(np.unique(found, axis=0)) == len(found) == 364
    pairs = Equations.of_matrix(np.kron(np.eye(11, dtype=np.int64), np.ones((1, 2), dtype=np.int64)))
    ones = np.ones(11, dtype=np.int64)
    found, complete = enumerate_piece(pairs, (ones, ones), (np.zeros(22, dtype=np.int64), np.ones(22, dtype=np.int64)))
    assert complete
    assert FIRST_SOLUTIONS < len(np.unique(found, axis=0)) == len(found) == 2**11 < MOST_SOLUTIONS
