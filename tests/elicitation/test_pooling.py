"""Pooling: conjugate and brute-force cases, published meta-analyses, conversions, conflicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.elicitation import DiscountHorizon
from dualmandate.elicitation.pooling import (
    CommonGround,
    Pooled,
    Prior,
    differing_pairs,
    pool,
    random_effects,
)
from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidValue, MissingKey
from dualmandate.population import Calibrated, Units

COST = "USD per person per epsilon"
GROUND = CommonGround(COST, "per year")
WEAK = Prior(100.0, 2.0, "weak, by decision", between=0.5)
SCHOOLS = np.array([28, 8, -3, 7, -1, 1, 18, 12.0]), np.array([15, 10, 16, 11, 9, 11, 10, 18.0])  # Rubin 1981
VACCINE = [  # Colditz et al. 1994, BCG against tuberculosis: ill and well, vaccinated and not
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232),
    (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
]  # fmt: skip


def source(value: float, error: float, name: str = "a survey") -> Calibrated:
    return Calibrated(value, COST, name, time_base="per year", standard_error=error)


def test_a_published_meta_analysis() -> None:
    ill, well, control_ill, control_well = np.array(VACCINE, dtype=float).T
    ratios = np.log(ill / (ill + well) / (control_ill / (control_ill + control_well)))
    errors = np.sqrt(1 / ill - 1 / (ill + well) + 1 / control_ill - 1 / (control_ill + control_well))
    mean, error, between, heterogeneity = random_effects(ratios, errors)
    assert (mean, error, between) == pytest.approx((-0.7141, 0.1787, 0.3088), abs=5e-5)
    assert heterogeneity == pytest.approx(152.2330, abs=5e-5)


def plain(values: np.ndarray, errors: np.ndarray, prior: Prior) -> Pooled:
    shift = 1000.0  # amounts are not negative; the plain scale does not care where zero is
    pairs = zip(values.tolist(), errors.tolist(), strict=True)
    sources = [source(value + shift, error, f"source {i}") for i, (value, error) in enumerate(pairs)]
    moved = Prior(prior.center + shift, prior.spread, prior.source, prior.between, prior.at_most)
    return pool(sources, GROUND, prior=moved, scale="plain")


def test_eight_schools() -> None:
    # Flat priors: Gelman et al., Bayesian Data Analysis, chapter 5, and every Stan manual: mu 8 (5), tau about 6.6.
    values, errors = SCHOOLS
    pooled = plain(values, errors, Prior(0.0, math.inf, "flat", at_most=1000.0))
    assert pooled.mean - 1000 == pytest.approx(7.93, abs=0.05)
    assert pooled.standard_deviation == pytest.approx(5.18, abs=0.05)
    assert pooled.scatter == pytest.approx(6.58, abs=0.1)
    assert pooled.agreement.heterogeneity == pytest.approx(4.707, abs=5e-4)
    assert pooled.agreement.agree
    assert pooled.agreement.share == 0.0
    assert pooled.agreement.expected[0][1] is None  # a flat prior expects nothing


def test_conjugate_by_hand() -> None:
    # Without differences between sources: precisions 1/4 + 1/4 + 1/2 = 1, mean (10/4 + 14/4 + 12/2) = 12.
    prior = Prior(12.0, math.sqrt(2.0), "an expert", at_most=1e-9)
    pooled = pool([source(10, 2), source(14, 2)], GROUND, prior=prior, scale="plain")
    assert pooled.mean == pytest.approx(12.0, abs=1e-9)
    assert pooled.standard_deviation == pytest.approx(1.0, abs=1e-9)
    assert pooled.median == pytest.approx(12.0, abs=1e-9)
    assert pooled.interval() == pytest.approx((12 - 1.959964, 12 + 1.959964), abs=1e-5)


def test_one_source_alone_comes_back_as_it_is() -> None:
    pooled = pool([source(61, 6)], GROUND, prior=Prior(100.0, 1000.0, "open mind", at_most=1e-9))
    assert (pooled.mean, pooled.standard_deviation) == pytest.approx((61.0, 6.0), rel=1e-5)
    stated = pooled.calibrated()
    assert (stated.unit, stated.time_base) == (COST, "per year")
    assert "a survey" in stated.source
    assert "open mind" in stated.source
    assert "one source" in pooled.agreement.explain()


def brute_force(pooled: Pooled) -> tuple[float, float, np.ndarray]:
    """Mean, standard deviation and quantiles of exp(μ) on a fine grid of (μ, τ), from the model's definition."""
    squares = [math.log1p((each.standard_error or 0) ** 2 / each.value**2) for each in pooled.sources]
    means = [math.log(each.value) - square / 2 for each, square in zip(pooled.sources, squares, strict=True)]
    mu = np.linspace(-4, 14, 4001)[:, None]
    tau = (np.arange(3000)[None, :] + 0.5) * 4.5 / 3000
    assert pooled.prior.between is not None
    log = -0.5 * ((mu - math.log(pooled.prior.center)) / pooled.prior.spread) ** 2
    log = log - 0.5 * (tau / pooled.prior.between) ** 2
    for mean, square in zip(means, squares, strict=True):
        log = log - 0.5 * np.log(square + tau**2) - 0.5 * (mu - mean) ** 2 / (square + tau**2)
    weight = np.exp(log - log.max()).sum(axis=1)
    weight /= weight.sum()
    amount = np.exp(mu[:, 0])
    mean = float(weight @ amount)
    quantiles = np.interp([0.025, 0.5, 0.975], np.cumsum(weight) - weight / 2, mu[:, 0])
    return mean, math.sqrt(float(weight @ amount**2) - mean**2), np.exp(quantiles)


@pytest.mark.parametrize(
    "values", [[(61, 6), (90, 20), (1343, 150)], [(61, 6), (66, 10)], [(1400, 700)], [(50, 1), (200, 2), (400, 100)]]
)
def test_quadrature_is_brute_force(values: list[tuple[float, float]]) -> None:
    pooled = pool([source(*pair) for pair in values], GROUND, prior=WEAK)
    mean, deviation, quantiles = brute_force(pooled)
    assert pooled.mean == pytest.approx(mean, rel=1e-4)
    assert pooled.standard_deviation == pytest.approx(deviation, rel=1e-3)
    assert [pooled.quantile(share) for share in (0.025, 0.5, 0.975)] == pytest.approx(quantiles.tolist(), rel=1e-3)


def test_density_and_probability_fit_together() -> None:
    pooled = pool([source(61, 6), source(200, 30)], GROUND, prior=WEAK)
    amounts = np.exp(np.linspace(-2, 12, 20_001))
    density = pooled.density(amounts)
    area = float(np.trapezoid(density, amounts))
    assert area == pytest.approx(1.0, abs=1e-4)
    assert float(np.trapezoid(density * amounts, amounts)) == pytest.approx(pooled.mean, rel=1e-3)
    for share in (0.1, 0.5, 0.9):  # the density is one over the slope of the quantiles
        low, high = pooled.quantile(share - 1e-5), pooled.quantile(share + 1e-5)
        assert float(pooled.density(pooled.quantile(share))) == pytest.approx(2e-5 / (high - low), rel=1e-5)
        below = amounts <= pooled.quantile(share)
        assert float(np.trapezoid(density[below], amounts[below])) == pytest.approx(share, abs=1e-3)


@settings(max_examples=25, deadline=None)
@given(st.floats(1, 1e4), st.floats(0.02, 0.5), st.floats(0.01, 100))
def test_another_currency_changes_nothing(value: float, relative: float, factor: float) -> None:
    def pooled(scale: float) -> Pooled:
        sources = [source(value * scale, relative * value * scale), source(3 * value * scale, value * scale)]
        return pool(sources, GROUND, prior=Prior(value * scale, 1.5, "x", between=0.5))

    assert pooled(factor).mean == pytest.approx(factor * pooled(1.0).mean, rel=1e-9)
    assert pooled(factor).agreement.heterogeneity == pytest.approx(pooled(1.0).agreement.heterogeneity, rel=1e-6)


def test_disagreement_widens_the_posterior() -> None:
    def width(ratio: float) -> float:
        pooled = pool([source(100, 10), source(100 * ratio, 10 * ratio)], GROUND, prior=WEAK)
        low, high = pooled.interval()
        return math.log(high / low)

    widths = [width(ratio) for ratio in (1.0, 1.5, 3.0, 10.0)]
    assert widths == sorted(widths)
    assert widths[3] > 2 * widths[0]
    fixed = Prior(100.0, 2.0, "no differences", at_most=1e-9)
    agreed = pool([source(100, 10), source(1000, 100)], GROUND, prior=fixed).interval()
    assert math.log(agreed[1] / agreed[0]) < 0.5 * widths[0]  # what ignoring the conflict would claim


def test_conflicts_are_named() -> None:
    sources = [source(61, 6, "BJS 2014"), source(90, 20, "a survey"), source(1343, 150, "DOJ 2015")]
    agreement = pool(sources, GROUND, prior=WEAK).agreement
    assert not agreement.agree
    assert [(pair.first, pair.second) for pair in agreement.conflicts] == [
        ("BJS 2014", "DOJ 2015"),
        ("a survey", "DOJ 2015"),
    ]
    assert agreement.conflicts[0].ratio == pytest.approx(61 / 1343, rel=0.01)
    words = agreement.explain()
    assert "The sources conflict" in words
    assert "'BJS 2014' and 'DOJ 2015' differ by a factor of 22" in words
    odd = dict(agreement.predicted)
    assert min(odd, key=lambda name: odd[name] or 1) == "DOJ 2015"
    assert "agree within their standard errors" in pool([source(61, 6), source(66, 8)], GROUND, prior=WEAK).explain()


def test_sources_of_one_name_are_told_apart() -> None:
    agreement = pool([source(61, 6), source(1343, 150), source(70, 9)], GROUND, prior=WEAK).agreement
    assert [name for name, _ in agreement.predicted] == ["a survey", "a survey (2)", "a survey (3)"]
    assert {pair.second for pair in agreement.conflicts} | {pair.first for pair in agreement.conflicts} == {
        "a survey",
        "a survey (2)",
        "a survey (3)",
    }


def test_the_value_of_accuracy_is_pooled_the_same_way() -> None:
    # 20 USD per child², said once so and once per child and class of 25.
    units = Units("child", ("class",))
    ground = CommonGround("USD per child^2", "per year", units, (Calibrated(25, "child per class", "NCES"),))
    sources = [
        Calibrated(20, "USD per child^2", "board", time_base="per year", standard_error=2),
        Calibrated(500, "USD per child per class", "auditors", time_base="per year", standard_error=100),
    ]
    pooled = pool(sources, ground, prior=Prior(20.0, 2.0, "weak", between=0.3))
    assert [each.value for each in pooled.sources] == pytest.approx([20.0, 20.0])
    assert pooled.agreement.agree
    assert pooled.calibrated().unit == "USD per child^2"
    assert pooled.median == pytest.approx(20.0, rel=0.03)


def test_a_source_that_the_prior_does_not_expect() -> None:
    narrow = Prior(100.0, 0.1, "an expert who is sure", between=0.1)
    agreement = pool([source(1400, 100, "DOJ 2015")], GROUND, prior=narrow).agreement
    assert "'DOJ 2015' is not what the prior expects" in agreement.explain()
    # By hand: one source, so both predictions are the prior's; τ adds to the spread.
    assert agreement.predicted == agreement.expected


def test_holm_by_hand() -> None:
    # Distances 0−1, 0−3, 1−3 over √2: p = .4795, .0339, .1573; Holm: 3·.0339, 2·.1573, 1·.4795.
    pairs = differing_pairs(("a", "b", "c"), np.array([0.0, 1.0, 3.0]), np.ones(3), logarithms=False)
    assert [pair.probability for pair in pairs] == pytest.approx([0.4795, 0.1017, 0.3146], abs=2e-4)
    assert not any(pair.conflict for pair in pairs)


# Conversions.


def test_an_annuity_by_hand() -> None:
    assert DiscountHorizon(0.0, 40, "x").present_value == 40
    assert DiscountHorizon(0.05, 2, "x").present_value == pytest.approx(1 / 1.05 + 1 / 1.05**2, rel=1e-14)
    assert DiscountHorizon(1e-12, 40, "x").present_value == pytest.approx(40, rel=1e-9)


@pytest.mark.parametrize(
    ("time_base", "value"),
    [("per month", 12.0), ("per year", 1.0), ("per decade", 0.1), ("per day", 365.25), ("lifetime", 1.05**2 / 2.05)],
)
def test_time_bases(time_base: str, value: float) -> None:
    horizon = DiscountHorizon(0.05, 2, "a rule")
    given_once = Calibrated(1.0, COST, "s", time_base=time_base, standard_error=0.5, least=0.1, largest=2.0)
    there = CommonGround(COST, "per year", horizon=horizon).brought(given_once)
    assert (there.value, there.standard_error, there.least) == pytest.approx((value, value / 2, value / 10))
    assert there.time_base == "per year"
    back = CommonGround(COST, time_base, horizon=horizon).brought(there)
    assert back.value == pytest.approx(1.0, rel=1e-14)


def test_bridges_carry_their_own_error() -> None:
    units = Units("person", ("household",))
    size = Calibrated(2.5, "person per household", "ACS", standard_error=0.25)
    ground = CommonGround(COST, "per year", units, (size,))
    household = Calibrated(
        100, "USD per household per epsilon", "s", time_base="per year", standard_error=10, least=50, largest=150
    )
    brought = ground.brought(household)
    assert (brought.value, brought.least, brought.largest) == pytest.approx((40.0, 20.0, 60.0))
    assert brought.standard_error == pytest.approx(40 * math.hypot(0.1, 0.1))
    inverse = Calibrated(0.4, "household per person", "ACS")
    assert CommonGround(COST, "per year", units, (inverse,)).brought(household).value == pytest.approx(40.0)
    certain = Calibrated(100, "USD per household per epsilon", "s", time_base="per year")
    assert ground.brought(certain).standard_error == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("quantity", "ground", "words"),
    [
        (Calibrated(1, COST, "s", time_base="lifetime"), GROUND, "discount rate"),
        (Calibrated(1, COST, "s"), GROUND, "time base"),
        (Calibrated(1, COST, "s", time_base="per year"), CommonGround(COST), "time base"),
        (Calibrated(1, COST, "s", time_base="per visit"), GROUND, "per visit"),
        (
            Calibrated(1, "USD per household per epsilon", "s", time_base="per year"),
            CommonGround(COST, "per year", Units("person", ("household",))),
            "bridge",
        ),
    ],
)
def test_what_cannot_be_reconciled_is_refused(quantity: Calibrated, ground: CommonGround, words: str) -> None:
    with pytest.raises(IncompatibleUnits) as refusal:
        ground.brought(quantity)
    assert words in str(refusal.value)


def test_other_refusals() -> None:
    with pytest.raises(MissingKey, match="standard_error"):
        pool([Calibrated(61, COST, "s", time_base="per year")], GROUND, prior=WEAK)
    with pytest.raises(MissingKey, match="no source"):
        pool([], GROUND, prior=WEAK)
    with pytest.raises(InvalidPreferences, match="positive amount"):
        pool([source(61, 6)], GROUND, prior=Prior(100.0, math.inf, "flat", between=1.0))
    with pytest.raises(InvalidPreferences, match="between"):
        Prior(1.0, 1.0, "x")
    with pytest.raises(InvalidPreferences, match="between"):
        Prior(1.0, 1.0, "x", between=1.0, at_most=1.0)
    with pytest.raises(InvalidPreferences, match="spread"):
        Prior(1.0, 0.0, "x", between=1.0)
    with pytest.raises(MissingKey, match="source"):
        Prior(1.0, 1.0, " ", between=1.0)
    with pytest.raises(InvalidValue, match="discount"):
        DiscountHorizon(-0.1, 10, "x")
    with pytest.raises(MissingKey, match="horizon"):
        DiscountHorizon(0.03, 0, "x")
    with pytest.raises(InvalidValue, match="bridge"):
        CommonGround(
            COST, None, Units("person", ("household",)), (Calibrated(0, "person per household", "x"),)
        ).brought(Calibrated(1, "USD per household per epsilon", "s"))
