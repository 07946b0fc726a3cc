"""The dossier: everything on one page, readable on a desk, on a phone, on paper and without scripts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from dualmandate import gallery
from dualmandate.choice import choose
from dualmandate.errors import Refusal
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.population.wording import money, number
from dualmandate.report.dossier import write_dossier
from dualmandate.report.plan_words import plan_words

PICTURES = (
    "tangency",
    "rates",
    "welfare",
    "regret",
    "tornado",
    "consequences",
    "what-if",
    "strategies",
    "technologies",
)
WIDTHS = (1280, 360)
WORTH = 'data-heading="measured, assumed or judgment" class="text">'

# Words of a picture that leave it, or that lie on each other; the halos behind them do not count.
CUT = """[...document.querySelectorAll(".scroll")].filter((each) => [...each.querySelectorAll("td")].some(
  (cell) => cell.scrollWidth > cell.clientWidth + 1
    || cell.getBoundingClientRect().right > each.getBoundingClientRect().right + 1
)).map((each) => each.getAttribute("aria-label"))"""  # tables with a column that is seen by scrolling alone
MISPLACED = """() => [...document.querySelectorAll("figure svg")].flatMap((picture) => {
  const frame = picture.getBoundingClientRect();
  if (!frame.width) return [];
  const words = [...picture.querySelectorAll("text")]
    .filter((text) => !text.getAttribute("stroke") && text.textContent.trim() && text.getAttribute("opacity") !== "0")
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  const cut = words.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1).map(([text]) => `cut: ${text}`);
  const covered = words.flatMap(([one, a], i) => words.slice(i + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
    .map(([other]) => `overlap: ${one} | ${other}`));
  return [...cut, ...covered];
})"""


def plan_of(folder: Path, *changes: tuple[str, str]) -> Plan:
    """The plan of a copy of the Title I program with pieces of its text replaced."""
    gallery.write("title_i", folder)
    file = folder / "program.toml"
    text = file.read_text(encoding="utf-8").replace(', time_base = "once"', "")  # changes add amounts that say none
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    return load(file).plan()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def dossier(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dossier")
    written = write_dossier(plan, folder)
    assert sorted(written) == sorted(path for path in folder.rglob("*") if path.is_file())
    return folder


@pytest.fixture(scope="module")
def page(dossier: Path) -> str:
    return (dossier / "dossier.html").read_text(encoding="utf-8")


class Outline(HTMLParser):
    """The skeleton of a page: tags with their attributes, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_and_its_pictures_are_written(dossier: Path) -> None:
    files = {str(path.relative_to(dossier)) for path in dossier.rglob("*") if path.is_file()}
    assert files == {"dossier.html"} | {f"figures/{name}.{kind}" for name in PICTURES for kind in ("svg", "png")}
    assert (dossier / "dossier.html").stat().st_size < 2_000_000


def test_it_is_written_over_itself_the_same_and_touches_nothing_else(plan: Plan, dossier: Path) -> None:
    before = {path: path.read_bytes() for path in dossier.rglob("*") if path.is_file()}
    other = dossier / "figures" / "of somebody else.txt"
    other.write_text("mine")
    write_dossier(plan, dossier)
    assert other.read_text() == "mine"
    other.unlink()
    assert {path: path.read_bytes() for path in dossier.rglob("*") if path.is_file()} == before


def test_it_loads_nothing(dossier: Path, page: str) -> None:
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    for text in (page, *(path.read_text("utf-8") for path in (dossier / "figures").glob("*.svg"))):
        assert set(re.findall(r"\w+://[^\s\"'<>]+", text)) <= names
    outline = Outline(page)
    assert not any(outline.all(tag) for tag in ("link", "img", "iframe", "object", "embed", "base"))
    assert not any("src" in attributes for _, attributes in outline.tags)
    assert any("default-src 'none'" in str(meta.get("content")) for meta in outline.all("meta"))


def test_it_says_first_what_was_chosen_and_what_it_buys(page: str, plan: Plan) -> None:
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("<main>")[1]))
    assert (
        words.index("The choice is epsilon = 2.4442") < words.index("What is promised") < words.index("Why this number")
    )
    for said in (
        "0.4562 children",
        "USD 2,040",
        "USD 157.4 billion",
        "USD 54.11 billion",
        "13,000",
        "add or remove one child",
    ):
        assert said in words, said
    for note in plan.notes:
        assert note.split('"')[0] in words
    assert plan.digest in words


def test_every_number_it_rests_on_carries_its_unit_and_source(page: str) -> None:
    for said in (
        "population: population size",
        "46,000,000",
        "USD² per child²",
        "mean squared adjusted SPPE, CCD 2014-15",
        "DOJ 2015, rounded up; conditional on being a victim",
        "implicit in the paper",
        "preferences: relative privacy weight",
        "limits: largest epsilon",
    ):
        assert said in page, said
    assert "children.parquet" not in page


def test_it_says_how_sure_it_is_and_how_else_the_program_could_be_read(page: str, plan: Plan) -> None:
    lead = page[page.index('<h2 id="choice">') : page.index('<dl class="numbers">')]
    assert "This epsilon has no interval, because no number it rests on states an error." in lead
    assert "Taken as exact, because nothing is stated of their errors: population size, consequence, price of" in lead
    assert page.count(">not stated</td>") == 5  # of every calibrated number, the public total among them: its error
    assert "elsewhere in its range" not in page
    assert "Over what is stated of any one number, ε is between 2.439 and 5.2008" in page
    assert "Other readings of the program, and the ε that each would choose on the same frontier" in page
    assert len(plan.robustness.readings) == 6
    for row in plan.robustness.readings:
        assert row.choice is not None
        assert f">{float(row.choice.loss):,.6g}</td>" in page
    assert "A loss above all the money at stake, USD 14.4 billion, is hard to believe" in page


def test_five_digits_of_the_choice_are_the_same_wherever_they_are_printed(page: str, plan: Plan) -> None:
    """2.444299 is chosen, and stated as 2.4442, rounded down; rounding that again would make 2.4441 of it."""
    words = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    for printed in (words, plan_words(plan)):
        assert set(re.findall(r"2\.444[0-9]", printed)) == {"2.4442"}


def test_what_decides_is_listed_and_empty_sections_are_left_out(survey: Any, tmp_path: Path) -> None:
    apart = 'measured = [["people by county and sex", "ages in state A"], ["income by state"]]'
    program = survey(
        ('by = ["age"]\n', 'by = ["age"]\nfitness_for_use = { largest_root_mean_squared_error = 90 }\n'),
        ('noise = "laplace"', f'noise = "geometric"\n{apart}'),
    )
    plan = load(program).plan()
    write_dossier(replace(plan, notes=()), tmp_path / "out")
    page = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    assert "workload &#39;ages in state A&#39;: fitness for use: largest root mean squared error" in page
    assert "mechanism: measured[0]" in page
    assert "people by county and sex, ages in state A" in page
    assert "#notes" not in page
    assert 'id="notes"' not in page


def test_it_says_what_is_measured_and_what_that_saves(page: str, tmp_path: Path) -> None:
    assert "Measured: the tables themselves. No matrix mechanism with geometric noise on a strategy of whole" in page
    assert "<dt>Laplace noise on the tables (study) would give</dt><dd>ε = 2.5276 and USD 2,502</dd>" in page
    assert "<dt>what the better technology is worth</dt><dd>USD 32.64 billion</dd>" in page
    plan = plan_of(tmp_path / "program", *OPTIMIZED, ('noise = "best"', 'noise = "best"\nstrategy = "optimized"'))
    assert plan.technology.strategy == "optimized"
    write_dossier(plan, tmp_path / "out")
    other = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    assert plan.saving.welfare_gained is not None
    worth = money(plan.saving.welfare_gained, "USD")
    assert f"<dt>what the better technology is worth</dt><dd>{worth}</dd>" in other
    assert "the better technology saves" in other
    for strategy in plan.technology.found.values():
        assert f"{strategy.exact.rows:,} measurements." in other


def test_a_study_says_so_first_and_in_its_notes_and_names_what_to_use(page: str, tmp_path: Path) -> None:
    assert "This plan is a study" not in page
    plan = plan_of(tmp_path / "program", ('noise = "best"', 'noise = "laplace"'))
    write_dossier(plan, tmp_path / "out")
    other = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    assert other.count("This plan is a study: laplace noise is not drawn exactly") == 2
    assert other.index("This plan is a study") < other.index("<main>") < other.rindex("This plan is a study")
    said = other.replace("\u00a0", " ")
    assert "would save USD 32.35 billion: errors would cost 39.7 % less" in said  # geometric noise, at the same loss
    assert "does better than" not in other


def test_each_belief_is_given_once_and_nothing_is_in_another_format(page: str, plan: Plan) -> None:
    words = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    for bound in ("10.43 in 100", "56.15 in 100", "57.28 in 100", "99.26 in 100"):
        assert words.count(bound) == 1, bound
    assert "unrounded" not in page
    assert "$" not in page.split("<script")[0]
    assert not re.search(r"\d%", words.split("</style>")[1])
    assert "black curve" not in page


def test_it_says_whose_it_is_and_leaves_room_to_sign(page: str, tmp_path: Path) -> None:
    assert "<h1>Children eligible for Title I grants, by school district: ε = 2.4442</h1>" in page
    assert "<dd>not stated</dd>" not in page
    assert f"{WORTH}not stated</td>" not in page
    for value in ("a worked example: no agency publishes by it", "after Abowd and Schmutte (2019)", "1", "2026-11-19"):
        assert f"<dd>{value}</dd>" in page
    assert page.count(f"{WORTH}measured</td>") == 3
    assert page.count(f"{WORTH}judgment</td>") == 2
    assert page.index('id="decision"') > page.index('id="notes"')
    first = page.index("a relative risk aversion of 2 on a budget")
    assert page.index('id="choice"') < first < page.index("Over what is stated of one number")
    plan = plan_of(
        tmp_path / "program",
        ('agency      = "a worked example: no agency publishes by it"', 'title = "Poor children"\nagency = "Census"'),
        ('author      = "after Abowd and Schmutte (2019)"\n', ""),
        ('being a victim", kind = "judgment"', 'being a victim", kind = "assumed"'),
        ('"implicit in the paper", kind = "judgment"', '"implicit in the paper"'),
    )
    write_dossier(plan, tmp_path / "out")
    other = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    assert "<h1>Poor children: ε = 2.4442</h1>" in other
    assert "<dd>Census</dd>" in other
    assert other.count("<dd>not stated</dd>") == 1
    assert f"{WORTH}assumed</td>" in other
    assert f"{WORTH}not stated</td>" in other


@pytest.mark.parametrize("day", ["2026-13-01", "18.11.2026", "20261118", "2026-W47-3"])
def test_a_day_that_is_none_is_refused(day: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="day of the calendar"):
        plan_of(tmp_path, ('date        = "2026-11-19"', f'date = "{day}"'))


def test_it_is_labeled_public(page: str) -> None:
    assert page.count('<span class="label">public</span>') == 2
    assert '<meta name="label" content="public">' in page


def test_it_can_be_read_by_ear(page: str) -> None:
    outline = Outline(page)
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identifiers = [str(attributes["id"]) for _, attributes in outline.tags if "id" in attributes]
    assert not [name for name, count in Counter(identifiers).items() if count > 1]
    assert all(str(link["href"])[1:] in identifiers for link in outline.all("a"))
    assert len(outline.all("caption")) == len(outline.all("table"))
    labels = {label["for"] for label in outline.all("label")}
    assert {field["id"] for field in outline.all("input")} == labels
    assert all(drawing["role"] == "img" and drawing["aria-label"] for drawing in outline.all("svg"))
    assert page.startswith("<!doctype html>")


def test_every_picture_has_a_sentence_and_a_table(page: str) -> None:
    outline = Outline(page)
    assert [figure["class"] for figure in outline.all("figure")] == [*PICTURES]
    assert len(outline.all("svg")) == 2 * len(PICTURES)
    for part in page.split("<figure")[1:]:
        assert "<table" in part.split("<h2")[0].split("<figure")[0]


def open_page(page: Page, dossier: Path, *, width: int = 1280, scheme: str = "light") -> list[str]:
    """Open the page; returns the list that complaints on its console, and requests beside itself, are added to."""
    heard: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        heard.append(message.text)

    address = (dossier / "dossier.html").as_uri()
    page.on("console", listen)
    page.on("request", lambda request: heard.append(request.url) if request.url != address else None)
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address)
    return heard


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window_and_asks_for_nothing(browser_page: Page, dossier: Path, width: int, scheme: str) -> None:
    heard = open_page(browser_page, dossier, width=width, scheme=scheme)
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    browser_page.evaluate('document.querySelectorAll("details").forEach((twin) => { twin.open = true; })')
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    assert browser_page.evaluate(MISPLACED) == []
    assert browser_page.evaluate(CUT) == []
    assert browser_page.locator(f"figure .{'wide' if width > 700 else 'narrow'} svg:visible").count() == len(PICTURES)
    assert heard == []


def test_a_source_is_never_pushed_out_of_sight_by_a_long_key(browser_page: Page, dossier: Path) -> None:
    """A number and where it comes from are read together, on paper too, where nothing can be scrolled."""
    open_page(browser_page, dossier)
    hidden = """() => {
      const all = [...document.querySelectorAll(".scroll")];
      const inputs = all.find((each) => each.innerText.startsWith("Calibrated numbers"));
      const [key, value] = inputs.querySelector("tbody tr").cells;
      key.innerText = "workload 'households'.fitness_for_use.largest_root_mean_squared_consequence";
      value.innerText = "12,000,000,000,000";
      return inputs.scrollWidth - inputs.clientWidth;
    }"""
    assert browser_page.evaluate(hidden) == 0


def test_the_colors_follow_the_window(browser_page: Page, dossier: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    stroke = 'getComputedStyle(document.querySelector(".tangency .wide .mark-line path")).stroke'
    seen = []
    for scheme in ("light", "dark"):
        open_page(browser_page, dossier, scheme=scheme)
        seen.append((browser_page.evaluate(background), browser_page.evaluate(stroke)))
    assert seen[0][0] == "rgb(255, 255, 254)"
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize(("privacy", "accuracy"), [(20, 20), (31, 12), (40, 0), (0, 40), (7, 9)])
def test_the_sliders_find_the_choice_under_their_weights(
    browser_page: Page, dossier: Path, plan: Plan, privacy: int, accuracy: int
) -> None:
    open_page(browser_page, dossier)
    browser_page.locator("#what-if-privacy").fill(str(privacy))
    browser_page.locator("#what-if-accuracy").fill(str(accuracy))
    weight, price = 10 ** ((privacy - 20) / 10), 10 ** ((accuracy - 20) / 10)
    (group,), (value,) = plan.welfare.groups, plan.welfare.table_values
    welfare = replace(
        plan.welfare,
        groups=(replace(group, relative_privacy_weight=weight),),
        table_values=(value.at_price(price),),
    )
    choice = choose(plan.frontier, welfare, plan.limits)
    said = browser_page.locator("#what-if-answer").inner_text()
    assert f"ε = {float(choice.loss):g}, decided by {choice.bound_by}" in said
    assert choice.root_mean_squared_error is not None
    assert f"typical error of {number(choice.root_mean_squared_error)} children" in said
    assert f"Society loses {money(-choice.welfare, choice.currency)} in all." in said
    assert browser_page.locator("#what-if-privacy-words").inner_text() == f"{float(f'{weight:.3g}'):g}"
    assert browser_page.locator("#what-if-accuracy-words").inner_text() == f"{float(f'{price:.3g}'):g} USD per USD²"
    assert browser_page.locator("#what-if-privacy").get_attribute("aria-valuetext") == f"{float(f'{weight:.3g}'):g}"


def circle_of(page: Page) -> tuple[float, float]:
    """Where the circle stands in the picture for a desk, px from its upper left corner."""
    x, y = page.evaluate("""() => {
      const picture = document.querySelector(".what-if .wide svg");
      const frame = picture.getBoundingClientRect();
      const circle = picture.querySelector(".here_marks path").getBoundingClientRect();
      return [circle.left - frame.left, circle.top - frame.top];
    }""")
    return x, y


def test_the_circle_moves_down_the_frontier_and_comes_back(browser_page: Page, dossier: Path) -> None:
    open_page(browser_page, dossier)
    start = circle_of(browser_page)
    browser_page.locator("#what-if-privacy").fill("35")
    right, down = (b - a for a, b in zip(start, circle_of(browser_page), strict=True))
    assert right < -50  # less privacy loss
    assert down < -20  # larger errors
    browser_page.locator("#what-if-reset").click()
    assert circle_of(browser_page) == pytest.approx(start, abs=0.5)


def test_without_scripts_all_but_the_sliders_is_there(browser: Browser, dossier: Path) -> None:
    page = browser.new_page(java_script_enabled=False, viewport={"width": 360, "height": 800})
    page.goto((dossier / "dossier.html").as_uri())
    assert page.locator("figure .narrow svg:visible").count() == len(PICTURES)
    assert not page.locator("#what-if-controls").is_visible()
    page.locator("#reasons ~ details summary").first.click()
    assert page.locator("#reasons ~ details table").first.is_visible()
    page.close()


def test_on_paper_every_table_is_open_and_the_sliders_are_gone(browser_page: Page, dossier: Path) -> None:
    open_page(browser_page, dossier, width=360)
    browser_page.emulate_media(media="print")
    browser_page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browser_page.locator("details[open]").count() == browser_page.locator("details").count()
    assert browser_page.locator("figure .wide svg:visible").count() == len(PICTURES)
    assert not browser_page.locator("#what-if-controls").is_visible()
    browser_page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser_page.locator("details[open]").count() == 0


CAPPED = (("largest_epsilon = 10", "largest_epsilon = 2"),)
BOUNDED = (
    ('information_utility            = "linear"', 'information_utility = "bounded"'),
    ('value = 1400, unit = "USD per child per epsilon"', 'value = 20000, unit = "USD per child"'),
    ("largest_epsilon = 10", "largest_epsilon = 9"),
)
FIT = (('loss        = "squared"', 'loss = "squared"\nfitness_for_use = { largest_root_mean_squared_error = 0.4 }'),)
IN_RHO = (
    ('noise = "best"', 'noise = "gaussian"'),
    ("USD per child per epsilon", "USD per child per rho"),
    ("largest_epsilon = 10", "largest_rho = 10"),
)
SEVERAL = (
    (
        "[mechanism]\n",
        '[[workload]]\nname = "<b>all</b> & every child"\nby = []\nloss = "absolute"\n'
        'consequence = { value = 1.0e6, unit = "USD per child", source = "made up" }\n\n'
        '[mechanism]\nmeasured = "apart"\n',
    ),
)
OPTIMIZED = (
    (
        "[mechanism]\n",
        '[[workload]]\nname = "every child"\nby = []\n'
        'value_of_accuracy = { value = 1.0e9, unit = "USD per child^2", source = "made up" }\n\n[mechanism]\n',
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [CAPPED, BOUNDED, FIT, IN_RHO, SEVERAL, OPTIMIZED],
    ids=["capped", "bounded", "fit for use", "in rho", "several", "optimized"],
)
def test_other_programs_are_as_readable(
    browser_page: Page, tmp_path: Path, changes: tuple[tuple[str, str], ...]
) -> None:
    plan = plan_of(tmp_path / "program", *changes)
    write_dossier(plan, tmp_path / "dossier")
    for width in WIDTHS:
        heard = open_page(browser_page, tmp_path / "dossier", width=width)
        assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
        assert browser_page.evaluate(MISPLACED) == []
        assert browser_page.evaluate(CUT) == []
        assert heard == []
    assert browser_page.locator("main b").count() == 0
    assert browser_page.locator("h1").inner_text().endswith(f"= {float(plan.choice.loss):g}")
