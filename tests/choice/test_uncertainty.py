"""The best privacy loss as a distribution, on every kind of frontier and form of cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr

from dualmandate.choice import (
    Beliefs,
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
    Uncertain,
    UncertainChoice,
    best_survey,
    choose,
    choose_under_uncertainty,
    minimax_regret,
    signal_value,
    survey_value,
)
from dualmandate.choice.cost_grid import GridPoints
from dualmandate.choice.estimates import JointEstimates
from dualmandate.choice.uncertainty import weighted_quantile
from dualmandate.elicitation import CommonGround, Prior, fieller, pool
from dualmandate.errors import InvalidLoss, InvalidPreferences, InvalidValue, NoOptimum, TooLarge
from dualmandate.frontier import Frontier, Simulation, envelope, frontier_of, simulated, split
from dualmandate.mechanism import geometric, laplace
from dualmandate.population import Calibrated, Histogram, PrivacyMeasure, Units
from dualmandate.population.wording import number
from dualmandate.workload import Workload, identity, stack

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI

COST = "mean_disclosure_cost"


def lognormal_cost(title_i: TitleI, deviation: float = 0.5) -> Beliefs:
    return Beliefs.lognormal(title_i.welfare(), [Uncertain.lognormal(COST, math.log(1400), deviation)])


def test_two_points(title_i: TitleI) -> None:
    # Research note, section 4: k = 61 or 1,400 with equal odds.
    beliefs = Beliefs.draws(title_i.welfare(), {COST: [61, 1400]}, discrete=True)
    found = choose_under_uncertainty(title_i.laplace(), beliefs)
    assert found.epsilons == pytest.approx([7.183155, 2.527644], abs=5e-7)
    assert found.choice.epsilon == pytest.approx(3.139678, abs=5e-7)
    assert found.value_of_perfect_information == pytest.approx(2.105176e10, rel=3e-7)
    assert found.value_of_perfect_information / found.expected_cost == pytest.approx(0.133025, abs=5e-7)
    assert (found.quantile(0.4), found.quantile(0.6)) == pytest.approx((2.527644, 7.183155), abs=5e-7)
    # By hand: V(k) = 1.5·(2c)^{1/3}·(N·k)^{2/3}.
    least = [1.5 * 1.04e12 ** (1 / 3) * (46e6 * k) ** (2 / 3) for k in (61, 1400)]
    assert found.least_costs == pytest.approx(least, rel=1e-11)


def test_a_lognormal_cost(title_i: TitleI) -> None:
    # Research note, section 4; its 95 % interval [1.823250, 3.504172] takes 1.96 for 1.959964.
    found = choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i))
    assert found.choice.epsilon == pytest.approx(2.424489, abs=5e-7)
    spread = 1.959963984540054 * 0.5 / 3
    assert found.interval() == pytest.approx([2.5276435 * math.exp(-spread), 2.5276435 * math.exp(spread)], rel=2e-6)
    assert found.interval() == pytest.approx([1.823250, 3.504172], abs=3e-5)
    assert found.median == pytest.approx(2.527644, abs=1e-6)
    assert found.mean == pytest.approx(2.5276435 * math.exp(0.25 / 18), rel=1e-7)
    assert found.value_of_perfect_information == pytest.approx(7.270491e9, rel=1e-7)
    assert found.value_of_perfect_information / found.expected_cost == pytest.approx(0.02739552, abs=1e-8)
    assert found.at_limits == (0, 0)


def test_regret_is_a_distribution_whose_mean_is_what_knowing_is_worth(title_i: TitleI) -> None:
    found = choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i))
    regrets = found.regrets()
    assert np.all(regrets >= 0)
    assert found.weights @ regrets == pytest.approx(found.value_of_perfect_information, rel=1e-9)
    multiples = found.choice.epsilon / found.epsilons
    assert regrets / found.least_costs == pytest.approx((2 * multiples + multiples**-2) / 3 - 1, abs=1e-9)
    assert found.regret_quantile(0.95) > found.regret_quantile(0.5) > 0
    # Any other loss has a higher expected regret.
    for factor in (0.5, 0.9, 1.1, 2):
        assert found.weights @ found.regrets(factor * found.choice.epsilon) > found.value_of_perfect_information
    with pytest.raises(InvalidLoss):
        found.regrets(1e6)


def test_simulation_agrees(title_i: TitleI) -> None:
    generator = np.random.default_rng(20190101)
    costs = 1400 * np.exp(0.5 * generator.standard_normal(200_000))
    found = choose_under_uncertainty(title_i.laplace(), Beliefs.draws(title_i.welfare(), {COST: costs}))
    assert found.value_of_perfect_information == pytest.approx(7.270491e9, rel=0.02)
    assert found.interval() == pytest.approx([1.82326, 3.50415], rel=0.005)
    assert found.choice.epsilon == pytest.approx(2.424489, rel=0.001)


def test_a_pooled_posterior_by_its_quantiles(title_i: TitleI) -> None:
    units = Units("child")
    sources = [
        Calibrated(1400.0, "USD per child per epsilon", "a survey", standard_error=500.0),
        Calibrated(900.0, "USD per child per epsilon", "another survey", standard_error=300.0),
    ]
    prior = Prior(1000.0, 2.0, "a weak prior by decision", between=0.5)
    pooled = pool(sources, CommonGround("USD per child per epsilon", units=units), prior=prior)
    beliefs = Beliefs.strata(title_i.welfare(), COST, pooled.quantile, mean=pooled.mean)
    found = choose_under_uncertainty(title_i.laplace(), beliefs)
    assert found.choice.epsilon == pytest.approx((1.04e12 / 46e6 / pooled.mean) ** (1 / 3), rel=1e-9)
    ends = [(1.04e12 / 46e6 / pooled.quantile(p)) ** (1 / 3) for p in (0.975, 0.025)]
    assert found.interval() == pytest.approx(ends, rel=2e-3)
    # The same posterior taken as lognormal by its first two moments.
    rough = choose_under_uncertainty(
        title_i.laplace(), Beliefs.lognormal(title_i.welfare(), [Uncertain.of(COST, pooled.calibrated())])
    )
    assert rough.choice.epsilon == pytest.approx(found.choice.epsilon, rel=1e-9)


def test_two_uncertain_numbers(title_i: TitleI) -> None:
    # ε* ∝ (b/k)^{1/3} and V ∝ k^{2/3}·b^{1/3}: lognormal too.
    numbers = [Uncertain(COST, 1400, 500), Uncertain("consequence", 2e7, 1e7)]
    found = choose_under_uncertainty(title_i.laplace(), Beliefs.lognormal(title_i.welfare(), numbers))
    k, b = (number.log_deviation**2 for number in numbers)
    assert found.choice.epsilon == pytest.approx(2.5276435, rel=1e-7)  # means are as stated
    share = found.value_of_perfect_information / found.expected_cost
    assert share == pytest.approx(1 - math.exp((4 / 9 - 2 / 3) * k / 2 + (1 / 9 - 1 / 3) * b / 2), rel=5e-3)
    middle, width = 2.5276435 * math.exp((k - b) / 6), 1.959964 * math.sqrt(k + b) / 3
    assert found.interval() == pytest.approx([middle * math.exp(-width), middle * math.exp(width)], rel=2e-3)


RATIOS = {COST: ("epsilon", "price"), "consequence": ("error", "price")}
KEPT = 2.5276435  # the best loss at the stated numbers; it goes with (b/k)^{1/3}


def joint(seed: int, size: float) -> JointEstimates:
    """Errors of three estimates, by about `size` of their value, that go together as chance has it."""
    mixed = np.random.default_rng(seed).normal(0, size / math.sqrt(3), (3, 3))
    return JointEstimates(("epsilon", "error", "price"), mixed @ mixed.T + np.eye(3) * size**2 / 9)


def fieller_ends(estimates: JointEstimates, above: str, below: str) -> tuple[float, float]:
    """Ends of Fieller's set of a ratio of two estimates with mean 1, by its own formula."""
    found = fieller(np.array([1.0, -1.0]), _signed(estimates.only([above, below]).covariance), critical=1.959964)
    assert found.shape == "interval"
    return found.lower, found.upper


def _signed(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(covariance * np.array([[1, -1], [-1, 1]]))  # Fieller's ratio is −n/d


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0.05, 0.2])
def test_the_best_loss_of_a_survey_is_fiellers(title_i: TitleI, seed: int, size: float) -> None:
    estimates, welfare = joint(seed, size), title_i.welfare()
    both = choose_under_uncertainty(title_i.laplace(), Beliefs.estimated(welfare, estimates, RATIOS))
    assert both.choice.epsilon == pytest.approx(KEPT, rel=1e-7)  # the choice is the one at the stated numbers
    ends = [KEPT * end ** (1 / 3) for end in fieller_ends(estimates, "error", "epsilon")]  # the price cancels
    assert both.interval() == pytest.approx(ends, rel=0.03 * size)
    cost = choose_under_uncertainty(title_i.laplace(), Beliefs.estimated(welfare, estimates, {COST: RATIOS[COST]}))
    ends = [KEPT * end ** (1 / 3) for end in fieller_ends(estimates, "price", "epsilon")]
    assert cost.interval() == pytest.approx(ends, rel=0.03 * size)
    # Brute force: draw the estimates, divide, and choose.
    drawn = np.random.default_rng(seed).multivariate_normal(np.ones(3), estimates.covariance, 200_000)
    ratios = np.where(drawn[:, 0] > 0, drawn[:, 1] / drawn[:, 0], np.inf)
    brute = np.quantile(KEPT * ratios.clip(0) ** (1 / 3), [0.025, 0.975])
    assert both.interval() == pytest.approx(brute, rel=0.05 * size)


def test_other_numbers_beside_a_survey(title_i: TitleI) -> None:
    estimates, other = joint(1, 0.1), Uncertain("population_size", 46e6, 46e5)
    ratios = {COST: ("epsilon",), "consequence": ("error", "price")}
    beliefs = Beliefs.estimated(title_i.welfare(), estimates, ratios, [other])
    found = choose_under_uncertainty(title_i.laplace(), beliefs)
    drawn = np.random.default_rng(3).multivariate_normal(np.ones(3), estimates.covariance, 400_000)
    people = other.at(np.random.default_rng(4).standard_normal(len(drawn))) / 46e6
    brute = np.quantile(KEPT * (drawn[:, 1] / drawn[:, 2] / drawn[:, 0] / people) ** (1 / 3), [0.025, 0.975])
    assert found.interval() == pytest.approx(brute, rel=6e-3)
    assert found.choice.epsilon == pytest.approx(KEPT, rel=1e-7)
    assert found.value_of_perfect_information == pytest.approx(
        found.expected_cost * np.log(brute[1] / brute[0]) ** 2 / 3.92**2, rel=0.1
    )  # to second order (d ln ε)² of what society loses


def test_a_cost_that_may_be_nothing_has_no_upper_bound(title_i: TitleI) -> None:
    estimates = JointEstimates(("epsilon", "price"), np.diag([0.7**2, 0.05**2]))
    beliefs = Beliefs.estimated(title_i.welfare(), estimates, {COST: ("epsilon", "price")})
    found = choose_under_uncertainty(title_i.laplace(), beliefs)
    low, high = found.interval()
    assert high == math.inf
    assert (
        fieller(np.array([1.0, -1.0]), _signed(estimates.only(["price", "epsilon"]).covariance), critical=1.96).shape
        == "outside an interval"
    )
    assert found.at_limits[1] == pytest.approx(ndtr(-1 / 0.7), abs=2e-3)
    assert f"would lie above {number(low)} with probability 95 %" in str(found)
    assert "It has no upper bound: with probability 7.6" in str(found)
    assert found.quantile(0.9) < math.inf
    assert found.mean == math.inf
    capped = choose_under_uncertainty(title_i.laplace(), beliefs, Limits(largest_epsilon=10.0))
    assert capped.interval() == pytest.approx((low, 10.0), rel=1e-3)
    assert "the largest that the limits allow" in str(capped)


@pytest.mark.parametrize(
    ("names", "covariance"),
    [
        ((), np.zeros((0, 0))),
        (("a", "a"), np.eye(2)),
        (("a", "b"), np.eye(3)),
        (("a", "b"), np.array([[1.0, 0.5], [0.2, 1.0]])),
        (("a", "b"), np.array([[1.0, 2.0], [2.0, 1.0]])),
        (("a",), np.array([[0.0]])),
        (("a",), np.array([[np.nan]])),
    ],
)
def test_covariances_that_cannot_be(names: tuple[str, ...], covariance: NDArray[np.float64]) -> None:
    with pytest.raises(InvalidPreferences, match="no such covariance"):
        JointEstimates(names, covariance)


def test_a_calibrated_number_is_read_as_mean_and_standard_error(title_i: TitleI) -> None:
    stated = Calibrated(1400.0, "USD per child per epsilon", "a survey", standard_error=700.0)
    number = Uncertain.of(COST, stated)
    values = number.at(np.random.default_rng(5).standard_normal(400_000))
    assert (values.mean(), values.std()) == pytest.approx((1400, 700), rel=0.02)
    assert choose_under_uncertainty(
        title_i.laplace(), Beliefs.lognormal(title_i.welfare(), [number])
    ).choice.epsilon == pytest.approx(2.527644, abs=5e-7)
    with pytest.raises(InvalidValue, match="no standard_error"):
        Uncertain.of(COST, replace(stated, standard_error=None))
    with pytest.raises(InvalidValue):
        Uncertain(COST, 0.0, 1.0)


@pytest.mark.parametrize(
    ("utility", "cap"),
    [
        (LinearCost(1400.0), None),
        (ExponentialCost(1400.0), None),
        (BoundedCost(50_000.0), 10.0),
        (BoundedCost(20_000.0), 10.0),
        (PosteriorCost(14_000.0, 0.01), None),
    ],
    ids=["linear", "exponential", "bounded", "two peaks", "posterior"],
)
@pytest.mark.parametrize("kind", ["laplace", "geometric"])
def test_every_state_is_chosen_as_choose_would(
    title_i: TitleI, utility: InformationUtility, cap: float | None, kind: str
) -> None:
    frontier: Frontier = title_i.laplace() if kind == "laplace" else title_i.geometric()
    welfare, limits = title_i.welfare(utility), Limits(largest_epsilon=cap)
    costs = utility.parameter * np.array([0.6, 0.9, 1.0, 1.2, 2.5])
    found = choose_under_uncertainty(frontier, Beliefs.draws(welfare, {COST: costs}), limits)
    for cost, epsilon, least in zip(costs, found.epsilons, found.least_costs, strict=True):
        direct = choose(frontier, title_i.welfare(utility.scaled(cost / utility.parameter)), limits)
        assert epsilon == pytest.approx(direct.epsilon, rel=1e-7)
        assert least == pytest.approx(-direct.welfare, rel=1e-10)


def counts(names: tuple[str, ...], cells: int = 1) -> Workload:
    workload = stack(*(identity(cells) for _ in names))
    return replace(workload, tables=tuple(replace(t, name=n) for t, n in zip(workload.tables, names, strict=True)))


def house_frontiers() -> dict[str, Frontier]:
    """One frontier of each kind, for tables a and b."""
    both = counts(("a", "b"), 3)
    parts = [replace(both, tables=(table,)) for table in both.tables]

    def release(loss: float, histogram: Histogram, generator: np.random.Generator) -> NDArray[np.float64]:
        answers = np.asarray(both.answers(histogram.counts), dtype=float)
        noisy: NDArray[np.float64] = np.maximum(answers + generator.laplace(0, 2 / loss, answers.shape), 0)
        return noisy

    histogram = Histogram(both.domain, np.array([3, 40, 500]))
    simulation = Simulation((0.1, 0.3, 1.0, 3.0, 10.0), 40, seed=7)
    return {
        "envelope": envelope([frontier_of(m, both) for m in (laplace(), geometric())], values={"a": 3.0}),
        "split": split([frontier_of(geometric(), part) for part in parts], values={"a": 3.0, "b": 1.0}),
        "simulated": simulated(release, both, histogram=histogram, simulation=simulation),
        "closed form": frontier_of(geometric(), both),
    }


@pytest.mark.parametrize("kind", ["envelope", "split", "simulated", "closed form"])
def test_every_kind_of_frontier(kind: str) -> None:
    frontier = house_frontiers()[kind]
    values = (TableValue("a", 3.0), TableValue("b", 1.0, "absolute"))
    welfare = SocialWelfare.uniform(100.0, LinearCost(0.05), table_values=values)
    draws = {COST: np.array([0.02, 0.05, 0.2]), "value_of_accuracy of a": np.array([9.0, 3.0, 1.0])}
    found = choose_under_uncertainty(frontier, Beliefs.draws(welfare, draws))
    for i in range(3):
        state = SocialWelfare.uniform(
            100.0,
            LinearCost(draws[COST][i]),
            table_values=(TableValue("a", draws["value_of_accuracy of a"][i]), values[1]),
        )
        direct = choose(frontier, state)
        assert found.epsilons[i] == pytest.approx(direct.epsilon, rel=1e-6)
        assert found.least_costs[i] == pytest.approx(-direct.welfare, rel=1e-9)


def test_in_rho(power_frontier: type[PowerFrontier]) -> None:
    # c/ρ with K·ρ: ρ* = √(c/K), cost 2·√(c·K).
    frontier = power_frontier({"t": 4.0}, power=1, privacy_measure=PrivacyMeasure.ZCDP)
    welfare = SocialWelfare.uniform(1.0, LinearCost(1.0, PrivacyMeasure.ZCDP), table_values=(TableValue("t", 1.0),))
    found = choose_under_uncertainty(frontier, Beliefs.draws(welfare, {COST: [1.0, 16.0]}, discrete=True))
    assert found.epsilons == pytest.approx([2, 0.5], rel=1e-9)
    assert found.value_of_perfect_information == pytest.approx(2 * math.sqrt(4 * 8.5) - (4 + 16) / 2, rel=1e-9)


def test_limits_hold_in_every_state(title_i: TitleI) -> None:
    limits = Limits(largest_epsilon=3.0, floors={title_i.table: 0.7})
    found = choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i), limits)
    lowest = math.sqrt(2) / 0.7
    assert found.epsilons.min() == pytest.approx(lowest, rel=1e-9)
    assert found.epsilons.max() == 3.0
    below, above = found.at_limits
    # ln ε* ~ N(ln 2.5276, (1/6)²)
    normal = [0.5 * math.erfc(-(math.log(x / 2.5276435) * 6) / math.sqrt(2)) for x in (lowest, 3.0)]
    assert (below, above) == pytest.approx((normal[0], 1 - normal[1]), abs=1e-3)
    assert "largest that the limits allow" in found.explain()
    assert "fit for use" in found.explain()


def test_one_loss_allowed(title_i: TitleI) -> None:
    cap = math.sqrt(2) / 0.7
    limits = Limits(largest_epsilon=cap, floors={title_i.table: 0.7})
    found = choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i), limits)
    assert found.epsilons == pytest.approx(np.full(len(found.epsilons), cap))
    assert found.value_of_perfect_information == pytest.approx(0, abs=1)


def test_scenarios_may_differ_in_form_and_prior(title_i: TitleI) -> None:
    forms: list[InformationUtility] = [PosteriorCost(14_000, 0.01), PosteriorCost(14_000, 0.02), LinearCost(1400)]
    scenarios = [title_i.welfare(form) for form in forms]
    found = choose_under_uncertainty(title_i.laplace(), Beliefs.scenarios(scenarios, [1, 1, 2]))
    for scenario, epsilon in zip(scenarios, found.epsilons, strict=True):
        assert epsilon == pytest.approx(choose(title_i.laplace(), scenario).epsilon, rel=1e-6)
    grid = np.geomspace(1, 6, 20_001)
    expected = sum(
        weight * np.array([-scenario.at(title_i.laplace(), loss) for loss in grid])
        for weight, scenario in zip((0.25, 0.25, 0.5), scenarios, strict=True)
    )
    assert found.choice.epsilon == pytest.approx(grid[np.argmin(expected)], rel=2e-4)
    assert found.expected_cost == pytest.approx(float(np.min(expected)), rel=1e-8)


def test_scenarios_of_other_losses_and_sizes(power_frontier: type[PowerFrontier]) -> None:
    frontier = power_frontier({"t": 2.0})
    scenarios = [
        SocialWelfare((PopulationGroup("all", 1.0, LinearCost(0.1)),), (), (RootMeanSquaredLoss("t", 1.0, 1.0),)),
        SocialWelfare((PopulationGroup("all", 3.0, LinearCost(0.1)),), (), (RootMeanSquaredLoss("t", 2.0, 1.0),)),
    ]
    found = choose_under_uncertainty(frontier, Beliefs.scenarios(scenarios))
    for scenario, epsilon in zip(scenarios, found.epsilons, strict=True):
        assert epsilon == pytest.approx(choose(frontier, scenario).epsilon, rel=1e-6)
    assert found.epsilons[0] == pytest.approx(2.599636, abs=1e-6)  # research note, section 8


def test_groups_and_weights(power_frontier: type[PowerFrontier]) -> None:
    groups = (PopulationGroup("old", 1.0, LinearCost(1.0), 2.0), PopulationGroup("young", 3.0, LinearCost(1.0)))
    welfare = SocialWelfare(groups, (TableValue("t", 1.0),))
    draws = {f"{COST} of old": [1.0, 5.0], "relative_privacy_weight of old": [2.0, 4.0], "size of young": [3.0, 6.0]}
    found = choose_under_uncertainty(power_frontier({"t": 10.0}), Beliefs.draws(welfare, draws))
    assert found.epsilons == pytest.approx([(20 / 5) ** (1 / 3), (20 / 26) ** (1 / 3)], rel=1e-8)


@settings(deadline=None, max_examples=25)
@given(
    deviation=st.floats(0.05, 1.2),
    cost=st.floats(1e-2, 1e4),
    coefficient=st.floats(1e-2, 1e4),
    power=st.sampled_from([1, 2]),
)
def test_perfect_information_by_formula(
    deviation: float, cost: float, coefficient: float, power: int, power_frontier: type[PowerFrontier]
) -> None:
    """c/ε^p and a linear cost: V ∝ k^{p/(1+p)}, so the share is 1 − exp(−s²·p/(2·(1+p)²))."""
    frontier = power_frontier({"t": coefficient}, power=power)
    welfare = SocialWelfare.uniform(1.0, LinearCost(cost), table_values=(TableValue("t", 1.0),))
    beliefs = Beliefs.lognormal(welfare, [Uncertain.lognormal(COST, math.log(cost), deviation)])
    found = choose_under_uncertainty(frontier, beliefs)
    share = found.value_of_perfect_information / found.expected_cost
    assert share == pytest.approx(-math.expm1(-(deviation**2) * power / (2 * (1 + power) ** 2)), rel=1e-6)


def test_words(title_i: TitleI) -> None:
    words = str(choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i)))
    assert "Expected welfare is highest at epsilon = 2.4244." in words
    assert "between 1.823 and 3.504 with probability 95 %" in words
    assert "Not knowing costs USD 7.27 billion in expectation, 2.74 % of what society loses" in words


def test_refusals(title_i: TitleI) -> None:
    welfare, frontier = title_i.welfare(), title_i.laplace()
    with pytest.raises(InvalidPreferences, match="no number is uncertain"):
        Beliefs.lognormal(welfare, [])
    with pytest.raises(InvalidPreferences, match="is not a number that these preferences state"):
        Beliefs.draws(welfare, {"value": [1.0]})
    with pytest.raises(InvalidPreferences, match="does not multiply"):
        Beliefs.draws(title_i.welfare(PosteriorCost(1400, 0.01)), {"prior_probability": [0.1, 0.2]})
    with pytest.raises(InvalidPreferences, match="same number of finite values"):
        Beliefs.draws(welfare, {COST: [1.0, math.nan]})
    with pytest.raises(InvalidPreferences, match="weights of the states"):
        Beliefs.draws(welfare, {COST: [1.0, 2.0]}, [0.0, 0.0])
    with pytest.raises(InvalidPreferences, match="no scenario"):
        Beliefs.scenarios([])
    absolute = replace(title_i.value(), measure="absolute")
    with pytest.raises(InvalidPreferences, match="in different ways"):
        Beliefs.scenarios([welfare, title_i.welfare(value=absolute)])
    with pytest.raises(InvalidPreferences, match="the ranges"):
        Beliefs.box(welfare, {COST: (2.0, 1.0)})
    many = SocialWelfare(
        (PopulationGroup("all", 1.0, LinearCost(1.0)),), tuple(TableValue(f"t{i}", 1.0) for i in range(13))
    )
    with pytest.raises(TooLarge):
        Beliefs.box(many, {f"value_of_accuracy of t{i}": (1.0, 2.0) for i in range(13)})
    found = choose_under_uncertainty(frontier, lognormal_cost(title_i))
    for level in (0.0, 1.0):
        with pytest.raises(InvalidValue):
            found.interval(level)
    with pytest.raises(InvalidValue):
        found.quantile(1.5)


def test_states_without_an_optimum_are_refused(title_i: TitleI) -> None:
    # Bounded cost: at k = 50,000 there is a best loss; at 1,400 welfare rises for ever. Research note, section 2.
    beliefs = Beliefs.draws(title_i.welfare(BoundedCost(50_000)), {COST: [50_000, 1_400, 150_000]})
    with pytest.raises(NoOptimum, match="rises without limit"):
        choose_under_uncertainty(title_i.laplace(), beliefs)
    capped = choose_under_uncertainty(title_i.laplace(), beliefs, Limits(largest_epsilon=10))
    assert capped.epsilons[1] == 10
    free = Beliefs.draws(title_i.welfare(), {COST: [0.0, 2800.0]})
    with pytest.raises(NoOptimum):
        choose_under_uncertainty(title_i.laplace(), free)


def test_weighted_quantiles() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25])
    assert [weighted_quantile(values, weights, p, discrete=True) for p in (0, 0.5, 0.6, 0.75, 1)] == [1, 1, 2, 2, 3]
    assert weighted_quantile(values, weights, 0.625) == pytest.approx(2)
    assert weighted_quantile(values, weights, 0.4375) == pytest.approx(1.5)


def test_the_density_integrates_to_what_is_away_from_limits(title_i: TitleI) -> None:
    found = choose_under_uncertainty(title_i.laplace(), lognormal_cost(title_i), Limits(largest_epsilon=3.0))
    points = np.geomspace(0.5, 10, 2001)
    mass = np.trapezoid(found.density(points), np.log(points))
    assert mass == pytest.approx(1 - found.at_limits[1], abs=1e-3)


def test_title_i(title_i: TitleI) -> None:
    # Research note, section 4: k in [61, 1400].
    found = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)})
    assert found.epsilon == pytest.approx(3.473333, abs=5e-7)
    assert found.regret == pytest.approx(2.261557e10, rel=3e-7)
    assert [corner.regret for corner in found.corners] == pytest.approx([found.regret] * 2, rel=1e-9)
    assert all(corner.binding for corner in found.corners)
    relative = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, relative=True)
    assert (relative.epsilon, relative.regret) == pytest.approx((4.450601, 0.281363), abs=5e-7)
    assert str(float(found.loss)) == "3.4733"


@settings(deadline=None, max_examples=25)
@given(low=st.floats(0.01, 10), factor=st.floats(1.1, 1e3), coefficient=st.floats(0.01, 100))
def test_the_formula(low: float, factor: float, coefficient: float, power_frontier: type[PowerFrontier]) -> None:
    high = low * factor
    welfare = SocialWelfare.uniform(1.0, LinearCost(low), table_values=(TableValue("t", 1.0),))
    found = minimax_regret(power_frontier({"t": coefficient}), welfare, {COST: (low, high)})
    expected = 1.5 * (2 * coefficient) ** (1 / 3) * (high ** (2 / 3) - low ** (2 / 3)) / (high - low)
    assert found.epsilon == pytest.approx(expected, rel=1e-7)


def test_a_box_of_three_numbers_is_worst_at_corners(power_frontier: type[PowerFrontier]) -> None:
    """Nothing inside the box is worse than its corners: searched over a fine lattice of preferences."""
    frontier = power_frontier({"a": 1.0, "b": 5.0})
    groups = (PopulationGroup("x", 1.0, LinearCost(1.0)), PopulationGroup("y", 2.0, LinearCost(3.0)))
    values = (TableValue("a", 2.0), TableValue("b", 1.0, "absolute"))
    welfare = SocialWelfare(groups, values)
    ranges = {f"{COST} of x": (0.1, 4.0), "relative_privacy_weight of x": (0.5, 2.0), "value_of_accuracy of a": (1, 9)}
    inside = np.stack(np.meshgrid(*(np.linspace(*ends, 8) for ends in ranges.values())), axis=-1).reshape(-1, 3)
    lattice = Beliefs.draws(welfare, dict(zip(ranges, inside.T, strict=True)), discrete=True)
    for relative in (False, True):
        corners = minimax_regret(frontier, welfare, ranges, relative=relative)
        everywhere = minimax_regret(frontier, lattice, relative=relative)
        assert everywhere.epsilon == pytest.approx(corners.epsilon, rel=1e-8)
        assert everywhere.regret == pytest.approx(corners.regret, rel=1e-8)
        # And no other loss has a smaller worst regret.
        losses = np.geomspace(corners.epsilon / 3, corners.epsilon * 3, 301)
        assert corners.regrets(losses).max(axis=1).min() >= corners.regret * (1 - 1e-9)


def test_corners_by_brute_force(title_i: TitleI) -> None:
    found = minimax_regret(title_i.geometric(), title_i.welfare(), {COST: (61, 1400), "consequence": (1e7, 4e7)})
    assert len(found.corners) == 4
    for corner in found.corners:
        value = title_i.value(squared_cost=corner.values["consequence"])
        best = choose(title_i.geometric(), title_i.welfare(LinearCost(corner.values[COST]), value=value))
        assert corner.epsilon == pytest.approx(best.epsilon, rel=1e-7)
        assert corner.least_cost == pytest.approx(-best.welfare, rel=1e-9)
        at = title_i.welfare(LinearCost(corner.values[COST]), value=value).at(title_i.geometric(), found.epsilon)
        assert corner.regret == pytest.approx(best.welfare - at, rel=1e-6)


def test_limits(title_i: TitleI) -> None:
    found = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, limits=Limits(largest_epsilon=3.0))
    assert found.epsilon <= 3.0
    assert max(corner.epsilon for corner in found.corners) == 3.0
    free = {COST: (0.0, 1400.0)}
    with pytest.raises(NoOptimum):
        minimax_regret(title_i.laplace(), title_i.welfare(), free)
    assert minimax_regret(title_i.laplace(), title_i.welfare(), free, limits=Limits(largest_epsilon=9)).epsilon < 9


def test_words_and_refusals(title_i: TitleI) -> None:
    words = str(minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}))
    assert "epsilon = 3.4733 costs society at most USD 22.62 billion more" in words
    assert "from 2.528 at mean disclosure cost 1,400 to 7.183 at mean disclosure cost 61" in words
    relative = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (61, 1400)}, relative=True)
    assert "at most 28.1 % more" in relative.explain()
    narrow = minimax_regret(title_i.laplace(), title_i.welfare(), {COST: (1399, 1401)}, relative=True)
    assert "at most less than 0.01 % more" not in narrow.explain()
    assert "less than 0.01 % more" in narrow.explain()
    with pytest.raises(InvalidPreferences):
        minimax_regret(title_i.laplace(), title_i.welfare())


def test_scenarios(title_i: TitleI) -> None:
    scenarios = Beliefs.scenarios([title_i.welfare(LinearCost(61)), title_i.welfare(LinearCost(1400))])
    assert minimax_regret(title_i.laplace(), scenarios).epsilon == pytest.approx(3.473333, abs=5e-6)


@pytest.fixture(scope="module")
def known(title_i: TitleI) -> UncertainChoice:
    beliefs = Beliefs.lognormal(title_i.welfare(), [Uncertain.lognormal(COST, math.log(1400), 0.5)])
    return choose_under_uncertainty(title_i.laplace(), beliefs)


def test_the_reference_case(known: UncertainChoice) -> None:
    # Research note, section 4: 100 people, s.d. 1.5 each.
    found = survey_value(known, 100, spread=1.5)
    assert found.value == pytest.approx(6.677795e9, rel=1e-7)
    assert found.value / known.expected_cost == pytest.approx(0.02516222, abs=1e-8)
    assert found.share == pytest.approx(0.9185, abs=5e-5)
    # The share 1 − e^{−v/9}, v = s² − s_n².
    learned = 0.25 - 1 / (1 / 0.25 + 100 / 2.25)
    assert found.value == pytest.approx(known.expected_cost * -math.expm1(-learned / 9), rel=1e-9)
    words = "another survey of 100 people is worth USD 6.678 billion to this decision, 91.8 % of what knowing"
    assert str(found).startswith(words)


def test_draws_are_updated_one_answer_at_a_time(known: UncertainChoice, title_i: TitleI) -> None:
    """The same beliefs without their formula: every answer is laid out, and the weights of states are updated."""
    assert known.beliefs.values is not None
    draws = Beliefs.draws(title_i.welfare(), {COST: known.beliefs.values[:, 0]}, known.weights)
    plain = choose_under_uncertainty(title_i.laplace(), draws)
    for respondents in (1, 100, 5_000):
        conjugate = survey_value(known, respondents, spread=1.5).value
        assert survey_value(plain, respondents, spread=1.5).value == pytest.approx(conjugate, rel=1e-6)


def test_two_unlikely_alike_states(title_i: TitleI) -> None:
    """k = 61 with odds 1 to 3 against 1,400, one answer with error 1: the integral over answers, by quadrature."""
    beliefs = Beliefs.draws(title_i.welfare(), {COST: [61, 1400]}, [1, 3], discrete=True)
    known = choose_under_uncertainty(title_i.laplace(), beliefs)
    scale = 1.5 * 1.04e12 ** (1 / 3) * 46e6 ** (2 / 3)

    def expected(answer: float) -> float:
        """Density of the answer times what society then loses: V is homogeneous of degree 2/3 in weighted costs."""
        likely = [w * math.exp(-((answer - math.log(k)) ** 2) / 2) for w, k in ((0.25, 61), (0.75, 1400))]
        total = sum(likely)
        mean = (likely[0] * 61 + likely[1] * 1400) / total
        return float(total / math.sqrt(2 * math.pi) * scale * mean ** (2 / 3))

    with_survey = quad(expected, -10, 25, epsabs=1e-3, epsrel=1e-12, limit=500)[0]
    before = scale * (0.25 * 61 + 0.75 * 1400) ** (2 / 3)
    assert survey_value(known, 1, spread=1.0).value == pytest.approx(before - with_survey, rel=1e-7)


def test_simulated_surveys_agree(known: UncertainChoice) -> None:
    generator = np.random.default_rng(11)
    truth = math.log(1400) + 0.5 * generator.standard_normal(400_000)
    answer = truth + 1.5 / math.sqrt(100) * generator.standard_normal(len(truth))
    precision = 1 / 0.25 + 100 / 2.25
    mean = (math.log(1400) / 0.25 + answer * 100 / 2.25) / precision
    believed = np.exp(mean + 0.5 / precision)
    chosen = (1.04e12 / 46e6 / believed) ** (1 / 3)

    def cost(epsilon: np.ndarray[tuple[int], np.dtype[np.float64]] | float) -> float:
        return float(np.mean(46e6 * np.exp(truth) * epsilon + 5.2e11 / np.square(epsilon)))

    assert cost(known.choice.epsilon) - cost(chosen) == pytest.approx(6.677795e9, rel=0.02)


def test_more_people_are_worth_more_and_never_more_than_knowing(known: UncertainChoice) -> None:
    found = [survey_value(known, size, spread=1.5) for size in (1, 10, 100, 1_000, 10_000, 1_000_000)]
    values = [survey.value for survey in found]
    assert values == sorted(values)
    assert values[0] > 0
    assert values[-1] < known.value_of_perfect_information
    assert values[-1] == pytest.approx(known.value_of_perfect_information, rel=1e-4)


def test_one_of_two_numbers(title_i: TitleI) -> None:
    numbers = [Uncertain(COST, 1400, 500), Uncertain("consequence", 2e7, 1e7)]
    known = choose_under_uncertainty(title_i.laplace(), Beliefs.lognormal(title_i.welfare(), numbers))
    for name, power in ((COST, 2 / 3), ("consequence", 1 / 3)):
        number = next(number for number in numbers if number.name == name)
        found = survey_value(known, 10**9, spread=1.0, parameter=name)
        share = -math.expm1((power**2 - power) * number.log_deviation**2 / 2)
        assert found.value / known.expected_cost == pytest.approx(share, rel=1e-6)
    with pytest.raises(InvalidPreferences, match="which number"):
        survey_value(known, 10, spread=1.0)
    with pytest.raises(InvalidPreferences, match="not among"):
        survey_value(known, 10, spread=1.0, parameter="population_size")


def test_a_survey_of_one_number_tells_of_another(title_i: TitleI) -> None:
    # What is asked about the cost tells of the price of errors too, as far as their errors go together.
    spread = np.array([[0.09, 0.06], [0.06, 0.09]])
    ratios = {COST: ("epsilon",), "consequence": ("error",)}
    worths = []
    for covariance in (spread, np.diag(np.diag(spread))):
        beliefs = Beliefs.estimated(title_i.welfare(), JointEstimates(("epsilon", "error"), covariance), ratios)
        known = choose_under_uncertainty(title_i.laplace(), beliefs)
        worths.append(survey_value(known, 40, spread=1.5, parameter=COST).value)
    assert worths[0] < 0.5 * worths[1]  # the ratio moves little


def test_limits_take_worth_away(title_i: TitleI, known: UncertainChoice) -> None:
    capped = choose_under_uncertainty(title_i.laplace(), known.beliefs, Limits(largest_epsilon=2.0))
    assert survey_value(capped, 100, spread=1.5).value < survey_value(known, 100, spread=1.5).value


def test_signals(title_i: TitleI) -> None:
    beliefs = Beliefs.draws(title_i.welfare(), {COST: [61, 1400]}, discrete=True)
    known = choose_under_uncertainty(title_i.laplace(), beliefs)
    assert signal_value(known, np.eye(2)) == pytest.approx(2.105176e10, rel=3e-7)
    assert signal_value(known, [[0.3, 0.3], [0.7, 0.7]]) == pytest.approx(0, abs=1e3)
    # A test that is right nine times in ten, by hand: V(k) = 1.5·(2c)^{1/3}·(N·k)^{2/3}.
    scale = 1.5 * 1.04e12 ** (1 / 3) * 46e6 ** (2 / 3)
    means = (0.9 * 61 + 0.1 * 1400, 0.1 * 61 + 0.9 * 1400)
    value = scale * (730.5 ** (2 / 3) - sum(mean ** (2 / 3) for mean in means) / 2)
    assert signal_value(known, [[0.9, 0.1], [0.1, 0.9]]) == pytest.approx(value, rel=1e-8)
    with pytest.raises(InvalidPreferences, match="one probability of each signal"):
        signal_value(known, [[0.9, 0.1]])


def test_the_survey_that_pays_best(known: UncertainChoice) -> None:
    cost = 1e6
    best = best_survey(known, cost_per_respondent=cost, spread=1.5)
    assert best is not None
    gains = {
        size: survey_value(known, size, spread=1.5).value - cost * size
        for size in (best.respondents // 2, best.respondents, 2 * best.respondents)
    }
    assert max(gains, key=lambda size: gains[size]) == best.respondents
    # The share is 1 − exp(−v(n)/9): its slope in n is the cost at the best size.
    slope = survey_value(known, best.respondents + 5, spread=1.5).value
    slope = (slope - survey_value(known, best.respondents - 5, spread=1.5).value) / 10
    assert slope == pytest.approx(cost, rel=0.01)
    assert best_survey(known, cost_per_respondent=1e12, spread=1.5) is None


def test_refusals_survey_value(known: UncertainChoice, title_i: TitleI) -> None:
    for respondents, spread in ((0, 1.0), (10, 0.0), (10, math.nan)):
        with pytest.raises(InvalidValue):
            survey_value(known, respondents, spread=spread)
    with pytest.raises(InvalidValue):
        best_survey(known, cost_per_respondent=0.0, spread=1.0)
    welfare: SocialWelfare = title_i.welfare()
    zero = Beliefs.draws(welfare, {COST: [0.0, 2800.0]}, discrete=True)
    capped = choose_under_uncertainty(title_i.laplace(), zero, Limits(largest_epsilon=5.0))
    with pytest.raises(InvalidPreferences, match="logarithm"):
        survey_value(capped, 10, spread=1.0)
    scenarios = choose_under_uncertainty(title_i.laplace(), Beliefs.scenarios([welfare, welfare]))
    with pytest.raises(InvalidPreferences, match="signal_value"):
        survey_value(scenarios, 10, spread=1.0)


def test_a_cubic_that_swings_beyond_all_numbers_is_no_cost() -> None:
    """Between two points of an elasticity of ±1,000, one unit of ln loss apart, a cubic passes e^250 above both."""
    steep = GridPoints(np.array([0.0, 1.0]), np.array([[500.0], [500.0]]), np.array([[1000.0], [-1000.0]]))
    with np.errstate(all="raise"):
        costs, slopes = steep.read(np.array([0.0, 0.5]))
    assert costs[0] == pytest.approx(math.exp(500.0))
    assert np.all(np.isfinite(costs))
    assert np.all(np.isfinite(slopes))
