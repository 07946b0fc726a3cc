"""Amounts day after day: one day's law, what a kept answer promises, and what it does not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.local import MemoizedMean, OneBitSurvey, simulated_words

SURVEY = OneBitSurvey(1, 6)


@pytest.mark.parametrize("step", [1, 2, 6])
def test_one_day_has_the_law_of_the_one_bit_mean(step: int) -> None:
    kept = MemoizedMean(SURVEY, step)
    for amount in range(7):
        assert kept._law_of_history((amount,))[(1,)] == SURVEY.chance(amount)


@pytest.mark.parametrize("flip", [Fraction(0), Fraction(1, 8)])
def test_clients_and_the_agency_agree_with_the_closed_form(flip: Fraction) -> None:
    kept, words = MemoizedMean(SURVEY, 3, flip), simulated_words(np.random.default_rng(1))
    amounts = np.repeat([0, 2, 6], 40)
    found = []
    for _ in range(2_000):
        devices = kept.devices(len(amounts), words)
        found.append(kept.total(int(kept.reports(devices, amounts, words).sum()), len(amounts)))
    variance = kept.variance(amounts)
    assert abs(np.mean(found) - amounts.sum()) < 5 * math.sqrt(variance / 2_000)
    assert np.var(found) == pytest.approx(variance, rel=0.16)


def test_days_on_which_nothing_changes_lose_what_one_day_does() -> None:
    for step in (2, 6):
        kept = MemoizedMean(SURVEY, step)
        assert [kept.history_ratio((0,) * days, (6,) * days) for days in (1, 5, 9)] == [SURVEY.odds] * 3


def test_a_change_can_be_seen_for_certain_unless_answers_are_turned_around() -> None:
    moved, still = (0, 6, 0), (0, 0, 0)
    assert MemoizedMean(SURVEY, 6).history_ratio(moved, still) is None
    fair = MemoizedMean(SURVEY, 6, Fraction(1, 10)).history_ratio(moved, still)
    assert fair is not None
    assert SURVEY.odds < fair < 9 * SURVEY.odds  # one day differs: (1 − γ)/γ = 9, and the kept answer itself
    # Below its own threshold a change is never seen: 1 and 2 round alike for a third of thresholds only.
    assert MemoizedMean(SURVEY, 3).history_ratio((0, 0), (6, 6)) == SURVEY.odds
    assert MemoizedMean(SURVEY, 3).history_ratio((1, 2), (1, 1)) is None


def test_a_history_of_two_days_by_hand() -> None:
    """All amounts at ends of the step: answers a and b of independent coins, and both days see the same one or not."""
    kept = MemoizedMean(OneBitSurvey(1, 1), 1)
    high, low = kept.survey.chance(1), kept.survey.chance(0)
    law = kept._law_of_history((0, 1))
    assert law == {
        (0, 0): (1 - low) * (1 - high),
        (0, 1): (1 - low) * high,
        (1, 0): low * (1 - high),
        (1, 1): low * high,
    }
    turned = MemoizedMean(OneBitSurvey(1, 1), 1, Fraction(1, 4))._law_of_history((1, 1))
    assert turned[(1, 0)] == Fraction(3, 16)  # whatever is kept, one of two days is turned around
    assert turned[(1, 1)] == Fraction(9, 16) * high + Fraction(1, 16) * (1 - high)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidMechanism, match="multiples of 4"):
        MemoizedMean(SURVEY, 4)
    for flip in (Fraction(1, 2), Fraction(-1, 8), 0.1):
        with pytest.raises(InvalidMechanism, match="flip probability"):
            MemoizedMean(SURVEY, 6, flip)  # type: ignore[arg-type]
    with pytest.raises(InvalidMechanism, match="histories of 1 and 2 days"):
        MemoizedMean(SURVEY, 6).history_ratio((0,), (0, 0))
