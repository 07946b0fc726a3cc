"""How many people to ask: by the formula, by a design's information, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.elicitation.choices import ChoiceData
from dualmandate.elicitation.conditional_logit import conditional_logit
from dualmandate.elicitation.design import Design, DesignAttribute, efficient_design
from dualmandate.elicitation.power import Precision, coefficient_of_variation
from dualmandate.errors import InvalidSurvey

TASTES = (-1.4, -1.0)  # k = 1.4 prices a unit of loss


@pytest.fixture(scope="module")
def design() -> Design:
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
    shown = Design(attributes, np.array([[[1, 0], [0, 1]], [[1, 0], [0, 2]]]), np.zeros(2, dtype=np.int64), 1.0)
    p = 1 / (1 + math.exp(-1))
    w = p * (1 - p)
    information = 0.25 * np.array([[1, -1], [-1, 1]]) + w * np.array([[1, -2], [-2, 4]])
    gradient = np.array([-1.0, 1.0])
    by_hand = math.sqrt(gradient @ np.linalg.inv(information) @ gradient)
    assert coefficient_of_variation(shown, (-1.0, -1.0), "a", "p") == pytest.approx(by_hand, rel=1e-12)
    spread = coefficient_of_variation(shown, (-1.0, -1.0), "a", "p", spread=2.0)
    assert spread == pytest.approx(math.hypot(by_hand, 2.0), rel=1e-12)


def test_units_do_not_matter(design: Design) -> None:
    thousand = tuple(
        DesignAttribute(
            each.name, tuple(1000 * value for value in each.values) if each.name == "price" else each.values, -1
        )
        for each in design.attributes
    )
    scaled = Design(thousand, design.levels, design.block, design.error)
    assert coefficient_of_variation(scaled, (-1.4, -0.001), "epsilon", "price") == pytest.approx(
        coefficient_of_variation(design, TASTES, "epsilon", "price"), rel=1e-9
    )


def estimated(design: Design, people: int, generator: np.random.Generator) -> float:
    """ln k as estimated from so many people who answer one block each."""
    shown = design.regressors
    block = np.arange(people) % design.blocks
    rows = [(who, task) for who in range(people) for task in np.flatnonzero(design.block == block[who])]
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


def test_simulated_surveys_are_as_precise_as_promised(design: Design) -> None:
    """300 surveys of n people: the spread of ln k is CV/√n, and ε* (k to the −1/3) is within ±w 95 times in 100."""
    generator, people = np.random.default_rng(20), 60
    logs = np.array([estimated(design, people, generator) for _ in range(300)])
    variation = coefficient_of_variation(design, TASTES, "epsilon", "price")
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
