"""Standard errors, ranges and `[social_choice]` in a program file, all the way to plan, words, JSON and dossier."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from scipy.special import ndtr

from dualmandate.elicitation import fieller
from dualmandate.errors import InvalidPreferences, InvalidProgram, InvalidValue, MissingKey, Refusal
from dualmandate.planning.program import load
from dualmandate.population.wording import number
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.dossier import PAGE, write_dossier
from dualmandate.report.plan_words import plan_words

if TYPE_CHECKING:
    from tests.programs import Change

COST = '{ value = 1400, unit = "USD per child per epsilon"'
MEAN = 1400 * math.exp(0.125)
ERROR = MEAN * math.sqrt(math.expm1(0.25))


def cost(**numbers: float | str) -> tuple[str, str]:
    """The stated cost, and the same with other numbers."""
    words = "".join(f"{key} = {number}, " for key, number in numbers.items())
    return COST, f'{{ {words}unit = "USD per child per epsilon"'


UNCERTAIN = cost(value=MEAN, standard_error=ERROR)
RANGE = cost(value=1400, least=61, largest=1400)
SURVEY = '[uncertainty]\nspread_of_answers = 1.5\nrespondents = 100\nsource = "assumed"\n\n[preferences]'
GROUPS = """\
[[preferences.groups]]
name = "pupils"
size = { value = 30e6, unit = "children", source = "assumed" }
mean_disclosure_cost = { value = 400, unit = "USD per child per epsilon", source = "assumed" }
share_of_accuracy = 0.7

[[preferences.groups]]
name = "vulnerable children"
size = { value = 16e6, unit = "children", source = "assumed" }
mean_disclosure_cost = { value = 3275, unit = "USD per child per epsilon", source = "assumed" }
share_of_accuracy = 0.3
welfare_weight = 2

[social_choice]
baseline = { value = 0, unit = "USD per child", source = "nobody is worse off to begin with" }
disagreement_epsilon = 0.5
phantoms = [1, 4]
status_quo = 2
"""


def stated(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = plan_document(load(path).plan())
    jsonschema.validate(document, schema("plan"))
    json.dumps(document, allow_nan=False)
    return document


def with_groups(changed: Change, title_i: Path, text: str = GROUPS) -> Path:
    lines = [
        line for line in title_i.read_text(encoding="utf-8").splitlines() if not line.startswith("mean_disclosure")
    ]
    title_i.write_text("\n".join(lines) + "\n\n" + text, encoding="utf-8")
    return changed()


def test_a_plan_without_uncertain_numbers_says_nothing_of_it(title_i: Path) -> None:
    document = stated(title_i)
    assert "uncertainty" not in document
    assert "social_choice" not in document


def test_a_standard_error_becomes_a_distribution(changed: Change) -> None:
    # Research note, section 4, on the program's own file.
    plan = load(changed(UNCERTAIN, ("[preferences]", SURVEY))).plan()
    part = plan_document(plan)["uncertainty"]
    assert isinstance(part, dict)
    jsonschema.validate(plan_document(plan), schema("plan"))
    assert part["distribution"]["epsilon"] == pytest.approx(plan.choice.epsilon, rel=1e-9)
    assert plan.choice.epsilon == pytest.approx(2.424489, abs=5e-7)
    assert part["distribution"]["interval"] == pytest.approx([1.823260, 3.504153], abs=2e-5)
    assert part["regret"]["value_of_perfect_information"] == pytest.approx(7.270491e9, rel=1e-6)
    assert part["survey"]["value"] == pytest.approx(6.677795e9, rel=1e-6)
    words = plan_words(plan)
    assert "If preferences are not known exactly" in words
    assert "Another survey of 100 people is worth USD 6.678 billion" in words


def test_a_range_becomes_a_robust_choice(changed: Change) -> None:
    part = stated(changed(RANGE))["uncertainty"]
    assert part["minimax_regret"]["epsilon"] == pytest.approx(3.473333, abs=1e-6)
    assert part["minimax_regret"]["regret"] == pytest.approx(2.261557e10, rel=1e-6)
    assert part["minimax_relative_regret"]["epsilon"] == pytest.approx(4.450601, abs=1e-6)
    assert "distribution" not in part


ERRORS_OF_TWO = (cost(value=1400, standard_error=500), ("{ value = 1.0,", "{ value = 1.0, standard_error = 0.3,"))


ESTIMATES = """\
[preferences.estimates]
names = ["epsilon", "error", "price"]
covariance = [[0.08, 0.02, 0.01], [0.02, 0.05, 0.02], [0.01, 0.02, 0.03]]

"""
FROM_ESTIMATES = (
    cost(value=1400, standard_error=420, estimated_from='["epsilon", "price"]'),  # √(0.08 + 0.03 − 0.02) = 0.3
    ("{ value = 1.0,", '{ value = 1.0, standard_error = 0.2, estimated_from = ["error", "price"],'),
    ("[limits]", ESTIMATES + "[limits]"),
)


def test_a_plan_carries_the_estimates_of_a_survey(changed: Change, title_i: Path) -> None:
    original = title_i.read_text(encoding="utf-8")
    apart = stated(changed(*ERRORS_OF_TWO))["uncertainty"]
    assert "are taken as independent of each other." in " ".join(plan_words(load(title_i).plan()).split())
    title_i.write_text(original, encoding="utf-8")
    plan = load(changed(*FROM_ESTIMATES)).plan()
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    # ε* ∝ (price/cost)^{1/3}, and in the ratio of the two the effect of money cancels: Fieller's set of error/epsilon.
    ends = fieller(np.array([1.0, -1.0]), np.array([[0.05, -0.02], [-0.02, 0.08]]), critical=1.959964)
    interval = document["uncertainty"]["distribution"]["interval"]
    expected = [plan.choice.epsilon * end ** (1 / 3) for end in (ends.lower, ends.upper)]
    assert interval == pytest.approx(expected, rel=5e-3)
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=5e-7)
    words = " ".join(plan_words(plan).split())
    assert f"between {number(interval[0])} and {number(interval[1])} with probability 95 %" in words
    assert "go together as their survey says." in words
    low, high = apart["distribution"]["interval"]
    assert interval[1] / interval[0] < high / low


def test_a_cost_that_may_be_nothing_is_said_to_leave_the_loss_open(changed: Change, tmp_path: Path) -> None:
    table = ESTIMATES.replace("[[0.08, 0.02", "[[0.48, 0.02")
    number = cost(value=1400, standard_error=980, estimated_from='["epsilon", "price"]')
    uncapped = ("largest_epsilon = 10", "")
    plan = load(changed(number, uncapped, ("[limits]", table + "[limits]"))).plan()
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    json.dumps(document, allow_nan=False)
    found = document["uncertainty"]["distribution"]
    assert found["interval"][1] is None
    assert found["mean"] is None
    assert found["at_highest"] == pytest.approx(ndtr(-1 / math.sqrt(0.48)), abs=3e-3)
    assert "It has no upper bound" in " ".join(document["uncertainty"]["words"])
    write_dossier(plan, tmp_path)
    assert "lies above" in (tmp_path / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pieces", "key", "says"),
    [
        ((FROM_ESTIMATES[0],), "preferences.mean_disclosure_cost.estimated_from", "names none"),
        ((FROM_ESTIMATES[0], ("[limits]", ESTIMATES.replace('"price"', '"bid"') + "[limits]")),
         "preferences.mean_disclosure_cost.estimated_from", "names epsilon, error, bid"),
        ((cost(value=1400, standard_error=500, estimated_from='["epsilon", "price"]'), FROM_ESTIMATES[2]),
         "preferences.mean_disclosure_cost.estimated_from", "standard_error = 420"),
        ((cost(value=1400, estimated_from='["epsilon", "price"]'), FROM_ESTIMATES[2]),
         "preferences.mean_disclosure_cost.estimated_from", "not stated"),
        ((("[limits]", ESTIMATES.replace("[[0.08", "[[-1") + "[limits]"),), "preferences.estimates.covariance",
         "no such covariance"),
        ((("[limits]", ESTIMATES.replace("0.08, ", "") + "[limits]"),), "preferences.estimates.covariance",
         "3 rows of 3 numbers"),
        ((("[limits]", ESTIMATES.replace("error", "price") + "[limits]"),), "preferences.estimates.names",
         "a name of its own"),
    ],
)  # fmt: skip
def test_estimates_that_do_not_fit_are_refused(
    changed: Change, pieces: tuple[tuple[str, str], ...], key: str, says: str
) -> None:
    with pytest.raises(Refusal) as caught:
        load(changed(*pieces))
    assert says in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.key == key
    assert caught.value.where.line is not None


def test_every_kind_of_number_may_be_uncertain(changed: Change) -> None:
    numbers = (
        cost(value=1400, standard_error=500),
        ("{ value = 2.0e7,", "{ value = 2.0e7, standard_error = 5e6,"),
        ("{ value = 1.0,", "{ value = 1.0, least = 0.5, largest = 2,"),
        ("{ value = 46e6,", "{ value = 46e6, standard_error = 1e6,"),
    )
    part = stated(changed(*numbers))["uncertainty"]
    found = {number["name"]: number for number in part["numbers"]}
    assert set(found) == {
        "mean_disclosure_cost",
        "population_size",
        "consequence",
        "price_of_squared_misallocation",
    }
    assert found["consequence"]["standard_error"] == 5e6
    # ln ε* has the variance (s_k² + s_N² + s_c²)/9.
    spread = math.sqrt(sum(math.log1p(x**2) for x in (500 / 1400, 1 / 46, 0.25))) / 3
    low, high = part["distribution"]["interval"]
    assert math.log(high / low) == pytest.approx(2 * 1.959964 * spread, rel=0.01)
    assert len(part["minimax_regret"]["corners"]) == 2


def test_what_a_survey_costs(changed: Change) -> None:
    priced = SURVEY.replace(
        "source", 'cost_per_respondent = { value = 1e6, unit = "USD", source = "assumed" }\nsource', 1
    )
    plan = load(changed(UNCERTAIN, ("[preferences]", priced))).plan()
    assert plan.uncertainty is not None
    assert plan.uncertainty.worthwhile is not None
    assert "it pays best to ask" in plan_words(plan)
    dear = load(changed(("value = 1e6", "value = 1e14"))).plan()
    assert "no survey is worth its cost" in plan_words(dear)


def test_where_some_preferences_have_no_best_loss_the_plan_says_so(changed: Change) -> None:
    bounded = (COST, '{ value = 50000, least = 100, largest = 60000, unit = "USD per child"')
    path = changed(bounded, ('= "linear"', '= "bounded"'), ("largest_epsilon = 10", ""))
    part = stated(path)["uncertainty"]
    assert "rises without limit" in part["why_not"]
    assert "could not be worked out" in part["words"][0]


def test_rules_side_by_side(changed: Change, title_i: Path) -> None:
    plan = load(with_groups(changed, title_i)).plan()
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    part = document["social_choice"]
    assert isinstance(part, dict)
    rules = {row["rule"]: row["epsilon"] for row in part["rules"]}
    assert rules["utilitarian"] == pytest.approx(plan.choice.epsilon, rel=1e-9)
    low, high = sorted(peak["epsilon"] for peak in part["peaks"])
    assert low < rules["weighted"] < rules["utilitarian"] < high
    assert rules["median"] == pytest.approx(high)  # pupils are more than half
    assert part["against"] == 2
    assert set(rules) >= {"rawlsian", "nash", "phantoms", "majority"}
    at_status_quo = [row for row in part["gains_at_each_loss"] if row["epsilon"] == 2]
    assert len(at_status_quo) == 1
    assert set(at_status_quo[0]["gains"].values()) == {0}
    assert any(min(row["gains"].values()) < 0 < max(row["gains"].values()) for row in part["gains_at_each_loss"])
    words = plan_words(plan)
    assert "Other ways to add people up" in words
    assert "Utilitarian: epsilon =" in words


@pytest.mark.slow
def test_the_dossier_shows_it(changed: Change, title_i: Path, tmp_path: Path) -> None:
    numbers = GROUPS.replace("value = 400,", "value = 400, standard_error = 100, least = 61, largest = 900,")
    with_groups(changed, title_i, numbers)
    path = changed(("[preferences]", SURVEY))
    written = {file.name for file in write_dossier(load(path).plan(), tmp_path / "dossier")}
    for name in ("uncertainty", "uncertainty-regret", "uncertainty-survey", "uncertainty-robust"):
        assert f"{name}.svg" in written
    for name in ("social-choice", "social-choice-votes", "social-choice-charges"):
        assert f"{name}.svg" in written
    page = (tmp_path / "dossier" / "dossier.html").read_text(encoding="utf-8")
    assert page.count('<h2 id="uncertainty">') == 1
    assert page.count('<figure class="uncertainty') == 4
    assert '<a href="#social-choice">' in page


def test_the_digest_covers_what_the_file_says_and_nothing_else(changed: Change) -> None:
    before = load(changed()).plan()
    after = load(changed(("[preferences]", "[preferences]\n# a remark"))).plan()
    assert before.digest == after.digest
    uncertain = load(changed(cost(value=1400, standard_error=500))).plan()
    assert uncertain.digest != before.digest
    assert {key: uncertain.exact[key] for key in uncertain.exact if key != "program"} == {
        key: before.exact[key] for key in before.exact if key != "program"
    }


def test_where_a_limit_decides_the_best_loss_stands_at_it(changed: Change) -> None:
    """Nothing lies above a limit, and nothing is lost where the choice is the best one whatever is true."""
    plan = load(changed(UNCERTAIN, ("largest_epsilon = 10", "largest_epsilon = 0.5"))).plan()
    words = " ".join(plan_words(plan).split())
    assert "Given the errors that are stated, the best epsilon is at 0.5 (95 %)." in words
    assert "Over what is stated of one number at a time, it stays at 0.5." in words
    assert "the best epsilon would lie at 0.5 with probability 95 %. With" in words.replace(" - ", " ")
    assert "With probability 95 % no other would have been better." in words
    assert "as likely above" not in words
    assert plan.uncertainty is not None
    assert plan.uncertainty.known is not None
    assert plan.uncertainty.known.value_of_perfect_information == 0


def test_where_a_limit_decides_over_a_range_nothing_is_regretted(changed: Change) -> None:
    plan = load(changed(RANGE, ("largest_epsilon = 10", "largest_epsilon = 0.5"))).plan()
    words = " ".join(plan_words(plan).split())
    assert "Whatever the preferences in the set, epsilon = 0.5 is the best choice for them." in words
    assert "regret is largest" not in words
    assert "Counted as a share of what is lost" not in words


def searched(told: str) -> None:
    raise AssertionError(f"it was searched before it was refused: {told}")


def refusal_of(path: Path, progress: Callable[[str], None] = searched) -> Refusal:
    """At once: a search may take minutes, and a refusal that comes after it could have come before."""
    with pytest.raises(Refusal) as caught:
        load(path).plan(progress=progress)
    assert caught.value.where is not None
    assert caught.value.where.line is not None
    return caught.value


def test_a_survey_about_nothing_is_refused(changed: Change) -> None:
    found = refusal_of(changed(("[preferences]", SURVEY)))
    assert isinstance(found, InvalidValue)
    assert "no number has a standard_error" in found.what
    wrong = SURVEY.replace("respondents", 'parameter = "value"\nrespondents')
    found = refusal_of(changed((SURVEY, wrong), UNCERTAIN))
    assert isinstance(found, InvalidPreferences)
    assert found.where is not None
    assert found.where.key == "uncertainty.parameter"


def test_rules_without_their_terms_are_refused(changed: Change, title_i: Path) -> None:
    original, bare = title_i.read_text(encoding="utf-8"), GROUPS[: GROUPS.index("baseline")]
    for rule, missing in (("nash", "disagreement_epsilon"), ("phantoms", "phantoms"), ("rawlsian", "baseline")):
        found = refusal_of(with_groups(changed, title_i, f'{bare}rules = ["{rule}"]\n'))
        assert isinstance(found, MissingKey)
        assert missing in f"{found.what} {found.instead}"
        title_i.write_text(original, encoding="utf-8")
    twice = "disagreement_epsilon = 1\ndisagreement_rho = 1\n"
    assert isinstance(refusal_of(with_groups(changed, title_i, bare + twice)), InvalidProgram)
    title_i.write_text(original, encoding="utf-8")
    assert "does not choose" in refusal_of(with_groups(changed, title_i, f"{bare}disagreement_rho = 1\n")).what
    title_i.write_text(original, encoding="utf-8")
    far = with_groups(changed, title_i, f"{bare}disagreement_epsilon = 1000\n")
    beyond = refusal_of(far, progress=print)  # which losses are far off is known from where the best ones lie
    assert beyond.where is not None
    assert beyond.where.key == "social_choice.disagreement_epsilon"
    title_i.write_text(f"{original}\n[social_choice]\n", encoding="utf-8")
    assert "everybody is alike" in refusal_of(title_i).what


def test_shares_are_stated_for_all_or_none_and_add_up(changed: Change, title_i: Path) -> None:
    original = title_i.read_text(encoding="utf-8")
    found = refusal_of(with_groups(changed, title_i, GROUPS.replace("share_of_accuracy = 0.3\n", "")))
    assert "states no share_of_accuracy" in found.what
    title_i.write_text(original, encoding="utf-8")
    found = refusal_of(with_groups(changed, title_i, GROUPS.replace("accuracy = 0.3", "accuracy = 0.4")))
    assert "add up to 1.1" in found.what


def test_a_baseline_that_one_group_lacks_is_missed_before_the_search(changed: Change, title_i: Path) -> None:
    lines = [line for line in GROUPS.splitlines() if not line.startswith("baseline")]
    own = 'welfare_weight = 2\nbaseline = { value = 5, unit = "USD per child", source = "assumed" }'
    found = refusal_of(with_groups(changed, title_i, "\n".join(lines).replace("welfare_weight = 2", own)))
    assert "the baseline of 'pupils' is missing" in found.what


def test_groups_state_their_own_baselines(changed: Change, title_i: Path) -> None:
    own = 'welfare_weight = 2\nbaseline = { value = 1e6, unit = "USD per child", source = "assumed" }'
    plan = load(with_groups(changed, title_i, GROUPS.replace("welfare_weight = 2", own))).plan()
    assert plan.social_choice is not None
    peaks = {peak.name: peak.epsilon for peak in plan.social_choice.profile.peaks}
    # The vulnerable are then rich: pupils are the worst off everywhere, and get their peak.
    assert plan.social_choice.row("rawlsian").epsilon == pytest.approx(peaks["pupils"], rel=1e-5)
