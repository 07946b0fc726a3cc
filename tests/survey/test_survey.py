"""Survey files: what they say is found, in the units of a program, and what cannot be meant is refused in its place."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.survey.surveys import (
    BIDS,
    CANARY,
    CHOICE,
    HEADER,
    LIKERT,
    Row,
    bids,
    choices,
    double_bids,
    opinions,
    write,
)

from dualmandate.elicitation.willingness import ParameterEstimates
from dualmandate.errors import (
    IncompatibleUnits,
    InvalidFile,
    InvalidPreferences,
    InvalidSurvey,
    InvalidValue,
    MissingKey,
    NoEstimate,
    Refusal,
    UnknownKey,
)
from dualmandate.report.documents.survey import preferences_document
from dualmandate.report.survey_words import words
from dualmandate.survey.estimates import Opinions, SurveyEstimates, measure
from dualmandate.survey.estimates import _worth as worth_of
from dualmandate.survey.survey_file import load_survey

BID_HEADER = ("id", "bid", "yes")
DOUBLE_HEADER = ("id", "bid", "yes", "second", "again", "anything")


def changed(text: str, *pieces: tuple[str, str]) -> str:
    for old, new in pieces:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def measured(path: Path) -> SurveyEstimates:
    found = measure(load_survey(path))
    assert isinstance(found, SurveyEstimates)
    return found


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return choices()


def test_the_keys_of_the_reference_recover_the_cost(tmp_path: Path, rows: list[Row]) -> None:
    found = measured(write(tmp_path, CHOICE, HEADER, rows))
    [cost] = found.found
    assert cost.key == "mean_disclosure_cost"
    assert cost.number.unit == "USD per child per epsilon"
    assert cost.number.time_base == "per year"
    low, high = cost.interval
    assert low < 1400 < high
    assert cost.number.standard_error == pytest.approx((high - low) / 2 / 1.96, rel=0.1)
    assert "150 respondents, 900 choices; conditional logit, errors clustered by respondent" in cost.number.source
    block = tomllib.loads(found.block() or "")["preferences"]
    assert block["information_utility"] == "linear"
    assert block["mean_disclosure_cost"]["value"] == pytest.approx(cost.number.value, rel=1e-9)
    assert set(block["mean_disclosure_cost"]) == {
        *("value", "unit", "source", "kind", "standard_error", "time_base", "estimated_from"),
    }
    [note] = found.findings.notes
    assert "people and numbers" in note
    worth = next(worth.amount for worth in found.findings.worths if worth.attribute == "error")
    assert worth.estimate is not None
    assert worth.standard_error is not None
    assert abs(worth.estimate + 0.4) < 3 * worth.standard_error
    assert "would pay to avoid one more unit of 'error'" in words(found)


def test_keys_of_another_estimator_are_noted(tmp_path: Path, rows: list[Row]) -> None:
    text = changed(
        CHOICE, ('cluster = "respondent"', 'random = ["epsilon"]\ndraws = 500\nspace = "willingness to pay"')
    )
    found = measured(write(tmp_path, text, HEADER, rows))
    assert "A conditional logit does not use random, draws, space." in found.findings.notes


def test_accuracy_gets_a_price_from_people_and_numbers(tmp_path: Path, rows: list[Row]) -> None:
    """A respondent pays .4 USD for one USD of typical error; 46 million of them, 13,000 numbers: 1,415 USD per USD."""
    people = '\npeople = { value = 46e6, unit = "child", source = "CCD" }\nnumbers = 13000\n'
    found = measured(write(tmp_path, CHOICE + people, HEADER, rows))
    price = next(each for each in found.found if each.key == "price_of_misallocation")
    assert price.number.unit == "USD per USD"
    low, high = price.interval
    assert low < 0.4 * 46e6 / 13000 < high
    squared = changed(CHOICE, ('role = "accuracy"', 'role = "accuracy"\nmeasure = "squared"')) + people
    other = measured(write(tmp_path, squared, HEADER, rows))
    assert {each.key: each.number.unit for each in other.found}["price_of_squared_misallocation"] == "USD per USD^2"
    in_children = changed(CHOICE, ('unit = "USD"\nrole = "accuracy"', 'unit = "children"\nrole = "accuracy"')) + people
    third = measured(write(tmp_path, in_children, HEADER, rows))
    assert {each.key: each.number.unit for each in third.found}["value_of_accuracy"] == "USD per child"
    assert "# value_of_accuracy = { value = " in (third.block() or "")


def test_the_number_of_people_may_be_uncertain(tmp_path: Path, rows: list[Row]) -> None:
    sure = '\npeople = { value = 46e6, unit = "child", source = "CCD" }\nnumbers = 13000\n'
    unsure = changed(sure, ('source = "CCD"', 'source = "CCD", standard_error = 4.6e6'))
    one, other = (measured(write(tmp_path, CHOICE + text, HEADER, rows)).found[1] for text in (sure, unsure))
    assert other.number.value == one.number.value
    assert one.number.standard_error is not None
    assert other.number.standard_error == pytest.approx(math.hypot(one.number.standard_error, 0.1 * one.number.value))
    # Fieller's set is wider on either side, and its ends are where ratios of draws have their quantiles.
    assert other.interval[0] < one.interval[0]
    assert other.interval[1] > one.interval[1]
    estimates = measured(write(tmp_path, CHOICE + unsure, HEADER, rows)).findings.joint
    assert estimates is not None
    drawn = np.random.default_rng(2).multivariate_normal(np.ones(3), estimates.covariance, 400_000)
    ends = one.number.value * np.quantile(drawn[:, 1] / drawn[:, 2], [0.025, 0.975])
    assert other.interval == pytest.approx(ends, rel=5e-3)


def test_numbers_that_share_a_price_are_said_to_go_together(tmp_path: Path, rows: list[Row]) -> None:
    people = '\npeople = { value = 46e6, unit = "child", source = "CCD" }\nnumbers = 13000\n'
    found = measured(write(tmp_path, CHOICE + people, HEADER, rows))
    estimates = found.findings.estimates
    values, covariance = estimates.joint(("epsilon", "error", "price"))
    draws = np.random.default_rng(1).multivariate_normal(values, covariance, 200_000)
    correlation = np.corrcoef(draws[:, 0] / draws[:, 2], draws[:, 1] / draws[:, 2])[0, 1]
    assert found.findings.correlation == pytest.approx(correlation, abs=0.02)
    said = f"(correlation {found.findings.correlation:.2f}"
    assert said in words(found)
    assert said in " ".join(preferences_document(found)["notes"])
    assert "A plan takes that into account." in words(found)
    block = tomllib.loads(found.block() or "")["preferences"]
    assert block["price_of_misallocation"]["unit"] == "USD per USD"
    assert block["price_of_misallocation"]["estimated_from"] == ["error", "price"]
    assert block["mean_disclosure_cost"]["estimated_from"] == ["epsilon", "price"]
    assert block["estimates"]["names"] == ["epsilon", "price", "error"]
    order = [0, 2, 1]
    relative = (covariance / np.outer(values, values))[np.ix_(order, order)]
    assert np.array(block["estimates"]["covariance"]) == pytest.approx(relative, rel=1e-8)
    unsure = people.replace('source = "CCD"', 'source = "CCD", standard_error = 4.6e6')
    wider = tomllib.loads(measured(write(tmp_path, CHOICE + unsure, HEADER, rows)).block() or "")["preferences"]
    # What is uncertain about the number of people is in one of the two alone.
    gained = np.array(wider["estimates"]["covariance"]) - np.array(block["estimates"]["covariance"])
    assert gained == pytest.approx(np.diag([0, 0, 0.01]), abs=1e-9)


@pytest.mark.parametrize(
    ("form", "regressor", "unit"),
    [
        ("exponential", math.expm1, "USD per child"),
        ("bounded", lambda loss: 1 - math.exp(-loss), "USD per child"),
        ("posterior", lambda loss: 0.01 / (0.01 + 0.99 * math.exp(-loss)) - 0.01, "USD per child"),
    ],
)
def test_other_forms_have_their_own_parameter(
    tmp_path: Path, form: str, regressor: Callable[[float], float], unit: str
) -> None:
    """Choices made by h·κ(ε), with h such that the levels differ by a thousand dollars or two."""
    parameter = 3000.0 / (regressor(4.0) - regressor(0.5))
    generator, made = np.random.default_rng(2), list[Row]()
    for person in range(150):
        for task in range(6):
            price, epsilon = (
                generator.choice([0.0, 500.0, 1000.0, 3000.0], 2),
                generator.choice([0.5, 1.0, 2.0, 4.0], 2),
            )
            total = price + [parameter * regressor(loss) for loss in epsilon] - 700 * generator.gumbel(size=2)
            made += [(person, task, "ab"[i], price[i], epsilon[i], 1, int(total[i] == total.min())) for i in (0, 1)]
    text = changed(CHOICE, ('time_base = "per year"', f'time_base = "per year"\ninformation_utility = "{form}"'))
    text = changed(text, ('[attributes.error]\ncolumn = "grant_error"\nunit = "USD"\nrole = "accuracy"\n', ""))
    found = measured(write(tmp_path, text, HEADER, made))
    [cost] = found.found
    assert cost.number.unit == unit
    assert cost.interval[0] < parameter < cost.interval[1]
    block = tomllib.loads(found.block() or "")["preferences"]
    assert block.get("prior_probability") == (0.01 if form == "posterior" else None)


def test_beliefs_in_the_column_are_losses_again(tmp_path: Path, rows: list[Row]) -> None:
    told = [
        (*row[:4], 1 / (1 + 99 * math.exp(-float(str(row[4])))), *row[5:]) for row in rows
    ]  # .01 → q, as people were told
    text = changed(CHOICE, ('stated_as = "posterior"', 'stated_as = "posterior"\nrecorded_as = "posterior"'))
    one = measured(write(tmp_path, text, HEADER, told)).found[0].number
    other = measured(write(tmp_path, CHOICE, HEADER, rows)).found[0].number
    assert one.value == pytest.approx(other.value, rel=1e-6)


def test_other_money_and_other_times_are_converted(tmp_path: Path, rows: list[Row]) -> None:
    plain = measured(write(tmp_path, CHOICE, HEADER, rows)).found[0]
    euros = changed(CHOICE, ('unit = "USD"\nrole = "price"', 'unit = "EUR"\nexchange_rate = 1.25\nrole = "price"'))
    assert measured(write(tmp_path, euros, HEADER, rows)).found[0].number.value == pytest.approx(
        1.25 * plain.number.value, rel=1e-12
    )
    horizon = '\nhorizon = { discount_rate = 0.03, years = 40, source = "OMB" }\n'
    yearly = changed(CHOICE, ('role = "price"', 'role = "price"\ntime_base = "per year"'))
    lifetime = changed(yearly, ('[report]\ntime_base = "per year"', '[report]\ntime_base = "lifetime"')) + horizon
    found = measured(write(tmp_path, lifetime, HEADER, rows)).found[0]
    annuity = (1 - 1.03**-40) / 0.03
    assert found.number.value == pytest.approx(annuity * plain.number.value, rel=1e-12)
    assert found.interval[1] == pytest.approx(annuity * plain.interval[1], rel=1e-12)
    assert found.number.time_base == "lifetime"


@pytest.mark.slow
def test_mixed_logit_in_both_spaces(tmp_path: Path, rows: list[Row]) -> None:
    for space in ("preference", "willingness to pay"):
        text = changed(
            CHOICE,
            ('"conditional logit"', f'"mixed logit"\nrandom = ["epsilon"]\ndraws = 100\nspace = "{space}"'),
        )
        found = measured(write(tmp_path, text, HEADER, rows))
        low, high = found.found[0].interval
        assert low < 1400 < high
        assert f"mixed logit in {space} space with 100 draws" in found.findings.model


def test_single_bids(tmp_path: Path) -> None:
    """30 USD to avoid ε = 2: 15 USD per epsilon."""
    found = measured(write(tmp_path, BIDS, BID_HEADER, bids()))
    [cost] = found.found
    assert cost.number.unit == "USD per person per epsilon"
    assert cost.interval[0] < 15 < cost.interval[1]
    assert "Turnbull's lower bound" in found.findings.notes[0]
    lowered = changed(BIDS, ("epsilon = 2.0", "epsilon = 2.0\nlowered_to = 0.5"))
    other = measured(write(tmp_path, lowered, BID_HEADER, bids()))
    assert other.found[0].number.value == pytest.approx(cost.number.value * 2 / 1.5, rel=1e-12)


def test_double_bids_with_a_spike(tmp_path: Path) -> None:
    columns = 'kind = "double-bounded"\nsecond_bid = "second"\nsecond_answer = "again"'
    text = changed(BIDS, ('kind = "single-bounded"', columns))
    found = measured(write(tmp_path, text, DOUBLE_HEADER, double_bids()))
    assert found.found[0].interval[0] < 15 < found.found[0].interval[1]
    spiked = changed(text, ('bid = "bid"', 'bid = "bid"\npositive = "anything"'))
    other = measured(write(tmp_path, spiked, DOUBLE_HEADER, double_bids()))
    # nobody pays less than nothing: the mean is 8·ln(1 + e^{30/8}) = 30.19
    assert other.found[0].interval[0] < 30.19 / 2 < other.found[0].interval[1]
    assert other.found[0].method == "fieller"
    assert "spike at zero" in other.findings.model


def test_opinions_are_correlated_and_priced_by_nobody(tmp_path: Path) -> None:
    found = measure(load_survey(write(tmp_path, LIKERT, ("privacy", "accuracy", "income"), opinions())))
    assert isinstance(found, Opinions)
    assert set(found.correlations) == {("privacy", "accuracy"), ("privacy", "income"), ("accuracy", "income")}
    for pair in found.correlations.values():
        assert abs(pair.correlation - 0.5) < 3 * pair.standard_error
    assert "prices nothing" in words(found)
    assert "found" not in preferences_document(found)


POOLED = """
[prior.mean_disclosure_cost]
center = 1000
spread = 1.0
between = 0.3
source = "weak, by decision"

[[source]]
name = "court awards"
estimate.value = 1300
estimate.standard_error = 100
estimate.unit = "USD per child per epsilon"
estimate.source = "court awards"
estimate.time_base = "per year"
"""


def test_sources_are_pooled_and_conflicts_shown(tmp_path: Path, rows: list[Row]) -> None:
    found = measured(write(tmp_path, CHOICE + POOLED, HEADER, rows))
    pooled = found.pooled["mean_disclosure_cost"]
    own, other = found.found[0].number.value, 1300
    assert min(own, other) < pooled.mean < max(own, other)
    assert found.numbers()["mean_disclosure_cost"].value == pooled.mean
    assert "pooled from survey: choice experiment" in (found.block() or "")
    assert "court awards" in (found.block() or "")
    far = changed(POOLED, ("value = 1300\nestimate.standard_error = 100", "value = 100\nestimate.standard_error = 5"))
    conflict = measured(write(tmp_path, CHOICE + far, HEADER, rows)).pooled["mean_disclosure_cost"]
    assert conflict.agreement.conflicts
    assert conflict.standard_deviation > pooled.standard_deviation


def test_another_survey_file_is_a_source(tmp_path: Path, rows: list[Row]) -> None:
    (tmp_path / "other").mkdir()
    children = changed(BIDS, ('kind = "single-bounded"', 'kind = "single-bounded"\nunit = "child"'))
    write(tmp_path / "other", children, BID_HEADER, bids(mean=2800, scale=800))
    scaled = [(who, float(str(bid)) * 93, yes) for who, bid, yes in bids()]
    write(tmp_path / "other", children, BID_HEADER, scaled)
    text = CHOICE + POOLED.partition("estimate.")[0] + 'survey = "other/survey.toml"\n'
    found = measured(write(tmp_path, text, HEADER, rows))
    assert len(found.pooled["mean_disclosure_cost"].sources) == 2


@pytest.mark.parametrize(
    ("pieces", "refusal", "key", "says"),
    [
        ((('kind = "choice"', 'kind = "chioce"'),), InvalidValue, "survey.kind", 'did you mean "choice"'),
        ((('respondent = "id"', 'respondant = "id"'),), UnknownKey, "survey.respondant", "'respondent'"),
        ((('task = "task"\n', ""),), MissingKey, "survey.task", "kind 'choice'"),
        ((('chosen = "chosen"', 'chosen = "chosen"\nbid = "bid"'),), InvalidValue, "survey.bid", "no such column"),
        ((('unit = "USD"\nrole = "price"', 'role = "price"'),), MissingKey, "attributes.price.unit", "its unit"),
        ((("prior = 0.01\n", ""),), MissingKey, "attributes.epsilon.prior", "what they believed"),
        ((("prior = 0.01", "prior = 1.5"),), InvalidValue, "attributes.epsilon.prior", "between 0 and 1"),
        (
            (('role = "accuracy"', 'role = "accuracy"\nprior = 0.1'),),
            InvalidValue,
            "attributes.error.prior",
            "role 'privacy loss'",
        ),
        ((('role = "accuracy"', 'role = "price"'),), InvalidValue, "attributes.error.role", "two attributes"),
        (
            (('column = "grant_error"', 'column = "price"'),),
            InvalidValue,
            "attributes.error.column",
            "another attribute",
        ),
        (
            (('cluster = "respondent"', 'random = ["eps"]'),),
            InvalidValue,
            "model.random[0]",
            "no such attribute",
        ),
        ((("[report]", "[scenario]\nepsilon = 1\n[report]"),), InvalidValue, "scenario", "has no bids"),
        ((("[report]", "[report]\nnumbers = 3"),), MissingKey, "report.people", "all people pay"),
        ((("[report]", "[[source]]\nname = 'x'\n[report]"),), InvalidValue, "source[0].name", "one of two"),
    ],
)
def test_keys_that_cannot_be_meant(
    tmp_path: Path, pieces: tuple[tuple[str, str], ...], refusal: type[Refusal], key: str, says: str
) -> None:
    path = write(tmp_path, changed(CHOICE, *pieces), HEADER, [])
    with pytest.raises(refusal) as caught:
        load_survey(path)
    where = caught.value.where
    assert where is not None
    assert (where.file, where.key) == (str(path), key)
    assert where.line is not None
    assert where.line >= 1
    assert says in str(caught.value)


def spoiled(rows: list[Row], column: str, value: object, *, at: int = 5) -> list[Row]:
    place = HEADER.index(column)
    return [(*row[:place], value, *row[place + 1 :]) if i == at else row for i, row in enumerate(rows)]


def all_of(rows: list[Row], column: str, value: object) -> list[Row]:
    place = HEADER.index(column)
    return [(*row[:place], value, *row[place + 1 :]) for row in rows]


def never_dearer(rows: list[Row]) -> list[Row]:
    """Everybody takes the smaller privacy loss, whatever else: it separates."""
    pairs = [(rows[i], rows[i + 1]) for i in range(0, len(rows), 2)]
    return [
        (*row[:-1], int(float(str(row[4])) < float(str(other[4]))))
        for one, two in pairs
        if one[4] != two[4]
        for row, other in ((one, two), (two, one))
    ]


def by_chance(rows: list[Row]) -> list[Row]:
    """Choices that have nothing to do with the price."""
    generator = np.random.default_rng(4)
    return [
        (*row[:-1], int(place == pick))
        for i in range(0, len(rows), 2)
        for pick in [int(generator.integers(2))]
        for place, row in enumerate(rows[i : i + 2])
    ]


BAD_ANSWERS: list[tuple[str, Callable[[list[Row]], list[Row]], type[Refusal], str, str]] = [
    ("one alternative", lambda rows: rows[::2], InvalidSurvey, "survey.task", "shows one alternative"),
    ("nothing chosen", lambda rows: all_of(rows, "chosen", 0), InvalidSurvey, "survey.task", "no chosen alternative"),
    (
        "a price that never varies",
        lambda rows: all_of(rows, "price", 743.1),
        InvalidSurvey,
        "attributes.price.column",
        "the price 'price' never varies",
    ),
    ("separation", never_dearer, NoEstimate, "survey.source", "epsilon separates"),
    ("no effect of the price", by_chance, NoEstimate, "attributes.price", "unbounded"),
    (
        "a text for a price",
        lambda rows: spoiled(rows, "price", CANARY),
        InvalidSurvey,
        "attributes.price.column",
        "is no number",
    ),
    ("a gap", lambda rows: spoiled(rows, "id", " "), InvalidSurvey, "survey.respondent", "is empty"),
    ("a maybe", lambda rows: spoiled(rows, "chosen", CANARY), InvalidSurvey, "survey.chosen", "neither 1 nor 0"),
    (
        "a negative loss",
        lambda rows: spoiled(rows, "epsilon", -743.1),
        InvalidSurvey,
        "attributes.epsilon.column",
        "below 0",
    ),
    (
        "an infinite price",
        lambda rows: spoiled(rows, "price", "inf"),
        InvalidSurvey,
        "attributes.price.column",
        "is no number",
    ),
    (
        "a price that varies between tasks only",
        lambda rows: [(*row[:3], 100.0 + 100.0 * int(str(row[1])), *row[4:]) for row in rows],
        InvalidSurvey,
        "attributes.price.column",
        "never varies within a task",
    ),
    ("no rows", lambda rows: [], InvalidFile, "survey.source", "holds no rows"),
    ("few people", lambda rows: rows[:24], NoEstimate, "survey.source", ""),
]


@pytest.mark.parametrize(
    ("spoil", "refusal", "key", "says"), [case[1:] for case in BAD_ANSWERS], ids=[case[0] for case in BAD_ANSWERS]
)
def test_answers_that_tell_nothing(
    tmp_path: Path,
    rows: list[Row],
    spoil: Callable[[list[Row]], list[Row]],
    refusal: type[Refusal],
    key: str,
    says: str,
) -> None:
    path = write(tmp_path, CHOICE, HEADER, spoil(rows))
    with pytest.raises(refusal) as caught:
        measure(load_survey(path))
    where = caught.value.where
    assert where is not None
    assert (where.file, where.key) == (str(path), key)
    assert where.line is not None
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)
    assert "743" not in str(caught.value).replace(str(tmp_path), "")


def test_not_converged_is_not_an_estimate(tmp_path: Path, rows: list[Row]) -> None:
    text = changed(CHOICE, ("[model]", "[model]\nmost_steps = 1"))
    with pytest.raises(NoEstimate, match="did not converge in 1 steps"):
        measure(load_survey(write(tmp_path, text, HEADER, rows)))


def test_people_who_like_to_lose_privacy_have_no_cost(tmp_path: Path) -> None:
    with pytest.raises(InvalidPreferences, match="not positive") as caught:
        measure(load_survey(write(tmp_path, CHOICE, HEADER, choices(cost=-900.0))))
    assert caught.value.where is not None
    assert caught.value.where.key == "attributes.epsilon"


@pytest.mark.parametrize(
    ("pieces", "key", "says"),
    [
        ((('unit = "USD"\nrole = "price"', 'unit = "EUR"\nrole = "price"'),), "attributes.price.unit", "exchange_rate"),
        ((('unit = "USD"\nrole = "price"', 'unit = "USD^2"\nrole = "price"'),), "attributes.price.unit", "USD"),
        ((('unit = "USD"\nrole = "accuracy"', 'unit = "hour"\nrole = "accuracy"'),), "attributes.error.unit", "hour"),
        (
            (('role = "price"', 'role = "price"\ntime_base = "lifetime"'),),
            "report.time_base",
            "discount rate",
        ),
    ],
)
def test_units_that_cannot_be_reconciled(
    tmp_path: Path, rows: list[Row], pieces: tuple[tuple[str, str], ...], key: str, says: str
) -> None:
    path = write(tmp_path, changed(CHOICE, *pieces), HEADER, rows)
    with pytest.raises(IncompatibleUnits) as caught:
        measure(load_survey(path))
    assert caught.value.where is not None
    assert caught.value.where.key == key
    assert says in str(caught.value)


def test_pooled_units_that_cannot_be_reconciled(tmp_path: Path, rows: list[Row]) -> None:
    household = changed(POOLED, ("USD per child per epsilon", "USD per household per epsilon"))
    with pytest.raises(IncompatibleUnits, match="household") as caught:
        measure(load_survey(write(tmp_path, CHOICE + household, HEADER, rows)))
    assert caught.value.where is not None
    assert caught.value.where.key == "source[0]"
    bridged = changed(
        CHOICE,
        (
            "[report]",
            '[report]\nother_units = ["household"]\n'
            'bridges = [{ value = 2, unit = "child per household", source = "ACS" }]',
        ),
    )
    found = measured(write(tmp_path, bridged + household, HEADER, rows))
    assert found.pooled["mean_disclosure_cost"].sources[1].value == pytest.approx(650)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("a", 743.1, 1, 743.0, 1, 1)] * 3, "does not ask for more after a yes"),
        ([("a", 743.1, 1, 999.0, 1, 0)] * 3, "contradicts a yes"),
        ([("a", 743.1, 0, 3.5, 0, 1)] * 3 + [("b", 743.1, 0, 3.5, 0, 1)], "same answer to every bid"),
    ],
)
def test_bids_that_tell_nothing(tmp_path: Path, rows: list[Row], says: str) -> None:
    columns = 'kind = "double-bounded"\nsecond_bid = "second"\nsecond_answer = "again"\npositive = "anything"'
    path = write(tmp_path, changed(BIDS, ('kind = "single-bounded"', columns)), DOUBLE_HEADER, rows)
    with pytest.raises(InvalidSurvey) as caught:
        measure(load_survey(path))
    assert says in str(caught.value)
    assert "743" not in str(caught.value).replace(str(tmp_path), "")


def test_one_bid_for_everybody(tmp_path: Path) -> None:
    with pytest.raises(InvalidSurvey, match="the same bid") as caught:
        measure(load_survey(write(tmp_path, BIDS, BID_HEADER, [(i, 743.1, i % 2) for i in range(30)])))
    assert "743" not in str(caught.value).replace(str(tmp_path), "")


def test_a_folder_of_answers_is_read_as_one(tmp_path: Path, rows: list[Row]) -> None:
    whole = measured(write(tmp_path, CHOICE, HEADER, rows)).found[0].number
    (tmp_path / "saved").mkdir()
    text = (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for part, start in enumerate(range(1, len(text), 600)):
        (tmp_path / "saved" / f"{part}.csv").write_text(text[0] + "".join(text[start : start + 600]), encoding="utf-8")
    (tmp_path / "survey.toml").write_text(changed(CHOICE, ('"answers.csv"', '"saved"')), encoding="utf-8")
    assert measured(tmp_path / "survey.toml").found[0].number.value == pytest.approx(whole.value, rel=1e-9)
    (tmp_path / "saved" / "9.csv").write_text("other\n1\n", encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"9\.csv"):
        measure(load_survey(tmp_path / "survey.toml"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"id,id\n1,2\n", "no names of their own"),
        (b"id,task\n1\n", "not as many values"),
        (b'id\n"x\n', "comma-separated"),
        (CANARY.encode() + b",task\n1,2\n", "no column 'id'"),
    ],
)
def test_files_that_are_no_answers(tmp_path: Path, content: bytes, says: str) -> None:
    path = write(tmp_path, CHOICE, HEADER, [])
    (tmp_path / "answers.csv").write_bytes(content)
    with pytest.raises(Refusal) as caught:
        measure(load_survey(path))
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)


DOUBLE = changed(
    BIDS,
    (
        'kind = "single-bounded"',
        'kind = "double-bounded"\nsecond_bid = "second"\nsecond_answer = "again"\npositive = "anything"',
    ),
)
ODD = ("-743173.5", "7.43173e300", "1e999", "nan", " ", CANARY, "743173%", '="743173"')
SURVEYS: dict[str, tuple[str, tuple[str, ...], list[Row]]] = {
    "choice": (CHOICE, HEADER, choices(20)),
    "single-bounded": (BIDS, BID_HEADER, bids(60)),
    "double-bounded": (DOUBLE, DOUBLE_HEADER, double_bids(60)),
    "likert": (LIKERT, ("privacy", "accuracy", "income"), opinions(80)),
}


@pytest.mark.parametrize("kind", SURVEYS)
def test_no_refusal_repeats_an_answer(tmp_path: Path, kind: str) -> None:
    """An odd value in each column, once and everywhere: an estimate, or a refusal with its place and without it."""
    text, header, rows = SURVEYS[kind]
    refusals: list[Refusal] = []
    for column, value, everywhere in product(range(len(header)), ODD, (False, True)):
        spoiled_rows = [
            (*row[:column], value, *row[column + 1 :]) if everywhere or i == 3 else row for i, row in enumerate(rows)
        ]
        try:
            measure(load_survey(write(tmp_path, text, header, spoiled_rows)))
        except Refusal as refusal:
            refusals.append(refusal)
    assert len(refusals) >= 5 * len(header)
    said = "\n".join(map(str, refusals)).replace(str(tmp_path), "")
    assert CANARY not in said
    assert "743" not in said.replace("7.43", "743")
    assert all(refusal.where is not None and refusal.where.line is not None for refusal in refusals)


@pytest.mark.parametrize(("error", "bounded"), [(0.4, True), (0.6, False)])
@pytest.mark.parametrize("random", [("epsilon",), ("epsilon", "price")])
def test_a_scale_that_may_be_zero_has_no_price_in_money_space(
    tmp_path: Path, error: float, bounded: bool, random: tuple[str, ...]
) -> None:
    """The effect of the price is e^s: within 1.96 standard errors e^s·σ of zero where 1.96·σ ≥ 1."""
    named = ", ".join(f'"{name}"' for name in random)
    text = changed(CHOICE, ('"conditional logit"', f'"mixed logit"\nrandom = [{named}]\nspace = "willingness to pay"'))
    survey = load_survey(write(tmp_path, text, HEADER, []))
    scale = "mean of log scale" if "price" in random else "log scale"
    names, errors = (scale, "willingness to pay for epsilon"), np.array([error, 100.0])
    found = ParameterEstimates(names, np.array([-7.0, -1400.0]), np.diag(errors**2), -1.0, 900, 150)
    if bounded:
        assert worth_of(survey, found, "epsilon").interval == pytest.approx((-1596.0, -1204.0), abs=0.01)
        return
    with pytest.raises(NoEstimate, match="no number") as caught:
        worth_of(survey, found, "epsilon")
    assert caught.value.where is not None
    assert caught.value.where.key == "attributes.price"
