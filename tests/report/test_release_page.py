"""The page of a release: every file linked, tables that are searched, intervals drawn, on a phone too."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dualmandate import load, publish
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.publication import release_folder
from dualmandate.publication.writing import Glance, PublishedTable
from dualmandate.report.release_page import release_page
from dualmandate.semantics import guarantee

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
    row = text[text.index('lang="en">Region 1<') :].split("</tr>")[0]
    cells = re.findall(r">([^<]+)<", row)
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


def test_small_shares_without_errors_are_not_nothing() -> None:
    shares, unknown = np.array([0.000213, 0.4997, np.nan]), np.full(3, np.nan)
    table = PublishedTable("share", "share", ("town",), (("a", "b", "c"),), shares, unknown, quotients=shares)
    said = facts() | {"tables": [], "ratios": [{"name": "share", "numerator": "one", "denominator": "all"}]}
    said["ratios"][0] |= {"intervals": False, "csv": "ratios/share.csv"}
    text = release_page(said, [Glance(table, 3, 0.0)])
    assert re.findall(r'"estimate, for analysis">([^<]*)<', text) == ["0.00021", "0.50", "no number"]


def test_thousands_of_tables_are_listed_and_the_first_ones_shown() -> None:
    """4,950 two-way tables are some megabytes, where the rows of each took 75."""
    said, estimates = facts(), np.arange(20.0)
    table = PublishedTable("t", "person", ("a",), (tuple(map(str, range(100))),), estimates, np.ones(20))
    entry = {**said["tables"][0], "columns": ["a"], "cells": 100}
    said["tables"] = [{**entry, "name": f"t {n}", "csv": f"tables/t-{n}.csv"} for n in range(4_950)]
    said["files"] = {f"tables/t-{n}.csv": "11" * 32 for n in range(4_950)}
    text = release_page(said, [Glance(replace(table, name=f"t {n}"), 100, 1.0) for n in range(4_950)])
    assert len(text) < 5e6
    assert re.findall(r'<h3 id="table-(\d+)">', text) == [str(n) for n in range(150)]
    assert '<a href="#table-149">t 149</a>' in text
    assert '<a href="tables/t-4949.csv">' in text
    assert "Of 4,800 tables, the last ones above, the numbers are in the files alone." in text
    assert '2,950 more, with their SHA-256, in <a href="release.json">' in text


@pytest.mark.browser
def test_it_is_searched_by_labels_and_codes_and_nothing_is_cut_on_a_phone(page_file: Path, browser_page: Page) -> None:
    browser_page.goto(page_file.as_uri())
    search, rows = browser_page.locator("input[type=search]"), browser_page.locator("#table-0-rows tbody tr:visible")
    assert rows.count() == 60
    search.fill("region 7 women")
    assert rows.count() == 1
    assert "1 of the first 60 of 6,000 numbers with “region 7 women”" in browser_page.locator("output").inner_text()
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
    effects = [{**effect, "unbiased_error": 0.5, "consistent_error": 95_673.32}]
    page = release_page({**facts(), "consistency_effects": effects, "tables": []}, [])
    assert ">0.00</td>" in page
    assert ">−1.25</td>" in page
    assert ">95,673</td>" in page
    assert "-0.00" not in page


AGES = {"0-17": "unter 18 Jahren", "18-64": "18 bis 64 Jahre", "65+": "65 Jahre und älter"}
IN_FRENCH = {"0-17": "moins de 18 ans", "18-64": "18 à 64 ans"}  # one is not translated


def bilingual(towns: int, cells: int | None = None) -> str:
    """A page of a German program whose labels are in French, too; four numbers a town."""
    codes, numbers = tuple(f"{10_000 + place}" for place in range(towns)), np.arange(4 * towns, dtype=np.float64)
    german = {code: f"Gemeinde Nr. {place}" for place, code in enumerate(codes, 1)}
    french = {code: f"Île n° {place}" for place, code in enumerate(codes, 1)}
    german[codes[1]] = "</script><i>Bad & Söhne</i>"
    table = PublishedTable(
        "persons",
        "person",
        ("town", "age"),
        (codes, (*AGES, "NA")),
        numbers + 0.3,
        np.full(4 * towns, 12.3),
        values=numbers.astype(np.int64),
        level_labels=({"": german, "fr": french}, {"": AGES, "fr": IN_FRENCH}),
        intervals={"lower_95": numbers - 24, "upper_95": numbers + 24.6},
    )
    return release_page(facts() | {"language": "de"}, [Glance(table, cells or 4 * towns, 12.3)])


@pytest.mark.browser
def test_readers_choose_the_language_of_labels_and_search_in_each(tmp_path: Path, browser_page: Page) -> None:
    said: list[str] = []
    browser_page.on("console", lambda message: said.append(message.text))
    (tmp_path / "index.html").write_text(bilingual(5), encoding="utf-8")
    browser_page.goto((tmp_path / "index.html").as_uri())
    rows, search = browser_page.locator("#table-0-rows tbody tr:visible"), browser_page.get_by_label("Search")
    choice = browser_page.get_by_label("Labels in")
    assert choice.locator("option").all_inner_texts() == ["Deutsch (de)", "français (fr)"]

    def labels(row: int) -> list[tuple[str, str | None]]:
        cells = rows.nth(row).locator("td.text").all()
        return [(cell.inner_text(), cell.get_attribute("lang")) for cell in cells]

    assert labels(0) == [("Gemeinde Nr. 1", "de"), ("unter 18 Jahren", "de")]
    assert labels(4)[0] == ("</script><i>Bad & Söhne</i>", "de")
    search.fill("ile 3 moins")  # in a language that is not shown, and without its accents
    assert [labels(0), rows.count()] == [[("Gemeinde Nr. 3", "de"), ("unter 18 Jahren", "de")], 1]
    choice.press("ArrowDown")  # by keyboard
    assert labels(0) == [("Île n° 3", "fr"), ("moins de 18 ans", "fr")]
    search.fill("sohne")
    assert [labels(row)[1] for row in range(4)] == [
        *((label, "fr") for label in IN_FRENCH.values()),
        ("65 Jahre und älter", "de"),  # what has no label in French is told in the program's language, or by its code
        ("NA", None),
    ]
    search.fill("10004")
    assert rows.count() == 4
    browser_page.reload()  # nothing is remembered
    assert [choice.input_value(), labels(0)[0]] == ["de", ("Gemeinde Nr. 1", "de")]
    assert said == []  # nor refused by the page's policy


@pytest.mark.browser
def test_all_numbers_of_a_large_table_are_searched_and_a_few_hundred_shown(tmp_path: Path, browser_page: Page) -> None:
    text = bilingual(12_500)
    assert len(text.encode()) < 4_000_000
    assert "The first 500 of 50,000 numbers; all are in the files." in text
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    browser_page.goto((tmp_path / "index.html").as_uri())
    rows, output = browser_page.locator("#table-0-rows tbody tr:visible"), browser_page.locator("output")
    note, search = browser_page.get_by_text("The first 500 of"), browser_page.get_by_label("Search")
    assert rows.count() == 500
    assert output.inner_text() == "500 rows: scroll for all"
    search.fill("22499 65")
    assert rows.count() == 1
    cells = "each => [...each.cells].map((cell) => cell.textContent)"
    assert rows.first.evaluate(cells)[:5] == ["Gemeinde Nr. 12500", AGES["65+"], "49,998", "49,998", "12"]
    assert rows.first.evaluate(cells)[5:] == ["49,974 to 50,023", ""]
    place = rows.first.locator(".bar b").evaluate("each => parseFloat(each.style.left)")
    assert place == pytest.approx(100 * 49_998 / 50_023, abs=0.1)
    assert browser_page.locator("th.drawn").inner_text() == "drawn: 0 to 50,023"
    assert output.inner_text() == "1 of 50,000 numbers with “22499 65”"
    assert not note.is_visible()  # and of what is shown now it would not be true
    search.fill("gemeinde 12")
    assert rows.count() == 500
    assert "the first 500 of these are shown" in output.inner_text()
    search.fill("")
    assert output.inner_text() == "500 rows: scroll for all"
    browser_page.set_viewport_size({"width": 390, "height": 800})
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= 390
    browser_page.emulate_media(media="print")
    browser_page.set_viewport_size({"width": 700, "height": 990})  # A4
    assert browser_page.locator("#table-0-rows").evaluate("each => each.getBoundingClientRect().right") <= 700
    assert browser_page.locator(".numbered").evaluate("each => getComputedStyle(each).overflow") == "visible"
    browser_page.emulate_media(media="screen")
    search.fill("")
    assert [rows.count(), rows.last.evaluate(cells)[0], note.is_visible()] == [500, "Gemeinde Nr. 125", True]


@pytest.mark.browser
def test_without_a_script_there_is_nothing_that_does_nothing(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "index.html").write_text(bilingual(200, 4_000_000), encoding="utf-8")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((tmp_path / "index.html").as_uri())
        assert page.locator("#table-0-rows tbody tr:visible").count() == 500
        assert page.locator("#table-0-first").inner_text() == (
            "The first 500 of 4,000,000 numbers; all are in the files."
        )
        assert page.locator("input:visible, select:visible").count() == 0


def test_one_language_offers_no_choice_and_no_label_ends_what_the_script_reads(page_file: Path) -> None:
    assert "<select" not in page_file.read_text(encoding="utf-8")
    text = bilingual(2_000, 4_000_000)
    assert "The search looks at the first 8,000 of them alone." in text
    [held] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    content = json.loads(held)
    assert [len(content["numbers"][0].split("|")), content["levels"][0]["labels"]["fr"][1]] == [7_500, "Île n° 2"]


PROGRAM = """\
[program]
schema = 1
name = "towns"
language = "de"
[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 4000, unit = "person", source = "made up" }
source = { path = "people.csv" }
one_record_per_unit = { source = "made up" }
[population.attributes]
town = { levels = ["a", "b", "c", "d", "e", "f"], labels_in.fr = ["A", "B", "C", "D", "E", "F"] }
age = { from = 0, to = 19 }
sex = { levels = ["f", "m"], labels = ["Frauen", "Männer"], labels_in.fr = ["femmes", "hommes"] }
[[workload]]
name = "persons"
by = ["town", "age"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }
[[workload]]
name = "sexes"
by = ["sex"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }
[mechanism]
noise = "geometric"
strategy = "workload"
[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""


def test_what_is_published_holds_some_numbers_of_each_table_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_folder, "GLANCED", 42)
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "people.csv").write_text("town,age,sex\na,3,f\nb,4,m\n", encoding="utf-8")
    plan = load(tmp_path).plan()
    ledger = open_ledger(tmp_path / "ledger.sqlite", make_key(tmp_path / "key"), create=True)
    ledger.open_account(Account("people", "person", PrivacyLoss.pure(1000)), by="Ann")
    ledger.approve(Approval("people", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    release = publish(plan, plan.program.source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    page = (release.folder / "index.html").read_text(encoding="utf-8")
    held = [json.loads(each) for each in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)]
    assert [(each["count"], each["cells"]) for each in held] == [(40, 120), (2, 2)]
    assert held[0]["levels"][0] == {"codes": ["a", "b"], "labels": {"fr": ["A", "B"]}, "size": 6, "stride": 20}
    assert '<option value="de" lang="de">' in page
    assert release.facts["language"] == "de"
    said = json.loads((release.folder / "data_dictionary.json").read_text(encoding="utf-8"))["tables"][1]["columns"]
    assert said[0]["levels"][0] == {"code": "f", "labels": {"de": "Frauen", "fr": "femmes"}}
    with (release.folder / "data_dictionary.csv").open(encoding="utf-8", newline="") as file:
        meanings = {row["column"]: row["meaning"] for row in csv.DictReader(file)}
    assert meanings["sex_label"] == "label of `sex`, for readers, in the language 'de'"
    assert meanings["sex_label_fr"] == "label of `sex`, for readers, in the language 'fr'"
