from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.workload import extremum
from dualmandate.workload.extremum import Choices, ExtremumRule, Problem, climbed, corners, largest, undominated


def negated(flag: int) -> ExtremumRule:
    return ExtremumRule((flag,), lambda flags: ~flags[:, 0], monotone=True)


def same(one: int, other: int) -> ExtremumRule:
    return ExtremumRule((one, other), lambda flags: np.asarray(flags[:, 0] == flags[:, 1]), monotone=False)


def problem(random: np.random.Generator, low: int) -> Problem:
    dimensions, terms = int(random.integers(1, 4)), int(random.integers(1, 5))
    axes = []
    for _ in range(dimensions):
        shape = (int(random.integers(1, 5)), int(random.integers(1, 4)))
        axes.append(Choices(random.integers(low, 4, shape), random.random((shape[0], 4)) < 0.8))
    columns = np.stack([random.integers(0, axis.numbers.shape[1], terms) for axis in axes], axis=1)
    coefficients = tuple(int(each) for each in random.integers(-3, 4, terms))
    return Problem(coefficients, columns, tuple(axes), (negated(0), negated(1), same(2, 3)))


def every_value(asked: Problem) -> list[int]:
    values = []
    for chosen in product(*(range(len(axis.numbers)) for axis in asked.axes)):
        flags = np.all([axis.flags[choice] for axis, choice in zip(asked.axes, chosen, strict=True)], axis=0)[None, :]
        if all(rule.allows(flags[:, list(rule.flags)])[0] for rule in asked.rules):
            value = 0
            for coefficient, columns in zip(asked.coefficients, asked.columns, strict=True):
                for axis, choice, column in zip(asked.axes, chosen, columns, strict=True):
                    coefficient *= int(axis.numbers[choice, column])
                value += coefficient
            values.append(value)
    return values


@given(seed=st.integers(0, 10**6), low=st.sampled_from([-2, 0]))
@settings(max_examples=200, deadline=None)
def test_largest_equals_enumeration(seed: int, low: int) -> None:
    asked = problem(np.random.default_rng(seed), low)
    values = every_value(asked)
    found = largest(asked)
    assert found is not None
    assert found.value == max(values, default=None)
    reached = climbed(asked)
    assert reached is None or reached in values


def test_too_many_classes_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = Choices(np.array([[1, 2], [2, 1]]), np.zeros((2, 0), dtype=np.bool_))
    asked = Problem((1, 1), np.array([[0, 0], [1, 1]]), (axis, axis))
    assert largest(asked) == extremum.Extremum(5, 4)
    monkeypatch.setattr(extremum, "LARGEST_ENUMERATION", 3)
    assert largest(asked) is None


def test_numbers_beyond_64_bits() -> None:
    axis = Choices(np.array([[2**40], [-(2**40)]]), np.zeros((2, 0), dtype=np.bool_))
    found = largest(Problem((1,), np.array([[0, 0]]), (axis, axis)))
    assert found is not None
    assert found.value == 2**80


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 60), columns=st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_undominated_rows_beat_all_others(seed: int, rows: int, columns: int) -> None:
    gain = np.random.default_rng(seed).integers(-3, 4, (rows, columns))
    kept = undominated(gain)
    assert all(bool(np.any(np.all(gain[kept] >= row, axis=1))) for row in gain)
    assert len({tuple(row) for row in gain[kept].tolist()}) == len(kept)
    for one in kept:
        assert not any(bool(np.all(gain[other] >= gain[one])) for other in kept if other != one)


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 80), rank=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_corners_hold_the_largest_value_of_every_linear_function(seed: int, rows: int, rank: int) -> None:
    random = np.random.default_rng(seed)
    points = random.integers(-6, 7, (rows, rank)) @ random.integers(-3, 4, (rank, 4)) + random.integers(-3, 4, 4)
    kept = corners(points)
    for direction in random.integers(-9, 10, (60, 4)):
        assert (points[kept] @ direction).max() == (points @ direction).max()
    if rank <= 1 and rows >= 8:
        assert len(kept) <= 2


def test_corners_of_a_triangle_of_many_points() -> None:
    grid = np.stack(np.meshgrid(np.arange(300), np.arange(300)), axis=-1).reshape(-1, 2)
    below = grid[grid.sum(axis=1) < 300]
    plane = np.stack([below[:, 0], below[:, 1], 5 - below[:, 0] + 2 * below[:, 1]], axis=1)
    assert sorted(below[corners(plane)].tolist()) == [[0, 0], [0, 299], [299, 0]]
