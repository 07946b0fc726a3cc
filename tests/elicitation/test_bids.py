"""What answers to bids say, and answers that say nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dualmandate.elicitation.answers import BidAnswers
from dualmandate.errors import InvalidSurvey

INFINITE = np.inf


def test_one_question() -> None:
    answers = BidAnswers.single_bounded([1, 2, 5], [1, 0, 0])
    assert answers.lower.tolist() == [1, -INFINITE, -INFINITE]
    assert answers.upper.tolist() == [INFINITE, 2, 5]
    assert not answers.spike


def test_two_questions() -> None:
    answers = BidAnswers.double_bounded([4, 4, 4, 4], [1, 1, 0, 0], [8, 8, 2, 2], [1, 0, 1, 0])
    assert answers.lower.tolist() == [8, 4, 2, -INFINITE]
    assert answers.upper.tolist() == [INFINITE, 8, 4, 2]
    assert answers.bids.tolist() == [2, 4, 8]


def test_a_spike() -> None:
    answers = BidAnswers.single_bounded([1, 2, 5], [1, 0, 0], pays_anything=[True, True, False])
    assert answers.lower.tolist() == [1, 0, -INFINITE]
    assert answers.upper.tolist() == [INFINITE, 2, 0]
    assert answers.spike


def test_clusters_and_covariates() -> None:
    answers = BidAnswers.single_bounded([1, 2, 5], [1, 0, 0]).with_covariates({"age": [20, 30, 50]})
    assert answers.names == ("constant", "age")
    assert answers.design.tolist() == [[1, 20], [1, 30], [1, 50]]
    labels = answers.clustered(["b", "a", "b"]).cluster
    assert labels is not None
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: BidAnswers.single_bounded([2, 2, 2], [1, 0, 1]), "same bid"),
        (lambda: BidAnswers.single_bounded([1, 2, 3], [1, 1, 1]), "same answer to every bid"),
        (lambda: BidAnswers.single_bounded([1, 2, 3], [0, 0, 0]), "same answer to every bid"),
        (lambda: BidAnswers.double_bounded([1, 2], [1, 1], [2, 4], [1, 1]), "same answer to every bid"),
        (lambda: BidAnswers.double_bounded([1, 2], [1, 0], [2, 4], [1, 1]), "row 2: the second bid"),
        (lambda: BidAnswers.double_bounded([1, 2], [1, 0], [0.5, 1], [1, 1]), "row 1: the second bid"),
        (lambda: BidAnswers.single_bounded([1, 2], [1, 0], pays_anything=[0, 0]), "contradict|row 1"),
        (lambda: BidAnswers.single_bounded([1, -2], [1, 0]), "'bid' asks for nothing, or for less, in row 2"),
        (lambda: BidAnswers.single_bounded([1, np.nan], [1, 0]), "'bid' is empty or infinite in row 2"),
        (lambda: BidAnswers.single_bounded(["a", "b"], [1, 0]), "not made of numbers"),
        (lambda: BidAnswers.single_bounded([1, 2], [1, 2]), "'yes' is neither 0 nor 1 in row 2"),
        (lambda: BidAnswers.single_bounded([1, 2], [1]), "'yes' has 1 rows"),
        (lambda: BidAnswers.single_bounded([1, 2], [1, 0]).with_covariates({"age": [3, 3]}), "same for everybody"),
        (
            lambda: BidAnswers.single_bounded([1, 2, 3], [1, 0, 0]).with_covariates({"a": [1, 2, 3], "b": [2, 3, 4]}),
            "follows from the others",
        ),
        (lambda: BidAnswers.single_bounded([1, 2], [1, 0]).clustered([1]), "clusters for 1 of 2"),
    ],
)
def test_answers_that_say_nothing_are_refused(made: Callable[[], BidAnswers], words: str) -> None:
    with pytest.raises(InvalidSurvey, match=words):
        made()


@pytest.mark.parametrize(
    "made",
    [
        lambda: BidAnswers.single_bounded([77, 77, 77], [1, 0, 1]),
        lambda: BidAnswers.single_bounded([77, 88, 99], [1, 1, 1]),
        lambda: BidAnswers.single_bounded([77, 88, 99], [0, 0, 0]),
        lambda: BidAnswers.double_bounded([77, 88], [1, 0], [99, 99], [1, 1]),
        lambda: BidAnswers.single_bounded([77, -88], [1, 0]),
        lambda: BidAnswers.single_bounded([77, 88], [1, 99]),
        lambda: BidAnswers.single_bounded([77, 88], [1, 0], pays_anything=[0, 1]),
    ],
)
def test_refusals_repeat_nothing_that_anybody_answered(made: Callable[[], BidAnswers]) -> None:
    with pytest.raises(InvalidSurvey) as caught:
        made()
    said = f"{caught.value.what} {caught.value.why} {caught.value.instead}"
    assert not any(value in said for value in ("77", "88", "99"))
    assert "everybody said" not in said
