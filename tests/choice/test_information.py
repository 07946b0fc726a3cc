"""Four forms of information utility: costs, slopes, limits, and no overflow."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.choice import BoundedCost, ExponentialCost, InformationUtility, LinearCost, PosteriorCost
from dualmandate.errors import InvalidPreferences
from dualmandate.population import PrivacyMeasure

EVERY_FORM: list[InformationUtility] = [
    LinearCost(1400),
    ExponentialCost(1400),
    BoundedCost(1400),
    PosteriorCost(1400, 0.01),
]
TITLE_I_OPTIMUM = 16.149068322981366 ** (1 / 3)


def exact_cost(utility: InformationUtility, loss: float) -> mpmath.mpf:
    """κ in fifty digits."""
    k, x = mpmath.mpf(utility.parameter), mpmath.mpf(loss)
    if isinstance(utility, PosteriorCost):
        p = mpmath.mpf(utility.prior)
        return k * (p / (p + (1 - p) * mpmath.exp(-x)) - p)
    forms = {"linear": lambda: k * x, "exponential": lambda: k * mpmath.expm1(x)}
    return forms.get(utility.form, lambda: -k * mpmath.expm1(-x))()


@pytest.mark.parametrize("utility", EVERY_FORM, ids=lambda utility: utility.form)
@pytest.mark.parametrize("loss", [1e-9, 1e-4, 0.1, 1.0, 2.527644, 20.0, 600.0])
def test_costs_and_slopes_to_all_digits(utility: InformationUtility, loss: float) -> None:
    with mpmath.workdps(400):
        cost = exact_cost(utility, loss)
        slope = mpmath.diff(lambda x: exact_cost(utility, x), loss)
        assert utility.cost(loss) == pytest.approx(float(cost), rel=1e-14)
        assert utility.marginal_cost(loss) == pytest.approx(float(slope), rel=1e-12)
        assert utility.log_marginal_cost(loss) == pytest.approx(float(mpmath.log(slope)), rel=1e-14)


@pytest.mark.parametrize("utility", EVERY_FORM, ids=lambda utility: utility.form)
def test_nothing_overflows(utility: InformationUtility) -> None:
    for loss in (709.5, 1e3, 1e6):
        assert utility.cost(loss) > 0
        assert utility.marginal_cost(loss) >= 0
        assert math.isfinite(utility.log_marginal_cost(loss))
    assert ExponentialCost(1400).log_marginal_cost(1e3) == pytest.approx(1000 + math.log(1400), rel=1e-15)
    assert BoundedCost(1400).log_marginal_cost(1e3) == pytest.approx(-1000 + math.log(1400), rel=1e-15)
    assert PosteriorCost(1, 0.5).log_marginal_cost(1e3) == pytest.approx(-1000, rel=1e-15)


@pytest.mark.parametrize("utility", [LinearCost(0), ExponentialCost(0), BoundedCost(0), PosteriorCost(0, 0.5)])
def test_a_cost_of_nothing(utility: InformationUtility) -> None:
    assert utility.cost(1e3) == utility.marginal_cost(1e3) == utility.most == 0
    assert utility.log_marginal_cost(1.0) == -math.inf


def test_what_can_be_lost_at_most() -> None:
    assert math.isinf(LinearCost(1).most)
    assert math.isinf(ExponentialCost(1).most)
    assert BoundedCost(1400).most == BoundedCost(1400).cost(1e3) == 1400
    assert PosteriorCost(1400, 0.01).most == pytest.approx(PosteriorCost(1400, 0.01).cost(1e3), rel=1e-15)


def test_beliefs_at_the_optimum_of_the_paper() -> None:
    # Research note, section 2: beliefs at ε = 2.527644.
    for prior, belief in ((0.01, 0.112298), (0.1, 0.581861), (0.5, 0.926057)):
        assert PosteriorCost(1, prior).belief(TITLE_I_OPTIMUM) == pytest.approx(belief, abs=5e-7)
    assert PosteriorCost(1400, 0.01).belief(4.095763) == pytest.approx(0.377692, abs=5e-7)


@settings(deadline=None, max_examples=50)
@given(st.floats(1e-6, 30.0))
def test_the_posterior_form_contains_others(loss: float) -> None:
    assert PosteriorCost(2, 0.5).cost(loss) == pytest.approx(math.tanh(loss / 2), rel=1e-12)
    tiny = 1e-18
    assert PosteriorCost(3 / tiny, tiny).cost(loss) == pytest.approx(ExponentialCost(3).cost(loss), rel=1e-4)


def test_shapes_and_words() -> None:
    assert [utility.convex for utility in EVERY_FORM] == [True, True, False, False]
    assert [utility.unit("child", "USD") for utility in EVERY_FORM] == [
        "USD per child per epsilon",
        "USD per child",
        "USD per child",
        "USD per child per disclosure",
    ]
    assert LinearCost(1, PrivacyMeasure.ZCDP).unit("child", "EUR") == "EUR per child per rho"
    assert [utility.scaled(2).parameter for utility in EVERY_FORM] == [2800] * 4
    assert PosteriorCost(1, 0.2).scaled(3) == PosteriorCost(3, 0.2)


@pytest.mark.parametrize("parameter", [-1.0, math.nan, math.inf])
def test_costs_that_cannot_be(parameter: float) -> None:
    for form in (LinearCost, ExponentialCost, BoundedCost):
        with pytest.raises(InvalidPreferences, match="disclosure cost"):
            form(parameter)
    with pytest.raises(InvalidPreferences, match="disclosure cost"):
        PosteriorCost(parameter, 0.5)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, math.nan])
def test_certainties_are_no_priors(prior: float) -> None:
    with pytest.raises(InvalidPreferences, match="prior"):
        PosteriorCost(1.0, prior)
