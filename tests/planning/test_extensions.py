"""Programs that go beyond the paper: response, tables that earn their place, releases to come, markets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from dualmandate.choice.markets import QUALITY
from dualmandate.errors import ConflictingLimits, IncompatibleUnits, InvalidValue, MissingKey, Refusal, UnknownKey
from dualmandate.frontier import ExponentialResponse, TableTotals, peak_of, with_participation
from dualmandate.frontier.participation import EVERYBODY
from dualmandate.planning import program as planning
from dualmandate.planning.extensions import Participation
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.dossier import plan_figures, write_dossier
from dualmandate.report.figures import what_if_choices
from dualmandate.report.plan_words import plan_words

Change = Callable[..., Path]
MECHANISM = "[mechanism]\n"
PARTICIPATION = """
[participation]
rate_without_loss = 0.95
decline_per_epsilon = 0.02
source = "assumed"
"""
HORIZON = """
[horizon]
discount_factor = 0.97
disclosure_after_years = 72
releases = [0, 10, 20, 30, 40, 50, 60]
source = "72-year rule"
"""
MARKETS = """
[markets]
largest_user_share = 0.125
budget = { value = 1e9, unit = "USD", source = "assumed" }
harm = { value = 1400, unit = "USD per child", source = "assumed" }
target_error = 0.01
source = "assumed"
"""
FALSE = "truthful_decline_per_epsilon = 0.01\n"
SPREAD = 'standard_deviation = { value = 1200, unit = "child", source = "SAIPE" }\n'
LANDING = f"{SPREAD}falsely_counted = 0.5\n"
TOTAL = 'total = { value = 8e6, unit = "children", source = "SAIPE" }\n'
EXISTING = 'existing_error = { value = 120, unit = "child", source = "SAIPE" }\n'
WORTH = 'value_of_publishing = { value = 3e11, unit = "USD", source = "assumed" }\n'
DETAIL = """
[[workload.details]]
name = "national"
value_of_publishing = { value = 1e9, unit = "USD", source = "assumed" }
"""


def appended(path: Path, *tables: str, in_workload: str = "") -> Path:
    """The program with keys put into its table, and tables at its end."""
    text = path.read_text(encoding="utf-8")
    assert MECHANISM in text
    text = text.replace(MECHANISM, f"{in_workload}\n{MECHANISM}", 1)
    path.write_text(text + "".join(tables), encoding="utf-8")
    return path


def planned(path: Path, *tables: str, in_workload: str = "") -> Plan:
    return load(appended(path, *tables, in_workload=in_workload)).plan()


def refused(path: Path, *tables: str, in_workload: str = "") -> Refusal:
    with pytest.raises(Refusal) as found:
        planned(path, *tables, in_workload=in_workload)
    return found.value


def test_a_plan_that_asks_for_nothing_more_says_nothing_more(title_i: Path) -> None:
    plan = load(title_i).plan()
    assert not set(plan_document(plan)) & {"participation", "offering", "path", "markets", "existing_errors"}
    names = [figure.name for figure in plan_figures(plan, what_if_choices(plan.frontier, plan.welfare, steps=3))]
    assert names == [
        *["tangency", "rates", "welfare", "regret", "consequences", "what-if", "strategies", "technologies"]
    ]
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=1e-6)


def test_participation_changes_the_frontier_that_the_plan_uses(title_i: Path) -> None:
    plan = planned(title_i, PARTICIPATION, in_workload=TOTAL)
    part = plan.extensions.participation
    assert part is not None
    assert plan.choice.epsilon == pytest.approx(0.6953538, abs=1e-6)  # tests/frontier/test_participation.py
    assert plan.choice.privacy_cost == pytest.approx(46e6 * part.rate * 1400 * plan.choice.epsilon)
    assert part.peak is not None
    assert part.peak == pytest.approx(0.699368, abs=1e-6)
    assert part.rate == pytest.approx(0.95 * math.exp(-0.02 * 0.6953538), abs=1e-6)
    assert peak_of(plan.frontier) == part.peak
    assert float(plan.loss) <= part.peak
    # Sampling dominates: 95 in 100 numbers are within 1.96 standard errors, and noise adds a little.
    typical = plan.tables[0].root_mean_squared_error
    assert 1.9 * typical < plan.tables[0].half_width < 2.1 * typical
    noise_alone = replace(plan.tables[0], half_width=3.0)
    half, nobody = ExponentialResponse(0.5, 0.0), {noise_alone.table: TableTotals(0.0)}
    response = Participation(half, EVERYBODY, nobody, (), "assumed")
    limited = with_participation(plan.technology.noise_frontier, half, nobody)
    assert response.widened((noise_alone,), limited, 1.0, {noise_alone.table: 1.0})[0].half_width == pytest.approx(6)
    assert part.cost(plan.choice.epsilon) == pytest.approx(plan.choice.data_loss)
    assert part.cost(3 * part.peak) > plan.choice.data_loss
    assert plan.saving.limit is not None
    assert plan.saving.least_lost is None  # who leaves bears nothing: privacy may cost less at a larger loss
    assert part.noise_cost(0.5) == pytest.approx(13_000 * 2 / 0.25 * 2e7)
    jsonschema.validate(plan_document(plan), schema("plan"))
    words = " ".join(plan_words(plan).split())
    assert "Accuracy peaks at epsilon = 0.6994" in words
    assert "93.7 % of the children take part" in words
    assert f"borne by {round(46e6 * part.rate):,} children who take part: USD 973 each" in words


def test_participation_with_best_noise_and_no_total(title_i: Path, changed: Change) -> None:
    changed(('noise = "laplace"', 'noise = "best"'))
    plan = planned(title_i, PARTICIPATION)
    part = plan.extensions.participation
    assert part is not None
    assert part.assumed_totals == ("eligible children by district",)
    assert part.peak is not None
    assert plan.choice.epsilon <= part.peak
    assert plan.technology.noise == "geometric"
    assert "all children are taken to be counted" in " ".join(plan_words(plan).split())


def test_false_reports_move_the_peak_and_the_choice(title_i: Path) -> None:
    plan = planned(title_i, PARTICIPATION + FALSE, in_workload=TOTAL + LANDING)
    part = plan.extensions.participation
    assert part is not None
    assert part.peak is not None
    assert plan.choice.epsilon < part.peak < 0.699368  # the peak of those who stay away alone
    m, w = 1 - part.truthful, 1 / part.rate
    assert m == pytest.approx(1 - math.exp(-0.01 * plan.choice.epsilon))
    h, mean = 0.5 / 13_000, 8e6 / 13_000
    a, c = 1 - m * (1 - h), m * h
    sampling = 8e6 * a * (w - a) + (46e6 * 13_000 - 8e6) * c * (w - c)
    bias = m**2 * 13_000 * (1_200**2 + (46e6 * h - mean) ** 2)
    errors = 2 * 13_000 / plan.choice.epsilon**2 * w**2 + sampling + bias
    assert -plan.choice.accuracy == pytest.approx(errors)
    assert part.cost(plan.choice.epsilon) == pytest.approx(2e7 * errors)
    assert plan.tables[0].half_width > 1.9 * math.sqrt((sampling + bias) / 13_000)
    jsonschema.validate(plan_document(plan), schema("plan"))
    assert "report falsely" in " ".join(plan_words(plan).split())


def test_a_floor_beyond_the_peak_is_refused(title_i: Path) -> None:
    floor = "fitness_for_use = { largest_root_mean_squared_error = 1 }\n"
    refusal = refused(title_i, PARTICIPATION, in_workload=TOTAL + floor)
    assert isinstance(refusal, ConflictingLimits)
    assert refusal.where is not None
    assert refusal.where.key == "workload[0].fitness_for_use"
    assert refusal.where.line is not None


def test_existing_errors_are_reported_and_move_nothing(title_i: Path) -> None:
    plan = planned(title_i, in_workload=EXISTING)
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=1e-6)
    [row] = plan.extensions.existing
    assert row.noise == pytest.approx(math.sqrt(2) / 2.5276)  # at the loss that is spent
    assert row.together == pytest.approx(math.hypot(120, 0.559499))
    assert row.added == pytest.approx(0.559499**2 / 120**2 / 2, rel=1e-3)
    assert "does not move the choice" in plan_words(plan)


def test_tables_that_earn_their_place_and_their_details(title_i: Path) -> None:
    plan = planned(title_i, in_workload=WORTH + DETAIL)
    offering = plan.extensions.offering
    assert offering is not None
    stated, national = offering.verdicts
    # 13,000 districts by themselves: price is what the plan's own choice loses; one total is far cheaper.
    assert stated.price == pytest.approx(-plan.choice.welfare)
    assert national.price == pytest.approx(-plan.choice.welfare / 13_000 ** (1 / 3))
    assert (stated.published, national.published) == (True, False)
    assert offering.epsilon == pytest.approx(plan.choice.epsilon)
    words = " ".join(plan_words(plan).split())
    assert "'eligible children by district (as stated)' earns its place" in words
    assert "This is advice" in words
    jsonschema.validate(plan_document(plan), schema("plan"))
    assert [table.table for table in plan.tables] == ["eligible children by district"]  # nothing is dropped


def test_a_table_worth_less_than_its_price_is_advised_against_but_stays(title_i: Path) -> None:
    plan = planned(title_i, in_workload=WORTH.replace("3e11", "2e11"))
    offering = plan.extensions.offering
    assert offering is not None
    assert not offering.published
    words = " ".join(plan_words(plan).split())
    assert "does not earn its place" in words
    assert "Published by themselves" not in words
    assert "worth its price" not in words  # of one table it has been said, and of others it is not known
    assert "epsilon = 0 in all" not in words
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=1e-6)


def test_costs_that_are_bounded_say_why_no_price_can_be_named(title_i: Path, changed: Change) -> None:
    changed(
        ('"linear" ', '"bounded" '),
        ('value = 1400, unit = "USD per child per epsilon"', 'value = 50000, unit = "USD per child"'),
    )
    plan = planned(title_i, HORIZON, in_workload=WORTH)
    assert plan.extensions.no_offering
    assert plan.extensions.path is not None  # without a cap each release is chosen for itself
    assert "could not be worked out" in " ".join(plan_words(plan).split())
    jsonschema.validate(plan_document(plan), schema("plan"))


def test_releases_to_come(title_i: Path) -> None:
    path = planned(title_i, HORIZON).extensions.path
    assert path is not None
    scale = 2.527644 / 1.259921  # of the reference path, where 2c/k = 2
    reference = [1.2599, 1.2793, 1.3076, 1.3503, 1.4184, 1.5381, 1.7971]
    assert [release.epsilon / scale for release in path.releases] == pytest.approx(reference, abs=5e-5)


def test_a_cap_on_all_releases(title_i: Path) -> None:
    plan = planned(title_i, HORIZON + "largest_total = 6\n")
    path = plan.extensions.path
    assert path is not None
    assert path.total == pytest.approx(6)
    assert path.price > 0
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=1e-6)  # reported; this release is chosen as stated
    assert "one more unit is worth USD" in " ".join(plan_words(plan).split())
    jsonschema.validate(plan_document(plan), schema("plan"))


def test_the_same_program_in_a_market(title_i: Path) -> None:
    plan = planned(title_i, MARKETS)
    rows = {row.name: row for row in plan.extensions.markets}
    assert rows["planner"].epsilon == plan.choice.epsilon
    assert rows["private provider, one price"].epsilon == pytest.approx(plan.choice.epsilon / 2)
    assert rows["monopolist"].epsilon == pytest.approx(0.793701 * plan.choice.epsilon, abs=1e-5)
    assert rows["MinCostAuction"].epsilon == pytest.approx(QUALITY / (0.01 * 46e6))
    jsonschema.validate(plan_document(plan), schema("plan"))
    words = " ".join(plan_words(plan).split())
    assert "The same program in a market" in words
    assert "it buys no table of this program" in words


def test_users_whose_tastes_are_spread(title_i: Path) -> None:
    table = MARKETS.replace('source = "assumed"\n', 'source = "assumed"\nspread_of_tastes = 1\n')
    rows = {row.name: row for row in planned(title_i, table).extensions.markets}
    assert rows["monopolist"].epsilon != pytest.approx(0.793701 * 2.527644, abs=1e-3)


@pytest.mark.slow
def test_the_dossier_shows_every_part(title_i: Path, tmp_path: Path) -> None:
    plan = planned(title_i, PARTICIPATION, HORIZON, MARKETS, in_workload=TOTAL + EXISTING + WORTH)
    names = {path.name for path in write_dossier(plan, tmp_path / "out")}
    assert {"participation.svg", "existing.png", "offering.png", "path.svg", "markets.png"} <= names
    page = (tmp_path / "out" / "dossier.html").read_text(encoding="utf-8")
    for anchor in ("participation", "existing", "offering", "path", "markets"):
        assert f'<h2 id="{anchor}">' in page
        assert f'<a href="#{anchor}">' in page
    assert "72-year rule" in page
    assert set(plan_document(plan)) >= {"participation", "offering", "path", "markets", "existing_errors"}


@pytest.mark.parametrize(
    ("tables", "in_workload", "kind", "key"),
    [
        (PARTICIPATION.replace("decline_per_epsilon", "decline_per_rho"), "", InvalidValue, "decline_per_rho"),
        (PARTICIPATION.replace("decline_per_epsilon = 0.02\n", ""), "", MissingKey, "decline_per_epsilon"),
        (PARTICIPATION.replace("0.95", "1.5"), "", InvalidValue, "rate_without_loss"),
        (PARTICIPATION.replace('source = "assumed"\n', ""), "", MissingKey, "source"),
        (PARTICIPATION + "decline_per_rho = 1\n", "", InvalidValue, "decline_per_rho"),
        (PARTICIPATION + "rate = 1\n", "", UnknownKey, "rate"),
        (PARTICIPATION + FALSE, TOTAL + SPREAD, MissingKey, "workload"),
        (PARTICIPATION + FALSE, TOTAL + "falsely_counted = 0.5\n", MissingKey, "workload"),
        (PARTICIPATION + FALSE, TOTAL + LANDING.replace("0.5", "1.5"), InvalidValue, "falsely_counted"),
        (PARTICIPATION + FALSE, TOTAL + LANDING.replace('"child"', '"USD"'), IncompatibleUnits, "standard_deviation"),
        (PARTICIPATION + FALSE, TOTAL.replace("8e6", "9e7") + LANDING, InvalidValue, "total"),
        (PARTICIPATION + FALSE.replace("epsilon", "rho"), "", InvalidValue, "truthful_decline_per_rho"),
        (HORIZON.replace("0.97", "1.2"), "", InvalidValue, "discount_factor"),
        (HORIZON.replace("60]", "80]"), "", Refusal, "horizon"),
        (HORIZON + "largest_total = -1\n", "", InvalidValue, "largest_total"),
        (HORIZON.replace("[0, 10, 20, 30, 40, 50, 60]", "[]"), "", InvalidValue, "releases"),
        (MARKETS.replace("0.125", "0"), "", InvalidValue, "largest_user_share"),
        (MARKETS.replace("value = 1400", "value = 0"), "", InvalidValue, "harm"),
        (MARKETS.replace("value = 1e9", "value = 0"), "", InvalidValue, "budget"),
        (MARKETS.replace('unit = "USD",', 'unit = "child",'), "", IncompatibleUnits, "budget"),
        (MARKETS.replace('"USD per child"', '"USD"'), "", IncompatibleUnits, "harm"),
        ("", TOTAL.replace("children", "USD") + PARTICIPATION, IncompatibleUnits, "total"),
        ("", EXISTING.replace('"child"', '"USD"'), IncompatibleUnits, "existing_error"),
        ("", WORTH.replace('"USD"', '"child"'), IncompatibleUnits, "value_of_publishing"),
        ("", DETAIL, MissingKey, "value_of_publishing"),
        ("", WORTH + DETAIL + DETAIL, InvalidValue, "details"),
        ("", WORTH + DETAIL.replace('"national"\n', '"by shoe size"\nby = ["shoe size"]\n'), Refusal, "details"),
    ],
)
def test_bad_input_is_refused_where_it_stands(
    title_i: Path, tables: str, in_workload: str, kind: type[Refusal], key: str
) -> None:
    refusal = refused(title_i, tables, in_workload=in_workload)
    assert isinstance(refusal, kind)
    assert refusal.where is not None
    assert key in (refusal.where.key or "")
    assert refusal.where.line is not None


COLLECTION = """
[collection]
cost_per_respondent = { value = 10, unit = "EUR per child", source = "assumed" }
"""
RESPONSE = """
[randomized_response]
innocuous_share = 0.5
source = "assumed"
"""
SECRET = """
[secret]
group = "household"
shares_counted = [0.5, 0.6]
source = "assumed"
"""
UNPAID = MARKETS.replace("1e9", "0")
YEARLY = HORIZON + 'years_of_use = 3\nyearly_value = { value = 1, unit = "child", source = "assumed" }\n'


READING = '[[readings]]\nreading = "of another"\nparameter = "mean_cost"\ntimes = 2\nsource = "assumed"\n'
UNWORTHY = WORTH.replace('"USD"', '"child"')
ERROR = EXISTING.replace('"child"', '"USD"')
IN_CHILDREN = WORTH + DETAIL.replace('"USD"', '"child"')
UNASKED = '[uncertainty]\nspread_of_answers = 1\nsource = "assumed"\n'
ALIKE = '[social_choice]\nrules = ["nash"]\n'


@pytest.mark.parametrize("asked", [COLLECTION, RESPONSE, SECRET, UNPAID, YEARLY, READING, UNASKED, ALIKE])
def test_what_cannot_be_had_beside_a_plan_is_refused_before_the_search(
    title_i: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search may take minutes, and a refusal that comes after it could have come at once."""

    def searched(*_: object) -> None:
        raise AssertionError("it was searched")

    monkeypatch.setattr(planning, "_with_best_bounds", searched)
    assert refused(title_i, asked).where is not None


@pytest.mark.parametrize("stated", [ERROR, UNWORTHY, IN_CHILDREN])
def test_amounts_of_a_table_in_another_unit_are_refused_before_the_search(
    title_i: Path, stated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_with_best_bounds", lambda *_: pytest.fail("it was searched"))
    assert isinstance(refused(title_i, in_workload=stated), IncompatibleUnits)


@pytest.mark.parametrize("total", ['value = 0, unit = "USD"', 'value = 1, unit = "child"'])
def test_a_public_total_of_nothing_is_refused_before_the_search(
    title_i: Path, total: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_with_best_bounds", lambda *_: pytest.fail("it was searched"))
    text, named = title_i.read_text(encoding="utf-8"), "[program]\n"
    stated = f'{named}public_total = {{ {total}, source = "drawn" }}\n'
    title_i.write_text(text.replace(named, stated, 1), encoding="utf-8")
    assert "public_total" in str(refused(title_i).where)


def test_a_stated_error_that_moves_nothing_is_refused_before_the_search(
    title_i: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_with_best_bounds", lambda *_: pytest.fail("it was searched"))
    unused = EXISTING.replace('unit = "child",', 'unit = "child", standard_error = 10,')
    assert "the plan does not use that" in refused(title_i, in_workload=unused).what


def test_a_target_that_nobody_can_reach_is_a_note_of_its_market_alone(title_i: Path) -> None:
    """One count within 1e-9 of 46 million people is one within less than a person: all of them would have to sell."""
    plan = planned(title_i, MARKETS.replace("target_error = 0.01", "target_error = 1e-9"))
    rows = {row.name: row for row in plan.extensions.markets}
    assert "too few for an error of at most 1e-09" in rows["study that pays for harm"].why
    assert rows["study that pays for harm"].epsilon == pytest.approx(math.log1p(1e9 / (1400 * 46e6)))
    assert rows["MinCostAuction"].epsilon is None
    assert "needs all of them" in rows["MinCostAuction"].why
    assert plan.choice.epsilon == pytest.approx(2.527644, abs=1e-6)
    assert "needs all of them" in " ".join(plan_words(plan).split())
    jsonschema.validate(plan_document(plan), schema("plan"))
