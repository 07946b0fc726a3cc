from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.elicitation.likelihood import maximize, second_derivatives

Floats = NDArray[np.float64]
SAMPLE = np.random.default_rng(4).standard_t(5, size=400) * 2 + 3


def student(theta: Floats) -> tuple[Floats, Floats]:
    """Location and log scale of a Student distribution with five degrees of freedom: not concave."""
    z = (SAMPLE - theta[0]) * np.exp(-theta[1])
    values = -theta[1] - 3 * np.log1p(z**2 / 5)
    slope = 6 * z / (5 + z**2)
    return values, np.column_stack([slope * np.exp(-theta[1]), slope * z - 1])


@pytest.mark.parametrize("start", [(0.0, 0.0), (5.0, 2.0), (3.0, -1.0)])
def test_the_top_is_found(start: tuple[float, float]) -> None:
    found = maximize(student, np.array(start))
    assert found is not None
    assert found.is_peak
    assert found.scores.sum(axis=0) == pytest.approx(0, abs=1e-4)
    near = [student(found.point + shift)[0].sum() for shift in 1e-2 * np.vstack([np.eye(2), -np.eye(2)])]
    assert max(near) < found.value
    assert found.point == pytest.approx([3, np.log(2)], abs=0.25)


def test_second_derivatives_are_those_of_the_values() -> None:
    point, step = np.array([2.7, 0.5]), 1e-4
    found = second_derivatives(student, point, student(point)[1])
    for i, one in enumerate(step * np.eye(2)):
        for j, other in enumerate(step * np.eye(2)):
            corners = [student(point + a * one + b * other)[0].sum() * a * b for a in (1, -1) for b in (1, -1)]
            assert found[i, j] == pytest.approx(-sum(corners) / (4 * step**2), rel=1e-3, abs=1e-2)


def test_no_top_is_none() -> None:
    def endless(theta: Floats) -> tuple[Floats, Floats]:
        return np.full(9, theta[0]) + np.arange(9), np.ones((9, 1)) * np.linspace(0.5, 1.5, 9)[:, None]

    assert maximize(endless, np.zeros(1)) is None
    assert maximize(student, np.zeros(2), most_steps=1) is None
    assert maximize(lambda theta: (np.array([np.nan]), np.full((1, 1), np.nan)), np.zeros(1)) is None


def test_a_ridge_is_no_peak() -> None:
    def ridge(theta: Floats) -> tuple[Floats, Floats]:
        values, scores = student(np.array([theta[0], theta[1] ** 2]))
        return values, scores * np.array([1.0, 2 * theta[1]])

    found = maximize(lambda theta: ridge(np.array([theta[0], 0.0]) + 1e-9 * theta), np.array([3.0, 0.0]))
    assert found is None or not found.is_peak
