from __future__ import annotations

from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.report.plan_words import with_article
from dualmandate.report.theme import DARK, LIGHT, SERIES, Palette, plain_unit, recolor, wrap

# Viénot, Brettel and Mollon (1999): linear RGB as people without one kind of cone see it.
PROTAN = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTAN = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


def linear(color: str) -> NDArray[np.float64]:
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    return float(linear(color) @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_color_that_carries_words_can_be_read(palette: Palette) -> None:
    for name, color in asdict(palette).items():
        if name not in ("paper", "shade", "grid"):
            assert contrast(color, palette.paper) >= 4.5, name
            assert contrast(color, palette.shade) >= 4.5, name


@pytest.mark.parametrize("eyes", [PROTAN, DEUTAN], ids=["protanopia", "deuteranopia"])
def test_the_two_sides_of_the_argument_differ_for_color_blind_eyes(eyes: NDArray[np.float64]) -> None:
    for palette in (LIGHT, DARK):
        seen = [eyes @ linear(color) for color in (palette.production, palette.preference, palette.ink)]
        for one, other in combinations(seen, 2):
            assert np.abs(one - other).max() > 0.1


def test_every_color_is_its_own_and_is_exchanged() -> None:
    colors = list(asdict(LIGHT).values())
    assert len(set(colors)) == len(colors)
    assert set(SERIES) <= set(colors)
    drawing = " ".join(colors)
    assert recolor(drawing, DARK) == " ".join(asdict(DARK).values())
    assert recolor(drawing, LIGHT) == drawing
    assert recolor(f'fill="{LIGHT.ink}"', None) == 'fill="var(--dm-ink)"'


def test_lines_are_even_and_never_break_inside_a_loss() -> None:
    lines = wrap("At ε = 2.5276, one more unit of privacy loss costs exactly what its accuracy is worth", 300, 16)
    assert max(map(len, lines)) - min(map(len, lines)) < 12
    assert any("ε\u00a0=\u00a02.5276" in line for line in lines)


def test_units_and_articles_as_they_are_printed() -> None:
    assert plain_unit("USD^2 per child^2") == "USD² per child²"
    assert plain_unit("") == "pure number"
    words = ("child", "establishment", "Inn", "unit")
    assert [with_article(word) for word in words] == ["a child", "an establishment", "an Inn", "a unit"]
