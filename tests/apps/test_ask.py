"""`dualmandate ask`: the price, the answer, and what is refused before either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command

PROGRAM = """
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 1000, unit = "person", source = "register" }
source          = "people.csv"

[population.attributes]
ward   = ["north", "south"]
age    = { from = 0, to = 9 }
income = { lower = 0, upper = 100, grid = 1 }

[[workload]]
name              = "residents by ward"
by                = ["ward"]
value_of_accuracy = { value = 0.4, unit = "USD per person^2", source = "example" }

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 0.1, unit = "USD per person per epsilon", source = "example" }
"""
COUNT = "SELECT COUNT(*) FROM records WHERE age > 4"
MEAN = "SELECT AVG(income) FROM records"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> None:
    Path("program.toml").write_text(PROGRAM)
    Path("dualmandate.toml").write_text("schema = 1\n")
    rows = (f"{'north' if k % 3 else 'south'},{k % 10},{k % 101}\n" for k in range(1000))
    Path("people.csv").write_text("ward,age,income\n" + "".join(rows))


def test_a_price_needs_no_ledger_and_no_records(command: Command) -> None:
    Path("people.csv").unlink()
    outcome = command("ask", "program.toml", COUNT, "--within", "2%", "--dry-run", "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schema("price"))
    assert document["half_width"] <= 20 < document["half_width"] * 1.2
    assert document["loss"] == document["charge"]
    assert "remaining" not in document
    assert not Path(".dualmandate").exists()
    mean = command("ask", ".", MEAN, "--spend", "0.5", "--dry-run", "--json").document  # of all who are expected
    assert not mean["is_exact"]
    assert command("ask", ".", MEAN, "--within", "10%", "--of", "50", "--dry-run").status == 0


def test_an_answer_is_a_document_and_is_kept(command: Command) -> None:
    words = ["ask", ".", "SELECT ward, AVG(income) FROM records GROUP BY ward", "--spend", "1/2", "--by", "Ann"]
    refused = command(*words)
    assert refused.status == 2
    assert "dualmandate ledger open residents --unit person --cap 1" in refused.err
    assert command("ledger", "open", "residents", "--unit", "person", "--cap", "1").status == 0
    first = command(*words, "--for", "purpose:thesis", "--json").document
    jsonschema.validate(first, schema("answer"))
    assert [row["labels"] for row in first["rows"]] == [["north"], ["south"]]
    assert (first["spent"]["exact"], first["remaining"]["exact"]) == ("1/2", "1/2")
    again = command(*words, "--json").document
    assert "spent" not in again
    assert again["rows"] == first["rows"]
    assert Path("answers", f"{first['release']}.json").is_file()
    said = command(*words).out
    assert "ward north: " in said
    assert "spent: nothing: it was answered before" in said
    unbounded = command("ask", ".", MEAN, "--spend", "0.0001", "--json").document["rows"][0]
    assert unbounded["lower"] is unbounded["upper"] is None
    assert "any number" in command("ask", ".", MEAN, "--spend", "0.0001").out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([COUNT, "--dry-run"], "at no price"),
        ([COUNT, "--spend", "1", "--within", "2%", "--dry-run"], "at two"),
        ([COUNT, "--spend", "1.2.3", "--dry-run"], "a loss for a question"),
        ([COUNT, "--within", "0%", "--dry-run"], "within ±0"),
        ([COUNT, "--spend", "1", "--probability", "1", "--dry-run"], "probability 1"),
        (["SELECT SUM(income) FROM records", "--within", "2%", "--dry-run"], "nothing that is known beforehand"),
        (["SELECT ward, AVG(income) FROM records GROUP BY ward", "--spend", "1", "--dry-run"], "unknown number"),
        (["SELECT COUNT(*) FROM records LIMIT 1", "--spend", "1", "--dry-run"], "'LIMIT'"),
    ],
)
def test_what_cannot_be_meant_is_refused(command: Command, words: list[str], what: str) -> None:
    outcome = command("ask", ".", *words, "--json")
    assert outcome.status == 2
    assert what in outcome.document["what"]
