"""Intervals hold what they promise, and hardly more: by exact convolutions, and by draws of the real noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.measured import optimized

from dualmandate.errors import InvalidMechanism, InvalidRequest, TooLarge
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, ExactStrategy, Noise, optimize_strategy
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Protection
from dualmandate.publication import intervals
from dualmandate.publication.intervals import Interval, error_of, interval_of, simultaneous_of, simultaneous_of_cells
from dualmandate.workload import all_range, identity, prefix, stack, total

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(5))
WORKLOADS = {"all range": all_range(64), "prefix": prefix(64)}
DRAWS = 2**17
Floats = NDArray[np.float64]


def masses(noise: Noise, reach: int) -> Floats:
    """P(X = k) for |k| ≤ reach, from the formula."""
    places = np.abs(np.arange(-reach, reach + 1, dtype=np.float64))
    rate = float(1 / noise.parameter)
    found = np.exp(-rate * places) if noise.law == "laplace" else np.exp(-rate / 2 * places**2)
    return np.asarray(found / found.sum())


def convolved(noise: Noise, factors: list[int]) -> Floats:
    """P(Σ f·X = k), by convolution."""
    one, found = masses(noise, reach=int(50 * max(1.0, float(noise.parameter)))), np.ones(1)
    for factor in factors:
        spread = np.zeros((len(one) - 1) * factor + 1)
        spread[::factor] = one
        size = len(found) + len(spread) - 1
        length = 1 << size.bit_length()
        product = np.fft.irfft(np.fft.rfft(found, length) * np.fft.rfft(spread, length), length)
        found = np.maximum(product[:size], 0.0)
    return found


def attainable(probabilities: Floats, nominal: float) -> tuple[int, float]:
    """The smallest whole t with P(|S| ≤ t) at least nominal, and that probability."""
    middle = len(probabilities) // 2
    inside = probabilities[middle:] + probabilities[middle::-1]
    inside[0] /= 2
    sums = np.cumsum(inside)
    distance = int(np.argmax(sums >= nominal - 1e-12))
    return distance, float(sums[distance])


def direct(noise: Noise, factors: list[float], probability: float = 0.95) -> Interval:
    kinds = np.zeros(len(factors), dtype=np.int64)
    return interval_of(100.0, np.array(factors, dtype=np.float64), kinds, (noise,), probability=probability)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("count", [1, 2, 5, 50])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_cells_and_sums_of_cells(epsilon: Fraction, count: int, law: str) -> None:
    """The exact attainable probability, the shortest width, and the coverage that real noise has."""
    noise = Noise(GEOMETRIC, 1 / epsilon) if law == "laplace" else Noise(GAUSSIAN, 1 / (2 * epsilon))
    for probability in (0.9, 0.95, 0.99):
        found = direct(noise, [1.0] * count, probability)
        distance, expected = attainable(convolved(noise, [1] * count), probability)
        assert (found.lower, found.upper) == (100.0 - distance, 100.0 + distance)
        assert found.probability == pytest.approx(expected, abs=1e-9)
        assert found.probability >= probability
        assert found.is_exact
    drawn = noise.sampler().draw(NoiseKey(b"a test of intervals is not a key"), range(DRAWS * min(count, 5)))
    if count <= 5:
        found = direct(noise, [1.0] * count)
        share = float(np.mean(np.abs(drawn.reshape(DRAWS, count).sum(axis=1)) <= found.half_width))
        assert share == pytest.approx(found.probability, abs=4.5 * math.sqrt(0.05 * 0.95 / DRAWS))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_weights_in_simple_ratios(epsilon: Fraction) -> None:
    noise = Noise(GEOMETRIC, 1 / epsilon)
    for factors in ([1, 2, 2], [3, 1, 7, 7]):
        found = direct(noise, [factor / 6 for factor in factors])
        distance, expected = attainable(convolved(noise, factors), 0.95)
        assert found.probability == pytest.approx(expected, abs=1e-9)
        assert distance / 6 <= found.half_width < (distance + 0.01) / 6  # a truth at the end is not lost to rounding


def test_a_normal_approximation_would_not_do() -> None:
    """±1.96 standard deviations about one count at ε = 1 hold it in 92.7 % of cases, not in 95 %."""
    noise = Noise(GEOMETRIC, Fraction(1))
    half = 1.959964 * math.sqrt(noise.distribution().variance)
    places = np.abs(np.arange(-50, 51))
    share = float(masses(noise, 50)[places <= half].sum())
    assert share == pytest.approx(0.927, abs=5e-4)
    found = direct(noise, [1.0])
    assert found.probability == pytest.approx(0.9732, abs=1e-4)
    assert found.half_width == 3.0 > half


@cache
def strategy_of(workload: str) -> ExactStrategy:
    return optimize_strategy(WORKLOADS[workload], "laplace").exact


def noises_of(exact: ExactStrategy, loss: Fraction) -> tuple[Noise, ...]:
    return optimized(exact, Protection()).noises(loss)


def rows_of(exact: ExactStrategy, table: str, numbers: list[int]) -> tuple[Floats, NDArray[np.int64]]:
    """What some queries take of each row's whole number."""
    kinds = exact.kinds().astype(np.int64)
    steps = np.array([float(step) for step in exact.steps])[kinds]
    return exact.query_rows(table, numbers) * steps, kinds


def drawn_errors(weights: Floats, kinds: NDArray[np.int64], noises: tuple[Noise, ...], count: int) -> Floats:
    """Errors from the noise that a release would draw, with a key of its own for each row."""
    drawn = np.empty((len(kinds), count))
    for row, kind in enumerate(kinds):
        key = NoiseKey(row.to_bytes(32, "little"))
        drawn[row] = noises[kind].sampler().draw(key, range(count))
    return np.asarray(weights @ drawn)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_reconstructed_ranges(workload: str, epsilon: Fraction) -> None:
    exact = strategy_of(workload)
    [table] = exact.workload.tables
    numbers = [0, table.query_count // 3, table.query_count // 2, table.query_count - 1]
    weights, kinds = rows_of(exact, table.name, numbers)
    noises = noises_of(exact, epsilon)
    errors = drawn_errors(weights, kinds, noises, DRAWS)
    luck = 4.5 * math.sqrt(0.05 * 0.95 / DRAWS)
    for row, sizes in zip(weights, np.abs(errors), strict=True):
        found = interval_of(0.0, row, kinds, noises)
        share = float(np.mean(sizes <= found.half_width))
        best = float(np.mean(sizes <= np.quantile(sizes, 0.95, method="inverted_cdf") * (1 + 1e-9)))
        assert share >= 0.95 - luck
        assert share <= best + 0.005
        assert found.probability >= 0.95
        assert share >= found.probability - luck


def test_a_strategy_for_gaussian_noise() -> None:
    exact = optimize_strategy(prefix(16), "gaussian").exact
    weights, kinds = rows_of(exact, "prefix", [3, 15])
    noises = optimized(exact, Protection()).noises(Fraction(1))
    errors = drawn_errors(weights, kinds, noises, DRAWS)
    for row, each in zip(weights, errors, strict=True):
        found = interval_of(0.0, row, kinds, noises)
        assert float(np.mean(np.abs(each) <= found.half_width)) == pytest.approx(0.9515, abs=0.003)


def test_few_draws_are_taken_value_by_value() -> None:
    """A draw of scale 1/25, weighed a hundred thousandfold, beside two common ones that are not commensurable."""
    noises = (Noise(GEOMETRIC, Fraction(1)), Noise(GEOMETRIC, Fraction(1, 25)))
    weights, kinds = np.array([1.0, math.sqrt(3), 1e5 * math.sqrt(2), 0.0]), np.array([0, 0, 1, 1])
    found = interval_of(7.0, weights, kinds, noises)
    chances = masses(noises[0], 60)
    sums = np.abs(np.add.outer(np.arange(-60, 61), math.sqrt(3) * np.arange(-60, 61))).reshape(-1)
    order = np.argsort(sums)
    together = np.cumsum(np.multiply.outer(chances, chances).reshape(-1)[order])
    assert found.half_width == pytest.approx(float(sums[order][np.argmax(together >= 0.95)]), rel=1e-8)
    assert found.probability == pytest.approx(float(together[sums[order] <= found.half_width].max()), abs=1e-9)


@pytest.mark.parametrize("count", [2, 5, 30])
@pytest.mark.parametrize("noise", [Noise(GEOMETRIC, Fraction(1)), Noise(GAUSSIAN, Fraction(2))])
def test_sums_over_frequencies_are_accurate(noise: Noise, count: int) -> None:
    """Between two points of a lattice, a little Gaussian noise changes nothing: tails are those of the lattice."""
    error = error_of(np.ones(count), np.zeros(count, dtype=np.int64), (noise,))
    split = intervals.Split(np.zeros(1), np.ones(1), 0.0, error)
    for place in range(0, 60, 3):
        tail = error.tail(float(place))
        if tail > 1e-8:
            reach = split.by_both(1.01 * tail)
            assert place <= reach.distance < place + 0.25
            assert tail <= 1 - reach.probability <= 1.01 * tail


def test_probabilities_close_to_one() -> None:
    exact = strategy_of("all range")
    weights, kinds = rows_of(exact, "all range", [700])
    noises = noises_of(exact, Fraction(1))
    error = error_of(weights[0], kinds, noises)
    for tail in (1e-4, 1e-8):
        found = interval_of(0.0, weights[0], kinds, noises, probability=Fraction(1) - Fraction(str(tail)))
        assert found.half_width == pytest.approx(error.reach(tail), rel=0.01)


def test_sums_without_an_end_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = strategy_of("all range")
    weights, kinds = rows_of(exact, "all range", [700])
    noises = noises_of(exact, Fraction(1))
    computed = interval_of(7.0, weights[0], kinds, noises)
    monkeypatch.setattr(intervals, "BEYOND", 1.0)
    intervals._known_reaches.cache_clear()
    found = interval_of(7.0, weights[0], kinds, noises)
    assert found.method == "131,072 draws from a public key"
    assert 0 < found.simulation_error < 1e-3
    assert 0.95 < found.probability < 0.9525
    assert computed.half_width * 0.99 < found.half_width < computed.half_width * 1.04
    with pytest.raises(InvalidRequest, match="a simulated interval") as refused:
        interval_of(7.0, weights[0], kinds, noises, probability=0.999999)
    assert "131,072 draws cannot tell it from 1" in refused.value.why
    monkeypatch.setattr(intervals, "MOST_WORK", 1)
    both = np.concatenate([weights, 2 * weights])
    with pytest.raises(TooLarge, match="rare noise"):
        simultaneous_of(np.zeros(2), both, kinds, noises)


def test_what_needs_no_noise() -> None:
    noise = Noise(GEOMETRIC, Fraction(1, 30))
    nothing = direct(noise, [0.0, 0.0])
    assert (nothing.lower, nothing.upper, nothing.probability, nothing.is_exact) == (100.0, 100.0, 1.0, True)
    silent = direct(noise, [1.0, math.sqrt(2), math.pi])
    assert (silent.lower, silent.upper) == (100.0, 100.0)
    assert silent.probability == pytest.approx(1.0, abs=1e-9)


def test_intervals_read_as_sentences() -> None:
    found = direct(Noise(GEOMETRIC, Fraction(1)), [1.0])
    expected = "100: 97 to 103 with probability exactly 97.32 % (0.95 was asked for; one draw of noise)"
    assert str(found) == expected
    assert 97 in found
    assert 103.5 not in found
    for odd in (0.0, 1.0, 1.5, math.nan, "much"):
        with pytest.raises(InvalidRequest, match="an interval that holds with probability"):
            direct(Noise(GEOMETRIC, Fraction(1)), [1.0], odd)  # type: ignore[arg-type]
    with pytest.raises(InvalidMechanism, match="a combination of noise leaves with probability"):
        direct(Noise(GEOMETRIC, Fraction(1)), [1.0, math.sqrt(2)], 1 - 1e-12)


class TestSimultaneous:
    def test_cells_by_themselves_are_exact(self) -> None:
        noises = (Noise(GEOMETRIC, Fraction(1)), Noise(GEOMETRIC, Fraction(10)))
        kinds = np.array([0] * 30 + [1] * 20)
        found = simultaneous_of_cells(np.arange(50.0), kinds, noises)
        halves = found.upper - np.arange(50.0)
        chances = [1 - noises[kind].distribution().tail(half) for kind, half in zip(kinds, halves, strict=True)]
        assert found.probability == pytest.approx(math.prod(chances), abs=1e-12)
        assert found.probability >= 0.95
        assert found.is_exact
        narrower = [1 - noises[k].distribution().tail(half - 1) for k, half in zip(kinds, halves, strict=True)]
        assert max(narrower) < 0.95 ** (1 / 50)
        np.testing.assert_array_equal(simultaneous_of(np.arange(50.0), np.eye(50), kinds, noises).upper, found.upper)

    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_correlated_numbers_hold_together(self, epsilon: Fraction) -> None:
        exact = strategy_of("prefix")
        weights, kinds = rows_of(exact, "prefix", list(range(64)))
        noises = noises_of(exact, epsilon)
        found = simultaneous_of(np.zeros(64), weights, kinds, noises)
        errors = drawn_errors(weights, kinds, noises, 2**16)
        together = float(np.mean((np.abs(errors) <= found.upper[:, None]).all(axis=0)))
        luck = 4.5 * math.sqrt(0.05 * 0.95 / 2**16)
        assert 0.95 - luck <= together <= 0.955 + luck
        assert found.probability >= 0.95
        assert 0 < found.standard_error < 1e-3
        assert not found.is_exact

    def test_chances_to_miss_are_added_up_where_draws_would_take_too_long(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exact = optimize_strategy(stack(identity(40), total(40))).exact
        weights, kinds = rows_of(exact, "identity", list(range(40)))
        noises = noises_of(exact, Fraction(1))
        drawn = simultaneous_of(np.zeros(40), weights, kinds, noises)
        monkeypatch.setattr(intervals, "MOST_WORK", 1)
        added = simultaneous_of(np.zeros(40), weights, kinds, noises)
        assert "added up" in added.method
        assert np.all(added.upper >= drawn.upper * 0.97)
        assert np.all(added.upper <= drawn.upper * 1.3)


def test_public_draws_are_repeated_and_of_the_right_law() -> None:
    noises = (Noise(GEOMETRIC, Fraction(2)), Noise(GAUSSIAN, Fraction(9)))
    kinds = np.array([0, 1, 0])
    first, second = (np.concatenate(list(intervals.public_errors(np.eye(3), kinds, noises))) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (intervals.DRAWS, 3)
    variances = [noises[kind].distribution().variance for kind in kinds]
    np.testing.assert_allclose(first.var(axis=0), variances, rtol=0.03)
    assert abs(np.corrcoef(first.T)[np.triu_indices(3, 1)]).max() < 0.02
    assert intervals.order_statistic(Fraction(19, 20)) == pytest.approx(0.95 * intervals.DRAWS + 293, abs=5)
    assert intervals.order_statistic(Fraction(99_999, 100_000)) is None


def test_equal_weights_are_gathered() -> None:
    noises = (Noise(GEOMETRIC, Fraction(2)), Noise(GEOMETRIC, Fraction(3)))
    error = error_of(np.array([0.5, -0.5, 1e-17, 0.25]), np.array([0, 0, 1, 1]), noises)
    assert [(term.factors.tolist(), term.counts.tolist()) for term in error.terms] == [([0.5], [2.0]), ([0.25], [1.0])]


def test_a_probability_beyond_what_was_taken_value_by_value_is_still_held() -> None:
    weights = 1 + np.random.default_rng(1).random(100)
    nothing = np.zeros(100, dtype=np.int64)
    found = interval_of(0.0, weights, nothing, [Noise(GEOMETRIC, Fraction(1, 12))], probability=1 - 1.5e-10)
    assert found.upper >= weights.max()
    assert found.probability >= 1 - 1.5e-10 or not found.is_exact


class TestExactlyWhichNumber:
    """Small cases in which the next number would be wrong."""

    def test_the_order_statistic_is_the_lowest_that_is_hardly_ever_below(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of 20 draws by exact fractions, and of all draws by the binomial law's own sums."""
        monkeypatch.setattr(intervals, "DRAWS", 20)
        for nominal in (Fraction(1, 2), Fraction(1, 5), Fraction(3, 5)):
            chances = [math.comb(20, k) * nominal**k * (1 - nominal) ** (20 - k) for k in range(21)]
            seen = [sum(chances[place:], Fraction(0)) for place in range(21)]
            lowest = next(place for place in range(1, 21) if seen[place] <= Fraction(1, 10_000))
            assert intervals.order_statistic(nominal) == lowest
        assert intervals.order_statistic(Fraction(9, 10)) is None
        monkeypatch.undo()
        place = intervals.order_statistic(Fraction(19, 20))
        assert place is not None
        law = stats.binom(intervals.DRAWS, 0.95)
        assert law.sf(place - 1) <= 1e-4 < law.sf(place - 2)

    def test_a_simulated_interval_ends_at_its_order_statistic(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(intervals, "BEYOND", 0.0)
        intervals._known_reaches.cache_clear()
        drawn = np.random.default_rng(3).permutation(np.arange(DRAWS, dtype=np.float64) + 1)
        monkeypatch.setattr(intervals, "public_errors", lambda *given: iter([drawn[:, None]]))
        weights = 1 + np.random.default_rng(1).random(100)
        found = interval_of(0.0, weights, np.zeros(100, dtype=np.int64), [Noise(GEOMETRIC, Fraction(10))])
        place = intervals.order_statistic(Fraction(19, 20))
        assert place is not None
        assert found.upper == pytest.approx(place, rel=1e-8)
        assert found.probability == place / DRAWS
        intervals._known_reaches.cache_clear()

    def test_simulated_intervals_of_a_table_end_there_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn = np.random.default_rng(3).permutation(np.arange(DRAWS, dtype=np.float64) + 1)
        both = np.stack([drawn, -drawn / 2], axis=1)
        monkeypatch.setattr(intervals, "public_errors", lambda *given: iter([both[:1000], both[1000:]]))
        weights, noise = np.array([[1.0, 1.0], [1.0, -1.0]]), Noise(GEOMETRIC, Fraction(1))
        found = simultaneous_of(np.zeros(2), weights, np.zeros(2, dtype=np.int64), [noise])
        place = intervals.order_statistic(Fraction(19, 20))
        assert place is not None
        spread = math.sqrt(2 * noise.distribution().variance)
        np.testing.assert_allclose(found.upper, place * spread, rtol=1e-8)
        assert found.probability == place / DRAWS

    def test_listed_values_are_taken_until_enough_is_held(self) -> None:
        """0.9495 is not 0.95, and 0.95 is."""
        none = error_of(np.zeros(1), np.zeros(1, dtype=np.int64), [Noise(GEOMETRIC, Fraction(1))])
        values = np.array([0.0, -1.0, 2.0, -3.0])
        short = intervals.Split(values, np.array([0.5, 0.3, 0.1495, 0.0505]), 0.0, none).by_values(0.05)
        assert short.distance == pytest.approx(3.0)
        assert short.probability == pytest.approx(1.0)
        enough = intervals.Split(values, np.array([0.5, 0.25, 0.2031, 0.0469]), 0.0, none).by_values(0.05)
        assert enough.distance == pytest.approx(2.0)
        assert enough.probability == pytest.approx(0.9531)

    @pytest.mark.parametrize("noise", [Noise(GEOMETRIC, Fraction(2)), Noise(GAUSSIAN, Fraction(3))])
    def test_noise_that_was_added_is_paid_for(self, noise: Noise) -> None:
        """Nine tenths of two points may be missed, so that both belong to the interval; blurred, they seem not to."""
        error = error_of(np.ones(12), np.zeros(12, dtype=np.int64), (noise,))
        split = intervals.Split(np.zeros(1), np.ones(1), 0.0, error)
        for place in range(2, 20, 3):
            beyond, at_least = error.tail(float(place)), error.tail(float(place - 1))
            reach = split.by_both(beyond + 0.9 * (at_least - beyond))
            assert place <= reach.distance < place + 0.2

    def test_tails_between_two_points_of_a_grid_are_those_of_the_one_before(self) -> None:
        none = error_of(np.zeros(1), np.zeros(1, dtype=np.int64), [Noise(GEOMETRIC, Fraction(1))])
        split = intervals.Split(np.array([0.0, 3.0]), np.array([0.75, 0.25]), 0.0, none)
        vars(split)["_grid"] = (1.0, np.array([0.5, 0.25, 0.125, 0.0625]))
        # P(R > 1.5) ≤ P(R > 1), and P(R > −1.5) = 1 − P(R > 1.5) ≤ 1 − P(R > 2).
        assert split._beyond(1.5) == 2 * (0.75 * 0.25 + 0.25 * (1 - 0.125))
        assert split._beyond(2.0) == 2 * (0.75 * 0.125 + 0.25 * (1 - 0.25))
        assert split._beyond(9.0) == 2 * 0.0625
