"""The kernel against the same formulas written out in plain arrays, and its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.elicitation.halton import normal_draws
from dualmandate.elicitation.mixed_kernel import (
    CHUNK,
    LINEAR,
    NEGATIVE,
    POSITIVE,
    Layout,
    Panel,
    exponentials,
    simulate,
)

Floats = NDArray[np.float64]


def test_exponentials_to_the_last_digits() -> None:
    points = np.concatenate([np.linspace(-690, 690, 200_001), np.linspace(-1, 1, 20_001), [0.0]])
    found = points.copy()
    exponentials(found)
    assert found[-1] == 1
    assert np.abs(found / np.exp(points) - 1).max() < 5e-16


def panel(tasks: tuple[int, ...], draws: int, columns: int, attributes: int = 4) -> Panel:
    """People with different numbers of tasks, tasks with one to three alternatives beside the chosen one."""
    generator = np.random.default_rng(sum(tasks))
    shown = generator.integers(1, 4, sum(tasks))
    return Panel(
        rows=generator.normal(size=(shown.sum(), attributes)),
        task_starts=np.append(0, np.cumsum(shown)),
        person_starts=np.append(0, np.cumsum(tasks)),
        draws=normal_draws(len(tasks), draws, columns),
    )


def plainly(given: Panel, layout: Layout, theta: Floats) -> Floats:
    """Log of the mean, over draws, of the product of logit probabilities."""
    size, found = len(layout.forms), []
    for person, draws in enumerate(given.draws):
        taste = np.repeat(theta[:size, None], draws.shape[1], axis=1)
        for k, column in enumerate(layout.columns):
            if column >= 0:
                taste[k] += theta[size + column] * draws[column]
            if layout.forms[k] != LINEAR:
                taste[k] = np.exp(taste[k]) * (1 if layout.forms[k] == POSITIVE else -1)
        if layout.price >= 0:
            others = np.arange(size) != layout.price
            taste[others] *= -taste[layout.price]
        log = np.zeros(draws.shape[1])
        for task in range(given.person_starts[person], given.person_starts[person + 1]):
            rows = given.rows[given.task_starts[task] : given.task_starts[task + 1]]
            log -= np.log1p(np.exp(rows @ taste).sum(axis=0))
        found.append(np.logaddexp.reduce(log) - np.log(draws.shape[1]))
    return np.array(found)


LAYOUTS = {
    "normal": ([LINEAR] * 4, [0, 1, 2, -1], -1),
    "lognormal": ([LINEAR, POSITIVE, NEGATIVE, LINEAR], [-1, 0, 1, 2], -1),
    "money": ([LINEAR, POSITIVE, LINEAR, NEGATIVE], [0, 1, -1, 2], 3),
    "money, one scale": ([NEGATIVE, LINEAR, LINEAR, NEGATIVE], [-1, 0, 1, 2], 0),
}


@pytest.mark.parametrize("draws", [1, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
@pytest.mark.parametrize("name", LAYOUTS)
def test_values_and_gradients(name: str, draws: int) -> None:
    forms, columns, price = LAYOUTS[name]
    layout = Layout(np.array(forms), np.array(columns), price)
    given = panel((1, 8, 3, 20), draws, 3)
    theta = np.random.default_rng(9).normal(size=7) / 2
    values, scores = np.empty(4), np.empty((4, 7))
    simulate(given, layout, theta, values, scores)
    assert values == pytest.approx(plainly(given, layout, theta), rel=1e-12)
    for place, unit in enumerate(1e-5 * np.eye(7)):
        slopes = (plainly(given, layout, theta + unit) - plainly(given, layout, theta - unit)) / 2e-5
        assert scores[:, place] == pytest.approx(slopes, abs=1e-7)


def test_many_tasks_do_not_underflow() -> None:
    """3,000 choices of one person have a probability of e^−2,500 and less."""
    forms, columns, price = LAYOUTS["normal"]
    layout = Layout(np.array(forms), np.array(columns), price)
    given = panel((3000,), 200, 3)
    theta = np.full(7, 0.3)
    values, scores = np.empty(1), np.empty((1, 7))
    simulate(given, layout, theta, values, scores)
    assert values[0] < -2000
    assert values == pytest.approx(plainly(given, layout, theta), rel=1e-12)
    assert np.isfinite(scores).all()
