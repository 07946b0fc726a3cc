"""The descent within bounds: by hand, against matrices, and against scipy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from dualmandate.mechanism.strategy.arrays import NUMPY, Arrays, TorchArrays
from dualmandate.mechanism.strategy.descent import MEMORY, Descent, _coefficients, _dot, _Memory, descend

Floats = NDArray[np.float64]
Loss = Callable[[Floats], tuple[float, Floats]]


def descended(loss: Loss, start: Floats, *, upper: float = 10.0, steps: int = 1000) -> Descent:
    return descend(loss, start, arrays=NUMPY, upper=upper, steps=steps, tolerance=1e-12)


def paraboloid(target: Floats) -> Loss:
    return lambda point: (float(np.square(point - target).sum()), 2.0 * (point - target))


def quadratic(generator: np.random.Generator, size: int) -> Loss:
    root = generator.standard_normal((size, size))
    matrix, linear = root @ root.T + 0.01 * np.eye(size), 5.0 * generator.standard_normal(size)
    return lambda point: (float(0.5 * point @ matrix @ point - linear @ point), matrix @ point - linear)


def valley(point: Floats) -> tuple[float, Floats]:
    """Rosenbrock's, in pairs: flat along a curved valley."""
    first, second = point[::2], point[1::2]
    off, slope = second - first**2, np.empty_like(point)
    slope[::2], slope[1::2] = -400.0 * off * first - 2.0 * (1.0 - first), 200.0 * off
    return float((100.0 * off**2 + (1.0 - first) ** 2).sum()), slope


def test_by_hand() -> None:
    """The nearest point of [0, 1]³ to (2, −1, ½)."""
    found = descended(paraboloid(np.array([2.0, -1.0, 0.5])), np.full(3, 0.3), upper=1.0)
    np.testing.assert_allclose(found.point, [1.0, 0.0, 0.5], atol=1e-9)
    assert found.value == pytest.approx(2.0)
    assert found.evaluations >= found.steps > 0


def test_the_shape_of_the_start_is_kept() -> None:
    found = descended(paraboloid(np.array([[2.0, -1.0], [0.5, 0.25]])), np.ones((2, 2)), upper=1.0)
    np.testing.assert_allclose(found.point, [[1.0, 0.0], [0.5, 0.25]], atol=1e-9)


def test_where_every_entry_is_held() -> None:
    found = descended(paraboloid(np.array([-1.0, 3.0])), np.array([0.0, 1.0]), upper=1.0)
    np.testing.assert_array_equal(found.point, [0.0, 1.0])


def test_no_steps() -> None:
    found = descended(paraboloid(np.ones(2)), np.zeros(2), steps=0)
    assert (found.value, found.steps, found.evaluations) == (2.0, 0, 1)


def test_a_value_that_cannot_be_computed_is_stepped_back_from() -> None:
    """−x − log(5 − x)/100 has no value beyond 5 and is least at 4.99; the bound is far away."""

    def walled(point: Floats) -> tuple[float, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((-point - 0.01 * np.log(5.0 - point)).sum()), -1.0 + 0.01 / (5.0 - point)

    found = descended(walled, np.array([1.0, 4.5]), steps=200)
    np.testing.assert_allclose(found.point, 4.99, atol=1e-5)
    assert found.evaluations > found.steps + 1


@pytest.mark.parametrize("size", [3, 12, 40])
def test_against_scipy_on_quadratics(generator: np.random.Generator, size: int) -> None:
    for _ in range(5):
        loss, start = quadratic(generator, size), generator.random(size)
        found = descended(loss, start, upper=1.0)
        bounds = [(0.0, 1.0)] * size
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 20_000}
        other = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        assert found.value == pytest.approx(other.fun, rel=1e-7, abs=1e-7)
        assert found.point.min() >= 0.0
        assert found.point.max() <= 1.0


@pytest.mark.parametrize("upper", [0.7, 10.0])
def test_against_scipy_in_a_valley(upper: float) -> None:
    start = np.tile([0.1, 0.6], 5)
    found = descended(valley, start, upper=upper)
    other = minimize(valley, start, jac=True, method="L-BFGS-B", bounds=[(0.0, upper)] * 10, options={"ftol": 1e-15})
    assert found.value == pytest.approx(other.fun, rel=1e-6, abs=1e-8)


def test_longer_is_never_worse_and_always_the_same(generator: np.random.Generator) -> None:
    loss, start = quadratic(generator, 30), generator.random(30)
    values = [descended(loss, start, upper=1.0, steps=steps).value for steps in range(1, 40)]
    assert all(later <= earlier for earlier, later in pairwise(values))
    first, second = (descended(loss, start, upper=1.0) for _ in range(2))
    np.testing.assert_array_equal(first.point, second.point)


def test_the_tolerance_ends_it() -> None:
    start = np.tile([0.1, 0.6], 5)
    early, late = (descend(valley, start, arrays=NUMPY, upper=9.0, steps=500, tolerance=each) for each in (1e3, 1e-9))
    assert early.steps == 10
    assert early.steps < late.steps < 500
    assert late.value < early.value


def test_the_recursion_is_the_update_of_a_matrix(generator: np.random.Generator) -> None:
    """H ← (I − ρsyᵀ)H(I − ρysᵀ) + ρssᵀ from γI, written out, on the entries that are free."""
    size = 9
    curvature = np.diag(generator.random(size) + 0.5)
    memory, pairs = _Memory(NUMPY, (size,)), []
    for _ in range(MEMORY + 3):
        step = generator.standard_normal(size)
        memory.learn(step, curvature @ step)
        pairs.append((step, curvature @ step))
    memory.learn(step, -step)  # shows no curvature, and is forgotten
    point, slope = np.full(size, 0.5), generator.standard_normal(size)
    point[2], slope[2] = 0.0, 1.0  # held
    free = np.arange(size) != 2
    step, change = (each[free] for each in pairs[-1])
    matrix = np.eye(size - 1) * (step @ change) / (change @ change)
    for pair in pairs[-MEMORY:]:
        step, change = (each[free] for each in pair)
        left = np.eye(size - 1) - np.outer(step, change) / (step @ change)
        matrix = left @ matrix @ left.T + np.outer(step, step) / (step @ change)
    direction = memory.direction(point, slope, 1.0)
    assert direction[2] == 0.0
    np.testing.assert_allclose(direction[free], matrix @ slope[free], rtol=1e-9)


def test_inner_products_of_the_recursion_are_added_up_in_order() -> None:
    """1 + 10¹⁶ − 10¹⁶ from left to right, in every version of Python."""
    assert _dot([1.0, 1e16, -1e16], [1.0, 1.0, 1.0]) == 0.0


def test_without_curvature_the_first_move_is_short() -> None:
    products = np.zeros((2 * MEMORY + 1, 2 * MEMORY + 1))
    products[-1, -1] = 25.0  # a slope of length 5
    weights = _coefficients(products.tolist(), [])
    assert weights[-1] * 5.0 == pytest.approx(0.1)
    assert not any(weights[:-1])


def test_the_same_on_torch(torch: Any) -> None:
    arrays: Arrays = TorchArrays(torch, torch.device("cpu"))
    target = np.linspace(-1.0, 2.0, 24).reshape(4, 6)
    curved = 1.0 + np.arange(24.0).reshape(4, 6)

    def loss(point: Floats) -> tuple[float, Floats]:
        return float((curved * (point - target) ** 2).sum()), 2.0 * curved * (point - target)

    def same(point: object) -> tuple[float, object]:
        value, slope = loss(arrays.to_numpy(point))
        return value, arrays.asarray(slope)

    one = descended(loss, np.ones((4, 6)), upper=1.0)
    other = descend(same, arrays.asarray(np.ones((4, 6))), arrays=arrays, upper=1.0, steps=1000, tolerance=1e-12)
    np.testing.assert_allclose(arrays.to_numpy(other.point), one.point, atol=1e-7)
    np.testing.assert_allclose(one.point, np.clip(target, 0.0, 1.0), atol=1e-6)
