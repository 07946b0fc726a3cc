from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.frontier.numerics import log_grid
from dualmandate.report.figures.figure import Clearing, Plane, Ruler, spread


@given(st.floats(1e-6, 1e3), st.floats(1.01, 1e6), st.floats(0.0, 1.0))
def test_the_grid_rises_keeps_its_ends_and_holds_each_loss_once(low: float, span: float, share: float) -> None:
    own = low * span**share
    losses = log_grid(low, low * span, through=(own, 10 * low * span))
    assert own in losses or not low <= own <= low * span
    assert losses[0] == pytest.approx(low)
    assert losses[-1] == pytest.approx(low * span)
    assert all(after > before * (1 + 1e-10) for before, after in pairwise(losses))


def test_a_loss_that_the_grid_meets_anyway_is_there_once() -> None:
    losses = log_grid(2.5276435 / 4, 2.5276435 * 4, through=(2.5276435,))
    assert len(losses) == 81
    assert sum(abs(loss - 2.5276435) < 1e-6 for loss in losses) == 1


@given(st.floats(1e-6, 1e6), st.floats(1.5, 1e9))
def test_ticks_of_a_logarithmic_axis_lie_on_it_and_are_few(low: float, span: float) -> None:
    ruler = Ruler("loss", low, low * span, log=True)
    ticks = ruler.ticks()
    assert ticks is not None
    assert len(ticks) <= 12
    assert all(low * (1 - 1e-6) <= tick <= low * span * (1 + 1e-6) for tick in ticks)
    if span >= 10:
        assert ticks


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=8))
def test_labels_are_pushed_apart_and_keep_their_order(heights: list[float]) -> None:
    places = spread(heights, Ruler("", 0.0, 100.0), height=200, gap=17.0)
    pixels = sorted(2 * place for place in places)
    assert all(after - before >= 17.0 - 1e-6 for before, after in pairwise(pixels))
    assert max(pixels) <= 200 + 1e-6
    for i, j in combinations(range(len(heights)), 2):
        if heights[i] < heights[j]:
            assert places[i] < places[j]


def test_a_curve_is_drawn_as_far_as_it_lies_on_its_plane() -> None:
    """No drawing has to cut it: that takes most of the time of its pixels."""
    plane = Plane(Ruler("loss", 1.0, 100.0, log=True), Ruler("error", 0.0, 10.0))
    rows = [{"x": 0.1, "y": 5.0}, {"x": 10.0, "y": 5.0}, {"x": 10.0, "y": 25.0}, {"x": 10.0, "y": 9.0}]
    drawn = plane.curve([*rows, {"x": 1000.0, "y": 9.0}], "x", "y", color="black")
    assert "clip" not in drawn["mark"]
    found = np.array([(row["piece"], row["x"], row["y"]) for row in drawn["data"]["values"]])
    assert found == pytest.approx(np.array([(0, 1, 5), (0, 10, 5), (0, 10, 10), (1, 10, 10), (1, 10, 9), (1, 100, 9)]))
    inside = plane.curve(rows[1:2] + rows[3:], "x", "y", color="black")
    assert "detail" not in inside["encoding"]
    assert inside["data"]["values"] == rows[1:2] + rows[3:]
    assert plane.closed(2.0, 50.0)["mark"].get("clip") is None
    assert plane.closed(2.0, 500.0)["mark"]["clip"]


def test_words_that_stand_free_are_told_from_those_on_a_line() -> None:
    plane = Plane(Ruler("x", 0.0, 100.0), Ruler("y", 0.0, 100.0))
    room = Clearing(plane, 200.0, 200.0).with_line([(0.0, 50.0), (100.0, 50.0)]).with_line([(80.0, 0.0), (80.0, 100.0)])
    assert room.holds(40.0, 75.0, "words")
    assert not room.holds(40.0, 52.0, "words")  # on the first line
    assert not room.holds(98.0, 75.0, "words")  # cut at the edge
    assert room.has_room(60.0, "cap 8", "right")
    assert not room.has_room(70.0, "cap 8", "left")  # on the second line
