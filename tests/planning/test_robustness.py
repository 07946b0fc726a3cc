"""How far a choice can be trusted: ranges that are stated, readings with their ε, totals beside a public one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from scipy.special import lambertw

from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidValue, MissingKey, Refusal
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.planning.robustness import USUAL_PRICE
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.dossier import plan_figures
from dualmandate.report.figures import consequences, what_if_choices
from dualmandate.report.plan_words import plan_words

if TYPE_CHECKING:
    from tests.programs import Change

RATIO = 4 * 13_000 * 2e7 / (46e6 * 1400)  # ε* of the paper is its cube root: 4·L·C̄²/(N·k̄)
STATED = "value = 1400,"
LIMITS = "[limits]"
READING = '[[readings]]\nreading = "as a court awarded"\nparameter = "{}"\n{}\nsource = "assumed"\n\n[limits]'


def words_of(plan: Plan) -> str:
    return " ".join(plan_words(plan).split())


def document_of(plan: Plan) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(plan_document(plan), allow_nan=False))
    jsonschema.validate(document, schema("plan"))
    return document


def figure_names(plan: Plan) -> list[str]:
    return [figure.name for figure in plan_figures(plan, what_if_choices(plan.frontier, plan.welfare, steps=3))]


def test_where_nothing_is_stated_nothing_is_moved_and_it_says_so(title_i: Path) -> None:
    plan = load(title_i).plan()
    document = document_of(plan)
    assert document["tornado"] == []
    assert (document["robustness"]["judged"], document["robustness"]["interval"]) == (False, None)
    taken = ["mean_disclosure_cost", "population_size", "consequence", "price_of_squared_misallocation"]
    taken.append("relative_privacy_weight")
    assert document["robustness"]["exact"] == taken
    first, second = plan_words(plan).split("The choice\n")[1].split("\n  - ")[:2]
    assert first.startswith("  - The choice is epsilon = 2.5276")
    assert second.startswith("This epsilon has no interval, because no number it rests on states an error, and how")
    words = words_of(plan)
    assert "how robust it is cannot be judged: state standard_error, or least and largest" in words
    assert f"Taken as exact, because nothing is stated of their errors: {', '.join(taken).replace('_', ' ')}." in words
    assert "tornado" not in figure_names(plan)
    moved = {row["input"]: row["elasticity"] for row in document["elasticities"]}
    assert moved.pop("largest_epsilon") == pytest.approx(0, abs=1e-9)
    assert [abs(each) for each in moved.values()] == pytest.approx([1 / 3] * 5, abs=1e-9)


def test_a_prior_belief_is_taken_as_exact_but_for_other_readings(changed: Change) -> None:
    form = ('= "linear"', '= "posterior"\nprior_probability = 0.01')
    path = changed(form, ("USD per child per epsilon", "USD per child"))
    assert "prior_probability" in load(path).plan().robustness.exact
    other = READING.format("prior_probability", "value = 0.02")
    assert "prior_probability" not in load(changed((LIMITS, other))).plan().robustness.exact


def test_only_stated_ranges_are_in_the_tornado(changed: Change) -> None:
    plan = load(changed((STATED, f"{STATED} least = 1260, largest = 1540,"))).plan()
    [row] = document_of(plan)["tornado"]
    assert row["input"] == "mean_disclosure_cost"
    assert (row["low"]["epsilon"], row["high"]["epsilon"]) == pytest.approx((2.617992, 2.448602), abs=5e-7)
    words = words_of(plan)
    assert "Over what is stated of one number at a time, it is between 2.4486 and 2.6179." in words
    assert "cannot be judged" not in words
    assert "has no interval, because no number it rests on states an error." in words
    assert "tornado" in figure_names(plan)


def test_the_tornado_of_a_standard_error_is_its_interval(changed: Change) -> None:
    mean = 1400 * math.exp(0.125)
    error = mean * math.sqrt(math.expm1(0.25))
    plan = load(changed((STATED, f"value = {mean}, standard_error = {error},"))).plan()
    [row] = plan.robustness.tornado
    # ln k is normal with deviation ½, and ε ∝ k^(−1/3): ε* over its 95 % interval.
    ends = [(RATIO * math.exp(-score * 0.5)) ** (1 / 3) for score in (1.959964, -1.959964)]
    assert (row.high.epsilon, row.low.epsilon) == pytest.approx(ends, rel=1e-6)
    assert plan.robustness.interval == pytest.approx(ends, rel=1e-5)
    words = words_of(plan)
    assert "Given the errors that are stated, the best epsilon is between 1.823 and 3.504 (95 %)." in words
    assert "Taken as exact, because nothing is stated of their errors: population size, " in words
    assert "has no interval" not in words


def test_every_reading_of_title_i_by_hand(embedded: Path) -> None:
    """Laplace noise has closed forms: (4LC²/(Nk))^⅓, and 3·W((4LC²/(Nk))^⅓/3) where the cost is exponential."""
    text = embedded.read_text(encoding="utf-8")
    embedded.write_text(text.replace('noise = "best"', 'noise = "laplace"'), encoding="utf-8")
    plan = load(embedded).plan()
    readings = document_of(plan)["readings"]
    rows = {(row["parameter"], row["value"] and round(row["value"], 9)): row for row in readings}
    forms = [row for row in readings if row["parameter"] == "information_utility"]
    by_hand = {
        ("mean_disclosure_cost", 63.7): (RATIO / 0.0455) ** (1 / 3),
        ("mean_disclosure_cost", 1410.0): (RATIO * 1400 / 1410) ** (1 / 3),
        ("relative_privacy_weight", 0.169): (RATIO / 0.169) ** (1 / 3),
        ("price_of_squared_misallocation", 5e-8): (RATIO * 5e-8) ** (1 / 3),
    }
    assert {key: rows[key]["epsilon"] for key in by_hand} == pytest.approx(by_hand, rel=1e-9)
    exponential, bounded = forms
    assert exponential["epsilon"] == pytest.approx(3 * lambertw(RATIO ** (1 / 3) / 3).real, rel=1e-9)
    # 1 − e^−ε: welfare rises to the cap, because 4LC²/(Nk) > 27e^−3.
    assert (bounded["epsilon"], bounded["bound_by"]) == (10, "largest epsilon")
    named = [exponential["epsilon"], rows["price_of_squared_misallocation", 5e-8]["epsilon"]]
    assert [round(each, 4) for each in named] == [1.5219, 0.0093]
    assert rows["mean_disclosure_cost", 1410.0]["epsilon"] == pytest.approx(2.5216, abs=1e-4)
    assert rows["mean_disclosure_cost", 63.7]["source"].startswith("BJS 2014")
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=5e-7)  # readings move nothing
    words = words_of(plan)
    assert "Read otherwise, it is between 0.0093119 and 10: see the readings." in words
    assert "exponential cost, k·(e^ε − 1): odds of harm rise as far as they may 1.5219 " in words
    # What is stated of a number is its range: the readings of the cost, and of the weight.
    assert {row.name for row in plan.robustness.tornado} == {"mean_disclosure_cost", "relative_privacy_weight"}


def test_readings_that_lead_nowhere_say_why(changed: Change) -> None:
    """Without a cap a bounded cost has no optimum: 4LC²/(Nk) > 27e^−3."""
    plan = load(changed(("largest_epsilon = 10", ""))).plan()
    bounded = next(row for row in document_of(plan)["readings"] if row["reading"].startswith("bounded"))
    assert bounded["epsilon"] is None
    assert "rises without limit" in bounded["why_not"]
    assert "no optimum" in plan_words(plan)


def test_a_loss_counted_in_rho_has_no_other_forms(survey: Any) -> None:
    path = survey(('noise = "laplace"', 'noise = "gaussian"'), ("per person per epsilon", "per person per rho"))
    assert [row.parameter for row in load(path).plan().robustness.readings] == ["price_of_squared_misallocation"]


@pytest.mark.parametrize(
    ("parameter", "number", "kind", "key"),
    [
        ("mean_disclosure_costs", "value = 40", InvalidValue, "readings[0].parameter"),
        ("mean_disclosure_cost", "", MissingKey, "readings[0].value"),
        ("mean_disclosure_cost", "value = 40\ntimes = 0.5", InvalidValue, "readings[0].times"),
        ("mean_disclosure_cost", "value = 0", InvalidValue, "readings[0].value"),
    ],
)
def test_bad_readings_are_refused_where_they_stand(
    changed: Change, parameter: str, number: str, kind: type[Refusal], key: str
) -> None:
    path = changed((LIMITS, READING.format(parameter, number)))
    with pytest.raises(kind) as caught:
        load(path).plan()
    assert caught.value.where is not None
    assert (caught.value.where.key or "").replace(".0.", "[0].") == key
    assert caught.value.where.line is not None


def test_a_public_total_stands_beside_what_is_lost(embedded: Path) -> None:
    plan = load(embedded).plan()
    part = document_of(plan)["public_total"]
    assert part["amount"] == 14.4e9
    assert part["privacy_cost_times"] == pytest.approx(plan.choice.privacy_cost / 14.4e9)
    words = words_of(plan)
    assert "Beside a public total of USD 14.4 billion (Title I grants" in words
    assert "privacy loss costs 10.9 times as much, and errors cost 3.76 times as much." in words
    assert "A loss above all the money at stake, USD 14.4 billion, is hard to believe" in words
    text = embedded.read_text(encoding="utf-8")
    embedded.write_text(text.replace("value = 14.4e9", "value = 1e12"), encoding="utf-8")
    large = words_of(load(embedded).plan())
    assert "privacy loss costs 15.7 % of it, and errors cost 5.41 % of it." in large
    assert "hard to believe" not in large


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("value = 14.4e9", "value = 0", InvalidValue),
        ('unit = "USD", time', 'unit = "child", time', IncompatibleUnits),
    ],
)
def test_a_total_that_cannot_be_compared_is_refused(embedded: Path, old: str, new: str, kind: type[Refusal]) -> None:
    text = embedded.read_text(encoding="utf-8")
    assert text.count(old) == 1
    embedded.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(kind) as caught:
        load(embedded).plan()
    assert caught.value.where is not None
    assert (caught.value.where.key or "").startswith("program.public_total")


def test_half_a_person_is_refused(changed: Change) -> None:
    with pytest.raises(InvalidPreferences, match=r"a population of 0\.5 children") as caught:
        load(changed(("value = 46e6", "value = 0.5")))
    assert caught.value.where is not None
    assert caught.value.where.key == "population.population_size"


def test_no_heading_claims_more_than_was_compared(title_i: Path, changed: Change) -> None:
    """Geometric noise costs USD 49.0 billion where Laplace noise costs 81.4: no heading says that nothing is better."""
    plan = load(title_i).plan()
    assert plan.saving.beaten_by is not None
    assert plan.saving.beaten_by.kind == ("geometric", "workload", "together")
    cost = plan.welfare.data_loss(plan.saving.beaten_by.frontier, plan.choice.epsilon)
    assert cost == pytest.approx(49.04e9, rel=1e-3)
    assert plan.choice.data_loss == pytest.approx(81.39e9, rel=1e-3)
    titles = {
        figure.name: figure for figure in plan_figures(plan, what_if_choices(plan.frontier, plan.welfare, steps=3))
    }
    assert "geometric noise on the tables would save USD 32.35 billion" in titles["strategies"].title
    assert "No matrix mechanism with laplace noise errs less; geometric noise on the tables does." in words_of(plan)
    # Not only for studies: Gaussian noise can be published, and is beaten too.
    gaussian = load(changed(('noise = "laplace"', 'noise = "gaussian"\nfailure_probability = 1e-10'))).plan()
    assert not gaussian.study
    figures = plan_figures(gaussian, what_if_choices(gaussian.frontier, gaussian.welfare, steps=3))
    title = next(figure.title for figure in figures if figure.name == "strategies")
    assert "geometric noise on the tables would save" in title


def test_where_nothing_compared_is_better_the_bound_names_its_scope(changed: Change) -> None:
    plan = load(changed(('noise = "laplace"', 'noise = "best"'))).plan()
    assert plan.saving.beaten_by is None
    figures = plan_figures(plan, what_if_choices(plan.frontier, plan.welfare, steps=3))
    picture = next(figure for figure in figures if figure.name == "strategies")
    scope = "every matrix mechanism with geometric noise on a strategy of whole numbers"
    assert f"least possible for {scope}, USD" in [column.heading for column in picture.table.columns]
    assert f"shaded: out of reach of {scope}" in picture.subtitle


DECIDED = """\
[program]
schema = 1
name = "town"

[population]
account = "residents"
unit = "person"
neighbors = "replace-one"
dropping_is_public = true
population_size = { value = 1000000, unit = "people", source = "assumed" }
attributes.ward = ["n", "e", "s", "w"]
attributes.age = ["0-17", "18-64", "65+"]

[[invariants]]
name = "people by ward"
by = ["ward"]

[[workload]]
name = "wards"
by = ["ward"]
value_of_accuracy = { value = 400, unit = "USD per person^2", source = "assumed" }

[[workload]]
name = "ages"
by = ["age"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "assumed" }

[mechanism]
noise = "best"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.05, unit = "USD per person per epsilon", source = "assumed" }
"""


def test_a_table_that_exact_totals_decide_is_called_exact(tmp_path: Path) -> None:
    path = tmp_path / "town.toml"
    path.write_text(DECIDED, encoding="utf-8")
    plan = load(path).plan()
    wards, ages = document_of(plan)["tables"]
    assert (wards["exact"], wards["root_mean_squared_error"], wards["half_width"], wards["data_loss"]) == (
        True,
        0,
        0,
        0,
    )
    assert not ages["exact"]
    assert ages["root_mean_squared_error"] > 1
    words = words_of(plan)
    assert "It has 'wards' exactly: no noise reaches it." in words
    assert "wards 4 exact – – USD 0" in words
    assert "exact: no noise reaches it" in consequences(plan.choice, plan.half_widths).svg()


def test_a_price_that_is_the_usual_one_is_no_other_reading(changed: Change) -> None:
    plan = load(changed(("{ value = 1.0,", f"{{ value = {USUAL_PRICE:.1e},"))).plan()
    assert not [row for row in plan.robustness.readings if row.parameter.startswith("price")]
