"""Questionnaires in words, and their files."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import pytest

from dualmandate.elicitation.design import Precision
from dualmandate.elicitation.questionnaire import (
    AnswerColumns,
    BeliefScale,
    Questionnaire,
    QuestionnairePlan,
    amount,
    answer_columns,
    answer_sheet,
    design_table,
    form_content,
    questionnaire_of,
    shown_attribute,
)
from dualmandate.errors import InvalidSurvey

PRIVACY = shown_attribute("epsilon", "privacy loss", [0.5, 1, 2, 4], scale=BeliefScale(0.01))
ERROR = shown_attribute("error", "accuracy", [500, 1500, 2500], measure="squared", column="grant_error")
PRICE = shown_attribute("price", "price", [0, 500, 1000, 2000], time_base="per year")
ASKED = QuestionnairePlan({"epsilon": 1400.0, "error": 0.0003}, 1000.0, tasks=4, blocks=2, uncertainty=0.0)


@pytest.fixture(scope="module")
def asked() -> Questionnaire:
    return questionnaire_of("Grants", [PRIVACY, ERROR, PRICE], ASKED, columns=AnswerColumns(respondent="who"))


def test_attributes_in_words() -> None:
    assert PRICE.words == ("nothing", "$500 per year", "$1,000 per year", "$2,000 per year")
    assert shown_attribute("p", "price", [5], time_base="lifetime").words == ("$5, once",)
    assert ERROR.words[0] == "typically by $500"
    assert ERROR.regressors == (250_000.0, 2_250_000.0, 6_250_000.0)
    assert ERROR.recorded == (500.0, 1500.0, 2500.0)
    assert PRIVACY.words[0] == "from 10 in 1,000 to at most 16 in 1,000"
    assert amount(2.5, "child") == "2.5 child"


def test_the_form_of_the_cost_decides_what_enters() -> None:
    exponential = shown_attribute(
        "epsilon", "privacy loss", [0.5, 1, 2, 4], scale=BeliefScale(0.01), form="exponential"
    )
    assert exponential.recorded == PRIVACY.recorded
    assert exponential.regressors == pytest.approx([math.expm1(said) for said in PRIVACY.recorded])


def test_expectations_become_coefficients(asked: Questionnaire) -> None:
    """One dollar is 1/choice_noise of utility; what people pay to avoid a unit scales it."""
    assert asked.coefficients == pytest.approx((-1.4, -3e-7, -1e-3))
    assert asked.tasks_each == 4
    assert asked.price.name == "price"


def test_how_many_must_answer(asked: Questionnaire) -> None:
    assert asked.spread == 1.0
    assert asked.coefficient_of_variation() > 1.0
    assert asked.respondents() == Precision().respondents(asked.coefficient_of_variation())
    wider = replace(asked, spread=2.4149)
    assert wider.respondents() >= 75
    assert asked.respondents(Precision(within=0.05)) > asked.respondents()


def test_the_answer_sheet_has_a_row_for_each_alternative(asked: Questionnaire) -> None:
    rows = list(csv.DictReader(io.StringIO(answer_sheet(asked))))
    assert tuple(rows[0]) == answer_columns(asked)
    assert next(iter(rows[0])) == "who"
    assert len(rows) == 16
    assert {row["block"] for row in rows} == {"1", "2"}
    assert {row["chosen"] for row in rows} == {row["who"] for row in rows} == {""}
    assert {float(row["epsilon"]) for row in rows} <= set(PRIVACY.recorded)


def test_the_design_says_what_was_shown(asked: Questionnaire) -> None:
    words = dict(zip(map(str, PRIVACY.recorded), PRIVACY.words, strict=True))
    for row in csv.DictReader(io.StringIO(design_table(asked))):
        assert row["epsilon in words"] == words[row["epsilon"]]
        assert row["grant_error in words"] == f"typically by ${int(row['grant_error']):,}"


def test_the_form_records_what_the_sheet_records(asked: Questionnaire) -> None:
    content = form_content(asked)
    sheet = list(csv.reader(io.StringIO(answer_sheet(asked))))
    assert content["columns"] == sheet[0]
    tasks = content["tasks"]
    assert isinstance(tasks, list)
    recorded = [
        [task["block"], task["task"], alternative["label"], *alternative["recorded"]]
        for task in tasks
        for alternative in task["alternatives"]
    ]
    assert recorded == [[*row[1:4], *row[5:-1]] for row in sheet[1:]]


@pytest.mark.parametrize(
    ("attributes", "changes", "words"),
    [
        ([PRIVACY, ERROR], {}, "0 attributes have the role 'price'"),
        ([PRICE, ERROR], {}, "0 attributes have the role 'privacy loss'"),
        ([PRIVACY, PRIVACY, PRICE], {}, "2 attributes have the role 'privacy loss'"),
        ([PRIVACY, PRICE], {"expected": {}}, "nothing is expected of the attribute 'epsilon'"),
        ([PRIVACY, PRICE], {"choice_noise": 0.0}, "a choice_noise of 0"),
        ([PRIVACY, PRICE], {"alternatives": 11}, "11 alternatives"),
        ([PRIVACY, PRICE], {"choice_noise": 1.0}, "everybody is expected to choose alike"),
    ],
)
def test_what_cannot_be_asked_is_refused(attributes: list[object], changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidSurvey, match=words):
        questionnaire_of("x", attributes, replace(ASKED, **changes))  # type: ignore[arg-type]
