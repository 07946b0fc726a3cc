"""`dualmandate preferences`: from answers to a table that `plan` reads, and from levels to a form that asks."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import pytest
from tests.elicitation import drones
from tests.survey.surveys import BIDS, CANARY, CHOICE, HEADER, LIKERT, Row, bids, choices, opinions, write

from dualmandate import gallery
from dualmandate.gallery.parents import answers
from dualmandate.report.documents import schemas

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from tests.apps.conftest import Command


@pytest.fixture(scope="module")
def parents() -> str:
    return answers()


@pytest.fixture
def survey(tmp_path: Path, parents: str) -> Path:
    """The worked survey, as `init` writes it."""
    gallery.write("survey", tmp_path / "survey")
    (tmp_path / "survey" / "answers.csv").write_text(parents, encoding="utf-8")
    return tmp_path / "survey"


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_from_raw_answers_to_epsilon_with_its_interval(command: Command, survey: Path) -> None:
    """The answers come from 1,400 USD per child per epsilon and 1 USD per USD²: both intervals cover them, and that of
    ε* covers 2.444299."""
    before = command("plan", survey / "program.toml", "--json").document["choice"]["epsilon"]
    outcome = command("preferences", survey, "--out", survey, "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schemas.schema("preferences"))
    assert json.loads((survey / "preferences.json").read_text(encoding="utf-8")) == document
    found = {each["key"]: each for each in document["found"]}
    truth = {"mean_disclosure_cost": 1400.0, "price_of_squared_misallocation": 1.0}
    for key, value in truth.items():
        low, high = found[key]["interval"]
        assert low < value < high
        assert high - low < 0.15 * value
    planned = command("plan", survey / "program.toml", "--json").document["choice"]["epsilon"]
    assert before == pytest.approx(3.2716, abs=1e-4)  # with a guess, before anybody was asked
    # ε* is nearly (2c·price/(N·cost))^{1/3}: relative errors of both, over 3 (positively correlated: a wide interval)
    relative = [found[key]["standard_error"] / found[key]["value"] for key in truth]
    reach = 1.96 * float(np.hypot(*relative)) / 3
    assert planned * np.exp(-reach) < 2.444299 < planned * np.exp(reach)
    assert planned == pytest.approx(2.444299, rel=0.03)


def test_the_block_may_be_pasted(command: Command, survey: Path) -> None:
    command("preferences", survey, "--out", survey)
    referred = command("plan", survey / "program.toml", "--json").document
    text = (survey / "program.toml").read_text(encoding="utf-8")
    start, end = text.index("[preferences]"), text.index("[limits]")
    block = (survey / "preferences.toml").read_text(encoding="utf-8")
    (survey / "program.toml").write_text(text[:start] + block + "\n" + text[end:], encoding="utf-8")
    (survey / "preferences.toml").unlink()
    pasted = command("plan", survey / "program.toml", "--json").document
    assert pasted["digest"] == referred["digest"]


def test_without_a_folder_the_block_is_printed(command: Command, survey: Path, tmp_path: Path) -> None:
    before = listing(tmp_path)
    outcome = command("preferences", survey / "survey.toml")
    assert outcome.status == 0
    start = outcome.out.index("\n[preferences]\n")
    stated = tomllib.loads(outcome.out[start : outcome.out.index("next:")])["preferences"]
    assert stated["mean_disclosure_cost"]["unit"] == "USD per child per epsilon"
    assert "400 respondents, 3,200 answers" in outcome.out
    assert "estimated without noise" in outcome.out
    assert listing(tmp_path) == before


def test_opinions_write_no_preferences(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path, LIKERT, ("privacy", "accuracy", "income"), opinions())
    outcome = command("preferences", path, "--out", tmp_path / "out", "--json")
    assert outcome.status == 0
    jsonschema.validate(outcome.document, schemas.schema("preferences"))
    assert listing(tmp_path / "out") == {"preferences.json"}


def test_bids_fit_the_schema(command: Command, tmp_path: Path) -> None:
    outcome = command("preferences", write(tmp_path, BIDS, ("id", "bid", "yes"), bids()), "--json")
    assert outcome.status == 0
    jsonschema.validate(outcome.document, schemas.schema("preferences"))


DRONES = """\
[survey]
source = "answers.csv"
kind = "choice"
respondent = "id"
task = "task"
chosen = "chosen"

[attributes]
constant = { column = "constant", role = "other" }
ground_cost = { column = "ground cost", role = "other" }
ground_time = { column = "ground time", role = "other" }
drone_cost = { column = "drone cost", role = "price", unit = "USD" }
drone_time = { column = "drone time", role = "other" }
privacy = { column = "privacy", role = "other" }
"""


def test_the_drone_experiment_by_the_command(command: Command, tmp_path: Path) -> None:
    """Privacy on a delivery of food is worth $1.8506 (.1124), Fieller 1.636 to 2.078; it prices a delivery, not ε."""
    given = drones.answers("food")
    header = ("id", "task", "constant", *drones.NAMES, "chosen")
    offers = np.column_stack([np.ones(len(given.drone)), *(given.offers[name] for name in drones.NAMES)]).tolist()
    rows = [
        row
        for i, (who, offer, drone) in enumerate(zip(given.respondent, offers, given.drone, strict=True))
        for row in ((who, i, *offer, int(drone)), (who, i, *([0] * 6), int(not drone)))
    ]
    outcome = command("preferences", write(tmp_path, DRONES, header, rows), "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schemas.schema("preferences"))
    worth = next(each for each in document["worths"] if each["attribute"] == "privacy")
    if drones.is_real():
        assert worth["value"] == pytest.approx(1.8506, abs=5e-5)
        assert worth["standard_error"] == pytest.approx(0.1124, abs=5e-5)
        assert worth["interval"] == pytest.approx([1.636, 2.078], abs=5e-4)
        assert (document["respondents"], document["answers"]) == (3_014, 9_528)
    else:
        assert abs(worth["value"] - 2.0) < 4 * worth["standard_error"]
    assert document["block"] is None
    assert "nothing here prices epsilon" in outcome.err


def separated(rows: list[Row]) -> list[Row]:
    """The cheaper alternative is always taken."""
    pairs = [(rows[i], rows[i + 1]) for i in range(0, len(rows), 2)]
    return [
        (*row[:-1], int(float(str(row[3])) < float(str(other[3]))))
        for one, two in pairs
        if one[3] != two[3]
        for row, other in ((one, two), (two, one))
    ]


def indifferent(rows: list[Row]) -> list[Row]:
    """Whoever is shown first is chosen: the price has no effect."""
    turned = [rows[i : i + 2] if i % 4 else rows[i : i + 2][::-1] for i in range(0, len(rows), 2)]
    return [(*row[:-1], int(place == 0)) for pair in turned for place, row in enumerate(pair)]


ROWS = choices(60)
BAD = {
    "one alternative": (CHOICE, ROWS[::2], "invalid survey", "survey.task"),
    "a price that never varies": (
        CHOICE,
        [(*row[:3], 743.1, *row[4:]) for row in ROWS],
        "invalid survey",
        "attributes.price.column",
    ),
    "separation": (CHOICE, separated(ROWS), "no estimate", "survey.source"),
    "non-convergence": (CHOICE.replace("[model]", "[model]\nmost_steps = 1"), ROWS, "no estimate", "survey.source"),
    "unbounded": (CHOICE, indifferent(ROWS), "no estimate", "attributes.price"),
    "units": (
        CHOICE.replace('unit = "USD"\nrole = "price"', 'unit = "crown"\nrole = "price"'),
        ROWS,
        "incompatible units",
        "attributes.price.unit",
    ),
    "a value that is none": (
        CHOICE,
        [(*row[:3], f"{CANARY} USD", *row[4:]) for row in ROWS],
        "invalid survey",
        "attributes.price.column",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(command: Command, tmp_path: Path, case: str) -> None:
    text, rows, code, key = BAD[case]
    path = write(tmp_path, text, HEADER, rows)
    before = listing(tmp_path)
    outcome = command("preferences", path, "--out", tmp_path / "out", "--json")
    assert outcome.status == 2
    document = outcome.document
    jsonschema.validate(document, schemas.schema("refusal"))
    assert (document["code"], document["where"]["key"]) == (code, key)
    assert document["where"]["file"] == str(path)
    assert document["where"]["line"] >= 1
    assert listing(tmp_path) == before
    said = (outcome.out + outcome.err).replace(str(tmp_path), "")
    assert "Traceback" not in said
    assert CANARY not in said
    assert "743" not in said
    if case == "unbounded":
        assert "willingness to pay is unbounded" in document["why"]
        assert not any(character.isdigit() for character in document["what"])


def test_what_is_not_there(command: Command, tmp_path: Path) -> None:
    assert command("preferences", tmp_path / "none.toml", "--json").document["code"] == "invalid file"
    (tmp_path / "empty").mkdir()
    outcome = command("preferences", tmp_path / "empty", "--json")
    assert outcome.document["code"] == "invalid file"
    assert "init survey" in outcome.document["instead"]
    write(tmp_path, CHOICE.replace('source = "answers.csv"\n', ""), HEADER, [])
    assert command("preferences", tmp_path / "survey.toml", "--json").document["code"] == "missing key"
    outcome = command("preferences", tmp_path / "survey.toml", "--questionnaire", "--json")
    assert outcome.document["where"]["key"] == "questionnaire"


def test_a_questionnaire_before_any_answers(command: Command, survey: Path, tmp_path: Path) -> None:
    (survey / "answers.csv").unlink()
    outcome = command("preferences", survey, "--questionnaire", "--out", tmp_path / "asking", "--json")
    assert outcome.status == 0
    document = outcome.document
    jsonschema.validate(document, schemas.schema("questionnaire"))
    assert listing(tmp_path / "asking") == {"form.html", "answer-sheet.csv", "design.csv"}
    assert document["tasks"] == 32
    assert 75 <= document["respondents"] <= 80  # a spread of 2.4, as in the drone experiment, and what choices add
    with (tmp_path / "asking" / "answer-sheet.csv").open(encoding="utf-8") as sheet:
        assert len(list(csv.DictReader(sheet))) == 64


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("levels    = [0.5, 1, 2, 4]", "levels = [30, 31]", "attributes.epsilon.levels"),
        ("levels  = [0, 500, 1000, 2000, 4000]\n", "", "attributes.price.levels"),
        ("levels  = [0, 500, 1000, 2000, 4000]", "levels = [0, 0]", "attributes.price.levels"),
        ("epsilon = 1000, error", "epsilom = 1000, error", "questionnaire.expected.epsilom"),
        ("choice_noise = 1000 ", "choice_noise = 1 ", "questionnaire"),
        ("spread       = 2.4", "spread = -1", "questionnaire.spread"),
    ],
)
def test_questionnaires_that_cannot_be_made(command: Command, survey: Path, old: str, new: str, key: str) -> None:
    text = (survey / "survey.toml").read_text(encoding="utf-8")
    assert old in text
    (survey / "survey.toml").write_text(text.replace(old, new), encoding="utf-8")
    outcome = command("preferences", survey, "--questionnaire", "--json")
    assert outcome.status == 2
    assert outcome.document["where"]["key"] == key
    assert outcome.document["where"]["line"] > 1


@pytest.fixture(scope="module")
def form(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dualmandate.report.survey_words import questionnaire_files
    from dualmandate.survey.questionnaire import survey_questionnaire
    from dualmandate.survey.survey_file import load_survey

    folder = tmp_path_factory.mktemp("form")
    gallery.write("survey", folder)
    for name, text in questionnaire_files(survey_questionnaire(load_survey(folder / "survey.toml"))).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def answer(page: Page, form: Path, *, width: int = 1280) -> str:
    """Answer the form by its keyboard alone: whichever plan is cheaper; gives back what was saved."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto((form / "form.html").as_uri())
    page.locator("#agree").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    questions = 0
    while page.locator("#asking").is_visible():
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        questions += 1
        assert page.locator("#progress-words").inner_text() == f"Question {questions} of 8"
        levels = page.locator(".alternative .level").all_inner_texts()
        prices = [int(re.sub(r"\D", "", each) or "0") for each in levels[2::3]]
        page.keyboard.press("Tab")  # from the question to the plans
        page.keyboard.press("Space")
        if prices[1] < prices[0]:
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    assert questions == 8
    page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    saved = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename.endswith(".csv")
    assert saved == page.locator("#answers").input_value()
    return saved


@pytest.mark.parametrize("width", [1280, 360])
def test_the_form_saves_what_the_survey_reads(browser_page: Page, form: Path, tmp_path: Path, width: int) -> None:
    from dualmandate.survey.survey_file import load_survey, read_answers

    saved = answer(browser_page, form, width=width)
    (form / "answers.csv").write_text(saved, encoding="utf-8")
    survey = load_survey(form / "survey.toml")
    read = read_answers(survey.document, survey.source())
    chosen, price = read.truths(("survey", "chosen")), read.numbers(("attributes", "price", "column"))
    assert len(chosen) == 16
    assert set(chosen.reshape(8, 2).sum(axis=1)) == {1.0}
    pairs, picked = price.reshape(8, 2), chosen.reshape(8, 2) == 1
    assert (pairs[picked] == pairs.min(axis=1)).all()
    [respondent] = set(read.labels(("survey", "respondent")).tolist())
    assert len(respondent) == 32
    with (form / "answer-sheet.csv").open(encoding="utf-8") as file:
        sheet = {(row["task"], row["alternative"]): row for row in csv.DictReader(file)}
    for row in csv.DictReader(saved.splitlines()):
        asked = sheet[row["task"], row["alternative"]]
        same = ("block", "epsilon", "grant_error", "price")
        assert [row[column] for column in same] == [asked[column] for column in same]
    assert len({row["block"] for row in csv.DictReader(saved.splitlines())}) == 1


@pytest.mark.browser
def test_answers_of_many_forms_are_estimated(browser: Browser, form: Path) -> None:
    """Thirty people in a browser, by the cost that the survey is made of: their files are read as one folder."""
    from dualmandate.survey.estimates import SurveyEstimates, measure
    from dualmandate.survey.survey_file import load_survey

    (form / "saved").mkdir()
    page = browser.new_page()
    blocks, orders = set(), set()
    for person in range(30):
        page.goto((form / "form.html").as_uri())
        saved = page.evaluate(
            """() => {
              const noise = () => -1000 * Math.log(-Math.log(Math.random()));
              document.getElementById("agree").click();
              document.getElementById("begin").click();
              while (!document.getElementById("asking").hidden) {
                const radios = [...document.querySelectorAll("input[name=choice]")];
                const costs = radios.map((radio) => {
                  const levels = [...radio.closest("label").querySelectorAll(".level")];
                  const words = levels.map((level) => level.textContent);
                  const [belief, error, price] = words.map((level) =>
                    (level.match(/\\d[\\d,]*/g) || ["0"]).map((digits) => Number(digits.replaceAll(",", ""))));
                  const [before, unit, after] = belief;
                  const loss = Math.log(after / (unit - after)) - Math.log(before / (unit - before));
                  return price[0] + 1400 * loss + 13000 / 46e6 * error[0] ** 2 - noise();
                });
                radios[costs.indexOf(Math.min(...costs))].click();
                document.getElementById("next").click();
              }
              return document.getElementById("answers").value;
            }"""
        )
        (form / "saved" / f"{person}.csv").write_text(saved, encoding="utf-8")
        rows = list(csv.DictReader(saved.splitlines()))
        blocks.add(rows[0]["block"])
        orders.add(tuple((row["task"], row["alternative"]) for row in rows))
    page.close()
    assert len(blocks) > 1
    assert len(orders) == 30
    text = (form / "survey.toml").read_text(encoding="utf-8").replace('"answers.csv"', '"saved"')
    (form / "many.toml").write_text(text, encoding="utf-8")
    found = measure(load_survey(form / "many.toml"))
    assert isinstance(found, SurveyEstimates)
    cost = found.found[0].number
    assert cost.standard_error is not None
    assert abs(cost.value - 1400) < 4 * cost.standard_error
    assert cost.standard_error < 300


def test_nothing_is_asked_without_consent_and_nothing_skipped(browser_page: Page, form: Path) -> None:
    browser_page.goto((form / "form.html").as_uri())
    said = browser_page.locator("#start").inner_text()
    for promise in ("voluntary", "sends nothing anywhere", "Not your name", "kept confidential", "8 times"):
        assert promise in said
    browser_page.locator("#begin").click()
    assert browser_page.locator("#start").is_visible()
    assert "agree first" in browser_page.locator("#start-missing").inner_text()
    browser_page.locator("#agree").check()
    browser_page.locator("#begin").click()
    browser_page.locator("#next").click()
    assert "choose one" in browser_page.locator("#task-missing").inner_text()
    assert browser_page.locator("#progress-words").inner_text() == "Question 1 of 8"
    browser_page.locator("input[name=choice]").nth(1).check()
    browser_page.locator("#next").click()
    browser_page.locator("#back").click()
    assert browser_page.locator("input[name=choice]").nth(1).is_checked()


@pytest.mark.browser
def test_answers_can_be_copied_and_changed(browser: Browser, form: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((form / "form.html").as_uri())
    page.locator("#agree").check()
    page.locator("#begin").click()
    for _ in range(8):
        page.locator("input[name=choice]").first.check()
        page.locator("#next").click()
    before = page.locator("#answers").input_value()
    page.locator("#again").click()
    page.locator("input[name=choice]").nth(1).check()
    page.locator("#next").click()
    after = page.locator("#answers").input_value()
    assert [row for row in after.splitlines() if row not in before.splitlines()] != []
    page.locator("#copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == after
    context.close()


@pytest.mark.browser
def test_without_scripts_the_form_says_so(browser: Browser, form: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto((form / "form.html").as_uri())
    assert "needs scripts" in page.locator("noscript").inner_text()
    assert not page.locator("#start").is_visible()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_form_can_be_read(browser_page: Page, form: Path, width: int, scheme: str) -> None:
    """Nothing is wider than the window, plans stand beside each other row by row, and buttons fit a thumb."""
    browser_page.set_viewport_size({"width": width, "height": 800})
    browser_page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    browser_page.goto((form / "form.html").as_uri())
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    browser_page.locator("#agree").check()
    browser_page.locator("#begin").click()
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [browser_page.locator(".alternative").nth(i).bounding_box() for i in range(2)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    if width > 700:
        assert boxes[0]["y"] == boxes[1]["y"]
        tops = browser_page.evaluate(
            "[...document.querySelectorAll('.alternative')].map((card) => [...card.querySelectorAll('.level')]"
            ".map((level) => Math.round(level.getBoundingClientRect().bottom)))"
        )
        assert tops[0][-1] == tops[1][-1]
    else:
        assert boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"] - 1
    button = browser_page.locator("#next").bounding_box()
    assert button is not None
    assert button["height"] >= 44
