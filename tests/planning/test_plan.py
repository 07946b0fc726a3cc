"""Plans: what they say, in JSON and in words, and how technologies and groups of tables share in them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dualmandate.errors import InvalidMechanism, MissingKey
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.planning.technology import SHARE_DIGITS
from dualmandate.population import PrivacyMeasure
from dualmandate.population.loss import epsilon_at
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words

ALL_TABLES = '[["people by county and sex", "ages in state A", "income by state"]]'  # one measurement for all
NOISE = 'noise = "laplace"'
DELTA = "failure_probability = 1e-10"


def checked(plan: Plan) -> dict[str, Any]:
    """The plan's document, valid against its schema and made of finite numbers."""
    document = json.loads(json.dumps(plan_document(plan), allow_nan=False))
    jsonschema.validate(document, schema("plan"))
    return dict(document)


def test_document_of_the_paper(title_i: Path) -> None:
    plan = load(title_i).plan()
    document = checked(plan)
    assert document["digest"] == plan.digest
    assert document["loss"]["exact"] == "6319/2500"
    assert document["loss"]["allocation"] == {"all": "6319/2500"}
    assert document["choice"]["epsilon"] == pytest.approx(2.527644, abs=5e-7)
    assert document["choice"]["bound_by"] == "preferences"
    points = document["frontier"]["points"]
    assert len(points) == 61
    assert [point["loss"] for point in points] == sorted(point["loss"] for point in points)
    at_choice = next(point for point in points if point["loss"] == document["choice"]["epsilon"])
    assert at_choice["willingness_to_accept"] == pytest.approx(at_choice["marginal_rate_of_transformation"])
    assert max(points, key=lambda point: point["welfare"]) is at_choice
    [table] = document["tables"]
    assert table["name"] == "eligible children by district"
    assert table["where"] == {"eligible": ["yes"]}
    assert table["half_width"] == pytest.approx(math.log(20) / 2.5276)  # at the loss that a release would spend
    assert document["program"]["account"] == "school children"
    assert [group["units"] for group in document["guarantee"]["losses"]] == [1, 2, 4]
    assert {row["noise"] for row in document["technologies"] if row["chosen"]} == {"laplace"}


def test_every_technology_has_its_own_choice(title_i: Path) -> None:
    plan = load(title_i).plan()
    chosen = {row.noise: row.choice.epsilon for row in plan.comparisons if row.choice is not None}
    assert chosen["geometric"] == pytest.approx(2.444299, abs=5e-7)
    assert set(plan.frontiers) == set(chosen)
    [gaussian] = [row for row in plan.comparisons if row.choice is None]
    assert gaussian.noise == "gaussian"
    assert "failure_probability" in gaussian.why


def test_notes_name_the_better_noise_and_its_worth(title_i: Path) -> None:
    plan = load(title_i).plan()
    best = next(row.choice for row in plan.comparisons if row.noise == "geometric")
    assert best is not None
    gain = best.welfare - plan.choice.welfare
    assert gain == pytest.approx(3.264e10, rel=1e-3)
    assert any("Geometric noise would leave society USD 32.64 billion better off" in note for note in plan.notes)
    assert any("costs 4.56 times as much" in note for note in plan.notes)
    assert any("absolute risk aversion of 2 per USD" in note for note in plan.notes)


def test_the_best_noise_has_nothing_better(changed: Any) -> None:
    plan = load(changed((NOISE, 'noise = "best"'))).plan()
    assert plan.technology.noise == "geometric"
    assert not any("better off" in note for note in plan.notes)
    assert checked(plan)["mechanism"] == {
        "asked": "best",
        "noise": "geometric",
        "strategy": "workload",
        "measured": "together",
        "sensitivity": {"all": {"norm": "l1", "power": "1", "exact": True, "words": "1"}},
    }


def test_words_are_a_page_that_names_what_matters(embedded: Path) -> None:
    words = plan_words(load(embedded).plan())
    assert len(words.split()) < 1000  # a few minutes, with the figures skimmed
    assert max(len(line) for line in words.splitlines()) <= 120
    for expected in (
        "The choice is epsilon = 2.4442",
        "MRT = WTA = 3,220",
        "USD 2,040",
        "at most 10.43 in 100 likely",
        "household of 4",
        "(82.8 %) more",
        "mean_disclosure_cost",
        "geometric (chosen)",
        "laplace (study)",
        "Studies: for comparison only, never drawn.",
        "the paper's technology (a study).",
        "That would choose epsilon = 2.5276, typically off by USD 2,502, and leave society USD 32.64 billion worse",
        "To be approved loss epsilon = 12221/5000",
        "school children",
    ):
        assert expected in " ".join(words.split())


def test_tables_measured_apart_share_the_loss_by_value(survey: Any) -> None:
    """Cube roots of value-weighted coefficients: b·2·queries·Δ² = 100·2·8, 100·2·10, 0.001·10²·2·2·20²."""
    plan = load(survey((NOISE, f'{NOISE}\nmeasured = "apart"'))).plan()
    roots = {
        "people by county and sex": 1600 ** (1 / 3),
        "ages in state A": 2000 ** (1 / 3),
        "income by state": 160 ** (1 / 3),
    }
    total = sum(roots.values())
    amount = plan.loss.amount
    step = Fraction(10) ** (math.floor(math.log10(amount)) - SHARE_DIGITS)
    for table, share in plan.allocation.items():
        assert (share / step).denominator == 1  # a decimal of the stated length
        # Rounded down by less than a step, but for the rounding of the cube roots.
        assert -1e-6 < float((Fraction(roots[table] / total) * amount - share) / step) < 1 + 1e-6
    assert 0 <= amount - sum(plan.allocation.values()) < len(plan.allocation) * step
    assert plan.choice.epsilon == pytest.approx((2 * total**3 / 2.5e6) ** (1 / 3))
    document = checked(plan)
    assert len(document["exact"]["measurements"]) == 3
    assert "of it" in plan_words(plan)


def test_groups_of_tables(survey: Any) -> None:
    grouped = 'measured = [["ages in state A", "income by state"], ["people by county and sex"]]'
    plan = load(survey((NOISE, f"{NOISE}\n{grouped}"))).plan()
    assert list(plan.allocation) == ["ages in state A + income by state", "people by county and sex"]
    assert [table.table for table in plan.tables] == ["people by county and sex", "ages in state A", "income by state"]
    checked(plan)


def test_gaussian_noise_read_in_epsilon_spends_a_rho(survey: Any) -> None:
    plan = load(survey((NOISE, f'noise = "gaussian"\n{DELTA}'))).plan()
    assert plan.choice.privacy_measure is PrivacyMeasure.PURE_DP
    assert plan.loss.privacy_measure is PrivacyMeasure.ZCDP
    assert epsilon_at(float(plan.loss), 1e-10) <= plan.choice.epsilon
    assert epsilon_at(float(plan.loss), 1e-10) == pytest.approx(plan.choice.epsilon, rel=1e-4)
    document = checked(plan)
    assert document["loss"]["failure_probability"] == 1e-10
    assert document["exact"]["loss"] == {"amount": plan.loss.exact(), "currency": "rho"}
    assert "at δ = 1e-10" in plan_words(plan)


def test_gaussian_noise_in_epsilon_stays_fit_for_use(survey: Any) -> None:
    fit = ('by = ["age"]', 'by = ["age"]\nfitness_for_use = { largest_root_mean_squared_error = 1.7 }')
    for together, bound_by in ((f"measured = {ALL_TABLES}", "fitness for use"), ("", "preferences")):
        plan = load(survey((NOISE, f'noise = "gaussian"\n{DELTA}\n{together}'), fit)).plan()
        assert plan.choice.bound_by == bound_by
        squared = plan.technology.noise_frontier.table_errors(float(plan.loss))["ages in state A"]
        assert (squared / 10) ** 0.5 <= 1.7
        assert {table.table: table.root_mean_squared_error for table in plan.tables}["ages in state A"] <= 1.7


def test_gaussian_noise_apart_and_in_epsilon(survey: Any) -> None:
    plan = load(survey((NOISE, f'noise = "gaussian"\nmeasured = "apart"\n{DELTA}'))).plan()
    assert plan.loss.privacy_measure is PrivacyMeasure.ZCDP
    assert sum(plan.allocation.values()) <= plan.loss.amount
    checked(plan)


def test_gaussian_noise_in_rho(survey: Any) -> None:
    path = survey((NOISE, 'noise = "gaussian"'), ("per person per epsilon", "per person per rho"))
    plan = load(path).plan()
    assert (plan.choice.privacy_measure, plan.loss.privacy_measure) == (PrivacyMeasure.ZCDP, PrivacyMeasure.ZCDP)
    checked(plan)
    assert "rho =" in plan_words(plan)


def test_gaussian_noise_in_epsilon_needs_a_failure_probability(survey: Any) -> None:
    path = survey((NOISE, 'noise = "gaussian"'))
    with pytest.raises(MissingKey) as caught:
        load(path).plan()
    assert caught.value.where is not None
    assert caught.value.where.key == "mechanism.failure_probability"


def test_laplace_noise_is_not_counted_in_rho(survey: Any) -> None:
    path = survey(("per person per epsilon", "per person per rho"))
    with pytest.raises(InvalidMechanism) as caught:
        load(path).plan()
    assert caught.value.where is not None
    assert (caught.value.where.key, caught.value.where.line) == ("mechanism.noise", 53)


def test_the_best_of_all_kinds_with_a_failure_probability(survey: Any) -> None:
    plan = load(survey((NOISE, f'noise = "best"\n{DELTA}'))).plan()
    assert set(plan.frontiers) == {"laplace", "geometric", "gaussian", "staircase"}
    losses = {row.kind: row.choice.welfare for row in plan.comparisons if row.choice is not None and not row.study}
    assert plan.choice.welfare == pytest.approx(max(losses.values()))
    assert plan.technology.kind == max(losses, key=lambda kind: losses[kind])
    assert {measured for _, _, measured in losses} >= {"together", "apart"}


def test_every_cell_measured(survey: Any) -> None:
    """With A the identity a count over n cells has n times the noise variance, and ΔA = 1."""
    plan = load(survey(('strategy = "workload"', 'strategy = "identity"'))).plan()
    counts = plan.tables[0]
    cells_of_one_county_and_sex = 3 * 10 * 21
    assert counts.root_mean_squared_error**2 == pytest.approx(cells_of_one_county_and_sex * 2 / float(plan.loss) ** 2)
    assert "every cell" in plan_words(plan)
    checked(plan)


def test_a_bound_on_the_sensitivity_is_called_a_bound(survey: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dualmandate.workload import Sensitivity, Workload

    bound = Sensitivity("l1", Fraction(22), exact=False, method="by the triangle inequality")
    monkeypatch.setattr(Workload, "sensitivity", lambda *_args: bound)
    plan = load(survey((NOISE, 'noise = "geometric"'))).plan()
    assert plan.notes[0].startswith("The sensitivity of the tables is at most 22 (an upper bound)")


def test_progress_is_told(title_i: Path) -> None:
    told: list[str] = []
    load(title_i).plan(progress=told.append)
    assert len(told) >= 3
