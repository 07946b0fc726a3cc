"""The best technology at each loss, and publishing nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.optimize import brentq

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.frontier import EnvelopeCurves, Frontier, envelope, public_guess
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.laplace import LAPLACE
from dualmandate.mechanism.staircase import STAIRCASE

if TYPE_CHECKING:
    from tests.frontier.conftest import LawFrontier

LOSSES = np.logspace(-3, 1.6, 60)


def curves_of(frontier: Frontier) -> EnvelopeCurves:
    assert isinstance(frontier.curves, EnvelopeCurves)
    return frontier.curves


def test_geometric_noise_is_best_for_counts_at_every_loss(of_law: LawFrontier) -> None:
    best = envelope([of_law(law, {"a": 13_000.0}) for law in (LAPLACE, STAIRCASE, GEOMETRIC)])
    assert not curves_of(best).switches
    assert {best.technology(float(loss)) for loss in LOSSES} == {"geometric"}
    assert best.name == "best of laplace, staircase, geometric"


def test_switches_are_where_two_technologies_cost_the_same(of_law: LawFrontier) -> None:
    """Laplace with a smaller coefficient beats geometric noise until counts become nearly exact."""
    laplace, geometric = of_law(LAPLACE, {"a": 0.8}), of_law(GEOMETRIC, {"a": 1.0})
    best = envelope([laplace, geometric])
    crossing = brentq(lambda e: 0.8 * LAPLACE.variance(e) - GEOMETRIC.variance(e), 0.5, 5.0, xtol=1e-14)
    (switch,) = curves_of(best).switches
    assert (switch.before, switch.after) == ("laplace", "geometric")
    assert switch.loss == pytest.approx(crossing, rel=1e-12)
    assert best.technology(crossing * 0.999) == "laplace"
    assert best.technology(crossing * 1.001) == "geometric"
    # A better technology takes over because it gains faster: the marginal rate jumps up there.
    before, after = (best.marginal_rate_of_transformation(crossing * (1 + step)) for step in (-1e-9, 1e-9))
    assert after > before * 1.1


def test_values_and_measures_rank_technologies(of_law: LawFrontier) -> None:
    """One technology is better at each table: whose table counts decides."""
    first, second = of_law(LAPLACE, {"a": 1.0, "b": 9.0}), of_law(LAPLACE, {"a": 9.0, "b": 2.0})
    assert curves_of(envelope([first, second], values={"a": 10.0})).best(1.0) is first
    assert curves_of(envelope([first, second], values={"b": 10.0})).best(1.0) is second
    staircase, laplace = of_law(STAIRCASE, {"a": 1.0}), of_law(LAPLACE, {"a": 1.0})
    squared = curves_of(envelope([laplace, staircase]))
    absolute = curves_of(envelope([laplace, staircase], measures={"a": "absolute"}))
    for loss in LOSSES:
        for curves, measured in ((squared, "variance"), (absolute, "mean_absolute")):
            wins = getattr(LAPLACE, measured)(loss) <= getattr(STAIRCASE, measured)(loss)
            assert (curves.best(float(loss)) is laplace) == wins


def test_nothing_published_is_best_at_small_losses(of_law: LawFrontier) -> None:
    geometric = of_law(GEOMETRIC, {"a": 10.0})
    guess = public_guess(geometric, {"a": 500.0})
    best = envelope([guess, geometric])
    (switch,) = curves_of(best).switches
    assert 10 * GEOMETRIC.variance(switch.loss) == pytest.approx(500.0)
    assert best.accuracy(1e-6) == -500.0
    assert best.marginal_rate_of_transformation(1e-6) == 0.0
    assert best.allocation(1e-6) == {"all": 0.0}
    assert best.epsilon_for(-600.0) == 0.0
    assert best.epsilon_for(-100.0) == pytest.approx(geometric.epsilon_for(-100.0))
    with pytest.raises(InvalidLoss, match="out of reach of a guess"):
        guess.epsilon_for(-400.0)
    # Without more knowledge the absolute error of a guess is bounded by Cauchy and Schwarz.
    assert guess.table_errors(1.0, "absolute")["a"] == pytest.approx(math.sqrt(10 * 500))
    assert guess.table_errors(1.0, "largest variance")["a"] == 500.0


def test_the_loss_for_an_accuracy_is_found_across_switches(of_law: LawFrontier) -> None:
    best = envelope([of_law(LAPLACE, {"a": 0.8}), of_law(GEOMETRIC, {"a": 1.0})])
    for loss in (0.01, 0.5, 2.0, 20.0):
        assert best.epsilon_for(best.accuracy(loss)) == pytest.approx(loss, rel=1e-10)


def test_ranking_by_one_table_can_lose_accuracy_at_a_switch_and_the_smallest_loss_is_still_found(
    of_law: LawFrontier,
) -> None:
    """Only table a counts; geometric noise wins it above the switch, where table b gets much worse."""
    laplace, geometric = of_law(LAPLACE, {"a": 0.8, "b": 1.0}), of_law(GEOMETRIC, {"a": 1.0, "b": 50.0})
    best = envelope([laplace, geometric], values={"b": 0.0})
    (switch,) = curves_of(best).switches
    target = -laplace.expected_squared_error(switch.loss * 0.9)
    assert best.epsilon_for(target) == pytest.approx(switch.loss * 0.9)
    assert best.accuracy(switch.loss * 1.1) < target


def test_technologies_that_cannot_be_compared_are_refused(of_law: LawFrontier) -> None:
    with pytest.raises(InvalidMechanism, match="no technologies"):
        envelope([])
    with pytest.raises(InvalidMechanism, match="cannot be compared"):
        envelope([of_law(LAPLACE, {"a": 1.0}), of_law(GAUSSIAN, {"a": 1.0})])
    with pytest.raises(InvalidMechanism, match="cannot be compared"):
        envelope([of_law(LAPLACE, {"a": 1.0}), of_law(LAPLACE, {"b": 1.0})])
    with pytest.raises(InvalidLoss, match="values of accuracy"):
        envelope([of_law(LAPLACE, {"a": 1.0})], values={"a": 0.0})
    with pytest.raises(InvalidMechanism, match="not stated"):
        public_guess(of_law(LAPLACE, {"a": 1.0}), {})


def test_an_accuracy_is_bought_where_its_technology_is_in_use(of_law: LawFrontier) -> None:
    """Ranked by table a alone, the guess stays in use at losses where noise would already be accurate enough in b."""
    noise = of_law(LAPLACE, {"a": 10.0, "b": 1.0})
    best = envelope([public_guess(noise, {"a": 500.0, "b": 1e6}), noise], values={"b": 0.0})
    loss = best.epsilon_for(-2000.0)
    assert noise.epsilon_for(-2000.0) < loss
    assert loss == pytest.approx(math.sqrt(20 / 500))
    assert best.expected_squared_error(loss) <= 2000.0
