"""A questionnaire on paper and on the web: the design and an answer sheet as CSV, and what a web form needs to know.

The answers that the form writes have the columns of the answer sheet, one row an alternative that was shown, so that
both are read alike.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from dualmandate.elicitation.questionnaire import LABELS, Questionnaire, Task

BLOCK, POSITION = "block", "position"


def answer_columns(questionnaire: Questionnaire) -> tuple[str, ...]:
    """The columns of the answers: who, which task, which alternative, where it stood, what it was like, and chosen."""
    columns = questionnaire.columns
    attributes = (attribute.column for attribute in questionnaire.attributes)
    return (columns.respondent, BLOCK, columns.task, columns.alternative, POSITION, *attributes, columns.chosen)


def answer_sheet(questionnaire: Questionnaire) -> str:
    """A CSV file to fill in: copy the rows of one block for each respondent, write who, and 1 or 0 into `chosen`."""
    rows = (
        ("", task.block, task.number, LABELS[place], place + 1, *recorded, "")
        for task in questionnaire.tasks()
        for place, recorded in enumerate(_recorded(questionnaire, task))
    )
    return _csv(answer_columns(questionnaire), rows)


def design_table(questionnaire: Questionnaire) -> str:
    """The tasks in words as a CSV file, one row an alternative: what was shown, for the record and for printing."""
    columns = questionnaire.columns
    headings = (f"{attribute.column} in words" for attribute in questionnaire.attributes)
    recorded = (attribute.column for attribute in questionnaire.attributes)
    rows = (
        (task.block, task.number, LABELS[place], *values, *_words(questionnaire, task)[place])
        for task in questionnaire.tasks()
        for place, values in enumerate(_recorded(questionnaire, task))
    )
    return _csv((BLOCK, columns.task, columns.alternative, *recorded, *headings), rows)


def form_content(questionnaire: Questionnaire) -> dict[str, object]:
    """What the web form shows and records, as JSON: numbers are texts, written just as the answer sheet writes them."""
    tasks = [
        {
            "task": str(task.number),
            "block": str(task.block),
            "alternatives": [
                {
                    "label": LABELS[place],
                    "words": list(_words(questionnaire, task)[place]),
                    "recorded": [_text(value) for value in recorded],
                }
                for place, recorded in enumerate(_recorded(questionnaire, task))
            ],
        }
        for task in questionnaire.tasks()
    ]
    return {
        "columns": list(answer_columns(questionnaire)),
        "headings": [attribute.heading for attribute in questionnaire.attributes],
        "blocks": questionnaire.design.blocks,
        "tasks": tasks,
    }


def _recorded(questionnaire: Questionnaire, task: Task) -> list[tuple[float, ...]]:
    return [
        tuple(attribute.recorded[level] for attribute, level in zip(questionnaire.attributes, levels, strict=True))
        for levels in task.levels
    ]


def _words(questionnaire: Questionnaire, task: Task) -> list[tuple[str, ...]]:
    return [
        tuple(attribute.words[level] for attribute, level in zip(questionnaire.attributes, levels, strict=True))
        for levels in task.levels
    ]


def _csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value) if isinstance(value, float) else value for value in row] for row in rows)
    return text.getvalue()


def _text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(value)) if value.is_integer() else repr(value)
