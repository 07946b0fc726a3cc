"""What another survey is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.integrate import quad

from dualmandate.choice import (
    Beliefs,
    Limits,
    SocialWelfare,
    Uncertain,
    UncertainChoice,
    best_survey,
    choose_under_uncertainty,
    signal_value,
    survey_value,
    survey_values,
)
from dualmandate.errors import InvalidPreferences, InvalidValue

if TYPE_CHECKING:
    from tests.choice.conftest import TitleI

COST = "mean_disclosure_cost"


@pytest.fixture(scope="module")
def known(title_i: TitleI) -> UncertainChoice:
    beliefs = Beliefs.lognormal(title_i.welfare(), [Uncertain.lognormal(COST, math.log(1400), 0.5)])
    return choose_under_uncertainty(title_i.laplace(), beliefs)


def test_the_reference_case(known: UncertainChoice) -> None:
    # Research note, section 4: 100 people, s.d. 1.5 each.
    found = survey_value(known, 100, spread=1.5)
    assert found.value == pytest.approx(6.677795e9, rel=1e-7)
    assert found.value / known.expected_cost == pytest.approx(0.02516222, abs=1e-8)
    assert found.share == pytest.approx(0.9185, abs=5e-5)
    # The share 1 − e^{−v/9}, v = s² − s_n².
    learned = 0.25 - 1 / (1 / 0.25 + 100 / 2.25)
    assert found.value == pytest.approx(known.expected_cost * -math.expm1(-learned / 9), rel=1e-9)
    words = "another survey of 100 people is worth USD 6.678 billion to this decision, 91.8% of what knowing"
    assert str(found).startswith(words)


def test_draws_are_updated_one_answer_at_a_time(known: UncertainChoice, title_i: TitleI) -> None:
    """The same beliefs without their formula: every answer is laid out, and the weights of states are updated."""
    assert known.beliefs.values is not None
    draws = Beliefs.draws(title_i.welfare(), {COST: known.beliefs.values[:, 0]}, known.weights)
    plain = choose_under_uncertainty(title_i.laplace(), draws)
    for respondents in (1, 100, 5_000):
        conjugate = survey_value(known, respondents, spread=1.5).value
        assert survey_value(plain, respondents, spread=1.5).value == pytest.approx(conjugate, rel=1e-6)


def test_two_unlikely_alike_states(title_i: TitleI) -> None:
    """k = 61 with odds 1 to 3 against 1,400, one answer with error 1: the integral over answers, by quadrature."""
    beliefs = Beliefs.draws(title_i.welfare(), {COST: [61, 1400]}, [1, 3], discrete=True)
    known = choose_under_uncertainty(title_i.laplace(), beliefs)
    scale = 1.5 * 1.04e12 ** (1 / 3) * 46e6 ** (2 / 3)

    def expected(answer: float) -> float:
        """Density of the answer times what society then loses: V is homogeneous of degree 2/3 in weighted costs."""
        likely = [w * math.exp(-((answer - math.log(k)) ** 2) / 2) for w, k in ((0.25, 61), (0.75, 1400))]
        total = sum(likely)
        mean = (likely[0] * 61 + likely[1] * 1400) / total
        return float(total / math.sqrt(2 * math.pi) * scale * mean ** (2 / 3))

    with_survey = quad(expected, -10, 25, epsabs=1e-3, epsrel=1e-12, limit=500)[0]
    before = scale * (0.25 * 61 + 0.75 * 1400) ** (2 / 3)
    assert survey_value(known, 1, spread=1.0).value == pytest.approx(before - with_survey, rel=1e-7)


def test_simulated_surveys_agree(known: UncertainChoice) -> None:
    generator = np.random.default_rng(11)
    truth = math.log(1400) + 0.5 * generator.standard_normal(400_000)
    answer = truth + 1.5 / math.sqrt(100) * generator.standard_normal(len(truth))
    precision = 1 / 0.25 + 100 / 2.25
    mean = (math.log(1400) / 0.25 + answer * 100 / 2.25) / precision
    believed = np.exp(mean + 0.5 / precision)
    chosen = (1.04e12 / 46e6 / believed) ** (1 / 3)

    def cost(epsilon: np.ndarray[tuple[int], np.dtype[np.float64]] | float) -> float:
        return float(np.mean(46e6 * np.exp(truth) * epsilon + 5.2e11 / np.square(epsilon)))

    assert cost(known.choice.epsilon) - cost(chosen) == pytest.approx(6.677795e9, rel=0.02)


def test_more_people_are_worth_more_and_never_more_than_knowing(known: UncertainChoice) -> None:
    found = survey_values(known, (1, 10, 100, 1_000, 10_000, 1_000_000), spread=1.5)
    values = [survey.value for survey in found]
    assert values == sorted(values)
    assert values[0] > 0
    assert values[-1] < known.value_of_perfect_information
    assert values[-1] == pytest.approx(known.value_of_perfect_information, rel=1e-4)


def test_one_of_two_numbers(title_i: TitleI) -> None:
    numbers = [Uncertain(COST, 1400, 500), Uncertain("consequence", 2e7, 1e7)]
    known = choose_under_uncertainty(title_i.laplace(), Beliefs.lognormal(title_i.welfare(), numbers))
    for name, power in ((COST, 2 / 3), ("consequence", 1 / 3)):
        number = next(number for number in numbers if number.name == name)
        found = survey_value(known, 10**9, spread=1.0, parameter=name)
        share = -math.expm1((power**2 - power) * number.log_deviation**2 / 2)
        assert found.value / known.expected_cost == pytest.approx(share, rel=1e-6)
    with pytest.raises(InvalidPreferences, match="which number"):
        survey_value(known, 10, spread=1.0)
    with pytest.raises(InvalidPreferences, match="not among"):
        survey_value(known, 10, spread=1.0, parameter="population_size")


@pytest.mark.parametrize("correlation", [-0.6, 0.5])
def test_a_survey_of_one_number_tells_of_another(title_i: TitleI, correlation: float) -> None:
    numbers = [Uncertain(COST, 1400, 500), Uncertain("consequence", 2e7, 1e7)]
    stated = {(COST, "consequence"): correlation}
    beliefs = Beliefs.lognormal(title_i.welfare(), numbers, stated)
    known = choose_under_uncertainty(title_i.laplace(), beliefs)
    found = survey_value(known, 40, spread=1.5, parameter=COST).value
    # The same by updating the weight of every state, as for beliefs of any kind.
    anything = choose_under_uncertainty(title_i.laplace(), replace(beliefs, uncertain=()))
    assert found == pytest.approx(survey_value(anything, 40, spread=1.5, parameter=COST).value, rel=0.03)
    alone = choose_under_uncertainty(title_i.laplace(), Beliefs.lognormal(title_i.welfare(), numbers))
    assert abs(found / survey_value(alone, 40, spread=1.5, parameter=COST).value - 1) > 0.1


def test_limits_take_worth_away(title_i: TitleI, known: UncertainChoice) -> None:
    capped = choose_under_uncertainty(title_i.laplace(), known.beliefs, Limits(largest_epsilon=2.0))
    assert survey_value(capped, 100, spread=1.5).value < survey_value(known, 100, spread=1.5).value


def test_signals(title_i: TitleI) -> None:
    beliefs = Beliefs.draws(title_i.welfare(), {COST: [61, 1400]}, discrete=True)
    known = choose_under_uncertainty(title_i.laplace(), beliefs)
    assert signal_value(known, np.eye(2)) == pytest.approx(2.105176e10, rel=3e-7)
    assert signal_value(known, [[0.3, 0.3], [0.7, 0.7]]) == pytest.approx(0, abs=1e3)
    # A test that is right nine times in ten, by hand: V(k) = 1.5·(2c)^{1/3}·(N·k)^{2/3}.
    scale = 1.5 * 1.04e12 ** (1 / 3) * 46e6 ** (2 / 3)
    means = (0.9 * 61 + 0.1 * 1400, 0.1 * 61 + 0.9 * 1400)
    value = scale * (730.5 ** (2 / 3) - sum(mean ** (2 / 3) for mean in means) / 2)
    assert signal_value(known, [[0.9, 0.1], [0.1, 0.9]]) == pytest.approx(value, rel=1e-8)
    with pytest.raises(InvalidPreferences, match="one probability of each signal"):
        signal_value(known, [[0.9, 0.1]])


def test_the_survey_that_pays_best(known: UncertainChoice) -> None:
    cost = 1e6
    best = best_survey(known, cost_per_respondent=cost, spread=1.5)
    assert best is not None
    gains = {
        size: survey_value(known, size, spread=1.5).value - cost * size
        for size in (best.respondents // 2, best.respondents, 2 * best.respondents)
    }
    assert max(gains, key=lambda size: gains[size]) == best.respondents
    # The share is 1 − exp(−v(n)/9): its slope in n is the cost at the best size.
    slope = survey_value(known, best.respondents + 5, spread=1.5).value
    slope = (slope - survey_value(known, best.respondents - 5, spread=1.5).value) / 10
    assert slope == pytest.approx(cost, rel=0.01)
    assert best_survey(known, cost_per_respondent=1e12, spread=1.5) is None


def test_refusals(known: UncertainChoice, title_i: TitleI) -> None:
    for respondents, spread in ((0, 1.0), (10, 0.0), (10, math.nan)):
        with pytest.raises(InvalidValue):
            survey_value(known, respondents, spread=spread)
    with pytest.raises(InvalidValue):
        best_survey(known, cost_per_respondent=0.0, spread=1.0)
    welfare: SocialWelfare = title_i.welfare()
    zero = Beliefs.draws(welfare, {COST: [0.0, 2800.0]}, discrete=True)
    capped = choose_under_uncertainty(title_i.laplace(), zero, Limits(largest_epsilon=5.0))
    with pytest.raises(InvalidPreferences, match="logarithm"):
        survey_value(capped, 10, spread=1.0)
    scenarios = choose_under_uncertainty(title_i.laplace(), Beliefs.scenarios([welfare, welfare]))
    with pytest.raises(InvalidPreferences, match="signal_value"):
        survey_value(scenarios, 10, spread=1.0)
