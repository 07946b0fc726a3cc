"""Intervals hold what they promise: 1,000 simulated surveys for each estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dualmandate.elicitation.answers import BidAnswers
from dualmandate.elicitation.contingent import contingent_valuation
from dualmandate.elicitation.likelihood import Distribution
from dualmandate.elicitation.opinions import Steps, answer_table, polychoric, polyserial

REPLICATIONS, PEOPLE = 1000, 400
CONSTANT, STEEPNESS = 1.0, 0.5
Z = 1.959963984540054


def amounts(generator: np.random.Generator, distribution: Distribution) -> np.ndarray:
    noise = generator.logistic(size=PEOPLE) if distribution == "logistic" else generator.normal(size=PEOPLE)
    return (CONSTANT + noise) / STEEPNESS


def asked(generator: np.random.Generator, distribution: Distribution, double: bool, spike: bool) -> BidAnswers:
    amount = amounts(generator, distribution)
    bid = generator.choice([1.0, 2.0, 4.0, 8.0], PEOPLE)
    pays = amount > 0 if spike else None
    if not double:
        return BidAnswers.single_bounded(bid, amount > bid, pays_anything=pays)
    second = np.where(amount > bid, 2 * bid, bid / 2)
    return BidAnswers.double_bounded(bid, amount > bid, second, amount > second, pays_anything=pays)


@pytest.mark.slow
@pytest.mark.parametrize("spike", [False, True])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("distribution", ["logistic", "normal"])
def test_contingent_valuation(distribution: Distribution, double: bool, spike: bool) -> None:
    generator = np.random.default_rng([5, distribution == "normal", double, spike])
    if not spike:
        mean, zero = CONSTANT / STEEPNESS, math.nan
    elif distribution == "logistic":
        mean, zero = math.log1p(math.e) / STEEPNESS, 1 / (1 + math.e)
    else:
        density = math.exp(-0.5) / math.sqrt(2 * math.pi)
        mean, zero = (float(ndtr(1.0)) + density) / STEEPNESS, float(ndtr(-1.0))
    held: dict[str, int] = {}

    def count(name: str, interval: tuple[float, float] | None, truth: float) -> None:
        assert interval is not None
        held[name] = held.get(name, 0) + (interval[0] <= truth <= interval[1])

    for _ in range(REPLICATIONS):
        valuation = contingent_valuation(asked(generator, distribution, double, spike), distribution=distribution)
        for name, truth in (("constant", CONSTANT), ("bid", -STEEPNESS)):
            middle, width = valuation.estimates.value(name), Z * valuation.estimates.standard_error(name)
            count(name, (middle - width, middle + width), truth)
        count("mean, delta", valuation.mean().interval, mean)
        count("mean, krinsky-robb", valuation.mean(method="krinsky-robb").interval, mean)
        if spike:
            count("share at zero", valuation.share_at_zero().interval, zero)
        else:
            count("mean, fieller", valuation.mean(method="fieller").interval, mean)
    shares = {name: hits / REPLICATIONS for name, hits in held.items()}
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares


@pytest.mark.slow
@pytest.mark.parametrize("method", ["two-step", "full"])
def test_polychoric(method: Steps) -> None:
    generator = np.random.default_rng(6)
    held = 0
    for _ in range(REPLICATIONS):
        first = generator.normal(size=500)
        second = 0.3 * first + math.sqrt(0.91) * generator.normal(size=500)
        table = answer_table(np.searchsorted([-1.3, -0.5, 0.3, 1.0], first), np.searchsorted([-1.0, 0.0, 0.8], second))
        low, high = polychoric(table, method=method).interval()
        held += low <= 0.3 <= high
    assert 0.93 <= held / REPLICATIONS <= 0.97


@pytest.mark.parametrize("skewed", [False, True])
def test_polyserial(skewed: bool) -> None:
    # With a skewed amount the latent opinion is normal given the amount; the error is robust to that.
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(REPLICATIONS):
        amount = generator.gamma(4.0, size=PEOPLE) / 2 - 2 if skewed else generator.normal(size=PEOPLE)
        opinion = 0.5 * amount + math.sqrt(0.75) * generator.normal(size=PEOPLE)
        low, high = polyserial(10 + 3 * amount, np.searchsorted([-1.0, 0.0, 0.8], opinion)).interval()
        held += low <= 0.5 <= high
    assert 0.93 <= held / REPLICATIONS <= 0.97
