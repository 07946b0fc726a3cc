"""Numbers with units and sources become preferences, or are refused in plain words."""

from __future__ import annotations

import math

import pytest

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    LinearCost,
    PosteriorCost,
    information_utility,
    population_size,
    relative_weight,
    table_value,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidValue, MissingKey
from dualmandate.population import Calibrated, Currency, Units, common_time_base

CHILD = Units("child")
CONSEQUENCE = Calibrated(2.0e7, "USD^2 per child^2", "CCD 2014-15")
PRICE = Calibrated(0.5, "USD per USD^2", "assumed")


def test_a_number_with_its_origin() -> None:
    cost = Calibrated(1400, "USD per child per epsilon", "DOJ 2015", "lifetime")
    assert str(cost) == "1,400 USD per child per epsilon (DOJ 2015, lifetime)"
    assert cost.to("dollars per children per epsilon", CHILD).value == 1400
    with pytest.raises(IncompatibleUnits):
        cost.to("USD per child", CHILD)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -math.inf])
def test_values_that_cannot_be_meant(value: float) -> None:
    with pytest.raises(InvalidValue, match="cannot be meant"):
        Calibrated(value, "USD", "somewhere")


@pytest.mark.parametrize("value", ["1400", True, None])
def test_values_that_are_not_numbers(value: object) -> None:
    with pytest.raises(InvalidValue, match="not a number"):
        Calibrated(value, "USD", "somewhere")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "source", "words"), [("", "x", "no unit"), (" ", "x", "no unit"), ("USD", "", "no source")]
)
def test_a_missing_unit_or_source(unit: str, source: str, words: str) -> None:
    with pytest.raises(MissingKey, match=words):
        Calibrated(1.0, unit, source)


def test_time_bases_do_not_mix() -> None:
    life, none = Calibrated(1, "USD", "x", "lifetime"), Calibrated(1, "USD", "x")
    assert common_time_base(life, none, None) == "lifetime"
    assert common_time_base(none) is None
    with pytest.raises(IncompatibleUnits, match="lifetime, per year"):
        common_time_base(life, Calibrated(1, "USD", "x", "per year"))


def test_population() -> None:
    assert population_size(Calibrated(46e6, "children", "CCD"), CHILD) == 46e6
    with pytest.raises(InvalidPreferences, match="0 children"):
        population_size(Calibrated(0, "child", "CCD"), CHILD)
    with pytest.raises(IncompatibleUnits):
        population_size(Calibrated(46e6, "USD", "CCD"), CHILD)


def test_each_form_has_its_own_unit() -> None:
    per_epsilon = Calibrated(1400, "USD per child per epsilon", "DOJ")
    per_child = Calibrated(1400, "USD per child", "DOJ")
    assert information_utility("linear", per_epsilon, units=CHILD) == LinearCost(1400)
    assert information_utility("exponential", per_child, units=CHILD) == ExponentialCost(1400)
    assert information_utility("bounded", per_child, units=CHILD) == BoundedCost(1400)
    posterior = information_utility(
        "posterior", Calibrated(9, "USD per child per disclosure", "x"), units=CHILD, prior=0.1
    )
    assert posterior == PosteriorCost(9, 0.1)
    per_rho = Calibrated(3, "USD per child per rho", "x")
    assert information_utility("linear", per_rho, units=CHILD, currency=Currency.RHO) == LinearCost(3, Currency.RHO)


@pytest.mark.parametrize(
    ("form", "unit"),
    [("linear", "USD per child"), ("exponential", "USD per child per epsilon"), ("linear", "USD per child per rho")],
)
def test_a_cost_in_the_unit_of_another_form(form: str, unit: str) -> None:
    with pytest.raises(IncompatibleUnits, match=form):
        information_utility(form, Calibrated(1, unit, "x"), units=CHILD)


@pytest.mark.parametrize(
    ("form", "currency", "prior", "words"),
    [
        ("cubic", Currency.EPSILON, None, "not known"),
        ("bounded", Currency.RHO, None, "in rho"),
        ("posterior", Currency.EPSILON, None, "without a prior"),
        ("bounded", Currency.EPSILON, 0.1, "with a prior"),
    ],
)
def test_forms_that_cannot_be_meant(form: str, currency: Currency, prior: float | None, words: str) -> None:
    cost = Calibrated(1, "USD per child", "x")
    with pytest.raises(InvalidPreferences, match=words):
        information_utility(form, cost, units=CHILD, currency=currency, prior=prior)


def test_value_of_squared_errors() -> None:
    priced = table_value("t", units=CHILD, consequence=CONSEQUENCE, price=PRICE)
    assert (priced.value, priced.consequence, priced.price, priced.unit) == (1e7, 2e7, 0.5, "child")
    direct = table_value("t", units=CHILD, value_of_accuracy=Calibrated(7, "USD per child^2", "x"))
    assert (direct.value, direct.consequence, direct.price) == (7, None, None)


def test_value_of_absolute_errors() -> None:
    consequence = Calibrated(4472.136, "USD per child", "x")
    plain = table_value("t", units=CHILD, loss="absolute", consequence=consequence)
    assert (plain.value, plain.measure, plain.consequence) == (4472.136, "absolute", 4472.136)
    harm = Calibrated(2, "USD per USD", "two dollars of harm a dollar")
    assert table_value("t", units=CHILD, loss="absolute", consequence=consequence, price=harm).value == 2 * 4472.136
    # A price of squared dollars, stated for other tables, does not concern it.
    assert table_value("t", units=CHILD, loss="absolute", consequence=consequence, price=PRICE) == plain
    direct = Calibrated(3, "USD per child", "x")
    assert table_value("t", units=CHILD, loss="absolute", value_of_accuracy=direct).value == 3


def test_tables_that_count_dollars() -> None:
    value = Calibrated(1e-6, "USD per USD^2", "x")
    assert table_value("payroll", units=CHILD, unit="USD", value_of_accuracy=value).value == 1e-6
    consequence = Calibrated(4, "USD^2 per USD^2", "x")
    assert table_value("payroll", units=CHILD, unit="USD", consequence=consequence, price=PRICE).value == 2
    hours = Units("worker", others=("hour",))
    per_hour = Calibrated(5, "USD per hour^2", "x")
    assert table_value("hours worked", units=hours, unit="hour", value_of_accuracy=per_hour).unit == "hour"


def test_squared_dollars_without_a_price() -> None:
    with pytest.raises(IncompatibleUnits) as refusal:
        table_value("t", units=CHILD, consequence=CONSEQUENCE)
    assert refusal.value.why == "squared dollars cannot be added to dollars; state price_of_squared_misallocation"


@pytest.mark.parametrize(
    ("value", "consequence", "words"),
    [
        (Calibrated(1, "USD^2 per child^2", "x"), None, "squared dollars cannot be added to dollars"),
        (Calibrated(1, "USD per child", "x"), None, "cannot be added"),
        (None, Calibrated(1, "USD per child^2", "x"), "value_of_accuracy"),
        (None, Calibrated(1, "USD per child", "x"), "cannot be added"),
    ],
)
def test_values_in_the_wrong_unit(value: Calibrated | None, consequence: Calibrated | None, words: str) -> None:
    with pytest.raises(IncompatibleUnits) as refusal:
        table_value("t", units=CHILD, value_of_accuracy=value, consequence=consequence, price=PRICE)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "consequence", "words"),
    [(None, None, "no value"), (Calibrated(1, "USD per child^2", "x"), CONSEQUENCE, "two values")],
)
def test_exactly_one_value(value: Calibrated | None, consequence: Calibrated | None, words: str) -> None:
    with pytest.raises(MissingKey, match=words):
        table_value("t", units=CHILD, value_of_accuracy=value, consequence=consequence, price=PRICE)


def test_two_ways_to_say_the_weight() -> None:
    assert relative_weight() == 1
    assert relative_weight(relative_privacy_weight=0.15) == 0.15
    assert relative_weight(privacy_weight=0.5) == 1
    assert relative_weight(privacy_weight=0.15 / 1.15) == pytest.approx(0.15, rel=1e-15)
    assert relative_weight(privacy_weight=0) == 0
    with pytest.raises(InvalidPreferences, match="both stated"):
        relative_weight(1.0, 0.5)


@pytest.mark.parametrize("share", [1.0, -0.1, math.nan, 2.0])
def test_shares_that_are_none(share: float) -> None:
    with pytest.raises(InvalidPreferences, match="privacy_weight"):
        relative_weight(privacy_weight=share)


@pytest.mark.parametrize("weight", [-1.0, math.inf, math.nan])
def test_weights_that_are_none(weight: float) -> None:
    with pytest.raises(InvalidPreferences, match="relative_privacy_weight"):
        relative_weight(weight)
