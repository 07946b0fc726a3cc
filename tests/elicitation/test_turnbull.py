"""Turnbull's lower bound: the hand case, pooling, the self-consistent solution, and that it is a bound."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import minimize

from dualmandate.elicitation.bids import BidAnswers
from dualmandate.elicitation.turnbull import _self_consistent, turnbull
from dualmandate.errors import NoEstimate


def refusing(counts: dict[float, tuple[int, int]]) -> BidAnswers:
    """People and refusals by bid."""
    bid = np.repeat(list(counts), [people for people, _ in counts.values()])
    yes = np.concatenate([np.arange(people) >= no for people, no in counts.values()])
    return BidAnswers.single_bounded(bid, yes)


def test_the_hand_case_of_the_reference() -> None:
    found = turnbull(refusing({1: (100, 20), 2: (100, 40), 5: (100, 70)}))
    assert found.lower_bound == pytest.approx(2.3, rel=1e-14)
    assert found.standard_error == pytest.approx(math.sqrt(0.0016 + 0.0024 + 0.0189), rel=1e-14)
    assert round(found.standard_error, 6) == 0.151327
    assert found.pooled == ()
    assert [found.survival(amount) for amount in (0.5, 1.0, 1.5, 2.5, 5.0, 6.0)] == pytest.approx(
        [0.8, 0.8, 0.6, 0.3, 0.3, 0.0]
    )
    assert str(found) == "at least 2.3 on average (standard error of the bound 0.15)"


def test_violators_are_pooled() -> None:
    # Shares .2, .5, .4, .7: the middle two become 110/250 = .44, and the bound 1·.8 + 1·.56 + 2·.56 + 4·.3.
    found = turnbull(refusing({1: (100, 20), 2: (100, 50), 4: (150, 60), 8: (100, 70)}))
    assert found.refusing == pytest.approx([0.2, 0.44, 0.44, 0.7])
    assert found.pooled == ((2.0, 4.0),)
    assert found.lower_bound == pytest.approx(0.8 + 3 * 0.56 + 4 * 0.3)
    # Pooled bids move together: (1 + 2)²·.44·.56/250, not 1² + 2².
    variance = 0.16 / 100 + 9 * 0.44 * 0.56 / 250 + 16 * 0.21 / 100
    assert found.standard_error == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_a_chain_of_violators() -> None:
    found = turnbull(refusing({1: (10, 8), 2: (10, 6), 3: (10, 4), 4: (10, 9)}))
    assert found.refusing == pytest.approx([0.6, 0.6, 0.6, 0.9])
    assert found.pooled == ((1.0, 2.0, 3.0),)


def test_both_ways_agree_after_one_question() -> None:
    for counts in ({1: (100, 20), 2: (100, 40), 5: (100, 70)}, {1: (80, 20), 2: (90, 50), 4: (150, 60), 8: (100, 70)}):
        answers = refusing({float(bid): pair for bid, pair in counts.items()})
        shares, covariance = _self_consistent(answers, answers.bids)
        found = turnbull(answers)
        assert shares == pytest.approx(found.refusing, abs=1e-9)
        widths = np.diff(np.concatenate([[0], answers.bids]))
        assert math.sqrt(widths @ covariance @ widths) == pytest.approx(found.standard_error, rel=1e-6)


def double_bounded(people: int, seed: int, *, spike: bool = False) -> tuple[BidAnswers, np.ndarray]:
    generator = np.random.default_rng(seed)
    amount = generator.exponential(4.0, people) * (generator.random(people) > 0.2 * spike)
    bid = generator.choice([2.0, 4.0], people)
    second = np.where(amount > bid, 2 * bid, bid / 2)
    pays = amount > 0 if spike else None
    return BidAnswers.double_bounded(bid, amount > bid, second, amount > second, pays_anything=pays), amount


def test_two_questions_give_the_most_likely_shares() -> None:
    answers, _ = double_bounded(400, 5)
    found = turnbull(answers)
    assert found.bids.tolist() == [1, 2, 4, 8]

    def minus(free: np.ndarray) -> float:
        masses = np.exp(np.append(free, 0)) / np.exp(np.append(free, 0)).sum()
        below = np.concatenate([[0], np.cumsum(masses)])
        edges = np.concatenate([[-np.inf], found.bids, [np.inf]])
        high, low = (below[np.searchsorted(edges, end)] for end in (answers.upper, answers.lower))
        return float(-np.log(high - low).sum())

    best = minimize(minus, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    masses = np.exp(np.append(best, 0)) / np.exp(np.append(best, 0)).sum()
    assert found.refusing == pytest.approx(np.cumsum(masses)[:-1], abs=1e-5)


def test_the_standard_error_of_two_questions_is_seen_in_repeated_surveys() -> None:
    found = [turnbull(double_bounded(300, seed)[0]) for seed in range(400)]
    seen = np.std([each.lower_bound for each in found])
    assert np.mean([each.standard_error for each in found]) == pytest.approx(seen, rel=0.1)


def test_shares_that_tie_settle_too() -> None:
    # Half say no at 1 and at 2: the cell between them is empty, and only just.
    answers = refusing({1.0: (40, 20), 2.0: (40, 20), 5.0: (40, 30)})
    shares, _ = _self_consistent(answers, answers.bids)
    assert shares == pytest.approx([0.5, 0.5, 0.75], abs=1e-6)
    spiked = BidAnswers.single_bounded(
        np.repeat([1.0, 2.0], 40), np.tile(np.arange(40) < 20, 2), pays_anything=np.tile(np.arange(40) < 30, 2)
    )
    found = turnbull(spiked)
    assert found.refusing == pytest.approx([0.25, 0.5, 0.5], abs=1e-6)
    assert found.lower_bound == pytest.approx(1.0, abs=1e-6)


def test_it_is_a_bound() -> None:
    for spike in (False, True):
        answers, amount = double_bounded(20_000, 8, spike=spike)
        found = turnbull(answers)
        assert found.lower_bound + 4 * found.standard_error < amount.mean()
        steps = np.minimum(np.floor(np.log2(np.maximum(amount, 0.5))), 3)
        counted = np.where(amount > 1, 2.0**steps, 0).mean()  # each amount counted as the bid below it
        assert found.lower_bound == pytest.approx(counted, abs=4 * found.standard_error)
    assert found.bids[0] == 0
    assert found.refusing[0] == pytest.approx(0.2, abs=0.02)


def test_shares_that_do_not_settle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("dualmandate.elicitation.turnbull"), "MOST_ROUNDS", 1)
    with pytest.raises(NoEstimate, match="1 rounds"):
        turnbull(double_bounded(100, 1)[0])
