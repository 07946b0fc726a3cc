"""Money that is not dollars: one currency, declared once, in all words, units, pictures, JSON and pages."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.survey.surveys import BIDS, CHOICE, HEADER, bids, choices, write

from dualmandate.errors import IncompatibleUnits, InvalidValue, Refusal
from dualmandate.planning.program import load
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.documents.survey import preferences_document, questionnaire_document
from dualmandate.report.dossier import plan_figures, write_dossier
from dualmandate.report.figures import what_if_choices
from dualmandate.report.plan_words import plan_words
from dualmandate.report.survey_words import questionnaire_files, words
from dualmandate.survey.estimates import SurveyEstimates, measure
from dualmandate.survey.questionnaire import survey_questionnaire
from dualmandate.survey.survey_file import load_survey

PROGRAM = """\
[program]
schema = 1
name = "incomes"
currency = "EUR"

[population]
account = "residents"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 1000, unit = "person", source = "register" }
attributes.region = ["north", "south"]
attributes.income = { lower = 0, upper = 1000, grid = 100 }

[[workload]]
name = "people by region"
by = ["region"]
value_of_accuracy = { value = 3, unit = "EUR per person^2", source = "assumed" }
value_of_publishing = { value = 1e4, unit = "EUR", source = "assumed" }

[[workload]]
name = "income by region"
by = ["region"]
sum_of = "income"
unit = "EUR"
consequence = { value = 0.01, unit = "EUR^2 per EUR^2", source = "assumed", standard_error = 0.002 }
fitness_for_use = { largest_root_mean_squared_consequence = 1e4 }
existing_error = { value = 50, unit = "EUR", source = "sample" }
total = { value = 500000, unit = "EUR", source = "register" }

[mechanism]
noise = "best"
measured = "apart"

[preferences]
information_utility = "linear"
price_of_squared_misallocation = { value = 0.5, unit = "EUR per EUR^2", source = "assumed", least = 0.2, largest = 0.9 }

[[preferences.groups]]
name = "young"
size = { value = 400, unit = "people", source = "register" }
mean_disclosure_cost = { value = 2, unit = "EUR per person per epsilon", source = "assumed", standard_error = 0.5 }

[[preferences.groups]]
name = "old"
size = { value = 600, unit = "people", source = "register" }
mean_disclosure_cost = { value = 8, unit = "EUR per person per epsilon", source = "assumed" }

[limits]
largest_epsilon = 50

[participation]
rate_without_loss = 0.95
decline_per_epsilon = 0.001
source = "assumed"

[horizon]
discount_factor = 0.97
releases = [0, 10]
largest_total = 10
source = "assumed"

[markets]
largest_user_share = 0.2
budget = { value = 1e5, unit = "EUR", source = "assumed" }
harm = { value = 10, unit = "EUR per person", source = "assumed" }
target_error = 0.3
source = "assumed"

[uncertainty]
spread_of_answers = 1.5
parameter = "mean_disclosure_cost of young"
cost_per_respondent = { value = 0.5, unit = "EUR", source = "assumed" }
source = "assumed"

[social_choice]
baseline = { value = 0, unit = "EUR per person", source = "assumed" }
disagreement_epsilon = 0.5
"""


def without_dollars(said: str) -> str:
    assert "USD" not in said
    assert "dollar" not in said.casefold()
    return said


@pytest.mark.parametrize("currency", ["EUR", "JPY", "CHF"])
def test_a_plan_in_another_currency(tmp_path: Path, currency: str) -> None:
    path = tmp_path / "program.toml"
    path.write_text(PROGRAM.replace("EUR", currency), encoding="utf-8")
    plan = load(path).plan()
    said = without_dollars(plan_words(plan))
    assert f"Society loses {currency} " in said
    assert f"A price of 0.5 {currency} per squared {currency}" in " ".join(said.split())
    assert "a usual one" not in said  # of 20 million dollars: no budget of another currency
    assert not [row for row in plan.robustness.readings if "risk aversion" in row.reading]
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    without_dollars(json.dumps(document, ensure_ascii=False))
    assert document["program"]["currency"] == currency
    for figure in plan_figures(plan, what_if_choices(plan.frontier, plan.welfare, plan.limits)):
        drawn = without_dollars(json.dumps(figure.specification(), ensure_ascii=False))
        assert "$" not in drawn
        without_dollars(" ".join(cell for row in figure.table.written() for cell in row) + figure.sentence)
    if currency == "EUR":  # drawing takes seconds
        write_dossier(plan, tmp_path / "out")
        page = without_dollars((tmp_path / "out" / "dossier.html").read_text(encoding="utf-8"))
        assert f"<dt>cost in privacy</dt><dd>{currency} " in page
        for drawing in (tmp_path / "out" / "figures").glob("*.svg"):
            assert "$" not in without_dollars(drawing.read_text(encoding="utf-8"))


def test_the_numbers_do_not_depend_on_the_name_of_the_money(tmp_path: Path) -> None:
    found = []
    for currency in ("USD", "NOK"):
        (tmp_path / "program.toml").write_text(PROGRAM.replace("EUR", currency), encoding="utf-8")
        found.append(load(tmp_path / "program.toml").plan())
    assert found[0].choice.epsilon == found[1].choice.epsilon
    assert found[0].choice.welfare == found[1].choice.welfare
    assert found[0].digest != found[1].digest  # the file says something else


@pytest.mark.parametrize(
    ("old", "new", "kind", "key", "says"),
    [
        ('currency = "EUR"', 'currency = "EURO"', InvalidValue, "program.currency", "EUR"),
        ('currency = "EUR"', 'currency = "euro"', InvalidValue, "program.currency", "ISO 4217"),
        ('currency = "EUR"', "currency = 3", InvalidValue, "program.currency", "text"),
        ('currency = "EUR"', "", IncompatibleUnits, "workload[1].unit", 'currency = "EUR"'),
        ('unit = "EUR"\ncons', 'unit = "GBP"\ncons', IncompatibleUnits, "workload[1].unit", "is in GBP"),
        ('"EUR per person^2"', '"USD per person^2"', IncompatibleUnits, "workload[0].value_of_accuracy", "is in USD"),
        ('"EUR per person per epsilon", source = "assumed" }', '"CHF per person per epsilon", source = "assumed" }',
         IncompatibleUnits, "preferences.groups[1].mean_disclosure_cost", "convert it to EUR"),
        ('unit = "person"\n', 'unit = "EUR"\n', IncompatibleUnits, "population.unit", "cannot be a unit"),
    ],
)  # fmt: skip
def test_other_money_is_refused_where_it_stands(
    tmp_path: Path, old: str, new: str, kind: type[Refusal], key: str, says: str
) -> None:
    assert old in PROGRAM
    (tmp_path / "program.toml").write_text(PROGRAM.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(kind) as caught:
        load(tmp_path / "program.toml")
    assert says in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.key == key
    assert caught.value.where.line is not None


ASKED = """
[questionnaire]
title = "Privacy and its price"
expected = { epsilon = 1000, error = 0.4 }
choice_noise = 1000
tasks = 4
blocks = 1
"""
LEVELS = {
    'column = "price"': "levels = [0, 500, 1000, 3000]",
    'column = "epsilon"': "levels = [0.5, 1, 2, 4]",
    'column = "grant_error"': "levels = [500, 1500, 3500]",
}


def test_a_survey_in_another_currency(tmp_path: Path) -> None:
    text = CHOICE.replace("USD", "EUR").replace("[survey]\n", '[survey]\ncurrency = "EUR"\n')
    people = '\npeople = { value = 46e6, unit = "child", source = "CCD" }\nnumbers = 13000\n'
    found = measure(load_survey(write(tmp_path, text + people, HEADER, choices(60))))
    assert isinstance(found, SurveyEstimates)
    block = without_dollars(found.block() or "")
    assert 'unit = "EUR per child per epsilon"' in block
    assert 'unit = "EUR per EUR"' in block
    without_dollars(words(found))
    document = preferences_document(found)
    jsonschema.validate(document, schema("preferences"))
    without_dollars(json.dumps(document))
    assert {worth["unit"] for worth in document["worths"]} == {"EUR"}
    for column, levels in LEVELS.items():
        text = text.replace(column, f"{column}\n{levels}")
    (tmp_path / "asking.toml").write_text(text + ASKED, encoding="utf-8")
    asking = survey_questionnaire(load_survey(tmp_path / "asking.toml"))
    assert "€3,000" in without_dollars("".join(questionnaire_files(asking).values()))
    without_dollars(json.dumps(questionnaire_document(asking)) + asking.words())


def test_bids_are_in_the_currency_of_the_survey(tmp_path: Path) -> None:
    text = BIDS.replace('unit = "USD"\n', "").replace("[survey]\n", '[survey]\ncurrency = "SEK"\n')
    found = measure(load_survey(write(tmp_path, text, ("id", "bid", "yes"), bids())))
    assert isinstance(found, SurveyEstimates)
    assert found.found[0].number.unit == "SEK per person per epsilon"
    assert "SEK (standard error" in without_dollars(words(found))
    paid = text.replace("[scenario]\n", '[scenario]\nunit = "EUR"\nexchange_rate = 11.5\n')
    other = measure(load_survey(write(tmp_path, paid, ("id", "bid", "yes"), bids())))
    assert isinstance(other, SurveyEstimates)
    assert other.found[0].number.value == pytest.approx(11.5 * found.found[0].number.value, rel=1e-12)
    for wrong in (paid.replace("exchange_rate = 11.5\n", ""), paid.replace('"EUR"', '"SEK"')):
        with pytest.raises(Refusal) as caught:
            measure(load_survey(write(tmp_path, wrong, ("id", "bid", "yes"), bids())))
        assert caught.value.where is not None
        assert str(caught.value.where.key).startswith("scenario.")
