"""Randomized response: the paper's section III corrected, any innocuous share, k levels, and its refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dualmandate.errors import InvalidLoss, InvalidMechanism, UnknownName
from dualmandate.mechanism import GEOMETRIC, NamedMeasure, RandomizedResponse
from dualmandate.population import Invariant, Neighbors, Protection
from dualmandate.workload import identity, kron, stack, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
PEOPLE = 1000

shares = st.floats(0.01, 0.99)
epsilons = st.floats(0.01, 20)


@given(mu=shares, pi=st.floats(0, 1), epsilon=epsilons)
@settings(max_examples=80, deadline=None)
def test_the_error_from_first_principles(mu: float, pi: float, epsilon: float) -> None:
    """A report is a coin with known chances; the estimate divides by the truth probability."""
    response = RandomizedResponse.binary(PEOPLE, innocuous_share=mu, sensitive_share=pi)
    truth = response.truth_probability(epsilon)
    yes, no = truth + (1 - truth) * mu, (1 - truth) * mu
    per_person = pi * yes * (1 - yes) + (1 - pi) * no * (1 - no)
    assert response.mean_squared_error(epsilon) == pytest.approx(per_person / PEOPLE / truth**2, rel=1e-8)


@given(mu=shares, pi=st.floats(0, 1), epsilon=epsilons)
@settings(max_examples=80, deadline=None)
def test_the_closed_form_in_m_and_u(mu: float, pi: float, epsilon: float) -> None:
    response = RandomizedResponse.binary(PEOPLE, innocuous_share=mu, sensitive_share=pi)
    m, u = min(mu, 1 - mu), 1 / math.expm1(epsilon)
    share = pi if mu <= 0.5 else 1 - pi
    expected = (1 - m) / m * u**2 + (share * (1 - m) / m + 1 - share) * u
    assert PEOPLE * response.mean_squared_error(epsilon) == pytest.approx(expected, rel=1e-9)


def test_an_even_coin() -> None:
    response = RandomizedResponse.binary(PEOPLE)
    for epsilon in (0.1, 1.0, 2.5, 8.0):
        half = math.sinh(epsilon / 2)
        assert response.truth_probability(epsilon) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
        assert response.epsilon(response.truth_probability(epsilon)) == pytest.approx(epsilon, rel=1e-10)
        assert response.mean_squared_error(epsilon) == pytest.approx(1 / (4 * PEOPLE * half**2), rel=1e-12)
        slope = -math.cosh(epsilon / 2) / (4 * PEOPLE * half**3)
        assert response.mean_squared_error_slope(epsilon) == pytest.approx(slope, rel=1e-12)
        curvature = (2 + math.cosh(epsilon)) / (8 * PEOPLE * half**4)
        assert response.mean_squared_error_curvature(epsilon) == pytest.approx(curvature, rel=1e-12)
    # The paper: ε(ρ) = ln((1 + ρ)/(1 − ρ)).
    assert response.epsilon(0.6) == pytest.approx(math.log(4), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 50.0])
def test_the_price_of_not_trusting_the_curator(epsilon: float) -> None:
    price = RandomizedResponse.binary(PEOPLE).price_of_not_trusting_the_curator(epsilon)
    assert price == pytest.approx(PEOPLE / 2, rel=1e-12)


@given(mu=shares, pi=st.floats(0, 1), epsilon=epsilons)
@settings(max_examples=60, deadline=None)
def test_concave_everywhere_and_best_at_an_even_coin(mu: float, pi: float, epsilon: float) -> None:
    response = RandomizedResponse.binary(PEOPLE, innocuous_share=mu, sensitive_share=pi)
    assert response.mean_squared_error_slope(epsilon) < 0
    assert response.mean_squared_error_curvature(epsilon) > 0
    even = RandomizedResponse.binary(PEOPLE, sensitive_share=pi)
    assert even.mean_squared_error(epsilon) <= response.mean_squared_error(epsilon) * (1 + 1e-12)


def test_slopes_are_derivatives() -> None:
    response = RandomizedResponse.binary(PEOPLE, innocuous_share=0.2, sensitive_share=0.7)
    for epsilon in (0.3, 2.0, 6.0):
        step = 1e-4
        chord = (response.mean_squared_error(epsilon + step) - response.mean_squared_error(epsilon - step)) / (2 * step)
        bend = response.mean_squared_error_slope(epsilon + step) - response.mean_squared_error_slope(epsilon - step)
        assert response.mean_squared_error_slope(epsilon) == pytest.approx(chord, rel=1e-6)
        assert response.mean_squared_error_curvature(epsilon) == pytest.approx(bend / (2 * step), rel=1e-6)


def test_asymmetric_protection() -> None:
    """The paper's tax evaders: "yes" may betray by ε = 0.5 while "no" betrays by 2."""
    response = RandomizedResponse.asymmetric(PEOPLE, epsilon_yes=0.5, epsilon_no=2.0)
    no, yes = response.one_sided_losses(2.0)
    assert (no, yes) == pytest.approx((2.0, 0.5), rel=1e-12)
    assert response.innocuous_shares[1] > 0.5
    truth = response.truth_probability(2.0)
    mu = response.innocuous_shares[1]
    assert math.log(1 + truth / ((1 - truth) * mu)) == pytest.approx(0.5, rel=1e-12)
    assert math.log(1 + truth / ((1 - truth) * (1 - mu))) == pytest.approx(2.0, rel=1e-12)
    assert max(response.one_sided_losses(900.0)) == pytest.approx(900.0)


def test_the_error_is_that_of_the_mechanism_alone() -> None:
    """Given the people, not a superpopulation: it vanishes as everybody tells the truth (erratum E10)."""
    response = RandomizedResponse.binary(PEOPLE, sensitive_share=0.3)
    assert response.mean_squared_error(40.0) < 1e-15
    truth = response.truth_probability(1.0)
    reported = truth * 0.3 + (1 - truth) / 2
    superpopulation = reported * (1 - reported) / PEOPLE / truth**2
    sampling = 0.3 * 0.7 / PEOPLE
    assert response.mean_squared_error(1.0) == pytest.approx(superpopulation - sampling, rel=1e-12)


def test_k_levels_by_hand() -> None:
    """Three equal innocuous shares: p = e^ε/(e^ε + 2), and the covariance of multinomial reports."""
    epsilon, true = 1.3, np.array([500, 300, 200])
    response = RandomizedResponse.categories(1000, 3, sensitive_shares=(0.5, 0.3, 0.2))
    stay, move = math.exp(epsilon) / (math.exp(epsilon) + 2), 1 / (math.exp(epsilon) + 2)
    channel = np.full((3, 3), move) + (stay - move) * np.eye(3)
    covariance = sum(n * (np.diag(row) - np.outer(row, row)) for n, row in zip(true, channel, strict=True))
    production = response.production(stack(identity(3), total(3)), REPLACE_ONE)
    variances = production.query_variances("identity", epsilon)
    assert variances == pytest.approx(np.diag(covariance) / (stay - move) ** 2, rel=1e-12)
    assert production.query_variances("total", epsilon) == pytest.approx([0], abs=1e-9)
    assert response.one_sided_losses(epsilon) == pytest.approx([epsilon] * 3)


def test_unknown_shares_give_the_worst_case() -> None:
    unknown = RandomizedResponse.binary(PEOPLE, innocuous_share=0.2)
    production = unknown.production(identity(2), REPLACE_ONE)
    known = [
        RandomizedResponse.binary(PEOPLE, innocuous_share=0.2, sensitive_share=share).production(
            identity(2), REPLACE_ONE
        )
        for share in (0.0, 0.4, 1.0)
    ]
    worst = max(each.expected_squared_error(1.5) for each in known)
    assert production.expected_squared_error(1.5) == pytest.approx(worst, rel=1e-12)
    assert unknown.mean_squared_error(1.5) == pytest.approx(worst / 2 / PEOPLE**2, rel=1e-12)
    assert np.all(production.half_width("identity", 1.5, 0.9) > 0)


def exact_absolute_error(people: int, epsilon: float) -> float:
    """E|x̂ − x| for an even coin and nobody sensitive: reports are binomial."""
    truth = math.tanh(epsilon / 2)
    chance = (1 - truth) / 2
    reports = np.arange(people + 1)
    return float(np.abs(reports - people * chance) @ binom.pmf(reports, people, chance)) / truth


def test_absolute_errors_and_their_chords_are_exact() -> None:
    people = 40
    response = RandomizedResponse.binary(people, sensitive_share=0.0)
    production = response.production(identity(2), REPLACE_ONE)
    for epsilon in (0.4, 1.1, 3.0):
        assert production.table_errors(epsilon, "absolute")["identity"] == pytest.approx(
            2 * exact_absolute_error(people, epsilon), rel=1e-6
        )
        low, high = 0.95 * epsilon, 1.05 * epsilon
        chord = (exact_absolute_error(people, high) - exact_absolute_error(people, low)) / (high - low)
        assert production.table_slopes(epsilon, "absolute")["identity"] == pytest.approx(2 * chord, rel=1e-3)


def test_a_person_with_two_records_randomizes_each_at_half_the_loss() -> None:
    response = RandomizedResponse.binary(PEOPLE)
    two = Protection(neighbors=Neighbors.REPLACE_ONE, most_records_per_unit=2, identifier="id")
    production = response.production(identity(2), two)
    one = response.production(identity(2), REPLACE_ONE)
    assert production.sensitivity.power == 2
    assert production.expected_squared_error(2.0) == one.expected_squared_error(1.0)


def test_cells_of_two_attributes() -> None:
    response = RandomizedResponse.categories(PEOPLE, 6)
    production = response.production(kron(identity(2), identity(3)), REPLACE_ONE)
    assert production.query_variances("identity × identity", 1.0).shape == (6,)


def test_what_is_refused() -> None:
    response = RandomizedResponse.binary(PEOPLE)
    with pytest.raises(InvalidMechanism, match="add-or-remove"):
        response.production(identity(2), Protection())
    fixed = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("yes", where=(("axis0", ("1",)),)),))
    with pytest.raises(InvalidMechanism, match="exact total 'yes'"):
        response.production(identity(2), fixed)
    everybody = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("everybody"),))
    assert response.production(identity(2), everybody).expected_squared_error(1.0) > 0
    with pytest.raises(InvalidMechanism, match="2 levels for 3 cells"):
        response.production(identity(3), REPLACE_ONE)
    for bad in (0.0, 1.0, -0.1):
        with pytest.raises(InvalidMechanism, match="innocuous shares"):
            RandomizedResponse.binary(PEOPLE, innocuous_share=bad)
        with pytest.raises(InvalidLoss, match="truth probability"):
            response.epsilon(bad)
    with pytest.raises(InvalidMechanism):
        RandomizedResponse.binary(0)
    with pytest.raises(InvalidMechanism):
        RandomizedResponse(10, (0.5, 0.5), (0.2, 0.2))
    production = response.production(identity(2), REPLACE_ONE)
    with pytest.raises(InvalidMechanism, match="simulated people"):
        production.draw(np.array([1, 2]), 1.0, generator=np.random.default_rng(0), size=1)
    with pytest.raises(UnknownName, match="not a table"):
        production.query_variances("total", 1.0)


def test_the_geometric_yardstick() -> None:
    response = RandomizedResponse.binary(10, sensitive_share=0.5)
    count_variance = response.production(identity(2), REPLACE_ONE).query_variances("identity", 1.0)[1]
    assert count_variance == pytest.approx(5 * GEOMETRIC.variance(1.0), rel=1e-12)


def test_slopes_with_several_records_a_unit_are_derivatives() -> None:
    several = Protection(neighbors=Neighbors.REPLACE_ONE, most_records_per_unit=3, identifier="id")
    production = RandomizedResponse.binary(50, innocuous_share=0.3).production(identity(2), several)
    measures: tuple[NamedMeasure, ...] = ("squared", "largest variance")
    for measure in measures:
        losses = [sum(production.table_errors(at, measure).values()) for at in (1.9999, 2.0001)]
        slope = sum(production.table_slopes(2.0, measure).values())
        assert slope == pytest.approx((losses[1] - losses[0]) / 2e-4, rel=1e-6)
    slopes = [sum(production.table_slopes(at).values()) for at in (1.9999, 2.0001)]
    curvature = sum(production.table_curvatures(2.0).values())
    assert curvature == pytest.approx((slopes[1] - slopes[0]) / 2e-4, rel=1e-6)
