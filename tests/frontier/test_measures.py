"""Losses that are not squared: by hand, by brute force over draws, and by what they must not fall below."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from dualmandate.choice import LinearCost, PopulationGroup, SocialWelfare, TableValue, choose
from dualmandate.errors import InvalidMechanism, InvalidValue
from dualmandate.frontier import (
    FormulaGrant,
    Frontier,
    Measure,
    Misallocation,
    RelativeErrors,
    Simulation,
    TailMisses,
    WorstError,
    envelope,
    frontier_of,
    priced,
    public_guess,
    split,
)
from dualmandate.mechanism import (
    GEOMETRIC,
    LAPLACE,
    MatrixRows,
    Measurement,
    RandomizedResponse,
    gaussian,
    geometric,
    laplace,
)
from dualmandate.workload import identity, kron, stack, total

CELLS = identity(5)
TABLE = CELLS.tables[0].name


def error(frontier: Frontier, measure: Measure, loss: float) -> float:
    assert not isinstance(measure, str)
    return frontier.table_errors(loss, measure)[measure.table]


def both() -> Measurement:
    """Cells and their total, from the cells: the total is a sum of several draws."""
    workload = stack(kron(identity(3)), kron(total(3)))
    return Measurement(MatrixRows.every_cell(workload), GEOMETRIC)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_tails_are_those_of_the_noise(epsilon: float) -> None:
    measure, q = TailMisses(TABLE, 4.0), math.exp(-epsilon)
    assert error(frontier_of(laplace(), CELLS), measure, epsilon) == pytest.approx(5 * math.exp(-4 * epsilon))
    assert error(frontier_of(geometric(), CELLS), measure, epsilon) == pytest.approx(10 * q**5 / (1 + q))
    slope = frontier_of(laplace(), CELLS).table_slopes(epsilon, measure)[TABLE]
    assert slope == pytest.approx(-20 * math.exp(-4 * epsilon), rel=1e-9)
    bend = frontier_of(laplace(), CELLS).table_curvatures(epsilon, measure)[TABLE]
    assert bend == pytest.approx(80 * math.exp(-4 * epsilon), rel=1e-6)


def test_a_worst_error_is_exact_for_independent_numbers_and_never_less_than_what_is_promised() -> None:
    measure = WorstError(TABLE, 0.05)
    constant = -math.log(1 - 0.95 ** (1 / 5))
    assert error(frontier_of(laplace(), CELLS), measure, 0.5) == pytest.approx(constant / 0.5)
    assert frontier_of(laplace(), CELLS).table_slopes(0.5, measure)[TABLE] == pytest.approx(-constant / 0.25, rel=1e-9)
    for mechanism in (geometric(), gaussian()):
        production = mechanism.production(CELLS)
        frontier = priced(production)
        losses = np.geomspace(0.05, 8.0, 60).tolist()
        found = [error(frontier, measure, loss) for loss in losses]
        for loss, each in zip(losses, found, strict=True):
            promised = float(production.simultaneous_half_width(TABLE, loss, 0.95).max())
            assert promised <= each <= promised + 1
        assert all(0.85 < after / before < 1 for before, after in pairwise(found))  # it falls, and never jumps


def test_of_sums_of_draws_they_are_what_simulation_finds() -> None:
    production = both()
    table, loss = production.workload.tables[1].name, 0.7
    draws = production.draw_errors(loss, generator=np.random.default_rng(5), size=40_000)[:, -1]
    misses = error(priced(production), TailMisses(table, 6.0), loss)
    assert misses == pytest.approx(float(np.mean(np.abs(draws) > 6)), abs=0.01)
    worst = error(priced(production), WorstError(table, 0.1), loss)
    assert float(np.mean(np.abs(draws) > worst)) <= 0.1 + 0.005
    assert float(np.mean(np.abs(draws) > worst - 1)) > 0.1 - 0.005


def test_relative_errors_weigh_each_number_by_what_is_expected_of_it() -> None:
    production = both()
    table = production.workload.tables[0].name
    sizes = np.array([10.0, 20.0, 40.0])
    found = error(priced(production), RelativeErrors(table, sizes), 1.3)
    assert found == pytest.approx(float(np.sum(production.query_variances(table, 1.3) / sizes**2)))
    one = error(priced(production), RelativeErrors(table, 8.0), 1.3)
    assert one == pytest.approx(production.table_errors(1.3)[table] / 64)
    with pytest.raises(InvalidValue):
        RelativeErrors(table, np.array([1.0, 0.0, 2.0]))


def test_a_choice_by_tails_is_the_one_of_calculus() -> None:
    people = (PopulationGroup("all", 1, LinearCost(2.0)),)
    welfare = SocialWelfare(people, (TableValue(TABLE, 30.0, TailMisses(TABLE, 3.0)),))
    best = choose(frontier_of(laplace(), CELLS), welfare)
    assert best.epsilon == pytest.approx(math.log(30 * 5 * 3 / 2) / 3, rel=1e-6)
    assert best.data_loss == pytest.approx(2 / 3, rel=1e-6)


def test_groups_split_a_loss_by_them_and_technologies_are_ranked_by_them() -> None:
    first, second = identity(1), total(2)
    one, two = frontier_of(laplace(), first), frontier_of(laplace(), second)
    measure = WorstError(one.tables[0], 0.1)
    shared = split({"one": one, "two": two}, values={one.tables[0]: 3.0}, measures={one.tables[0]: measure})
    spent = shared.allocation(2.0)
    slopes = (
        3 * one.table_slopes(spent["one"], measure)[one.tables[0]],
        two.table_slopes(spent["two"])[two.tables[0]],
    )
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)
    tail = TailMisses(TABLE, 0.0)  # whole-number noise is often 0, continuous noise never
    best = envelope([frontier_of(laplace(), CELLS), frontier_of(geometric(), CELLS)], measures={TABLE: tail})
    assert best.technology(3.0) == "geometric"


def test_what_knows_no_single_number_refuses() -> None:
    guess = public_guess(frontier_of(laplace(), CELLS), {TABLE: 3.0})
    with pytest.raises(InvalidMechanism, match="count is not known here"):
        error(guess, TailMisses(TABLE, 1.0), 1.0)
    asked = frontier_of(RandomizedResponse(100, (0.5, 0.5)), identity(2))
    with pytest.raises(InvalidMechanism, match="does not say how far"):
        error(asked, WorstError(asked.tables[0], 0.1), 1.0)


SIMULATION = Simulation((0.25, 0.5, 1.0, 2.0, 4.0), repetitions=200, seed=3)


def test_a_linear_formula_misallocates_so_much_a_head() -> None:
    production = Measurement(MatrixRows.every_cell(CELLS), LAPLACE)
    linear = Misallocation(TABLE, FormulaGrant(np.full(5, 100.0)), np.full(5, 50.0), "absolute", SIMULATION)
    curve = linear.curve(production)
    for loss in (0.25, 0.7, 4.0, 40.0):
        low, high = curve.band(loss)
        assert low < 100 * 5 / loss < high
    squared = Misallocation(TABLE, FormulaGrant(np.full(5, 100.0)), np.full(5, 50.0), "squared", SIMULATION)
    assert squared.curve(production)(1.0) == pytest.approx(1e4 * 5 * 2, rel=0.2)


def test_a_threshold_misallocates_more_where_places_stand_on_it() -> None:
    production = geometric().production(CELLS)

    def lost(threshold: float) -> float:
        grant = FormulaGrant(np.full(5, 100.0), threshold=threshold)
        return Misallocation(TABLE, grant, np.full(5, 50.0), "absolute", SIMULATION).curve(production)(1.0)

    # At 50 a place loses its 5,000 USD whenever noise is below 0: with probability q/(1 + q).
    q = math.exp(-1.0)
    assert lost(50) == pytest.approx(5 * 5000 * q / (1 + q), rel=0.1)
    assert lost(0) == pytest.approx(100 * 5 * 2 * q / (1 - q**2), rel=0.1)
