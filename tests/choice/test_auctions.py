"""Auctions: hand cases, thousands of markets with lies in them, and the accuracy that is promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice.markets import QUALITY, CompensatedStudy, Sale, fair_query, min_cost_auction
from dualmandate.errors import ConflictingLimits, InvalidPreferences

COSTS = (1.0, 2.0, 3.0, 4.0, 10.0, 20.0)
Auction = Callable[[Sequence[float]], Sale]
REFERENCE = CompensatedStudy(harm=1_000, target_error=0.05, failure_probability=0.05)


def test_min_cost_auction_by_hand() -> None:
    sale = min_cost_auction(COSTS, 0.5)
    assert sale.sellers == (0, 1, 2, 3, 4)
    assert sale.epsilon == pytest.approx(0.532871, abs=1e-6)
    assert sale.payment == pytest.approx(10.657415, abs=1e-6)
    assert sale.total == pytest.approx(53.287076, abs=1e-6)
    assert sale.noise_scale == pytest.approx(0.5 * 6 / QUALITY)


def test_fair_query_by_hand() -> None:
    sale = fair_query(COSTS, 3.0)
    assert sale.sellers == (0, 1, 2)
    assert sale.epsilon == pytest.approx(1 / 3)
    assert (sale.payment, sale.total) == (1.0, 3.0)
    assert sale.noise_scale == 3.0
    # The order of the list does not matter, and the price never exceeds what the next one asks.
    shuffled = fair_query((20.0, 3.0, 1.0, 10.0, 2.0, 4.0), 3.0)
    assert shuffled.sellers == (2, 4, 1)
    assert fair_query((1.0, 1.0, 1.1, 50.0), 1e3).payment == pytest.approx(50.0)
    assert fair_query((1.0, 1.0, 1.1, 50.0), 3.4).payment == pytest.approx(3.4 / 3)


def test_a_budget_that_buys_nobody() -> None:
    sale = fair_query((5.0, 6.0), 1.0)
    assert (sale.sellers, sale.epsilon, sale.total) == ((), 0.0, 0.0)


def markets(kind: str, count: int) -> list[tuple[list[float], Auction, float | None]]:
    """Random markets of 2 to 12 people with an auction each, and the budget where it has one."""
    generator = np.random.default_rng(11 if kind == "fair query" else 12)
    made: list[tuple[list[float], Auction, float | None]] = []
    while len(made) < count:
        people = int(generator.integers(2, 13))
        costs = generator.lognormal(0.0, 1.2, people).round(2).tolist()  # rounding makes ties
        if kind == "fair query":
            budget = float(generator.lognormal(0.5, 1.5))
            made.append((costs, lambda bids, budget=budget: fair_query(bids, budget), budget))  # type: ignore[misc]
        else:
            error = float(generator.uniform(QUALITY / people, 1.0)) if people > QUALITY else 1.0
            if error < 1 and error * people / QUALITY > 1:
                made.append((costs, lambda bids, error=error: min_cost_auction(bids, error), None))  # type: ignore[misc]
    return made


def utility(sale: Sale, person: int, cost: float) -> float:
    """What a person with this cost per unit of ε gains, USD."""
    return sale.payment - cost * sale.epsilon if person in sale.sellers else 0.0


def within(sale: Sale, error: float, bias: float) -> float:
    """P(|error of the count| ≤ error) where the half for each who did not sell is off by `bias` in all."""
    if bias > error:
        return 0.5 * (math.exp(-(bias - error) / sale.noise_scale) - math.exp(-(bias + error) / sale.noise_scale))
    return 1 - 0.5 * (math.exp(-(error - bias) / sale.noise_scale) + math.exp(-(error + bias) / sale.noise_scale))


@pytest.mark.parametrize("kind", ["fair query", "minimal cost"])
def test_no_lie_pays_nobody_loses_and_the_budget_holds(kind: str) -> None:
    generator = np.random.default_rng(5)
    for costs, auction, budget in markets(kind, 8_000):
        honest = auction(costs)
        if budget is not None:
            assert honest.total <= budget * (1 + 1e-12)
        for person, cost in enumerate(costs):
            assert utility(honest, person, cost) >= -1e-12
        liar = int(generator.integers(len(costs)))
        truth = costs[liar]
        lies = [0.0, *(truth * generator.lognormal(0.0, 1.0, 7)).tolist(), *(c * 1.0001 for c in costs[:4])]
        for lie in lies:
            bids = [*costs]
            bids[liar] = lie
            assert utility(auction(bids), liar, truth) <= utility(honest, liar, truth) + 1e-9


def test_a_price_that_depends_on_ones_own_bid_would_not_be_truthful() -> None:
    """The test above can fail: paying each seller her own bid invites lies."""
    honest, lie = fair_query(COSTS, 3.0), fair_query((1.0, 2.9, 3.0, 4.0, 10.0, 20.0), 3.0)
    own_bid = [2.0 * honest.epsilon, 2.9 * lie.epsilon]
    assert own_bid[1] - 2.0 * lie.epsilon > own_bid[0] - 2.0 * honest.epsilon


def test_min_cost_auction_keeps_its_promise_of_two_thirds() -> None:
    people, error = 40, 0.25
    generator = np.random.default_rng(8)
    sale = min_cost_auction(generator.uniform(0, 1, people).tolist(), error)
    unsold = (people - len(sale.sellers)) / 2  # how far one half for each who did not sell can be off
    worst = within(sale, error * people, unsold)
    assert worst >= 2 / 3
    # Everybody has the property: those who did not sell are counted as one half.
    seen = np.abs(generator.laplace(scale=sale.noise_scale, size=40_000) - unsold) <= error * people
    assert seen.mean() == pytest.approx(worst, abs=0.01)
    # At the largest bias that the rule allows, αn/(2m), it is .772020 whatever α and n are.
    assert within(sale, error * people, error * people / (2 * QUALITY)) == pytest.approx(0.772020, abs=1e-6)
    assert within(sale, error * people, 2 * error * people) < 0.5


def test_refusals() -> None:
    with pytest.raises(ConflictingLimits, match="needs all of them"):
        min_cost_auction(COSTS, 0.2)
    with pytest.raises(InvalidPreferences):
        min_cost_auction(COSTS, 0.0)
    with pytest.raises(InvalidPreferences):
        fair_query(COSTS, -1.0)
    with pytest.raises(InvalidPreferences):
        fair_query([1.0], 3.0)


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
    study = CompensatedStudy(1.0, error, failure)
    people = study.participants(epsilon)
    needed = study.least_epsilon(people)
    assert needed <= epsilon * (1 + 1e-12)
    assert study.failure(needed, people) == pytest.approx(failure)
    assert study.least_participants <= people


@pytest.mark.parametrize("recruiting", [0.0, 0.3, 8.0])
def test_the_cheapest_study_by_brute_force(recruiting: float) -> None:
    study = CompensatedStudy(harm=40, target_error=0.2, failure_probability=0.1, recruiting=recruiting)
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
    study = CompensatedStudy(harm=1, target_error=0.1, failure_probability=0.1)
    people = 5_000
    epsilon = study.least_epsilon(people)
    generator = np.random.default_rng(3)
    shares = generator.binomial(people, 0.4, size=20_000) / people
    noisy = shares + generator.laplace(scale=1 / (people * epsilon), size=shares.size)
    assert np.mean(np.abs(noisy - 0.4) > 0.1) <= 0.1


def test_refusals_hsu() -> None:
    with pytest.raises(ConflictingLimits, match="too few"):
        REFERENCE.least_epsilon(1_000)
    with pytest.raises(ConflictingLimits, match="no study"):
        REFERENCE.participants(1e-14)
    for broken in ((0.0, 0.05, 0.05), (1.0, 1.5, 0.05), (1.0, 0.05, 0.0)):
        with pytest.raises(InvalidPreferences):
            CompensatedStudy(*broken)
