"""Polychoric and polyserial correlations: brute force, a public survey, coverage of their errors."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from dualmandate.elicitation.opinions import (
    Polychoric,
    Steps,
    answer_table,
    bivariate_cdf,
    bivariate_density,
    edge_density,
    polychoric,
    polyserial,
)
from dualmandate.errors import InvalidSurvey, NoEstimate, UnknownName

# Cornell National Social Survey 2011-13 (openICPSR E100424V2), people by two answers; 5 is the best health, the most
# privacy or quality. Correlations and errors as printed in the working paper's archive (doi 10.5281/zenodo.345385).
HEALTH_BY_PRIVACY = [
    [22, 18, 36, 15, 3],
    [53, 81, 95, 32, 23],
    [146, 226, 240, 86, 47],
    [151, 344, 415, 107, 62],
    [117, 195, 239, 82, 40],
]
INCOME_BY_QUALITY = [
    [5, 6, 23, 34, 29],
    [14, 17, 48, 59, 66],
    [8, 11, 39, 72, 80],
    [9, 4, 57, 62, 78],
    [16, 17, 67, 109, 143],
    [20, 23, 131, 223, 307],
    [4, 9, 53, 114, 160],
    [3, 9, 65, 120, 179],
    [6, 4, 51, 107, 191],
]
METHODS: tuple[Steps, ...] = ("two-step", "full")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("table", "correlation", "error", "fit", "chance"),
    [
        (HEALTH_BY_PRIVACY, 0.01537115, 0.02138384, 29.872175, 0.01239086),
        (INCOME_BY_QUALITY, 0.17616901, 0.02019792, 28.667783, 0.58653087),
    ],
)
def test_the_working_papers_survey(
    table: list[list[int]], correlation: float, error: float, fit: float, chance: float, method: Steps
) -> None:
    found = polychoric(table, method=method)
    assert found.correlation == pytest.approx(correlation, abs=1e-4)
    assert found.standard_error == pytest.approx(error, rel=0.015)  # theirs takes the thresholds as known
    assert found.likelihood_ratio == pytest.approx(fit, rel=1e-3)
    assert found.fit_probability == pytest.approx(chance, rel=5e-3)


@settings(max_examples=40, deadline=None)
@given(st.floats(-4, 4), st.floats(-4, 4), st.floats(-0.98, 0.98))
def test_probabilities_of_two_normal_variables(first: float, second: float, correlation: float) -> None:
    found = bivariate_cdf(np.array(first), np.array(second), correlation)
    expected = multivariate_normal.cdf([first, second], cov=[[1, correlation], [correlation, 1]])
    assert float(found) == pytest.approx(float(expected), abs=1e-9)


def test_a_closed_form() -> None:
    for correlation in (-0.999, -0.3, 0.0, 0.5, 0.99):  # P(X ≤ 0, Y ≤ 0) = 1/4 + asin(ρ)/2π
        assert float(bivariate_cdf(np.array(0.0), np.array(0.0), correlation)) == pytest.approx(
            0.25 + math.asin(correlation) / (2 * math.pi), abs=1e-15
        )
    assert float(bivariate_cdf(np.array(np.inf), np.array(1.0), 0.5)) == pytest.approx(0.8413447460685429)
    assert float(bivariate_cdf(np.array(-np.inf), np.array(1.0), 0.5)) == 0.0


def test_derivatives_of_the_probability() -> None:
    first, second, step = np.array([-1.2, 0.3, 2.0]), np.array([0.4, -0.8, 1.0]), 1e-6
    by_correlation = (bivariate_cdf(first, second, 0.4 + step) - bivariate_cdf(first, second, 0.4 - step)) / (2 * step)
    assert bivariate_density(first, second, 0.4) == pytest.approx(by_correlation, rel=1e-8)
    by_limit = (bivariate_cdf(first + step, second, 0.4) - bivariate_cdf(first - step, second, 0.4)) / (2 * step)
    assert edge_density(first, second, 0.4) == pytest.approx(by_limit, rel=1e-8)


def test_two_by_two_is_the_tetrachoric_correlation() -> None:
    # Cut at both medians, P(both low) = 1/4 + asin(ρ)/2π = .35, so ρ = sin(2π·.1).
    for method in METHODS:
        found = polychoric([[350, 150], [150, 350]], method=method)
        assert found.correlation == pytest.approx(math.sin(0.2 * math.pi), abs=1e-9)
        assert found.fit_probability is None
        assert found.likelihood_ratio == pytest.approx(0.0, abs=1e-7)


def test_the_correlation_is_the_most_likely_one() -> None:
    table = np.array([[30, 12, 4], [20, 40, 15], [5, 18, 36]], dtype=float)

    def minus(parameters: np.ndarray) -> float:
        rows, columns = np.sort(parameters[:2]), np.sort(parameters[2:4])
        correlation = math.tanh(parameters[4])
        edges = [np.concatenate([[-9], cut, [9]]) for cut in (rows, columns)]
        law = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
        below = np.array([[law.cdf([one, other]) for other in edges[1]] for one in edges[0]])
        cells = np.diff(np.diff(below, axis=0), axis=1)
        return float(-(table * np.log(np.maximum(cells, 1e-300))).sum())

    found = polychoric(table, method="full")
    start = np.concatenate([found.row_thresholds, found.column_thresholds, [math.atanh(found.correlation)]])
    assert -minus(start) == pytest.approx(found.log_likelihood, abs=1e-6)
    for direction in np.eye(5) * 0.01:
        assert minus(start + direction) > minus(start)
        assert minus(start - direction) > minus(start)
    two = polychoric(table)
    at = np.concatenate([two.row_thresholds, two.column_thresholds, [0.0]])
    best = minimize(lambda z: minus(np.append(at[:4], z[0])), [0.5], method="Nelder-Mead", options={"xatol": 1e-9}).x
    assert two.correlation == pytest.approx(math.tanh(best[0]), abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_influence_is_what_one_more_person_does(method: Steps) -> None:
    # Where the model fits, expected information, which both methods use, is what is seen.
    table = 1000.0 * polychoric([[30, 12, 4], [20, 40, 15], [5, 18, 36]], method="full").fitted
    found = polychoric(table, method=method)
    assert float((table * found.influence).sum()) == pytest.approx(0.0, abs=1e-6 * table.sum())
    for cell in ((0, 0), (1, 2), (2, 0)):
        more = table.copy()
        more[cell] += 1.0
        moved = polychoric(more, method=method).correlation - found.correlation
        assert moved * table.sum() == pytest.approx(found.influence[cell], rel=2e-3)


def test_pairs_of_items_and_missing_answers() -> None:
    generator = np.random.default_rng(0)
    latent = generator.multivariate_normal([0, 0, 0], [[1, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 1]], 4000)
    items = {name: np.searchsorted([-1, 0, 1], latent[:, i]).astype(float) for i, name in enumerate("abc")}
    items["c"][:500] = np.nan
    found = {(a, b): polychoric(answer_table(items[a], items[b])) for a, b in ("ab", "ac", "bc")}
    assert {pair: round(each.correlation, 1) for pair, each in found.items()} == {
        ("a", "b"): 0.5,
        ("a", "c"): 0.2,
        ("b", "c"): 0.0,
    }
    assert found["a", "c"].observations == 3500
    assert answer_table([1, 1, 2, np.nan], [5, 3, 3, 3]).tolist() == [[1, 1], [1, 0]]


def test_levels_that_nobody_chose_do_not_matter() -> None:
    with_gap = np.insert(np.array(HEALTH_BY_PRIVACY), 2, 0, axis=0)
    assert polychoric(with_gap).correlation == polychoric(HEALTH_BY_PRIVACY).correlation


def test_tables_that_say_nothing() -> None:
    with pytest.raises(NoEstimate, match="foretells"):
        polychoric([[50, 0], [0, 50]])
    with pytest.raises(InvalidSurvey, match="same answer"):
        polychoric([[50, 30]])
    with pytest.raises(InvalidSurvey, match="no table"):
        polychoric([[50, -1], [3, 4]])
    with pytest.raises(InvalidSurvey, match="2 and 3 answers"):
        answer_table([1, 2], [1, 2, 3])
    with pytest.raises(UnknownName, match="three-step"):
        polychoric([[5, 3], [3, 4]], method="three-step")  # type: ignore[arg-type]


def test_a_full_search_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opinions = import_module("dualmandate.elicitation.opinions")
    search = opinions._searched
    monkeypatch.setattr(opinions, "_searched", lambda *given, full: None if full else search(*given, full=False))
    with pytest.raises(NoEstimate, match="no most likely thresholds"):
        polychoric(INCOME_BY_QUALITY, method="full")


def test_an_interval_stays_inside() -> None:
    found = polychoric([[60, 8], [6, 55]])
    low, high = found.interval()
    assert -1 < low < found.correlation < high < 1
    assert isinstance(found, Polychoric)
    assert high - found.correlation < found.correlation - low


def test_polyserial_on_a_hand_case() -> None:
    # Amounts ±1 in equal parts and an opinion in two levels: probit slope (z(.8) − z(.3))/2, thresholds shared.
    amount = np.repeat([-1.0, 1.0], 100)
    answer = np.concatenate([np.arange(100) < 30, np.arange(100) < 80]).astype(float)
    slope = (ndtri(0.8) - ndtri(0.3)) / 2
    found = polyserial(amount * 7 + 3, answer)
    assert found.correlation == pytest.approx(slope / math.sqrt(1 + slope**2), abs=1e-9)
    assert polyserial(-amount, answer).correlation == pytest.approx(-found.correlation, abs=1e-9)
    low, high = found.interval()
    assert low < found.correlation < high


def test_polyserial_refusals() -> None:
    with pytest.raises(InvalidSurvey, match="3 and 2 answers"):
        polyserial([1, 2, 3], [1, 2])
    with pytest.raises(InvalidSurvey, match="same for everybody"):
        polyserial([1, 1, 1], [1, 2, 1])
    with pytest.raises(NoEstimate, match="separate"):
        polyserial([1, 2, 3, 4], [0, 0, 1, 1])
