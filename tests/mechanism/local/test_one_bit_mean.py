"""One bit a person: exact chances, the price of not trusting the curator, the published accuracy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism import GEOMETRIC, OneBitMean, RandomizedResponse, UnaryEncoding
from dualmandate.mechanism.local import OneBitSurvey, price_of_not_trusting_the_curator, simulated_words
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import explicit, identity, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
YES = explicit([[0, 1]])


def test_no_report_tells_two_amounts_apart_by_more_than_the_loss() -> None:
    """Every amount and both reports; 0 and the largest reach it."""
    survey = OneBitSurvey(Fraction(3, 4), 5)
    ones = [survey.chance(amount) for amount in range(8)]
    ratios = [max(ones) / min(ones), (1 - min(ones)) / (1 - max(ones))]
    assert max(ratios) == survey.odds
    assert survey.loss.amount == Fraction(3, 4)
    assert ones[5] == ones[6] == ones[7]  # clipped


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_count_costs_half_of_all_people(epsilon: float) -> None:
    """N/2 at every ε, whatever the people are, as with randomized response at even shares."""
    for shares in (None, (1.0, 0.0), (0.2, 0.8)):
        one_bit = OneBitMean(1_000, 2, shares)
        if shares is None:  # for all that is known people might be halfway, if there were such a level
            assert price_of_not_trusting_the_curator(one_bit, YES, epsilon=epsilon) == pytest.approx(500)
        assert one_bit.production(YES, REPLACE_ONE).expected_squared_error(epsilon) == pytest.approx(
            500 * GEOMETRIC.variance(epsilon)
        )
    coin = RandomizedResponse.binary(1_000)
    assert price_of_not_trusting_the_curator(coin, YES, epsilon=epsilon) == pytest.approx(500)
    assert coin.price_of_not_trusting_the_curator(epsilon) == pytest.approx(500)
    bits = UnaryEncoding(1_000, 2, (1.0, 0.0))
    assert price_of_not_trusting_the_curator(bits, YES, epsilon=epsilon) > 500


def test_a_sum_of_amounts_from_first_principles() -> None:
    """Each bit is a coin with a known chance."""
    epsilon, people = 1.3, np.array([30, 50, 20])
    production = OneBitMean(100, 3, (0.3, 0.5, 0.2)).production(explicit([[2, 3, 6]]), REPLACE_ONE)
    odds = math.exp(epsilon)
    chances = (1 + (np.array([2, 3, 6]) - 2) / 4 * (odds - 1)) / (1 + odds)
    scale = 4 * (odds + 1) / (odds - 1)
    exact = scale**2 * float(people @ (chances * (1 - chances)))
    assert production.query_variances("explicit", epsilon) == pytest.approx([exact])
    generator = np.random.default_rng(1)
    assert production.reported(people, 50.0, generator=generator, size=3) @ [2, 3, 6] == pytest.approx(
        np.full(3, 330), abs=40
    )
    everybody = OneBitMean(100, 3).production(total(3), REPLACE_ONE)
    assert everybody.table_errors(epsilon) == {"total": 0.0}
    assert everybody.draw(people, epsilon, generator=generator, size=2).tolist() == [[100.0], [100.0]]


def test_clients_and_the_agency_agree_with_the_closed_form() -> None:
    survey, words = OneBitSurvey(1, 10), simulated_words(np.random.default_rng(2))
    amounts = np.repeat([0, 3, 10, 12], 50)
    truth = int(np.minimum(amounts, 10).sum())
    found = [(int(survey.reports(amounts, words).sum()), len(amounts)) for _ in range(3_000)]
    totals = np.array([survey.total(*each) for each in found])
    variance = survey.variance(amounts)
    assert abs(totals.mean() - truth) < 5 * math.sqrt(variance / 3_000)
    assert totals.var() == pytest.approx(variance, rel=0.13)
    held = [low <= truth <= high for low, high in (survey.interval(*each) for each in found)]
    assert np.mean(held) > 0.94


def test_the_published_accuracy() -> None:
    """[DKY17]: with probability 1 − δ the mean is off by at most m/√(2n)·(e^ε + 1)/(e^ε − 1)·√(ln(2/δ))."""
    survey, words, people = OneBitSurvey(1, 100), simulated_words(np.random.default_rng(3)), 400
    amounts = np.arange(people) % 101
    bound = 100 / math.sqrt(2 * people) * (math.e + 1) / (math.e - 1) * math.sqrt(math.log(2 / 0.05))
    means = [survey.total(int(survey.reports(amounts, words).sum()), people) / people for _ in range(1_000)]
    outside = float((np.abs(np.array(means) - amounts.mean()) > bound).mean())
    assert outside <= 0.05
    assert math.sqrt(survey.variance(amounts)) / people < bound / 2  # it is a bound, not the error


def test_a_loss_too_small_for_any_signal_has_the_widest_interval() -> None:
    assert OneBitSurvey(Fraction(1, 10**5), 10).interval(52, 100) == (0.0, 1000.0)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidMechanism, match="for 2 queries"):
        OneBitMean(10, 2).production(identity(2))
    with pytest.raises(InvalidMechanism, match="one-bit mean of 1 levels"):
        OneBitMean(10, 1)
    with pytest.raises(InvalidMechanism, match="amounts of up to 0"):
        OneBitSurvey(1, 0)
    with pytest.raises(InvalidLoss):
        OneBitSurvey(0, 10)
    for amounts in (np.array([-1, 2]), np.array([0.5]), np.array([[1]])):
        with pytest.raises(InvalidMechanism, match="not a list of whole numbers"):
            OneBitSurvey(1, 10).reports(amounts)
