"""The reference pages of program, survey and tables files are what the models say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from dualmandate.audit.targets.tables_schema import TablesFile
from dualmandate.program.schema import ProgramKeys
from dualmandate.report.manual import page, survey_page, tables_page
from dualmandate.survey.schema import SurveyFile

PAGES = Path(__file__).parents[2] / "docs" / "reference"
WRITTEN = [
    ("program-file.md", page, ProgramKeys),
    ("survey-file.md", survey_page, SurveyFile),
    ("tables-file.md", tables_page, TablesFile),
]
ELSEWHERE = {"tables-file.md": {"AttributeTable", "HierarchyTable"}}  # told on the page of the program file


@pytest.mark.parametrize(("name", "text", "root"), WRITTEN, ids=["program", "survey", "tables"])
def test_the_page_is_up_to_date(name: str, text: Callable[[], str], root: type[BaseModel]) -> None:
    written = (PAGES / name).read_text(encoding="utf-8")
    again = "python -m dualmandate.report.manual docs/reference/{program,survey,tables}-file.md"
    assert written == text(), f"run: {again}"


@pytest.mark.parametrize(("name", "text", "root"), WRITTEN, ids=["program", "survey", "tables"])
def test_every_key_has_a_meaning(name: str, text: Callable[[], str], root: type[BaseModel]) -> None:
    made = text()
    for table_name, table in root.model_json_schema()["$defs"].items():
        if table_name in ELSEWHERE.get(name, ()):
            continue
        for key, node in table["properties"].items():
            assert node.get("description"), f"{table_name}.{key}"
            assert f"| `{key}` |" in made
