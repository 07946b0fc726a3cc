"""Caps, floors and what the ledger has left: each alone, together, and in conflict."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from dualmandate.choice import (
    ExponentialCost,
    Limits,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    choose,
)
from dualmandate.errors import ConflictingLimits, InvalidPreferences, InvalidValue, NoOptimum
from dualmandate.frontier import frontier_of
from dualmandate.mechanism import geometric, laplace
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import identity, stack

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

LARGEST_CHILD_ERROR = 2000 / math.sqrt(2e7)  # USD 2,000 in children


def test_a_cap_that_does_not_bind(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=10))
    assert (choice.bound_by, f"{choice.epsilon:.6f}") == ("preferences", "2.527644")


def test_a_cap_that_binds(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=2))
    assert (choice.bound_by, choice.epsilon, choice.loss.exact()) == ("largest epsilon", 2, "2")
    assert -choice.marginal_data_loss > choice.marginal_privacy_cost


@pytest.mark.parametrize("cap", [0.1, 0.3, 0.7, 1.1, 2.3])
def test_a_binding_cap_is_kept_to_the_digit(title_i: TitleI, cap: float) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=cap))
    assert choice.loss.amount == Fraction(str(cap))


def test_what_the_ledger_has_left(title_i: TitleI) -> None:
    left = Fraction(1234567, 1000000)
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=2, remaining=left))
    assert (choice.bound_by, choice.loss.amount) == ("ledger", left)
    other = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=1, remaining=left))
    assert other.bound_by == "largest epsilon"
    ample = choose(title_i.laplace(), title_i.welfare(), Limits(remaining=100))
    assert ample.bound_by == "preferences"


@pytest.mark.parametrize("dollars", [True, False])
def test_a_floor_that_binds(title_i: TitleI, dollars: bool) -> None:
    limits = (
        Limits(consequence_floors={title_i.table: 2000})
        if dollars
        else Limits(floors={title_i.table: LARGEST_CHILD_ERROR})
    )
    choice = choose(title_i.laplace(), title_i.welfare(), limits)
    assert f"{choice.epsilon:.6f}" == "3.162278"
    assert choice.epsilon == pytest.approx(math.sqrt(10), rel=1e-12)
    assert choice.bound_by == "fitness for use"
    assert choice.marginal_privacy_cost > -choice.marginal_data_loss
    # Rounded up: rounded down, the table would not be fit for use.
    assert choice.loss.exact() == "31623/10000"


def test_a_floor_that_does_not_bind(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(consequence_floors={title_i.table: 5000}))
    assert (choice.bound_by, f"{choice.epsilon:.6f}") == ("preferences", "2.527644")
    assert [point.bound_by for point in choice.local_optima] == ["fitness for use", "preferences"]


def test_an_optimum_a_hair_above_the_floor(title_i: TitleI) -> None:
    best = choose(title_i.laplace(), title_i.welfare())
    assert best.root_mean_squared_error is not None
    floor = best.root_mean_squared_error * (1 + 1e-6)
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(floors={title_i.table: floor}))
    assert choice.bound_by == "preferences"
    assert math.sqrt(2) / float(choice.loss) <= floor
    assert choice.loss.exact() == "25277/10000"


def test_a_floor_and_a_cap_that_meet(title_i: TitleI) -> None:
    cap = math.sqrt(10)
    limits = Limits(largest_epsilon=cap, consequence_floors={title_i.table: 2000})
    choice = choose(title_i.laplace(), title_i.welfare(), limits)
    assert choice.epsilon == pytest.approx(cap, rel=1e-12)
    assert choice.loss.amount <= Fraction(repr(cap))


def test_a_floor_just_under_a_cap_rounds_no_further_than_the_cap(title_i: TitleI) -> None:
    limits = Limits(largest_epsilon=3.16228, consequence_floors={title_i.table: 2000})
    choice = choose(title_i.laplace(), title_i.welfare(), limits)
    assert choice.bound_by == "fitness for use"
    assert choice.loss.amount == Fraction("3.16228")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(largest_epsilon=2), "largest_epsilon is 2"),
        (Limits(remaining=2), "the ledger has left 2"),
    ],
)
def test_limits_in_conflict(title_i: TitleI, limits: Limits, words: str) -> None:
    with pytest.raises(ConflictingLimits) as refusal:
        choose(title_i.laplace(), title_i.welfare(), replace(limits, consequence_floors={title_i.table: 2000}))
    assert "at least 3.16228" in refusal.value.what
    assert words in refusal.value.what
    assert title_i.table in refusal.value.why


def test_the_strictest_table_decides(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 4.0, "b": 9.0}, counts={"a": 1, "b": 9})
    values = (TableValue("a", 1.0), TableValue("b", 1.0, unit="USD", grid=100.0))
    welfare = SocialWelfare.uniform(1.0, LinearCost(1e9), table_values=values)
    # RMSE 2/ε persons and 100/ε USD.
    assert choose(frontier, welfare, Limits(floors={"a": 0.5, "b": 50.0})).epsilon == pytest.approx(4)
    assert choose(frontier, welfare, Limits(floors={"a": 0.5, "b": 10.0})).epsilon == pytest.approx(10)


def test_floors_far_from_one(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    welfare = SocialWelfare.uniform(1.0, LinearCost(1e30), table_values=(TableValue("t", 1.0),))
    for needed in (1e-8, 1e6):
        choice = choose(frontier, welfare, Limits(floors={"t": 1 / needed}))
        assert choice.epsilon == pytest.approx(needed, rel=1e-12)
    # Errors that no loss exceeds are no floor.
    assert choose(frontier, welfare, Limits(floors={"t": 1e40})).bound_by == "preferences"


def test_a_floor_that_no_loss_reaches(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 1.0})
    welfare = SocialWelfare.uniform(1.0, LinearCost(1.0), table_values=(TableValue("t", 1.0),))
    with pytest.raises(ConflictingLimits, match="no privacy loss makes table 't' fit"):
        choose(frontier, welfare, Limits(floors={"t": 1e-20}))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_limits_that_cannot_be(bad: float) -> None:
    makers: list[Callable[[], object]] = [
        lambda: Limits(largest_epsilon=bad),
        lambda: Limits(largest_rho=bad),
        lambda: Limits(floors={"t": bad}),
        lambda: Limits(consequence_floors={"t": bad}),
    ]
    for make in makers:
        with pytest.raises(InvalidValue, match="limit"):
            make()
    with pytest.raises(ConflictingLimits, match="left"):
        Limits(remaining=bad)


def test_floors_need_a_table_and_a_consequence(title_i: TitleI) -> None:
    with pytest.raises(InvalidPreferences, match="'other' has a fitness for use, but no value"):
        choose(title_i.laplace(), title_i.welfare(), Limits(floors={"other": 1.0}))
    plain = title_i.welfare(value=TableValue(title_i.table, 1.0))
    with pytest.raises(InvalidPreferences, match="no consequence"):
        choose(title_i.laplace(), plain, Limits(consequence_floors={title_i.table: 1.0}))


def test_a_cap_in_the_other_currency(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 36.0}, power=1, privacy_measure=PrivacyMeasure.ZCDP)
    welfare = SocialWelfare.uniform(1.0, LinearCost(1, PrivacyMeasure.ZCDP), table_values=(TableValue("t", 1.0),))
    choice = choose(frontier, welfare, Limits(largest_rho=2))
    assert (choice.epsilon, choice.bound_by) == (2, "largest rho")
    with pytest.raises(ConflictingLimits, match="does not count the loss in rho"):
        choose(frontier, welfare, Limits(largest_epsilon=2))


def test_a_floor_that_is_met_by_far_is_no_limit() -> None:
    """The ratio of two errors leaves the range of floats; their logarithms do not."""
    # Δ = 1.4, so that at the upper end of the search, ε = 1000, the variance 2·e^(−1000/1.4) is barely above 0.
    vanishing = frontier_of(geometric(), stack(identity(3), identity(3), weights=("1", "2/5")))
    table = vanishing.tables[0]
    values = tuple(TableValue(name, 1e3) for name in vanishing.tables)
    welfare = SocialWelfare.uniform(1e3, LinearCost(1.0), table_values=values)
    assert choose(vanishing, welfare, Limits(floors={table: 1e15})).bound_by == "preferences"


def test_a_floor_that_costs_more_than_any_number_is_refused() -> None:
    """A root mean squared error √2/ε of a thousandth takes ε = 1,414, and e^1,414 is no number."""
    frontier, group = frontier_of(laplace(), identity(1)), PopulationGroup("all", 10.0, ExponentialCost(1.0))
    table = frontier.tables[0]
    welfare = SocialWelfare((group,), (TableValue(table, 1.0),))
    with pytest.raises(NoOptimum, match="more than any number holds"):
        choose(frontier, welfare, Limits(floors={table: 1e-3}))
