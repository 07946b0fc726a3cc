"""What clipping leaves out: by hand, by simulation, and by formulas and integrals from outside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dualmandate.frontier.clipping import (
    NOTHING,
    ONE_EACH,
    Amounts,
    EvenPieces,
    LognormalLaw,
    ParetoTail,
    RecordCounts,
    left_out,
    left_out_of_unit,
    squared_bias,
)

COSTS = LognormalLaw(1_500.0, 1.2, share=0.8)


def test_two_amounts_by_hand() -> None:
    """Half have 0 and half 10, counted from 2 up to 6: 4 are left out of one, 2 too many are counted of the other."""
    amounts = EvenPieces(((0.0, 0.0, 0.5), (10.0, 10.0, 0.5)))
    assert amounts.excess(6.0) == (2.0, 8.0)
    assert left_out(amounts, 0.0, 6.0) == (2.0, 8.0)
    assert left_out(amounts, 2.0, 6.0) == (1.0, 10.0)
    assert amounts.moments == (5.0, 50.0)


def test_an_even_piece_by_hand() -> None:
    """Even between 0 and 6 with a bound of 4: a third lies above, by 1 on average; the square is 2³/3 a piece of 6."""
    amounts = EvenPieces.of_quantiles({0.0: 0.0, 1.0: 6.0})
    assert amounts.excess(4.0) == pytest.approx((1 / 3, 8 / 18))
    assert amounts.quantile(0.25) == 1.5
    assert EvenPieces.of_bins([0, 2, 6], [3, 0]).moments == pytest.approx((1.0, 4 / 3))


def test_limited_expected_values_of_the_literature() -> None:
    """Klugman, Panjer and Willmot, appendix A: E[min(X, u)] of a lognormal and of a single-parameter Pareto amount."""
    mu, sigma, bound = np.log(1_500.0), 1.2, 20_000.0
    z = (np.log(bound) - mu) / sigma
    limited = np.exp(mu + sigma**2 / 2) * stats.norm.cdf(z - sigma) + bound * stats.norm.sf(z)
    assert COSTS.moments[0] - COSTS.excess(bound)[0] == pytest.approx(0.8 * limited)
    # α = 3, θ = 100, u = 200: E[X] = 150, E[min(X, 200)] = 150 − 100³/(2·200²) = 137.5
    assert ParetoTail(100.0, 3.0).excess(200.0)[0] == pytest.approx(12.5)
    assert ParetoTail(100.0, 3.0).moments == pytest.approx((150.0, 3 * 100.0**2))


@pytest.mark.parametrize(
    ("law", "outside", "share"),
    [
        (COSTS, stats.lognorm(1.2, scale=1_500.0), 0.8),
        (ParetoTail(900.0, 2.6, 0.3), stats.pareto(2.6, scale=900.0), 0.3),
    ],
)
@pytest.mark.parametrize("bound", [1_000.0, 30_000.0])
def test_excess_is_an_integral(law: Amounts, outside: stats.rv_continuous, share: float, bound: float) -> None:
    steps = np.linspace(0.0, 60.0, 600_001)
    x = bound * np.exp(steps)
    for power, found in enumerate(law.excess(bound), 1):
        integral = np.trapezoid((x - bound) ** power * outside.pdf(x) * x, steps)
        assert found == pytest.approx(share * integral, rel=1e-6)
    assert 1 - share * outside.sf(law.quantile(0.99)) == pytest.approx(0.99)


def test_units_with_several_records_as_simulated() -> None:
    draws, units, most, bound = np.random.default_rng(3), 400_000, 2, 4_000.0
    law, shares = LognormalLaw(1_500.0, 0.8), {1: 0.5, 2: 0.3, 5: 0.2}
    records = draws.choice([1, 2, 5], units, p=[0.5, 0.3, 0.2])
    amounts = draws.lognormal(np.log(1_500.0), 0.8, (units, 5))
    there = np.arange(5) < records[:, None]
    kept = there & (np.arange(5) < most)
    lost = (amounts * there).sum(axis=1) - (np.minimum(amounts, bound) * kept).sum(axis=1)
    found = left_out_of_unit(left_out(law, 0.0, bound), law.moments, RecordCounts(shares), most)
    assert found is not None
    assert found == pytest.approx((lost.mean(), (lost**2).mean()), rel=0.02)
    assert left_out_of_unit(NOTHING, ONE_EACH, RecordCounts(shares), most) == pytest.approx((0.6, 1.8))
    assert left_out_of_unit(NOTHING, None, RecordCounts(shares), most) is None
    assert left_out_of_unit(NOTHING, None, RecordCounts(shares), 5) == NOTHING


def test_squared_bias_of_cells_as_simulated() -> None:
    """Units fall into cells at random; a third cell counts the first with weight ½."""
    draws, units, bound, chances = np.random.default_rng(4), 60, 3_000.0, [0.2, 0.8]
    law = LognormalLaw(1_500.0, 0.8)
    amounts = draws.lognormal(np.log(1_500.0), 0.8, (40_000, units))
    lost = np.maximum(amounts - bound, 0.0)
    inside = draws.random((40_000, units)) < chances[0]
    first, second = (lost * inside).sum(axis=1), (lost * ~inside).sum(axis=1)
    simulated = (first**2 + second**2 + (first / 2) ** 2).mean()
    once, twice = sum(chances) + chances[0] / 4, sum(p * p for p in chances) + (chances[0] / 2) ** 2
    assert squared_bias(left_out(law, 0.0, bound), units, (once, twice)) == pytest.approx(simulated, rel=0.02)
