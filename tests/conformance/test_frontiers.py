"""What every frontier must do, whatever technology stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.frontier import (
    EnvelopeCurves,
    ExponentialResponse,
    FormulaGrant,
    Frontier,
    GroupSecret,
    Measure,
    Simulation,
    TableTotals,
    by_secret,
    decision_frontier,
    envelope,
    frontier_of,
    in_epsilon,
    noisy_answers,
    peak_of,
    public_guess,
    simulated,
    split,
    stated_split,
    with_participation,
)
from dualmandate.frontier.frontier import MEASURES
from dualmandate.frontier.numerics import derivative
from dualmandate.frontier.split import SplitCurves
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    BitFlip,
    KNorm,
    MatrixMechanism,
    OneBitMean,
    RandomizedResponse,
    gaussian,
    geometric,
    laplace,
    staircase,
)
from dualmandate.population import Histogram, Neighbors, Protection
from dualmandate.workload import explicit, groups, identity, marginals, prefix, stack, total

TABLES = stack(identity(5), total(5), weights=[1, 2])
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def split_of_three() -> Frontier:
    parts = [
        frontier_of(geometric(), identity(4)),
        frontier_of(laplace(), prefix(4)),
        frontier_of(staircase(), total(4)),
    ]
    return split(parts, values={"identity": 3.0, "total": 0.2})


def split_of_two_gaussians() -> Frontier:
    parts = {
        "cells": frontier_of(gaussian(), identity(6)),
        "sums": frontier_of(gaussian(), groups(6, [[0, 1], [1, 2]])),
    }
    return split(parts, values={"groups": 40.0}, measures={"groups": "absolute"})


def stated_shares() -> Frontier:
    parts = {
        "cells": frontier_of(geometric(), identity(4)),
        "sums": frontier_of(laplace(), prefix(4)),
        "all": frontier_of(staircase(), total(4)),
    }
    return stated_split(parts, {"cells": Fraction(1, 2), "sums": Fraction(1, 3), "all": Fraction(1, 6)})


def switching_envelope() -> Frontier:
    """Geometric noise straight on prefix sums, Laplace noise on a strategy: each is best somewhere."""
    return envelope(
        [frontier_of(MatrixMechanism(identity(6), LAPLACE), prefix(6)), frontier_of(geometric(), prefix(6))]
    )


def envelope_with_a_guess() -> Frontier:
    measured = frontier_of(geometric(), identity(4))
    return envelope([public_guess(measured, {"identity": 900.0}), measured])


def simulated_chain() -> Frontier:
    production = geometric().production(TABLES)

    def release(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return production.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)

    plan = Simulation(tuple(float(loss) for loss in np.logspace(-1.5, 0.5, 6)), 60, seed=11)
    histogram = Histogram(TABLES.domain, np.arange(5, dtype=np.int64))
    return simulated(release, TABLES, histogram=histogram, simulation=plan)


def declining_participation() -> Frontier:
    """Tables of which both still gain where the frontier is looked at; it peaks beyond."""
    totals = {"identity": TableTotals(40.0, largest=12.0), "total": TableTotals(40.0)}
    return with_participation(frontier_of(geometric(), TABLES), ExponentialResponse(0.9, 0.05), totals)


def false_reports() -> Frontier:
    """As above, with people who report falsely besides."""
    totals = {
        "identity": TableTotals(40.0, largest=12.0, people=60.0, falsely=0.5, spread=2.0),
        "total": TableTotals(40.0, people=60.0, falsely=0.5),
    }
    truthful = ExponentialResponse(0.99, 0.001)
    return with_participation(
        frontier_of(geometric(), TABLES), ExponentialResponse(1.0, 0.001), totals, truthful=truthful
    )


def secret_of_a_group() -> Frontier:
    return by_secret(frontier_of(geometric(), TABLES), GroupSecret((0.1, 0.15, 0.5, 0.15, 0.1)), steps=2)


def decided_chain() -> Frontier:
    cells = identity(5)
    grant = FormulaGrant([3.0, 1.0, 2.0, 2.0, 5.0], threshold=2.0, appropriation=30.0)
    plan = Simulation(tuple(float(loss) for loss in np.logspace(-1.5, 0.5, 6)), 60, seed=4)
    histogram = Histogram(cells.domain, np.arange(5, dtype=np.int64))
    release = noisy_answers(geometric().production(cells))
    return decision_frontier(grant, release, cells, histogram=histogram, simulation=plan)


@dataclass(frozen=True)
class Case:
    """A frontier, losses at which it is smooth, and how exact its slopes are."""

    make: Callable[[], Frontier]
    low: float = 0.03
    high: float = 8.0
    precision: float = 1e-6
    strictly: bool = True  # gains accuracy everywhere
    concave: bool = True  # a decision with a threshold and a fixed sum need not be
    measures: tuple[Measure, ...] = ("squared", "absolute", "largest variance")  # that are smooth


CASES = {
    "laplace": Case(lambda: frontier_of(laplace(), TABLES)),
    "laplace, replace-one": Case(lambda: frontier_of(laplace(), identity(7), protection=REPLACE_ONE)),
    "geometric": Case(lambda: frontier_of(geometric(), TABLES)),
    "staircase": Case(lambda: frontier_of(staircase(), TABLES)),
    "K-norm": Case(lambda: frontier_of(KNorm(), TABLES)),
    "gaussian": Case(lambda: frontier_of(gaussian(), marginals((3, 2, 2), (1, 2)))),
    "gaussian in epsilon": Case(lambda: frontier_of(gaussian(), TABLES, failure_probability=1e-9)),
    "laplace on a strategy": Case(
        lambda: frontier_of(MatrixMechanism(stack(identity(6), total(6)), LAPLACE), prefix(6))
    ),
    "geometric on a strategy": Case(lambda: frontier_of(MatrixMechanism(identity(4), GEOMETRIC), prefix(4)), high=5.0),
    "gaussian on a strategy": Case(lambda: frontier_of(MatrixMechanism(identity(4), GAUSSIAN), prefix(4)), high=3.0),
    "randomized response": Case(
        lambda: frontier_of(RandomizedResponse.binary(500, innocuous_share=0.3, sensitive_share=0.1), identity(2)),
        # Reports are whole numbers around a mean that moves with ε: E|error| has a kink at each of them.
        measures=("squared", "largest variance"),
    ),
    "two of four bits": Case(
        lambda: frontier_of(BitFlip(500, 4, 2, (0.4, 0.3, 0.2, 0.1)), identity(4)),
        measures=("squared", "largest variance"),
    ),
    "one bit of an amount": Case(
        lambda: frontier_of(OneBitMean(500, 3, (0.2, 0.3, 0.5)), explicit([[0, 1, 5]])),
        measures=("squared", "largest variance"),
    ),
    "split": Case(split_of_three),
    "stated shares": Case(stated_shares),
    "split in rho": Case(split_of_two_gaussians),
    "split in epsilon": Case(lambda: in_epsilon(split_of_two_gaussians(), 1e-8)),
    "envelope": Case(switching_envelope),
    "envelope with a guess": Case(envelope_with_a_guess, strictly=False),
    "simulated": Case(simulated_chain, low=0.05, high=2.5),
    "participation": Case(declining_participation, high=0.9),
    "false reports": Case(false_reports, high=0.9),
    "secret of a group": Case(secret_of_a_group, high=5.0, precision=1e-5),
    "decision": Case(decided_chain, low=0.05, high=2.5, concave=False),
}


@cache
def made(name: str) -> Frontier:
    return CASES[name].make()


def losses_of(name: str) -> list[float]:
    """Losses on a log scale, away from switches and simulated losses, where slopes jump."""
    case, frontier = CASES[name], made(name)
    curves = getattr(frontier, "curves", None)
    jumps = [switch.loss for switch in curves.switches] if isinstance(curves, EnvelopeCurves) else []
    jumps += getattr(getattr(curves, "simulation", None), "losses", ())
    losses = np.logspace(np.log10(case.low), np.log10(case.high), 9).tolist()
    return [loss for loss in losses if all(abs(np.log(loss / jump)) > 0.02 for jump in jumps)]


@pytest.fixture(params=list(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_more_loss_buys_more_accuracy_at_a_falling_rate(name: str) -> None:
    frontier, losses = made(name), losses_of(name)
    assert len(losses) >= 6
    accuracies = [frontier.accuracy(loss) for loss in losses]
    assert all(accuracy < 0 for accuracy in accuracies)
    assert np.all(np.diff(accuracies) >= 0)
    for loss in losses:
        assert frontier.marginal_rate_of_transformation(loss) >= 0
        assert frontier.second_derivative(loss) <= 0 or not CASES[name].concave
        if CASES[name].strictly:
            assert frontier.marginal_rate_of_transformation(loss) > 0
            assert frontier.second_derivative(loss) < 0 or not CASES[name].concave
    if CASES[name].strictly:
        assert np.all(np.diff(accuracies) > 0)


def test_rates_are_derivatives(name: str) -> None:
    frontier, precision = made(name), CASES[name].precision
    for loss in losses_of(name):
        rate = frontier.marginal_rate_of_transformation(loss)
        assert derivative(frontier.accuracy, loss) == pytest.approx(rate, rel=precision)
        bend = derivative(frontier.marginal_rate_of_transformation, loss)
        assert bend == pytest.approx(frontier.second_derivative(loss), rel=precision)


def test_the_loss_for_an_accuracy_is_the_loss_that_buys_it(name: str) -> None:
    frontier = made(name)
    for loss in losses_of(name):
        found = frontier.epsilon_for(frontier.accuracy(loss))
        if frontier.marginal_rate_of_transformation(loss) > 0:
            assert found == pytest.approx(loss, rel=1e-8)
        else:
            assert found <= loss


def test_tables_add_up_to_the_whole(name: str) -> None:
    frontier = made(name)
    assert tuple(frontier.query_counts) == frontier.tables
    assert all(count > 0 for count in frontier.query_counts.values())
    for loss in losses_of(name):
        by_table = frontier.table_errors(loss)
        assert tuple(by_table) == frontier.tables
        assert sum(by_table.values()) == pytest.approx(frontier.expected_squared_error(loss))
        assert frontier.accuracy(loss) == -frontier.expected_squared_error(loss)
        assert sum(frontier.table_slopes(loss).values()) == pytest.approx(
            -frontier.marginal_rate_of_transformation(loss)
        )
        assert frontier.technology(loss)


def error_of(frontier: Frontier, table: str, measure: Measure, loss: float) -> float:
    return frontier.table_errors(loss, measure)[table]


def test_slopes_of_tables_are_derivatives_in_every_measure(name: str) -> None:
    frontier = made(name)
    for measure in CASES[name].measures:
        for loss in losses_of(name)[1::3]:
            slopes = frontier.table_slopes(loss, measure)
            for table in frontier.tables:
                numeric = derivative(partial(error_of, frontier, table, measure), loss)
                assert slopes[table] == pytest.approx(numeric, rel=1e-5, abs=1e-12)
                assert slopes[table] <= 0


def test_measures_are_consistent_with_each_other(name: str) -> None:
    """Per table: the largest variance is at least the mean one, and Σ E|e| ≤ √(k·Σ E[e²])."""
    frontier = made(name)
    for loss in losses_of(name)[::4]:
        squared, absolute, largest = (frontier.table_errors(loss, measure) for measure in MEASURES)
        for table, count in frontier.query_counts.items():
            assert squared[table] / count <= largest[table] * (1 + 1e-9)
            assert largest[table] <= squared[table] * (1 + 1e-9)
            assert absolute[table] <= np.sqrt(count * squared[table]) * (1 + 1e-9)


def test_an_envelope_is_never_below_a_member() -> None:
    frontier = switching_envelope()
    curves = frontier.curves
    assert isinstance(curves, EnvelopeCurves)
    assert len(curves.switches) == 1
    for loss in np.logspace(-2, 1.3, 60).tolist():
        assert frontier.accuracy(loss) == max(member.accuracy(loss) for member in curves.members)


def test_a_split_spends_its_loss_and_no_feasible_split_is_better() -> None:
    for frontier in (split_of_three(), split_of_two_gaussians()):
        curves = frontier.curves
        assert isinstance(curves, SplitCurves)
        generator = np.random.default_rng(0)
        for loss in (0.1, 1.0, 6.0):
            assert sum(frontier.allocation(loss).values()) == pytest.approx(loss)
            best = curves.weights.total(frontier, loss)
            for shares in generator.dirichlet(np.ones(len(curves.groups)), 40).tolist():
                parts = zip(curves.groups, shares, strict=True)
                other = sum(group.weights.total(group.frontier, max(share, 1e-6) * loss) for group, share in parts)
                assert best <= other * (1 + 1e-12)


def test_a_frontier_that_people_leave_ends_at_its_peak() -> None:
    """Non-monotone as it would be, it is level from the peak on: no more loss buys any more accuracy."""
    frontier = declining_participation()
    peak = peak_of(frontier)
    assert peak is not None
    assert 0.9 < peak < 20
    for loss in (1.01 * peak, 2 * peak, 100 * peak):
        assert frontier.accuracy(loss) == frontier.accuracy(peak)
        assert frontier.marginal_rate_of_transformation(loss) == 0
        assert frontier.second_derivative(loss) == 0
    assert frontier.marginal_rate_of_transformation(0.99 * peak) > 0
