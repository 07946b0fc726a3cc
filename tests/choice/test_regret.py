"""The price of a wrong privacy loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    Limits,
    LinearCost,
    SocialWelfare,
    TableValue,
    choose,
    regret,
    regret_curve,
)
from dualmandate.errors import InvalidLoss
from dualmandate.population import Currency

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.1, 1.25, 2, 4)


def test_inverse_squares_and_linear_costs(title_i: TitleI) -> None:
    # Research note, section 4.
    rows = regret_curve(title_i.laplace(), title_i.welfare(), MULTIPLES)
    expected = (4.5, 0.666667, 0.054167, 0.011523, 0.008815, 0.046667, 0.416667, 1.6875)
    assert [row.relative for row in rows] == pytest.approx(expected, abs=5e-7)
    assert [row.multiple for row in rows] == pytest.approx(MULTIPLES, rel=1e-14)
    for row in rows:
        assert row.relative == pytest.approx((2 * row.multiple + row.multiple**-2) / 3 - 1, rel=1e-12)
        assert row.absolute == pytest.approx(row.relative * 2.441703638672354e11, rel=1e-12)


def test_geometric_noise_has_its_own_curve(title_i: TitleI) -> None:
    half, double = regret_curve(title_i.geometric(), title_i.welfare(), (0.5, 2))
    assert (half.relative, double.relative) == pytest.approx((0.827507, 0.507143), abs=5e-7)


@settings(deadline=None, max_examples=30)
@given(multiple=st.floats(0.1, 10), cost=st.floats(1e-3, 1e3), coefficient=st.floats(1e-3, 1e3))
def test_rho(multiple: float, cost: float, coefficient: float, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": coefficient}, power=1, currency=Currency.RHO)
    welfare = SocialWelfare.uniform(1.0, LinearCost(cost, Currency.RHO), table_values=(TableValue("t", 1.0),))
    (row,) = regret_curve(frontier, welfare, (multiple,))
    assert row.relative == pytest.approx((multiple + 1 / multiple) / 2 - 1, abs=1e-12)


def test_against_a_limit(title_i: TitleI) -> None:
    limits = Limits(largest_epsilon=2)
    row = regret(title_i.laplace(), title_i.welfare(), 1.0, limits=limits)
    assert row.best_epsilon == 2
    # 6.44e10·(1 − 2) + 5.2e11·(1 − 1/4)
    assert row.absolute == pytest.approx(3.256e11)
    # Standing beyond the limit would be better than standing at it: the regret is negative.
    assert regret(title_i.laplace(), title_i.welfare(), 2.5, limits=limits).absolute < 0


def test_two_peaks(title_i: TitleI) -> None:
    limits, welfare = Limits(largest_epsilon=10), title_i.welfare(BoundedCost(20_000))
    best = choose(title_i.laplace(), welfare, limits)
    other = regret(title_i.laplace(), welfare, best.local_optima[0].epsilon, best=best)
    assert other.absolute == pytest.approx(9.252525675312146e11 - 9.251582320646185e11, rel=1e-6)


def test_words(title_i: TitleI) -> None:
    far = regret(title_i.laplace(), title_i.welfare(), 0.1)
    assert str(far) == "0.1 costs society USD 51.76 trillion more than it must (213.0 times as much)"
    near = regret(title_i.laplace(), title_i.welfare(), 2.0)
    assert str(near) == "2 costs society USD 14.63 billion more than it must (6.0% more)"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_losses_that_cannot_be(title_i: TitleI, epsilon: float) -> None:
    with pytest.raises(InvalidLoss):
        regret(title_i.laplace(), title_i.welfare(), epsilon)
