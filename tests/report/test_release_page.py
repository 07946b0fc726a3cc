"""The page of a release: every file linked, tables that are searched, intervals drawn, on a phone too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dualmandate.population import PrivacyLoss, Protection
from dualmandate.publication.writing import Glance, PublishedTable
from dualmandate.report.release_page import release_page
from dualmandate.semantics import guarantee

if TYPE_CHECKING:
    from playwright.sync_api import Page

REGIONS = tuple(f"R{place:02d}" for place in range(1, 31))
NAMES = {code: f"Region {place}" for place, code in enumerate(REGIONS, 1)}


def facts() -> dict[str, Any]:
    """What release.json says, as far as the page asks."""
    table = {"name": "persons", "unit": "person", "columns": ["region", "sex"], "cells": 6000, "exact": False}
    files = {"estimates": "tables/t.parquet", "parquet": "tables/t.parquet", "csv": "tables/t.csv"}
    words = {"estimates": "by the exact law of the noise", "values": "simulated: 39 releases"}
    noises = [{"law": "laplace", "parameter": "1"}]
    return {
        "program": "claims",
        "description": None,
        "release": "1",
        "reserved_at": "2026-01-02T00:00:00+00:00",
        "unit": "person",
        "loss": {"exact": "1", "currency": "epsilon"},
        "guarantee": guarantee(Protection("person"), PrivacyLoss.pure(1), None).document(),
        "tables": [{**table, **files, "clipped": None, "intervals": words}],
        "groups": [{"name": "all", "rows": 60, "loss": "1", "noises": noises}],
        "invariants": [],
        "consistency": "All tables add up.",
        "consistency_effects": [],
        "ledger_head": {"sequence": 3},
        "versions": {"sampler": 1},
        "account_identifier": "ab" * 12,
        "plan_digest": "ff" * 32,
        "snapshot": "00" * 32,
        "files": {"tables/t.csv": "11" * 32, "program/my file.toml": "22" * 32},
    }


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    estimates = np.linspace(1000, 4000, 60) + 1 / 7
    ends: dict[str, Any] = {f"{end}_95": estimates + shift for end, shift in (("lower", -700.123), ("upper", 700.123))}
    whole = np.rint(estimates).astype(np.int64)
    ends |= {f"value_{end}_95": whole + shift for end, shift in (("lower", -650), ("upper", 650))}
    table = PublishedTable(
        "persons",
        "person",
        ("region", "sex"),
        (REGIONS, ("f", "m")),
        estimates,
        np.full(60, 361.2),
        values=whole,
        level_labels=({"": NAMES}, {"": {"f": "women", "m": "men"}}),
        intervals=ends,
    )
    path = tmp_path / "index.html"
    path.write_text(release_page(facts(), [Glance(table, 6000, 361.2)]), encoding="utf-8")
    return path


def test_every_file_is_linked_and_digits_end_where_the_error_does(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    links = re.findall(r'href="([^"#]+)"', text)
    own = {"README.md", "data_dictionary.csv", "release.json", "program/my%20file.toml"}
    assert own | {"tables/t.csv", "tables/t.parquet"} <= {*links}
    assert "The first 60 of 6,000 numbers" in text
    row = text[text.index('data-codes="R01 f"') :].split("</tr>")[0]
    cells = re.findall(r"<td[^>]*>([^<]*)<", row)
    assert cells[:7] == ["Region 1", "women", "1,000", "350 to 1,650", "1,000", "360", "300 to 1,710"]
    assert "default-src 'none'" in text
    assert text.count("For print, use value") == 1


def test_who_publishes_stands_above_and_a_missing_interval_is_explained_where_the_number_stands() -> None:
    values, errors = np.array([12_345, 6]), np.array([12_091.4, 3.849])
    table = PublishedTable("persons", "person", ("sex",), (("f", "m"),), values + 0.25, errors, values=values)
    said = facts() | {"title": "Health claims 2025", "agency": "Statistics Nowhere"}
    words = {"estimates": "by the exact law of the noise", "values": "not given: it would take too long"}
    said["tables"] = [{**said["tables"][0], "intervals": words}]
    text = release_page(said, [Glance(table, 2, 12_091.4)])
    assert "<h1>Health claims 2025: published at ε = 1</h1>" in text
    assert "Published by Statistics Nowhere." in text
    before, details = text.split("<details><summary>How the intervals were made", 1)
    assert "The numbers for print have no interval here: it would take too long." in before
    assert "12,091" not in text  # of a standard error, two digits, as of the number beside it
    assert re.findall(r'"standard error">([^<]*)<', text) == ["12,000", "3.8"]
    assert "not given: it would take too long" in details


@pytest.mark.browser
def test_it_is_searched_by_labels_and_codes_and_nothing_is_cut_on_a_phone(page_file: Path, browser_page: Page) -> None:
    browser_page.goto(page_file.as_uri())
    search, rows = browser_page.locator("input[type=search]"), browser_page.locator("#table-0-rows tbody tr:visible")
    assert rows.count() == 60
    search.fill("region 7 women")
    assert rows.count() == 1
    assert "1 of 60 numbers" in browser_page.locator("output").inner_text()
    search.fill("men")  # not women
    assert rows.count() == 30
    search.fill("R07")
    assert rows.count() == 2
    bar = browser_page.locator("#table-0-rows tr:visible .bar i").first.evaluate("each => getComputedStyle(each).width")
    assert float(bar.removesuffix("px")) > 2
    search.fill("")
    browser_page.set_viewport_size({"width": 390, "height": 800})
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= 390
    cut = "[...document.querySelectorAll('#table-0-rows td')].filter(e => e.getBoundingClientRect().right > 390).length"
    assert browser_page.evaluate(cut) == 0


def test_a_bias_that_rounds_to_nothing_has_no_sign(page_file: Path) -> None:
    effect = {"table": "persons", "least": 1, "most": 9, "cells": 6, "unbiased_bias": -0.004, "consistent_bias": -1.25}
    effects = [{**effect, "unbiased_error": 0.5, "consistent_error": 0.4}]
    page = release_page({**facts(), "consistency_effects": effects, "tables": []}, [])
    assert ">0.00</td>" in page
    assert ">−1.25</td>" in page
    assert "-0.00" not in page
