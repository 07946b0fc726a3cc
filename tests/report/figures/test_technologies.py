"""Technologies compared, and what the better one saves: words, bars and shade say the same as the costs behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.report.figures.conftest import SmallCurves, lies_on

from dualmandate.frontier import Frontier, Measure
from dualmandate.population.arrays import Floats
from dualmandate.report.figures import Figure, strategies, technologies
from dualmandate.report.figures.errors import SAVING_REACH
from dualmandate.report.theme import NARROW

PLAIN, OPTIMIZED, CELLS = "Laplace noise on the tables", "Laplace noise on an optimized strategy", "noise on every cell"
Cost = Callable[[float], float]


def laplace(loss: float) -> float:
    """What 13,000 numbers with noise of variance 2/ε² cost at 2e7 USD each."""
    return 13_000 * 2e7 * 2 / loss**2


def share(part: float) -> Cost:
    return lambda loss: part * laplace(loss)


def finding(figure: Figure) -> tuple[str, str]:
    return figure.title, figure.subtitle


def test_the_twin_holds_every_cost_and_what_is_saved(title_i: Any) -> None:
    costs = {PLAIN: laplace, OPTIMIZED: share(0.4)}
    twin = strategies(costs, title_i.choice, used=OPTIMIZED, least=share(0.3)).table
    [here] = [row for row in twin.rows if row["marked"]]
    assert here["loss"] == title_i.choice.epsilon
    assert here["cost_0"] == pytest.approx(title_i.choice.data_loss)
    assert here["saved"] == pytest.approx(0.6 * title_i.choice.data_loss)
    assert here["least"] == pytest.approx(0.3 * title_i.choice.data_loss)
    losses = [float(str(row["loss"])) for row in twin.rows]
    assert losses == sorted(losses)
    assert losses[-1] / losses[0] == pytest.approx(SAVING_REACH**2)
    assert [column.heading for column in twin.columns][1:3] == [f"{PLAIN}, USD", f"{OPTIMIZED}, USD"]


def test_the_finding_is_what_the_better_technology_saves(title_i: Any, units: Any) -> None:
    picture = strategies({PLAIN: laplace, OPTIMIZED: share(0.4)}, title_i.choice, used=OPTIMIZED, least=share(0.3))
    title, below = finding(picture)
    assert title == "At ε = 2.5276, the better technology saves USD 48.83 billion: errors cost 60 % less"
    assert below.endswith(
        "shaded: out of reach of any strategy with the same noise, at most 25 % below; its edge may be out of reach too"
    )
    marks = units(picture)
    [bar] = [mark["data"]["values"][0] for mark in marks if mark["mark"].get("strokeWidth") == 5]
    assert bar["high"] - bar["low"] == pytest.approx(0.6 * title_i.choice.data_loss)
    [area] = [mark["data"]["values"] for mark in marks if mark["mark"]["type"] == "area"]
    assert all(row["least"] == pytest.approx(0.3 * laplace(row["loss"])) for row in area)
    texts = {mark["data"]["values"][0]["text"] for mark in marks if mark["mark"]["type"] == "text"}
    assert {"saves USD 48.83 billion", "no strategy with this noise errs less", "ε = 2.5276"} <= texts


def test_a_technology_that_is_beaten_says_what_would_be_saved(title_i: Any) -> None:
    costs = {PLAIN: laplace, OPTIMIZED: share(0.4), CELLS: share(3.0)}
    title, below = finding(strategies(costs, title_i.choice, used=CELLS))
    assert title == f"At ε = 2.5276, {OPTIMIZED} would save USD 211.6 billion: errors would cost 86.7 % less"
    assert "shaded" not in below
    title, _ = finding(strategies({PLAIN: laplace, OPTIMIZED: share(0.4)}, title_i.choice, used=PLAIN))
    assert title.startswith(f"At ε = 2.5276, {OPTIMIZED} would save USD 48.83 billion")


def test_where_nothing_is_better_it_says_so(title_i: Any, units: Any) -> None:
    picture = strategies({PLAIN: laplace}, title_i.choice, used=PLAIN, least=laplace)
    title, below = finding(picture)
    assert title == f"At ε = 2.5276, nothing that was compared does better than {PLAIN}"
    assert below.endswith("the technology in use stands at its edge")
    assert not [mark for mark in units(picture) if mark["mark"].get("strokeWidth") == 5]


def test_losses_at_which_noise_has_vanished_are_left_out(title_i: Any) -> None:
    """Whole-number noise at a large loss is exactly 0 in floats, and has no place on a logarithmic axis."""

    def vanishing(loss: float) -> float:
        return laplace(loss) if loss < 5 else 0.0

    twin = strategies({PLAIN: laplace, OPTIMIZED: vanishing}, title_i.choice, used=OPTIMIZED).table
    assert max(float(str(row["loss"])) for row in twin.rows) < 5
    assert all(math.isfinite(float(str(row["saved"]))) for row in twin.rows)
    strategies({PLAIN: laplace, OPTIMIZED: vanishing}, title_i.choice, used=OPTIMIZED).specification(NARROW)


def test_the_envelope_names_the_best_technology_and_the_price_of_the_other(
    title_i: Any, laplace: Any, geometric: Any, units: Any
) -> None:
    twin = technologies([laplace, geometric], title_i.welfare, title_i.choice).table
    assert {row["best"] for row in twin.rows} == {"geometric"}
    here = next(row for row in twin.rows if row["marked"])
    assert here["times_0"] == pytest.approx(8.139012e10 / here["cost_1"], rel=1e-6)
    assert here["times_0"] == pytest.approx(1 / 0.6025, rel=1e-3)
    picture = technologies([laplace, geometric], title_i.welfare, title_i.choice)
    assert "errors cost least with geometric" in picture.title
    drawn = [mark["data"]["values"] for mark in units(picture) if mark["mark"]["type"] == "line"]
    curve = [{"loss": row["loss"], "times_0": row["times_0"]} for row in twin.rows]
    assert any(len(line) > len(curve) / 2 and lies_on(line, curve) for line in drawn)


class Late(SmallCurves):
    """Four times the errors of Laplace noise, and a fifth of them from three times the paper's best loss on."""

    def values(self, loss: float, measure: Measure) -> Floats:
        return super().values(loss, measure) * (4.0 if loss < 3 * 2.5276 else 0.2)


def test_what_is_best_for_a_short_stretch_is_named_where_its_curve_ends(title_i: Any, laplace: Any, units: Any) -> None:
    """Its bar is too short for its name; and what is twice as much or more is told as a multiple."""
    late = Frontier("late", laplace.privacy_measure, laplace.query_counts, Late("laplace", laplace.curves.counts))
    picture = technologies([laplace, late], title_i.welfare, title_i.choice)
    assert (
        picture.title
        == "At ε = 2.5276, errors cost least with Laplace noise; with late noise they cost 4 times as much"
    )
    words = {mark["data"]["values"][0].get("text") for mark in units(picture) if mark["mark"]["type"] == "text"}
    assert {"best: laplace", "late"} <= words


def test_technologies_that_err_alike_are_said_to(title_i: Any, laplace: Any) -> None:
    twin = type(laplace)("laplace", laplace.query_counts)
    assert "err alike" in technologies([laplace, twin], title_i.welfare, title_i.choice).title
