"""What a folder says of itself in words is true of the release that it lies in."""

from __future__ import annotations

from typing import Any

import pytest

from dualmandate.publication.data_dictionary import readme
from dualmandate.publication.table_intervals import BY_LAW, NO_SIMULATION, SIMULATED, IntervalWords

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
