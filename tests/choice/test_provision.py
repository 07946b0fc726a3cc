"""Provision of accuracy as a public good: reference cases, brute force, and the order of institutions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice.markets import (
    QUALITY,
    AmountDistribution,
    GroupedAmounts,
    LognormalAmounts,
    Monopoly,
    Provision,
    UniformAmounts,
    in_order,
    min_cost_auction,
)
from dualmandate.errors import InvalidPreferences

AMOUNTS: dict[str, AmountDistribution] = {
    "uniform": UniformAmounts(0.2, 3.0),
    "lognormal": LognormalAmounts(2.0, 0.8),
    "grouped": GroupedAmounts((5.0, 0.5, 1.0), (0.2, 0.5, 0.3)),
}


def accuracies(provision: Provision) -> dict[str, float]:
    return {outcome.institution: outcome.accuracy for outcome in provision.outcomes()}


def test_uniform_costs() -> None:
    found = accuracies(Provision(1_000, UniformAmounts(0, 1), total_value=10, largest_value=2))
    assert found["private provider, one price"] == pytest.approx(0.219699, abs=1e-6)
    assert found["Lindahl"] == pytest.approx(0.612121, abs=1e-6)
    assert found["planner, sellers' losses"] == pytest.approx(0.721600, abs=1e-6)
    assert found["planner, everybody's losses"] == pytest.approx(0.717280, abs=1e-6)
    # C_sellers′ is half of C_VCG′ here, so personal prices act like twice the value: m/a² = 2·2 + 1/m.
    personal = 1 - math.sqrt(QUALITY / (4 + 1 / QUALITY))
    assert found["private provider, personal prices"] == pytest.approx(personal, abs=1e-9)


def test_the_order_can_fail_for_the_planner_who_counts_everybody() -> None:
    provision = Provision(1_000, GroupedAmounts((0.0, 10.0), (0.9, 0.1)), total_value=10, largest_value=2)
    found = accuracies(provision)
    assert found["private provider, one price"] == pytest.approx(0.840139, abs=1e-6)
    assert found["planner, everybody's losses"] == pytest.approx(0.600174, abs=1e-6)
    assert not in_order(provision.outcomes(), "planner, everybody's losses")
    assert in_order(provision.outcomes())


@given(
    st.sampled_from(sorted(AMOUNTS)),
    st.floats(0.05, 1.0),
    st.floats(0.01, 500.0),
)
@settings(max_examples=60, deadline=None)
def test_private_provision_is_never_above_lindahl_nor_that_above_the_planner(
    kind: str, share: float, total: float
) -> None:
    provision = Provision(10_000, AMOUNTS[kind], total, share * total)
    outcomes = provision.outcomes()
    assert in_order(outcomes)
    found = accuracies(provision)
    assert found["private provider, one price"] <= found["private provider, personal prices"] + 1e-9
    assert found["private provider, personal prices"] <= found["planner, sellers' losses"] + 1e-9
    by_name = {outcome.institution: outcome.surplus for outcome in outcomes}
    assert max(by_name.values()) == pytest.approx(by_name["planner, sellers' losses"], abs=1e-9 * total)


@pytest.mark.parametrize("kind", sorted(AMOUNTS))
@pytest.mark.parametrize("cost", ["auction", "sellers", "everybody"])
def test_no_share_is_better(kind: str, cost: str) -> None:
    provision = Provision(100, AMOUNTS[kind], 6.0, 1.5)
    total = {
        "auction": provision.auction_cost,
        "sellers": provision.sellers_cost,
        "everybody": provision.everybody_cost,
    }[cost]
    best = provision.best_share(6.0, cost)
    reached = 6.0 * provision.accuracy(best) - total(best)
    for share in np.linspace(0, 0.9999, 5_001).tolist():
        assert reached >= 6.0 * provision.accuracy(share) - total(share) - 1e-9


def test_the_auction_of_many_people_costs_what_the_formula_says() -> None:
    """C_VCG from the quantile function, beside MinCostAuction among 20,000 people."""
    people, error = 20_000, 0.3
    provision = Provision(people, UniformAmounts(0, 1), 10, 2)
    costs = ((np.arange(people) + 0.5) / people).tolist()
    sale = min_cost_auction(costs, error)
    share = 1 - error / QUALITY
    assert len(sale.sellers) / people == pytest.approx(share, abs=1e-4)
    assert sale.epsilon == pytest.approx(provision.epsilon(share))
    assert sale.total == pytest.approx(provision.auction_cost(share), rel=1e-3)
    assert provision.accuracy(share) == pytest.approx(1 - error)


@pytest.mark.parametrize("kind", sorted(AMOUNTS))
def test_distributions_agree_with_draws(kind: str) -> None:
    amounts = AMOUNTS[kind]
    ranks = (np.arange(20_000) + 0.5) / 20_000
    drawn = np.array([amounts.quantile(rank) for rank in ranks.tolist()])
    assert np.all(np.diff(drawn) >= 0)
    assert amounts.mean == pytest.approx(drawn.mean(), rel=1e-3)
    assert amounts.below(1.0) == pytest.approx(amounts.mean)
    for share in (0.1, 0.45, 0.8, 0.95):
        assert amounts.below(share) == pytest.approx(drawn[ranks <= share].sum() / ranks.size, rel=2e-3)
        rise = (amounts.quantile(share + 1e-6) - amounts.quantile(share - 1e-6)) / 2e-6
        if not any(abs(share - at) < 1e-3 for at in amounts.breaks):
            assert amounts.slope(share) == pytest.approx(rise, rel=1e-4, abs=1e-9)


def test_staircases_are_continuous_from_the_left() -> None:
    amounts = GroupedAmounts((10.0, 0.0), (0.1, 0.9))
    assert (amounts.quantile(0.9), amounts.quantile(0.9 + 1e-9)) == (0.0, 10.0)
    assert amounts.breaks == (0.9,)


def test_a_monopolist_looks_at_the_marginal_user() -> None:
    even = Monopoly()
    assert even.served == pytest.approx(0.5, abs=1e-6)
    assert even.captured == pytest.approx(0.5)
    # Users alike: one price takes everything, and nothing is lost.
    assert Monopoly(GroupedAmounts((3.0,), (1.0,))).captured == pytest.approx(1.0)
    # Ten in a hundred pay 10, the others 1: revenue 1 from each, or 10 from a tenth: as good; the mean is 1.9.
    two = Monopoly(GroupedAmounts((1.0, 10.0), (0.9, 0.1)))
    assert two.captured == pytest.approx(1 / 1.9)


@given(st.floats(0.2, 1.6))
@settings(max_examples=15, deadline=None)
def test_a_monopolist_never_takes_account_of_more_than_all(spread: float) -> None:
    monopoly = Monopoly(LognormalAmounts(1.0, spread))
    assert 0 < monopoly.captured < 1
    for share in np.linspace(0.01, 1, 100).tolist():
        assert share * monopoly.tastes.quantile(1 - share) <= monopoly.captured * monopoly.tastes.mean + 1e-9


def test_refusals() -> None:
    with pytest.raises(InvalidPreferences):
        Provision(100, UniformAmounts(0, 1), 1.0, 2.0)
    with pytest.raises(InvalidPreferences):
        UniformAmounts(2.0, 1.0)
    with pytest.raises(InvalidPreferences):
        LognormalAmounts(0.0, 1.0)
    with pytest.raises(InvalidPreferences):
        GroupedAmounts((1.0, 2.0), (0.5, 0.6))
