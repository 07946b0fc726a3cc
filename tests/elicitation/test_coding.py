"""Privacy loss in words and in utility."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice.welfare import BoundedCost, ExponentialCost, LinearCost, PosteriorCost
from dualmandate.elicitation.questionnaire import BeliefScale, Form, cost_per_parameter
from dualmandate.errors import InvalidSurvey
from dualmandate.population import Neighbors
from dualmandate.semantics import Secret


def test_the_words_of_the_issue() -> None:
    """ε = 2.527644 takes a belief of .01 to .112298: from 1 in 100 to at most 11 in 100."""
    words, said = BeliefScale(0.01).told([2.527644])
    assert words == ("from 1 in 100 to at most 11 in 100",)
    assert said[0] == pytest.approx(math.log(11 / 89 * 99), rel=1e-4)


def test_words_use_as_many_people_as_the_smallest_loss_needs() -> None:
    """In 100 people .5 would be told as "2 in 100", which says .70; in 1,000 it is 16, which says .476."""
    words, said = BeliefScale(0.01).told([0.5, 1, 2, 4])
    assert words == tuple(f"from 10 in 1,000 to at most {n} in 1,000" for n in (16, 27, 69, 355))
    assert said == pytest.approx([0.47608, 1.0106, 1.993, 3.998], abs=5e-5)


def test_no_loss_changes_no_belief() -> None:
    words, said = BeliefScale(0.1).told([0.0, 1.0])
    assert words[0] == "stays at 10 in 100"
    assert said[0] == 0.0


def test_two_records_lie_two_steps_apart_under_add_or_remove() -> None:
    apart = BeliefScale(0.01, Secret.ATTRIBUTE)
    assert apart.highest(1.0) == pytest.approx(BeliefScale(0.01).highest(2.0), rel=1e-12)
    assert float(apart.epsilon(apart.highest(1.0))) == pytest.approx(1.0, rel=1e-12)
    together = BeliefScale(0.01, Secret.ATTRIBUTE, Neighbors.REPLACE_ONE)
    assert together.highest(1.0) == pytest.approx(BeliefScale(0.01).highest(1.0), rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(prior=st.floats(0.001, 0.9), epsilon=st.floats(0.01, 8.0))
def test_beliefs_and_losses_are_each_others_inverse(prior: float, epsilon: float) -> None:
    scale = BeliefScale(prior)
    assert float(scale.epsilon(scale.highest(epsilon))) == pytest.approx(epsilon, rel=1e-9)


@settings(deadline=None, max_examples=50)
@given(
    prior=st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.5]),
    levels=st.lists(st.floats(0.2, 5.0), min_size=2, max_size=4, unique=True).filter(
        lambda found: min(np.diff(sorted(found))) > 0.2
    ),
)
def test_what_is_said_is_near_what_is_meant_and_keeps_its_order(prior: float, levels: list[float]) -> None:
    _, said = BeliefScale(prior).told(sorted(levels))
    assert all(abs(a - b) <= 0.1001 * b for a, b in zip(said, sorted(levels), strict=True))
    assert list(said) == sorted(said)


@pytest.mark.parametrize(
    ("prior", "secret", "neighbors", "words"),
    [
        (0.0, Secret.IN_OR_OUT, Neighbors.ADD_OR_REMOVE, "belief before a release"),
        (1.0, Secret.IN_OR_OUT, Neighbors.ADD_OR_REMOVE, "belief before a release"),
        (0.1, Secret.IN_OR_OUT, Neighbors.REPLACE_ONE, "nothing bounds"),
    ],
)
def test_beliefs_without_a_bound_are_refused(prior: float, secret: Secret, neighbors: Neighbors, words: str) -> None:
    with pytest.raises(InvalidSurvey, match=words):
        BeliefScale(prior, secret, neighbors)


def test_levels_that_words_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(InvalidSurvey, match="cannot be told apart"):
        BeliefScale(0.01).told([30.0, 31.0])


@pytest.mark.parametrize(
    ("form", "cost"),
    [
        ("linear", LinearCost(1.0)),
        ("exponential", ExponentialCost(1.0)),
        ("bounded", BoundedCost(1.0)),
        ("posterior", PosteriorCost(1.0, 0.01)),
    ],
)
def test_regressors_are_the_costs_of_the_forms(form: Form, cost: LinearCost | PosteriorCost) -> None:
    losses = [0.1, 0.5, 1.0, 4.0]
    found = cost_per_parameter(form, losses, 0.01)
    assert found == pytest.approx([cost.cost(loss) for loss in losses], rel=1e-12)


def test_a_prior_that_is_rounded_in_words_is_rounded_in_the_loss_too() -> None:
    """0.0104 is told as 1 in 100: answers are about the words, so the loss counts from 1 in 100."""
    words, said = BeliefScale(0.0104).told([2.5])
    assert words == ("from 1 in 100 to at most 11 in 100",)
    assert said[0] == pytest.approx(math.log((0.11 / 0.89) / (0.01 / 0.99)), rel=1e-4)
