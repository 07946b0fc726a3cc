"""One survey, one answer: the interval of ε in a plan is the one that the survey's own report implies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.survey.surveys import BIDS, CHOICE, HEADER, bids, choices, write

from dualmandate import gallery
from dualmandate.choice import choose
from dualmandate.choice.statics import inputs
from dualmandate.elicitation.willingness import fieller
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.survey.estimates import SurveyEstimates, measure
from dualmandate.survey.survey_file import load_survey

COST, PRICE = "mean_disclosure_cost", "price_of_squared_misallocation"
KNOWN_PRICE = """
[preferences.price_of_squared_misallocation]
value = 1.0
unit = "USD per USD^2"
source = "assumed"
time_base = "once"
"""
PEOPLE = '\npeople = { value = 46e6, unit = "child", source = "CCD" }\nnumbers = 13000\n'
SURVEY = CHOICE.replace('time_base = "per year"', 'time_base = "once"').replace(
    'role = "accuracy"', 'role = "accuracy"\nmeasure = "squared"'
)
CONSEQUENCE = """consequence = { value = 2.0e7, unit = "USD^2 per child^2", \
source = "mean squared adjusted SPPE, CCD 2014-15", kind = "measured", time_base = "once" }"""


def measured(path: Path) -> SurveyEstimates:
    found = measure(load_survey(path))
    assert isinstance(found, SurveyEstimates)
    return found


def planned(folder: Path, preferences: str, *pieces: tuple[str, str]) -> Plan:
    """The plan of Title I with other preferences."""
    for name, text in gallery.files("title_i").items():
        (folder / name).write_text(text, encoding="utf-8")
    text = (folder / "program.toml").read_text(encoding="utf-8")
    start, end = text.index("[preferences]"), text.index("[limits]")
    text = f"{text[:start]}{preferences}\n".replace('noise = "best"', 'noise = "laplace"')
    for old, new in pieces:
        assert old in text
        text = text.replace(old, new)
    assert end > start  # without a limit, so that ends of intervals are where preferences put them
    (folder / "program.toml").write_text(text, encoding="utf-8")
    return load(folder / "program.toml").plan()


def best_at(plan: Plan, name: str, value: float) -> float:
    """The loss that is chosen where one number has another value."""
    row = next(row for row in inputs(plan.welfare, plan.limits) if row.name == name)
    return choose(plan.frontier, *row.change(value)).epsilon


def ends(plan: Plan) -> tuple[float, float]:
    assert plan.uncertainty is not None
    assert plan.uncertainty.known is not None
    return plan.uncertainty.known.interval()


@pytest.mark.parametrize(("people", "seed"), [(25, 1), (40, 2), (80, 3)])
def test_a_cost_from_choices(tmp_path: Path, people: int, seed: int) -> None:
    found = measured(write(tmp_path, SURVEY, HEADER, choices(people, worth=0.0, seed=seed)))
    [cost] = found.found
    plan = planned(tmp_path, (found.block() or "") + KNOWN_PRICE)
    implied = sorted(best_at(plan, COST, end) for end in cost.interval)
    assert ends(plan) == pytest.approx(implied, rel=4e-3)
    assert plan.choice.epsilon == pytest.approx(best_at(plan, COST, cost.number.value), rel=1e-9)


def test_a_cost_from_bids(tmp_path: Path) -> None:
    survey = BIDS.replace('time_base = "per year"', 'time_base = "once"').replace(
        'kind = "single', 'unit = "child"\nkind = "single'
    )
    found = measured(write(tmp_path, survey, ("id", "bid", "yes"), bids(60)))
    [cost] = found.found
    assert cost.method == "fieller"
    plan = planned(tmp_path, (found.block() or "") + KNOWN_PRICE)
    assert ends(plan) == pytest.approx(sorted(best_at(plan, COST, end) for end in cost.interval), rel=4e-3)


@pytest.mark.parametrize(("people", "seed"), [(30, 4), (60, 5)])
@pytest.mark.parametrize("unit", ["USD", "child"])
def test_a_cost_and_a_price_whose_ratio_decides(tmp_path: Path, people: int, seed: int, unit: str) -> None:
    text = SURVEY.replace('unit = "USD"\nrole = "accuracy"', f'unit = "{unit}"\nrole = "accuracy"') + PEOPLE
    found = measured(write(tmp_path, text, HEADER, choices(people, worth=1.5, noise=600.0, seed=seed)))
    block = found.block() or ""
    pieces = []
    if unit == "child":  # the value of accuracy stands in the table, and refers to the estimates from there
        line = next(line for line in block.splitlines() if line.startswith("# value_of_accuracy"))
        pieces = [(CONSEQUENCE, line[2:])]
    plan = planned(tmp_path, block, *pieces)
    # What money does to choices cancels in the ratio of the two: Fieller's set of error over privacy loss.
    values, covariance = found.findings.estimates.joint(("error", "epsilon"))
    values[1], covariance[0, 1], covariance[1, 0] = -values[1], -covariance[0, 1], -covariance[1, 0]
    ratios = fieller(values, covariance, critical=1.959964)
    assert ratios.shape == "interval"
    name = PRICE if unit == "USD" else "value_of_accuracy"
    estimate = values[0] / -values[1]
    stated = next(row.value for row in inputs(plan.welfare) if row.name == name)
    implied = [best_at(plan, name, stated * end / estimate) for end in (ratios.lower, ratios.upper)]
    assert ends(plan) == pytest.approx(implied, rel=5e-3)


def test_the_survey_of_the_tutorial(tmp_path: Path) -> None:
    gallery.write("survey", tmp_path)
    gallery.write_records("survey", tmp_path)
    found = measured(tmp_path / "survey.toml")
    (tmp_path / "preferences.toml").write_text(found.block() or "", encoding="utf-8")
    plan = load(tmp_path / "program.toml").plan()
    drawn = np.random.default_rng(7).multivariate_normal(*found.findings.estimates.joint(("epsilon", "error")), 100_000)
    ratio = drawn[:, 1] / drawn[:, 0]
    middle = found.findings.estimates.value("error") / found.findings.estimates.value("epsilon")
    stated = next(row.value for row in inputs(plan.welfare) if row.name == PRICE)
    implied = [best_at(plan, PRICE, stated * end / middle) for end in np.quantile(ratio, [0.025, 0.975])]
    assert ends(plan) == pytest.approx(implied, rel=1e-3)
    assert implied[0] < 2.444299 < implied[1]


def test_answers_that_do_not_rule_out_a_cost_of_nothing(tmp_path: Path) -> None:
    found = measured(write(tmp_path, SURVEY, HEADER, choices(25, cost=60.0, worth=0.0, seed=6)))
    [cost] = found.found
    assert cost.interval[0] < 0 < cost.number.value
    assert any("reaches down to 0" in remark for remark in found.remarks())
    plan = planned(tmp_path, (found.block() or "") + KNOWN_PRICE)
    low, high = ends(plan)
    assert high == np.inf
    assert low == pytest.approx(best_at(plan, COST, cost.interval[1]), rel=5e-3)
    assert plan.uncertainty is not None
    assert "It has no upper bound" in " ".join(plan.uncertainty.sentences())
