"""The reference pages of what people write and of what leaves, written from the models: they cannot differ.

To write them again: python scripts/manual.py docs/reference
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dualmandate
from dualmandate.report.documents.schemas import DOCUMENTS, schema

Node = dict[str, Any]

HEADINGS = {
    "ProgramTable": "[program]",
    "PopulationTable": "[population]",
    "AttributeTable": "[population.attributes.NAME]",
    "DistributionTable": "[population.attributes.NAME.distribution]",
    "LogarithmicBins": "[population.attributes.NAME.logarithmic_bins]",
    "SharesTable": "Expected shares",
    "OneRecordTable": "[population.one_record_per_unit]",
    "SourceTable": "[population.source]",
    "HierarchyTable": "[population.hierarchies.NAME]",
    "InvariantTable": "[[invariants]]",
    "WorkloadTable": "[[workload]]",
    "FitnessForUse": "[workload.fitness_for_use]",
    "AddedUp": "An attribute in `by`",
    "DetailTable": "[[workload.details]]",
    "DecisionTable": "[workload.decision]",
    "TitleITable": "[workload.decision.title_i]",
    "WealthTable": "[[workload.wealth]]",
    "RatioTable": "[[ratios]]",
    "MechanismTable": "[mechanism]",
    "PreferencesTable": "[preferences]",
    "GroupTable": "[[preferences.groups]]",
    "HorizonTable": "[preferences.horizon]",
    "EstimatesTable": "[preferences.estimates]",
    "LimitsTable": "[limits]",
    "ParticipationTable": "[participation]",
    "CollectionTable": "[collection]",
    "RandomizedResponseTable": "[randomized_response]",
    "SimulationTable": "[simulation]",
    "ReleasesTable": "[horizon]",
    "MarketsTable": "[markets]",
    "SecretTable": "[secret]",
    "UncertaintyTable": "[uncertainty]",
    "ReadingTable": "[[readings]]",
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
    "HorizonTable": "[report.horizon]",
    "PriorTable": "[prior.NAME]",
    "EvidenceTable": "[[source]]",
    "QuestionnaireTable": "[questionnaire]",
    "CalibratedNumber": "Calibrated numbers",
}
TABLES_HEADINGS = {
    "HeadTable": "[tables]",
    "RecordedTable": "[population]",
    "CountsTable": "[[counts]]",
    "StatisticsTable": "[[statistics]]",
    "MagnitudesTable": "[[magnitudes]]",
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

TABLES_PREFACE = """\
# The tables file

`dualmandate audit DIR` reads `tables.toml` in the folder: which published tables its CSV files hold, and what can be
recorded at all. Unknown keys are refused, with the nearest known one; `dualmandate schema tables` prints the JSON
Schema. Attacks on counts are judged by `--confidential FILE`, a file of records; attacks on amounts by
`--confidential DIR`, a folder inside the wall with files of the same names and columns, nothing suppressed in them.

This page is written from the models that read tables files.
"""

TABLES_EXAMPLE = """\
## An example

Pay by county and sector, and employment of three industries in three quarters, one of them suppressed in the second
with another to protect it:

```toml file=pay/tables.toml
[tables]
schema = 1
name   = "pay and employment"

[[magnitudes]]
name  = "pay by county and sector"
file  = "pay.csv"
by    = ["county", "sector"]
total = "all"

[[magnitudes]]
name   = "employment"
file   = "employment.csv"
cell   = "industry"
parent = "part_of"
period = "quarter"
size   = "establishments"
share  = 0.1
```

```csv file=pay/pay.csv
county,sector,value
a,x,(D)
a,y,(D)
a,all,102
b,x,(D)
b,y,(D)
b,all,53
all,x,5
all,y,150
all,all,155
```

```csv file=pay/employment.csv
industry,part_of,quarter,establishments,value
all,,1,40,100
all,,2,41,120
all,,3,41,140
mining,all,1,2,20
mining,all,2,2,(D)
mining,all,3,2,28
farms,all,1,5,30
farms,all,2,5,(D)
farms,all,3,5,42
shops,all,1,33,50
shops,all,2,34,60
shops,all,3,34,70
```

```console
$ dualmandate audit pay
pay by county and sector that follow exactly: 0 of 4
pay by county and sector that fail a protection interval of ±20 % whatever they hold: 2 of 4
employment whose cell is published in another period: 2 of 2
```
"""

DOCUMENTS_PREFACE = """\
# Documents

What a command prints under `--json`, and every JSON file that it writes, is a document: one JSON object that names its
schema, with these keys and no others, in this order. Numbers are finite; a privacy loss is also given as an exact text,
`"6319/2500"`. A version that was published stays readable. `dualmandate schema NAME` prints the JSON Schema.

In Python the models read them: `PlanDocument.model_validate_json(text)`, from `dualmandate.report.documents.plan`,
gives a plan with typed fields, or says which key is wrong; `DOCUMENTS` in `dualmandate.report.documents.schemas` holds
the model of each document by its name.

This page is written from the models.
"""


PYTHON_PREFACE = """\
# Stable names in Python

These names stay: `from dualmandate import load`. Each opens when it is first used, so that importing the package costs
next to nothing. Each room (`dualmandate.choice`, `dualmandate.frontier`, …) has more, which may change.
[The whole road in Python](../how-to/python.md) uses them in order. Wrong arguments are refused as everywhere, with
what, why, and what instead; every refusal is a `Refusal`.

This page is written from the signatures and docstrings.
"""


def python_page() -> str:
    """The whole page of the stable names, in Markdown."""
    named = [name for name in dualmandate.__all__ if name != "__version__"]
    lines = [PYTHON_PREFACE, "| name | what |\n| --- | --- |"]
    lines += [f"| [`{name}`](#{name.lower()}) | {_first(getattr(dualmandate, name))} |" for name in named]
    for name in named:
        thing = getattr(dualmandate, name)
        lines.append(f"\n## {name}\n\n{_signature(name, thing)}{_told(thing)}")
        lines += [*_members(thing)] if inspect.isclass(thing) else []
    return "\n".join(lines) + "\n"


def _first(thing: object) -> str:
    return " ".join(_told(thing).split("\n\n")[0].split()).replace("|", "\\|")


def _told(thing: object) -> str:
    return inspect.cleandoc(inspect.getdoc(thing) or "")


def _signature(name: str, thing: Any) -> str:
    """How it is called, one parameter a line where there are many; nothing of a class that is not made by its users."""
    if inspect.isclass(thing) and name not in MADE_BY_USERS:
        return ""
    parameters = [_parameter(each) for each in inspect.signature(thing).parameters.values() if each.name != "self"]
    plain = f"{name}({', '.join(parameters)})"
    if len(plain) > 100:
        plain = f"{name}(\n" + "".join(f"    {each},\n" for each in parameters) + ")"
    return f"```text\n{plain}\n```\n\n"


MADE_BY_USERS = {"Account", "DatabaseTable", "LinearCost", "Protection", "Tabulation", "TableValue"}


def _parameter(each: inspect.Parameter) -> str:
    star = "**" if each.kind is each.VAR_KEYWORD else "*" if each.kind is each.VAR_POSITIONAL else ""
    default = "" if each.default is inspect.Parameter.empty else f" = {_default(each.default)}"
    kind = "" if each.annotation is inspect.Parameter.empty else f": {each.annotation}"
    return f"{star}{each.name}{kind}{default}"


def _default(value: object) -> str:
    text = repr(value)
    return "…" if "<" in text or len(text) > 30 else text


def _members(thing: type) -> Iterator[str]:
    """What it offers, a row each."""
    rows = []
    for name in dict.fromkeys(name for kind in thing.__mro__[:-1] for name in vars(kind)):
        member = inspect.getattr_static(thing, name)
        if name[0] == "_" or not (words := _of_member(member)):
            continue
        rows.append(f"| `{name}{words.strip()}` | {_first(getattr(member, '__func__', member))} |")
    if rows:
        yield "\n| it offers | |\n| --- | --- |"
        yield from rows


def _of_member(member: object) -> str:
    """How it is used, in a word; nothing where it says nothing of itself."""
    called = getattr(member, "__func__", member)
    if isinstance(member, property) or type(member).__name__ == "cached_property":
        return " " if _told(member) else ""
    if not inspect.isfunction(called) or not _told(called):
        return ""
    names = [n for n in inspect.signature(called).parameters if n not in ("self", "cls")]
    return f"({', '.join(names)})"


def page() -> str:
    """The whole page of the program file, in Markdown."""
    return _page(schema("program"), HEADINGS, PREFACE)


def survey_page() -> str:
    """The whole page of the survey file, in Markdown."""
    return _page(schema("survey"), SURVEY_HEADINGS, SURVEY_PREFACE)


def tables_page() -> str:
    """The whole page of the tables file, in Markdown."""
    return _page(schema("tables"), TABLES_HEADINGS, TABLES_PREFACE) + "\n" + TABLES_EXAMPLE


def documents_page() -> str:
    """The whole page of the documents that leave, in Markdown."""
    written = {name: schema(name) for name in DOCUMENTS}
    uses = Counter(part for each in written.values() for part in each.get("$defs", {}))
    parts: Node = {name: node for each in written.values() for name, node in each.get("$defs", {}).items()}
    lines = [DOCUMENTS_PREFACE, "| document | what it says |\n| --- | --- |"]
    lines += [f"| [`{_version(each)}`](#{_anchor(_version(each))}) | {each['title']}. |" for each in written.values()]
    lines.append("")
    for each in written.values():
        lines += _table(f"## {_version(each)}", each | {"description": f"{each['title']}."}, parts)
        for name in each.get("$defs", {}):
            lines += _table(f"### {_heading(name)}", parts[name], parts) if uses[name] == 1 else []
    lines.append("## Parts of several documents\n")
    for name in sorted(name for name, count in uses.items() if count > 1):
        lines += _table(f"### {_heading(name)}", parts[name], parts)
    return "\n".join(lines)


def _version(document: Node) -> str:
    return str(document["properties"]["schema"]["const"])


def _anchor(heading: str) -> str:
    return heading.replace("/", "").replace(" ", "-")


def _heading(name: str) -> str:
    """What a part is called: `FrontierPointPart` is a frontier point."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Part").removesuffix("Document")).lower()


def _page(schema: Node, headings: dict[str, str], preface: str) -> str:
    definitions: Node = schema["$defs"]
    unknown = set(definitions) - set(headings) - set(HEADINGS)  # what the page of the program file tells is told there
    assert not unknown, f"tables without a heading: {sorted(unknown)}"
    parts = [preface]
    for name, heading in headings.items():
        parts += _table(f"## {heading}", definitions[name])
    return "\n".join(parts)


def _table(heading: str, table: Node, parts: Node | None = None) -> Iterator[str]:
    """The keys of a table that people write; of a document, where the parts it refers to are given."""
    yield f"{heading}\n\n{table.get('description', '')}\n"
    yield "| key | value | meaning |\n| --- | --- | --- |"
    required = table.get("required", [])
    for key, node in table["properties"].items():
        words = _words(node)
        if key not in required:
            default = node.get("default")
            unstated = "optional" if parts is None else "may be left out"
            words += f"; {unstated}" if default in (None, {}, []) else f"; {_literal(default)} if not stated"
        yield f"| `{key}` | {words} | {_meaning(node, parts or {})} |"
    yield ""


def _meaning(node: Node, parts: Node) -> str:
    """What a key says: its own words, or those of what it holds."""
    if "description" in node:
        return " ".join(node["description"].split())
    if "$ref" in node:
        return _meaning(parts.get(node["$ref"].rsplit("/", 1)[1], {}), parts)
    inside = [*node.get("anyOf", []), *node.get("oneOf", []), node.get("items"), node.get("additionalProperties")]
    return next((words for each in inside if isinstance(each, dict) and (words := _meaning(each, parts))), "")


def _literal(value: object) -> str:
    return {True: "`true`", False: "`false`"}[value] if isinstance(value, bool) else f"`{value}`"


def _words(node: Node) -> str:
    """The value that a key takes, in words."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        heading = HEADINGS.get(name) or SURVEY_HEADINGS.get(name)
        return f"table ({heading})" if heading else f"[{_heading(name)}](#{_anchor(_heading(name))})"
    either = node.get("anyOf", node.get("oneOf", []))
    if either and "properties" not in node:
        return " or ".join(dict.fromkeys(_words(option) for option in either))
    if "const" in node or "enum" in node:
        return ", ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return f"list of: {_words(node.get('items', {}))}"
    if node.get("type") == "object":
        values = next(iter(node.get("patternProperties", {}).values()), node.get("additionalProperties", {}))
        return "table" if values is True else f"table of: {_words(values)}"
    return _scalar(node)


def _scalar(node: Node) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        return "text or whole number"
    words = {
        "null": "null",
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "`true`, `false`",
    }[kind or ""]
    bounds = [
        f"{sign} {node[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in node
    ]
    return f"{words} {', '.join(bounds)}".strip()


PAGES = {
    "program-file.md": page,
    "survey-file.md": survey_page,
    "tables-file.md": tables_page,
    "documents.md": documents_page,
    "python.md": python_page,
}

if __name__ == "__main__":
    for written, text in PAGES.items():
        (Path(sys.argv[1]) / written).write_text(text(), encoding="utf-8")
