"""Response behavior: reference numbers, a simulated population, and a frontier that ends at its peak."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    PosteriorCost,
    SocialWelfare,
    TableValue,
    choose,
)
from dualmandate.errors import ConflictingLimits, InvalidLoss, InvalidPreferences
from dualmandate.frontier import (
    ClosedFormCurves,
    ExponentialResponse,
    Frontier,
    Measure,
    TableTotals,
    envelope,
    frontier_of,
    peak_of,
    with_participation,
)
from dualmandate.frontier.numerics import derivative
from dualmandate.frontier.participation import ParticipationCurves
from dualmandate.mechanism import gaussian, geometric, laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import identity, stack, total

DISTRICTS = frontier_of(laplace(), identity(13_000))
TABLE = DISTRICTS.tables[0]
TITLE_I = SocialWelfare((PopulationGroup("everybody", 46e6, LinearCost(1_400)),), (TableValue(TABLE, 2.0e7),))


def title_i(decline: float, rate: float = 0.95) -> Frontier:
    return with_participation(DISTRICTS, ExponentialResponse(rate, decline), {TABLE: TableTotals(8e6)})


@pytest.mark.parametrize(("decline", "peak", "optimum"), [(0.02, 0.699368, 0.695027), (0.1, 0.408889, 0.408390)])
def test_title_i(decline: float, peak: float, optimum: float) -> None:
    frontier = title_i(decline)
    assert peak_of(frontier) == pytest.approx(peak, abs=1e-6)
    chosen = choose(frontier, TITLE_I)
    assert chosen.epsilon == pytest.approx(optimum, abs=1e-6)
    assert chosen.bound_by == "preferences"
    if decline == 0.02:
        assert ExponentialResponse(0.95, 0.02).rate(chosen.epsilon) == pytest.approx(0.936886, abs=1e-6)


def test_a_rate_that_does_not_decline_only_scales_the_noise() -> None:
    frontier = title_i(0.0)
    assert peak_of(frontier) is None
    assert choose(frontier, TITLE_I).epsilon == pytest.approx(2.615573, abs=2e-6)
    assert choose(title_i(0.0, rate=1.0), TITLE_I).epsilon == pytest.approx(2.527644, abs=1e-6)


def responding(decline: float, rate: float = 0.95, utility: InformationUtility | None = None) -> SocialWelfare:
    """Title I where those alone lose privacy who take part."""
    group = PopulationGroup(
        "everybody", 46e6, utility or LinearCost(1_400), response=ExponentialResponse(rate, decline)
    )
    return SocialWelfare((group,), (TableValue(TABLE, 2.0e7),))


@pytest.mark.parametrize(("decline", "optimum"), [(0.0, 2.6606773), (0.02, 0.6953538), (0.1, 0.4084526)])
def test_only_those_who_take_part_are_charged(decline: float, optimum: float) -> None:
    """Brute force on W = −N·r·k·ε − b·(2L/(ε²r²) + S(1 − r)/r); where r is constant, ε* is the paper's over r."""
    chosen = choose(title_i(decline), responding(decline))
    assert chosen.epsilon == pytest.approx(optimum, abs=5e-7)
    losses = np.linspace(0.5, 1.5, 20_001) * optimum
    rate = 0.95 * np.exp(-decline * losses)
    errors = 2e7 * (2 * 13_000 / (losses * rate) ** 2 + 8e6 * (1 - rate) / rate)
    welfare = -46e6 * rate * 1_400 * losses - errors
    assert chosen.welfare == pytest.approx(welfare.max(), rel=1e-9)
    [group] = chosen.groups
    assert group.privacy_cost == pytest.approx(46e6 * 0.95 * math.exp(-decline * optimum) * 1_400 * optimum, rel=1e-6)
    if decline == 0:
        assert chosen.epsilon == pytest.approx(2.527644 / 0.95, abs=1e-6)
        assert "borne by 43,700,000 people who take part" in chosen.explain()


def test_what_a_simulated_population_loses() -> None:
    """Everybody decides by herself whether to take part; those who do lose κ, the others nothing."""
    group, loss = responding(0.3, 0.9).groups[0], 1.5
    people = np.random.default_rng(2).random(400_000) < 0.9 * math.exp(-0.3 * loss)
    assert group.cost(loss) == pytest.approx((people * 1_400 * loss).mean(), rel=5e-3)


@pytest.mark.parametrize("utility", [LinearCost(3.0), ExponentialCost(0.2), BoundedCost(2.0), PosteriorCost(9.0, 0.1)])
@pytest.mark.parametrize("loss", [0.2, 1.0, 4.0])
def test_the_margin_is_the_slope_of_what_all_bear(utility: InformationUtility, loss: float) -> None:
    welfare = responding(0.4, 0.8, utility)
    slope = derivative(welfare.privacy_cost, loss)
    assert welfare.marginal_privacy_cost(loss) == pytest.approx(slope, rel=1e-9, abs=1e-6 * welfare.privacy_cost(loss))
    expected = math.log(slope) if slope > 0 else -math.inf
    assert welfare.log_marginal_privacy_cost(loss) == pytest.approx(expected, rel=1e-9)


def test_one_empty_cell_peaks_at_one_over_the_decline() -> None:
    cell = frontier_of(laplace(), identity(1))
    frontier = with_participation(cell, ExponentialResponse(1.0, 0.25), {cell.tables[0]: TableTotals(0.0)})
    assert peak_of(frontier) == pytest.approx(4.0, rel=1e-9)


def test_the_formula_holds_in_a_simulated_population() -> None:
    """Everybody takes part with probability r; counts of those who do, with noise, are weighted by 1/r."""
    counts = np.array([40, 5, 0, 300])
    rate, loss = 0.8, 0.7
    production = geometric().production(identity(4))
    generator = np.random.default_rng(1)
    seen = generator.binomial(counts, rate, size=(40_000, 4))
    noise = production.draw(np.zeros(4, dtype=np.int64), loss, generator=generator, size=40_000)
    errors = (seen + noise) / rate - counts
    inner = frontier_of(geometric(), identity(4))
    response = ExponentialResponse(rate, 0.0)
    table = inner.tables[0]
    frontier = with_participation(inner, response, {table: TableTotals(float(counts.sum()), largest=300.0)})
    squared = (errors**2).sum(axis=1)
    assert frontier.expected_squared_error(loss) == pytest.approx(squared.mean(), rel=0.02)
    assert frontier.table_errors(loss, "largest variance")[table] == pytest.approx(
        (errors**2).mean(axis=0).max(), rel=0.03
    )
    # Absolute errors are worked out as if they were normal and cells alike: never less than they are here.
    assert frontier.table_errors(loss, "absolute")[table] >= np.abs(errors).sum(axis=1).mean() * 0.99


def test_false_reports_hold_in_a_simulated_population() -> None:
    """Who takes part reports falsely with probability m: counted anywhere with probability f, evenly."""
    counts, outside, rate, truth, counted = np.array([40, 5, 0, 300]), 155, 0.8, 0.7, 0.6
    generator, draws = np.random.default_rng(2), 20_000
    people = np.append(counts, outside)
    falsely = np.append(np.full(4, counted / 4), 1 - counted)
    seen = np.zeros((draws, 5))
    for cell, number in enumerate(people.tolist()):
        told = truth * np.eye(5)[cell] + (1 - truth) * falsely
        seen += generator.multinomial(generator.binomial(number, rate, size=draws), told)
    noise = geometric().production(identity(4)).draw(np.zeros(4, dtype=np.int64), 0.7, generator=generator, size=draws)
    errors = (seen[:, :4] + noise) / rate - counts
    inner = frontier_of(geometric(), identity(4))
    totals = TableTotals(345.0, largest=300.0, people=500.0, falsely=counted, spread=float(counts.std()))
    frontier = with_participation(
        inner, ExponentialResponse(rate, 0.0), {inner.tables[0]: totals}, truthful=ExponentialResponse(truth, 0.0)
    )
    assert frontier.expected_squared_error(0.7) == pytest.approx((errors**2).sum(axis=1).mean(), rel=0.01)
    largest = frontier.table_errors(0.7, "largest variance")[inner.tables[0]]
    assert largest == pytest.approx((errors**2).mean(axis=0).max(), rel=0.01)
    assert frontier.table_errors(0.7, "absolute")[inner.tables[0]] >= np.abs(errors).sum(axis=1).mean()


def test_false_reports_of_one_number_by_hand() -> None:
    """100 of 1,000 counted, no noise to speak of, 10 in 100 false, half of these counted: 90 + 50 instead of 100."""
    cell = frontier_of(laplace(), identity(1))
    totals = {cell.tables[0]: TableTotals(100.0, people=1_000.0, falsely=0.5)}
    frontier = with_participation(cell, ExponentialResponse(1.0, 0.0), totals, truthful=ExponentialResponse(0.9, 0.0))
    variance = 100 * 0.95 * 0.05 + 900 * 0.05 * 0.95
    assert frontier.expected_squared_error(1e6) == pytest.approx(40**2 + variance)


@given(st.floats(0.01, 0.5), st.floats(0.3, 1.0), st.floats(0.0, 1e5), st.floats(0.1, 10.0))
@settings(max_examples=30, deadline=None)
def test_nothing_beyond_the_peak_is_better_and_no_plan_goes_there(
    decline: float, rate: float, size: float, cost: float
) -> None:
    inner = frontier_of(geometric(), identity(20))
    table = inner.tables[0]
    frontier = with_participation(inner, ExponentialResponse(rate, decline), {table: TableTotals(size)})
    peak = peak_of(frontier)
    assert peak is not None
    losses = np.geomspace(peak / 50, peak * 50, 60).tolist()
    accuracies = [frontier.accuracy(loss) for loss in losses]
    assert np.all(np.diff(accuracies) >= -1e-12 * np.abs(accuracies[:-1]))
    curves = frontier.curves
    assert isinstance(curves, ParticipationCurves)
    for factor in (1.01, 2.0):  # what would really happen beyond the peak is worse than the peak
        response, at = curves.response, peak * factor
        noise = inner.expected_squared_error(at) * response.weight(at) ** 2
        assert noise + size * (response.weight(at) - 1) >= frontier.expected_squared_error(peak) * (1 - 1e-9)
    for limits in (Limits(), Limits(largest_epsilon=10 * peak)):
        for utility in (LinearCost(cost), LinearCost(0.0), BoundedCost(cost)):
            welfare = SocialWelfare((PopulationGroup("e", 1.0, utility),), (TableValue(table, 1.0),))
            chosen = choose(frontier, welfare, limits)
            assert chosen.epsilon <= peak
            assert float(chosen.loss) <= peak


def test_who_could_spend_more_stands_at_the_peak_and_says_why() -> None:
    free = SocialWelfare((PopulationGroup("e", 1.0, LinearCost(0.0)),), (TableValue(TABLE, 1.0),))
    chosen = choose(title_i(0.1), free)
    assert chosen.bound_by == "participation"
    assert chosen.epsilon == pytest.approx(0.40888)
    assert "no longer take part" in chosen.explain()
    assert title_i(0.1).allocation(5.0) == {"all": peak_of(title_i(0.1))}
    assert title_i(0.1).table_slopes(5.0)[TABLE] == 0.0
    assert title_i(0.1).second_derivative(5.0) == 0.0


def test_a_floor_that_lies_beyond_the_peak_is_refused() -> None:
    frontier = title_i(0.1)
    peak = peak_of(frontier)
    assert peak is not None
    least = math.sqrt(frontier.expected_squared_error(peak) / 13_000)
    with pytest.raises(ConflictingLimits, match="fit for use"):
        choose(frontier, TITLE_I, Limits(floors={TABLE: 0.9 * least}))
    assert choose(frontier, TITLE_I, Limits(floors={TABLE: 1.001 * least})).epsilon <= peak
    with pytest.raises(ConflictingLimits, match="people stop taking part"):
        choose(frontier, TITLE_I, Limits(floors={TABLE: least * (1 + 1e-13)}))
    with pytest.raises(InvalidLoss, match="out of reach"):
        frontier.epsilon_for(frontier.accuracy(peak) * 0.9)
    assert frontier.epsilon_for(frontier.accuracy(0.2)) == pytest.approx(0.2)


def test_tables_that_peak_apart_are_weighed_by_their_values() -> None:
    inner = frontier_of(laplace(), stack(identity(30), total(30)))
    totals = {"identity": TableTotals(10.0), "total": TableTotals(1e5)}
    response = ExponentialResponse(0.9, 0.1)
    peaks = [
        peak_of(with_participation(inner, response, totals, values={"identity": value})) for value in (1e6, 1.0, 1e-6)
    ]
    assert peaks[0] is not None
    assert peaks[1] is not None
    assert peaks[2] is not None
    assert peaks[0] > peaks[1] > peaks[2]
    absolute = with_participation(inner, response, totals, measures={"identity": "absolute", "total": "absolute"})
    peak = peak_of(absolute)
    assert peak is not None
    sums = [sum(absolute.table_errors(peak * f, "absolute").values()) for f in (0.97, 1.0)]
    assert sums[1] < sums[0]


def test_slopes_in_every_measure_and_in_rho() -> None:
    inner = frontier_of(gaussian(), identity(5))
    table = inner.tables[0]
    totals = {table: TableTotals(100.0, largest=40.0, people=150.0, falsely=0.5, spread=3.0)}
    truthful = ExponentialResponse(0.95, 0.1)
    frontier = with_participation(inner, ExponentialResponse(0.9, 0.05), totals, truthful=truthful)
    assert frontier.privacy_measure is PrivacyMeasure.ZCDP
    assert isinstance(frontier.curves, ParticipationCurves)
    for measure in ("squared", "absolute", "largest variance"):
        for loss in (0.02, 0.1):

            def error(at: float, measure: str = measure) -> float:
                return frontier.table_errors(at, measure)[table]  # type: ignore[arg-type]

            def slope(at: float, measure: str = measure) -> float:
                return frontier.table_slopes(at, measure)[table]  # type: ignore[arg-type]

            assert slope(loss) == pytest.approx(derivative(error, loss), rel=1e-6)
            assert frontier.table_curvatures(loss, measure)[table] == pytest.approx(derivative(slope, loss), rel=1e-6)


def test_the_peak_of_an_envelope_is_its_best_members() -> None:
    totals = {TABLE: TableTotals(8e6)}
    response = ExponentialResponse(0.95, 0.1)
    whole = with_participation(frontier_of(geometric(), identity(13_000)), response, totals)
    real = with_participation(DISTRICTS, response, totals)
    best = envelope([real, whole])
    assert peak_of(best) == peak_of(whole)
    assert peak_of(envelope([DISTRICTS, whole])) is None
    assert choose(best, TITLE_I).epsilon == pytest.approx(choose(whole, TITLE_I).epsilon)


def test_refusals() -> None:
    for broken in ((0.0, 0.1), (1.2, 0.1), (0.9, -0.1)):
        with pytest.raises(InvalidPreferences):
            ExponentialResponse(*broken)
    with pytest.raises(InvalidPreferences, match="not stated"):
        with_participation(DISTRICTS, ExponentialResponse(0.9, 0.1), {})
    with pytest.raises(InvalidPreferences, match="not finite"):
        with_participation(DISTRICTS, ExponentialResponse(0.9, 0.1), {TABLE: TableTotals(-1.0)})


@dataclass(frozen=True, eq=False)
class Ending(ClosedFormCurves):
    """Curves that cannot be read beyond a loss, as a split of noise that has vanished from floats cannot."""

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        if loss > 30:
            raise InvalidLoss("too far", why="noise has vanished", instead="stay below")
        return super().values(loss, measure)


def test_a_frontier_that_cannot_be_read_everywhere_has_a_peak_all_the_same() -> None:
    inner = Frontier("ending", PrivacyMeasure.PURE_DP, {"identity": 4}, Ending(geometric().production(identity(4))))
    whole = frontier_of(geometric(), identity(4))
    totals = {"identity": TableTotals(1e3)}
    for decline in (0.001, 0.2):
        ending, free = (with_participation(f, ExponentialResponse(0.98, decline), totals) for f in (inner, whole))
        assert peak_of(ending) == peak_of(free)
    assert peak_of(with_participation(inner, ExponentialResponse(0.98, 0.0), totals)) is None
