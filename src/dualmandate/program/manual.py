"""The reference page of the program file, written from the models that read it, so that the two cannot differ.

To write it again: python -m dualmandate.program.manual docs/reference/program-file.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualmandate.program.schema import ProgramFile

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
    "MechanismTable": "[mechanism]",
    "PreferencesTable": "[preferences]",
    "GroupTable": "[[preferences.groups]]",
    "LimitsTable": "[limits]",
    "PublicationTable": "[publication]",
    "CalibratedNumber": "Calibrated numbers",
}

PREFACE = """\
# The program file

A program file is TOML. Every number in it is public. Unknown keys are refused, with the nearest known one. Every inline
table has a long form: `attributes.age = { from = 0, to = 115 }` is `[population.attributes.age]` with two lines below.
`dualmandate init blank` writes a commented file to start from, `dualmandate schema program` prints the JSON Schema.

This page is written from the models that read program files.
"""


def page() -> str:
    """The whole page, in Markdown."""
    schema = ProgramFile.model_json_schema()
    definitions: Node = schema["$defs"]
    unknown = set(definitions) - set(HEADINGS)
    assert not unknown, f"tables of the program file without a heading: {sorted(unknown)}"
    parts = [PREFACE]
    for name, heading in HEADINGS.items():
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
        return f"table ({HEADINGS[node['$ref'].rsplit('/', 1)[1]]})"
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
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
