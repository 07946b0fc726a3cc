"""Simulated frontiers: they cover the truth, repeat themselves, and interpolate without waves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.frontier import CurveFrontier, Measure, Release, SimulatedCurves, Simulation, frontier_of, simulated
from dualmandate.mechanism import geometric
from dualmandate.population import Histogram
from dualmandate.workload import Workload, identity, stack, total

WORKLOAD = stack(identity(6), total(6))
PRODUCTION = geometric().production(WORKLOAD)
LOSSES = tuple(float(loss) for loss in np.logspace(-1, 0.6, 7))


def public(workload: Workload) -> Histogram:
    counts = np.arange(workload.domain.size, dtype=np.int64) * 3
    return Histogram(workload.domain, counts.reshape(workload.domain.shape))


def noisy(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
    """Geometric noise on six counts and their total."""
    return PRODUCTION.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)


def clipped(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
    """The same, with negative answers set to zero: biased, and more accurate at small losses."""
    return np.maximum(noisy(loss, histogram, generator), 0.0)


def simulate(release: Release = noisy, repetitions: int = 200, seed: int = 5) -> CurveFrontier:
    plan = Simulation(LOSSES, repetitions, seed)
    return simulated(release, WORKLOAD, histogram=public(WORKLOAD), simulation=plan, name="chain")


def curves_of(frontier: CurveFrontier) -> SimulatedCurves:
    assert isinstance(frontier.curves, SimulatedCurves)
    return frontier.curves


def test_bands_cover_the_closed_form_between_and_at_simulated_losses() -> None:
    exact = frontier_of(geometric(), WORKLOAD)
    frontier = simulate()
    for loss in np.logspace(-1, 0.6, 25):
        for measure in ("squared", "absolute", "largest variance"):
            wide = curves_of(frontier).band(float(loss), measure)
            for (low, high), truth in zip(wide, exact.table_losses(float(loss), measure).values(), strict=True):
                slack = 1.25 if measure == "largest variance" else 1.06  # the largest of six is biased upward
                assert low / slack <= truth <= high * slack
    assert frontier.marginal_rate_of_transformation(1.0) == pytest.approx(
        exact.marginal_rate_of_transformation(1.0), rel=0.1
    )


def test_bands_shrink_with_repetitions_and_cover_at_their_rate() -> None:
    exact = frontier_of(geometric(), WORKLOAD).table_losses(1.0)["identity"]
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
    assert first.table_losses(0.77) == again.table_losses(0.77)
    assert first.table_losses(0.77) != other.table_losses(0.77)


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
    assert curves.is_extrapolated(0.05)
    assert not curves.is_extrapolated(1.0)
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
