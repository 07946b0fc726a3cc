from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from dualmandate.errors import UnknownName
from dualmandate.report.figures import DARK, LIGHT, inline_svg, regret, save, tangency, write
from dualmandate.report.figures.saving import Picture


@pytest.fixture(scope="module")
def picture(title_i: Any) -> Picture:
    return tangency(title_i.frontier, title_i.welfare, title_i.choice)


def test_png_and_svg_are_written_in_light_and_dark(picture: Picture, tmp_path: Path) -> None:
    pixels = save(picture, tmp_path / "deep" / "one.png").read_bytes()
    assert pixels.startswith(b"\x89PNG")
    assert struct.unpack(">I", pixels[16:20]) == (1360,)
    assert LIGHT.paper in save(picture, tmp_path / "one.svg").read_text()
    dark = save(picture, tmp_path / "two.svg", "dark").read_text()
    assert DARK.paper in dark
    assert LIGHT.paper not in dark
    assert save(picture, tmp_path / "two.png", "dark").read_bytes() != pixels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "one.svg", "two.png", "two.svg"]


def test_another_format_is_refused(picture: Picture, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"\.gif") as refusal:
        save(picture, tmp_path / "one.gif")
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


def test_a_picture_inside_a_page_takes_the_pages_colors_and_keeps_its_ids_apart(picture: Picture, title_i: Any) -> None:
    one = inline_svg(picture, "first")
    other = inline_svg(regret(title_i.frontier, title_i.welfare, title_i.choice), "second")
    assert not re.search(r"#[0-9a-f]{6}", one)
    assert "var(--dm-production)" in one
    ids = [set(re.findall(r'id="([^"]+)"', drawing)) for drawing in (one, other)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    assert set(re.findall(r"url\(#([^)]+)\)", one)) <= ids[0]
    assert one.count("aria-label") == 1
    assert "At ε" in re.search(r'aria-label="([^"]+)"', one)[1]  # type: ignore[index]


def test_the_page_of_a_picture_follows_the_window(picture: Picture, tmp_path: Path, browser_page: Page) -> None:
    path = save(picture, tmp_path / "one.html")
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
