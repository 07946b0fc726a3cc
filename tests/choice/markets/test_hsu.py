"""A study that pays its participants: hand cases, brute force over its size, and a simulation of its promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice.markets import Study
from dualmandate.errors import ConflictingLimits, InvalidPreferences

REFERENCE = Study(harm=1_000, target_error=0.05, failure_probability=0.05)


@pytest.mark.parametrize(
    ("epsilon", "participants", "cost"), [(0.001, 119_830, 119_890), (0.01, 18_698, 187_918), (0.05, 17_707, 907_857)]
)
def test_people_and_budget_at_an_epsilon(epsilon: float, participants: int, cost: float) -> None:
    assert REFERENCE.participants(epsilon) == participants
    assert REFERENCE.design(epsilon, participants).cost == pytest.approx(cost, abs=0.5)
    assert REFERENCE.failure(epsilon, participants) <= 0.05 < REFERENCE.failure(epsilon, participants - 1)


@given(st.floats(1e-4, 1.0), st.floats(0.02, 0.3), st.floats(0.01, 0.3))
@settings(max_examples=60, deadline=None)
def test_the_smallest_epsilon_for_so_many_people(epsilon: float, error: float, failure: float) -> None:
    study = Study(1.0, error, failure)
    people = study.participants(epsilon)
    needed = study.least_epsilon(people)
    assert needed <= epsilon * (1 + 1e-12)
    assert study.failure(needed, people) == pytest.approx(failure)
    assert study.least_participants <= people


@pytest.mark.parametrize("recruiting", [0.0, 0.3, 8.0])
def test_the_cheapest_study_by_brute_force(recruiting: float) -> None:
    study = Study(harm=40, target_error=0.2, failure_probability=0.1, recruiting=recruiting)
    people = 6_000
    designs = [study.with_participants(n) for n in range(study.least_participants, people + 1)]
    cheapest = min(designs, key=lambda design: design.cost)
    assert study.cheapest(people).cost == pytest.approx(cheapest.cost, rel=1e-12)
    if recruiting == 0.0:
        assert study.cheapest(people).participants == people
    budget = 1.3 * cheapest.cost
    paid = [design.participants for design in designs if design.cost <= budget]
    feasible = study.feasible(budget, people)
    assert feasible is not None
    assert (feasible[0].participants, feasible[1].participants) == (paid[0], paid[-1])
    assert len(paid) == paid[-1] - paid[0] + 1
    assert study.feasible(0.9 * cheapest.cost, people) is None


def test_the_promise_holds_in_simulation() -> None:
    """Estimates of a proportion miss the target less often than the bound says."""
    study = Study(harm=1, target_error=0.1, failure_probability=0.1)
    people = 5_000
    epsilon = study.least_epsilon(people)
    generator = np.random.default_rng(3)
    shares = generator.binomial(people, 0.4, size=20_000) / people
    noisy = shares + generator.laplace(scale=1 / (people * epsilon), size=shares.size)
    assert np.mean(np.abs(noisy - 0.4) > 0.1) <= 0.1


def test_refusals() -> None:
    with pytest.raises(ConflictingLimits, match="too few"):
        REFERENCE.least_epsilon(1_000)
    with pytest.raises(ConflictingLimits, match="no study"):
        REFERENCE.participants(1e-14)
    for broken in ((0.0, 0.05, 0.05), (1.0, 1.5, 0.05), (1.0, 0.05, 0.0)):
        with pytest.raises(InvalidPreferences):
            Study(*broken)
