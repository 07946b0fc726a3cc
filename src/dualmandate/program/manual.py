"""The reference pages of program and survey files, written from the models that read them, so that they cannot differ.

To write them again: python -m dualmandate.program.manual docs/reference/program-file.md docs/reference/survey-file.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualmandate.program.schema import ProgramFile
from dualmandate.program.schema.survey import SurveyFile

Node = dict[str, Any]

HEADINGS = {
    "ProgramTable": "[program]",
    "PopulationTable": "[population]",
    "AttributeTable": "[population.attributes.NAME]",
    "SourceTable": "[population.source]",
    "HierarchyTable": "[population.hierarchies.NAME]",
    "InvariantTable": "[[invariants]]",
    "WorkloadTable": "[[workload]]",
    "FitnessForUse": "[workload.fitness_for_use]",
    "DetailTable": "[[workload.details]]",
    "MechanismTable": "[mechanism]",
    "PreferencesTable": "[preferences]",
    "GroupTable": "[[preferences.groups]]",
    "LimitsTable": "[limits]",
    "ParticipationTable": "[participation]",
    "ReleasesTable": "[horizon]",
    "MarketsTable": "[markets]",
    "UncertaintyTable": "[uncertainty]",
    "SocialChoiceTable": "[social_choice]",
    "PublicationTable": "[publication]",
    "CalibratedNumber": "Calibrated numbers",
}
SURVEY_HEADINGS = {
    "SurveyTable": "[survey]",
    "SurveyAttribute": "[attributes.NAME]",
    "ScenarioTable": "[scenario]",
    "ModelTable": "[model]",
    "ReportTable": "[report]",
    "DiscountingTable": "[report.horizon]",
    "PriorTable": "[prior.NAME]",
    "EvidenceTable": "[[source]]",
    "QuestionnaireTable": "[questionnaire]",
    "CalibratedNumber": "Calibrated numbers",
}

PREFACE = """\
# The program file

A program file is TOML. Every number in it is public. Unknown keys are refused, with the nearest known one. Every inline
table has a long form: `attributes.age = { from = 0, to = 115 }` is `[population.attributes.age]` with two lines below.
`dualmandate init blank` writes a commented file to start from, `dualmandate schema program` prints the JSON Schema.

This page is written from the models that read program files.
"""

SURVEY_PREFACE = """\
# The survey file

A survey file is TOML. It says how people were asked, where their answers lie, how tastes are estimated, and what the
numbers are for; `dualmandate preferences` reads it ([from a survey to epsilon](../tutorial/from-survey-to-epsilon.md)).
The file is public; the answers are not: they are CSV, one row an alternative that was shown (or an answer to bids, or a
respondent), and no message repeats a value of them. `dualmandate init survey` writes a survey file to start from,
`dualmandate schema survey` prints the JSON Schema.

This page is written from the models that read survey files.
"""


def page() -> str:
    """The whole page of the program file, in Markdown."""
    return _page(ProgramFile.model_json_schema(), HEADINGS, PREFACE)


def survey_page() -> str:
    """The whole page of the survey file, in Markdown."""
    return _page(SurveyFile.model_json_schema(), SURVEY_HEADINGS, SURVEY_PREFACE)


def _page(schema: Node, headings: dict[str, str], preface: str) -> str:
    definitions: Node = schema["$defs"]
    unknown = set(definitions) - set(headings)
    assert not unknown, f"tables without a heading: {sorted(unknown)}"
    parts = [preface]
    for name, heading in headings.items():
        parts += _table(heading, definitions[name])
    return "\n".join(parts)


def _table(heading: str, table: Node) -> Iterator[str]:
    yield f"## {heading}\n\n{table.get('description', '')}\n"
    yield "| key | value | meaning |\n| --- | --- | --- |"
    required = table.get("required", [])
    for key, node in table["properties"].items():
        words = _words(node)
        if key not in required:
            default = node.get("default")
            words += "; optional" if default in (None, {}, []) else f"; {_literal(default)} if not stated"
        yield f"| `{key}` | {words} | {' '.join(node.get('description', '').split())} |"
    yield ""


def _literal(value: object) -> str:
    return {True: "`true`", False: "`false`"}[value] if isinstance(value, bool) else f"`{value}`"


def _words(node: Node) -> str:
    """The value that a key takes, in words."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        return f"table ({HEADINGS.get(name) or SURVEY_HEADINGS[name]})"
    options = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
    if options:
        return " or ".join(dict.fromkeys(_words(option) for option in options))
    if "const" in node or "enum" in node:
        return ", ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return f"list of: {_words(node.get('items', {}))}"
    if node.get("type") == "object":
        return f"table of: {_words(node.get('additionalProperties', {}))}"
    return _scalar(node)


def _scalar(node: Node) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        return "text or whole number"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`"}[kind or ""]
    bounds = [
        f"{sign} {node[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in node
    ]
    return f"{words} {', '.join(bounds)}".strip()


if __name__ == "__main__":
    for written, text in zip(sys.argv[1:], (page(), survey_page()), strict=False):
        Path(written).write_text(text, encoding="utf-8")
