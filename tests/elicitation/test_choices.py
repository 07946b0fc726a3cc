from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualmandate.elicitation import ChoiceData
from dualmandate.errors import InvalidSurvey

COLUMNS: dict[str, Any] = {
    "attributes": {"price": [1.0, 2.0, 0.0, 3.0, 1.0], "epsilon": [0.5, 1.0, 2.0, 0.5, 4.0]},
    "chosen": [0, 1, 1, 0, 0],
    "task": [1, 1, 1, 1, 1],
    "respondent": ["b", "b", "a", "a", "a"],
    "alternative": ["left", "right", "neither", "right", "left"],
}


def choices(**changes: Any) -> ChoiceData:
    return ChoiceData.of_columns(**{**COLUMNS, **changes})


def test_rows_come_sorted_by_respondent_and_task() -> None:
    data = choices()
    assert (data.people, data.tasks) == (2, 2)
    assert data.respondent.tolist() == [0, 0, 0, 1, 1]
    assert data.task.tolist() == [0, 0, 0, 1, 1]
    assert data.attributes.tolist() == [[0, 2], [3, 0.5], [1, 4], [1, 0.5], [2, 1]]
    assert data.chosen.tolist() == [True, False, False, False, True]
    assert data.task_starts.tolist() == [0, 3, 5]
    assert data.task_respondent.tolist() == [0, 1]
    assert data.alternatives == ("left", "neither", "right")


def test_order_of_rows_does_not_matter() -> None:
    turned = {name: list(reversed(column)) for name, column in COLUMNS.items() if name != "attributes"}
    attributes = {name: list(reversed(column)) for name, column in COLUMNS["attributes"].items()}
    data, other = choices(), choices(attributes=attributes, **turned)
    for task in range(2):
        mine = sorted(map(tuple, data.attributes[data.task == task].tolist()))
        assert mine == sorted(map(tuple, other.attributes[other.task == task].tolist()))
        chosen = data.attributes[(data.task == task) & data.chosen]
        assert chosen.tolist() == other.attributes[(other.task == task) & other.chosen].tolist()


def test_constants_of_alternatives() -> None:
    data = choices().with_constants("neither")
    assert data.names == ("constant of left", "constant of right", "price", "epsilon")
    assert data.attributes[:, :2].tolist() == [[0, 0], [0, 1], [1, 0], [1, 0], [0, 1]]
    assert choices().with_constants().names[0] == "constant of neither"
    with pytest.raises(InvalidSurvey, match="no alternative 'none'"):
        choices().with_constants("none")
    with pytest.raises(InvalidSurvey, match="no labels"):
        choices(alternative=None).with_constants()


def test_some_attributes() -> None:
    data = choices().only(("epsilon",))
    assert data.names == ("epsilon",)
    assert data.attributes[:, 0].tolist() == choices().attributes[:, 1].tolist()


def test_answers_are_choices_against_nothing() -> None:
    data = ChoiceData.of_answers({"bid": [1.0, 2.0]}, yes=[True, False], respondent=[7, 7], price="bid")
    assert data.names == ("constant", "bid")
    assert data.attributes.tolist() == [[0, 0], [1, 1], [0, 0], [1, 2]]
    assert data.chosen.tolist() == [False, True, True, False]
    assert (data.people, data.tasks) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attributes": {}}, "no attribute"),
        ({"attributes": {"price": []}}, "has 0 rows"),
        ({"attributes": {"price": [1, 2], "epsilon": [1]}}, "'epsilon' has 1 rows, not 2 rows"),
        ({"attributes": {"price": ["1", "2", "3", "4", "5"]}}, "'price' is not made of numbers"),
        ({"attributes": {"price": [1, "2", 3, 4, 5]}}, "'price' is not made of numbers"),
        ({"attributes": {"price": [1, None, 3, 4, 5]}}, "'price' is empty or infinite in row 2"),
        ({"attributes": {"price": [1, 2, 3, 4, np.inf]}}, "'price' is empty or infinite in row 5"),
        ({"attributes": {"price": [[1, 2], [3, 4]]}}, "2 dimensions"),
        ({"respondent": [1, 2]}, "'respondent' has 2 rows"),
        ({"respondent": ["b", None, "a", "a", "a"]}, "'respondent' is empty in row 2"),
        ({"task": [1.0, np.nan, 1.0, 1.0, 1.0]}, "'task' is empty in row 2"),
        ({"chosen": [0, 1, 2, 0, 0]}, "'chosen' is neither 0 nor 1 in row 3"),
        ({"chosen": ["no", "yes", "yes", "no", "no"]}, "not made of numbers"),
        ({"chosen": [0, 1, 0, 0, 0]}, "task 1 has no chosen alternative"),
        ({"chosen": [1, 1, 1, 1, 0]}, "task 1 \\(and 1 more\\) has more than one chosen alternative"),
        ({"task": [1, 2, 1, 1, 1], "chosen": [1, 1, 1, 0, 0]}, "task 1 \\(and 1 more\\) shows one alternative"),
        ({"alternative": ["left", "left", "a", "b", "c"]}, "task 1 shows one alternative twice"),
        ({"attributes": {"price": [2, 2, 2, 2, 2]}, "price": "price"}, "the price 'price' never varies"),
        ({"attributes": {"age": [2, 2, 3, 3, 3]}}, "the attribute 'age' never varies within a task"),
        ({"price": "cost"}, "the price 'cost' is not among the attributes"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSurvey, match=words):
        choices(**changes)
