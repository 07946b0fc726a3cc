from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate.apps.row_tables import told
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.527644, "2.527644"),
        (2.5, "2.5"),
        (13_000.0, "13,000"),
        (46e6, "46,000,000"),
        (6.44e10, "64,400,000,000"),
        (-2.441704e11, "−244,170,400,000"),
        (5.2e18, "5.2 × 10¹⁸"),
        (0.0093119239, "0.009311924"),
        (1e-9, "1 × 10⁻⁹"),
        (0, "0"),
        (None, "–"),
        ("QA⁺", "QA⁺"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float | str | None, text: str) -> None:
    assert told(value, 7) == text


def test_the_paper_beside_what_is_right(command: Command) -> None:
    outcome = command("replicate", "--json")
    assert outcome.status == 0, outcome.err
    jsonschema.validate(outcome.document, schema("replicate"))
    rows = outcome.document["rows"]
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["section"] in outcome.err


def test_the_tables_read_well_in_words(command: Command) -> None:
    outcome = command("replicate")
    assert outcome.status == 0
    assert outcome.err == ""
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert "from its inputs" in outcome.out
    assert "\x1b" not in outcome.out
