"""Pictures of what is not known, of robust choices and of rules of social choice."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualmandate.choice import (
    Beliefs,
    BoundedCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    RobustChoice,
    SocialChoices,
    SocialChoiceTerms,
    SocialWelfare,
    Society,
    TableValue,
    Uncertain,
    UncertainChoice,
    choose_under_uncertainty,
    minimax_regret,
    social_choices,
)
from dualmandate.planning.uncertainty import gains_at_each_loss
from dualmandate.report.figures import (
    Figure,
    charges,
    distribution,
    regret_distribution,
    robust,
    social_choice,
    survey_worth,
    votes,
)
from dualmandate.report.theme import NARROW, WIDE

COST = "mean_disclosure_cost"


@pytest.fixture(scope="module")
def known(title_i: Any) -> UncertainChoice:
    beliefs = Beliefs.lognormal(title_i.welfare, [Uncertain.lognormal(COST, math.log(1400), 0.5)])
    return choose_under_uncertainty(title_i.frontier, beliefs)


@pytest.fixture(scope="module")
def limited(title_i: Any, known: UncertainChoice) -> UncertainChoice:
    return choose_under_uncertainty(title_i.frontier, known.beliefs, Limits(largest_epsilon=3.0))


@pytest.fixture(scope="module")
def two_states(title_i: Any) -> UncertainChoice:
    beliefs = Beliefs.draws(title_i.welfare, {COST: [61, 1400]}, [1, 3], discrete=True)
    return choose_under_uncertainty(title_i.frontier, beliefs)


@pytest.fixture(scope="module")
def corners(title_i: Any) -> RobustChoice:
    return minimax_regret(title_i.frontier, title_i.welfare, {COST: (61, 1400)})


@pytest.fixture(scope="module")
def many_corners(title_i: Any) -> RobustChoice:
    ranges = {COST: (61.0, 1400.0), "consequence": (1e7, 4e7)}
    return minimax_regret(title_i.frontier, title_i.welfare, ranges, relative=True)


def society(title_i: Any, forms: tuple[InformationUtility, ...], shares: tuple[float, ...]) -> SocialChoices:
    table = title_i.welfare.table_values[0].table
    names = ("parents", "privacy advocates", "state agencies that use the counts")[: len(forms)]
    groups = tuple(PopulationGroup(name, 1.0, form) for name, form in zip(names, forms, strict=True))
    value = TableValue(table, sum(shares) / 26_000, unit="child")
    welfare = SocialWelfare(groups, (value,), protected_unit="child")
    people = Society.of(welfare, {name: share / sum(shares) for name, share in zip(names, shares, strict=True)})
    terms = SocialChoiceTerms(baseline=0.0, disagreement_epsilon=0.25, phantoms=(0.4, 0.6))
    return social_choices(title_i.frontier, people, terms=terms)


@pytest.fixture(scope="module")
def three(title_i: Any) -> SocialChoices:
    return society(title_i, (LinearCost(1.0), LinearCost(2.0), LinearCost(16.0)), (4.0, 1.0, 1.0))


@pytest.fixture(scope="module")
def endless(title_i: Any) -> SocialChoices:
    """One group wants none at all, one ever more: their peaks stand at the edges, with an arrow."""
    return society(title_i, (LinearCost(1.0), LinearCost(0.0), BoundedCost(1.0)), (4.0, 1.0, 0.0))


PICTURES: dict[str, Callable[..., Figure]] = {
    "known": distribution,
    "limited": distribution,
    "two_states": distribution,
    "known regret": regret_distribution,
    "two_states regret": regret_distribution,
    "known survey": lambda case: survey_worth(case, spread=1.5),
    "corners": robust,
    "many_corners": robust,
    "three": social_choice,
    "endless": social_choice,
    "three votes": votes,
    "three charges": charges,
}


SLOW = ("two_states regret", "many_corners", "endless")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PICTURES]
)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_picture_is_valid_holds_its_data_and_fits(request: pytest.FixtureRequest, name: str, width: int) -> None:
    figure = PICTURES[name](request.getfixturevalue(name.split()[0]))
    if width == NARROW:
        figure.draw(width).to_dict(validate=True)
    document = figure.specification(width)
    text = json.dumps(document, allow_nan=False)
    assert "://" not in text
    drawn_width = re.search(r' width="([\d.]+)"', figure.svg(width))
    assert drawn_width is not None
    assert float(drawn_width[1]) <= width + 1
    if width == NARROW:
        assert all(len(line) <= 42 for line in document["title"]["text"])


def test_the_distribution_shows_the_choice_and_its_interval(known: UncertainChoice) -> None:
    twin = distribution(known).table
    marked = {str(row["kind"]): row["loss"] for row in twin.rows if row["marked"]}
    assert marked["chosen"] == pytest.approx(2.424489, abs=1e-6)
    assert (marked["lower end"], marked["upper end"]) == pytest.approx((1.82326, 3.50415), abs=1e-5)
    below = {str(row["kind"]): row["below"] for row in twin.rows if row["marked"]}
    assert (below["lower end"], below["upper end"]) == pytest.approx((0.025, 0.975), abs=1e-3)
    losses = [row["loss"] for row in twin.rows]
    assert np.trapezoid([row["density"] for row in twin.rows], losses) == pytest.approx(1, abs=2e-3)
    # ln ε* ~ N(ln 2.5276, (1/6)²), smoothed a little.
    at = min(twin.rows, key=lambda row: abs(row["loss"] - 2.5276))
    assert at["density"] * at["loss"] == pytest.approx(6 / math.sqrt(2 * math.pi), rel=0.03)
    assert "between 1.823 and 3.504" in distribution(known).title


def test_nothing_is_drawn_beyond_a_limit(limited: UncertainChoice, units: Any) -> None:
    assert max(row["loss"] for row in distribution(limited).table.rows) == 3.0
    words = [row["text"] for mark in units(distribution(limited)) for row in mark["data"]["values"] if "text" in row]
    assert any("at the limit" in text for text in words)


def test_states_are_drawn_with_their_probabilities(two_states: UncertainChoice, units: Any) -> None:
    marks = {mark["name"]: mark["data"]["values"] for mark in units(distribution(two_states))}
    assert [(row["loss"], row["probability"]) for row in marks["states"]] == [
        (pytest.approx(2.527644, abs=1e-6), 0.75),
        (pytest.approx(7.183155, abs=1e-6), 0.25),
    ]


def test_regrets_exceed_their_quantiles_as_often_as_they_say(known: UncertainChoice) -> None:
    rows = {str(row["kind"]): row for row in regret_distribution(known).table.rows if row["marked"]}
    assert rows["exceeded in 5 of 100"]["exceeded"] == pytest.approx(0.05, abs=1e-3)
    assert rows["expected"]["regret"] == pytest.approx(7.270491e9, rel=1e-6)
    shares = [row["exceeded"] for row in regret_distribution(known).table.rows]
    assert shares == sorted(shares, reverse=True)
    assert "USD 7.27 billion in expectation" in regret_distribution(known).title


def test_a_survey_of_a_thousand_is_the_headline(known: UncertainChoice) -> None:
    twin = survey_worth(known, spread=1.5).table
    here = next(row for row in twin.rows if row["marked"])
    learned = 0.25 - 1 / (4 + 1000 / 2.25)
    assert here["value"] == pytest.approx(known.expected_cost * -math.expm1(-learned / 9), rel=1e-6)
    title = "Another survey of 1,000 people is worth USD 7.207 billion to this decision"
    assert survey_worth(known, spread=1.5).title == title


def test_the_worst_regret_is_least_at_the_robust_choice(corners: RobustChoice, units: Any) -> None:
    twin = robust(corners).table
    worst = [row["worst"] for row in twin.rows]
    here = next(row for row in twin.rows if row["marked"])
    assert here["worst"] == min(worst) == pytest.approx(2.261557e10, rel=1e-6)
    assert here["corner0"] == pytest.approx(here["corner1"], rel=1e-6)
    marks = {mark["name"]: mark["data"]["values"] for mark in units(robust(corners))}
    assert marks["optimum"][0]["loss"] == pytest.approx(3.473333, abs=1e-6)


def test_the_rules_stand_on_one_axis(three: SocialChoices, units: Any) -> None:
    marks = {mark["name"]: mark["data"]["values"] for mark in units(social_choice(three)) if mark["name"]}
    peaks = [marks[f"peak{i}"][0]["x"] for i in range(3)]
    assert peaks == pytest.approx([2, 1, 0.5])
    rules = [marks[f"rule{i}"][0]["x"] for i in range(len(three.rows))]
    assert rules == [row.epsilon for row in three.rows]
    twin = social_choice(three).table
    assert [row["rule"] for row in twin.rows] == [row.rule for row in three.rows]
    median = next(row for row in twin.rows if row["rule"] == "median")
    assert median["gain parents"] == pytest.approx(1.291835, abs=1e-6)
    for loss, gained in gains_at_each_loss(three).items():
        assert gained == three.profile.gains(loss, three.against)


def test_peaks_that_lie_close_stand_at_their_places_in_rows_of_their_own(title_i: Any, units: Any) -> None:
    close = society(title_i, (LinearCost(1.0), LinearCost(1.0001), LinearCost(1.0)), (1.0, 1.0, 1.0001))
    drawn = list(units(social_choice(close)))
    marks = {mark["name"]: mark["data"]["values"][0] for mark in drawn if mark["name"]}
    peaks = [marks[f"peak{i}"] for i in range(3)]
    assert [peak["x"] for peak in peaks] == [peak.epsilon for peak in close.profile.peaks]
    assert len({peak["y"] for peak in peaks}) == 3  # their names would cover each other in one row
    losses = list(gains_at_each_loss(close))
    assert losses[-1] / losses[0] < 2 * max(peak["x"] for peak in peaks) / min(peak["x"] for peak in peaks)


def test_peaks_without_a_place_stand_at_the_edge(endless: SocialChoices, units: Any) -> None:
    words = [row["text"] for mark in units(social_choice(endless)) for row in mark["data"]["values"] if "text" in row]
    assert any(text.startswith("→ privacy") for text in words)
    assert any(text.startswith("← state") for text in words)


def test_votes_are_shares_of_people(three: SocialChoices, units: Any) -> None:
    rows = {(row["loss"], row["other"]): row for row in votes(three).table.rows}
    low, middle, high = three.majority.options
    assert rows[middle, low]["for"] == pytest.approx(2 / 3)
    assert rows[middle, low]["wins"]
    assert rows[middle, high]["wins"]
    assert not rows[low, middle]["wins"]
    words = [row["text"] for mark in units(votes(three)) for row in mark["data"]["values"] if "text" in row]
    assert words.count("67 % wins") == 2 * sum(bool(row["wins"]) for row in rows.values())  # letters and their halo
    assert "No majority would leave" in votes(three).title


def test_charges_are_drawn_with_their_sign(three: SocialChoices, units: Any) -> None:
    payments = [row["payment"] for row in charges(three).table.rows]
    assert payments == pytest.approx([10.009737, 1.000974, -11.010711], abs=1e-6)
    marks = [mark for mark in units(charges(three)) if mark["name"] == "taxes"]
    assert [row["tax"] for row in marks[0]["data"]["values"]] == pytest.approx([1.806438, 0.011907, 2.644147], abs=1e-6)
    words = [row["text"] for mark in units(charges(three)) for row in mark["data"]["values"] if "text" in row]
    assert any(text.startswith("state agencies that use the counts: receives USD 11.01") for text in words)
