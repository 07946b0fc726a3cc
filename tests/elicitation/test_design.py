"""Designs: informative, fair, balanced, and the same for everybody."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dualmandate.elicitation.design import Design, DesignAttribute, efficient_design, fair
from dualmandate.errors import InvalidSurvey

PRIVACY = DesignAttribute("epsilon", (0.5, 1.0, 2.0, 4.0), -1)
ERROR = DesignAttribute("error", (500.0, 1500.0, 2500.0, 3500.0), -1)
PRICE = DesignAttribute("price", (0.0, 500.0, 1000.0, 2000.0), -1)
EXPECTED = (-1.0, -0.0006, -0.001)


@pytest.fixture(scope="module")
def design() -> Design:
    return efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2, uncertainty=0.3)


def test_information_by_hand() -> None:
    """Two alternatives, one regressor 0 or 1, β = 0: p(1 − p)·(difference)² = ¼ a task; β = ln 3: 3/16."""
    found = Design(
        (DesignAttribute("x", (0.0, 1.0), 0),), np.array([[[0], [1]]]), np.zeros(1, dtype=np.int64), error=4.0
    )
    assert found.information([0.0]) == pytest.approx(np.array([[0.25]]))
    assert found.information([np.log(3)]) == pytest.approx(np.array([[3 / 16]]))


def test_information_is_the_curvature_of_the_log_likelihood(design: Design) -> None:
    """Second differences of the expected log likelihood at β, over the tasks of an average respondent."""
    beta, shown = np.array(EXPECTED), design.regressors
    chance = np.exp(shown @ beta)
    chance /= chance.sum(axis=1, keepdims=True)

    def expected_log_likelihood(at: np.ndarray) -> float:
        utility = shown @ at
        return float((chance * (utility - np.log(np.exp(utility).sum(axis=1, keepdims=True)))).sum() / design.blocks)

    steps = np.array([1e-3, 1e-6, 1e-6])
    curvature = np.empty((3, 3))
    for i, j in product(range(3), repeat=2):
        a, b = np.eye(3)[i] * steps, np.eye(3)[j] * steps
        four = [expected_log_likelihood(beta + s * a + t * b) * s * t for s, t in product((1, -1), repeat=2)]
        curvature[i, j] = -sum(four) / (4 * steps[i] * steps[j])
    assert design.information(EXPECTED) == pytest.approx(curvature, rel=2e-3)


def test_the_error_is_stated_for_one_respondent(design: Design) -> None:
    """A point prior: D-error = det of the information per range of the regressors, to the power −1/3."""
    point = efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2)
    ranges = np.array([3.5, 3000.0, 2000.0])
    information = point.information(EXPECTED) / np.outer(ranges, ranges)
    assert point.error == pytest.approx(np.linalg.det(information) ** (-1 / 3), rel=1e-9)
    assert design.error > 0


def test_no_task_is_decided_beforehand_and_none_is_shown_twice(design: Design) -> None:
    directions = np.array([-1, -1, -1])
    assert fair(design.regressors, directions).all()
    tasks = {tuple(sorted(map(tuple, task.tolist()))) for task in design.levels}
    assert len(tasks) == len(design.levels) == 12


def test_levels_keep_half_their_share_and_blocks_are_alike(design: Design) -> None:
    for counts in design.balance().values():
        assert sum(counts) == 24
        assert min(counts) >= 3  # half of 24/4
    assert np.bincount(design.block).tolist() == [6, 6]
    for place in range(3):
        by_block = [np.bincount(design.levels[design.block == b, :, place].ravel(), minlength=4) for b in (0, 1)]
        assert np.abs(by_block[0] - by_block[1]).max() <= 2


def test_it_beats_designs_of_chance() -> None:
    generator = np.random.default_rng(3)
    found = efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=8)
    ranges = np.array([3.5, 3000.0, 2000.0])
    errors: list[float] = []
    while len(errors) < 200:
        levels = generator.integers(0, 4, (8, 2, 3))
        other = Design(found.attributes, levels, np.zeros(8, dtype=np.int64), 0.0)
        if fair(other.regressors, np.array([-1, -1, -1])).all():
            errors.append(np.linalg.det(other.information(EXPECTED) / np.outer(ranges, ranges)) ** (-1 / 3))
    assert found.error < 0.75 * min(errors)


def test_it_is_the_best_there_is_where_all_can_be_looked_at() -> None:
    """Two tasks of two alternatives from two attributes with three levels: 9 fair pairs, all designs of two tried."""
    attributes = (DesignAttribute("a", (0.0, 1.0, 2.0), -1), DesignAttribute("b", (0.0, 1.0, 2.0), -1))
    expected = (-0.7, -0.4)
    cells = [np.array(cell) for cell in product(range(3), repeat=2)]
    tasks = [np.stack([one, other]) for one, other in product(cells, repeat=2) if tuple(one) < tuple(other)]
    kept = [task for task in tasks if fair(task.astype(float), np.array([-1, -1]))]
    errors = [
        Design(attributes, np.stack([one, other]), np.zeros(2, dtype=np.int64), 0.0).information(expected)
        for place, one in enumerate(kept)
        for other in kept[place + 1 :]
    ]
    best = min(np.linalg.det(information / 4) ** -0.5 for information in errors if np.linalg.det(information) > 1e-12)
    found = efficient_design(attributes, expected, tasks=2)
    assert found.error == pytest.approx(best, rel=1e-9)


def test_a_task_that_tells_most_is_still_shown_once() -> None:
    """Six of nine fair tasks: repeating the best two would leave less doubt, but nobody answers one question twice."""
    attributes = (DesignAttribute("a", (0.0, 1.0, 2.0), -1), DesignAttribute("b", (0.0, 1.0, 2.0), -1))
    found = efficient_design(attributes, (-0.7, -0.4), tasks=6)
    assert len({tuple(sorted(map(tuple, task.tolist()))) for task in found.levels}) == 6


def test_the_seed_decides(design: Design) -> None:
    again = efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2, uncertainty=0.3)
    assert (again.levels == design.levels).all()
    assert (again.block == design.block).all()
    other = efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2, uncertainty=0.3, seed=2)
    assert (other.levels != design.levels).any()


def test_tastes_that_differ_leave_an_attribute_without_direction() -> None:
    color = DesignAttribute("color", (0.0, 1.0), 0)
    shown = np.array([[[0.0, 1.0], [1.0, 2.0]], [[0.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [0.0, 1.0]]])
    assert fair(shown, np.array([color.direction, -1])).tolist() == [True, False, False]


def test_what_cannot_be_designed_is_refused() -> None:
    with pytest.raises(InvalidSurvey, match="not 4 tasks"):
        efficient_design((PRICE,), (-0.001,), tasks=4)
    with pytest.raises(InvalidSurvey, match="1 different levels"):
        DesignAttribute("price", (1.0, 1.0), -1)
    for changes in ({"tasks": 0}, {"alternatives": 1}, {"blocks": 0}, {"uncertainty": -1.0}):
        with pytest.raises(InvalidSurvey, match="alternatives in"):
            efficient_design((PRIVACY, PRICE), (-1.0, -0.001), **{"tasks": 4, **changes})  # type: ignore[arg-type]
