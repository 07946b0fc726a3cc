"""The reference page of the program file is what the models say."""

from __future__ import annotations

from pathlib import Path

from dualmandate.program.manual import page
from dualmandate.program.schema import ProgramFile

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "program-file.md"


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run: python -m dualmandate.program.manual docs/reference/program-file.md"


def test_every_key_has_a_meaning() -> None:
    for name, table in ProgramFile.model_json_schema()["$defs"].items():
        for key, node in table["properties"].items():
            assert node.get("description"), f"{name}.{key}"
            assert f"| `{key}` |" in page()
