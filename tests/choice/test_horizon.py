"""Preferences over time: the reference path, brute force over splits, and other frontiers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    DisclosureHorizon,
    ExponentialCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    RootMeanSquaredLoss,
    SocialWelfare,
    TableValue,
    budget_path,
    renewals,
)
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier import Frontier, frontier_of
from dualmandate.mechanism import gaussian, geometric, laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import identity

DECADES = range(0, 70, 10)
CENSUS = DisclosureHorizon(disclosure_after_years=72, discount_factor=0.97)
HALF = frontier_of(laplace(), identity(1))  # 2/ε²: worth ½ a unit, errors cost 1/ε²


def society(utility: InformationUtility | None = None, *, value: float = 0.5) -> SocialWelfare:
    table = TableValue(HALF.tables[0], value)
    return SocialWelfare((PopulationGroup("everybody", 1.0, utility or LinearCost(1.0)),), (table,))


def test_the_reference_path() -> None:
    path = budget_path(HALF, society(), years=DECADES, horizon=CENSUS)
    losses = [release.epsilon for release in path.releases]
    assert losses == pytest.approx([1.2599, 1.2793, 1.3076, 1.3503, 1.4184, 1.5381, 1.7971], abs=5e-5)
    assert path.total == pytest.approx(9.950553, abs=1e-6)
    assert path.price == 0
    late = budget_path(HALF, society(), years=[71], horizon=CENSUS)
    assert late.releases[0].epsilon == pytest.approx(3.898013, abs=1e-6)


def test_the_reference_path_under_a_cap() -> None:
    path = budget_path(HALF, society(), years=DECADES, horizon=CENSUS, cap=6)
    losses = [release.epsilon for release in path.releases]
    assert losses == pytest.approx([1.0126, 0.9671, 0.9165, 0.8621, 0.8051, 0.7471, 0.6894], abs=5e-5)
    assert path.price == pytest.approx(0.926038, abs=1e-6)
    assert path.total == pytest.approx(6)
    assert all(release.epsilon < release.alone for release in path.releases)


def test_records_that_are_never_opened_have_a_constant_path() -> None:
    path = budget_path(HALF, society(), years=DECADES, horizon=DisclosureHorizon(math.inf, 0.97))
    assert [release.epsilon for release in path.releases] == pytest.approx([2 ** (1 / 3)] * 7)


def test_without_discounting_only_the_years_left_count() -> None:
    horizon = DisclosureHorizon(50, 1.0)
    assert [horizon.cost_of(year) for year in (0, 10, 40, 50)] == [1.0, 0.8, 0.2, 0.0]
    almost = DisclosureHorizon(50, 1 - 1e-9)
    assert almost.cost_of(20) == pytest.approx(horizon.cost_of(20), rel=1e-6)


@pytest.mark.parametrize(
    ("frontier", "utility"),
    [
        (frontier_of(geometric(), identity(4)), LinearCost(1.0)),
        (frontier_of(laplace(), identity(4)), ExponentialCost(0.4)),
        (frontier_of(gaussian(), identity(4)), LinearCost(1.0, PrivacyMeasure.ZCDP)),
    ],
)
def test_no_other_split_of_the_cap_is_better(frontier: Frontier, utility: InformationUtility) -> None:
    welfare = SocialWelfare((PopulationGroup("e", 1.0, utility),), (TableValue(frontier.tables[0], 1.0),))
    years, cap = (0.0, 20.0, 50.0), 2.0
    path = budget_path(frontier, welfare, years=years, horizon=CENSUS, cap=cap)
    assert path.total == pytest.approx(cap)
    seen = [CENSUS.seen_from_today(welfare, year) for year in years]
    generator = np.random.default_rng(2)
    for shares in generator.dirichlet(np.ones(3), 400).tolist():
        parts = zip(seen, shares, strict=True)
        other = math.fsum(each.at(frontier, max(share, 1e-9) * cap) for each, share in parts)
        assert path.welfare >= other - 1e-9 * abs(other)


@given(st.floats(0.5, 9.0), st.floats(0.9, 0.999), st.floats(61.0, 200.0))
@settings(max_examples=8, deadline=None)
def test_a_tighter_cap_costs_more_and_makes_every_loss_smaller(cap: float, beta: float, years: float) -> None:
    horizon = DisclosureHorizon(years, beta)
    wide, tight = (budget_path(HALF, society(), years=DECADES, horizon=horizon, cap=c) for c in (cap, cap / 2))
    assert tight.price >= wide.price
    assert tight.welfare <= wide.welfare + 1e-12
    for before, after in zip(wide.releases, tight.releases, strict=True):
        assert after.epsilon <= before.epsilon + 1e-12
    # The price is what one more unit of the cap is worth.
    step = 1e-5 * cap
    more = budget_path(HALF, society(), years=DECADES, horizon=horizon, cap=cap / 2 + step)
    assert (more.welfare - tight.welfare) / step == pytest.approx(tight.price, rel=1e-2, abs=1e-9)


def test_each_release_may_have_its_own_frontier_and_floor() -> None:
    frontiers = [frontier_of(laplace(), identity(1)), frontier_of(geometric(), identity(1))]
    path = budget_path(frontiers, society(), years=[0, 10], horizon=CENSUS)
    assert path.releases[1].epsilon != pytest.approx(path.releases[0].epsilon, rel=1e-2)
    floor = Limits(floors={HALF.tables[0]: math.sqrt(2) / 1.1})  # ε ≥ 1.1
    held = budget_path(HALF, society(), years=[0, 10], horizon=CENSUS, cap=2.3, limits=floor)
    assert min(release.epsilon for release in held.releases) >= 1.1 - 1e-12
    assert held.total == pytest.approx(2.3)
    with pytest.raises(NoOptimum, match="fit for use"):
        budget_path(HALF, society(), years=[0, 10], horizon=CENSUS, cap=2.1, limits=floor)


def test_refusals() -> None:
    for broken in ((0.0, 0.9), (72.0, 1.5), (72.0, 0.0), (math.inf, 1.0)):
        with pytest.raises(InvalidPreferences):
            DisclosureHorizon(*broken)
    with pytest.raises(InvalidPreferences, match="year 80"):
        budget_path(HALF, society(), years=[0, 80], horizon=CENSUS)
    with pytest.raises(InvalidPreferences, match="0 years"):
        budget_path(HALF, society(), years=[], horizon=CENSUS)
    with pytest.raises(InvalidPreferences, match="cap of -1"):
        budget_path(HALF, society(), years=[0], horizon=CENSUS, cap=-1)
    with pytest.raises(InvalidPreferences, match="bounded"):
        budget_path(HALF, society(BoundedCost(9.0), value=0.2), years=[0], horizon=CENSUS, cap=0.1)
    other = SocialWelfare(society().groups, (), other_losses=(RootMeanSquaredLoss(HALF.tables[0], 1.0),))
    with pytest.raises(InvalidPreferences, match="discounted"):
        budget_path(HALF, other, years=[0], horizon=CENSUS)


def test_one_release_that_is_used_for_years_by_hand() -> None:
    """Four years at β·(1 − δ) = .95·.8 = .76: 1 + .76 + .5776 + .438976 years' worth, and ε grows by its cube root."""
    used = DisclosureHorizon(72, 0.95, years_of_use=4, depreciation=0.2)
    assert used.service() == pytest.approx(2.776576)
    assert used.service(2) == pytest.approx(1.76)
    assert used.service(9) == used.service()
    path = budget_path(HALF, society(), years=[0], horizon=used)
    assert path.releases[0].epsilon == pytest.approx((2 * 2.776576) ** (1 / 3))
    assert DisclosureHorizon(72, 1.0, years_of_use=4).service() == 4
    assert DisclosureHorizon(math.inf, 0.95, years_of_use=math.inf, depreciation=0.2).service() == pytest.approx(
        1 / 0.24
    )


def test_a_newer_release_takes_over_and_a_cap_is_shared_by_years_of_use() -> None:
    """No other split of the cap between two releases, used for 2 and for 10 years, is better."""
    used = DisclosureHorizon(math.inf, 0.9, years_of_use=10, depreciation=0.1)
    path = budget_path(HALF, society(), years=[0, 2], horizon=used, cap=2)
    services = used.service(2), 0.81 * used.service()
    costs = [
        loss + 0.81 * (2 - loss) + services[0] / loss**2 + services[1] / (2 - loss) ** 2
        for loss in np.linspace(0.01, 1.99, 20_001)
    ]
    best = 0.01 + 1.98 * int(np.argmin(costs)) / 20_000
    assert path.releases[0].epsilon == pytest.approx(best, abs=2e-4)
    assert -path.welfare == pytest.approx(min(costs), rel=1e-7)


def test_how_often_a_new_release_pays_by_hand() -> None:
    """On c/ε² a release of A years' worth costs 1.5·2^(1/3)·k^(2/3)·(A·c)^(1/3)."""
    used = DisclosureHorizon(math.inf, 0.95, years_of_use=8, depreciation=0.3)
    rows = renewals(HALF, society(), horizon=used, worth=3.0)
    kept = 0.95 * 0.7
    for row in rows:
        service = sum(kept**age for age in range(row.years))
        least = 1.5 * 2 ** (1 / 3) * service ** (1 / 3)
        assert row.service == pytest.approx(service)
        assert row.worth == pytest.approx((3 * service - least) / (1 - 0.95**row.years))
        assert row.epsilon == pytest.approx((2 * service) ** (1 / 3))
    assert [row.worth for row in rows] == sorted((row.worth for row in rows), reverse=True)
    assert rows[0].years == 2  # 28.26; every year 22.20, every three years 27.33
    assert renewals(HALF, society(), horizon=used, worth=100.0)[0].years == 1  # dear tables are kept fresh
    undiscounted = DisclosureHorizon(72, 1.0, years_of_use=2)
    assert renewals(HALF, society(), horizon=undiscounted, worth=3.0)[0].years == 2  # nothing is lost by waiting


def test_years_of_use_that_cannot_be_meant() -> None:
    for years, depreciation in ((0.0, 0.1), (5.0, 1.0), (5.0, -0.1)):
        with pytest.raises(InvalidPreferences):
            DisclosureHorizon(72, 0.97, years_of_use=years, depreciation=depreciation)
    for bad in (None, 0.5, math.inf):
        with pytest.raises(InvalidPreferences):
            renewals(HALF, society(), horizon=DisclosureHorizon(72, 0.97, years_of_use=bad), worth=1.0)
