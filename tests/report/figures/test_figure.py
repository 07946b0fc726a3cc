"""What holds for every figure: a valid specification with its data inside, nothing loaded, no wider than asked."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from dualmandate.choice import inputs
from dualmandate.choice import tornado as tornado_rows
from dualmandate.errors import UnknownName
from dualmandate.report.figures import (
    Figure,
    consequences,
    rates,
    regret,
    strategies,
    tangency,
    technologies,
    tornado,
    welfare_curve,
    what_if,
    what_if_choices,
)
from dualmandate.report.figures.figure import Plane, Ruler, layered, write
from dualmandate.report.theme import DARK, LIGHT, NARROW, WIDE

OTHER_CASES = ("capped", "fit_for_use", "bounded", "two_tables")
NAMES = ("tangency", "rates", "welfare", "regret", "tornado", "consequences", "what_if", "technologies", "strategies")
LOADS = re.compile(r'(?:href|src|url)\s*[=(]\s*["\']?(?!#)[a-z]+:', re.IGNORECASE)

Make = Callable[[str, str], Figure]


def times(cost: Callable[[float], float], factor: float) -> Callable[[float], float]:
    return lambda loss: factor * cost(loss)


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    def figure(of: str, name: str) -> Figure:
        case = request.getfixturevalue(of)
        whole = case.frontier, case.welfare, case.choice
        if name == "tornado":
            tenths = {row.name: (0.9 * row.value, 1.1 * row.value) for row in inputs(case.welfare, case.limits)}
            return tornado(tornado_rows(case.frontier, case.welfare, case.limits, ranges=tenths), case.choice)
        if name == "consequences":
            return consequences(case.choice)
        if name == "what_if":
            grid = what_if_choices(case.frontier, case.welfare, case.limits, steps=5)
            return what_if(*whole, grid=grid)
        if name == "technologies":
            other = type(case.frontier)("geometric", case.frontier.query_counts)
            return technologies([case.frontier, other], case.welfare, case.choice)
        if name == "strategies":
            cost: Callable[[float], float] = partial(case.welfare.data_loss, case.frontier)
            costs = {"Laplace noise on the tables": cost, "Laplace noise on an optimized strategy": times(cost, 0.4)}
            return strategies(costs, case.choice, used=[*costs][1], least=times(cost, 0.3))
        if name == "tangency":
            return tangency(*whole, limits=case.limits)
        return {"rates": rates, "welfare": welfare_curve, "regret": regret}[name](*whole)

    return figure


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("case", "width"),
    [
        ("title_i", WIDE),
        ("title_i", NARROW),
        *(pytest.param(case, NARROW, marks=pytest.mark.slow) for case in OTHER_CASES),
    ],
)
def test_a_picture_is_valid_holds_its_data_loads_nothing_and_fits(make: Make, case: str, name: str, width: int) -> None:
    figure = make(case, name)
    figure.draw(width).to_dict(validate=True)
    document = figure.specification(width)
    text = json.dumps(document, allow_nan=False)
    assert '"url"' not in text
    assert "://" not in text
    drawing = figure.svg(width)
    assert not LOADS.search(drawing)
    drawn_width = re.search(r' width="([\d.]+)"', drawing)
    assert drawn_width is not None
    assert float(drawn_width[1]) <= width + 1
    heading = document["title"]
    assert len(" ".join(heading["text"])) > 20
    if width == NARROW:
        assert all(len(line) <= 42 for line in heading["text"])
        assert all(len(line) <= 56 for line in heading["subtitle"])


@pytest.fixture(scope="module")
def picture(title_i: Any) -> Figure:
    return tangency(title_i.frontier, title_i.welfare, title_i.choice)


def test_png_and_svg_are_written_in_light_and_dark(picture: Figure, tmp_path: Path) -> None:
    pixels = picture.save(tmp_path / "deep" / "one.png").read_bytes()
    assert pixels.startswith(b"\x89PNG")
    assert struct.unpack(">I", pixels[16:20]) == (1360,)
    assert LIGHT.paper in picture.save(tmp_path / "one.svg").read_text()
    dark = picture.save(tmp_path / "two.svg", "dark").read_text()
    assert DARK.paper in dark
    assert LIGHT.paper not in dark
    assert picture.save(tmp_path / "two.png", "dark").read_bytes() != pixels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "one.svg", "two.png", "two.svg"]


def test_another_format_is_refused(picture: Figure, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"\.gif") as refusal:
        picture.save(tmp_path / "one.gif")
    assert refusal.value.instead == "write to one.png"
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "page.html", b"old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError("no room")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no room"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_inside_a_page_takes_the_pages_colors_and_keeps_its_ids_apart(picture: Figure, title_i: Any) -> None:
    def cut(width: int) -> dict[str, Any]:
        """The same before a region that passes its edge, and so is cut by a shape with an id."""
        plane = Plane(Ruler("", 1.0, 2.0), Ruler("", 1.0, 2.0))
        return {"vconcat": [picture.layout(width), layered(plane.closed(1.5, 3.0), width=100, height=100)]}

    one = replace(picture, layout=cut).inline_svg(WIDE, "first")
    regrets = regret(title_i.frontier, title_i.welfare, title_i.choice)
    other = replace(regrets, layout=cut).inline_svg(WIDE, "second")
    assert not re.search(r"#[0-9a-f]{6}", one)
    assert "var(--dm-production)" in one
    ids = [set(re.findall(r'id="([^"]+)"', drawing)) for drawing in (one, other)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert set(re.findall(r"url\(#([^)]+)\)", one)) <= ids[0]
    assert one.count("aria-label") == 1
    assert "At ε" in re.search(r'aria-label="([^"]+)"', one)[1]  # type: ignore[index]


def test_the_page_of_a_picture_follows_the_window(picture: Figure, tmp_path: Path, browser_page: Page) -> None:
    path = picture.save(tmp_path / "one.html")
    requests: list[str] = []
    browser_page.on("request", lambda request: requests.append(request.url))
    for width in (1280, 360):
        browser_page.set_viewport_size({"width": width, "height": 800})
        browser_page.goto(path.as_uri())
        drawing = browser_page.locator("#picture svg").first
        drawing.wait_for()
        box = drawing.bounding_box()
        assert box is not None
        assert 0.8 * min(width, 960) < box["width"] <= width
        assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    assert requests == [path.as_uri()] * 2
    assert "2.5276" in browser_page.locator("h1").inner_text()


def test_a_figure_is_drawn_only_when_asked(title_i: Any) -> None:
    widths: list[int] = []
    figure = tangency(title_i.frontier, title_i.welfare, title_i.choice)

    def layout(width: int) -> dict[str, Any]:
        widths.append(width)
        return figure.layout(width)

    counted = replace(figure, layout=layout)
    assert counted == figure
    assert (counted.table.rows, widths) == (figure.table.rows, [])
    assert counted.draw(NARROW).to_dict(validate=False)["width"] == NARROW
    assert widths == [NARROW]


def test_a_name_stands_where_no_line_and_no_other_name_passes() -> None:
    from dualmandate.report.figures.figure import LETTER, LINE_HEIGHT, Clearing, Plane, Ruler

    plane = Plane(Ruler("x", 0.0, 10.0), Ruler("y", 0.0, 10.0))
    rising = [(x / 4, x / 4) for x in range(41)]
    clearing = Clearing(plane, 300.0, 300.0).with_line(rising).with_line([(5.0, 0.0), (5.0, 10.0)])
    words, boxes = "a name of\ntwo lines", list[tuple[float, float, float, float]]()
    for _ in range(3):
        spot, clearing = clearing.named(rising, words)
        assert spot is not None
        middle, half = (30 * spot[0], 300 - 30 * spot[1]), (LETTER * 9 / 2, LINE_HEIGHT)
        box = middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1]
        assert min(box) >= 0
        assert max(box) <= 300
        assert not box[0] < 150 < box[2]  # the upright line
        assert not any(box[0] < t < box[2] and box[1] < 300 - t < box[3] for t in range(300))  # the rising one
        assert not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes)
        boxes.append(box)
    crowded = clearing
    for place in range(0, 101, 2):
        crowded = crowded.with_line([(0.0, place / 10), (10.0, place / 10)])
    assert crowded.named(rising, words) == (None, crowded)  # rather none than one that cannot be read
