"""A real choice experiment, to the digits that two other programs gave; without it, invented answers of its shape."""

from __future__ import annotations

import numpy as np
import pytest
from tests.elicitation import drones

from dualmandate.elicitation import ChoiceData, conditional_logit, willingness_to_pay

REFERENCE = {  # choices, clusters, log likelihood, willingness to pay for privacy in USD a delivery, errors
    "food": (9_528, 3_014, -5_146.592, 1.8506, 0.1124, 0.1026),
    "prescriptions": (11_481, 3_323, -6_139.313, 4.6786, 0.1960, 0.1724),
    "liquor": (7_269, 2_381, -3_821.570, 1.9383, 0.1143, 0.1053),
    "groceries": (8_019, 2_577, -4_138.769, 2.0414, 0.1159, 0.1059),
}
RESTRICTED = {"food": 1.8345, "prescriptions": 5.0097, "liquor": 2.0190, "groceries": 2.0246}


def binary(good: str) -> ChoiceData:
    given = drones.answers(good)
    return ChoiceData.of_answers(given.offers, yes=given.drone, respondent=given.respondent, price="drone cost")


@pytest.mark.parametrize("good", drones.GOODS)
def test_privacy_has_the_price_that_others_found(good: str) -> None:
    data = binary(good)
    clustered, plain = conditional_logit(data), conditional_logit(data, cluster=False)
    worth = willingness_to_pay(clustered, "privacy", "drone cost")
    if not drones.is_real():
        error = clustered.standard_error("privacy")
        assert clustered.value("privacy") == pytest.approx(drones.INVENTED[5], abs=4 * error)
        assert worth.estimate == pytest.approx(2.0, abs=4 * (worth.standard_error or 0))
        return
    choices, clusters, log_likelihood, dollars, error, plain_error = REFERENCE[good]
    assert (clustered.observations, clustered.clusters) == (choices, clusters)
    assert clustered.log_likelihood == pytest.approx(log_likelihood, abs=5e-4)
    assert worth.estimate == pytest.approx(dollars, abs=5e-5)
    assert worth.standard_error == pytest.approx(error, abs=5e-5)
    assert willingness_to_pay(plain, "privacy", "drone cost").standard_error == pytest.approx(plain_error, abs=5e-5)


@pytest.mark.parametrize("good", drones.GOODS)
def test_costs_and_times_held_opposite_change_the_price(good: str) -> None:
    given = drones.answers(good)
    offers = {
        "cost": given.offers["drone cost"] - given.offers["ground cost"],
        "time": given.offers["drone time"] - given.offers["ground time"],
        "privacy": given.offers["privacy"],
    }
    data = ChoiceData.of_answers(offers, yes=given.drone, respondent=given.respondent, price="cost")
    worth = willingness_to_pay(conditional_logit(data), "privacy", "cost")
    if drones.is_real():
        assert worth.estimate == pytest.approx(RESTRICTED[good], abs=5e-5)
    else:
        assert worth.estimate is not None


def test_the_same_in_long_format_with_a_constant() -> None:
    """Ground attributes on the row of ground delivery have the opposite sign; the constant belongs to the drone."""
    given = drones.answers("food")
    rows = len(given.drone)
    zeros = np.zeros(rows)
    sides = {
        name: (zeros, column) if "ground" not in name else (column, zeros) for name, column in given.offers.items()
    }
    data = ChoiceData.of_columns(
        {name: np.concatenate(columns) for name, columns in sides.items()},
        chosen=np.concatenate([~given.drone, given.drone]),
        task=np.tile(np.arange(rows), 2),
        respondent=np.tile(given.respondent, 2),
        alternative=np.repeat(["ground", "drone"], rows),
        price="drone cost",
    ).with_constants("ground")
    found, expected = conditional_logit(data), conditional_logit(binary("food"))
    assert found.names[0] == "constant of drone"
    signs = np.array([1, -1, -1, 1, 1, 1])
    assert found.values == pytest.approx(signs * expected.values, rel=1e-8)
    assert found.covariance == pytest.approx(np.outer(signs, signs) * expected.covariance, rel=1e-6)
