"""Welfare: dollars on both sides, groups that differ, tables that differ, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    LinearCost,
    PopulationGroup,
    PosteriorCost,
    RootMeanSquaredLoss,
    SocialWelfare,
    TableValue,
    groups_by_share,
    information_utility,
    population_size,
    relative_weight,
    table_value,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidValue, MissingKey
from dualmandate.population import Calibrated, PrivacyMeasure, Units

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

CHILD = Units("child")
CONSEQUENCE = Calibrated(2.0e7, "USD^2 per child^2", "CCD 2014-15")
PRICE = Calibrated(0.5, "USD per USD^2", "assumed")


def test_a_hand_sized_case(power_frontier: type[PowerFrontier]) -> None:
    # Two tables at ε = 2: errors 8/4 = 2 and 4/4 = 1; 3 people pay 5·2 each, 1 pays (e² − 1) at weight 2.
    frontier = power_frontier({"a": 8.0, "b": 4.0})
    groups = (PopulationGroup("x", 3, LinearCost(5)), PopulationGroup("y", 1, ExponentialCost(1), 2.0))
    welfare = SocialWelfare(groups, (TableValue("a", 10.0), TableValue("b", 7.0)))
    assert welfare.population_size == 4
    assert welfare.privacy_cost(2.0) == pytest.approx(30 + 2 * (math.e**2 - 1))
    assert welfare.marginal_privacy_cost(2.0) == pytest.approx(15 + 2 * math.e**2)
    assert welfare.mean_disclosure_cost(2.0) == pytest.approx((15 + math.e**2) / 4)
    assert welfare.table_data_losses(frontier, 2.0) == pytest.approx({"a": 20.0, "b": 7.0})
    assert welfare.data_loss(frontier, 2.0) == pytest.approx(27)
    assert welfare.marginal_data_loss(frontier, 2.0) == pytest.approx(-27)  # −2·loss/ε
    assert welfare.value_of_accuracy(frontier, 2.0) == pytest.approx(27 / 3)
    assert welfare.willingness_to_accept(frontier, 2.0) == pytest.approx((15 + 2 * math.e**2) / 9)
    assert welfare.at(frontier, 2.0) == pytest.approx(-30 - 2 * (math.e**2 - 1) - 27)


def test_the_paper_has_one_value_of_accuracy(title_i: TitleI) -> None:
    welfare = title_i.welfare(weight=0.15)
    for loss in (0.1, 2.5, 30.0):
        assert welfare.value_of_accuracy(title_i.laplace(), loss) == pytest.approx(2e7, rel=1e-14)
        assert welfare.willingness_to_accept(title_i.laplace(), loss) == pytest.approx(0.15 * 3220, rel=1e-14)


@settings(deadline=None, max_examples=40)
@given(loss=st.floats(0.01, 40), weight=st.floats(0, 10), value=st.floats(0.1, 1e6))
def test_slopes_are_derivatives(loss: float, weight: float, value: float, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 8.0, "b": 4.0, "c": 2.0})
    groups = (
        PopulationGroup("w", 3, LinearCost(5), weight),
        PopulationGroup("x", 1, BoundedCost(9), weight),
        PopulationGroup("y", 2, PosteriorCost(9, 0.1)),
    )
    values = (TableValue("a", value), TableValue("b", value, measure="absolute", grid=3.0))
    welfare = SocialWelfare(groups, values, other_losses=(RootMeanSquaredLoss("c", 2.0, 1.0),))
    step = 1e-5 * loss
    numeric = (welfare.at(frontier, loss + step) - welfare.at(frontier, loss - step)) / (2 * step)
    scale = welfare.marginal_privacy_cost(loss) - welfare.marginal_data_loss(frontier, loss)
    assert welfare.slope(frontier, loss) == pytest.approx(numeric, abs=1e-6 * scale)
    logarithm = welfare.log_marginal_privacy_cost(loss)
    assert logarithm == pytest.approx(math.log(welfare.marginal_privacy_cost(loss)), rel=1e-12, abs=1e-12)


def test_costs_beyond_floats(title_i: TitleI) -> None:
    welfare = title_i.welfare(ExponentialCost(1400))
    assert welfare.privacy_cost(1e3) == math.inf
    assert welfare.at(title_i.laplace(), 1e3) == -math.inf
    assert welfare.log_marginal_privacy_cost(1e3) == pytest.approx(1000 + math.log(6.44e10))
    unweighted = title_i.welfare(ExponentialCost(1400), weight=0.0)
    assert unweighted.privacy_cost(1e3) == unweighted.most_privacy_cost == 0
    assert unweighted.log_marginal_privacy_cost(1.0) == -math.inf


def test_sums_on_a_grid(power_frontier: type[PowerFrontier]) -> None:
    # Answers in steps of 1,000 USD: an error of one step is 1,000 USD.
    frontier = power_frontier({"payroll": 2.0})
    value = TableValue("payroll", 1e-6, unit="USD", grid=1000.0)
    assert value.value_per_step == pytest.approx(1.0)
    welfare = SocialWelfare.uniform(1, LinearCost(1), table_values=(value,))
    assert welfare.data_loss(frontier, 1.0) == pytest.approx(2.0)
    absolute = TableValue("payroll", 0.5, measure="absolute", unit="USD", grid=1000.0)
    assert absolute.value_per_step == 500
    assert replace(welfare, table_values=(absolute,)).data_loss(frontier, 1.0) == pytest.approx(500)


def test_consequences_and_prices() -> None:
    value = TableValue("t", 1e7, consequence=2e7, price=0.5)
    assert value.at_price(2.0).value == 4e7
    assert value.scaled(3.0) == TableValue("t", 3e7, consequence=6e7, price=0.5)
    assert value.squared_consequence(0.25) == 5e6
    assert TableValue("t", 3.0, measure="absolute", consequence=3.0).squared_consequence(4.0) == 36
    assert TableValue("t", 1.0).squared_consequence(1.0) is None
    with pytest.raises(InvalidPreferences, match="not a consequence"):
        TableValue("t", 1.0).at_price(2.0)


def test_what_is_left_when_tables_are_exact() -> None:
    welfare = SocialWelfare(
        (PopulationGroup("g", 2, BoundedCost(10), 0.5), PopulationGroup("h", 4, PosteriorCost(10, 0.2))),
        (TableValue("a", 3.0, existing_squared_error=2.0),),
        other_losses=(RootMeanSquaredLoss("b", 5.0, 9.0),),
    )
    assert welfare.least_data_loss == 6 + 15
    assert welfare.most_privacy_cost == pytest.approx(10 + 32)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_numbers_that_cannot_be(bad: float) -> None:
    makers: list[Callable[[], object]] = [
        lambda: TableValue("t", bad),
        lambda: TableValue("t", 1.0, consequence=bad),
        lambda: TableValue("t", 1.0, price=bad),
        lambda: TableValue("t", 1.0, existing_squared_error=bad),
    ]
    for make in makers:
        with pytest.raises(InvalidPreferences, match="value"):
            make()
    with pytest.raises(InvalidPreferences, match="grid"):
        TableValue("t", 1.0, grid=bad)
    with pytest.raises(InvalidPreferences, match="members"):
        PopulationGroup("g", bad, LinearCost(1))
    with pytest.raises(InvalidPreferences, match="relative_privacy_weight"):
        PopulationGroup("g", 1, LinearCost(1), bad)
    with pytest.raises(InvalidPreferences, match="typical errors"):
        RootMeanSquaredLoss("t", bad)


def test_existing_absolute_errors_are_refused() -> None:
    with pytest.raises(InvalidPreferences, match="absolute"):
        TableValue("t", 1.0, measure="absolute", existing_squared_error=1.0)


def test_what_is_stated_twice_or_not_at_all() -> None:
    group, table = PopulationGroup("g", 1, LinearCost(1)), TableValue("t", 1.0)
    with pytest.raises(InvalidPreferences, match="group 'g' is stated twice"):
        SocialWelfare((group, group), (table,))
    with pytest.raises(InvalidPreferences, match="table 't' is stated twice"):
        SocialWelfare((group,), (table, table))
    for groups, tables in (((), (table,)), ((group,), ())):
        with pytest.raises(InvalidPreferences, match="missing"):
            SocialWelfare(groups, tables)


def test_shares_add_up() -> None:
    costs = {"a": (0.3, LinearCost(1), 1.0), "b": (0.7, LinearCost(2), 0.5)}
    assert [group.size for group in groups_by_share(1000, costs)] == pytest.approx([300, 700])
    with pytest.raises(InvalidPreferences, match=r"add up to 0\.9"):
        groups_by_share(1000, {"a": (0.3, LinearCost(1), 1.0), "b": (0.6, LinearCost(2), 1.0)})


def test_one_currency() -> None:
    groups = (PopulationGroup("a", 1, LinearCost(1)), PopulationGroup("b", 1, LinearCost(1, PrivacyMeasure.ZCDP)))
    with pytest.raises(IncompatibleUnits, match="some in rho"):
        SocialWelfare(groups, (TableValue("t", 1.0),))


def test_a_number_with_its_origin() -> None:
    cost = Calibrated(1400, "USD per child per epsilon", "DOJ 2015", "lifetime")
    assert str(cost) == "1,400 USD per child per epsilon (DOJ 2015, lifetime)"
    assert cost.to("dollars per children per epsilon", CHILD).value == 1400
    with pytest.raises(IncompatibleUnits):
        cost.to("USD per child", CHILD)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -math.inf])
def test_values_that_cannot_be_meant(value: float) -> None:
    with pytest.raises(InvalidValue, match=r"is negative|is no finite number"):
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
    assert information_utility("linear", per_rho, units=CHILD, privacy_measure=PrivacyMeasure.ZCDP) == LinearCost(
        3, PrivacyMeasure.ZCDP
    )


@pytest.mark.parametrize(
    ("form", "unit"),
    [("linear", "USD per child"), ("exponential", "USD per child per epsilon"), ("linear", "USD per child per rho")],
)
def test_a_cost_in_the_unit_of_another_form(form: str, unit: str) -> None:
    with pytest.raises(IncompatibleUnits, match=form):
        information_utility(form, Calibrated(1, unit, "x"), units=CHILD)


@pytest.mark.parametrize(
    ("form", "privacy_measure", "prior", "words"),
    [
        ("cubic", PrivacyMeasure.PURE_DP, None, "not known"),
        ("bounded", PrivacyMeasure.ZCDP, None, "in rho"),
        ("posterior", PrivacyMeasure.PURE_DP, None, "without a prior"),
        ("bounded", PrivacyMeasure.PURE_DP, 0.1, "with a prior"),
    ],
)
def test_forms_that_cannot_be_meant(
    form: str, privacy_measure: PrivacyMeasure, prior: float | None, words: str
) -> None:
    cost = Calibrated(1, "USD per child", "x")
    with pytest.raises(InvalidPreferences, match=words):
        information_utility(form, cost, units=CHILD, privacy_measure=privacy_measure, prior=prior)


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
    assert refusal.value.why == "squared USD cannot be added to USD; state price_of_squared_misallocation"


@pytest.mark.parametrize(
    ("value", "consequence", "words"),
    [
        (Calibrated(1, "USD^2 per child^2", "x"), None, "squared USD cannot be added to USD"),
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
