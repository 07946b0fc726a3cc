"""Frontiers measured by simulation, and decisions made with noisy counts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.choice import LinearCost, PopulationGroup, SocialWelfare, TableValue, choose
from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload
from dualmandate.frontier import (
    Decision,
    FormulaGrant,
    Frontier,
    Measure,
    Simulation,
    decision_frontier,
    frontier_of,
    noisy_answers,
    simulated,
)
from dualmandate.frontier.simulated import ReleaseChain, SimulatedCurves
from dualmandate.mechanism import Mechanism, geometric, laplace
from dualmandate.population import Histogram
from dualmandate.workload import Workload, identity, stack, total

WORKLOAD = stack(identity(6), total(6))
PRODUCTION = geometric().production(WORKLOAD)
LOSSES = tuple(float(loss) for loss in np.logspace(-1, 0.6, 7))
PLACES = 60
WORKLOAD_DECISION = identity(PLACES)
GENERATOR = np.random.default_rng(17)
RATES = GENERATOR.uniform(2_000, 6_000, PLACES)  # USD a child
COUNTS = GENERATOR.poisson(30, PLACES).astype(np.int64)
PLAN = Simulation(tuple(np.geomspace(0.2, 8.0, 7).tolist()), 400, seed=5)


def public(workload: Workload) -> Histogram:
    counts = np.arange(workload.domain.size, dtype=np.int64) * 3
    return Histogram(workload.domain, counts.reshape(workload.domain.shape))


def noisy(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
    """Geometric noise on six counts and their total."""
    return PRODUCTION.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)


def clipped(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
    """The same, with negative answers set to zero: biased, and more accurate at small losses."""
    return np.maximum(noisy(loss, histogram, generator), 0.0)


def simulate(release: ReleaseChain = noisy, repetitions: int = 200, seed: int = 5) -> Frontier:
    plan = Simulation(LOSSES, repetitions, seed)
    return simulated(release, WORKLOAD, histogram=public(WORKLOAD), simulation=plan, name="chain")


def curves_of(frontier: Frontier) -> SimulatedCurves:
    assert isinstance(frontier.curves, SimulatedCurves)
    return frontier.curves


def test_bands_cover_the_closed_form_between_and_at_simulated_losses() -> None:
    exact = frontier_of(geometric(), WORKLOAD)
    frontier = simulate()
    for loss in np.logspace(-1, 0.6, 25):
        for measure in ("squared", "absolute", "largest variance"):
            wide = curves_of(frontier).band(float(loss), measure)
            for (low, high), truth in zip(wide, exact.table_errors(float(loss), measure).values(), strict=True):
                slack = 1.25 if measure == "largest variance" else 1.06  # the largest of six is biased upward
                assert low / slack <= truth <= high * slack
    assert frontier.marginal_rate_of_transformation(1.0) == pytest.approx(
        exact.marginal_rate_of_transformation(1.0), rel=0.1
    )


def test_bands_shrink_with_repetitions_and_cover_at_their_rate() -> None:
    exact = frontier_of(geometric(), WORKLOAD).table_errors(1.0)["identity"]
    covered = 0
    for seed in range(40):
        plan = Simulation((0.5, 1.0), 40, seed)
        band = curves_of(simulated(noisy, WORKLOAD, histogram=public(WORKLOAD), simulation=plan)).band(1.0)
        covered += bool(band[0, 0] <= exact <= band[0, 1])
    assert covered >= 33  # 95 % of 40 is 38; fewer than 33 has probability below .001
    few, many = (curves_of(simulate(repetitions=r)).band(1.0)[0] for r in (60, 240))
    assert np.log(many[1] / many[0]) == pytest.approx(np.log(few[1] / few[0]) / 2, rel=0.35)


def test_the_same_seed_gives_the_same_frontier_and_another_seed_another() -> None:
    first, again, other = simulate(seed=1), simulate(seed=1), simulate(seed=2)
    assert first.table_errors(0.77) == again.table_errors(0.77)
    assert first.table_errors(0.77) != other.table_errors(0.77)


def test_post_processing_changes_the_production_function() -> None:
    plain, better = simulate(noisy), simulate(clipped)
    assert better.expected_squared_error(0.1) < 0.9 * plain.expected_squared_error(0.1)
    assert better.technology(1.0) == "chain"


def test_curves_fall_everywhere_and_go_on_as_power_laws() -> None:
    frontier = simulate(repetitions=12)
    losses = np.logspace(-2, 1.5, 80)
    errors = [frontier.expected_squared_error(float(loss)) for loss in losses]
    assert np.all(np.diff(errors) <= 0)
    curves = curves_of(frontier)
    beyond = [curves.values(at, "squared") for at in (10.0, 20.0, 40.0)]
    assert beyond[0] * beyond[2] == pytest.approx(beyond[1] ** 2)
    assert frontier.epsilon_for(frontier.accuracy(0.9)) == pytest.approx(0.9)


def test_chance_does_not_make_errors_grow() -> None:
    """A chain whose error is larger at a larger loss, by construction: pooled to their geometric mean."""
    sizes = {0.5: 4.0, 1.0: 1.0, 2.0: 2.0, 4.0: 0.5}
    workload = identity(1)

    def odd(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return histogram.counts + sizes[loss] * generator.choice([-1.0, 1.0], 1)

    plan = Simulation(tuple(sizes), 5, 0)
    frontier = simulated(odd, workload, histogram=public(workload), simulation=plan)
    found = [frontier.expected_squared_error(loss) for loss in sizes]
    assert found == pytest.approx([16.0, 2.0, 2.0, 0.25])


def test_simulations_that_cannot_show_a_curve_are_refused() -> None:
    for losses in ((1.0,), (1.0, 1.0), (2.0, 1.0), (0.0, 1.0)):
        with pytest.raises(InvalidLoss, match="a simulation at the losses"):
            Simulation(losses, 10, 0)
    with pytest.raises(InvalidMechanism, match="1 repetitions"):
        Simulation((1.0, 2.0), 1, 0)
    with pytest.raises(InvalidLoss, match="no error was seen"):
        simulated(noisy, WORKLOAD, histogram=public(WORKLOAD), simulation=Simulation((1.0, 60.0), 5, 0))


@pytest.mark.parametrize("measure", ["squared", "largest variance"])
def test_the_band_is_students_interval_of_the_logarithm(measure: Measure) -> None:
    """One answer: mean·exp(±t·s.e./mean), t the two-sided quantile, here of 90 % with 11 degrees of freedom."""

    def shaken(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return np.array([histogram.total + generator.normal() / loss])

    plan = Simulation((1.0, 2.0), repetitions=12, seed=3, confidence=0.9)
    frontier = simulated(shaken, total(6), histogram=public(total(6)), simulation=plan)
    squares = np.array([np.random.default_rng([3, repetition]).normal() ** 2 for repetition in range(12)])
    reach = 1.795885 * squares.std(ddof=1) / np.sqrt(12) / squares.mean()
    expected = squares.mean() * np.exp([[-reach, reach]])
    assert curves_of(frontier).band(1.0, measure) == pytest.approx(expected, rel=1e-6)


def decided(decision: Decision, mechanism: Mechanism, counts: NDArray[np.int64] = COUNTS) -> Frontier:
    production = mechanism.production(WORKLOAD_DECISION)
    histogram = Histogram(WORKLOAD_DECISION.domain, counts)
    return decision_frontier(
        decision, noisy_answers(production), WORKLOAD_DECISION, histogram=histogram, simulation=PLAN
    )


def test_the_linear_case_is_the_papers() -> None:
    """Σ E[(C·e)²] = Σ C²·2/ε², at simulated losses within the band of the simulation."""
    frontier = decided(FormulaGrant(RATES), laplace())
    assert frontier.tables == ("grants",)
    assert frontier.query_counts == {"grants": PLACES}
    for loss in PLAN.losses:
        assert frontier.expected_squared_error(loss) == pytest.approx(float(np.sum(RATES**2)) * 2 / loss**2, rel=0.1)


def test_one_rate_for_all_is_exactly_its_square_times_the_error_of_the_counts() -> None:
    rate = 4_472.136
    frontier = decided(FormulaGrant(np.full(PLACES, rate)), geometric())
    histogram = Histogram(WORKLOAD_DECISION.domain, COUNTS)
    plain = simulated(
        noisy_answers(geometric().production(WORKLOAD_DECISION)),
        WORKLOAD_DECISION,
        histogram=histogram,
        simulation=PLAN,
    )
    for loss in (0.2, 0.6, 2.0, 8.0):
        assert frontier.expected_squared_error(loss) == pytest.approx(rate**2 * plain.expected_squared_error(loss))


def test_the_choice_through_the_decision_is_the_choice_through_the_counts() -> None:
    """A decision priced per USD² leads to the same epsilon as a consequence of C² per count, up to simulation."""
    rate, price = 3_000.0, 1e-3
    people = PopulationGroup("everybody", 1e5, LinearCost(5.0))
    decision = decided(FormulaGrant(np.full(PLACES, rate)), laplace())
    through = choose(decision, SocialWelfare((people,), (TableValue("grants", price, unit="USD"),)))
    counts = frontier_of(laplace(), WORKLOAD_DECISION)
    value = TableValue(counts.tables[0], rate**2 * price, consequence=rate**2, price=price)
    direct = choose(counts, SocialWelfare((people,), (value,)))
    assert through.epsilon == pytest.approx(direct.epsilon, rel=0.03)
    assert through.tables[0].root_mean_squared_error == pytest.approx(
        direct.root_mean_squared_consequence or 0.0, rel=0.05
    )


def test_a_threshold_hurts_places_that_stand_on_it_with_continuous_noise_only() -> None:
    """At a large loss Laplace noise still flips a place at exactly the threshold with probability ½."""
    at_threshold = np.full(PLACES, 10, dtype=np.int64)
    grant = FormulaGrant(np.full(PLACES, 1_000.0), threshold=10)
    real = decided(grant, laplace(), at_threshold).expected_squared_error(8.0)
    whole = decided(grant, geometric(), at_threshold).expected_squared_error(8.0)
    flipped = PLACES * 0.5 * (1_000.0 * 10) ** 2
    assert real == pytest.approx(flipped, rel=0.15)
    assert whole < 0.01 * real


def test_a_fixed_appropriation_moves_money_but_loses_none() -> None:
    grant = FormulaGrant(RATES, threshold=5, appropriation=3e6)
    noisy = COUNTS + np.random.default_rng(0).laplace(size=PLACES)
    assert grant.allocation(noisy).sum() == pytest.approx(3e6)
    assert grant.allocation(COUNTS.astype(np.float64)).sum() == pytest.approx(3e6)
    generous = FormulaGrant(RATES, appropriation=1e12)
    assert generous.allocation(COUNTS.astype(np.float64)) == pytest.approx(RATES * COUNTS)
    small = FormulaGrant(RATES, threshold=1e6)
    assert not small.allocation(COUNTS.astype(np.float64)).any()


def test_the_formula_needs_a_number_a_place() -> None:
    with pytest.raises(InvalidWorkload, match="59 numbers for 60 places"):
        FormulaGrant(RATES).allocation(np.ones(59))


def test_a_place_with_exactly_the_threshold_is_paid() -> None:
    grant = FormulaGrant([100.0, 100.0, 100.0], threshold=10)
    assert grant.allocation(np.array([10.0, 9.99, 11.0])).tolist() == [1_000.0, 0.0, 1_100.0]
