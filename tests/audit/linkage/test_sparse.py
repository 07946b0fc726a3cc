"""Linkage of sparse records: scores by hand, who is found and who is mistaken, and bad input."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dualmandate.audit.finding import Rate
from dualmandate.audit.linkage.sparse import Scoreboard, SparseLinkageAttack, SparseRecords
from dualmandate.errors import InvalidRequest
from dualmandate.gallery.ratings import invented_ratings

KEY = b"key"


def rate(found: object) -> Rate:
    assert isinstance(found, Rate)
    return found


def test_scores_by_hand() -> None:
    """Two of three records have item 0, one has item 1: weights 1/ln 2; a star off is e^(−2/3), thirty days e^(−1)."""
    record, item, rating, day = (
        np.array(column) for column in ([5, 7, 7, 9], [0, 0, 1, 2], [4, 3, 5, 1], [0, 30, 9, 0])
    )
    target = SparseRecords("file", record, item, rating, day, known=1)
    file = Scoreboard.of(target, np.array([], dtype=np.int64), np.random.default_rng(1))
    scores = file.scores(np.array([0, 1]), np.array([4, 5]), np.array([0, 9]))
    weight = 1 / math.log(2)
    one, other = weight * 2, weight * (math.exp(-2 / 3) + math.exp(-1) + 2)
    assert scores == pytest.approx([one, other, 0.0])
    stands_out = other - one > 1.5 * float(np.std([one, other, 0.0]))
    assert file.best(np.array([0, 1]), np.array([4, 5]), np.array([0, 9])) == (7 if stands_out else None)
    assert file.best(np.array([2]), np.array([1]), np.array([0])) == 9


def test_rare_items_count_more() -> None:
    same = np.zeros(21, dtype=np.int64)
    record, item = np.append(np.arange(20), 3), np.append(same[:20], 1)
    target = SparseRecords("file", record, item, same, same, known=1)
    file = Scoreboard.of(target, np.array([], dtype=np.int64), np.random.default_rng(1))
    zero = np.zeros(1, dtype=np.int64)
    assert file.scores(zero, zero, zero).max() == pytest.approx(2 / math.log(20))
    assert file.scores(zero + 1, zero, zero)[3] == pytest.approx(2 / math.log(2))
    assert file.best(zero, zero, zero) is None  # everybody has it: nobody stands out
    assert file.best(zero + 1, zero, zero) == 3


def test_a_few_ratings_find_nearly_everybody() -> None:
    """Measured: 148, 197, 200 of 200 by 2, 4 and 8 ratings; of the real file 99 % by 8 of which 2 are wrong [NS08]."""
    found = [SparseLinkageAttack().run(invented_ratings(known=known), KEY) for known in (2, 4)]
    shares = [rate(each.success).value for each, _ in found]
    assert 0.6 < shares[0] < 0.85 < 0.95 < shares[1]
    eight, mistaken = SparseLinkageAttack().run(invented_ratings(known=8, wrong=2), KEY)
    assert rate(eight.success).value >= 0.98
    assert rate(mistaken.success).value < 0.15
    assert rate(eight.baselines[0].success).successes == 0
    assert "8 known items, 2 of them wrong" in eight.attacker_knows


def test_what_is_not_published_cannot_be_linked() -> None:
    """Measured: 33 of 200 by 8 ratings where a tenth of all is published."""
    few, _ = SparseLinkageAttack().run(invented_ratings(known=8, wrong=2, kept=0.1), KEY)
    assert 0.05 < rate(few.success).value < 0.35


def test_ratings_that_say_nothing_find_nobody() -> None:
    target = invented_ratings(known=4, people=300)
    same = replace(
        target, item=np.zeros_like(target.item), rating=np.ones_like(target.rating), day=np.zeros_like(target.day)
    )
    found, mistaken = SparseLinkageAttack().run(replace(same, day_error=0, rating_error=0), KEY)
    assert rate(found.success).value < 0.1
    assert rate(mistaken.success).value < 0.6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"day": np.zeros(3, dtype=np.int64)}, "one of each"),
        ({"wrong": 4}, "something true must be known"),
        ({"kept": 0.0}, "something published"),
    ],
)
def test_bad_input(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        replace(invented_ratings(known=4, people=50), **change)  # type: ignore[arg-type]
    assert words in caught.value.why


def test_more_known_than_anybody_rated() -> None:
    with pytest.raises(InvalidRequest, match="have 999 entries"):
        SparseLinkageAttack().run(invented_ratings(known=999, people=50), KEY)
