"""The working papers' planner: printed numbers, and the estimation behind them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.elicitation.opinions import InterdependentPreferences, answer_table, polychoric
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier.worst_case import PowerLawTechnology, multiplicative_weights_exponential

INCOME = multiplicative_weights_exponential(197_040_596, 797, 318_003)
HEALTH = multiplicative_weights_exponential(242_977_154, 800, 320_400)


@pytest.mark.parametrize(
    ("technology", "privacy", "accuracy", "epsilon", "level", "halving"),
    [
        (INCOME, 0.083, 0.040, 0.044164, 0.862031, -0.013381),
        (HEALTH, 0.0154, 0.076, 0.045135, 0.872220, -0.012822),
    ],
)
def test_printed_numbers(
    technology: PowerLawTechnology, privacy: float, accuracy: float, epsilon: float, level: float, halving: float
) -> None:
    tastes = InterdependentPreferences(privacy, accuracy)
    choice = tastes.choose(technology)
    assert (choice.epsilon, choice.accuracy) == pytest.approx((epsilon, level), abs=5e-7)
    assert choice.epsilon_interval is None
    assert tastes.standard_error is None
    change = tastes.welfare_change(technology, before=choice.epsilon, after=choice.epsilon / 2)
    assert change == pytest.approx(halving, abs=5e-7)
    assert technology.marginal_rate_of_transformation(choice.epsilon) == pytest.approx(tastes.willingness_to_accept)
    assert str(choice) == (
        f"ε = {choice.epsilon:.4g} and I = {choice.accuracy:.4g}, where MRT = WTA = {tastes.willingness_to_accept:.4g}"
    )


def test_the_2014_version() -> None:
    # Its technology's constant is not printed; the one through its own optimum gives that optimum back.
    tastes = InterdependentPreferences(-0.1435, 0.1893)
    assert round(tastes.willingness_to_accept, 3) == 0.720
    choice = tastes.choose(PowerLawTechnology((1 - 0.9039) * math.sqrt(0.0667), 0.5))
    assert (choice.epsilon, choice.accuracy) == pytest.approx((0.0667, 0.9039), abs=5e-5)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_no_other_loss_is_better(factor: float) -> None:
    tastes = InterdependentPreferences(0.083, 0.040)
    best = tastes.choose(INCOME).epsilon
    assert tastes.welfare_change(INCOME, before=best, after=factor * best) < 0


def sample(people: int, seed: int) -> np.ndarray:
    shape = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.4], [0.2, 0.4, 1.0]])  # income, privacy, accuracy
    latent = np.random.default_rng(seed).multivariate_normal(np.zeros(3), shape, people)
    return np.column_stack([np.searchsorted(cuts, column) for cuts, column in zip(CUTS, latent.T, strict=True)])


CUTS = ([-1.0, 0.0, 0.7], [-0.5, 0.5, 1.2], [-1.0, 0.2])


def test_from_answers() -> None:
    answers = sample(2000, 4).astype(float)
    answers[:100, 1] = np.nan
    tastes = InterdependentPreferences.of_answers(*answers.T)
    privacy = polychoric(answer_table(answers[:, 0], answers[:, 1]))
    assert tastes.privacy_income_covariance == privacy.correlation
    assert tastes.covariance is not None
    assert math.sqrt(tastes.covariance[0, 0]) == pytest.approx(privacy.standard_error, rel=1e-12)
    choice = tastes.choose(INCOME)
    assert choice.epsilon_interval is not None
    assert choice.accuracy_interval is not None
    assert choice.epsilon_interval[0] < choice.epsilon < choice.epsilon_interval[1]
    assert choice.accuracy_interval[0] < choice.accuracy < choice.accuracy_interval[1]
    assert "95 % interval of ε" in str(choice)


def test_errors_of_both_covariances_are_seen_in_repeated_surveys() -> None:
    found = [InterdependentPreferences.of_answers(*sample(600, seed).T) for seed in range(300)]
    pairs = np.array([[each.privacy_income_covariance, each.accuracy_income_covariance] for each in found])
    assert pairs.mean(axis=0) == pytest.approx([0.3, 0.2], abs=0.01)
    expected = np.mean([each.covariance for each in found if each.covariance is not None], axis=0)
    assert np.cov(pairs.T) == pytest.approx(expected, abs=3.5e-4)  # three standard errors of a covariance of 300
    assert expected[0, 1] == pytest.approx(6.3e-4, abs=5e-5)  # the two hang together: they share people and incomes
    rates = np.array([each.willingness_to_accept for each in found])
    errors = [each.standard_error for each in found]
    assert None not in errors
    assert np.std(rates) == pytest.approx(np.mean(np.array(errors, dtype=float)), rel=0.12)


def test_refusals() -> None:
    with pytest.raises(InvalidPreferences, match="accuracy"):
        InterdependentPreferences(0.1, -1.0)
    with pytest.raises(NoOptimum, match="guarantees no accuracy"):
        InterdependentPreferences(0.1, 0.1).choose(multiplicative_weights_exponential(1000, 800, 320_400))
