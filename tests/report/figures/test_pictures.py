"""What holds for every picture: a valid specification with its data inside, nothing loaded, no wider than asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dualmandate.choice import tornado as tornado_rows
from dualmandate.report.figures import (
    NARROW,
    WIDE,
    consequences,
    cover,
    rates,
    regret,
    specification,
    strategies,
    svg,
    tangency,
    technologies,
    tornado,
    welfare_curve,
    what_if,
    what_if_choices,
)
from dualmandate.report.figures.saving import Picture

OTHER_CASES = ("capped", "fit_for_use", "bounded", "two_tables")
NAMES = ("tangency", "rates", "welfare", "regret", "tornado", "consequences", "what_if", "technologies", "strategies")
LOADS = re.compile(r'(?:href|src|url)\s*[=(]\s*["\']?(?!#)[a-z]+:', re.IGNORECASE)

Draw = Callable[[str, str, int], Picture]


def times(cost: Callable[[float], float], factor: float) -> Callable[[float], float]:
    return lambda loss: factor * cost(loss)


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Draw:
    def picture(of: str, name: str, width: int) -> Picture:
        case = request.getfixturevalue(of)
        whole = case.frontier, case.welfare, case.choice
        if name == "tornado":
            return tornado(tornado_rows(case.frontier, case.welfare, case.limits), case.choice, width=width)
        if name == "consequences":
            return consequences(case.choice, width=width)
        if name == "what_if":
            grid = what_if_choices(case.frontier, case.welfare, case.limits, steps=5)
            return what_if(*whole, grid=grid, width=width)
        if name == "technologies":
            other = type(case.frontier)("geometric", case.frontier.query_counts)
            return technologies([case.frontier, other], case.welfare, case.choice, width=width)
        if name == "strategies":
            cost: Callable[[float], float] = partial(case.welfare.data_loss, case.frontier)
            costs = {"Laplace noise on the tables": cost, "Laplace noise on an optimized strategy": times(cost, 0.4)}
            return strategies(costs, case.choice, used=[*costs][1], least=times(cost, 0.3), width=width)
        if name == "tangency":
            return tangency(*whole, limits=case.limits, width=width)
        return {"rates": rates, "welfare": welfare_curve, "regret": regret}[name](*whole, width=width)

    return picture


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("case", "width"),
    [
        ("title_i", WIDE),
        ("title_i", NARROW),
        *(pytest.param(case, NARROW, marks=pytest.mark.slow) for case in OTHER_CASES),
    ],
)
def test_a_picture_is_valid_holds_its_data_loads_nothing_and_fits(draw: Draw, case: str, name: str, width: int) -> None:
    picture = draw(case, name, width)
    picture.to_dict(validate=True)
    document = specification(picture)
    text = json.dumps(document, allow_nan=False)
    assert "$schema" not in document
    assert '"url"' not in text
    assert "://" not in text
    drawing = svg(picture)
    assert not LOADS.search(drawing)
    drawn_width = re.search(r' width="([\d.]+)"', drawing)
    assert drawn_width is not None
    assert float(drawn_width[1]) <= width + 1
    heading = document["title"]
    assert len(" ".join(heading["text"])) > 20
    if width == NARROW:
        assert all(len(line) <= 42 for line in heading["text"])
        assert all(len(line) <= 56 for line in heading["subtitle"])


def test_the_cover_stands_two_pictures_side_by_side(title_i: Any) -> None:
    picture = cover(title_i.frontier, title_i.welfare, title_i.choice, name="Title I", limits=title_i.limits)
    document = picture.to_dict()
    assert len(document["hconcat"]) == 2
    assert all("config" not in panel for panel in document["hconcat"])
    assert " ".join(document["title"]["text"]).replace("\u00a0", " ") == "Title I: society is best off at ε = 2.5276"
    words = " ".join(document["title"]["subtitle"])
    assert "0.559 children ($2,502) in each of 13,000 published numbers" in words
    assert "46,000,000 children" in words
    assert not LOADS.search(svg(picture))
