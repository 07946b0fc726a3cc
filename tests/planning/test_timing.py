"""Time is a dimension of money: one time for all, converted by a stated horizon, or refused where it stands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from dualmandate.errors import IncompatibleUnits, InvalidValue, Refusal
from dualmandate.planning.plan import warnings_on
from dualmandate.planning.program import Program, load
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words

if TYPE_CHECKING:
    from tests.programs import Change

COST = 'source = "DOJ 2015, rounded up; conditional on being a victim"'
CONSEQUENCE = 'source = "mean squared adjusted SPPE, CCD 2014-15"'
PRICE = 'source = "implicit in the paper"'
HORIZON = """[preferences.horizon]
years = 40
discount_rate = 0.03
source = "OMB Circular A-94"

[limits]"""
WORTH = 23.114772  # (1 − 1.03^−40)/0.03


def timed(
    cost: str | None, consequence: str | None, price: str | None, *more: tuple[str, str]
) -> list[tuple[str, str]]:
    """Pieces that give each amount of Title I its time base."""
    stated = ((COST, cost), (CONSEQUENCE, consequence), (PRICE, price))
    return [(source, f'{source}, time_base = "{base}"') for source, base in stated if base is not None] + [*more]


def best(program: Program) -> float:
    return program.plan().choice.epsilon


def test_a_yearly_cost_beside_a_lifetime_price_is_refused(changed: Change) -> None:
    # $61 a year against errors that are made once: a factor of 23 that nobody sees.
    with pytest.raises(IncompatibleUnits) as caught:
        load(changed(*timed("per year", "once", "once")))
    assert caught.value.where is not None
    assert caught.value.where.key == "preferences.mean_disclosure_cost"
    assert caught.value.where.line is not None
    assert "[preferences.horizon]" in caught.value.instead


def test_silence_about_time_is_a_warning(title_i: Path, changed: Change) -> None:
    said = "No amount of money says over what time it runs (time_base): all are taken to run over the same."
    assert said in warnings_on(load(title_i).plan())
    assert said not in warnings_on(load(changed(*timed("once", "once", "once"))).plan())


def test_a_horizon_converts_what_comes_every_year(changed: Change) -> None:
    sixty_one = ("value = 1400", "value = 61")
    plan = load(changed(sixty_one, *timed("per year", "once", "once", ("[limits]", HORIZON)))).plan()
    # ε* ∝ k^{−1/3}: $61 a year is $1,410 for 40 years at 3 %, and ε 2.52 where $1,400 at once gives 2.5276.
    assert pytest.approx(1410.0, abs=0.01) == WORTH * 61
    assert plan.choice.epsilon == pytest.approx(2.527644 * (1400 / (WORTH * 61)) ** (1 / 3), rel=1e-6)
    assert plan.choice.epsilon == pytest.approx(2.5217, abs=5e-5)
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    assert document["program"]["time_base"] == "once"
    assert document["program"]["horizon"]["present_value"] == pytest.approx(WORTH, rel=1e-6)
    said = " ".join(plan_words(plan).split())
    assert "count for 40 years at a discount rate of 3 % (OMB Circular A-94): 1 a year is worth 23.11 today" in said


@pytest.mark.parametrize(
    ("bases", "factor"),
    [
        (("per year", "per year", "once"), 1.0),  # everything comes every year
        (("per year", "once", "per year"), 1.0),
        (("per month", "per year", "once"), 12.0),  # of the cost
        (("once", "lifetime", "once"), 1.0),
        ((None, None, None), 1.0),
    ],
)
def test_one_time_for_all_needs_no_horizon(
    changed: Change, bases: tuple[str | None, str | None, str | None], factor: float
) -> None:
    program = load(changed(*timed(*bases)))
    assert best(program) == pytest.approx(2.527644 * factor ** (-1 / 3), rel=1e-6)
    expected = None if bases[0] is None else "per year" if "per" in bases[0] else "once"
    assert program.timing.time_base == expected
    said = {None: "No amount of money says", "once": "paid or lost once", "per year": "are per year"}
    assert said[expected] in program.timing.explain()


def test_a_consequence_or_its_price_may_come_every_year(changed: Change, title_i: Path) -> None:
    original = title_i.read_text(encoding="utf-8")
    for consequence, price in (("per year", "once"), ("once", "per year")):
        title_i.write_text(original, encoding="utf-8")
        plan = load(changed(*timed("once", consequence, price, ("[limits]", HORIZON)))).plan()
        assert plan.choice.epsilon == pytest.approx(2.527644 * WORTH ** (1 / 3), rel=1e-6)
        # What one error comes to is that of one year; what errors cost is of all years.
        (table,) = plan.tables
        squared = 2e7 * table.root_mean_squared_error**2
        assert table.root_mean_squared_consequence == pytest.approx(math.sqrt(squared), rel=1e-9)
        assert table.data_loss == pytest.approx(13_000 * squared * WORTH, rel=1e-6)
        # Moving an input moves the choice as ever: the elasticity is a third, whatever the horizon.
        rows = {row.name: row for row in plan.robustness.elasticities}
        assert rows["price_of_squared_misallocation"].value == 1.0
        for name in ("price_of_squared_misallocation", "consequence"):
            assert rows[name].elasticity == pytest.approx(1 / 3, rel=1e-3)


MARKETS = """
[markets]
largest_user_share = 0.5
budget = { value = 1e9, unit = "USD", source = "assumed", time_base = "per year" }
source = "assumed"
"""


def test_other_money_of_the_program_is_converted_too(changed: Change, title_i: Path) -> None:
    pieces = timed("once", "once", "once", ("[limits]", HORIZON))
    title_i.write_text(title_i.read_text(encoding="utf-8") + MARKETS, encoding="utf-8")
    plan = load(changed(*pieces)).plan()
    bought = next(row for row in plan.extensions.markets if row.name == "FairQuery")
    assert bought.total == pytest.approx(1e9 * WORTH, rel=1e-3)


@pytest.mark.parametrize(
    ("pieces", "kind", "key"),
    [
        (timed("once", None, "once"), IncompatibleUnits, "workload[0].consequence"),
        (timed("once", "once", None), IncompatibleUnits, "preferences.price_of_squared_misallocation"),
        (timed(None, "once", "once"), IncompatibleUnits, "preferences.mean_disclosure_cost"),
        (timed("once", "per year", "once"), IncompatibleUnits, "workload[0].consequence"),
        (timed("once", "per year", "per year"), IncompatibleUnits, "workload[0].consequence"),
        (timed("once", "per year", "per year", ("[limits]", HORIZON)), IncompatibleUnits, "workload[0].consequence"),
        (timed("once", "once", "once", ("[limits]", HORIZON)), InvalidValue, "preferences.horizon"),
        (timed(None, None, None, ("[limits]", HORIZON)), InvalidValue, "preferences.horizon"),
        (timed("per visit", "once", "once"), InvalidValue, "preferences.mean_disclosure_cost.time_base"),
        (timed("per year", "per year", "once", ("[limits]", HORIZON.replace("0.03", "-0.03"))), InvalidValue,
         "preferences.horizon.discount_rate"),
        ([('source = "CCD 2014-15" }', 'source = "CCD 2014-15", time_base = "per year" }')], InvalidValue,
         "population.population_size.time_base"),
        ([("USD per child per epsilon", "USD per child per epsilon per year")], IncompatibleUnits,
         "preferences.mean_disclosure_cost"),
    ],
)  # fmt: skip
def test_times_that_cannot_be_added_are_refused_where_they_stand(
    changed: Change, pieces: list[tuple[str, str]], kind: type[Refusal], key: str
) -> None:
    with pytest.raises(kind) as caught:
        load(changed(*pieces))
    assert caught.value.where is not None
    assert caught.value.where.key == key
    assert caught.value.where.line is not None
    assert caught.value.instead


def test_without_discounting_years_add_up(changed: Change) -> None:
    horizon = HORIZON.replace("0.03", "0")
    program = load(changed(*timed("per year", "once", "once", ("[limits]", horizon))))
    assert best(program) == pytest.approx(2.527644 * 40 ** (-1 / 3), rel=1e-6)
