"""The reference pages are what the models say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from dualmandate.audit.targets.tables_folder import TablesFile
from dualmandate.program.schema import ProgramKeys
from dualmandate.report.documents.schemas import DOCUMENTS, schema
from dualmandate.survey.schema import SurveyFile
from manual import PAGES, documents_page, page, survey_page, tables_page

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
WRITTEN = [
    ("program-file.md", page, ProgramKeys),
    ("survey-file.md", survey_page, SurveyFile),
    ("tables-file.md", tables_page, TablesFile),
]
# Told on the page of the program file.
ELSEWHERE = {
    "tables-file.md": {"AttributeTable", "DistributionTable", "HierarchyTable", "LogarithmicBins", "SharesTable"}
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: python scripts/manual.py docs/reference"


def test_every_key_of_a_document_has_a_meaning() -> None:
    made = documents_page()
    rows = [line for line in made.splitlines() if line.startswith("| ")]
    assert not [row for row in rows if row.split(" | ")[-1] in ("", "|")]
    for name in DOCUMENTS:
        written = schema(name)
        for table in (written, *written.get("$defs", {}).values()):
            assert all(f"| `{key}` |" in made for key in table["properties"])


@pytest.mark.parametrize(("name", "text", "root"), WRITTEN, ids=["program", "survey", "tables"])
def test_every_key_has_a_meaning(name: str, text: Callable[[], str], root: type[BaseModel]) -> None:
    made = text()
    for table_name, table in root.model_json_schema()["$defs"].items():
        if table_name in ELSEWHERE.get(name, ()):
            continue
        for key, node in table["properties"].items():
            assert node.get("description"), f"{table_name}.{key}"
            assert f"| `{key}` |" in made
