"""What a folder says of itself in words is true of the release that it lies in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualmandate.publication.data_dictionary import described, readme
from dualmandate.publication.number_errors import BY_LAW
from dualmandate.publication.table_intervals import NO_SIMULATION, SIMULATED, IntervalWords
from dualmandate.publication.writing import ReleaseSheet

TABLE = {"name": "persons", "unit": "person", "cells": 2, "csv": "tables/persons.csv", "columns": ["district", "sex"]}
FACTS: dict[str, Any] = {"program": "claims", "release": "persons-1", "unit": "person", "tables": [TABLE]}


@pytest.mark.parametrize(("values", "said"), [(SIMULATED, True), (NO_SIMULATION, False)])
def test_what_simulated_intervals_promise_is_said_where_there_are_any(values: str, said: bool) -> None:
    text = readme(FACTS, {"persons": IntervalWords(BY_LAW, values)}, "ε = 1").decode()
    assert ("The intervals of `value` are simulated" in text) == said
    assert values in text


def test_its_line_of_r_keeps_codes_as_text_and_its_heading_is_the_title() -> None:
    named = FACTS | {"title": "Health claims 2025", "agency": "Statistics Nowhere"}
    text = readme(named, {"persons": IntervalWords(BY_LAW, SIMULATED)}, "ε = 1").decode()
    assert text.startswith("# Health claims 2025: release persons-1\n\nPublished by Statistics Nowhere.\n")
    assert (
        'read.csv("tables/persons.csv", check.names = FALSE, '
        'colClasses = c("district" = "character", "sex" = "character"), na.strings = "")'
    ) in text


def test_what_a_table_counts_does_not_depend_on_the_tables_before_it() -> None:
    sheets = [
        ReleaseSheet("t", "USD", (), (), {"value": np.array([1])}, {"clipped": words}) for words in ("one", "other")
    ]
    meanings = [described(sheet, "t.csv")["columns"][-1]["meaning"] for sheet in (*sheets, sheets[0])]
    assert [meaning.split("about that")[1] for meaning in meanings] == [": one", ": other", ": one"]
