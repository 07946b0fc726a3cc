"""Designs: informative, fair, balanced, and the same for everybody."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dualmandate.elicitation.answers import ChoiceData
from dualmandate.elicitation.design import (
    ChoiceDesign,
    DesignAttribute,
    Precision,
    coefficient_of_variation,
    efficient_design,
    fair,
)
from dualmandate.elicitation.logit import conditional_logit
from dualmandate.errors import InvalidSurvey

PRIVACY = DesignAttribute("epsilon", (0.5, 1.0, 2.0, 4.0), -1)
ERROR = DesignAttribute("error", (500.0, 1500.0, 2500.0, 3500.0), -1)
PRICE = DesignAttribute("price", (0.0, 500.0, 1000.0, 2000.0), -1)
EXPECTED = (-1.0, -0.0006, -0.001)
TASTES = (-1.4, -1.0)  # k = 1.4 prices a unit of loss


@pytest.fixture(scope="module")
def design() -> ChoiceDesign:
    return efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2, uncertainty=0.3)


def test_information_by_hand() -> None:
    """Two alternatives, one regressor 0 or 1, β = 0: p(1 − p)·(difference)² = ¼ a task; β = ln 3: 3/16."""
    found = ChoiceDesign(
        (DesignAttribute("x", (0.0, 1.0), 0),), np.array([[[0], [1]]]), np.zeros(1, dtype=np.int64), error=4.0
    )
    assert found.information([0.0]) == pytest.approx(np.array([[0.25]]))
    assert found.information([np.log(3)]) == pytest.approx(np.array([[3 / 16]]))


def test_information_is_the_curvature_of_the_log_likelihood(design: ChoiceDesign) -> None:
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


def test_the_error_is_stated_for_one_respondent(design: ChoiceDesign) -> None:
    """A point prior: D-error = det of the information per range of the regressors, to the power −1/3."""
    point = efficient_design((PRIVACY, ERROR, PRICE), EXPECTED, tasks=6, blocks=2)
    ranges = np.array([3.5, 3000.0, 2000.0])
    information = point.information(EXPECTED) / np.outer(ranges, ranges)
    assert point.error == pytest.approx(np.linalg.det(information) ** (-1 / 3), rel=1e-9)
    assert design.error > 0


def test_no_task_is_decided_beforehand_and_none_is_shown_twice(design: ChoiceDesign) -> None:
    directions = np.array([-1, -1, -1])
    assert fair(design.regressors, directions).all()
    tasks = {tuple(sorted(map(tuple, task.tolist()))) for task in design.levels}
    assert len(tasks) == len(design.levels) == 12


def test_levels_keep_half_their_share_and_blocks_are_alike(design: ChoiceDesign) -> None:
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
        other = ChoiceDesign(found.attributes, levels, np.zeros(8, dtype=np.int64), 0.0)
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
        ChoiceDesign(attributes, np.stack([one, other]), np.zeros(2, dtype=np.int64), 0.0).information(expected)
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


def test_the_seed_decides(design: ChoiceDesign) -> None:
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


@pytest.fixture(scope="module")
def design_power() -> ChoiceDesign:
    attributes = (DesignAttribute("epsilon", (0.5, 1.0, 2.0, 4.0), -1), DesignAttribute("price", (0.0, 1.0, 3.0), -1))
    return efficient_design(attributes, TASTES, tasks=8, blocks=2)


def test_the_case_of_the_drones() -> None:
    """n = (1.96·2.4149/(3·ln 1.2))² = 74.9: 75 respondents."""
    assert Precision().respondents(2.4149) == 75
    assert Precision().reached(2.4149, 75) == pytest.approx(0.2, abs=5e-4)
    assert Precision().respondents(2.4149) == math.ceil((1.959964 * 2.4149 / (3 * math.log(1.2))) ** 2)


def test_more_is_asked_for_more() -> None:
    assert Precision(within=0.1).respondents(2.4149) == 275
    assert Precision(confidence=0.99).respondents(2.4149) == 130
    assert Precision(elasticity=0.5).respondents(2.4149) == 169
    assert Precision().respondents(1e-9) == 1


def test_the_information_of_a_design_by_hand() -> None:
    """One attribute and a price, equal odds: var(ln k) = gᵀI⁻¹g, with two tasks each worth a quarter of squares."""
    attributes = (DesignAttribute("a", (0.0, 1.0), -1), DesignAttribute("p", (0.0, 1.0, 2.0), -1))
    # task 1: a against one unit of price (even odds at β = (−1, −1)); task 2: a against two
    shown = ChoiceDesign(attributes, np.array([[[1, 0], [0, 1]], [[1, 0], [0, 2]]]), np.zeros(2, dtype=np.int64), 1.0)
    p = 1 / (1 + math.exp(-1))
    w = p * (1 - p)
    information = 0.25 * np.array([[1, -1], [-1, 1]]) + w * np.array([[1, -2], [-2, 4]])
    gradient = np.array([-1.0, 1.0])
    by_hand = math.sqrt(gradient @ np.linalg.inv(information) @ gradient)
    assert coefficient_of_variation(shown, (-1.0, -1.0), "a", "p") == pytest.approx(by_hand, rel=1e-12)
    spread = coefficient_of_variation(shown, (-1.0, -1.0), "a", "p", spread=2.0)
    assert spread == pytest.approx(math.hypot(by_hand, 2.0), rel=1e-12)


def test_units_do_not_matter(design_power: ChoiceDesign) -> None:
    thousand = tuple(
        DesignAttribute(
            each.name, tuple(1000 * value for value in each.values) if each.name == "price" else each.values, -1
        )
        for each in design_power.attributes
    )
    scaled = ChoiceDesign(thousand, design_power.levels, design_power.block, design_power.error)
    assert coefficient_of_variation(scaled, (-1.4, -0.001), "epsilon", "price") == pytest.approx(
        coefficient_of_variation(design_power, TASTES, "epsilon", "price"), rel=1e-9
    )


def estimated(design_power: ChoiceDesign, people: int, generator: np.random.Generator) -> float:
    """ln k as estimated from so many people who answer one block each."""
    shown = design_power.regressors
    block = np.arange(people) % design_power.blocks
    rows = [(who, task) for who in range(people) for task in np.flatnonzero(design_power.block == block[who])]
    alternatives = shown[[task for _, task in rows]]  # (choices, 2, attributes)
    chosen = (alternatives @ np.array(TASTES) + generator.gumbel(size=alternatives.shape[:2])).argmax(axis=1)
    flat = alternatives.reshape(-1, 2)
    data = ChoiceData.of_columns(
        {"epsilon": flat[:, 0], "price": flat[:, 1]},
        chosen=(np.arange(2) == chosen[:, None]).ravel(),
        task=np.repeat(np.arange(len(rows)), 2),
        respondent=np.repeat([who for who, _ in rows], 2),
    )
    found = conditional_logit(data)
    return math.log(found.value("epsilon") / found.value("price"))


def test_simulated_surveys_are_as_precise_as_promised(design_power: ChoiceDesign) -> None:
    """300 surveys of n people: the spread of ln k is CV/√n, and ε* (k to the −1/3) is within ±w 95 times in 100."""
    generator, people = np.random.default_rng(20), 60
    logs = np.array([estimated(design_power, people, generator) for _ in range(300)])
    variation = coefficient_of_variation(design_power, TASTES, "epsilon", "price")
    assert logs.std() == pytest.approx(variation / math.sqrt(people), rel=0.12)
    within = Precision().reached(variation, people)
    share = (np.abs(logs - math.log(1.4)) / 3 <= math.log1p(within)).mean()
    assert 0.91 <= share <= 0.985
    asked = Precision(within=within * (1 + 1e-9)).respondents(variation)
    assert asked == people


def test_precisions_that_cannot_be_meant_are_refused() -> None:
    for wrong in ((0.0, 0.95), (0.2, 1.0), (0.2, 0.0)):
        with pytest.raises(InvalidSurvey, match="a precision"):
            Precision(*wrong)
