"""A questionnaire as files to hand out: the tasks in words, a sheet to fill in, and a page that asks."""

from __future__ import annotations

from dualmandate.elicitation.questionnaire import answer_sheet, design_table, form_content
from dualmandate.report.pages import rendered
from dualmandate.survey.questionnaire import SurveyQuestionnaire

FORM, SHEET, DESIGN = "form.html", "answer-sheet.csv", "design.csv"


def questionnaire_files(asking: SurveyQuestionnaire) -> dict[str, str]:
    """What is written: the tasks in words, a sheet to fill in, and a page that asks."""
    asked = asking.questionnaire
    return {DESIGN: design_table(asked), SHEET: answer_sheet(asked), FORM: _form(asking)}


def _form(asking: SurveyQuestionnaire) -> str:
    table, questionnaire = asking.survey.file.questionnaire, asking.questionnaire
    assert table is not None
    return rendered(
        "questionnaire.html",
        title=table.title,
        introduction=[part for part in (table.introduction or "").split("\n\n") if part.strip()],
        about=table.about,
        contact=table.contact,
        unit=asking.survey.units.singular,
        tasks=questionnaire.tasks_each,
        privacy=questionnaire.privacy,
        price=questionnaire.price,
        accuracy=next((each for each in questionnaire.attributes if each.role == "accuracy"), None),
        data=form_content(questionnaire),
    )
