"""How many people to ask: the closed form, a grid of both choices, and what secrecy of the sample would be worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.choice import (
    ExponentialCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    choose,
)
from dualmandate.choice.collection import amplified, best_share, of_those_asked
from dualmandate.errors import ConflictingLimits, InvalidPreferences
from dualmandate.frontier import ExponentialResponse, Frontier, TableTotals, frontier_of, with_participation
from dualmandate.mechanism import geometric, laplace
from dualmandate.workload import identity

PEOPLE, COUNTED, VALUE = 1e6, 4e5, 0.02
LAPLACE, GEOMETRIC = frontier_of(laplace(), identity(50)), frontier_of(geometric(), identity(50))
TABLE = LAPLACE.tables[0]


def society(utility: InformationUtility) -> SocialWelfare:
    return SocialWelfare((PopulationGroup("all", PEOPLE, utility),), (TableValue(TABLE, VALUE),))


def sampled(frontier: Frontier, share: float) -> Frontier:
    return with_participation(frontier, ExponentialResponse(share, 0.0), {TABLE: TableTotals(COUNTED)})


def chosen(
    frontier: Frontier, welfare: SocialWelfare, cost: float, limits: Limits | None = None
) -> tuple[float, float]:
    """The share and the loss."""

    def epsilon_and_worth(share: float) -> tuple[float, float]:
        choice = choose(sampled(frontier, share), of_those_asked(welfare, share), limits)
        return choice.epsilon, choice.welfare

    share, _ = best_share(lambda at: epsilon_and_worth(at)[1], cost * PEOPLE, PEOPLE)
    return share, epsilon_and_worth(share)[0]


def test_a_linear_cost_and_laplace_noise_by_hand() -> None:
    """ε·s is the loss that everybody would have, and s = √(b·S/(c·N)) whatever privacy costs."""
    alone = (2 * VALUE * 2 * 50 / (PEOPLE * 1e-4)) ** (1 / 3)
    share, epsilon = chosen(LAPLACE, society(LinearCost(1e-4)), cost=0.5)
    assert share == pytest.approx(math.sqrt(VALUE * COUNTED / (0.5 * PEOPLE)), rel=1e-6)
    assert share == pytest.approx(0.126491, abs=1e-6)
    assert epsilon * share == pytest.approx(alone, rel=1e-6)
    assert chosen(LAPLACE, society(LinearCost(1e-2)), cost=0.5)[0] == pytest.approx(share, rel=1e-6)
    assert chosen(LAPLACE, society(LinearCost(1e-4)), cost=0.001)[0] == 1.0


@pytest.mark.parametrize("utility", [LinearCost(0.01), ExponentialCost(1e-3)])
def test_both_choices_on_a_grid(utility: InformationUtility) -> None:
    share, epsilon = chosen(GEOMETRIC, society(utility), cost=0.1)

    def cost(s: float, loss: float) -> float:
        noise = GEOMETRIC.expected_squared_error(loss) / s**2 + COUNTED * (1 - s) / s
        return 0.1 * PEOPLE * s + s * PEOPLE * utility.cost(loss) + VALUE * noise

    near = np.geomspace(0.8, 1.25, 41)
    everywhere = [cost(share * a, epsilon * b) for a in near for b in near if share * a <= 1]
    assert cost(share, epsilon) <= min(everywhere) * (1 + 1e-9)
    far = [cost(s, loss) for s in np.geomspace(1e-4, 1, 60) for loss in np.geomspace(1e-3, 20, 60)]
    assert cost(share, epsilon) <= min(far)


def test_shares_that_leave_a_table_unfit_are_passed_over() -> None:
    limits = Limits(floors={TABLE: 100.0})  # of one number, S/L = 8,000: sampling alone has √(8,000·(1 − s)/s)
    share, _ = chosen(GEOMETRIC, society(LinearCost(1e-4)), cost=0.5, limits=limits)
    assert share > 8_000 / (8_000 + 100**2)
    with pytest.raises(ConflictingLimits):
        chosen(GEOMETRIC, society(LinearCost(1e-4)), 0.5, Limits(floors={TABLE: 0.5}, largest_epsilon=0.01))
    with pytest.raises(InvalidPreferences):
        best_share(lambda share: -share, -1.0, PEOPLE)


def test_one_person_is_everybody() -> None:
    assert best_share(lambda share: -1 / share, 0.1, 1.0) == (1.0, -1.1)


def test_a_sample_that_is_secret_spreads_the_loss_and_does_not_shrink_its_sum() -> None:
    """Adding or removing one person, sampled with probability s, in the worst output of discrete Laplace noise."""
    epsilon, share = 1.5, 0.1
    ratio = share * math.exp(epsilon) + (1 - share)  # the output far above: e^ε times as likely with her record
    assert amplified(epsilon, share) == pytest.approx(math.log(ratio))
    assert amplified(epsilon, 1.0) == epsilon
    assert math.isfinite(amplified(2_000.0, 1e-9))
    for loss in (0.1, 1.0, 5.0):
        for part in (0.01, 0.3, 0.9):
            assert part * loss <= amplified(loss, part) <= loss


@pytest.mark.parametrize("edge", [0.21, 0.25, 0.3, 0.36, 0.43])
def test_a_best_share_at_the_edge_of_what_can_be_chosen(edge: float) -> None:
    """Below the edge nothing can be chosen, and above it every person who is asked costs more than she is worth."""

    def worth(share: float) -> float:
        if share < edge:
            raise ConflictingLimits("too few", why="unfit for use", instead="ask more")
        return -1e-3 / share

    share, net = best_share(worth, 10.0, PEOPLE)
    assert share == pytest.approx(edge, rel=1e-6)
    assert share >= edge
    assert net == worth(share) - 10.0 * share
