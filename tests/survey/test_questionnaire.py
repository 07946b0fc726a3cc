"""From `[questionnaire]` to what is asked."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from dualmandate.errors import InvalidSurvey, InvalidValue, MissingKey
from dualmandate.report.documents.survey import questionnaire_document
from dualmandate.report.survey_words import questionnaire_files
from dualmandate.survey.questionnaire import belief_scale, survey_questionnaire
from dualmandate.survey.survey_file import load_survey

ASKING = """\
[survey]
kind = "choice"
unit = "household"
respondent = "who"
task = "question"
alternative = "plan"
chosen = "picked"

[attributes.loss]
column = "epsilon"
role = "privacy loss"
prior = 0.1
levels = [0.5, 1, 2]

[attributes.fee]
column = "fee"
role = "price"
unit = "EUR"
exchange_rate = 1.1
levels = [0, 5, 20]

[attributes.letters]
column = "letters"
role = "other"
levels = [0, 1]
words = ["no letter", "a letter <each> year"]
heading = "Letters & calls"

[report]
time_base = "per year"

[questionnaire]
title = "Rents & <privacy>"
introduction = "First part.\\n\\nSecond part </script><b>bold</b>."
expected = { loss = 10, letters = 1 }
choice_noise = 8
uncertainty = 0
tasks = 3
blocks = 2
contact = "The office"
"""


def survey_of(folder: Path, *pieces: tuple[str, str]) -> Path:
    text = ASKING
    for old, new in pieces:
        assert old in text, old
        text = text.replace(old, new, 1)
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    return folder / "survey.toml"


def test_words_units_and_columns_are_the_files(tmp_path: Path) -> None:
    asking = survey_questionnaire(load_survey(survey_of(tmp_path)))
    loss, fee, letters = asking.questionnaire.attributes
    assert loss.words[1] == "from 10 in 100 to at most 23 in 100"
    assert fee.words == ("nothing", "€5 per year", "€20 per year")
    assert letters.words == ("no letter", "a letter <each> year")
    assert letters.direction == 0
    files = questionnaire_files(asking)
    header = next(csv.reader(io.StringIO(files["answer-sheet.csv"])))
    assert header == ["who", "block", "question", "plan", "position", "epsilon", "fee", "letters", "picked"]
    assert "a letter <each> year" in files["design.csv"]
    assert questionnaire_document(asking)["respondents"] == asking.respondents


def test_nothing_in_the_file_can_write_the_page(tmp_path: Path) -> None:
    page = questionnaire_files(survey_questionnaire(load_survey(survey_of(tmp_path))))["form.html"]
    assert "Rents &amp; &lt;privacy&gt;" in page
    assert "<b>" not in page
    assert "<each>" not in page
    assert page.count("</script>") == 2
    assert "The office" in page
    assert "<p>First part.</p>" in page
    assert "http" not in page.replace("http-equiv", "")


def test_two_records_are_two_steps_apart(tmp_path: Path) -> None:
    """Told of an attribute under add-or-remove neighbors, ε = 1 moves odds by e²: from 10 to at most 45 in 100."""
    path = survey_of(tmp_path, ("prior = 0.1", 'prior = 0.1\nsecret = "one attribute or another"'))
    words = survey_questionnaire(load_survey(path)).questionnaire.privacy.words
    assert words[1] == "from 10 in 100 to at most 45 in 100"


def test_a_loss_may_be_told_as_a_number(tmp_path: Path) -> None:
    path = survey_of(tmp_path, ("prior = 0.1", 'stated_as = "epsilon"'))
    privacy = survey_questionnaire(load_survey(path)).questionnaire.privacy
    assert privacy.words == ("epsilon = 0.5", "epsilon = 1", "epsilon = 2")
    assert privacy.recorded == (0.5, 1.0, 2.0)


def test_a_belief_that_is_recorded_reads_back_as_the_loss_that_was_said(tmp_path: Path) -> None:
    said = survey_questionnaire(load_survey(survey_of(tmp_path))).questionnaire.privacy
    survey = load_survey(survey_of(tmp_path, ("prior = 0.1", 'prior = 0.1\nrecorded_as = "posterior"')))
    privacy = survey_questionnaire(survey).questionnaire.privacy
    assert privacy.words == said.words
    assert privacy.regressors == said.regressors
    assert privacy.words[1] == "from 10 in 100 to at most 23 in 100"
    assert privacy.recorded[1] == pytest.approx(0.23, abs=1e-5)
    scale = belief_scale(survey.file.attributes["loss"])
    assert scale.epsilon(privacy.recorded) == pytest.approx(said.recorded, rel=1e-6)


def test_what_epsilon_hangs_on_decides_how_many(tmp_path: Path) -> None:
    few = survey_questionnaire(load_survey(survey_of(tmp_path))).respondents
    many = survey_questionnaire(
        load_survey(survey_of(tmp_path, ("tasks = 3", "tasks = 3\nelasticity = 1")))
    ).respondents
    assert many == pytest.approx(9 * few, rel=0.15)


@pytest.mark.parametrize(
    ("pieces", "refusal", "key", "says"),
    [
        ((("levels = [0, 5, 20]", "levels = [0, -5, 20]"),), InvalidValue, "attributes.fee.levels", "below 0"),
        ((("levels = [0.5, 1, 2]", "levels = [1, 1]"),), InvalidSurvey, "attributes.loss.levels", "told apart"),
        (
            (('role = "other"', 'role = "accuracy"\nunit = "USD"'), ("letters = 1 ", "loss2 = 1 ")),
            InvalidValue,
            None,
            "loss2",
        ),
        ((("letters = 1 }", "fee = 1 }"),), InvalidSurvey, "questionnaire", "nothing is expected of"),
        ((("tasks = 3", "tasks = 400"),), InvalidSurvey, "questionnaire", "not 800 tasks"),
        ((("prior = 0.1", 'prior = 0.1\nneighbors = "replace-one"'),), InvalidSurvey, None, "nothing bounds"),
        (
            (("prior = 0.1", 'stated_as = "epsilon"'), ("[report]", '[report]\ninformation_utility = "posterior"')),
            MissingKey,
            "attributes.loss.prior",
            "where the belief starts",
        ),
        ((('words = ["no letter", "a letter <each> year"]', 'words = ["x"]'),), InvalidValue, None, "one wording"),
    ],
)
def test_what_cannot_be_asked(
    tmp_path: Path, pieces: tuple[tuple[str, str], ...], refusal: type[Exception], key: str | None, says: str
) -> None:
    path = survey_of(tmp_path, *pieces)
    with pytest.raises(refusal) as caught:
        survey_questionnaire(load_survey(path))
    where = caught.value.where  # type: ignore[attr-defined]
    assert where.file == str(path)
    assert where.line >= 1
    assert key is None or where.key == key
    assert says in str(caught.value)
