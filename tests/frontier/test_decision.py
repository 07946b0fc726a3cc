"""Decisions made with noisy counts: the paper's linear case exactly, thresholds, and fixed appropriations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.choice import Group, LinearCost, SocialWelfare, TableValue, choose
from dualmandate.errors import InvalidWorkload
from dualmandate.frontier import (
    CurveFrontier,
    Decision,
    FormulaGrant,
    Simulation,
    decision_frontier,
    frontier_of,
    noisy_answers,
    simulated,
)
from dualmandate.mechanism import Mechanism, geometric, laplace
from dualmandate.population import Histogram
from dualmandate.workload import identity

PLACES = 60
WORKLOAD = identity(PLACES)
GENERATOR = np.random.default_rng(17)
RATES = GENERATOR.uniform(2_000, 6_000, PLACES)  # USD a child
COUNTS = GENERATOR.poisson(30, PLACES).astype(np.int64)
PLAN = Simulation(tuple(np.geomspace(0.2, 8.0, 7).tolist()), 400, seed=5)


def decided(decision: Decision, mechanism: Mechanism, counts: NDArray[np.int64] = COUNTS) -> CurveFrontier:
    production = mechanism.production(WORKLOAD)
    histogram = Histogram(WORKLOAD.domain, counts)
    return decision_frontier(decision, noisy_answers(production), WORKLOAD, histogram=histogram, simulation=PLAN)


def test_the_linear_case_is_the_papers() -> None:
    """Σ E[(C·e)²] = Σ C²·2/ε², at simulated losses within the band of the simulation."""
    frontier = decided(FormulaGrant(RATES), laplace())
    assert frontier.tables == ("grants",)
    assert frontier.query_counts == {"grants": PLACES}
    for loss in PLAN.losses:
        assert frontier.expected_squared_error(loss) == pytest.approx(float(np.sum(RATES**2)) * 2 / loss**2, rel=0.1)


def test_one_rate_for_all_is_exactly_its_square_times_the_error_of_the_counts() -> None:
    rate = 4_472.136
    frontier = decided(FormulaGrant(np.full(PLACES, rate)), geometric())
    histogram = Histogram(WORKLOAD.domain, COUNTS)
    plain = simulated(noisy_answers(geometric().production(WORKLOAD)), WORKLOAD, histogram=histogram, simulation=PLAN)
    for loss in (0.2, 0.6, 2.0, 8.0):
        assert frontier.expected_squared_error(loss) == pytest.approx(rate**2 * plain.expected_squared_error(loss))


def test_the_choice_through_the_decision_is_the_choice_through_the_counts() -> None:
    """A decision priced per USD² leads to the same epsilon as a consequence of C² per count, up to simulation."""
    rate, price = 3_000.0, 1e-3
    people = Group("everybody", 1e5, LinearCost(5.0))
    decision = decided(FormulaGrant(np.full(PLACES, rate)), laplace())
    through = choose(decision, SocialWelfare((people,), (TableValue("grants", price, unit="USD"),)))
    counts = frontier_of(laplace(), WORKLOAD)
    value = TableValue(counts.tables[0], rate**2 * price, consequence=rate**2, price=price)
    direct = choose(counts, SocialWelfare((people,), (value,)))
    assert through.epsilon == pytest.approx(direct.epsilon, rel=0.03)
    assert through.tables[0].root_mean_squared_error == pytest.approx(
        direct.root_mean_squared_consequence or 0.0, rel=0.05
    )


def test_a_threshold_hurts_places_that_stand_on_it_with_continuous_noise_only() -> None:
    """At a large loss Laplace noise still flips a place at exactly the threshold with probability ½."""
    at_threshold = np.full(PLACES, 10, dtype=np.int64)
    grant = FormulaGrant(np.full(PLACES, 1_000.0), threshold=10)
    real = decided(grant, laplace(), at_threshold).expected_squared_error(8.0)
    whole = decided(grant, geometric(), at_threshold).expected_squared_error(8.0)
    flipped = PLACES * 0.5 * (1_000.0 * 10) ** 2
    assert real == pytest.approx(flipped, rel=0.15)
    assert whole < 0.01 * real


def test_a_fixed_appropriation_moves_money_but_loses_none() -> None:
    grant = FormulaGrant(RATES, threshold=5, appropriation=3e6)
    noisy = COUNTS + np.random.default_rng(0).laplace(size=PLACES)
    assert grant.allocation(noisy).sum() == pytest.approx(3e6)
    assert grant.allocation(COUNTS.astype(np.float64)).sum() == pytest.approx(3e6)
    generous = FormulaGrant(RATES, appropriation=1e12)
    assert generous.allocation(COUNTS.astype(np.float64)) == pytest.approx(RATES * COUNTS)
    small = FormulaGrant(RATES, threshold=1e6)
    assert not small.allocation(COUNTS.astype(np.float64)).any()


def test_the_formula_needs_a_number_a_place() -> None:
    with pytest.raises(InvalidWorkload, match="59 numbers for 60 places"):
        FormulaGrant(RATES).allocation(np.ones(59))


def test_a_place_with_exactly_the_threshold_is_paid() -> None:
    grant = FormulaGrant([100.0, 100.0, 100.0], threshold=10)
    assert grant.allocation(np.array([10.0, 9.99, 11.0])).tolist() == [1_000.0, 0.0, 1_100.0]
