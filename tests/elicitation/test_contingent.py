"""Contingent valuation: hand cases, derivatives, brute force, and answers without a most likely model."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, get_args

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from dualmandate.elicitation.answers import BidAnswers
from dualmandate.elicitation.contingent import ContingentValuation, _self_consistent, contingent_valuation, turnbull
from dualmandate.elicitation.likelihood import Distribution, IntervalRows, interval_likelihood
from dualmandate.elicitation.willingness import ParameterEstimates
from dualmandate.errors import InvalidPreferences, NoEstimate, UnknownName

DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)


def drawn(
    people: int, distribution: Distribution, *, double: bool, spike: bool, seed: int = 7, covariate: bool = False
) -> BidAnswers:
    """Answers of people whose amounts follow (1 + .5·x + noise)/.5."""
    generator = np.random.default_rng(seed)
    shift = generator.normal(size=people)
    noise = generator.logistic(size=people) if distribution == "logistic" else generator.normal(size=people)
    amount = (1 + 0.5 * shift * covariate + noise) / 0.5
    bid = generator.choice([1.0, 2.0, 4.0, 8.0], people)
    pays = amount > 0 if spike else None
    if double:
        second = np.where(amount > bid, 2 * bid, bid / 2)
        answers = BidAnswers.double_bounded(bid, amount > bid, second, amount > second, pays_anything=pays)
    else:
        answers = BidAnswers.single_bounded(bid, amount > bid, pays_anything=pays)
    return answers.with_covariates({"x": shift}) if covariate else answers


def stated(constant: float, bid: float, distribution: Distribution, *, spike: bool = True) -> ContingentValuation:
    """A model whose parameters are given, with small errors."""
    answers = BidAnswers(np.array([1.0, -np.inf]), np.array([np.inf, 2.0]), np.array([1.0, 2.0]), spike=spike)
    parameters = ParameterEstimates(("constant", "bid"), np.array([constant, bid]), np.diag([1e-4, 1e-6]), -1.0, 2, 2)
    return ContingentValuation(answers, parameters, distribution)


def test_the_spike_of_the_reference() -> None:
    valuation = stated(1.0, -0.5, "logistic")
    assert valuation.share_at_zero().estimate == pytest.approx(0.268941, abs=5e-7)
    assert valuation.mean().estimate == pytest.approx(2.626523, abs=5e-7)
    assert valuation.median().estimate == pytest.approx(2.0)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("constant", [-1.3, 0.4, 2.0])
def test_the_mean_is_the_area_under_the_survival_curve(distribution: Distribution, constant: float) -> None:
    valuation = stated(constant, -0.7, distribution)
    area = quad(lambda amount: float(valuation.survival([amount])[0]), 0, 80, epsabs=1e-11)[0]
    assert valuation.mean().estimate == pytest.approx(area, rel=1e-9)


def test_a_median_below_zero_is_zero_in_a_spike() -> None:
    found = stated(-1.0, -0.5, "logistic").median()
    assert (found.estimate, found.interval) == (0.0, (0.0, 0.0))
    assert stated(-1.0, -0.5, "logistic", spike=False).median().estimate == pytest.approx(-2.0)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_derivatives_are_those_of_the_likelihood(distribution: Distribution) -> None:
    generator = np.random.default_rng(3)
    rows = IntervalRows(
        np.array([1, 0, 0]) + generator.normal(size=(12, 3)),
        np.array([-1, 0, 0]) + generator.normal(size=(12, 3)),
        np.array([True] * 8 + [False] * 4),
        np.array([False] * 4 + [True] * 8),
    )
    place, step = np.array([4.0, 0.2, -0.3]), 1e-5
    found = interval_likelihood(rows, place, distribution)
    assert math.isfinite(found.value)
    for i, direction in enumerate(np.eye(3) * step):
        ahead, behind = (interval_likelihood(rows, place + sign * direction, distribution) for sign in (1, -1))
        slope = (ahead.value - behind.value) / (2 * step)
        assert found.scores.sum(axis=0)[i] == pytest.approx(slope, rel=1e-7, abs=1e-8)
        bend = (ahead.scores.sum(axis=0) - behind.scores.sum(axis=0)) / (2 * step)
        assert -found.curvature[i] == pytest.approx(bend, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_digits_are_lost_in_the_tails(distribution: Distribution) -> None:
    def law(index: float) -> Any:
        return 1 / (1 + mpmath.exp(-mpmath.mpf(index))) if distribution == "logistic" else mpmath.ncdf(index)

    for high, low in ((-20.0, -21.0), (25.0, 24.0), (-3.0, -3.0 - 1e-6), (9.0, -9.0)):
        rows = IntervalRows(np.array([[high]]), np.array([[low]]), np.array([True]), np.array([True]))
        found = interval_likelihood(rows, np.ones(1), distribution)
        with mpmath.workdps(300):
            exact = float(mpmath.log(law(high) - law(low)))
        assert found.value == pytest.approx(exact, rel=2e-9)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("spike", [False, True])
def test_the_model_is_the_most_likely_one(distribution: Distribution, double: bool, spike: bool) -> None:
    answers = drawn(300, distribution, double=double, spike=spike, covariate=True)
    found = contingent_valuation(answers, distribution=distribution).estimates
    law = expit if distribution == "logistic" else ndtr

    def minus(parameters: np.ndarray) -> float:  # written from the definition, without any shared code
        index = parameters[0] + parameters[1] * answers.design[:, 1]
        with np.errstate(all="ignore"):
            above = np.where(np.isinf(answers.lower), 1.0, law(index + parameters[2] * answers.lower))
            below = np.where(np.isinf(answers.upper), 0.0, law(index + parameters[2] * answers.upper))
        return float(-np.log(np.maximum(above - below, 1e-300)).sum())

    assert found.log_likelihood == pytest.approx(-minus(found.values), rel=1e-12)
    best = minimize(minus, found.values * 1.1 + 0.05, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
    assert found.values == pytest.approx(best.x, abs=2e-5)
    assert found.names == ("constant", "x", "bid")


def test_the_sandwich_of_a_hand_case() -> None:
    # Two bids, one probability each: the logit is saturated, so errors of the log odds are 1/(n·p·q).
    bid = np.repeat([1.0, 3.0], 100)
    yes = np.concatenate([np.arange(100) < 70, np.arange(100) < 40])
    found = contingent_valuation(BidAnswers.single_bounded(bid, yes)).estimates
    odds = [math.log(0.7 / 0.3), math.log(0.4 / 0.6)]
    assert found.value("bid") == pytest.approx((odds[1] - odds[0]) / 2, rel=1e-9)
    assert found.value("constant") == pytest.approx(odds[0] - (odds[1] - odds[0]) / 2, rel=1e-9)
    variances = 1 / 21, 1 / 24
    assert found.standard_error("bid") == pytest.approx(math.sqrt(sum(variances)) / 2, rel=1e-9)
    doubled = BidAnswers.single_bounded(np.tile(bid, 2), np.tile(yes, 2)).clustered(np.tile(np.arange(200), 2))
    again = contingent_valuation(doubled).estimates  # everybody twice, and known to be the same
    assert again.covariance == pytest.approx(found.covariance, rel=1e-9)
    assert (again.clusters, again.observations) == (200, 400)


def test_units_of_bids_and_covariates_do_not_matter() -> None:
    answers = drawn(400, "logistic", double=True, spike=True, covariate=True)
    scale = 1e6
    larger = BidAnswers(
        answers.lower * scale,
        answers.upper * scale,
        answers.bids * scale,
        True,
        answers.names,
        answers.design * [1, 1e5],
    )
    one, other = contingent_valuation(answers), contingent_valuation(larger)
    first, second = one.mean(), other.mean()
    assert first.estimate is not None
    assert second.estimate == pytest.approx(first.estimate * scale, rel=1e-9)
    assert first.standard_error is not None
    assert second.standard_error == pytest.approx(first.standard_error * scale, rel=1e-7)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_errors_of_mean_and_share_are_those_of_their_derivatives(distribution: Distribution) -> None:
    valuation = contingent_valuation(
        drawn(500, distribution, double=False, spike=True, covariate=True), distribution=distribution
    )
    parameters, step = valuation.estimates, 1e-6

    def moved(direction: np.ndarray) -> ContingentValuation:
        values = parameters.values + direction
        changed = ParameterEstimates(parameters.names, values, parameters.covariance, 0.0, 1, 1)
        return ContingentValuation(valuation.answers, changed, distribution)

    pairs = [(moved(direction), moved(-direction)) for direction in np.eye(3) * step]
    for name in ("mean", "share_at_zero"):
        slopes = np.array([(getattr(a, name)().estimate - getattr(b, name)().estimate) / (2 * step) for a, b in pairs])
        expected = math.sqrt(slopes @ parameters.covariance @ slopes)
        assert getattr(valuation, name)().standard_error == pytest.approx(expected, rel=1e-5)


def test_the_three_intervals_agree_in_a_large_survey() -> None:
    plain = contingent_valuation(drawn(20_000, "logistic", double=True, spike=False))
    intervals = [plain.mean(method=method).interval for method in ("delta", "krinsky-robb", "fieller")]
    for interval in intervals:
        assert interval is not None
        assert interval == pytest.approx(intervals[0], abs=0.01)
        assert interval[0] < 2.0 < interval[1]
    spiked = contingent_valuation(drawn(20_000, "normal", double=True, spike=True), distribution="normal")
    assert spiked.mean(method="krinsky-robb").interval == pytest.approx(spiked.mean().interval, abs=0.01)
    assert spiked.mean(method="fieller").interval == pytest.approx(spiked.mean().interval, abs=0.01)


def test_separation_is_refused() -> None:
    bid = np.repeat([1.0, 2.0, 4.0, 8.0], 20)
    with pytest.raises(NoEstimate, match="separate"):
        contingent_valuation(BidAnswers.single_bounded(bid, bid < 3))
    sex = np.tile([0.0, 1.0], 40)  # quasi-separation: every woman says yes, men vary
    yes = (sex == 1) | (np.random.default_rng(0).random(80) < 0.5)
    with pytest.raises(NoEstimate, match="separate"):
        contingent_valuation(BidAnswers.single_bounded(bid, yes).with_covariates({"sex": sex}))
    first = np.full(60, 2.0)  # everybody between 2 and 4: the steeper, the better
    with pytest.raises(NoEstimate, match="separate"):
        contingent_valuation(BidAnswers.double_bounded(first, first > 0, 2 * first, first < 0))


def test_a_failed_search_is_told_from_separation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("dualmandate.elicitation.likelihood"), "MOST_STEPS", 1)
    with pytest.raises(NoEstimate, match="1 steps"):
        contingent_valuation(drawn(200, "logistic", double=False, spike=False))


def test_bids_without_effect_give_no_number() -> None:
    generator = np.random.default_rng(1)
    bid = generator.choice([1.0, 2.0, 4.0], 100)
    valuation = contingent_valuation(BidAnswers.single_bounded(bid, generator.random(100) < 0.5))
    assert valuation.mean().estimate is None
    assert valuation.median(method="krinsky-robb").interval is None
    spiked = contingent_valuation(
        BidAnswers.single_bounded([1, 2, 1, 2, 1, 2], [1, 1, 0, 1, 1, 0], pays_anything=[1, 1, 1, 1, 1, 0])
    )
    assert spiked.mean().estimate is None


def test_bids_that_attract_are_refused() -> None:
    generator = np.random.default_rng(2)
    bid = generator.choice([1.0, 2.0, 4.0, 8.0], 2000)
    valuation = contingent_valuation(BidAnswers.single_bounded(bid, generator.random(2000) < expit(bid / 4 - 1)))
    with pytest.raises(InvalidPreferences, match="more often"):
        valuation.mean()


def test_an_unknown_distribution() -> None:
    with pytest.raises(UnknownName, match="weibull"):
        contingent_valuation(drawn(50, "logistic", double=False, spike=False), distribution="weibull")  # type: ignore[arg-type]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_statsmodels_finds_the_same(distribution: Distribution) -> None:
    import statsmodels.api as oracle

    generator = np.random.default_rng(11)
    answers = drawn(500, distribution, double=False, spike=False, covariate=True)
    villages = generator.integers(0, 40, 500)
    bid = np.where(np.isfinite(answers.lower), answers.lower, answers.upper)
    table = np.column_stack([answers.design, bid])
    model = (oracle.Logit if distribution == "logistic" else oracle.Probit)(np.isfinite(answers.lower), table)
    ours = contingent_valuation(answers, distribution=distribution).estimates
    theirs = model.fit(disp=0, tol=1e-12, cov_type="HC0")
    assert ours.values == pytest.approx(theirs.params, rel=1e-6)
    assert ours.log_likelihood == pytest.approx(theirs.llf, rel=1e-10)
    assert ours.covariance == pytest.approx(theirs.cov_params(), rel=1e-5)
    clustered = contingent_valuation(answers.clustered(villages), distribution=distribution).estimates
    theirs = model.fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": villages, "use_correction": False})
    assert clustered.covariance == pytest.approx(theirs.cov_params(), rel=1e-5)
    assert clustered.clusters == 40


def test_the_share_at_zero_has_an_interval_in_log_odds() -> None:
    """Without covariates the share is 1/(1 + e^a): its log odds −a have the standard error of the constant."""
    said = [1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]  # to the four bids, by four people each
    answers = BidAnswers.single_bounded([1, 2, 4, 8] * 40, said * 10)
    found = contingent_valuation(answers)
    share, width = found.share_at_zero(), 1.959963984540054 * found.estimates.standard_error("constant")
    constant = found.estimates.value("constant")
    assert share.estimate == pytest.approx(expit(-constant), rel=1e-12)
    assert share.interval == pytest.approx((expit(-constant - width), expit(-constant + width)), rel=1e-9)


def refusing(counts: dict[float, tuple[int, int]]) -> BidAnswers:
    """People and refusals by bid."""
    bid = np.repeat(list(counts), [people for people, _ in counts.values()])
    yes = np.concatenate([np.arange(people) >= no for people, no in counts.values()])
    return BidAnswers.single_bounded(bid, yes)


def test_the_hand_case_of_the_reference() -> None:
    found = turnbull(refusing({1: (100, 20), 2: (100, 40), 5: (100, 70)}))
    assert found.lower_bound == pytest.approx(2.3, rel=1e-14)
    assert found.standard_error == pytest.approx(math.sqrt(0.0016 + 0.0024 + 0.0189), rel=1e-14)
    assert round(found.standard_error, 6) == 0.151327
    assert found.pooled == ()
    assert [found.survival(amount) for amount in (0.5, 1.0, 1.5, 2.5, 5.0, 6.0)] == pytest.approx(
        [0.8, 0.8, 0.6, 0.3, 0.3, 0.0]
    )
    assert str(found) == "at least 2.3 on average (standard error of the bound 0.15)"


def test_violators_are_pooled() -> None:
    # Shares .2, .5, .4, .7: the middle two become 110/250 = .44, and the bound 1·.8 + 1·.56 + 2·.56 + 4·.3.
    found = turnbull(refusing({1: (100, 20), 2: (100, 50), 4: (150, 60), 8: (100, 70)}))
    assert found.refusing == pytest.approx([0.2, 0.44, 0.44, 0.7])
    assert found.pooled == ((2.0, 4.0),)
    assert found.lower_bound == pytest.approx(0.8 + 3 * 0.56 + 4 * 0.3)
    # Pooled bids move together: (1 + 2)²·.44·.56/250, not 1² + 2².
    variance = 0.16 / 100 + 9 * 0.44 * 0.56 / 250 + 16 * 0.21 / 100
    assert found.standard_error == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_a_chain_of_violators() -> None:
    found = turnbull(refusing({1: (10, 8), 2: (10, 6), 3: (10, 4), 4: (10, 9)}))
    assert found.refusing == pytest.approx([0.6, 0.6, 0.6, 0.9])
    assert found.pooled == ((1.0, 2.0, 3.0),)


def test_both_ways_agree_after_one_question() -> None:
    for counts in ({1: (100, 20), 2: (100, 40), 5: (100, 70)}, {1: (80, 20), 2: (90, 50), 4: (150, 60), 8: (100, 70)}):
        answers = refusing({float(bid): pair for bid, pair in counts.items()})
        shares, covariance = _self_consistent(answers, answers.bids)
        found = turnbull(answers)
        assert shares == pytest.approx(found.refusing, abs=1e-9)
        widths = np.diff(np.concatenate([[0], answers.bids]))
        assert math.sqrt(widths @ covariance @ widths) == pytest.approx(found.standard_error, rel=1e-6)


def double_bounded(people: int, seed: int, *, spike: bool = False) -> tuple[BidAnswers, np.ndarray]:
    generator = np.random.default_rng(seed)
    amount = generator.exponential(4.0, people) * (generator.random(people) > 0.2 * spike)
    bid = generator.choice([2.0, 4.0], people)
    second = np.where(amount > bid, 2 * bid, bid / 2)
    pays = amount > 0 if spike else None
    return BidAnswers.double_bounded(bid, amount > bid, second, amount > second, pays_anything=pays), amount


def test_two_questions_give_the_most_likely_shares() -> None:
    answers, _ = double_bounded(400, 5)
    found = turnbull(answers)
    assert found.bids.tolist() == [1, 2, 4, 8]

    def minus(free: np.ndarray) -> float:
        masses = np.exp(np.append(free, 0)) / np.exp(np.append(free, 0)).sum()
        below = np.concatenate([[0], np.cumsum(masses)])
        edges = np.concatenate([[-np.inf], found.bids, [np.inf]])
        high, low = (below[np.searchsorted(edges, end)] for end in (answers.upper, answers.lower))
        return float(-np.log(high - low).sum())

    best = minimize(minus, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    masses = np.exp(np.append(best, 0)) / np.exp(np.append(best, 0)).sum()
    assert found.refusing == pytest.approx(np.cumsum(masses)[:-1], abs=1e-5)


def test_the_standard_error_of_two_questions_is_seen_in_repeated_surveys() -> None:
    found = [turnbull(double_bounded(300, seed)[0]) for seed in range(400)]
    seen = np.std([each.lower_bound for each in found])
    assert np.mean([each.standard_error for each in found]) == pytest.approx(seen, rel=0.1)


def test_shares_that_tie_settle_too() -> None:
    # Half say no at 1 and at 2: the cell between them is empty, and only just.
    answers = refusing({1.0: (40, 20), 2.0: (40, 20), 5.0: (40, 30)})
    shares, _ = _self_consistent(answers, answers.bids)
    assert shares == pytest.approx([0.5, 0.5, 0.75], abs=1e-6)
    spiked = BidAnswers.single_bounded(
        np.repeat([1.0, 2.0], 40), np.tile(np.arange(40) < 20, 2), pays_anything=np.tile(np.arange(40) < 30, 2)
    )
    found = turnbull(spiked)
    assert found.refusing == pytest.approx([0.25, 0.5, 0.5], abs=1e-6)
    assert found.lower_bound == pytest.approx(1.0, abs=1e-6)


def test_it_is_a_bound() -> None:
    for spike in (False, True):
        answers, amount = double_bounded(20_000, 8, spike=spike)
        found = turnbull(answers)
        assert found.lower_bound + 4 * found.standard_error < amount.mean()
        steps = np.minimum(np.floor(np.log2(np.maximum(amount, 0.5))), 3)
        counted = np.where(amount > 1, 2.0**steps, 0).mean()  # each amount counted as the bid below it
        assert found.lower_bound == pytest.approx(counted, abs=4 * found.standard_error)
    assert found.bids[0] == 0
    assert found.refusing[0] == pytest.approx(0.2, abs=0.02)


def test_shares_that_do_not_settle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("dualmandate.elicitation.contingent"), "MOST_ROUNDS", 1)
    with pytest.raises(NoEstimate, match="1 rounds"):
        turnbull(double_bounded(100, 1)[0])
