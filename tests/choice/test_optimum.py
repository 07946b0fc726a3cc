"""The choice against the tables of the research note, closed forms, and searches of another kind."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from dualmandate.choice import (
    BoundedCost,
    ExponentialCost,
    InformationUtility,
    Limits,
    LinearCost,
    PopulationGroup,
    PosteriorCost,
    RootMeanSquaredLoss,
    SocialWelfare,
    TableValue,
    choose,
    groups_by_share,
    optimum,
    regret,
    regret_curve,
)
from dualmandate.choice.optimum import local_optima
from dualmandate.errors import IncompatibleUnits, InvalidLoss, InvalidPreferences, NoOptimum
from dualmandate.frontier import TailMisses, frontier_of
from dualmandate.frontier.frontier import Frontier
from dualmandate.mechanism import GEOMETRIC, MatrixRows, Measurement, geometric, laplace, staircase
from dualmandate.population import PrivacyMeasure
from dualmandate.workload import Table, Total, Workload, identity

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

MULTIPLES = (0.25, 0.5, 0.8, 0.9, 1.1, 1.25, 2, 4)


def exact_optimum(title_i: TitleI, slope: str, *, near: float, weight: float = 1.0) -> float:
    """Root of marginal cost = marginal gain for Title I in thirty digits, by Newton's method."""
    kind = {"laplace": lambda x: 4 / x**3, "geometric": lambda x: mpmath.cosh(x / 2) / (2 * mpmath.sinh(x / 2) ** 3)}
    cost = weight * title_i.children * title_i.cost
    with mpmath.workdps(30):
        gain = title_i.districts * title_i.squared_cost
        return float(mpmath.findroot(lambda x: gain * kind[slope](x) - cost, near))


def highest(frontier: Frontier, welfare: SocialWelfare, low: float, high: float) -> float:
    """The best loss by a plain search over welfare itself: three nested grids, no derivative."""
    for _ in range(6):
        grid = np.geomspace(low, high, 201)
        at = int(np.argmax([welfare.at(frontier, float(loss)) for loss in grid]))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 200)])
    return math.sqrt(low * high)


# Research note, section 1: Title I variants.


def test_the_paper(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare())
    assert choice.epsilon == pytest.approx(title_i.coefficient ** (1 / 3), rel=1e-13)
    assert f"{choice.epsilon:.6f}" == "2.527644"
    assert f"{choice.root_mean_squared_error:.6f}" == "0.559499"
    assert f"{choice.root_mean_squared_consequence:,.2f}" == "2,502.15"
    assert choice.marginal_rate_of_transformation == pytest.approx(3220, rel=1e-12)
    assert choice.willingness_to_accept == pytest.approx(3220, rel=1e-14)
    assert f"{choice.accuracy:.3f}" == "-4069.506"
    assert f"{choice.welfare:.6e}" == "-2.441704e+11"
    assert f"{choice.privacy_cost:.6e}" == "1.627802e+11"
    assert f"{choice.data_loss:.6e}" == "8.139012e+10"
    assert choice.privacy_cost == pytest.approx(2 * choice.data_loss, rel=1e-12)
    assert choice.bound_by == "preferences"
    assert choice.loss.exact() == "6319/2500"


@pytest.mark.parametrize(
    ("weight", "epsilon", "error_usd"),
    [(1.0, "2.527644", "2,502.15"), (0.15, "4.757207", "1,329.47"), (46 / (318.6 - 46), "4.574095", "1,382.69")],
)
def test_the_weight_of_privacy(title_i: TitleI, weight: float, epsilon: str, error_usd: str) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(weight=weight))
    assert f"{choice.epsilon:.6f}" == epsilon
    assert f"{choice.root_mean_squared_consequence:,.2f}" == error_usd
    assert choice.epsilon == pytest.approx((title_i.coefficient / weight) ** (1 / 3), rel=1e-13)


@pytest.mark.parametrize(
    ("weight", "epsilon", "error", "error_usd"),
    [(1.0, "2.444299", "0.456216", "2,040.26"), (0.15, "4.055453", "0.189442", "847.21")],
)
def test_geometric_noise(title_i: TitleI, weight: float, epsilon: str, error: str, error_usd: str) -> None:
    choice = choose(title_i.geometric(), title_i.welfare(weight=weight))
    assert f"{choice.epsilon:.6f}" == epsilon
    assert f"{choice.root_mean_squared_error:.6f}" == error
    assert f"{choice.root_mean_squared_consequence:,.2f}" == error_usd
    exact = exact_optimum(title_i, "geometric", near=choice.epsilon, weight=weight)
    assert choice.epsilon == pytest.approx(exact, rel=1e-13)


def test_replace_one_neighbors(title_i: TitleI) -> None:
    assert f"{choose(title_i.laplace(sensitivity=2), title_i.welfare()).epsilon:.6f}" == "4.012384"


@pytest.mark.parametrize(
    ("cost", "price", "epsilon"),
    [(61, 1.0, 7.183155), (1400, 1e-3, 0.252764), (1400, 5e-8, 0.00931192), (61, 5e-8, 0.0264630)],
)
def test_costs_and_prices(title_i: TitleI, cost: float, price: float, epsilon: float) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(LinearCost(cost), value=title_i.value(price=price)))
    assert choice.epsilon == pytest.approx(epsilon, rel=2e-6)
    assert choice.epsilon == pytest.approx((title_i.coefficient * price * 1400 / cost) ** (1 / 3), rel=1e-13)


def test_errors_in_dollars_at_small_prices(title_i: TitleI) -> None:
    found = [choose(title_i.laplace(), title_i.welfare(value=title_i.value(price=price))) for price in (1e-3, 5e-8)]
    assert [f"{choice.root_mean_squared_consequence:,.1f}" for choice in found] == ["25,021.5", "679,189.3"]


def test_absolute_loss(title_i: TitleI) -> None:
    per_child = math.sqrt(title_i.squared_cost)
    value = TableValue(title_i.table, per_child, measure="absolute", unit="child", consequence=per_child, price=1.0)
    choice = choose(title_i.laplace(), title_i.welfare(value=value))
    assert choice.epsilon == pytest.approx(
        math.sqrt(title_i.districts * per_child / (title_i.children * title_i.cost)), rel=1e-13
    )
    assert f"{choice.epsilon:.7f}" == "0.0300460"
    assert f"{choice.data_loss:.5e}" == "1.93496e+09"
    assert choice.privacy_cost == pytest.approx(choice.data_loss, rel=1e-12)
    assert choice.willingness_to_accept == pytest.approx(choice.marginal_rate_of_transformation, rel=1e-12)


@pytest.mark.parametrize(
    ("cost", "squared_cost", "epsilon"), [(1540, 2e7, 2.448602), (1260, 2e7, 2.617992), (1400, 2.2e7, 2.609236)]
)
def test_ten_percent(title_i: TitleI, cost: float, squared_cost: float, epsilon: float) -> None:
    welfare = title_i.welfare(LinearCost(cost), value=title_i.value(squared_cost=squared_cost))
    assert choose(title_i.laplace(), welfare).epsilon == pytest.approx(epsilon, abs=5e-7)


# Research note, section 2: forms of information utility.


def test_exponential_cost(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(ExponentialCost(1400)))
    assert f"{choice.epsilon:.6f}" == "1.521928"
    assert choice.epsilon == pytest.approx(3 * lambertw(title_i.coefficient ** (1 / 3) / 3).real, rel=1e-13)
    assert f"{choice.welfare:.6e}" == "-4.551189e+11"
    assert f"{choice.root_mean_squared_consequence:,.2f}" == "4,155.62"
    assert f"{choose(title_i.laplace(), title_i.welfare(ExponentialCost(1400), weight=0.15)).epsilon:.6f}" == "2.248368"
    assert f"{choose(title_i.geometric(), title_i.welfare(ExponentialCost(1400))).epsilon:.6f}" == "1.515679"


def test_bounded_cost_without_a_stationary_point(title_i: TitleI) -> None:
    welfare = title_i.welfare(BoundedCost(1400))
    assert not local_optima(title_i.laplace(), welfare)
    with pytest.raises(NoOptimum, match=r"rises without limit of epsilon, to −USD 64.4 billion") as refusal:
        choose(title_i.laplace(), welfare)
    assert "largest_epsilon" in refusal.value.instead
    choice = choose(title_i.laplace(), welfare, Limits(largest_epsilon=10))
    assert (choice.epsilon, choice.bound_by, choice.loss.exact()) == (10, "largest epsilon", "10")
    assert f"{choice.welfare:.6e}" == "-6.959708e+10"


def test_bounded_cost_with_two_stationary_points(title_i: TitleI) -> None:
    frontier, welfare = title_i.laplace(), title_i.welfare(BoundedCost(20_000))
    ratio = (title_i.coefficient * 1400 / 20_000) ** (1 / 3)
    peak, trough = local_optima(frontier, welfare)
    assert (peak.kind, trough.kind) == ("maximum", "minimum")
    assert peak.epsilon == pytest.approx(-3 * lambertw(-ratio / 3).real, rel=1e-12)
    assert trough.epsilon == pytest.approx(-3 * lambertw(-ratio / 3, -1).real, rel=1e-12)
    assert (f"{peak.epsilon:.6f}", f"{trough.epsilon:.6f}") == ("2.092555", "4.138129")
    assert (f"{peak.welfare:.6e}", f"{trough.welfare:.6e}") == ("-9.252526e+11", "-9.356901e+11")
    with pytest.raises(NoOptimum, match="−USD 920 billion when nothing is protected; the best epsilon inside"):
        choose(frontier, welfare)


def test_where_the_cap_takes_over(title_i: TitleI) -> None:
    frontier, welfare = title_i.laplace(), title_i.welfare(BoundedCost(20_000))
    below = choose(frontier, welfare, Limits(largest_epsilon=9))
    assert (f"{below.epsilon:.6f}", below.bound_by) == ("2.092555", "preferences")
    above = choose(frontier, welfare, Limits(largest_epsilon=10))
    assert (above.epsilon, above.bound_by, f"{above.welfare:.6e}") == (10, "largest epsilon", "-9.251582e+11")
    assert [point.kind for point in above.local_optima] == ["maximum", "minimum", "end"]
    assert choose(frontier, welfare, Limits(largest_epsilon=9.906686)).bound_by == "preferences"
    assert choose(frontier, welfare, Limits(largest_epsilon=9.906688)).bound_by == "largest epsilon"


def test_bounded_cost_that_beats_no_protection(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(BoundedCost(50_000)))
    assert (f"{choice.epsilon:.6f}", f"{choice.welfare:.6e}") == ("1.111900", "-1.964056e+12")


@pytest.mark.parametrize(("ratio", "beats"), [(8 * math.exp(-2) * 0.999, True), (8 * math.exp(-2) * 1.001, False)])
def test_the_inside_wins_up_to_two(power_frontier: type[PowerFrontier], ratio: float, beats: bool) -> None:
    frontier = power_frontier({"t": 1.0})
    welfare = SocialWelfare.uniform(1.0, BoundedCost(2 / ratio), table_values=(TableValue("t", 1.0),))
    if beats:
        assert choose(frontier, welfare).epsilon < 2
    else:
        with pytest.raises(NoOptimum):
            choose(frontier, welfare)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_two_optima_closer_than_the_grid(power_frontier: type[PowerFrontier], gap: float) -> None:
    # The pair merges at 2c/K = 27·e^−3, ε = 3.
    frontier, ratio = power_frontier({"t": 1.0}), 27 * math.exp(-3) * (1 - gap)
    welfare = SocialWelfare.uniform(1.0, BoundedCost(2 / ratio), table_values=(TableValue("t", 1.0),))
    peak, trough = local_optima(frontier, welfare)
    distance = math.sqrt(6 * gap)  # of each from 3, to first order
    assert (3 - peak.epsilon, trough.epsilon - 3) == pytest.approx((distance, distance), rel=0.1)
    over = SocialWelfare.uniform(1.0, BoundedCost(2 / ratio * (1 - 2 * gap)), table_values=(TableValue("t", 1.0),))
    assert not local_optima(frontier, over)


@pytest.mark.parametrize(
    ("prior", "harm", "epsilon", "welfare"),
    [
        (0.01, 1400, "4.095763", "-5.467736e+10"),
        (0.01, 14_000, "2.529239", "-1.472701e+11"),
        (0.001, 1400, "5.103784", "-2.901022e+10"),
    ],
)
def test_posterior_cost(title_i: TitleI, prior: float, harm: float, epsilon: str, welfare: str) -> None:
    society = title_i.welfare(PosteriorCost(harm, prior))
    choice = choose(title_i.laplace(), society)
    assert (f"{choice.epsilon:.6f}", f"{choice.welfare:.6e}") == (epsilon, welfare)
    assert choice.epsilon == pytest.approx(highest(title_i.laplace(), society, 0.1, choice.epsilon * 1.5), rel=1e-6)


def test_posterior_details(title_i: TitleI) -> None:
    society = title_i.welfare(PosteriorCost(1400, 0.01))
    choice = choose(title_i.laplace(), society)
    assert choice.welfare > -society.most_privacy_cost == pytest.approx(-6.3756e10, rel=1e-15)
    assert f"{choice.local_optima[1].epsilon:.4f}" == "7.9754"
    assert f"{choice.root_mean_squared_consequence:,.2f}" == "1,544.17"
    assert f"{PosteriorCost(1400, 0.01).belief(choice.epsilon):.6f}" == "0.377692"


@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_posterior_cost_that_needs_a_cap(title_i: TitleI, prior: float) -> None:
    society = title_i.welfare(PosteriorCost(1400, prior))
    assert not local_optima(title_i.laplace(), society)
    with pytest.raises(NoOptimum):
        choose(title_i.laplace(), society)
    assert choose(title_i.laplace(), society, Limits(largest_epsilon=5)).epsilon == 5


def test_geometric_noise_does_not_help_a_bounded_cost(title_i: TitleI) -> None:
    with pytest.raises(NoOptimum, match="rises without limit"):
        choose(title_i.geometric(), title_i.welfare(BoundedCost(1400)))
    # No sign is read where e^−ε has left the range of floats.
    assert not local_optima(title_i.geometric(), title_i.welfare(BoundedCost(1400)))
    capped = choose(title_i.geometric(), title_i.welfare(BoundedCost(1400)), Limits(largest_epsilon=900))
    assert capped.bound_by == "largest epsilon"


# Research note, section 3: the chosen total of a split.


def test_the_chosen_total(power_frontier: type[PowerFrontier]) -> None:
    # Split over c = (1, 8, 27), the combined loss is (Σ c^⅓)³/ε².
    combined = power_frontier({"t": (1 + 2 + 3) ** 3})
    choice = choose(combined, SocialWelfare.uniform(1.0, LinearCost(2), table_values=(TableValue("t", 1.0),)))
    assert choice.epsilon == pytest.approx(6, rel=1e-13)
    assert choice.welfare == pytest.approx(-18, rel=1e-13)


def test_rho(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 36.0}, power=1, privacy_measure=PrivacyMeasure.ZCDP)
    table = (TableValue("t", 1.0),)
    choice = choose(frontier, SocialWelfare.uniform(1.0, LinearCost(1, PrivacyMeasure.ZCDP), table_values=table))
    assert choice.epsilon == pytest.approx(6, rel=1e-13)
    assert choice.loss.privacy_measure is PrivacyMeasure.ZCDP
    with pytest.raises(IncompatibleUnits, match="per epsilon, the frontier is in rho"):
        choose(frontier, SocialWelfare.uniform(1.0, LinearCost(1), table_values=table))


# Research note, section 8 and the earlier working paper.


def test_existing_errors_do_not_move_squared_loss(title_i: TitleI) -> None:
    plain = choose(title_i.laplace(), title_i.welfare())
    value = TableValue(title_i.table, 2e7, unit="child", existing_squared_error=1e9)
    noisy = choose(title_i.laplace(), title_i.welfare(value=value))
    assert noisy.epsilon == plain.epsilon
    assert noisy.data_loss - plain.data_loss == pytest.approx(2e16, rel=1e-12)


@pytest.mark.parametrize(("existing", "epsilon"), [(1.0, 2.599636), (0.0, 3.760603)])
def test_existing_errors_move_typical_errors(
    power_frontier: type[PowerFrontier], existing: float, epsilon: float
) -> None:
    group = PopulationGroup("everybody", 1.0, LinearCost(0.1))
    welfare = SocialWelfare((group,), (), other_losses=(RootMeanSquaredLoss("t", 1.0, existing),))
    frontier = power_frontier({"t": 2.0})
    choice = choose(frontier, welfare)
    assert choice.epsilon == pytest.approx(epsilon, abs=5e-7)
    assert choice.epsilon == pytest.approx(highest(frontier, welfare, 0.1, 100), rel=1e-6)


@pytest.mark.parametrize(
    ("people", "domain", "queries", "privacy", "accuracy", "epsilon", "level"),
    [
        (197_040_596, 797, 318_003, 0.083, 0.040, 0.044164, 0.862031),
        (242_977_154, 800, 320_400, 0.0154, 0.076, 0.045135, 0.872220),
    ],
)
def test_the_earlier_working_paper(
    power_frontier: type[PowerFrontier],
    people: int,
    domain: int,
    queries: int,
    privacy: float,
    accuracy: float,
    epsilon: float,
    level: float,
) -> None:
    # Accuracy 1 − K·ε^−⅓ with K = 3·(10·ln k·ln χ/n)^⅓, and preferences in ratio (1 + cov)/(1 + cov).
    scale = 3 * (10 * math.log(queries) * math.log(domain) / people) ** (1 / 3)
    cost = (1 + privacy) / (1 + accuracy)
    welfare = SocialWelfare.uniform(1.0, LinearCost(cost), table_values=(TableValue("t", 1.0),))
    choice = choose(power_frontier({"t": scale}, power=1 / 3), welfare)
    assert (choice.epsilon, 1 + choice.accuracy) == pytest.approx((epsilon, level), abs=6e-7)
    assert choice.epsilon == pytest.approx((scale / 3 / cost) ** 0.75, rel=1e-13)


# Corners and shapes that the tables do not name.


@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1.0, 1e20, 1e60])
def test_the_scale_of_dollars_does_not_matter(title_i: TitleI, scale: float) -> None:
    value = TableValue(title_i.table, 2e7 * scale, unit="child")
    choice = choose(title_i.laplace(), title_i.welfare(LinearCost(1400 * scale), value=value))
    assert choice.epsilon == pytest.approx(title_i.coefficient ** (1 / 3), rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-9, 1e-5, 1e-4, 1.0, 1e3, 1e4, 1e7])
def test_optima_beyond_the_first_grid(power_frontier: type[PowerFrontier], epsilon: float) -> None:
    welfare = SocialWelfare.uniform(1.0, LinearCost(2 / epsilon**3), table_values=(TableValue("t", 1.0),))
    assert choose(power_frontier({"t": 1.0}), welfare).epsilon == pytest.approx(epsilon, rel=1e-12)


def test_privacy_that_costs_nothing(title_i: TitleI) -> None:
    for welfare in (title_i.welfare(LinearCost(0)), title_i.welfare(weight=0.0)):
        with pytest.raises(NoOptimum, match="to USD 0 when nothing is protected"):
            choose(title_i.laplace(), welfare)
        assert choose(title_i.laplace(), welfare, Limits(largest_epsilon=3)).epsilon == 3


def test_a_cost_too_small_to_matter(power_frontier: type[PowerFrontier]) -> None:
    welfare = SocialWelfare.uniform(1.0, LinearCost(1e-40), table_values=(TableValue("t", 1.0),))
    with pytest.raises(NoOptimum, match="still rises"):
        choose(power_frontier({"t": 1.0}), welfare)


def test_tables_that_are_worth_nothing(title_i: TitleI) -> None:
    with pytest.raises(NoOptimum, match="falls to 0"):
        choose(title_i.laplace(), title_i.welfare(value=TableValue(title_i.table, 0.0)))
    with pytest.raises(NoOptimum, match="falls to 0"):
        choose(title_i.laplace(), title_i.welfare(value=TableValue(title_i.table, 0.0)), Limits(largest_epsilon=2))


def test_values_for_every_table(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 1.0, "b": 1.0})
    for tables, words in ((("a",), "'b' is not valued"), (("a", "b", "c"), "'c' is valued but not produced")):
        values = tuple(TableValue(table, 1.0) for table in tables)
        with pytest.raises(InvalidPreferences, match=words):
            choose(frontier, SocialWelfare.uniform(1.0, LinearCost(1), table_values=values))


def test_several_tables_in_balance(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"a": 3.0, "b": 5.0, "c": 7.0})
    values = (TableValue("a", 2.0), TableValue("b", 0.5), TableValue("c", 0.1, measure="absolute"))
    choice = choose(frontier, SocialWelfare.uniform(10.0, LinearCost(1), table_values=values))
    assert choice.willingness_to_accept == pytest.approx(choice.marginal_rate_of_transformation, rel=1e-12)
    assert choice.marginal_privacy_cost == pytest.approx(-choice.marginal_data_loss, rel=1e-12)


def test_groups_that_are_alike_are_one(title_i: TitleI) -> None:
    shares = {"parents": (0.25, LinearCost(1400), 1.0), "others": (0.75, LinearCost(1400), 1.0)}
    groups = groups_by_share(title_i.children, shares)
    welfare = SocialWelfare(groups, (title_i.value(),), protected_unit="child")
    assert choose(title_i.laplace(), welfare).epsilon == pytest.approx(title_i.coefficient ** (1 / 3), rel=1e-13)


def test_linear_groups_count_by_their_mean(title_i: TitleI) -> None:
    costs = {"few": (0.1, LinearCost(5000), 2.0), "many": (0.9, LinearCost(1000), 1.0)}
    welfare = SocialWelfare(groups_by_share(title_i.children, costs), (title_i.value(),))
    mean = 0.1 * 2 * 5000 + 0.9 * 1000
    expected = (title_i.coefficient * 1400 / mean) ** (1 / 3)
    assert choose(title_i.laplace(), welfare).epsilon == pytest.approx(expected, rel=1e-13)


@settings(deadline=None, max_examples=40)
@given(
    forms=st.lists(
        st.tuples(st.sampled_from(["linear", "exponential", "bounded", "posterior"]), st.floats(0.01, 100)),
        min_size=1,
        max_size=3,
    ),
    coefficient=st.floats(1e-3, 1e3),
    cap=st.floats(0.5, 30),
)
def test_nothing_within_the_cap_is_better(
    forms: list[tuple[str, float]], coefficient: float, cap: float, power_frontier: type[PowerFrontier]
) -> None:
    made = {"linear": LinearCost, "exponential": ExponentialCost, "bounded": BoundedCost}
    utilities: list[InformationUtility] = [
        PosteriorCost(cost, 0.05) if form == "posterior" else made[form](cost) for form, cost in forms
    ]
    groups = tuple(PopulationGroup(str(i), 1.0, utility) for i, utility in enumerate(utilities))
    frontier, welfare = power_frontier({"t": coefficient}), SocialWelfare(groups, (TableValue("t", 1.0),))
    choice = choose(frontier, welfare, Limits(largest_epsilon=cap))
    best = max(welfare.at(frontier, float(loss)) for loss in np.geomspace(cap * 1e-3, cap, 300))
    assert choice.welfare >= best - 1e-12 * abs(best)
    assert choice.epsilon <= cap


def test_inverse_squares_and_linear_costs(title_i: TitleI) -> None:
    # Research note, section 4.
    rows = regret_curve(title_i.laplace(), title_i.welfare(), MULTIPLES)
    expected = (4.5, 0.666667, 0.054167, 0.011523, 0.008815, 0.046667, 0.416667, 1.6875)
    assert [row.relative for row in rows] == pytest.approx(expected, abs=5e-7)
    assert [row.multiple for row in rows] == pytest.approx(MULTIPLES, rel=1e-14)
    for row in rows:
        assert row.relative == pytest.approx((2 * row.multiple + row.multiple**-2) / 3 - 1, rel=1e-12)
        assert row.absolute == pytest.approx(row.relative * 2.441703638672354e11, rel=1e-12)


def test_geometric_noise_has_its_own_curve(title_i: TitleI) -> None:
    half, double = regret_curve(title_i.geometric(), title_i.welfare(), (0.5, 2))
    assert (half.relative, double.relative) == pytest.approx((0.827507, 0.507143), abs=5e-7)


@settings(deadline=None, max_examples=30)
@given(multiple=st.floats(0.1, 10), cost=st.floats(1e-3, 1e3), coefficient=st.floats(1e-3, 1e3))
def test_rho_regret(multiple: float, cost: float, coefficient: float, power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": coefficient}, power=1, privacy_measure=PrivacyMeasure.ZCDP)
    welfare = SocialWelfare.uniform(1.0, LinearCost(cost, PrivacyMeasure.ZCDP), table_values=(TableValue("t", 1.0),))
    (row,) = regret_curve(frontier, welfare, (multiple,))
    assert row.relative == pytest.approx((multiple + 1 / multiple) / 2 - 1, abs=1e-12)


def test_against_a_limit(title_i: TitleI) -> None:
    limits = Limits(largest_epsilon=2)
    row = regret(title_i.laplace(), title_i.welfare(), 1.0, limits=limits)
    assert row.best_epsilon == 2
    # 6.44e10·(1 − 2) + 5.2e11·(1 − 1/4)
    assert row.absolute == pytest.approx(3.256e11)
    # Standing beyond the limit would be better than standing at it: the regret is negative.
    assert regret(title_i.laplace(), title_i.welfare(), 2.5, limits=limits).absolute < 0


def test_two_peaks(title_i: TitleI) -> None:
    limits, welfare = Limits(largest_epsilon=10), title_i.welfare(BoundedCost(20_000))
    best = choose(title_i.laplace(), welfare, limits)
    other = regret(title_i.laplace(), welfare, best.local_optima[0].epsilon, best=best)
    assert other.absolute == pytest.approx(9.252525675312146e11 - 9.251582320646185e11, rel=1e-6)


def test_words(title_i: TitleI) -> None:
    far = regret(title_i.laplace(), title_i.welfare(), 0.1)
    assert str(far) == "0.1 costs society USD 51.76 trillion more than it must (213.0 times as much)"
    near = regret(title_i.laplace(), title_i.welfare(), 2.0)
    assert str(near) == "2 costs society USD 14.63 billion more than it must (5.99 % more)"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_losses_that_cannot_be(title_i: TitleI, epsilon: float) -> None:
    with pytest.raises(InvalidLoss):
        regret(title_i.laplace(), title_i.welfare(), epsilon)


def test_where_errors_and_costs_are_convex_no_grid_is_searched(
    title_i: TitleI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends decide: the same choice as on the grid, which a cost that is not convex still needs."""
    counts = identity(40)
    value = TableValue(counts.tables[0].name, 1e12, unit="child")
    costs: tuple[InformationUtility, ...] = (LinearCost(title_i.cost), ExponentialCost(title_i.cost))
    for mechanism, cost in itertools.product((laplace(), geometric(), staircase()), costs):
        frontier, welfare = frontier_of(mechanism, counts), title_i.welfare(cost, value=value)
        assert frontier.convex_from == 0
        assert welfare.convex
        with monkeypatch.context() as without:
            without.setattr(optimum, "_grid", None)
            found = choose(frontier, welfare)
        with monkeypatch.context() as anyway:
            anyway.setattr(Frontier, "convex_from", math.inf)
            assert choose(frontier, welfare).epsilon == pytest.approx(found.epsilon, rel=1e-12)
    assert not title_i.welfare(BoundedCost(title_i.cost)).convex


@dataclass(frozen=True)
class RoundedTails:
    """What numbers cost that are nearly all off by too much: flat, but for what rounding makes of its slope."""

    amount: float = 7099.3
    least = 0.0
    table = None
    privacy_measure = None

    def at(self, _frontier: Frontier, _loss: float, /) -> float:
        return self.amount

    def slope(self, _frontier: Frontier, loss: float, /) -> float:
        return -1e9 if loss < 4.7e-25 else -1.0

    def scaled(self, factor: float) -> RoundedTails:
        return replace(self, amount=factor * self.amount)


def test_an_optimum_that_rounding_alone_makes_is_none(power_frontier: type[PowerFrontier]) -> None:
    """Two tables with tail loss, measured apart, which no release serves: the plan chose epsilon = 4.7e-25."""
    people = (PopulationGroup("all", 1e7, LinearCost(17.23)),)
    welfare = SocialWelfare(people, (), other_losses=(RoundedTails(),))
    with pytest.raises(NoOptimum, match="no epsilon is worth its cost"):
        choose(power_frontier({"t": 1.0}), welfare)


def test_misses_of_summed_noise_are_not_convex_so_a_grid_is_searched(title_i: TitleI) -> None:
    """Two geometric noises miss 0 with 1 − T(1 + T²)/2, T = tanh(ε/2), which bends down below T = 1/√3."""
    total = Workload(identity(2).domain, (Table("sum", (Total(2),)),))
    measured, misses = Measurement(MatrixRows.every_cell(total), GEOMETRIC), TailMisses("sum", 0.5)
    curve = misses.curve(measured)
    for epsilon in (0.2, 0.5, 1.0, 3.0):
        slope = math.tanh(epsilon / 2)
        assert curve(epsilon) == pytest.approx(1 - slope * (1 + slope**2) / 2, rel=1e-9)
    assert curve(0.2) + curve(0.8) < 2 * curve(0.5)
    value = TableValue("sum", 1.0, unit="child", measure=misses)
    assert not title_i.welfare(LinearCost(title_i.cost), value=value).convex
