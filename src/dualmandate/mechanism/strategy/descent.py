"""The least value of a smooth function of many numbers, each between 0 and a bound.

Limited-memory quasi-Newton steps in the entries that no bound holds, projected back into the bounds. The two-loop
recursion runs in the coefficients of the last steps and changes of slope, whose inner products are one small matrix, so
the unknowns stay on their device. Source: [Noc80] for the recursion, [CWZ14] for its coefficients, [Ber82] for bounds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dualmandate.mechanism.strategy.arrays import Array, Arrays

MEMORY = 5  # steps that the curvature is learned from
PATIENCE = 10  # steps that must gain something together
MOST_CUTS = 30  # of one step
SUFFICIENT = 1e-4  # share of the decrease promised by the slope that a step must bring (Armijo's rule)
FIRST_MOVE = 0.1  # length of a step before any curvature is known
LEAST_CURVATURE = 1e-10  # cosine between a step and its change of slope below which it tells nothing

Loss: TypeAlias = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended."""

    point: Array
    value: float
    steps: int
    evaluations: int


def descend(loss: Loss, start: Array, *, arrays: Arrays, upper: float, steps: int, tolerance: float) -> Descent:
    """The point that `steps` steps lead to, or fewer where ten of them gain no more than `tolerance` × value.

    `loss` gives the value and the slope, of the point's shape; every entry of the point stays in [0, upper].
    """
    point, (value, slope) = start, loss(start)
    memory, recent = _Memory(arrays, start.shape), deque([value], maxlen=PATIENCE + 1)
    taken, evaluations = 0, 1
    while taken < steps:
        direction, length = memory.direction(point, slope, upper), 1.0
        for _ in range(MOST_CUTS):
            moved = arrays.clip(point - length * direction, 0.0, upper)
            reached, new_slope = loss(moved)
            evaluations += 1
            move = (moved - point).reshape(-1)
            promised = min(0.0, float(arrays.vecdot(move, slope.reshape(-1))))
            if reached <= value + SUFFICIENT * promised:
                break
            # the parabola through both values and the slope is lowest here
            length *= min(0.5, max(0.1, -0.5 * promised / (reached - value - promised)))
        else:
            break
        memory.learn(move, (new_slope - slope).reshape(-1))
        point, value, slope = moved, reached, new_slope
        taken += 1
        recent.append(value)
        if len(recent) > PATIENCE and recent[0] - value <= tolerance * abs(value):
            break
    return Descent(point, value, taken, evaluations)


class _Memory:
    """The last steps and changes of slope, one row each, and the present slope below them."""

    def __init__(self, arrays: Arrays, shape: tuple[int, ...]) -> None:
        self.arrays = arrays
        self.shape = shape
        self.rows = arrays.zeros((2 * MEMORY + 1, math.prod(shape)))
        self.order: list[int] = []  # rows that hold steps, oldest first

    def learn(self, step: Array, change: Array) -> None:
        """Keep a step along which the slope rises, in place of the oldest."""
        if float(self.arrays.vecdot(step, change)) <= 0.0:
            return
        row = len(self.order) if len(self.order) < MEMORY else self.order.pop(0)
        self.order.append(row)
        self.rows[row], self.rows[MEMORY + row] = step, change

    def direction(self, point: Array, slope: Array, upper: float) -> Array:
        """The quasi-Newton direction uphill in the entries that no bound holds; zero in the others."""
        flat, uphill = point.reshape(-1), slope.reshape(-1)
        self.rows[-1] = uphill
        free = self.arrays.nonzero(((flat > 0.0) | (uphill < 0.0)) & ((flat < upper) | (uphill > 0.0)))
        chosen = self.arrays.take(self.rows, free)
        products = self.arrays.to_numpy(self.arrays.gram(chosen)).tolist()
        weights = self.arrays.asarray([_coefficients(products, self.order)])
        direction = self.arrays.zeros(flat.shape)
        direction[free] = self.arrays.matmul(weights, chosen)[0]
        return direction.reshape(self.shape)


def _coefficients(products: list[list[float]], order: list[int]) -> list[float]:
    """The direction H·g as a combination of the rows that `products` are the inner products of, g the last of them."""
    weights = [0.0] * len(products)
    weights[-1], scale = 1.0, 0.0
    shares: list[tuple[int, float]] = []
    for row in reversed(order):
        step, change = products[row], products[MEMORY + row]
        curvature = step[MEMORY + row]
        if curvature <= LEAST_CURVATURE * math.sqrt(step[row] * change[MEMORY + row]):
            continue  # in the free entries this step shows none
        share = _dot(weights, step) / curvature
        weights[MEMORY + row] -= share
        shares.append((row, share))
        scale = scale or curvature / change[MEMORY + row]
    if not shares:
        weights[-1] = FIRST_MOVE / max(math.sqrt(products[-1][-1]), 1e-300)
        return weights
    weights = [scale * weight for weight in weights]
    for row, share in reversed(shares):
        change = products[MEMORY + row]
        weights[row] += share - _dot(weights, change) / change[row]
    return weights


def _dot(left: list[float], right: list[float]) -> float:
    total = 0.0  # sum() adds up differently in different versions of Python
    for x, y in zip(left, right, strict=True):
        total += x * y
    return total
