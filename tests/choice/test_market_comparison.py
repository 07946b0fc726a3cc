"""Institutions on a program's own numbers: the paper's program by closed form, and the order on others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    Limits,
    LinearCost,
    PopulationGroup,
    RootMeanSquaredLoss,
    SocialWelfare,
    choose,
)
from dualmandate.choice.markets import (
    CompensatedStudy,
    GroupedAmounts,
    Institution,
    Market,
    OnePrice,
    compare_markets,
    cost_distribution,
    fair_query,
    truthful_epsilon,
)
from dualmandate.choice.welfare import TableValue
from dualmandate.errors import InvalidPreferences
from dualmandate.frontier import frontier_of
from dualmandate.mechanism import gaussian, laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import identity

FRONTIER = frontier_of(laplace(), identity(13_000))
TABLE = FRONTIER.tables[0]
VALUE = TableValue(TABLE, 2.0e7, unit="child")


def society(*costs: tuple[float, float]) -> SocialWelfare:
    """Groups of (size, USD per child per epsilon)."""
    groups = tuple(PopulationGroup(f"group {i}", size, LinearCost(cost)) for i, (size, cost) in enumerate(costs))
    return SocialWelfare(groups, (VALUE,), protected_unit="child")


def rows_of(welfare: SocialWelfare, market: Market, limits: Limits | None = None) -> dict[str, Institution]:
    return {row.name: row for row in compare_markets(FRONTIER, welfare, market, limits)}


def epsilon_of(row: Institution) -> float:
    assert row.epsilon is not None
    return row.epsilon


def test_title_i_with_everybody_alike() -> None:
    rows = rows_of(society((46e6, 1_400)), Market(0.125))
    planned = epsilon_of(rows["planner"])
    assert planned == pytest.approx(2.527644, abs=1e-6)
    # On c/ε² a share s of the value gives s^(1/3) of the planner's ε.
    assert epsilon_of(rows["monopolist"]) / planned == pytest.approx(0.793701, abs=1e-6)
    assert epsilon_of(rows["private provider, one price"]) == pytest.approx(planned / 2)
    assert epsilon_of(rows["Lindahl"]) == pytest.approx(planned)
    assert rows["Lindahl"].forgone == pytest.approx(0, abs=1)
    # Regret of half the optimum is two thirds of what society loses there (reference: .666667).
    forgone = rows["private provider, one price"].forgone
    assert forgone == pytest.approx(0.666667 * 2.441704e11, rel=1e-5)
    paid = rows["private provider, one price"]
    assert paid.total == pytest.approx(46e6 * 1_400 * planned / 2)
    assert paid.payment == pytest.approx(1_400 * planned / 2)


def test_one_price_must_satisfy_the_most_reluctant() -> None:
    welfare = society((30e6, 500), (16e6, 4_000))
    rows = rows_of(welfare, Market(0.2))
    mean = (30 * 500 + 16 * 4_000) / 46
    ratio = epsilon_of(rows["Lindahl"]) / epsilon_of(rows["planner"])
    assert ratio == pytest.approx((mean / 4_000) ** (1 / 3))
    one, personal = rows["private provider, one price"], rows["private provider, personal prices"]
    assert one.total == pytest.approx(46e6 * 4_000 * epsilon_of(one))
    assert personal.total == pytest.approx(46e6 * mean * epsilon_of(personal))
    assert cost_distribution(welfare).mean == pytest.approx(mean)


@given(
    st.lists(st.tuples(st.floats(1e3, 1e7), st.floats(1.0, 1e4)), min_size=1, max_size=3),
    st.floats(0.01, 1.0),
)
@settings(max_examples=25, deadline=None)
def test_no_institution_is_more_accurate_or_better_than_the_planner(
    groups: list[tuple[float, float]], share: float
) -> None:
    rows = rows_of(society(*groups), Market(share))
    ranked = [epsilon_of(rows[name]) for name in ("private provider, one price", "Lindahl", "planner")]
    assert ranked[0] <= ranked[1] * (1 + 1e-9)
    assert ranked[1] <= ranked[2] * (1 + 1e-9)
    assert epsilon_of(rows["private provider, one price"]) <= epsilon_of(rows["private provider, personal prices"]) * (
        1 + 1e-9
    )
    assert all(row.forgone is None or row.forgone >= -1e-6 * -(row.welfare or 0) for row in rows.values())


def test_buyers_with_a_budget() -> None:
    people = 46e6
    rows = rows_of(society((people, 1_400)), Market(0.5, budget=1e9, harm=1_400, target_error=0.01))
    study = rows["study that pays for harm"]
    assert CompensatedStudy(1_400, 0.01, 0.05).payment(epsilon_of(study)) * people == pytest.approx(1e9)
    assert "enough" in study.why
    # Everybody alike: the largest k with v·k ≤ B·(n − k), so h = B/(v + B).
    fair = rows["FairQuery"]
    share = 1e9 / (1_400 + 1e9)
    assert epsilon_of(fair) == pytest.approx(1 / (people * (1 - share)), rel=1e-6)
    assert fair.total == pytest.approx(1e9, rel=1e-6)
    assert epsilon_of(rows["MinCostAuction"]) == pytest.approx((0.5 + math.log(3)) / (0.01 * people))
    poor = rows_of(society((people, 1_400)), Market(0.5, budget=1e5, harm=1_400, target_error=0.01))
    assert "too little" in poor["study that pays for harm"].why


def test_people_are_paid_what_they_lose_however_society_weighs_it() -> None:
    plain = society((46e6, 1_400))
    doubled = replace(plain, groups=tuple(replace(group, relative_privacy_weight=2.0) for group in plain.groups))
    paid, weighed = rows_of(plain, Market(0.5)), rows_of(doubled, Market(0.5))
    name = "private provider, personal prices"
    assert epsilon_of(weighed[name]) == pytest.approx(epsilon_of(paid[name]), rel=1e-9)
    assert epsilon_of(weighed["planner"]) < epsilon_of(paid["planner"])


def test_a_budget_lifts_no_limit() -> None:
    people, market = 46e6, Market(0.5, budget=1e12, harm=1.0)
    rows = compare_markets(FRONTIER, society((people, 1_400)), market, Limits(largest_epsilon=3))
    study = next(row for row in rows if row.name == "study that pays for harm")
    assert math.log1p(1e12 / people) > 9
    assert epsilon_of(study) == 3
    assert study.total == pytest.approx(people * (math.exp(3) - 1))


def test_the_share_a_budget_buys_agrees_with_the_auction_among_people() -> None:
    costs, budget = [1.0] * 600 + [3.0] * 400, 0.9
    sale = fair_query(costs, budget)
    groups = (PopulationGroup("a", 600, LinearCost(1.0)), PopulationGroup("b", 400, LinearCost(3.0)))
    welfare = SocialWelfare(groups, (VALUE,))
    row = rows_of(welfare, Market(1.0, budget=budget))["FairQuery"]
    assert epsilon_of(row) == pytest.approx(sale.epsilon, rel=5e-3)
    assert row.total == pytest.approx(sale.total, rel=5e-3)


def test_an_institution_that_would_choose_nothing_says_so() -> None:
    """A floor on accuracy that the planner meets and a cap: those who count less stand at the floor."""
    rows = rows_of(society((46e6, 1_400)), Market(0.01), Limits(floors={TABLE: 0.6}))
    floor = epsilon_of(rows["private provider, one price"])
    assert floor == pytest.approx(math.sqrt(2) / 0.6)
    assert choose(FRONTIER, society((46e6, 1_400)), Limits(floors={TABLE: 0.6})).epsilon > floor


def test_in_rho_auctions_and_payments_say_why_they_choose_nothing() -> None:
    frontier = frontier_of(gaussian(), identity(100))
    groups = (PopulationGroup("everybody", 1e6, LinearCost(1.0, PrivacyMeasure.ZCDP)),)
    welfare = SocialWelfare(groups, (TableValue(frontier.tables[0], 10.0),))
    market = Market(0.5, budget=1e6, harm=10, target_error=0.1, stake=100)
    rows = {row.name: row for row in compare_markets(frontier, welfare, market)}
    assert rows["monopolist"].epsilon is not None
    for name in ("FairQuery", "MinCostAuction", "study that pays for harm", "planner, truthful reports"):
        assert rows[name].epsilon is None
        assert "a pure epsilon" in rows[name].why


def test_one_price_of_different_forms() -> None:
    utility = OnePrice((LinearCost(3.0), ExponentialCost(1.0)))
    assert (utility.cost(1.0), utility.marginal_cost(1.0)) == (3.0, 3.0)  # e − 1 is less
    assert utility.marginal_cost(3.0) == pytest.approx(math.exp(3.0))
    assert utility.log_marginal_cost(3.0) == pytest.approx(3.0)
    assert utility.convex
    assert utility.most == math.inf
    assert utility.scaled(2.0).parameter == 6.0
    assert utility.unit("child", "USD") == "USD per child per epsilon"


def test_the_truth_pays_up_to_the_stake_of_the_most_reluctant() -> None:
    """1,000 at stake: up to ε = 2 at a cost of 500, 1 at 1,000. The planner would choose 3.2 or so."""
    welfare = society((30e6, 500.0), (16e6, 1_000.0))
    rows = rows_of(welfare, Market(largest_user_share=0.1, stake=1_000.0))
    row, planner = rows["planner, truthful reports"], rows["planner"]
    assert row.epsilon == pytest.approx(1.0, rel=1e-4)
    assert row.forgone is not None
    assert row.forgone > 0
    assert row.payment is None
    assert planner.epsilon is not None
    assert planner.epsilon > 2
    assert "for 0 % of people" in row.why
    assert f"USD {1_000 * planner.epsilon - 1_000:,.0f}"[:9] in row.why
    free = rows_of(welfare, Market(largest_user_share=0.1, stake=1e6))["planner, truthful reports"]
    assert free.epsilon == planner.epsilon
    assert "more at stake" not in free.why
    limited = rows_of(welfare, Market(largest_user_share=0.1, stake=1_000.0), Limits(largest_epsilon=0.5))
    assert limited["planner, truthful reports"].epsilon == 0.5
    unfit = rows_of(welfare, Market(largest_user_share=0.1, stake=1_000.0), Limits(floors={TABLE: 0.8}))
    assert unfit["planner, truthful reports"].epsilon is None


def test_no_lie_pays_below_the_truthful_loss() -> None:
    """A count with discrete Laplace noise, and whatever the count could be worth to her, at its best."""
    cost, worth = LinearCost(40.0), 25.0
    epsilon = truthful_epsilon(Market(0.1, stake=100.0, influence=worth), cost)
    assert cost.cost(epsilon) + worth * math.expm1(epsilon) == pytest.approx(100.0)
    outputs = np.arange(-400, 401)
    told, lied = (np.exp(-epsilon * np.abs(outputs - count)) for count in (0, 1))
    told, lied = told / told.sum(), lied / lied.sum()
    best = worth * np.maximum(lied - told, 0).sum()  # worth nothing or all of it, output by output
    assert best + cost.cost(epsilon) < 100.0
    assert truthful_epsilon(Market(0.1, stake=50.0), BoundedCost(50.0)) == math.inf
    assert truthful_epsilon(Market(0.1, stake=25.0), BoundedCost(50.0)) == pytest.approx(math.log(2))


def test_refusals() -> None:
    with pytest.raises(InvalidPreferences, match="largest_user_share"):
        Market(0.0)
    with pytest.raises(InvalidPreferences, match="budget"):
        Market(0.5, budget=0.0)
    for harm in (0.0, math.inf):
        with pytest.raises(InvalidPreferences, match="harm"):
            Market(0.5, harm=harm)
    other = SocialWelfare(
        (PopulationGroup("everybody", 1.0, LinearCost(1.0)),), (), other_losses=(RootMeanSquaredLoss(TABLE, 1.0),)
    )
    with pytest.raises(InvalidPreferences, match="shared out"):
        compare_markets(FRONTIER, other, Market(0.5))
    assert GroupedAmounts((2.0,), (1.0,)).quantile(0.3) == 2.0
