"""Minimax regret over sets of preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import Beliefs, Group, Limits, LinearCost, SocialWelfare, TableValue, choose, minimax_regret
from dualmandate.errors import InvalidPreferences, NoOptimum

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

COST = "mean_disclosure_cost"


def test_title_i(title_i: TitleI) -> None:
    # Research note, section 4: k in [61, 1400].
    found = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)})
    assert found.epsilon == pytest.approx(3.473333, abs=5e-7)
    assert found.regret == pytest.approx(2.261557e10, rel=3e-7)
    assert [corner.regret for corner in found.corners] == pytest.approx([found.regret] * 2, rel=1e-9)
    assert all(corner.binding for corner in found.corners)
    relative = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, relative=True)
    assert (relative.epsilon, relative.regret) == pytest.approx((4.450601, 0.281363), abs=5e-7)
    assert str(float(found.loss)) == "3.4733"


@settings(deadline=None, max_examples=25)
@given(low=st.floats(0.01, 10), factor=st.floats(1.1, 1e3), coefficient=st.floats(0.01, 100))
def test_the_formula(low: float, factor: float, coefficient: float, power_frontier: type[PowerFrontier]) -> None:
    high = low * factor
    welfare = SocialWelfare.uniform(1.0, LinearCost(low), table_values=(TableValue("t", 1.0),))
    found = minimax_regret(power_frontier({"t": coefficient}), welfare, {COST: (low, high)})
    expected = 1.5 * (2 * coefficient) ** (1 / 3) * (high ** (2 / 3) - low ** (2 / 3)) / (high - low)
    assert found.epsilon == pytest.approx(expected, rel=1e-7)


def test_a_box_of_three_numbers_is_worst_at_corners(power_frontier: type[PowerFrontier]) -> None:
    """Nothing inside the box is worse than its corners: searched over a fine lattice of preferences."""
    frontier = power_frontier({"a": 1.0, "b": 5.0})
    groups = (Group("x", 1.0, LinearCost(1.0)), Group("y", 2.0, LinearCost(3.0)))
    values = (TableValue("a", 2.0), TableValue("b", 1.0, "absolute"))
    welfare = SocialWelfare(groups, values)
    ranges = {f"{COST} of x": (0.1, 4.0), "relative_privacy_weight of x": (0.5, 2.0), "value_of_accuracy of a": (1, 9)}
    inside = np.stack(np.meshgrid(*(np.linspace(*ends, 8) for ends in ranges.values())), axis=-1).reshape(-1, 3)
    lattice = Beliefs.draws(welfare, dict(zip(ranges, inside.T, strict=True)), discrete=True)
    for relative in (False, True):
        corners = minimax_regret(frontier, welfare, ranges, relative=relative)
        everywhere = minimax_regret(frontier, lattice, relative=relative)
        assert everywhere.epsilon == pytest.approx(corners.epsilon, rel=1e-8)
        assert everywhere.regret == pytest.approx(corners.regret, rel=1e-8)
        # And no other loss has a smaller worst regret.
        losses = np.geomspace(corners.epsilon / 3, corners.epsilon * 3, 301)
        assert corners.regrets(losses).max(axis=1).min() >= corners.regret * (1 - 1e-9)


def test_corners_by_brute_force(title_i: TitleI) -> None:
    found = minimax_regret(title_i.geometric(), title_i.welfare(), {COST: (61, 1400), "consequence": (1e7, 4e7)})
    assert len(found.corners) == 4
    for corner in found.corners:
        value = title_i.value(squared_cost=corner.values["consequence"])
        best = choose(title_i.geometric(), title_i.welfare(LinearCost(corner.values[COST]), value=value))
        assert corner.epsilon == pytest.approx(best.epsilon, rel=1e-7)
        assert corner.least_cost == pytest.approx(-best.welfare, rel=1e-9)
        at = title_i.welfare(LinearCost(corner.values[COST]), value=value).at(title_i.geometric(), found.epsilon)
        assert corner.regret == pytest.approx(best.welfare - at, rel=1e-6)


def test_limits(title_i: TitleI) -> None:
    found = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, limits=Limits(largest_epsilon=3.0))
    assert found.epsilon <= 3.0
    assert max(corner.epsilon for corner in found.corners) == 3.0
    free = {COST: (0.0, 1400.0)}
    with pytest.raises(NoOptimum):
        minimax_regret(title_i.laplace(), title_i.welfare(), free)
    assert minimax_regret(title_i.laplace(), title_i.welfare(), free, limits=Limits(largest_epsilon=9)).epsilon < 9


def test_words_and_refusals(title_i: TitleI) -> None:
    words = str(minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}))
    assert "epsilon = 3.47333 costs society at most USD 22.62 billion more" in words
    assert "from 2.528 at mean_disclosure_cost 1,400 to 7.183 at mean_disclosure_cost 61" in words
    relative = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, relative=True)
    assert "at most 28.1% more" in relative.explain()
    narrow = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (1399, 1401)}, relative=True)
    assert "at most less than 0.01% more" not in narrow.explain()
    assert "less than 0.01% more" in narrow.explain()
    with pytest.raises(InvalidPreferences):
        minimax_regret(title_i.laplace(), title_i.welfare())


def test_scenarios(title_i: TitleI) -> None:
    scenarios = Beliefs.scenarios([title_i.welfare(LinearCost(61)), title_i.welfare(LinearCost(1400))])
    assert minimax_regret(title_i.laplace(), scenarios).epsilon == pytest.approx(3.473333, abs=5e-6)
