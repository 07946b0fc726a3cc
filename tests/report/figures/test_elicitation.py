"""The curve of what people would pay, and the forest of pooled sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualmandate.elicitation.answers import BidAnswers
from dualmandate.elicitation.contingent import contingent_valuation, turnbull
from dualmandate.elicitation.pooling import CommonGround, Pooled, Prior, pool
from dualmandate.population import Calibrated
from dualmandate.report.figures import forest, valuation_curve
from dualmandate.report.theme import LIGHT, NARROW

COST = "USD per person per epsilon"


def answers(*, spike: bool, effect: float = 0.05) -> BidAnswers:
    generator = np.random.default_rng(7)
    amount = (1 + generator.logistic(size=600)) / effect
    bid = generator.choice([5.0, 10.0, 20.0, 40.0, 80.0], 600)
    return BidAnswers.single_bounded(bid, amount > bid, pays_anything=amount > 0 if spike else None)


def sources(*values: float) -> Pooled:
    ground = CommonGround(COST, "per year")
    stated = [
        Calibrated(value, COST, f"study {i + 1}", time_base="per year", standard_error=value / 10)
        for i, value in enumerate(values)
    ]
    return pool(stated, ground, prior=Prior(100.0, 2.0, "weak, by decision", between=0.5))


def named(marks: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = next(mark for mark in marks if mark.get("name") == name)["data"]["values"]
    return rows


def test_the_curve_shows_what_was_counted_and_fitted(units: Any) -> None:
    asked = answers(spike=True)
    valuation, bound = contingent_valuation(asked), turnbull(asked)
    picture = valuation_curve(valuation, bound)
    twin = picture.table
    assert [row["bid"] for row in twin.rows] == [0, 5, 10, 20, 40, 80]
    assert [row["counted"] for row in twin.rows] == pytest.approx((1 - bound.refusing).tolist())
    assert twin.rows[0]["fitted"] == pytest.approx(1 - valuation.share_at_zero().estimate)
    marks = units(picture)
    assert [row["counted"] for row in named(marks, "bids")] == [row["counted"] for row in twin.rows]
    steps = next(mark for mark in marks if mark["mark"]["type"] == "area")["data"]["values"]
    corners = np.array([[row["amount"], row["share"]] for row in steps])
    area = float((np.diff(corners[:, 0]) * corners[1:, 1]).sum())
    assert area == pytest.approx(bound.lower_bound)  # what is shaded is the bound
    said = "People would pay USD 27.13 on average (USD 23.93 to USD 30.32), and at least USD 18.68"
    assert picture.title.startswith(said)


def test_without_a_spike_nobody_pays_nothing(units: Any) -> None:
    asked = answers(spike=False)
    drawn = valuation_curve(contingent_valuation(asked), turnbull(asked)).svg(NARROW)
    assert "pay nothing" not in drawn
    assert "pay nothing" in valuation_curve(contingent_valuation(answers(spike=True)), turnbull(asked)).svg()


def test_no_number_where_there_is_none() -> None:
    generator = np.random.default_rng(1)
    bid = generator.choice([1.0, 2.0, 4.0], 100)
    asked = BidAnswers.single_bounded(bid, generator.random(100) < 0.5)
    picture = valuation_curve(contingent_valuation(asked), turnbull(asked))
    assert "unbounded" in picture.title
    assert "mean" not in picture.svg()


def test_conflicting_sources_stand_out(units: Any) -> None:
    pooled = sources(61.0, 80.0, 1343.0)
    picture = forest(pooled)
    twin = picture.table
    assert [row["conflict"] for row in twin.rows[:-1]] == [True, True, True]
    assert (twin.rows[-1]["value"], twin.rows[-1]["low"]) == (pooled.mean, pooled.interval()[0])
    marks = units(picture)
    assert [row["name"] for row in named(marks, "conflicting")] == ["study 1", "study 2", "study 3"]
    assert not any(mark.get("name") == "agreeing" for mark in marks)
    assert named(marks, "posterior")[0]["x"] == pooled.mean
    title, subtitle = picture.title, picture.subtitle
    assert title.startswith("“study 1” and “study 3” differ by a factor of 22")
    assert "purple" in subtitle


def test_agreeing_sources(units: Any) -> None:
    picture = forest(sources(61.0, 66.0))
    assert picture.title.startswith("The sources agree")
    assert "purple" not in picture.subtitle
    marks = units(picture, NARROW)
    assert len(named(marks, "agreeing")) == 2
    bars = [mark for mark in marks if mark["mark"]["type"] == "rule" and "from" in mark["data"]["values"][0]]
    colors = {mark["mark"]["color"] for mark in bars}
    assert colors == {LIGHT.production, LIGHT.preference}
    first = next(mark for mark in bars if mark["mark"]["color"] == LIGHT.production)["data"]["values"][0]
    assert first["from"] < 61.0 < first["to"]
    # Log-normal with mean 61 and standard error 6.1, as pooling reads it.
    assert np.sqrt(first["from"] * first["to"]) == pytest.approx(61 / np.sqrt(1.01))
    assert "<svg" in picture.svg()


def test_scatter_without_one_guilty_pair() -> None:
    # Many sources, each a little off: all together they scatter too much, no single pair stands out.
    pooled = sources(82, 84, 83, 85, 119, 121, 120, 118)
    assert not pooled.agreement.conflicts
    assert not pooled.agreement.agree
    assert "scatter more than their errors" in forest(pooled).title
