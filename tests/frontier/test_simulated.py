"""Frontiers measured by simulation, and decisions made with noisy counts."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.choice import LinearCost, PopulationGroup, SocialWelfare, TableValue, choose
from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload, NoOptimum
from dualmandate.frontier import (
    Decision,
    FormulaGrant,
    Frontier,
    Measure,
    Simulation,
    decision_frontier,
    envelope,
    frontier_of,
    noisy_answers,
    simulated,
    simulation_error,
)
from dualmandate.frontier.simulated import ReleaseChain, SimulatedCurves
from dualmandate.mechanism import Mechanism, NamedMeasure, geometric, laplace
from dualmandate.population import Histogram, machine
from dualmandate.workload import Workload, all_range, identity, prefix, stack, total

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


def test_curves_fall_everywhere_and_end_where_simulation_does() -> None:
    frontier = simulate(repetitions=12)
    least, most = frontier.known_losses
    assert (least, most) == (LOSSES[0], LOSSES[-1])
    errors = [frontier.expected_squared_error(float(loss)) for loss in np.geomspace(least, most, 80)]
    assert np.all(np.diff(errors) <= 0)
    assert frontier.epsilon_for(frontier.accuracy(0.9)) == pytest.approx(0.9)
    for beyond in (least / 1.01, 1.01 * most):
        with pytest.raises(InvalidLoss, match="what lies beyond is not guessed"):
            frontier.expected_squared_error(beyond)
        with pytest.raises(InvalidLoss, match="not guessed"):
            frontier.marginal_rate_of_transformation(beyond)
    with pytest.raises(InvalidLoss, match="out of reach"):
        frontier.epsilon_for(frontier.accuracy(most) / 2)


def test_a_choice_beyond_what_was_simulated_is_refused() -> None:
    """The choice of the closed form lies inside, above and below of what was simulated."""
    exact, frontier = frontier_of(geometric(), WORKLOAD), simulate(repetitions=100)
    for value, further in ((1.0, None), (1e-5, "smaller"), (1e5, "larger")):
        values = tuple(TableValue(name, value, unit="person") for name in frontier.tables)
        welfare = SocialWelfare.uniform(100, LinearCost(1.0), table_values=values, protected_unit="person")
        if further is None:
            found = choose(frontier, welfare)
            assert found.epsilon == pytest.approx(choose(exact, welfare).epsilon, rel=0.05)
            assert choose(envelope([frontier, exact]), welfare).epsilon > 0
            continue
        with pytest.raises(NoOptimum, match=f"towards {further} losses") as refused:
            choose(frontier, welfare)
        assert "simulate" in refused.value.instead


def test_where_one_member_of_an_envelope_was_not_simulated_the_others_stand() -> None:
    exact, frontier = frontier_of(laplace(), WORKLOAD), simulate(clipped)
    best = envelope([frontier, exact])
    assert best.known_losses == (0.0, np.inf)
    assert best.technology(0.1) == "chain"
    assert best.technology(50.0) == exact.technology(50.0)
    alone = envelope([frontier, simulate(seed=6)])
    assert alone.known_losses == frontier.known_losses
    with pytest.raises(InvalidLoss, match="not guessed"):
        alone.expected_squared_error(50.0)


PROGRAMS = [
    stack(*words, weights=weights)
    for words, weights in (
        ((make(size), total(size)), (1, Fraction(1, times)))
        for size, times, make in product((2, 5, 9, 14), (2, 3), (identity, prefix, all_range))
    )
][:20]


def test_the_geometric_mechanism_is_its_closed_form_within_the_bands_of_twenty_programs() -> None:
    """At simulated losses each band of 95 % holds it; errors, slopes and choices between are as near as they say."""
    held, slopes, chosen = [], [], []
    for seed, workload in enumerate(PROGRAMS):
        exact, production = frontier_of(geometric(), workload), geometric().production(workload)
        plan = Simulation((0.2, 0.5, 1.2, 2.5), 150, seed, tolerance=0.02)
        frontier = simulated(noisy_answers(production), workload, histogram=public(workload), simulation=plan)
        losses = curves_of(frontier).simulation.losses
        assert len(losses) >= 4 + 3
        for loss in losses[:: len(losses) - 1]:
            for band, truth in zip(curves_of(frontier).band(loss), exact.table_errors(loss).values(), strict=True):
                held.append(band[0] <= truth <= band[1])
        for loss in np.geomspace(0.21, 2.4, 7).tolist():
            for band, truth in zip(curves_of(frontier).band(loss), exact.table_errors(loss).values(), strict=True):
                held.append(band[0] / 1.03 <= truth <= band[1] * 1.03)
        rate = simulation_error(frontier, lambda each: each.marginal_rate_of_transformation(1.0))
        slopes.append(rate.lower / 1.05 <= exact.marginal_rate_of_transformation(1.0) <= rate.upper * 1.05)
        values = tuple(TableValue(name, 1.0, unit="person") for name in frontier.tables)
        cost = LinearCost(exact.marginal_rate_of_transformation(1.0))  # so that one is best
        welfare = SocialWelfare.uniform(1, cost, table_values=values, protected_unit="person")
        best = simulation_error(frontier, partial(loss_chosen, welfare))
        assert 0.8 < best.value < 1.25
        assert best.standard_error < 0.1
        chosen.append(best.lower / 1.02 <= choose(exact, welfare).epsilon <= best.upper * 1.02)
    assert np.mean(held) >= 0.9
    assert np.mean(slopes) >= 0.8
    assert np.mean(chosen) >= 0.8


def loss_chosen(welfare: SocialWelfare, frontier: Frontier) -> float:
    return choose(frontier, welfare).epsilon


def lost(measure: NamedMeasure, frontier: Frontier) -> float:
    return -frontier.table_errors(1.0, measure)["total"]


MEASURES: tuple[NamedMeasure, ...] = ("squared", "largest variance")


def test_the_jackknife_is_that_of_a_mean() -> None:
    """Of the mean of n numbers in n groups, the standard error is s/√n."""
    workload = total(4)

    def shaken(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return np.array([histogram.total + generator.normal() / loss])

    plan = Simulation((1.0, 2.0), repetitions=20, seed=3)
    frontier = simulated(shaken, workload, histogram=public(workload), simulation=plan)
    squares = np.array([np.random.default_rng([3, repetition]).normal() ** 2 for repetition in range(20)])
    for measure in MEASURES:
        error = simulation_error(frontier, partial(lost, measure))
        assert error.value == pytest.approx(-squares.mean())
        assert error.standard_error == pytest.approx(squares.std(ddof=1) / np.sqrt(20))
        assert error.upper - error.value == pytest.approx(2.093024 * error.standard_error, rel=1e-6)
    with pytest.raises(InvalidMechanism, match="no error of simulation"):
        simulation_error(frontier_of(geometric(), workload), lambda each: each.expected_squared_error(1.0))


def test_errors_fall_ever_more_slowly_where_bands_allow_it_and_as_they_are_where_not() -> None:
    """Noise of 1/ε² is convex; a chain that steps down at one loss is not, and is not made so."""
    frontier = simulate(repetitions=8, seed=11)
    losses = np.array(LOSSES)
    raw = curves_of(frontier).tallies["squared"].means[:, 0]
    fitted = np.array([frontier.table_errors(loss)["identity"] for loss in LOSSES])
    steepness = np.diff(fitted) / np.diff(losses)
    assert np.all(np.diff(steepness) >= -1e-9 * np.abs(steepness[:-1]))
    assert np.all(np.abs(fitted / raw - 1) <= curves_of(frontier).tallies["squared"].spreads[:, 0] + 1e-12)

    def steps(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return histogram.counts + (1.0 if loss > 1.5 else 2.0) * (1 + 0.01 * generator.normal(size=1))

    plan = Simulation((0.5, 1.0, 2.0, 4.0), 30, 0)
    stepping = simulated(steps, identity(1), histogram=public(identity(1)), simulation=plan)
    assert stepping.expected_squared_error(1.0) == pytest.approx(4.0, rel=0.02)
    assert stepping.expected_squared_error(2.0) == pytest.approx(1.0, rel=0.02)


def test_further_losses_are_placed_where_the_curve_bends() -> None:
    """Errors that drop between 0.9 and 1.1 ask for losses there, and for few elsewhere."""

    def dropping(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        scale = (1.0 + 5.0 / (1.0 + (loss / 1.0) ** 40)) / loss
        return histogram.counts + scale * generator.choice([-1.0, 1.0], 1)

    def placed(tolerance: float | None) -> tuple[float, ...]:
        plan = Simulation((0.1, 0.4, 10.0), 5, 2, tolerance=tolerance)
        return curves_of(
            simulated(dropping, identity(1), histogram=public(identity(1)), simulation=plan)
        ).simulation.losses

    assert placed(None) == (0.1, 0.4, 10.0)
    losses = placed(0.02)
    assert sum(0.8 < loss < 1.25 for loss in losses) > len(losses) / 3
    assert len(losses) < 60
    for bad in (0.0, -1.0, np.inf):
        with pytest.raises(InvalidLoss, match="tolerance"):
            Simulation((1.0, 2.0), 10, 0, tolerance=bad)


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


def test_numbers_that_are_hardly_ever_wrong_say_how_far_their_sum_is_known_and_no_more() -> None:
    """At 6 one number in two hundred is wrong: the worst of sixty is so once, and nothing is left without its group."""
    production = geometric().production(WORKLOAD_DECISION)
    histogram, plan = Histogram(WORKLOAD_DECISION.domain, COUNTS), Simulation((2.0, 6.0), 30, seed=6)
    chain = noisy_answers(production)
    frontier = decision_frontier(FormulaGrant(RATES), chain, WORKLOAD_DECISION, histogram=histogram, simulation=plan)
    found = simulation_error(frontier, lambda each: each.expected_squared_error(6.0))
    exact = float(np.sum(RATES**2)) * frontier_of(geometric(), identity(1)).expected_squared_error(6.0)
    assert found.lower < exact < found.upper
    with pytest.raises(InvalidLoss, match=r"the largest variance error of .* was not seen often enough"):
        simulation_error(frontier, lambda each: each.table_errors(6.0, "largest variance")["grants"])


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


def test_a_simulation_by_several_processors_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, heard = simulate(repetitions=30), list[str]()
    monkeypatch.setattr(machine, "processors", lambda: 2)
    monkeypatch.setattr(machine, "WORTH_SHARING", -1.0)
    plan = Simulation(LOSSES, 30, 5)
    shared = simulated(
        noisy, WORKLOAD, histogram=public(WORKLOAD), simulation=plan, name="chain", progress=heard.append
    )
    assert shared.table_errors(0.7) == alone.table_errors(0.7)
    assert any(words.startswith("simulating 'chain': release ") for words in heard)


def test_bias_is_told_from_noise() -> None:
    """Off by 3 in every release, and by noise of variance V: a share of 9/(9 + V) is bias."""
    variance = PRODUCTION.query_variances("identity", LOSSES[4])[0]

    def biased(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        return noisy(loss, histogram, generator) + 3.0

    assert curves_of(simulate(biased, 2000)).bias_shares(LOSSES[4]) == pytest.approx([9 / (9 + variance)] * 2, rel=0.1)
    assert np.all(curves_of(simulate(noisy, 2000)).bias_shares(LOSSES[4]) < 0.01)
